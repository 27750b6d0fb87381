"""How far a point is from the optimum: gaps, the gap function Q (5.5.1), residuals."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from telic.optim.admm.problem import AdmmProblem


class Certificate(NamedTuple):
    """What can be said of a point without knowing the optimum."""

    objective: float
    objective_y: float
    gap: float
    primal_residual: float
    dual_residual: float


def certificate(problem: AdmmProblem, x: np.ndarray, y: np.ndarray, u: np.ndarray) -> Certificate:
    """Bound the distance of f(x) + g(Ax − c) from the optimum, by convexity alone.

    With r = ∇f(x) + Aᵀu and v = Ax − c, for every x′ within D of x

        P(x) − P(x′) <= [g(v) + g*(u) − ⟨u, v⟩] + D‖r‖.

    The bracket vanishes where u is a subgradient at v, r where the dual is feasible. D is taken as
    1 + 2‖x‖: the bound is a certificate if a minimiser lies that near. For a general B there is no
    such bound, and the gap is |⟨u, Ax + By − c⟩| + D‖r‖ + [g(y) + g*(−Bᵀu) + ⟨Bᵀu, y⟩].
    """
    f, gradient = problem.smooth(x)
    residual = problem.A @ x + problem.by(y) - problem.c
    g_y = problem.g.value(y)
    if problem.B is None:
        at = problem.A @ x - problem.c
        u = problem.g.nearest_dual(u)
        slope, slack = u, 0.0
    else:
        at = y
        slope = -(problem.B.T @ u)
        # Rounding puts a dual that is active just outside the domain of g*.
        slope, slack = problem.g.nearest_dual(slope), abs(u @ residual)
    g = problem.g.value(at)
    r = float(np.linalg.norm(gradient + problem.A.T @ u))
    excess = g + problem.g.conjugate(slope) - slope @ at
    gap = max(excess, 0.0) + slack + (1.0 + 2.0 * float(np.linalg.norm(x))) * r
    return Certificate(f + g, f + g_y, float(gap), float(np.linalg.norm(residual)), r)


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
        return self.problem.smooth(x)[0] + self.problem.g.value(y) - self.objective

    def q(self, x: np.ndarray, y: np.ndarray) -> float:
        """Q(x, y) of (5.5.1) = f(x) + g(y) + ⟨u*, Ax + By − c⟩ − P*, >= 0."""
        residual = self.problem.A @ x - y - self.problem.c
        return self.gap_with_y(x, y) + self.u @ residual

    def q_smooth(self, x: np.ndarray) -> float:
        """Q_f(x) of (5.5.2)."""
        value, _ = self.problem.smooth(x)
        best, gradient = self.problem.smooth(self.x)
        return value - best - gradient @ (x - self.x)
