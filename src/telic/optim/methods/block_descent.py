"""Descent by groups on a quadratic model held as a matrix."""

import numpy as np

from telic.kernels import kernel

EPS = np.finfo(float).eps
ALIKE = 0.5
"""Least curvature of a group, as a share of the largest, with which steps are as good."""
SWEEPS = 20
"""Of rotations, which find eigenvectors in five or six."""
LENGTHS = 50
"""Newton's steps for the length of a block; it takes two or three."""
SETTLED = 1e-7
"""Change of a length, as a share of it, after which the next would be lost in rounding."""
LARGEST = 32
"""Coordinates of a group beyond which its minimum costs more than it saves: it is cubic in them."""


@kernel
def descend_blocks(hessian, slope, w, blocks, l1, l2, tol, goal, rounds):
    """Minimise the model slope·move + ½ moveᵀ H move + penalty(w + move) by groups, w in place.

    Each goes to its minimum, however its coordinates depend on each other. A large one, and one
    that bends alike in all directions, takes a step that a bound of its curvature allows. slope is
    kept up to date, and the end is told, as in `telic.optim.methods.gram_descent.descend`.
    """
    starts, order, weights = blocks
    move, bends, most = np.empty(w.size), np.empty(weights.size), 1
    uneven, known = np.empty(weights.size, np.bool_), np.zeros(weights.size, np.bool_)
    for g in range(weights.size):
        size = starts[g + 1] - starts[g]
        bend, uneven[g] = _steepest(hessian, order[starts[g] : starts[g + 1]])
        bends[g] = l2 + bend
        uneven[g] &= 1 < size <= LARGEST and l1 > 0.0
        if uneven[g]:
            most = max(most, size)
    square, c, x = np.empty((most, most)), np.empty(most), np.empty(most)
    turned, bent = np.empty((weights.size, most, most)), np.empty((weights.size, most))
    first, worst = 0.0, 0.0
    for r in range(rounds):
        worst = 0.0
        for g in range(weights.size):
            block, bend, cut = order[starts[g] : starts[g + 1]], bends[g], l1 * weights[g]
            # Below zero is the rounding of a model that learned. Features of zeros are like this,
            # and a warm start may hold some: λ₁ alone says where they go.
            if bend <= 0.0:
                for k in block:
                    if abs(slope[k]) < l1:
                        w[k] = 0.0
                continue
            if uneven[g] and not known[g]:
                _turn(hessian, block, square, turned[g], bent[g])
                known[g] = True
            if not (
                uneven[g] and _minimum(slope, w, block, turned[g], bent[g], cut, l2, c, x, move)
            ):
                _step(slope, w, block, bend, cut, l2, move)
            for k in block:
                change = move[k]
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
def _steepest(hessian, block):
    """Bound a block's largest eigenvalue, and say whether its others may be much smaller.

    The bound is the trace, or the largest row of absolute values: exact for one coordinate, and
    near it for those that hardly depend on each other.
    """
    trace, largest, least = 0.0, 0.0, np.inf
    for j in block:
        trace += hessian[j, j]
        row = 0.0
        for k in block:
            row += abs(hessian[j, k])
        largest = max(largest, row)
        least = min(least, 2.0 * hessian[j, j] - row)
    bound = min(trace, largest)
    return bound, least < ALIKE * bound


@kernel
def _step(slope, w, block, bend, cut, l2, move):
    """Put into `move` a proximal step of a block, all of it by the slopes from before."""
    norm = 0.0
    for k in block:
        move[k] = w[k] - (slope[k] + l2 * w[k]) / bend
        norm += move[k] ** 2
    norm = bend * np.sqrt(norm)
    factor = 1.0 - cut / norm if norm > cut else 0.0
    for k in block:
        move[k] = factor * move[k] - w[k]


@kernel
def _turn(hessian, block, square, turned, bends):
    """Put the eigenvectors of a block into the columns of `turned`, its eigenvalues into `bends`.

    By Jacobi's rotations: a block is small, and a call for LAPACK takes longer.
    """
    size, trace = block.size, 0.0
    for i in range(size):
        for j in range(size):
            square[i, j] = hessian[block[i], block[j]]
            turned[i, j] = 1.0 if i == j else 0.0
        trace += abs(square[i, i])
    for _ in range(SWEEPS):
        left = 0.0
        for i in range(size):
            for j in range(i):
                left = max(left, abs(square[i, j]))
        if left <= EPS * trace:
            break
        for i in range(size):
            for j in range(i):
                if abs(square[i, j]) <= 0.1 * EPS * trace:
                    continue
                ratio = (square[j, j] - square[i, i]) / (2.0 * square[i, j])
                t = np.copysign(1.0 / (abs(ratio) + np.sqrt(ratio * ratio + 1.0)), ratio)
                c = 1.0 / np.sqrt(t * t + 1.0)
                for k in range(size):
                    a, b = square[k, i], square[k, j]
                    square[k, i], square[k, j] = c * (a - t * b), c * (t * a + b)
                    a, b = turned[k, i], turned[k, j]
                    turned[k, i], turned[k, j] = c * (a - t * b), c * (t * a + b)
                for k in range(size):
                    a, b = square[i, k], square[j, k]
                    square[i, k], square[j, k] = c * (a - t * b), c * (t * a + b)
    for i in range(size):
        # Of features that repeat each other an eigenvalue is 0, but for rounding.
        bends[i] = 0.0 if abs(square[i, i]) <= size * EPS * trace else square[i, i]


@kernel
def _minimum(slope, w, block, turned, bends, cut, l2, c, x, move):
    """Put into `move` how a block goes to its minimum; False if its model bends down somewhere.

    With M = H + l2 and c the slope where the block is 0, the minimum is 0 if ‖c‖ <= cut, else
    −t (t M + cut)⁻¹ c, where t is its own length. The reciprocal length of (t M + cut)⁻¹ c is
    concave in t and 1 there, so that Newton's steps for t come from below after the first. M is a
    diagonal among its eigenvectors. M counts in its largest, c and cut in ‖c‖, so that no unit of
    features makes a square overflow.
    """
    size, length, top = 0.0, 0.0, 0.0
    for k in range(block.size):
        at, own = 0.0, 0.0
        for i in range(block.size):
            at += turned[i, k] * slope[block[i]]
            own += turned[i, k] * w[block[i]]
        c[k] = at - bends[k] * own
        size += c[k] ** 2
        length += own**2
        top = max(top, bends[k] + l2)
        if bends[k] + l2 < 0.0:
            return False
    size, length = np.sqrt(size), np.sqrt(length)
    if size <= cut:
        for k in block:
            move[k] = -w[k]
        return True
    if not top > 0.0:
        return False
    t, cut = length * (top / size), cut / size
    for k in range(block.size):
        c[k] /= size
    for _ in range(LENGTHS):
        total, rising = 0.0, 0.0
        for k in range(block.size):
            curved = (bends[k] + l2) / top
            share = 1.0 / (t * curved + cut)
            x[k] = share * c[k]
            total += x[k] ** 2
            rising += share * curved * x[k] ** 2
        if not rising > 0.0:
            return False
        before, t = t, max(0.0, t + (np.sqrt(total) - 1.0) * total / rising)
        if abs(t - before) <= SETTLED * t:
            break
    for i in range(block.size):
        to = 0.0
        for k in range(block.size):
            to -= turned[i, k] * x[k]
        move[block[i]] = before * (size / top) * to - w[block[i]]
    return True
