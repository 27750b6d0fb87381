"""Every estimator takes what users hold: data frames, series, arrays of other libraries."""

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import has_fit_parameter

import telic.auc
import telic.optim
import telic.optim.admm

SMALL = {"random_state": 0, "Cs": 2, "alphas": 2, "cv": 2}
ESTIMATORS = [
    estimator().set_params(**{k: v for k, v in SMALL.items() if k in estimator().get_params()})
    for room in (telic.auc, telic.optim, telic.optim.admm)
    for name in room.__all__
    if isinstance(estimator := getattr(room, name), type) and issubclass(estimator, BaseEstimator)
    if name != "TrendFilter"  # of a series: it has one feature, and order is what it is about
]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)

RNG = np.random.default_rng(0)
N = 60
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(-2, 3, N),  # decades from the mean: every solver converges soon
        "income": RNG.normal(size=N),
        "insured": RNG.random(N) < 0.4,
        "visits": pd.array(RNG.poisson(2, N), dtype="Int64"),
        "score": RNG.normal(size=N).astype("float32"),
    },
    index=RNG.permutation(N) + 1000,
)
X = FRAME.to_numpy(dtype=float)
SCORE = FRAME["income"] + FRAME["insured"] + RNG.normal(size=N)


POSITIVE = SCORE.to_numpy() > np.quantile(SCORE, 0.65)


def target(estimator):
    return POSITIVE if is_classifier(estimator) else SCORE.to_numpy()


def predicted(estimator, X):
    answers = [estimator.predict(X)]
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            answers.append(getattr(estimator, method)(X))
    return np.column_stack(answers).astype(float)


def test_the_list_is_whole():
    assert len(ESTIMATORS) >= 19


@every_estimator
def test_a_frame_is_the_array_that_it_holds(estimator):
    y = target(estimator)
    plain = clone(estimator).fit(X, y)
    fitted = clone(estimator).fit(FRAME, y)
    assert fitted.feature_names_in_.tolist() == list(FRAME)
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(predicted(fitted, FRAME), predicted(plain, X))
    with pytest.raises(ValueError, match="same order"):
        fitted.predict(FRAME[list(FRAME)[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        fitted.predict(FRAME.rename(columns={"age": "years"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)


@every_estimator
def test_rows_go_by_place_whatever_their_index_says(estimator):
    y = target(estimator)
    weights = {}
    if has_fit_parameter(estimator, "sample_weight"):
        weights = {"sample_weight": 1.0 + np.arange(N) % 3}
    plain = clone(estimator).fit(X, y, **weights)
    # Another order of the same labels: whoever aligned by label would shuffle rows.
    index = FRAME.index[::-1]
    fitted = clone(estimator).fit(
        FRAME,
        pd.Series(y, index=index),
        **{name: pd.Series(weight, index=index) for name, weight in weights.items()},
    )
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)


@every_estimator
def test_sparse_frames_and_arrays_of_other_libraries_are_taken(estimator):
    y = target(estimator)
    plain = clone(estimator).fit(sparse.csr_matrix(X), y)
    frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=list(FRAME))
    np.testing.assert_allclose(clone(estimator).fit(frame, y).coef_, plain.coef_, rtol=1e-9)
    plain, strict = clone(estimator).fit(X, y), array_api_strict.asarray(X)
    fitted = clone(estimator).fit(strict, array_api_strict.asarray(y))
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(predicted(fitted, strict), predicted(plain, X))


@pytest.mark.parametrize("kind", ["category", "string", "object", "boolean"])
@pytest.mark.parametrize(
    "estimator", [e for e in ESTIMATORS if is_classifier(e)], ids=lambda e: type(e).__name__
)
def test_labels_of_any_column_type(estimator, kind):
    positive = target(estimator)
    y = pd.Series(positive) if kind == "boolean" else pd.Series(np.where(positive, "yes", "no"))
    fitted = clone(estimator).fit(FRAME, y.astype(kind))
    assert fitted.classes_.tolist() == ([False, True] if kind == "boolean" else ["no", "yes"])
    plain = clone(estimator).fit(X, positive)
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.predict(FRAME) == fitted.classes_[1], plain.predict(X))


@every_estimator
def test_a_column_of_text_and_a_missing_value_are_refused(estimator):
    y = target(estimator)
    with pytest.raises(ValueError, match="could not convert string"):
        clone(estimator).fit(FRAME.assign(age="old"), y)
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(FRAME.assign(visits=pd.array([None] * N, dtype="Int64")), y)


@pytest.mark.parametrize(
    "estimator",
    [e for e in ESTIMATORS if hasattr(e, "partial_fit")],
    ids=lambda e: type(e).__name__,
)
def test_a_stream_of_frames(estimator):
    y = target(estimator)
    plain, fitted = clone(estimator), clone(estimator)
    for rows in (slice(0, 30), slice(30, N)):
        plain.partial_fit(X[rows], y[rows], classes=[False, True])
        fitted.partial_fit(FRAME[rows], y[rows], classes=[False, True])
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    with pytest.raises(ValueError, match="same order"):
        fitted.partial_fit(FRAME[list(FRAME)[::-1]], y)
