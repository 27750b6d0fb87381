"""How well scores rank two classes: exact AUC in one sort, intervals, partial AUC, lift area."""

import warnings
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when they are used: they take seconds
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from telic.errors import InputError, expect_one_of
from telic.evaluate.checked_numbers import checked_level, checked_numbers, refuse_masked
from telic.evaluate.wilson import wilson_interval
from telic.kernels import kernel


class AUCInterval(NamedTuple):
    """An AUC with its confidence interval."""

    auc: float
    low: float
    high: float
    standard_error: float


class AUCDifference(NamedTuple):
    """The difference of two AUCs on the same rows, and whether chance explains it."""

    difference: float
    standard_error: float
    p_value: float
    """Two-sided, from the normal distribution."""


def roc_auc(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Area under the ROC curve: the share of (positive, negative) pairs ranked right, ties half.

    The two classes are sorted apart and merged once, so that ten million scores need no argsort
    (with weights one argsort is needed).

    Parameters
    ----------
    y : array of shape (n,)
        Two different labels.
    scores : array of shape (n,)
        Higher means "more likely positive". No NaN; infinities sort as usual.
    sample_weight : array of shape (n,), optional
        Weights >= 0; a row of weight 2 counts as two rows.
    pos_label : label, optional
        The positive label. By default the larger (in sorting order), with a warning where labels
        are texts and that one is the majority's: "ok" is larger than "fraud".

    Returns
    -------
    float
        In [0, 1]; 0.5 when all scores are equal.

    Raises
    ------
    InputError
        If lengths differ, a score is no number, or there are not exactly two classes.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    >>> roc_auc(["ok", "ok", "fraud"], [0.1, 0.4, 0.8], pos_label="fraud")
    1.0
    """
    positive, scores = checked_scores(y, scores, pos_label)
    if sample_weight is None:
        high, low = np.sort(scores[positive]), np.sort(scores[~positive])
        twice_wins, _ = _count_below(high, low)
        return float(twice_wins / (2 * high.size * low.size))
    weight = checked_numbers("sample_weight", sample_weight)
    if weight.shape != scores.shape or not ((weight >= 0) & np.isfinite(weight)).all():
        raise InputError(f"sample_weight: expected {scores.size} numbers >= 0, one for each score.")
    for side in (positive, ~positive):  # any scale will do, one whose sums overflow too
        weight = np.where(side, weight / (weight[side].max() or 1.0), weight)
    totals = weight[positive].sum(), weight[~positive].sum()
    if min(totals) == 0:
        raise InputError("sample_weight: one class has total weight 0, so its AUC is undefined.")
    order = np.argsort(scores)
    wins = _weighted_wins(scores[order], positive[order], weight[order])
    return float(wins / (totals[0] * totals[1]))


def auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    level: float = 0.95,
    scale: str = "logit",
    pos_label: Any = None,
) -> AUCInterval:
    """AUC with DeLong's confidence interval (DeLong, DeLong and Clarke-Pearson, 1988).

    Parameters
    ----------
    y, scores : arrays of shape (n,)
        As for `roc_auc`; at least two rows of each class.
    level : float, default 0.95
        Confidence, in (0, 1).
    scale : {"logit", "identity"}, default "logit"
        Where the estimate is taken as normal. "identity" is DeLong's own interval (cut at 0
        and 1). "logit" covers better near 1; with few positives or an AUC near 1 it, too, covers
        less than it says, unless rows of a class are much alike, where Newcombe's fifth method
        (Statistics in Medicine 25, 2006) does. Each covers where the other does not, so that the
        ends are the farther ones of both. Where DeLong's variance is 0, as at AUC 0 or 1, it
        says nothing of rows to come: the interval is Wilson's there, of as many pairs as can be
        formed in which no row comes twice.
    pos_label : label, optional
        As for `roc_auc`.

    Examples
    --------
    >>> y, scores = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.5, 0.7, 0.9]
    >>> interval = auc_interval(y, scores, scale="identity")
    >>> [round(value, 3) for value in interval]
    [0.889, 0.581, 1.0, 0.157]
    """
    checked_level(level)
    expect_one_of(("logit", "identity"), scale=scale)
    positive, scores = checked_scores(y, scores, pos_label, at_least=2)
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    twice_wins, high_squares = _count_below(high, low)
    twice_losses, low_squares = _count_below(low, high)
    n_high, n_low = high.size, low.size
    auc = twice_wins / (2 * n_high * n_low)
    # Variances of the placement values: each positive's share of negatives below it, and back.
    shares = (high_squares, twice_wins, n_high, n_low), (low_squares, twice_losses, n_low, n_high)
    variance = 0.0
    for squares, twice, n, n_other in shares:
        mean_square = squares / (4 * n * n_other**2)
        mean = twice / (2 * n * n_other)
        variance += max(mean_square - mean**2, 0.0) / (n - 1)
    # Where all pairs agree, there is only rounding.
    error = float(np.sqrt(variance)) if 0 < auc < 1 else 0.0
    width = scipy.stats.norm.ppf(0.5 + level / 2) * error
    if error == 0:
        bounds = wilson_interval(float(auc), min(n_high, n_low), level=level)
    elif scale == "logit" and 0 < auc < 1:
        center, half = logit(auc), width / (auc * (1 - auc))
        bounds = expit(center - half), expit(center + half)
    else:
        bounds = max(auc - width, 0.0), min(auc + width, 1.0)
    if scale == "logit" and 0 < auc < 1:
        low_end, high_end = _newcombe(float(auc), n_high, n_low, level)
        bounds = min(bounds[0], low_end), max(bounds[1], high_end)
    return AUCInterval(float(auc), float(bounds[0]), float(bounds[1]), error)


def _newcombe(auc: float, n_high: int, n_low: int, level: float) -> tuple[float, float]:
    """Return the areas whose own deviation, of exponential scores, reaches just to this one."""
    z = float(scipy.stats.norm.ppf(0.5 + level / 2))
    more = (n_high + n_low) / 2 - 1

    def beyond(area: float) -> float:
        spread = 1 + more * ((1 - area) / (2 - area) + area / (1 + area))
        return (auc - area) ** 2 - z**2 * area * (1 - area) * spread / (n_high * n_low)

    low, high = (scipy.optimize.brentq(beyond, auc, end) for end in (0.0, 1.0))
    return float(low), float(high)


def auc_difference(
    y: ArrayLike, scores_a: ArrayLike, scores_b: ArrayLike, *, pos_label: Any = None
) -> AUCDifference:
    """Compare two rankings of the same rows by DeLong's paired test.

    Where DeLong's variance is 0 although the rankings differ, `p_value` is the sign test's, of as
    many pairs as can be formed in which no row comes twice.

    Examples
    --------
    >>> y = [0, 0, 0, 0, 1, 1, 1, 1]
    >>> result = auc_difference(y, [1, 2, 3, 5, 4, 6, 7, 8], [8, 2, 6, 1, 4, 5, 3, 7])
    >>> round(result.difference, 4), result.p_value < 0.3
    (0.375, True)
    """
    positive, scores_a = checked_scores(y, scores_a, pos_label, at_least=2)
    _, scores_b = checked_scores(positive, scores_b, None, at_least=2)
    placed = [_placements(scores[positive], scores[~positive]) for scores in (scores_a, scores_b)]
    # In whole numbers: shares that differ by the same everywhere would vary by their rounding.
    high, low = (a - b for a, b in zip(*placed, strict=True))
    difference = high.mean() / (2 * low.size)
    shares = (high, low.size), (low, high.size)
    variance = sum(own.var(ddof=1) / own.size / (2 * n_other) ** 2 for own, n_other in shares)
    error = float(np.sqrt(variance))
    if error == 0:
        p_value = min(2 * 0.5 ** min(positive.sum(), (~positive).sum()), 1.0)
        return AUCDifference(float(difference), 0.0, 1.0 if difference == 0 else float(p_value))
    return AUCDifference(
        float(difference), error, float(2 * scipy.stats.norm.sf(abs(difference) / error))
    )


def partial_auc(
    y: ArrayLike,
    scores: ArrayLike,
    *,
    fpr: tuple[float, float] = (0.0, 0.1),
    min_tpr: float = 0.0,
    pos_label: Any = None,
) -> float:
    """Mean true-positive rate while the false-positive rate runs through a range.

    The area under that piece of the ROC curve divided by the range's width, so that 1 is
    perfect, and over (0, 1) it is the AUC. Ties are straight lines. With `min_tpr` it is the
    two-way partial AUC: the part of the area above that true-positive rate, divided by what there
    is of it, which is the share of pairs ranked right among the highest negatives and the lowest
    positives.

    Parameters
    ----------
    y, scores : arrays of shape (n,)
        As for `roc_auc`, and `pos_label` too.
    fpr : (float, float), default (0, 0.1)
        False-positive rates, 0 <= low < high <= 1.
    min_tpr : float, default 0
        True-positive rate from which the area counts, in [0, 1).

    Examples
    --------
    >>> partial_auc([0, 0, 1, 1], [0.1, 0.5, 0.4, 0.8], fpr=(0, 0.5))
    0.5
    >>> partial_auc([0, 0, 1, 1], [0.1, 0.5, 0.4, 0.8], fpr=(0, 1), min_tpr=0.5)
    0.5
    """
    check_rates(fpr, min_tpr)
    start, stop = fpr
    positive, scores = checked_scores(y, scores, pos_label)
    found, read = found_down_to(positive, scores)
    true = np.r_[0, found] / positive.sum()
    false = np.r_[0, read - found] / (~positive).sum()
    # The area up to a rate is piecewise quadratic: exact at the knots, linear TPR in between.
    area = np.r_[0.0, np.cumsum(np.diff(false) * (true[1:] + true[:-1]) / 2)]

    def up_to(rate: float) -> float:
        if rate == 0:
            return 0.0
        right = min(int(np.searchsorted(false, rate, side="left")), false.size - 1)
        left, width = right - 1, false[right] - false[right - 1]
        part = rate - false[left]
        slope = (true[right] - true[left]) / width
        return float(area[left] + part * (true[left] + slope * part / 2))

    width = stop - start
    if min_tpr > 0:  # the curve rises: below the rate where it gets there, nothing counts
        start = min(max(start, float(np.interp(min_tpr, true, false))), stop)
    above = up_to(stop) - up_to(start) - min_tpr * (stop - start)
    return above / (width * (1 - min_tpr))


def check_rates(fpr: tuple[float, float], min_tpr: float) -> None:
    """Raise InputError unless these are rates that `partial_auc` takes."""
    try:
        start, stop = fpr
        right = 0 <= start < stop <= 1
    except (TypeError, ValueError):
        right = False
    if not right:
        raise InputError(f"fpr: {fpr!r}, expected two rates with 0 <= low < high <= 1.")
    if not isinstance(min_tpr, Real) or not 0 <= min_tpr < 1:
        raise InputError(f"min_tpr: {min_tpr!r}, expected a rate with 0 <= rate < 1.")


def lift_area(y: ArrayLike, scores: ArrayLike, *, pos_label: Any = None) -> float:
    """Area under the lift (cumulative gains) chart: share of positives found against share read.

    With p the share of positives it is p/2 + (1 − p)·AUC: 1 − p/2 at best, 1/2 by chance.
    `pos_label` is as for `roc_auc`.

    Examples
    --------
    >>> lift_area([0, 0, 0, 1], [1, 2, 3, 4])
    0.875
    """
    positive, _ = checked_scores(y, scores, pos_label)
    share = positive.mean()
    return float(share / 2 + (1 - share) * roc_auc(positive, scores))


def checked_scores(
    y: ArrayLike, scores: ArrayLike, pos_label: Any, at_least: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are positive, and the scores as floats."""
    refuse_masked("y", y)
    y, scores = np.asarray(y), checked_numbers("scores", scores)
    if y.ndim != 1 or y.shape != scores.shape:
        raise InputError(
            f"y and scores: shapes {y.shape} and {scores.shape}, expected one score a label."
        )
    if np.isnan(scores).any():
        row = int(np.flatnonzero(np.isnan(scores))[0])
        raise InputError(f"scores: row {row} is NaN, and NaN has no rank. Drop or fill it.")
    if y.dtype.kind == "O":
        try:
            np.unique(y)
        except TypeError:
            raise InputError(
                "y: labels of several kinds, or none. Give texts or numbers."
            ) from None
    if y.dtype.kind == "f" and np.isnan(y).any():
        row = int(np.flatnonzero(np.isnan(y))[0])
        raise InputError(f"y: row {row} is NaN, which is no label. Drop or fill it.")
    if pos_label is not None:
        classes = np.unique(y).tolist()
        if len(classes) > 2:
            raise InputError(f"y: {len(classes)} classes; AUC compares exactly two.")
        if not any(equal_to(pos_label, classes)):
            raise InputError(f"pos_label: {pos_label!r} is none of the labels {classes}.")
        positive = np.asarray(y == pos_label, dtype=bool)
    elif y.dtype == bool:
        positive = y
    elif y.size and y.dtype.kind in "iuf":
        positive = y == y.max()  # no sort, unlike np.unique: this is the fast path
        if not (positive | (y == y.min())).all():
            raise InputError("y: more than two classes; AUC compares exactly two.")
    else:
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size > 2:
            raise InputError(f"y: {classes.size} classes; AUC compares exactly two.")
        positive = codes == 1
        if positive.size and positive.mean() > 0.5:
            rarer, common = (repr(label) for label in classes.tolist())
            warnings.warn(
                f"the positive class is {common}, the larger label and that of "
                f"{positive.mean():.1%} of the rows. Give pos_label={rarer}, or "
                f"pos_label={common} to keep this.",
                stacklevel=3,
            )
    n_positive = int(np.count_nonzero(positive))
    if min(n_positive, y.size - n_positive) < at_least:
        raise InputError(
            f"y: {n_positive} positive and {y.size - n_positive} negative rows, expected at "
            f"least {at_least} of each class (two different labels)."
        )
    return positive, scores


