"""exp, expm1, log1p and log that compiled loops run on several numbers at once.

The functions of the system's library take one number at a time, which is most of what a pass over
the losses costs. exp and log1p are within two units in the last place of the true values, expm1
within four.
"""

import numpy as np

from telic.kernels import kernel

SUMS = {"reassoc", "contract", "nsz"}
"""Floating-point freedom of loops that sum: the order of the terms is the compiler's."""
BLOCK = 1024
"""Numbers that are summed together: a sum then rounds less, and does not depend on the threads."""
_LOG2E = 1.4426950408889634
# ln 2 in two parts: a multiple of the first by a small integer is exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0
"""1.5 · 2⁵²: adding it rounds to an integer, which then is in the last bits."""


# No sums are reordered here: that would undo the rounding.
@kernel(error_model="numpy", fastmath={"contract"})
def _series_and_power(x):
    """Numbers s, r and p with exp(x) = (1 + r s) p; x below −707 counts as that."""
    # Not max(): it would lose a NaN.
    x = x if not x < -707.0 else -707.0
    shifted = x * _LOG2E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor's series: |r| is at most half of ln 2.
    p = 1.0 / 6227020800.0
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    power = np.int64((np.float64(shifted).view(np.int64) + np.int64(1023)) << np.int64(52))
    return p, r, power.view(np.float64)


@kernel(error_model="numpy", fastmath={"contract"})
def exp_negative(x):
    """exp(x) for x <= 0; 2⁻¹⁰²¹ at the least. NaN stays NaN."""
    s, r, power = _series_and_power(x)
    return (s * r + 1.0) * power


@kernel(error_model="numpy", fastmath={"contract"})
def exp(x):
    """exp(x) for any x: 2⁻¹⁰²¹ at the least, infinite above 709. NaN stays NaN."""
    # The series and the power of `exp_negative` are right up to there.
    return exp_negative(x) if not x > 709.0 else np.inf


@kernel(error_model="numpy", fastmath={"contract"})
def expm1(x):
    """exp(x) − 1 for any x, also where that is next to nothing; infinite above 709."""
    s, r, power = _series_and_power(x)
    return s * r * power + (power - 1.0) if not x > 709.0 else np.inf


@kernel(error_model="numpy", fastmath={"contract"})
def log1p_of_share(e):
    """log(1 + e) for e from 0 to 1."""
    large = e > 0.41421356237309503
    f = 0.5 * (e - 1.0) if large else e
    # log(1 + f) = 2 artanh(f / (2 + f)).
    s = f / (2.0 + f)
    q = s * s
    p = 1.0 / 21.0
    p = p * q + 1.0 / 19.0
    p = p * q + 1.0 / 17.0
    p = p * q + 1.0 / 15.0
    p = p * q + 1.0 / 13.0
    p = p * q + 1.0 / 11.0
    p = p * q + 1.0 / 9.0
    p = p * q + 1.0 / 7.0
    p = p * q + 0.2
    p = p * q + 1.0 / 3.0
    log = 2.0 * s + 2.0 * s * q * p
    return log + 0.6931471805599453 if large else log


@kernel(error_model="numpy", fastmath={"contract"})
def log(p):
    """log(p) for p from 2⁻¹⁰²² on, to 2e-16 or to two units in the last place."""
    bits = np.float64(p).view(np.int64)
    k = (bits >> np.int64(52)) - np.int64(1023)
    fraction = np.int64((bits & np.int64(4503599627370495)) | np.int64(4607182418800017408))
    return k * 0.6931471805599453 + log1p_of_share(fraction.view(np.float64) - 1.0)
