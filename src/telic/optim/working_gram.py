"""The weighted Gram matrix of the features in use: formed once, then extended as they grow."""

import numpy as np
from numba import njit

from telic.optim.kernels import some_products
from telic.optim.problem import Problem
from telic.optim.threads import share

LARGEST_SET = 4096
"""Features whose Gram matrix is kept at most."""
_CHUNK = 1024
"""Rows of one dense product."""


class WorkingGram:
    """Xᵀ diag(weights) X of the features in use, centred where there is an intercept.

    Centring eliminates the intercept: its best move is −(slope_b / Σ weights + means · move).
    The matrix never takes more numbers than the data do.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.features = np.empty(0, np.int64)
        self.matrix, self.means = np.empty((0, 0)), np.empty(0)
        self.weights = np.empty(0)
        self.limit = min(LARGEST_SET, max(64, int(problem.design.stored**0.5)))
        self.inside = np.zeros(problem.design.d, np.bool_)

    def restart(self, weights: np.ndarray, features: np.ndarray) -> None:
        """Take other weights of the rows and other features."""
        self.weights = weights
        self.features = np.empty(0, np.int64)
        self.matrix, self.means = np.empty((0, 0)), np.empty(0)
        self.inside[:] = False
        self.extend(features)

    def extend(self, new: np.ndarray) -> None:
        """Add features to the matrix."""
        problem, weights = self.problem, self.weights
        known, size = self.features.size, self.features.size + new.size
        self.features = np.concatenate([self.features, np.sort(new)])
        self.inside[new] = True
        place = np.full(problem.design.d, -1, np.int32)
        place[self.features] = np.arange(size)
        matrix = np.zeros((size, size))
        A, columns = problem.design.rows, problem.design.columns
        stored = np.diff(columns.indptr)[self.features] / problem.design.n
        # A product of two sparse rows costs about 25 times the flop of a dense one.
        if 25.0 * stored[known:].sum() * stored.sum() < (size - known) * size:
            share(add_lines, problem.threads, A, weights, place, known, matrix)
        else:
            chunk = np.empty((_CHUNK, size))
            for begin in range(0, weights.size, _CHUNK):
                filled = chunk[: min(_CHUNK, weights.size - begin)]
                _fill(A, place, begin, filled)
                weighted = filled[:, known:] * weights[begin : begin + _CHUNK, None]
                matrix[known:] += weighted.T @ filled
        if problem.fit_intercept:
            means = np.empty(size)
            share(some_products, problem.threads, columns, self.features, weights, means)
            matrix[known:] -= np.outer(means[known:], means) / weights.sum()
            self.means = means / weights.sum()
        else:
            self.means = np.zeros(size)
        matrix[:known, :known] = self.matrix
        mirror(matrix, known)
        self.matrix = matrix


@njit(cache=True, nogil=True)
def add_lines(A, weights, place, known, out, turn, threads):
    """Add each row's weighted outer product to the lower triangle of out, from line `known` on.

    place holds the line of each feature, or −1; a turn takes every threads-th line.
    """
    size = out.shape[0]
    old_at, old_value, old = np.empty(size, np.int64), np.empty(size), 0
    new_at, new_value, new = np.empty(size, np.int64), np.empty(size), 0
    for i in range(weights.size):
        start = A.indptr[i]
        shift = start * A.step - start
        old, new = 0, 0
        for p in range(start, A.indptr[i + 1]):
            j = place[A.indices[p + shift]]
            if j >= known:
                new_at[new], new_value[new] = j, A.data[p]
                new += 1
            elif j >= 0:
                old_at[old], old_value[old] = j, A.data[p]
                old += 1
        for p in range(new):
            j = new_at[p]
            if threads > 1 and j % threads != turn:
                continue
            x = weights[i] * new_value[p]
            for q in range(old):
                out[j, old_at[q]] += x * old_value[q]
            # New features stand in the order of the row, so these are left of the diagonal.
            for q in range(p + 1):
                out[j, new_at[q]] += x * new_value[q]


@njit(cache=True, nogil=True)
def mirror(matrix, known):
    """Copy the lines below the diagonal above it, from line `known` on."""
    for j in range(known, matrix.shape[0]):
        for k in range(j):
            matrix[k, j] = matrix[j, k]


@njit(cache=True, nogil=True)
def _fill(A, place, begin, out):
    """Write the features that have a place, of the rows from `begin` on, into a dense out."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        start = A.indptr[begin + i]
        shift = start * A.step - start
        for p in range(start, A.indptr[begin + i + 1]):
            j = place[A.indices[p + shift]]
            if j >= 0:
                out[i, j] = A.data[p]
