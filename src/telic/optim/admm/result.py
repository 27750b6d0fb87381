"""The loop around every ADMM method: when to look, when to stop, what is returned."""

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from telic.errors import InputError
from telic.optim.admm.measures import Origin, certificate
from telic.optim.admm.problem import AdmmProblem


class Point(NamedTuple):
    """What a method hands over."""

    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    """Unscaled dual ρz."""
    gradients: int
    """Component gradients evaluated since the last point."""
    complete: bool = True
    """False within a stage whose average is the method's output."""
    stage: int = 0


class Record(NamedTuple):
    """One line of the history."""

    passes: float
    gradients: int
    seconds: float
    """Processor time of the method itself, without the looks at objective and gap."""
    objective: float
    """f(x) + g(Ax − c) where B = −I, else f(x) + g(y)."""
    objective_y: float
    """f(x) + g(y), the printed measure: below the optimum where Ax + By ≠ c."""
    gap: float
    primal_residual: float
    dual_residual: float
    stage: int
    complete: bool


@dataclass(frozen=True, slots=True)
class AdmmResult:
    """What a method found, how sure it is, and why it stopped."""

    coef: np.ndarray
    """Coefficients w, shape (d,)."""
    intercept: float
    y: np.ndarray
    """The split variable: −I's y = Ax − c up to the primal residual."""
    dual: np.ndarray
    """u = ρz, shape (k,)."""
    rho: float
    """As given; where it is balanced, the one at the start."""
    step_size: float
    objective: float
    gap: float
    """Bound on the objective's distance from the optimum (see `measures.certificate`)."""
    primal_residual: float
    """‖Ax + By − c‖."""
    dual_residual: float
    """‖∇f(x) + Aᵀu‖."""
    stage: int
    """Complete stages that the result is made of (SVR-ADMM); 0 is the starting point."""
    passes: float
    gradients: int
    seconds: float
    converged: bool
    stopped: str
    """Why: "tolerance", "passes", "seconds", "callback" or "interrupted" (Ctrl-C)."""
    method: str
    history: list[Record] = field(repr=False)


def drive(
    problem: AdmmProblem,
    points: Iterator[Point],
    *,
    start: Point,
    origin: Origin,
    method: str,
    rho: float,
    step_size: float,
    safe_step: float,
    tol: float,
    max_passes: float,
    max_seconds: float = np.inf,
    callback: Callable[[Record, Point], bool | None] | None = None,
    check_every: float | None = None,
) -> AdmmResult:
    """Run a method until the gap is at most tol times the origin's objective.

    A run that is stopped otherwise returns its last complete point.

    Parameters
    ----------
    check_every : float, optional
        Passes between looks. By default they become rarer as the run grows longer, and every
        complete stage is looked at.

    Other parameters as in `telic.optim.admm.minimize_admm`.

    Raises
    ------
    InputError
        If the method diverges; the message names a safe step size.
    """
    began = time.perf_counter()
    record, zero = _look(problem, start, 0, 0.0, origin), origin.objective
    diverged = 1e6 * max(zero, np.nan_to_num(abs(record.objective_y), posinf=0.0))
    history, best = [record], _copy(start)
    kept: Record | None = record
    stopped, spent, gradients, looked = "tolerance", 0.0, 0, 0.0
    if callback is not None and callback(record, best):
        stopped = "callback"
    try:
        while stopped == "tolerance" and record.gap > tol * zero:
            clock = time.process_time()
            point = next(points)
            spent += time.process_time() - clock
            gradients += point.gradients
            passes = gradients / problem.data.design.n
            if passes >= max_passes:
                stopped = "passes"
            elif time.perf_counter() - began >= max_seconds:
                stopped = "seconds"
            wait = max(1.0, 0.2 * passes) if check_every is None else check_every
            staged = point.stage > 0 and point.complete
            due = passes - looked >= wait or (staged and check_every is None)
            if not due and stopped == "tolerance":
                if staged:
                    best, kept = _copy(point), None
                continue
            looked = passes
            record = _look(problem, point, gradients, spent, origin)
            if not np.isfinite(point.x).all() or record.objective_y > diverged:
                raise InputError(
                    f"{method} diverged after {passes:.3g} passes with step_size {step_size:.3g}. "
                    f"A step_size of {safe_step:.3g} is safe."
                )
            history.append(record)
            if point.complete or record.gap <= tol * zero:
                best, kept = _copy(point), record
            if callback is not None and callback(record, point):
                stopped = "callback"
    except KeyboardInterrupt:
        stopped = "interrupted"
    kept = kept or _look(problem, best, gradients, spent, origin)
    converged = kept.gap <= tol * zero
    if converged:
        stopped = "tolerance"
    elif stopped != "callback":
        warnings.warn(
            f"{method} stopped ({stopped}) after {record.passes:.4g} passes with a gap of "
            f"{kept.gap:.3g}, above the {tol * zero:.3g} asked for; the result is its last "
            "complete point. "
            + (
                f"Its step_size is {step_size:.3g}; {safe_step:.3g} is safe."
                if step_size > 1.001 * safe_step
                else "Raise max_passes or tol, or scale the features."
            ),
            ConvergenceWarning,
            stacklevel=4,
        )
    coef, intercept = problem.split(best.x)
    return AdmmResult(
        coef=coef,
        intercept=intercept,
        y=best.y,
        dual=best.u,
        rho=rho,
        step_size=step_size,
        objective=kept.objective,
        gap=kept.gap,
        primal_residual=kept.primal_residual,
        dual_residual=kept.dual_residual,
        stage=kept.stage,
        passes=record.passes,
        gradients=record.gradients,
        seconds=time.perf_counter() - began,
        converged=bool(converged),
        stopped=stopped,
        method=method,
        history=history,
    )


def _copy(point: Point) -> Point:
    return point._replace(x=point.x.copy(), y=point.y.copy(), u=point.u.copy())


def _look(
    problem: AdmmProblem, point: Point, gradients: int, spent: float, origin: Origin
) -> Record:
    with np.errstate(over="ignore", invalid="ignore"):
        found = certificate(problem, point.x, point.y, point.u, origin)
    return Record(
        gradients / problem.data.design.n,
        gradients,
        spent,
        found.objective,
        found.objective_y,
        found.gap,
        found.primal_residual,
        found.dual_residual,
        point.stage,
        point.complete,
    )
