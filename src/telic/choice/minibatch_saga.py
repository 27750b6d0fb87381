"""Mini-batch SAGA on the touched coordinates only, the others' proximal steps made up in time.

The sparse-aware form of the algorithm of 3.3.5: a batch changes only the weights of its own
candidates and contexts; what the penalty and the stored mean gradient would have done meanwhile to
a weight is applied, in closed form, when it is next read. Memory: four numbers a weight and one
probability a candidate.
"""

import numpy as np

from telic.choice.elastic_net import Elastic, Fit, Progress, refuse_no_choices, target_gap
from telic.choice.factored_choices import FactoredChoices, squared_norms
from telic.choice.logit_kernels import softmax
from telic.errors import expect_whole
from telic.kernels import kernel
from telic.optim.prox_kernels import soft

W, MEAN, CHANGE, LAST = 0, 1, 2, 3


def fit_saga(
    choices: FactoredChoices,
    penalty: Elastic,
    *,
    batch_size: int = 100,
    max_passes: int = 15,
    tol: float = 0.0,
    seed: int = 0,
    progress: Progress = lambda step: None,
) -> Fit:
    """Minimise [Zhang2017] (3.3.5) by stochastic average gradients of batches.

    Each pass visits all choices in a new random order, batch by batch. The step of a weight is
    ``2 / (L_q + L_max / batch)`` where L_q bounds the curvature of the mean loss in all weights of
    its outcome: batches pay, as long as one outcome is a candidate in few of their choices. The
    bounds hold for the worst softmax there is, so the step is longer than theory's; the steps are
    halved whenever a pass raises the objective.

    Parameters
    ----------
    choices : FactoredChoices
    penalty : Elastic
    batch_size : int
        Choices per step; [Zhang2017] takes 100.
    max_passes : int
        Passes over the choices, after the first one that fills the table.
    tol : float
        Stop when the duality gap is at most `tol` of what the fit has gained, and of the objective;
        looking costs a pass each. With 0, as printed, all passes are taken and none is warned of.
    seed : int
    progress : callable
        Told each pass when it is done.

    Returns
    -------
    Fit
        The last weights, or zero weights where those are better.

    Examples
    --------
    >>> choices = FactoredChoices(
    ...     outcomes=2, entries=1, shared=0, outcome=[0, 1], offset=[0.0, 0.0], start=[0, 2],
    ...     chosen=[1], context_start=[0, 1], context_entry=[0], context_value=[2.0],
    ... )
    >>> fit_saga(choices, Elastic(l1=0.1, l2=0.1), max_passes=100).weights.round(4)
    array([-0.6091,  0.6091])
    """
    expect_whole(1, batch_size=batch_size, max_passes=max_passes)
    refuse_no_choices(choices)
    n, first = len(choices), choices.first
    batch_size = min(batch_size, n)
    steps = _step_sizes(choices, penalty, batch_size)
    state = np.zeros((choices.size, 4))
    table = choices.probabilities(state[:, W])
    residual = table / n
    residual[choices.chosen] -= 1 / n
    state[:, MEAN] = choices.transposed(residual)
    rng = np.random.default_rng(seed)
    history = [(1.0, penalty.objective(choices, state[:, W]))]
    widest = int(np.diff(choices.start).max())
    per_row = np.diff(choices.context_start).max() + np.diff(choices.shared_start).max(initial=0)
    touched = np.empty(min(batch_size * widest * int(per_row), choices.size), np.int64)
    change, strengths = np.empty((batch_size, widest)), (penalty.l1, penalty.l2)
    for done in range(1, max_passes + 1):
        order = rng.permutation(n)
        now = _pass(
            choices.arrays, order, state, table, steps, batch_size, strengths, touched, change
        )
        _catch_up(state, steps, choices.entries, first, now, penalty.l1, penalty.l2)
        history.append((1.0 + done, penalty.objective(choices, state[:, W])))
        progress(f"pass {done} of {max_passes}")
        if not history[-1][1] <= history[-2][1]:
            steps = steps / 2
        elif tol and penalty.gap(choices, state[:, W]) <= target_gap(tol, history):
            break
    w = state[:, W].copy()
    if not history[-1][1] <= history[0][1]:
        w[:] = 0.0
        history.append((history[-1][0], history[0][1]))
    gap, target = penalty.gap(choices, w), target_gap(tol, history)
    return Fit(w, "saga", history[-1][0], history, gap, target).checked()


def _step_sizes(choices: FactoredChoices, penalty: Elastic, batch_size: int) -> np.ndarray:
    """Step of each outcome's weights, then of the shared ones."""
    n = len(choices)
    squares, shared = squared_norms(choices)
    # Twice each, where there are both, because the two kinds of weights move at once.
    both = 2.0 if shared.any() and squares.any() else 1.0
    of_outcome = np.bincount(choices.outcome, squares[choices.choice], choices.outcomes)
    curvature = np.append(of_outcome, shared.sum()) / (2 * n)
    worst = np.append(
        np.full(choices.outcomes, squares.max(initial=0.0) / 2),
        np.maximum.reduceat(shared, choices.start[:-1]).max(initial=0.0) / 2,
    )
    # The penalty is in the prox, but the table remembers for n / batch steps.
    slack = penalty.l2 * n / batch_size
    return 2 / (both * (curvature + worst / batch_size) + slack + 1e-300)


