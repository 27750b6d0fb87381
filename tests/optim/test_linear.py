import pickle
from functools import partial

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from telic.errors import InputError
from telic.optim import (
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
    Tweedie,
    minimize,
)
from telic.optim.losses import as_loss


@parametrize_with_checks(
    [
        ElasticNetClassifier(),
        ElasticNetRegressor(),
        ElasticNetClassifierCV(Cs=2, cv=2),
        ElasticNetRegressorCV(alphas=3, cv=2),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), np.where(y == 1, "benign", "malignant")


@pytest.mark.parametrize("class_weight", [None, "balanced", {"benign": 3.0, "malignant": 1.0}])
def test_the_classifier_is_saga_by_another_import(cancer, class_weight):
    X, y = cancer
    weight = np.random.default_rng(0).random(y.size)
    settings = {"C": 0.1, "l1_ratio": 0.3, "solver": "saga", "tol": 1e-10, "max_iter": 20_000}
    ours = ElasticNetClassifier(class_weight=class_weight, random_state=0, **settings)
    theirs = LogisticRegression(class_weight=class_weight, random_state=0, **settings)
    ours.fit(X, y, sample_weight=weight)
    theirs.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_the_regressor_is_scikit_learns_elastic_net_and_its_poisson_regressor(make_data):
    X, y = make_data("squared")
    theirs = ElasticNet(alpha=0.05, l1_ratio=0.6, tol=1e-12).fit(X, y)
    for matrix in (X, sparse.csr_matrix(X)):
        ours = ElasticNetRegressor(alpha=0.05, l1_ratio=0.6, tol=1e-12).fit(matrix, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
        np.testing.assert_allclose(ours.predict(matrix), theirs.predict(X), atol=1e-6)
    X, y = make_data("poisson")
    theirs = PoissonRegressor(alpha=0.1, tol=1e-12, max_iter=1000).fit(X, y)
    ours = ElasticNetRegressor(alpha=0.1, l1_ratio=0.0, loss="poisson", tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "theirs"),
    [
        ("gamma", GammaRegressor),
        ("tweedie", partial(TweedieRegressor, power=1.5, link="log")),
        (Tweedie(1.9), partial(TweedieRegressor, power=1.9, link="log")),
    ],
)
def test_log_links_are_scikit_learns_and_their_exposures_weights(make_data, loss, theirs):
    X, y = make_data("gamma" if loss == "gamma" else "tweedie")
    weight = np.random.default_rng(1).uniform(0.1, 5.0, y.size)
    rival = theirs(alpha=0.1, tol=1e-9, solver="newton-cholesky").fit(X, y, weight)
    ours = ElasticNetRegressor(0.1, l1_ratio=0.0, loss=loss, tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), rival.predict(X), rtol=1e-5)
    assert ours.score(X, y, weight) == pytest.approx(rival.score(X, y, weight), abs=1e-6)
    # A known factor of the target: what is left of it, by weight, has the same deviance.
    factor = np.random.default_rng(2).uniform(0.2, 5.0, y.size)
    shares = factor ** (2.0 - as_loss(loss).power)
    rival.fit(X, y / factor, shares)
    ours = ElasticNetRegressor(0.1 * shares.mean(), l1_ratio=0.0, loss=loss, tol=1e-12)
    ours.fit(X, y, offset=np.log(factor))
    np.testing.assert_allclose(ours.predict(X, np.log(factor)), rival.predict(X) * factor, 1e-5)
    expected = rival.score(X, y / factor, shares)
    assert ours.score(X, y, offset=np.log(factor)) == pytest.approx(expected, abs=1e-6)
    path = ElasticNetRegressorCV(loss=loss, alphas=5, cv=3).fit(X, y)
    assert path.score(X, y) > 0.05
    assert np.isnan(ours.score(X, np.ones_like(y)))


def test_huber_resists_what_squared_loss_follows(make_data):
    X, y = make_data("squared")
    spoilt = y.copy()
    spoilt[:5] += 1000.0
    clean = ElasticNetRegressor(alpha=0.01).fit(X, y).coef_
    robust = ElasticNetRegressor(alpha=0.01, loss="huber").fit(X, spoilt).coef_
    followed = ElasticNetRegressor(alpha=0.01).fit(X, spoilt).coef_
    assert np.linalg.norm(robust - clean) < 0.5 < np.linalg.norm(followed - clean)


