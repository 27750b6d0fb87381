"""Is one model better than another on the same items?"""

from typing import NamedTuple

import numpy as np
import scipy  # its parts load when they are used: they take seconds
from numpy.typing import ArrayLike

from telic.errors import InputError, expect_whole
from telic.evaluate.checked_numbers import checked_level, checked_numbers, refuse_masked


class PairedTest(NamedTuple):
    """Result of `paired_t_test` or `paired_proportions`."""

    difference: float
    """Mean difference (of groups: of the group's mean differences)."""
    p_value: float
    """Two-sided; 1 where all differences are zero, NaN where there are fewer than two groups. Where
    all n groups differ equally, t has no spread to go by, and it is the sign test's 2^(1 − n)."""
    low: float
    high: float
    """Ends of the confidence interval of `difference`."""


def paired_t_test(
    a: np.ndarray,
    b: np.ndarray,
    group: np.ndarray,
    *,
    level: float = 0.95,
    within: tuple[float, float] | None = None,
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
    within : (float, float), optional
        What a − b can be, from least to most: (-1, 1) for reciprocal ranks. Groups that all differ
        equally have no spread to tell how far others may be: the interval is `interval_of_equals`
        then, and without `within` it is a point.

    Raises
    ------
    InputError
        If these are no such columns, or hold no item.

    Examples
    --------
    >>> paired_t_test(np.array([1.0, 1.0, 0.5]), np.zeros(3), np.array([0, 0, 1])).difference
    0.75
    """
    checked_level(level)
    refuse_masked("group", group)
    a, b, group = checked_numbers("a", a), checked_numbers("b", b), np.asarray(group)
    if not (a.ndim == 1 and a.shape == b.shape == group.shape):
        raise InputError(
            f"a, b and group have shapes {a.shape}, {b.shape} and {group.shape}, expected one "
            "entry of each per item."
        )
    if not len(a):
        raise InputError("a, b and group hold no item, so there is nothing to test.")
    try:
        _, group = np.unique(group, return_inverse=True)
    except TypeError:
        raise InputError(
            "group: labels of several kinds, or none. Give texts or numbers."
        ) from None
    means = np.bincount(group, weights=a - b) / np.bincount(group)
    difference = float(means.mean())
    if len(means) < 2:
        return PairedTest(difference, np.nan, np.nan, np.nan)
    error = means.std(ddof=1) / np.sqrt(len(means))
    rounding = 1e-15 * max(np.abs(a).max(), np.abs(b).max())
    if error <= rounding:
        by_sign = 2.0 ** (1 - len(means)) if abs(difference) > rounding else 1.0
        ends = (difference, difference)
        if within is not None:
            ends = interval_of_equals(difference, len(means), within, level=level)
        return PairedTest(difference, by_sign, *ends)
    freedom = len(means) - 1
    p_value = float(2 * scipy.stats.t.sf(abs(difference) / error, freedom))
    half = float(scipy.stats.t.ppf(0.5 + level / 2, freedom) * error)
    return PairedTest(difference, p_value, difference - half, difference + half)


def interval_of_equals(
    value: float, count: int, within: tuple[float, float], *, level: float = 0.95
) -> tuple[float, float]:
    """Return between what a mean lies of which all items seen are equal.

    At this level at most a share q = 1 − ((1 − level)/2)^(1/count) of all items can differ from
    `value`, and those lie within what an item can be.

    Parameters
    ----------
    value : float
    count : int
        Items, at least 1.
    within : (float, float)
        What an item can be.
    level : float in (0, 1)
        Coverage.

    Examples
    --------
    Ten successes of ten, and Clopper and Pearson's interval of them:

    >>> low, high = interval_of_equals(1.0, 10, (0.0, 1.0))
    >>> round(low, 3), high
    (0.692, 1.0)
    """
    expect_whole(1, count=count)
    others = 1.0 - ((1.0 - checked_level(level)) / 2) ** (1.0 / count)
    low, high = within
    return value - others * (value - low), value + others * (high - value)


def paired_proportions(only_a: int, only_b: int, total: int, *, level: float = 0.95) -> PairedTest:
    """Test whether a and b get the same share of the same items right.

    The exact McNemar test asks whether the items that only one of them gets right are split by a
    fair coin. The interval is Agresti and Min's (Statistics in Medicine 24, 2005): Wald's after
    half an item more in each of the four cells, cut at -1 and 1.

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
    checked_level(level)
    discordant = only_a + only_b
    if min(only_a, only_b) < 0 or discordant > total:
        raise InputError(
            f"only_a {only_a}, only_b {only_b} of total {total}: expected counts from 0, whose sum "
            "is at most the total."
        )
    if total == 0:
        return PairedTest(0.0, np.nan, np.nan, np.nan)
    p_value = scipy.stats.binomtest(only_a, discordant).pvalue if discordant else 1.0
    low, high = _agresti_min(only_a - only_b, discordant, total, level)
    return PairedTest((only_a - only_b) / total, float(p_value), low, high)


def difference_interval(differences: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Return the interval that `paired_proportions` has, of items that are right in part.

    Parameters
    ----------
    differences : array of shape (n,)
        How far an item is right by a, from 0 to 1, minus how far it is by b.
    level : float in (0, 1)
        Coverage of the interval.

    Examples
    --------
    Where all items are equal, too, the interval has a width:

    >>> low, high = difference_interval(np.zeros(12))
    >>> round(low, 3), round(high, 3)
    (-0.14, 0.14)
    """
    checked_level(level)
    d = checked_numbers("differences", differences)
    if d.ndim != 1 or not len(d) or not (abs(d) <= 1).all():
        raise InputError(
            f"differences: shape {d.shape}, expected numbers from -1 to 1, at least one."
        )
    return _agresti_min(d.sum(), d @ d, len(d), level)


def _agresti_min(change: float, squares: float, total: int, level: float) -> tuple[float, float]:
    """Return the interval, given the sums of the differences and of their squares."""
    centre = change / (total + 2)
    spread = np.sqrt((squares + 1) / (total + 2) - centre**2) / np.sqrt(total + 2)
    half = float(scipy.stats.norm.ppf(0.5 + level / 2) * spread)
    return float(max(-1.0, centre - half)), float(min(1.0, centre + half))
