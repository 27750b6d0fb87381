"""Degrees of all link types, in both directions, that at least k users share together."""

import numpy as np

from telic.errors import InputError
from telic.hin import Links, LinkType, Network, Schema
from telic.privacy.anonymisers.random_links import add_random_links, more_links, real_strengths
from telic.privacy.protected import degrees_of, target_type


def joint_k_degree(
    network: Network, *, k: int, seed: int = 0, node_type: str | None = None
) -> Network:
    """Add links until at least k users share *all* their degrees: every type, out and in.

    Users are put into groups of k to 2k − 1 by their degrees (Mondrian's median cuts), and each
    group is raised to its largest degree, number by number. Where that asks for more links of a
    type to end than to begin, or the other way round, some groups are raised further (`balance`).
    Missing links then join random users who are not linked. In-degrees of other nodes are not kept.

    Parameters
    ----------
    network : Network
    k : int
        1 to the number of users.
    seed : int
    node_type : str, optional

    Raises
    ------
    InputError
        If no links with such degrees are found, as in a small or dense network.
    """
    node_type = target_type(network, node_type)
    n = network.size(node_type)
    if not 1 <= k <= n:
        raise InputError(f"k is {k}, expected 1 to {n}, the number of users.")
    rng = np.random.default_rng(seed)
    by_end = degrees_of(network, node_type)
    if not by_end:
        return network
    degrees = np.stack([*by_end.values()], axis=1)
    group = degree_groups(degrees, k)
    most = np.full((group.max() + 1, len(by_end)), 0)
    np.maximum.at(most, group, degrees)
    sizes = np.bincount(group)
    built = dict(network.links)
    for link in network.schema.links:
        column = {side: i for i, (name, side) in enumerate(by_end) if name == link.name}
        if len(column) == 2:
            balance(most, sizes, column["out"], column["in"], rng)
        missing = (most[group] - degrees)[:, list(column.values())]
        if len(column) == 2:
            built[link.name] = _join(network, link.name, missing, rng)
        elif "out" in column:
            built[link.name] = add_random_links(network, link.name, missing[:, 0], rng)
        elif "in" in column:
            turned = _turned(network, link.name)
            links = add_random_links(turned, link.name, missing[:, 0], rng)
            built[link.name] = links.reverse(network.size(link.source))
    return Network(network.schema, network.nodes, built)


_TOO_DENSE = (
    "link type {!r}: no links were found with which so many users share all their degrees. Use a "
    "smaller k, or publish fewer link types."
)
TRIES = 200
"""How often links that cannot be are exchanged with others before giving up."""


def degree_groups(degrees: np.ndarray, k: int) -> np.ndarray:
    """Number groups of at least k rows that are alike (fewer only if there are fewer rows).

    Examples
    --------
    >>> degree_groups(np.array([[1, 0], [9, 9], [1, 1], [9, 8]]), 2).tolist()
    [0, 1, 0, 1]
    """
    spread = np.log1p(degrees.astype(float))
    out, waiting, number = np.empty(len(degrees), np.int64), [np.arange(len(degrees))], 0
    while waiting:
        rows = waiting.pop()
        if len(rows) < 2 * k:
            out[rows], number = number, number + 1
            continue
        widest = np.ptp(spread[rows], axis=0).argmax()
        order = rows[np.argsort(spread[rows, widest], kind="stable")]
        waiting += [order[len(order) // 2 :], order[: len(order) // 2]]
    return out


def balance(
    most: np.ndarray, sizes: np.ndarray, out: int, into: int, rng: np.random.Generator
) -> None:
    """Raise groups' degrees, in place, until as many links begin as end.

    The difference is a sum of group sizes times whole numbers, so some sum of group sizes, added
    at one end or at the other, makes it up.
    """
    difference = int(sizes @ (most[:, out] - most[:, into]))
    short, over = (into, out) if difference > 0 else (out, into)
    for size, sign in _change(abs(difference), np.unique(sizes).tolist()):
        group = rng.choice(np.flatnonzero(sizes == size))
        most[group, short if sign > 0 else over] += 1


def _change(amount: int, coins: list[int]) -> list[tuple[int, int]]:
    """Write an amount as a sum of few coins, some of which may be given back (sign −1)."""
    largest = coins[-1]
    whole = max(0, amount // largest - largest)
    rest = amount - whole * largest
    came: dict[int, tuple[int, int]] = {rest: (0, 0)}
    queue = [rest]
    for left in queue:
        if left == 0:
            break
        for coin in coins:
            for sign in (1, -1):
                after = left - sign * coin
                if after not in came and -largest <= after <= rest + largest:
                    came[after] = (coin, sign)
                    queue.append(after)
    steps, left = [(largest, 1)] * whole, 0
    while left != rest:
        coin, sign = came[left]
        steps.append((coin, sign))
        left += sign * coin
    return steps


def _join(network: Network, name: str, missing: np.ndarray, rng: np.random.Generator) -> Links:
    """Add random links with these numbers beginning and ending at each user."""
    old, n = network.links[name], len(missing)
    loops = network.schema.link(name).self_links
    taken = old.sources * np.int64(n) + old.indices
    source = np.repeat(np.arange(n), missing[:, 0])
    target = rng.permutation(np.repeat(np.arange(n), missing[:, 1]))

    def wrong(ends: np.ndarray) -> np.ndarray:
        place = source * np.int64(n) + ends
        again = np.ones(len(place), bool)
        again[np.unique(place, return_index=True)[1]] = False
        return again | np.isin(place, taken) | ((source == ends) & (not loops))

    bad = wrong(target)
    for _ in range(TRIES):
        if not bad.any():
            return more_links(old, source, target, real_strengths(old, len(source), rng), n)
        changed = target.copy()
        for here in rng.permutation(np.flatnonzero(bad)):
            there = rng.integers(len(target))
            changed[[here, there]] = changed[[there, here]]
        worse = wrong(changed)
        if worse.sum() <= bad.sum():
            target, bad = changed, worse
    raise InputError(_TOO_DENSE.format(name))


def _turned(network: Network, name: str) -> Network:
    """Return the links of one type, between nodes of two types, the other way round."""
    link = network.schema.link(name)
    back = LinkType(name, link.target, link.source, link.strength)
    links = network.links[name].reverse(network.size(link.target))
    return Network(Schema(network.schema.nodes, (back,)), network.nodes, {name: links})
