"""Pairwise losses other than the square, in O(n log n): ranking SVM, squared hinge, logistic.

All minimise p(1 − p)·E[φ(s − s')] + (beta/2)·‖w‖² over the pairs of a positive and a negative
score, with φ the hinge max(0, 1 − m), its square, or log(1 + exp(−m)). B-SVM-OR of [Natole2020]
(Joachims, 2006) is the hinge. Partial AUC keeps only the negatives whose rank lies in a range of
false-positive rates, and two-way partial AUC only the positives beyond a true-positive rate.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from telic.auc.drawn_rows import Matrix
from telic.auc.methods.pairwise_ranges import in_range, in_rounded_ranges, row_losses
from telic.auc.methods.pairwise_sums import Sums, smoothed_hinge_sums, squared_hinge_sums
from telic.auc.objective import Callback, Solution
from telic.auc.optimality_bound import EPS, rounding_share, scores_at, slope_of, small
from telic.errors import InputError, expect_at_least, expect_one_of
from telic.evaluate.classification import check_rates

LOSSES = ("hinge", "squared_hinge", "logistic")
SMALL_PAIRS = 250_000
SMOOTHING = (0.1, 0.01, 0.001)
"""Widths of the rounded corners of hinges and ranges, one minimisation after the other."""
ENOUGH = 1e-5
"""Relative gap at which a partial range may stop: what its rounding hides is more."""


def pairwise(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    loss: str = "hinge",
    fpr: tuple[float, float] = (0.0, 1.0),
    min_tpr: float = 0.0,
    max_pairs: int = 2_000_000,
    tol: float = 1e-8,
    max_iter: int = 1000,
    weight: np.ndarray | None = None,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Minimise a pairwise loss by L-BFGS.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "logistic"}
        The hinge is minimised with ever sharper corners (0.1 down to 0.001): the end is at most
        p(1 − p)·0.0005 above its optimum. The logistic loss does not factorise: above
        `max_pairs` pairs it is minimised over a fixed random sample of that many.
    fpr : (float, float), default (0, 1)
        False-positive rates that count. (0, b) averages over the b·n₋ negatives of highest score,
        the last of them in part, and stays convex; from a > 0 it does not, and the result is a
        local optimum, sought from that of (0, b). Not with "logistic".
    min_tpr : float, default 0
        True-positive rate from which positives count, in [0, 1): the mean is over the
        (1 − min_tpr)·n₊ positives of lowest score, and stays convex. Not with "logistic".
    max_pairs : int, default 2,000,000
    tol : float, default 1e-8
        Stop when ‖∇F(w)‖²/(2·beta), a bound on F(w) − F*, is at most tol times F(w), F with the
        corners rounded; with a partial range, whose rounding hides more, at most 1e-5 times. Small
        problems go on to rounding by Newton's method. With a range from a > 0, stop at a relative
        decrease below tol/10.
    max_iter : int, default 1000
        L-BFGS iterations, for each corner.
    rng : numpy.random.Generator
        Draws the pairs of the logistic loss.

    Other parameters as in `telic.auc.methods.exact.conjugate_gradient`; beta > 0.

    Returns
    -------
    Solution
        Each evaluation of the objective and its gradient is a pass. The gap is that to the hinge
        itself, what the rounded corner can hide included; it is NaN for a range from a > 0, and
        `converged` is None for any partial range.

    Notes
    -----
    Which negatives are of highest score changes with w, and where all scores are equal, as at w =
    0, no gradient says how: a partial range has kinks. It is the mean of the largest losses of
    negatives, which are rounded as Nesterov does (Mathematical Programming 103, 2005): those whose
    loss is within a corner's width of the last that counts do so in part. The end is at most
    p(1 − p)·0.0005 below, for each range, and the gap holds how far.
    """
    _refuse(loss, fpr, min_tpr, beta)
    smooth = (*fpr, min_tpr) == (0, 1, 0)
    counts = np.ones(positive.size) if weight is None else weight
    rows = (np.flatnonzero(positive), np.flatnonzero(~positive))
    totals = [float(counts[part].sum()) for part in rows]
    pairs_weight = totals[0] * totals[1] / (totals[0] + totals[1]) ** 2
    mean_loss: Callable[..., tuple[float, np.ndarray]]
    if loss == "logistic":
        mean_loss = partial(_of_drawn_pairs, *_draw_pairs(rows, counts, max_pairs, rng))
    else:
        mean_loss = partial(_of_all_pairs, loss, rows, counts, fpr, min_tpr)
    objective = _Objective(X, counts, mean_loss, pairs_weight, beta)
    rounded_range = not smooth and fpr[0] == 0
    corners = SMOOTHING if loss == "hinge" or rounded_range else (1.0,)
    corner = corners[-1]
    descend = partial(_descend, objective, max_iter=max_iter, callback=callback)
    zero = np.zeros(X.shape[1])
    if fpr[0] > 0:
        objective.mean_loss = partial(_of_all_pairs, loss, rows, counts, (0.0, fpr[1]), min_tpr)
        w, stopped, exhausted = descend(zero, SMOOTHING[:1], tol=tol, certain=False)
        objective.mean_loss = mean_loss
        if not stopped:
            w, stopped, exhausted = descend(w, corners, tol=tol, certain=False)
        return Solution(w, objective.passes, stopped=stopped, exhausted=exhausted)
    w, stopped, exhausted = descend(zero, corners, tol=tol if smooth else max(tol, ENOUGH))
    if smooth and not stopped and small(X) and rows[0].size * rows[1].size <= SMALL_PAIRS:
        parts = [
            (X[part].toarray() if sparse.issparse(X) else X[part]) - objective.centre
            for part in rows
        ]
        share = pairs_weight * np.outer(*(counts[r] / t for r, t in zip(rows, totals, strict=True)))
        w = _newton(
            (parts, share),
            partial(objective, corner=corner),
            w,
            beta=beta,
            bend_of=partial(_bend, loss, corner),
        )
    scores, blur = scores_at(X, objective.centre, w)
    # The hinges' sums over pairs cancel: here they are of the longest numbers that there are.
    longest = float if loss == "logistic" else np.longdouble
    value, slopes = mean_loss(scores.astype(longest), corner)
    begun = mean_loss(np.zeros(scores.size, longest), corner)
    if not pairs_weight * value + beta / 2 * float(w @ w) <= pairs_weight * begun[0]:
        # Rounding led away from where the search began.
        w, scores, blur, (value, slopes) = np.zeros_like(w), np.zeros_like(scores), 0.0, begun
    # What rounding does to scores and to sums over pairs moves a slope by its row's share of this.
    bend = {"hinge": 1 / corner, "squared_hinge": 2.0, "logistic": 1.0}[loss]
    largest = 1.0 if loss == "logistic" else 2 + 4 * np.abs(scores).max()  # terms of a slope
    summed = float(np.finfo(longest).eps) / EPS * rounding_share(positive.size, 1) * largest
    error = pairs_weight * bend * (2 * blur + summed) / min(fpr[1] - fpr[0], 1 - min_tpr)
    shares = counts / np.where(positive, *totals)
    slope, noise = slope_of(X, pairs_weight * slopes, error * shares, objective.centre)
    total = pairs_weight * value + beta / 2 * float(w @ w)
    square = np.sum((np.abs(slope + beta * w) + noise + 4 * EPS * beta * np.abs(w)) ** 2)
    gap = float(square) / (2 * beta)
    rounded = pairs_weight * corner / 2 if loss == "hinge" else 0.0
    converged = gap <= tol * total if smooth else None
    if not smooth:
        rounded += pairs_weight * (mean_loss(scores.astype(longest), corner, exact=True)[0] - value)
    gap, total = gap + rounded, total + rounded
    return Solution(w, objective.passes, converged, gap, total, stopped, exhausted)


