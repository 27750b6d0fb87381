"""scikit-learn estimators: generalised lasso and trend filtering, and what all of admm's share."""

from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin

from telic.errors import InputError
from telic.evaluate.checked_numbers import checked_numbers
from telic.optim.admm.defaults import CURVATURE_UP_TO
from telic.optim.admm.loop import AdmmResult
from telic.optim.admm.problem import make_admm_problem
from telic.optim.admm.separable_penalty import separable
from telic.optim.admm.solve import METHODS, solve_admm
from telic.optim.estimators.linear import (
    LinearPrediction,
    check_solver,
    example_weights,
    seed_of,
    validated,
)
from telic.optim.losses import Loss
from telic.optim.problem import as_vector
from telic.optim.threads import SMALL_MATRIX

BATCH_UP_TO = 5000
"""Most samples for which solver="auto" takes Newton's method from the start."""


class Fitted(LinearPrediction):
    """A linear prediction whose weights are held by a matrix A."""

    def _solve(
        self,
        X: Any,
        y: Any,
        A: Any,
        l1: float | np.ndarray,
        *,
        loss: str | Loss,
        sample_weight: Any,
    ) -> AdmmResult:
        check_solver(self, ("auto", *METHODS))
        problem = make_admm_problem(
            X,
            y,
            A=A,
            g=separable(A.shape[0], l1=l1),
            loss=loss,
            l2=self.l2,
            sample_weight=sample_weight,
            fit_intercept=self.fit_intercept,
        )
        limits = _limits(self)
        if self.solver != "auto":
            return solve_admm(problem, method=self.solver, **limits)
        if problem.size > (CURVATURE_UP_TO if problem.data.design.is_sparse else SMALL_MATRIX):
            return solve_admm(problem, method="svr-admm-d", **limits)  # the Hessian is too large
        start: dict[str, Any] = {}
        spent = 0.0
        if problem.data.design.n > BATCH_UP_TO:
            # Passes that cost as much as Newton's method does: some fifty Hessians.
            worth = 50 * max(1.0, problem.data.design.stored / problem.data.design.n / 8.0)
            sampled = solve_admm(
                problem,
                method="svr-admm-d",
                **limits,
                callback=lambda record, _: record.passes >= worth,
            )
            if sampled.stopped != "callback":
                return sampled
            x = np.append(sampled.coef, sampled.intercept)[: problem.size]
            start, spent = {"x_init": x, "dual_init": sampled.dual}, sampled.passes
            limits["max_seconds"] = max(limits["max_seconds"] - sampled.seconds, 1e-9)
        found = solve_admm(problem, method="batch-admm", x_step="newton", **limits, **start)
        return replace(found, passes=spent + found.passes)

    def _record(self, results: list[AdmmResult]) -> None:
        """Keep what the fit says of itself; several results are those of several classes."""
        self.n_iter_ = max(1, *(round(result.passes) for result in results))
        self.gap_ = max(result.gap for result in results)
        reasons = {result.stopped for result in results}
        self.stopped_ = "tolerance" if reasons == {"tolerance"} else max(reasons - {"tolerance"})


def _limits(estimator: Any) -> dict[str, Any]:
    """Return when a fit ends, and its seed, as `solve_admm` takes them."""
    return {
        "tol": estimator.tol,
        "max_passes": estimator.max_iter,
        "max_seconds": np.inf if estimator.max_seconds is None else estimator.max_seconds,
        "seed": seed_of(estimator.random_state),
    }


