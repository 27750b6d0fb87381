"""The intercept that balances the slopes, where no formula gives it."""

import math
from collections.abc import Callable


def newton_shift(balance: Callable[[float], tuple[float, float, float]], flat: float) -> float:
    """Find the t at which a convex sum of losses is least, by safeguarded Newton.

    Parameters
    ----------
    balance : callable
        Of t: the sums of the derivatives there, of the second ones, and of the first's sizes.
    flat : float
        Second derivatives of at most this share of the sizes are next to nothing: by them a move
        has no end.
    """
    low, high, t = -math.inf, math.inf, 0.0
    for k in range(100):
        slope, bend, size = balance(t)
        # An overflow is no balance.
        if abs(slope) <= 4e-16 * size < math.inf:
            return t
        if slope > 0:
            high = t
        else:
            low = t
        lost = bend <= max(flat * size, 1e-300)
        following = t - (math.copysign(math.inf, slope) if lost else slope / bend)
        # Where few rows have a curvature Newton's moves are short: then every other is not its own.
        if (k >= 20 and k % 2) or not (low < following < high):
            if math.isinf(low) or math.isinf(high):
                following = t - math.copysign(1.0 + abs(t), slope)
            else:
                following = 0.5 * (low + high)
        if following == t:
            return t
        t = following
    return t
