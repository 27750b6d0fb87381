"""Proximal Newton on a working set by its columns: Anderson-accelerated coordinate descent."""

from typing import NamedTuple

import numpy as np

from telic.kernels import kernel
from telic.optim.methods.line_search import backtrack
from telic.optim.problem import Problem
from telic.optim.prox_kernels import soft
from telic.optim.row_products import some_products, some_sums
from telic.optim.rows import Rows, entries, entry, row_dot
from telic.optim.threads import share

_MEMORY = 5
"""Epochs between two extrapolations (M = 5 in Bertrand and Massias 2021)."""


def descend_columns(
    problem: Problem,
    working: np.ndarray,
    coef: np.ndarray,
    intercept: float,
    z: np.ndarray,
    risk: float,
    target: float,
) -> tuple[float, int, float]:
    """Minimise over the working set until no violation exceeds target; z and coef in place.

    Returns the intercept, the component gradients spent, and the risk.
    """
    columns, n, l2 = problem.design.columns, problem.design.n, problem.l2
    l1, below = problem.l1, problem.below
    gradient, hessian = np.empty(working.size), np.empty(working.size)
    # One array holds the slopes, then an extrapolated move's predictions, then the move's own.
    bent, curvature, move_z = np.empty(n), np.empty(n), np.empty(n)
    spent = 0
    w = coef[working]
    for _ in range(20):
        a = problem.slopes(z, out=move_z)
        share(some_products, problem.threads, columns, working, a, gradient)
        slope_b = a.sum() if problem.fit_intercept else 0.0
        worst = max(problem.penalty.violations(gradient, w).max(initial=0.0), abs(slope_b))
        if worst <= target:
            break
        gradient += l2 * w
        problem.curvatures(z, out=curvature)
        share(_weighted_squares, problem.threads, columns, curvature, working, hessian)
        goal = max(0.1 * worst, 0.3 * target)
        bends = hessian + l2
        model = Model(columns, working, curvature, gradient, bends, slope_b, w, l1, below, l2)
        move, move_b = _minimise(model, bent, move_z, goal, problem.fit_intercept)
        move_z[:] = move_b
        share(some_sums, problem.threads, columns, working, move, move_z)
        slope = (gradient - l2 * w) @ move + slope_b * move_b
        step, risk = backtrack(problem, problem.penalty, z, move_z, w, move, slope, risk)
        spent += n
        if step == 0.0:
            break
        move_z *= step
        z += move_z
        w += step * move
        intercept += step * move_b
    coef[working] = w
    return intercept, spent + n, risk


class Model(NamedTuple):
    """The quadratic model of the objective on the working set, as kernels take it."""

    columns: Rows
    working: np.ndarray
    curvature: np.ndarray
    """Of the loss, by row."""
    gradient: np.ndarray
    hessian: np.ndarray
    """Its diagonal, λ₂ included."""
    slope_b: float
    w: np.ndarray
    """Where the move starts."""
    l1: float
    below: float
    l2: float


def _minimise(
    model: Model, bent: np.ndarray, other: np.ndarray, goal: float, has_b: bool
) -> tuple[np.ndarray, float]:
    """Minimise the quadratic model over the move; Anderson extrapolation every few epochs."""
    size = model.working.size
    move, move_b = np.zeros(size), np.zeros(1)
    bent[:] = 0.0
    total = model.curvature.sum() if has_b else 0.0
    trail = np.empty((_MEMORY + 1, size + 1))
    active = np.ones(size, np.bool_)
    for _ in range(200):
        trail[0, :-1], trail[0, -1] = move, move_b[0]
        for epoch in range(1, _MEMORY + 1):
            worst = _epoch(model, active, move, bent, move_b, total)
            trail[epoch, :-1], trail[epoch, -1] = move, move_b[0]
            if worst <= goal:
                break
        if worst <= goal:
            if active.all():
                break
            active[:] = True
            continue
        if (shares := mixture(trail)) is not None:
            extrapolated = shares @ trail[1:]
            if model.below == np.inf:
                np.maximum(extrapolated[:-1], -model.w, out=extrapolated[:-1])
            other[:] = extrapolated[-1]
            share(some_sums, 1, model.columns, model.working, extrapolated[:-1], other)
            other *= model.curvature
            if _value(model, extrapolated, other) < _value(model, trail[-1], bent):
                move, move_b[0] = extrapolated[:-1].copy(), extrapolated[-1]
                bent[:] = other
        active = (model.w + move) != 0
    return move, move_b[0]


def mixture(points: np.ndarray) -> np.ndarray | None:
    """Shares, of sum 1, of the points after the first so that the steps to them nearly cancel."""
    steps = np.diff(points, axis=0)
    inner = steps @ steps.T
    inner += 1e-12 * np.trace(inner) * np.eye(len(inner))
    try:
        c = np.linalg.solve(inner, np.ones(len(inner)))
    except np.linalg.LinAlgError:
        return None
    total = c.sum()
    return c / total if np.isfinite(total) and total != 0 else None


@kernel
def _value(model, move, bent):
    """Value of the quadratic model; bent is curvature times the move's predictions."""
    _, _, curvature, gradient, _, slope_b, w, l1, _, l2 = model
    total, bend = slope_b * move[w.size], 0.0
    for k in range(w.size):
        total += (gradient[k] + 0.5 * l2 * move[k]) * move[k] + l1 * abs(w[k] + move[k])
    for i in range(bent.size):
        if curvature[i] > 0.0:  # a row without weight bends nothing
            bend += bent[i] * (bent[i] / curvature[i])
    return total + 0.5 * bend


@kernel
def _epoch(model, active, move, bent, move_b, total_b):
    """One round of coordinate descent on the model; returns the largest change of a gradient."""
    columns, working, curvature, gradient, hessian, slope_b, w, l1, below, l2 = model
    worst = 0.0
    for r in range(working.size):
        if not active[r]:
            continue
        if hessian[r] == 0.0:  # as in `gram_descent.descend`
            if abs(gradient[r]) < l1:
                move[r] = -w[r]
            continue
        j = working[r]
        slope = gradient[r] + row_dot(columns, j, bent) + l2 * move[r]
        old = w[r] + move[r]
        new = soft(old - slope / hessian[r], l1 / hessian[r], below / hessian[r])
        change = new - old
        if change != 0.0:
            move[r] = new - w[r]
            worst = max(worst, abs(change) * hessian[r])
            start, end = entries(columns, j)
            for p in range(start, end):
                i, x = entry(columns, j, p)
                bent[i] += curvature[i] * change * x
    if total_b > 0.0:
        change = -(slope_b + bent.sum()) / total_b
        move_b[0] += change
        worst = max(worst, abs(change) * total_b)
        for i in range(bent.size):
            bent[i] += curvature[i] * change
    return worst


@kernel
def _weighted_squares(columns, weights, working, out, turn, threads):
    """Weighted squared norms of some columns."""
    for r in range(turn, working.size, threads):
        j = working[r]
        total = 0.0
        start, end = entries(columns, j)
        for p in range(start, end):
            i, value = entry(columns, j, p)
            x = float(value)
            total += weights[i] * x * x
        out[r] = total
