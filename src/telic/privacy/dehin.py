"""DeHIN: find the users of a published network in a network whose users are known."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from telic.errors import InputError
from telic.hin import Network
from telic.privacy import kernels
from telic.privacy.auxiliary import (
    ANY_STRENGTH,
    NO_STRENGTH,
    Auxiliary,
    CandidateSets,
    Rules,
    layers_of,
    merge_layers,
)
from telic.privacy.target import own_links
from telic.privacy.threads import threads_for

BATCH = 2**26
"""How many pairs of target and candidate are looked at in one go (one byte each)."""


@dataclass(frozen=True)
class Attack:
    """Candidate sets of every target at every distance.

    Parameters
    ----------
    sizes : int64 array, shape (max_distance + 1, n_targets)
        Number of candidates by distance.
    """

    sizes: np.ndarray
    _sets: list[CandidateSets] = field(repr=False)
    _order: np.ndarray = field(repr=False)
    _rank: np.ndarray = field(repr=False)

    def candidates(self, target: int, distance: int) -> np.ndarray:
        """Return the auxiliary positions that match a target, ascending."""
        return np.sort(self._order[self._sets[distance].of(target)])

    def contains(self, truth: np.ndarray, distance: int) -> np.ndarray:
        """Say for each target whether its auxiliary position in `truth` (−1: none) is left."""
        sets = self._sets[distance]
        inside = np.zeros(len(truth), bool)
        for t in np.flatnonzero(truth >= 0):
            inside[t] = kernels.is_candidate(tuple(sets), t, self._rank[truth[t]])
        return inside


def attack(
    auxiliary: Auxiliary,
    target: Network,
    *,
    max_distance: int,
    links: Sequence[str] | None = None,
    eliminate: bool = False,
    noise: float = 0.0,
) -> Attack:
    """Run DeHIN (Algorithms 3 and 4) on every user of a published network.

    The pairs that match at distance n are among those that match at n − 1 and depend on them
    only, so candidate sets are refined level by level instead of by recursion. Algorithm 4 is
    read with the bipartite graph emptied per link type and the recursion on the neighbours.

    Parameters
    ----------
    auxiliary : Auxiliary
    target : Network
        The published network; neighbours are its out-links.
    max_distance : int
        n ≥ 0.
    links : sequence of str, optional
        Use only these of the auxiliary's link types.
    eliminate : bool
        Extension: a user matched uniquely is no candidate of anybody else.
    noise : float in [0, 1)
        Extension: this share of a target's neighbours, per link type, may remain unmatched.

    Returns
    -------
    Attack

    Raises
    ------
    InputError
        If an attribute or link type is not there, or a parameter is out of range.

    Examples
    --------
    >>> from telic.hin import network_from_arrays, Schema
    >>> from telic.privacy.auxiliary import Auxiliary, Rules
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}},
    ...                        "links": [{"name": "follow", "source": "user", "target": "user"}]})
    >>> network = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "yob": [80, 80, 70]}},
    ...                               {"follow": ([1], [3])})
    >>> attack(Auxiliary(network, Rules.of(network)), network, max_distance=1).sizes.tolist()
    [[2, 2, 1], [1, 2, 1]]
    """
    if max_distance < 0:
        raise InputError(f"max_distance is {max_distance}, expected 0 or more.")
    if not 0 <= noise < 1:
        raise InputError(f"noise is {noise}, expected at least 0 and less than 1.")
    sets = auxiliary.intervals(target)
    if eliminate:
        sets = _eliminate(sets)
    layers, friend_ptr, friends, low, high = _target_links(auxiliary, target, links)
    levels = [sets]
    work = np.zeros(len(sets.first), bool)
    for layer in layers:
        work |= np.diff(friend_ptr[layer]) > 0
    targets = np.flatnonzero(work)
    degrees = np.diff(auxiliary.indptr[layers]) if len(layers) else np.zeros((1, 1), int)
    limits = int(degrees.max(initial=0)) + 1, int(np.diff(friend_ptr).max(initial=0)) + 1
    for _ in range(max_distance):
        sizes = sets.sizes()
        rarest = _rarest_first(friend_ptr, friends, sizes)
        links_now = friend_ptr, friends[rarest], low[rarest], high[rarest]
        before, sets = sets, _refine(auxiliary, sets, targets, layers, noise, links_now, limits)
        if eliminate:
            sets = _eliminate(sets)
        levels.append(sets)
        if (sets.sizes() == before.sizes()).all():
            levels += [sets] * (max_distance + 1 - len(levels))
            break
    every = np.stack([level.sizes() for level in levels])
    return Attack(every, levels, auxiliary.order, auxiliary.rank)


def _target_links(
    auxiliary: Auxiliary, target: Network, links: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    names = list(auxiliary.rules.strengths)
    own_links(target.schema, auxiliary.node_type, names)
    chosen = names if links is None else list(links)
    for name in chosen:
        if name not in names:
            raise InputError(f"link type {name!r} was not prepared. Prepared are {names}.")
    rules = Rules(auxiliary.rules.attributes, {n: auxiliary.rules.strengths[n] for n in names})
    if auxiliary.joint and len(chosen) < len(names):
        raise InputError("joint matching uses all prepared link types: prepare only those wanted.")
    parts = layers_of(target, auxiliary.node_type, rules, auxiliary.in_links)
    n = target.size(auxiliary.node_type)
    indptr = np.zeros((len(parts), n + 1), np.int64)
    pieces, lows, highs = [], [], []
    begin = 0
    for layer, (part, rule) in enumerate(parts):
        indptr[layer] = begin + part.indptr
        begin += len(part)
        pieces.append(part.indices)
        if part.strength is None or rule is None:
            low, high = np.ones(len(part)), np.full(len(part), np.inf)
        else:
            bounds = rule.bounds(part.strength.astype(np.float64))
            low, high = (np.broadcast_to(side, len(part)) for side in bounds)
        lows.append(np.ceil(np.clip(low, 1, ANY_STRENGTH)).astype(np.int32))
        highs.append(np.floor(np.clip(high, -1, ANY_STRENGTH)).astype(np.int32))
    empty = np.empty(0, np.int32)
    indices = np.concatenate([empty, *pieces])
    low, high = np.concatenate([empty, *lows]), np.concatenate([empty, *highs])
    wanted = [names.index(name) for name in chosen]
    if auxiliary.in_links:
        wanted += [len(names) + place for place in wanted]
    if auxiliary.joint:
        return np.arange(min(len(parts), 1)), *merge_layers(indptr, indices, low, high)
    return np.array(wanted, np.int64), indptr, indices, low[:, None], high[:, None]


def _rarest_first(friend_ptr: np.ndarray, friends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Order each target's neighbours by how many candidates they have."""
    if not len(friends):
        return np.empty(0, np.int64)
    n = friend_ptr.shape[1] - 1
    row = np.concatenate(
        [layer * n + np.repeat(np.arange(n), np.diff(ptr)) for layer, ptr in enumerate(friend_ptr)]
    )
    return np.lexsort((sizes[friends], row))


