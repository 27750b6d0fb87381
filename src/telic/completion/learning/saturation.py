"""How much implicit feedback may tell: bounds that no number and length of lists goes beyond.

As printed, feedback adds up over lists: the same suggestion, shown at every keystroke of a slow
typist, sinks without end, whether anybody looked at it or not.
"""

from dataclasses import dataclass

import numpy as np

from telic.completion.learning.feedback import DWELL_CAP, FEATURES
from telic.errors import InputError, expect_above

D = len(FEATURES)
OF_ONE_LIST = np.array([DWELL_CAP, DWELL_CAP, *np.ones(D - 2)])
"""The most that one more list adds to each feature."""


@dataclass(frozen=True)
class Saturation:
    """The rule by which a fit bounds feedback.

    Parameters
    ----------
    quantile : float in (0, 1]
        A feature counts for no more than this quantile of its values, over the suggestions of the
        training part in which it is not zero at submission: a larger value than the log knows is
        no further evidence.
    bound : float > 0
        All feedback on a suggestion adds or takes at most so much, in a composition of any length:
        its odds change by ``exp(bound)`` at most. Suggestions that all reach it keep their order.

    Examples
    --------
    >>> Saturation(0.5, 2.0).caps(np.array([[1.0], [0.0], [3.0]]))
    array([2.])
    """

    quantile: float
    bound: float

    def __post_init__(self) -> None:
        if not 0 < self.quantile <= 1:
            raise InputError(f"quantile is {self.quantile}, expected a number in (0, 1].")
        expect_above(0, bound=self.bound)

    def caps(self, features: np.ndarray) -> np.ndarray:
        """Return the most that each feature counts for; a feature nobody had counts for nothing.

        Parameters
        ----------
        features : float array of shape (rows, d)
            Feedback on the candidates of the training part.
        """
        return np.array(
            [
                np.quantile(column[column > 0], self.quantile) if (column > 0).any() else 0.0
                for column in features.T
            ]
        )


def bounded(parts: np.ndarray, bound: float) -> np.ndarray:
    """Shrink what the features add to each candidate, in place, so that the sum keeps the bound.

    Parameters
    ----------
    parts : float array of shape (..., d)
        d is 16, or 17 with the part of the relevance, which is no feedback.
    """
    if bound < np.inf:
        size = np.abs(parts[..., :D].sum(axis=-1, keepdims=True))
        parts[..., :D] *= bound / np.maximum(size, bound)
    return parts


def limits(
    weights: np.ndarray, deviations: np.ndarray, caps: np.ndarray, bound: float
) -> tuple[float, float]:
    """Return how much feedback may become by one list, and in a whole composition.

    Of the positions, and of space, other and no special character, a list has one.
    """
    slope = np.abs(weights[:D]) / deviations
    one = slope * np.minimum(OF_ONE_LIST, caps)
    by_list = one[:3].sum() + one[3:5].max() + one[5] + one[6:].max()
    with np.errstate(invalid="ignore"):
        whole = np.where(slope > 0, slope * caps, 0.0).sum()
    return float(min(by_list, 2 * bound)), float(min(whole, bound))
