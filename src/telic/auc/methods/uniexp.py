"""Online Uni-Exp: the class-balanced exponential loss of single rows (Kotlowski et al., 2011)."""

import math

from telic.auc.drawn_rows import TINY
from telic.auc.methods.running_moments import SCARCE, count
from telic.kernels import kernel
from telic.optim.rows import FAST, row_add, row_dot

ROUNDS = 6
"""Newton steps that reach the last bits of `_moved` from its first guess."""


@kernel(fastmath=FAST)
def uniexp_steps(rows, squares, positive, counts, w, bias, scale, forgetting, beta, step_size):
    """Read rows in order, in place; the bias is not penalised. O(nonzeros) a step by w = s·v.

    Each step is proximal: it takes the loss's gradient where it leads to, since a step along the
    one where it begins throws the weights as far as exp of the margin by which a row is missed.
    """
    s = 1.0
    for i in range(positive.size):
        count(positive[i], counts, forgetting)
        if min(counts[0], counts[1]) < SCARCE:
            continue
        scale[0] = max(scale[0], 1 + squares[i])
        seen = counts[0] + counts[1]
        sign = 1.0 if positive[i] else -1.0
        weight = seen / (2 * (counts[1] if positive[i] else counts[0]))
        ridge = beta * seen * seen / (counts[0] * counts[1])
        largest = seen / (2 * min(counts[0], counts[1]))
        eta = step_size / (largest * scale[0] + ridge * seen)
        s /= 1 + eta * ridge
        if abs(s) < TINY:
            w *= s
            s = 1.0
        margin = sign * (bias[0] + s * row_dot(rows, i, w))
        own = 1 + squares[i]  # what a push moves the row's own score by
        push = sign * _moved(math.log(eta * weight * own) - margin) / own
        row_add(rows, i, push / s, w)
        bias[0] += push
    w *= s


@kernel(fastmath=FAST)
def _moved(k):
    """Return u with u + log u = k: how far a proximal step moves a margin."""
    if k < -36:  # u is lost beside 1
        return math.exp(k)
    u = k if k > 1 else math.exp(k) / (1 + math.exp(k))
    for _ in range(ROUNDS):
        u -= (u + math.log(u) - k) * u / (1 + u)
    return u
