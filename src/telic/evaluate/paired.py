"""Is one model better than another on the same items?"""

from typing import NamedTuple

import numpy as np
import scipy  # its parts load when they are used: they take seconds


class PairedTest(NamedTuple):
    """Result of `paired_t_test` or `paired_proportions`."""

    difference: float
    """Mean difference (of groups: of the group's mean differences)."""
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
    p_value = float(2 * scipy.stats.t.sf(abs(difference) / error, freedom))
    half = float(scipy.stats.t.ppf(0.5 + level / 2, freedom) * error)
    return PairedTest(difference, p_value, difference - half, difference + half)


def paired_proportions(only_a: int, only_b: int, total: int, *, level: float = 0.95) -> PairedTest:
    """Test whether a and b get the same share of the same items right.

    The exact McNemar test asks whether the items that only one of them gets right are split by a
    fair coin. The interval is Agresti and Min's (Statistics in Medicine 24, 2005): Wald's after
    half an item more in each of the four cells.

    Parameters
    ----------
    only_a, only_b : int
        Items that a gets right and b does not, and the other way round.
    total : int
        All items, at least ``only_a + only_b``.
    level : float in (0, 1)
        Coverage of the interval.

    Examples
    --------
    >>> result = paired_proportions(2, 8, 100)
    >>> result.difference, round(result.p_value, 3), round(result.low, 3), round(result.high, 3)
    (-0.06, 0.109, -0.122, 0.004)
    """
    if total == 0:
        return PairedTest(0.0, np.nan, np.nan, np.nan)
    discordant = only_a + only_b
    p_value = scipy.stats.binomtest(only_a, discordant).pvalue if discordant else 1.0
    centre = (only_a - only_b) / (total + 2)
    spread = np.sqrt((discordant + 1) / (total + 2) - centre**2) / np.sqrt(total + 2)
    half = float(scipy.stats.norm.ppf(0.5 + level / 2) * spread)
    difference = (only_a - only_b) / total
    return PairedTest(difference, float(p_value), centre - half, centre + half)
