"""Estimators that read all rows at each step: exact, by conjugate gradients, or pairwise."""

from typing import Any

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC, described, generator
from telic.auc.methods import exact as _exact
from telic.auc.methods.exact_by_rows import exact_by_rows
from telic.auc.methods.pairwise import pairwise
from telic.auc.objective import Callback, Solution, moments
from telic.auc.optimality_bound import certified, small
from telic.auc.thresholds import Rule
from telic.errors import InputError, expect_at_least
from telic.evaluate.classification import check_rates
from telic.optim.threads import small_products

MOST_COLUMNS = 20_000
"""Of `ExactAUC`: three such matrices are what a machine of 16 GiB holds."""


@described
class ExactAUC(LinearAUC):
    """The exact optimum of the pairwise square loss (the documents' B-LS-SVM).

    Class moments in one pass, then Cholesky, or coordinate descent with an ℓ₁ term: time O(n·d²),
    memory O(d²), for up to a few thousand columns. With ℓ₂ alone and fewer rows than columns, the
    products of rows take the place of the moments: time O(n²·d), memory O(n·d). For sparse rows
    conjugate gradients come first, for as long as these ways would take. What would need the
    moments of more than 20,000 columns is refused. With ℓ₂ alone the *direction* is that of
    class-balanced ridge regression:
    `RidgeClassifier(class_weight="balanced", alpha=n·beta/(4p(1−p)))` ranks identically.

    Parameters
    ----------
    <shared>
    beta1 : float, default 0
        Weight of ‖w‖₁.
    tol : float, default 1e-8
        Certified relative gap that counts as converged, and at which coordinate descent stops.
    max_iter : int, default 10_000
        Sweeps of coordinate descent.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(ExactAUC(pos_label=0).fit(scale(X), y).score(scale(X), y), 3)
    0.997
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        beta1: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        threshold: Rule = "prior",
        pos_label: Any = None,
    ) -> None:
        self.beta = beta
        self.beta1 = beta1
        self.tol = tol
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        expect_at_least(0, beta=self.beta, beta1=self.beta1)
        n, d = X.shape
        few_rows = n < d and n <= MOST_COLUMNS
        tried: list[Solution] = []
        if self.beta1 == 0 < self.beta:
            if sparse.issparse(X) and not small(X):
                tried.append(by_few_iterations(X, positive, weight, callback, self.beta, self.tol))
            if few_rows and not _ended(tried):
                with small_products(n):
                    options: dict[str, Any] = {"beta": self.beta, "tol": self.tol}
                    tried.append(exact_by_rows(X, positive, weight=weight, **options))
            if few_rows and d > MOST_COLUMNS:
                return _best(tried)
        if not _ended(tried):
            self._refuse_wide(d)
            with small_products(d):
                way = self._elastic_net if self.beta1 else self._by_moments
                tried.append(way(X, positive, weight))
        return _best(tried)

    def _refuse_wide(self, d: int) -> None:
        if d > MOST_COLUMNS:
            raise InputError(
                f"ExactAUC: {d:,} columns need moments of {8 * d * d / 2**30:.1f} GiB, expected at "
                f"most {MOST_COLUMNS:,} columns. Use "
                + ("VRSPAM." if self.beta1 else "ConjugateGradientAUC, which has the same optimum.")
            )

    def _by_moments(self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None) -> Solution:
        found = moments(X, positive, weight)
        w = _exact.exact(found, beta=self.beta).coef
        certify: dict[str, Any] = {"beta": self.beta, "tol": self.tol, "weight": weight}
        certify["means"] = found.means
        solution = certified(X, positive, w, 1, **certify)
        # The least eigenvalue of many columns takes longer than all before it.
        if solution.converged:
            return solution
        curvature = _exact.curvature(found, self.beta)
        return certified(X, positive, w, 1, curvature=curvature, **certify)

    def _elastic_net(self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None) -> Solution:
        found = moments(X, positive, weight)
        penalty: dict[str, Any] = {"beta": self.beta, "beta1": self.beta1}
        certify: dict[str, Any] = {"tol": self.tol, "weight": weight, "means": found.means}
        certify["curvature"] = _exact.curvature(found, self.beta)
        w, sweeps, asked = np.zeros(X.shape[1]), 0, self.tol
        while True:
            left = self.max_iter - sweeps
            w, taken = _exact.elastic_net(found, **penalty, tol=asked, max_iter=left, start=w)
            sweeps, asked = sweeps + taken, asked / 10
            solution = certified(X, positive, w, 1, **penalty, **certify)
            if solution.converged or sweeps >= self.max_iter or asked < 1e-8 * self.tol:
                return solution


def _ended(tried: list[Solution]) -> bool:
    return bool(tried) and bool(tried[-1].converged or tried[-1].stopped)


def _best(tried: list[Solution]) -> Solution:
    """Return what ended, or else the best: what is not certified may be it though tried first."""
    return tried[-1] if _ended(tried) else min(tried, key=lambda each: each.objective)


def by_few_iterations(
    X: sparse.spmatrix,
    positive: np.ndarray,
    weight: np.ndarray | None,
    callback: Callback | None,
    beta: float,
    tol: float,
) -> Solution:
    """Take conjugate gradients for as long as the other ways would take on sparse rows.

    They are given up at once where they would take longer.
    """
    n, d = X.shape
    # Nanoseconds, as measured: of products of entries, the matrix and its factor; of a step.
    others = [5 * X.nnz**2 / b + 15 * a**2 + a**3 / 100 for a, b in ((d, n), (n, d))]
    step = 3 * X.nnz + 20 * n
    return _exact.conjugate_gradient(
        X,
        positive,
        beta=beta,
        tol=tol,
        max_iter=max(1, int(min(others) / step)),
        weight=weight,
        callback=callback,
        in_time=min(n, d) <= MOST_COLUMNS,  # else there is no other way
    )


@described
class ConjugateGradientAUC(LinearAUC):
    """The same optimum as `ExactAUC` by conjugate gradients, for many sparse columns.

    Parameters
    ----------
    <shared>
    tol : float, default 1e-8
        Certified relative gap at which to stop. With beta = 0 there is no bound, and the fit
        stops by the norm of the gradient relative to that at 0.
    max_iter : int, default 1000
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        tol: float = 1e-8,
        max_iter: int = 1000,
        threshold: Rule = "prior",
        pos_label: Any = None,
    ) -> None:
        self.beta = beta
        self.tol = tol
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        expect_at_least(0, beta=self.beta)
        return _exact.conjugate_gradient(
            X,
            positive,
            beta=self.beta,
            tol=self.tol,
            max_iter=self.max_iter,
            weight=weight,
            callback=callback,
        )


