"""The optimum of f(x) + Σ l1_e |(Ax − c)_e| by a method of another kind than ADMM."""

import numpy as np

from telic.optim.admm import AdmmProblem
from telic.optim.admm.x_step_metric import gram


def newton_optimum(problem: AdmmProblem, *, last: float = 1e-13) -> np.ndarray:
    """Minimise f(x) + Σ_e l1_e |(Ax − c)_e| by Newton's method on a smoothed absolute value.

    |v| becomes √(v² + μ²), which is at most μ above it, and μ falls to `last`.
    """
    A, l1, data = problem.A.toarray(), problem.g.l1, problem.data
    x = np.zeros(problem.size)

    def smoothed(x, mu):
        f, gradient = problem.smooth(x)
        v = A @ x - problem.c
        r = np.sqrt(v * v + mu * mu)
        return f + l1 @ r, gradient, v, r

    mu = 1.0
    while mu > last:
        for _ in range(50):
            value, gradient, v, r = smoothed(x, mu)
            z = data.predict(*problem.split(x))
            H = (
                gram(problem, data.curvatures(z))
                + np.diag(problem.ridge)
                + A.T @ ((l1 * mu * mu / r**3)[:, None] * A)
            )
            # Directions along which nothing bends (a constant feature) stay where they are.
            H += 1e-14 * np.eye(problem.size)
            move = -np.linalg.solve(H, gradient + A.T @ (l1 * v / r))
            fall = -move @ (gradient + A.T @ (l1 * v / r))
            step = 1.0
            while step > 1e-8 and smoothed(x + step * move, mu)[0] > value - 1e-4 * step * fall:
                step /= 2
            if fall < 1e-15 or step <= 1e-8:
                break
            x = x + step * move
        mu /= 4
    return x
