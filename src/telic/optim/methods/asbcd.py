"""Accelerated stochastic block coordinate descent with optimal sampling (Algorithm 1)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from telic.kernels import kernel
from telic.optim import prox_kernels
from telic.optim.loop import Iterate
from telic.optim.loss_kernels import loss_gradient
from telic.optim.loss_rows.shares import of_row
from telic.optim.method_facts import Method
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem
from telic.optim.prox_kernels import advance, soft
from telic.optim.rows import FAST, entries, entry, row_add, row_dot
from telic.optim.sampling import draw, draw_tables, probabilities, uniform

LONGEST = 4096
"""Steps at rest for which powers are looked up; a coordinate that rests longer computes them."""


def asbcd(
    problem: Problem,
    *,
    sampling: str = "optimal",
    blocks: int = 1,
    step_size: float | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run Algorithm 1, one iterate per n draws.

    A step draws row i with probability p_i and block j uniformly, and moves only block j:
    w_j ← prox(w_j − η[(n p_i)⁻¹(∇f_i(w) − ∇f_i(φ_i)) + n⁻¹ Σ_k ∇f_k(φ_k)]_j). The table of φ_i is
    kept as one loss derivative per row (Remark 4.2.1) with the ℓ₂ term added exactly, and the
    whole sum over the row's non-zeros follows a change of φ_i: updating it on block j alone, as
    [Zhang2017] says, converges elsewhere. Coordinates no row touches catch up when they are next
    needed, so that a step costs the row's non-zeros; under a group norm, where they cannot, the
    whole block.

    Parameters
    ----------
    problem : Problem
    sampling : {"optimal", "uniform", "lipschitz"}
        How rows are drawn.
    blocks : int
        Number of blocks m: runs of neighbouring coordinates, or of whole groups.
    step_size : float, optional
        η; by default `largest_step`.
    state : array of uint64, shape (1,)
        Of the random numbers, from `telic.optim.sampling.random_state`.
    coef, intercept
        Where to start; `coef` is changed in place.
    """
    constants = problem.row_constants()
    p = probabilities(sampling, constants, problem.l2)
    step = largest_step(p, constants, problem.l2) if step_size is None else step_size
    return incremental(
        problem, p=p, blocks=blocks, step=step, state=state, coef=coef, intercept=intercept
    )


def largest_step(p: np.ndarray, constants: np.ndarray, mu: float) -> float:
    """min_i n p_i / [2(nμ + L_i)]: Theorem 4.3.4, which prints max and diverges with it."""
    n = p.size
    with np.errstate(divide="ignore"):
        safe = constants + n * mu
        return float(0.5 * n * np.divide(p, safe, out=safe).min())


def safe_step(problem: Problem, sampling: str, _: int) -> float:
    """Return `largest_step` for the sampling."""
    constants = problem.row_constants()
    return largest_step(probabilities(sampling, constants, problem.l2), constants, problem.l2)


METHOD = Method("asbcd", asbcd, safe_step=safe_step, samples=True, blocks=1)


def incremental(
    problem: Problem,
    *,
    p: np.ndarray,
    blocks: int,
    step: float,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float,
) -> Iterator[Iterate]:
    """Yield an iterate per n steps with the gradient table; SAGA is blocks = 1 and p = 1/n."""
    n, d = problem.design.n, problem.design.d
    A, terms = problem.design.rows, problem.terms
    draws, b = draw_tables(p), np.array([intercept])
    table, (total, total_b) = snapshot(problem, coef, intercept)
    rates, work = problem.rates(step), n
    if found := whole_steps(problem, blocks):
        steps, parts = found
        while True:
            steps(A, terms, draws, table, (total, total_b), (coef, b), parts, rates, state, n, True)
            yield Iterate(coef, b[0], work + n)
            work = 0
    clock, nodes = np.zeros(blocks), np.zeros((d, 3))
    nodes[:, 0], nodes[:, 1] = coef, total
    del total
    block_of = block_labels(d, blocks) if blocks > 1 else np.empty(0, np.int32)
    sums, runs = (nodes, total_b), (clock, block_of)
    rest = tables(step * problem.l2, min(n, d, LONGEST))
    while True:
        sparse_steps(A, terms, draws, table, sums, b, runs, rates, rest, state, n, True)
        coef[:] = nodes[:, 0]
        yield Iterate(coef, b[0], work + n)
        work = 0


