"""What the linear estimators share: checked input, weights, and the call of the solver."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs, parallel_config
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, validate_data

from telic.errors import InputError, expect_one_of, expect_whole
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.loop import SolveResult
from telic.optim.solver import METHODS, check_stop, minimize


def validated(estimator: BaseEstimator, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return `validate_data` in the formats of the solvers; a mask, which it drops, is refused."""
    refuse_masked("X", X)
    refuse_masked("y", y)
    return validate_data(
        estimator, X, y, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32), **options
    )


class LinearPrediction(BaseEstimator):
    """X coef + intercept, of dense rows and sparse."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X: Any) -> np.ndarray:
        """X coef + intercept; one column per row of coef_ where that is two-dimensional."""
        check_is_fitted(self)
        X = validated(self, X, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_


class Linear(LinearPrediction):
    """A linear prediction, and the call of the solver."""

    def _solve(
        self,
        X: Any,
        y: Any,
        alpha: float,
        ratio: float,
        sample_weight: Any,
        start: tuple[np.ndarray, float] | None,
        offset: Any = None,
    ) -> SolveResult:
        coef, intercept = start if start is not None else (None, 0.0)
        return minimize(
            X,
            y,
            loss=self.loss,
            l1=alpha * ratio,
            l2=alpha * (1.0 - ratio),
            groups=self.groups,
            positive=self.positive,
            method=self.solver,
            sampling=self.sampling,
            blocks=self.blocks,
            fit_intercept=self.fit_intercept,
            sample_weight=sample_weight,
            offset=offset,
            tol=self.tol,
            max_passes=self.max_iter,
            seed=seed_of(self.random_state),
            coef_init=coef,
            intercept_init=intercept,
            threads=own_threads(self.n_jobs),
        )


def checked_ratio(l1_ratio: Any) -> float:
    """Refuse what is no share of ℓ₁."""
    if not isinstance(l1_ratio, Real) or not 0 <= float(l1_ratio) <= 1:
        raise InputError(f"l1_ratio is {l1_ratio!r}, expected a number from 0 to 1.")
    return float(l1_ratio)


def own_threads(n_jobs: int | None) -> int:
    """Return the threads that a fit takes on this machine.

    Under joblib's Dask backend `effective_n_jobs` counts the slots of the whole cluster, also for
    None, and every task of a search would start as many threads.
    """
    if n_jobs is not None and not isinstance(n_jobs, Integral):
        raise InputError(f"n_jobs is {n_jobs!r}, expected a whole number or None.")
    with parallel_config("threading"):
        return effective_n_jobs(n_jobs)


def check_solver(estimator: Any, methods: tuple[str, ...] = METHODS) -> None:
    """Refuse what the solver would refuse, under the estimator's names."""
    expect_one_of(methods, solver=estimator.solver)
    check_stop(estimator.tol, estimator.max_iter, name="max_iter")


def likeliest(scores: np.ndarray) -> np.ndarray:
    """Number of each row's class by its score of the second class, or by a score for each class.

    This and `one_vs_rest_probabilities` are functions, since some classifiers take an offset.
    """
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def one_vs_rest_probabilities(scores: np.ndarray) -> np.ndarray:
    """Probability of each class; beyond two classes each one's own, normalised to sum 1."""
    p = expit(scores)
    if p.ndim == 1:
        return np.column_stack([1.0 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


def seed_of(random_state: Any) -> int | None:
    """Turn scikit-learn's random_state into a seed; None stays None."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        expect_whole(0, random_state=random_state)
    return random_state


MOST_WEIGHT = 1e100
"""Of a sample: sums of products of larger ones overflow."""


def example_weights(class_weight: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Return sample weights times class weights; ones where neither is given."""
    refuse_masked("sample_weight", sample_weight)
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
        of_class = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weights)
        weights = weights * of_class[codes]
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError("sample_weight must be finite, >= 0 and not all zero.")
    if weights.max() > MOST_WEIGHT or weights.max() < 1 / MOST_WEIGHT:
        raise InputError(
            f"sample_weight: the largest is {weights.max():g}, expected {1 / MOST_WEIGHT:g} to "
            f"{MOST_WEIGHT:g}. Give all of them in another unit."
        )
    return weights
