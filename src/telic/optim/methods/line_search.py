"""Backtracking along a direction whose predictions are known, for the Newton methods."""

import numpy as np

from telic.optim.penalties import Penalty
from telic.optim.problem import Problem


def backtrack(
    problem: Problem,
    penalty: Penalty,
    z: np.ndarray,
    move_z: np.ndarray,
    w: np.ndarray,
    move: np.ndarray,
    slope: float,
    risk: float,
) -> tuple[float, float]:
    """Return the largest of 1, 1/2, 1/4 … that decreases the objective enough (Armijo), or 0.

    And the weighted loss there.

    Parameters
    ----------
    penalty : Penalty
        Of the coefficients w, which may be a part of the problem's.
    z, move_z : arrays, shape (n,)
        Predictions, and how a full step changes them.
    w, move : arrays
        Coefficients, and how a full step changes them.
    slope : float
        Derivative of the weighted loss along the step.
    risk : float
        Weighted loss of the predictions z.
    """
    before = penalty.value(w)
    promised = slope + penalty.value(w + move) - before
    # Below the rounding of the objective a Newton step is right without proof.
    slack = 1e-14 * abs(risk + before)
    if not promised <= slack:
        return 0.0, risk
    step = 1.0
    for _ in range(40):
        then = problem.risk(z, move_z, step)
        change = then - risk + penalty.value(w + step * move) - before
        if change <= 0.01 * step * promised + slack:
            return step, then
        step *= 0.5
    return 0.0, risk
