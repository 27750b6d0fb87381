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
) -> float:
    """Return the largest of 1, 1/2, 1/4 … that decreases the objective enough (Armijo), or 0.

    Parameters
    ----------
    penalty : Penalty
        Of the coefficients w, which may be a part of the problem's.
    z, move_z : arrays, shape (n,)
        Predictions, and how a full step changes them.
    w, move : arrays
        Coefficients, and how a full step changes them.
    slope : float
        Derivative of the smooth loss along the step.
    """
    before = penalty.value(w)
    now = problem.risk(z) + before
    promised = slope + penalty.value(w + move) - before
    if not promised < 0:
        return 0.0
    step = 1.0
    for _ in range(40):
        then = problem.risk(z + step * move_z) + penalty.value(w + step * move)
        # Rounding of the objective must not turn the last steps away.
        if then - now <= 0.01 * step * promised + 2e-15 * abs(now):
            return step
        step *= 0.5
    return 0.0
