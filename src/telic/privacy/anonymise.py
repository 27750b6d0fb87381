"""Change a network before it is published: relabel, coarsen, add and remove links."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from telic.data.contracts import SIMULATED
from telic.errors import InputError
from telic.hin import Links, Network, induced
from telic.hin.links import build_links
from telic.privacy.target import link_types, own_links, target_type

MAX_COMPLETE = 50_000_000
"""Links that a complete graph may have, all types together."""


def randomise_ids(
    network: Network,
    *,
    seed: int | None = None,
    node_type: str | None = None,
    public: Sequence[str] = (),
) -> tuple[Network, pa.Table]:
    """Replace ids by meaningless strings and shuffle the nodes, as KDD Cup 2012 did (KDDA).

    Columns that the schema does not name are left out, as `schema_only` does.

    Parameters
    ----------
    network : Network
    seed : int, optional
        Whoever knows it can repeat the shuffle and undo it, so by default none is kept.
    node_type : str, optional
        Who is to be protected.
    public : sequence of str
        Other node types that keep their ids, such as a public catalogue. Whoever sees the release
        may know them, so they count in the risk.

    Returns
    -------
    network : Network
        Its schema names the node types whose ids were replaced.
    key : pyarrow.Table
        Columns ``target`` (new id) and ``auxiliary`` (old id) of the protected type: keep it
        secret.
    """
    node_type = target_type(network, node_type)
    others = [kind for kind in network.schema.nodes if kind != node_type]
    for kind in public:
        if kind not in others:
            raise InputError(
                f"public: {kind!r} is no other node type than {node_type!r}. Those are {others}."
            )
    drawn = np.random.default_rng(seed).spawn(2)
    release, key = _replace_ids(schema_only(network), node_type, drawn)
    for kind in others:
        if kind not in public or kind in network.schema.pseudonyms:
            release, _ = _replace_ids(release, kind, drawn)
    return release, key


def replace_ids(network: Network, *, node_type: str, seed: int = 0) -> Network:
    """Replace the ids of a node type by meaningless strings; `randomise_ids` shuffles the nodes."""
    if node_type not in network.schema.nodes:
        known = list(network.schema.nodes)
        raise InputError(f"node type {node_type!r} does not exist. Node types are {known}.")
    return _renamed(network, node_type, np.random.default_rng(seed))


def _replace_ids(
    network: Network, node_type: str, drawn: Sequence[np.random.Generator]
) -> tuple[Network, pa.Table]:
    # The published ids must not show the state of the generator that shuffled the nodes.
    order, names = drawn
    shuffled = induced(network, {node_type: order.permutation(network.size(node_type))})
    renamed = _renamed(shuffled, node_type, names)
    ids = {"target": renamed.ids(node_type), "auxiliary": shuffled.ids(node_type)}
    return renamed, pa.table(ids).sort_by("target")


def _renamed(network: Network, node_type: str, rng: np.random.Generator) -> Network:
    table = network.nodes[node_type]
    drawn = rng.choice(2**32, table.num_rows, replace=False)
    new = pa.array([f"{x:08x}" for x in drawn], pa.string())
    renamed = table.set_column(table.column_names.index("id"), "id", new)
    schema = replace(network.schema, pseudonyms=network.schema.pseudonyms | {node_type})
    return Network(schema, {**network.nodes, node_type: renamed}, network.links)


def schema_only(network: Network) -> Network:
    """Leave out columns that the schema does not name: nobody has judged what they tell."""
    nodes = {}
    for name, attributes in network.schema.nodes.items():
        table = network.nodes[name].select(["id", *attributes])
        simulated = (table.schema.metadata or {}).get(SIMULATED)
        kept = None if simulated is None else {SIMULATED: simulated}
        nodes[name] = table.replace_schema_metadata(kept)
    return Network(network.schema, nodes, network.links)


def complete_graph(
    network: Network,
    *,
    varying: bool = False,
    strengths: Mapping[str, int] | None = None,
    seed: int = 0,
    node_type: str | None = None,
) -> Network:
    """Add fake links until every link type is complete (CGA, Section 7.6.2).

    Links between users only: those to and between nodes of other types stay as they are.

    Parameters
    ----------
    network : Network
    varying : bool
        Varying-weight CGA (7.6.3): every fake link gets the strength of a random real one of its
        type. Default: all fake links of a type share one strength.
    strengths : mapping, optional
        Link type → the shared strength; default that of a random real link, drawn by `seed`.
    seed : int
    node_type : str, optional
    """
    node_type = target_type(network, node_type)
    names = own_links(network.schema, node_type)
    n = network.size(node_type)
    if len(names) * n * n > MAX_COMPLETE:
        raise InputError(
            f"complete graph: {len(names)} link types of {n} users are {len(names) * n * n} "
            f"links, more than {MAX_COMPLETE}. Publish a smaller sample."
        )
    rng = np.random.default_rng(seed)
    built = dict(network.links)
    for name in names:
        old = network.links[name]
        matrix = np.zeros((n, n), np.int32)
        if old.strength is None:
            matrix[:] = 1
        else:
            pool = old.strength if len(old) else np.ones(1, np.int32)
            shared = (strengths or {}).get(name, int(rng.choice(pool)))
            matrix[:] = rng.choice(pool, (n, n)) if varying else shared
            matrix[old.sources, old.indices] = old.strength
        if not network.schema.link(name).self_links:
            np.fill_diagonal(matrix, 0)
        source, target = np.nonzero(matrix)
        strength = None if old.strength is None else matrix[source, target]
        built[name] = build_links(source.astype(np.int32), target.astype(np.int32), strength, n, n)
    return Network(network.schema, network.nodes, built)


def without_majority_strength(
    network: Network, *, node_type: str | None = None
) -> tuple[Network, dict[str, int]]:
    """Remove, per link type, all links that carry its most frequent strength (7.6.2).

    This is what the re-configured attack does to a release before it starts. A link type without
    strengths has one value only, so all its links go.

    Returns
    -------
    network : Network
    removed : dict
        Link type → number of links removed.
    """
    node_type = target_type(network, node_type)
    built, removed = dict(network.links), {}
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        keep = np.zeros(len(old), bool)
        if old.strength is not None and len(old):
            values, counts = np.unique(old.strength, return_counts=True)
            keep = old.strength != values[counts.argmax()]
        removed[name] = int((~keep).sum())
        built[name] = _kept(old, keep, network.size(node_type))
    return Network(network.schema, network.nodes, built), removed


def k_degree(network: Network, *, k: int, seed: int = 0, node_type: str | None = None) -> Network:
    """Add links until every out-degree of every link type is shared by at least k users.

    That is all it promises: link type by link type, for links between users. It promises nothing
    for several link types together, for in-degrees, or for links to nodes of other types, which
    stay as they are; `degree_classes` says what was reached there.

    The degree sequence is the one that adds the fewest links (the dynamic programme of Liu and
    Terzi); since links are directed, each user's missing ones lead to random others.
    """
    node_type = target_type(network, node_type)
    n = network.size(node_type)
    if not 1 <= k <= n:
        raise InputError(f"k is {k}, expected 1 to {n}, the number of users.")
    rng = np.random.default_rng(seed)
    built = dict(network.links)
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        wanted = k_anonymous_degrees(old.out_degree, k)
        built[name] = _add_links(network, name, wanted - old.out_degree, rng)
    return Network(network.schema, network.nodes, built)


def degree_classes(network: Network, *, node_type: str | None = None) -> dict[str, int]:
    """Return how many users at least share their degrees with one another, itself included.

    Returns
    -------
    dict of str to int
        ``"<link type>, out"`` and ``"<link type>, in"`` for every link type at the users;
        ``"out-degrees of all types together"``, and ``"all degrees together"``: the smallest group
        of users who are equal in all of these numbers. 1: somebody is alone.
    """
    node_type = target_type(network, node_type)
    degrees = {}
    for link in network.schema.links:
        links = network.links[link.name]
        if link.source == node_type:
            degrees[f"{link.name}, out"] = links.out_degree
        if link.target == node_type:
            size = network.size(node_type)
            degrees[f"{link.name}, in"] = np.bincount(links.indices, minlength=size)
    smallest = {name: _smallest(each[:, None]) for name, each in degrees.items()}
    out = [each for name, each in degrees.items() if name.endswith(", out")]
    if out:
        smallest["out-degrees of all types together"] = _smallest(np.stack(out, axis=1))
    if degrees:
        smallest["all degrees together"] = _smallest(np.stack([*degrees.values()], axis=1))
    return smallest


def _smallest(rows: np.ndarray) -> int:
    return int(np.unique(rows, axis=0, return_counts=True)[1].min(initial=len(rows)))


def k_anonymous_degrees(degrees: np.ndarray, k: int) -> np.ndarray:
    """Raise degrees as little as possible so that each value occurs at least k times.

    Examples
    --------
    >>> k_anonymous_degrees(np.array([5, 1, 4, 1]), 2).tolist()
    [5, 1, 5, 1]
    """
    order = np.argsort(-degrees, kind="stable")
    falling = degrees[order].astype(np.int64)
    out = np.empty(len(degrees), np.int64)
    out[order] = _grouped(falling, np.append(0, np.cumsum(falling)), max(k, 1))
    return out


@njit(cache=True, nogil=True)
def _grouped(falling, total, k):
    """Raise falling degrees to groups of k or more at least cost (`total`: their running sum)."""
    n = len(falling)
    # cost[i]: links added to the i largest; a group of 2k or more can always be split for less.
    cost, cut = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    cost[0] = 0
    for i in range(k, n + 1):
        for start in range(max(0, i - 2 * k + 1), i - k + 1):
            added = cost[start] + falling[start] * (i - start) - (total[i] - total[start])
            if added < cost[i]:
                cost[i], cut[i] = added, start
    out = np.empty(n, np.int64)
    while n > 0:
        out[cut[n] : n] = falling[cut[n]]
        n = cut[n]
    return out


def perturb_links(network: Network, *, share: float, seed: int = 0) -> Network:
    """Remove a share of the links of every type, at random, and add as many random ones."""
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, expected 0 to 1.")
    rng = np.random.default_rng(seed)
    built = dict(network.links)
    for link in network.schema.links:
        old, columns = network.links[link.name], network.size(link.target)
        keep = rng.random(len(old)) >= share
        lost = np.bincount(old.sources[~keep], minlength=network.size(link.source))
        thinner = Network(network.schema, network.nodes, {link.name: _kept(old, keep, columns)})
        built[link.name] = _add_links(thinner, link.name, lost, rng)
    return Network(network.schema, network.nodes, built)


def bin_strengths(
    network: Network, *, base: float = 2.0, links: Sequence[str] | None = None
) -> Network:
    """Replace each strength by the largest power of `base` (rounded up) that is not above it."""
    if not base > 1:
        raise InputError(f"base is {base}, expected more than 1.")
    built = dict(network.links)
    powers = np.unique(np.ceil(base ** np.arange(0, 1 + int(31 / np.log2(base)))))
    powers = powers[powers < 2**31].astype(np.int32)
    for name in link_types(network.schema, links):
        old = built[name]
        if old.strength is not None:
            floor = powers[np.searchsorted(powers, old.strength, side="right") - 1]
            built[name] = Links(old.indptr, old.indices, floor)
    return Network(network.schema, network.nodes, built)


def drop_strengths(network: Network, *, links: Sequence[str] | None = None) -> Network:
    """Publish links without their strengths."""
    names = set(link_types(network.schema, links))
    types = tuple(
        replace(link, strength=None) if link.name in names else link
        for link in network.schema.links
    )
    built = {
        name: Links(old.indptr, old.indices) if name in names else old
        for name, old in network.links.items()
    }
    return Network(replace(network.schema, links=types), network.nodes, built)


def drop_links(network: Network, *, links: Sequence[str]) -> Network:
    """Do not publish these link types."""
    names = set(link_types(network.schema, links))
    types = tuple(link for link in network.schema.links if link.name not in names)
    kept = {link.name: network.links[link.name] for link in types}
    return Network(replace(network.schema, links=types), network.nodes, kept)


def generalise(
    network: Network, *, attribute: str, width: float, node_type: str | None = None
) -> Network:
    """Round a numeric attribute down to a multiple of `width`."""
    node_type = target_type(network, node_type)
    if not width > 0:
        raise InputError(f"width is {width}, expected more than 0.")
    column = _attribute(network, node_type, attribute)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"attribute {attribute!r} is {column.type}: only numbers have widths.")
    values = pc.cast(column, pa.float64())
    coarse = pc.multiply(pc.floor(pc.divide(values, width)), width)
    if pa.types.is_integer(column.type) and float(width).is_integer():
        coarse = pc.cast(coarse, pa.int64())
    table = network.nodes[node_type]
    place = table.column_names.index(attribute)
    nodes = {**network.nodes, node_type: table.set_column(place, attribute, coarse)}
    return Network(network.schema, nodes, network.links)


def suppress(network: Network, *, attribute: str, node_type: str | None = None) -> Network:
    """Do not publish an attribute."""
    node_type = target_type(network, node_type)
    _attribute(network, node_type, attribute)
    left = {k: v for k, v in network.schema.nodes[node_type].items() if k != attribute}
    schema = replace(network.schema, nodes={**network.schema.nodes, node_type: left})
    table = network.nodes[node_type].drop_columns([attribute])
    return Network(schema, {**network.nodes, node_type: table}, network.links)


def _attribute(network: Network, node_type: str, attribute: str) -> pa.ChunkedArray:
    table = network.nodes[node_type]
    if attribute == "id" or attribute not in table.column_names:
        known = [name for name in table.column_names if name != "id"]
        raise InputError(f"attribute {attribute!r} does not exist. Attributes are {known}.")
    return table.column(attribute)


def _kept(old: Links, keep: np.ndarray, columns: int) -> Links:
    strength = None if old.strength is None else old.strength[keep]
    return build_links(old.sources[keep], old.indices[keep], strength, len(old.indptr) - 1, columns)


def _add_links(network: Network, name: str, missing: np.ndarray, rng: np.random.Generator) -> Links:
    """Add `missing[v]` links from each node to random others, with strengths of real links."""
    link, old = network.schema.link(name), network.links[name]
    n, columns = network.size(link.source), network.size(link.target)
    taken = old.sources * np.int64(columns) + old.indices
    if link.source == link.target and not link.self_links:
        loops = np.setdiff1d(np.arange(n) * np.int64(n + 1), taken, assume_unique=True)
        taken = _merge(taken, loops)
    new = _draw_free(taken, missing, columns, rng)
    rows, ends = (part.astype(np.int32) for part in np.divmod(new, max(columns, 1)))
    strength = None
    if old.strength is not None:
        pool = old.strength if len(old) else np.ones(1, np.int32)
        strength = np.concatenate([old.strength, rng.choice(pool, len(new)).astype(np.int32)])
    rows, ends = np.append(old.sources, rows), np.append(old.indices, ends)
    return build_links(rows, ends, strength, n, columns)


def _draw_free(
    taken: np.ndarray, missing: np.ndarray, columns: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw `missing[v]` places of row v, v·columns …, not in the sorted `taken`; all if fewer."""
    # Draws that hit a taken place are repeated; where few are free, they are listed instead.
    n = len(missing)
    used = np.bincount(taken // max(columns, 1), minlength=n)
    left = np.minimum(missing, columns - used)
    crowded = np.flatnonzero((left > 0) & (used + left > columns // 2))
    drawn = [np.empty(0, np.int64)]
    for v in crowded:
        free = np.ones(columns, bool)
        inside = slice(*np.searchsorted(taken, [v * columns, (v + 1) * columns]))
        free[taken[inside] - v * columns] = False
        drawn.append(v * columns + rng.choice(np.flatnonzero(free), left[v], replace=False))
    left[crowded] = 0
    while left.any():
        source = np.repeat(np.arange(n, dtype=np.int64), left)
        new = np.sort(source * columns + rng.integers(columns, size=len(source)))
        place = np.searchsorted(taken, new)
        fresh = np.append(taken, -1)[place] != new
        fresh[1:] &= new[1:] != new[:-1]
        new = new[fresh]
        drawn.append(new)
        taken = _merge(taken, new)
        left -= np.bincount(new // columns, minlength=n)
    return np.concatenate(drawn)


def _merge(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sort(np.concatenate([a, b]), kind="stable")  # quick on two sorted runs
