"""Privacy risk of a network that is to be published: who is alike, seen n links far."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from telic.data.object_storage import Place
from telic.errors import InputError
from telic.hin import Network
from telic.privacy.adversary import Adversary
from telic.privacy.link_type_sets import sets_to_judge
from telic.privacy.merged_types import flatten
from telic.privacy.protected import own_links
from telic.privacy.risk.views import (
    Layer,
    Neighbourhood,
    count_kinds,
    layers_of,
    profiles,
    refine,
)
from telic.privacy.risk.views_in_pieces import NeighbourhoodInPieces
from telic.scale import Executor
from telic.scale.job_folder import mapped_folder

ROWS = 16
"""Distances of which the risk is given, beside the farthest, where no distance is set."""


TAIL = 0.01
"""Share of the users, those at the highest risk, of whom `Risk.tail` is the mean."""


class Measures(NamedTuple):
    """What a partition into people who look alike says about risk; as in `Risk`."""

    risk: float
    cardinality: int
    unique: float
    highest: float
    tail: float


def measure(hashes: np.ndarray, loss: np.ndarray | None = None) -> Measures:
    """Judge who looks alike, and so has equal `hashes`: the mean risk, and what the mean hides.

    `loss` is l(t) in [0, 1]; default 1 for everyone.

    Examples
    --------
    One of 101 is alone; the mean hardly shows it:

    >>> import numpy as np
    >>> found = measure(np.append(np.zeros(100, int), 1))
    >>> round(found.risk, 3), found.highest, round(found.tail, 3)
    (0.02, 1.0, 0.505)
    """
    ordered = np.sort(hashes)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    counts = np.diff(np.append(starts, len(ordered)))
    n = len(hashes)
    few = math.ceil(TAIL * n)
    unique = float((counts == 1).sum() / n)
    if loss is None:
        classes = np.bincount(counts)
        sizes = np.flatnonzero(classes)
        users = sizes * classes[sizes]
        # The smallest classes hold the users at the highest risk.
        taken = np.clip(few - (np.cumsum(users) - users), 0, users)
        tail = float((taken / sizes).sum() / few)
        return Measures(len(counts) / n, len(counts), unique, 1 / float(sizes[0]), tail)
    each = loss / group_sizes(hashes)
    worst = np.partition(each, n - few)[n - few :]
    return Measures(
        float(each.mean()), len(counts), unique, float(worst.max()), float(worst.mean())
    )


@dataclass(frozen=True)
class Risk:
    """Privacy risk for one set of link types at one distance (Definitions 7.4.1 and 7.4.2).

    Parameters
    ----------
    links : tuple of str
    distance : int
        Links looked at lead at most this far.
    risk : float
        R(T), in [0, 1]: mean of l(t)/k(t).
    cardinality : int
        C(T): number of distinct values.
    unique : float
        Share of users with k(t) = 1.
    highest : float
        Highest individual risk, max l(t)/k(t).
    tail : float
        Mean risk of the 1 % of users at the highest risk (`TAIL`; at least one user).
    hashes : uint64 array, shape (n,)
        Equal for users that look alike.
    """

    links: tuple[str, ...]
    distance: int
    risk: float
    cardinality: int
    unique: float
    highest: float
    tail: float
    hashes: np.ndarray = field(repr=False)

    def group_sizes(self) -> np.ndarray:
        """Return k(t) of every user: how many look like it, itself included."""
        return group_sizes(self.hashes)

    def k_histogram(self) -> dict[int, int]:
        """Return how many users have each k(t)."""
        k, users = np.unique(self.group_sizes(), return_counts=True)
        return dict(zip(k.tolist(), users.tolist(), strict=True))

    def worst(self, count: int, loss: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the `count` users at the highest risk l(t)/k(t)."""
        risks = (1.0 if loss is None else loss) / self.group_sizes()
        return np.argsort(-risks, kind="stable")[:count]


