"""The exact optimum: Cholesky on the moments, conjugate gradients on the rows, elastic net."""

import warnings
from collections.abc import Callable

import numpy as np
from scipy import linalg

from telic.auc.drawn_rows import Matrix, as_rows
from telic.auc.objective import (
    Callback,
    ClassMeans,
    Moments,
    Solution,
    class_means,
    rounding,
    row_shares,
)
from telic.auc.optimality_bound import EPS, Curvature, certified
from telic.kernels import kernel
from telic.optim.rows import FAST, entries, entry, row_add, row_dot

HEARD = 3
"""Iterations after which progress says how many there will be."""


def exact(moments: Moments, *, beta: float) -> Solution:
    """Solve (S₊ + S₋ + δδᵀ + beta/(2p(1−p))·I)·w = δ by Cholesky.

    The direction is that of ``RidgeClassifier(class_weight="balanced", alpha=n·beta/(4p(1−p)))``;
    δδᵀ only rescales w, so it is kept out of the matrix.

    Parameters
    ----------
    moments : Moments
    beta : float
        Ridge weight >= 0. With 0 and a singular covariance the solution of least norm is taken
        (in units of the columns' spread within the classes), and a warning says so.

    Returns
    -------
    Solution
        Without a bound: `ExactAUC` certifies it from the rows.
    """
    delta = moments.means.delta
    matrix, root = _unit_diagonal(moments, beta)
    scaled = np.divide(delta, root, out=np.zeros(delta.size), where=root > 0)
    try:
        # With a unit diagonal columns of very different size are no trouble, and a pivot at
        # rounding level means a singular matrix (0 on the diagonal: a constant column).
        factor = linalg.cho_factor(matrix, lower=True)
        if (np.diag(factor[0]) ** 2).min() <= 10 * delta.size * EPS:
            raise linalg.LinAlgError
        direction = linalg.cho_solve(factor, scaled)
    except linalg.LinAlgError:
        warnings.warn(
            f"the within-class covariance is singular and beta={beta:g} does not repair it; "
            "the solution of least norm is returned. A larger beta makes it unique.",
            stacklevel=2,
        )
        if (w := _separating(delta, root == 0, moments.noise)) is not None:
            return Solution(w, 1)
        full = matrix + np.outer(scaled, scaled)
        direction = linalg.lstsq(full, scaled, cond=1e-12)[0]
        return Solution(_unscaled(direction, root), 1)
    direction = _unscaled(direction, root)
    return Solution(direction / (1 + delta @ direction), 1)


def _separating(delta: np.ndarray, constant: np.ndarray, noise: np.ndarray) -> np.ndarray | None:
    """Return weights without any loss: of columns constant in each class, not between them."""
    telling = constant & (delta**2 > noise)
    w = np.where(telling, delta, 0.0)
    return w / (w @ w) if telling.any() else None


