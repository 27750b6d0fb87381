import numpy as np
import pytest
from scipy import stats

from telic.errors import InputError
from telic.evaluate.repeated_cv import (
    five_by_two_f,
    five_by_two_t,
    nadeau_bengio,
    nadeau_bengio_interval,
    paired_t,
)

D = np.array([[0.1, 0.2], [0.1, 0.3], [0.2, 0.2], [0.1, 0.2], [0.3, 0.1]])


def test_dietterich_by_hand():
    variances = [((a - (a + b) / 2) ** 2 + (b - (a + b) / 2) ** 2) for a, b in D]
    t = D[0, 0] / np.sqrt(sum(variances) / 5)
    assert five_by_two_t(D).statistic == pytest.approx(t)
    assert five_by_two_t(D).p_value == pytest.approx(2 * (1 - stats.t.cdf(t, 5)))
    f = (D**2).sum() / (2 * sum(variances))
    assert five_by_two_f(D).p_value == pytest.approx(1 - stats.f.cdf(f, 10, 5))


def test_paired_t_is_scipys():
    expected = stats.ttest_1samp(D.ravel(), 0)
    assert paired_t(D) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_the_interval_ends_where_the_test_would_no_longer_reject(share):
    for level in (0.8, 0.95):
        for end in nadeau_bengio_interval(D, test_over_train=share, level=level):
            p_value = nadeau_bengio(D - end, test_over_train=share).p_value
            assert p_value == pytest.approx(1 - level)


def test_nadeau_bengio_is_stricter_than_paired_t_by_the_factor():
    ratio = paired_t(D).statistic / nadeau_bengio(D).statistic
    assert ratio == pytest.approx(np.sqrt(1 + 10))


def test_equal_scores_are_no_difference_and_shapes_are_checked():
    for test in (five_by_two_t, five_by_two_f, nadeau_bengio, paired_t):
        assert test(np.zeros((5, 2))).p_value == 1.0
    with pytest.raises(ValueError, match=r"expected \(5, 2\)"):
        five_by_two_t(np.zeros(10))


@pytest.mark.parametrize(("train", "test"), [(50, 50), (90, 10)])
def test_nadeau_bengio_keeps_its_level_where_folds_share_their_rows(train, test):
    # Scores of resampled splits with the covariance that the correction assumes.
    rng, repeats, folds = np.random.default_rng(0), 2000, 10
    shared = (test / train) / (1 + test / train)
    noise = rng.normal(size=(repeats, folds)) * np.sqrt(1 - shared)
    scores = noise + rng.normal(size=(repeats, 1)) * np.sqrt(shared)
    rejected = [nadeau_bengio(row, test_over_train=test / train).p_value < 0.1 for row in scores]
    assert np.mean(rejected) == pytest.approx(0.1, abs=3.5 * np.sqrt(0.09 / repeats))


def test_both_five_by_two_tests_are_two_sided_and_see_the_sign():
    for check in (five_by_two_t, nadeau_bengio, paired_t):
        assert check(-D).p_value == pytest.approx(check(D).p_value)
        assert check(-D).statistic == pytest.approx(-check(D).statistic)
        assert check(np.full((5, 2), -0.5)) == (-np.inf, 0.0)
    assert five_by_two_f(-D) == pytest.approx(five_by_two_f(D))


@pytest.mark.parametrize("ratio", [-0.05, np.nan, np.inf])
def test_a_share_of_test_rows_that_cannot_be_is_refused(ratio):
    with pytest.raises(InputError, match=r"test_over_train is .*, expected a finite number >= 0"):
        nadeau_bengio([0.1, 0.2, 0.3], test_over_train=ratio)
