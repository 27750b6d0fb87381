"""Tests for scores from repeated cross-validation, whose folds are not independent."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from telic.errors import InputError, expect_at_least
from telic.evaluate.checked_numbers import checked_level, checked_numbers


class FoldTest(NamedTuple):
    """A statistic and its two-sided p-value."""

    statistic: float
    p_value: float


def five_by_two_t(differences: ArrayLike) -> FoldTest:
    """Dietterich's 5×2cv t-test: the first difference over the pooled spread within rounds.

    Parameters
    ----------
    differences : array of shape (5, 2)
        Score of one minus score of the other, per round and half.

    Examples
    --------
    >>> import numpy as np
    >>> d = np.array([[.1, .2], [.1, .3], [.2, .2], [.1, .2], [.3, .1]])
    >>> round(five_by_two_t(d).p_value, 3)
    0.363
    """
    d = _five_by_two(differences)
    within = ((d - d.mean(axis=1, keepdims=True)) ** 2).sum(axis=1).mean()
    return _t(d[0, 0], np.sqrt(within), 5)


def five_by_two_f(differences: ArrayLike) -> FoldTest:
    """Alpaydın's combined 5×2cv F-test, which does not depend on the order of the folds.

    Parameters
    ----------
    differences : array of shape (5, 2)

    Examples
    --------
    >>> import numpy as np
    >>> d = np.array([[.1, .2], [.1, .3], [.2, .2], [.1, .2], [.3, .1]])
    >>> round(five_by_two_f(d).p_value, 3)
    0.077
    """
    d = _five_by_two(differences)
    within = ((d - d.mean(axis=1, keepdims=True)) ** 2).sum()
    if within == 0:
        return FoldTest(np.inf, 0.0) if d.any() else FoldTest(0.0, 1.0)
    statistic = float((d**2).sum() / (2 * within))
    return FoldTest(statistic, float(stats.f.sf(statistic, 10, 5)))


def nadeau_bengio(differences: ArrayLike, *, test_over_train: float = 1.0) -> FoldTest:
    """Corrected resampled t-test: the variance grows by n_test/n_train for shared training rows.

    Parameters
    ----------
    differences : array
        One difference per fold, two at least.
    test_over_train : float
        1 for two halves.

    Examples
    --------
    >>> round(nadeau_bengio([.1, .2, .1, .3, .2, .2, .1, .2, .3, .1]).p_value, 3)
    0.058
    """
    d = _folds(differences)
    return _t(d.mean(), _corrected(d, test_over_train), len(d) - 1)


def nadeau_bengio_interval(
    differences: ArrayLike, *, test_over_train: float = 1.0, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of the mean difference that goes with `nadeau_bengio`.

    Parameters
    ----------
    differences : array
        One difference per fold, two at least.
    test_over_train : float
    level : float in (0, 1)

    Examples
    --------
    >>> low, high = nadeau_bengio_interval([.1, .2, .1, .3, .2, .2, .1, .2, .3, .1])
    >>> round(low, 3), round(high, 3)
    (-0.007, 0.367)
    """
    d = _folds(differences)
    half = stats.t.ppf(0.5 + checked_level(level) / 2, len(d) - 1) * _corrected(d, test_over_train)
    return float(d.mean() - half), float(d.mean() + half)


def _corrected(differences: np.ndarray, test_over_train: float) -> float:
    """Standard error of the mean difference of folds that share training rows."""
    expect_at_least(0, test_over_train=test_over_train)
    return float(np.sqrt((1 / len(differences) + test_over_train) * differences.var(ddof=1)))


def paired_t(differences: ArrayLike) -> FoldTest:
    """Plain paired t-test: **invalid** on folds, which share their rows; shown beside the others.

    Parameters
    ----------
    differences : array
        One difference per fold, two at least.

    Examples
    --------
    >>> round(paired_t([.1, .2, .1, .3, .2, .2, .1, .2, .3, .1]).p_value, 5)
    5e-05
    """
    d = _folds(differences)
    return _t(d.mean(), np.sqrt(d.var(ddof=1) / len(d)), len(d) - 1)


def _folds(differences: ArrayLike) -> np.ndarray:
    d = np.ravel(checked_numbers("differences", differences))
    if len(d) < 2:
        raise InputError(
            f"differences: {len(d)} given, expected one for each of two folds or more."
        )
    return d


def _five_by_two(differences: ArrayLike) -> np.ndarray:
    d = checked_numbers("differences", differences)
    if d.shape != (5, 2):
        raise InputError(f"differences have shape {d.shape}, expected (5, 2): rounds × halves.")
    return d


def _t(difference: float, spread: float, freedom: int) -> FoldTest:
    statistic = math.copysign(math.inf, difference) if difference else 0.0
    if spread != 0:
        statistic = float(difference / spread)
    return FoldTest(statistic, float(2 * stats.t.sf(abs(statistic), freedom)))
