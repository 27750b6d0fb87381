"""Estimators that see all rows: one class for each batch method; SPAM reads streams too."""

from typing import Any, TypeVar

import numpy as np

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC, at_least, generator
from telic.auc.estimators.streaming import OnlineAUC, State, common_state
from telic.auc.methods import exact as _exact
from telic.auc.methods.pairwise import pairwise
from telic.auc.methods.spam import centred, spam
from telic.auc.methods.spam_online import STREAM_STEPS, spam_stream_steps
from telic.auc.methods.spdam import spdam
from telic.auc.methods.vrspam import vrspam
from telic.auc.objective import Callback, Solution, moments
from telic.auc.optimality_bound import certified
from telic.auc.thresholds import Rule
from telic.errors import InputError
from telic.optim.threads import small_products

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


def _described(cls: type[Model]) -> type[Model]:
    """Put the parameters that all classes share into the docstring, once written."""
    cls.__doc__ = (cls.__doc__ or "").replace("\n    <shared>\n", _SHARED)
    return cls


MOST_COLUMNS = 20_000
"""Of `ExactAUC`: three such matrices are what a machine of 16 GiB holds."""


@_described
class ExactAUC(LinearAUC):
    """The exact optimum of the pairwise square loss (the documents' B-LS-SVM).

    Class moments in one pass, then Cholesky, or coordinate descent with an ℓ₁ term. Time
    O(n·d²), memory O(d²): for up to a few thousand columns; more than 20,000 are refused. With ℓ₂
    alone the *direction* is that of class-balanced ridge regression:
    `RidgeClassifier(class_weight="balanced", alpha=n·beta/(4p(1−p)))` ranks identically, only
    slower.

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
        at_least("beta", self.beta, 0)
        at_least("beta1", self.beta1, 0)
        if (d := X.shape[1]) > MOST_COLUMNS:
            raise InputError(
                f"ExactAUC: {d:,} columns need moments of {8 * d * d / 2**30:.1f} GiB, expected at "
                f"most {MOST_COLUMNS:,} columns. Use "
                + ("VRSPAM." if self.beta1 else "ConjugateGradientAUC, which has the same optimum.")
            )
        certify: dict[str, Any] = {"beta": self.beta, "tol": self.tol, "weight": weight}
        with small_products(X.shape[1]):
            found = moments(X, positive, weight)
            certify["curvature"] = _exact.curvature(found, self.beta)
            if self.beta1 == 0:
                w = _exact.exact(found, beta=self.beta).coef
                return certified(X, positive, w, 1, **certify)
            certify["beta1"] = self.beta1
            w, sweeps, asked = np.zeros(X.shape[1]), 0, self.tol
            while True:
                part = _exact.elastic_net(
                    found,
                    beta=self.beta,
                    beta1=self.beta1,
                    tol=asked,
                    max_iter=self.max_iter - sweeps,
                    start=w,
                )
                w, sweeps, asked = part.coef, sweeps + part.n_iter, asked / 10
                solution = certified(X, positive, w, sweeps, **certify)
                ended = sweeps >= self.max_iter or asked < 1e-8 * self.tol
                if solution.converged or ended:
                    return solution


@_described
class ConjugateGradientAUC(LinearAUC):
    """The same optimum as `ExactAUC` by conjugate gradients, for many sparse columns.

    Parameters
    ----------
    <shared>
    tol : float, default 1e-8
        Certified relative gap at which to stop; with beta = 0, which has no bound, the norm of
        the gradient relative to that at 0.
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
        at_least("beta", self.beta, 0)
        return _exact.conjugate_gradient(
            X,
            positive,
            beta=self.beta,
            tol=self.tol,
            max_iter=self.max_iter,
            weight=weight,
            callback=callback,
        )


