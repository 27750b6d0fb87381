"""Releases judged one by one, the cheapest that meets the limits looked for."""

import heapq
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from telic.hin import Links, Network
from telic.privacy.adversary import Adversary
from telic.privacy.levers import Level, Lever
from telic.privacy.limits import Limits
from telic.privacy.merged_types import flatten
from telic.privacy.risk import Measures, measure
from telic.privacy.views import (
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
    ) -> None:
        self.adversary, self.fields = adversary, fields
        self.limits, self.progress = limits, progress
        self.kinds = {kind: network.size(kind) for kind in adversary.attributes}
        flat = flatten(network, adversary)
        self.size, self.protected = flat.size, flat.protected
        # Reversed links with the place of each in the original, to carry any level's strengths.
        self.ways = []
        for links, _ in flat.links:
            number = Links(links.indptr, links.indices, np.arange(len(links), dtype=np.int32))
            self.ways.append((links, number.reverse(flat.size) if adversary.in_links else None))
        self.neighbourhood = lru_cache(maxsize=4)(self._neighbourhood)
        self.profiles = lru_cache(maxsize=64)(self._profiles)
        self.judged: dict[tuple[int, ...], bool] = {}
        self.failed = np.empty((0, len(fields)), np.int64)
        self.work = 0

    @property
    def tried(self) -> int:
        """How many releases were judged."""
        return len(self.judged)

    def levels(self, choice: tuple[int, ...]) -> list[Level]:
        """Return what happens to each field."""
        return [lever.levels[level] for lever, level in zip(self.fields, choice, strict=True)]

    def _profiles(self, kind: str, choice: tuple[int, ...]) -> np.ndarray:
        """Hash the profiles of one node type; `choice` holds the levels of its own fields."""
        own = [lever for lever in self.fields if lever.kind == kind]
        shown = [lever.levels[level].shown for lever, level in zip(own, choice, strict=True)]
        number = np.full(self.kinds[kind], list(self.kinds).index(kind))
        return profile_hashes(len(number), [number, *(x for x in shown if x is not None)])

    def _neighbourhood(self, choice: tuple[int, ...]) -> Neighbourhood:
        levers = [lever for lever in self.fields if not lever.kind]
        layers = []
        for number, (lever, level) in enumerate(zip(levers, choice, strict=True)):
            shown = lever.levels[level].shown
            if not lever.levels[level].published:
                continue
            out, back = self.ways[number]
            layers.append(Layer(Links(out.indptr, out.indices, shown), layer_salt(2 * number)))
            if back is not None:
                carried = None if shown is None else shown[back.strength]
                links = Links(back.indptr, back.indices, carried)
                layers.append(Layer(links, layer_salt(2 * number + 1)))
        return Neighbourhood(layers, self.size, self.adversary.joint)

    def measures(self, choice: tuple[int, ...], limits: Limits | None = None) -> Measures:
        """Judge a release at the farthest distance, or the first one that is above `limits`."""
        parts = []
        for kind in self.kinds:
            own = [x for x, lever in zip(choice, self.fields, strict=True) if lever.kind == kind]
            parts.append(self.profiles(kind, tuple(own)))
        links = tuple(x for x, lever in zip(choice, self.fields, strict=True) if not lever.kind)
        start = np.concatenate(parts)
        self.work += self.size
        # Most releases fail by their profiles alone: their links need not be merged.
        found = measure(start[: self.protected])
        if (limits and not limits.met_by(found)) or self.adversary.distance == 0:
            return found
        around = self.neighbourhood(links)
        if not around.entries:
            return found
        for step in refine(start, around, self.adversary.distance, self.protected):
            found = measure(step.hashes[: self.protected])
            self.work += (self.size + around.entries) * (step.distance <= WHOLE_STEPS)
            if limits and not limits.met_by(found):
                break
        return found

    def passes(self, choice: tuple[int, ...]) -> bool:
        """Judge a release, unless a coarser one has failed already."""
        if choice not in self.judged:
            if (np.array(choice) <= self.failed).all(axis=1).any():
                return False
            self.judged[choice] = self.limits.met_by(self.measures(choice, self.limits))
            self.progress(f"{self.tried:,} releases judged")
            if not self.judged[choice]:
                self.failed = np.vstack([self.failed, choice])
        return self.judged[choice]


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
        while level < most and not search.passes((*top[:i], level, *top[i + 1 :])):
            level += 1
        start.append(level)
    base = tuple(start)
    heap = [(sum(part[level] for part, level in zip(losses, base, strict=True)), base, 0)]
    looked = 0
    while heap:
        loss, choice, least = heapq.heappop(heap)
        if loss >= bound - 1e-12:
            return None, True
        if search.passes(choice):
            return choice, True
        looked += 1
        if search.tried > limit or search.work > MAX_WORK or looked > 100 * limit:
            return None, False
        for i in range(least, len(top)):
            if choice[i] < top[i]:
                coarser = (*choice[:i], choice[i] + 1, *choice[i + 1 :])
                step = losses[i][choice[i] + 1] - losses[i][choice[i]]
                heapq.heappush(heap, (loss + step, coarser, i))
    return None, True
