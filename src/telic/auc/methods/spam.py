"""SPAM: stochastic proximal AUC maximisation (Natole, Ying and Lyu, 2018)."""

from typing import NamedTuple

import numpy as np

from telic.auc.drawn_rows import AHEAD, TINY, Draws, Matrix, as_rows, prefetch, row_prefetch
from telic.auc.objective import Callback, ClassMeans, Solution, class_means
from telic.auc.optimality_bound import certified
from telic.errors import DivergedError, InputError, expect_one_of
from telic.kernels import kernel
from telic.optim.rows import FAST, Rows, row_add, row_dot

STEPS = ("linear", "sqrt", "theory-power", "theory-linear")


class Centred(NamedTuple):
    """Rows seen from a common centre, which F does not notice but step sizes do.

    `projected` has a row's inner products with the centre, m₊ and m₋ (of the centred row for the
    last two), shape (n, 3).
    """

    means: ClassMeans
    centre: np.ndarray
    projected: np.ndarray
    bound: float
    """M²: the largest squared norm of a centred row."""


def centred(
    X: Matrix, positive: np.ndarray, center: bool, weight: np.ndarray | None = None
) -> Centred:
    """Measure the rows from their mean, or from 0."""
    means = class_means(X, positive, weight)
    return centred_as(X, means, means.overall if center else np.zeros_like(means.pos))


def centred_as(
    X: Matrix, means: ClassMeans, centre: np.ndarray, bound: float | None = None
) -> Centred:
    """Measure some rows from a centre, given the means of all and, if it is known, the bound."""
    projected = X @ np.column_stack([centre, means.pos, means.neg])
    if bound is None:
        squares = row_squares(X) - 2 * projected[:, 0] + centre @ centre
        bound = max(float(squares.max()), np.finfo(float).tiny)
    projected[:, 1:] -= centre @ np.column_stack([means.pos, means.neg])
    return Centred(means, centre, projected, bound)


