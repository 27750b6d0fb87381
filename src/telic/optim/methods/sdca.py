"""Stochastic dual coordinate ascent: one dual variable per row, and a bound with every pass."""

from collections.abc import Iterator

import numpy as np
from numba import types
from numba.extending import overload

from telic.errors import InputError
from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.loop import Iterate
from telic.optim.loss_kernels import loss_prox
from telic.optim.loss_rows.shares import of_row
from telic.optim.method_facts import Method
from telic.optim.problem import Problem
from telic.optim.rows import FAST, Rows, entries, entry, row_add

_RUN = 8
"""Neighbouring rows visited one after the other: random runs cost half the cache misses of rows."""


def sdca(
    problem: Problem,
    *,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run proximal SDCA (Shalev-Shwartz and Zhang 2014), one iterate per pass over the rows.

    The dual point a_i = mass_i loss'_i gives v = −Σ a_i x_i / λ₂ and w = soft(v, λ₁/λ₂). A step
    solves its row's dual problem: the new a_i is the derivative at the proximal point of the loss,
    with weight mass_i ‖x_i‖² / λ₂. That holds for every convex loss, also without a Lipschitz
    gradient. A pass takes short runs of neighbouring rows in random order.

    An unpenalised intercept would constrain the dual. It is a constant feature with a small
    penalty around its last value instead, renewed after each pass (a proximal-point method), whose
    limit is unpenalised.

    Raises
    ------
    InputError
        If l2 = 0, where the dual is not smooth.

    Other parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    if problem.l2 <= 0:
        raise InputError("sdca needs l2 > 0. Use prox_newton or saga.")
    n, A, l2 = problem.design.n, problem.design.rows, problem.l2
    rate_b = 1.0 / _intercept_penalty(problem) if problem.fit_intercept else 0.0
    table, v = np.zeros(n), np.zeros(problem.design.d)
    b = np.array([0.0])
    if coef.any():
        # Warm: the slopes at coef are nearly dual optimal if coef is nearly optimal.
        slopes = problem.predict(coef, intercept)
        problem.slopes(slopes, out=slopes)
        gradient = problem.back(slopes)
        if problem.dual_value(slopes, gradient) > problem.dual_value(table, v):
            table, v, b[0] = slopes, gradient / -l2, intercept
        del slopes, gradient
    cuts = problem.l1 / l2, problem.below / l2
    order = np.arange(-(-n // _RUN), dtype=np.int32)
    while True:
        _pass(A, problem.terms, table, v, cuts, b, 1.0 / l2, rate_b, order, state)
        # Soft-thresholding without a temporary.
        np.subtract(v, np.clip(v, -cuts[1], cuts[0], out=coef), out=coef)
        if problem.fit_intercept:
            yield Iterate(coef, b[0], n)
            # The multiplier step: the penalty's centre moves to b, the dual sum stays.
            b[0] -= rate_b * table.sum()
        else:
            yield Iterate(coef, 0.0, n, slopes=table, gradient=-l2 * v)


METHOD = Method("sdca", sdca, groups=False)


def _intercept_penalty(problem: Problem) -> float:
    """A tenth of the loss's curvature: small enough to be forgotten fast, large enough to damp."""
    # The curvature of a log link at z = log y is y^(2 − power).
    bend = np.abs(problem.y) ** (2.0 - getattr(problem.loss, "power", 1.0))
    size = float((problem.mass * bend).sum())
    return 0.1 * min(problem.loss.smoothness, size + 1e-3)


@kernel
def _pass(A, terms, table, v, cuts, b, rate, rate_b, order, state):
    """Solve each row's dual problem once, in runs of rows in random order."""
    code, shape, y, mass = terms
    # Near the optimum one Newton move leaves less than that of the logistic residual.
    left = 0.1 if code == 1 else 0.0
    for r in range(order.size):
        other = r + int(sampling.uniform(state) * (order.size - r))
        run = order[other]
        order[other] = order[r]
        order[r] = run
        for i in range(_RUN * run, min(y.size, _RUN * (run + 1))):
            dot, square = _soft_dot(A, i, v, cuts)
            z, m = b[0] + dot, of_row(mass, i)
            if m == 0.0:
                continue
            pull = square * rate + rate_b
            _, slope = loss_prox(code, shape, z + pull * table[i], pull * m, y[i], z, left)
            change = table[i] - m * slope
            table[i] = m * slope
            row_add(A, i, change * rate, v)
            b[0] += change * rate_b


def _soft_dot(A: Rows, i: int, v: np.ndarray, cuts: tuple[float, float]) -> tuple[float, float]:
    """Inner product of row i with soft-thresholded v, and the row's squared norm."""
    above, below = cuts
    dot, square = 0.0, 0.0
    start, end = entries(A, i)
    for q in range(start, end):
        k, x = entry(A, i, q)
        # Soft-thresholding without a branch: the signs of v are hard to foretell.
        dot += x * (v[k] - min(above, max(-below, v[k])))
        square += float(x) * float(x)
    return dot, square


# Free to reorder, the compiler gathers short sparse rows into vectors, which is slower.
_soft_dot_dense = kernel(fastmath=FAST)(_soft_dot)
_soft_dot_sparse = kernel(_soft_dot)


@overload(_soft_dot)
def _soft_dot_of(A, i, v, cuts):
    if isinstance(A, types.Array):
        return lambda A, i, v, cuts: _soft_dot_dense(A, i, v, cuts)
    return lambda A, i, v, cuts: _soft_dot_sparse(A, i, v, cuts)
