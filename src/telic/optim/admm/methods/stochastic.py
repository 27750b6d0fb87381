"""STOC-ADMM: the gradient of a few rows and a step that shrinks like 1/√t (5.3.8)."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.optim import sampling
from telic.optim.admm.methods.steps import State, Steps, dual, sweep, x_step
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.result import Point
from telic.optim.loss_kernels import loss_gradient
from telic.optim.rows import row_add, row_dot


def stoc(
    problem: AdmmProblem, steps: Steps, state: State, *, seed: np.ndarray, batch: int = 1
) -> Iterator[Point]:
    """Run STOC-ADMM (Ouyang and others 2013), one point per n rows: the average of all iterates.

    The step is η/√(1 + t) after t passes: the published schedule, with a constant that does not
    shrink it within the first pass. The x-step is the linearised one, whose θ suits the first,
    largest step.
    """
    data, constraint = problem.data, problem.constraint
    n, done = data.design.n, 0
    sums = np.zeros_like(state.x), np.zeros_like(state.y), np.zeros_like(state.s)
    h, m = np.empty_like(state.x), max(1, n // batch)
    while True:
        _run(
            *(data.design.rows, data.y, data.loss.code, data.loss.shape, data.mass),
            *(float(data.fit_intercept), constraint, problem.ridge, steps.eta, steps.rho),
            *(steps.theta, steps.tau, state.x, state.y, state.s, state.pull, state.move),
            *(h, *sums, done, batch, m, seed),
        )
        done += m
        x, y, s = (total / done for total in sums)
        yield Point(x, y, dual(problem, x, s, steps.rho), m * batch)


@njit(cache=True, nogil=True)
def _run(
    A, y, code, shape, mass, bias, C, ridge, eta, rho, theta, tau, x, yy, s, pull, move,
    h, sum_x, sum_y, sum_s, done, batch, m, seed,
):  # fmt: skip
    """Take m steps with a batch's gradient and the shrinking step, summing the iterates."""
    n, d = y.size, x.size
    linearised = np.empty((0, 0))
    for t in range(m):
        sweep(C, x, yy, s, pull, rho, tau)
        h[:] = 0.0
        for _ in range(batch):
            i = int(sampling.uniform(seed) * n)
            slope = loss_gradient(code, shape, row_dot(A, i, x) + bias * x[d - 1], y[i])
            slope *= n * mass[i] / batch
            row_add(A, i, slope, h)
            h[d - 1] += bias * slope
        step = eta / np.sqrt(1.0 + (done + t) / m)
        x_step(x, h, ridge, pull, move, step, rho, theta, linearised)
        for j in range(d):
            sum_x[j] += x[j]
        for e in range(yy.size):
            sum_y[e] += yy[e]
        for e in range(s.size):
            sum_s[e] += s[e]
