"""How far a point is from the optimum: gaps, the gap function Q (5.5.1), residuals."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import lsqr

from telic.optim.admm.problem import AdmmProblem


class Certificate(NamedTuple):
    """What can be said of a point without knowing the optimum."""

    objective: float
    objective_y: float
    gap: float
    primal_residual: float
    dual_residual: float


class Origin(NamedTuple):
    """Where no feature counts: what a gap is large or small against, in the data's own units."""

    x: np.ndarray
    """Zeros, and the best intercept."""
    objective: float
    """|P| there, without g if that is infinite."""
    reach: float
    """How far f, which falls no faster than at its start, must go at least to lose all of this."""
    f: float
    gradient: np.ndarray


def origin_of(problem: AdmmProblem) -> Origin:
    """Find the origin of a problem; without an intercept in one pass over its data."""
    x, floor = np.zeros(problem.size), 0.0
    if problem.data.fit_intercept:
        floor = 1e-12 * abs(problem.value(x))  # a perfect intercept leaves rounding alone
        x[-1] = problem.data.best_shift(np.zeros(problem.data.design.n))
    f, gradient = problem.smooth(x)
    return Origin(x, *scale_of(problem, f, gradient, floor), f, gradient)


def scale_of(
    problem: AdmmProblem, f: float, gradient: np.ndarray, floor: float = 0.0
) -> tuple[float, float]:
    """Objective and reach of an origin, from f and its gradient there."""
    slope = float(np.linalg.norm(gradient))
    y = -problem.c if problem.B is None else lsqr(problem.B, problem.c)[0]
    g = problem.g.value(y)
    objective = max(abs(f + g) if np.isfinite(g) else abs(f), floor)
    return objective, abs(f) / slope if slope > 0 else 0.0


def certificate(
    problem: AdmmProblem, x: np.ndarray, y: np.ndarray, u: np.ndarray, origin: Origin
) -> Certificate:
    """Say how good a point is: `bound` where B = −I, with D the origin's reach + 2‖x − origin‖.

    For a general B there is no such bound, since x alone has no objective; the gap is then
    ``|⟨u, Ax + By − c⟩| + D‖r‖ + [g(y) + g*(−Bᵀu) + ⟨Bᵀu, y⟩]``, and the origin's objective times
    ‖Ax + By − c‖ over the largest of ‖Ax‖, ‖By‖ and ‖c‖: without it u = 0 would forgive any
    residual.
    """
    far = origin.reach + 2.0 * float(np.linalg.norm(x - origin.x))
    if np.array_equal(x, origin.x):  # as most runs begin: its pass is done
        f, gradient = origin.f, origin.gradient
    else:
        f, gradient = problem.smooth(x)
    ax, by = problem.A @ x, problem.by(y)
    residual = ax + by - problem.c
    if problem.B is None:
        objective, gap, r = bound(problem, x, u, f, gradient, far)
    else:
        objective = f + problem.g.value(y)
        # Rounding puts a dual that is active just outside the domain of g*.
        slope = problem.g.nearest_dual(-(problem.B.T @ u))
        r = float(np.linalg.norm(gradient + problem.A.T @ u))
        size = max(float(np.linalg.norm(part)) for part in (ax, by, problem.c))
        gap = _excess(problem, y, slope) + far * r + abs(float(u @ residual))
        gap += origin.objective * float(np.linalg.norm(residual)) / size if size else 0.0
    f_y = f + problem.g.value(y)
    return Certificate(objective, f_y, gap, float(np.linalg.norm(residual)), r)


def bound(
    problem: AdmmProblem, x: np.ndarray, u: np.ndarray, f: float, gradient: np.ndarray, far: float
) -> tuple[float, float, float]:
    """Return P(x) = f(x) + g(Ax − c), a bound on its distance from the optimum, and ‖r‖.

    With r = ∇f(x) + Aᵀu and v = Ax − c, convexity alone gives for every x′ within D = far of x

        P(x) − P(x′) <= [g(v) + g*(u) − ⟨u, v⟩] + D‖r‖.

    The bracket vanishes where u is a subgradient at v, r where the dual is feasible. The bound is a
    certificate if a minimiser lies that near.
    """
    at, u = problem.A @ x - problem.c, problem.g.nearest_dual(u)
    r = float(np.linalg.norm(gradient + problem.A.T @ u))
    return f + problem.g.value(at), _excess(problem, at, u) + far * r, r


def _excess(problem: AdmmProblem, at: np.ndarray, slope: np.ndarray) -> float:
    return max(float(problem.g.value(at) + problem.g.conjugate(slope) - slope @ at), 0.0)


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
        """Q(x, y) of (5.5.1) = f(x) + g(y) + ⟨u*, Ax + By − c⟩ − P*, >= 0."""
        residual = self.problem.A @ x - y - self.problem.c
        return self.gap_with_y(x, y) + self.u @ residual

    def q_smooth(self, x: np.ndarray) -> float:
        """Q_f(x) of (5.5.2)."""
        value, _ = self.problem.smooth(x)
        best, gradient = self.problem.smooth(self.x)
        return value - best - gradient @ (x - self.x)