def equal_to(label: Any, classes: Iterable[Any]) -> list[bool]:
    """Say which classes a label is; none, where it is no label, such as pandas' NA."""
    try:
        return [bool(one == label) for one in classes]
    except (TypeError, ValueError):  # neither equal nor different, or an array
        return [False for _ in classes]


def found_down_to(positive: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positives found and rows read down to the end of each tie, from the highest score."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    last = np.r_[np.flatnonzero(falling[1:] != falling[:-1]), scores.size - 1]
    return np.cumsum(positive[order])[last], last + 1


@kernel
def _count_below(sorted_a, sorted_b):
    """Sum, and sum of squares, of twice the number of b below each a (a tie counts one)."""
    below, upto, total, squares = 0, 0, 0, 0.0
    n = sorted_b.size
    for value in sorted_a:
        while below < n and sorted_b[below] < value:
            below += 1
        upto = max(upto, below)
        while upto < n and sorted_b[upto] == value:
            upto += 1
        twice = below + upto
        total += twice
        squares += float(twice) * twice
    return total, squares


@kernel
def _weighted_wins(scores, positive, weight):
    """Total weight product of pairs ranked right, ties half; scores ascending."""
    wins, below, start = 0.0, 0.0, 0
    while start < scores.size:
        high, low, stop = 0.0, 0.0, start
        while stop < scores.size and scores[stop] == scores[start]:
            if positive[stop]:
                high += weight[stop]
            else:
                low += weight[stop]
            stop += 1
        wins += high * (below + low / 2)
        below += low
        start = stop
    return wins


def _placements(high: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Twice the number of negatives below each positive, and of positives below each negative."""

    def below(values: np.ndarray, others: np.ndarray) -> np.ndarray:
        others = np.sort(others)
        return np.searchsorted(others, values) + np.searchsorted(others, values, side="right")

    return below(high, low), below(low, high)
