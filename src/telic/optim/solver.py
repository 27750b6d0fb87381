"""One entry point for every method."""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple, cast

import numpy as np

from telic.errors import InputError, expect_above, expect_one_of, warn_unconverged
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.auto import choose_method
from telic.optim.loop import Iterate, Record, SolveResult, drive
from telic.optim.losses import Loss
from telic.optim.method_facts import Method
from telic.optim.methods import asbcd, gram, mrbcd, prox_newton, saga, sbcd, sdca, svrg
from telic.optim.penalties import Penalty
from telic.optim.problem import Problem, make_problem
from telic.optim.recentring import Recentred
from telic.optim.sampling import SCHEMES
from telic.optim.sampling import random_state as random_state_of

_METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        asbcd.METHOD,
        gram.METHOD,
        mrbcd.METHOD,
        prox_newton.METHOD,
        saga.METHOD,
        sbcd.METHOD,
        sdca.METHOD,
        sbcd.SGD,
        svrg.METHOD,
    )
}
METHODS = ("auto", *_METHODS)
"""Names that `minimize` and `solve` take."""


def minimize(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    groups: Any = None,
    positive: bool = False,
    method: str = "auto",
    sampling: str = "optimal",
    blocks: int | None = None,
    batch_size: int | None = None,
    step_size: float | None = None,
    fit_intercept: bool = False,
    sample_weight: Any = None,
    offset: Any = None,
    tol: float = 1e-6,
    max_passes: float = 1000,
    seed: int | np.random.Generator | None = 0,
    coef_init: Any = None,
    intercept_init: float = 0.0,
    callback: Callable[[Record, np.ndarray, float], bool | None] | None = None,
    check_every: int | None = None,
    threads: int = 1,
) -> SolveResult:
    """Minimise Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + (l2/2)‖w‖² + l1‖w‖₁.

    Parameters
    ----------
    X : array or scipy.sparse matrix, shape (n, d)
        float32 data stay float32 in memory; all sums are float64.
    y : array, shape (n,)
        −1 and +1 for logistic and squared_hinge, >= 0 for poisson and tweedie, > 0 for gamma, any
        number otherwise.
    loss : {"squared", "logistic", "squared_hinge", "huber", "poisson", "gamma", "tweedie"} or Loss
        A `telic.optim.Huber` carries its own delta, a `telic.optim.Tweedie` its power.
    l1, l2 : float
        λ₁ and λ₂, >= 0. scikit-learn's ``ElasticNet(alpha, l1_ratio)`` is
        ``l1 = alpha l1_ratio``, ``l2 = alpha (1 − l1_ratio)``; its
        ``LogisticRegression(C, l1_ratio)`` is the same with ``alpha = 1/(C Σ s_i)``.
    groups : array of int, shape (d,), optional
        Labels of a partition of the features: ‖w‖₁ becomes Σ_g √|g| ‖w_g‖₂.
    positive : bool
        Whether no coefficient may be below 0; the intercept may. Not for groups.
    method : str
        ``auto`` (see `choose_method`), ``asbcd``, ``gram``, ``mrbcd``, ``prox_newton``, ``saga``,
        ``sbcd``, ``sdca``, ``sgd`` or ``svrg``.
    sampling : {"optimal", "uniform", "lipschitz"}
        How asbcd draws rows.
    blocks : int, optional
        Number of coordinate blocks of asbcd (default 1), sbcd and mrbcd (default 10).
    batch_size : int, optional
        Rows of one step of mrbcd; 10 by default.
    step_size : float, optional
        For the methods with a step; by default the one their theory gives.
    fit_intercept : bool
        Whether to add an unpenalised b.
    sample_weight : array, shape (n,), optional
        s_i >= 0.
    offset : array, shape (n,), optional
        Added to each row's prediction as it is: for poisson, gamma and tweedie the logarithm of the
        exposure, at most 100 in size. For logistic and squared_hinge with the methods gram,
        prox_newton and auto.
    tol : float
        Stop when the duality gap is at most tol times the objective at w = 0 with the best b.
        With l1 = l2 = 0 the gap's place is taken by the largest gradient component along which a
        coefficient may move.
    max_passes : float
        Stop with a `sklearn.exceptions.ConvergenceWarning` after this many passes, each of n
        component gradients.
    seed : int, Generator or None
        The same seed gives the same result to the last bit.
    coef_init, intercept_init
        Where to start.
    callback : callable, optional
        Called with (record, coef, intercept) at each evaluation; a true value stops the run.
    check_every : int, optional
        Passes between evaluations; by default a forecast decides.
    threads : int
        Threads of gram and prox_newton, and of every method's evaluations; the result does not
        depend on it. The other methods' steps each need the one before.

    Returns
    -------
    SolveResult

    Raises
    ------
    InputError
        If the input cannot be used, or the method diverges with the step given.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> result = minimize(X, [1.0, 2.0, 3.0], loss="squared", l1=0.1, l2=0.1, tol=1e-12)
    >>> result.coef.round(4), result.converged
    (array([0.8881, 1.6573]), True)
    """
    problem = make_problem(
        X,
        y,
        loss=loss,
        l1=l1,
        l2=l2,
        groups=groups,
        positive=positive,
        sample_weight=sample_weight,
        offset=offset,
        fit_intercept=fit_intercept,
        threads=threads,
    )
    return solve(
        problem,
        method=method,
        sampling=sampling,
        blocks=blocks,
        batch_size=batch_size,
        step_size=step_size,
        tol=tol,
        max_passes=max_passes,
        seed=seed,
        coef_init=coef_init,
        intercept_init=intercept_init,
        callback=callback,
        check_every=check_every,
    )


