"""Change a network before it is published: relabel, coarsen, add and remove links."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.hin import Links, Network, Schema, induced
from telic.hin.links import build_links
from telic.privacy.target import own_links, target_type

MAX_COMPLETE = 50_000_000
"""Links that a complete graph may have, all types together."""


def randomise_ids(
    network: Network, *, seed: int = 0, node_type: str | None = None
) -> tuple[Network, pa.Table]:
    """Replace ids by meaningless strings and shuffle the users, as KDD Cup 2012 did (KDDA).

    Returns
    -------
    network : Network
    key : pyarrow.Table
        Columns ``target`` (new id) and ``auxiliary`` (old id): keep it secret.
    """
    node_type = target_type(network, node_type)
    rng = np.random.default_rng(seed)
    n = network.size(node_type)
    shuffled = induced(network, {node_type: rng.permutation(n)})
    new = pa.array([f"{x:08x}" for x in rng.choice(2**32, n, replace=False)])
    table = shuffled.nodes[node_type]
    key = pa.table({"target": new, "auxiliary": shuffled.ids(node_type)})
    renamed = table.set_column(table.column_names.index("id"), "id", new)
    nodes = {**shuffled.nodes, node_type: renamed}
    return Network(network.schema, nodes, shuffled.links), key.sort_by("target")


def complete_graph(
    network: Network,
    *,
    varying: bool = False,
    strengths: Mapping[str, int] | None = None,
    seed: int = 0,
    node_type: str | None = None,
) -> Network:
    """Add fake links until every link type is complete (CGA, Section 7.6.2).

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
        built[name] = _kept(old, keep)
    return Network(network.schema, network.nodes, built), removed


