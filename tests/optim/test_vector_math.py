import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from telic.optim.vector_math import exp, exp_negative, expm1, log, log1p_of_share


@njit
def _of_all(x, e):
    """Compiled as in a kernel, where several numbers are taken at once."""
    a, b = np.empty_like(x), np.empty_like(e)
    for i in range(x.size):
        a[i], b[i] = exp_negative(x[i]), log1p_of_share(e[i])
    return a, b


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


@njit
def _both_ways(x):
    """Compiled as in a kernel."""
    a, b = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        a[i] = exp(x[i])
        b[i] = log(a[i])
    return a, b


@given(st.lists(st.floats(-700.0, 709.0), min_size=1, max_size=40))
def test_exp_and_log_of_all_sizes_are_right_to_two_units_in_the_last_place(x):
    a, b = _both_ways(np.array(x))
    np.testing.assert_allclose(a, np.exp(x), rtol=4.5e-16, atol=0)
    np.testing.assert_allclose(b, np.log(a), rtol=4.5e-16, atol=2e-16)


@njit
def _less_one(x):
    """Compiled as in a kernel."""
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = expm1(x[i])
    return out


@given(st.lists(st.floats(-800.0, 709.0) | st.floats(-1e-3, 1e-3), min_size=1, max_size=40))
def test_expm1_keeps_its_digits_near_zero(x):
    np.testing.assert_allclose(_less_one(np.array(x)), np.expm1(x), rtol=9e-16, atol=0)
    assert expm1(0.0) == 0.0
    assert expm1(709.1) == np.inf
    assert np.isnan(expm1(np.nan))


def test_exp_is_infinite_where_it_would_overflow():
    assert exp(709.1) == exp(np.inf) == np.inf
    assert 0 <= exp(-1e9) <= 1e-300
    assert np.isnan(exp(np.nan))
