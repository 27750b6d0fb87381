"""No gap that a fit reports is ever smaller than the true one, however bad the data."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning

from telic.choice import (
    Choices,
    Elastic,
    FactoredChoices,
    fit_accelerated,
    fit_groups,
    fit_printed,
    fit_saga,
    fit_sdca,
)

BOUNDED = {
    "sdca": lambda c, e, m: fit_sdca(c, e, max_passes=m, tol=1e-9),
    "sdca, all passes": lambda c, e, m: fit_sdca(c, e, max_passes=m, tol=0.0),
    "saga": lambda c, e, m: fit_saga(c, e, max_passes=m, batch_size=3),
    "accelerated": lambda c, e, m: fit_accelerated(c, e, max_passes=12 + m),
    "printed": lambda c, e, m: fit_printed(c, e, max_passes=min(m, 5), batch_size=2),
}


def extreme_choices(seed, *, widest=12):
    """Entries of scales from 1e-12 to 1e12, far offsets, duplicates, choices nobody doubts."""
    rng = np.random.default_rng(seed)
    n, outcomes, entries = (int(rng.integers(1, high)) for high in (25, 6, 5))
    outcomes, shared = outcomes + 1, int(rng.integers(0, 3))
    lengths = rng.integers(1, outcomes + 1, n)
    outcome = np.concatenate([rng.choice(outcomes, m, replace=False) for m in lengths])
    start = np.concatenate([[0], np.cumsum(lengths)])
    reach = rng.choice([0, 1, widest])
    scale = 10.0 ** rng.uniform(-reach, reach, entries + shared)
    far = rng.choice([0.0, 0.0, 100.0])
    context = (rng.normal(size=(n, entries)) + far) * scale[:entries]
    features = (rng.normal(size=(len(outcome), shared)) + far) * scale[entries:]
    if n > 1 and rng.random() < 0.3:
        context[-1] = context[0]
    if entries > 1 and rng.random() < 0.3:
        context[:, 1] = context[:, 0]
    offset = rng.normal(size=len(outcome)) * rng.choice([0.0, 1.0, 30.0, 1e6])
    chosen = start[:-1] + rng.integers(0, lengths)
    if rng.random() < 0.4:  # near-separable: the first entry decides
        chosen = start[:-1] + np.where(context[:, 0] > 0, lengths - 1, 0)
    return FactoredChoices(
        outcomes,
        entries,
        shared,
        outcome,
        offset,
        start,
        chosen,
        np.arange(n + 1) * entries,
        np.tile(np.arange(entries), n),
        context.ravel(),
        np.arange(len(outcome) + 1) * shared,
        np.tile(np.arange(shared), len(outcome)),
        features.ravel(),
    )


def extreme_penalty(seed):
    rng = np.random.default_rng(seed + 1)
    l1 = rng.choice([0.0, 10.0 ** rng.uniform(-8, 1)])
    return Elastic(float(l1), float(10.0 ** rng.uniform(-8, 1)))


def exactly(choices, penalty, w):
    """The objective from the definition, dense, in 80 bits."""
    w = np.asarray(w, np.longdouble)
    score = choices.offset + choices.matrix().toarray().astype(np.longdouble) @ w
    total = np.longdouble(0)
    for a, b, j in zip(choices.start[:-1], choices.start[1:], choices.chosen, strict=True):
        top = score[a:b].max()
        total += top + np.log(np.exp(score[a:b] - top).sum()) - score[j]
    return total / len(choices) + penalty.l1 * np.abs(w).sum() + penalty.l2 / 2 * (w @ w)


def reached(choices, penalty, starts):
    """The lowest objective of some points, and of where L-BFGS-B gets from the best of them."""
    x = choices.matrix().toarray()
    unit = 1 / np.sqrt((x**2).sum(axis=0) / len(choices) + penalty.l2)
    d = choices.size

    def value(z):
        w = unit * (z[:d] - z[d:])
        slope = unit * (choices.gradient(w) + penalty.l2 * w)
        cost = penalty.l1 * unit
        value = choices.loss(w) + penalty.l2 / 2 * w @ w + cost @ (z[:d] + z[d:])
        return value, np.concatenate([slope + cost, cost - slope])

    nearest = min(starts, key=lambda w: penalty.objective(choices, w))
    z = np.concatenate([np.maximum(nearest, 0.0), np.maximum(-nearest, 0.0)]) / np.tile(unit, 2)
    z = optimize.minimize(
        value,
        z,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * d),
        options={"ftol": 1e-16, "gtol": 1e-13, "maxfun": 300},
    ).x
    found = [*starts, unit * (z[:d] - z[d:])]
    return min(exactly(choices, penalty, w) for w in found)


@given(seed=st.integers(0, 2**32 - 2), passes=st.sampled_from([1, 2, 5, 40]))
@settings(max_examples=30, derandomize=True)
def test_no_gap_is_smaller_than_the_true_one(seed, passes):
    choices, penalty = extreme_choices(seed), extreme_penalty(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = {name: run(choices, penalty, passes) for name, run in BOUNDED.items()}
    usable = {name: fit for name, fit in fits.items() if np.isfinite(fit.weights).all()}
    assert {"sdca", "sdca, all passes", "saga", "accelerated"} <= set(usable)
    zero = np.zeros(choices.size)
    best = reached(choices, penalty, [zero, *(fit.weights for fit in usable.values())])
    start = exactly(choices, penalty, zero)
    for name, fit in usable.items():
        value = exactly(choices, penalty, fit.weights)
        # Products whose sum is the score: their rounding is that of the objective.
        size = np.abs(choices.matrix()).mean(axis=0) @ np.abs(fit.weights)
        slack = 1e-13 * float(1 + start + abs(value) + size.item())
        assert value - fit.gap <= best + slack, name
        assert fit.objective == pytest.approx(float(value), rel=1e-12, abs=slack), name
        if name != "printed":
            assert value <= start + slack, name
        if fit.converged and fit.target:
            assert value - best <= fit.target + slack, name


@given(seed=st.integers(0, 2**32 - 2))
@settings(max_examples=40, derandomize=True)
def test_newton_is_at_the_optimum_of_every_group_or_warns(seed):
    rng = np.random.default_rng(seed)
    n, d, g = int(rng.integers(1, 20)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    lengths = rng.integers(1, 5, n)
    start = np.concatenate([[0], np.cumsum(lengths)])
    reach = rng.choice([0, 1, 12])
    x = rng.normal(size=(start[-1], d)) + rng.choice([0.0, 100.0])
    x *= 10.0 ** rng.uniform(-reach, reach, d)
    offset = rng.normal(size=start[-1]) * rng.choice([0.0, 1.0, 1e6])
    group = np.sort(np.concatenate([[0, n], rng.integers(0, n + 1, g - 1)]))
    choices = Choices(x, offset, start, start[:-1] + rng.integers(0, lengths), group)
    l2 = float(10.0 ** rng.uniform(-8, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = fit_groups(choices, l2=l2)
    assert np.isfinite(fitted).all()
    if any(issubclass(w.category, ConvergenceWarning) for w in caught):
        return
    unit = 1 / np.sqrt((x**2).sum(axis=0) + l2)
    for u, w in enumerate(fitted):
        own = slice(start[group[u]], start[group[u + 1]])
        if group[u] == group[u + 1]:
            assert not w.any()
            continue
        alone = Choices(
            x[own],
            offset[own],
            start[group[u] : group[u + 1] + 1] - own.start,
            choices.chosen[group[u] : group[u + 1]] - own.start,
        )
        best = optimize.minimize(
            lambda z, alone=alone: alone.loss(unit * z, l2=l2),
            w / unit,
            jac=lambda z, alone=alone: unit * alone.gradient(unit * z, l2=l2),
            method="BFGS",
        )
        assert alone.loss(w, l2=l2) <= best.fun + 2e-6 * (1 + best.fun)
