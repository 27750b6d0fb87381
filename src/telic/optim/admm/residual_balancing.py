"""Penalty parameters that keep the primal and the dual residual alike.

Boyd and others 2011, 3.4.1, on relative residuals as in Wohlberg 2017, after steps that become ever
rarer: in the long run the parameters are constant, and ADMM converges.
"""

import numpy as np

from telic.optim.admm.problem import AdmmProblem

FIRST_DUE = 2
"""Step after which the parameters are balanced first."""


def next_due(due: int) -> int:
    """Return the step after which they are balanced next."""
    return 1 + 3 * due // 2


def rho_factor(
    problem: AdmmProblem, x: np.ndarray, y: np.ndarray, old: np.ndarray, u: np.ndarray, rho: float
) -> float:
    """Return the factor that balances ρ; `old` is the y of the step before."""
    A, Ax, By = problem.A, problem.A @ x, problem.by(y)
    residual, move = Ax + By - problem.c, rho * (A.T @ (By - problem.by(old)))
    return balance((residual, Ax, By, problem.c), (move, A.T @ u))


def balance(primal: tuple[np.ndarray, ...], shadow: tuple[np.ndarray, ...]) -> float:
    """√(relative primal residual / relative dual residual), between 1/10 and 10.

    Each comes with the parts in whose largest norm it is small.
    """
    shares = []
    for residual, *parts in (primal, shadow):
        largest = max(float(np.linalg.norm(part)) for part in parts)
        shares.append(max(float(np.linalg.norm(residual)) / max(largest, 1e-300), 1e-15))
    return float(np.clip(np.sqrt(shares[0] / shares[1]), 0.1, 10.0))
