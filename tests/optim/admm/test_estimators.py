import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

from telic.errors import InputError
from telic.optim.admm import (
    GeneralizedLasso,
    GraphFusedClassifier,
    GraphFusedRegressor,
    TrendFilter,
    graphs,
)

# The checks on weights compare fits to nine digits.
TIGHT = {"solver": "batch-admm", "tol": 1e-12, "max_iter": 20_000}


@parametrize_with_checks(
    [
        GraphFusedClassifier("chain", l2=1e-2, **TIGHT),
        GraphFusedRegressor("chain", l2=1e-2, **TIGHT),
        GeneralizedLasso(l2=1e-2, **TIGHT),
    ]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks(estimator, check):
    check(estimator)


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


def test_graphs():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(500, 2))
    X = np.column_stack([base[:, 0], -base[:, 0], base[:, 1], base[:, 1], np.ones(500)])
    X[:, :4] += 0.3 * rng.normal(size=(500, 4))
    for graph in (graphs.inverse_covariance(X), graphs.knn(X, neighbors=1)):
        assert graph.edges.tolist() == [[0, 1], [2, 3]]
        assert np.unique(graph.components).size == 3
    strength = graphs._neighbourhoods(graphs._standardised(X)[0], 0.1)
    assert (strength[[0, 2], [1, 3]] > 0.5).all()
    assert strength[0, 2] < 0.1
    A = graphs.grid(2, 3).incidence
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
        graphs.as_graph(3, edges, weights)
