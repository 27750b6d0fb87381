"""Stochastic dual coordinate ascent: the probabilities of one choice at a time.

The dual of [Zhang2017] (3.3.5) has probabilities p_c over the candidates of each choice c. With

    v = (1/n) sum_c X_c' (e_chosen - p_c),    w = sign(v) max(|v| - l1, 0) / l2,

a step replaces one p_c. That changes v on the weights of its own candidates and context only, and w
follows entry by entry: nothing has to be made up later, as in SAGA. And the dual objective

    D(p) = (1/n) sum_c [entropy(p_c) + offset' (p_c - e_chosen)] - sum_j max(|v_j| - l1, 0)^2 / 2 l2

is below the optimum, so that the gap is known. After Shalev-Shwartz and Zhang (2014), with the step
solved to the end: the rows of a choice have disjoint weights, so only their squared norms matter.

It takes about ``mean |x_c|^2 / (l2 n)`` passes: few where choices are many, thousands where l2 n is
small. There each pass works on the objective plus ``extra / 2 * |w - centre|^2``, which is as well
conditioned as wanted, and the centre runs ahead of the weights: the accelerated proximal-point
method of Shalev-Shwartz and Zhang (2014, section 5), which takes about the square root of that
number. The bound stays that of (3.3.5) itself: any p gives one.
"""

import numpy as np

from telic.choice.elastic_net import Elastic, Fit, Progress, refuse_no_choices, target_gap
from telic.choice.factored_choices import FactoredChoices, squared_norms
from telic.errors import expect_whole
from telic.kernels import kernel

CONDITION = 10.0, 100.0
"""Passes that plain ascent may need, at least and at most; `extra` is what brings it down to the
square root of what it would need, within these."""
BOLD = 0.25
"""Share of the safe curvature that plain ascent begins with: few weights are not 0, and only
those bend the dual. It doubles, up to all of it, whenever the gap does not fall."""
FALLING = 0.9


def fit_sdca(
    choices: FactoredChoices,
    penalty: Elastic,
    *,
    max_passes: int = 20_000,
    tol: float = 1e-5,
    seed: int = 0,
    progress: Progress = lambda step: None,
) -> Fit:
    """Minimise (3.3.5) by ascent of its dual: some times ``sqrt(mean |x_c|^2 / (l2 n))`` passes.

    Each pass visits all choices in a new random order. Memory: one number a candidate, and three
    a weight, or five where plain ascent would be slow.

    Parameters
    ----------
    choices : FactoredChoices
    penalty : Elastic
    max_passes : int
        Most passes over the choices, before a `ConvergenceWarning`.
    tol : float
        Stop when the duality gap is at most `tol` of what the fit has gained, and of the objective.
        With 0 all passes are taken, and none is warned of.
    seed : int
    progress : callable
        Told each pass when it is done.

    Returns
    -------
    Fit
        The best weights of all passes, zero weights among them. `Fit.gap` is the duality gap: the
        objective is at most so far above the optimum.

    Examples
    --------
    >>> choices = FactoredChoices(
    ...     outcomes=2, entries=1, shared=0, outcome=[0, 1], offset=[0.0, 0.0], start=[0, 2],
    ...     chosen=[1], context_start=[0, 1], context_entry=[0], context_value=[2.0],
    ... )
    >>> fit_sdca(choices, Elastic(l1=0.1, l2=0.1), tol=1e-12).weights.round(4)
    array([-0.6091,  0.6091])
    """
    expect_whole(1, max_passes=max_passes)
    refuse_no_choices(choices)
    n = len(choices)
    p = np.zeros(choices.rows)
    p[choices.chosen] = 1.0
    context, shared = squared_norms(choices)
    # All shared features of a choice may move together: the trace bounds their part.
    squares = context + np.add.reduceat(shared, choices.start[:-1])
    alone = squares.mean() / (penalty.l2 * n)
    extra = penalty.l2 * max(alone / np.clip(np.sqrt(alone), *CONDITION) - 1, 0.0)
    near = Elastic(penalty.l1, penalty.l2 + extra)
    curvature = squares / (near.l2 * n)
    root = np.sqrt(penalty.l2 / near.l2)
    bold, pace, most = 1.0 if extra else BOLD, 1.0, (1 - root) / (1 + root)
    rng = np.random.default_rng(seed)
    w = best = centre = np.zeros(choices.size)
    v = shifted = np.zeros(choices.size)
    history = [(0.0, penalty.objective(choices, w))]
    value, gap, lower, target = history[0][1], np.inf, -np.inf, 0.0
    room = np.empty((2, int(np.diff(choices.start).max())))
    for done in range(1, max_passes + 1):
        steps, order = np.maximum(bold * curvature, 1e-9), rng.permutation(n)
        _pass(choices.arrays, order, steps, shifted, p, near.l1, near.l2, *room)
        # Anew from p: with sums that were only kept up to date it would be no bound.
        v = choices.slope(p)
        last, w = w, near.weights(v + extra * centre if extra else v)
        before, value = value, penalty.objective(choices, w)
        if value < history[-1][1]:
            best = w
        history.append((float(done), min(history[-1][1], value)))
        bound = penalty.bound(choices, p, v)
        lower = max(lower, bound)
        progress(f"pass {done} of {max_passes}")
        target = target_gap(tol, history)
        if tol and history[-1][1] - lower <= target:
            break
        if value - bound > FALLING * gap:
            bold = min(2 * bold, 1.0)
        gap = value - bound
        shifted = v
        if extra:
            if value > before:
                pace = 1.0  # too far ahead: start again
            following = 0.5 + np.sqrt(0.25 + pace * pace)
            centre = w + min((pace - 1) / following, most) * (w - last)
            shifted, pace = v + extra * centre, following
    gap = max(history[-1][1] - lower, 0.0)
    return Fit(best, "sdca", float(done), history, gap, target).checked()


