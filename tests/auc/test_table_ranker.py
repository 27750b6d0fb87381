"""A ranker for tables: what measures it, and what is kept."""

import numpy as np
import pytest

from telic.auc.table_ranker import Labelled, Ranker, fit_measured
from telic.errors import InputError


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    positive = X[:, 0] + rng.normal(size=200) > 1
    return Labelled(X, positive, None, "yes", ["a", "b", "c"])


def test_a_ranker_is_measured_without_the_rows_held_out_and_kept_with_all(rows):
    options = {"solver": "exact", "penalty": "l2", "beta1": 0.0, "threshold": "prior"}
    ranker, positive, scores = fit_measured(rows, label=None, beta=0.1, test=0.3, **options)
    assert positive.size == scores.size == 60
    every = Ranker.fit(rows, scaling="standard", label=None, beta=0.1, random_state=0, **options)
    np.testing.assert_array_equal(ranker.coef, every.coef)
    of_all = ranker.score(rows.X)
    assert not np.isin(scores.round(9), of_all.round(9)).any()
    assert ranker.features()[0][0] == "a"
    chosen, *_ = fit_measured(rows, label=None, **options)
    assert chosen.parameters["beta"] != 0.1
    assert "beta1" not in chosen.settings()  # which plays no part with l2


def test_too_few_rows_of_a_class_are_refused(rows):
    few = Labelled(rows.X, np.arange(200) < 9, None, "yes", rows.names)
    with pytest.raises(InputError, match="fewer than ten rows"):
        fit_measured(few, label=None)
