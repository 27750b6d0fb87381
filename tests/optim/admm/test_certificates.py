"""A gap is a bound, always: attacked with data that no solver likes, runs cut short, odd starts."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import lsq_linear
from sklearn.exceptions import ConvergenceWarning

from telic.optim.admm import (
    METHODS,
    GeneralizedLasso,
    GraphFusedClassifier,
    GraphFusedRegressor,
    TrendFilter,
    certificate,
    consensus_admm,
    duality_gap,
    feature_graphs,
    make_admm_problem,
    minimize_admm,
    separable,
    solve_admm,
)
from telic.optim.losses import as_loss

sys.path.insert(0, str(Path(__file__).parents[2] / "reference"))
from generalised_optimum import near_optimum, objective

LOSSES = ["squared", "logistic", "huber", "squared_hinge"]


@st.composite
def cases(draw):
    """Data, a linear map and a penalty: columns of any unit, levels, duplicates, hard labels."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.sampled_from([(2, 3), (4, 8), (25, 2), (40, 5), (60, 7)]))
    X = rng.normal(size=(n, d))
    y = X @ rng.choice([-1.0, 0.0, 1.0, 2.0], size=d) + draw(
        st.sampled_from([0.0, 1e-3, 1.0])
    ) * rng.normal(size=n)
    if draw(st.booleans()):
        X[:, -1] = X[:, 0]
    if draw(st.booleans()):
        X[n // 2 :] = X[: n - n // 2]
    X += draw(st.sampled_from([0.0, 0.0, 1.0, 1e3])) * rng.normal(size=d)
    most = draw(st.sampled_from([0, 0, 2, 6, 12]))
    X *= 10.0 ** rng.integers(-most, most + 1, size=d)
    if draw(st.booleans()):
        X[:, draw(st.integers(0, d - 1))] = 0.0
    loss = draw(st.sampled_from(LOSSES))
    if loss in ("logistic", "squared_hinge"):
        y = np.where(y > np.median(y), 1.0, -1.0)
        y[:2] = 1.0, -1.0
    else:
        y = (y + draw(st.sampled_from([0.0, 1e4]))) * draw(st.sampled_from([1e-4, 1.0, 1e4]))
    kind = draw(st.sampled_from(["chain", "graph", "sparse", "one row", "general", "identity"]))
    if kind == "chain":
        A = np.diff(np.eye(d), axis=0)
    elif kind == "graph":
        A = np.vstack([np.diff(np.eye(d), axis=0)[::2], np.eye(d)[:1] - np.eye(d)[-1:]])
    elif kind == "sparse":
        A = np.vstack([np.diff(np.eye(d), axis=0), np.eye(d)])
    elif kind == "one row":
        A = rng.normal(size=(1, d))
    elif kind == "general":
        A = rng.normal(size=(d + 1, d)) * 10.0 ** rng.integers(-3, 4, size=(d + 1, 1))
    else:
        A = np.eye(d)
    l1 = draw(st.sampled_from([1e-6, 1e-3, 0.1, 10.0])) * rng.uniform(0.1, 1.0, size=len(A))
    l1[draw(st.integers(0, len(A) - 1))] *= draw(st.sampled_from([0.0, 1.0, 1e-6]))
    c = draw(st.sampled_from([0.0, 0.0, 1.0])) * rng.normal(size=len(A))
    weight = draw(st.sampled_from(["none", "some", "zeros"]))
    s = np.ones(n)
    if weight != "none" and n > 2:
        s = rng.uniform(0.1, 3.0, size=n)
        s[2:][rng.random(n - 2) < 0.3] *= weight == "some"
    l2 = draw(st.sampled_from([0.0, 0.0, 1e-8, 0.1]))
    return X, y, as_loss(loss), A, c, l1, l2, s, draw(st.booleans()), rng


def check(X, y, loss, A, c, l1, l2, s, intercept, *given):
    """Hold points to each other and an optimum found otherwise: a better one refutes a gap."""
    mass = s / s.sum()

    def P(w, b):
        return objective(X, y, mass, loss, A, c, l1, l2, w, b)

    reached = [P(found.coef, found.intercept) for found in given]
    best = min([P(*near_optimum(X, y, mass, loss, A, c, l1, l2, intercept)), *reached])
    for found, value in zip(given, reached, strict=True):
        # Predictions of size m are known to 1e-16 m.
        size = np.abs(X) @ np.abs(found.coef) + abs(found.intercept)
        rounding = (
            1e-12 * P(np.zeros_like(found.coef), 0.0)
            + 1e-14 * (mass * np.abs(loss.gradient(X @ found.coef + found.intercept, y))) @ size
        )
        assert found.gap >= 0
        assert value - best <= found.gap * (1 + 1e-9) + rounding


@settings(max_examples=150, derandomize=True, phases=[Phase.generate])
@given(
    cases(),
    st.sampled_from(METHODS),
    st.sampled_from([1, 2, 5, 60]),
    st.sampled_from([0.0, 1e-3, 1.0]),
)
def test_no_gap_is_smaller_than_the_distance_from_the_optimum(case, method, passes, start):
    X, y, loss, A, c, l1, l2, s, intercept, rng = case
    if method == "sdca-admm":
        c, start = 0.0 * c, 0.0
    problem = make_admm_problem(
        X,
        y,
        A=A,
        g=separable(len(A), l1=l1),
        c=c,
        loss=loss,
        l2=l2,
        sample_weight=s,
        fit_intercept=intercept,
    )
    options = {"max_passes": passes, "tol": 1e-9}
    if start:
        options["x_init"] = start * rng.normal(size=problem.size)
        options["dual_init"] = rng.normal(size=len(A)) * l1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = solve_admm(problem, method=method, **options)
        exact = solve_admm(problem, method="batch-admm", x_step="newton", max_passes=300)
    # A point that no method would give.
    x, u = rng.normal(size=problem.size) * 10.0 ** rng.integers(-3, 3), rng.normal(size=len(A))
    told = certificate(problem, x, A @ x[: X.shape[1]] - c, u)
    point = type("Point", (), {"gap": told.gap})
    point.coef, point.intercept = problem.split(x)
    check(X, y, loss, A, c, l1, l2, s, intercept, found, exact, point)


def test_the_printed_objective_takes_the_penalty_at_y():
    rng = np.random.default_rng(0)
    X, A, x, v = (rng.normal(size=size) for size in ((20, 3), (4, 3), 3, 4))
    y = rng.normal(size=20)
    options = {"g": separable(4, l1=0.3), "loss": "squared", "l2": 0.1, "fit_intercept": False}
    told = certificate(make_admm_problem(X, y, A=A, **options), x, v, np.zeros(4))
    f = 0.5 * np.mean((X @ x - y) ** 2) + 0.05 * x @ x
    assert told.objective_y == pytest.approx(f + 0.3 * abs(v).sum())
    assert told.objective == pytest.approx(f + 0.3 * abs(A @ x).sum())


@settings(max_examples=25, derandomize=True, phases=[Phase.generate])
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 400]), st.sampled_from(METHODS[:4]))
def test_no_gap_of_another_b_is_too_small(seed, passes, method):
    """The optimum is that of x alone: B is invertible, so that y = B⁻¹(c − Ax)."""
    rng = np.random.default_rng(seed)
    n, d = 30, 4
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)
    y, A, c = X[:, 0] + rng.normal(size=n), rng.normal(size=(3, d)), rng.normal(size=3)
    B, l1 = rng.normal(size=(3, 3)), rng.uniform(0.01, 1.0, size=3)
    inverse, mass = np.linalg.inv(B), np.full(n, 1 / n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = minimize_admm(
            X,
            y,
            A=A,
            B=B,
            c=c,
            g=separable(3, l1=l1),
            loss="squared",
            method=method,
            max_passes=passes,
            tol=1e-9,
        )
    terms = X, y, mass, as_loss("squared"), inverse @ A, inverse @ c, l1, 0.0
    best = objective(*terms, *near_optimum(*terms, 0))
    # What is returned meets the equations, and has its objective.
    np.testing.assert_allclose(A @ found.coef + B @ found.y, c, atol=1e-8)
    assert found.objective == pytest.approx(objective(*terms, found.coef, 0.0), rel=1e-6)
    assert found.objective - best <= found.gap * (1 + 1e-9) + 1e-12 * (y @ y)
    nothing = objective(*terms, np.zeros(d), 0.0)
    assert not found.converged or found.gap <= 1e-9 * nothing * (1 + 1e-9)


@settings(max_examples=25, derandomize=True, phases=[Phase.generate])
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 200]), st.sampled_from(["newton", "auto"]))
def test_no_gap_under_bounds_is_too_small(seed, passes, x_step):
    """Weights between bounds, some without a lower one: SciPy's bounded least squares knows."""
    rng = np.random.default_rng(seed)
    n, d = 30, 4
    X, y = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, size=d), rng.normal(size=n)
    low, high = np.array([-np.inf, 0.0, -0.1, 0.2]), np.array([0.0, np.inf, 0.1, 0.2 + 1e-9])
    # Around the unbounded optimum, so that some bind and some do not.
    low, high = (bound / np.abs(X).max(axis=0) for bound in (low, high))
    best = lsq_linear(X, y, (low, high), tol=1e-14).x
    method = "batch-admm" if x_step == "newton" else "svr-admm-d"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = minimize_admm(
            X,
            y,
            A=np.eye(d),
            g=separable(d, low=low, high=high),
            loss="squared",
            method=method,
            x_step=x_step,
            max_passes=passes,
            tol=1e-6,
        )

    def P(w):
        return 0.5 * np.mean((X @ w - y) ** 2)

    assert not found.objective - P(best) > found.gap + 1e-9
    if x_step == "newton" and passes == 200:
        assert found.converged
        np.testing.assert_allclose(
            found.coef * np.abs(X).max(axis=0), best * np.abs(X).max(axis=0), atol=1e-5
        )


