"""Wilson's interval of a share."""

import numpy as np
import scipy  # its parts load when they are used: they take seconds

from telic.errors import InputError
from telic.evaluate.checked_numbers import checked_level


def wilson_interval(share: float, n: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share, within [0, 1]; of a share of 0 or 1, too, it has width.

    Parameters
    ----------
    share : float in [0, 1]
        How many of the items are hits, as a share.
    n : float
        Items, at least one; they are independent.
    level : float in (0, 1)
        Coverage of the interval.

    Examples
    --------
    >>> low, high = wilson_interval(0.8, 10)
    >>> round(low, 3), round(high, 3)
    (0.49, 0.943)
    """
    if not (0 <= share <= 1 and n >= 1):
        raise InputError(f"share {share!r} of {n!r}: expected 0 to 1, of one item at least.")
    z2 = scipy.stats.norm.ppf(0.5 + checked_level(level) / 2) ** 2
    scale = 1 + z2 / n
    middle = (share + z2 / (2 * n)) / scale
    half = np.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n**2))) / scale
    # Rounding must not leave the share outside.
    return float(max(0.0, min(middle - half, share))), float(min(1.0, max(middle + half, share)))