@kernel
def _lagged(w, g, step, l1, l2, m):
    """Apply m proximal steps with the constant slope g to one weight.

    `telic.optim.prox_kernels.advance` takes other steps: its ridge is in the gradient and bounds
    the step, here it is in the prox, and a few formulas stand for its tables of powers.
    """
    # Where step * l2 is below the rounding of 1, 1 + step * l2 would forget it.
    rate = max(np.log1p(step * l2), 1e-300)
    while m > 0:
        sign = 1.0
        if w < 0.0 or (w == 0.0 and g > 0.0):
            sign = -1.0
        u, slope = sign * w, sign * g + l1
        if u == 0.0 and slope >= 0.0:
            return 0.0
        # While u stays positive: u <- (u - step * slope) / (1 + step * l2).
        k = m
        if slope > 0.0:
            reach = np.log1p(l2 * u / slope) / rate
            if reach < m:  # it may be infinite: a tiny slope never gets there
                k = int(reach)
        u = max(u + (u + slope / l2) * np.expm1(-k * rate), 0.0)
        m -= k
        w = sign * u
        if m > 0:  # the step that reaches or crosses zero
            v = w - step * g
            w = soft(v, step * l1, step * l1) / (1.0 + step * l2)
            m -= 1
    return w


@kernel
def _catch_up(state, steps, entries, first, now, l1, l2):
    """Bring every weight to the present, which becomes time 0."""
    for j in range(len(state)):
        s = steps[j // entries] if j < first else steps[-1]
        state[j, W] = _lagged(state[j, W], state[j, MEAN], s, l1, l2, now - int(state[j, LAST]))
        state[j, LAST] = 0.0


@kernel
def _fresh(state, j, step, now, l1, l2):
    """Read one weight as of the present."""
    row = state[j]
    lag = now - int(row[LAST])
    if lag > 0:
        if row[W] != 0.0 or abs(row[MEAN]) > l1:
            row[W] = _lagged(row[W], row[MEAN], step, l1, l2, lag)
        row[LAST] = now
    return row[W]


@kernel
def _pass(rows, order, state, table, steps, batch_size, strengths, touched, change):
    """One pass in the given order; return the number of steps."""
    n, (l1, l2) = len(order), strengths
    now = 0
    for begin in range(0, n, batch_size):
        size = min(batch_size, n - begin)
        for i in range(size):  # new probabilities, all at the same weights
            c = order[begin + i]
            a, top = rows.start[c], -np.inf
            for r in range(a, rows.start[c + 1]):
                base, step = np.int64(rows.outcome[r]) * rows.entries, steps[rows.outcome[r]]
                score = rows.offset[r]
                for e in range(rows.context_start[c], rows.context_start[c + 1]):
                    score += rows.context_value[e] * _fresh(
                        state, base + rows.context_entry[e], step, now, l1, l2
                    )
                for e in range(rows.shared_start[r], rows.shared_start[r + 1]):
                    j = rows.first + rows.shared_feature[e]
                    score += rows.shared_value[e] * _fresh(state, j, steps[-1], now, l1, l2)
                change[i, r - a] = score
                top = max(top, score)
            softmax(change[i], rows.start[c + 1] - a, top)
            for k in range(rows.start[c + 1] - a):
                new = change[i, k]
                change[i, k] = new - table[a + k]
                table[a + k] = new
        found = 0
        for i in range(size):
            c = order[begin + i]
            for r in range(rows.start[c], rows.start[c + 1]):
                base, delta = np.int64(rows.outcome[r]) * rows.entries, change[i, r - rows.start[c]]
                for e in range(rows.context_start[c], rows.context_start[c + 1]):
                    j = base + rows.context_entry[e]
                    if state[j, LAST] == now:  # not yet in the list of this batch
                        state[j, LAST] = now + 1
                        touched[found] = j
                        found += 1
                    state[j, CHANGE] += delta * rows.context_value[e]
                for e in range(rows.shared_start[r], rows.shared_start[r + 1]):
                    j = rows.first + rows.shared_feature[e]
                    if state[j, LAST] == now:
                        state[j, LAST] = now + 1
                        touched[found] = j
                        found += 1
                    state[j, CHANGE] += delta * rows.shared_value[e]
        for t in range(found):
            j = touched[t]
            step = steps[j // rows.entries] if j < rows.first else steps[-1]
            row = state[j]
            u = row[W] - step * (row[MEAN] + row[CHANGE] / size)
            row[W] = soft(u, step * l1, step * l1) / (1.0 + step * l2)
            row[MEAN] += row[CHANGE] / n
            row[CHANGE] = 0.0
        now += 1
    return now