def _refuse(loss: str, fpr: tuple[float, float], min_tpr: float, beta: float) -> None:
    expect_one_of(LOSSES, loss=loss)
    check_rates(fpr, min_tpr)
    if loss == "logistic" and (*fpr, min_tpr) != (0, 1, 0):
        raise InputError(
            "fpr, min_tpr: the logistic loss has no partial range; use loss='squared_hinge'."
        )
    expect_at_least(0, beta=beta)
    if beta == 0:
        raise InputError(f"beta: {beta!r}; the pairwise losses need beta > 0 to have an optimum.")


def _of_drawn_pairs(
    pairs: tuple[np.ndarray, ...], share: np.ndarray, scores: np.ndarray, corner: float
) -> tuple[float, np.ndarray]:
    """Mean logistic loss of the drawn pairs, and its derivative by each score; no corner."""
    margins = scores[pairs[0]] - scores[pairs[1]]
    slope = -share * np.exp(-np.logaddexp(0, margins))
    slopes = np.bincount(pairs[0], slope, scores.size) - np.bincount(pairs[1], slope, scores.size)
    return float(share @ np.logaddexp(0, -margins)), slopes


def _of_all_pairs(
    loss: str,
    rows: tuple[np.ndarray, np.ndarray],
    counts: np.ndarray,
    fpr: tuple[float, float],
    min_tpr: float,
    scores: np.ndarray,
    corner: float,
    exact: bool = False,
) -> tuple[float, np.ndarray]:
    """Mean hinge, or its square, of all pairs in the ranges of rates; derivative by each score.

    Ranges from 0 are rounded unless `exact`, which lowers the mean.
    """
    positives, negatives = (part[np.argsort(scores[part])] for part in rows)
    sums: Callable[..., Sums] = (
        partial(smoothed_hinge_sums, corner=corner)
        if loss == "hinge"
        else partial(squared_hinge_sums, margin=1.0)
    )
    lowered = 0.0
    if exact or fpr[0] > 0:
        positives, high = in_range(positives, counts, min_tpr, 1.0)
        negatives, low = in_range(negatives, counts, *fpr)
    else:
        high, low, lowered = in_rounded_ranges(
            partial(row_losses, sums, scores[positives], scores[negatives]),
            (counts[positives] / counts[positives].sum(), 1.0 - min_tpr),
            (counts[negatives] / counts[negatives].sum(), fpr[1]),
            corner,
        )
        positives, high = positives[high > 0], high[high > 0]
        negatives, low = negatives[low > 0], low[low > 0]
    value, of_high, of_low = sums(
        scores[positives], scores[negatives], high_weight=high, low_weight=low
    )
    slopes = np.zeros(scores.size)
    slopes[positives], slopes[negatives] = of_high, of_low
    return float(value.sum()) - lowered, slopes


