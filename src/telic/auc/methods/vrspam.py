"""VRSPAM: SPAM with SVRG's variance reduction [DanSahoo]; linear convergence."""

from typing import Any

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import AHEAD, TINY, Draws, Matrix, as_rows, prefetch, row_prefetch
from telic.auc.methods.spam import centred, spam_pass
from telic.auc.methods.vrspam_pairs import pair_stage
from telic.auc.objective import Callback, Solution, loss_gradient, pair_loss, penalty
from telic.auc.optimality_bound import TIGHTEST, certified, fenchel_terms, small
from telic.errors import InputError, expect_at_least, expect_whole
from telic.kernels import kernel
from telic.optim.rows import FAST, row_add, row_dot


def vrspam(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    beta1: float = 0.0,
    step_size: float = 1.0,
    center: bool = True,
    batch_size: int | None = None,
    pairs: bool = False,
    tol: float = 1e-8,
    max_iter: int = 200,
    weight: np.ndarray | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Run VRSPAM with ℓ₂ or elastic-net penalty.

    A stage takes the full gradient at a snapshot w̃, then steps with
    v = G(w, i) − G(w̃, i) + ∇f(w̃). The difference of the two G is a multiple of the row that is
    linear in u = w − w̃; with ℓ₂, u = s·(v + k·centre) + r·∇F(w̃), so that a step costs
    O(nonzeros of the row) and no digits are lost near the optimum.

    Parameters
    ----------
    beta1 : float, default 0
        Weight of ‖w‖₁. With it a step is O(d).
    step_size : float, default 1
        Times 1/(2M²), M the largest (centred) row norm; 0.25 is what the bound
        E‖G(w) − G(v)‖² ≤ 2M²·⟨∇f(w) − ∇f(v), w − v⟩ allows, more is faster as a rule. A stage
        that ends higher than it began is taken back and the step halved. [DanSahoo]'s
        beta/(128M⁴) does not move.
    center : bool, default True
        Subtract the mean of the rows, implicitly: F does not change, M falls.
    batch_size : int, optional
        Rows averaged in a step with ℓ₁. Default: as many as have about d nonzeros together.
    pairs : bool, default False
        Step on sampled pairs (x⁺, x⁻) in place of rows, see `telic.auc.methods.vrspam_pairs`: for
        sparse rows with ℓ₁, where it costs O(nonzeros of the pair). `batch_size` then has no
        meaning.
    tol : float, default 1e-8
        Stop when the bound on the gap of `telic.auc.optimality_bound` is at most tol times F; small
        problems go on to rounding.
    max_iter : int, default 200
        Stages; one is max(n, M²/beta) steps (at most 20n), or 1 + steps/n passes.
    weight : array of shape (n,), optional
        Rows are drawn in proportion to it; a row of weight 2 counts as two.
    rng : numpy.random.Generator

    Other parameters as in `telic.auc.methods.exact.conjugate_gradient`; beta > 0.

    Returns
    -------
    Solution
        The last iterate of the last stage.
    """
    expect_at_least(0, beta=beta)
    if beta == 0:
        raise InputError(f"beta: {beta!r}; VRSPAM needs a strongly convex penalty, beta > 0.")
    expect_whole(1, batch_size=1 if batch_size is None else batch_size)
    draws = Draws(X, weight)
    n = draws.total
    view, rows = centred(X, positive, center, weight), as_rows(X)
    means, centre = view.means, view.centre
    eta = step_size / (2 * view.bound)
    w = np.zeros(centre.size)
    first = 1 / (beta * np.arange(1.0, n + 1) + 4 * view.bound)
    order = draws.independent(rng, n)
    spam_pass(rows, positive, view, w, order, first, beta=beta, beta1=beta1)
    steps = int(min(max(n, view.bound / beta), 20 * n))
    if batch_size is None:
        nonzeros = rows.data.size if isinstance(rows, tuple) else rows.size
        batch_size = int(np.clip(w.size * n / max(nonzeros, 1), 1, n))
    batch_size = min(batch_size, n)
    if pairs:
        sparse_rows = as_rows(sparse.csr_matrix(X))
        listed = np.arange(n) if draws.reading is None else draws.reading
        high, low = listed[positive[listed]], listed[~positive[listed]]
        # ‖x⁺ − x⁻‖² <= 4M², so a pair's curvature is at most 8p(1 − p)M².
        eta = step_size / (8 * means.pair_weight * view.bound + beta)
    certify: dict[str, Any] = {"beta": beta, "beta1": beta1}
    certify |= {"tol": tol, "weight": weight, "means": means}
    asked = min(tol, TIGHTEST) if small(X) else tol
    passes, best, snapshot_w = 1.0, np.inf, w

    def valued(v: np.ndarray) -> tuple[np.ndarray, float]:
        scores = X @ v
        loss = pair_loss(scores, positive, weight)
        return scores, means.pair_weight * loss + penalty(v, beta, beta1)

    with np.errstate(over="ignore", invalid="ignore"):
        if not valued(w)[1] <= means.pair_weight:  # the pass of SPAM ended higher than 0 is
            w = np.zeros(w.size)
    for _ in range(max_iter):
        with np.errstate(over="ignore", invalid="ignore"):  # a stage may have blown up
            scores, value = valued(w)
        if not value <= best * (1 + 1e-12):  # rounding is no reason to go back
            w, eta = snapshot_w, eta / 2
            continue
        best, snapshot_w = value, w
        gradient = loss_gradient(X, positive, scores, means, weight)
        if fenchel_terms(w, -gradient, beta, beta1).sum() <= asked * value:
            found = certified(X, positive, w, passes, **certify)
            if found.converged or asked <= TIGHTEST:
                return found
            asked /= 10
        if pairs:
            visited = 2 * steps
            drawn = rng.choice(high, size=steps), rng.choice(low, size=steps)
            w = pair_stage(sparse_rows, drawn, scores, w, gradient, means, beta, beta1, eta)
        elif beta1 == 0:
            gradient += beta * w
            snapshot = np.column_stack([view.projected, X @ gradient])
            anchors = np.array([gradient @ means.pos, gradient @ means.neg])
            u = np.zeros(w.size)
            order = draws.independent(rng, steps)
            visited = steps
            r = _l2_stage(
                rows, positive, order, u, centre, snapshot, anchors, means.share, beta, eta
            )
            w = w + u + r * gradient
        else:
            order = draws.independent(rng, (max(steps // batch_size, 1), batch_size))
            visited = order.size
            new = w.copy()
            centres, rates = (centre, means.pos, means.neg), (beta, beta1, eta)
            _net_stage(rows, positive, order, new, w, gradient, centres, means.share, rates)
            w = new
        passes += 1 + visited / n
        if callback is not None and callback(passes, w):
            return certified(X, positive, w, passes, **certify, stopped=True)
    with np.errstate(over="ignore", invalid="ignore"):
        rose = not valued(w)[1] <= best
    return certified(X, positive, snapshot_w if rose else w, passes, **certify)


@kernel(fastmath=FAST)
def _l2_stage(rows, positive, order, v, centre, snapshot, anchors, p, beta, eta):
    """One stage for ℓ₂; v ends as s·(v + k·centre), the returned r is the weight of ∇F(w̃)."""
    s, k, r = 1.0, 0.0, 0.0
    score_pos, score_neg = 0.0, 0.0
    shrink = 1 / (1 + eta * beta)
    for t in range(order.size):
        if t + AHEAD < order.size:
            soon = order[t + AHEAD]
            row_prefetch(rows, soon)
            prefetch(snapshot, 4 * soon)
            prefetch(positive, soon)
        i = order[t]
        score = row_dot(rows, i, v) + k * snapshot[i, 0]
        if positive[i]:
            moved = s * (score - score_neg) + r * (snapshot[i, 3] - anchors[1])
            slope = 2 * (1 - p) * moved
        else:
            moved = s * (score - score_pos) + r * (snapshot[i, 3] - anchors[0])
            slope = 2 * p * moved
        change = -eta * slope / s
        row_add(rows, i, change, v)
        k -= change
        score_pos += change * snapshot[i, 1]
        score_neg += change * snapshot[i, 2]
        s *= shrink
        r = (r - eta) * shrink
        if s < TINY:  # before the reciprocal overflows
            for j in range(v.size):
                v[j] = s * (v[j] + k * centre[j])
            score_pos, score_neg, s, k = s * score_pos, s * score_neg, 1.0, 0.0
    for j in range(v.size):
        v[j] = s * (v[j] + k * centre[j])
    return r


@kernel(fastmath=FAST)
def _net_stage(rows, positive, order, w, snapshot, gradient, centres, p, rates):
    """One stage with ℓ₁: mini-batches, every coordinate fresh at every step."""
    (centre, mean_pos, mean_neg), (beta, beta1, eta) = centres, rates
    u = np.zeros(w.size)
    move = np.zeros(w.size)
    shrink, threshold = 1 / (1 + eta * beta), eta * beta1
    for t in range(order.shape[0]):
        score_pos, score_neg = 0.0, 0.0
        for j in range(w.size):
            u[j] = w[j] - snapshot[j]
            move[j] = gradient[j]
            score_pos += u[j] * mean_pos[j]
            score_neg += u[j] * mean_neg[j]
        total = 0.0
        for b in range(order.shape[1]):
            i = order[t, b]
            score = row_dot(rows, i, u)
            if positive[i]:
                slope = 2 * (1 - p) * (score - score_neg) / order.shape[1]
            else:
                slope = 2 * p * (score - score_pos) / order.shape[1]
            row_add(rows, i, slope, move)
            total += slope
        for j in range(w.size):
            z = w[j] - eta * (move[j] - total * centre[j])
            w[j] = shrink * (max(z - threshold, 0.0) - max(-z - threshold, 0.0))
