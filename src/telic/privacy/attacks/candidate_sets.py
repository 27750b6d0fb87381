"""The candidates of each target, and the kernels that look into them."""

from typing import NamedTuple

import numpy as np

from telic.kernels import kernel


class CandidateSets(NamedTuple):
    """Candidates of each target: an interval first[t] ≤ v < last[t], or found[starts[t]:…]."""

    first: np.ndarray
    last: np.ndarray
    starts: np.ndarray
    found: np.ndarray

    def sizes(self) -> np.ndarray:
        """Return how many candidates each target has."""
        listed = np.diff(self.starts)
        return np.where(self.first >= 0, self.last - self.first, listed)

    def of(self, t: int) -> np.ndarray:
        """Return the candidates of one target, ascending."""
        if self.first[t] >= 0:
            return np.arange(self.first[t], self.last[t])
        return self.found[self.starts[t] : self.starts[t + 1]]


@kernel
def lower_bound(values, start, stop, x):
    """First place in the sorted values[start:stop] that is not below x."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < x:
            start = middle + 1
        else:
            stop = middle
    return start


@kernel
def is_candidate(sets, t, v):
    """Is v a candidate of target t?"""
    first, last, starts, found = sets
    if first[t] >= 0:
        return first[t] <= v < last[t]
    place = lower_bound(found, starts[t], starts[t + 1], v)
    return place < starts[t + 1] and found[place] == v


@kernel
def span(sets, t):
    """Smallest and largest candidate of target t, and how many there are; 1, 0 and 0 if none."""
    first, last, starts, found = sets
    if first[t] >= 0:
        return first[t], last[t] - 1, last[t] - first[t]
    count = starts[t + 1] - starts[t]
    if count == 0:
        return 1, 0, 0
    return found[starts[t]], found[starts[t + 1] - 1], count


@kernel
def candidate(sets, t, c):
    """The c-th candidate of target t."""
    first, _, starts, found = sets
    return first[t] + c if first[t] >= 0 else np.int64(found[starts[t] + c])


@kernel
def list_kept(sets, work, offsets, keep, out):
    """Write the marked candidates, target by target."""
    p = 0
    for w in range(len(work)):
        for c in range(offsets[w + 1] - offsets[w]):
            if keep[offsets[w] + c]:
                out[p] = candidate(sets, work[w], c)
                p += 1
