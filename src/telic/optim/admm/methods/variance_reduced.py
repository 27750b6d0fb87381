"""SVR-ADMM: a snapshot corrects the stochastic gradients; doubling (D) or steady stages (s)."""

from collections.abc import Generator, Iterator

import numpy as np

from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.admm.loop import Point
from telic.optim.admm.method_facts import AdmmMethod
from telic.optim.admm.methods.steps import State, Steps, add_iterate, dual, sweep, x_step
from telic.optim.admm.problem import AdmmProblem
from telic.optim.loss_kernels import loss_gradient
from telic.optim.rows import entries, entry, row_add


def svr_d(
    problem: AdmmProblem,
    steps: Steps,
    state: State,
    *,
    seed: np.ndarray,
    first: float = 0.5,
    batch_size: int = 1,
) -> Iterator[Point]:
    """Run SVR-ADMM-D (Algorithm 2): each stage has twice the steps of the one before.

    The next snapshot is the stage's average, the next stage starts from the last x and z. A stage
    longer than n gradients hands over the averages of its part so far, which Lemma 5.6.10 bounds
    like those of a shorter stage; `Point.complete` tells them apart.

    Parameters
    ----------
    first : float
        m⁽⁰⁾, a multiple of 1/2: the first stage has 2 m⁽⁰⁾ steps.
    batch_size : int
        Rows of one step; 1 is Algorithm 2. A step's work on A is paid once per batch.
    """
    m, stage, anchor = first, 0, state.x.copy()
    while True:
        m, stage = 2 * m, stage + 1
        sums = yield from _stage(problem, steps, state, anchor, int(m), batch_size, seed, stage)
        anchor = sums[0] / m


def svr_s(
    problem: AdmmProblem,
    steps: Steps,
    state: State,
    *,
    seed: np.ndarray,
    inner: int | None = None,
    batch_size: int = 1,
) -> Iterator[Point]:
    """Run SVR-ADMM-s: stages of `inner` steps (n by default) restart from their averages.

    The dissertation names the method without a listing; this is the reading in which x, y and
    the dual all restart from the stage's averages.
    """
    n, stage, anchor = problem.data.design.n, 0, state.x.copy()
    m = max(1, n // batch_size) if inner is None else inner
    while True:
        stage += 1
        x, _, s = yield from _stage(problem, steps, state, anchor, m, batch_size, seed, stage)
        anchor = x / m
        state.x[:], state.s[:] = anchor, s / m


DOUBLING = AdmmMethod("svr-admm-d", svr_d, takes=("seed", "batch_size", "first"))
STEADY = AdmmMethod("svr-admm-s", svr_s)


def _stage(
    problem: AdmmProblem,
    steps: Steps,
    state: State,
    anchor: np.ndarray,
    m: int,
    batch_size: int,
    seed: np.ndarray,
    stage: int,
) -> Generator[Point, None, tuple[np.ndarray, ...]]:
    """Take m steps around the snapshot and return the sums of x, y and s."""
    rows, terms, constraint = problem.data.design.rows, problem.terms, problem.constraint
    n = problem.data.design.n
    full = problem.gradient(anchor)
    gradients, done, h = n, 0, np.empty_like(full)
    sums = np.zeros_like(state.x), np.zeros_like(state.y), np.zeros_like(state.s)
    while done < m:
        chunk = min(m - done, max(1, n // batch_size))
        _run(rows, terms, constraint, steps, state, h, anchor, full, sums, batch_size, chunk, seed)
        done += chunk
        gradients += 2 * batch_size * chunk
        x, y, s = (total / done for total in sums)
        yield Point(x, y, dual(problem, x, s, steps.rho), gradients, done == m, stage)
        gradients = 0
    return sums


@kernel
def _run(A, terms, C, steps, state, h, anchor, full, sums, batch_size, m, seed):
    """Take m steps with gradients h = ∇f_i(x) − ∇f_i(anchor) + ∇f(anchor), summing the iterates."""
    code, shape, y, mass, bias, ridge = terms
    x = state.x
    n, d = y.size, x.size
    for _ in range(m):
        sweep(C, state, steps)
        h[:] = full
        for _ in range(batch_size):
            i = int(sampling.uniform(seed) * n)
            now, then = bias * x[d - 1], bias * anchor[d - 1]
            start, end = entries(A, i)
            for p in range(start, end):
                j, value = entry(A, i, p)
                now += value * x[j]
                then += value * anchor[j]
            change = loss_gradient(code, shape, now, y[i]) - loss_gradient(code, shape, then, y[i])
            change *= n * mass[i] / batch_size
            row_add(A, i, change, h)
            h[d - 1] += bias * change
        x_step(h, ridge, state, steps, steps.eta)
        add_iterate(state, sums)