@kernel
def _pass(rows, order, curvature, v, p, l1, l2, linear, new):
    """One pass in the given order."""
    for c in order:
        top, m, a = rows.start[c], rows.start[c + 1] - rows.start[c], curvature[c]
        for k in range(m):
            base, score = np.int64(rows.outcome[top + k]) * rows.entries, 0.0
            for e in range(rows.context_start[c], rows.context_start[c + 1]):
                u = v[base + rows.context_entry[e]]
                score += rows.context_value[e] * (max(u - l1, 0.0) + min(u + l1, 0.0))
            for e in range(rows.shared_start[top + k], rows.shared_start[top + k + 1]):
                u = v[rows.first + rows.shared_feature[e]]
                score += rows.shared_value[e] * (max(u - l1, 0.0) + min(u + l1, 0.0))
            linear[k] = rows.offset[top + k] + score / l2 + a * p[top + k]
        new[:m] = p[top : top + m]
        _probabilities(linear[:m], a, new[:m])
        for k in range(m):
            change = (p[top + k] - new[k]) / len(order)
            p[top + k] = new[k]
            base = np.int64(rows.outcome[top + k]) * rows.entries
            for e in range(rows.context_start[c], rows.context_start[c + 1]):
                v[base + rows.context_entry[e]] += rows.context_value[e] * change
            for e in range(rows.shared_start[top + k], rows.shared_start[top + k + 1]):
                v[rows.first + rows.shared_feature[e]] += rows.shared_value[e] * change


@kernel
def _probabilities(linear, a, p):
    """Put in p's place the p of the simplex with the largest ``entropy + linear'p - a/2 |p|^2``.

    There ``log p_k + a p_k = linear_k - nu``. Newton's steps on log p and nu together need few
    exponentials from the old p; where they do not arrive, `_surely` does.
    """
    for k in range(len(p)):
        p[k] = max(p[k], 1e-9)
    log = np.log(p)
    for _ in range(12):
        pull, slope, lack = 0.0, 0.0, 1.0
        for k in range(len(p)):
            weight = p[k] / (1.0 + a * p[k])
            pull += weight * (linear[k] - log[k] - a * p[k])
            slope += weight
            lack -= p[k]
        nu, largest = (pull - lack) / slope, 0.0
        for k in range(len(p)):
            step = (linear[k] - nu - log[k] - a * p[k]) / (1.0 + a * p[k])
            largest = max(largest, p[k] * abs(step))
            log[k] += min(step, 2.0)
            p[k] = np.exp(log[k])
        if largest < 1e-10:
            p /= p.sum()
            return
    _surely(linear, a, p)


@kernel
def _surely(linear, a, p):
    """Do as `_probabilities` does, from the start and without fail.

    The sum of p falls with nu and is convex, so Newton's steps from a nu that is too small only
    rise towards the root; so do those for each ``a p_k``.
    """
    nu = linear.max() - a  # the largest is 1 there
    for _ in range(100):
        total, slope = 0.0, 0.0
        for k in range(len(p)):
            x = linear[k] - nu + np.log(a)  # y + log y = x for y = a p_k
            y = x - np.log(x) if x > 1.0 else np.exp(x) / (1.0 + np.exp(x))
            for _ in range(100):
                excess = y + np.log(y) - x if y > 0.0 else 0.0
                y -= excess * y / (1.0 + y)
                if abs(excess) < 1e-10:
                    break
            p[k] = y / a
            total += p[k]
            slope += p[k] / (1.0 + y)
        if total < 1.0 + 1e-9:
            break
        nu += (total - 1.0) / slope
    p /= total