def group_sizes(values: np.ndarray) -> np.ndarray:
    """Return, for every value, how often it occurs: k(t)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse]


def tuple_risk(values: np.ndarray, loss: np.ndarray | None = None) -> float:
    """Privacy risk R(T) of a table whose tuples are given as codes (Definition 7.4.2).

    Parameters
    ----------
    values : array, shape (n,)
    loss : float array in [0, 1], shape (n,), optional
        l(t): what a user has to lose. Default 1, which gives C(T)/N (Theorem 7.4.4).

    Examples
    --------
    k-anonymity calls both of these 1-anonymous once one odd tuple is added (Section 7.4.2):

    >>> import numpy as np
    >>> t1000 = np.append(np.zeros(1000, int), 1)
    >>> t2 = np.append(np.repeat(np.arange(500), 2), 500)
    >>> round(tuple_risk(t1000) * 1001), round(tuple_risk(t2) * 1001)
    (2, 501)
    """
    if not len(values):
        raise InputError("risk of an empty table is not defined: give at least one tuple.")
    return float(np.mean((1.0 if loss is None else loss) / group_sizes(values)))


def check_loss(loss: np.ndarray | None, size: int) -> np.ndarray | None:
    """Return the loss as floats after checking its shape and its range."""
    if loss is None:
        return None
    loss = np.asarray(loss, float)
    if loss.shape != (size,) or not ((loss >= 0) & (loss <= 1)).all():
        raise InputError(f"loss needs {size} numbers between 0 and 1, one per user.")
    return loss


def risks(
    network: Network,
    adversary: Adversary | None = None,
    *,
    links: Sequence[Sequence[str]] | None = None,
    loss: np.ndarray | Callable[[Network], np.ndarray] | None = None,
    executor: Executor | None = None,
    work: str | Place | None = None,
    skip_bad: bool = False,
) -> Iterator[Risk]:
    """Privacy risk for sets of link types and distances n = 0, 1, … (Section 7.4).

    Two users look alike at distance n if their profiles are equal and their links lead, link type
    by link type and strength by strength, to nodes that look alike at distance n − 1. What is
    looked at is what the adversary sees: by default everything that the network contains, in-links
    and nodes of other types too. Each view is hashed to 64 bits by order-free sums, so the cost is
    one pass over the links per distance; two different views collide with probability about
    N²/2⁶⁵. An attack that compares views, as `attack` does, finds no more than the users that are
    alone of their kind at the farthest distance, whose share is at most the risk; who of a user's
    neighbours are linked with one another is seen only as far as it changes views.

    Parameters
    ----------
    network : Network
        As it is to be published; ids of the protected type are assumed to be replaced.
    adversary : Adversary, optional
        Default everything that the network contains, `Adversary.of(network)`.
    links : sequence of sequences of str, optional
        The sets of link types to judge; default every non-empty subset of those seen, or where
        there are more than five, each alone and all together.
    loss : array in [0, 1] or callable, optional
        l(t), or a function of the network that returns it; default 1 for everyone.
    executor : telic.scale.Executor, optional
        Look at ranges of users there, their links in mapped files; the result is the same.
    work : path, optional
        With `executor`, needed: folder of these files, which every worker reaches.
    skip_bad : bool
        With `executor`: go on where a range of users fails, and count those users as alone, so that
        the risk is at most what is given. The executor's reports name the ranges.

    Yields
    ------
    Risk
        Set by set, distance 0 first. Without a distance a set ends at the first distance that
        adds nothing; of those before it, the first `ROWS` are given.

    Examples
    --------
    >>> from telic.hin import LinkType, Schema, network_from_arrays
    >>> schema = Schema({"user": {}}, (LinkType("follow", "user", "user"),))
    >>> network = network_from_arrays(schema, {"user": {"id": ["a", "b", "c"]}},
    ...                               {"follow": (["a", "b"], ["b", "c"])})
    >>> [round(r.risk, 2) for r in risks(network)]
    [0.33, 1.0, 1.0]
    >>> [round(r.risk, 2) for r in risks(network, Adversary.of(network, in_links=False))]
    [0.33, 0.67, 1.0, 1.0]
    """
    pieces = Path() if executor is None else mapped_folder(work, "the links")
    adversary = Adversary.of(network) if adversary is None else adversary
    size = network.size(adversary.node_type)
    if not size:
        raise InputError(f"node type {adversary.node_type!r} is empty: there is nobody to protect.")
    names = list(adversary.links)
    chosen = sets_to_judge(names) if links is None else [tuple(s) for s in links]
    for name in {name for subset in chosen for name in subset} - set(names):
        raise InputError(f"link type {name!r} is not among those seen, {names}.")
    weights = check_loss(loss(network) if callable(loss) else loss, size)
    flat = flatten(network, adversary)
    start = profiles(flat)
    layers: dict[str, list[Layer]] = {}
    # Apart, at distance 1, the sum over a set of link types is the sum of the types' sums.
    first: dict[str, np.ndarray] = {}
    for subset in chosen:
        for name in subset:
            if name not in layers:
                part = flat.links[names.index(name)][0]
                layers[name] = layers_of(names.index(name), part, flat.size, adversary.in_links)
            if not adversary.joint and name not in first and adversary.distance != 0:
                first[name] = np.zeros(flat.size, np.uint64)
                Neighbourhood(layers[name], flat.size, False).add(start, first[name])
        taken = [layer for name in subset for layer in layers[name]]
        known = np.sum([first[name] for name in subset], axis=0) if first and subset else None
        if executor is None:
            around = Neighbourhood(taken, flat.size, adversary.joint)
        else:
            folder = pieces / ("-".join(map(str, map(names.index, subset))) or "none")
            around = NeighbourhoodInPieces(
                executor, folder, taken, flat.size, adversary.joint, skip_bad
            )
        far = adversary.distance if taken else 0
        last = -1
        for step in refine(start, around, far, known):
            if far is not None or step.distance < ROWS:
                last = step.distance
                yield _judge(subset, step.distance, step.hashes[:size], weights)
        if step.distance > last:
            yield _judge(subset, step.distance, step.hashes[:size], weights)


def _judge(
    links: tuple[str, ...], distance: int, hashes: np.ndarray, loss: np.ndarray | None
) -> Risk:
    return Risk(links, distance, *measure(hashes, loss), hashes)


def growth_bounds(
    network: Network, distance: int, adversary: Adversary | None = None
) -> tuple[float, float]:
    """Return log₁₀ of [Zhang2017] (7.4.2) and (7.4.3), bounds on the expected cardinality.

    They hold up to constants and assume independent values, in-degree at most 1 and power-law
    out-degrees, so they say how fast risk could grow, not how large it is. They know links within
    one node type only.

    Parameters
    ----------
    network : Network
    distance : int
        n ≥ 1.
    adversary : Adversary, optional
        As in `risks`.

    Returns
    -------
    lower, upper : float
        2ⁿ log₁₀(C(E)·C(L)ⁿ) and Nⁿ log₁₀(C(E)·C(L)ⁿ).
    """
    adversary = Adversary.of(network) if adversary is None else adversary
    seen = profiles(flatten(network, adversary.with_links([])))
    entity = count_kinds(seen[: network.size(adversary.node_type)])
    log_links = 0.0
    for name in own_links(network.schema, adversary.node_type):
        if name not in adversary.links:
            continue
        strength = network.links[name].strength
        log_links += np.log10(1 if strength is None else max(len(np.unique(strength)), 1))
    value = float(np.log10(entity) + distance * log_links)
    return 2.0**distance * value, float(network.size(adversary.node_type)) ** distance * value
