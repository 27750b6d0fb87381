"""Newton's method with the full Hessian, for few features: coordinate descent costs d² a round."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.errors import InputError
from telic.optim.method import Method
from telic.optim.methods.line_search import backtrack
from telic.optim.methods.prox_newton_gram import ROUNDING, mirror, weighted_lines
from telic.optim.penalties import ElasticNet
from telic.optim.problem import Problem
from telic.optim.result import Iterate
from telic.optim.threads import small_products

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
    costs d² whatever n is. Squared loss forms it once. With an intercept it is centred: features
    far from zero do not slow the descent. Groups are handled as blocks, by proximal gradient steps
    with the block's own Lipschitz constant.

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
    hessian, means, weight = np.zeros((d, d)), np.zeros(d), 0.0
    z, a = problem.predict(coef, intercept), np.empty(n)
    spent, risk = n, None
    formed = False
    while True:
        intercept, risk = problem.settle(z, intercept, risk)
        problem.slopes(z, out=a)
        gradient = problem.back(a)
        yield Iterate(coef, intercept, spent, prediction=z, slopes=a, gradient=gradient, risk=risk)
        slope_b = a.sum() if problem.fit_intercept else 0.0
        # The slopes are done with: their array takes the curvatures, then the move's predictions.
        if problem.loss.code != 0 or not formed:
            means, weight = weighted_gram(problem, problem.curvatures(z, out=a), hessian)
            formed = True
        target = coef.copy()
        descend(
            *(hessian, gradient - means * slope_b, target, np.empty(d), order, starts, weights),
            *(problem.l1, problem.l2, 1e-3, 0.0, 1000),
        )
        move = target - coef
        # The intercept's best move, as in `WorkingGram`.
        move_b = -(means @ move) - slope_b / weight if problem.fit_intercept else 0.0
        move_z = problem.predict(move, move_b, out=a)
        total = gradient @ move + slope_b * move_b
        step, risk = backtrack(problem, problem.penalty, z, move_z, coef, move, total, risk)
        # A move of nothing but rounding may be infinite.
        if step > 0.0:
            coef += step * move
            intercept += step * move_b
            move_z *= step
            z += move_z
        spent = 2 * n


METHOD = Method("gram", gram, random=False)


def weighted_gram(
    problem: Problem, weights: np.ndarray, out: np.ndarray
) -> tuple[np.ndarray, float]:
    """Write Xᵀ diag(weights) X into out, centred where there is an intercept.

    Returns the weighted means that were taken off, or zeros, and the sum of the weights.
    """
    d = problem.design.d
    out[:] = 0.0
    if problem.design.is_sparse:
        weighted_lines(problem, weights, np.arange(d, dtype=np.int32), 0, out)
        mirror(out, 0)
    else:
        # Chunks keep the weighted copy small.
        with small_products(d):
            for begin in range(0, problem.design.n, 4096):
                chunk = np.asarray(problem.design.matrix[begin : begin + 4096], np.float64)
                out += chunk.T @ (chunk * weights[begin : begin + 4096, None])
    if not problem.fit_intercept:
        return np.zeros(d), 1.0
    total = float(weights.sum())
    means = problem.back(weights) / total
    squares = out.diagonal().copy()
    out -= np.outer(total * means, means)
    # What centring leaves of a constant feature is rounding: the intercept does its work.
    constant = out.diagonal() <= ROUNDING * squares
    out[constant] = 0.0
    out[:, constant] = 0.0
    return means, total


def _blocks(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups as (starts, coordinates, weight of the norm); single coordinates without groups."""
    d, penalty = problem.design.d, problem.penalty
    if isinstance(penalty, ElasticNet):
        return np.arange(d + 1), np.arange(d), np.ones(d)
    return penalty.starts, penalty.order, penalty.weights


@njit(cache=True, nogil=True)
def descend(hessian, slope, w, move, order, starts, weights, l1, l2, tol, goal, rounds):
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
        if r == 0:
            first = worst
        if worst <= max(goal, tol * first):
            break