@settings(max_examples=30, derandomize=True, phases=[Phase.generate])
@given(st.integers(0, 10**6), st.sampled_from(LOSSES), st.booleans())
def test_every_lower_bound_lies_below_every_point(seed, loss, other_b):
    """Any mix of penalties and bounds: P(x) − gap of one point refutes no P(x) of another."""
    rng = np.random.default_rng(seed)
    n, d, k = 25, 4, 3
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-6, 7, size=d)
    y = X[:, 0] / np.abs(X[:, 0]).max() + 0.1 * rng.normal(size=n)
    y = np.where(y > 0, 1.0, -1.0) if as_loss(loss).classifies else y
    A, reach = rng.normal(size=(k, d)), np.abs(X).max(axis=0)
    g = separable(
        k,
        l1=rng.choice([0.0, 1e-3, 1.0], size=k),
        l2=rng.choice([0.0, 1e-2], size=k),
        low=rng.choice([-np.inf, -1.0, 0.0], size=k),
        high=rng.choice([0.0, 0.5, np.inf], size=k),
    )
    B = rng.normal(size=(k, k)) if other_b else None
    problem = make_admm_problem(
        X, y, A=A * reach, B=B, g=g, loss=loss, l2=rng.choice([0.0, 1e-3]), fit_intercept=True
    )
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for method, passes in (("batch-admm", 1), ("batch-admm", 50), ("svr-admm-d", 10)):
            found = solve_admm(problem, method=method, max_passes=passes, tol=1e-9)
            told.append((found.objective, found.gap))
    x = np.append(rng.normal(size=d) / reach, rng.normal())
    for scale in (0.0, 1e-3, 1.0):
        point = certificate(problem, scale * x, np.zeros(k), rng.normal(size=k))
        told.append((point.objective, point.gap))
    objectives, gaps = np.array([pair for pair in told if np.isfinite(pair[0])]).T
    assert gaps.min() >= 0
    # A bound counts as met to 1e-9, and an objective may be as much too low.
    beyond = 1e-8 * problem.data.risk(np.zeros(n)) + 1e-13 * (objectives + gaps)
    assert (objectives - gaps - beyond).max() <= objectives.min()


