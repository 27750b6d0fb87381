"""The loops over logistic losses.

They are made for vector instructions: of one kind, without calls, and with sums that may be
reordered.
"""

from functools import partial

import numpy as np

from telic.kernels import kernel
from telic.optim.loss_rows.newton_shift import newton_shift
from telic.optim.loss_rows.shares import of_rows, rows_of_block, rows_of_turn, weigh
from telic.optim.vector_math import SUMS, exp_negative, log, log1p_of_share

FLAT = 1e-9
"""Far out the curvature is next to nothing beside the slope."""


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
    return newton_shift(partial(_balance, z, y, mass), FLAT)


@kernel(error_model="numpy", fastmath=SUMS)
def _losses(z, y, mass, move, step):
    total = 0.0
    if mass.size > 1:
        for i in range(z.size):
            margin = (z[i] + step * move[i]) * y[i]
            total += mass[i] * (
                log1p_of_share(exp_negative(-abs(margin))) - (margin if margin < 0.0 else 0.0)
            )
        return total
    for i in range(z.size):
        margin = (z[i] + step * move[i]) * y[i]
        total += log1p_of_share(exp_negative(-abs(margin))) - (margin if margin < 0.0 else 0.0)
    return mass[0] * total


@kernel(error_model="numpy", fastmath={"contract"})
def _gradients(z, y, out):
    for i in range(z.size):
        margin = z[i] * y[i]
        small = exp_negative(-abs(margin))
        large = 1.0 / (1.0 + small)
        out[i] = -y[i] * (small * large if margin > 0.0 else large)


@kernel(error_model="numpy", fastmath={"contract"})
def _curvatures(z, out):
    for i in range(z.size):
        small = exp_negative(-abs(z[i]))
        large = 1.0 / (1.0 + small)
        bend = small * large * large
        out[i] = bend if bend > 1e-12 else 1e-12


@kernel(error_model="numpy", fastmath=SUMS)
def _conjugates(a, y, mass, scale):
    total = 0.0
    weighted, share = mass.size > 1, mass[0]
    for i in range(a.size):
        m = mass[i] if weighted else share
        p = -scale * a[i] * y[i] / m if m > 0.0 else 0.0
        p = 1.0 if p > 1.0 else (p if p > 0.0 else 0.0)
        # Where a probability is nothing its logarithm is not taken.
        own, other = p if p > 1e-300 else 1.0, 1.0 - p if p < 1.0 else 1.0
        total += m * (own * log(own) + other * log(other))
    return total


@kernel(error_model="numpy", fastmath=SUMS)
def _balance(z, y, mass, t):
    slope, bend, size = 0.0, 0.0, 0.0
    share = mass[0]
    weighted = mass.size > 1
    for i in range(z.size):
        margin = (z[i] + t) * y[i]
        small = exp_negative(-abs(margin))
        large = 1.0 / (1.0 + small)
        p = small * large if margin > 0.0 else large
        m = mass[i] if weighted else share
        slope -= m * p * y[i]
        size += m * p
        bend += m * small * large * large
    return slope, bend, size