class Regressor(RegressorMixin, Fitted):
    """A linear prediction of a number."""

    def _keep(self, results: list[AdmmResult]) -> Self:
        (result,) = results
        self.coef_, self.intercept_ = result.coef, result.intercept
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the expected target of each sample."""
        return self._scores(X)


class GeneralizedLasso(Regressor):
    """Regression with an ℓ₁ penalty on any linear map of the weights.

    Minimises Σ_i s_i (⟨w, x_i⟩ + b − y_i)² / (2 Σ_i s_i) + alpha ‖Dw‖₁ + (l2/2)‖w‖².

    Parameters
    ----------
    D : array or scipy.sparse matrix, shape (k, n_features), optional
        The identity by default, which is scikit-learn's ``Lasso(alpha)``.
    alpha : float
        Strength, >= 0.
    l2, solver, fit_intercept, tol, max_iter, max_seconds, random_state
        As in `GraphFusedClassifier`.
    loss : {"squared", "huber"} or Loss

    Attributes
    ----------
    coef_, intercept_, n_iter_, gap_, stopped_
        As in `GraphFusedRegressor`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = GeneralizedLasso([[1.0, -1.0, 0.0]], alpha=0.1).fit(X, X @ [1.0, 1.0, 3.0])
    >>> model.coef_.round(3)
    array([1., 1., 3.])
    """

    def __init__(
        self,
        D: Any = None,
        *,
        alpha: float = 0.1,
        l2: float = 0.0,
        loss: str | Loss = "squared",
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: float = 1000,
        max_seconds: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.D = D
        self.alpha = alpha
        self.l2 = l2
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validated(self, X, y, y_numeric=True)
        weights = example_weights(None, y, sample_weight)
        D: Any = sparse.eye_array(X.shape[1], format="csr") if self.D is None else self.D
        D = D if sparse.issparse(D) else np.atleast_2d(checked_numbers("D", D))
        if np.iscomplexobj(D):
            raise InputError("D holds complex values, expected real numbers.")
        if D.shape[1] != X.shape[1]:
            raise InputError(
                f"D has {D.shape[1]} columns, X has {X.shape[1]} features: expected one each."
            )
        result = self._solve(X, y, D, self.alpha, loss=self.loss, sample_weight=weights)
        self._record([result])
        return self._keep([result])


class TrendFilter(BaseEstimator):
    """Piecewise polynomial fit to a series: ‖y − x‖²/(2n) + alpha ‖D x‖₁, D the differences.

    Order 0 gives steps (total variation), 1 straight pieces, 2 parabolas.

    Parameters
    ----------
    order : int
        Degree of the pieces, 0 to 3; the differences are of order + 1.
    alpha : float
        Strength, >= 0.
    solver, tol, max_iter, max_seconds, random_state
        As in `GraphFusedClassifier`. The default is batch ADMM: one sample per unknown leaves
        nothing to sample.

    Attributes
    ----------
    trend_ : array, shape (n,)
    n_iter_, gap_, stopped_
        As in `GraphFusedRegressor`.

    Examples
    --------
    >>> y = np.repeat([0.0, 1.0], 10) + 0.1 * np.sin(np.arange(20))
    >>> np.unique(TrendFilter(0, alpha=0.03).fit_transform(y).round(2))
    array([0.08, 0.92])
    """

    def __init__(
        self,
        order: int = 1,
        *,
        alpha: float = 0.1,
        solver: str = "batch-admm",
        tol: float = 1e-5,
        max_iter: float = 5000,
        max_seconds: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.order = order
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags

    def fit(self, y: Any, _: Any = None, sample_weight: Any = None) -> Self:
        """Fit the trend of a series y, shape (n,), evenly spaced; returns self."""
        if not isinstance(self.order, Integral) or not 0 <= self.order <= 3:
            raise InputError(f"order is {self.order!r}, expected 0, 1, 2 or 3.")
        shape = np.shape(y)
        if len(shape) != 1 or shape[0] < self.order + 2:
            raise InputError(
                f"y has shape {shape}, expected a series of at least {self.order + 2} values."
            )
        y = as_vector("y", y, shape[0])
        n, weights = y.size, example_weights(None, y, sample_weight)
        level = float(np.average(y, weights=weights))  # D knows nothing of levels
        D = sparse.eye_array(n, format="csr")
        for _ in range(int(self.order) + 1):
            D = sparse.csr_array(D[1:] - D[:-1])
        problem = make_admm_problem(
            sparse.eye_array(n, format="csr"),
            y - level,
            A=D,
            g=separable(D.shape[0], l1=self.alpha),
            loss="squared",
            sample_weight=weights,
        )
        result = solve_admm(
            problem,
            method=self.solver,
            x_step="newton" if self.solver == "batch-admm" else "auto",
            **_limits(self),
        )
        self.trend_: np.ndarray = result.coef + level
        self.n_iter_ = max(1, round(result.passes))
        self.gap_, self.stopped_ = result.gap, result.stopped
        return self

    def fit_transform(self, y: Any, _: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit and return the trend, shape (n,)."""
        return self.fit(y, sample_weight=sample_weight).trend_
