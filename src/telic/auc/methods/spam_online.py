"""SPAM from a stream: class prior, class means, centre and largest row norm are running ones."""

import numpy as np

from telic.auc.methods.running_moments import SCARCE, observe
from telic.kernels import kernel
from telic.optim.rows import FAST

STREAM_STEPS = ("linear", "sqrt")


@kernel(fastmath=FAST)
def spam_stream_steps(
    X, positive, counts, means, w, scale, forgetting, beta, beta1, step_size, linear, center
):
    """Read rows in order, in place; scale is (M², steps so far), both as `spam` has."""
    for i in range(X.shape[0]):
        observe(X, i, positive[i], counts, means, forgetting)
        scale[1] = forgetting * scale[1] + 1
        if min(counts[0], counts[1]) < SCARCE:
            continue
        p = counts[1] / (counts[0] + counts[1])
        other = 0 if positive[i] else 1
        score, square = 0.0, 0.0
        for j in range(w.size):
            centre = p * means[1, j] + (1 - p) * means[0, j] if center else 0.0
            score += w[j] * (X[i, j] - means[other, j])
            square += (X[i, j] - centre) ** 2
        scale[0] = max(scale[0], square)
        if linear:
            eta = 1 / (beta * scale[1] + 4 * scale[0])
        else:
            eta = step_size / (4 * scale[0] * np.sqrt(scale[1]) + 1e-300)
        slope = 2 * (1 - p) * (score - 1) if positive[i] else 2 * p * (score + 1)
        shrink, threshold = 1 / (1 + eta * beta), eta * beta1
        for j in range(w.size):
            centre = p * means[1, j] + (1 - p) * means[0, j] if center else 0.0
            z = w[j] - eta * slope * (X[i, j] - centre)
            w[j] = shrink * (max(z - threshold, 0.0) - max(-z - threshold, 0.0))
