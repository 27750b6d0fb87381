"""Proximal Newton on a growing working set, with the Gram matrix of the set while it is small."""

from collections.abc import Generator

import numpy as np

from telic.errors import InputError
from telic.optim import row_products
from telic.optim.loop import Iterate
from telic.optim.method_facts import Method
from telic.optim.methods.gram_descent import minimise
from telic.optim.methods.line_search import backtrack
from telic.optim.methods.prox_newton_anderson import descend_columns
from telic.optim.methods.prox_newton_gram import WorkingGram
from telic.optim.problem import Problem
from telic.optim.row_products import some_products, some_sums
from telic.optim.threads import share

_START_SIZE = 200
"""Features that the set grows by, or half the support if that is more."""
_STALE = 0.6
"""Share of the violation a step may leave before the curvatures are renewed."""


def prox_newton(
    problem: Problem,
    *,
    coef: np.ndarray,
    intercept: float = 0.0,
) -> Generator[Iterate, Problem | None]:
    """Run proximal Newton, one iterate per working set.

    The set grows by the features that violate optimality most. On it the loss is replaced by its
    quadratic model, which coordinate descent on the Gram matrix minimises; a line search takes
    care of the rest. Groups enter the set, and move, as a whole. The Gram matrix keeps the
    curvatures it was formed with, since a step then costs a tenth of forming it anew, until a step
    takes away less than 1 − `_STALE` of the violation. Where the matrix would be larger than the
    data, `anderson.descend_columns` does without it, on a set of at most twice the support; for
    groups nothing does.

    `problem`, `coef` and `intercept` are as in `telic.optim.methods.asbcd.asbcd`.

    Raises
    ------
    InputError
        If the groups in use hold more features than a matrix is kept for.
    """
    columns, threads = problem.design.columns, problem.threads
    gram = WorkingGram(problem)
    z = problem.predict(coef, intercept)
    a, gradient = np.empty(problem.design.n), np.empty(problem.design.d)
    spent, risk = problem.design.n, None
    while True:
        intercept, risk = problem.settle(z, intercept, risk)
        problem.slopes(z, out=a)
        share(row_products.products, threads, columns, a, 0.0, gradient)
        other = yield Iterate(coef, intercept, spent, z, a, gradient, risk)
        if other is not None:
            if not other.penalty.has_blocks_of(problem.penalty):
                gram = WorkingGram(other)
            problem = other
        violation = problem.penalty.violations(gradient, coef)
        worst = violation.max()
        support = int(np.count_nonzero(coef))
        # Features in use come first, then the worst violators.
        violation[problem.penalty.in_use(coef)] = np.inf
        if _grown(gram, violation, max(_START_SIZE, support // 2), z):
            intercept, spent, risk = _on_gram(
                *(problem, gram, coef, intercept, z, risk, gradient, 0.1 * worst, a)
            )
        elif problem.is_grouped:
            raise InputError(
                f"the groups in use hold more than {gram.limit} features. Raise l1, or use saga."
            )
        else:
            wrong = int(np.count_nonzero(violation > 0))
            size = max(min(max(_START_SIZE, 2 * support), wrong), support)
            working = _largest(violation, size)
            intercept, spent, risk = descend_columns(
                *(problem, working, coef, intercept, z, risk, 0.3 * worst)
            )


METHOD = Method("prox_newton", prox_newton, random=False, resumes=True, offsets=True)


def _grown(gram: WorkingGram, violation: np.ndarray, most: int, z: np.ndarray) -> bool:
    """Extend the matrix by the features of largest violation; False where it would be too large."""
    outside = np.where(gram.inside, 0.0, violation)
    count = int(np.isinf(outside).sum())
    count = max(count, min(most, int(np.count_nonzero(outside))))
    new = _largest(outside, count, ties=gram.whole)
    if gram.features.size and gram.features.size + new.size <= gram.limit:
        if new.size:
            gram.extend(new)
        return True
    kept = gram.features[violation[gram.features] > 0]
    if kept.size + new.size > gram.limit:
        return False
    gram.restart(z, np.concatenate([kept, new]))
    return True


def _largest(values: np.ndarray, count: int, ties: bool = False) -> np.ndarray:
    """Return the places of the largest values, in order; with those that equal the last if asked.

    The violations of a group's features are the same: that of their group.
    """
    if count == 0:
        return np.empty(0, np.int64)
    chosen = np.argpartition(-values, count - 1)[:count]
    if ties:
        chosen = np.flatnonzero(values >= values[chosen].min())
    return np.sort(chosen).astype(np.int64)


def _on_gram(
    problem: Problem,
    gram: WorkingGram,
    coef: np.ndarray,
    intercept: float,
    z: np.ndarray,
    risk: float,
    gradient: np.ndarray,
    target: float,
    move_z: np.ndarray,
) -> tuple[float, int, float | None]:
    """Minimise over the set until no violation exceeds target; z and coef in place.

    Returns the intercept, the component gradients spent, and the risk if it is known. move_z, of
    length n, is overwritten: with the move's predictions, then the slopes after it.
    """
    columns, n = problem.design.columns, problem.design.n
    features = gram.features
    exact = problem.loss.code == 0
    # Rounds cost groups less than another look at the data, where the model is exact.
    share_left = 0.03 if exact and problem.is_grouped else 0.1
    penalty = problem.penalty.among(features)
    w, slope, slope_b = coef[features], gradient[features], 0.0
    spent, fresh = n, False
    worst = penalty.violations(slope, w).max(initial=0.0)
    for _ in range(20):
        start, model = w.copy(), slope - gram.means * slope_b
        goal = max(share_left * worst, 0.3 * target)
        for change in (goal, 0.1 * goal, 0.01 * goal, 1e-3 * goal):
            minimise(gram.matrix, model, w, penalty, goal=change, rounds=2000)
            # Many small changes that agree can leave more than any of them.
            if penalty.violations(model, w).max(initial=0.0) <= 3.0 * goal:
                break
        move = w - start
        move_b = 0.0
        if problem.fit_intercept:
            move_b = -(gram.means @ move) - slope_b / gram.weights.sum()
        move_z[:] = move_b
        share(some_sums, problem.threads, columns, features, move, move_z)
        step = 1.0
        if not exact:
            total = slope @ move + slope_b * move_b
            step, risk = backtrack(problem, penalty, z, move_z, start, move, total, risk)
        # A move of nothing but rounding may be infinite.
        if step > 0.0:
            move_z *= step
            z += move_z
            w = start + step * move
            intercept += step * move_b
        else:
            w = start
        if exact:
            break
        a = problem.slopes(z, out=move_z)
        share(some_products, problem.threads, columns, features, a, slope)
        slope_b = a.sum() if problem.fit_intercept else 0.0
        spent += n
        last = worst
        worst = max(penalty.violations(slope, w).max(initial=0.0), abs(slope_b))
        if worst <= target or (fresh and step == 0.0):
            break
        fresh = worst > _STALE * last or step == 0.0
        if fresh:
            gram.restart(z, features)
            order = np.argsort(features)
            features, w, slope = gram.features, w[order], slope[order]
            penalty = problem.penalty.among(features)
    coef[features] = w
    return intercept, spent, None if exact else risk
