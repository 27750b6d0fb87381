"""Degrees that at least k users share, by adding links."""

from collections.abc import Mapping

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.kernels import kernel
from telic.privacy.anonymisers.fake_links import add_plausible_links
from telic.privacy.anonymisers.random_links import add_random_links
from telic.privacy.protected import own_links, target_type


def k_degree(
    network: Network,
    *,
    k: int,
    plausible: bool = True,
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
    """
    node_type = target_type(network, node_type)
    n = network.size(node_type)
    if not 1 <= k <= n:
        raise InputError(f"k is {k}, expected 1 to {n}, the number of users.")
    rng = np.random.default_rng(seed)
    missing = {}
    for name in own_links(network.schema, node_type):
        degree = network.links[name].out_degree
        missing[name] = k_anonymous_degrees(degree, k) - degree
    return add_links(network, missing, rng, node_type, plausible=plausible)


def add_links(
    network: Network,
    missing: Mapping[str, np.ndarray],
    rng: np.random.Generator,
    node_type: str,
    *,
    plausible: bool,
) -> Network:
    """Add so many links from each user by type: plausible ones as far as found, or random ones."""
    grown = network
    if plausible:
        grown = add_plausible_links(network, missing, rng, node_type)
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