def unequal(n, seed, *, level=0.0):
    """Five features, one in a unit of its own which says nothing, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = X[:, 1:] @ [1.0, 1.0, -1.0, -1.0]
    X[:, 0] = 4e5 * (X[:, 0] + level)
    return X, y, rng


@pytest.mark.parametrize("n", [400, 5000, 6000])
@pytest.mark.parametrize("level", [0.0, 300.0])
def test_the_defaults_are_right_whatever_the_unit_of_a_feature(n, level):
    """Warnings are errors here: the fits end at their tolerance, and there they are."""
    X, y, rng = unequal(n, n, level=level)
    noisy = y + 0.3 * rng.normal(size=n)
    labels = np.where(2 * y + rng.normal(size=n) > 0, 1.0, -1.0)
    mass, edges = np.full(n, 1 / n), feature_graphs.knn(X)
    fused = edges.incidence.toarray(), 1e-3 * edges.weights
    D = np.eye(5)[1:3] - np.eye(5)[:2]
    for target, model, loss, (A, l1) in (
        (noisy, GraphFusedRegressor(), "squared", fused),
        (noisy, GraphFusedRegressor(loss="huber"), "huber", fused),
        (labels, GraphFusedClassifier(), "logistic", fused),
        (noisy, GeneralizedLasso(D, alpha=1e-3), "squared", (D, np.full(2, 1e-3))),
    ):
        model.fit(X, target)
        data = X, target, mass, as_loss(loss), A, np.zeros(len(A)), l1, 0.0
        best = objective(*data, *near_optimum(*data, 1))
        found = objective(*data, np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]))
        nothing = objective(*data, np.zeros(5), float(target.mean()))
        assert found - best <= model.gap_ * (1 + 1e-9) + 1e-12 * nothing
        assert found - best <= 1e-4 * nothing
        assert model.stopped_ == "tolerance"


@pytest.mark.parametrize("seed", range(8))
def test_labels_that_one_of_two_columns_separates(seed):
    rng = np.random.default_rng(seed)
    for n in (5000, 6000):
        X = rng.normal(size=(n, 2)) * [4e5, 1.0]
        y = np.sign(X[:, 1])
        model = GraphFusedClassifier().fit(X, y)
        assert model.stopped_ == "tolerance"
        assert model.score(X, y) > 0.99


def test_the_unit_of_a_feature_is_nobodys_business():
    """The same problem in other units: penalties are on the coefficients, so A is in them too."""
    X, y, rng = unequal(300, 0)
    X[:, 0] /= 4e5
    D = np.diff(np.eye(5), axis=0)
    labels = np.where(y + rng.normal(size=300) > 0, 1.0, -1.0)
    unit = 10.0 ** np.array([12, -12, 3, 0, -6])
    settings = {"l1": 0.01, "fit_intercept": True, "max_passes": 3000}
    for method in ("batch-admm", "svr-admm-d"):
        for x_step in ("auto", "scaled"):
            one = minimize_admm(X, labels, A=D, method=method, x_step=x_step, **settings)
            other = minimize_admm(
                X * unit, labels, A=D * unit, method=method, x_step=x_step, **settings
            )
            np.testing.assert_allclose(other.coef * unit, one.coef, rtol=1e-6)
            assert (one.passes, one.converged) == (other.passes, True)


def test_small_problems_are_solved_to_rounding():
    X, y, rng = unequal(200, 1)
    labels = np.where(y + rng.normal(size=200) > 0, 1.0, -1.0)
    for model, target in ((GraphFusedClassifier(), labels), (GraphFusedRegressor(), y)):
        model.fit(X, target)
        assert model.gap_ <= 1e-13 * np.mean(target**2)
        again = model.__class__(tol=1e-10).fit(X[::-1], target[::-1])
        np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-8, atol=1e-12)


@settings(max_examples=15, derandomize=True, phases=[Phase.generate])
@given(st.integers(0, 3), st.integers(0, 10**6), st.sampled_from([1, 3, 500]), st.booleans())
def test_the_gap_of_a_trend(order, seed, passes, weighted):
    rng = np.random.default_rng(seed)
    y = (np.cumsum(rng.normal(size=30)) + 10.0 ** rng.integers(0, 6)) * 10.0 ** rng.integers(-6, 6)
    alpha = 10.0 ** rng.integers(-4, 1) * y.std()
    s = rng.integers(0, 3, size=30).astype(float) if weighted else np.ones(30)
    D = np.diff(np.eye(30), n=order + 1, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TrendFilter(order, alpha=alpha, max_iter=passes).fit(y, sample_weight=s)
    level = y.mean()
    terms = np.eye(30), y - level, s / s.sum(), as_loss("squared"), D
    terms = *terms, np.zeros(len(D)), np.full(len(D), alpha), 0.0
    best = objective(*terms, *near_optimum(*terms, 0))
    found = objective(*terms, model.trend_ - level, 0.0)
    # The trend is returned with its level, and so with the rounding of that.
    rounding = 1e-11 * y.var() + 1e-16 * alpha * np.abs(D).sum() * abs(level)
    assert found - best <= model.gap_ * (1 + 1e-9) + rounding
    if passes == 500:
        assert model.stopped_ == "tolerance"


@settings(max_examples=10, derandomize=True, phases=[Phase.generate])
@given(st.integers(0, 10**6), st.sampled_from([1, 4]), st.sampled_from(["logistic", "huber"]))
def test_the_gap_of_a_consensus(seed, rounds, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 4)) * 10.0 ** rng.integers(-4, 5, size=4)
    score = (X / np.abs(X).max(axis=0)) @ [1.0, 1.0, -1.0, 0.0] + 0.1 * rng.normal(size=90)
    y = np.where(score > 0, 1.0, -1.0) if loss == "logistic" else score
    D, l1 = np.diff(np.eye(4), axis=0), np.array([1e-3, 1e-2, 1e-4])
    shards = [(sparse.csr_matrix(X[:20]), y[:20]), (X[20:], y[20:])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = consensus_admm(shards, A=D, l1=l1, loss=loss, fit_intercept=True, max_rounds=rounds)
    check(X, y, as_loss(loss), D, np.zeros(3), l1, 0.0, np.ones(90), True, found)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_problem_too_wide_for_dense_matrices_is_certified_as_a_narrow_one(
    monkeypatch, fit_intercept
):
    """Two features are tied to each other, and A does not see four directions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    problem = make_admm_problem(
        sparse.csr_matrix(X),
        rng.normal(size=50),
        A=[[1.0, -1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0, 0.0, 0.0]],
        g=separable(2, l1=[0.0, 0.1], low=[0.3, -9.0], high=[0.3, 9.0]),
        c=[0.2, 0.0],
        loss="huber",
        fit_intercept=fit_intercept,
    )
    points = [rng.normal(size=problem.size) for _ in range(3)]
    state = np.zeros(2), rng.normal(size=2)
    narrow = [certificate(problem, x, *state) for x in points]
    monkeypatch.setattr(duality_gap, "DENSE_UP_TO", 1)
    monkeypatch.setattr(duality_gap, "DENSE_DIRECTIONS", 0)
    for x, expected in zip(points, narrow, strict=True):
        found = certificate(problem, x, *state)
        assert found.x[0] - found.x[1] == pytest.approx(0.5, abs=1e-12)
        np.testing.assert_allclose(found.x, expected.x, atol=1e-9)
        assert 0 < expected.gap < np.inf
        assert found.gap == pytest.approx(expected.gap, rel=1e-7)
