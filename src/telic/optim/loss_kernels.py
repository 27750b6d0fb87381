"""One row's loss in compiled code, by its code: value, slope, curvature, conjugate and prox."""

import math

import numpy as np

from telic.kernels import kernel
from telic.optim.tweedie_kernels import (
    tweedie_curvature,
    tweedie_gradient,
    tweedie_near_prox,
    tweedie_value,
)


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
        return np.nan  # `loss_rows.tweedie` has it, for many rows at once
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
