"""Bootstrap intervals for any measure of scores, by resampling the rows of each class."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from telic.errors import expect_whole
from telic.evaluate.checked_numbers import checked_level
from telic.evaluate.classification import checked_scores

Measure = Callable[[np.ndarray, np.ndarray], float]
"""Of which rows are positive, and their scores: `roc_auc`, `average_precision`, a `partial`."""


class Interval(NamedTuple):
    """A measure on the rows at hand, and between what rows like them would have it."""

    value: float
    low: float
    high: float


def resampled(
    measure: Measure,
    y: ArrayLike,
    scores: ArrayLike,
    others: ArrayLike | None = None,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Interval:
    """Interval of a measure, or of a difference, by resampling each class's rows (percentiles).

    Parameters
    ----------
    measure : callable
        ``measure(positive, scores)``; `functools.partial` fixes its other arguments.
    y, scores : arrays of shape (n,)
        As for `telic.evaluate.classification.roc_auc`, and `pos_label` too.
    others : array of shape (n,), optional
        Scores of a rival on the same rows: then the difference, `scores` minus `others`, on the
        same resampled rows.
    level : float, default 0.95
        Confidence, in (0, 1).
    resamples : int, default 1000
    seed : int
        Random seed.

    Returns
    -------
    Interval
        A difference is sure at that level where the interval leaves 0 out. The rows alone are
        resampled, with the shares of the classes as they are: what another training set would
        change is not in it.

    Examples
    --------
    >>> from telic.evaluate.average_precision import average_precision
    >>> y, scores = [0] * 50 + [1] * 50, [*range(50), *range(25, 75)]
    >>> interval = resampled(average_precision, y, scores)
    >>> interval.low < interval.value < interval.high
    True
    """
    checked_level(level)
    expect_whole(1, resamples=resamples)
    positive, scores = checked_scores(y, scores, pos_label)
    lists = [scores]
    if others is not None:
        lists.append(checked_scores(positive, others, None)[1])

    def gain(rows: np.ndarray | slice) -> float:
        first, *rest = (measure(positive[rows], one[rows]) for one in lists)
        return first - sum(rest)

    rng = np.random.default_rng(seed)
    classes = np.flatnonzero(positive), np.flatnonzero(~positive)
    drawn = [
        gain(np.concatenate([rng.choice(rows, rows.size) for rows in classes]))
        for _ in range(resamples)
    ]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(gain(slice(None)), float(low), float(high))
