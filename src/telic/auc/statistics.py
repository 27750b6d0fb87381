"""What a stream knows of its two classes: counts and means, forgetting the past if asked."""

from numba import njit

from telic.auc.rows import FAST

SCARCE = 1e-100
"""A class whose count was forgotten down to this is treated as never seen."""


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def observe(X, i, is_positive, counts, means, forgetting):
    """Count row i and move its class's mean; index 0 is negative, 1 positive."""
    c = 1 if is_positive else 0
    counts[0] *= forgetting
    counts[1] *= forgetting
    counts[c] += 1.0
    share = 1 / counts[c]
    for j in range(means.shape[1]):
        means[c, j] += share * (X[i, j] - means[c, j])
