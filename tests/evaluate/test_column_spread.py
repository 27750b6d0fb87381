"""What is constant up to rounding is no spread, whatever the column's unit and storage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from telic.evaluate import column_spread, standard_deviations
from telic.evaluate.column_spread import deviations_of_blocks


@given(
    st.integers(2, 300),
    st.floats(-300, 300).map(lambda power: 10.0**power),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.7]),
)
def test_it_is_the_standard_deviation_at_any_scale(n, scale, seed, zeros):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * (rng.random((n, 3)) >= zeros)
    X[0], X[1] = 1.0, -1.0
    for table in (X * scale, sparse.csr_array(X * scale)):
        np.testing.assert_allclose(standard_deviations(table), X.std(axis=0) * scale, rtol=1e-12)


@given(st.integers(1, 500), st.floats(1e-300, 1e300), st.sampled_from([-1.0, 1.0]))
def test_a_constant_column_has_none(n, value, sign):
    X = np.full((n, 1), sign * value)
    X[n // 2 :] *= 1 + 2e-16  # rounding, as sums in another order have it
    for table in (X, sparse.csc_matrix(X)):
        assert standard_deviations(table) == 1.0


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_columns_of_zeros_and_no_rows_have_none(form):
    assert standard_deviations(form(np.zeros((4, 2)))).tolist() == [1.0, 1.0]
    assert standard_deviations(form(np.zeros((0, 2)))).tolist() == [1.0, 1.0]


def test_entries_that_are_stored_in_parts_are_summed():
    parts = sparse.csc_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 3]), shape=(2, 1))
    assert standard_deviations(parts) == 1.0
    assert parts.nnz == 3


def test_the_ends_of_a_types_range_are_numbers_like_others():
    assert standard_deviations(np.full((5, 1), -128, np.int8)) == 1.0
    X = np.array([[-128, 0], [127, -128]], np.int8)
    np.testing.assert_allclose(standard_deviations(X), X.astype(float).std(axis=0))
    np.testing.assert_allclose(standard_deviations(np.array([[1e308], [-1e308]])), 1e308)
    np.testing.assert_allclose(standard_deviations(sparse.csr_array([[1e308], [-1e308]])), 1e308)


@pytest.mark.parametrize("kind", [float, np.float32, np.int16])
@pytest.mark.parametrize("order", "CF")
def test_columns_that_are_taken_some_at_a_time_have_the_same_spread(kind, order, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.array(30 * rng.normal(size=(50, 35)) + rng.normal(size=35), kind, order=order)
    whole = standard_deviations(X)
    monkeypatch.setattr(column_spread, "AT_ONCE", 1)
    assert standard_deviations(X).tolist() == whole.tolist()


@given(
    cuts=st.lists(st.integers(0, 40), max_size=4).map(sorted),
    scale=st.sampled_from([1e-200, 1.0, 1e200]),
    shift=st.sampled_from([0.0, 1e3]),
    seed=st.integers(0, 100),
)
def test_blocks_of_rows_are_spread_as_the_whole(cuts, scale, shift, seed):
    X = scale * (np.random.default_rng(seed).normal(size=(40, 3)) + shift)
    X[:, 2] = X[0, 2]
    found = deviations_of_blocks(np.split(X, cuts), 3)
    np.testing.assert_allclose(found, standard_deviations(X), rtol=1e-9)
    assert found[2] == 1.0
    np.testing.assert_array_equal(deviations_of_blocks([X], 3), standard_deviations(X))


def test_what_differs_between_blocks_alone_is_spread_and_no_row_is_constant():
    assert deviations_of_blocks([np.zeros((2, 1)), np.full((2, 1), 2.0)], 1).tolist() == [1.0]
    assert deviations_of_blocks([np.zeros((1, 1)), np.full((3, 1), 4.0)], 1) == np.sqrt(3)
    assert deviations_of_blocks([], 2).tolist() == [1.0, 1.0]