@_described
class SPAM(OnlineAUC):
    """Stochastic proximal AUC maximisation (SPAM-L2; SPAM-NET with beta1 > 0).

    `fit` reads the class means first and makes `max_iter` passes; `partial_fit` and `learn_one`
    take running means, and go on from where a `fit` ended.

    Parameters
    ----------
    <shared>
    beta1 : float, default 0
        Weight of ‖w‖₁.
    step : {"linear", "sqrt", "theory-power", "theory-linear"}, default "linear"
        See `telic.auc.methods.spam.spam`. Streams take the first two, M being the largest row norm
        so far.
    step_size : float, default 1
        Multiplies the "sqrt" step.
    theta : float, default 0.5
        Exponent of the "theory-power" step.
    center : bool, default True
        Subtract the rows' mean, implicitly. False is the printed method.
    forgetting : float, default 1
        Factor in (0, 1] for streams: rows count 1, f, f², … with age.
    max_iter : int, default 20
        Passes of `fit`.
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        beta1: float = 0.0,
        step: str = "linear",
        step_size: float = 1.0,
        theta: float = 0.5,
        center: bool = True,
        forgetting: float = 1.0,
        max_iter: int = 20,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.beta1 = beta1
        self.step = step
        self.step_size = step_size
        self.theta = theta
        self.center = center
        self.forgetting = forgetting
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
        self._check()
        at_least("beta1", self.beta1, 0)
        rng = generator(self.random_state)
        found = spam(
            X,
            positive,
            beta=self.beta,
            beta1=self.beta1,
            step=self.step,
            step_size=self.step_size,
            theta=self.theta,
            center=self.center,
            passes=self.max_iter,
            weight=weight,
            rng=rng,
            callback=callback,
        )
        view = centred(X, positive, self.center, weight)
        means = view.means
        self._rng, self._state = (
            rng,
            {
                "w": found.coef.copy(),
                "counts": np.array([means.n_neg, means.n_pos], dtype=float),
                "means": np.stack([means.neg, means.pos]),
                "scale": np.array([view.bound, found.n_iter * (means.n_pos + means.n_neg)]),
            },
        )
        return found

    def _start(self, d: int) -> State:
        at_least("beta1", self.beta1, 0)
        at_least("beta", self.beta, 0, strict=self.step == "linear")
        self._check_stream_step()
        return common_state(d) | {"scale": np.zeros(2)}

    def _check_stream_step(self) -> None:
        if self.step not in STREAM_STEPS:
            names = " or ".join(STREAM_STEPS)
            raise InputError(f"step: {self.step!r}, expected {names} for a stream.")

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        self._check_stream_step()  # again, for a stream that goes on from `fit`
        s = state
        spam_stream_steps(
            X,
            positive,
            s["counts"],
            s["means"],
            s["w"],
            s["scale"],
            float(self.forgetting),
            float(self.beta),
            float(self.beta1),
            float(self.step_size),
            self.step == "linear",
            bool(self.center),
        )


@_described
class VRSPAM(LinearAUC):
    """Variance-reduced SPAM (VRSPAM-L2; VRSPAM-NET with beta1 > 0); converges linearly.

    Parameters
    ----------
    <shared>
    beta1 : float, default 0
        Weight of ‖w‖₁.
    step_size : float, default 1
        Times 1/(2M²), see `telic.auc.methods.vrspam.vrspam`.
    center : bool, default True
        Subtract the rows' mean, implicitly.
    batch_size : int, optional
        Rows in a step when beta1 > 0.
    pairs : bool, default False
        Step on sampled pairs: with beta1 > 0 cheaper on sparse rows, see
        `telic.auc.methods.vrspam.vrspam`.
    tol : float, default 1e-8
        Certified relative gap at which to stop.
    max_iter : int, default 200
        Stages.
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        beta1: float = 0.0,
        step_size: float = 1.0,
        center: bool = True,
        batch_size: int | None = None,
        pairs: bool = False,
        tol: float = 1e-8,
        max_iter: int = 200,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.beta1 = beta1
        self.step_size = step_size
        self.center = center
        self.batch_size = batch_size
        self.pairs = pairs
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
        at_least("beta1", self.beta1, 0)
        return vrspam(
            X,
            positive,
            beta=self.beta,
            beta1=self.beta1,
            step_size=self.step_size,
            center=self.center,
            batch_size=self.batch_size,
            pairs=self.pairs,
            tol=self.tol,
            max_iter=self.max_iter,
            weight=weight,
            rng=generator(self.random_state),
            callback=callback,
        )


@_described
class SPDAM(LinearAUC):
    """Stochastic primal-dual AUC maximisation; converges linearly, keeps n dual numbers.

    Parameters
    ----------
    <shared>
    batch_size : int or float, default 0.01
        Rows in a batch, or a share of all rows when below 1.
    tol : float, default 1e-8
        Certified relative gap at which to stop.
    max_iter : int, default 5000
        Passes.
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        batch_size: float = 0.01,
        tol: float = 1e-8,
        max_iter: int = 5000,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.batch_size = batch_size
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
        return spdam(
            X,
            positive,
            beta=self.beta,
            batch_size=self.batch_size,
            tol=self.tol,
            max_iter=self.max_iter,
            weight=weight,
            rng=generator(self.random_state),
            callback=callback,
        )


@_described
class PairwiseAUC(LinearAUC):
    """Pairwise hinge (ranking SVM, the documents' B-SVM-OR), squared hinge or logistic loss.

    Parameters
    ----------
    <shared>
    loss : {"hinge", "squared_hinge", "logistic"}, default "hinge"
        See `telic.auc.methods.pairwise.pairwise`.
    fpr : (float, float), default (0, 1)
        False-positive rates that count: (0, 0.1) trains for the top of the list. Where no
        direction lifts the mean of the positives above that of those negatives, the optimum is 0
        and nothing is ranked, with a warning: take a wider range.
    min_tpr : float, default 0
        True-positive rate from which positives count, in [0, 1). With `fpr` it trains for the
        two-way partial AUC (`telic.evaluate.classification.partial_auc`).
    tol : float, default 1e-8
        Certified relative gap (of the rounded hinge) at which to stop. With fpr[0] > 0 there is
        no bound: a relative decrease.
    max_iter : int, default 1000
        Iterations, for each corner of the hinge.
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

    def _why_no_ranking(self) -> str:
        if tuple(self.fpr) == (0.0, 1.0) and not self.min_tpr:
            return super()._why_no_ranking()
        return (
            "no direction lifts the mean of the positives that count above that of the negatives: "
            f"fpr={self.fpr}, min_tpr={self.min_tpr}; take wider ranges."
        )
