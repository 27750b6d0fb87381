"""What a typed network is made of: node types, link types, and how their values are compared."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from telic.errors import InputError

ROUNDING = 4 * np.finfo(np.float64).eps
"""What reading and subtracting two decimals may lose, relatively."""
RULES = ("exact", "at_least", "at_most", "tolerance", "ignore")
MAX_STRENGTH = 2**31 - 1
LEAST_BASE = 1.001
"""Of powers that numbers are brought down to; a base nearer to 1 has millions of them."""


def powers_of(base: float) -> np.ndarray:
    """Return the powers of a base, rounded up, as far as strengths go."""
    if not base >= LEAST_BASE:
        raise InputError(
            f"base is {base}, expected at least {LEAST_BASE}: finer powers coarsen hardly anything."
        )
    powers = np.unique(np.ceil(base ** np.arange(0, 1 + int(31 / np.log2(base)))))
    return powers[powers <= MAX_STRENGTH].astype(np.int64)


def down_to(powers: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the largest of some powers that is not above each value; 1 of those below 1."""
    return powers[np.searchsorted(powers, np.maximum(values, 1), side="right") - 1]


@dataclass(frozen=True, slots=True)
class Rule:
    """When a value seen later may belong to a value that was published.

    Parameters
    ----------
    kind : {"exact", "at_least", "at_most", "tolerance", "ignore"}
        ``at_least``: the later value has grown or stayed; ``at_most``: shrunk or stayed.
    width : float
        Largest absolute difference allowed by ``tolerance``.
    powers : float
        Base of the powers that strengths were brought down to since, both the published and the
        later ones; the tolerance is one of what they were. 0: they are as they were.

    Examples
    --------
    >>> Rule.parse("at_least").bounds(3.0)
    (3.0, inf)
    >>> low, high = Rule.parse({"tolerance": 2}).bounds(10.0)
    >>> print(low, high)
    8.0 12.0

    What was published as 4 was 4 to 7, so that it may be 2 to 9 by now, which is 2 to 8:

    >>> low, high = Rule.parse({"tolerance": 2, "powers": 2}).bounds(4.0)
    >>> print(low, high)
    2.0 8.0
    """

    kind: str
    width: float = 0.0
    powers: float = 0.0

    @classmethod
    def parse(cls, value: Any, where: str = "rule") -> "Rule":
        """Read a rule as ``schema.json`` writes it: a name, or ``{"tolerance": x}``."""
        if isinstance(value, Mapping) and set(value) == {"tolerance", "powers"}:
            base = value["powers"]
            if isinstance(base, int | float) and LEAST_BASE <= base < math.inf:
                return replace(cls.parse({"tolerance": value["tolerance"]}, where), powers=base)
        if isinstance(value, str) and value in RULES and value != "tolerance":
            return cls(value)
        if isinstance(value, Mapping) and list(value) == ["tolerance"]:
            width = value["tolerance"]
            is_number = isinstance(width, int | float) and not isinstance(width, bool)
            if is_number and 0 <= width < 2**63:  # JSON has numbers of any length
                return cls("tolerance", float(width))
        raise InputError(
            f"{where}: {value!r} is no matching rule. Use 'exact', 'at_least', 'at_most', "
            "'ignore' or {\"tolerance\": x} with x >= 0."
        )

    def dump(self) -> Any:
        """Give the rule as ``schema.json`` writes it."""
        if self.kind != "tolerance":
            return self.kind
        return {"tolerance": self.width} | ({"powers": self.powers} if self.powers else {})

    def bounds(self, value: Any) -> tuple[Any, Any]:
        """Return the closed interval of later values that match `value` (a number or an array)."""
        width: Any = self.width
        if self.powers:
            powers = powers_of(self.powers)
            last = np.append(powers[1:] - 1, MAX_STRENGTH)
            value = np.asarray(value)
            low = down_to(powers, value - width)
            high = down_to(powers, last[np.searchsorted(powers, value, side="right") - 1] + width)
            return low.astype(float), high.astype(float)
        if self.kind == "tolerance":
            # Decimals are rounded in binary: 0.8 − 0.1 is more than 0.7. Whole numbers are not.
            finite = np.where(np.isfinite(value), value, 0.0)
            own = width if width % 1 else 0.0
            width = width + ROUNDING * np.where(finite % 1 != 0, np.abs(finite) + width, own)
        low = {"at_most": -math.inf, "ignore": -math.inf}.get(self.kind, value - width)
        high = {"at_least": math.inf, "ignore": math.inf}.get(self.kind, value + width)
        return low, high


