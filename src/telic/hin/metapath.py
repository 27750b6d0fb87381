"""Meta-paths: walks over the schema, short-circuited into links of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from telic.errors import InputError
from telic.hin.links import MAX_STRENGTH, Links
from telic.hin.network import Network
from telic.hin.schema import LinkType, Rule, Schema, check_node_type

MAX_LINKS = 200_000_000
_MOST_PATHS = 2**62


@dataclass(frozen=True, slots=True)
class MetaPath:
    """A path over the schema (Definition 7.3.4).

    Parameters
    ----------
    steps : tuple of (str, bool)
        Link type, and whether it is walked backwards.
    types : tuple of str
        Node types passed, one more than steps; a type may come again (author–paper–author).

    Examples
    --------
    >>> schema = Schema.parse({"nodes": {"user": {}, "tweet": {}}, "links": [
    ...     {"name": "post", "source": "user", "target": "tweet"},
    ...     {"name": "mention", "source": "tweet", "target": "user"}]})
    >>> MetaPath.parse("post mention", schema).types
    ('user', 'tweet', 'user')
    >>> MetaPath.parse("post ~post", schema).types
    ('user', 'tweet', 'user')
    """

    steps: tuple[tuple[str, bool], ...]
    types: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, schema: Schema) -> "MetaPath":
        """Read link names separated by blanks; ``~name`` walks a link backwards."""
        steps: list[tuple[str, bool]] = []
        types: list[str] = []
        for word in text.split():
            backwards = word.startswith("~")
            link = schema.link(word.removeprefix("~"))
            start, end = link.source, link.target
            if backwards:
                start, end = end, start
            if types and types[-1] != start:
                raise InputError(
                    f"meta-path {text!r}: {word!r} starts at {start!r}, but the path stands at "
                    f"{types[-1]!r}. Write '~' before a link to walk it backwards."
                )
            types.extend([end] if types else [start, end])
            steps.append((link.name, backwards))
        if not steps:
            raise InputError("meta-path: empty. Write link names separated by blanks.")
        return cls(tuple(steps), tuple(types))


@dataclass(frozen=True, slots=True)
class PathMatrix:
    """The matrix of path counts, kept as its factors: products may be far denser than these.

    A path's count is the product of its links' strengths.
    """

    factors: tuple[csr_array, ...]

    @classmethod
    def of(cls, network: Network, path: MetaPath) -> "PathMatrix":
        """Collect the factors of a meta-path."""
        factors = []
        for name, backwards in path.steps:
            link = network.schema.link(name)
            matrix = network.links[name].matrix(network.size(link.target))
            factors.append(csr_array(matrix.T) if backwards else matrix)
        return cls(tuple(factors))

    def __matmul__(self, vectors: np.ndarray) -> np.ndarray:
        """Multiply by a vector or a dense matrix, without forming the product."""
        for factor in reversed(self.factors):
            vectors = factor @ vectors
        return vectors

    def row_sums(self) -> np.ndarray:
        """Count the paths that start at each node."""
        return self @ np.ones(self.factors[-1].shape[1], np.float64)

    def row(self, start: int) -> np.ndarray:
        """Count the paths from one node to every end.

        Raises
        ------
        InputError
            If a step counts more than 2⁶² paths.
        """
        out = self.factors[0][[start]]
        for factor in self.factors[1:]:
            out = _times(out, factor)
        return np.asarray(out.todense()).ravel()

    def product(self, *, max_links: int = MAX_LINKS) -> csr_array:
        """Multiply out, left to right.

        Raises
        ------
        InputError
            If a step may create more than `max_links` links, or counts more than 2⁶² paths.
        """
        out = self.factors[0]
        for factor in self.factors[1:]:
            upper = int(np.diff(factor.indptr)[out.indices].sum())
            if upper > max_links:
                raise InputError(
                    f"meta-path: its product may hold {upper} links, more than {max_links}. "
                    "Use it factored (@, row, row_sums) or raise max_links."
                )
            out = _times(out, factor)
        out = csr_array(out)
        out.sort_indices()
        return out


def _times(out: csr_array, factor: csr_array) -> csr_array:
    """Multiply counts of paths; more than 64 bits hold would wrap around."""
    most = float(out.data.max(initial=0)) * float(factor.sum(axis=0).max(initial=0))
    if most > _MOST_PATHS and (out.astype(float) @ factor).data.max(initial=0) > _MOST_PATHS:
        raise InputError(f"meta-path: it counts more than {_MOST_PATHS} paths between two nodes.")
    return out @ factor


def project(
    network: Network,
    node_type: str,
    paths: Mapping[str, str | Sequence[str]],
    *,
    rules: Mapping[str, Rule] | None = None,
    max_links: int = MAX_LINKS,
) -> Network:
    """Project on the target schema (Definition 7.3.5): one node type and links short-circuited.

    Parameters
    ----------
    network : Network
    node_type : str
        The target entity type.
    paths : mapping
        New link type → one meta-path or several whose counts are added, such as
        ``{"mention": ["post mention", "write mentions"], "follow": "follow"}``. A path of one
        link is reproduced, with its strength; longer ones get path counts as strength.
    rules : mapping, optional
        Strength rules of the new link types; default ``at_least``. Of a type without strengths
        they say nothing. Links that lead back to where they began are kept, but for a path of one
        link whose type has none.
    max_links : int
        Refuse products that may hold more.

    Examples
    --------
    >>> from telic.hin import network_from_arrays
    >>> schema = Schema.parse({"nodes": {"user": {}, "tweet": {}}, "links": [
    ...     {"name": "post", "source": "user", "target": "tweet"},
    ...     {"name": "mention", "source": "tweet", "target": "user"}]})
    >>> network = network_from_arrays(schema, {"user": {"id": [1, 2]}, "tweet": {"id": [7, 8, 9]}},
    ...     {"post": ([1, 1, 2], [7, 8, 9]), "mention": ([7, 8], [2, 2])})
    >>> project(network, "user", {"mention": "post mention"}).links["mention"].strength.tolist()
    [2]
    """
    check_node_type(network.schema, node_type)
    n = network.size(node_type)
    link_types, links = [], {}
    for name in rules or {}:
        if name not in paths:
            raise InputError(f"rules: {name!r} is no new link type of {list(paths)}.")
    for name, given in paths.items():
        texts = [given] if isinstance(given, str) else list(given)
        parsed = [MetaPath.parse(text, network.schema) for text in texts]
        for text, path in zip(texts, parsed, strict=True):
            if path.types[0] != node_type or path.types[-1] != node_type:
                raise InputError(
                    f"meta-path {text!r} leads from {path.types[0]!r} to {path.types[-1]!r}; a "
                    f"target meta-path starts and ends at {node_type!r}."
                )
        rule = (rules or {}).get(name, Rule("at_least"))
        if len(parsed) == 1 and len(parsed[0].steps) == 1:
            ((step, backward),) = parsed[0].steps
            old = network.schema.link(step)
            strength = rule if rules and name in rules and old.strength else old.strength
            link_types.append(LinkType(name, node_type, node_type, strength, old.self_links))
            links[name] = network.links[step].reverse(n) if backward else network.links[step]
            continue
        total = csr_array((n, n), dtype=np.int64)
        for path in parsed:
            total = csr_array(total + PathMatrix.of(network, path).product(max_links=max_links))
            # After each: sums of several products could wrap around.
            if total.data.max(initial=0) > MAX_STRENGTH:
                raise InputError(f"link type {name!r}: a path count exceeds {MAX_STRENGTH}.")
        link_types.append(LinkType(name, node_type, node_type, rule, True))
        links[name] = Links(
            total.indptr.astype(np.int64),
            total.indices.astype(np.int32),
            total.data.astype(np.int32),
        )
    schema = Schema({node_type: network.schema.nodes[node_type]}, tuple(link_types))
    return Network(schema, {node_type: network.nodes[node_type]}, links)
