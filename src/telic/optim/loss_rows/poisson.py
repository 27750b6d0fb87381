"""The loops over Poisson's losses, made for vector instructions."""

import math

import numpy as np

from telic.kernels import kernel
from telic.optim.loss_rows.shares import of_rows, rows_of_block, rows_of_turn, weigh
from telic.optim.vector_math import BLOCK, SUMS, exp, log

_NO_COUNTS = 100.0
"""Where there are no counts the intercept has no lower end: one look lowers it by so much."""


@kernel
def losses(code, shape, z, y, mass, move, step, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(z.size, block)
        sums[block] = _losses(z[i:j], y[i:j], of_rows(mass, i, j), move[i:j], step)


@kernel
def gradients(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    i, j = rows_of_turn(z.size, turn, threads)
    _gradients(z[i:j], y[i:j], out[i:j])
    weigh(out, mass, i, j)


@kernel
def curvatures(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    i, j = rows_of_turn(z.size, turn, threads)
    _curvatures(z[i:j], out[i:j])
    weigh(out, mass, i, j)


@kernel
def conjugates(code, shape, a, y, mass, scale, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(a.size, block)
        sums[block] = _conjugates(a[i:j], y[i:j], of_rows(mass, i, j), scale)


def best_shift(code: int, shape: float, z: np.ndarray, y: np.ndarray, mass: np.ndarray) -> float:
    """See `telic.optim.loss_rows`."""
    return float(_shift(z, y, mass))


@kernel(error_model="numpy", fastmath={"contract"})
def _entropy(u):
    """Compute u log u − u for u >= 0."""
    return u * log(u if u > 1e-300 else 1.0) - u


@kernel(error_model="numpy", fastmath=SUMS)
def _losses(z, y, mass, move, step):
    """Weighted sum of the losses of z + step · move."""
    total, weighted = 0.0, mass.size > 1
    for i in range(z.size):
        u = z[i] + step * move[i]
        m = mass[i] if weighted else mass[0]
        value = m * (exp(u) - y[i] * u + _entropy(y[i]))
        # A row that does not count may have an infinite loss.
        total += value if m > 0.0 else 0.0
    return total


@kernel(error_model="numpy", fastmath={"contract"})
def _gradients(z, y, out):
    """Derivatives of the losses; out may be z."""
    for i in range(z.size):
        out[i] = exp(z[i]) - y[i]


@kernel(error_model="numpy", fastmath={"contract"})
def _curvatures(z, out):
    """Second derivatives of the losses, at least 1e-12."""
    for i in range(z.size):
        bend = exp(z[i])
        out[i] = bend if not bend < 1e-12 else 1e-12


@kernel(error_model="numpy", fastmath=SUMS)
def _conjugates(a, y, mass, scale):
    """Weighted sum of the conjugates at scale · a / mass, which lies in their domain."""
    total, weighted = 0.0, mass.size > 1
    for i in range(a.size):
        m = mass[i] if weighted else mass[0]
        u = y[i] + (scale * a[i] / m if m > 0.0 else 0.0)
        total += m * (_entropy(u if u > 0.0 else 0.0) - _entropy(y[i]))
    return total


@kernel(error_model="numpy", fastmath=SUMS)
def _sums(z, y, mass, t):
    """Weighted sums of exp(z + t) and of the counts, block by block: so they round less."""
    expected, counted, weighted = 0.0, 0.0, mass.size > 1
    for begin in range(0, z.size, BLOCK):
        some, others = 0.0, 0.0
        for i in range(begin, min(z.size, begin + BLOCK)):
            m = mass[i] if weighted else mass[0]
            rate = m * exp(z[i] + t)
            some += rate if m > 0.0 else 0.0
            others += m * y[i]
        expected += some
        counted += others
    return expected, counted


@kernel(error_model="numpy")
def _shift(z, y, mass):
    """Number t for which exp(z + t) and y have the same weighted sum."""
    t = 0.0
    expected, counted = _sums(z, y, mass, t)
    if counted == 0.0:
        return -_NO_COUNTS if expected > 1e-30 else 0.0
    if not 1e-280 < expected < np.inf:
        # Not z.max(): code that calls it loads a large part of numba.
        t = -z[0]
        for i in range(1, z.size):
            t = min(t, -z[i])
        expected, counted = _sums(z, y, mass, t)
    # Closer than rounding is no move: twice would not be once.
    if abs(expected - counted) <= 4e-16 * (expected + counted):
        return t
    return t + math.log(counted / expected)
