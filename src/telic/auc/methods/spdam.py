"""SPDAM: stochastic primal-dual AUC maximisation (Natole, Ying and Lyu, 2019)."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from telic.auc.drawn_rows import Matrix, as_rows
from telic.auc.methods.spam import row_squares
from telic.auc.objective import (
    Callback,
    ClassMeans,
    Solution,
    class_means,
    loss_gradient,
    pair_loss,
    penalty,
    row_shares,
)
from telic.auc.optimality_bound import TIGHTEST, certified, small
from telic.errors import InputError, expect_at_least
from telic.kernels import kernel
from telic.optim.rows import FAST, row_add, row_dot


def spdam(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    batch_size: int | float = 0.01,
    tol: float = 1e-8,
    max_iter: int = 5000,
    weight: np.ndarray | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Run SPDAM: a dual number for each row, mini-batches, extrapolated primal steps.

    [Natole2020] prints x̄ = (x − m)/√(2p); √p and √(1 − p) make the saddle value equal half the
    pairwise square loss, and its −‖β‖²/2 lacks a 1/n. Step lengths are not given there; these
    converge linearly: with λ = beta/(2p(1−p)), R = max‖x̄‖ and batches of m,
    τ = √(m/(nλ))/(2R), σ = √(nλ/m)/(2R), θ = 1 − 1/(n/m + R·√(n/(mλ))).

    Parameters
    ----------
    batch_size : int or float, default 0.01
        Rows in a batch, or a share of n below 1 ([Natole2020]'s figures use a tenth).
    tol : float, default 1e-8
        Stop when ‖∇F‖²/(2·beta), a bound on the gap, is at most tol times F; small problems go on
        to rounding. Looked at after every tenth pass.
    max_iter : int, default 5000
        Passes: with batches of a tenth about R·√(m/(nλ)) of them divide the distance by e.
    rng : numpy.random.Generator
        Shuffles the rows of each pass.

    Other parameters as in `telic.auc.methods.exact.conjugate_gradient`; beta > 0.

    Returns
    -------
    Solution
        Memory is n numbers beside the rows: not a streaming method.
    """
    expect_at_least(0, beta=beta)
    if beta == 0:
        raise InputError(f"beta: {beta!r}; SPDAM needs a strongly convex penalty, beta > 0.")
    n = positive.size
    share = isinstance(batch_size, Real) and 0 < batch_size < 1
    if not (share or (isinstance(batch_size, Integral) and batch_size >= 1)):
        raise InputError(f"batch_size: {batch_size!r}, expected a count >= 1 or a share in (0, 1).")
    size = int(np.ceil(batch_size * n)) if share else int(min(batch_size, n))
    means, rows = class_means(X, positive, weight), as_rows(X)
    ridge = beta / (2 * means.pair_weight)
    # x̄ = factor·(x − class mean): 1/√p or 1/√(1−p), and the root of the row's relative weight.
    factor = np.sqrt(n * row_shares(positive, means, weight))
    norm = np.sqrt(_largest_scaled_row(X, positive, means, factor))
    tau = np.sqrt(size / (n * ridge)) / (2 * norm)
    sigma = np.sqrt(n * ridge / size) / (2 * norm)
    theta = 1 - 1 / (n / size + norm * np.sqrt(n / (size * ridge)))
    w, ahead, u = np.zeros((3, means.pos.size))
    dual = np.zeros(n)
    centres, rates = (means.pos, means.neg), (ridge, tau, sigma, theta)
    certify: dict[str, Any] = {"beta": beta}
    certify |= {"tol": tol, "weight": weight, "means": means}
    asked = min(tol, TIGHTEST) if small(X) else tol
    for done in range(1, max_iter + 1):
        order = rng.permutation(n)
        _pass(rows, positive, factor, order, size, (w, ahead, u, dual), centres, rates)
        if callback is not None and callback(done, w):
            return certified(X, positive, w, done, **certify, stopped=True)
        if done % 10 == 0:
            scores = X @ w
            slope = loss_gradient(X, positive, scores, means, weight) + beta * w
            loss = means.pair_weight * pair_loss(scores, positive, weight)
            if slope @ slope <= asked * 2 * beta * (loss + penalty(w, beta)):
                found = certified(X, positive, w, done, **certify)
                if found.converged or asked <= TIGHTEST:
                    return found
                asked /= 10
    return certified(X, positive, w, max_iter, **certify)


def _largest_scaled_row(
    X: Matrix, positive: np.ndarray, means: ClassMeans, factor: np.ndarray
) -> float:
    """R²: the largest squared norm of x̄."""
    squares = row_squares(X)
    largest = float(np.finfo(float).tiny)
    for mask, mean in ((positive, means.pos), (~positive, means.neg)):
        distances = squares[mask] - 2 * (X @ mean)[mask] + mean @ mean
        largest = max(largest, float((distances * factor[mask] ** 2).max()))
    return largest


@kernel(fastmath=FAST)
def _pass(rows, positive, factor, order, size, point, centres, rates):
    """One pass in batches, in place; rows are centred on their class mean implicitly."""
    w, ahead, u, dual = point
    (mean_pos, mean_neg), (ridge, tau, sigma, theta) = centres, rates
    n, d = order.size, w.size
    moved = np.zeros(d)
    gap_square = 0.0
    for j in range(d):
        gap_square += (mean_neg[j] - mean_pos[j]) ** 2
    diagonal = ridge + 1 / tau
    for start in range(0, n, size):
        stop = min(start + size, n)
        score_pos, score_neg = 0.0, 0.0
        for j in range(d):
            score_pos += ahead[j] * mean_pos[j]
            score_neg += ahead[j] * mean_neg[j]
            moved[j] = 0.0
        total_pos, total_neg = 0.0, 0.0
        for t in range(start, stop):
            i = order[t]
            score = row_dot(rows, i, ahead) - (score_pos if positive[i] else score_neg)
            new = (sigma * factor[i] * score + dual[i]) / (1 + sigma)
            change = (new - dual[i]) * factor[i] / n
            dual[i] = new
            row_add(rows, i, change, moved)
            if positive[i]:
                total_pos += change
            else:
                total_neg += change
        # (b·bᵀ + diagonal·I)·w = right-hand side, by Sherman and Morrison's formula.
        along = 0.0
        stretch = n / (stop - start)
        for j in range(d):
            moved[j] -= total_pos * mean_pos[j] + total_neg * mean_neg[j]
            gap = mean_neg[j] - mean_pos[j]
            ahead[j] = w[j] / tau - (u[j] + stretch * moved[j]) - gap
            along += gap * ahead[j]
            u[j] += moved[j]
        pull = along / (diagonal + gap_square)
        for j in range(d):
            new = (ahead[j] - pull * (mean_neg[j] - mean_pos[j])) / diagonal
            ahead[j] = new + theta * (new - w[j])
            w[j] = new
