"""Pairwise losses other than the square, in O(n log n): ranking SVM, squared hinge, logistic.

All minimise p(1 − p)·E[φ(s − s')] + (beta/2)·‖w‖² over the pairs of a positive and a negative
score, with φ the hinge max(0, 1 − m), its square, or log(1 + exp(−m)). B-SVM-OR of the source
(Joachims, 2006) is the hinge. Partial AUC keeps only the negatives whose rank lies in a range of
false-positive rates.
"""

import numpy as np
from scipy.optimize import minimize

from telic.auc.objective import Callback, Solution
from telic.auc.rows import Matrix
from telic.errors import InputError

LOSSES = ("hinge", "squared_hinge", "logistic")
SMOOTHING = (0.1, 0.01, 0.001)
"""Widths of the hinge's rounded corner, one minimisation after the other."""


def squared_hinge_sums(
    high: np.ndarray, low: np.ndarray, margin: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Sum over pairs of max(0, margin − (high_i − low_j))², and its two gradients.

    Each element needs only count, sum and sum of squares of the others that violate the margin
    with it. Both arrays ascend: binary search is many times faster with ordered needles.

    Examples
    --------
    >>> value, of_high, of_low = squared_hinge_sums(np.array([1.0]), np.array([-3.0, 0.5]), 1.0)
    >>> float(value), of_high, of_low
    (0.25, array([-1.]), array([-0.,  1.]))
    """
    # Negatives above high_i − margin violate, and so do positives below low_j + margin.
    first = np.searchsorted(low, high - margin, side="right")
    above, above_square = _sums_from(low), _sums_from(low**2)
    short, count = margin - high, low.size - first
    value = count * short**2 + 2 * short * above[first] + above_square[first]
    of_high = -2 * (count * short + above[first])
    count = np.searchsorted(high, low + margin, side="left")
    below = np.concatenate([[0.0], np.cumsum(high)])
    of_low = 2 * (count * (margin + low) - below[count])
    return float(value.sum()), of_high, of_low


def _sums_from(values: np.ndarray) -> np.ndarray:
    """Sum of the values from each position to the end, and 0 after it."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def smoothed_hinge_sums(
    high: np.ndarray, low: np.ndarray, corner: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """As `squared_hinge_sums` for the hinge, its corner rounded over a width of `corner`.

    At most the number of pairs times corner/2 below the hinge: the difference of two squared
    hinges, (max(0, m)² − max(0, m − corner)²)/(2·corner).
    """
    outer: tuple = squared_hinge_sums(high, low, 1.0)
    inner: tuple = squared_hinge_sums(high, low, 1.0 - corner)
    value, of_high, of_low = ((a - b) / (2 * corner) for a, b in zip(outer, inner, strict=True))
    return value, of_high, of_low


def hinge(high: np.ndarray, low: np.ndarray) -> float:
    """Mean of max(0, 1 − (high_i − low_j)) over all pairs."""
    low = np.sort(low)
    first = np.searchsorted(low, high - 1, side="right")
    total = ((1 - high) * (low.size - first) + _sums_from(low)[first]).sum()
    return float(total / (high.size * low.size))


def pairwise(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    loss: str = "hinge",
    fpr: tuple[float, float] = (0.0, 1.0),
    max_pairs: int = 2_000_000,
    tol: float = 1e-8,
    max_iter: int = 1000,
    rng: np.random.Generator,
    callback: Callback | None = None,
) -> Solution:
    """Minimise a pairwise loss by L-BFGS.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    positive : bool array of shape (n,)
    beta : float
        Ridge weight > 0.
    loss : {"hinge", "squared_hinge", "logistic"}
        The hinge is minimised with ever sharper corners (0.1 down to 0.001): the end is at most
        p(1 − p)·0.0005 above its optimum. The logistic loss does not factorise: above
        `max_pairs` pairs it is minimised over a fixed random sample of that many.
    fpr : (float, float), default (0, 1)
        False-positive rates that count. (0, b) averages over the b·n₋ negatives of highest score
        and stays convex; from a > 0 it does not, and the result is a local optimum. Not with
        "logistic".
    max_pairs : int, default 2,000,000
    tol : float, default 1e-8
        L-BFGS stops at a relative decrease below tol/10.
    max_iter : int, default 1000
        L-BFGS iterations, for each corner.
    rng : numpy.random.Generator
        Draws the pairs of the logistic loss.

    Returns
    -------
    Solution
        n_iter counts evaluations, each two products with X.
    """
    if loss not in LOSSES:
        raise InputError(f"loss: {loss!r}, expected one of {', '.join(LOSSES)}.")
    start, stop = fpr
    if not 0 <= start < stop <= 1:
        raise InputError(f"fpr: {fpr!r}, expected two rates with 0 <= low < high <= 1.")
    if loss == "logistic" and fpr != (0.0, 1.0):
        raise InputError("fpr: the logistic loss has no partial range; use loss='squared_hinge'.")
    if beta <= 0:
        raise InputError(f"beta: {beta!r}; the pairwise losses need beta > 0 to have an optimum.")
    rows = (np.flatnonzero(positive), np.flatnonzero(~positive))
    share = positive.mean()
    weight = share * (1 - share)
    n_low = rows[1].size
    # Ranks are counted from the highest score down, arrays ascend.
    kept = slice(n_low - max(int(np.ceil(stop * n_low)), 1), n_low - int(np.floor(start * n_low)))
    if loss == "logistic":
        pairs = _draw_pairs(rows, max_pairs, rng)
    evaluations = 0

    def value_and_gradient(w: np.ndarray, corner: float) -> tuple[float, np.ndarray]:
        nonlocal evaluations
        evaluations += 1
        scores = X @ w
        slopes = np.zeros(positive.size)
        if loss == "logistic":
            margins = scores[pairs[0]] - scores[pairs[1]]
            value = np.logaddexp(0, -margins).mean()
            slope = -np.exp(-np.logaddexp(0, margins)) / margins.size
            slopes += np.bincount(pairs[0], slope, positive.size)
            slopes -= np.bincount(pairs[1], slope, positive.size)
        else:
            positives, negatives = (part[np.argsort(scores[part])] for part in rows)
            negatives = negatives[kept]
            high, low = scores[positives], scores[negatives]
            if loss == "hinge":
                value, of_high, of_low = smoothed_hinge_sums(high, low, corner)
            else:
                value, of_high, of_low = squared_hinge_sums(high, low, 1.0)
            n_pairs = high.size * low.size
            value /= n_pairs
            slopes[positives], slopes[negatives] = of_high / n_pairs, of_low / n_pairs
        total = weight * value + beta / 2 * float(w @ w)
        return total, weight * (X.T @ slopes) + beta * w

    w = np.zeros(X.shape[1])
    stopped = False

    def report(current: np.ndarray) -> None:
        nonlocal stopped
        if callback is not None and callback(2 * evaluations, current):
            stopped = True
            raise StopIteration

    converged = True
    for corner in SMOOTHING if loss == "hinge" else (1.0,):
        found = minimize(
            value_and_gradient, w, args=(corner,), jac=True, method="L-BFGS-B", callback=report,
            options={"maxiter": max_iter, "maxfun": 20 * max_iter, "ftol": tol / 10,
                     "gtol": 1e-12, "maxcor": 20},
        )  # fmt: skip
        w, converged = found.x, found.status != 1
        if stopped:
            break
    return Solution(w, evaluations, converged and not stopped)


def _draw_pairs(rows, max_pairs, rng):
    """Every pair if there are few, else a sample with replacement."""
    positives, negatives = rows
    if positives.size * negatives.size <= max_pairs:
        return np.repeat(positives, negatives.size), np.tile(negatives, positives.size)
    return rng.choice(positives, max_pairs), rng.choice(negatives, max_pairs)
