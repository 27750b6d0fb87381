"""What an intruder is taken to see of a release: one description for risk, attack and advice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from telic.errors import InputError
from telic.hin import Network, Rule
from telic.privacy.protected import link_types, target_type

FARTHEST = 100
"""Links; there is a row of results for each distance up to the one asked for."""


@dataclass(frozen=True)
class Adversary:
    """What the intruder sees of a person in a release, and how it may have changed since.

    `Adversary.of` gives everything that a release contains. Risk assumes that every value that is
    seen is known exactly; the attack allows what the rules allow.

    Parameters
    ----------
    node_type : str
        Who is to be protected.
    attributes : mapping of str to mapping of str to Rule
        Node type → attribute → when a value seen later may belong to the published one. What is
        not named is not seen.
    links : mapping of str to Rule or None
        Link type (between nodes of any types) → the same for its strengths; None: strengths are
        not compared.
    known_ids : tuple of str
        Other node types whose ids the intruder knows, such as a public catalogue.
    in_links : bool
        Whether who links *to* a node is seen, beside whom it links to.
    joint : bool
        Whether the intruder sees that several links lead to the same node. False, as in Chapter 7:
        the intruder looks at each link type and direction alone.
    distance : int, optional
        How many links far the intruder looks, 0 to 100; None: as far as anything changes.
    unseen : tuple of str
        What the release holds and the intruder is assumed not to know; for `words`.
    """

    node_type: str
    attributes: Mapping[str, Mapping[str, Rule]]
    links: Mapping[str, Rule | None]
    known_ids: tuple[str, ...] = ()
    in_links: bool = True
    joint: bool = True
    distance: int | None = None
    unseen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.distance is not None and not 0 <= self.distance <= FARTHEST:
            raise InputError(f"distance is {self.distance}, expected 0 to {FARTHEST}.")

    @classmethod
    def of(
        cls,
        release: Network,
        *,
        node_type: str | None = None,
        attributes: Sequence[str] | None = None,
        links: Sequence[str] | None = None,
        known_ids: Sequence[str] | None = None,
        in_links: bool = True,
        joint: bool = True,
        distance: int | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> "Adversary":
        """Describe an intruder who sees all that a release contains, or only what is named.

        Parameters
        ----------
        release : Network
        node_type : str, optional
            Who is to be protected; needed if the network has several node types.
        attributes : sequence of str, optional
            Attributes that are seen: a name, for other node types ``"type.name"``. Default: all,
            of every node type, that the schema does not ignore.
        links : sequence of str, optional
            Link types that are seen; default all, to and between other node types too.
        known_ids : sequence of str, optional
            Default: all other node types whose ids the schema does not call pseudonyms.
        in_links, joint, distance
            See `Adversary`.
        rules : mapping, optional
            Attribute or link type → rule as in ``schema.json``, instead of the schema's.

        Raises
        ------
        InputError
            If a name is not there.

        Examples
        --------
        >>> from telic.hin import network_from_arrays, Schema
        >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}},
        ...                        "links": [{"name": "follow", "source": "user",
        ...                                   "target": "user"}]})
        >>> network = network_from_arrays(schema, {"user": {"id": [1, 2], "yob": [80, 70]}},
        ...                               {"follow": ([1], [2])})
        >>> print(Adversary.of(network, distance=1).words())
        The intruder sees of every user: yob. The ids of user nodes are assumed ...
        """
        node_type = target_type(release, node_type)
        schema = release.schema
        names = link_types(schema, links)
        strengths = {name: schema.link(name).strength for name in names}
        every: dict[str, tuple[str, str, Rule]] = {}
        for kind, table in schema.nodes.items():
            for name, rule in table.items():
                label = label_of(node_type, kind, name)
                if label in every:
                    raise InputError(
                        f"attribute {label!r} may be one of {every[label][0]!r} or of {kind!r}. "
                        "Rename one of the two."
                    )
                every[label] = (kind, name, rule)
        # A column that the schema does not name can be asked for, and is then exact.
        for kind in schema.nodes:
            for name in release.nodes[kind].column_names:
                if name != "id":
                    label = label_of(node_type, kind, name)
                    every.setdefault(label, (kind, name, Rule("ignore")))
        if attributes is not None:
            for label in attributes:
                if label not in every:
                    raise InputError(
                        f"attribute {label!r} does not exist. Attributes are {list(every)}."
                    )
            for label, (kind, name, rule) in every.items():
                wanted = Rule("exact") if rule.kind == "ignore" else rule
                every[label] = (kind, name, wanted if label in attributes else Rule("ignore"))
        for label, given in (rules or {}).items():
            rule = Rule.parse(given, f"rules: {label!r}")
            if label in every:
                every[label] = (*every[label][:2], rule)
            elif label in link_types(schema):
                if schema.link(label).strength is None:
                    raise InputError(f"rules: link type {label!r} has no strength to compare.")
                if label in strengths:
                    strengths[label] = rule
            else:
                raise InputError(
                    f"rules: {label!r} is neither an attribute nor a link type of the target. "
                    f"Attributes are {list(every)}, link types {names}."
                )
        seen: dict[str, dict[str, Rule]] = {kind: {} for kind in schema.nodes}
        for kind, name, rule in every.values():
            if rule.kind != "ignore":
                seen[kind][name] = rule
        others = [kind for kind in schema.nodes if kind != node_type]
        if known_ids is None:
            known_ids = [kind for kind in others if kind not in schema.pseudonyms]
        for kind in known_ids:
            if kind not in others:
                raise InputError(
                    f"known ids: {kind!r} is no other node type than {node_type!r}. Those are "
                    f"{others}."
                )
        unseen = [label for label, (_, _, rule) in every.items() if rule.kind == "ignore"]
        unseen += [f"{name} links" for name in link_types(schema) if name not in strengths]
        unseen += [
            f"ids of {kind}"
            for kind in others
            if kind not in known_ids and kind not in schema.pseudonyms
        ]
        return cls(
            node_type,
            seen,
            strengths,
            tuple(dict.fromkeys(known_ids)),
            in_links,
            joint,
            distance,
            tuple(unseen),
        )

    def with_links(self, names: Iterable[str]) -> "Adversary":
        """Return the intruder who sees only these of the link types."""
        return replace(self, links={name: self.links[name] for name in names})

    def exactly(self) -> "Adversary":
        """Return the intruder who knows every value that is seen exactly: nothing has changed."""
        exact = Rule("exact")
        return replace(
            self,
            attributes={k: dict.fromkeys(table, exact) for k, table in self.attributes.items()},
            links={
                name: rule if rule is None or rule.kind == "ignore" else exact
                for name, rule in self.links.items()
            },
        )

    def words(self) -> str:
        """Say in whole sentences what the intruder sees, and what not."""
        own = ", ".join(_told(self.attributes[self.node_type])) or "no attribute"
        parts = [
            f"The intruder sees of every {self.node_type}: {own}. The ids of {self.node_type} "
            "nodes are assumed to be replaced."
        ]
        links = ", ".join(_told(self.links))
        ways = "out-links and in-links" if self.in_links else "out-links alone,"
        parts.append(
            f"The intruder sees {ways} of type {links}." if links else "No links are seen."
        )
        for kind, table in self.attributes.items():
            if kind != self.node_type:
                told = ", ".join(["ids"] * (kind in self.known_ids) + _told(table))
                parts.append(f"Of every {kind}: {told or 'only how it is linked'}.")
        if self.links:
            parts.append(
                "The intruder sees whether several links lead to the same node."
                if self.joint
                else "The intruder looks at each link type and direction alone."
            )
            far = "until nothing changes"
            if self.distance is not None:
                far = f"{self.distance} link{'s' * (self.distance != 1)} far"
            parts.append(f"The intruder looks along links, {far}.")
        if self.unseen:
            unseen = ", ".join(self.unseen)
            parts.append(f"Published, but assumed unknown to the intruder: {unseen}.")
        return " ".join(parts)

    def dump(self) -> dict[str, Any]:
        """Give the description for JSON."""
        return {
            "node_type": self.node_type,
            "attributes": {
                kind: {name: rule.dump() for name, rule in table.items()}
                for kind, table in self.attributes.items()
            },
            "links": {name: rule.dump() if rule else None for name, rule in self.links.items()},
            "known_ids": list(self.known_ids),
            "in_links": self.in_links,
            "joint": self.joint,
            "distance": self.distance,
            "words": self.words(),
        }


def label_of(protected: str, kind: str, name: str) -> str:
    """Name an attribute of a node type: of others than the protected one with the type."""
    return name if kind == protected else f"{kind}.{name}"


def _told(seen: Mapping[str, Rule | None]) -> list[str]:
    return [name + _changed(rule) for name, rule in seen.items()]


def _changed(rule: Rule | None) -> str:
    if rule is None or rule.kind == "exact":
        return ""
    words = {
        "at_least": "may have grown",
        "at_most": "may have shrunk",
        "tolerance": f"within {rule.width:g}"
        + (f" before powers of {rule.powers:g}" if rule.powers else ""),
        "ignore": "strength not seen",
    }
    return f" ({words[rule.kind]})"
