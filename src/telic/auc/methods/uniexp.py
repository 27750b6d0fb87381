"""Online Uni-Exp: the class-balanced exponential loss of single rows (Kotlowski et al., 2011)."""

import numpy as np

from telic.auc.drawn_rows import TINY
from telic.auc.methods.running_moments import SCARCE, count
from telic.kernels import kernel
from telic.optim.rows import FAST, row_add, row_dot

LINEAR_BEYOND = 5.0
"""Where −margin exceeds this the exponential continues as its tangent: one outlier must not
throw the weights away."""


@kernel(fastmath=FAST)
def uniexp_steps(rows, squares, positive, counts, w, bias, scale, forgetting, beta, step_size):
    """Read rows in order, in place; the bias is not penalised. O(nonzeros) a step by w = s·v."""
    s = 1.0
    for i in range(positive.size):
        count(positive[i], counts, forgetting)
        if min(counts[0], counts[1]) < SCARCE:
            continue
        score = bias[0] + s * row_dot(rows, i, w)
        scale[0] = max(scale[0], 1 + squares[i])
        seen = counts[0] + counts[1]
        sign = 1.0 if positive[i] else -1.0
        weight = sign * seen / (2 * (counts[1] if positive[i] else counts[0]))
        ridge = beta * seen * seen / (counts[0] * counts[1])
        largest = seen / (2 * min(counts[0], counts[1]))
        eta = step_size / (largest * scale[0] + ridge * seen)
        push = eta * weight * np.exp(min(-sign * score, LINEAR_BEYOND))
        s *= 1 - eta * ridge
        if abs(s) < TINY:
            w *= s
            s = 1.0
        row_add(rows, i, push / s, w)
        bias[0] += push
    w *= s
