"""scikit-learn estimators: elastic-net classification and regression."""

from copy import copy
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from telic.errors import InputError
from telic.optim.design import refuse_mask
from telic.optim.losses import Loss, Poisson, as_loss
from telic.optim.result import SolveResult
from telic.optim.solve import minimize

_FORMATS: dict[str, Any] = {"accept_sparse": ("csr", "csc"), "dtype": (np.float64, np.float32)}


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return `validate_data` in the formats of the solvers; a mask, which it drops, is refused."""
    refuse_mask("X", X)
    refuse_mask("y", y)
    return validate_data(estimator, X, y, **_FORMATS, **options)


class _Linear(BaseEstimator):
    """A linear prediction, and the call of the solver."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: Any) -> np.ndarray:
        """X coef + intercept; one column per row of coef_ where that is two-dimensional."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def _solve(
        self,
        X: Any,
        y: Any,
        alpha: float,
        sample_weight: Any,
        start: tuple[np.ndarray, float] | None,
    ) -> SolveResult:
        coef, intercept = start if start is not None else (None, 0.0)
        return minimize(
            X,
            y,
            loss=self.loss,
            l1=alpha * self.l1_ratio,
            l2=alpha * (1.0 - self.l1_ratio),
            method=self.solver,
            fit_intercept=self.fit_intercept,
            sample_weight=sample_weight,
            tol=self.tol,
            max_passes=self.max_iter,
            seed=seed_of(self.random_state),
            coef_init=coef,
            intercept_init=intercept,
            threads=effective_n_jobs(self.n_jobs),
        )

    def _check_ratio(self) -> None:
        if not isinstance(self.l1_ratio, Real) or not 0 <= float(self.l1_ratio) <= 1:
            raise InputError(f"l1_ratio is {self.l1_ratio!r}, expected a number from 0 to 1.")


class ElasticNetClassifier(ClassifierMixin, _Linear):
    """Logistic regression, or a squared-hinge machine, with ℓ₁ and ℓ₂ penalties.

    Minimises C Σ_i s_i loss(y_i (⟨w, x_i⟩ + b)) + l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖², the
    objective of ``LogisticRegression(penalty="elasticnet", solver="saga")``, whose name this class
    can take in an import. In the terms of `telic.optim.minimize`: l1 = l1_ratio/(C Σ s_i) and
    l2 = (1 − l1_ratio)/(C Σ s_i).

    More than two classes are fitted one against the rest (scikit-learn's saga is multinomial).

    Parameters
    ----------
    penalty : {"elasticnet", "l1", "l2", None}
        ``l1`` and ``l2`` stand for l1_ratio 1 and 0, None for no penalty at all.
    C : float
        Inverse strength of the penalty, > 0.
    l1_ratio : float
        Share of ℓ₁, from 0 to 1; read for ``elasticnet`` only, and may be None otherwise.
    loss : {"logistic", "squared_hinge"}
        Probabilities need ``logistic``.
    fit_intercept : bool
        The intercept is not penalised.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights, as in scikit-learn.
    solver : str
        A method of `telic.optim.minimize`.
    tol : float
        Duality gap at which to stop, relative to the objective at w = 0. Unlike scikit-learn's it
        bounds the error of the objective.
    max_iter : int
        Passes over the data before a `ConvergenceWarning`.
    warm_start : bool
        Start from the last fit's coefficients.
    n_jobs : int, optional
        Threads of the solver, where it can use them (gram, prox_newton); −1 for all cores.
    random_state : int, RandomState or None
        Seeds the stochastic solvers.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    coef_ : array, shape (1 or n_classes, n_features)
    intercept_ : array, shape (1 or n_classes,)
    n_iter_ : array of int, shape (1 or n_classes,)
        Passes over the data.
    gap_ : array, shape (1 or n_classes,)
        Certified distance of the objective (per unit of weight) from its optimum.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ElasticNetClassifier(C=0.1, l1_ratio=0.5).fit(scale(X), y)
    >>> round(model.score(scale(X), y), 3), int((model.coef_ != 0).sum())
    (0.981, 18)
    """

    def __init__(
        self,
        penalty: str | None = "elasticnet",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.5,
        loss: str | Loss = "logistic",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
        y : array, shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array, shape (n_samples,), optional

        Returns
        -------
        self
        """
        with_penalty = _with_penalty(self)
        with_penalty._check_ratio()
        if not isinstance(self.C, Real) or not float(self.C) > 0:
            raise InputError(f"C is {self.C!r}, expected a number > 0.")
        X, y = validated(self, X, y)
        classes = self._checked_classes(y)
        weights = example_weights(self.class_weight, y, sample_weight)
        self._check_both_weighted(classes, y, weights)
        alpha = 0.0 if self.penalty is None else 1.0 / (self.C * weights.sum())
        positive = classes[1:] if classes.size == 2 else classes
        starts = self._starts(classes, X.shape[1], positive.size)
        results = [
            with_penalty._solve(X, np.where(y == label, 1.0, -1.0), alpha, weights, start)
            for label, start in zip(positive, starts, strict=True)
        ]
        self.classes_: np.ndarray = classes
        self._store(results)
        return self

    def _checked_classes(self, y: np.ndarray) -> np.ndarray:
        if not as_loss(self.loss).classifies:
            raise InputError(f"loss is {self.loss!r}, expected 'logistic' or 'squared_hinge'.")
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size < 2:
            only = classes.tolist()[0]
            raise InputError(f"y holds one class only ({only!r}): at least two are needed.")
        return classes

    def _check_both_weighted(self, classes: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
        if weights.min() > 0:
            return
        weighted = np.unique(y[weights > 0])
        if weighted.size < classes.size:
            raise InputError(
                f"sample_weight leaves only {weighted.size} of {classes.size} classes with any "
                "weight. Drop the class or weigh it."
            )

    def _store(self, results: list[SolveResult]) -> None:
        self.coef_ = np.array([result.coef for result in results])
        self.intercept_ = np.array([result.intercept for result in results])
        self.n_iter_ = np.array([max(1, round(result.passes)) for result in results])
        self.gap_ = np.array([result.gap for result in results])

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed score of each sample: shape (n,), or (n, n_classes) beyond two classes."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each sample."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; beyond two classes the scores' odds, normalised to 1."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])

    @available_if(lambda self: self.loss == "logistic")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _starts(
        self, classes: np.ndarray, d: int, count: int
    ) -> list[tuple[np.ndarray, float] | None]:
        known = getattr(self, "classes_", None)
        if not self.warm_start or known is None or not np.array_equal(known, classes):
            return [None] * count
        if self.coef_.shape != (count, d):
            return [None] * count
        return list(zip(self.coef_, self.intercept_, strict=True))


class ElasticNetRegressor(RegressorMixin, _Linear):
    """Linear regression with ℓ₁ and ℓ₂ penalties, for squared, Huber and Poisson losses.

    Minimises Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + alpha l1_ratio ‖w‖₁
    + alpha (1 − l1_ratio)/2 ‖w‖²: for squared loss (half the square) the objective of
    scikit-learn's ``ElasticNet``, for Poisson with l1_ratio = 0 that of its ``PoissonRegressor``.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, >= 0.
    l1_ratio : float
        Share of ℓ₁, from 0 to 1.
    loss : {"squared", "huber", "poisson"} or Loss
        ``telic.optim.Huber(delta)`` sets where squared turns linear; poisson predicts exp of the
        linear score.
    fit_intercept, solver, tol, max_iter, warm_start, n_jobs, random_state
        As in `ElasticNetClassifier`.

    Attributes
    ----------
    coef_ : array, shape (n_features,)
    intercept_ : float
    n_iter_ : int
        Passes over the data.
    gap_ : float
        Certified distance of the objective from its optimum.

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
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or sparse matrix, shape (n_samples, n_features)
        y : array, shape (n_samples,)
        sample_weight : array, shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._check_ratio()
        if not isinstance(self.alpha, Real) or not 0 <= float(self.alpha) < np.inf:
            raise InputError(f"alpha is {self.alpha!r}, expected a number >= 0.")
        self._check_loss()
        X, y = validated(self, X, y, y_numeric=True)
        start = None
        if self.warm_start and getattr(self, "coef_", np.empty(0)).shape == (X.shape[1],):
            start = self.coef_, self.intercept_
        weights = example_weights(None, y, sample_weight)
        result = self._solve(X, y, self.alpha, weights, start)
        self.coef_: np.ndarray = result.coef
        self.intercept_: float = result.intercept
        self.n_iter_: int = max(1, round(result.passes))
        self.gap_: float = result.gap
        return self

    def _check_loss(self) -> None:
        if as_loss(self.loss).classifies:
            raise InputError(f"loss is {self.loss!r}, expected 'squared', 'huber' or 'poisson'.")

    def predict(self, X: Any) -> np.ndarray:
        """Return the expected target of each sample."""
        scores = self._scores(X)
        return np.exp(scores) if isinstance(as_loss(self.loss), Poisson) else scores


def seed_of(random_state: Any) -> int | None:
    """Turn scikit-learn's random_state into a seed; None stays None."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return random_state


def example_weights(class_weight: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Return sample weights times class weights; ones where neither is given."""
    refuse_mask("sample_weight", sample_weight)
    try:
        weights = np.asarray(1.0 if sample_weight is None else sample_weight, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample_weight cannot be read as numbers: {error}.") from None
    if weights.ndim == 0:
        weights = np.full(len(y), float(weights))
    if weights.shape != (len(y),):
        raise InputError(
            f"sample_weight has shape {weights.shape}, expected ({len(y)},): one per sample."
        )
    if class_weight is not None:
        classes, codes = np.unique(y, return_inverse=True)
        # Balanced means balanced in weight, as in scikit-learn's LogisticRegression.
        weights = (
            weights
            * compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights)[codes]
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError("sample_weight must be finite, >= 0 and not all zero.")
    return weights


def _with_penalty(model: ElasticNetClassifier) -> ElasticNetClassifier:
    """Return the model with the l1_ratio that its penalty's name stands for."""
    ratios = {"elasticnet": model.l1_ratio, "l1": 1.0, "l2": 0.0, None: 0.0}
    if model.penalty not in list(ratios):
        raise InputError(f"penalty is {model.penalty!r}, expected elasticnet, l1, l2 or None.")
    named = copy(model)
    named.l1_ratio = ratios[model.penalty]
    return named
