"""How far weights can be from the optimum: a bound on F(w) − min F that holds, or NaN.

The square-loss objective is F(w) = f(w) + φ(w), φ(w) = (beta/2)‖w‖² + beta1‖w‖₁. With z = −∇f(w)
any w gives, by Fenchel's inequality,

    F(w) − min F <= Σ_j φ*(z_j) + φ(w_j) − w_j·z_j,

which for beta1 = 0 is ‖∇F(w)‖²/(2·beta). It needs beta > 0. Where the curvature of f is known (the
moments are at hand) strong convexity bounds the gap without beta, and in the columns' own units.
∇f is computed anew from the rows, seen from their mean, and widened by what rounding can have done
to it, so that neither a recurrence that drifted nor a lucky rounding error certifies anything.
"""

from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload, register_jitable
from scipy import sparse

from telic.auc.drawn_rows import Matrix, as_rows
from telic.auc.objective import ClassMeans, Solution, class_means, penalty, row_shares
from telic.kernels import kernel
from telic.optim.penalties import soft
from telic.optim.rows import FAST, Rows, entries, entry

EPS = np.finfo(float).eps
TIGHTEST = 1e-22
"""Relative gap that small problems are solved to: weights right to about eleven digits."""


class Curvature(NamedTuple):
    """f(v) + (beta/2)‖v‖² is strongly convex with modulus `modulus` in the norm ‖root·v‖."""

    modulus: float
    root: np.ndarray


class Slope(NamedTuple):
    """∇f at some weights, how far rounding may have moved each entry, and f itself."""

    gradient: np.ndarray
    noise: np.ndarray
    loss: float
    lead: float
    """Difference of the two mean scores."""


def certified(
    X: Matrix,
    positive: np.ndarray,
    w: np.ndarray,
    passes: float,
    *,
    beta: float,
    beta1: float = 0.0,
    tol: float | None,
    weight: np.ndarray | None = None,
    means: ClassMeans | None = None,
    curvature: Curvature | None = None,
    stopped: bool = False,
) -> Solution:
    """Return weights with the bound on their gap; converged if it is at most tol·F(w).

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    positive : bool array of shape (n,)
    w : array of shape (d,)
    passes : float
    beta, beta1 : float
        Weights >= 0 of the penalty.
    tol : float or None
        None for a method that does not stop by the gap: `converged` is then None.
    weight : array of shape (n,), optional
    means : ClassMeans, optional
        Where they are known, it takes one pass less.
    curvature : Curvature, optional
    stopped : bool
        Whether a callback ended the method.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # weights that blew up certify nothing
        means = class_means(X, positive, weight) if means is None else means
        return judged(
            w,
            slope_at(X, positive, w, weight, means),
            means.share,
            passes,
            beta=beta,
            beta1=beta1,
            tol=tol,
            curvature=curvature,
            stopped=stopped,
        )


def judged(
    w: np.ndarray,
    slope: Slope,
    share: float,
    passes: float,
    *,
    beta: float,
    beta1: float = 0.0,
    tol: float | None,
    curvature: Curvature | None = None,
    stopped: bool = False,
) -> Solution:
    """Return weights with the bound on their gap, given ∇f there and the share of positives."""
    gap = gap_bound(w, slope, share, beta=beta, beta1=beta1, curvature=curvature)
    value = slope.loss + penalty(w, beta, beta1)
    if not np.isfinite(value):
        return Solution(w, passes, None if tol is None else False, np.inf, np.inf, stopped)
    converged = None if tol is None or np.isnan(gap) else bool(gap <= tol * value)
    return Solution(w, passes, converged, gap, value, stopped)


def slope_at(
    X: Matrix,
    positive: np.ndarray,
    w: np.ndarray,
    weight: np.ndarray | None = None,
    means: ClassMeans | None = None,
) -> Slope:
    """Compute ∇f(w) from the rows in two passes, with a bound on its rounding error.

    It holds however rough the means are: they only say where dense rows are seen from. The counts
    beside them are those of the rows.
    """
    means = class_means(X, positive, weight) if means is None else means
    shares, pairs = row_shares(positive, means, weight), means.pair_weight
    # f does not change when all rows move alike; dense rows are seen from their mean.
    rows, centre = as_rows(X), None if sparse.issparse(X) else means.overall
    scores, sizes = _scored(rows, centre, w, positive.size)
    sides = shares * positive, shares * ~positive
    high, low = (side @ scores for side in sides)
    high_size, low_size = (side @ sizes for side in sides)
    slopes = 2 * pairs * shares * np.where(positive, scores - low - 1, scores - high + 1)
    errors = 2 * pairs * shares * (sizes + np.where(positive, low_size, high_size) + 1)
    gradient, noise = _combined(rows, centre, slopes, errors, w.size)
    noise *= rounding_share(*X.shape)
    spread = sides[0] @ (scores - high) ** 2 + sides[1] @ (scores - low) ** 2
    lead = high - low
    return Slope(gradient, noise, float(pairs * (spread + (1 - lead) ** 2)), lead)


def scores_at(X: Matrix, centre: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, float]:
    """(x − centre)ᵀw of every row, and how far rounding may have moved any of them."""
    dense = not sparse.issparse(X)
    scores, sizes = _scored(as_rows(X), centre if dense else None, w, X.shape[0])
    if not dense:
        scores -= centre @ w
        sizes += np.abs(centre) @ np.abs(w)
    return scores, float(sizes.max()) * rounding_share(0, w.size)


def slope_of(
    X: Matrix, slopes: np.ndarray, errors: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Σ (x − centre)·slope over the rows, and how far each entry may be off.

    `errors` is how far each slope may be; of the true ones the sum is 0.
    """
    rows, sizes = as_rows(X), rounding_share(*X.shape) * np.abs(slopes)
    if not sparse.issparse(X):
        return _combined(rows, centre, slopes, sizes + errors, X.shape[1])
    gradient, noise = _combined(rows, None, slopes, sizes, X.shape[1])
    # Zeros of sparse rows are as far from the centre as that is from 0.
    moved = np.abs(centre) * errors.sum() + _beyond_zeros(rows, centre, errors)
    return gradient - centre * slopes.sum(), noise + np.maximum(moved, 0.0)


