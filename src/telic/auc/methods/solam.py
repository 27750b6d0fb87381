"""SOLAM (Ying, Wen and Lyu, 2016) and regSOLAM: gradient descent-ascent on the saddle form."""

import numpy as np

from telic.auc.drawn_rows import TINY
from telic.auc.methods.running_moments import count
from telic.kernels import kernel
from telic.optim.rows import FAST, row_add, row_dot

FADED = 1e-4
"""Below this share of g the sum for the average, g·(r·v + z), would lose its digits: r·v alone
grows as g/s. It is multiplied out then."""


@kernel(fastmath=FAST)
def solam_steps(
    rows, squares, positive, counts, w, saddle, average, scale, forgetting, beta, radius, step_size
):
    """Read rows in order, in place; saddle is (a, b, α), scale is (max‖x‖², Σ 1/√t).

    With w = s·v and g·(r·v + z) for the sum that the average divides, a step costs O(nonzeros).
    """
    s, r, g = 1.0, 0.0, 1.0
    norm = w @ w  # of v, squared
    average *= scale[1]  # z from here on
    for i in range(positive.size):
        count(positive[i], counts, forgetting)
        along = row_dot(rows, i, w)
        score = s * along
        scale[0] = max(scale[0], squares[i])
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
        s *= 1 - eta * beta
        if not FADED * g < abs(s) < 1 / TINY or g < TINY:
            for j in range(w.size):
                average[j] = g * (average[j] + r * w[j])
                w[j] *= s
            along, norm = s * along, s * s * norm
            s, r, g = 1.0, 0.0, 1.0
        change = -eta * slope / s
        row_add(rows, i, change, w)
        row_add(rows, i, -r * change, average)
        norm += change * (2 * along + change * squares[i])
        # Back into the ball, and a, b, α into what scores in that ball can be.
        reach = radius * np.sqrt(scale[0])
        saddle[0] = min(max(a, -reach), reach)
        saddle[1] = min(max(b, -reach), reach)
        saddle[2] = min(max(alpha, -2 * reach), 2 * reach)
        if s * s * norm > radius * radius:
            s = np.copysign(radius / np.sqrt(norm), s)
        # Not by the step size: a long row makes all later steps short, not what they reach worse.
        share = 1 / np.sqrt(seen)
        scale[1] = forgetting * scale[1] + share
        g *= forgetting
        r += share * s / g
    for j in range(w.size):
        average[j] = g * (average[j] + r * w[j]) / scale[1]
        w[j] *= s
