"""Proximal Newton on a growing working set; its quadratics by Anderson-accelerated descent."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.errors import InputError
from telic.optim import kernels
from telic.optim.kernels import row_dot, soft, some_sums
from telic.optim.line_search import backtrack
from telic.optim.problem import Problem
from telic.optim.result import Iterate
from telic.optim.working_gram import grow, violations

_MEMORY = 5
"""Epochs between two extrapolations (M = 5 in Bertrand and Massias 2021)."""


def prox_newton(
    problem: Problem,
    *,
    coef: np.ndarray,
    intercept: float = 0.0,
    start_size: int = 200,
) -> Iterator[Iterate]:
    """Run proximal Newton, one iterate per working set.

    The working set is the support and the features that violate optimality most, at least
    `start_size` and at most twice the support. On it the loss is replaced by its quadratic model,
    which cyclic coordinate descent with Anderson extrapolation minimises to a tenth of the
    violation; a backtracking line search takes care of the rest. Squared loss, whose model is
    exact, keeps the Gram matrix of the working set while that is small (`working_gram`).

    Parameters
    ----------
    problem : Problem
    coef, intercept
        Where to start; `coef` is changed in place.
    start_size : int
        Features in the first working set.

    Raises
    ------
    InputError
        For a group penalty, whose blocks it does not know.
    """
    if problem.is_grouped:
        raise InputError("prox_newton has no group penalty. Use method='asbcd' or 'saga'.")
    if problem.loss.code == 0:
        for iterate in grow(problem, coef=coef, intercept=intercept, start_size=start_size):
            intercept = iterate.intercept
            yield iterate
    columns, n = problem.design.columns, problem.design.n
    z = problem.predict(coef, intercept)
    gradient = np.empty(problem.design.d)
    spent = n
    while True:
        shift = problem.best_shift(z)
        z += shift
        intercept += shift
        a = problem.slopes(z)
        kernels.products(columns, a, 0.0, gradient)
        yield Iterate(coef, intercept, spent, prediction=z, slopes=a, gradient=gradient)
        violation = violations(gradient + problem.l2 * coef, coef, problem.l1)
        support = int(np.count_nonzero(coef))
        size = min(max(start_size, 2 * support), int(np.count_nonzero(violation > 0)))
        size = max(size, support)
        worst = violation.max()
        violation[coef != 0] = np.inf
        chosen = np.argpartition(-violation, size - 1)[:size] if size else np.empty(0)
        working = np.sort(chosen).astype(np.int64)
        intercept, spent = _solve_on(problem, working, coef, intercept, z, 0.3 * worst)


def _solve_on(problem, working, coef, intercept, z, target):
    """Minimise over the working set until no violation exceeds target; z and coef in place."""
    columns, n, l1, l2 = problem.design.columns, problem.design.n, problem.l1, problem.l2
    code, shape = problem.loss.code, problem.loss.shape
    gradient, hessian = np.empty(working.size), np.empty(working.size)
    curvature, bent, move_z = np.empty(n), np.empty(n), np.empty(n)
    spent = 0
    w = coef[working]
    for _ in range(20):
        a = problem.slopes(z)
        _some_products(columns, working, a, gradient)
        gradient += l2 * w
        slope_b = a.sum() if problem.fit_intercept else 0.0
        worst = max(violations(gradient, w, l1).max(initial=0.0), abs(slope_b))
        if worst <= target:
            break
        kernels.curvatures(code, shape, z, problem.y, problem.mass, curvature)
        # Without curvature (a flat stretch of the loss) the model would be unbounded.
        np.maximum(curvature, 1e-12 * problem.mass, out=curvature)
        _weighted_squares(columns, curvature, working, hessian)
        goal = max(0.1 * worst, 0.3 * target)
        move, move_b = _minimise_model(
            columns,
            working,
            curvature,
            gradient,
            slope_b,
            hessian + l2,
            w,
            l1,
            l2,
            bent,
            goal,
            problem.fit_intercept,
        )
        move_z[:] = move_b
        some_sums(columns, working, move, move_z)
        slope = (gradient - l2 * w) @ move + slope_b * move_b
        step = backtrack(problem, problem.penalty, z, move_z, w, move, slope)
        spent += n
        if step == 0.0:
            break
        z += step * move_z
        w += step * move
        intercept += step * move_b
    coef[working] = w
    return intercept, spent + n


def _minimise_model(
    columns, working, curvature, gradient, slope_b, hessian, w, l1, l2, bent, goal, has_b
):
    """Minimise the quadratic model over the move; Anderson extrapolation every few epochs."""
    move, move_b = np.zeros(working.size), np.zeros(1)
    bent[:] = 0.0
    total = curvature.sum() if has_b else 0.0
    trail = np.empty((_MEMORY + 1, working.size + 1))
    active = np.ones(working.size, np.bool_)
    for _ in range(200):
        trail[0, :-1], trail[0, -1] = move, move_b[0]
        for epoch in range(1, _MEMORY + 1):
            worst = _epoch(
                *(columns, working, active, curvature, gradient, hessian, w, move, l1, l2, bent),
                *(move_b, slope_b, total),
            )
            trail[epoch, :-1], trail[epoch, -1] = move, move_b[0]
            if worst <= goal:
                break
        if worst <= goal:
            if active.all():
                break
            active[:] = True
            continue
        extrapolated = _extrapolate(trail)
        if extrapolated is not None:
            other = np.full(bent.size, extrapolated[-1])
            some_sums(columns, working, extrapolated[:-1], other)
            other *= curvature
            if _model(gradient, slope_b, w, extrapolated, other, curvature, l1, l2) < _model(
                gradient, slope_b, w, trail[-1], bent, curvature, l1, l2
            ):
                move, move_b[0] = extrapolated[:-1].copy(), extrapolated[-1]
                bent[:] = other
        active = (w + move) != 0
    return move, move_b[0]


def _extrapolate(trail):
    """Combination of the last iterates whose differences nearly cancel."""
    steps = np.diff(trail, axis=0)
    inner = steps @ steps.T
    try:
        c = np.linalg.solve(
            inner + 1e-12 * np.trace(inner) * np.eye(len(inner)), np.ones(len(inner))
        )
    except np.linalg.LinAlgError:
        return None
    total = c.sum()
    return (c / total) @ trail[1:] if np.isfinite(total) and total != 0 else None


def _model(gradient, slope_b, w, move, bent, curvature, l1, l2):
    """Value of the quadratic model; bent is curvature times the move's predictions."""
    v = move[:-1]
    return (
        gradient @ v
        + slope_b * move[-1]
        + 0.5 * (bent @ (bent / curvature) + l2 * (v @ v))
        + l1 * np.abs(w + v).sum()
    )


