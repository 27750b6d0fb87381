import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from telic.optim.vector_math import exp_negative, log1p_of_share


@njit
def _of_all(x, e):
    """Compiled as in a kernel, where several numbers are taken at once."""
    a, b = np.empty_like(x), np.empty_like(e)
    for i in range(x.size):
        a[i], b[i] = exp_negative(x[i]), log1p_of_share(e[i])
    return a, b


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 700.0), min_size=1, max_size=40))
def test_both_are_right_to_two_units_in_the_last_place(sizes):
    x = -np.array(sizes)
    e = np.exp(x)
    a, b = _of_all(x, e)
    np.testing.assert_allclose(a, e, rtol=4.5e-16, atol=0)
    np.testing.assert_allclose(b, np.log1p(e), rtol=4.5e-16, atol=0)


def test_far_out_it_is_nothing_and_nan_stays_nan():
    assert 0 <= exp_negative(-np.inf) <= 1e-300
    assert 0 <= exp_negative(-1e9) <= 1e-300
    assert np.isnan(exp_negative(np.nan))
