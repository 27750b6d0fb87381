"""Each rival as a function of (optimum, level, limit): CPU seconds to a relative gap, or None."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.form import clock
from telic.errors import InputError
from telic.optim.admm import Optimum, safe_step, solve_admm

MULTIPLES = (0.25, 1.0, 4.0, 16.0)
"""Of each method's safe step: the grid, one for all methods and sets."""


def relative_gap(best: Optimum, x: np.ndarray) -> float:
    """(P(x) − P*)/(P(0) − P*)."""
    return best.gap(x) / best.gap(np.zeros_like(x))


@dataclass(frozen=True)
class Family:
    """One of our own methods, with the best of the steps (None: the one it has by default)."""

    options: dict[str, Any]
    multiples: tuple[float | None, ...] = MULTIPLES

    def prepare(self, best: Optimum, level: float, limit: float) -> Callable[[], float] | None:
        """Find the step and the passes outside the clock; return the run to time."""
        tried = [
            (*found, multiple)
            for multiple in self.multiples
            if (found := self._passes(best, level, limit, multiple))
        ]
        if not tried:
            return None
        _, passes, multiple = min(tried)

        def timed() -> float:
            given = self._settings(best, multiple) | {"max_passes": passes, "check_every": np.inf}
            spent, result = clock(lambda: _run(best, given))
            if relative_gap(best, result.coef) > level:
                raise AssertionError(f"{self.options}: the timed run missed the gap")
            return spent

        return timed

    def _settings(self, best: Optimum, multiple: float | None) -> dict[str, Any]:
        if multiple is None:
            return self.options
        at = {key: self.options[key] for key in ("method", "x_step", "batch_size")}
        return self.options | {"step_size": multiple * safe_step(best.problem, **at)}

    def _passes(
        self, best: Optimum, level: float, limit: float, multiple: float | None
    ) -> tuple[float, float] | None:
        """Seconds, without the looks, and passes of the first complete point below the level."""
        hit = []
        wanted = best.objective + level * best.gap(np.zeros(best.problem.size))

        def look(record: Any, _: Any) -> bool:
            if record.complete and record.objective <= wanted:
                hit.append((record.seconds, record.passes))
            return bool(hit) or record.seconds > limit

        given = {"max_passes": np.inf, "check_every": 0.0, "callback": look}
        try:
            _run(best, self._settings(best, multiple) | given)
        except InputError:
            return None
        return hit[0] if hit else None


def _run(best: Optimum, options: dict[str, Any]) -> Any:
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return solve_admm(best.problem, tol=0.0, seed=0, **options)


class Cvxpy:
    """CVXPY with its default solver (Clarabel, an interior-point method), to its own tolerance."""

    def prepare(self, best: Optimum, level: float, limit: float) -> Callable[[], float] | None:
        """Return the run to time."""
        import cvxpy

        problem = best.problem
        X, y = problem.data.design.matrix, problem.data.y
        signed = X.multiply(-y[:, None]).tocsr()

        def timed() -> float:
            began = time.process_time()
            w = cvxpy.Variable(problem.size)
            loss = cvxpy.sum(cvxpy.logistic(signed @ w)) / y.size
            fused = cvxpy.norm1(cvxpy.multiply(problem.g.l1, problem.A @ w))
            cvxpy.Problem(cvxpy.Minimize(loss + fused)).solve()
            spent = time.process_time() - began
            self.gap = relative_gap(best, w.value)
            return spent

        return timed


class Copt:
    """copt's primal-dual method with line search, and its logistic loss."""

    def prepare(self, best: Optimum, level: float, limit: float) -> Callable[[], float] | None:
        """Find how many iterations the gap takes outside the clock; return the run to time."""
        import copt
        import copt.loss

        problem = best.problem
        X, y = problem.data.design.matrix, problem.data.y

        def solve(iterations: int) -> np.ndarray:
            loss = copt.loss.LogLoss(X, (y + 1) / 2)
            return copt.minimize_primal_dual(
                loss.f_grad,
                np.zeros(X.shape[1]),
                None,
                lambda v, step: np.sign(v) * np.maximum(np.abs(v) - step * problem.g.l1, 0.0),
                L=problem.A,
                tol=0.0,
                max_iter=iterations,
                step_size=4.0 / problem.size,
            ).x

        iterations = 16
        while True:
            run = partial(solve, iterations)
            spent, x = clock(run)
            if relative_gap(best, x) <= level:
                return lambda run=run: clock(run)[0]
            if spent > limit:
                return None
            iterations *= 2


def _own(method: str, x_step: str, batch_size: int, **options: Any) -> Family:
    return Family({"method": method, "x_step": x_step, "batch_size": batch_size, **options})


SOLVERS: dict[str, Any] = {
    "SVR-D, as shipped": Family({"method": "svr-admm-d"}, (None,)),
    "SVR-D": _own("svr-admm-d", "curvature", 256, first=1.0),
    "SVR-D, default first stage": _own("svr-admm-d", "curvature", 256),
    "SVR-D, default step": replace(_own("svr-admm-d", "curvature", 256), multiples=(1.0,)),
    "SVR-D, default step × 4": replace(_own("svr-admm-d", "curvature", 256), multiples=(4.0,)),
    "SVR-D, batches of 64": _own("svr-admm-d", "curvature", 64),
    "SVR-D, batches of 1024": _own("svr-admm-d", "curvature", 1024),
    "SVR-D, linearised": _own("svr-admm-d", "linearised", 64),
    "STOC, single rows": _own("stoc-admm", "linearised", 1),
    "SA, single rows": _own("sa-admm", "linearised", 1),
    "SDCA, single rows": _own("sdca-admm", "linearised", 1, perturbation=1e-6),
    "STOC, batches": _own("stoc-admm", "linearised", 64),
    "SA, batches": _own("sa-admm", "linearised", 64),
    "SA, batches and curvature": _own("sa-admm", "curvature", 256),
    "batch ADMM": _own("batch-admm", "linearised", 1),
    "batch ADMM, curvature": _own("batch-admm", "curvature", 1),
    "batch ADMM, Newton": Family({"method": "batch-admm", "x_step": "newton"}, (None,)),
    "CVXPY": Cvxpy(),
    "copt primal-dual": Copt(),
}
