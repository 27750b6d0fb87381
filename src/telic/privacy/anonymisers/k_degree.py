"""Degrees that at least k users share, by adding links."""

from collections.abc import Mapping

import numpy as np

from telic.errors import InputError
from telic.hin import Links, Network
from telic.kernels import kernel
from telic.privacy.anonymisers.fake_links import add_plausible_links
from telic.privacy.anonymisers.random_links import add_random_links, kept_links
from telic.privacy.protected import degrees_of, own_links, target_type


def k_degree(
    network: Network,
    *,
    k: int,
    plausible: bool = True,
    even: float = 0.0,
    seed: int = 0,
    node_type: str | None = None,
) -> Network:
    """Add links until every out-degree of every link type is shared by at least k users.

    That is all it promises: link type by link type, for links between users. It promises nothing
    for several link types together, for in-degrees, or for links to nodes of other types, which
    stay as they are; `degree_classes` says what was reached there.

    The degree sequence is the one that adds the fewest links (the dynamic programme of Liu and
    Terzi); since links are directed, each user's missing ones lead to others as real links would
    (`add_plausible_links`), or with `plausible=False` to random others.

    Most users need no more links and some need many, so whose link it is tells much about whether
    it is fake, wherever the fake ones lead. `even` evens that out: at users with fewer fake links
    than this share of their degree, real ones are replaced by fake ones. Degrees stay.

    Parameters
    ----------
    network : Network
    k : int
        1 to the number of users.
    plausible : bool
        Draw fake links that look real.
    even : float in [0, 1)
        About the share of fake links that every user has at least, by type.
    seed : int
    node_type : str, optional

    Raises
    ------
    InputError
        If k or even is out of range, or more links are wanted than can be drawn with care.
    """
    node_type = target_type(network, node_type)
    n = network.size(node_type)
    if not 1 <= k <= n:
        raise InputError(f"k is {k}, expected 1 to {n}, the number of users.")
    if not 0 <= even < 1:
        raise InputError(f"even is {even}, expected at least 0 and less than 1.")
    rng = np.random.default_rng(seed)
    missing, thinner = {}, dict(network.links)
    for name in own_links(network.schema, node_type):
        old = network.links[name]
        degree = k_anonymous_degrees(old.out_degree, k)
        if even:
            thinner[name] = _thinned(old, degree, even, rng)
        missing[name] = degree - thinner[name].out_degree
    base = Network(network.schema, network.nodes, thinner)
    return add_links(base, missing, rng, node_type, plausible=plausible, original=network)


def _thinned(old: Links, degree: np.ndarray, even: float, rng: np.random.Generator) -> Links:
    """Take out real links, at random, until so large a share of each degree is to be fake."""
    n = len(degree)
    short = np.maximum(even * degree - (degree - old.out_degree), 0)
    lost = np.minimum(np.floor(short + rng.random(n)).astype(np.int64), old.out_degree)
    order = np.lexsort((rng.random(len(old)), old.sources))  # at random within each user's
    place = np.empty(len(old), np.int64)
    place[order] = np.arange(len(old)) - old.indptr[old.sources[order]]
    return kept_links(old, place >= lost[old.sources], n)


def add_links(
    network: Network,
    missing: Mapping[str, np.ndarray],
    rng: np.random.Generator,
    node_type: str,
    *,
    plausible: bool,
    original: Network | None = None,
) -> Network:
    """Add so many links from each user by type: plausible ones as far as found, or random ones."""
    grown = network
    if plausible:
        grown = add_plausible_links(network, missing, rng, node_type, original=original)
    built = dict(grown.links)
    for name, wanted in missing.items():
        left = wanted - (grown.links[name].out_degree - network.links[name].out_degree)
        built[name] = add_random_links(grown, name, left, rng)
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
    degrees = degrees_of(network, target_type(network, node_type))
    smallest = {", ".join(end): _smallest(each[:, None]) for end, each in degrees.items()}
    out = [each for (_, side), each in degrees.items() if side == "out"]
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


@kernel
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
