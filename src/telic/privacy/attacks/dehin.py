"""DeHIN: find the users of a published network in a network whose users are known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from telic.data.object_storage import Place
from telic.errors import InputError
from telic.hin import Network
from telic.privacy.attacks.auxiliary import (
    ANY_STRENGTH,
    NO_STRENGTH,
    Auxiliary,
    compared_links,
    merge_layers,
)
from telic.privacy.attacks.candidate_sets import CandidateSets, is_candidate
from telic.privacy.attacks.dehin_in_pieces import (
    BATCH,
    DistanceLevel,
    refine_in_batches,
    refine_in_pieces,
)
from telic.privacy.attacks.link_errors import EXACT, LinkErrors
from telic.privacy.attacks.neighbour_filter import Known, Wanted
from telic.privacy.merged_types import Flat, flatten
from telic.scale import Executor
from telic.scale.job_folder import mapped_folder

MAX_PAIRS = 300_000_000
"""Pairs of users that are compared at most by an attack that confirms a report or an advice."""
Refine = Callable[[CandidateSets, np.ndarray, DistanceLevel], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Attack:
    """Candidate sets of every target at every distance.

    Parameters
    ----------
    sizes : int64 array, shape (distances, n_targets)
        Number of candidates by distance 0, 1, …
    """

    sizes: np.ndarray
    _sets: list[CandidateSets] = field(repr=False)
    _first: np.ndarray = field(repr=False)
    _order: np.ndarray = field(repr=False)
    _rank: np.ndarray = field(repr=False)

    def candidates(self, target: int, distance: int) -> np.ndarray:
        """Return the auxiliary positions that match a target, ascending."""
        return np.sort(self._order[self._sets[distance].of(self._first[target])])

    def contains(self, truth: np.ndarray, distance: int) -> np.ndarray:
        """Say for each target whether its auxiliary position in `truth` (−1: none) is left."""
        sets = self._sets[distance]
        inside = np.zeros(len(truth), bool)
        for t in np.flatnonzero(truth >= 0):
            inside[t] = is_candidate(tuple(sets), self._first[t], self._rank[truth[t]])
        return inside


def attack(
    auxiliary: Auxiliary,
    target: Network,
    *,
    distance: int | None = None,
    links: Sequence[str] | None = None,
    eliminate: bool = False,
    errors: LinkErrors = EXACT,
    alike: np.ndarray | None = None,
    max_pairs: float = np.inf,
    executor: Executor | None = None,
    work: str | Place | None = None,
    skip_bad: bool = False,
) -> Attack:
    """Run DeHIN (Algorithms 3 and 4) on every user of a published network.

    What is compared is what the auxiliary network's adversary sees. The pairs that match at
    distance n are among those that match at n − 1 and depend on them only, so candidate sets are
    refined level by level instead of by recursion. Algorithm 4 is read with the bipartite graph
    emptied per link type and the recursion on the neighbours.

    Parameters
    ----------
    auxiliary : Auxiliary
    target : Network
        The published network.
    distance : int, optional
        n ≥ 0; default the adversary's, and if that is None, as far as anything changes.
    links : sequence of str, optional
        Use only these of the auxiliary's link types.
    eliminate : bool
        Extension: a user matched uniquely is no candidate of anybody else.
    errors : LinkErrors
        Extension: how many links may be added, changed or missing. The default is the attack
        itself.
    alike : array, shape (n,), optional
        Equal for targets (nodes of all types, the protected first) that look alike at this
        distance: they have the same candidates, which are then looked for once.
    max_pairs : float
        Raise `TooManyPairs` if more pairs of nodes match by profile.
    executor : telic.scale.Executor, optional
        Look at ranges of targets there, against networks and candidate sets in mapped files; the
        result is the same.
    work : path, optional
        With `executor`, needed: folder of these files, which every worker reaches.
    skip_bad : bool
        With `executor`: go on where a range of targets fails. They keep the candidates of the
        distance before, so that the attack finds at least what is given. The executor's reports
        name the ranges.

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
    >>> from telic.privacy import Adversary, Auxiliary
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}},
    ...                        "links": [{"name": "follow", "source": "user", "target": "user"}]})
    >>> network = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "yob": [80, 80, 70]}},
    ...                               {"follow": ([1], [3])})
    >>> attack(Auxiliary(network, Adversary.of(network)), network, distance=1).sizes.tolist()
    [[2, 2, 1], [1, 2, 1]]
    """
    distance = auxiliary.adversary.distance if distance is None else distance
    if distance is not None and distance < 0:
        raise InputError(f"distance is {distance}, expected 0 or more.")
    pieces = Path() if executor is None else mapped_folder(work, "networks and candidate sets")
    flat = flatten(target, auxiliary.adversary)
    first, one = np.arange(flat.size), np.ones(flat.size, bool)
    if alike is not None:
        _, place, inverse = np.unique(alike, return_index=True, return_inverse=True)
        first = place[inverse]
        one = first == np.arange(flat.size)
    sets = auxiliary.intervals(flat, one, max_pairs)
    if eliminate:
        sets = _eliminate(sets)
    layers, friend_ptr, friends, low, high = _target_links(auxiliary, flat, links)
    friends = first[friends]
    if distance is None and not len(layers):
        distance = 0
    levels = [sets]
    # Who has no links matches everybody, unless few known links may be missing.
    linked = (np.diff(friend_ptr[layers]) > 0).any(axis=0) | (errors.missing < 1)
    known = Known(
        auxiliary.indptr, auxiliary.indices, auxiliary.strength, auxiliary.kind, auxiliary.signature
    )
    limits = auxiliary.most_links + 1, int(np.diff(friend_ptr).max(initial=0)) + 1
    while distance is None or len(levels) <= distance:
        sizes = sets.sizes()
        rarest = _rarest_first(friend_ptr, friends, sizes)
        wanted = Wanted(friend_ptr, friends[rarest], low[rarest], high[rarest])
        level = DistanceLevel(known, wanted, layers, errors.shares(), limits)
        refine: Refine = refine_in_batches
        if executor is not None:
            folder = pieces / f"distance-{len(levels)}"
            refine = partial(refine_in_pieces, executor, folder, skip_bad=skip_bad)
        before = sets
        # Who has no links keeps the interval; a list that is there already is copied along.
        asked = np.flatnonzero(one & (linked | (sets.first < 0)))
        counts = np.zeros(flat.size, np.int64)
        counts[asked], found = refine(sets, asked, level)
        starts = np.append(0, np.cumsum(counts))
        sets = CandidateSets(np.where(linked, -1, sets.first), sets.last, starts, found)
        if eliminate:
            sets = _eliminate(sets)
        levels.append(sets)
        if (sets.sizes() == before.sizes()).all():
            levels += [sets] * ((distance or 0) + 1 - len(levels))
            break
    first = first[: flat.protected]
    every = np.stack([level.sizes()[first] for level in levels])
    return Attack(every, levels, first, auxiliary.order, auxiliary.rank)


def _target_links(
    auxiliary: Auxiliary, target: Flat, links: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    adversary = auxiliary.adversary
    names = list(adversary.links)
    chosen = names if links is None else list(links)
    for name in chosen:
        if name not in names:
            raise InputError(f"link type {name!r} was not prepared. Prepared are {names}.")
    if adversary.joint and len(chosen) < len(names):
        raise InputError("joint matching uses all prepared link types: prepare only those wanted.")
    parts = compared_links(target, adversary)
    n = target.size
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
    if adversary.in_links:
        wanted += [len(names) + place for place in wanted]
    if adversary.joint and parts:
        return np.arange(1), *merge_layers(indptr, indices, low, high)
    return np.array(wanted, np.int64), indptr, indices, low[:, None], high[:, None]


def _rarest_first(friend_ptr: np.ndarray, friends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Order each target's neighbours by how many candidates they have."""
    if not len(friends):
        return np.empty(0, np.int64)
    n = friend_ptr.shape[1] - 1
    row = np.concatenate(
        [layer * n + np.repeat(np.arange(n), np.diff(ptr)) for layer, ptr in enumerate(friend_ptr)]
    )
    # Two keys in one, in 64 bits: sorting by two in turn takes two to five times as long.
    return np.argsort(row * (sizes.max() + 1) + sizes[friends], kind="stable")


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
            starts = np.append(0, np.cumsum([len(part) for part in lists])).astype(np.int64)
            found = np.concatenate([NO_STRENGTH, *lists])
            return CandidateSets(np.full_like(sets.first, -1), sets.last, starts, found)
        lists = shorter
