import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from telic.errors import InputError
from telic.optim.admm import (
    METHODS,
    GeneralizedLasso,
    GraphFusedClassifier,
    GraphFusedRegressor,
    TrendFilter,
    feature_graphs,
)


@parametrize_with_checks(
    [
        GraphFusedClassifier(),
        GraphFusedClassifier("chain"),
        GraphFusedRegressor(),
        GeneralizedLasso(),
    ]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_scikit_learns_checks_of_a_series():
    # A series has one dimension: what is checked beyond the interface takes two.
    with pytest.warns(SkipTestWarning, match="TrendFilter"):
        results = check_estimator(TrendFilter(), on_fail=None)
    assert {result["status"] for result in results} == {"passed"}


@pytest.mark.parametrize("gamma", [1e-3, 10.0])
def test_the_defaults_converge_on_ordinary_data(gamma):
    """Badly scaled, nearly separable, separable or tiny: warnings are errors here."""
    X, y = load_breast_cancer(return_X_y=True)
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    for features in (X, standard, sparse.csr_matrix(standard)):
        assert GraphFusedClassifier(gamma=gamma).fit(features, y).stopped_ == "tolerance"
    GraphFusedClassifier("chain", gamma=gamma).fit(*load_iris(return_X_y=True))
    X, y = load_diabetes(return_X_y=True)
    for loss in ("squared", "huber"):
        GraphFusedRegressor(gamma=gamma, loss=loss).fit(X, y)
        GraphFusedRegressor("chain", gamma=gamma, loss=loss).fit(X[:12, :4], y[:12])
    GeneralizedLasso(alpha=gamma).fit(X, y)


def test_the_default_converges_beyond_300_features():
    """Sampling stops at its limit of passes here, which would be a warning."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 320))
    y = np.sign(X[:, :20].sum(axis=1) + rng.normal(size=150))
    assert GraphFusedClassifier(graph="chain").fit(X, y).stopped_ == "tolerance"


def test_the_graph_of_weighted_rows_is_that_of_repeated_ones():
    X, _ = fused_data(80)
    X[:, 3:] += X[:, :3]
    times = np.arange(80) % 3
    for build in (feature_graphs.knn, feature_graphs.inverse_covariance):
        weighed = build(X, sample_weight=times)
        repeated = build(np.repeat(X, times, axis=0))
        assert weighed.edges.tolist() == repeated.edges.tolist()
        np.testing.assert_allclose(weighed.weights, repeated.weights, atol=1e-9)


def test_identity_gives_scikit_learns_lasso():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = X @ [1.0, 0.0, 2.0, 0.0, 0.0] + rng.normal(size=100)
    ours = GeneralizedLasso(alpha=0.1, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, Lasso(alpha=0.1, tol=1e-10).fit(X, y).coef_, atol=1e-4)


def test_strong_fusion_gives_one_weight_per_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = np.where(X.sum(axis=1) + rng.normal(size=200) > 0, "yes", "no")
    model = GraphFusedClassifier([[0, 1], [2, 3]], gamma=1.0, tol=1e-7).fit(sparse.csr_matrix(X), y)
    w = model.coef_[0]
    assert w[0] == pytest.approx(w[1], abs=1e-4)
    assert w[2] == pytest.approx(w[3], abs=1e-4)
    assert model.score(X, y) > 0.8
    assert model.stopped_ == "tolerance"
    with pytest.warns(ConvergenceWarning, match="2 of 4 features have no edge"):
        GraphFusedClassifier([[0, 1]]).fit(X, y)


def test_the_trend_of_steps_and_of_a_line():
    y = np.repeat([0.0, 2.0, 1.0], 10)
    steps = TrendFilter(0, alpha=1e-3).fit(y).trend_
    np.testing.assert_allclose(steps, y, atol=0.02)
    line = np.linspace(0, 1, 20)
    np.testing.assert_allclose(TrendFilter(1, alpha=1.0).fit_transform(line), line, atol=1e-3)
    with pytest.raises(InputError, match="order is 5"):
        TrendFilter(5).fit(y)


def test_a_long_trend_is_certified():
    """More values than a dense Hessian is held for; the dual is feasible, and its gap small."""
    y = np.sin(np.linspace(0, 6, 400)) + 0.1 * np.random.default_rng(0).normal(size=400)
    model = TrendFilter(1, alpha=0.03, tol=1e-8, max_iter=20_000).fit(y)
    # With S = DDᵀ the dual's best u solves Su = Dy where |u| < alpha: KKT, without our solver.
    D = np.diff(np.eye(400), n=2, axis=0)
    u = np.linalg.lstsq(D.T, (y - model.trend_) / 400, rcond=None)[0]
    np.testing.assert_allclose(D.T @ u, (y - model.trend_) / 400, atol=1e-9)
    assert np.abs(u).max() < 0.03 * (1 + 1e-2)
    bent = np.abs(D @ model.trend_) > 1e-4
    assert 1 < bent.sum() < 40
    np.testing.assert_allclose(u[bent], 0.03 * np.sign(D @ model.trend_)[bent], rtol=2e-2)


def test_graphs():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(500, 2))
    X = np.column_stack([base[:, 0], -base[:, 0], base[:, 1], base[:, 1], np.ones(500)])
    X[:, :4] += 0.3 * rng.normal(size=(500, 4))
    for graph in (feature_graphs.inverse_covariance(X), feature_graphs.knn(X, neighbors=1)):
        assert graph.edges.tolist() == [[0, 1], [2, 3]]
        assert np.unique(graph.components).size == 3
    strength = feature_graphs._neighbourhoods(feature_graphs._standardised(X)[0], 0.1)
    assert (strength[[0, 2], [1, 3]] > 0.5).all()
    assert strength[0, 2] < 0.1
    A = feature_graphs.grid(2, 3).incidence
    w = rng.normal(size=6)
    image = w.reshape(2, 3)
    total = np.abs(np.diff(image, axis=0)).sum() + np.abs(np.diff(image, axis=1)).sum()
    assert np.abs(A @ w).sum() == pytest.approx(total)


@pytest.mark.parametrize(
    ("edges", "weights", "message"),
    [
        ([], None, "no edges"),
        ([[0, 0]], None, "edge 0 joins feature 0 to itself"),
        ([[0, 1], [1, 0]], None, r"edge 1 is \[1, 0\], which is given twice"),
        ([[0, 9]], None, "features from 0 to 2"),
        ([[0.0, 1.0]], None, "expected integers"),
        ([0, 1], None, r"expected \(k, 2\)"),
        ([[0, 1]], [-1.0], "the weight of edge 0 is -1"),
        ([[0, 1]], [np.nan], "the weight of edge 0 is nan"),
        ([[0, 1]], [1.0, 1.0], r"weights has shape \(2,\)"),
    ],
)
def test_a_bad_graph_is_named(edges, weights, message):
    with pytest.raises(InputError, match=message):
        feature_graphs.as_graph(3, edges, weights)


def fused_data(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = np.where(X @ np.repeat([1.0, -1.0], 3) + rng.normal(size=n) > 0, "yes", "no")
    return X, y


def test_grid_search_pickle_and_clone():
    X, y = fused_data()
    model = GraphFusedClassifier("chain", tol=1e-3, random_state=0)
    search = GridSearchCV(model, {"gamma": [1e-2, 3e-2, 1.0]}, cv=3).fit(X, y)
    assert search.best_params_["gamma"] < 1.0
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))
    assert clone(again).gamma == again.gamma


def test_weights_are_repeated_rows():
    X, y = fused_data()
    times = np.arange(len(y)) % 3
    model = GraphFusedClassifier("chain", gamma=0.03, tol=1e-9, solver="batch-admm", l2=1e-3)
    weighed = clone(model).fit(X, y, sample_weight=times).coef_
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times)).coef_
    np.testing.assert_allclose(weighed, repeated, atol=1e-5)


def test_every_solver_fits_three_classes():
    X, y = fused_data(200)
    y = np.where(X[:, 0] > 1, "maybe", y)
    scores = {}
    with warnings.catch_warnings():
        # STOC-ADMM falls too slowly to meet the tolerance.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for solver in METHODS:
            model = GraphFusedClassifier(
                "chain", gamma=1e-2, l2=1e-2, solver=solver, tol=1e-4, max_iter=300, random_state=0
            )
            scores[solver] = model.fit(X, y).score(X, y)
            assert model.coef_.shape == (3, 6)
    assert min(scores.values()) > 0.7
    assert max(scores.values()) - min(scores.values()) < 0.05


def test_an_empty_graph_is_refused_and_a_lone_feature_is_joined():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0]
    with pytest.raises(InputError, match="the graph is empty"):
        feature_graphs.inverse_covariance(X, alpha=0.9)
    with pytest.raises(InputError, match="no edges"):
        GraphFusedRegressor(np.empty((0, 2), int)).fit(X, y)
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=400)
    X[:, 2] += 0.2 * X[:, 3]
    graph = feature_graphs.inverse_covariance(X, alpha=0.5)
    assert np.bincount(graph.components).min() > 1
    assert [2, 3] in graph.edges.tolist()
    alone = feature_graphs.inverse_covariance(X, alpha=0.5, join_lone=False)
    assert alone.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(("scale", "offset"), [(1e5, 0.0), (5e4, 2e5), (1e-6, 0.0), (1.0, 1e4)])
@pytest.mark.parametrize("solver", ["auto", "svr-admm-d"])
def test_the_unit_and_level_of_y_do_not_matter(scale, offset, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = X @ np.repeat([1.0, -2.0], 4) + rng.standard_normal(300)

    def excess(model, target, gamma):
        w = model.coef_
        error = target - X @ w - model.intercept_
        return 0.5 * np.mean(error**2) + gamma * np.abs(np.diff(w)).sum()

    plain = GraphFusedRegressor(graph="chain", gamma=0.05, tol=1e-8).fit(X, y)
    best = excess(plain, y, 0.05)
    given = GraphFusedRegressor(graph="chain", gamma=0.05 * scale, solver=solver, tol=1e-4)
    given.fit(X, scale * y + offset)
    found = excess(given, scale * y + offset, 0.05 * scale) / scale**2
    assert found - best < 2e-4 * 0.5 * y.var()


def test_the_unit_of_x_does_not_matter():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 8))
    y = X @ np.repeat([1.0, -2.0], 4) + rng.standard_normal(300) > 0
    one = GraphFusedClassifier(graph="chain", gamma=0.01, tol=1e-8).fit(X, y)
    other = GraphFusedClassifier(graph="chain", gamma=1e-6, tol=1e-8).fit(1e-4 * X, y)
    np.testing.assert_allclose(1e-4 * other.coef_, one.coef_, atol=1e-3)


@pytest.mark.parametrize(("scale", "offset"), [(1e5, 0.0), (1.0, 1e4)])
def test_the_unit_and_level_of_a_series_do_not_matter(scale, offset):
    y = np.repeat([0.0, 1.0], 20) + 0.1 * np.random.default_rng(0).standard_normal(40)
    one = TrendFilter(0, alpha=0.03).fit_transform(y)
    other = TrendFilter(0, alpha=0.03 * scale).fit_transform(scale * y + offset)
    np.testing.assert_allclose((other - offset) / scale, one, atol=1e-6)
