"""Squared loss on a growing working set: the Gram matrix of its features is formed once."""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from telic.optim.gram import add_outer, descend
from telic.optim.kernels import some_sums
from telic.optim.problem import Problem
from telic.optim.result import Iterate

LARGEST_SET = 4096
"""Features whose Gram matrix is kept (134 MB); beyond, `prox_newton` works without it."""


def grow(
    problem: Problem, *, coef: np.ndarray, intercept: float, start_size: int
) -> Iterator[Iterate]:
    """Yield an iterate per working set until the set would exceed `LARGEST_SET`.

    The set only grows, by the features that violate optimality most. Coordinate descent on the
    Gram matrix keeps the whole gradient of the set, so that a coordinate that stays at zero costs
    nothing. An intercept is eliminated: it centres the features.
    """
    n, columns = problem.design.n, problem.design.columns
    working = np.empty(0, np.int64)
    gram, means = np.empty((0, 0)), np.empty(0)
    outside = np.ones(problem.design.d, np.bool_)
    z = problem.predict(coef, intercept)
    spent = n
    while True:
        shift = problem.best_shift(z)
        z += shift
        intercept += shift
        a = problem.slopes(z)
        gradient = problem.back(a)
        yield Iterate(coef, intercept, spent, prediction=z, slopes=a, gradient=gradient)
        support = int(np.count_nonzero(coef))
        violation = violations(gradient + problem.l2 * coef, coef, problem.l1)
        worst = violation.max()
        violation[~outside] = 0.0
        # Features that are in use come first, then the worst violators.
        violation[outside & (coef != 0)] = np.inf
        added = min(max(start_size, support // 2), int(np.count_nonzero(violation)))
        added = max(added, int(np.isinf(violation).sum()))
        if working.size + added > LARGEST_SET:
            return
        if added:
            new = np.argpartition(-violation, added - 1)[:added]
            working = np.concatenate([working, np.sort(new)])
            outside[new] = False
            gram, means = _extended(problem, working, gram)
        w = coef[working]
        before = w.copy()
        slope = gradient[working]
        size = working.size
        descend(
            *(gram, slope, w, np.empty(size), np.arange(size), np.arange(size + 1)),
            *(np.ones(size), problem.l1, problem.l2, size, 0.0, 0.01 * worst, 2000),
        )
        some_sums(columns, working, w - before, z)
        coef[working] = w
        intercept -= means @ (w - before) if problem.fit_intercept else 0.0
        z -= means @ (w - before) if problem.fit_intercept else 0.0
        spent = n


def violations(gradient: np.ndarray, w: np.ndarray, l1: float) -> np.ndarray:
    """Distance of −gradient (l2 term included) from l1 times the subdifferential of |w|."""
    return np.where(
        w != 0, np.abs(gradient + l1 * np.sign(w)), np.maximum(np.abs(gradient) - l1, 0.0)
    )


def _extended(problem, working, old):
    """Gram matrix of the working features, of which the first ones are known; and their means."""
    known, size = old.shape[0], working.size
    gram = np.zeros((size, size))
    design, mass = problem.design, problem.mass
    if design.is_sparse:
        columns = design.columns
        parts = (columns.data, columns.indices.view(np.int32), columns.indptr)
        part = sparse.csc_matrix(parts, shape=(design.n, design.d))[:, working].tocsr()
    else:
        part = design.matrix[:, working]
    means = np.asarray(part.T @ mass).ravel() if problem.fit_intercept else np.zeros(size)
    lengths = np.diff(part.indptr).astype(float) if sparse.issparse(part) else np.empty(0)
    # A product of two sparse rows costs about 25 times the flop of a dense one.
    if sparse.issparse(part) and 25.0 * (lengths @ lengths) < len(mass) * size * (size - known):
        add_outer(part.data, part.indices, part.indptr, mass, gram, known)
    else:
        for begin in range(0, len(mass), 2048):
            chunk = part[begin : begin + 2048]
            chunk = (chunk.toarray() if sparse.issparse(chunk) else chunk).astype(np.float64)
            gram[known:] += (chunk[:, known:] * mass[begin : begin + 2048, None]).T @ chunk
    if problem.fit_intercept:
        gram[known:] -= np.outer(means[known:], means)
    gram[:known, :known] = old
    gram[:known, known:] = gram[known:, :known].T
    return gram, means
