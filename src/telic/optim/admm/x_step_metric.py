"""The metric P of the x-step, and how smooth the loss is in it."""

from dataclasses import dataclass

import numpy as np

from telic.kernels import kernel
from telic.optim.admm.problem import AdmmProblem
from telic.optim.rows import entries, entry, row_add, row_dot

DAMPING = 0.1
"""Share of the mean curvature added to every coordinate, in units in which the largest value of a
feature is 1: rare features then bound no step."""
CHUNK = 1024
"""Rows of a dense matrix taken at once: O(d) memory for each."""


@dataclass(frozen=True, slots=True)
class Metric:
    """P, and the Lipschitz constants of f and of its components in its norm."""

    P: np.ndarray | None
    """None stands for the diagonal matrix of 1/unit²."""
    unit: np.ndarray
    """A unit for each entry of x; ones where the metric is the identity."""
    whole: float
    """L of f; at most 1 for the curvature."""
    largest: float
    """L_M = max_i L_i."""
    euclidean: float
    """L of f in the Euclidean norm of x/unit."""


def units_of(problem: AdmmProblem) -> np.ndarray:
    """Return one over the largest absolute value of each feature, and 1 for an intercept.

    A ridge counts as one more row: where it outweighs a feature, it sets the unit.
    """
    largest = np.zeros(problem.data.design.d)
    _largest_entries(problem.data.design.rows, problem.data.mass, largest)
    largest = np.hypot(largest, np.sqrt(problem.data.l2))
    # A feature of zeros has no unit, and takes that of another.
    largest[largest == 0] = np.median(largest[largest > 0]) if largest.any() else 1.0
    return np.append(1.0 / largest, np.ones(problem.size - largest.size))


def diagonal(problem: AdmmProblem, unit: np.ndarray) -> Metric:
    """Return P = diag(1/unit²), for which L is found by power iteration."""
    data = problem.data
    v = np.random.default_rng(0).normal(size=problem.size)
    estimate = 0.0
    for _ in range(50):
        v /= np.linalg.norm(v)
        following = np.zeros(problem.size)
        _apply(data.design.rows, data.mass, float(data.fit_intercept), unit * v, following)
        following *= unit
        last, estimate = estimate, float(np.linalg.norm(following))
        if estimate == 0 or abs(estimate - last) <= 1e-3 * estimate:
            break
        v = following
    rows = _largest_square(data.design.rows, data.mass, float(data.fit_intercept), unit)
    ridge = float((problem.ridge * unit**2).max())
    largest = max(data.loss.smoothness * data.design.n * rows + ridge, 1e-12)
    whole = min(1.02 * data.loss.smoothness * estimate + ridge, largest)
    whole = max(whole, 1e-12)
    return Metric(None, unit, whole, largest, whole)


def curvature(problem: AdmmProblem) -> Metric:
    """Return P, a bound on the Hessian of f: smoothness · Xᵀ diag(mass) X + l2 I, damped.

    f and P then bend alike, and a step η of order 1 suits every direction. Theorem 5.5.3 asks
    for P >= I; it holds in any metric once L_M is taken in that metric, as here.
    """
    data, unit = problem.data, units_of(problem)
    P = data.loss.smoothness * gram(problem, data.mass) + np.diag(problem.ridge)
    P *= np.outer(unit, unit)
    euclidean = max(float(np.linalg.eigvalsh(P)[-1]), 1e-12)
    P += np.eye(problem.size) * max(DAMPING * np.trace(P) / problem.size, 1e-12)
    inverse = np.linalg.inv(P) * np.outer(unit, unit)
    rows = _largest(data.design.rows, data.mass, data.fit_intercept, inverse)
    P /= np.outer(unit, unit)
    return Metric(P, unit, 1.0, max(1.0, data.loss.smoothness * data.design.n * rows), euclidean)


def gram(problem: AdmmProblem, weight: np.ndarray) -> np.ndarray:
    """Return Σ weight_i x_i x_iᵀ, with a last 1 in x_i for an intercept."""
    design, d = problem.data.design, problem.data.design.d
    out = np.zeros((problem.size, problem.size))
    if design.is_sparse:
        _gram(design.rows, weight, problem.data.fit_intercept, out)
        return out + np.tril(out, -1).T
    for start in range(0, design.n, CHUNK):
        X, w = design.matrix[start : start + CHUNK], weight[start : start + CHUNK]
        bent = w[:, None] * X
        out[:d, :d] += X.T @ bent
        if problem.data.fit_intercept:
            out[d, :d] += bent.sum(axis=0)
            out[d, d] += w.sum()
    out[:d, d:] = out[d:, :d].T
    return out


@kernel
def _gram(A, weight, bias, out):
    """Lower triangle of `gram`."""
    last = out.shape[0] - 1
    for i in range(weight.size):
        start, end = entries(A, i)
        for p in range(start, end):
            j, value = entry(A, i, p)
            v, row = weight[i] * value, out[j]
            for q in range(start, p + 1):
                k, other = entry(A, i, q)
                row[k] += v * other
            if bias:
                out[last, j] += v
        if bias:
            out[last, last] += weight[i]


@kernel
def _largest(A, weight, bias, M):
    """Largest weight_i x_iᵀ M x_i, M symmetric."""
    last, best = M.shape[0] - 1, 0.0
    for i in range(weight.size):
        start, end = entries(A, i)
        total = M[last, last] if bias else 0.0
        for p in range(start, end):
            j, value = entry(A, i, p)
            row = M[j]
            cross = row[last] if bias else 0.0
            for q in range(start, p):
                k, other = entry(A, i, q)
                cross += row[k] * other
            total += value * (2.0 * cross + row[j] * value)
        best = max(best, weight[i] * total)
    return best


@kernel
def _apply(A, mass, bias, v, out):
    """Add Xᵀ diag(mass) X v to out, with a last 1 in each row for an intercept."""
    last = v.size - 1
    for i in range(mass.size):
        a = mass[i] * (row_dot(A, i, v) + bias * v[last])
        row_add(A, i, a, out)
        out[last] += bias * a


@kernel
def _largest_square(A, mass, bias, unit):
    """Largest mass_i (‖x_i · unit‖² + bias)."""
    best = 0.0
    for i in range(mass.size):
        total = bias
        start, end = entries(A, i)
        for p in range(start, end):
            j, value = entry(A, i, p)
            total += (value * unit[j]) ** 2
        best = max(best, mass[i] * total)
    return best


@kernel
def _largest_entries(A, mass, out):
    """Largest absolute value of each feature, over the rows that count."""
    for i in range(mass.size):
        if mass[i] > 0:
            start, end = entries(A, i)
            for p in range(start, end):
                j, value = entry(A, i, p)
                out[j] = max(out[j], abs(value))
