"""The loops over squared losses, made for vector instructions: with sums that may be reordered."""

import numpy as np

from telic.kernels import kernel
from telic.optim.loss_rows.shares import of_rows, rows_of_block, rows_of_turn, weigh
from telic.optim.vector_math import SUMS


@kernel
def losses(code, shape, z, y, mass, move, step, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(z.size, block)
        sums[block] = _losses(z[i:j], y[i:j], of_rows(mass, i, j), move[i:j], step)


@kernel
def gradients(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    begin, end = rows_of_turn(z.size, turn, threads)
    for i in range(begin, end):
        out[i] = z[i] - y[i]
    weigh(out, mass, begin, end)


@kernel
def curvatures(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    begin, end = rows_of_turn(z.size, turn, threads)
    out[begin:end] = 1.0
    weigh(out, mass, begin, end)


@kernel
def conjugates(code, shape, a, y, mass, scale, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        i, j = rows_of_block(a.size, block)
        sums[block] = _conjugates(a[i:j], y[i:j], of_rows(mass, i, j), scale)


def best_shift(code: int, shape: float, z: np.ndarray, y: np.ndarray, mass: np.ndarray) -> float:
    """See `telic.optim.loss_rows`."""
    t = 0.0
    # One step is Newton's last; a second one takes off what rounding left of targets far from 0.
    for _ in range(2):
        slope, bend, size = _balance(z, y, mass, t)
        if abs(slope) <= 4e-16 * size:
            break
        t -= slope / bend
    return t


@kernel(fastmath=SUMS)
def _losses(z, y, mass, move, step):
    total = 0.0
    if mass.size > 1:
        for i in range(z.size):
            miss = z[i] + step * move[i] - y[i]
            total += mass[i] * (miss * miss)
        return 0.5 * total
    for i in range(z.size):
        miss = z[i] + step * move[i] - y[i]
        total += miss * miss
    return 0.5 * mass[0] * total


@kernel(error_model="numpy", fastmath=SUMS)
def _conjugates(a, y, mass, scale):
    total = 0.0
    weighted, share = mass.size > 1, mass[0]
    for i in range(a.size):
        m = mass[i] if weighted else share
        slope = scale * a[i]
        # A row without mass has no slope.
        total += slope * (0.5 * slope / m + y[i]) if m > 0.0 else 0.0
    return total


@kernel(fastmath=SUMS)
def _balance(z, y, mass, t):
    slope, bend, size = 0.0, 0.0, 0.0
    weighted, share = mass.size > 1, mass[0]
    for i in range(z.size):
        m = mass[i] if weighted else share
        g = m * (z[i] + t - y[i])
        slope += g
        size += abs(g)
        bend += m
    return slope, bend, size
