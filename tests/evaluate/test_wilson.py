import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from telic.errors import InputError
from telic.evaluate import wilson_interval


@given(st.integers(1, 300), st.data(), st.sampled_from([0.5, 0.95, 0.999]))
def test_it_is_scipys_and_has_width_at_the_ends(n, data, level):
    hits = data.draw(st.integers(0, n))
    expected = binomtest(hits, n).proportion_ci(level, method="wilson")
    low, high = wilson_interval(hits / n, n, level=level)
    assert (low, high) == pytest.approx(tuple(expected), abs=1e-12)
    assert 0 <= low <= hits / n <= high <= 1
    assert low < high


def test_rounding_leaves_the_share_inside():
    assert wilson_interval(1.0, 33_331)[1] == 1.0
    assert wilson_interval(0.0, 33_331)[0] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson_interval(0.5, 0), r"share 0.5 of 0: expected 0 to 1, of one item"),
        (lambda: wilson_interval(1.5, 3), "share 1.5"),
        (lambda: wilson_interval(float("nan"), 3), "share nan"),
        (lambda: wilson_interval(0.5, 3, level=95), "level: 95, expected a number between 0 and 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
