"""Where the search for a Tweedie loss's prox begins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from telic.optim.tweedie_kernels import tweedie_gradient, tweedie_near_prox


@given(
    power=st.sampled_from([1.0, 1.3, 1.5, 1.9, 2.0]),
    at=st.floats(-8, 8),
    q=st.floats(1e-3, 1e3),
    y=st.one_of(st.just(0.0), st.floats(1e-3, 50.0)),
)
def test_the_bounds_hold_the_prox_and_end_at_the_target(power, at, q, y):
    if power == 2.0 and y == 0.0:
        return  # a gamma loss has no zeros
    low, high = (tweedie_near_prox(power, at, q, y, u) for u in (-np.inf, np.inf))

    def slope(u):
        return u - at + q * tweedie_gradient(power, u, y)

    found = brentq(slope, -60.0, 60.0) if slope(-60.0) < 0 < slope(60.0) else at
    room = 1e-6 * (1 + abs(found))
    assert low - room <= found <= high + room
    if y > 0.0:  # on the side of the target, the target's own bound
        assert (high if at < math.log(y) else low) == pytest.approx(math.log(y))
    inside = 0.5 * (max(low, -60.0) + min(high, 60.0))
    assert tweedie_near_prox(power, at, q, y, inside) == pytest.approx(inside)
