"""STOC-ADMM: the gradient of a few rows and a step that shrinks like 1/√t [Zhang2017] (5.3.8)."""

from collections.abc import Iterator

import numpy as np

from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.admm.loop import Point
from telic.optim.admm.method_facts import AdmmMethod
from telic.optim.admm.methods.steps import State, Steps, add_iterate, dual, sweep, x_step
from telic.optim.admm.problem import AdmmProblem
from telic.optim.loss_kernels import loss_gradient
from telic.optim.rows import row_add, row_dot


def stoc(
    problem: AdmmProblem, steps: Steps, state: State, *, seed: np.ndarray, batch_size: int = 1
) -> Iterator[Point]:
    """Run STOC-ADMM (Ouyang and others 2013), one point per n rows: the average of all iterates.

    The step is η/√(1 + t) after t passes: the published schedule, with a constant that does not
    shrink it within the first pass. The x-step is the linearised one, whose θ suits the first,
    largest step.
    """
    rows, terms, constraint = problem.data.design.rows, problem.terms, problem.constraint
    n, done = problem.data.design.n, 0
    linearised = steps._replace(inverse=np.empty((0, 0)))
    sums = np.zeros_like(state.x), np.zeros_like(state.y), np.zeros_like(state.s)
    h, m = np.empty_like(state.x), max(1, n // batch_size)
    while True:
        _run(rows, terms, constraint, linearised, state, h, sums, done, batch_size, m, seed)
        done += m
        x, y, s = (total / done for total in sums)
        yield Point(x, y, dual(problem, x, s, steps.rho), m * batch_size)


METHOD = AdmmMethod("stoc-admm", stoc, x_steps=("linearised",))


@kernel
def _run(A, terms, C, steps, state, h, sums, done, batch_size, m, seed):
    """Take m steps with a batch's gradient and the shrinking step, summing the iterates."""
    code, shape, y, mass, bias, ridge = terms
    x = state.x
    n, d = y.size, x.size
    for t in range(m):
        sweep(C, state, steps)
        h[:] = 0.0
        for _ in range(batch_size):
            i = int(sampling.uniform(seed) * n)
            slope = loss_gradient(code, shape, row_dot(A, i, x) + bias * x[d - 1], y[i])
            slope *= n * mass[i] / batch_size
            row_add(A, i, slope, h)
            h[d - 1] += bias * slope
        x_step(h, ridge, state, steps, steps.eta / np.sqrt(1.0 + (done + t) / m))
        add_iterate(state, sums)
