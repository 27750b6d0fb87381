"""Newton's method with the full Hessian, for few features: coordinate descent costs d² a round."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.errors import InputError
from telic.optim.line_search import backtrack
from telic.optim.problem import Problem
from telic.optim.result import Iterate
from telic.optim.threads import small_products
from telic.optim.working_gram import mirror, weighted_lines

LARGEST_D = 4096
"""Features beyond which d² numbers are not worth their memory (134 MB at this size)."""


def gram(
    problem: Problem,
    *,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run proximal Newton with the d × d Hessian, one iterate per model.

    Forming Xᵀ D X costs one pass of squared row lengths, after which a round of coordinate descent
    costs d² whatever n is. Squared loss forms it once. Groups are handled as blocks, by proximal
    gradient steps with the block's own Lipschitz constant.

    Parameters
    ----------
    problem : Problem
    coef, intercept
        Where to start; `coef` is changed in place.

    Raises
    ------
    InputError
        If there are more than `LARGEST_D` features.
    """
    n, d = problem.design.n, problem.design.d
    if d > LARGEST_D:
        raise InputError(f"gram keeps {d}² numbers. Use method='prox_newton' or 'auto'.")
    starts, order, weights = _blocks(problem)
    size = d + problem.fit_intercept
    hessian = np.zeros((size, size))
    z, a = problem.predict(coef, intercept), np.empty(n)
    spent, risk = n, None
    formed = False
    while True:
        if shift := problem.best_shift(z):
            z += shift
            intercept += shift
            risk = None
        risk = problem.risk(z) if risk is None else risk
        problem.slopes(z, out=a)
        gradient = problem.back(a)
        yield Iterate(coef, intercept, spent, prediction=z, slopes=a, gradient=gradient, risk=risk)
        slope = np.zeros(size)
        slope[:d] = gradient
        slope[d:] = a.sum()
        # The slopes are done with: their array takes the curvatures, then the move's predictions.
        if problem.loss.code != 0 or not formed:
            weighted_gram(problem, problem.curvatures(z, out=a), hessian)
            formed = True
        start = np.append(coef, intercept)[:size]
        target = start.copy()
        descend(
            *(hessian, slope.copy(), target, np.empty(size), order, starts, weights),
            *(problem.l1, problem.l2, d, 1e-3, 0.0, 1000),
        )
        move = target - start
        move_z = problem.predict(move[:d], move[d] if problem.fit_intercept else 0.0, out=a)
        step, risk = backtrack(
            *(problem, problem.penalty, z, move_z, coef, move[:d], slope @ move, risk)
        )
        coef += step * move[:d]
        intercept += step * move[d] if problem.fit_intercept else 0.0
        move_z *= step
        z += move_z
        spent = 2 * n


def weighted_gram(problem: Problem, weights: np.ndarray, out: np.ndarray) -> None:
    """Write Xᵀ diag(weights) X, with a last row and column of ones for an intercept, into out."""
    d = problem.design.d
    out[:] = 0.0
    if problem.design.is_sparse:
        inner = out[:d, :d]
        place = np.arange(d, dtype=np.int32)
        weighted_lines(problem, weights, place, 0, inner)
        mirror(inner, 0)
    else:
        # Chunks keep the weighted copy small.
        with small_products(d):
            for begin in range(0, problem.design.n, 4096):
                chunk = np.asarray(problem.design.matrix[begin : begin + 4096], np.float64)
                out[:d, :d] += chunk.T @ (chunk * weights[begin : begin + 4096, None])
    if problem.fit_intercept:
        out[:d, d] = out[d, :d] = problem.back(weights)
        out[d, d] = weights.sum()


def _blocks(problem):
    """Groups as (starts, coordinates, weight of the norm); single coordinates without groups."""
    d = problem.design.d
    if problem.is_grouped:
        return problem.penalty.starts, problem.penalty.order, problem.penalty.weights
    return np.arange(d + 1), np.arange(d), np.ones(d)


@njit(cache=True, nogil=True)
def descend(hessian, slope, w, move, order, starts, weights, l1, l2, d, tol, goal, rounds):
    """Minimise the model slope·move + ½ moveᵀ H move + penalty(w + move) by blocks, w in place.

    slope is kept up to date: it holds the model's gradient at w, without the l2 term. Stops when
    a round changes no gradient by more than `goal`, or tol times what the first round did.
    """
    first = 0.0
    for r in range(rounds):
        worst = 0.0
        for g in range(weights.size):
            begin, end = starts[g], starts[g + 1]
            # The trace bounds the block's largest eigenvalue; exact for one coordinate.
            bend = l2
            for q in range(begin, end):
                bend += hessian[order[q], order[q]]
            if bend == 0.0:
                continue
            norm = 0.0
            for q in range(begin, end):
                k = order[q]
                norm += (w[k] - (slope[k] + l2 * w[k]) / bend) ** 2
            norm = np.sqrt(norm)
            cut = l1 * weights[g] / bend
            factor = 1.0 - cut / norm if norm > cut else 0.0
            # All moves of a block use the gradient from before any of them.
            for q in range(begin, end):
                k = order[q]
                move[k] = factor * (w[k] - (slope[k] + l2 * w[k]) / bend) - w[k]
            for q in range(begin, end):
                k = order[q]
                change = move[k]
                if change != 0.0:
                    w[k] += change
                    worst = max(worst, abs(change) * bend)
                    for m in range(slope.size):
                        slope[m] += change * hessian[k, m]
        for k in range(d, w.size):
            change = -slope[k] / hessian[k, k]
            w[k] += change
            worst = max(worst, abs(change) * hessian[k, k])
            for m in range(slope.size):
                slope[m] += change * hessian[k, m]
        if r == 0:
            first = worst
        if worst <= max(goal, tol * first):
            break
