from functools import partial

import numpy as np
import pytest

from telic.errors import InputError
from telic.evaluate.average_precision import average_precision, precision_at
from telic.evaluate.classification import partial_auc, roc_auc
from telic.evaluate.paired import interval_of_equals
from telic.evaluate.resampled_intervals import resampled
from telic.evaluate.wilson import wilson_interval


def test_the_ends_are_percentiles_of_the_resampled_values():
    seen = []

    def measure(y, scores):
        seen.append(average_precision(y, scores))
        return seen[-1]

    y, scores = np.arange(40) % 4 == 0, np.random.default_rng(0).normal(size=40)
    value, *ends = resampled(measure, y, scores, level=0.8, resamples=50)
    *drawn, whole, worst, best = seen
    assert whole == value == average_precision(y, scores)
    assert worst == pytest.approx(np.mean(np.arange(1, 11) / np.arange(31, 41)))
    assert best == 1.0
    wilson = wilson_interval((value - worst) / (best - worst), 10, level=0.8)
    wilson = worst + (best - worst) * np.array(wilson)
    low, high = np.quantile(drawn, [0.1, 0.9])
    assert ends == pytest.approx([min(low, wilson[0]), max(high, wilson[1])], rel=1e-12)


@pytest.mark.parametrize(("positives", "distance"), [(2, 1.8), (5, 2.5), (12, 4.0)])
@pytest.mark.parametrize("measure", [average_precision, "precision", "partial"])
def test_few_positives_and_hardly_an_error_are_covered_too(measure, positives, distance):
    rng, hits, points = np.random.default_rng(1), 0, 0
    y = np.arange(12 * positives) < positives
    if measure == "precision":
        measure = partial(precision_at, k=positives)
    elif measure == "partial":
        measure = partial(partial_auc, fpr=(0.0, 0.1))

    def sample():
        return rng.standard_t(4, size=y.size) + distance * y

    true = np.mean([measure(y, sample()) for _ in range(1000)])
    for _ in range(100):
        found = resampled(measure, y, sample(), resamples=60)
        hits += found.low <= true <= found.high
        points += found.low == found.high
    assert points == 0
    assert hits >= 86  # of 100 at 95 %: fewer by chance once in 1e4; percentiles alone: 30 to 80


@pytest.mark.parametrize(
    ("measure", "rows", "positives", "negatives", "distance"),
    [
        (partial(precision_at, k=10), None, 200, 2000, 2.0),
        (lambda y, scores: precision_at(y, scores, 10), 10, 200, 2000, 2.0),
        (partial(partial_auc, fpr=(0.0, 0.01)), None, 100, 200, 2.5),
        (partial(precision_at, k=100), None, 5, 500, 3.0),
        (partial(partial_auc, fpr=(0.0, 1.0), min_tpr=0.97), None, 100, 1000, 2.5),
    ],
)
def test_measures_that_few_of_many_rows_decide_are_covered(
    measure, rows, positives, negatives, distance
):
    """By as many rows as the smaller class has, far too few of these were."""
    rng, hits = np.random.default_rng(2), 0
    y = np.arange(positives + negatives) < positives

    def sample():
        return rng.normal(size=y.size) + distance * y

    true = np.mean([measure(y, sample()) for _ in range(1000)])
    for _ in range(100):
        found = resampled(measure, y, sample(), rows=rows, resamples=60)
        hits += found.low <= true <= found.high
    assert hits >= 86


def test_a_measure_by_itself_is_one_of_its_own_defaults():
    y, scores = np.arange(300) < 100, np.random.default_rng(0).normal(size=300)
    alone, said = (
        resampled(measure, y, scores, resamples=20)
        for measure in (partial_auc, partial(partial_auc, fpr=(0.0, 0.1)))
    )
    assert alone == said


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
    assert resampled(roc_auc, y, a, a) == (0.0, *interval_of_equals(0.0, 75, (-1.0, 1.0)))
    wide = resampled(roc_auc, y, a, resamples=300, level=0.99)
    assert wide.low < alone.low < alone.high < wide.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resampled(roc_auc, [0, 1], [1, 2], level=1), "level"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], resamples=0), "resamples"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], rows=0), "rows"),
        (lambda: resampled(roc_auc, [0, 1], [1, 2], [1, 2, 3]), "one score a label"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