class _Objective:
    """The objective and its gradient as functions of weights and corner; counts its calls."""

    def __init__(
        self,
        X: Matrix,
        counts: np.ndarray,
        mean_loss: Callable[..., tuple[float, np.ndarray]],
        pairs_weight: float,
        beta: float,
    ) -> None:
        self.X, self.mean_loss, self.pairs_weight, self.beta = X, mean_loss, pairs_weight, beta
        # No loss here changes when all rows move alike: scores are seen from that of the mean row.
        self.centre = np.asarray(counts @ X).ravel() / counts.sum()
        self.passes = 0
        self.last = np.inf, np.zeros(X.shape[1])
        """Value and gradient of the last call."""

    def slopes(self, w: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        """Mean loss of the pairs, and its derivative by each score."""
        return self.mean_loss(self.X @ w - self.centre @ w, corner)

    def __call__(self, w: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        self.passes += 1
        value, slopes = self.slopes(w, corner)
        total = self.pairs_weight * value + self.beta / 2 * float(w @ w)
        slope = self.X.T @ slopes - self.centre * slopes.sum()
        self.last = total, self.pairs_weight * slope + self.beta * w
        return self.last


def _descend(
    objective: _Objective,
    w: np.ndarray,
    corners: tuple[float, ...],
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None,
    certain: bool = True,
) -> tuple[np.ndarray, bool, bool]:
    """Minimise by L-BFGS from w, for one corner after the other; the last until it is certain.

    Returns
    -------
    w : ndarray of shape (d,)
    stopped, exhausted : bool
        As in `Solution`.
    """
    stopped = False

    def report(current: np.ndarray) -> None:
        nonlocal stopped
        if callback is not None and callback(objective.passes, current):
            stopped = True
            raise StopIteration
        value, gradient = objective.last
        if certain and gradient @ gradient <= tol * 2 * objective.beta * value:
            raise StopIteration

    for corner in corners:
        sure = certain and corner == corners[-1]
        found = minimize(
            objective,
            w,
            args=(corner,),
            jac=True,
            method="L-BFGS-B",
            callback=report,
            options={
                "maxiter": max_iter,
                "maxfun": 20 * max_iter,
                "gtol": 0.0 if sure else 1e-12,
                "ftol": 0.0 if sure else tol / 10,
                "maxcor": 20,
            },
        )
        w = found.x
        if stopped:
            break
    return w, stopped, found.status == 1


def _newton(
    shares: tuple[list[np.ndarray], np.ndarray],
    value_and_gradient: Callable[[np.ndarray], tuple[float, np.ndarray]],
    w: np.ndarray,
    *,
    beta: float,
    bend_of: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Newton's method on all pairs at once, from weights that are near already.

    `shares` is what each pair weighs in the objective, `bend_of` the second derivative of its loss
    by its margin. A hinge with a rounded corner is piecewise quadratic, so a few steps end it.
    """
    (high, low), share = shares
    for _ in range(100):
        value, slope = value_and_gradient(w)
        bend = share * bend_of((high @ w)[:, None] - low @ w)
        cross = high.T @ bend @ low
        hessian = high.T @ (bend.sum(axis=1)[:, None] * high) - cross - cross.T
        hessian += low.T @ (bend.sum(axis=0)[:, None] * low) + beta * np.eye(w.size)
        try:
            step = -np.linalg.solve(hessian, slope)
        except np.linalg.LinAlgError:  # columns repeat, and beta is less than rounding
            step = -np.linalg.lstsq(hessian, slope)[0]
        if -(slope @ step) <= 1e-15 * value:  # what values can tell apart
            return w + step
        length = 1.0
        while True:
            new, slope_there = value_and_gradient(w + length * step)
            # Near the end values differ by rounding alone, and the gradient still tells.
            nearer = slope_there @ slope_there <= (slope @ slope) / 4
            if nearer or new <= value + 1e-4 * length * (slope @ step):
                break
            length /= 2
            if length < 1e-9:
                return w
        w = w + length * step
    return w


def _bend(loss: str, corner: float, margins: np.ndarray) -> np.ndarray:
    """Second derivative of a loss by the margin."""
    if loss == "logistic":
        chance = expit(margins)
        return chance * (1 - chance)
    if loss == "squared_hinge":
        return 2.0 * (margins < 1)
    return ((margins < 1) & (margins > 1 - corner)) / corner


def _draw_pairs(
    rows: tuple[np.ndarray, np.ndarray],
    counts: np.ndarray,
    max_pairs: int,
    rng: np.random.Generator,
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Every pair and its share of the mean if there are few, else a sample with replacement."""
    positives, negatives = rows
    if positives.size * negatives.size <= max_pairs:
        every = np.repeat(positives, negatives.size), np.tile(negatives, positives.size)
        share = counts[every[0]] * counts[every[1]]
        return every, share / share.sum()
    chances = (counts[part] / counts[part].sum() for part in rows)
    pairs = tuple(rng.choice(part, max_pairs, p=p) for part, p in zip(rows, chances, strict=True))
    return pairs, np.full(max_pairs, 1 / max_pairs)
