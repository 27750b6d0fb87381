from functools import cache

import numpy as np
import pytest
from scipy import stats

from telic.errors import InputError
from telic.evaluate.off_policy import ips
from telic.evaluate.paired import (
    difference_interval,
    interval_of_equals,
    paired_proportions,
    paired_t_test,
)
from telic.evaluate.repeated_cv import nadeau_bengio, nadeau_bengio_interval, paired_t


def test_the_interval_covers_and_the_test_keeps_its_level():
    rng = np.random.default_rng(0)
    covered, rejected, n, rates = 0, 0, 150, (0.08, 0.08, 0.84)
    tested = cache(paired_proportions)  # few of the 2000 draws differ
    for _ in range(2000):
        only_a, only_b, _same = rng.multinomial(n, rates)
        result = tested(int(only_a), int(only_b), n)
        covered += result.low <= 0 <= result.high
        rejected += result.p_value < 0.05
    assert 0.94 <= covered / 2000 <= 0.98
    assert 0 < rejected / 2000 <= 0.05


def test_no_difference_and_no_items():
    assert paired_proportions(0, 0, 50).p_value == 1
    assert paired_proportions(0, 0, 50).difference == 0
    assert np.isnan(paired_proportions(0, 0, 0).p_value)


@pytest.mark.parametrize("users", [2, 3, 8])
@pytest.mark.parametrize(("b", "p"), [(0.2, None), (0.3, 1.0)])
def test_users_who_all_differ_equally_prove_no_more_than_their_signs(users, b, p):
    user = np.repeat(np.arange(users), np.arange(3, 3 + users))
    result = paired_t_test(np.full(len(user), 0.1) + 0.2, np.full(len(user), b), user)
    assert result.p_value == (p or 2 * 0.5**users)
    assert result.low == result.high == result.difference
    wide = paired_t_test(np.full(len(user), 0.1) + 0.2, np.full(len(user), b), user, within=(-1, 1))
    assert wide[:2] == result[:2]
    # Of users who would all but one be so in 2.5 % of cases, at the farthest that one can be.
    others = 1 - 0.025 ** (1 / users)
    ends = (1 - others) * result.difference + others * np.array([-1, 1])
    assert wide[2:] == pytest.approx(ends)


@pytest.mark.parametrize(("count", "level"), [(0, 0.95), (3, 2.0)])
def test_equals_are_counted_and_a_level_is_a_share(count, level):
    with pytest.raises(InputError, match=r"count|level"):
        interval_of_equals(0.0, count, (0.0, 1.0), level=level)


@pytest.mark.parametrize(("users", "share"), [(5, 0.9), (30, 0.98), (100, 0.995)])
def test_rare_failures_are_covered_where_none_was_seen(users, share):
    rng, hits = np.random.default_rng(0), 0
    for _ in range(400):
        right = (rng.random(users) < share).astype(float)
        found = paired_t_test(right, np.zeros(users), np.arange(users), within=(0, 1))
        hits += found.low <= share <= found.high
    assert hits >= 370


def test_a_difference_that_is_there_is_seen():
    result = paired_proportions(40, 10, 200)
    assert result.difference == pytest.approx(0.15)
    assert result.low > 0
    assert result.p_value < 1e-3


def test_the_interval_is_walds_after_half_an_item_in_each_cell():
    for only_a, only_b, n, level in ((40, 10, 200, 0.95), (3, 9, 30, 0.8), (0, 6, 12, 0.99)):
        one, other, total = (only_a + 0.5) / (n + 2), (only_b + 0.5) / (n + 2), n + 2
        error = np.sqrt((one + other - (one - other) ** 2) / total)
        half = stats.norm.interval(level)[1] * error
        found = paired_proportions(only_a, only_b, n, level=level)
        assert (found.low, found.high) == pytest.approx((one - other - half, one - other + half))


