import numpy as np
import pytest

from telic.evaluate.paired import paired_proportions


def test_the_interval_covers_and_the_test_keeps_its_level():
    rng = np.random.default_rng(0)
    covered, rejected, n, rates = 0, 0, 150, (0.08, 0.08, 0.84)
    for _ in range(2000):
        only_a, only_b, _same = rng.multinomial(n, rates)
        result = paired_proportions(only_a, only_b, n)
        covered += result.low <= 0 <= result.high
        rejected += result.p_value < 0.05
    assert 0.94 <= covered / 2000 <= 0.98
    assert 0 < rejected / 2000 <= 0.05


def test_no_difference_and_no_items():
    assert paired_proportions(0, 0, 50).p_value == 1
    assert paired_proportions(0, 0, 50).difference == 0
    assert np.isnan(paired_proportions(0, 0, 0).p_value)


def test_a_difference_that_is_there_is_seen():
    result = paired_proportions(40, 10, 200)
    assert result.difference == pytest.approx(0.15)
    assert result.low > 0
    assert result.p_value < 1e-3
