"""Accelerated proximal gradient descent with a step for each outcome: the batch method."""

import numpy as np

from telic.choice.elastic_net import Elastic, Fit, Progress, refuse_no_choices, target_gap
from telic.choice.factored_choices import FactoredChoices
from telic.errors import InputError

_POWER = 12
"""Power iterations, each of which costs a pass."""
_LOOK = 10
"""Steps between two looks at the gap, each of which costs a pass."""


def fit_accelerated(
    choices: FactoredChoices,
    penalty: Elastic,
    *,
    max_passes: int = 2000,
    tol: float = 1e-9,
    progress: Progress = lambda step: None,
) -> Fit:
    """Minimise [Zhang2017] (3.3.5) by FISTA with adaptive restart.

    The weights of an outcome have a step of their own: the Hessian of a softmax is at most I / 2,
    which does not tie one candidate to another, so an outcome that is rarely a candidate may move
    further. The steps come from power iterations and are halved should they prove too long.

    Parameters
    ----------
    choices : FactoredChoices
    penalty : Elastic
    max_passes : int
        Most passes over the choices, before a `ConvergenceWarning`; the steps take 12 of them.
    tol : float
        Stop when the duality gap is at most `tol` of what the fit has gained, and of the objective.
        With 0 all passes are taken, and none is warned of.
    progress : callable
        Told each pass when it is done.
    """
    if max_passes <= _POWER:
        raise InputError(f"max_passes is {max_passes}, expected more than {_POWER}.")
    refuse_no_choices(choices)
    steps, used = _step_sizes(choices)
    w = np.zeros(choices.size)
    ahead, momentum = w, 1.0
    history = [(float(used), penalty.objective(choices, w))]
    while used < max_passes:
        slope = choices.gradient(ahead)
        new = penalty.prox(ahead - steps * slope, steps)
        used += 1
        moved = new - ahead
        value = penalty.objective(choices, new)
        if value > history[-1][1] and momentum > 1.0:
            ahead, momentum = w, 1.0  # restart
        elif value > history[-1][1] + 1e-15 * abs(value):
            steps = steps / 2
        else:
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / following * (new - w)
            if moved @ ((new - w) / steps) < 0:
                ahead, following = new, 1.0
            w, momentum = new, following
        history.append((float(used), min(value, history[-1][1])))
        progress(f"pass {used} of {max_passes}")
        if tol and len(history) % _LOOK == 0:
            used += 1
            if penalty.gap(choices, w) <= target_gap(tol, history):
                break
    gap, target = penalty.gap(choices, w), target_gap(tol, history)
    return Fit(w, "accelerated", float(used), history, gap, target).checked()


def _step_sizes(choices: FactoredChoices) -> tuple[np.ndarray, int]:
    """Step of every weight by power iterations in each outcome's block; passes used."""
    n, first = len(choices), choices.first
    rng = np.random.default_rng(0)
    v = np.abs(rng.standard_normal(choices.size)) + 0.1
    block = np.append(
        np.repeat(np.arange(choices.outcomes), choices.entries),
        np.full(choices.shared, choices.outcomes),
    )
    curvature: np.ndarray = np.zeros(choices.outcomes + 1)
    for _ in range(_POWER):
        norms = np.sqrt(np.bincount(block, v * v, choices.outcomes + 1))
        v /= np.where(norms > 0, norms, 1.0)[block]
        # One block at a time: the context's weights do not see the shared ones' direction.
        apart = np.zeros(choices.size)
        for part in (slice(0, first), slice(first, None)):
            only = np.zeros(choices.size)
            only[part] = v[part]
            product = choices.transposed((choices.scores(only) - choices.offset) / (2 * n))
            apart[part] = product[part]
        curvature = np.bincount(block, v * apart, choices.outcomes + 1)
        v = apart
    both = 2.0 if choices.shared and first else 1.0
    # Where no candidate has a feature, nothing bends, and any step is safe.
    most = curvature.max(initial=0.0) or 1.0
    safe = 1.1 * both * np.maximum(curvature, 1e-12 * most)
    return (1 / safe)[block], _POWER
