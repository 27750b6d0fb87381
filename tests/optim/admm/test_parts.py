"""The pieces against their definitions: penalty, conjugate, metric, spans, weights of samples."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from telic.optim.admm import (
    METHODS,
    as_graph,
    make_admm_problem,
    minimize_admm,
    safe_step,
    separable,
)
from telic.optim.admm.nullspace import span_of
from telic.optim.admm.x_step_metric import curvature, diagonal, units_of
from telic.optim.losses import as_loss

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
from generalised_optimum import near_optimum, objective

number = st.floats(-3, 3)
penalties = st.fixed_dictionaries(
    {
        "l1": st.sampled_from([0.0, 0.5, 2.0]),
        "l2": st.sampled_from([0.0, 0.7]),
        "low": st.sampled_from([-np.inf, -1.0, 0.0, 0.5]),
        "high": st.sampled_from([0.5, 2.0, np.inf]),
    }
)
GRID = np.linspace(-60, 60, 240_001)


@settings(max_examples=80, derandomize=True)
@given(penalties, number, number)
def test_the_penalty_of_a_number_its_prox_and_its_conjugate(terms, u, v):
    """By their definitions, on a grid that ends far beyond where anything happens."""
    g = separable(1, **terms)
    grid = GRID[(terms["low"] <= GRID) & (terms["high"] >= GRID)]
    values = terms["l1"] * np.abs(grid) + 0.5 * terms["l2"] * grid**2
    at = np.array([grid[len(grid) // 3]])
    assert g.value(at) == pytest.approx(values[len(grid) // 3])
    for beyond in (terms["high"] + 1.0, terms["low"] - 1.0):
        assert np.isinf(beyond) or g.value(np.array([beyond])) == np.inf
    step = 0.4
    best = grid[np.argmin(values + (grid - v) ** 2 / (2 * step))]
    assert g.prox(np.array([v]), step)[0] == pytest.approx(best, abs=1e-3)
    # A supremum that only the end of the grid reaches stands for one at infinity.
    gains = u * grid - values
    endless = gains.max() > gains[abs(grid) < 59].max()
    found = g.conjugate(np.array([u]))
    assert found == (np.inf if endless else pytest.approx(gains.max(), abs=1e-2))
    low, high = g.domain
    assert (low[0] <= u <= high[0]) == (not endless)
    near = g.nearest_dual(np.array([u]))
    assert np.isfinite(g.conjugate(near))
    room = g.room(np.array([u]))
    assert 0 <= room <= 1
    assert np.isfinite(g.conjugate(g.nearest_dual(room * np.array([u]))))
    assert (room == 1) == (not endless)
    if not endless:
        assert g.excess(at, near) == pytest.approx(g.value(at) + found - u * at[0], abs=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("stoc-admm", "sdca-admm")])
def test_every_method_weighs_its_samples(method, loss):
    """A weight is a number of equal rows; without them the optimum is far off."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    y = X @ [1.0, 1.0, -1.0, -1.0] + rng.normal(size=80)
    y[:10] = -3.0 * X[:10, 0] + rng.normal(size=10)
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    times = np.where(np.arange(80) < 10, 30, rng.integers(0, 3, size=80))
    D, rows = np.diff(np.eye(4), axis=0), np.repeat(np.arange(80), times)
    found = minimize_admm(
        X,
        y,
        A=D,
        l1=0.02,
        loss=loss,
        sample_weight=times,
        fit_intercept=True,
        method=method,
        x_step="curvature",
        tol=1e-7,
        max_passes=20_000,
    )
    terms = as_loss(loss), D, np.zeros(3), np.full(3, 0.02), 0.0
    repeated = X[rows], y[rows], np.full(rows.size, 1 / rows.size), *terms
    weighted, plain = (
        objective(*repeated, *near_optimum(*data, *terms, 1))
        for data in (repeated[:3], (X, y, np.full(80, 1 / 80)))
    )
    assert found.converged
    assert objective(*repeated, found.coef, found.intercept) == pytest.approx(weighted, abs=1e-6)
    assert plain > weighted + 1e-2


