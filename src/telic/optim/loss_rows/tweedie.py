"""The loops over Tweedie's losses, made for vector instructions: see `telic.optim.tweedie_kernels`.

The shape is the power, k = power − 1 and c = 2 − power.
"""

import math

import numpy as np

from telic.kernels import kernel
from telic.optim.loss_rows.shares import of_rows, rows_of_block, rows_of_turn, weigh
from telic.optim.tweedie_kernels import tweedie_curvature, tweedie_gradient, tweedie_value
from telic.optim.vector_math import BLOCK, SUMS, exp, expm1, log

_NOTHING = 100.0
"""Where all targets are 0 the intercept has no lower end: one look lowers it by so much."""


@kernel
def losses(code, power, z, y, mass, move, step, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(z.size, block)
        sums[block] = _losses(power, z[i:j], y[i:j], of_rows(mass, i, j), move[i:j], step)


@kernel
def gradients(code, power, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    i, j = rows_of_turn(z.size, turn, threads)
    _gradients(power, z[i:j], y[i:j], out[i:j])
    weigh(out, mass, i, j)


@kernel
def curvatures(code, power, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    i, j = rows_of_turn(z.size, turn, threads)
    _curvatures(power, z[i:j], y[i:j], out[i:j])
    weigh(out, mass, i, j)


@kernel
def conjugates(code, power, a, y, mass, scale, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(a.size, block)
        sums[block] = _conjugates(power, a[i:j], y[i:j], of_rows(mass, i, j), scale)


def best_shift(code: int, power: float, z: np.ndarray, y: np.ndarray, mass: np.ndarray) -> float:
    """See `telic.optim.loss_rows`."""
    return float(_shift(power, z, y, mass))


@kernel(error_model="numpy", fastmath=SUMS)
def _losses(power, z, y, mass, move, step):
    """Weighted sum of the losses of z + step · move."""
    total, weighted = 0.0, mass.size > 1
    for i in range(z.size):
        m = mass[i] if weighted else mass[0]
        value = m * tweedie_value(power, z[i] + step * move[i], y[i])
        total += value if m > 0.0 else 0.0
    return total


@kernel(error_model="numpy", fastmath={"contract"})
def _gradients(power, z, y, out):
    """Derivatives of the losses; out may be z."""
    for i in range(z.size):
        out[i] = tweedie_gradient(power, z[i], y[i])


@kernel(error_model="numpy", fastmath={"contract"})
def _curvatures(power, z, y, out):
    """Second derivatives of the losses, at least 1e-12."""
    for i in range(z.size):
        bend = tweedie_curvature(power, z[i], y[i])
        out[i] = bend if not bend < 1e-12 else 1e-12


@kernel(error_model="numpy", fastmath=SUMS)
def _conjugates(power, a, y, mass, scale):
    """Weighted sum of the conjugates at scale · a / mass, which lies in their domain.

    That of slope s = exp(c t) − exp(−k t) is s z less the loss there. An error of t, found by
    Newton, enters squared.
    """
    k, c = power - 1.0, 2.0 - power
    total, weighted = 0.0, mass.size > 1
    level, slope = np.empty(a.size), np.empty(a.size)
    for i in range(a.size):
        m = mass[i] if weighted else mass[0]
        level[i] = log(y[i] if y[i] > 0.0 else 1.0)
        slope[i] = (scale * a[i] / m if m > 0.0 else 0.0) * exp(-c * level[i])
    if c == 0.0:
        for i in range(a.size):
            m = mass[i] if weighted else mass[0]
            left = 1.0 - slope[i]
            own = left * log(left) if left > 1e-300 else 0.0
            total += m * (slope[i] * level[i] + slope[i] + own)
        return total
    t = _roots(slope, c, k)
    for i in range(a.size):
        m = mass[i] if weighted else mass[0]
        s = slope[i]
        own = s * t[i] - expm1(-k * t[i]) / k - expm1(c * t[i]) / c
        without = s * (log(s if s > 1e-300 else 1.0) - 1.0) / c
        total += m * exp(c * level[i]) * (s * level[i] + (own if y[i] > 0.0 else without))
    return total


@kernel(error_model="numpy", fastmath=SUMS)
def _roots(slope, c, k):
    """Solve exp(c t) − exp(−k t) = slope, by Newton on c t = log(slope + exp(−k t)).

    Where the slope is negative c and k change places, and t its sign. The first guess is right for
    c = k. The difference of the two sides is concave: from the first step on Newton only climbs.
    """
    size = np.empty(slope.size)
    for i in range(slope.size):
        half = 0.5 * abs(slope[i])
        size[i] = 2.0 * log(half + math.sqrt(1.0 + half * half))
    for _ in range(50):
        moved = 0.0
        for i in range(slope.size):
            up, down = (c, k) if slope[i] > 0.0 else (k, c)
            rest = exp(-down * size[i])
            both = abs(slope[i]) + rest
            step = (log(both) - up * size[i]) / (up + down * rest / both)
            size[i] += step
            moved += step * step / (1.0 + size[i] * size[i])
        if not moved > 1e-16:
            break
    for i in range(slope.size):
        size[i] = size[i] if slope[i] > 0.0 else -size[i]
    return size


@kernel(error_model="numpy", fastmath=SUMS)
def _sums(power, z, y, mass, high, low):
    """Weighted sums of exp(c (z − high)) and y exp(k (low − z)), by blocks: so they round less."""
    rising, falling, weighted = 0.0, 0.0, mass.size > 1
    for begin in range(0, z.size, BLOCK):
        up, down = 0.0, 0.0
        for i in range(begin, min(z.size, begin + BLOCK)):
            m = mass[i] if weighted else mass[0]
            # Rows that do not count may lie beyond the ends.
            up += m * exp((2.0 - power) * min(z[i] - high, 0.0))
            down += m * y[i] * exp((power - 1.0) * min(low - z[i], 0.0))
        rising += up
        falling += down
    return rising, falling


@kernel(error_model="numpy")
def _shift(power, z, y, mass):
    """Number t for which exp(c (z + t)) and y exp(−k (z + t)) have the same weighted sum."""
    high, low = -np.inf, np.inf
    for i in range(z.size):
        if mass[i if mass.size > 1 else 0] > 0.0:
            high = max(high, z[i])
            low = min(low, z[i]) if y[i] > 0.0 else low
    if low == np.inf:
        return -_NOTHING if (2.0 - power) * high > math.log(1e-30) else 0.0
    # Differences from the extremes neither overflow nor vanish.
    rising, falling = _sums(power, z, y, mass, high, low)
    t = math.log(falling / rising) - (power - 1.0) * low - (2.0 - power) * high
    # Closer than rounding is no move: twice would not be once.
    return t if abs(t) > 1e-15 * (1.0 + abs(high) + abs(low)) else 0.0
