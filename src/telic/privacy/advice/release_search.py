"""Releases judged one by one, the cheapest that meets the limits looked for."""

import heapq
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from telic.hin import Links, Network
from telic.privacy.adversary import Adversary
from telic.privacy.advice.coarsening_levels import Level, Lever
from telic.privacy.merged_types import flatten, in_a_row
from telic.privacy.risk.limits import Limits
from telic.privacy.risk.risks import Measures, measure
from telic.privacy.risk.views import (
    WHOLE_STEPS,
    Layer,
    Neighbourhood,
    layer_salt,
    profile_hashes,
    refine,
)

MAX_WORK = 1_500_000_000
"""Nodes and links that the search looks at, all releases and distances together."""


class ReleaseSearch:
    """Judges releases from codes and strengths made once; stops where a distance fails."""

    def __init__(
        self,
        network: Network,
        adversary: Adversary,
        fields: list[Lever],
        limits: Limits,
        progress: Callable[[str], None],
        seconds: float | None = None,
    ) -> None:
        self.adversary, self.fields = adversary, fields
        self.limits, self.progress = limits, progress
        self.kinds = {kind: network.size(kind) for kind in in_a_row(adversary)}
        flat = flatten(network, adversary)
        self.size, self.protected = flat.size, flat.protected
        # Reversed links with the place of each in the original, to carry any level's strengths.
        self.ways = []
        for links, _ in flat.links:
            number = Links(links.indptr, links.indices, np.arange(len(links), dtype=np.int32))
            self.ways.append((links, number.reverse(flat.size) if adversary.in_links else None))
        self.neighbourhood = lru_cache(maxsize=4)(self._neighbourhood)
        self.profiles = lru_cache(maxsize=64)(self._profiles)
        # What was found of each release, and whether that is at the farthest distance.
        self.judged: dict[tuple[int, ...], tuple[Measures, bool]] = {}
        self.failed = np.empty((0, len(fields)), np.int64)
        self.work = 0
        self.deadline = np.inf if seconds is None else time.monotonic() + seconds

    @property
    def tried(self) -> int:
        """How many releases were judged."""
        return len(self.judged)

    def levels(self, choice: tuple[int, ...]) -> list[Level]:
        """Return what happens to each field."""
        return [lever.levels[level] for lever, level in zip(self.fields, choice, strict=True)]

    def _profiles(self, kind: str, choice: tuple[int, ...]) -> np.ndarray:
        """Hash the profiles of one node type; `choice` holds the levels of its fields and links."""
        own = [lever for lever in self.fields if kind in (lever.kind, lever.source)]
        shown = [
            lever.levels[level].shown if lever.kind else lever.levels[level].counts
            for lever, level in zip(own, choice, strict=True)
        ]
        number = np.full(self.kinds[kind], list(self.kinds).index(kind))
        return profile_hashes(len(number), [number, *(x for x in shown if x is not None)])

    def _neighbourhood(self, choice: tuple[int, ...]) -> Neighbourhood:
        levers = [lever for lever in self.fields if not lever.kind]
        layers: list[Layer] = []
        for number, (lever, level) in enumerate(zip(levers, choice, strict=True)):
            shown = lever.levels[level].shown
            if not lever.levels[level].published:
                continue
            out, back = self.ways[number]
            layers.append(Layer(Links(out.indptr, out.indices, shown), layer_salt(len(layers))))
            if back is not None:
                carried = None if shown is None else shown[back.strength]
                links = Links(back.indptr, back.indices, carried)
                layers.append(Layer(links, layer_salt(len(layers))))
        return Neighbourhood(layers, self.size, self.adversary.joint)

    def measures(self, choice: tuple[int, ...], limits: Limits | None = None) -> Measures:
        """Judge a release at the farthest distance, or the first one that is above `limits`."""
        found, final = self.judged.get(choice, (None, False))
        if found is None or not (final or (limits and not limits.met_by(found))):
            found, final = self._judge(choice, limits)
            self.judged[choice] = found, final
            self.progress(f"{self.tried:,} releases judged")
        return found

    def _judge(self, choice: tuple[int, ...], limits: Limits | None) -> tuple[Measures, bool]:
        parts = []
        for kind in self.kinds:
            own = [
                # Links that are not counted show nothing of the profile: one key for all of these.
                x if lever.kind or lever.levels[x].counts is not None else 0
                for x, lever in zip(choice, self.fields, strict=True)
                if kind in (lever.kind, lever.source)
            ]
            parts.append(self.profiles(kind, tuple(own)))
        links = tuple(x for x, lever in zip(choice, self.fields, strict=True) if not lever.kind)
        start = np.concatenate(parts)
        self.work += self.size
        # Most releases fail by their profiles alone: their links need not be merged.
        found = measure(start[: self.protected])
        if limits and not limits.met_by(found):
            return found, False
        if self.adversary.distance == 0:
            return found, True
        around = self.neighbourhood(links)
        if not around.entries:
            return found, True
        for step in refine(start, around, self.adversary.distance):
            found = measure(step.hashes[: self.protected])
            self.work += (self.size + around.entries) * (step.distance <= WHOLE_STEPS)
            if limits and not limits.met_by(found):
                return found, False
        return found, True

    def passes(self, choice: tuple[int, ...]) -> bool:
        """Say whether a release keeps the limits; it is not judged if a coarser one has failed."""
        if (np.array(choice) <= self.failed).all(axis=1).any():
            return False
        kept = self.limits.met_by(self.measures(choice, self.limits))
        if not kept:
            self.failed = np.vstack([self.failed, choice])
        return kept

    def out_of_time(self) -> bool:
        """Say whether the budget of time is spent."""
        return time.monotonic() > self.deadline

    def turn_to(self, limits: Limits) -> None:
        """Ask for other limits from now on; what was judged is kept."""
        self.limits = limits
        self.failed = self.failed[:0]


