"""What re-ranking was worth to the candidates of a composition, in bounded memory."""

import numpy as np

from telic.completion.learning.feedback import slot_of
from telic.kernels import kernel

CANDIDATES = 128
"""Candidates remembered, at least: those of a prefix that go on matching what is typed stay."""


@kernel
def add_gains(numbers, seen, sums, forgotten, used, candidates, order, keystroke, served):
    """Add a keystroke's gains; of one candidate too many, forget the one seen longest ago.

    `forgotten` are the least sums that a candidate may have which is not there.
    """
    for place in range(len(order)):
        i = order[place]
        slot = slot_of(numbers, used, candidates[i])
        if slot < 0:
            if place == i:
                continue  # it gains nothing, and stays what is not there
            slot = used
            if used == len(numbers):
                slot = np.argmin(seen)
            for column in range(2):
                least = forgotten[column]
                if slot < used:
                    forgotten[column] = min(least, sums[slot, column])
                sums[slot, column] = least  # it may have been there before
            used = max(used, slot + 1)
            numbers[slot] = candidates[i]
        seen[slot] = keystroke
        gain = 1 / (1 + place) - 1 / (1 + i)
        sums[slot, 0] += gain
        sums[slot, 1] += gain * served
    return used


class Gains:
    """By candidate, what the model's order gained in reciprocal rank over the static one.

    Parameters
    ----------
    n : int
        Candidates of a keystroke.

    Attributes
    ----------
    keystrokes : int
        That were added.

    Examples
    --------
    >>> gains = Gains(10)
    >>> gains.add(np.array([7, 8]), [1, 0], served=True)
    >>> gains.mean(8), gains.mean(9)
    ((0.5, 0.5), (0.0, 0.0))
    """

    def __init__(self, n: int) -> None:
        self._most = max(CANDIDATES, 2 * n)
        self.keystrokes = 0
        self._used = 0
        self._numbers, self._seen = np.zeros(1, np.int32), np.zeros(1, np.int32)
        self._sums, self._forgotten = np.zeros((1, 2)), np.zeros(2)

    def add(self, candidates: np.ndarray, order: list[int], *, served: bool) -> None:
        """Add a keystroke: its candidates in the static order, and their rows in the model's."""
        self.keystrokes += 1
        if len(self._numbers) < min(self._used + len(order), self._most):
            room = min(2 * (self._used + len(order)), self._most)
            self._numbers = _longer(self._numbers, room)
            self._seen = _longer(self._seen, room)
            self._sums = _longer(self._sums, room)
        self._used = add_gains(
            self._numbers,
            self._seen,
            self._sums,
            self._forgotten,
            self._used,
            np.array(candidates, np.int32),
            np.array(order, np.int32),
            self.keystrokes,
            served,
        )

    def mean(self, number: int) -> tuple[float, float]:
        """Return a candidate's mean gain a keystroke, and the part of that which was shown.

        Neither is more than it was: of a candidate that may have been forgotten it is the least of
        those that were, so that the running check's bound holds.
        """
        slot = slot_of(self._numbers, self._used, number)
        gain, shown = (self._sums[slot] if slot >= 0 else self._forgotten).tolist()
        return gain / self.keystrokes, shown / self.keystrokes


def _longer(values: np.ndarray, n: int) -> np.ndarray:
    longer = np.zeros((n, *values.shape[1:]), values.dtype)
    longer[: len(values)] = values
    return longer
