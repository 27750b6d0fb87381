"""Coordinate descent, and block descent, on a quadratic model held as a matrix."""

import numpy as np
from scipy.linalg import lapack

from telic.kernels import kernel
from telic.optim.methods.block_descent import descend_blocks
from telic.optim.penalties import ElasticNet, Penalty
from telic.optim.threads import small_products

CALL = 250_000
"""Multiplications that cost as much as it takes to call for a factor."""
ZERO = 20
"""Multiplications that cost as much as a coordinate that does not move."""
FLAT = 1e-10
"""Least curvature that a factor trusts, as a share of the feature's own."""


def minimise(
    matrix: np.ndarray,
    slope: np.ndarray,
    w: np.ndarray,
    penalty: Penalty,
    *,
    tol: float = 0.0,
    goal: float = 0.0,
    rounds: int,
) -> None:
    """Minimise slope·move + ½ moveᵀ H move + penalty(w + move) as `descend` does, sooner.

    Descent soon finds the signs of w, and may then take a thousand rounds for the sizes where
    features resemble each other. Under given signs the model is smooth, and a Cholesky factor
    finds its minimum. One is tried whenever rounds have cost as much as it does, and the next at
    once if a sign would have changed, without that coordinate. Groups have no signs: they descend,
    each to its own minimum.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
        H, of the loss alone.
    slope, w : ndarray of shape (d,)
        The loss's gradient and the coefficients where they start; changed in place.
    penalty : ElasticNet or GroupElasticNet
    tol, goal, rounds
        When to stop, as `descend` does; a factor counts as the rounds that it costs.
    """
    if not isinstance(penalty, ElasticNet):
        blocks = penalty.starts, penalty.order, penalty.weights
        descend_blocks(matrix, slope, w, blocks, penalty.l1, penalty.l2, tol, goal, rounds)
        return
    factors, since = True, 0
    while rounds > 0:
        turn = min(rounds, max(1, _price(w) - since)) if factors else rounds
        options = penalty.l1, penalty.below, penalty.l2, tol, goal, turn
        worst, first = descend(matrix, slope, w, *options)
        rounds, since = rounds - turn, since + turn
        # Later rounds are held to the first one of all.
        tol, goal = 0.0, max(goal, tol * first)
        if worst <= goal:
            return
        # Descent may have brought more coordinates into use, of which a factor costs more.
        if not factors or since < _price(w):
            continue
        since, reached = 0, False
        # A round comes last: each coordinate ends nearer its minimum than by a factor.
        while factors and not reached and _price(w) < rounds:
            rounds -= _price(w)
            factors, reached = _keep_signs(matrix, slope, w, penalty)


def _price(w: np.ndarray) -> int:
    """Rounds of descent that cost as much as a factor for the coordinates in use."""
    used = int(np.count_nonzero(w))
    # A working set may be empty: no coefficient moves, though rounding keeps the gap above tol.
    return 1 + (CALL + used**3 // 3) // (max(w.size, 1) * (used + ZERO))


def _keep_signs(
    matrix: np.ndarray, slope: np.ndarray, w: np.ndarray, penalty: Penalty
) -> tuple[bool, bool]:
    """Go to the minimum over the coordinates in use, or as far as the first change of a sign.

    Returns whether the model is curved along all of them, without which nothing is done, and
    whether the minimum is reached.
    """
    used = np.flatnonzero(w)
    lines, before = matrix[used], w[used]
    square = lines[:, used]
    # Where only rounding bends the model, λ₁ alone says where to go: to the next zero.
    square.flat[:: used.size + 1] = (square.diagonal() + penalty.l2) * (1.0 + FLAT)
    with small_products(used.size):
        # LAPACK reads by columns, which is how NumPy lays out what was chosen of the columns.
        factor, info = lapack.dpotrf(square, lower=1, overwrite_a=1)
    if info or not used.size:
        return False, False
    pull = slope[used] + penalty.l2 * before + penalty.l1 * np.sign(before)
    move, _ = lapack.dpotrs(factor, -pull, lower=1)
    if not np.isfinite(move).all():
        return False, False
    changing = np.flatnonzero(np.abs(move) >= np.abs(before))
    shares = -before[changing] / move[changing]
    shares[shares < 0.0] = np.inf  # it moves away from zero
    step = min(1.0, shares.min(initial=np.inf))
    after = before + step * move
    after[changing[shares <= step]] = 0.0
    w[used] = after
    slope += (after - before) @ lines
    return True, step == 1.0


@kernel
def descend(hessian, slope, w, l1, below, l2, tol, goal, rounds):
    """Minimise the model slope·move + ½ moveᵀ H move + penalty(w + move) by coordinates, in place.

    slope is kept up to date: it holds the model's gradient at w, without the l2 term. An infinite
    `below` keeps w from being negative. Stops when a round changes no gradient by more than
    `goal`, or tol times what the first round did; returns what the last and the first round did.
    """
    least, first, worst = 0.0 if below == np.inf else -np.inf, 0.0, 0.0
    for r in range(rounds):
        worst = 0.0
        for k in range(w.size):
            bend = l2 + hessian[k, k]
            # Below zero is the rounding of a model that learned. Features of zeros are like this,
            # and a warm start may hold some: λ₁ alone says where they go.
            if bend <= 0.0:
                if abs(slope[k]) < l1:
                    w[k] = 0.0
                continue
            to = max(least, w[k] - (slope[k] + l2 * w[k]) / bend)
            cut = l1 / bend
            change = (1.0 - cut / abs(to)) * to - w[k] if abs(to) > cut else -w[k]
            if change != 0.0:
                w[k] += change
                worst = max(worst, abs(change) * bend)
                for m in range(slope.size):
                    slope[m] += change * hessian[k, m]
        if r == 0:
            first = worst
        if worst <= max(goal, tol * first):
            break
    return worst, first


@kernel
def descend_together(hessians, slopes, W, move, l1, l2, tol, rounds):
    """Minimise the sum of the models of the rows of W, with l1 times the norms of its columns.

    As `descend`, with a column as a block: its largest curvature serves all rows.
    """
    first = 0.0
    for r in range(rounds):
        worst = 0.0
        for j in range(W.shape[1]):
            bend = l2 + hessians[:, j, j].max()
            if bend <= 0.0:
                norm = 0.0
                for k in range(move.size):
                    norm += slopes[k, j] ** 2
                if np.sqrt(norm) < l1:
                    W[:, j] = 0.0
                continue
            norm = 0.0
            for k in range(move.size):
                move[k] = W[k, j] - (slopes[k, j] + l2 * W[k, j]) / bend
                norm += move[k] * move[k]
            norm = np.sqrt(norm)
            factor = 1.0 - l1 / (bend * norm) if norm * bend > l1 else 0.0
            for k in range(move.size):
                change = factor * move[k] - W[k, j]
                if change != 0.0:
                    W[k, j] += change
                    worst = max(worst, abs(change) * bend)
                    for m in range(W.shape[1]):
                        slopes[k, m] += change * hessians[k, j, m]
        if r == 0:
            first = worst
        if worst <= tol * first:
            break


@kernel
def add_two(matrix, u, a, v, b):
    """Add a u uᵀ + b v vᵀ to a matrix."""
    for j in range(u.size):
        left, right, line = a * u[j], b * v[j], matrix[j]
        for k in range(u.size):
            line[k] += left * u[k] + right * v[k]
