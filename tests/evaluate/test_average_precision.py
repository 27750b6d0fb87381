from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from telic.errors import InputError
from telic.evaluate.average_precision import average_precision, precision_at
from telic.evaluate.classification import partial_auc, roc_auc

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


def test_infinite_scores_sort_as_usual():
    y, scores = [0, 1, 0, 1], [-np.inf, -np.inf, 1.0, np.inf]
    assert partial_auc(y, scores, fpr=(0, 1)) == pytest.approx(roc_auc(y, scores))
    assert average_precision(y, scores) == pytest.approx(0.5 + 0.5 * 2 / 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: precision_at([0, 1], [1, 2], 3), "k: 3, expected a whole number of rows in 1 … 2"),
        (lambda: precision_at([0, 1], [1, 2], 0), "k: 0"),
        (lambda: precision_at([0, 1], [1, 2], 1.5), "k: 1.5, expected a whole number"),
        (lambda: precision_at([0, 1], [1, 2], "1"), "k: '1', expected a whole number"),
        (lambda: average_precision([], []), "0 positive and 0 negative rows"),
        (lambda: average_precision([0, 1], [1, np.nan]), "row 1 is NaN"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()
