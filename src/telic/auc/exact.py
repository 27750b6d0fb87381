"""The exact optimum: Cholesky on the moments, conjugate gradients on the rows, elastic net."""

import warnings

import numpy as np
from numba import njit
from scipy import linalg

from telic.auc.objective import Callback, Moments, Solution, class_means
from telic.auc.rows import FAST, Matrix


def exact(moments: Moments, *, beta: float) -> Solution:
    """Solve (S₊ + S₋ + δδᵀ + beta/(2p(1−p))·I)·w = δ by Cholesky.

    The direction is that of ``RidgeClassifier(class_weight="balanced", alpha=n·beta/(4p(1−p)))``;
    δδᵀ only rescales w, so it is kept out of the matrix.

    Parameters
    ----------
    moments : Moments
    beta : float
        Ridge weight >= 0. With 0 and a singular covariance the solution of least norm is taken,
        and a warning says so.

    Returns
    -------
    Solution
        n_iter is 1.
    """
    delta = moments.means.delta
    ridge = beta / (2 * moments.means.pair_weight)
    matrix = moments.within + ridge * np.eye(delta.size)
    root = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    try:
        # With a unit diagonal columns of very different size are no trouble, and a pivot at
        # rounding level means a singular matrix (0/0 on the diagonal: a constant column).
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = linalg.cho_factor(matrix / np.outer(root, root), lower=True)
        if (np.diag(factor[0]) ** 2).min() <= 10 * delta.size * np.finfo(float).eps:
            raise linalg.LinAlgError
        direction = linalg.cho_solve(factor, delta / root) / root
    except (linalg.LinAlgError, ValueError):  # ValueError: not finite
        warnings.warn(
            f"the within-class covariance is singular and beta={beta:g} does not repair it; "
            "the solution of least norm is returned. A larger beta makes it unique.",
            stacklevel=2,
        )
        full = matrix + np.outer(delta, delta)
        return Solution(linalg.lstsq(full, delta, cond=1e-12)[0], 1, True)
    return Solution(direction / (1 + delta @ direction), 1, True)


def conjugate_gradient(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    tol: float = 1e-8,
    max_iter: int = 1000,
    callback: Callback | None = None,
) -> Solution:
    """Solve the same system without forming it: two products with X an iteration, O(n + d) memory.

    The covariance is applied with implicit centring, so that sparse rows stay sparse, and the
    diagonal of the matrix preconditions.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    positive : bool array of shape (n,)
    beta : float
        Ridge weight >= 0.
    tol : float, default 1e-8
        Stop when the estimated gap F(w) − F* falls below tol times F(w). The estimate continues
        the last decreases (Hestenes and Stiefel's identity) as a geometric series.
    max_iter : int, default 1000

    Returns
    -------
    Solution
        n_iter counts iterations.
    """
    means = class_means(X, positive)
    delta, weight = means.delta, means.pair_weight
    ridge = beta / (2 * weight)
    scale = np.where(positive, 1 / means.n_pos, 1 / means.n_neg)
    squares = X.multiply(X) if hasattr(X, "multiply") else X * X
    diagonal = squares.T @ scale - means.pos**2 - means.neg**2 + ridge
    floor = np.finfo(float).eps * max(float(diagonal.max()), np.finfo(float).tiny)
    inverse = 1 / np.maximum(diagonal, floor)
    Xt = X.T

    def apply(v: np.ndarray) -> np.ndarray:
        scores = X @ v
        centre = np.where(positive, means.pos @ v, means.neg @ v)
        return Xt @ ((scores - centre) * scale) + ridge * v

    def rescaled() -> np.ndarray:
        return u / (1 + delta @ u)  # what leaving δδᵀ out of the matrix left to do

    u, residual = np.zeros(delta.size), delta.copy()
    search = inverse * residual
    energy = float(residual @ search)
    decreases: list[float] = []
    for iteration in range(1, max_iter + 1):
        image = apply(search)
        curvature = float(search @ image)
        if curvature <= 0 or energy <= 0:  # an exact solution, or rounding
            return Solution(rescaled(), iteration - 1, True)
        step = energy / curvature
        u += step * search
        residual -= step * image
        decreases.append(step * energy)
        if callback is not None and callback(2 * iteration, rescaled()):
            return Solution(rescaled(), iteration, False)
        # F = p(1−p)/(1 + δᵀu) once w is rescaled; a gap g in the quadratic of u moves F by at
        # most p(1−p)·g/(1 + δᵀu)².
        if iteration >= 4:
            last = np.array(decreases[-4:])
            ratio = min(float(np.max(last[1:] / last[:-1])), 0.999)
            if last[-1] * ratio / (1 - ratio) <= tol * (1 + delta @ u):
                return Solution(rescaled(), iteration, True)
        preconditioned = inverse * residual
        energy, previous = float(residual @ preconditioned), energy
        search = preconditioned + energy / previous * search
    return Solution(rescaled(), max_iter, False)


def elastic_net(
    moments: Moments,
    *,
    beta: float,
    beta1: float,
    tol: float = 1e-8,
    max_iter: int = 10_000,
) -> Solution:
    """Minimise F with its ℓ₁ term by cyclic coordinate descent on the moments.

    Parameters
    ----------
    moments : Moments
    beta, beta1 : float
        Weights >= 0 of (1/2)‖w‖² and ‖w‖₁.
    tol : float, default 1e-8
        Stop when no coordinate's optimality condition is broken by more than tol times the
        largest |gradient| at w = 0.
    max_iter : int, default 10_000
        Sweeps.

    Returns
    -------
    Solution
        n_iter counts sweeps.
    """
    delta, weight = moments.means.delta, moments.means.pair_weight
    hessian = 2 * weight * (moments.within + np.outer(delta, delta))
    hessian[np.diag_indices_from(hessian)] += beta
    linear = 2 * weight * delta
    bound = tol * max(float(np.abs(linear).max()), np.finfo(float).tiny)
    w = np.zeros(delta.size)
    sweeps = _coordinate_descent(hessian, linear, beta1, w, bound, max_iter)
    return Solution(w, abs(sweeps), sweeps > 0)


@njit(cache=True, nogil=True, fastmath=FAST)
def _coordinate_descent(hessian, linear, beta1, w, bound, max_iter):
    """Cyclic coordinate descent in place; sweeps done, negative if it did not converge."""
    gradient = -linear.copy()
    for sweep in range(1, max_iter + 1):
        worst = 0.0
        for j in range(w.size):
            if hessian[j, j] <= 0.0:
                continue
            slope = gradient[j]
            if w[j] > 0.0:
                broken = abs(slope + beta1)
            elif w[j] < 0.0:
                broken = abs(slope - beta1)
            else:
                broken = max(abs(slope) - beta1, 0.0)
            worst = max(worst, broken)
            target = w[j] * hessian[j, j] - slope
            new = 0.0
            if target > beta1:
                new = (target - beta1) / hessian[j, j]
            elif target < -beta1:
                new = (target + beta1) / hessian[j, j]
            change = new - w[j]
            if change != 0.0:
                w[j] = new
                for k in range(w.size):
                    gradient[k] += change * hessian[j, k]
        if worst <= bound:
            return sweep
    return -max_iter
