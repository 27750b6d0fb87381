"""Tweedie's loss of one row, of which Gamma's is one.

With k = power − 1, c = 2 − power and t = z − log y it is
y^c ((exp(−k t) − 1)/k + (exp(c t) − 1)/c), where the last part is t if c = 0. Its derivative is
exp(c z) − y exp(−k z).
"""

import math

import numpy as np

from telic.kernels import kernel
from telic.optim.vector_math import exp, expm1, log


# In loops over rows a call would keep numbers from being taken several at once, and so would a
# choice of which only one side is computed.
@kernel(error_model="numpy", fastmath={"contract"}, inline="always")
def tweedie_value(power, z, y):
    """Loss of one prediction."""
    k, c = power - 1.0, 2.0 - power
    level = log(y if y > 0.0 else 1.0)
    t = z - level
    fall = expm1(-k * (t if y > 0.0 else 0.0)) / k
    rise = expm1(c * t) / (c if c > 0.0 else 1.0)
    share = exp(c * level)
    return share * ((fall if y > 0.0 else 1.0 / c) + (rise if c > 0.0 else t))


@kernel(error_model="numpy", fastmath={"contract"}, inline="always")
def tweedie_gradient(power, z, y):
    """Derivative of the loss."""
    return exp((2.0 - power) * z) - y * exp((1.0 - power) * (z if y > 0.0 else 0.0))


@kernel(error_model="numpy", fastmath={"contract"}, inline="always")
def tweedie_curvature(power, z, y):
    """Second derivative of the loss."""
    k, c = power - 1.0, 2.0 - power
    return c * exp(c * z) + k * y * exp(-k * (z if y > 0.0 else 0.0))


@kernel(error_model="numpy")
def tweedie_near_prox(power, at, q, y, u):
    """Return the point closest to u between bounds of argmin (u − at)²/2 + q loss(u, y).

    It lies between `at` and log y, and the exponential that grows towards `at`, times q, is at
    most the distance of the two and what it is at log y. So it does not overflow there.
    """
    k, c = power - 1.0, 2.0 - power
    level = math.log(y) if y > 0.0 else 0.0
    far = math.log1p(abs(at - level) / (q * math.exp(c * level)))
    if at < level and y > 0.0:
        return min(level, max(u, level - far / k))
    return min(max(u, level if y > 0.0 else -np.inf), level + far / c if c > 0.0 else at)
