"""OAM: online AUC maximisation with the pairwise hinge and reservoirs (Zhao et al., 2011).

A reservoir refers to its rows: place b of class c is row `fresh[c, b]` of the rows being read, or,
where that is negative, row c·size + b of `kept`, the reservoirs as earlier calls left them. So
rows may be sparse, and a step costs O(buffer size × nonzeros).
"""

from typing import NamedTuple

import numpy as np

from telic.auc.drawn_rows import TINY, row_collect
from telic.auc.methods.running_moments import SCARCE, count
from telic.kernels import kernel
from telic.optim.rows import FAST, Rows, row_add, row_dot

SAME_ROW = 1e-14
"""Two rows nearer than this share of their squared norms are one row."""


class Arrivals(NamedTuple):
    """The rows that are read, and the random numbers that decide which of them are kept."""

    rows: Rows
    squares: np.ndarray
    """Squared norms."""
    positive: np.ndarray
    draws: np.ndarray
    """One number in [0, 1) for each row."""


class Reservoirs(NamedTuple):
    """What is kept of each class, negatives first."""

    kept: Rows
    kept_squares: np.ndarray
    fresh: np.ndarray
    sizes: np.ndarray
    seen: np.ndarray
    """How many rows of the class have been read."""


@kernel(fastmath=FAST, inline="always")
def _keep(i, c, arrivals, reservoirs):
    """Reservoir sampling: every row of a class is in its buffer with the same probability."""
    _, kept_squares, fresh, sizes, seen = reservoirs
    seen[c] += 1
    place = sizes[c]
    if place == fresh.shape[1]:
        place = int(arrivals.draws[i] * seen[c])
        if place >= fresh.shape[1]:
            return
    else:
        sizes[c] += 1
    fresh[c, place] = i
    kept_squares[c, place] = arrivals.squares[i]


@kernel(fastmath=FAST, inline="always")
def _buffered_dot(rows, reservoirs, c, b, w):
    """Inner product of a buffered row with w."""
    kept, _, fresh, _, _ = reservoirs
    if fresh[c, b] >= 0:
        return row_dot(rows, fresh[c, b], w)
    return row_dot(kept, c * fresh.shape[1] + b, w)


@kernel(fastmath=FAST)
def oam_sequential_steps(arrivals, reservoirs, counts, w, spread, C, forgetting):
    """One passive-aggressive step for each row of the other class's buffer, in turn.

    `spread` holds the row being read, in d zeros; its own share of w is added when all are done.
    """
    rows, squares, positive, _ = arrivals
    kept, kept_squares, fresh, sizes, seen = reservoirs
    for i in range(positive.size):
        c = 1 if positive[i] else 0
        sign = 1.0 if positive[i] else -1.0
        count(positive[i], counts, forgetting)
        _keep(i, c, arrivals, reservoirs)
        size = sizes[1 - c]
        if size == 0:
            continue
        # The buffer stands for all rows of its class seen so far.
        most = C * max(1.0, seen[1 - c] / size)
        row_add(rows, i, 1.0, spread)
        score, share = row_dot(rows, i, w), 0.0
        for b in range(size):
            cross = _buffered_dot(rows, reservoirs, 1 - c, b, spread)
            other = _buffered_dot(rows, reservoirs, 1 - c, b, w)
            loss = 1 - sign * (score - other + share * (squares[i] - cross))
            both = squares[i] + kept_squares[1 - c, b]
            if loss > 0 and both - 2 * cross > SAME_ROW * both:
                push = sign * min(most, loss / (both - 2 * cross))
                share += push
                score -= push * cross
                if fresh[1 - c, b] >= 0:
                    row_add(rows, fresh[1 - c, b], -push, w)
                else:
                    row_add(kept, (1 - c) * fresh.shape[1] + b, -push, w)
        row_add(rows, i, share, w)
        row_add(rows, i, -1.0, spread)


@kernel(fastmath=FAST)
def oam_gradient_steps(arrivals, reservoirs, counts, w, gathered, scale, rates):
    """One subgradient step on the mean hinge against the other class's buffer; w = s·v.

    The first of `gathered`, d zeros, gathers the subgradient; the others say which columns it
    has, see `row_collect`. `rates` are forgetting, the ridge's weight and the step size.
    """
    rows, _, positive, _ = arrivals
    kept, _, fresh, sizes, _ = reservoirs
    push, marked, touched = gathered
    forgetting, beta, step_size = rates
    s = 1.0
    for i in range(positive.size):
        c = 1 if positive[i] else 0
        sign = 1.0 if positive[i] else -1.0
        count(positive[i], counts, forgetting)
        _keep(i, c, arrivals, reservoirs)
        size = sizes[1 - c]
        if size == 0 or counts[1 - c] < SCARCE:
            continue
        own = s * row_dot(rows, i, w)
        violated, columns = 0, 0
        for b in range(size):
            other = s * _buffered_dot(rows, reservoirs, 1 - c, b, w)
            if sign * (own - other) < 1:
                violated += 1
                if fresh[1 - c, b] >= 0:
                    columns = row_collect(
                        rows, fresh[1 - c, b], -sign / size, push, marked, touched, columns
                    )
                else:
                    place = (1 - c) * fresh.shape[1] + b
                    columns = row_collect(kept, place, -sign / size, push, marked, touched, columns)
        columns = row_collect(rows, i, sign * violated / size, push, marked, touched, columns)
        square = 0.0
        for q in range(columns):
            square += push[touched[q]] * push[touched[q]]
        scale[0] = max(scale[0], square)
        time = counts[0] + counts[1]
        ridge = beta * time * time / (counts[0] * counts[1])
        eta = step_size / (scale[0] + ridge * time + 1e-300)
        s *= 1 - eta * ridge
        if abs(s) < TINY:
            w *= s
            s = 1.0
        for q in range(columns):
            j = touched[q]
            w[j] += eta / s * push[j]
            push[j] = 0.0
            marked[j] = False
    w *= s
