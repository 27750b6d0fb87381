"""Bootstrap intervals for any measure of scores, by resampling the rows of each class."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from telic.errors import expect_whole
from telic.evaluate.average_precision import precision_at
from telic.evaluate.checked_numbers import checked_level
from telic.evaluate.classification import checked_scores, partial_auc
from telic.evaluate.paired import interval_of_equals
from telic.evaluate.wilson import wilson_interval

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
    rows: int | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    pos_label: Any = None,
) -> Interval:
    """Interval of a measure, or of a difference, by resampling each class's rows.

    Its ends are percentiles. Of a measure alone they are no nearer than those of Wilson's interval
    for as many rows as decide it, on the scale from the worst ranking to the best: few rows, or a
    ranking that errs in few, resample to hardly anything else. A difference that is the same in
    every resample has `telic.evaluate.paired.interval_of_equals`.

    Parameters
    ----------
    measure : callable
        ``measure(positive, scores)``; `functools.partial` fixes its other arguments.
    y, scores : arrays of shape (n,)
        As for `telic.evaluate.classification.roc_auc`, and `pos_label` too.
    others : array of shape (n,), optional
        Scores of a rival on the same rows: then the difference, `scores` minus `others`, on the
        same resampled rows.
    rows : int, optional
        How many rows decide the measure, such as ten if it looks at the first ten. By default
        those of the smaller class; of a `functools.partial` of `precision_at` or `partial_auc` at
        most its k, or its part of either class.
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
    expect_whole(1, resamples=resamples, rows=1 if rows is None else rows)
    positive, scores = checked_scores(y, scores, pos_label)
    lists = [scores]
    if others is not None:
        lists.append(checked_scores(positive, others, None)[1])

    def gain(of: np.ndarray | slice) -> float:
        first, *rest = (measure(positive[of], one[of]) for one in lists)
        return first - sum(rest)

    rng = np.random.default_rng(seed)
    classes = np.flatnonzero(positive), np.flatnonzero(~positive)
    drawn = [
        gain(np.concatenate([rng.choice(part, part.size) for part in classes]))
        for _ in range(resamples)
    ]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    value = gain(slice(None))
    fewest = _deciding(measure, *(part.size for part in classes)) if rows is None else rows
    perfect = np.argsort(np.argsort(positive, kind="stable")).astype(float)  # without ties
    worst, best = measure(positive, -perfect), measure(positive, perfect)
    ends: tuple[float, ...] = low, high
    if others is None and best > worst:
        share = min(max((value - worst) / (best - worst), 0.0), 1.0)
        ends = tuple(
            worst + (best - worst) * end for end in wilson_interval(share, fewest, level=level)
        )
    elif others is not None and high - low <= 1e-12:
        ends = interval_of_equals(value, fewest, (worst - best, best - worst), level=level)
    return Interval(value, float(min(low, ends[0])), float(max(high, ends[1])))


def _deciding(measure: Measure, positives: int, negatives: int) -> int:
    """Return how many rows decide a measure: see `resampled`."""
    fewest = min(positives, negatives)
    function, given = measure, dict[str, Any]()
    if isinstance(measure, partial):
        function, given = measure.func, measure.keywords
    if function is precision_at and "k" in given:
        return min(fewest, int(given["k"]))
    if function is partial_auc:
        first, last = given.get("fpr", (0.0, 0.1))
        some = (1 - given.get("min_tpr", 0.0)) * positives
        return max(1, int(min(some, (last - first) * negatives)))
    return fewest