@dataclass(frozen=True, slots=True)
class LinkType:
    """A link type: the triple (source type, name, target type) and its strength's rule.

    Parameters
    ----------
    name, source, target : str
    strength : Rule or None
        None: links of this type carry no strength.
    self_links : bool
        Whether a node may link to itself; counts towards the density [Zhang2017] (7.6.1).
    """

    name: str
    source: str
    target: str
    strength: Rule | None = None
    self_links: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """Node types with the rules of their attributes, and link types (Definition 7.3.3).

    Parameters
    ----------
    nodes : mapping of str to mapping of str to Rule
        Node type → attribute → rule.
    links : tuple of LinkType
    pseudonyms : frozenset of str
        Node types whose ids were replaced by meaningless ones, so that they tell nothing. Every
        other id may be known to whoever sees the network.

    Raises
    ------
    InputError
        If two link types share a name, or a node type is named that does not exist.

    Examples
    --------
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}},
    ...                        "links": [{"name": "follow", "source": "user", "target": "user"}]})
    >>> schema.link("follow").target
    'user'
    """

    nodes: Mapping[str, Mapping[str, Rule]]
    links: tuple[LinkType, ...]
    pseudonyms: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError("schema: no node type. Name at least one under 'nodes'.")
        for name in self.pseudonyms - set(self.nodes):
            raise InputError(
                f"schema: node type {name!r} does not exist. Node types are {sorted(self.nodes)}."
            )
        seen = set()
        for link in self.links:
            if link.name in seen:
                raise InputError(f"schema: two link types are named {link.name!r}. Rename one.")
            seen.add(link.name)
            for end in (link.source, link.target):
                if end not in self.nodes:
                    raise InputError(
                        f"schema: link type {link.name!r} joins node type {end!r}, which does not "
                        f"exist. Node types are {sorted(self.nodes)}."
                    )
            if link.self_links and link.source != link.target:
                raise InputError(
                    f"schema: link type {link.name!r} joins {link.source!r} to {link.target!r}, "
                    "so 'self_links' cannot be true."
                )
        for name in [*self.nodes, *seen]:
            if not is_type_name(name):
                raise InputError(f"schema: {name!r} cannot be a type's name: it names a file.")

    def link(self, name: str) -> LinkType:
        """Return the link type called `name`."""
        for link in self.links:
            if link.name == name:
                return link
        known = [link.name for link in self.links]
        raise InputError(f"no link type is called {name!r}. Link types are {known}.")

    @classmethod
    def parse(cls, content: Any, where: str = "schema.json") -> "Schema":
        """Read the content of a ``schema.json``."""
        try:
            nodes = {
                node: {
                    attribute: Rule.parse(rule, f"{where}: attribute {attribute!r} of {node!r}")
                    for attribute, rule in (entry.get("attributes") or {}).items()
                }
                for node, entry in content["nodes"].items()
            }
            for node, entry in content["nodes"].items():
                _refuse_unknown(entry, NODE_KEYS, f"{where}: node type {node!r}")
            links = tuple(_parse_link(link, where) for link in content["links"])
            ids = {node: entry.get("ids") for node, entry in content["nodes"].items()}
        except (KeyError, TypeError, AttributeError) as error:
            wrong = f"lacks {error}" if isinstance(error, KeyError) else error
            raise InputError(
                f"{where}: is not a network schema ({wrong}). Expected "
                '{"nodes": {type: {"attributes": {name: rule}}}, '
                '"links": [{"name", "source", "target", "strength"}]}.'
            ) from None
        for node, kind in ids.items():
            if kind not in (None, "pseudonyms"):
                raise InputError(
                    f"{where}: 'ids' of {node!r} is {kind!r}. Write \"pseudonyms\" where ids were "
                    "replaced by meaningless ones, else leave it out."
                )
        try:
            return cls(nodes, links, frozenset(node for node, kind in ids.items() if kind))
        except InputError as error:
            raise InputError(f"{where}: {str(error).removeprefix('schema: ')}") from None

    def dump(self) -> dict[str, Any]:
        """Give the content of ``schema.json``."""
        return {
            "nodes": {
                node: {"attributes": {name: rule.dump() for name, rule in attributes.items()}}
                | ({"ids": "pseudonyms"} if node in self.pseudonyms else {})
                for node, attributes in self.nodes.items()
            },
            "links": [
                {
                    "name": link.name,
                    "source": link.source,
                    "target": link.target,
                    "strength": link.strength.dump() if link.strength else None,
                    "self_links": link.self_links,
                }
                for link in self.links
            ],
        }


def is_type_name(name: Any) -> bool:
    """Say whether a node or link type can have this name, which also names a file."""
    return isinstance(name, str) and name != "" and "/" not in name and not name.startswith(".")


def check_node_type(schema: Schema, name: str) -> None:
    """Raise InputError unless there is such a node type."""
    if name not in schema.nodes:
        raise InputError(f"node type {name!r} does not exist. Node types are {list(schema.nodes)}.")


NODE_KEYS = "attributes", "ids"
LINK_KEYS = "name", "source", "target", "strength", "self_links"


def _refuse_unknown(entry: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that nothing reads: it may be an attribute in the wrong place, or misspelt."""
    for key in entry:
        if key not in known:
            raise InputError(f"{where}: nothing reads {key!r}. Its keys are {', '.join(known)}.")


def _parse_link(entry: Mapping[str, Any], where: str) -> LinkType:
    strength = entry.get("strength")
    name = entry["name"]
    self_links = entry.get("self_links", False)
    for key in ("name", "source", "target"):
        if not isinstance(entry[key], str):
            raise InputError(f"{where}: {key!r} of a link type is {entry[key]!r}, expected a text.")
    if not isinstance(self_links, bool):
        raise InputError(f"{where}: link type {name!r}: 'self_links' must be true or false.")
    _refuse_unknown(entry, LINK_KEYS, f"{where}: link type {name!r}")
    return LinkType(
        name,
        entry["source"],
        entry["target"],
        None if strength is None else Rule.parse(strength, f"{where}: strength of {name!r}"),
        self_links,
    )
