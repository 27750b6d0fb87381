"""AUCClassifier: one estimator for every method, by name."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC
from telic.auc.estimators.deterministic import ConjugateGradientAUC, ExactAUC, PairwiseAUC
from telic.auc.estimators.online import OAM, OPAUC, SOLAM, RegSOLAM, UniExp
from telic.auc.estimators.stochastic import SPAM, SPDAM, VRSPAM
from telic.auc.objective import Callback, Solution
from telic.auc.thresholds import Rule
from telic.errors import InputError, expect_at_least, expect_one_of

SOLVERS: dict[str, Callable[..., LinearAUC]] = {
    "exact": ExactAUC,
    "cg": ConjugateGradientAUC,
    "spam": SPAM,
    "vrspam": VRSPAM,
    "spdam": SPDAM,
    "solam": SOLAM,
    "regsolam": RegSOLAM,
    "opauc": OPAUC,
    "oam-seq": lambda **parameters: OAM("seq", **parameters),
    "oam-gra": lambda **parameters: OAM("gra", **parameters),
    "uniexp": UniExp,
    "ranksvm": PairwiseAUC,
}
ELASTIC_NET = ("exact", "spam", "vrspam")
WITHOUT_BETA = ("solam", "oam-seq")
WITHOUT_SEED = ("exact", "cg")
FEW_COLUMNS = FEW_ROWS = 2000
"""Up to so many columns, or dense rows, `solver="auto"` takes the exact optimum."""


class AUCClassifier(LinearAUC):
    """A linear ranker that maximises AUC through a convex pairwise loss.

    =================  ==========================================================  ============
    solver             minimises                                                   reaches it
    =================  ==========================================================  ============
    exact              p(1−p)·E[(1 − (s − s'))²] + (beta/2)‖w‖² + beta1‖w‖₁        exactly
    cg, spdam          the same without ℓ₁                                         linearly
    vrspam             the same, ℓ₁ too                                            linearly
    spam               the same, ℓ₁ too                                            as 1/t
    regsolam, opauc    the same without ℓ₁, from a stream                          as 1/√t, 1/t
    solam              the loss over the ball ‖w‖ <= radius, from a stream         as 1/√t
    oam-gra            p(1−p)·E[max(0, 1 − (s − s'))] + (beta/2)‖w‖², buffered     as 1/t
    oam-seq            the sum of hinges, by passive-aggressive steps              no optimum
    uniexp             ½(E₊[exp(−s)] + E₋[exp(s)]) + (beta/2p(1−p))‖w‖²            as 1/t
    ranksvm            hinge, squared hinge or logistic loss + (beta/2)‖w‖²        by L-BFGS
    =================  ==========================================================  ============

    Here s is the score of a positive row, s' that of a negative one, p the share of positives. All
    square-loss methods aim at one optimum, so ``exact`` or ``cg`` is what to use when the data
    fit in memory; the others serve streams and comparisons. With ℓ₂ that optimum ranks rows as
    `RidgeClassifier(class_weight="balanced", alpha=n·beta/(4p(1−p)))` does.

    Parameters
    ----------
    solver : str, default "auto"
        A name above. "auto" is "exact" up to 2,000 columns, or dense rows, and "cg" beyond; with
        an elastic net and more columns "vrspam".
    penalty : {"l2", "elasticnet"}, default "l2"
    beta : float, default 1e-4
        Weight of (1/2)‖w‖².
    beta1 : float, default 1e-4
        Weight of ‖w‖₁ with ``penalty="elasticnet"``.
    threshold : str or (str, float), default "prior"
        Where `predict` cuts: "prior", "youden", ("cost", c) or ("top_k", k), see
        `telic.auc.thresholds.choose_threshold`.
    pos_label : label, optional
        The positive label, ranked first; by default the larger one, with a warning where that is
        the majority's.
    solver_options : dict, optional
        More parameters of the solver's own class, such as ``{"batch_size": 0.01}``.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_ : array of shape (1, d)
    intercept_ : array of shape (1,)
        Minus the threshold.
    classes_ : array of the two labels, the positive one second
        Sorted, unless `pos_label` is the smaller one.
    solver_ : str
        The solver used.
    n_iter_ : int
        Passes over the data, rounded; 1 for the exact optimum, which is found on the moments.
    gap_ : float
        Bound on the objective minus its optimum; NaN where there is none.
    converged_ : bool or None
        Whether `gap_` is at most the solver's tol times the objective. None for solvers that
        stop by no such rule: spam, solam, regsolam, opauc, oam-seq, oam-gra and uniexp make the
        passes they are told to; see `docs/explain/auc.md`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), AUCClassifier(pos_label=0))  # malignant
    >>> bool(cross_val_score(model, X, y).mean() > 0.99)
    True
    """

    def __init__(
        self,
        solver: str = "auto",
        *,
        penalty: str = "l2",
        beta: float = 1e-4,
        beta1: float = 1e-4,
        threshold: Rule = "prior",
        pos_label: Any = None,
        solver_options: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        self.solver = solver
        self.penalty = penalty
        self.beta = beta
        self.beta1 = beta1
        self.threshold = threshold
        self.pos_label = pos_label
        self.solver_options = solver_options
        self.random_state = random_state

    def _solve(
        self,
        X: Matrix,
        positive: np.ndarray,
        weight: np.ndarray | None,
        callback: Callback | None,
    ) -> Solution:
        expect_at_least(0, beta=self.beta)
        expect_one_of(("l2", "elasticnet"), penalty=self.penalty)
        net = self.penalty == "elasticnet"
        name = self.solver
        expect_one_of(("auto", *SOLVERS), solver=name)
        if name == "auto":
            by_rows = (
                not net and self.beta > 0 and not sparse.issparse(X) and X.shape[0] <= FEW_ROWS
            )
            few = X.shape[1] <= FEW_COLUMNS or by_rows
            name = "exact" if few else "vrspam" if net else "cg"
        if net and name not in ELASTIC_NET:
            raise InputError(
                f"penalty: solver {name!r} has no elastic net; use {', '.join(ELASTIC_NET)}."
            )
        options = {} if self.solver_options is None else self.solver_options
        if not isinstance(options, Mapping):
            raise InputError(f"solver_options is {options!r}, expected a dict of parameters.")
        options = dict(options)
        if own := sorted({"threshold", "pos_label"} & options.keys()):
            raise InputError(f"solver_options: {own[0]!r} is a parameter of AUCClassifier itself.")
        if name not in WITHOUT_BETA:
            options.setdefault("beta", self.beta)
        if net:
            options.setdefault("beta1", self.beta1)
        if name not in WITHOUT_SEED:
            options.setdefault("random_state", self.random_state)
        try:
            model = SOLVERS[name](**options)
        except TypeError as error:
            raise InputError(f"solver_options for {name!r}: {error}.") from None
        try:
            model._check_ends()
        except InputError as error:
            raise InputError(f"solver_options for {name!r}: {error}") from None
        self.solver_ = name
        return model._solve(X, positive, weight, callback)