def snapshot(
    problem: Problem, coef: np.ndarray, intercept: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the derivative of each row's loss, and the weighted sums of the rows and of ones."""
    table = problem.predict(coef, intercept)
    problem.slopes(table, out=table)
    sums = problem.back(table), np.array([table.sum()])
    np.divide(table, problem.mass, out=table, where=problem.mass > 0)
    return table, sums


def whole_steps(problem: Problem, blocks: int) -> tuple[Callable[..., None], Any] | None:
    """Return the kernel whose steps visit blocks whole, and these; None for `sparse_steps`."""
    if isinstance(problem.penalty, GroupElasticNet):
        return group_steps, group_blocks(problem.penalty, blocks)
    if not problem.design.is_sparse:
        labels = block_labels(problem.design.d, blocks)
        return dense_steps, np.searchsorted(labels, np.arange(blocks + 1))
    return None


def block_labels(d: int, blocks: int) -> np.ndarray:
    """Block of each coordinate: runs of neighbours of nearly equal length."""
    return (np.arange(d, dtype=np.int64) * blocks // d).astype(np.int32)


def group_blocks(
    penalty: GroupElasticNet, blocks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates by group, where each group begins, and where each block of groups."""
    count = penalty.starts.size - 1
    cuts = np.linspace(0, count, min(blocks, count) + 1).astype(np.int64)
    return penalty.order, penalty.starts, cuts


def tables(rate: float, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the powers and sums that `prox_kernels.advance` looks up."""
    powers, sums = np.empty(length + 1), np.empty(length + 1)
    prox_kernels.decay_tables(rate, powers, sums)
    return powers, sums


@kernel
def sparse_steps(A, terms, draws, table, sums, b, blocks, rates, rest, state, count, refresh):
    """Take `count` steps of Algorithm 1; without `refresh` the table stays, as SVRG wants it.

    Line k of nodes holds w_k, the table's sum, and the clock at which w_k was brought up to date:
    side by side, since a step visits them together.
    """
    code, shape, y, mass = terms
    p, threshold, alias = draws
    nodes, total_b = sums
    clock, block_of = blocks
    step, step_b, l1, below, l2 = rates
    powers, geometric = rest
    n, m = y.size, clock.size
    keep, cut, cut_below = 1.0 - step * l2, step * l1, step * below
    j = 0
    for _ in range(count):
        i = draw(state, n, threshold, alias)
        if m > 1:
            j = int(uniform(state) * m)
        start, end = entries(A, i)
        z = b[0]
        for q in range(start, end):
            k, x = entry(A, i, q)
            now = clock[block_of[k]] if m > 1 else clock[0]
            w, total, last = nodes[k, 0], nodes[k, 1], nodes[k, 2]
            if last < now:
                nodes[k, 2] = now
                behind = int(now - last)
                # The usual cases of `advance` without the call: at rest, or on one side of zero.
                if w != 0.0 or total < -l1 or total > below:
                    there = 0.0
                    if w != 0.0 and behind < powers.size:
                        pull = step * (total + (l1 if w > 0.0 else -below))
                        there = powers[behind] * w - pull * geometric[behind]
                    if there * w > 0.0:
                        w = there
                    else:
                        w = advance(w, total, behind, step, l1, below, l2, powers, geometric)
                    nodes[k, 0] = w
            z += x * w
        slope = loss_gradient(code, shape, z, y[i])
        change = (slope - table[i]) * of_row(mass, i)
        corrected = change / of_row(p, i)
        push = step * corrected
        for q in range(start, end):
            k, x = entry(A, i, q)
            if m == 1 or block_of[k] == j:
                move = push * x + step * nodes[k, 1]
                nodes[k, 0] = soft(keep * nodes[k, 0] - move, cut, cut_below)
                nodes[k, 2] += 1.0
            if refresh:
                nodes[k, 1] += change * x
        b[0] -= step_b * (corrected + total_b[0])
        if refresh:
            table[i] = slope
            total_b[0] += change
        clock[j] += 1.0
    for k in range(nodes.shape[0]):
        now = clock[block_of[k]] if m > 1 else clock[0]
        behind = int(now - nodes[k, 2])
        if behind > 0:
            w, total = nodes[k, 0], nodes[k, 1]
            nodes[k, 0] = advance(w, total, behind, step, l1, below, l2, powers, geometric)
        nodes[k, 2] = 0.0
    clock[:] = 0.0


@kernel(fastmath=FAST)
def dense_steps(A, terms, draws, table, sums, point, cuts, rates, state, count, refresh):
    """Do what `sparse_steps` does where every row holds every coordinate: none ever rests."""
    code, shape, y, mass = terms
    p, threshold, alias = draws
    total, total_b = sums
    w, b = point
    step, step_b, l1, below, l2 = rates
    n, m = y.size, cuts.size - 1
    keep, cut, cut_below = 1.0 - step * l2, step * l1, step * below
    j = 0
    for _ in range(count):
        i = draw(state, n, threshold, alias)
        if m > 1:
            j = int(uniform(state) * m)
        slope = loss_gradient(code, shape, row_dot(A, i, w) + b[0], y[i])
        change = (slope - table[i]) * of_row(mass, i)
        corrected = change / of_row(p, i)
        push = step * corrected
        for k in range(cuts[j], cuts[j + 1]):
            # Soft-thresholding without a branch.
            u = keep * w[k] - (push * A[i, k] + step * total[k])
            w[k] = u - min(cut, max(-cut_below, u))
        b[0] -= step_b * (corrected + total_b[0])
        if refresh:
            row_add(A, i, change, total)
            table[i] = slope
            total_b[0] += change


@kernel
def group_steps(A, terms, draws, table, sums, point, groups, rates, state, count, refresh):
    """Take `count` steps with a group norm: the drawn block of groups is updated whole."""
    code, shape, y, mass = terms
    p, threshold, alias = draws
    total, total_b = sums
    w, b = point
    order, starts, cuts = groups
    step, step_b, l1, _, l2 = rates
    n, blocks = y.size, cuts.size - 1
    for _ in range(count):
        i = draw(state, n, threshold, alias)
        j = int(uniform(state) * blocks)
        slope = loss_gradient(code, shape, row_dot(A, i, w) + b[0], y[i])
        change = (slope - table[i]) * of_row(mass, i)
        corrected = change / of_row(p, i)
        # The estimator is (total + change x_i / p_i) now and total + change x_i afterwards.
        row_add(A, i, corrected, total)
        prox_kernels.prox_groups(w, total, order, starts, cuts[j], cuts[j + 1], step, l1, l2)
        row_add(A, i, (change if refresh else 0.0) - corrected, total)
        b[0] -= step_b * (corrected + total_b[0])
        if refresh:
            table[i] = slope
            total_b[0] += change
