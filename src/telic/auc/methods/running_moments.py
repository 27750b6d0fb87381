"""What a stream knows of its two classes: counts and means, forgetting the past if asked."""

import numpy as np

from telic.auc.drawn_rows import Matrix
from telic.kernels import kernel
from telic.optim.rows import FAST

SCARCE = 1e-100
"""A class whose count was forgotten down to this is treated as never seen."""


@kernel(fastmath=FAST, inline="always")
def count(is_positive, counts, forgetting):
    """Count one row; index 0 is negative, 1 positive."""
    counts[0] *= forgetting
    counts[1] *= forgetting
    counts[1 if is_positive else 0] += 1.0


@kernel(fastmath=FAST, inline="always")
def observe(X, i, is_positive, counts, means, forgetting):
    """Count row i and move its class's mean, for steps that need the means: O(d)."""
    count(is_positive, counts, forgetting)
    c = 1 if is_positive else 0
    share = 1 / counts[c]
    for j in range(means.shape[1]):
        means[c, j] += share * (X[i, j] - means[c, j])


def move_means(
    X: Matrix, positive: np.ndarray, counts: np.ndarray, means: np.ndarray, forgetting: float
) -> None:
    """Move both means past many rows at once, in place: what `observe` does for each in turn.

    `counts` are those before the rows; one product with X, for steps that need no means.
    """
    weights = forgetting ** np.arange(positive.size - 1.0, -1.0, -1.0)
    for c, member in enumerate((~positive, positive)):
        kept, new = counts[c] * forgetting**positive.size, weights * member
        total = kept + new.sum()
        if member.any() and total > 0:
            means[c] = (kept * means[c] + new @ X) / total
