"""Numba pieces that several methods share: losses by code, products with compressed rows, prox."""

import math

import numpy as np
from numba import njit

from telic.optim.rows import (
    entries,
    entries_before,
    entries_within,
    entry,
    row_add,
    row_dot,
    row_square,
)

BLOCK = 1024
"""Rows whose losses are summed together, so that a sum does not depend on the threads."""
_VISIT = 8
"""Stored entries whose products cost as much as going to another row."""


@njit(cache=True, nogil=True)
def loss_value(code, shape, z, y):
    """Loss of one prediction; `losses` holds the definitions."""
    if code == 0:
        return 0.5 * (z - y) * (z - y)
    if code == 1:
        m = -y * z
        return m + math.log1p(math.exp(-m)) if m > 0 else math.log1p(math.exp(m))
    if code == 2:
        m = max(0.0, 1.0 - y * z)
        return m * m
    if code == 3:
        r = abs(z - y)
        return 0.5 * r * r if r <= shape else shape * (r - 0.5 * shape)
    constant = y * math.log(y) - y if y > 0 else 0.0
    return math.exp(z) - y * z + constant


@njit(cache=True, nogil=True)
def loss_gradient(code, shape, z, y):
    """Derivative of the loss in the prediction."""
    if code == 0:
        return z - y
    if code == 1:
        return -y / (1.0 + math.exp(y * z))
    if code == 2:
        return -2.0 * y * max(0.0, 1.0 - y * z)
    if code == 3:
        return min(shape, max(-shape, z - y))
    return math.exp(z) - y


@njit(cache=True, nogil=True)
def loss_curvature(code, shape, z, y):
    """Second derivative of the loss in the prediction."""
    if code == 0:
        return 1.0
    if code == 1:
        e = math.exp(-abs(z))
        return e / ((1.0 + e) * (1.0 + e))
    if code == 2:
        return 2.0 if y * z < 1.0 else 0.0
    if code == 3:
        return 1.0 if abs(z - y) <= shape else 0.0
    return math.exp(z)


@njit(cache=True, nogil=True)
def loss_conjugate(code, shape, a, y):
    """Conjugate of the loss at a point of its domain."""
    if code == 0 or code == 3:
        return 0.5 * a * a + a * y
    if code == 1:
        p = min(1.0, max(0.0, -a * y))
        total = p * math.log(p) if p > 0 else 0.0
        return total + ((1.0 - p) * math.log1p(-p) if p < 1 else 0.0)
    if code == 2:
        p = -a * y
        return 0.25 * p * p - p
    u = max(0.0, a + y)
    total = u * math.log(u) - u if u > 0 else 0.0
    return total - (y * math.log(y) - y if y > 0 else 0.0)


@njit(cache=True, nogil=True)
def loss_prox(code, shape, c, q, y, u, left):
    """Argmin over u of (u − c)²/2 + q loss(u, y), and the loss's derivative there.

    Safeguarded Newton on r(u) = u − c + q loss'(u) from a first guess, until r is rounding or at
    most `left` of the last move and of 1, the scale on which the logistic curvature changes.
    """
    if q == 0.0:
        return c, loss_gradient(code, shape, c, y)
    if code == 4:
        # Far right of the root exp overflows; log bounds the root from there.
        u = min(u, c + q * y, max(0.0, math.log(max(1.0, (c + q * y) / q))) + 1.0)
    slope = loss_gradient(code, shape, u, y)
    # The derivative increases, so the root lies between a point and its image.
    low, high = min(u, c - q * slope), max(u, c - q * slope)
    residual = u - c + q * slope
    last = np.inf
    for _ in range(100):
        if residual > 0:
            high = u
        else:
            low = u
        move = residual / (1.0 + q * loss_curvature(code, shape, u, y))
        if not (low <= u - move <= high) or abs(move) > 0.5 * last:
            move = u - 0.5 * (low + high)
        last = abs(move)
        u -= move
        slope = loss_gradient(code, shape, u, y)
        residual = u - c + q * slope
        if abs(residual) <= left * min(1.0, last) or last <= 1e-14 * (1.0 + abs(u)):
            break
    return u, slope


