"""What every estimator here shares: checks, a linear score, a stated cut, AUC as the score."""

import warnings
from collections.abc import Iterator
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from telic.auc.drawn_rows import Matrix
from telic.auc.objective import Callback, Solution
from telic.auc.thresholds import choose_threshold
from telic.errors import DivergedError, InputError, expect_at_least, expect_whole
from telic.evaluate.checked_numbers import refuse_masked
from telic.evaluate.classification import equal_to, roc_auc
from telic.optim.design import check_values
from telic.optim.estimators.linear import example_weights

TOO_FAR = 2.0
"""Times the objective at weights of 0: steps that have only not settled yet end below that, on few
rows of noise, too."""
LEAST_SHARE = 1e-9
"""Of a class in all weight: below, one less the other's share has lost its digits."""


class LinearAUC(ClassifierMixin, BaseEstimator):
    """Base of the estimators: a subclass gives `_solve(X, positive, weight, callback)`.

    The positive class is `pos_label`, by default the larger label. `classes_` holds the negative
    and then the positive one, so that a score above the threshold always means `classes_[1]`. A
    score is X @ coef_ + intercept_; the intercept does not touch the ranking, it holds the
    threshold that `predict` cuts at. For probabilities wrap the estimator in
    `sklearn.calibration.CalibratedClassifierCV`: a pairwise loss knows nothing of their scale. For
    more than two classes wrap it in `sklearn.multiclass.OneVsRestClassifier`.
    """

    pos_label: Any = None
    tol: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def fit(
        self,
        X: Matrix,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> Self:
        """Fit to labelled rows.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
        y : array of shape (n,)
            Two classes, labels of any type.
        sample_weight : array of shape (n,), optional
            Weights >= 0. A row of weight 2 counts as two rows, in the ranking and the threshold,
            one of weight 0 as none. Methods that take a row a step read it as often as its weight
            says.
        callback : callable, optional
            Called with (passes over the data so far, weights) by methods that make several passes;
            returns True to stop.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For one class or more than two, NaN or infinity (named by row and column), weights
            that are no numbers >= 0, or a parameter out of range (a ValueError).
        DivergedError
            If the weights grow without bound, or rows get no finite scores by them.

        Warns
        -----
        ConvergenceWarning
            If the gap to the optimum is not certified to be within `tol` when the method ends, or
            one that stops by no rule ends far worse than weights of 0.
        UserWarning
            If no `pos_label` was given and the larger label is the majority's, or if nothing can
            be ranked.
        """
        self._check_ends()
        X, y = self._checked(X, y)
        X, y, weight = _weighted(X, np.asarray(y), sample_weight)
        positive = self._classes(y)
        if self.pos_label is None:
            self._name_a_majority(positive, weight)
        solution = self._solve(X, positive, weight, callback)
        self.n_iter_ = max(1, round(solution.passes))
        self.converged_ = solution.converged
        self.gap_ = solution.gap
        with np.errstate(over="ignore", invalid="ignore"):
            scores = X @ solution.coef
        if not (np.isfinite(solution.coef).all() and np.isfinite(scores).all()):
            raise DivergedError(
                f"{type(self).__name__}: the weights are not finite; scale the columns (for "
                "instance with StandardScaler) or use a larger beta."
            )
        unsure = solution.converged is None and solution.exhausted
        if not solution.stopped and (solution.converged is False or unsure):
            warnings.warn(self._not_converged(solution), ConvergenceWarning, stacklevel=2)
        ended = solution.converged is None and not solution.stopped
        if ended and _worse_than_none(solution, positive, scores, weight):
            warnings.warn(
                f"{type(self).__name__} ended worse than with weights of 0, which rank nothing: "
                "scale the columns (for instance with StandardScaler), make more passes "
                "(max_iter), or take a method that stops at the optimum, such as ExactAUC.",
                ConvergenceWarning,
                stacklevel=2,
            )
        high, low = (
            np.average(scores[side], weights=None if weight is None else weight[side])
            for side in (positive, ~positive)
        )
        if abs(high - low) <= 1e-12 * np.abs(scores).max():
            if solution.coef.any():
                found = "both classes have the same mean score, so the ranking is worth little: "
            else:
                found = "all weights are 0, so all scores tie and the AUC is 0.5: "
            warnings.warn(found + self._why_no_ranking(), stacklevel=2)
        self._set(solution.coef, choose_threshold(scores, positive, self.threshold, weight))
        return self

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        raise NotImplementedError

    def _not_converged(self, solution: Solution) -> str:
        if np.isnan(solution.gap):
            return (
                f"{type(self).__name__} stopped at its limit of iterations. Raise max_iter or "
                "tol, or scale the columns."
            )
        return (
            f"{type(self).__name__} stopped after {self.n_iter_} passes with a relative gap "
            f"certified to be at most {solution.gap / solution.objective:.2g}, above tol. Raise "
            "max_iter or tol, scale the columns, or use a larger beta."
        )

    def _name_a_majority(self, positive: np.ndarray, weight: np.ndarray | None) -> None:
        share = float(np.average(positive, weights=weight))
        if share > 0.5:
            rarer, common = (repr(label) for label in self.classes_.tolist())
            warnings.warn(
                f"the positive class is {common}, which holds {share:.1%} of the rows: it is the "
                f"larger label. Give pos_label={rarer} to rank {rarer} first, or "
                f"pos_label={common} to keep this order without a warning. Where scikit-learn puts "
                "several classes together (one-vs-rest, one-vs-one), this order is right.",
                stacklevel=3,
            )

    def _why_no_ranking(self) -> str:
        return "the class means are equal, or the penalty is too large."

    def _checked(self, X: Matrix, y: Any = "no_validation", *, reset: bool = True) -> Any:
        """Return X, or X and y, as scikit-learn checks them; what is not finite is located."""
        refuse_masked("X", X)
        refuse_masked("y", y)
        if not isinstance(y, str):
            labels = np.asarray(y)
            if labels.dtype.kind == "O" and labels.ndim == 1:
                bad = np.array([_is_missing(label) for label in labels], dtype=bool)
            else:
                bad = labels != labels  # true of NaN alone
                if labels.dtype.kind == "f":
                    bad |= np.isinf(labels)
            if labels.ndim == 1 and bad.any():
                row = int(np.argmax(bad))
                raise InputError(f"y contains NaN or infinity at row {row}. Drop the row.")
        checked = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            reset=reset,
            ensure_all_finite=False,
        )
        check_values(checked if isinstance(y, str) else checked[0])
        return checked

    def _check_ends(self) -> None:
        """Raise InputError if what ends a fit is out of range."""
        expect_at_least(0, tol=getattr(self, "tol", 0))
        expect_whole(1, max_iter=getattr(self, "max_iter", 1))

    def _classes(self, y: np.ndarray) -> np.ndarray:
        """Set classes_ and return which rows are positive."""
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size > 2:
            raise InputError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}: {classes.size} classes. Wrap the estimator in "
                "sklearn.multiclass.OneVsRestClassifier."
            )
        if classes.size < 2:
            raise InputError(
                f"y holds one class only ({classes[0]}), expected two classes: AUC "
                "compares positives with negatives."
            )
        if self.pos_label is not None:
            found = np.array(equal_to(self.pos_label, classes.tolist()))
            if not found.any():
                said = f"pos_label: {self.pos_label!r} is none of the labels {classes.tolist()}."
                if classes.tolist() == [0, 1]:
                    said += (
                        " If some tool of scikit-learn has encoded yours, fit it on "
                        f"y == {self.pos_label!r} without a pos_label."
                    )
                raise InputError(said)
            classes = np.concatenate([classes[~found], classes[found]])
        self.classes_ = classes
        return y == classes[1]

    def _set(self, coef: np.ndarray, threshold: float) -> None:
        self.coef_ = coef[None, :].copy()
        self.intercept_ = np.array([-threshold])

    def decision_function(self, X: Matrix) -> np.ndarray:
        """Score rows, higher meaning more likely positive; 0 is the threshold.

        Returns
        -------
        array of shape (n,)
        """
        check_is_fitted(self, "coef_")
        X = self._checked(X, reset=False)
        return np.asarray(X @ self.coef_[0]).ravel() + self.intercept_[0]

    def predict(self, X: Matrix) -> np.ndarray:
        """Return the class of each row: the positive one where the score exceeds the threshold."""
        above = self.decision_function(X) > 0
        return self.classes_[above.astype(int)]

    def score(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the AUC on the given rows (not the accuracy)."""
        refuse_masked("y", y)
        y = np.ravel(y) if np.ndim(y) == 2 and np.shape(y)[1] == 1 else np.asarray(y)
        try:
            unknown = np.setdiff1d(y, self.classes_)
        except TypeError:  # np.unique sorts them
            raise InputError("y: labels of several kinds, or none; give those of fit.") from None
        if unknown.size:
            raise InputError(
                f"y: label {unknown.tolist()[0]!r} was not seen in fit ({self.classes_})."
            )
        positive = y == self.classes_[1]
        return roc_auc(positive, self.decision_function(X), sample_weight=sample_weight)


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN or pandas' NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # NA is neither equal to itself nor different
        return True


def _worse_than_none(
    solution: Solution, positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None
) -> bool:
    """Whether the objective is far above what it is at weights of 0, or the AUC far below 1/2."""
    if np.isnan(solution.objective):
        rows, high = positive.size, np.count_nonzero(positive)
        deviation = np.sqrt((rows + 1) / (12 * high * (rows - high)))  # where scores say nothing
        return roc_auc(positive, scores, sample_weight=weight) < 0.5 - 3 * deviation
    share = float(np.average(positive, weights=weight))
    return solution.objective > TOO_FAR * share * (1 - share)


def _weighted(
    X: Matrix, y: np.ndarray, sample_weight: ArrayLike | None
) -> tuple[Matrix, np.ndarray, np.ndarray | None]:
    """Leave out rows of weight 0; weights that are all 1 are None."""
    if sample_weight is None:
        return X, y, None
    weight = example_weights(None, y, sample_weight)
    kept = weight > 0
    if np.unique(y[kept]).size < min(np.unique(y).size, 2):
        raise InputError(
            f"sample_weight: all weight is on class {y[kept].tolist()[0]!r}, expected two classes."
        )
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    first = float(weight[y == y[0]].sum() / weight.sum())
    if min(first, 1 - first) < LEAST_SHARE and first < 1:
        raise InputError(
            f"sample_weight: one class has less than {LEAST_SHARE:g} of all weight, too little to "
            "compute with. Give it more."
        )
    return X, y, None if (weight == 1).all() else weight


def generator(random_state: Any) -> np.random.Generator:
    """Return a Generator from None, a seed, a Generator, or scikit-learn's RandomState."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state is {random_state!r}, expected a whole number >= 0, a Generator, a "
            "RandomState or None."
        ) from None


def dense_blocks(X: Matrix) -> Iterator[tuple[int, np.ndarray]]:
    """Give the rows as dense arrays, a block of at most 64 MB at a time."""
    size = max(1, min(4096, 2**23 // max(X.shape[1], 1)))
    for start in range(0, X.shape[0], size):
        part = X[start : start + size]
        yield (
            start,
            part.toarray()
            if sparse.issparse(part)
            else np.require(part, np.float64, ["C", "A", "W"]),
        )


_SHARED = """
    beta : float, default 1e-4
        Weight of (1/2)‖w‖² beside p(1 − p) times the mean pairwise loss. In terms of other
        scales: λ = beta/(p(1−p)) beside the mean itself, alpha = n·beta/(4p(1−p)) in
        `RidgeClassifier(class_weight="balanced")`.
    threshold : str or (str, float), default "prior"
        Where `predict` cuts, see `telic.auc.thresholds.choose_threshold`.
    pos_label : label, optional
        The positive label; by default the larger one.
"""


Model = TypeVar("Model")


def described(cls: type[Model]) -> type[Model]:
    """Put the parameters that all classes share into the docstring, once written."""
    cls.__doc__ = (cls.__doc__ or "").replace("\n    <shared>\n", _SHARED)
    return cls
