"""One entry point for every ADMM method, with step sizes chosen safely."""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from telic.errors import InputError, expect_at_least, expect_one_of
from telic.optim import sampling
from telic.optim.admm import methods
from telic.optim.admm.defaults import (
    X_STEPS,
    balanced_rows,
    choose_x_step,
    default_batch,
    default_rho,
    metric_of,
)
from telic.optim.admm.duality_gap import origin_of
from telic.optim.admm.loop import AdmmRecord, AdmmResult, MethodSettings, Point, drive
from telic.optim.admm.methods.newton import multipliers
from telic.optim.admm.methods.steps import State, make_steps
from telic.optim.admm.problem import AdmmProblem, make_admm_problem
from telic.optim.admm.separable_penalty import Separable, separable
from telic.optim.losses import Loss
from telic.optim.solver import start_vector
from telic.optim.threads import small_products

METHODS = tuple(methods.METHODS)
PRINTED = {"step_size": 5e-3, "rho": 1e-4, "first": 1.0, "batch_size": 1, "x_step": "linearised"}
"""The settings printed for ijcnn1: η, ρ and m⁽⁰⁾ (with γ₁ = 1e-3), the x-step of 5.7.1."""


def minimize_admm(
    X: Any,
    y: Any,
    *,
    A: Any,
    l1: Any = 0.0,
    g: Separable | None = None,
    B: Any = None,
    c: Any = None,
    loss: str | Loss = "logistic",
    l2: float = 0.0,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    **settings: Any,
) -> AdmmResult:
    """Minimise f(w) + l1‖Aw‖₁, or f(x) + g(y) subject to Ax + By = c.

    f(w) = Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + (l2/2)‖w‖².

    Parameters
    ----------
    X : array or scipy.sparse matrix, shape (n, d)
    y : array, shape (n,)
    A : array or scipy.sparse matrix, shape (k, d)
    l1 : float or array, shape (k,)
        Weight of each ``|⟨A_e, w⟩|``, >= 0; read if g is not given.
    g : Separable, optional
        Any penalty of the constraint's y, from `separable`.
    B, c, loss, l2, sample_weight, fit_intercept
        As in `make_admm_problem`.
    **settings
        As in `solve_admm`.

    Returns
    -------
    AdmmResult

    Raises
    ------
    InputError
        If the input cannot be used, or the method diverges with the step given.

    Examples
    --------
    >>> D = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    >>> result = minimize_admm(
    ...     np.eye(3), [1.0, 1.2, 4.0], A=D, l1=0.1, loss="squared", method="batch-admm", tol=1e-9
    ... )
    >>> result.coef.round(3)
    array([1.25, 1.25, 3.7 ])
    """
    if g is None:
        g = separable(np.shape(A)[0] if np.ndim(A) or hasattr(A, "shape") else 0, l1=l1)
    problem = make_admm_problem(
        X,
        y,
        A=A,
        g=g,
        B=B,
        c=c,
        loss=loss,
        l2=l2,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
    )
    return solve_admm(problem, **settings)


