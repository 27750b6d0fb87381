"""Batch ADMM with the x-step of (5.3.1) itself, by Newton's method, and ρ balanced on the way."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from telic.optim.admm.balance import FIRST_DUE, next_due, rho_factor
from telic.optim.admm.metric import gram
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.result import Point
from telic.optim.admm.steps import State, dual, sweep
from telic.optim.losses import Squared

SPARSE_BEYOND = 300
"""Features beyond which the Hessian of a sparse problem is held sparse."""
MOST_TRIALS = 30
"""Of one x-step."""

Solve = Callable[[np.ndarray], np.ndarray]


def batch_newton(
    problem: AdmmProblem, state: State, *, rho: float, balanced: bool, tau: float
) -> Iterator[Point]:
    """Run batch ADMM, one point per step; each trial of Newton's method counts n gradients.

    If asked to, ρ is balanced on the way.
    """
    constraint, newton = problem.constraint, _Newton(problem, state.x)
    step, due = 0, FIRST_DUE
    while True:
        old = state.y.copy()
        sweep(constraint, state.x, state.y, state.s, state.pull, rho, tau)
        gradients = newton.minimise(state.x, state.s, rho)
        yield Point(state.x, state.y, dual(problem, state.x, state.s, rho), gradients)
        step += 1
        if balanced and step == due:
            due = next_due(due)
            u = dual(problem, state.x, state.s, rho)
            following = rho * rho_factor(problem, state.x, state.y, old, u, rho)
            # z is scaled by ρ: u = ρz must stay what it is.
            Ax = problem.A @ state.x
            state.s[:] = (Ax + state.s) * rho / following - Ax
            rho = following


class _Newton:
    """Minimise f(x) + (ρ/2)‖Ax + s‖² over x, from step to step.

    Far from the minimum the loss may bend less than where a step leads (or, Huber's, not at all):
    a share μ of the bound P on the Hessian of f is added, and raised until the objective falls;
    with all of P it must.
    """

    def __init__(self, problem: AdmmProblem, x: np.ndarray):
        self.problem, self.mu = problem, 0.0
        self.smooth = problem.smooth(x)
        data = problem.data
        self.spread = sparse.issparse(data.design.matrix) and problem.size > SPARSE_BEYOND
        self.AA = problem.A.T @ problem.A if self.spread else (problem.A.T @ problem.A).toarray()
        self.P = self._hessian(data.loss.smoothness * data.mass)
        # Directions along which nothing bends stay where they are.
        diagonal = self.P.diagonal()
        floor = 1e-10 * np.where(diagonal > 0, diagonal, max(diagonal.mean(), 1e-300))
        self.floor = sparse.diags_array(floor) if self.spread else np.diag(floor)
        self.kept: tuple[tuple[float, float], Solve] | None = None

    def _hessian(self, weight: np.ndarray) -> Any:
        problem = self.problem
        if not self.spread:
            return gram(problem, weight) + np.diag(problem.ridge)
        X = sparse.csr_array(problem.data.design.matrix)
        if problem.data.fit_intercept:
            X = sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")
        return X.T @ sparse.diags_array(weight) @ X + sparse.diags_array(problem.ridge)

    def _solver(self, x: np.ndarray, rho: float) -> Solve:
        """Return the inverse of the Hessian as a function."""
        data, key = self.problem.data, (rho, self.mu)
        if isinstance(data.loss, Squared) and self.kept is not None and self.kept[0] == key:
            return self.kept[1]
        bent = data.curvatures(data.predict(*self.problem.split(x)))
        H = self._hessian(bent) + rho * self.AA + self.mu * self.P + self.floor
        if self.spread:
            solve = splu(sparse.csc_matrix(H)).solve
        else:
            factor = cho_factor(H)

            def solve(v: np.ndarray) -> np.ndarray:
                return cho_solve(factor, v)

        self.kept = key, solve
        return solve

    def minimise(self, x: np.ndarray, s: np.ndarray, rho: float) -> int:
        """Write the minimiser on x, from x; return the component gradients it took."""
        problem, n = self.problem, self.problem.data.design.n

        def augmented(x: np.ndarray, smooth: tuple[float, np.ndarray]) -> Any:
            z = problem.A @ x + s
            return smooth[0] + 0.5 * rho * float(z @ z), smooth[1] + rho * (problem.A.T @ z)

        value, slope = augmented(x, self.smooth)
        gradients, wanted = 0, 0.0
        for _ in range(MOST_TRIALS):
            solve = self._solver(x, rho)
            move = -solve(slope)
            fall = float(-slope @ move)
            wanted = wanted or 1e-3 * fall
            if fall <= 1e-28 * abs(value):
                break
            smooth = problem.smooth(x + move)
            trial, following = augmented(x + move, smooth)
            gradients += n
            # The slope goes on to fall where the objective's rounding hides it.
            if trial > value - 1e-4 * fall + 1e-14 * abs(value):
                self.mu = max(10.0 * self.mu, 1e-4)
                continue
            x += move
            self.smooth, value, slope = smooth, trial, following
            self.mu = self.mu / 10.0 if self.mu > 1e-6 else 0.0
            if slope @ solve(slope) <= wanted:
                break
        return max(gradients, n)
