"""Proximal steps of the penalties in compiled code, many passed steps at once too."""

import math

from telic.kernels import kernel
from telic.optim.vector_math import BLOCK


@kernel
def soft(z, above, below):
    """Soft-thresholding of one number: by `above` if it is positive, by `below` if negative."""
    if z > above:
        return z - above
    if z < -below:
        return z + below
    return 0.0


@kernel
def prox_groups(w, gradient, order, starts, first, last, step, l1, l2):
    """Take one proximal gradient step on the groups from first to last, under a group norm."""
    for g in range(first, last):
        norm = 0.0
        for q in range(starts[g], starts[g + 1]):
            k = order[q]
            w[k] = (1.0 - step * l2) * w[k] - step * gradient[k]
            norm += w[k] * w[k]
        cut, norm = step * l1 * math.sqrt(starts[g + 1] - starts[g]), math.sqrt(norm)
        factor = 1.0 - cut / norm if norm > cut else 0.0
        for q in range(starts[g], starts[g + 1]):
            w[order[q]] *= factor


@kernel
def elastic_net(w, l1, l2):
    """(l2/2)‖w‖² + l1‖w‖₁, summed in blocks for accuracy, without a second vector or BLAS."""
    total = 0.0
    for begin in range(0, w.size, BLOCK):
        block = 0.0
        for k in range(begin, min(w.size, begin + BLOCK)):
            block += (0.5 * l2 * abs(w[k]) + l1) * abs(w[k])
        total += block
    return total


@kernel
def squared_excess(v, l1, below):
    """Sum of the squares of what exceeds l1 in v, and `below` in −v."""
    total = 0.0
    for begin in range(0, v.size, BLOCK):
        block = 0.0
        for k in range(begin, min(v.size, begin + BLOCK)):
            block += max(0.0, v[k] - l1, -v[k] - below) ** 2
        total += block
    return total


@kernel
def violations(gradient, w, l1, below, l2, out):
    """Distance of −gradient − l2 w from the subdifferential of l1 max(w, 0) + below max(−w, 0)."""
    for k in range(w.size):
        slope = gradient[k] + l2 * w[k]
        if w[k] != 0.0:
            out[k] = abs(slope + (l1 if w[k] > 0.0 else -below))
        else:
            out[k] = max(0.0, -slope - l1, slope - below)


@kernel
def group_sizes(v, order, starts, l1):
    """Σ_g √|g| ‖v_g‖, the largest ‖v_g‖ / √|g|, and Σ_g max(0, ‖v_g‖ − l1 √|g|)²."""
    total, largest, excess = 0.0, 0.0, 0.0
    for g in range(starts.size - 1):
        square = 0.0
        for q in range(starts[g], starts[g + 1]):
            square += v[order[q]] ** 2
        norm, weight = math.sqrt(square), math.sqrt(starts[g + 1] - starts[g])
        total += weight * norm
        largest = max(largest, norm / weight)
        excess += max(0.0, norm - l1 * weight) ** 2
    if math.isnan(total):
        return total, total, total
    return total, largest, excess


@kernel
def group_violations(gradient, w, order, starts, l1, l2, out):
    """Distance of −gradient − l2 w from l1 times the subdifferential of the norm of its group."""
    for g in range(starts.size - 1):
        norm, size = 0.0, 0.0
        for q in range(starts[g], starts[g + 1]):
            k = order[q]
            norm += w[k] * w[k]
            size += (gradient[k] + l2 * w[k]) ** 2
        weight = l1 * math.sqrt(starts[g + 1] - starts[g])
        if norm > 0.0:
            size, pull = 0.0, weight / math.sqrt(norm)
            for q in range(starts[g], starts[g + 1]):
                k = order[q]
                size += (gradient[k] + (l2 + pull) * w[k]) ** 2
            far = math.sqrt(size)
        else:
            far = max(0.0, math.sqrt(size) - weight)
        for q in range(starts[g], starts[g + 1]):
            out[order[q]] = far


@kernel
def decay_tables(rate, powers, sums):
    """(1 − rate)^q and 1 + (1 − rate) + … of q terms, for q = 0, 1, …"""
    power, total = 1.0, 0.0
    for q in range(powers.size):
        powers[q] = power
        sums[q] = total
        total += power
        power *= 1.0 - rate


@kernel
def drifted(w, pull, q, rate, powers, sums):
    """Value of w after q steps w ← (1 − rate) w − pull."""
    if q < powers.size:
        return powers[q] * w - pull * sums[q]
    if rate == 0.0:
        return w - pull * q
    shrunk = math.expm1(q * math.log1p(-rate))
    return w + shrunk * w + pull * shrunk / rate


@kernel
def advance(w, g, q, step, l1, below, l2, powers, sums):
    """Value of w after q proximal steps w ← soft((1 − step l2) w − step g, …): just in time.

    The thresholds are step l1 for what is positive and step `below` for what is negative.
    """
    rate = step * l2
    if l1 == 0.0 and below == 0.0:
        return drifted(w, step * g, q, rate, powers, sums)
    while q > 0:
        if w == 0.0:
            if -l1 <= g <= below:
                return 0.0
            # Away from zero the sign stays, since the pull has the sign of the move.
            return drifted(0.0, step * (g + l1 if g < 0.0 else g - below), q, rate, powers, sums)
        sign = math.copysign(1.0, w)
        pull = step * (g + (l1 if w > 0.0 else -below))
        end = drifted(w, pull, q, rate, powers, sums)
        if sign * end > 0.0:
            return end
        # The path is monotone: find the last step before it meets zero, then take one plain step.
        keeps, meets = 0, q
        while meets - keeps > 1:
            middle = (keeps + meets) // 2
            if sign * drifted(w, pull, middle, rate, powers, sums) > 0.0:
                keeps = middle
            else:
                meets = middle
        w = drifted(w, pull, keeps, rate, powers, sums)
        w = soft((1.0 - rate) * w - step * g, step * l1, step * below)
        q -= keeps + 1
    return w