def solve(problem: Problem, **options: Any) -> SolveResult:
    """Run a method on a problem that is already built; options as in `solve_path`."""
    return next(solve_path(problem, [problem.penalty], **options))


def solve_path(
    problem: Problem,
    penalties: Iterable[Penalty],
    *,
    method: str = "auto",
    sampling: str = "optimal",
    blocks: int | None = None,
    batch_size: int | None = None,
    step_size: float | None = None,
    tol: float = 1e-6,
    max_passes: float = 1000,
    seed: int | np.random.Generator | None = 0,
    coef_init: Any = None,
    intercept_init: float = 0.0,
    callback: Callable[[Record, np.ndarray, float], bool | None] | None = None,
    check_every: int | None = None,
) -> Iterator[SolveResult]:
    """Solve the problem under one penalty after another, each from the last one's solution.

    ``gram`` and ``prox_newton`` also go on with their predictions and their model of the loss.

    Parameters
    ----------
    problem : Problem
        Its own penalty is ignored.
    penalties : iterable of ElasticNet or GroupElasticNet
        Best from strong to weak.
    others
        As in `minimize`.

    Examples
    --------
    >>> from telic.optim import ElasticNet
    >>> problem = make_problem(np.eye(3), [3.0, 2.0, 1.0], loss="squared")
    >>> path = solve_path(problem, [ElasticNet(l1, 0.0) for l1 in (0.5, 0.1)], tol=1e-10)
    >>> [result.coef.round(2).tolist() for result in path]
    [[1.5, 0.5, 0.0], [2.7, 1.7, 0.7]]
    """
    expect_one_of(METHODS, method=method)
    expect_one_of(SCHEMES, sampling=sampling)
    check_stop(tol, max_passes)
    if not isinstance(intercept_init, Real) or not np.isfinite(intercept_init):
        raise InputError(f"intercept_init is {intercept_init!r}, expected a finite number.")
    coef = start_vector("coef_init", coef_init, problem.design.d)
    null = problem.null()
    move = Recentred.of(problem, null)
    if move.problem is not problem:
        null = move.problem.null()
    intercept = move.there(coef, float(intercept_init)) if problem.fit_intercept else 0.0
    if problem.fit_intercept and coef_init is None and intercept_init == 0.0:
        intercept = null[0]
    asked = _Asked(sampling, blocks, batch_size, step_size, seed)
    work: _Work | None = None
    for penalty in penalties:
        problem = replace(move.problem, penalty=penalty)
        chosen = _METHODS[choose_method(problem) if method == "auto" else method]
        _refuse_unable(chosen, problem)
        if problem.below == np.inf and coef.min() < 0.0:
            coef, work = np.maximum(coef, 0.0), None
        options, safe = asked.of(chosen, problem)
        if work is not None and work.method is chosen and chosen.resumes:
            iterates = work.under(problem)
        else:
            start = {"coef": coef, "intercept": intercept}
            work = _Work(chosen, chosen.run(problem, **start, **options))
            iterates = iter(work)
        result = drive(
            problem,
            iterates,
            method=chosen.name,
            tol=tol,
            max_passes=max_passes,
            callback=move.told(callback),
            check_every=check_every,
            has_step=chosen.safe_step is not None,
            safe_step=safe,
            null=null,
        )
        coef, intercept = result.coef.copy(), result.intercept
        _warn_if_separated(problem, result)
        yield move.back(result, tol)


