"""Coordinate descent, and block descent, on a quadratic model held as a matrix."""

import numpy as np

from telic.kernels import kernel


@kernel
def _steepest(hessian, block):
    """Bound of the largest eigenvalue of a block: its trace, or its largest row of absolute values.

    Exact for one coordinate, and near it for those that hardly depend on each other.
    """
    trace, largest = 0.0, 0.0
    for j in block:
        trace += hessian[j, j]
        row = 0.0
        for k in block:
            row += abs(hessian[j, k])
        largest = max(largest, row)
    return min(trace, largest)


@kernel
def descend(hessian, slope, w, blocks, l1, below, l2, tol, goal, rounds):
    """Minimise the model slope·move + ½ moveᵀ H move + penalty(w + move) by blocks, w in place.

    slope is kept up to date: it holds the model's gradient at w, without the l2 term. An infinite
    `below` keeps w from being negative. Stops when a round changes no gradient by more than
    `goal`, or tol times what the first round did.
    """
    starts, order, weights = blocks
    least, move = 0.0 if below == np.inf else -np.inf, np.empty(w.size)
    bends = np.empty(weights.size)
    for g in range(weights.size):
        bends[g] = l2 + _steepest(hessian, order[starts[g] : starts[g + 1]])
    first = 0.0
    for r in range(rounds):
        worst = 0.0
        for g in range(weights.size):
            begin, end = starts[g], starts[g + 1]
            bend = bends[g]
            if bend == 0.0:
                continue
            norm = 0.0
            for q in range(begin, end):
                k = order[q]
                move[k] = max(least, w[k] - (slope[k] + l2 * w[k]) / bend)
                norm += move[k] ** 2
            norm = np.sqrt(norm)
            cut = l1 * weights[g] / bend
            factor = 1.0 - cut / norm if norm > cut else 0.0
            # All moves of a block use the gradient from before any of them.
            for q in range(begin, end):
                k = order[q]
                move[k] = factor * move[k] - w[k]
            for q in range(begin, end):
                k = order[q]
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
            if bend == 0.0:
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
