"""Proximal SVRG: an exact gradient at a snapshot corrects the stochastic ones."""

from collections.abc import Iterator

import numpy as np

from telic.optim import sampling
from telic.optim.loop import Iterate
from telic.optim.method_facts import Method
from telic.optim.methods.asbcd import (
    LONGEST,
    block_cuts,
    dense_steps,
    group_blocks,
    group_steps,
    sparse_steps,
    tables,
)
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem


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
        Inner loops of a stage; n by default [Zhang2017] (4.4.4).

    Other parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem) if step_size is None else step_size
    inner = n if inner is None else inner
    draws = sampling.draw_tables(np.full(n, 1.0 / n))
    b, clock = np.array([intercept]), np.zeros(1)
    rest = tables(step * problem.l2, min(inner, d, LONGEST))
    blocks, cuts = (clock, np.empty(0, np.int32)), block_cuts(d, 1)
    A, terms, rates = problem.design.rows, problem.terms, problem.rates(step)
    while True:
        table = problem.predict(coef, b[0])
        problem.slopes(table, out=table)
        sums = problem.back(table), np.array([table.sum()])
        np.divide(table, problem.mass, out=table, where=problem.mass > 0)
        if isinstance(problem.penalty, GroupElasticNet):
            groups = group_blocks(problem.penalty, 1)
            group_steps(A, terms, draws, table, sums, (coef, b), groups, rates, state, inner, False)
        elif not problem.design.is_sparse:
            dense_steps(A, terms, draws, table, sums, (coef, b), cuts, rates, state, inner, False)
        else:
            nodes = np.zeros((d, 3))
            nodes[:, 0], nodes[:, 1] = coef, sums[0]
            sums = nodes, sums[1]
            sparse_steps(A, terms, draws, table, sums, b, blocks, rates, rest, state, inner, False)
            coef[:] = nodes[:, 0]
            del nodes
        # Before the next table there is none: it is as long as y.
        del table, sums
        yield Iterate(coef, b[0], n + inner)


def safe_step(problem: Problem) -> float:
    """1/(4 L)."""
    return 0.25 / problem.row_constants().max()


METHOD = Method("svrg", svrg, safe_step=lambda problem, sampling, batch_size: safe_step(problem))