@njit(cache=True, nogil=True)
def _epoch(
    columns,
    working,
    active,
    curvature,
    gradient,
    hessian,
    w,
    move,
    l1,
    l2,
    bent,
    move_b,
    slope_b,
    total_b,
):
    """One round of coordinate descent on the model; returns the largest change of a gradient."""
    worst = 0.0
    for r in range(working.size):
        if not active[r] or hessian[r] == 0.0:
            continue
        j = working[r]
        slope = gradient[r] + row_dot(columns, j, bent) + l2 * move[r]
        old = w[r] + move[r]
        new = soft(old - slope / hessian[r], l1 / hessian[r])
        change = new - old
        if change != 0.0:
            move[r] = new - w[r]
            worst = max(worst, abs(change) * hessian[r])
            start = columns.indptr[j]
            shift = start * columns.step - start
            for p in range(start, columns.indptr[j + 1]):
                i = columns.indices[p + shift]
                bent[i] += curvature[i] * change * columns.data[p]
    if total_b > 0.0:
        change = -(slope_b + bent.sum()) / total_b
        move_b[0] += change
        worst = max(worst, abs(change) * total_b)
        for i in range(bent.size):
            bent[i] += curvature[i] * change
    return worst


@njit(cache=True, nogil=True)
def _some_products(columns, working, a, out):
    """Inner products of some columns with a."""
    for r in range(working.size):
        out[r] = row_dot(columns, working[r], a)


@njit(cache=True, nogil=True)
def _weighted_squares(columns, weights, working, out):
    """Weighted squared norms of some columns."""
    for r in range(working.size):
        j = working[r]
        start = columns.indptr[j]
        shift = start * columns.step - start
        total = 0.0
        for p in range(start, columns.indptr[j + 1]):
            x = float(columns.data[p])
            total += weights[columns.indices[p + shift]] * x * x
        out[r] = total
