"""The streaming estimators: SOLAM, regSOLAM, OPAUC, OAM and online Uni-Exp."""

from typing import Any

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import Matrix, as_rows
from telic.auc.estimators.partial_fit import OnlineAUC, State, common_state
from telic.auc.methods.oam import (
    Arrivals,
    Reservoirs,
    oam_gradient_steps,
    oam_sequential_steps,
)
from telic.auc.methods.opauc import opauc_sketch_steps, opauc_steps
from telic.auc.methods.running_moments import move_means
from telic.auc.methods.solam import solam_steps
from telic.auc.methods.spam import row_squares
from telic.auc.methods.uniexp import uniexp_steps
from telic.auc.optimality_bound import ball_gap, certified, slope_at
from telic.auc.thresholds import Rule
from telic.errors import InputError, expect_above, expect_one_of, expect_whole


def _ridge_bound(
    X: Matrix, positive: np.ndarray, weight: np.ndarray | None, w: np.ndarray, beta: float
) -> tuple[float, float]:
    found = certified(X, positive, w, 0, beta=beta, tol=None, weight=weight)
    return found.gap, found.objective


class SOLAM(OnlineAUC):
    """Stochastic online AUC maximisation: a saddle point over a ball, O(nonzeros) a row.

    Minimises the pairwise square loss over ‖w‖ <= radius; the average of the iterates, the t-th
    with weight 1/√t, is the result.

    Parameters
    ----------
    radius : float, default 10
        Radius of the ball, > 0.
    step_size : float, default 1
        The step is step_size/((1 + max‖x‖²)·√t), with the longest row of all for `fit`, and the
        longest so far for a stream.
    forgetting : float, default 1
        Factor in (0, 1].
    max_iter : int, default 10
        Passes of `fit`.
    threshold : str or (str, float), default "prior"
    pos_label : label, optional
        The positive label. By default the larger one for `fit`, the second of `classes` for a
        stream.
    random_state : int, RandomState or None

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = X[:, 0] - X[:, 1] + rng.normal(size=4000) > 1.5
    >>> model = SOLAM(random_state=0)
    >>> for block in range(40):
    ...     part = slice(100 * block, 100 * block + 100)
    ...     model = model.partial_fit(X[part], y[part], classes=[False, True])
    >>> model.score(X, y) > 0.88
    True
    """

    _reads_sparse = True

    def __init__(
        self,
        radius: float = 10.0,
        *,
        step_size: float = 1.0,
        forgetting: float = 1.0,
        max_iter: int = 10,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.radius = radius
        self.step_size = step_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, d: int) -> State:
        expect_above(0, radius=self.radius)
        extra = {"saddle": np.zeros(3), "average": np.zeros(d), "scale": np.zeros(2)}
        return common_state(d) | extra

    def _look_ahead(self, state: State, X: Matrix) -> None:
        state["scale"][0] = row_squares(X).max()

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        self._steps(state, X, positive, 0.0, float(self.radius))

    def _steps(self, s: State, X: Matrix, positive: np.ndarray, beta: float, radius: float) -> None:
        move_means(X, positive, s["counts"], s["means"], self.forgetting)
        solam_steps(
            as_rows(X),
            row_squares(X),
            positive,
            s["counts"],
            s["w"],
            s["saddle"],
            s["average"],
            s["scale"],
            float(self.forgetting),
            beta,
            radius,
            float(self.step_size),
        )

    def _weights(self, state: State) -> np.ndarray:
        return state["average"]

    def _bound(
        self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None, w: np.ndarray
    ) -> tuple[float, float]:
        slope = slope_at(X, positive, w, weight)
        return ball_gap(w, slope, float(self.radius)), slope.loss


