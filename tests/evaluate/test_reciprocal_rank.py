import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from telic.evaluate import mean_reciprocal_rank, paired_t_test, reciprocal_ranks, success_rate


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
def test_reciprocal_rank_by_sorting(scores, data):
    wanted = data.draw(st.integers(0, len(scores) - 1))
    ranking = sorted(range(len(scores)), key=lambda i: -scores[i])  # stable: ties keep their order
    found = reciprocal_ranks(np.array([scores], float), np.array([wanted]))
    assert found[0] == 1 / (1 + ranking.index(wanted))


def test_what_is_not_listed_counts_zero():
    scores = np.array([[1.0, 2.0], [1.0, -np.inf]])
    np.testing.assert_array_equal(reciprocal_ranks(scores, np.array([-1, 1])), [0, 0])


def test_mrr_and_success_rate():
    reciprocal = np.array([1, 1 / 2, 1 / 3, 0])
    assert mean_reciprocal_rank(reciprocal) == (1 + 1 / 2 + 1 / 3) / 4
    assert [success_rate(reciprocal, k) for k in (1, 2, 3)] == [0.25, 0.5, 0.75]


def test_paired_test_takes_users_as_the_unit():
    rng = np.random.default_rng(0)
    a, b, user = rng.normal(0.1, 1, 60), rng.normal(size=60), np.repeat(np.arange(12), 5)
    means = [(a - b)[user == u].mean() for u in range(12)]
    expected = stats.ttest_1samp(means, 0)
    found = paired_t_test(a, b, user)
    np.testing.assert_allclose(found.p_value, expected.pvalue)
    np.testing.assert_allclose(found[2:], expected.confidence_interval())


def test_paired_test_of_nothing():
    same = np.ones(4)
    assert paired_t_test(same, same, np.array([0, 0, 1, 1])).p_value == 1.0
    assert np.isnan(paired_t_test(same, 0 * same, np.zeros(4, int)).p_value)