def test_penalties_by_name_and_without_any(cancer):
    X, y = cancer
    by_name = ElasticNetClassifier("l1", C=0.1).fit(X, y).coef_
    np.testing.assert_array_equal(
        by_name, ElasticNetClassifier(C=0.1, l1_ratio=1.0).fit(X, y).coef_
    )
    free = ElasticNetClassifier(None, tol=1e-8).fit(X[:, :3], y)
    assert np.isnan(free.gap_).all()
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X[:, :3], y)
    np.testing.assert_allclose(free.coef_, theirs.coef_, rtol=1e-4)
    with pytest.raises(InputError, match="penalty is 'l3'"):
        ElasticNetClassifier("l3").fit(X, y)
    ridge = ElasticNetClassifier("l2", C=0.1, l1_ratio=None).fit(X, y).coef_
    np.testing.assert_array_equal(ridge, ElasticNetClassifier(C=0.1, l1_ratio=0).fit(X, y).coef_)
    for wrong, said in (({"C": "1"}, "C is '1'"), ({"l1_ratio": None}, "l1_ratio is None")):
        with pytest.raises(InputError, match=said):
            ElasticNetClassifier(**wrong).fit(X, y)
    for alpha in (-1.0, np.nan, None):
        with pytest.raises(InputError, match="alpha is"):
            ElasticNetRegressor(alpha).fit(X, X[:, 0])
    with pytest.raises(InputError, match="C is 0"):
        ElasticNetClassifier(C=0).fit(X, y)
    with pytest.raises(InputError, match="l1_ratio is 2"):
        ElasticNetRegressor(l1_ratio=2).fit(X, X[:, 0])
    with pytest.raises(InputError, match="loss is 'logistic'"):
        ElasticNetRegressor(loss="logistic").fit(X, X[:, 0])
    for model in (ElasticNetClassifier, ElasticNetClassifierCV):
        with pytest.raises(InputError, match="loss is 'squared', expected 'logistic' or"):
            model(loss="squared").fit(X, y)
    for ratios in (2.0, [0.5, -0.1], [], "all", [np.nan]):
        with pytest.raises(InputError, match=r"l1_ratio is .*, expected numbers from 0 to 1"):
            ElasticNetRegressorCV(l1_ratio=ratios).fit(X, X[:, 0])
    for eps in (0.0, 1.0, "small"):
        with pytest.raises(InputError, match=r"eps is .*, expected a number between 0 and 1"):
            ElasticNetRegressorCV(alphas=5, eps=eps).fit(X, X[:, 0])


def test_several_classes_and_squared_hinge():
    X, y = load_iris(return_X_y=True)
    model = ElasticNetClassifier(C=10.0).fit(X, y)
    assert model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9
    hinge = ElasticNetClassifier(loss="squared_hinge").fit(X, y)
    assert hinge.score(X, y) > 0.9
    assert not hasattr(hinge, "predict_proba")


def test_warm_start_pickle_pipeline_and_grid_search(cancer):
    X, y = cancer
    model = ElasticNetClassifier(C=0.1, solver="asbcd", warm_start=True, random_state=0).fit(X, y)
    cold = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] < cold
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    # Another width or other classes: there is nothing to start from.
    narrow, fresh = X[:, :5], clone(model).set_params(warm_start=False)
    for table, labels in ((narrow, y), (narrow, y == "benign")):
        np.testing.assert_array_equal(
            model.fit(table, labels).coef_, fresh.fit(table, labels).coef_
        )
    with sklearn.config_context(enable_metadata_routing=True):
        inner = ElasticNetClassifier().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), inner)
        search = GridSearchCV(pipeline, {"elasticnetclassifier__C": [0.01, 1.0]}, cv=3)
        # Weight on one class alone must reach the classifier, which then refuses.
        search.fit(X, y, sample_weight=np.ones(y.size))
        assert search.best_score_ > 0.9
        with pytest.raises(ValueError, match="sample_weight leaves only 1 of 2"):
            search.fit(X, y, sample_weight=(y == "benign").astype(float))


