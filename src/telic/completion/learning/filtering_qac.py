"""Filtering QAC [Zhang2017] (2.2.4): drop what was shown high enough for long enough."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from telic.completion.learning.adaqac import Ranked
from telic.completion.learning.feedback import LONGEST_AT, POSITIONS
from telic.evaluate import reciprocal_ranks

DWELL_THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 31))
POSITION_THRESHOLDS = tuple(range(1, POSITIONS + 1))


@dataclass(frozen=True)
class Filtering:
    """For the rest of a composition, drop suggestions shown at a position <= T_P for >= T_DT.

    (The worked example in [Zhang2017] swaps the two thresholds.)

    Parameters
    ----------
    dwell : float
        T_DT in seconds, one of `DWELL_THRESHOLDS`.
    position : int
        T_P, 1 to 10.
    """

    dwell: float
    position: int

    def scores(self, features: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        """Return the relevance, ``-inf`` for what is dropped; shapes (T, N, 26) and (T, N)."""
        longest = features[..., LONGEST_AT : LONGEST_AT + self.position].max(axis=-1)
        return _without(longest, self.dwell, relevance)


def _without(longest: np.ndarray, dwell: float, relevance: np.ndarray) -> np.ndarray:
    # Times are microseconds divided by 1e6: 0.3 s must reach the threshold 0.3.
    return np.where(longest >= dwell - 1e-9, -np.inf, relevance)


def tune_filtering(ranked: Iterable[Ranked]) -> tuple[Filtering, np.ndarray]:
    """Choose among the 300 pairs of thresholds by MRR; ties go to the longest dwell, then T_P = 1.

    Parameters
    ----------
    ranked : iterable of (RankedKeystrokes, features)

    Returns
    -------
    best : Filtering
    grid : array of shape (30, 10)
        MRR of every pair.
    """
    grid, keystrokes = np.zeros((len(DWELL_THRESHOLDS), len(POSITION_THRESHOLDS))), 0
    for moments, features in ranked:
        keystrokes += len(moments)
        longest = np.maximum.accumulate(features[..., LONGEST_AT:], axis=-1)
        for j in range(len(POSITION_THRESHOLDS)):
            at_most_j = np.ascontiguousarray(longest[..., j])
            for i, dwell in enumerate(DWELL_THRESHOLDS):
                scores = _without(at_most_j, dwell, moments.relevance)
                grid[i, j] += reciprocal_ranks(scores, moments.position).sum()
    grid /= keystrokes
    last_dwell, position = np.unravel_index(np.argmax(grid[::-1]), grid.shape)
    best = Filtering(DWELL_THRESHOLDS[::-1][last_dwell], POSITION_THRESHOLDS[position])
    return best, grid
