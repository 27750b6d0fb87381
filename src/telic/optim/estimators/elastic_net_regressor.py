"""A scikit-learn estimator: elastic-net regression."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from telic.errors import InputError, expect_at_least
from telic.optim.estimators.linear import (
    Linear,
    check_solver,
    checked_ratio,
    example_weights,
    validated,
)
from telic.optim.losses import LogLink, Loss, as_loss
from telic.optim.problem import as_vector


class ElasticNetRegressor(RegressorMixin, Linear):
    """Linear regression with ℓ₁ and ℓ₂ penalties, for squared, Huber and log-link losses.

    Minimises Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + alpha l1_ratio ‖w‖₁
    + alpha (1 − l1_ratio)/2 ‖w‖²: for squared loss (half the square) the objective of
    scikit-learn's ``ElasticNet``; for poisson, gamma and tweedie with l1_ratio = 0 that of its
    ``PoissonRegressor``, ``GammaRegressor`` and ``TweedieRegressor``.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    l1_ratio : float
        Share of ℓ₁, from 0 to 1.
    loss : {"squared", "huber", "poisson", "gamma", "tweedie"} or Loss
        ``telic.optim.Huber(delta)`` sets where squared turns linear, ``Tweedie(power)`` the
        power, which is 1.5 otherwise. poisson, gamma and tweedie predict exp of the linear score.
    groups : array of int, shape (n_features,), optional
        Labels of a partition of the features, which are used group by group: Σ_g √|g| ‖w_g‖₂
        stands for ‖w‖₁.
    positive : bool
        Whether no coefficient may be below 0; the intercept may. Not with groups.
    fit_intercept, solver, sampling, blocks, tol, max_iter, warm_start, n_jobs, random_state
        As in `ElasticNetClassifier`.

    Attributes
    ----------
    coef_ : array, shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Passes over the data.
    gap_ : float
        Certified bound on the distance of the objective from its optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetRegressor(alpha=0.01, l1_ratio=0.5).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.379
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        loss: str | Loss = "squared",
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        sampling: str = "optimal",
        blocks: int | None = None,
        tol: float = 1e-6,
        max_iter: float = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.sampling = sampling
        self.blocks = blocks
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
        y : array, shape (n_samples,)
        sample_weight : array, shape (n_samples,), optional
        offset : array, shape (n_samples,), optional
            Added to the linear score as it is: with a log link the logarithm of the exposure.

        Returns
        -------
        self
        """
        ratio = checked_ratio(self.l1_ratio)
        check_solver(self)
        expect_at_least(0, alpha=self.alpha)
        self._check_loss()
        X, y = validated(self, X, y, y_numeric=True)
        start = None
        if self.warm_start and getattr(self, "coef_", np.empty(0)).shape == (X.shape[1],):
            start = self.coef_, self.intercept_
        weights = example_weights(None, y, sample_weight)
        result = self._solve(X, y, self.alpha, ratio, weights, start, offset)
        self.coef_: np.ndarray = result.coef
        self.intercept_: float = result.intercept
        self.n_iter_: int = max(1, round(result.passes))
        self.gap_: float = result.gap
        return self

    def _check_loss(self) -> None:
        if as_loss(self.loss).classifies:
            raise InputError(
                f"loss is {self.loss!r}, expected 'squared', 'huber', 'poisson', 'gamma' or "
                "'tweedie'."
            )

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the expected target of each sample, whose offset may be given."""
        scores = self._scores(X)
        if offset is not None:
            scores = scores + as_vector("offset", offset, scores.size)
        return np.exp(scores) if isinstance(as_loss(self.loss), LogLink) else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the share of variance explained, R²; with a log link that of deviance, D².

        D² compares with the best intercept alone, or with the offset. It is NaN where this
        comparison has no deviance left.
        """
        loss = as_loss(self.loss)
        if not isinstance(loss, LogLink):
            return float(r2_score(y, self.predict(X, offset), sample_weight=sample_weight))
        scores = self._scores(X)
        y = as_vector("y", np.ravel(y) if np.shape(y) == (scores.size, 1) else y, scores.size)
        weights = example_weights(None, y, sample_weight)
        known = np.zeros_like(y) if offset is None else as_vector("offset", offset, y.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            falling = weights @ (y * np.exp((1.0 - loss.power) * known))
            null = known + np.log(falling / (weights @ np.exp((2.0 - loss.power) * known)))
            left = weights @ loss.value(scores + known, y)
            least = weights @ loss.value(null, y)
        rounding = 4e-15 * (weights @ y ** (2.0 - loss.power))
        return float(1.0 - left / least) if least > rounding else np.nan
