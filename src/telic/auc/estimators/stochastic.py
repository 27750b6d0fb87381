"""Estimators that step on drawn rows of a table; SPAM reads streams too."""

from typing import Any

import numpy as np

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC, described, generator
from telic.auc.estimators.partial_fit import OnlineAUC, State, common_state
from telic.auc.methods.spam import centred, spam
from telic.auc.methods.spam_online import STREAM_STEPS, spam_stream_steps
from telic.auc.methods.spdam import spdam
from telic.auc.methods.vrspam import vrspam
from telic.auc.objective import Callback, Solution
from telic.auc.thresholds import Rule
from telic.errors import InputError, expect_above, expect_at_least


@described
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
        expect_at_least(0, beta1=self.beta1)
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
        self._rng = rng
        self._state = {
            "w": found.coef.copy(),
            "counts": np.array([means.n_neg, means.n_pos], dtype=float),
            "means": np.stack([means.neg, means.pos]),
            "scale": np.array([view.bound, found.passes * (means.n_pos + means.n_neg)]),
        }
        return found

    def _start(self, d: int) -> State:
        expect_at_least(0, beta1=self.beta1)
        (expect_above if self.step == "linear" else expect_at_least)(0, beta=self.beta)
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


@described
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
        expect_at_least(0, beta1=self.beta1)
        expect_above(0, step_size=self.step_size)
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


@described
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