def rounding_share(n: int, d: int) -> float:
    """Share of what is summed, over n rows and d columns, that rounding may have moved."""
    # Sums of n and of d terms: their rounding errors add up as a random walk does.
    return EPS * (8 + 2 * np.sqrt(n) + 2 * np.sqrt(d))


def gap_bound(
    w: np.ndarray,
    slope: Slope,
    share: float,
    *,
    beta: float,
    beta1: float = 0.0,
    curvature: Curvature | None = None,
) -> float:
    """Bound F(w) − min F; NaN where neither beta, nor beta1, nor the curvature gives one.

    `share` is that of positives.
    """
    noise = slope.noise + 4 * EPS * (beta * np.abs(w) + beta1)
    ends = -slope.gradient - noise, -slope.gradient + noise
    bounds = []
    if beta > 0:
        # Each term is convex in z_j, so it is largest at an end of what z_j can be.
        bounds.append(np.maximum(*(fenchel_terms(w, z, beta, beta1) for z in ends)).sum())
    elif beta1 > 0:
        bounds.append(_scaled_dual_gap(w, slope, np.abs(np.stack(ends)).max(), share, beta1))
    if curvature is not None and curvature.modulus > 0:
        least = least_subgradient(w, slope.gradient, beta, beta1)
        in_units = np.divide(
            np.abs(least) + noise, curvature.root, out=np.zeros(w.size), where=curvature.root > 0
        )
        bounds.append(in_units @ in_units / (2 * curvature.modulus))
    return float(min(bounds)) if bounds else np.nan


