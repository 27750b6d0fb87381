import pickle
import warnings
from functools import partial

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
from telic.optim.admm.estimators import generalized_lasso


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
    X = rng.normal(size=(60, 320))
    y = np.sign(X[:, :20].sum(axis=1) + rng.normal(size=60))
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


def test_rows_without_weight_change_no_graph():
    """The penalty goes with the number of rows, of which a row of weight 0 is none."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[:, 1] += X[:, 0]
    X[:, 3] -= 0.7 * X[:, 2]
    counted = np.arange(60) < 12
    given = feature_graphs.inverse_covariance(X, weighted=True, sample_weight=1.0 * counted)
    alone = feature_graphs.inverse_covariance(X[counted], weighted=True)
    np.testing.assert_array_equal(given.edges, alone.edges)
    np.testing.assert_allclose(given.weights, alone.weights, atol=1e-9)


def test_the_units_of_features_change_no_graph():
    X, _ = fused_data(80)
    X[:, 3:] += X[:, :3]
    units = 10.0 ** np.array([-9, 7, 0, 3, -30, 12])
    for build in (feature_graphs.knn, partial(feature_graphs.inverse_covariance, weighted=True)):
        one, other = build(X), build(X * units)
        assert one.edges.tolist() == other.edges.tolist()
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-6)


def test_a_feature_far_from_zero_is_in_the_graph():
    X = np.random.default_rng(0).normal(size=(50, 3)) + np.array([1e11, 0, 0])
    assert 0 in feature_graphs.knn(X, neighbors=1).edges


def test_one_feature_that_varies_gives_no_graph():
    X = np.ones((20, 2))
    X[:, 0] = np.arange(20)
    for build in (feature_graphs.knn, feature_graphs.inverse_covariance):
        with pytest.raises(InputError, match="fewer than two features vary"):
            build(X)


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
    for order in (5, "a", np.array([1, 2])):
        with pytest.raises(InputError, match=r"order is .*, expected 0, 1, 2 or 3"):
            TrendFilter(order).fit(y)
    for series in ([1.0, 2.0], np.ones((3, 2))):
        with pytest.raises(InputError, match=r"y has shape .*, expected a series of at least 3"):
            TrendFilter(1).fit(series)
    assert TrendFilter(1).fit([1.0, 2.0, 4.0]).trend_.shape == (3,)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("value", [1e12, -1e9])
def test_a_value_of_weight_0_leaves_the_trend_as_it_is(order, value):
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0, 0.3], 10) + 0.1 * rng.normal(size=30)
    weights = np.ones(30)
    weights[7] = 0.0
    model = TrendFilter(order, alpha=0.01, tol=1e-9)
    expected = model.fit_transform(y, sample_weight=weights)
    y[7] = value
    np.testing.assert_allclose(model.fit_transform(y, sample_weight=weights), expected, atol=1e-6)


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


def not_converged(*_, **__):
    warnings.warn("not converged", ConvergenceWarning, stacklevel=1)
    return None, np.eye(3)


def not_positive(*_, **__):
    raise FloatingPointError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GLASSO_UP_TO", 2),
        ("graphical_lasso", not_converged),
        ("graphical_lasso", not_positive),
    ],
)
def test_where_the_graphical_lasso_fails_each_feature_chooses_its_neighbours(
    monkeypatch, name, value
):
    X = np.cumsum(np.random.default_rng(0).normal(size=(300, 3)), axis=1)
    asked = {"alpha": 0.1, "weighted": True, "join_lone": False}
    glasso = feature_graphs.inverse_covariance(X, **asked)
    monkeypatch.setattr(feature_graphs, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whatever a user does with warnings
        graph = feature_graphs.inverse_covariance(X, **asked)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    found = np.zeros((3, 3))
    for j in range(3):
        others = [k for k in range(3) if k != j]
        found[j, others] = abs(Lasso(alpha=0.1, tol=1e-10).fit(Z[:, others], Z[:, j]).coef_)
    expected = np.maximum(found, found.T)[tuple(graph.edges.T)]
    np.testing.assert_allclose(graph.weights, expected, atol=1e-4)
    assert abs(glasso.weights[0] - graph.weights[0]) > 1e-2


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
        ([[0, 1], [1]], None, "edges has rows of different lengths"),
        ([[0, 1]], ["a"], "weights: cannot be read as numbers"),
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"graph": "chain", "edge_weights": [1.0]}, r"edge_weights go with edges \(k, 2\)"),
        ({"graph": feature_graphs.chain(6), "edge_weights": [1.0]}, "this graph has its own"),
        ({"graph": feature_graphs.chain(4)}, "graph has 4 features, X has 6"),
        ({"graph": "ring"}, "graph is 'ring', expected one of glasso, knn, chain, or edges"),
        ({"gamma": -1.0}, "gamma is -1.0, expected a finite number >= 0"),
        ({"l1": np.inf}, "l1 is inf, expected a finite number >= 0"),
        ({"l2": np.nan}, "l2 is nan, expected a finite number >= 0"),
    ],
)
def test_what_a_fused_estimator_cannot_use_is_named(settings, message):
    X, y = fused_data()
    for make, target in ((GraphFusedClassifier, y), (GraphFusedRegressor, X[:, 0])):
        with pytest.raises(InputError, match=message):
            make(**settings).fit(X, target)


def test_a_graph_may_be_given_whole_by_its_edges_or_by_its_name():
    X, _ = fused_data()
    X[:, 3:] += X[:, :3]
    y = X @ np.arange(6.0)
    graph = feature_graphs.inverse_covariance(X, weighted=False)
    named = GraphFusedRegressor("glasso", gamma=0.1).fit(X, y)
    whole = GraphFusedRegressor(graph, gamma=0.1).fit(X, y)
    listed = GraphFusedRegressor(graph.edges, edge_weights=graph.weights, gamma=0.1).fit(X, y)
    for model in (named, whole, listed):
        assert model.edges_.tolist() == graph.edges.tolist()
        np.testing.assert_array_equal(model.coef_, named.coef_)
    assert len(graph.edges) < 15
    with pytest.raises(InputError, match="neighbors is 0, expected a whole number >= 1"):
        feature_graphs.knn(X, neighbors=0)


def test_an_l1_beside_the_fusion_is_a_lasso_on_the_merged_features():
    """So strong a fusion leaves one weight w, for the sum of the features; |w| counts six times."""
    X, _ = fused_data()
    y = X @ np.ones(6) + 1.0
    for gamma, features, alpha in ((0.0, X, 0.2), (50.0, X.sum(axis=1, keepdims=True), 1.2)):
        model = GraphFusedRegressor("chain", gamma=gamma, l1=0.2, tol=1e-9).fit(X, y)
        known = Lasso(alpha=alpha, tol=1e-10).fit(features, y)
        np.testing.assert_allclose(model.coef_, np.broadcast_to(known.coef_, 6), atol=1e-4)


@pytest.mark.parametrize(("layout", "widest"), [(np.asarray, 9), (sparse.csr_matrix, 6)])
def test_more_features_than_newtons_method_is_for_are_sampled(monkeypatch, layout, widest):
    """What is sampled has a seed. A Hessian of sparse data is worth it to another width."""
    monkeypatch.setattr(generalized_lasso, "SMALL_MATRIX", 9)
    monkeypatch.setattr(generalized_lasso, "CURVATURE_UP_TO", 6)
    X = np.random.default_rng(0).normal(size=(60, 10))
    y = X[:, :4].sum(axis=1)

    def fitted(d, seed):
        model = GeneralizedLasso(
            alpha=0.02, l2=0.1, fit_intercept=False, tol=1e-2, random_state=seed
        )
        return model.fit(layout(X[:, :d]), y).coef_

    np.testing.assert_array_equal(fitted(widest, 0), fitted(widest, 1))
    assert not np.array_equal(fitted(widest + 1, 0), fitted(widest + 1, 1))


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


@pytest.mark.parametrize("level", [1e9, -1e11])
@pytest.mark.parametrize("make", [GeneralizedLasso, lambda: GraphFusedRegressor("chain")])
def test_targets_far_from_zero_have_the_same_weights(make, level):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X @ [1.0, 1.0, -1.0, 2.0] + rng.normal(size=80)
    near, far = make().fit(X, y), make().fit(X, y + level)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-4)
    assert far.gap_ <= 1e-4 * y.var() / 2


@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e9 + 0.1, -1e15])
def test_a_target_that_does_not_vary_needs_the_intercept_alone(value):
    X = np.random.default_rng(0).normal(size=(50, 4))
    for loss in ("squared", "huber"):
        model = GeneralizedLasso(alpha=0.05, loss=loss, tol=1e-8).fit(X, np.full(50, value))
        assert not model.coef_.any()
        assert model.intercept_ == pytest.approx(value)
