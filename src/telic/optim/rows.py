"""Rows of a dense or a sparse matrix behind one set of kernels, so that a solver is written once.

Kernels compile for what they are given: a C-ordered array of shape (n, d), or `SparseRows`.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

FAST = {"reassoc", "contract"}
"""Floating-point freedom given to kernels: sums may be reordered, NaN and infinity stay right."""


class SparseRows(NamedTuple):
    """Rows one after the other: entry p of row i, for p from ``indptr[i]`` to ``indptr[i + 1]``."""

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray


Rows = np.ndarray | SparseRows


def sparse_rows(matrix: Any) -> SparseRows:
    """Return a SciPy CSR matrix, or a CSC matrix by columns, as kernels take it; data stay."""
    # Unsigned positions spare the kernels the test for a negative index.
    indices = matrix.indices.astype(np.int32, copy=False).view(np.uint32)
    indptr = matrix.indptr.astype(np.int64, copy=False)
    return SparseRows(np.ascontiguousarray(matrix.data), indices, indptr)


def entries(rows: Rows, i: int) -> tuple[int, int]:
    """Range of the entries of row i (inside kernels)."""
    raise NotImplementedError("entries is called from compiled kernels only")


def entry(rows: Rows, i: int, p: int) -> tuple[int, float]:
    """Column and value of entry p of row i (inside kernels)."""
    raise NotImplementedError("entry is called from compiled kernels only")


def entries_within(rows: Rows, i: int, low: int, high: int) -> tuple[int, int]:
    """Range of the entries of row i in the columns low to high (inside kernels)."""
    raise NotImplementedError("entries_within is called from compiled kernels only")


def entries_before(rows: Rows, i: int) -> int:
    """Number of entries before row i (inside kernels)."""
    raise NotImplementedError("entries_before is called from compiled kernels only")


def row_dot(rows: Rows, i: int, w: np.ndarray) -> float:
    """Inner product of row i with w (inside kernels)."""
    raise NotImplementedError("row_dot is called from compiled kernels only")


def row_add(rows: Rows, i: int, scale: float, out: np.ndarray) -> None:
    """Add scale times row i to out (inside kernels)."""
    raise NotImplementedError("row_add is called from compiled kernels only")


def rows_dot(rows: Rows, which: Any, begin: int, end: int, step: int, w: Any, out: Any) -> None:
    """Write inner products of rows with w (inside kernels).

    Place r of out, from begin to end by step, is of row r, or of row ``which[r]`` if that is given.
    """
    raise NotImplementedError("rows_dot is called from compiled kernels only")


def rows_add(rows: Rows, begin: int, end: int, scales: np.ndarray, out: np.ndarray) -> None:
    """Add the rows from begin to end, each times its scale, to out (inside kernels)."""
    raise NotImplementedError("rows_add is called from compiled kernels only")


@overload(entries, inline="always")
def _entries(rows, i):
    if isinstance(rows, types.Array):
        return lambda rows, i: (0, rows.shape[1])
    return lambda rows, i: (rows.indptr[i], rows.indptr[i + 1])


@overload(entry, inline="always")
def _entry(rows, i, p):
    if isinstance(rows, types.Array):
        return lambda rows, i, p: (p, rows[i, p])
    return lambda rows, i, p: (rows.indices[p], rows.data[p])


@overload(entries_within)
def _entries_within(rows, i, low, high):
    if isinstance(rows, types.Array):
        return lambda rows, i, low, high: (low, high)

    def within(rows, i, low, high):
        start, end = entries(rows, i)
        columns = rows.indices[start:end]
        return start + np.searchsorted(columns, low), start + np.searchsorted(columns, high)

    return within


@overload(entries_before)
def _entries_before(rows, i):
    if isinstance(rows, types.Array):
        return lambda rows, i: i * rows.shape[1]
    return lambda rows, i: rows.indptr[i]


@register_jitable
def _dot(rows, i, w):
    total = 0.0
    start, end = entries(rows, i)
    for p in range(start, end):
        k, x = entry(rows, i, p)
        total += x * w[k]
    return total


@overload(row_dot, jit_options={"fastmath": FAST})
def _dense_dot(rows, i, w):
    return _dot if isinstance(rows, types.Array) else None


@overload(row_dot)
def _sparse_dot(rows, i, w):
    """In order: a sum that may be reordered is compiled to gathers, which take twice the time.

    Nor are products added in one instruction (FMA): that lengthens the chain of additions.
    """
    return None if isinstance(rows, types.Array) else _dot


@overload(rows_dot, jit_options={"fastmath": FAST})
def _dense_dots(rows, which, begin, end, step, w, out):
    def dots(rows, which, begin, end, step, w, out):
        for r in range(begin, end, step):
            out[r] = row_dot(rows, r if which is None else which[r], w)

    return dots if isinstance(rows, types.Array) else None


# A call for each sparse row would cost a half of what the row does: the loops below make none.
@overload(rows_dot)
def _sparse_dots(rows, which, begin, end, step, w, out):
    def dots(rows, which, begin, end, step, w, out):
        for r in range(begin, end, step):
            i = r if which is None else which[r]
            total = 0.0
            start, end_of_row = entries(rows, i)
            for p in range(start, end_of_row):
                k, x = entry(rows, i, p)
                total += x * w[k]
            out[r] = total

    return None if isinstance(rows, types.Array) else dots


@overload(row_add, jit_options={"fastmath": FAST})
def _row_add(rows, i, scale, out):
    def add(rows, i, scale, out):
        start, end = entries(rows, i)
        for p in range(start, end):
            k, x = entry(rows, i, p)
            out[k] += scale * x

    return add


@overload(rows_add, jit_options={"fastmath": FAST})
def _rows_add(rows, begin, end, scales, out):
    def add_each(rows, begin, end, scales, out):
        for i in range(begin, end):
            scale = scales[i]
            if scale != 0.0:
                start, end_of_row = entries(rows, i)
                for p in range(start, end_of_row):
                    k, x = entry(rows, i, p)
                    out[k] += scale * x

    def add_by_four(rows, begin, end, scales, out):
        i = begin
        while i + 4 <= end:  # out is read and written once for four rows
            w, x, y, z = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
            a, b, c, d = scales[i], scales[i + 1], scales[i + 2], scales[i + 3]
            if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                for k in range(out.size):
                    out[k] += a * w[k] + b * x[k] + c * y[k] + d * z[k]
            i += 4
        add_each(rows, i, end, scales, out)

    if not isinstance(rows, types.Array):
        return add_each
    add_each = register_jitable(add_each)
    return add_by_four


@register_jitable
def row_square(rows, i):
    """Squared norm of row i (inside kernels)."""
    total = 0.0
    start, end = entries(rows, i)
    for p in range(start, end):
        _, x = entry(rows, i, p)
        total += float(x) * float(x)
    return total
