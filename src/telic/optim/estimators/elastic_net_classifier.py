"""A scikit-learn estimator: elastic-net classification, of two classes and of several."""

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from telic.errors import InputError, expect_one_of
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.estimators.linear import (
    Linear,
    check_solver,
    checked_ratio,
    example_weights,
    likeliest,
    one_vs_rest_probabilities,
    validated,
)
from telic.optim.loop import SolveResult
from telic.optim.losses import Logistic, Loss, as_loss
from telic.optim.problem import as_vector
from telic.optim.softmax import SoftmaxProblem, make_softmax_problem
from telic.optim.softmax_newton import SoftmaxResult, solve_softmax

LOGISTIC = ("logistic", Logistic())
"""How the logistic loss may be given."""


class ElasticNetClassifier(ClassifierMixin, Linear):
    """Logistic regression, or a squared-hinge machine, with ℓ₁ and ℓ₂ penalties.

    Minimises C Σ_i s_i loss(y_i (⟨w, x_i⟩ + b)) + l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖², the
    objective of scikit-learn's ``LogisticRegression(penalty="elasticnet", solver="saga")``, in
    place of which you can import this class. In the terms of `telic.optim.minimize`:
    l1 = l1_ratio/(C Σ s_i) and l2 = (1 − l1_ratio)/(C Σ s_i).

    More than two classes are fitted together, as in scikit-learn: the loss is that of softmax,
    log Σ_k exp z_ik − z_iy with a row of coefficients for each class.

    Parameters
    ----------
    penalty : {"elasticnet", "l1", "l2", None}
        ``l1`` and ``l2`` stand for l1_ratio 1 and 0, None for no penalty at all.
    C : float
        Inverse strength of the penalty, > 0.
    l1_ratio : float
        Share of ℓ₁, from 0 to 1; read for ``elasticnet`` only, and may be None otherwise.
    loss : {"logistic", "squared_hinge"} or Loss
        Probabilities need ``logistic``.
    fit_intercept : bool
        The intercept is not penalised.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights, as in scikit-learn.
    multi_class : {"multinomial", "ovr"}
        How more than two classes are fitted: together by softmax, or one against the rest. The
        squared hinge always takes the latter.
    grouped : bool
        Whether several classes that are fitted together use a feature all or not at all:
        Σⱼ √K ‖wⱼ‖₂ over the features j stands for ‖w‖₁, with wⱼ a coefficient for each of K
        classes.
    groups : array of int, shape (n_features,), optional
        Labels of a partition of the features, which are used group by group: Σ_g √|g| ‖w_g‖₂
        stands for ‖w‖₁. For two classes, or one against the rest.
    positive : bool
        Whether no coefficient may be below 0; the intercept may. For two classes, or one against
        the rest, and without groups.
    solver : str
        A method of `telic.optim.minimize`. Softmax has a method of its own and takes ``auto`` only.
    sampling : {"optimal", "uniform", "lipschitz"}
        How solvers that sample rows draw them; others do not read it.
    blocks : int, optional
        Blocks of coordinates of the solvers asbcd (default 1), sbcd and mrbcd (default 10).
    tol : float
        Duality gap at which to stop, relative to the objective at w = 0 with the best b. Unlike
        scikit-learn's it bounds the error of the objective.
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
    n_iter_ : array of int, shape (1,), or (n_classes,) one against the rest
        Passes over the data.
    gap_ : array, shape (1,), or (n_classes,) one against the rest
        Certified bound on the distance of the objective (per unit of weight) from its optimum.
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
        multi_class: str = "multinomial",
        grouped: bool = False,
        groups: Any = None,
        positive: bool = False,
        solver: str = "auto",
        sampling: str = "optimal",
        blocks: int | None = None,
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
        self.multi_class = multi_class
        self.grouped = grouped
        self.groups = groups
        self.positive = positive
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
            Labels of at least two classes.
        sample_weight : array, shape (n_samples,), optional
        offset : array, shape (n_samples,), or beyond two classes (n_samples, n_classes), optional
            Added to the scores, such as the log odds that another model gives, or its logarithms
            of probabilities in the order of ``classes_``. Two classes, or one against the rest,
            take it with the solvers gram, prox_newton and auto. Give it to `predict` and the
            others, too.

        Returns
        -------
        self
        """
        ratio = self._ratio_of_penalty()
        check_solver(self)
        if not isinstance(self.C, Real) or not float(self.C) > 0:
            raise InputError(f"C is {self.C!r}, expected a number > 0.")
        X, y = validated(self, X, y)
        classes = self._checked_classes(y)
        weights = example_weights(self.class_weight, y, sample_weight)
        self._check_both_weighted(classes, y, weights)
        alpha = 0.0 if self.penalty is None else 1.0 / (self.C * weights.sum())
        offset = checked_offset(classes, offset, y.size)
        positive = classes[1:] if classes.size == 2 else classes
        known = self.warm_start and np.array_equal(getattr(self, "classes_", None), classes)
        known = known and self.coef_.shape == (positive.size, X.shape[1])
        results: list[SolveResult] | list[SoftmaxResult]
        if classes.size > 2 and self._is_softmax():
            problem = self._softmax_problem(X, y, weights, alpha, ratio, offset)
            start = (self.coef_, self.intercept_) if known else None
            results = [solve_softmax(problem, tol=self.tol, max_passes=self.max_iter, start=start)]
        else:
            starts: list[Any] = [None] * positive.size
            if known:
                starts = list(zip(self.coef_, self.intercept_, strict=True))
            results = [
                self._solve(X, np.where(y == label, 1.0, -1.0), alpha, ratio, weights, start, own)
                for label, start, own in zip(
                    positive, starts, offsets_of(positive, offset), strict=True
                )
            ]
        self.classes_: np.ndarray = classes
        self._store(results)
        return self

    def _ratio_of_penalty(self) -> float:
        """Share of ℓ₁ that the penalty's name stands for."""
        ratios = {"elasticnet": self.l1_ratio, "l1": 1.0, "l2": 0.0, None: 0.0}
        if self.penalty not in list(ratios):
            raise InputError(f"penalty is {self.penalty!r}, expected elasticnet, l1, l2 or None.")
        return checked_ratio(ratios[self.penalty])

    def _is_softmax(self) -> bool:
        """Whether several classes are fitted together."""
        expect_one_of(("multinomial", "ovr"), multi_class=self.multi_class)
        together = self.multi_class == "multinomial" and self.loss in LOGISTIC
        if self.grouped and not together:
            raise InputError(
                "grouped is for classes that are fitted together. Leave it out, or use "
                "multi_class='multinomial' and loss='logistic'."
            )
        return together

    def _softmax_problem(
        self,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        alpha: float,
        ratio: float,
        offset: np.ndarray | None,
    ) -> SoftmaxProblem:
        if self.solver != "auto":
            raise InputError(
                f"solver is {self.solver!r}: several classes are fitted together by 'auto' only. "
                "Use it, or multi_class='ovr'."
            )
        for name, given in (("positive", self.positive), ("groups", self.groups is not None)):
            if given:
                raise InputError(
                    f"{name} is not for several classes that are fitted together. Leave it out, "
                    "or use multi_class='ovr'."
                )
        return make_softmax_problem(
            *(X, np.unique(y, return_inverse=True)[1]),
            l1=alpha * ratio,
            l2=alpha * (1.0 - ratio),
            sample_weight=weights,
            fit_intercept=self.fit_intercept,
            grouped=self.grouped,
            offset=offset,
        )

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

    def _store(self, results: Sequence[SolveResult | SoftmaxResult]) -> None:
        """Take one result for each class, or one of softmax for all."""
        self.coef_: np.ndarray = np.vstack([result.coef for result in results])
        self.intercept_: np.ndarray = np.hstack([result.intercept for result in results])
        self.n_iter_ = np.array([max(1, round(result.passes)) for result in results])
        self.gap_ = np.array([result.gap for result in results])

    def decision_function(self, X: Any, offset: Any = None) -> np.ndarray:
        """Signed score of each sample: shape (n,), or (n, n_classes) beyond two classes."""
        scores = self._scores(X)
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        offset = checked_offset(self.classes_, offset, len(scores))
        return scores if offset is None else scores + offset

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        """Return the most likely class of each sample."""
        scores = self.decision_function(X, offset)
        return self.classes_[likeliest(scores)]

    @available_if(lambda self: self.loss in LOGISTIC)
    def predict_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Probability of each class; one against the rest: each one's own, normalised."""
        scores = self.decision_function(X, offset)
        if scores.ndim > 1 and self._is_softmax():
            return softmax(scores, axis=1)
        return one_vs_rest_probabilities(scores)

    @available_if(lambda self: self.loss in LOGISTIC)
    def predict_log_proba(self, X: Any, offset: Any = None) -> np.ndarray:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy."""
        return float(accuracy_score(y, self.predict(X, offset), sample_weight=sample_weight))


def checked_offset(classes: np.ndarray, offset: Any, n: int) -> np.ndarray | None:
    """Check an offset: a number for each row, or beyond two classes one for each row and class."""
    if offset is None or classes.size == 2:
        return None if offset is None else as_vector("offset", offset, n)
    shape = n, classes.size
    if np.shape(offset) != shape:
        raise InputError(
            f"offset has shape {np.shape(offset)}, expected {shape}: a number for each row of X "
            "and each class, in the order of classes_."
        )
    refuse_masked("offset", offset)
    columns = [as_vector("offset", column, n) for column in np.asarray(offset).T]
    return np.ascontiguousarray(np.transpose(columns))


def offsets_of(positive: np.ndarray, offset: np.ndarray | None) -> list[np.ndarray | None]:
    """Offset of each problem: of the only one, or of one class against the rest."""
    if offset is None or offset.ndim == 1:
        return [offset] * positive.size
    return list(offset.T)
