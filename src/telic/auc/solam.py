"""SOLAM (Ying, Wen and Lyu, 2016) and regSOLAM: gradient descent-ascent on the saddle form."""

import numpy as np
from numba import njit

from telic.auc.rows import FAST
from telic.auc.statistics import observe


@njit(cache=True, nogil=True, fastmath=FAST)
def solam_steps(
    X, positive, counts, means, w, saddle, average, scale, forgetting, beta, radius, step_size
):
    """Read rows in order, in place; saddle is (a, b, α), scale is (max‖x‖², Σ of step sizes)."""
    d = w.size
    for i in range(X.shape[0]):
        observe(X, i, positive[i], counts, means, forgetting)
        square, score, norm = 0.0, 0.0, 0.0
        for j in range(d):
            square += X[i, j] * X[i, j]
            score += X[i, j] * w[j]
        scale[0] = max(scale[0], square)
        seen = counts[0] + counts[1]
        p = counts[1] / seen
        eta = step_size / ((1 + scale[0]) * np.sqrt(seen))
        a, b, alpha = saddle
        if positive[i]:
            slope = 2 * (1 - p) * (score - a - 1 - alpha)
            a += eta * 2 * (1 - p) * (score - a)
            alpha += eta * (-2 * (1 - p) * score - 2 * p * (1 - p) * alpha)
        else:
            slope = 2 * p * (score - b + 1 + alpha)
            b += eta * 2 * p * (score - b)
            alpha += eta * (2 * p * score - 2 * p * (1 - p) * alpha)
        for j in range(d):
            w[j] -= eta * (slope * X[i, j] + beta * w[j])
            norm += w[j] * w[j]
        # Back into the ball, and a, b, α into what scores in that ball can be.
        reach = radius * np.sqrt(scale[0])
        saddle[0] = min(max(a, -reach), reach)
        saddle[1] = min(max(b, -reach), reach)
        saddle[2] = min(max(alpha, -2 * reach), 2 * reach)
        shrink = radius / np.sqrt(norm) if norm > radius * radius else 1.0
        scale[1] = forgetting * scale[1] + eta
        share = eta / scale[1]
        for j in range(d):
            w[j] *= shrink
            average[j] += share * (w[j] - average[j])
