"""The loop around every ADMM method: when to look, when to stop, what is returned."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from telic.errors import DivergedError, warn_unconverged
from telic.optim.admm.duality_gap import Certifier, Dual
from telic.optim.admm.problem import AdmmProblem

EXACT = 1e-15
"""Gap, relative to the objective without any feature, that only rounding separates from zero."""
SMALL = 200_000
"""Products in a Hessian up to which going on to rounding costs next to nothing."""
PATIENCE = 5
"""Points that may fail to halve the gap before a method that goes on to rounding is there."""


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
    dual: Dual | None = None
    """A feasible point of the dual, from a method that finds its own."""


class AdmmRecord(NamedTuple):
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
    """Bound on the objective's distance from the optimum (`duality_gap.certificate`), always."""
    primal_residual: float
    """‖Ax + By − c‖."""
    dual_residual: float
    """‖∇f(x) + Aᵀu‖."""
    stage: int
    """Complete stages (SVR-ADMM) or multipliers (Newton's) that the result is made of; 0 is the
    starting point."""
    passes: float
    gradients: int
    seconds: float
    converged: bool
    stopped: str
    """Why: "tolerance", "passes", "seconds", "callback" or "interrupted" (Ctrl-C)."""
    method: str
    history: list[AdmmRecord] = field(repr=False)


class MethodSettings(NamedTuple):
    """The method that makes the points, and what it uses."""

    method: str
    rho: float
    step_size: float
    safe_step: float


def drive(
    problem: AdmmProblem,
    points: Iterator[Point],
    settings: MethodSettings,
    *,
    start: Point,
    zero: float,
    tol: float,
    max_passes: float,
    max_seconds: float,
    callback: Callable[[AdmmRecord, Point], bool | None] | None,
    check_every: float | None,
) -> AdmmResult:
    """Run a method until the gap is at most tol times `zero`.

    A run that is stopped otherwise returns its last complete point. On a small problem a method
    with a dual of its own goes on to rounding: until its points no longer halve the gap.

    Parameters
    ----------
    zero : float
        The objective without any feature.

    Other parameters as in `telic.optim.admm.solve_admm`.

    Raises
    ------
    DivergedError
        If the method diverges; the message names a safe step size.
    """
    certifier = Certifier(problem)
    method, rho, step_size, safe_step = settings
    began = time.perf_counter()
    record, start = _look(certifier, start, 0, 0.0)
    diverged = 1e6 * max(zero, np.nan_to_num(abs(record.objective_y), posinf=0.0))
    history, best = [record], _copy(start)
    kept: AdmmRecord | None = record
    stopped, spent, gradients, looked = "tolerance", 0.0, 0, 0.0
    least, worse = record.gap, 0
    small = problem.data.design.stored * problem.size <= SMALL
    if callback is not None and callback(record, best):
        stopped = "callback"
    try:
        while stopped == "tolerance" and (least > tol * zero or 0 < worse < PATIENCE):
            clock = time.process_time()
            point = next(points)
            spent += time.process_time() - clock
            gradients += point.gradients
            passes = gradients / problem.data.design.n
            if passes >= max_passes:
                stopped = "passes"
            elif time.perf_counter() - began >= max_seconds:
                stopped = "seconds"
            # A look costs about a pass: so rare, looks and passes too many cost the same.
            wait = max(1.0, np.sqrt(2.0 * passes)) if check_every is None else check_every
            staged = point.stage > 0 and point.complete
            due = passes - looked >= wait or (staged and check_every is None)
            if not due and stopped == "tolerance":
                if staged:
                    best, kept = _copy(point), None
                continue
            looked = passes
            record, point = _look(certifier, point, gradients, spent)
            # A start far off may take a safe step far up before it falls.
            bold = step_size > 1.001 * safe_step
            if not np.isfinite(point.x).all() or (bold and record.objective_y > diverged):
                advice = (
                    f"A step_size of {safe_step:.3g} is safe." if bold else "Scale the features."
                )
                raise DivergedError(
                    f"{method} diverged after {passes:.3g} passes with step_size {step_size:.3g}. "
                    + advice
                )
            history.append(record)
            if small and point.dual is not None and record.gap > EXACT * zero:
                worse = worse + 1 if record.gap > 0.5 * least else 1
            else:
                worse = PATIENCE
            if (point.complete or record.gap <= tol * zero) and not (
                least <= tol * zero and record.gap > least
            ):
                best, kept = _copy(point), record
            least = min(least, record.gap)
            if callback is not None and callback(record, point):
                stopped = "callback"
    except KeyboardInterrupt:
        stopped = "interrupted"
    if kept is None:
        kept, best = _look(certifier, best, gradients, spent)
    converged = kept.gap <= tol * zero
    if converged:
        stopped = "tolerance"
    elif stopped != "callback":
        warn_unconverged(
            f"{method} stopped ({stopped}) after {record.passes:.4g} passes with a gap of "
            f"{kept.gap:.3g}, above the {tol * zero:.3g} asked for; the result is its last "
            "complete point. "
            + (
                f"Its step_size is {step_size:.3g}; {safe_step:.3g} is safe."
                if step_size > 1.001 * safe_step
                else "Raise max_passes or tol; if there may be no minimum (separable classes), "
                "add a ridge l2."
            ),
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
    certifier: Certifier, point: Point, gradients: int, spent: float
) -> tuple[AdmmRecord, Point]:
    """Certify a point; returns the one that has an objective, where the given one has none."""
    found = certifier(point.x, point.y, point.u, point.dual)
    passes = gradients / certifier.problem.data.design.n
    measured = found.objective, found.objective_y, found.gap, *found[-2:]
    record = AdmmRecord(passes, gradients, spent, *measured, point.stage, point.complete)
    return record, point._replace(x=found.x, y=found.y)
