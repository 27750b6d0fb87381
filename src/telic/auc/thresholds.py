"""Where to cut a ranking in two: by prior, Youden's index, costs, or a number to read."""

from numbers import Real

import numpy as np

from telic.errors import InputError

Rule = str | tuple[str, float]
NUMBERED = ("cost", "top_k")
RULES = ("prior", "youden", *NUMBERED)
TIED = 1e-12
"""Scores that differ by less, as a share of their size or of the median size, are equal but for
rounding: equal rows get such scores, by their place in a product."""

ROUNDED = 1e-14
"""Of all worth: cuts whose sums of worths differ by less are as good."""


def between_means(w: np.ndarray, means: np.ndarray) -> float:
    """Return the threshold of a stream, which keeps no list of scores, only the classes' means.

    It is halfway between the mean scores of the two classes.

    Parameters
    ----------
    w : array of shape (d,)
    means : array of shape (2, d)

    Examples
    --------
    >>> between_means(np.array([1.0, 2.0]), np.array([[0.0, 0.0], [2.0, 1.0]]))
    2.0
    """
    return float((means[0] @ w + means[1] @ w) / 2)


def check_rule(rule: Rule) -> None:
    """Raise InputError unless `choose_threshold` knows a rule; for before long work."""
    name, number = rule if isinstance(rule, tuple) and len(rule) == 2 else (rule, None)
    known = isinstance(name, str) and name in RULES
    if not known or (number is not None and name not in NUMBERED):
        raise InputError(
            f"threshold: {rule!r}, expected 'prior', 'youden', ('cost', c) or ('top_k', k)."
        )
    if number is not None and not (isinstance(number, Real) and 0 < number < np.inf):
        what = "the number of rows to call" if name == "top_k" else "the cost of a missed positive"
        raise InputError(f"threshold: {rule!r}, {what} must be a finite number > 0.")


def choose_threshold(
    scores: np.ndarray, positive: np.ndarray, rule: Rule, weight: np.ndarray | None = None
) -> float:
    """Return the score above which a row is called positive.

    Parameters
    ----------
    scores : array of shape (n,)
    positive : bool array of shape (n,)
    rule : str or (str, float)
        "prior" calls as many rows positive as there are; "youden" maximises true-positive minus
        false-positive rate; ("cost", c) minimises c·(missed positives) + (false alarms), c > 0;
        ("top_k", k) calls the k rows of highest score positive (k < 1 is a share), the rule for
        precision at k. "cost" alone is c = 1, "top_k" alone the prior.
    weight : array of shape (n,), optional
        A row of weight 2 counts as two.

    Returns
    -------
    float
        Halfway between two scores of the given rows, so that no given row lies on it unless all
        are equal. Rows of equal score fall on the same side; where "prior" or "top_k" would part
        them, they are not called, unless nothing else would be.

    Examples
    --------
    >>> scores, positive = np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    >>> choose_threshold(scores, positive, "prior"), choose_threshold(scores, positive, "cost")
    (2.5, 3.5)
    >>> choose_threshold(scores, positive, ("cost", 5))
    1.5
    """
    check_rule(rule)
    name, number = rule if isinstance(rule, tuple) else (rule, None)
    n, n_pos = float(scores.size), float(np.count_nonzero(positive))
    if weight is not None:
        n, n_pos = float(weight.sum()), float(weight[positive].sum())
    if name in ("prior", "top_k"):
        wanted = n_pos if number is None else float(number)
        share = number is not None and wanted < 1
        return _cut_below(wanted * n if share else wanted, scores, weight)
    if name == "youden":
        # The index times both classes: in whole numbers, cuts that are as good tie to the bit.
        gain, loss = n - n_pos, n_pos
    else:
        gain, loss = (1.0 if number is None else float(number)), 1.0
    worth = np.where(positive, gain, -loss)
    return _best_cut(scores, worth if weight is None else weight * worth)


def _cut_below(wanted: float, scores: np.ndarray, weight: np.ndarray | None) -> float:
    """Return a threshold above which rows of so much weight lie, or as many rows."""
    if weight is None:
        low, high = _call(scores, round(wanted))
    else:
        if (weight == np.floor(weight)).all():
            wanted = round(wanted)  # rows come whole
        low, high = _call_weighted(scores, weight, wanted)
    same = TIED * max(_usual(scores), abs(low), abs(high))
    if high - low <= same:
        low, high = _beside_tie(scores, (low - same, high + same))
    return _between(low, high)


def _best_cut(scores: np.ndarray, worth: np.ndarray) -> float:
    """Return the threshold above which the rows are worth most, together; of equals, the highest.

    It may lie above all rows or below all of them.
    """
    order = np.argsort(-scores)
    ranked = scores[order]
    total = np.concatenate([[0.0], np.cumsum(worth[order])])
    # A cut after the first k is possible where the score changes, and at both ends.
    same = TIED * np.maximum(_usual(scores), np.abs(ranked))
    allowed = np.concatenate([[True], ranked[1:] < ranked[:-1] - same[:-1], [True]])
    most = total[allowed].max() - ROUNDED * np.abs(worth).sum()
    best = int(np.argmax(allowed & (total >= most)))
    if best == 0:
        return float(np.nextafter(ranked[0] + 2 * same[0], np.inf))
    if best == scores.size:
        return float(np.nextafter(ranked[-1] - 2 * same[-1], -np.inf))
    return _between(ranked[best], ranked[best - 1])


def _usual(scores: np.ndarray) -> float:
    return float(np.median(np.abs(scores)))


def _call(scores: np.ndarray, wanted: int) -> tuple[float, float]:
    """Cut so that as many rows lie above; one at least on either side. It needs no sorting.

    Returns
    -------
    (float, float)
        The scores below and above the cut.
    """
    below = int(np.clip(scores.size - wanted, 1, scores.size - 1))
    low, high = np.partition(scores, (below - 1, below))[below - 1 : below + 1]
    return float(low), float(high)


def _call_weighted(scores: np.ndarray, weight: np.ndarray, wanted: float) -> tuple[float, float]:
    """As `_call`, so that rows of that much weight lie above."""
    order = np.argsort(scores)
    ranked, ends = scores[order], np.cumsum(weight[order])
    left = np.clip(ends[-1] - wanted, ends[0], ends[-2])
    # A sum of weights that rounding moved past the end of a row does not cut into that row.
    slack = 1e-9 * ends[-1]
    below = int(np.searchsorted(ends, left - slack))
    above = min(int(np.searchsorted(ends, left + slack, side="right")), ranked.size - 1)
    return float(ranked[below]), float(ranked[above])


def _beside_tie(scores: np.ndarray, tied: tuple[float, float]) -> tuple[float, float]:
    """Cut above the rows whose scores are tied; below them where no row is above."""
    lower, higher = scores < tied[0], scores > tied[1]
    if higher.any():
        return float(scores[~higher].max()), float(scores[higher].min())
    if lower.any():
        return float(scores[lower].max()), float(scores[~lower].min())
    return float(scores.min()), float(scores.max())


def _between(low: float, high: float) -> float:
    """A number with low <= number < high (when they differ)."""
    middle = low + (high - low) / 2
    return float(low if middle >= high else middle)
