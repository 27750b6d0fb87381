"""How good the top of a list is: average precision, and precision at k."""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from telic.errors import InputError
from telic.evaluate.classification import checked_scores, found_down_to


def average_precision(y: ArrayLike, scores: ArrayLike, *, pos_label: Any = None) -> float:
    """Mean, over the positives, of the precision of the list that ends with them.

    Rows of equal score stand in the list together. By chance it is the share of positives, which
    an AUC of 1/2 hides: where positives are rare, AUC speaks of the whole list and this of its top.

    Parameters
    ----------
    y, scores : arrays of shape (n,)
        As for `telic.evaluate.classification.roc_auc`, and `pos_label` too.

    Returns
    -------
    float
        In (0, 1].

    Examples
    --------
    >>> average_precision([1, 0, 1, 0], [4, 3, 2, 1]).__round__(4)
    0.8333
    """
    positive, scores = checked_scores(y, scores, pos_label)
    found, read = found_down_to(positive, scores)
    return float(np.diff(found, prepend=0) @ (found / read) / found[-1])


def precision_at(y: ArrayLike, scores: ArrayLike, k: int, *, pos_label: Any = None) -> float:
    """Share of positives among the k rows of highest score.

    Where the k-th score is shared, the rows that share it count by their mean: what a random order
    of them would give in the long run.

    Parameters
    ----------
    y, scores : arrays of shape (n,)
        As for `telic.evaluate.classification.roc_auc`, and `pos_label` too.
    k : int
        In 1 … n.

    Examples
    --------
    >>> precision_at([1, 0, 1, 0], [4, 3, 2, 1], 3).__round__(4)
    0.6667
    >>> precision_at([1, 0, 1, 0], [4, 2, 2, 1], 2)
    0.75
    """
    positive, scores = checked_scores(y, scores, pos_label)
    if not isinstance(k, Real) or not (1 <= k <= scores.size and k == int(k)):
        raise InputError(f"k: {k!r}, expected a whole number of rows in 1 … {scores.size}.")
    found, read = found_down_to(positive, scores)
    # Straight between the ends of ties.
    return float(np.interp(k, np.r_[0, read], np.r_[0, found]) / k)