def fenchel_terms(w: np.ndarray, z: np.ndarray, beta: float, beta1: float) -> np.ndarray:
    """φ*(z_j) + φ(w_j) − w_j·z_j for each column, without cancellation; beta > 0."""
    size, along = np.abs(w), np.where(w == 0, np.abs(z), z * np.sign(w))
    outside = along >= beta1
    within = np.maximum(np.abs(along) - beta1, 0.0) ** 2 / (2 * beta) + beta / 2 * size**2
    return np.where(
        outside, (along - beta1 - beta * size) ** 2 / (2 * beta), within + size * (beta1 - along)
    )


def least_subgradient(w: np.ndarray, gradient: np.ndarray, beta: float, beta1: float) -> np.ndarray:
    """The element of ∂F(w) that is least in every column."""
    smooth = gradient + beta * w
    return np.where(w != 0, smooth + beta1 * np.sign(w), soft(smooth, beta1))


def _scaled_dual_gap(
    w: np.ndarray,
    slope: Slope,
    largest: float,
    share: float,
    beta1: float,
) -> float:
    """The lasso's duality gap at the scaled residual, for beta = 0."""
    pairs = share * (1 - share)
    square, along = slope.loss / pairs, 1 - slope.lead
    scale = max(min(along / square, beta1 / largest), 0.0) if square > 0 else 0.0
    primal = slope.loss + beta1 * float(np.abs(w).sum())
    dual = pairs * (2 * scale * along - scale**2 * square)
    return max(primal - dual, 0.0) + 64 * EPS * primal


def row_sums(rows: Rows, i: int, centre: np.ndarray | None, w: np.ndarray) -> tuple[float, float]:
    """(x − centre)ᵀw for row i, and the sum of its terms in absolute value (inside kernels)."""
    raise NotImplementedError("row_sums is called from compiled kernels only")


@register_jitable
def _sums(rows, i, centre, w):
    total, size = 0.0, 0.0
    start, end = entries(rows, i)
    for p in range(start, end):
        j, x = entry(rows, i, p)
        if centre is not None:
            x -= centre[j]
        total += x * w[j]
        size += abs(x * w[j])
    return total, size


@overload(row_sums, jit_options={"fastmath": FAST})
def _dense_sums(rows, i, centre, w):
    return _sums if isinstance(rows, types.Array) else None


@overload(row_sums, jit_options={"fastmath": {"contract"}})
def _sparse_sums(rows, i, centre, w):
    """In order, as `telic.optim.rows.row_dot` adds sparse rows up, and for the same reason."""
    return None if isinstance(rows, types.Array) else _sums


@kernel
def _scored(rows, centre, w, n):
    """Score of every row, and the sum of the score's terms in absolute value."""
    scores, sizes = np.empty(n), np.empty(n)
    for i in range(n):
        scores[i], sizes[i] = row_sums(rows, i, centre, w)
    return scores, sizes


@kernel(fastmath=FAST)
def _combined(rows, centre, slopes, errors, d):
    """Sum of the rows times their slopes, and of their absolute values times their errors."""
    gradient, noise = np.zeros(d), np.zeros(d)
    for i in range(slopes.size):
        start, end = entries(rows, i)
        for p in range(start, end):
            j, x = entry(rows, i, p)
            if centre is not None:
                x -= centre[j]
            gradient[j] += slopes[i] * x
            noise[j] += errors[i] * abs(x)
    return gradient, noise


@kernel
def _beyond_zeros(rows, centre, errors):
    """Sum over stored entries of errors times how much farther from the centre they are than 0."""
    out = np.zeros(centre.size)
    for i in range(errors.size):
        start, end = entries(rows, i)
        for p in range(start, end):
            j, x = entry(rows, i, p)
            out[j] += errors[i] * (abs(x - centre[j]) - abs(centre[j]))
    return out


def small(X: Matrix) -> bool:
    """Whether going on to rounding costs nothing worth counting."""
    return X.shape[0] * X.shape[1] <= 10_000


def ball_gap(w: np.ndarray, slope: Slope, radius: float) -> float:
    """Frank and Wolfe's gap: bounds f(w) minus the least f over ‖v‖ <= radius."""
    noise = slope.noise
    inner = slope.gradient @ w + noise @ np.abs(w)
    return float(inner + radius * np.linalg.norm(np.abs(slope.gradient) + noise))
