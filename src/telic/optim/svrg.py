"""Proximal SVRG: an exact gradient at a snapshot corrects the stochastic ones."""

from collections.abc import Iterator

import numpy as np

from telic.optim import sampling
from telic.optim.asbcd import LONGEST, group_blocks, group_steps, table_steps, tables
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem
from telic.optim.result import Iterate


def svrg(
    problem: Problem,
    *,
    step_size: float | None = None,
    inner: int | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run proximal SVRG (Xiao and Zhang 2014), one iterate per stage of 2n gradients.

    It is the step of SAGA with a table that is renewed as a whole at each snapshot and then stays.
    The snapshot is the last iterate, which needs no second vector; the proof takes the average.

    Parameters
    ----------
    step_size : float, optional
        By default 1/(4 L), L the largest Lipschitz constant.
    inner : int, optional
        Inner loops of a stage; n by default (4.4.4).

    Other parameters as in `telic.optim.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem) if step_size is None else step_size
    inner = n if inner is None else inner
    p, threshold, alias = sampling.draw_tables(np.full(n, 1.0 / n))
    b, clock = np.array([intercept]), np.zeros(1)
    powers, sums = tables(step * problem.l2, min(inner, d, LONGEST))
    step_b = step if problem.fit_intercept else 0.0
    penalty, block_of = problem.penalty, np.empty(0, np.int32)
    while True:
        table = problem.predict(coef, b[0])
        problem.slopes(table, out=table)
        total, total_b = problem.back(table), np.array([table.sum()])
        np.divide(table, problem.mass, out=table, where=problem.mass > 0)
        sampled = (
            *(problem.design.rows, problem.y, problem.loss.code, problem.loss.shape),
            *(problem.mass, p, threshold, alias, table),
        )
        if isinstance(penalty, GroupElasticNet):
            group_steps(
                *(*sampled, total, total_b, coef, b, *group_blocks(penalty, 1), step, step_b),
                *(problem.l1, problem.l2, state, inner, False),
            )
        else:
            nodes = np.zeros((d, 3))
            nodes[:, 0], nodes[:, 1] = coef, total
            del total
            table_steps(
                *(*sampled, nodes, total_b, b, clock, block_of, step, step_b),
                *(problem.l1, problem.l2, powers, sums, state, inner, False),
            )
            coef[:] = nodes[:, 0]
            del nodes
        # Before the next table there is none: it is as long as y.
        del table, sampled
        yield Iterate(coef, b[0], n + inner)


def safe_step(problem: Problem) -> float:
    """1/(4 L)."""
    return 0.25 / problem.row_constants().max()