def test_sampling_methods_that_never_meet_a_tolerance_weigh_their_samples_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 6, -1.0, 1.0) * X[:, 0]
    s = np.where(np.arange(60) < 6, 100.0, 1.0)
    for method in ("stoc-admm", "sdca-admm"):
        with pytest.warns(Warning, match="passes"):
            found = minimize_admm(
                X,
                y,
                A=[[1.0, -1.0]],
                l1=1e-6,
                loss="squared",
                sample_weight=s,
                method=method,
                tol=0.0,
                max_passes=300,
            )
        weighted = np.linalg.lstsq(np.sqrt(s)[:, None] * X, np.sqrt(s) * y, rcond=None)[0]
        np.testing.assert_allclose(found.coef, weighted, atol=0.1)
        assert weighted[0] < -0.5


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_the_metrics_bound_the_hessian_and_the_rows(loss, storage):
    rng = np.random.default_rng(0)
    n, d = 30, 4
    X = rng.normal(size=(n, d)) * [1.0, 50.0, 0.02, 3.0]
    y, s = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.uniform(0.1, 2.0, size=n)
    problem = make_admm_problem(
        storage(X),
        y,
        A=np.eye(d),
        g=separable(d, l1=1.0),
        loss=loss,
        l2=0.3,
        sample_weight=s,
        fit_intercept=True,
    )
    mass, smooth = s / s.sum(), as_loss(loss).smoothness
    X1 = np.column_stack([X, np.ones(n)])
    ridge = np.diag([0.3] * d + [0.0])
    bound = smooth * X1.T @ (mass[:, None] * X1) + ridge
    rows = [n * smooth * m * np.outer(x, x) + ridge for m, x in zip(mass, X1, strict=True)]
    np.testing.assert_allclose(units_of(problem), [*(1 / np.sqrt((X**2).max(axis=0) + 0.3)), 1.0])
    for unit in (np.ones(d + 1), units_of(problem)):
        metric = diagonal(problem, unit)
        S = np.diag(unit)
        whole = np.linalg.eigvalsh(S @ bound @ S)[-1]
        assert whole * (1 - 1e-3) <= metric.whole <= 1.05 * whole + 0.3 * unit.max() ** 2
        largest = max(np.linalg.eigvalsh(S @ row @ S)[-1] for row in rows)
        assert largest * (1 - 1e-12) <= metric.largest <= largest + 0.3 * unit.max() ** 2
    metric = curvature(problem)
    assert np.linalg.eigvalsh(metric.P - bound)[0] >= 0
    leverage = [
        np.linalg.eigvals(np.linalg.solve(metric.P, row - ridge)).real.max() for row in rows
    ]
    assert metric.largest == pytest.approx(max(1.0, *leverage))
    # 1/(2 L_b), L_b between L for all rows and L_M for one.
    single, all_rows = (safe_step(problem, x_step="curvature", batch_size=b) for b in (1, n))
    assert single == pytest.approx(0.5 / metric.largest)
    assert all_rows == pytest.approx(0.5)
    assert single < safe_step(problem, x_step="curvature", batch_size=5) < all_rows


def test_default_steps_are_by_the_rows_and_by_the_width():
    """1/(2 L_M) for one row; the curvature's up to 300 features, those of scaled ones beyond."""
    rng = np.random.default_rng(0)

    def problem(n, d):
        y = rng.normal(size=n)
        return make_admm_problem(
            rng.normal(size=(n, d)), y, A=np.eye(1, d), g=separable(1, l1=1.0), loss="squared"
        )

    one = problem(1, 3)
    assert safe_step(one, x_step="linearised") == pytest.approx(
        0.5 / (one.data.design.matrix**2).sum()
    )
    for d, expected, other in ((300, "curvature", "scaled"), (301, "scaled", "curvature")):
        given = problem(4, d)
        assert safe_step(given) == safe_step(given, x_step=expected)
        assert safe_step(given) != safe_step(given, x_step=other)


