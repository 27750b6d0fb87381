"""Batch ADMM, linearised: every step takes the gradient of all rows [Zhang2017] (5.3.7)."""

from collections.abc import Iterator

from telic.optim.admm.loop import Point
from telic.optim.admm.method_facts import EVERY_X_STEP, AdmmMethod
from telic.optim.admm.methods.steps import State, Steps, dual, sweep, x_step
from telic.optim.admm.problem import AdmmProblem


def batch_admm(problem: AdmmProblem, steps: Steps, state: State) -> Iterator[Point]:
    """Run linearised batch ADMM, one point per step of n gradients.

    The order is Algorithm 2's, y before x: (5.3.1)–(5.3.3) shifted by half a step. The last
    iterate is handed over, not an average.
    """
    constraint, ridge = problem.constraint, problem.ridge
    while True:
        sweep(constraint, state, steps)
        x_step(problem.gradient(state.x), ridge, state, steps, steps.eta)
        u = dual(problem, state.x, state.s, steps.rho)
        yield Point(state.x, state.y, u, problem.data.design.n)


METHOD = AdmmMethod(
    "batch-admm",
    batch_admm,
    takes=(),
    x_steps=(*EVERY_X_STEP, "newton"),
    safe_step=lambda metric, n, batch_size: 1.0 / metric.whole,
)
