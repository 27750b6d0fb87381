"""How widely the columns of a table are spread, for scaling them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

ROUNDING = 1e-12
"""A spread that is smaller, relative to the column's largest value, is rounding."""

AT_ONCE = 1 << 23
"""Numbers that are copied at a time."""


def standard_deviations(X: "np.ndarray | sparse.sparray | sparse.spmatrix") -> np.ndarray:
    """Return the standard deviation of each column, or 1 where a column is constant.

    A column is constant if it varies by no more than rounding: dividing by what is left of such a
    column would make huge features of nothing.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        With n = 0, every column counts as constant.

    Returns
    -------
    float64 array of shape (d,)

    Examples
    --------
    >>> standard_deviations(np.array([[0.1, 1e-20], [0.1, 3e-20], [0.1, 5e-20]])) / [1, 1e-20]
    array([1.        , 1.63299316])
    """
    n, d = X.shape
    if not n:
        return np.ones(d)
    if not isinstance(X, np.ndarray):
        columns = X.tocsc(copy=True)
        columns.sum_duplicates()
        stored = np.diff(columns.indptr)
        column = np.repeat(np.arange(d), stored)
        largest = np.zeros(d)
        np.maximum.at(largest, column, np.abs(columns.data))
        unit = _power_of_two(largest)
        values = columns.data / unit[column]
        mean = np.bincount(column, values, d) / n
        squares = np.bincount(column, (values - mean[column]) ** 2, d)
        spread = unit * np.sqrt((squares + (n - stored) * mean**2) / n)
    else:
        largest, spread = np.empty((2, d))
        at_once = max(8, AT_ONCE // n)
        for part in (slice(first, first + at_once) for first in range(0, d, at_once)):
            # The least of an integer type has no positive counterpart there.
            columns = X[:, part].astype(float) if X.dtype.kind == "i" else X[:, part]
            largest[part] = np.abs(columns).max(axis=0)
            unit = _power_of_two(largest[part])
            spread[part] = unit * (columns / unit).std(axis=0)
    return np.where(spread > ROUNDING * largest, spread, 1.0)


def deviations_of_blocks(blocks: Iterable[np.ndarray], d: int) -> np.ndarray:
    """Return what `standard_deviations` does of blocks of rows, one of which is held at a time.

    Of one block it is the same to the bit, of several to rounding.

    Parameters
    ----------
    blocks : iterable of arrays of shape (rows, d)
    d : int

    Examples
    --------
    >>> deviations_of_blocks([np.array([[1.0], [3.0]]), np.array([[5.0]])], 1)
    array([1.63299316])
    """
    # A first block of no rows, so that there is something to add up where no block has any.
    sizes, means, spreads = [0], [np.zeros(d)], [np.zeros(d)]
    largest = np.zeros(d)
    for rows in blocks:
        if len(rows):
            top = np.abs(rows).max(axis=0)
            unit = _power_of_two(top)
            means.append(unit * (rows / unit).mean(axis=0))
            spreads.append(unit * (rows / unit).std(axis=0))
            sizes.append(len(rows))
            largest = np.maximum(largest, top)
    share = np.array(sizes) / max(sum(sizes), 1)
    unit = _power_of_two(largest)
    mean, spread = np.array(means) / unit, np.array(spreads) / unit
    beside = mean - (share @ mean if len(sizes) > 2 else mean[-1])
    pooled = unit * np.sqrt(share @ (spread**2 + beside**2))
    return np.where(pooled > ROUNDING * largest, pooled, 1.0)


def _power_of_two(largest: np.ndarray) -> np.ndarray:
    """Return what to divide by so that squares neither vanish nor overflow, and nothing rounds."""
    return np.ldexp(1.0, np.frexp(largest)[1] - 1)