def solve_admm(
    problem: AdmmProblem,
    *,
    method: str = "svr-admm-d",
    step_size: float | None = None,
    rho: float | None = None,
    x_step: str = "auto",
    first: float | None = None,
    batch_size: int | None = None,
    perturbation: float = 1e-4,
    tol: float = 1e-4,
    max_passes: float = 1000,
    max_seconds: float = np.inf,
    seed: int | np.random.Generator | None = 0,
    x_init: Any = None,
    dual_init: Any = None,
    callback: Callable[[AdmmRecord, Point], bool | None] | None = None,
    check_every: float | None = None,
) -> AdmmResult:
    """Run a method on a problem that is already built.

    Parameters
    ----------
    problem : AdmmProblem
    method : str
        One of `METHODS`.
    step_size : float, optional
        η; `safe_step` by default.
    rho : float, optional
        ρ of the augmented Lagrangian; by default L / (3 ‖AᵀA‖), in the units of "scaled" and
        "curvature" for these, which make it a ρ for each row; "newton" has a ρ for each row of its
        own, which grows. SDCA-ADMM has no η: its ρ is a step on the primal, and
        step_size another name for it. `PRINTED` holds the settings printed for ijcnn1.
    x_step : {"auto", "linearised", "scaled", "exact", "curvature", "newton"}
        "linearised" is 5.7.1: P = θI − ηρAᵀA with θ = ηρ‖AᵀA‖ + 1, memory O(d + k). "scaled" is
        that with the largest absolute value of each feature as its unit: P = θS − ηρAᵀA with
        S = diag(max_i x_ij²). "exact" is 5.7.2 with P = I. "curvature" is 5.7.2 with P a bound on
        the Hessian of f: η has no unit then, and correlated features cost less. Both keep one
        d × d matrix. "newton", for batch ADMM only, takes [Zhang2017] (5.3.1) and (5.3.2) at once:
        the method of multipliers, with no step size and the fewest steps; each takes the Hessian.
        It goes on below tol, to rounding, where the problem is small. "auto" is "linearised" for
        STOC-ADMM and SDCA-ADMM, "scaled" beyond 300 features, else "newton" for batch ADMM without
        a step_size, and "curvature".
    first : float, optional
        m⁽⁰⁾ of SVR-ADMM-D, a positive multiple of 1/2; by default the first stage takes n/2
        gradients after its full one.
    batch_size : int, optional
        Rows of one stochastic step (all but SDCA and batch ADMM); see `default_batch`.
    perturbation : float
        λ₂ that SDCA-ADMM adds.
    tol : float
        Stop when the gap is at most tol times the objective without any feature: x = 0 and the
        best intercept.
    max_passes, max_seconds : float
        Stop with a `sklearn.exceptions.ConvergenceWarning` after so many times n component
        gradients, or so many seconds.
    seed : int, Generator or None
        The same seed gives the same result to the last bit.
    x_init, dual_init : array, optional
        Where to start; dual_init is u = ρz. By default zero and the best intercept. SDCA-ADMM
        starts from zero.
    callback : callable, optional
        Called with (record, point) at each look; a true value stops the run.
    check_every : float, optional
        Passes between looks. By default they become rarer as the run grows longer, and every
        complete stage is looked at.

    Returns
    -------
    AdmmResult
        Stopped by passes, time, the callback or Ctrl-C: the last complete point, which for
        SVR-ADMM is the average of its last complete stage.

    Raises
    ------
    InputError
        If a setting cannot be used, or the method diverges.
    """
    expect_one_of(METHODS, method=method)
    expect_one_of(X_STEPS, x_step=x_step)
    if first is not None and not (first > 0 and 2 * first == int(2 * first)):
        raise InputError(f"first is {first!r}, expected a positive multiple of 1/2 (m⁽⁰⁾).")
    if batch_size is not None and not (batch_size >= 1 and batch_size == int(batch_size)):
        raise InputError(f"batch_size is {batch_size!r}, expected an integer >= 1.")
    expect_at_least(0, perturbation=perturbation)
    ends = (tol, max_passes, max_seconds)
    are_numbers = all(isinstance(each, Real) for each in ends)
    if not (are_numbers and 0 <= tol < np.inf and max_passes > 0 and max_seconds > 0):
        raise InputError(
            f"tol is {tol!r}, max_passes {max_passes!r}, max_seconds {max_seconds!r}: "
            "expected numbers >= 0, > 0 and > 0."
        )
    found = methods.METHODS[method]
    with small_products(problem.size):
        n = problem.data.design.n
        x_step = choose_x_step(problem, method, x_step, step_size)
        metric = metric_of(problem, x_step)
        batch_size = (
            default_batch(problem, metric) if batch_size is None else min(int(batch_size), n)
        )
        safe = found.safe_step(metric, n, batch_size)
        eta = safe if step_size is None else step_size
        factor = balanced_rows(problem, metric) if rho is None else np.ones(problem.c.size)
        inner = problem.with_rows(factor)
        given = rho
        if rho is None:
            rho = eta if found.from_zero else default_rho(inner, metric)
        steps = make_steps(inner, eta=eta, rho=rho, unit=metric.unit, P=metric.P)
        best, zero = origin_of(problem)
        if found.from_zero:
            best = np.zeros(problem.size)
        x = start_vector("x_init", best if x_init is None else x_init, problem.size)
        u = start_vector("dual_init", dual_init, problem.A.shape[0])
        state = State.start(inner, x.copy(), u / factor / rho)
        if x_step == "newton":
            points = multipliers(problem, x, state.y, u, rho=given)
        else:
            settings = {
                "seed": sampling.random_state(seed),
                "batch_size": batch_size,
                "first": max(0.5, float(n // (8 * batch_size))) if first is None else first,
                "perturbation": perturbation,
            }
            points = found.run(inner, steps, state, **{k: settings[k] for k in found.takes})

        def as_given(point: Point) -> Point:
            """Undo that the rows of the constraint were multiplied."""
            y = point.y / factor if inner.B is None else point.y
            return point._replace(y=y, u=point.u * factor)

        return drive(
            problem,
            map(as_given, points),
            MethodSettings(method, float(rho), float(eta), safe),
            start=as_given(Point(x, state.y.copy(), u / factor, 0)),
            zero=zero,
            tol=tol,
            max_passes=max_passes,
            max_seconds=max_seconds,
            callback=callback,
            check_every=check_every,
        )
