"""Proximal SVRG: an exact gradient at a snapshot corrects the stochastic ones."""

from collections.abc import Iterator

import numpy as np

from telic.optim import sampling
from telic.optim.loop import Iterate
from telic.optim.method_facts import Method
from telic.optim.methods.asbcd import LONGEST, snapshot, sparse_steps, tables, whole_steps
from telic.optim.problem import Problem


def svrg(
    problem: Problem,
    *,
    step_size: float | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run proximal SVRG (Xiao and Zhang 2014), one iterate per stage of 2n gradients.

    It is the step of SAGA with a table that is renewed as a whole at each snapshot and then stays.
    The snapshot is the last iterate, which needs no second vector; the proof takes the average. A
    stage has n inner loops [Zhang2017] (4.4.4).

    Parameters
    ----------
    step_size : float, optional
        By default 1/(4 L), L the largest Lipschitz constant.

    Other parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem) if step_size is None else step_size
    draws = sampling.draw_tables(np.full(n, 1.0 / n))
    b = np.array([intercept])
    rest = tables(step * problem.l2, min(n, d, LONGEST))
    runs, found = (np.zeros(1), np.empty(0, np.int32)), whole_steps(problem, 1)
    A, terms, rates = problem.design.rows, problem.terms, problem.rates(step)
    while True:
        table, sums = snapshot(problem, coef, b[0])
        if found:
            steps, parts = found
            steps(A, terms, draws, table, sums, (coef, b), parts, rates, state, n, False)
        else:
            nodes = np.zeros((d, 3))
            nodes[:, 0], nodes[:, 1] = coef, sums[0]
            sums = nodes, sums[1]
            sparse_steps(A, terms, draws, table, sums, b, runs, rates, rest, state, n, False)
            coef[:] = nodes[:, 0]
            del nodes
        # Before the next table there is none: it is as long as y.
        del table, sums
        yield Iterate(coef, b[0], 2 * n)


def safe_step(problem: Problem, *_: object) -> float:
    """1/(4 L)."""
    return 0.25 / problem.row_constants().max()


METHOD = Method("svrg", svrg, safe_step=safe_step)
