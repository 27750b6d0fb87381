"""The loop around every method: when to look, when to stop, what to return."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from telic.errors import DivergedError, InputError, warn_unconverged
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.losses import Tweedie
from telic.optim.problem import Problem


class Iterate(NamedTuple):
    """What a method hands over after about one pass over the data."""

    coef: np.ndarray
    intercept: float
    gradients: int
    """Component gradients evaluated since the last iterate (n of them are one pass)."""
    prediction: np.ndarray | None = None
    """X coef + intercept, where the method has it at hand."""
    slopes: np.ndarray | None = None
    """Weighted dual point, where the method keeps one; it must suit the intercept."""
    gradient: np.ndarray | None = None
    """Xᵀ slopes, where the method has it at hand."""
    risk: float | None = None
    """Weighted loss of the prediction, where the method has it at hand."""


class Record(NamedTuple):
    """One line of the history."""

    passes: float
    gradients: int
    seconds: float
    """Time of the method itself, without the evaluation of objective and gap."""
    objective: float
    gap: float


@dataclass(frozen=True, slots=True)
class SolveResult:
    """What a solver found, and how sure it is."""

    coef: np.ndarray
    """Coefficients w, shape (d,)."""
    intercept: float
    objective: float
    """P(coef)."""
    gap: float
    """Objective minus a lower bound on the optimum; NaN where no bound exists (l1 = l2 = 0)."""
    passes: float
    """Component gradients evaluated, divided by n."""
    gradients: int
    seconds: float
    """Wall time, everything included."""
    converged: bool
    method: str
    history: list[Record] = field(repr=False)


def drive(
    problem: Problem,
    iterates: Iterator[Iterate],
    *,
    method: str,
    tol: float,
    max_passes: float,
    callback: Callable[[Record, np.ndarray, float], bool | None] | None = None,
    check_every: int | None = None,
    has_step: bool = True,
    safe_step: float | None = None,
    null: tuple[float, float, float] | None = None,
) -> SolveResult:
    """Run a method until the duality gap is at most tol times the objective at zero.

    Parameters
    ----------
    problem : Problem
    iterates : iterator of Iterate
        The method.
    method : str
        Its name, for messages.
    tol : float
        Relative to the objective at zero coefficients and the best intercept. Without l1 and l2
        there is no gap: then the largest gradient component that could still lower the objective
        is compared with the largest at zero.
    max_passes, callback, check_every
        As in `telic.optim.minimize`.
    has_step : bool
        Whether the method's step can be too large: then an objective that grows without bound is
        an error. The dual method's may be infinite for a while.
    safe_step : float, optional
        Named in the message when the run diverges.
    null : tuple, optional
        `Problem.null()`, where it is known.

    Raises
    ------
    InputError
        If the objective grows without bound (`DivergedError`), or it or a coefficient is not
        finite in the end.
    """
    began = time.perf_counter()
    shift, zero, unit = null or problem.null()
    if problem.fit_intercept and isinstance(problem.loss, Tweedie):
        # At zero predictions the loss may be far larger than any number that is summed later on.
        unit = zero + float(np.sum(problem.mass * problem.y ** (2.0 - problem.loss.power)))
    bounded = problem.l1 > 0 or problem.l2 > 0
    slope = np.nan if bounded else float(np.abs(problem.slope_alone(shift)).max())
    history: list[Record] = []
    lower, gradients, spent, since, wait = -np.inf, 0, 0.0, 0, 1
    converged = stopped = False
    clock = time.perf_counter()
    for iterate in iterates:
        spent += time.perf_counter() - clock
        gradients += iterate.gradients
        passes = gradients / problem.design.n
        since += 1
        last = passes >= max_passes
        if since < (check_every or wait) and iterate.prediction is None and not last:
            clock = time.perf_counter()
            continue
        since = 0
        objective, intercept, dual, size = _look(problem, iterate, bounded)
        if has_step and not objective <= 1e6 * (unit + 1e-12):
            hint = f" A step_size of {safe_step:.3g} is safe." if safe_step else ""
            raise DivergedError(f"{method} diverged after {passes:.3g} passes.{hint}")
        lower = max(lower, dual)
        gap = max(objective - lower, 0.0) if bounded else np.nan
        record = Record(passes, gradients, spent, objective, gap)
        history.append(record)
        measure, target = (gap, tol * zero) if bounded else (size, tol * slope)
        # Below a few units in the last place of the losses the gap is rounding.
        converged = measure <= max(target, 4e-15 * max(abs(objective), unit))
        if callback is not None and callback(record, iterate.coef, intercept):
            stopped = True
        if converged or last or stopped:
            break
        wait = _forecast(history, target)
        clock = time.perf_counter()
    if not (np.isfinite(objective) and np.isfinite(iterate.coef).all()):
        raise InputError(
            f"{method} has no finite result after {passes:.3g} passes. Scale the features to a "
            "spread of about 1, or use gram or prox_newton."
        )
    if not converged and not stopped:
        warn_unconverged(
            f"{method} stopped after {passes:.4g} passes with "
            + (f"a duality gap of {gap:.3g}" if bounded else f"a gradient of {size:.3g}")
            + f", above the {target:.3g} asked for. "
            "Raise max_passes or tol, or scale the features.",
            stacklevel=3,
        )
    return SolveResult(
        coef=iterate.coef.copy(),
        intercept=float(intercept),
        objective=float(objective),
        gap=float(gap),
        passes=passes,
        gradients=gradients,
        seconds=time.perf_counter() - began,
        converged=bool(converged),
        method=method,
        history=history,
    )


def certify(problem: Problem, coef: Any, intercept: float = 0.0) -> tuple[float, float]:
    """Judge coefficients, whoever found them.

    Parameters
    ----------
    problem : Problem
        Of `make_problem`.
    coef : array-like of shape (d,)
    intercept : float, optional
        Judged as it is, not at its best.

    Returns
    -------
    objective : float
        P(coef, intercept).
    gap : float
        At least P(coef, intercept) − P*, and 0 only at the optimum; NaN where no bound exists
        (l1 = l2 = 0), infinite where `positive=True` forbids a coefficient.

    Raises
    ------
    InputError
        If coef has another shape or is not finite, or if an intercept is given to a problem
        without one.

    Examples
    --------
    >>> from telic.optim import certify, make_problem
    >>> problem = make_problem([[1.0], [2.0]], [1.0, 2.0], loss="squared", l2=0.5)
    >>> objective, gap = certify(problem, [0.8])  # the optimum, 0.8333, has 0.2083
    >>> round(objective, 4), round(gap, 4)
    (0.21, 0.01)
    """
    refuse_masked("coef", coef)
    w = np.asarray(coef, dtype=np.float64)
    if w.shape != (problem.design.d,) or not np.isfinite([*w, intercept]).all():
        raise InputError(
            f"coef has the shape {w.shape}, expected {problem.design.d} finite numbers and a "
            "finite intercept."
        )
    if intercept and not problem.fit_intercept:
        raise InputError(
            f"intercept is {intercept}, but the problem has none. Make it with fit_intercept=True."
        )
    objective = problem.risk(problem.predict(w, float(intercept))) + problem.penalty.value(w)
    bounded = problem.l1 > 0 or problem.l2 > 0
    # The bound is that of the best intercept, where the slopes are balanced.
    lower = _look(problem, Iterate(w, float(intercept), 0), bounded)[2]
    return float(objective), max(float(objective - lower), 0.0) if bounded else np.nan


def _look(problem: Problem, iterate: Iterate, bounded: bool) -> tuple[float, float, float, float]:
    """Objective, best intercept, lower bound, and without one the largest violation."""
    z, a, gradient = iterate.prediction, iterate.slopes, iterate.gradient
    shift = 0.0
    if z is None:
        z = problem.predict(iterate.coef, iterate.intercept)
        shift = problem.best_shift(z)
        z += shift
    risk = problem.risk(z) if iterate.risk is None else iterate.risk
    objective = risk + problem.penalty.value(iterate.coef)
    if a is None:
        # The predictions are not needed any more if they are our own.
        a = problem.slopes(z, out=z if iterate.prediction is None else None)
    if gradient is None:
        gradient = problem.back(a)
    intercept = iterate.intercept + shift
    if bounded:
        # The slopes of Newton's methods are those at the prediction.
        conjugates = a @ z - risk if iterate.risk is not None else None
        if (fair := problem.balanced(a)) is a:
            return objective, intercept, problem.dual_value(a, gradient, conjugates), np.nan
        z = problem.predict(iterate.coef, intercept)
        both = fair, problem.balanced_by_bending(a, z)
        lower = max(problem.dual_value(each, problem.back(each)) for each in both)
        return objective, intercept, lower, np.nan
    return objective, intercept, -np.inf, problem.penalty.violations(gradient, iterate.coef).max()


def _forecast(history: list[Record], target: float) -> int:
    """Half of the passes still needed if the gap keeps falling at its latest rate, 1 to 10."""
    if len(history) < 2 or not 0 < history[-1].gap < math.inf or target <= 0:
        return 1
    before, now = history[-2], history[-1]
    rate = math.log(max(before.gap, now.gap) / now.gap) / (now.passes - before.passes)
    if not rate > 0:
        return 3
    per_iterate = max((now.passes - before.passes), 1.0)
    return int(min(max(0.5 * math.log(now.gap / target) / rate / per_iterate, 1.0), 10.0))