@settings(max_examples=60, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["graph", "anchored", "general"]))
def test_what_a_matrix_sees_and_what_it_does_not(seed, kind):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(3, 12))
    pairs = np.argwhere(np.triu(rng.random((d, d)) < 1.5 / d, 1))
    if not len(pairs):
        pairs = np.array([[0, 1]])
    A = as_graph(d, pairs).incidence.toarray()
    if kind == "anchored":
        A = np.vstack([A, 2.0 * np.eye(d)[rng.integers(0, d, size=2)]])
    if kind == "general":
        A = rng.normal(size=(int(rng.integers(1, d)), d))
    weight = rng.uniform(0.1, 3.0, size=len(A))
    span = span_of(sparse.csr_matrix(A), weight, rng.uniform(0.1, 10.0, size=d))
    null = span.null.toarray()
    np.testing.assert_allclose(A @ null, 0.0, atol=1e-9)
    assert null.shape[1] == d - np.linalg.matrix_rank(A)
    assert np.linalg.matrix_rank(null) == null.shape[1]
    r = A.T @ rng.normal(size=len(A))
    u = span.least(r)
    np.testing.assert_allclose(A.T @ u, r, atol=1e-9)
    # The least: any other solution costs more.
    least = np.sqrt(weight) * (np.linalg.pinv(A.T * np.sqrt(weight)) @ r)
    np.testing.assert_allclose(u, least, atol=1e-8)


def test_an_edge_that_hardly_counts_still_joins_its_nodes():
    A = sparse.csr_matrix(np.diff(np.eye(5), axis=0) * [[1.0], [1e6], [1.0], [1e-6]])
    span = span_of(A, np.array([1.0, 1e-40, 1e-30, 1.0]), np.ones(5))
    r = A.T @ np.array([1.0, 2e-6, 3.0, 4e6])
    assert span.null.shape == (5, 1)
    # A tree leaves no choice.
    np.testing.assert_allclose(span.least(r), [1.0, 2e-6, 3.0, 4e6], rtol=1e-6)


def test_a_large_graph_that_is_no_grid_is_solved_too():
    rng = np.random.default_rng(0)
    d = 2500
    pairs = np.unique(np.sort(rng.integers(0, d - 1, size=(4 * d, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    A = as_graph(d, pairs).incidence
    span = span_of(A, np.ones(len(pairs)), np.ones(d))
    assert abs(A @ span.null).max() == 0.0
    assert span.null[d - 1].sum() == 1.0  # nobody's neighbour
    r = A.T @ rng.normal(size=len(pairs))
    np.testing.assert_allclose(A.T @ span.least(r), r, atol=1e-10)
    # What is no graph's is not looked into at this width.
    other = sparse.vstack([A, sparse.csr_matrix(np.ones((1, d)))])
    assert span_of(other, np.ones(len(pairs) + 1), np.ones(d)) is None


def test_the_rows_of_the_constraint_may_be_multiplied():
    """x is the same problem's; y, u and g follow."""
    rng = np.random.default_rng(0)
    A, c, factor = rng.normal(size=(3, 4)), rng.normal(size=3), np.array([2.0, 0.1, 5.0])
    g = separable(3, l1=[0.1, 0.2, 0.3], l2=0.4, low=-2.0, high=[1.0, np.inf, 3.0])
    data = rng.normal(size=(9, 4)), rng.normal(size=9)
    x, y, B = rng.normal(size=4), rng.uniform(-1, 1, size=3), rng.normal(size=(3, 3))
    one = make_admm_problem(*data, A=A, g=g, c=c, loss="squared")
    other = one.with_rows(factor)
    assert other.g.value(factor * y) == pytest.approx(one.g.value(y))
    np.testing.assert_allclose(other.A @ x - other.c, factor * (A @ x - c))
    np.testing.assert_allclose(factor * other.g.low, factor**2 * one.g.low)
    one = make_admm_problem(*data, A=A, B=B, g=g, c=c, loss="squared")
    other = one.with_rows(factor)
    np.testing.assert_allclose(other.A @ x + other.by(y) - other.c, factor * (A @ x + B @ y - c))
    assert other.g is one.g
