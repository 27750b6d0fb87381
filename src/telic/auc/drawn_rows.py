"""What AUC's kernels read: rows in double precision, drawn by weight, asked for ahead of time."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from scipy import sparse

from telic.optim.rows import FAST, Rows, entries, entry, row_add, sparse_rows

Matrix = Any
"""A dense array or a SciPy sparse matrix of shape (n, d)."""

TINY = 1e-60
"""Kernels that keep w as s·v multiply it out when s falls to this, before 1/s overflows."""


def as_rows(X: Matrix) -> Rows:
    """Return what the kernels take: a C-ordered float array, or `SparseRows`.

    Types are fixed (float64, int32, int64, writeable), so that each kernel compiles twice at most.
    """
    if not sparse.issparse(X):
        return np.require(X, dtype=np.float64, requirements=["C", "A", "W"])
    rows = sparse_rows(sparse.csr_matrix(X))
    return rows._replace(data=np.require(rows.data, np.float64, ["C", "A", "W"]))


SMALL = 1000
"""Up to so many rows the order in which they were given does not touch what is drawn."""
MOST_COPIES = 100
"""A pass reads at most so many times as many rows as there are, however large their weights."""


def _keys(X: Matrix) -> np.ndarray:
    """A number for each row that only its content decides, and that follows nothing in it."""
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) | 1
    if not sparse.issparse(X):
        return ((X + 0.0).view(np.uint64) * factors).sum(axis=1)
    X = sparse.coo_array(X, copy=True)
    X.sum_duplicates()
    keys = np.zeros(X.shape[0], dtype=np.uint64)
    np.add.at(keys, X.coords[0], (X.data + 0.0).view(np.uint64) * factors[X.coords[1]])
    return keys


class Draws:
    """Which rows the methods that take a row a step read.

    A row of weight 2 is read as two rows: `reading` lists rows with their repetitions. Weights
    that are no whole numbers are rounded so that every stretch of rows has its due. Few rows are
    listed in an order of their own, so that on small data, where one row matters, neither their
    order nor repeating them in place of weighing them changes what a seed gives.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    weight : array of shape (n,), optional
        Weights > 0.
    """

    def __init__(self, X: Matrix, weight: np.ndarray | None = None) -> None:
        n = X.shape[0]
        self.total = n
        """Rows read in a pass."""
        self.reading: np.ndarray | None = None
        if weight is not None:
            self.total = int(np.clip(round(float(weight.sum())), n, MOST_COPIES * n))
        if self.total <= SMALL:
            self.reading = np.argsort(_keys(X))
        if weight is not None:
            order = np.arange(n) if self.reading is None else self.reading
            ends = np.cumsum(weight[order])
            middles = (np.arange(self.total) + 0.5) * (ends[-1] / self.total)
            self.reading = order[np.minimum(np.searchsorted(ends, middles), n - 1)]

    def independent(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> np.ndarray:
        """Draw rows with replacement, in proportion to their weights."""
        drawn = rng.integers(self.total, size=size)
        return drawn if self.reading is None else self.reading[drawn]

    def shuffled(self, rng: np.random.Generator) -> np.ndarray:
        """Return every row in random order, as often as its weight says."""
        order = rng.permutation(self.total)
        return order if self.reading is None else self.reading[order]


def row_collect(
    rows: Rows,
    i: int,
    scale: float,
    total: np.ndarray,
    marked: np.ndarray,
    touched: np.ndarray,
    columns: int,
) -> int:
    """Add scale times row i to total and list the columns touched so far (inside kernels).

    `touched` begins as 0, 1, …, d − 1; its first `columns` entries are the list, `marked` tells
    which columns are in it, and the new length is returned. Dense rows touch every column.
    """
    raise NotImplementedError("row_collect is called from compiled kernels only")


@overload(row_collect, jit_options={"fastmath": FAST})
def _row_collect(rows, i, scale, total, marked, touched, columns):
    if isinstance(rows, types.Array):

        def dense(rows, i, scale, total, marked, touched, columns):
            row_add(rows, i, scale, total)
            return total.size

        return dense

    def csr(rows, i, scale, total, marked, touched, columns):
        start, end = entries(rows, i)
        for p in range(start, end):
            j, x = entry(rows, i, p)
            total[j] += scale * x
            if not marked[j]:
                marked[j] = True
                touched[columns] = j
                columns += 1
        return columns

    return csr


AHEAD = 8
"""Steps between asking for a random row and using it; 4 to 32 were equally fast."""


@intrinsic
def _prefetch(typing_context, array, position):
    """Ask for the cache line of array.flat[position]; rows drawn at random wait on memory most."""

    def codegen(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte_pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), byte_pointer)
        # For reading, to be kept in every level of cache, data rather than code.
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


prefetch: Any = _prefetch  # in a kernel it takes (array, position) alone


def row_prefetch(rows: Rows, i: int) -> None:
    """Ask for row i ahead of time (inside kernels)."""
    raise NotImplementedError("row_prefetch is called from compiled kernels only")


@overload(row_prefetch)
def _row_prefetch(rows, i):
    if isinstance(rows, types.Array):

        def dense(rows, i):
            for j in range(0, rows.shape[1], 8):  # eight numbers a cache line
                prefetch(rows, i * rows.shape[1] + j)

        return dense

    def csr(rows, i):
        for k in range(rows.indptr[i], rows.indptr[i + 1], 8):
            prefetch(rows.data, k)
            prefetch(rows.indices, k)

    return csr