def test_cross_validation_chooses_by_score_and_folds_may_run_in_threads(cancer, make_data):
    X, y = cancer
    given = {"Cs": [1e-6, 1e-2, 1.0], "l1_ratio": [0.2, 0.8], "tol": 1e-8}
    alone = ElasticNetClassifierCV(**given).fit(X, y)
    assert alone.scores_.shape == (2, 3, 5)
    assert alone.C_ in (1e-2, 1.0)
    assert alone.scores_.mean(axis=-1).max() == pytest.approx(
        alone.scores_[[0.2, 0.8].index(alone.l1_ratio_), list(alone.Cs_).index(alone.C_)].mean()
    )
    threads = ElasticNetClassifierCV(**given, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.scores_, alone.scores_)
    same = ElasticNetClassifier(C=alone.C_, l1_ratio=alone.l1_ratio_, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(alone.coef_, same.coef_, atol=1e-3)
    X, y = make_data("squared")
    model = ElasticNetRegressorCV(alphas=10, l1_ratio=[0.5, 1.0]).fit(X, y)
    assert (np.diff(model.alphas_, axis=1) < 0).all()
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("grid", [[-1.0], [np.nan], [], 0, 2.5, "ten", None, [[1.0]]])
def test_a_grid_that_is_none_is_named(make_data, grid):
    X, y = make_data("squared")
    with pytest.raises(InputError, match="alphas is"):
        ElasticNetRegressorCV(alphas=grid).fit(X, y)
    with pytest.raises(InputError, match="Cs is"):
        ElasticNetClassifierCV(Cs=grid).fit(X, y > 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_cross_validation_chooses_nothing_without_scores(make_data):
    X, y = make_data("squared", n=20)
    rows = np.arange(20)
    with pytest.raises(InputError, match="the score of fold 1 is NaN"):
        ElasticNetRegressorCV(alphas=3, cv=[(rows[5:], rows[:5]), (rows[1:], rows[:1])]).fit(X, y)
    with pytest.raises(InputError, match="the score of fold 0 is NaN"):
        ElasticNetRegressorCV(alphas=3, cv=LeaveOneOut()).fit(X, y)
    squares = ElasticNetRegressorCV(
        alphas=3, cv=LeaveOneOut(), scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert np.isfinite(squares.scores_).all()
    with pytest.raises(InputError, match="loss is 'logistic'"):
        ElasticNetRegressorCV(loss="logistic").fit(X, np.sign(y))


@pytest.mark.parametrize(
    "estimator",
    [ElasticNetClassifier(), ElasticNetRegressor(), ElasticNetClassifierCV(Cs=2)],
)
def test_weights_under_a_mask_or_no_numbers_are_refused(make_data, estimator):
    X, y = make_data()
    masked = np.ma.masked_array(np.ones(y.size), mask=np.arange(y.size) < 5)
    with pytest.raises(InputError, match="sample_weight is a masked array with 5 values"):
        estimator.fit(X, y, sample_weight=masked)
    with pytest.raises(InputError, match="sample_weight cannot be read as numbers"):
        estimator.fit(X, y, sample_weight=["heavy"] * y.size)


class Tagged(ElasticNetClassifier):
    """A user's own class, with parameters of its own."""

    def __init__(self, tag="", *, C=1.0):
        super().__init__(C=C)
        self.tag = tag


def test_a_subclass_with_its_own_parameters_is_fitted(make_data):
    X, y = make_data()
    own, ours = Tagged("mine", C=0.3).fit(X, y), ElasticNetClassifier(C=0.3).fit(X, y)
    np.testing.assert_array_equal(own.coef_, ours.coef_)


def test_a_regressor_may_start_where_it_was(make_data):
    X, y = make_data("squared")
    y += 5.0
    model = ElasticNetRegressor(alpha=1e-3, solver="saga", warm_start=True, random_state=0)
    cold, coef = model.fit(X, y).n_iter_, model.coef_
    assert model.fit(X, y).n_iter_ < cold
    np.testing.assert_allclose(model.coef_, coef, atol=1e-2)
    fresh = clone(model).set_params(warm_start=False)
    np.testing.assert_array_equal(model.fit(X[:, :5], y).coef_, fresh.fit(X[:, :5], y).coef_)


def test_a_generator_as_random_state_is_drawn_from(make_data):
    X, y = make_data("squared")

    def fitted(state):
        model = ElasticNetRegressor(alpha=1e-3, solver="saga", tol=1e-2, random_state=state)
        return model.fit(X, y).coef_

    first, again = fitted(np.random.RandomState(7)), fitted(np.random.RandomState(7))
    np.testing.assert_array_equal(first, again)
    state = np.random.RandomState(7)
    fitted(state)
    assert not np.array_equal(fitted(state), first)


@pytest.mark.parametrize("make", [ElasticNetClassifier, ElasticNetRegressor])
def test_solvers_that_sample_and_take_blocks_do_so_as_they_are_told(make):
    """A fit is the one that `minimize` makes with the same draws and blocks, to the last bit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * rng.lognormal(size=(80, 1))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    found = []
    for sampling, blocks in (("optimal", None), ("uniform", None), ("lipschitz", 3)):
        told = {"sampling": sampling, "blocks": blocks}
        model = make(solver="asbcd", tol=1e-2, random_state=3, **told).fit(X, y)
        classifies = make is ElasticNetClassifier
        alpha = 1.0 / 80 if classifies else 1.0
        plain = minimize(
            *(X, y),
            loss="logistic" if classifies else "squared",
            l1=0.5 * alpha,
            l2=0.5 * alpha,
            fit_intercept=True,
            method="asbcd",
            tol=1e-2,
            max_passes=1000,
            seed=3,
            **told,
        )
        np.testing.assert_array_equal(np.ravel(model.coef_), plain.coef)
        found.append(tuple(plain.coef))
    assert len(set(found)) == 3