class _Asked(NamedTuple):
    """What a caller asks of whichever method is chosen."""

    sampling: str
    blocks: int | None
    batch_size: int | None
    step_size: float | None
    seed: int | np.random.Generator | None

    def of(self, method: Method, problem: Problem) -> tuple[dict[str, Any], float | None]:
        """Return those options that a method has, and the safe step where one was asked for."""
        n, d = problem.design.n, problem.design.d
        options: dict[str, Any] = {}
        if method.random:
            options["state"] = random_state_of(self.seed)
        if method.samples:
            options["sampling"] = self.sampling
        if method.blocks is not None:
            options["blocks"] = _count("blocks", self.blocks, method.blocks, d, "features")
        if method.batch_size is not None:
            options["batch_size"] = _count(
                "batch_size", self.batch_size, method.batch_size, n, "rows"
            )
        if method.safe_step is not None:
            options["step_size"] = self.step_size
        if self.step_size is None:
            return options, None
        rows = options.get("batch_size", 1)
        return options, _checked_step(problem, method, self.sampling, rows, self.step_size)


def _refuse_unable(method: Method, problem: Problem) -> None:
    """Refuse groups or an offset where a method does not know these."""
    if problem.is_grouped and not method.groups:
        able = ", ".join(each.name for each in _METHODS.values() if each.groups)
        raise InputError(f"{method.name} does not know groups. Use one of {able}, or 'auto'.")
    if problem.offset is not None and not method.offsets:
        able = ", ".join(each.name for each in _METHODS.values() if each.offsets)
        raise InputError(
            f"{method.name} takes no offset with the {type(problem.loss).__name__} loss. "
            f"Use one of {able}, or 'auto'."
        )


class _Work:
    """A method at work on a problem, which may go on under another penalty."""

    def __init__(self, method: Method, iterates: Iterator[Iterate]) -> None:
        self.method = method
        self.iterates = iterates

    def __iter__(self) -> Iterator[Iterate]:
        for iterate in self.iterates:
            self.last = iterate
            yield iterate

    def under(self, problem: Problem) -> Iterator[Iterate]:
        """Go on with another penalty, beginning with a look at where the last one ended."""
        yield self.last._replace(gradients=0)
        self.last = cast(Generator[Iterate, Problem], self.iterates).send(problem)
        yield self.last
        yield from self


def check_stop(tol: Any, max_passes: Any, *, name: str = "max_passes") -> None:
    """Refuse a tolerance or a limit of passes, whose name is told, that cannot be used."""
    real = isinstance(tol, Real) and isinstance(max_passes, Real)
    if not real or not 0 <= tol < np.inf or not max_passes > 0:
        raise InputError(f"tol is {tol!r} and {name} {max_passes!r}: expected >= 0 and > 0.")


def safe_step(
    problem: Problem, method: str, sampling: str = "optimal", batch_size: int | None = None
) -> float:
    """Return the step size that the method's theory gives."""
    chosen = _METHODS[method]
    if chosen.safe_step is None:
        able = ", ".join(each.name for each in _METHODS.values() if each.safe_step is not None)
        raise InputError(f"{method} has no step_size. Methods with one are {able}.")
    return chosen.safe_step(problem, sampling, batch_size or 1)


def start_vector(name: str, given: Any, size: int) -> np.ndarray:
    """Return a copy of where to start, or zeros; refuse what is not so many finite numbers."""
    if given is None:
        return np.zeros(size)
    refuse_masked(name, given)
    try:
        start = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: {error}.") from None
    if start.shape != (size,) or not np.isfinite(start).all():
        raise InputError(f"{name} has shape {start.shape}, expected ({size},) finite numbers.")
    return start


def _checked_step(
    problem: Problem, method: Method, sampling: str, batch_size: int, step_size: float
) -> float:
    """Refuse a step size that cannot be used; return the safe one."""
    safe = safe_step(problem, method.name, sampling, batch_size)
    expect_above(0, step_size=step_size)
    # At 1/l2 a step forgets where it came from; beyond it the coefficients change sign and grow.
    if step_size * problem.l2 >= 1.0:
        raise InputError(
            f"{method.name} diverges with a step_size of {step_size:.3g}, which is 1/l2 or more. "
            f"A step_size of {safe:.3g} is safe."
        )
    return safe


def _count(name: str, given: int | None, default: int, most: int, of: str) -> int:
    if given is None:
        return min(default, most)
    if not isinstance(given, Integral) or not 1 <= given <= most:
        raise InputError(f"{name} is {given!r}, expected 1 to the {most} {of}.")
    return int(given)


def _warn_if_separated(problem: Problem, result: SolveResult) -> None:
    if problem.l1 > 0 or problem.l2 > 0 or problem.loss.code != 1:
        return
    if (problem.y * problem.predict(result.coef, result.intercept)).min() > 0:
        warn_unconverged(
            "the classes are separated, so without l1 and l2 the logistic loss has no minimum and "
            "the coefficients only grow. Set l1 or l2.",
            stacklevel=3,
        )
