import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from telic.completion.engine.array_kernels import sort_once


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), max_size=60))
def test_values_are_sorted_and_stand_once(values):
    given = np.array(values, np.uint64)
    np.testing.assert_array_equal(sort_once(given.copy()), np.unique(given))


def test_many_values_are_sorted():
    values = np.random.default_rng(0).integers(0, 3000, 5000).astype(np.uint64)
    np.testing.assert_array_equal(sort_once(values.copy()), np.unique(values))