def k_degree(network: Network, *, k: int, seed: int = 0, node_type: str | None = None) -> Network:
    """Add links until every out-degree of every link type is shared by at least k users.

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
        built[name] = _add_links(network, name, node_type, wanted - old.out_degree, rng)
    return Network(network.schema, network.nodes, built)


def k_anonymous_degrees(degrees: np.ndarray, k: int) -> np.ndarray:
    """Raise degrees as little as possible so that each value occurs at least k times.

    Examples
    --------
    >>> k_anonymous_degrees(np.array([5, 1, 4, 1]), 2).tolist()
    [5, 1, 5, 1]
    """
    order = np.argsort(-degrees, kind="stable")
    falling = degrees[order].astype(np.int64)
    n = len(falling)
    if n == 0 or k <= 1:
        return degrees.astype(np.int64)
    total = np.append(0, np.cumsum(falling))
    # cost[i]: links added to the i largest; a group of 2k or more can always be split for less.
    cost, cut = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    cost[0] = 0
    for i in range(k, n + 1):
        starts = np.arange(max(0, i - 2 * k + 1), i - k + 1)
        costs = cost[starts] + falling[starts % n] * (i - starts) - (total[i] - total[starts])
        cut[i], cost[i] = starts[costs.argmin()], costs.min()
    out = np.empty(n, np.int64)
    i = n
    while i > 0:
        out[order[cut[i] : i]] = falling[cut[i]]
        i = cut[i]
    return out


def perturb_links(
    network: Network, *, share: float, seed: int = 0, node_type: str | None = None
) -> Network:
    """Remove a share of the links of every type, at random, and add as many random ones."""
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, expected 0 to 1.")
    node_type = target_type(network, node_type)
    rng = np.random.default_rng(seed)
    built = dict(network.links)
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        keep = rng.random(len(old)) >= share
        lost = np.bincount(old.sources[~keep], minlength=network.size(node_type))
        thinner = Network(network.schema, network.nodes, {**built, name: _kept(old, keep)})
        built[name] = _add_links(thinner, name, node_type, lost, rng)
    return Network(network.schema, network.nodes, built)


def bin_strengths(
    network: Network,
    *,
    base: float = 2.0,
    links: Sequence[str] | None = None,
    node_type: str | None = None,
) -> Network:
    """Replace each strength by the largest power of `base` (rounded up) that is not above it."""
    if not base > 1:
        raise InputError(f"base is {base}, expected more than 1.")
    node_type = target_type(network, node_type)
    built = dict(network.links)
    powers = np.unique(np.ceil(base ** np.arange(0, 1 + int(31 / np.log2(base)))))
    powers = powers[powers < 2**31].astype(np.int32)
    for name in own_links(network.schema, node_type, links):
        old = built[name]
        if old.strength is not None:
            floor = powers[np.searchsorted(powers, old.strength, side="right") - 1]
            built[name] = Links(old.indptr, old.indices, floor)
    return Network(network.schema, network.nodes, built)


def drop_strengths(
    network: Network, *, links: Sequence[str] | None = None, node_type: str | None = None
) -> Network:
    """Publish links without their strengths."""
    node_type = target_type(network, node_type)
    names = set(own_links(network.schema, node_type, links))
    types = tuple(
        replace(link, strength=None) if link.name in names else link
        for link in network.schema.links
    )
    built = {
        name: Links(old.indptr, old.indices) if name in names else old
        for name, old in network.links.items()
    }
    return Network(Schema(network.schema.nodes, types), network.nodes, built)


def drop_links(network: Network, *, links: Sequence[str], node_type: str | None = None) -> Network:
    """Do not publish these link types."""
    names = set(own_links(network.schema, target_type(network, node_type), links))
    types = tuple(link for link in network.schema.links if link.name not in names)
    kept = {link.name: network.links[link.name] for link in types}
    return Network(Schema(network.schema.nodes, types), network.nodes, kept)


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
    schema = Schema({**network.schema.nodes, node_type: left}, network.schema.links)
    table = network.nodes[node_type].drop_columns([attribute])
    return Network(schema, {**network.nodes, node_type: table}, network.links)


METHODS: dict[str, Callable[..., Network]] = {
    "complete": complete_graph,
    "k-degree": k_degree,
    "perturb": perturb_links,
    "bin": bin_strengths,
    "drop-strengths": drop_strengths,
    "drop-links": drop_links,
    "generalise": generalise,
    "suppress": suppress,
}
"""What a step may be called; ``ids`` (`randomise_ids`) always comes last."""
COARSENINGS = ("bin", "drop-strengths", "drop-links", "generalise", "suppress")
"""Steps that anyone can repeat on the auxiliary network, so a good attacker does."""


def apply_steps(
    network: Network,
    steps: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    only: Sequence[str] = tuple(METHODS),
) -> Network:
    """Apply steps such as ``{"method": "generalise", "attribute": "yob", "width": 5}`` in order.

    Parameters
    ----------
    network : Network
    steps : sequence of mappings
    seed : int
        For the steps that draw; step i uses seed + i.
    only : sequence of str
        Skip the other methods: `COARSENINGS` gives what an attacker applies to what is known.
    """
    for number, step in enumerate(steps):
        options = dict(step)
        method = options.pop("method", None)
        if method not in METHODS:
            raise InputError(f"step {number + 1}: method {method!r}. Methods are {[*METHODS]}.")
        if method not in only:
            continue
        if method not in COARSENINGS:
            options.setdefault("seed", seed + number)
        try:
            network = METHODS[method](network, **options)
        except TypeError as error:
            raise InputError(f"step {number + 1} ({method}): {error}.") from None
    return network


def _attribute(network: Network, node_type: str, attribute: str) -> pa.ChunkedArray:
    table = network.nodes[node_type]
    if attribute == "id" or attribute not in table.column_names:
        known = [name for name in table.column_names if name != "id"]
        raise InputError(f"attribute {attribute!r} does not exist. Attributes are {known}.")
    return table.column(attribute)


def _kept(old: Links, keep: np.ndarray) -> Links:
    n = len(old.indptr) - 1
    strength = None if old.strength is None else old.strength[keep]
    return build_links(old.sources[keep], old.indices[keep], strength, n, n)


def _add_links(
    network: Network, name: str, node_type: str, missing: np.ndarray, rng: np.random.Generator
) -> Links:
    """Add `missing[v]` links from each user to random others, with strengths of real links."""
    old, n = network.links[name], network.size(node_type)
    source, target = [old.sources], [old.indices]
    loops = network.schema.link(name).self_links
    for v in np.flatnonzero(missing):
        free = np.ones(n, bool)
        free[old.indices[old.indptr[v] : old.indptr[v + 1]]] = False
        free[v] = free[v] and loops
        places = np.flatnonzero(free)
        new = rng.choice(places, min(int(missing[v]), len(places)), replace=False)
        source.append(np.full(len(new), v, np.int32))
        target.append(new.astype(np.int32))
    rows, columns = np.concatenate(source), np.concatenate(target)
    strength = None
    if old.strength is not None:
        pool = old.strength if len(old) else np.ones(1, np.int32)
        fake = rng.choice(pool, len(rows) - len(old))
        strength = np.concatenate([old.strength, fake.astype(np.int32)])
    return build_links(rows, columns, strength, n, n)
