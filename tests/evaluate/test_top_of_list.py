from functools import partial
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from telic.errors import InputError
from telic.evaluate.classification import partial_auc, roc_auc
from telic.evaluate.top_of_list import average_precision, precision_at, resampled

ROWS = st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=25).filter(
    lambda rows: len({row[0] for row in rows}) == 2
)


def columns(rows):
    return (np.array(column) for column in zip(*rows, strict=True))


@given(ROWS)
@settings(max_examples=60)
def test_average_precision_is_scikit_learns(rows):
    y, scores = columns(rows)
    assert average_precision(y, scores) == pytest.approx(average_precision_score(y, scores))


@given(ROWS.filter(lambda rows: len(rows) <= 6), st.data())
@settings(max_examples=40)
def test_precision_at_k_is_the_mean_over_all_orders_of_ties(rows, data):
    y, scores = columns(rows)
    k = data.draw(st.integers(1, len(y)))
    orders = [list(one) for one in permutations(range(len(y)))]
    falling = [one for one in orders if (np.diff(scores[one]) <= 0).all()]
    expected = np.mean([y[one][:k].mean() for one in falling])
    assert precision_at(y, scores, k) == pytest.approx(expected)


@given(ROWS)
@settings(max_examples=60)
def test_the_two_way_partial_auc_is_that_of_the_lowest_positives_and_highest_negatives(rows):
    y, scores = columns(rows)
    ranks = np.argsort(np.argsort(scores, kind="stable"))  # no ties, which a range would cut
    positives, negatives = np.sort(ranks[y]), np.sort(ranks[~y])[::-1]
    kept = (1 + len(positives)) // 2, (1 + len(negatives)) // 2
    share = np.mean(positives[: kept[0], None] > negatives[: kept[1]])
    fpr, least = (0, kept[1] / len(negatives)), 1 - kept[0] / len(positives)
    assert partial_auc(y, ranks, fpr=fpr, min_tpr=least) == pytest.approx(share)
    assert partial_auc(y, scores, fpr=(0, 1), min_tpr=0) == pytest.approx(roc_auc(y, scores))


def test_infinite_scores_sort_as_usual():
    y, scores = [0, 1, 0, 1], [-np.inf, -np.inf, 1.0, np.inf]
    assert partial_auc(y, scores, fpr=(0, 1)) == pytest.approx(roc_auc(y, scores))
    assert average_precision(y, scores) == pytest.approx(0.5 + 0.5 * 2 / 4)


def test_the_ends_are_percentiles_of_the_resampled_values():
    seen = []

    def measure(y, scores):
        seen.append(average_precision(y, scores))
        return seen[-1]

    y, scores = np.arange(40) % 4 == 0, np.random.default_rng(0).normal(size=40)
    value, *ends = resampled(measure, y, scores, level=0.8, resamples=50)
    assert seen[-1] == value == average_precision(y, scores)
    assert ends == pytest.approx(np.quantile(seen[:-1], [0.1, 0.9]), rel=1e-12)


@pytest.mark.parametrize("measure", [average_precision, partial(precision_at, k=40)])
def test_intervals_cover_the_value_of_a_much_larger_sample(measure):
    rng, hits = np.random.default_rng(0), 0

    def sample(n):
        y = np.arange(n) % 5 == 0
        return y, rng.normal(size=n) + 1.5 * y

    share = 1000 if measure is average_precision else 1
    true = np.mean([measure(*sample(400 * share)) for _ in range(1 if share > 1 else 2000)])
    for seed in range(60):
        found = resampled(measure, *sample(400), resamples=100, seed=seed)
        hits += found.low <= true <= found.high
    assert hits >= 50  # of 60 at 95 %: fewer than 50 by chance once in 1e5


def test_a_difference_is_that_of_the_same_rows():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 4 == 0
    a = rng.normal(size=300) + y
    b = a + 0.1 * rng.normal(size=300)
    value, low, high = resampled(roc_auc, y, a, b, resamples=300)
    assert value == roc_auc(y, a) - roc_auc(y, b)
    alone = resampled(roc_auc, y, a, resamples=300)
    assert high - low < 0.4 * (alone.high - alone.low)  # what both share takes no part
    assert resampled(roc_auc, y, a, a) == (0.0, 0.0, 0.0)
    wide = resampled(roc_auc, y, a, resamples=300, level=0.99)
    assert wide.low < alone.low < alone.high < wide.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: precision_at([0, 1], [1, 2], 3), "k: 3, expected a number of rows in 1 … 2"),
        (lambda: precision_at([0, 1], [1, 2], 0), "k: 0"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], level=1), "level"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], resamples=0), "resamples"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], [1, 2, 3]), "one score a label"),
        (lambda: average_precision([0, 1], [1, np.nan]), "row 1 is NaN"),
        (lambda: partial_auc([0, 1], [1, 2], min_tpr=1), "min_tpr: 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
