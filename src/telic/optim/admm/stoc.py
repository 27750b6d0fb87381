"""STOC-ADMM: the gradient of one row and a step that shrinks like 1/√t (5.3.8)."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.optim import sampling
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.result import Point
from telic.optim.admm.steps import State, Steps, dual, sweep, x_step
from telic.optim.kernels import loss_gradient, row_add, row_dot


def stoc(
    problem: AdmmProblem, steps: Steps, state: State, *, seed: np.ndarray, offset: float = 1.0
) -> Iterator[Point]:
    """Run STOC-ADMM (Ouyang and others 2013), one point per n steps: the average of all iterates.

    The step is η/√(1 + t/offset) at step t; offset 1 is the published schedule up to a constant.
    The x-step is the linearised one, whose θ suits the first, largest step.
    """
    data, constraint = problem.data, problem.constraint
    n, done = data.design.n, 0
    sums = np.zeros_like(state.x), np.zeros_like(state.y), np.zeros_like(state.s)
    h = np.empty_like(state.x)
    while True:
        _run(
            *(data.design.rows, data.y, data.loss.code, data.loss.shape, data.mass),
            *(float(data.fit_intercept), constraint, problem.ridge, steps.eta, steps.rho),
            *(steps.theta, steps.tau, state.x, state.y, state.s, state.pull, state.move),
            *(h, *sums, done, offset, n, seed),
        )
        done += n
        x, y, s = (total / done for total in sums)
        yield Point(x, y, dual(problem, x, s, steps.rho), n)


@njit(cache=True, nogil=True)
def _run(
    A, y, code, shape, mass, bias, C, ridge, eta, rho, theta, tau, x, yy, s, pull, move,
    h, sum_x, sum_y, sum_s, done, offset, m, seed,
):  # fmt: skip
    """Take m steps with the gradient of one row and the shrinking step, summing the iterates."""
    n, d = y.size, x.size
    linearised = np.empty((0, 0))
    for t in range(m):
        sweep(C, x, yy, s, pull, rho, tau)
        i = int(sampling.uniform(seed) * n)
        slope = loss_gradient(code, shape, row_dot(A, i, x) + bias * x[d - 1], y[i])
        h[:] = 0.0
        row_add(A, i, n * mass[i] * slope, h)
        h[d - 1] += bias * n * mass[i] * slope
        step = eta / np.sqrt(1.0 + (done + t) / offset)
        x_step(x, h, ridge, pull, move, step, rho, theta, linearised)
        for j in range(d):
            sum_x[j] += x[j]
        for e in range(yy.size):
            sum_y[e] += yy[e]
        for e in range(s.size):
            sum_s[e] += s[e]