@njit(cache=True, nogil=True)
def soft(z, threshold):
    """Soft-thresholding of one number."""
    if z > threshold:
        return z - threshold
    if z < -threshold:
        return z + threshold
    return 0.0


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def of_row(values, i):
    """Value of row i; all rows share one where `values` holds no more."""
    return values[i] if values.size > 1 else values[0]


@njit(cache=True, nogil=True)
def losses(code, shape, z, y, mass, move, step, sums, turn, threads):
    """Weighted sum of the losses of z + step · move in each block of rows."""
    for block in range(turn, sums.size, threads):
        total = 0.0
        for i in range(block * BLOCK, min(z.size, (block + 1) * BLOCK)):
            total += of_row(mass, i) * loss_value(code, shape, z[i] + step * move[i], y[i])
        sums[block] = total


@njit(cache=True, nogil=True)
def gradients(code, shape, z, y, mass, out, turn, threads):
    """Weighted derivatives of the losses; out may be z."""
    for i in range(z.size * turn // threads, z.size * (turn + 1) // threads):
        out[i] = of_row(mass, i) * loss_gradient(code, shape, z[i], y[i])


@njit(cache=True, nogil=True)
def curvatures(code, shape, z, y, mass, out, turn, threads):
    """Weighted second derivatives; at least 1e-12, since a flat model would be unbounded."""
    for i in range(z.size * turn // threads, z.size * (turn + 1) // threads):
        out[i] = of_row(mass, i) * max(1e-12, loss_curvature(code, shape, z[i], y[i]))


@njit(cache=True, nogil=True)
def conjugates(code, shape, a, y, mass, scale, sums, turn, threads):
    """Weighted sum of the conjugates at scale · a / mass (a holds weighted derivatives)."""
    for block in range(turn, sums.size, threads):
        total = 0.0
        for i in range(block * BLOCK, min(a.size, (block + 1) * BLOCK)):
            m = of_row(mass, i)
            if m > 0:
                total += m * loss_conjugate(code, shape, scale * a[i] / m, y[i])
        sums[block] = total


@njit(cache=True, nogil=True)
def intercept_shift(code, shape, z, y, mass):
    """Number t that minimises the weighted loss of z + t: safeguarded Newton."""
    low, high, t = -np.inf, np.inf, 0.0
    for k in range(100):
        slope, bend, size = 0.0, 0.0, 0.0
        for i in range(z.size):
            m = of_row(mass, i)
            g = m * loss_gradient(code, shape, z[i] + t, y[i])
            slope += g
            size += abs(g)
            bend += m * loss_curvature(code, shape, z[i] + t, y[i])
        # An overflow is no balance.
        if abs(slope) <= 4e-16 * size < np.inf:
            return t
        if slope > 0:
            high = t
        else:
            low = t
        following = t - (slope / bend if bend > 1e-300 else math.copysign(np.inf, slope))
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


@njit(cache=True, nogil=True)
def _cut(A, n, turn, threads):
    """First row of the share `turn`, when rows are shared by their entries and visits."""
    goal = (entries_before(A, n) + _VISIT * n) * turn // threads
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if entries_before(A, middle) + _VISIT * middle < goal:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def products(A, w, b, out, turn, threads):
    """Inner products of the rows with w, plus b; a share costs as much as another."""
    for i in range(_cut(A, out.size, turn, threads), _cut(A, out.size, turn + 1, threads)):
        out[i] = row_dot(A, i, w) + b


@njit(cache=True, nogil=True)
def combine(A, a, out, turn, threads):
    """Sum of the rows, weighted by a, of each run of rows into a line of out."""
    runs = out.shape[0]
    for run in range(turn, runs, threads):
        line = out[run]
        line[:] = 0.0
        for i in range(a.size * run // runs, a.size * (run + 1) // runs):
            if a[i] != 0.0:
                row_add(A, i, a[i], line)


@njit(cache=True, nogil=True)
def some_products(columns, working, a, out, turn, threads):
    """Inner products of some columns with a."""
    for r in range(turn, working.size, threads):
        out[r] = row_dot(columns, working[r], a)


@njit(cache=True, nogil=True)
def some_sums(columns, working, move, out, turn, threads):
    """Add the columns, weighted by move, to a share of out."""
    low, high = out.size * turn // threads, out.size * (turn + 1) // threads
    for r in range(working.size):
        if move[r] == 0.0:
            continue
        start, end = entries(columns, working[r])
        if threads > 1:
            start, end = entries_within(columns, working[r], low, high)
        for p in range(start, end):
            i, x = entry(columns, working[r], p)
            out[i] += move[r] * x


@njit(cache=True, nogil=True)
def elastic_net(w, l1, l2):
    """(l2/2)‖w‖² + l1‖w‖₁, summed in blocks for accuracy, without a second vector or BLAS."""
    total = 0.0
    for begin in range(0, w.size, BLOCK):
        block = 0.0
        for k in range(begin, min(w.size, begin + BLOCK)):
            block += (0.5 * l2 * abs(w[k]) + l1) * abs(w[k])
        total += block
    return total


@njit(cache=True, nogil=True)
def squared_excess(v, l1):
    """Sum of the squares of what exceeds l1 in |v|."""
    total = 0.0
    for begin in range(0, v.size, BLOCK):
        block = 0.0
        for k in range(begin, min(v.size, begin + BLOCK)):
            block += max(0.0, abs(v[k]) - l1) ** 2
        total += block
    return total


@njit(cache=True, nogil=True)
def violations(gradient, w, l1, l2, out):
    """Distance of −gradient − l2 w from l1 times the subdifferential of |w|."""
    for k in range(w.size):
        slope = gradient[k] + l2 * w[k]
        if w[k] != 0.0:
            out[k] = abs(slope + math.copysign(l1, w[k]))
        else:
            out[k] = max(0.0, abs(slope) - l1)


@njit(cache=True, nogil=True)
def squares(A, out):
    """Squared norms of all rows."""
    for i in range(out.size):
        out[i] = row_square(A, i)


@njit(cache=True, nogil=True)
def decay_tables(rate, powers, sums):
    """(1 − rate)^q and 1 + (1 − rate) + … of q terms, for q = 0, 1, …"""
    power, total = 1.0, 0.0
    for q in range(powers.size):
        powers[q] = power
        sums[q] = total
        total += power
        power *= 1.0 - rate


@njit(cache=True, nogil=True)
def drifted(w, pull, q, rate, powers, sums):
    """Value of w after q steps w ← (1 − rate) w − pull."""
    if q < powers.size:
        return powers[q] * w - pull * sums[q]
    if rate == 0.0:
        return w - pull * q
    shrunk = math.expm1(q * math.log1p(-rate))
    return w + shrunk * w + pull * shrunk / rate


@njit(cache=True, nogil=True)
def advance(w, g, q, step, l1, l2, powers, sums):
    """Value of w after q steps w ← soft((1 − step l2) w − step g, step l1): just-in-time update."""
    rate = step * l2
    if l1 == 0.0:
        return drifted(w, step * g, q, rate, powers, sums)
    while q > 0:
        if w == 0.0:
            if abs(g) <= l1:
                return 0.0
            # Away from zero the sign stays, since the pull has the sign of the move.
            return drifted(0.0, step * (g - math.copysign(l1, g)), q, rate, powers, sums)
        sign = math.copysign(1.0, w)
        pull = step * (g + sign * l1)
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
        w = soft((1.0 - rate) * w - step * g, step * l1)
        q -= keeps + 1
    return w
