"""Mini-batch randomised block coordinate descent: SVRG on a batch of rows and one block."""

from collections.abc import Iterator

import numpy as np
from numba import njit

from telic.optim import sampling
from telic.optim.asbcd import LONGEST, block_labels, group_blocks, tables
from telic.optim.kernels import advance, loss_gradient, of_row, prox_groups, row_add, row_dot, soft
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem
from telic.optim.result import Iterate


def mrbcd(
    problem: Problem,
    *,
    blocks: int = 10,
    batch: int = 10,
    step_size: float | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run MRBCD (Zhao et al. 2014): n inner loops (4.4.4) after each exact gradient.

    One iterate is a stage of n + n · batch gradients, each used on one block.

    Parameters
    ----------
    batch : int
        Rows of one step, drawn uniformly with replacement. The thesis does not give its own.
    step_size : float, optional
        By default 1/(4 𝓛), 𝓛 = L_max / batch + (1 − 1/batch) L_mean, a bound on the Lipschitz
        constant that a batch drawn with replacement sees in expectation.

    Other parameters as in `telic.optim.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem, batch) if step_size is None else step_size
    b, clock, last = np.array([intercept]), np.zeros(blocks, np.int32), np.zeros(d, np.int32)
    block_of, push = block_labels(d, blocks), np.zeros(d)
    powers, sums = tables(step * problem.l2, min(n, d, LONGEST))
    step_b = step if problem.fit_intercept else 0.0
    chosen, change = np.empty(batch, np.int64), np.empty(batch)
    while True:
        table = problem.predict(coef, b[0])
        problem.slopes(table, out=table)
        total, total_b = problem.back(table), table.sum()
        np.divide(table, problem.mass, out=table, where=problem.mass > 0)
        sampled = (
            *(problem.design.rows, problem.y, problem.loss.code, problem.loss.shape),
            *(problem.mass, table, total, total_b, coef, b, chosen, change),
        )
        rest = step, step_b, problem.l1, problem.l2, state, n
        if isinstance(problem.penalty, GroupElasticNet):
            _group_batch_steps(*sampled, *group_blocks(problem.penalty, blocks), *rest)
        else:
            _batch_steps(*sampled, clock, last, block_of, push, powers, sums, *rest)
        yield Iterate(coef, b[0], n + n * batch)


def safe_step(problem: Problem, batch: int) -> float:
    """1/(4 𝓛)."""
    constants = problem.row_constants()
    return 0.25 / (constants.max() / batch + (1.0 - 1.0 / batch) * constants.mean())


@njit(cache=True, nogil=True)
def _batch_steps(
    A,
    y,
    code,
    shape,
    mass,
    table,
    total,
    total_b,
    w,
    b,
    chosen,
    change,
    clock,
    last,
    block_of,
    push,
    powers,
    sums,
    step,
    step_b,
    l1,
    l2,
    state,
    count,
):
    """Take `count` steps; push holds the batch's correction on the drawn block, else zeros."""
    n, batch = y.size, chosen.size
    keep, cut = 1.0 - step * l2, step * l1
    for _ in range(count):
        j = int(sampling.uniform(state) * clock.size)
        push_b = 0.0
        for r in range(batch):
            i = int(sampling.uniform(state) * n)
            start, end = A.indptr[i], A.indptr[i + 1]
            shift = start * A.step - start
            z = b[0]
            for q in range(start, end):
                k = A.indices[q + shift]
                now = clock[block_of[k]]
                if now > last[k]:
                    behind = now - last[k]
                    w[k] = advance(w[k], total[k], behind, step, l1, l2, powers, sums)
                    last[k] = now
                z += A.data[q] * w[k]
            slope = loss_gradient(code, shape, z, y[i])
            chosen[r], change[r] = i, (slope - table[i]) * of_row(mass, i) * n / batch
            push_b += change[r]
        for r in range(batch):
            start, end = A.indptr[chosen[r]], A.indptr[chosen[r] + 1]
            shift = start * A.step - start
            for q in range(start, end):
                k = A.indices[q + shift]
                if block_of[k] == j:
                    push[k] += change[r] * A.data[q]
        for r in range(batch):
            start, end = A.indptr[chosen[r]], A.indptr[chosen[r] + 1]
            shift = start * A.step - start
            for q in range(start, end):
                k = A.indices[q + shift]
                if block_of[k] == j and last[k] == clock[j]:
                    w[k] = soft(keep * w[k] - step * (push[k] + total[k]), cut)
                    push[k] = 0.0
                    last[k] += 1
        b[0] -= step_b * (push_b + total_b)
        clock[j] += 1
    for k in range(w.size):
        behind = clock[block_of[k]] - last[k]
        if behind > 0:
            w[k] = advance(w[k], total[k], behind, step, l1, l2, powers, sums)
        last[k] = 0
    clock[:] = 0


@njit(cache=True, nogil=True)
def _group_batch_steps(
    A,
    y,
    code,
    shape,
    mass,
    table,
    total,
    total_b,
    w,
    b,
    chosen,
    change,
    order,
    starts,
    cuts,
    step,
    step_b,
    l1,
    l2,
    state,
    count,
):
    """Take `count` steps with a group norm: the drawn block of groups is updated whole."""
    n, batch, blocks = y.size, chosen.size, cuts.size - 1
    for _ in range(count):
        j = int(sampling.uniform(state) * blocks)
        push_b = total_b
        for r in range(batch):
            i = int(sampling.uniform(state) * n)
            slope = loss_gradient(code, shape, row_dot(A, i, w) + b[0], y[i])
            chosen[r], change[r] = i, (slope - table[i]) * of_row(mass, i) * n / batch
            push_b += change[r]
        for r in range(batch):
            row_add(A, chosen[r], change[r], total)
        prox_groups(w, total, order, starts, cuts[j], cuts[j + 1], step, l1, l2)
        for r in range(batch):
            row_add(A, chosen[r], -change[r], total)
        b[0] -= step_b * push_b
