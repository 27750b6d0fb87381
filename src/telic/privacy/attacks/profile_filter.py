"""The attack at distance 0: whose profile matches a target's."""

import numpy as np

from telic.kernels import kernel
from telic.privacy.attacks.candidate_sets import lower_bound


@kernel
def profile_intervals(values, n_exact, low, high, first, last):
    """Narrow each target's users, sorted by the exact columns and one more, to an interval."""
    columns, size = values.shape
    for t in range(len(first)):
        start, stop = 0, size
        for a in range(min(columns, n_exact + 1)):
            if low[t, a] > high[t, a]:
                stop = start
            start = lower_bound(values[a], start, stop, low[t, a])
            if high[t, a] < np.inf:
                above = np.nextafter(high[t, a], np.inf)
                stop = lower_bound(values[a], start, stop, above)
        first[t] = start
        last[t] = stop


@kernel
def filter_profiles(values, n_exact, low, high, first, last, starts, found):
    """List the users of each interval that also match the remaining columns; count if no room."""
    count = 0
    for t in range(len(first)):
        starts[t] = count
        for v in range(first[t], last[t]):
            good = True
            for a in range(n_exact + 1, len(values)):
                good = good and low[t, a] <= values[a, v] <= high[t, a]
            if good:
                if len(found):
                    found[count] = v
                count += 1
    starts[len(first)] = count
    return count