def lost(losses: list[list[float]], choice: tuple[int, ...]) -> float:
    """Return what a release loses, given each field's losses by level."""
    return sum(part[level] for part, level in zip(losses, choice, strict=True))


def greedy(
    search: ReleaseSearch, top: tuple[int, ...], losses: list[list[float]]
) -> tuple[int, ...]:
    """From the coarsest release, refine whatever saves most while the risk allows it."""
    choice = top
    while True:
        options = []
        for i, level in enumerate(choice):
            for finer in range(level):
                saved = losses[i][level] - losses[i][finer]
                options.append((-saved, i, finer))
        for saved, i, finer in sorted(options):
            if search.out_of_time():
                return choice
            refined = (*choice[:i], finer, *choice[i + 1 :])
            if saved < 0 and search.passes(refined):
                choice = refined
                break
        else:
            return choice


def cheapest(
    search: ReleaseSearch, top: tuple[int, ...], losses: list[list[float]], bound: float, limit: int
) -> tuple[tuple[int, ...] | None, bool]:
    """Try releases by rising loss below `bound`; say whether all of them were ruled out."""
    start = []
    for i, most in enumerate(top):
        level = 0
        # With all else gone this field must be at least this coarse.
        while (
            level < most
            and not search.out_of_time()
            and not search.passes((*top[:i], level, *top[i + 1 :]))
        ):
            level += 1
        start.append(level)
    base = tuple(start)
    heap = [(lost(losses, base), base, 0)]
    looked = 0
    while heap:
        loss, choice, least = heapq.heappop(heap)
        if loss >= bound - 1e-12:
            return None, True
        if search.passes(choice):
            return choice, True
        looked += 1
        spent = search.tried > limit or search.work > MAX_WORK or search.out_of_time()
        if spent or looked > 100 * limit:
            return None, False
        for i in range(least, len(top)):
            if choice[i] < top[i]:
                coarser = (*choice[:i], choice[i] + 1, *choice[i + 1 :])
                step = losses[i][choice[i] + 1] - losses[i][choice[i]]
                heapq.heappush(heap, (loss + step, coarser, i))
    return None, True


class FrontierPoint(NamedTuple):
    """A release on the frontier: what it loses, what risk is left, what happens to each field."""

    loss: float
    found: Measures
    choice: tuple[int, ...]


FRONTIER = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9)
"""Mean risks under each of which a release is looked for."""
FRONTIER_TRIED = 400
"""Releases judged for the frontier, beside those that the search has judged."""


def frontier(
    search: ReleaseSearch, top: tuple[int, ...], losses: list[list[float]]
) -> list[FrontierPoint]:
    """Return the releases found that none found beats in both loss and mean risk.

    They are looked for greedily, one mean risk after the other, from the coarsest release to the
    network as it is; the search's own releases count too.
    """
    until = search.tried + FRONTIER_TRIED
    choice = top
    for limit in FRONTIER:
        if search.tried > until or search.work > 2 * MAX_WORK or search.out_of_time():
            break
        search.turn_to(Limits(risk=limit))
        if search.passes(choice):
            choice = greedy(search, choice, losses)
    search.measures((0,) * len(top))
    points = [
        FrontierPoint(lost(losses, choice), found, choice)
        for choice, (found, final) in search.judged.items()
        if final
    ]
    best: list[FrontierPoint] = []
    for point in sorted(points, key=lambda point: (point.loss, point.found.risk)):
        if not best or point.found.risk < best[-1].found.risk:
            best.append(point)
    return best
