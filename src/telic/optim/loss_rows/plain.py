"""The loops over losses that have none of their own: row by row, by the code of the loss."""

from functools import partial

import numpy as np

from telic.kernels import kernel
from telic.optim.loss_kernels import loss_conjugate, loss_curvature, loss_gradient, loss_value
from telic.optim.loss_rows.newton_shift import newton_shift
from telic.optim.loss_rows.shares import of_row, rows_of_block, rows_of_turn, weigh


@kernel
def losses(code, shape, z, y, mass, move, step, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        begin, end = rows_of_block(z.size, block)
        total = 0.0
        for i in range(begin, end):
            total += of_row(mass, i) * loss_value(code, shape, z[i] + step * move[i], y[i])
        sums[block] = total


@kernel
def gradients(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    begin, end = rows_of_turn(z.size, turn, threads)
    for i in range(begin, end):
        out[i] = loss_gradient(code, shape, z[i], y[i])
    weigh(out, mass, begin, end)


@kernel
def curvatures(code, shape, z, y, mass, out, turn, threads):
    """See `telic.optim.loss_rows`."""
    begin, end = rows_of_turn(z.size, turn, threads)
    for i in range(begin, end):
        out[i] = max(1e-12, loss_curvature(code, shape, z[i], y[i]))
    weigh(out, mass, begin, end)


@kernel
def conjugates(code, shape, a, y, mass, scale, sums, turn, threads):
    """See `telic.optim.loss_rows`."""
    for block in range(turn, sums.size, threads):
        begin, end = rows_of_block(a.size, block)
        total = 0.0
        for i in range(begin, end):
            m = of_row(mass, i)
            if m > 0:
                total += m * loss_conjugate(code, shape, scale * a[i] / m, y[i])
        sums[block] = total


def best_shift(code: int, shape: float, z: np.ndarray, y: np.ndarray, mass: np.ndarray) -> float:
    """See `telic.optim.loss_rows`."""
    return newton_shift(partial(_balance, code, shape, z, y, mass), 0.0)


@kernel
def _balance(code, shape, z, y, mass, t):
    """Sums of the weighted derivatives at z + t, of the second ones, and of the first's sizes."""
    slope, bend, size = 0.0, 0.0, 0.0
    for i in range(z.size):
        m = of_row(mass, i)
        g = m * loss_gradient(code, shape, z[i] + t, y[i])
        slope += g
        size += abs(g)
        bend += m * loss_curvature(code, shape, z[i] + t, y[i])
    return slope, bend, size