def test_the_interval_of_differences_is_that_of_the_proportions_and_within_their_range():
    for only_a, only_b, n in ((40, 10, 200), (0, 0, 12), (1, 0, 1), (0, 9, 9)):
        found = paired_proportions(only_a, only_b, n)
        differences = np.repeat([1.0, -1.0, 0.0], [only_a, only_b, n - only_a - only_b])
        assert difference_interval(differences) == pytest.approx((found.low, found.high))
        assert -1 <= found.low < found.high <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_proportions(5, 5, 3), "only_a 5, only_b 5 of total 3"),
        (lambda: paired_proportions(-1, 5, 9), "only_a -1"),
        (lambda: paired_t_test([1.0, 2.0], [0.0], [0, 1]), r"shapes \(2,\), \(1,\) and \(2,\)"),
        (lambda: difference_interval([]), "differences: shape"),
        (lambda: difference_interval([np.nan]), "differences: shape"),
        (lambda: paired_proportions(3, 1, 10, level=95), "level: 95"),
        (lambda: paired_t_test([1.0, 2.0], [0.0, 1.0], [0, 1], level=95), "level: 95"),
        (lambda: difference_interval([0.0], level=95), "level: 95"),
        (lambda: nadeau_bengio_interval([0.1, 0.2], level=95), "level: 95"),
        (lambda: ips(np.ones(2), np.ones(2), np.ones(2), np.arange(2), level=95), "level: 95"),
        (lambda: nadeau_bengio([0.1]), "differences: 1 given"),
        (lambda: nadeau_bengio_interval([]), "differences: 0 given"),
        (lambda: paired_t([0.1]), "differences: 1 given"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int8, np.float32])
def test_hits_of_any_kind_of_number_are_the_same_test(kind):
    """A difference of small or unsigned numbers, or of truth values, must not leave their range."""
    a, b, user = np.array([0, 1, 1, 0, 1]), np.array([1, 0, 0, 1, 0]), np.array([0, 1, 1, 2, 3])
    assert paired_t_test(a.astype(kind), b.astype(kind), user) == paired_t_test(a, b, user)
    if kind is np.int8:
        large = paired_t_test(100 * a.astype(kind), -100 * b.astype(kind), user)
        assert large.difference == 100


def test_the_exact_test_is_a_fair_coin_on_both_sides():
    for only_a, only_b in ((2, 8), (8, 2), (5, 5), (0, 4)):
        n = only_a + only_b
        heads = np.arange(n + 1)
        chances = stats.binom.pmf(heads, n, 0.5)
        as_odd = chances[np.abs(heads - n / 2) >= abs(only_a - n / 2)].sum()
        assert paired_proportions(only_a, only_b, 100).p_value == pytest.approx(as_odd)


def test_users_are_resampled_not_items():
    # The interval covers a mean of 0 at its level when a user's items go together.
    rng = np.random.default_rng(0)
    covered, repeats = {0.5: 0, 0.9: 0}, 600
    user = np.repeat(np.arange(8), 5)
    for _ in range(repeats):
        a = rng.normal(size=8)[user] + 0.3 * rng.normal(size=40)
        for level in covered:
            found = paired_t_test(a, np.zeros(40), user, level=level)
            covered[level] += found.low <= 0 <= found.high
    for level, inside in covered.items():
        error = np.sqrt(level * (1 - level) / repeats)
        assert inside / repeats == pytest.approx(level, abs=3.5 * error)


@pytest.mark.parametrize(
    ("a", "group", "message"),
    [
        ([], [], "hold no item"),
        (["x", "y"], [0, 1], "a: cannot be read as numbers"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), [0, 1], "a is a masked array with 1 "),
        ([1.0, 2.0], np.array(["ada", None], object), "group: labels of several kinds"),
    ],
)
def test_items_that_cannot_be_tested_are_refused(a, group, message):
    with pytest.raises(InputError, match=message):
        paired_t_test(a, np.zeros(len(a)), group)
