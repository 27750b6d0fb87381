"""Is one model better than another on the same items, judged over independent groups?"""

from typing import NamedTuple

import numpy as np
from scipy import stats


class PairedTest(NamedTuple):
    """Result of `paired_t_test`."""

    difference: float
    """Mean over groups of the group's mean difference."""
    p_value: float
    """Two-sided; 1 where all differences are zero, NaN where there are fewer than two groups."""
    low: float
    high: float
    """Ends of the confidence interval of `difference`."""


def paired_t_test(
    a: np.ndarray, b: np.ndarray, group: np.ndarray, *, level: float = 0.95
) -> PairedTest:
    """Test whether a − b has mean zero, with groups (users) as the unit.

    Items of one user are not independent, so each user gives one number: the mean difference over
    the user's items.

    Parameters
    ----------
    a, b : float arrays of shape (n,)
        The same measure of two models on the same items.
    group : int array of shape (n,)
        Group of each item.
    level : float in (0, 1)
        Coverage of the interval.

    Examples
    --------
    >>> paired_t_test(np.array([1.0, 1.0, 0.5]), np.zeros(3), np.array([0, 0, 1])).difference
    0.75
    """
    _, group = np.unique(group, return_inverse=True)
    means = np.bincount(group, weights=a - b) / np.bincount(group)
    difference = float(means.mean())
    if len(means) < 2:
        return PairedTest(difference, np.nan, np.nan, np.nan)
    error = means.std(ddof=1) / np.sqrt(len(means))
    if error == 0:
        return PairedTest(difference, 1.0 if difference == 0 else 0.0, difference, difference)
    freedom = len(means) - 1
    p_value = float(2 * stats.t.sf(abs(difference) / error, freedom))
    half = float(stats.t.ppf(0.5 + level / 2, freedom) * error)
    return PairedTest(difference, p_value, difference - half, difference + half)