def _unit_diagonal(moments: Moments, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """S₊ + S₋ + beta/(2p(1−p))·I with its diagonal brought to 1, and the roots it was divided by.

    A column that varies within no class has nothing but rounding on the diagonal: root 0.
    """
    diagonal = np.diag(moments.within) + beta / (2 * moments.means.pair_weight)
    root = np.sqrt(np.where(diagonal > moments.noise, diagonal, 0.0))
    safe = np.where(root > 0, root, np.inf)
    matrix = moments.within / safe[:, None] / safe
    matrix[np.diag_indices_from(matrix)] = root > 0
    return matrix, root


def _unscaled(direction: np.ndarray, root: np.ndarray) -> np.ndarray:
    return np.divide(direction, root, out=np.zeros(root.size), where=root > 0)


def curvature(moments: Moments, beta: float) -> Curvature:
    """Return how convex the loss and the ridge are together, in the columns' own units.

    The least eigenvalue of S₊ + S₋ + beta/(2p(1−p))·I with a unit diagonal, less what rounding
    can have added to it; 0 where that leaves nothing.
    """
    matrix, root = _unit_diagonal(moments, beta)
    if not (np.isfinite(matrix).all() and (root > 0).all()):
        return Curvature(0.0, root)
    least = float(linalg.eigvalsh(matrix, subset_by_index=[0, 0])[0])
    least -= 10 * root.size * (EPS + float((moments.noise / root**2).max()))
    return Curvature(2 * moments.means.pair_weight * max(least, 0.0), root)


def conjugate_gradient(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    tol: float = 1e-8,
    max_iter: int = 1000,
    weight: np.ndarray | None = None,
    callback: Callback | None = None,
    in_time: bool = False,
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
        Stop when ‖∇F(w)‖²/(2·beta), a bound on F(w) − F*, is at most tol times F(w): the residual
        is ∇F up to a factor, so looking costs nothing; the end is certified from the rows. With
        beta = 0 there is no bound: stop when ‖∇F(w)‖² is at most tol² times its value at 0.
    max_iter : int, default 1000
    weight : array of shape (n,), optional
        A row of weight 2 counts as two.
    in_time : bool, default False
        Give up as soon as progress so far says that `max_iter` will not be enough.

    Returns
    -------
    Solution
        Its passes are the iterations, and one for each residual taken from the rows.
    """
    means = class_means(X, positive, weight)
    shares = row_shares(positive, means, weight)
    rows, raw = as_rows(X), np.zeros(X.shape[1])
    _add_squares(rows, shares, raw)

    def covariance(v: np.ndarray) -> np.ndarray:
        centres = np.array([means.neg @ v, means.pos @ v])
        return _covariance_times(rows, positive, shares, centres, v)

    def certify(w: np.ndarray, passes: float, stopped: bool) -> Solution:
        return certified(
            X,
            positive,
            w,
            passes,
            beta=beta,
            tol=tol,
            weight=weight,
            means=means,
            stopped=stopped,
        )

    return gradients(
        means,
        raw - means.pos**2 - means.neg**2,
        rounding(raw, positive.size),
        covariance,
        certify,
        beta=beta,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
        in_time=in_time,
    )


@kernel(fastmath=FAST)
def _covariance_times(rows, positive, shares, centres, v):
    """(S₊ + S₋)·v, given the mean scores of the classes, in one pass: each row is read once."""
    out = np.zeros(v.size)
    for i in range(shares.size):
        row_add(rows, i, (row_dot(rows, i, v) - centres[np.int64(positive[i])]) * shares[i], out)
    return out


@kernel(fastmath=FAST)
def _add_squares(rows, shares, out):
    for i in range(shares.size):
        first, last = entries(rows, i)
        for p in range(first, last):
            j, x = entry(rows, i, p)
            out[j] += shares[i] * x * x


def gradients(
    means: ClassMeans,
    within: np.ndarray,
    noise: np.ndarray,
    covariance: Callable[[np.ndarray], np.ndarray],
    certify: Callable[[np.ndarray, float, bool], Solution],
    *,
    beta: float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    in_time: bool = False,
) -> Solution:
    """Run `conjugate_gradient` on rows wherever they are.

    Parameters
    ----------
    means : ClassMeans
    within : array of shape (d,)
        The diagonal of S₊ + S₋.
    noise : array of shape (d,)
        What rounding may have left there.
    covariance : callable
        v → (S₊ + S₋)v, one pass over the rows.
    certify : callable
        (weights, passes, whether a callback ended it) → the solution with its bound.
    beta, tol, max_iter, callback, in_time
        As in `conjugate_gradient`.
    """
    delta, pairs = means.delta, means.pair_weight
    ridge = beta / (2 * pairs)
    diagonal = within + ridge
    told = diagonal > noise  # a column that varies within no class has rounding there alone
    if (w := _separating(delta, ~told, noise)) is not None:
        return certify(w, 1, False)
    inverse = np.divide(1.0, diagonal, out=np.zeros(delta.size), where=told)

    def apply(v: np.ndarray) -> np.ndarray:
        return covariance(v) + ridge * v

    def rescaled() -> np.ndarray:
        return u / (1 + delta @ u)  # what leaving δδᵀ out of the matrix left to do

    def bound() -> tuple[float, float]:
        # What it is, and what it may be. With a = 1 + δᵀu, ∇F(w) = −2p(1−p)·residual/a and
        # F(w) = p(1−p)(a − uᵀresidual)/a².
        square, stretch = float(residual @ residual), float(1 + delta @ u)
        if beta > 0:
            return 2 * pairs * square, asked * beta * (stretch - float(u @ residual))
        return square, (tol * stretch) ** 2 * float(delta @ delta)

    def near() -> bool:
        now, most = bound()
        return now <= most

    def too_slow() -> bool:
        if not in_time or iteration < HEARD:
            return False
        now, most = bound()
        if now <= most or most <= 0:
            return False
        left, done = np.log(now / most), np.log(begun / now)
        return bool(left * iteration > (max_iter - iteration) * done)

    def end(stopped: bool = False) -> Solution:
        return certify(rescaled(), passes, stopped)

    u, iteration, passes, asked, begun = np.zeros(delta.size), 0, 0, tol, 0.0
    while True:
        passes += 1
        residual = np.where(told, delta - apply(u), 0.0)
        search = inverse * residual
        energy = float(residual @ search)
        begun = begun or bound()[0]
        while not (near() or too_slow()) and energy > 0 and iteration < max_iter:
            iteration, passes = iteration + 1, passes + 1
            image = apply(search)
            curved = float(search @ image)
            if curved <= 0:  # rounding
                break
            step = energy / curved
            u += step * search
            residual -= np.where(told, step * image, 0.0)
            if callback is not None and callback(passes, rescaled()):
                return end(stopped=True)
            preconditioned = inverse * residual
            energy, previous = float(residual @ preconditioned), energy
            search = preconditioned + energy / previous * search
        # The residual that was carried along may have drifted from the true one: go on from that.
        found = end()
        ended = iteration >= max_iter or asked < 1e-3 * tol or too_slow()
        if found.converged is not False or ended:
            return found._replace(exhausted=not near())
        asked /= 10


def elastic_net(
    moments: Moments,
    *,
    beta: float,
    beta1: float,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, int]:
    """Minimise F with its ℓ₁ term by cyclic coordinate descent on the moments.

    Parameters
    ----------
    moments : Moments
    beta, beta1 : float
        Weights >= 0 of (1/2)‖w‖² and ‖w‖₁.
    tol : float, default 1e-8
        Stop when no coordinate's optimality condition is broken by more than tol times what it
        can be at w = 0: a column's |gradient|, in the unit of its own curvature.
    max_iter : int, default 10_000
        Sweeps.
    start : array of shape (d,), optional
        Weights to begin with; 0 by default.

    Returns
    -------
    (array of shape (d,), int)
        Weights, for which `ExactAUC` computes the bound from the rows, and sweeps.
    """
    delta, weight = moments.means.delta, moments.means.pair_weight
    hessian = 2 * weight * (moments.within + np.outer(delta, delta))
    hessian[np.diag_indices_from(hessian)] += beta
    linear = 2 * weight * delta
    units = np.sqrt(np.maximum(np.diag(hessian), np.finfo(float).tiny))
    bound = tol * max(float(np.abs(linear / units).max()), np.finfo(float).tiny)
    w = np.zeros(delta.size) if start is None else start.copy()
    sweeps = _coordinate_descent(hessian, linear, beta1, w, bound * units, max_iter)
    return w, sweeps


@kernel(fastmath=FAST)
def _coordinate_descent(hessian, linear, beta1, w, bound, max_iter):
    """Cyclic coordinate descent in place until no column is broken beyond its bound; sweeps."""
    gradient = hessian @ w - linear
    for sweep in range(1, max_iter + 1):
        done = True
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
            done = done and broken <= bound[j]
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
        if done:
            return sweep
    return max_iter
