"""Online Uni-Exp: the class-balanced exponential loss of single rows (Kotlowski et al., 2011)."""

import numpy as np
from numba import njit

from telic.auc.rows import FAST
from telic.auc.statistics import SCARCE, observe

LINEAR_BEYOND = 5.0
"""Where −margin exceeds this the exponential continues as its tangent: one outlier must not
throw the weights away."""


@njit(cache=True, nogil=True, fastmath=FAST)
def uniexp_steps(X, positive, counts, means, w, bias, scale, forgetting, beta, step_size):
    """Read rows in order, in place; the bias is not penalised."""
    d = w.size
    for i in range(X.shape[0]):
        observe(X, i, positive[i], counts, means, forgetting)
        if min(counts[0], counts[1]) < SCARCE:
            continue
        score, square = bias[0], 1.0
        for j in range(d):
            score += X[i, j] * w[j]
            square += X[i, j] * X[i, j]
        scale[0] = max(scale[0], square)
        seen = counts[0] + counts[1]
        sign = 1.0 if positive[i] else -1.0
        weight = seen / (2 * (counts[1] if positive[i] else counts[0]))
        ridge = beta * seen * seen / (counts[0] * counts[1])
        largest = seen / (2 * min(counts[0], counts[1]))
        eta = step_size / (largest * scale[0] + ridge * seen)
        push = eta * weight * sign * np.exp(min(-sign * score, LINEAR_BEYOND))
        for j in range(d):
            w[j] += push * X[i, j] - eta * ridge * w[j]
        bias[0] += push
