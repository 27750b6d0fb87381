"""A minimiser with its dual, against which the gaps of the analysis are measured."""

from dataclasses import dataclass

import numpy as np

from telic.optim.admm.problem import AdmmProblem


@dataclass(frozen=True, slots=True)
class Optimum:
    """A minimiser with its dual, against which points are measured (B = −I).

    Parameters
    ----------
    problem : AdmmProblem
    x : array
        Minimiser, with the intercept as last entry if there is one.
    u : array
        Its dual ρz*: ∇f(x) + Aᵀu = 0 and u ∈ ∂g(Ax − c).
    """

    problem: AdmmProblem
    x: np.ndarray
    u: np.ndarray

    @property
    def objective(self) -> float:
        """P*."""
        return self.problem.objective(self.x)

    def gap(self, x: np.ndarray) -> float:
        """f(x) + g(Ax − c) − P*, the true gap."""
        return self.problem.objective(x) - self.objective

    def gap_with_y(self, x: np.ndarray, y: np.ndarray) -> float:
        """f(x) + g(y) − P*, the printed gap: negative where y lags behind Ax."""
        return self.problem.value(x) + self.problem.g.value(y) - self.objective

    def q(self, x: np.ndarray, y: np.ndarray) -> float:
        """Q(x, y) of [Zhang2017] (5.5.1) = f(x) + g(y) + ⟨u*, Ax + By − c⟩ − P*, >= 0."""
        residual = self.problem.A @ x - y - self.problem.c
        return self.gap_with_y(x, y) + self.u @ residual

    def q_smooth(self, x: np.ndarray) -> float:
        """Q_f(x) of (5.5.2)."""
        value, _ = self.problem.smooth(x)
        best, gradient = self.problem.smooth(self.x)
        return value - best - gradient @ (x - self.x)
