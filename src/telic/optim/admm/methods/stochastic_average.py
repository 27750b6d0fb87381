"""SA-ADMM: the average of the gradients last seen, kept as one scalar per row."""

from collections.abc import Iterator

import numpy as np

from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.admm.loop import Point
from telic.optim.admm.method_facts import AdmmMethod
from telic.optim.admm.methods.steps import State, Steps, dual, sweep, x_step
from telic.optim.admm.problem import AdmmProblem
from telic.optim.loss_kernels import loss_gradient
from telic.optim.rows import row_add, row_dot


def sa(
    problem: AdmmProblem, steps: Steps, state: State, *, seed: np.ndarray, batch_size: int = 1
) -> Iterator[Point]:
    """Run SA-ADMM (Zhong and Kwok 2014), one point per n gradients: the last iterate.

    The published table holds n gradients of d numbers. Those of a linear model are a scalar times
    the row, so O(n) numbers suffice. The table starts at zero: filled with the gradients at the
    start, it would push x in their direction for n steps.
    """
    rows, terms, constraint = problem.data.design.rows, problem.terms, problem.constraint
    n = problem.data.design.n
    table, average = np.zeros(n), np.zeros_like(state.x)
    m = max(1, n // batch_size)
    while True:
        _run(rows, terms, constraint, steps, state, table, average, batch_size, m, seed)
        yield Point(state.x, state.y, dual(problem, state.x, state.s, steps.rho), m * batch_size)


METHOD = AdmmMethod("sa-admm", sa)


@kernel
def _run(A, terms, C, steps, state, table, average, batch_size, m, seed):
    """Take m steps, each with the average of the gradients last seen."""
    code, shape, y, mass, bias, ridge = terms
    x = state.x
    n, d = y.size, x.size
    for _ in range(m):
        sweep(C, state, steps)
        for _ in range(batch_size):
            i = int(sampling.uniform(seed) * n)
            slope = loss_gradient(code, shape, row_dot(A, i, x) + bias * x[d - 1], y[i])
            change = mass[i] * (slope - table[i])
            table[i] = slope
            row_add(A, i, change, average)
            average[d - 1] += bias * change
        x_step(average, ridge, state, steps, steps.eta)