def _refine(
    auxiliary: Auxiliary,
    sets: CandidateSets,
    targets: np.ndarray,
    layers: np.ndarray,
    noise: float,
    links: tuple[np.ndarray, ...],
    limits: tuple[int, int],
) -> CandidateSets:
    sizes = sets.sizes()
    survivors: dict[int, np.ndarray] = {}
    work = targets[np.argsort(-sizes[targets], kind="stable")]
    ends = np.cumsum(sizes[work])
    begin = 0
    while begin < len(work):
        limit = (ends[begin - 1] if begin else 0) + BATCH
        stop = max(int(np.searchsorted(ends, limit, side="right")), begin + 1)
        batch = work[begin:stop]
        offsets = np.append(0, np.cumsum(sizes[batch]))
        keep = np.zeros(offsets[-1], bool)
        with threads_for(len(keep)) as threads:
            kernels.refine(  # type: ignore[call-arg]
                tuple(sets), batch, offsets, keep, layers, noise, threads, *links,
                auxiliary.indptr, auxiliary.indices, auxiliary.strength, *limits,
            )  # fmt: skip
        for place, t in enumerate(batch):
            kept = np.flatnonzero(keep[offsets[place] : offsets[place + 1]])
            if sets.first[t] >= 0:
                survivors[t] = (kept + sets.first[t]).astype(np.int32)
            else:
                survivors[t] = sets.found[sets.starts[t] + kept]
        begin = stop
    first = sets.first.copy()
    first[targets] = -1
    lists = [
        survivors.get(t, NO_STRENGTH if first[t] >= 0 else sets.of(t)) for t in range(len(first))
    ]
    return _listed(first, sets.last, lists)


def _listed(first: np.ndarray, last: np.ndarray, lists: list[np.ndarray]) -> CandidateSets:
    starts = np.append(0, np.cumsum([len(part) for part in lists])).astype(np.int64)
    return CandidateSets(
        first, last, starts, np.concatenate([NO_STRENGTH, *lists]).astype(np.int32)
    )


def _eliminate(sets: CandidateSets) -> CandidateSets:
    """Strike users matched uniquely by one target from all others' candidates, until none is."""
    if sets.sizes().sum() > BATCH:
        raise InputError("eliminate: too many candidates to list. Compare more attributes first.")
    lists = [np.asarray(sets.of(t), np.int32) for t in range(len(sets.first))]
    while True:
        single = np.array([part[0] for part in lists if len(part) == 1], np.int32)
        users, claims = np.unique(single, return_counts=True)
        settled = users[claims == 1]
        shorter = [part if len(part) == 1 else part[~np.isin(part, settled)] for part in lists]
        if all(len(a) == len(b) for a, b in zip(shorter, lists, strict=True)):
            return _listed(np.full_like(sets.first, -1), sets.last, lists)
        lists = shorter
