"""Proximal SGD and stochastic block coordinate descent: one row, one block, a shrinking step."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.loop import Iterate
from telic.optim.loss_kernels import loss_gradient
from telic.optim.loss_rows.shares import of_row
from telic.optim.method_facts import Method
from telic.optim.methods.asbcd import block_labels, group_blocks
from telic.optim.penalties import GroupElasticNet
from telic.optim.problem import Problem
from telic.optim.prox_kernels import prox_groups, soft
from telic.optim.rows import entries, entry, row_add, row_dot


def sbcd(
    problem: Problem,
    *,
    blocks: int = 10,
    step_size: float | None = None,
    state: np.ndarray,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Iterator[Iterate]:
    """Run stochastic block coordinate descent, one iterate per n draws; sublinear.

    The step at draw t is η₀/(1 + η₀ μ t) (Bottou 2012), or η₀/√(1 + t/n) without l2.

    Parameters
    ----------
    step_size : float, optional
        η₀; by default 1/(2 L), L the largest Lipschitz constant.

    Other parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    n, d = problem.design.n, problem.design.d
    step = safe_step(problem) if step_size is None else step_size
    b, drawn = np.array([intercept]), np.zeros(1, np.int64)
    A, terms, point, rates = problem.design.rows, problem.terms, (coef, b), problem.rates(step)
    if isinstance(problem.penalty, GroupElasticNet):
        groups, row = group_blocks(problem.penalty, blocks), np.zeros(d)
        while True:
            _group_steps(A, terms, point, row, groups, rates, drawn, state)
            yield Iterate(coef, b[0], n)
    block_of = block_labels(d, blocks)
    while True:
        scaled = block_of, np.ones(blocks), np.zeros(blocks), np.zeros(d)
        _steps(A, terms, point, scaled, rates, drawn, state)
        yield Iterate(coef, b[0], n)


def sgd(problem: Problem, **options: Any) -> Iterator[Iterate]:
    """Run proximal stochastic gradient descent: SBCD with one block [Zhang2017] (4.4.3)."""
    return sbcd(problem, blocks=1, **options)


def safe_step(problem: Problem, *_: object) -> float:
    """1/(2 L)."""
    return 0.5 / problem.row_constants().max()


METHOD = Method("sbcd", sbcd, safe_step=safe_step, blocks=10)
SGD = Method("sgd", sgd, safe_step=safe_step)


@kernel
def _step_at(first, l2, t, n):
    """Step size of draw t."""
    return first / (1.0 + first * l2 * t) if l2 > 0 else first / math.sqrt(1.0 + t / n)


@kernel
def _steps(A, terms, point, scaled, rates, drawn, state):
    """Take n steps on u = w / scale[block], so that shrinking and thresholding a block is O(1).

    Between two visits u only meets thresholds, whose sum since the start is cut[block]; they stop
    at zero, so what may not be negative does not become so.
    """
    code, shape, y, mass = terms
    w, b = point
    block_of, scale, cut, seen = scaled
    first, first_b, l1, below, l2 = rates
    n, blocks = y.size, scale.size
    j = 0
    for _ in range(n):
        i = int(sampling.uniform(state) * n)
        if blocks > 1:
            j = int(sampling.uniform(state) * blocks)
        eta = _step_at(first, l2, drawn[0], n)
        drawn[0] += 1
        z = b[0]
        start, end = entries(A, i)
        for q in range(start, end):
            k, x = entry(A, i, q)
            jk = block_of[k]
            if seen[k] < cut[jk]:
                behind = cut[jk] - seen[k]
                w[k] = soft(w[k], behind, behind)
                seen[k] = cut[jk]
            z += x * w[k] * scale[jk]
        push = eta * n * of_row(mass, i) * loss_gradient(code, shape, z, y[i])
        scale[j] *= 1.0 - eta * l2
        threshold = eta * l1 / scale[j]
        cut[j] += threshold
        for q in range(start, end):
            k, x = entry(A, i, q)
            if block_of[k] == j:
                w[k] = soft(w[k] - push * x / scale[j], threshold, eta * below / scale[j])
                seen[k] = cut[j]
        if first_b > 0.0:
            b[0] -= push
    for k in range(w.size):
        j = block_of[k]
        behind = cut[j] - seen[k]
        w[k] = soft(w[k], behind, behind) * scale[j]


@kernel
def _group_steps(A, terms, point, row, groups, rates, drawn, state):
    """Take n steps with a group norm; row holds the drawn row's gradient, else zeros."""
    code, shape, y, mass = terms
    w, b = point
    order, starts, cuts = groups
    first, first_b, l1, _, l2 = rates
    n, blocks = y.size, cuts.size - 1
    for _ in range(n):
        i = int(sampling.uniform(state) * n)
        j = int(sampling.uniform(state) * blocks)
        eta = _step_at(first, l2, drawn[0], n)
        drawn[0] += 1
        push = n * of_row(mass, i) * loss_gradient(code, shape, row_dot(A, i, w) + b[0], y[i])
        row_add(A, i, push, row)
        prox_groups(w, row, order, starts, cuts[j], cuts[j + 1], eta, l1, l2)
        row_add(A, i, -push, row)
        if first_b > 0.0:
            b[0] -= eta * push
