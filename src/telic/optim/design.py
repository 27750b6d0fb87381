"""The data matrix, checked, as kernels see it: by rows, and on demand by columns."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.rows import Rows, sparse_rows

LARGEST = 1e100
"""Largest absolute value accepted: its square, summed over rows, must stay finite."""
_SPREAD = 0.01
"""A column whose values differ by less than that share of them is far from zero."""
_HEAD = 64
"""Rows that tell most columns not to be."""


@dataclass
class Design:
    """A checked data matrix: float32 or float64, dense or sparse, by rows and by columns.

    Parameters
    ----------
    matrix : array or scipy.sparse matrix, shape (n, d)
        As returned by `as_design`: finite, sorted, without duplicates.
    """

    matrix: Any

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.matrix.shape[0]

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.matrix.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is stored sparse."""
        return sparse.issparse(self.matrix)

    @property
    def stored(self) -> int:
        """Number of stored entries."""
        return self.matrix.nnz if self.is_sparse else self.matrix.size

    @cached_property
    def rows(self) -> Rows:
        """The matrix by rows; a copy only if it came by columns."""
        return _lines(self.matrix)

    @cached_property
    def columns(self) -> Rows:
        """The matrix by columns; a copy only if it came by rows."""
        return _lines(self.matrix.T)

    @property
    def stored_by_column(self) -> np.ndarray:
        """Number of values held of each column."""
        columns = self.columns
        if isinstance(columns, np.ndarray):
            return np.full(self.d, self.n)
        return np.diff(columns.indptr)

    @cached_property
    def near(self) -> "tuple[Design, np.ndarray, np.ndarray]":
        """The design with its far columns moved to zero, which columns, and what was taken off.

        Itself, without a copy, where there are none. The differences are exact: all values of such
        a column lie within a factor of two.
        """
        columns = self._filled()
        if columns.size:
            columns = _far(columns, self.matrix[:_HEAD][:, columns])
        if columns.size and self.n > _HEAD:
            columns = _far(columns, self.matrix[:, columns])
        if not columns.size:
            return self, columns, np.empty(0)
        low, high = _extremes(self.matrix[:, columns])
        centres = low + (high - low) / 2
        return Design(_moved(self.matrix, columns, centres)), columns, centres

    def _filled(self) -> np.ndarray:
        """Columns that may hold a value in every row of the head: others hold zeros."""
        if not self.is_sparse:
            return np.arange(self.d)
        if self.matrix.format == "csc":
            return np.flatnonzero(np.diff(self.matrix.indptr) == self.n)
        head = min(_HEAD, self.n)
        held = self.matrix.indices[: self.matrix.indptr[head]]
        return np.flatnonzero(np.bincount(held, minlength=self.d) == head)


def as_design(X: Any) -> Design:
    """Check a data matrix and wrap it; nothing is copied unless it must be repaired.

    Parameters
    ----------
    X : array-like or scipy.sparse matrix, shape (n, d)
        float32 is kept; every other type becomes float64. Duplicated entries of a sparse matrix
        are summed and unsorted ones sorted, in a copy.

    Raises
    ------
    InputError
        If X is not two-dimensional, is empty or beyond 2³¹ − 1 rows or features, is masked, or
        holds NaN, infinite or enormous values.
    """
    if isinstance(X, Design):
        return X
    refuse_masked("X", X)
    if max(getattr(X, "shape", (0,)), default=0) > np.iinfo(np.int32).max:
        raise InputError(f"X has shape {X.shape}: at most 2147483647 rows and features.")
    if not sparse.issparse(X):
        try:
            X = np.asarray(X)
        except ValueError as error:
            raise InputError(f"X cannot be read as a table of numbers: {error}.") from None
    if X.ndim != 2:
        raise InputError(
            f"X has {X.ndim} dimension(s), expected 2: (rows, features). Reshape your data."
        )
    matrix = values = X
    if sparse.issparse(X):
        matrix = X if X.format in ("csr", "csc") else X.tocsr()
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        values = matrix.data
    if 0 in matrix.shape:
        raise InputError(
            f"X has shape {matrix.shape}: at least one row and one feature are needed."
        )
    if np.iscomplexobj(values):
        raise InputError(
            "X holds complex values, expected real numbers. Complex data not supported."
        )
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    try:
        matrix = matrix.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"X cannot be read as numbers: {error}.") from None
    check_values(matrix)
    return Design(matrix)


def _lines(matrix: Any) -> Rows:
    """Return the rows of a matrix, or of a transposed one its columns, as kernels take them."""
    if sparse.issparse(matrix):
        return sparse_rows(matrix.tocsr())
    return np.ascontiguousarray(matrix)


def _far(columns: np.ndarray, values: Any) -> np.ndarray:
    """Those of some columns that are far from zero in the values; zeros not stored are near."""
    low, high = _extremes(values)
    return columns[high - low < _SPREAD * np.maximum(-low, high)]


def _extremes(matrix: Any) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest value of each column."""
    if sparse.issparse(matrix):
        return matrix.min(axis=0).toarray().ravel(), matrix.max(axis=0).toarray().ravel()
    return matrix.min(axis=0), matrix.max(axis=0)


def _moved(matrix: Any, columns: np.ndarray, centres: np.ndarray) -> Any:
    """Return a copy of the matrix with the centres taken off full columns."""
    if not sparse.issparse(matrix):
        moved = matrix.copy(order="K")
        moved[:, columns] -= centres
        return moved
    off = np.zeros(matrix.shape[1], matrix.dtype)
    off[columns] = centres
    by_row = matrix.format == "csr"
    by_entry = off[matrix.indices] if by_row else np.repeat(off, np.diff(matrix.indptr))
    return type(matrix)((matrix.data - by_entry, matrix.indices, matrix.indptr), shape=matrix.shape)


def check_values(matrix: Any) -> None:
    """Refuse NaN, infinite and enormous values of a dense or sparse matrix, and say where."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    # The extremes are NaN or infinite as soon as one value is: no copy, no mask.
    low, high = (values.min(), values.max()) if values.size else (0.0, 0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError(f"X contains NaN or infinity at {_first_bad(matrix)}. Impute or drop it.")
    if max(-float(low), float(high)) > LARGEST:
        raise InputError(
            f"X has an absolute value above {LARGEST:g}, too large to square. Scale the features."
        )


def _first_bad(matrix: Any) -> str:
    if sparse.issparse(matrix):
        entries = matrix.tocoo()
        at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
        return f"row {int(entries.row[at])}, column {int(entries.col[at])}"
    row, column = np.argwhere(~np.isfinite(matrix))[0]
    return f"row {int(row)}, column {int(column)}"
