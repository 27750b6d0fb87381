"""Losses in compiled code, by their number: values, slopes, curvatures, conjugates and proxes."""

import math

import numpy as np

from telic.kernels import kernel
from telic.optim.poisson_kernels import (
    poisson_conjugates,
    poisson_curvatures,
    poisson_gradients,
    poisson_losses,
    poisson_shift,
)
from telic.optim.tweedie_kernels import (
    tweedie_conjugates,
    tweedie_curvature,
    tweedie_curvatures,
    tweedie_gradient,
    tweedie_gradients,
    tweedie_losses,
    tweedie_near_prox,
    tweedie_shift,
    tweedie_value,
)
from telic.optim.vector_math import BLOCK, SUMS, exp_negative, log, log1p_of_share


@kernel
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
    if code == 5:
        return tweedie_value(shape, z, y)
    constant = y * math.log(y) - y if y > 0 else 0.0
    return math.exp(z) - y * z + constant


@kernel
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
    if code == 5:
        return tweedie_gradient(shape, z, y)
    return math.exp(z) - y


@kernel
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
    if code == 5:
        return tweedie_curvature(shape, z, y)
    return math.exp(z)


@kernel
def _curvature_at(code, shape, z, y, slope):
    """Second derivative where the first is known, which saves an exponential."""
    if code == 1:
        return abs(slope) * (1.0 - abs(slope))
    if code == 4:
        return slope + y
    return loss_curvature(code, shape, z, y)


@kernel
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
    if code == 5:
        return np.nan  # `conjugates` has it, for many rows at once
    u = max(0.0, a + y)
    total = u * math.log(u) - u if u > 0 else 0.0
    return total - (y * math.log(y) - y if y > 0 else 0.0)


@kernel
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
    if code == 5:
        u = tweedie_near_prox(shape, c, q, y, u)
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
        move = residual / (1.0 + q * _curvature_at(code, shape, u, y, slope))
        if not (low <= u - move <= high) or abs(move) > 0.5 * last:
            move = u - 0.5 * (low + high)
        last = abs(move)
        u -= move
        slope = loss_gradient(code, shape, u, y)
        residual = u - c + q * slope
        if abs(residual) <= left * min(1.0, last) or last <= 1e-14 * (1.0 + abs(u)):
            break
    return u, slope


@kernel
def of_row(values, i):
    """Value of row i; all rows share one where `values` holds no more."""
    return values[i] if values.size > 1 else values[0]


@kernel
def _weigh(out, mass, begin, end):
    """Multiply rows by their masses; what does not count is 0, even if it is infinite."""
    for i in range(begin, end):
        m = of_row(mass, i)
        out[i] = m * out[i] if m > 0.0 else 0.0


# The loops over the logistic losses are made for vector instructions: of one kind, without calls,
# and with sums that may be reordered.
@kernel(error_model="numpy", fastmath=SUMS)
def _logistic_losses(z, y, mass, move, step):
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
def _logistic_gradients(z, y, out):
    for i in range(z.size):
        margin = z[i] * y[i]
        small = exp_negative(-abs(margin))
        large = 1.0 / (1.0 + small)
        out[i] = -y[i] * (small * large if margin > 0.0 else large)


@kernel(error_model="numpy", fastmath={"contract"})
def _logistic_curvatures(z, out):
    for i in range(z.size):
        small = exp_negative(-abs(z[i]))
        large = 1.0 / (1.0 + small)
        bend = small * large * large
        out[i] = bend if bend > 1e-12 else 1e-12


@kernel(error_model="numpy", fastmath=SUMS)
def _logistic_conjugates(a, y, mass, scale):
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
def _logistic_balance(z, y, mass, t):
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


@kernel
def losses(code, shape, z, y, mass, move, step, sums, turn, threads):
    """Weighted sum of the losses of z + step · move in each block of rows."""
    for block in range(turn, sums.size, threads):
        begin, end = block * BLOCK, min(z.size, (block + 1) * BLOCK)
        shared = mass[begin:end] if mass.size > 1 else mass
        some = z[begin:end], y[begin:end], shared, move[begin:end]
        if code == 1:
            sums[block] = _logistic_losses(*some, step)
        elif code == 4:
            sums[block] = poisson_losses(*some, step)
        elif code == 5:
            sums[block] = tweedie_losses(shape, *some, step)
        else:
            total = 0.0
            for i in range(begin, end):
                total += of_row(mass, i) * loss_value(code, shape, z[i] + step * move[i], y[i])
            sums[block] = total


