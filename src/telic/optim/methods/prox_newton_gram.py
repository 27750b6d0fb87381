"""The weighted Gram matrix of the features in use: formed once, then extended as they grow."""

import numpy as np

from telic.kernels import kernel
from telic.optim.problem import Problem
from telic.optim.row_products import some_products
from telic.optim.rows import entries, entry
from telic.optim.threads import share, small_products

LARGEST_SET = 4096
"""Features whose Gram matrix is kept at most."""
ROUNDING = 1e-13
"""Share of a feature's squares below which their centred sum is rounding."""
_CHUNK = 256, 1024
"""Rows of one dense product: twice the set's size within these."""


class WorkingGram:
    """Xᵀ diag(weights) X of the features in use, centred where there is an intercept.

    Centring eliminates the intercept: its best move is −(slope_b / Σ weights + means · move).
    The matrix never takes more numbers than the data do, but for groups, which have no other way.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.features = np.empty(0, np.int64)
        self.matrix, self.means = np.empty((0, 0)), np.empty(0)
        self.weights = np.empty(0)
        self.limit, self.whole = LARGEST_SET, problem.is_grouped
        if not self.whole:
            self.limit = min(self.limit, max(64, int(problem.design.stored**0.5)))
        self.inside = np.zeros(problem.design.d, np.bool_)

    def restart(self, z: np.ndarray, features: np.ndarray) -> None:
        """Take the curvatures at the predictions z for weights of the rows, and other features."""
        known = self.weights if self.weights.size else None
        self.weights = self.problem.curvatures(z, out=known)
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
        stored = problem.design.stored_by_column[self.features] / problem.design.n
        # A product of two sparse rows costs about 25 times the flop of a dense one.
        if 25.0 * stored[known:].sum() * stored.sum() < (size - known) * size:
            weighted_lines(problem, weights, place, known, matrix)
        else:
            chunk = np.empty((int(np.clip(2 * size, *_CHUNK)), size))
            with small_products(size):
                for begin in range(0, weights.size, len(chunk)):
                    filled = chunk[: min(len(chunk), weights.size - begin)]
                    _fill(A, place, begin, filled)
                    weighted = filled[:, known:] * weights[begin : begin + len(filled), None]
                    matrix[known:] += weighted.T @ filled
        if problem.fit_intercept:
            means = np.empty(size)
            share(some_products, problem.threads, columns, self.features, weights, means)
            squares = np.diagonal(matrix)[known:].copy()
            matrix[known:] -= np.outer(means[known:], means) / weights.sum()
            self.means = means / weights.sum()
            # What centring leaves of a constant feature is rounding: the intercept does its work.
            left = np.diagonal(matrix)[known:] > ROUNDING * squares
            varies = np.concatenate([np.diagonal(self.matrix) > 0, left])
            matrix[known:] *= left[:, None] & varies
        else:
            self.means = np.zeros(size)
        matrix[:known, :known] = self.matrix
        mirror(matrix, known)
        self.matrix = matrix


def weighted_lines(
    problem: Problem, weights: np.ndarray, place: np.ndarray, known: int, matrix: np.ndarray
) -> None:
    """Write Xᵀ diag(weights) X of the sparse rows below the diagonal, from line `known` on.

    place holds the line of each feature, or −1. Each of up to 4 runs of rows has a sum of its own,
    so that threads need not look at each other's rows, as long as the sums take no more numbers
    than the data; otherwise every thread reads all rows and adds to lines of its own.
    """
    A, threads, lines = problem.design.rows, problem.threads, matrix[known:]
    runs = max(1, min(4, problem.design.stored // max(1, lines.size)))
    if runs == 1:
        share(_add_own_lines, threads, A, weights, place, known, lines)
        return
    sums = np.empty((min(threads, runs), *lines.shape))
    for begin in range(0, runs, len(sums)):
        share(_sum_run, threads, A, weights, place, known, begin, runs, sums)
        for turn in range(min(len(sums), runs - begin)):
            lines += sums[turn]


@kernel
def _sum_run(A, weights, place, known, begin, runs, sums, turn, threads):
    """Sum the weighted outer products of run begin + turn of the rows into sums[turn]."""
    run, n = begin + turn, weights.size
    if run < runs and turn < sums.shape[0]:
        sums[turn] = 0.0
        first, last = n * run // runs, n * (run + 1) // runs
        _add_rows(A, weights, place, known, sums[turn], first, last, 0, 1)


@kernel
def _add_own_lines(A, weights, place, known, out, turn, threads):
    """Add the weighted outer products of all rows to every threads-th line."""
    _add_rows(A, weights, place, known, out, 0, weights.size, turn, threads)


@kernel
def _add_rows(A, weights, place, known, out, first, last, turn, threads):
    """Add the weighted outer products of rows first to last to every threads-th line."""
    size = out.shape[1]
    old_at, old_value, old = np.empty(size, np.int64), np.empty(size), 0
    new_at, new_value, new = np.empty(size, np.int64), np.empty(size), 0
    for i in range(first, last):
        old, new = 0, 0
        start, end = entries(A, i)
        for p in range(start, end):
            k, x = entry(A, i, p)
            j = place[k]
            if j >= known:
                new_at[new], new_value[new] = j, x
                new += 1
            elif j >= 0:
                old_at[old], old_value[old] = j, x
                old += 1
        for p in range(new):
            j = new_at[p]
            if threads > 1 and j % threads != turn:
                continue
            x, line = weights[i] * new_value[p], out[j - known]
            for q in range(old):
                line[old_at[q]] += x * old_value[q]
            # New features stand in the order of the row, so these are left of the diagonal.
            for q in range(p + 1):
                line[new_at[q]] += x * new_value[q]


@kernel
def mirror(matrix, known):
    """Copy the lines below the diagonal above it, from line `known` on."""
    for j in range(known, matrix.shape[0]):
        for k in range(j):
            matrix[k, j] = matrix[j, k]


@kernel
def _fill(A, place, begin, out):
    """Write the features that have a place, of the rows from `begin` on, into a dense out."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        start, end = entries(A, begin + i)
        for p in range(start, end):
            k, x = entry(A, begin + i, p)
            if place[k] >= 0:
                out[i, place[k]] = x