@described
class PairwiseAUC(LinearAUC):
    """Pairwise hinge (ranking SVM, the documents' B-SVM-OR), squared hinge or logistic loss.

    Parameters
    ----------
    <shared>
    loss : {"hinge", "squared_hinge", "logistic"}, default "hinge"
        See `telic.auc.methods.pairwise.pairwise`.
    fpr : (float, float), default (0, 1)
        False-positive rates that count: (0, 0.1) trains for the top of the list. Where no
        direction lifts the mean of the positives above that of those negatives, the best weights
        are next to nothing, and rank little better than chance there: take a wider range.
    min_tpr : float, default 0
        True-positive rate from which positives count, in [0, 1). With `fpr` it trains for the
        two-way partial AUC (`telic.evaluate.classification.partial_auc`).
    tol : float, default 1e-8
        Certified relative gap (of the rounded hinge; of a partial range, rounded too, 1e-5 at
        least) at which to stop. With fpr[0] > 0 there is no bound, and the fit stops at a relative
        decrease of the objective below tol.
    max_iter : int, default 1000
        Iterations, for each width of the rounded corners.
    random_state : int, RandomState or None
        Draws pairs for the logistic loss.
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        loss: str = "hinge",
        fpr: tuple[float, float] = (0.0, 1.0),
        min_tpr: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.loss = loss
        self.fpr: Any = fpr
        self.min_tpr = min_tpr
        self.tol = tol
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        check_rates(self.fpr, self.min_tpr)
        return pairwise(
            X,
            positive,
            beta=self.beta,
            loss=self.loss,
            fpr=tuple(self.fpr),
            min_tpr=self.min_tpr,
            tol=self.tol,
            max_iter=self.max_iter,
            weight=weight,
            rng=generator(self.random_state),
            callback=callback,
        )