def row_squares(X: Matrix) -> np.ndarray:
    """Squared norm of each row of a dense or sparse X."""
    if hasattr(X, "multiply"):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def spam(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    beta1: float = 0.0,
    step: str = "linear",
    step_size: float = 1.0,
    theta: float = 0.5,
    center: bool = True,
    passes: int = 20,
    weight: np.ndarray | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Run SPAM with ℓ₂ or elastic-net penalty.

    One step draws a row and moves against G(w; x, y), a multiple of the row: with ⟨w, m₊⟩ and
    ⟨w, m₋⟩ carried along, ℓ₂ costs O(nonzeros of the row), the elastic net O(d).

    Parameters
    ----------
    beta1 : float, default 0
        Weight of ‖w‖₁.
    step : {"linear", "sqrt", "theory-power", "theory-linear"}
        With M = max‖x‖: "linear" is 1/(beta·(t + 4M²/beta)); "sqrt" is 1/(4M²·√t). The other two
        are printed in [Natole2020], C/t^theta with C = beta/(128M⁴), which hardly moves, and
        1/(C̃(t + 1)) with C̃ = beta/(1 + beta²/(128M⁴))², whose first steps explode for small
        beta.
    step_size : float, default 1
        Multiplies "sqrt" only.
    theta : float, default 0.5
        Exponent of "theory-power", in (0, 1).
    center : bool, default True
        Subtract the mean of the rows, implicitly: F does not change, M falls. False is the
        printed method.
    passes : int, default 20
        The number of steps is passes·n.
    weight : array of shape (n,), optional
        Rows are drawn in proportion to it, see `telic.auc.drawn_rows.Draws`.
    rng : numpy.random.Generator
        Draws the rows, with replacement.

    Other parameters as in `telic.auc.methods.exact.conjugate_gradient`; beta > 0 except for
    ``step="sqrt"``.

    Returns
    -------
    Solution
        The last iterate. Its gap is bounded, but no rule stops by it.
    """
    check_step(step, beta)
    view, rows = centred(X, positive, center, weight), as_rows(X)
    draws = Draws(X, weight)
    w, stopped, done = np.zeros(view.centre.size), False, 0
    while done < passes and not stopped:
        times = np.arange(1.0, draws.total + 1) + done * draws.total
        steps = step_sizes(step, times, beta, view.bound, step_size, theta)
        order = draws.independent(rng, draws.total)
        spam_pass(rows, positive, view, w, order, steps, beta=beta, beta1=beta1)
        done += 1
        if not np.isfinite(w).all():
            other = "" if step == "linear" else "step='linear' or "
            raise DivergedError(
                f"SPAM diverged with step={step!r} and beta={beta:g}; use {other}a larger beta."
            )
        stopped = callback is not None and bool(callback(done, w))
    return certified(
        X,
        positive,
        w,
        done,
        beta=beta,
        beta1=beta1,
        tol=None,
        weight=weight,
        means=view.means,
        stopped=stopped,
    )


def spam_pass(
    rows: Rows,
    positive: np.ndarray,
    view: Centred,
    w: np.ndarray,
    order: np.ndarray,
    steps: np.ndarray,
    *,
    beta: float,
    beta1: float,
) -> None:
    """Do a step on w in place for each row of the order."""
    kernel = _l2_steps if beta1 == 0 else _net_steps
    kernel(
        rows,
        positive,
        order,
        w,
        view.centre,
        view.means.pos,
        view.means.neg,
        view.projected,
        view.means.share,
        beta,
        beta1,
        steps,
    )


def check_step(step: str, beta: float) -> None:
    """Raise InputError unless SPAM has such a step for this ridge weight."""
    expect_one_of(STEPS, step=step)
    if beta <= 0 and step != "sqrt":
        raise InputError(f"beta: {beta!r}; SPAM's step {step!r} needs beta > 0. Use step='sqrt'.")


def step_sizes(
    step: str, times: np.ndarray, beta: float, bound: float, step_size: float, theta: float
) -> np.ndarray:
    """Return the sizes of steps of these numbers, counted from 1; see `spam`."""
    if step == "linear":
        return 1 / (beta * times + 4 * bound)
    if step == "sqrt":
        return step_size / (4 * bound) / np.sqrt(times)
    if step == "theory-power":
        return beta / (128 * bound**2) / times**theta
    return (1 + beta**2 / (128 * bound**2)) ** 2 / beta / (times + 1)


@kernel(fastmath=FAST)
def _l2_steps(
    rows, positive, order, w, centre, mean_pos, mean_neg, projected, p, beta, beta1, steps
):
    """SPAM-L2 with w = s·(v + k·centre), both class scores carried along; O(nonzeros) a step."""
    s, k = 1.0, 0.0
    score_pos, score_neg = 0.0, 0.0
    for j in range(w.size):
        score_pos += w[j] * mean_pos[j]
        score_neg += w[j] * mean_neg[j]
    for t in range(order.size):
        if t + AHEAD < order.size:
            soon = order[t + AHEAD]
            row_prefetch(rows, soon)
            prefetch(projected, 3 * soon)
            prefetch(positive, soon)
        i, eta = order[t], steps[t]
        score = row_dot(rows, i, w) + k * projected[i, 0]
        if positive[i]:
            slope = 2 * (1 - p) * (s * (score - score_neg) - 1)
        else:
            slope = 2 * p * (s * (score - score_pos) + 1)
        change = -eta * slope / s
        row_add(rows, i, change, w)
        k -= change
        score_pos += change * projected[i, 1]
        score_neg += change * projected[i, 2]
        s /= 1 + eta * beta
        if s < TINY:  # before the reciprocal overflows
            for j in range(w.size):
                w[j] = s * (w[j] + k * centre[j])
            score_pos, score_neg, s, k = s * score_pos, s * score_neg, 1.0, 0.0
    for j in range(w.size):
        w[j] = s * (w[j] + k * centre[j])


@kernel(fastmath=FAST)
def _net_steps(
    rows, positive, order, w, centre, mean_pos, mean_neg, projected, p, beta, beta1, steps
):
    """SPAM-NET: soft-thresholding touches every coordinate, so a step is O(d)."""
    for t in range(order.size):
        if t + AHEAD < order.size:
            row_prefetch(rows, order[t + AHEAD])
        i, eta = order[t], steps[t]
        score = row_dot(rows, i, w)
        score_pos, score_neg = 0.0, 0.0
        for j in range(w.size):
            score_pos += w[j] * mean_pos[j]
            score_neg += w[j] * mean_neg[j]
        if positive[i]:
            slope = 2 * (1 - p) * (score - score_neg - 1)
        else:
            slope = 2 * p * (score - score_pos + 1)
        row_add(rows, i, -eta * slope, w)
        shrink, threshold = 1 / (1 + eta * beta), eta * beta1
        for j in range(w.size):
            z = w[j] + eta * slope * centre[j]
            w[j] = shrink * (max(z - threshold, 0.0) - max(-z - threshold, 0.0))
