"""Xᵀ D X, the curvature of the loss in the features, of all rows or of a sample of them."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from scipy import sparse

from telic.kernels import kernel
from telic.optim.design import Design
from telic.optim.methods.prox_newton_gram import ROUNDING, mirror, weighted_lines
from telic.optim.problem import Problem
from telic.optim.rows import SparseRows, entries, entry
from telic.optim.threads import small_products

_CHUNK = 1024
"""Rows whose weighted copy stays in the processor's cache."""
_SERIAL = 250_000
"""Multiplications below which BLAS starts no threads, and need not be kept from it."""


def weighted_gram(
    problem: Problem, weights: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, float]:
    """Write Xᵀ diag(weights) X into out, centred where there is an intercept.

    Returns the weighted means that were taken off, or zeros, and the sum of the weights.
    """
    d = problem.design.d
    sums = np.zeros(d)
    out[:] = 0.0
    # One curvature for all rows, as that of squared loss: no weighted copy is needed.
    share = float(weights[0]) if problem.loss.code == 0 and problem.mass.size == 1 else None
    matrix = problem.design.matrix
    if problem.design.is_sparse:
        if problem.threads == 1:
            _add_sparse(problem.design.rows, weights, out)
        else:
            weighted_lines(problem, weights, np.arange(d, dtype=np.int32), 0, out)
        mirror(out, 0)
        if problem.fit_intercept:
            sums = problem.back(weights)
    else:
        serial = weights.size * d * d <= _SERIAL
        with nullcontext() if serial else small_products(d):
            if share is not None and matrix.dtype == np.float64:
                np.multiply(matrix.T @ matrix, share, out=out)
                sums = problem.back(weights) if problem.fit_intercept else sums
            else:
                _add_chunks(matrix, weights, out, sums)
    if not problem.fit_intercept:
        return np.zeros(d), 1.0
    total = float(weights.sum())
    means = sums / total
    squares = out.diagonal().copy()
    out -= np.outer(sums, means)
    # What centring leaves of a constant feature is rounding: the intercept does its work.
    constant = out.diagonal() <= ROUNDING * squares
    if constant.any():
        out[constant] = 0.0
        out[:, constant] = 0.0
    return means, total


def weighted_diagonal(
    problem: Problem, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the diagonal of what `weighted_gram` writes for dense rows, and what that returns."""
    matrix, d = problem.design.matrix, problem.design.d
    squares, sums = np.zeros(d), np.zeros(d)
    with small_products(d):
        for begin in range(0, weights.size, _CHUNK):
            chunk = matrix[begin : begin + _CHUNK].astype(np.float64, copy=False)
            some = weights[begin : begin + _CHUNK]
            squares += some @ (chunk * chunk)
            sums += some @ chunk
    if not problem.fit_intercept:
        return squares, np.zeros(d), 1.0
    total = float(weights.sum())
    left = squares - sums * sums / total
    return np.where(left > ROUNDING * squares, left, 0.0), sums / total, total


def _add_chunks(matrix: np.ndarray, weights: np.ndarray, out: np.ndarray, sums: np.ndarray) -> None:
    """Add the weighted outer products of the rows to out, and the weighted rows to sums."""
    roots = np.sqrt(weights)
    for begin in range(0, weights.size, _CHUNK):
        some = roots[begin : begin + _CHUNK]
        chunk = matrix[begin : begin + _CHUNK] * some[:, None]
        # A matrix times its own transpose is half the work of a product of two.
        out += chunk.T @ chunk
        sums += some @ chunk


@kernel
def _add_sparse(rows, weights, out):
    """Add the weighted outer products of sparse rows to out, on and below the diagonal."""
    for i in range(weights.size):
        start, end = entries(rows, i)
        for p in range(start, end):
            k, x = entry(rows, i, p)
            weighted, line = weights[i] * x, out[k]
            # Columns of a row are in order.
            for q in range(start, p + 1):
                j, value = entry(rows, i, q)
                line[j] += weighted * value


def sampled(problem: Problem, rows: int) -> tuple[Problem, slice]:
    """Return the problem on about so many rows, evenly spread, and which; itself if that is all."""
    step = problem.design.n // rows
    if step <= 1:
        return problem, slice(None)
    some = slice(None, None, step)
    mass = np.array([1.0 / len(range(0, problem.design.n, step))])
    if problem.mass.size > 1:
        mass = problem.mass[some]
        # Rows that carry no weight would say nothing.
        if not mass.sum() > 0.0:
            return problem, slice(None)
        mass = mass * (problem.mass.sum() / mass.sum())
    design = Design(_every(problem.design, step))
    offset = None if problem.offset is None else problem.offset[some]
    return replace(problem, design=design, y=problem.y[some].copy(), mass=mass, offset=offset), some


def _every(design: Design, step: int) -> "np.ndarray | sparse.csr_matrix":
    """Every so manieth row of the matrix; dense ones are not copied."""
    rows = design.rows
    if not isinstance(rows, SparseRows):
        return rows[::step]
    starts, lengths = rows.indptr[:-1:step], np.diff(rows.indptr)[::step]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    places = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
    parts = rows.data[places], rows.indices[places].view(np.int32), indptr
    return sparse.csr_matrix(parts, shape=(lengths.size, design.d))