class RegSOLAM(SOLAM):
    """SOLAM with (beta/2)·‖w‖² in place of the ball: the objective of the batch methods.

    Parameters
    ----------
    beta : float, default 1e-4
    step_size, forgetting, max_iter, threshold, pos_label, random_state
        As for `SOLAM`.
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        step_size: float = 1.0,
        forgetting: float = 1.0,
        max_iter: int = 10,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.step_size = step_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, d: int) -> State:
        extra = {"saddle": np.zeros(3), "average": np.zeros(d), "scale": np.zeros(2)}
        return common_state(d) | extra

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        self._steps(state, X, positive, float(self.beta), 1e150)

    def _bound(
        self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None, w: np.ndarray
    ) -> tuple[float, float]:
        return _ridge_bound(X, positive, weight, w, self.beta)


class OPAUC(OnlineAUC):
    """One-pass AUC optimisation: running class covariances, O(d²) a row, or a sketch of them.

    Parameters
    ----------
    beta : float, default 1e-4
        As for the batch methods.
    rank : int, optional
        Keep a random sketch of that rank, O(d·rank) time and memory; None keeps the full
        covariances.
    step_size : float, default 1
        The step is step_size/(L + λt), L the largest curvature seen.
    forgetting, max_iter, threshold, pos_label, random_state
        As for `SOLAM`.
    """

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        rank: int | None = None,
        step_size: float = 1.0,
        forgetting: float = 1.0,
        max_iter: int = 10,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.rank = rank
        self.step_size = step_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, d: int) -> State:
        if self.rank is None:
            if d > 20_000:
                raise InputError(f"OPAUC: {d} columns need too large a covariance; set rank=50.")
            return common_state(d) | {"covariance": np.zeros((2, d, d)), "scale": np.zeros(1)}
        expect_whole(1, rank=self.rank)
        extra = {"sketch": np.zeros((2, d, self.rank)), "sums": np.zeros((2, self.rank))}
        return common_state(d) | extra | {"scale": np.zeros(1)}

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        s, rates = state, (float(self.forgetting), float(self.beta), float(self.step_size))
        shared = (X, positive, s["counts"], s["means"], s["w"])
        if self.rank is None:
            opauc_steps(*shared, s["covariance"], s["scale"], *rates)
        else:
            draws = rng.normal(size=(len(X), self.rank)) / np.sqrt(self.rank)
            opauc_sketch_steps(*shared, s["sketch"], s["sums"], draws, s["scale"], *rates)

    def _bound(
        self, X: Matrix, positive: np.ndarray, weight: np.ndarray | None, w: np.ndarray
    ) -> tuple[float, float]:
        return _ridge_bound(X, positive, weight, w, self.beta)


class OAM(OnlineAUC):
    """Online AUC maximisation with the pairwise hinge and one reservoir for each class.

    A row costs O(buffer_size × its nonzeros).

    Parameters
    ----------
    update : {"seq", "gra"}, default "gra"
        "seq" makes one passive-aggressive step for each buffered row of the other class, no
        longer than C·max(1, rows seen/rows buffered), which grows with each pass; "gra" makes
        one subgradient step on p(1−p)·E[hinge] + (beta/2)·‖w‖², the mean over the buffer standing
        for the expectation.
    C : float, default 1e-4
        For "seq", > 0. Cross-validation chose the default most often on the published sets.
    beta : float, default 1e-4
        For "gra".
    buffer_size : int, default 100
        Rows kept of each class.
    step_size : float, default 1
        For "gra": the step is step_size/(L + λt).
    forgetting, max_iter, threshold, pos_label, random_state
        As for `SOLAM`; reservoirs do not forget.
    """

    _reads_sparse = True

    def __init__(
        self,
        update: str = "gra",
        *,
        C: float = 1e-4,
        beta: float = 1e-4,
        buffer_size: int = 100,
        step_size: float = 1.0,
        forgetting: float = 1.0,
        max_iter: int = 10,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.update = update
        self.C = C
        self.beta = beta
        self.buffer_size = buffer_size
        self.step_size = step_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, d: int) -> State:
        expect_one_of(("seq", "gra"), update=self.update)
        expect_above(0, C=self.C)
        expect_whole(1, buffer_size=self.buffer_size)
        return common_state(d) | {
            "buffer": np.zeros((2, self.buffer_size, d)),
            "squares": np.zeros((2, self.buffer_size)),
            "sizes": np.zeros(2, dtype=np.int64),
            "seen": np.zeros(2, dtype=np.int64),
            "scale": np.zeros(1),
        }

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        s, d, places = state, X.shape[1], 2 * self.buffer_size
        if sparse.issparse(X) and not s["seen"].any():
            s["buffer"] = sparse.csr_matrix((places, d))
        # Whatever kind of rows a stream began with, it keeps.
        if sparse.issparse(s["buffer"]):
            X, kept = sparse.csr_matrix(X), s["buffer"]
        else:
            X, kept = X.toarray() if sparse.issparse(X) else X, s["buffer"].reshape(places, d)
        move_means(X, positive, s["counts"], s["means"], self.forgetting)
        fresh = np.full((2, self.buffer_size), -1)
        arrivals = Arrivals(as_rows(X), row_squares(X), positive, rng.random(positive.size))
        reservoirs = Reservoirs(as_rows(kept), s["squares"], fresh, s["sizes"], s["seen"])
        shared = arrivals, reservoirs, s["counts"], s["w"]
        if self.update == "seq":
            oam_sequential_steps(*shared, np.zeros(d), float(self.C), float(self.forgetting))
        else:
            gathered = np.zeros(d), np.zeros(d, dtype=bool), np.arange(d)
            rates = float(self.forgetting), float(self.beta), float(self.step_size)
            oam_gradient_steps(*shared, gathered, s["scale"], rates)
        replaced = np.flatnonzero(fresh.ravel() >= 0)
        if sparse.issparse(kept):
            source = np.arange(places)
            source[replaced] = places + fresh.ravel()[replaced]
            s["buffer"] = sparse.vstack([kept, X], format="csr")[source]
        else:
            kept[replaced] = X[fresh.ravel()[replaced]]


class UniExp(OnlineAUC):
    """Online Uni-Exp: class-balanced exponential loss of single rows, O(nonzeros) a row.

    Minimises ½(E₊[exp(−s)] + E₋[exp(s)]) + (λ/2)·‖w‖² with s = ⟨w, x⟩ + bias and
    λ = beta/(p(1−p)): at its best bias the first part is the root of the pairwise exponential
    loss E[exp(−(s − s'))].

    Parameters
    ----------
    beta : float, default 1e-4
    step_size : float, default 1
        The step is step_size/(L + λt), L the curvature of the longest row so far at a score of
        0, as one of the rarer class. It is a proximal step, where the source's follows the
        gradient: the exponential has no bounded curvature, and one row that is missed by far would
        throw the weights away.
    forgetting, max_iter, threshold, pos_label, random_state
        As for `SOLAM`.
    """

    _reads_sparse = True

    def __init__(
        self,
        beta: float = 1e-4,
        *,
        step_size: float = 1.0,
        forgetting: float = 1.0,
        max_iter: int = 10,
        threshold: Rule = "prior",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.beta = beta
        self.step_size = step_size
        self.forgetting = forgetting
        self.max_iter = max_iter
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state

    def _start(self, d: int) -> State:
        return common_state(d) | {"bias": np.zeros(1), "scale": np.zeros(1)}

    def _read(
        self, state: State, X: Matrix, positive: np.ndarray, rng: np.random.Generator
    ) -> None:
        s = state
        move_means(X, positive, s["counts"], s["means"], self.forgetting)
        uniexp_steps(
            as_rows(X),
            row_squares(X),
            positive,
            s["counts"],
            s["w"],
            s["bias"],
            s["scale"],
            float(self.forgetting),
            float(self.beta),
            float(self.step_size),
        )