@kernel
def gradients(code, shape, z, y, mass, out, turn, threads):
    """Weighted derivatives of the losses; out may be z."""
    begin, end = z.size * turn // threads, z.size * (turn + 1) // threads
    if code == 1:
        _logistic_gradients(z[begin:end], y[begin:end], out[begin:end])
    elif code == 4:
        poisson_gradients(z[begin:end], y[begin:end], out[begin:end])
    elif code == 5:
        tweedie_gradients(shape, z[begin:end], y[begin:end], out[begin:end])
    else:
        for i in range(begin, end):
            out[i] = loss_gradient(code, shape, z[i], y[i])
    _weigh(out, mass, begin, end)


@kernel
def curvatures(code, shape, z, y, mass, out, turn, threads):
    """Weighted second derivatives; at least 1e-12, since a flat model would be unbounded."""
    begin, end = z.size * turn // threads, z.size * (turn + 1) // threads
    if code == 1:
        _logistic_curvatures(z[begin:end], out[begin:end])
    elif code == 4:
        poisson_curvatures(z[begin:end], out[begin:end])
    elif code == 5:
        tweedie_curvatures(shape, z[begin:end], y[begin:end], out[begin:end])
    else:
        for i in range(begin, end):
            out[i] = max(1e-12, loss_curvature(code, shape, z[i], y[i]))
    _weigh(out, mass, begin, end)


@kernel
def conjugates(code, shape, a, y, mass, scale, sums, turn, threads):
    """Weighted sum of the conjugates at scale · a / mass (a holds weighted derivatives)."""
    for block in range(turn, sums.size, threads):
        begin, end = block * BLOCK, min(a.size, (block + 1) * BLOCK)
        shared = mass[begin:end] if mass.size > 1 else mass
        if code == 1:
            sums[block] = _logistic_conjugates(a[begin:end], y[begin:end], shared, scale)
        elif code == 4:
            sums[block] = poisson_conjugates(a[begin:end], y[begin:end], shared, scale)
        elif code == 5:
            sums[block] = tweedie_conjugates(shape, a[begin:end], y[begin:end], shared, scale)
        else:
            total = 0.0
            for i in range(begin, end):
                m = of_row(mass, i)
                if m > 0:
                    total += m * loss_conjugate(code, shape, scale * a[i] / m, y[i])
            sums[block] = total


@kernel
def _balance(code, shape, z, y, mass, t):
    """Sums of the weighted derivatives at z + t, of the second ones, and of the first's sizes."""
    if code == 1:
        return _logistic_balance(z, y, mass, t)
    slope, bend, size = 0.0, 0.0, 0.0
    for i in range(z.size):
        m = of_row(mass, i)
        g = m * loss_gradient(code, shape, z[i] + t, y[i])
        slope += g
        size += abs(g)
        bend += m * loss_curvature(code, shape, z[i] + t, y[i])
    return slope, bend, size


@kernel
def intercept_shift(code, shape, z, y, mass):
    """Number t that minimises the weighted loss of z + t: safeguarded Newton."""
    if code == 4:
        return poisson_shift(z, y, mass)
    if code == 5:
        return tweedie_shift(shape, z, y, mass)
    low, high, t = -np.inf, np.inf, 0.0
    for k in range(100):
        slope, bend, size = _balance(code, shape, z, y, mass, t)
        # An overflow is no balance.
        if abs(slope) <= 4e-16 * size < np.inf:
            return t
        if slope > 0:
            high = t
        else:
            low = t
        # Far out the logistic curvature is next to nothing: by it a move has no end.
        lost = bend <= (1e-9 * size if code == 1 else 1e-300)
        following = t - (math.copysign(np.inf, slope) if lost else slope / bend)
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
