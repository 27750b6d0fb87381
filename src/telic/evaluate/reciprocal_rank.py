"""Ranking accuracy: reciprocal ranks, MRR and SR@k [Zhang2017] (2.4.1)."""

import numpy as np


def reciprocal_ranks(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return 1 / rank of the wanted candidate in every row.

    Candidates are ranked by score, highest first; equal scores keep the order of the columns. A
    wanted candidate that is not there, or whose score is ``-inf`` (dropped from the list), counts
    0: [Zhang2017] is silent about it, and a query that is not suggested helps nobody.

    Parameters
    ----------
    scores : float array of shape (T, N)
    wanted : int array of shape (T,)
        Column of the wanted candidate; -1 if it is not among them.

    Returns
    -------
    float64 array of shape (T,)

    Examples
    --------
    >>> reciprocal_ranks(np.array([[3.0, 2.0, 2.0], [1.0, 0.0, 0.0]]), np.array([2, -1]))
    array([0.33333333, 0.        ])
    """
    column = np.maximum(wanted, 0)[:, None]
    own = np.take_along_axis(scores, column, axis=1)
    before = np.arange(scores.shape[1]) < column
    rank = 1 + (scores > own).sum(axis=1) + ((scores == own) & before).sum(axis=1)
    return np.where((wanted >= 0) & (own[:, 0] > -np.inf), 1.0 / rank, 0.0)


def ranks_of(reciprocal: np.ndarray) -> np.ndarray:
    """Return ranks in the fewest bytes, 0 where the reciprocal rank is 0.

    Examples
    --------
    >>> reciprocal_of(ranks_of(np.array([0.5, 0.0, 1 / 3])))
    array([0.5       , 0.        , 0.33333333])
    """
    ranks = np.rint(1 / np.where(reciprocal > 0, reciprocal, np.inf)).astype(np.int64)
    return ranks.astype(np.min_scalar_type(int(ranks.max(initial=0))))


def reciprocal_of(ranks: np.ndarray) -> np.ndarray:
    """Return reciprocal ranks, given what `ranks_of` returns, to the bit."""
    return np.divide(1.0, ranks, out=np.zeros(len(ranks)), where=ranks > 0)


def mean_reciprocal_rank(reciprocal: np.ndarray) -> float:
    """Return the mean of reciprocal ranks."""
    return float(np.mean(reciprocal))


def success_rate(reciprocal: np.ndarray, k: int) -> float:
    """Return SR@k: the share of reciprocal ranks that belong to one of the first k ranks."""
    return float(np.mean(reciprocal > 1.0 / (k + 0.5)))
