"""Mini-batch randomised block coordinate descent: SVRG on a batch of rows and one block."""

from collections.abc import Iterator

import numpy as np

from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.loop import Iterate
from telic.optim.loss_kernels import loss_gradient
from telic.optim.loss_rows.shares import of_row
from telic.optim.method_facts import Method
from telic.optim.methods.asbcd import LONGEST, block_labels, group_blocks, snapshot, tables
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem
from telic.optim.prox_kernels import advance, prox_groups, soft
from telic.optim.rows import entries, entry, row_add, row_dot


def mrbcd(
    problem: Problem,
    *,
    blocks: int = 10,
    batch_size: int = 10,
    step_size: float | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run MRBCD (Zhao et al. 2014): n inner loops [Zhang2017] (4.4.4) after each exact gradient.

    One iterate is a stage of n + n · batch gradients, each used on one block.

    Parameters
    ----------
    batch_size : int
        Rows of one step, drawn uniformly with replacement. The dissertation gives none.
    step_size : float, optional
        By default 1/(4 𝓛), 𝓛 = L_max / batch + (1 − 1/batch) L_mean, a bound on the Lipschitz
        constant that a batch drawn with replacement sees in expectation.

    Other parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem, "uniform", batch_size) if step_size is None else step_size
    b, chosen = np.array([intercept]), (np.empty(batch_size, np.int64), np.empty(batch_size))
    clocks = np.zeros(blocks, np.int32), np.zeros(d, np.int32), block_labels(d, blocks)
    rest, push = tables(step * problem.l2, min(n, d, LONGEST)), np.zeros(d)
    A, terms, rates = problem.design.rows, problem.terms, problem.rates(step)
    while True:
        table, (total, total_b) = snapshot(problem, coef, b[0])
        sums = total, total_b[0]
        if isinstance(problem.penalty, GroupElasticNet):
            groups = group_blocks(problem.penalty, blocks)
            _group_batch_steps(A, terms, table, sums, (coef, b), chosen, groups, rates, state, n)
        else:
            _batch_steps(
                A, terms, table, sums, (coef, b), chosen, clocks, push, rates, rest, state, n
            )
        yield Iterate(coef, b[0], n + n * batch_size)


def safe_step(problem: Problem, _: str, batch_size: int) -> float:
    """1/(4 𝓛)."""
    constants = problem.row_constants()
    return 0.25 / (constants.max() / batch_size + (1.0 - 1.0 / batch_size) * constants.mean())


METHOD = Method("mrbcd", mrbcd, safe_step=safe_step, blocks=10, batch_size=10)


@kernel
def _batch_steps(A, terms, table, sums, point, chosen, clocks, push, rates, rest, state, count):
    """Take `count` steps; push holds the batch's correction on the drawn block, else zeros."""
    code, shape, y, mass = terms
    total, total_b = sums
    w, b = point
    drawn, change = chosen
    clock, last, block_of = clocks
    step, step_b, l1, below, l2 = rates
    powers, geometric = rest
    n, batch_size = y.size, drawn.size
    keep, cut, cut_below = 1.0 - step * l2, step * l1, step * below
    for _ in range(count):
        j = int(sampling.uniform(state) * clock.size)
        push_b = 0.0
        for r in range(batch_size):
            i = int(sampling.uniform(state) * n)
            z = b[0]
            start, end = entries(A, i)
            for q in range(start, end):
                k, x = entry(A, i, q)
                now = clock[block_of[k]]
                if now > last[k]:
                    behind = now - last[k]
                    w[k] = advance(w[k], total[k], behind, step, l1, below, l2, powers, geometric)
                    last[k] = now
                z += x * w[k]
            slope = loss_gradient(code, shape, z, y[i])
            drawn[r], change[r] = i, (slope - table[i]) * of_row(mass, i) * n / batch_size
            push_b += change[r]
        for r in range(batch_size):
            start, end = entries(A, drawn[r])
            for q in range(start, end):
                k, x = entry(A, drawn[r], q)
                if block_of[k] == j:
                    push[k] += change[r] * x
        for r in range(batch_size):
            start, end = entries(A, drawn[r])
            for q in range(start, end):
                k, _ = entry(A, drawn[r], q)
                if block_of[k] == j and last[k] == clock[j]:
                    w[k] = soft(keep * w[k] - step * (push[k] + total[k]), cut, cut_below)
                    push[k] = 0.0
                    last[k] += 1
        b[0] -= step_b * (push_b + total_b)
        clock[j] += 1
    for k in range(w.size):
        behind = clock[block_of[k]] - last[k]
        if behind > 0:
            w[k] = advance(w[k], total[k], behind, step, l1, below, l2, powers, geometric)
        last[k] = 0
    clock[:] = 0


@kernel
def _group_batch_steps(A, terms, table, sums, point, chosen, groups, rates, state, count):
    """Take `count` steps with a group norm: the drawn block of groups is updated whole."""
    code, shape, y, mass = terms
    total, total_b = sums
    w, b = point
    drawn, change = chosen
    order, starts, cuts = groups
    step, step_b, l1, _, l2 = rates
    n, batch_size, blocks = y.size, drawn.size, cuts.size - 1
    for _ in range(count):
        j = int(sampling.uniform(state) * blocks)
        push_b = total_b
        for r in range(batch_size):
            i = int(sampling.uniform(state) * n)
            slope = loss_gradient(code, shape, row_dot(A, i, w) + b[0], y[i])
            drawn[r], change[r] = i, (slope - table[i]) * of_row(mass, i) * n / batch_size
            push_b += change[r]
        for r in range(batch_size):
            row_add(A, drawn[r], change[r], total)
        prox_groups(w, total, order, starts, cuts[j], cuts[j + 1], step, l1, l2)
        for r in range(batch_size):
            row_add(A, drawn[r], -change[r], total)
        b[0] -= step_b * push_b
