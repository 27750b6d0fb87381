"""The diagonal that Gram descent tries before it pays for a matrix, and when it goes."""

import numpy as np
import pytest
from scipy import sparse

from telic.optim import ElasticNet, make_problem, solve, solve_path
from telic.optim.methods import gram
from telic.optim.methods.gram import _Trial
from telic.optim.methods.sampled_gram import weighted_diagonal, weighted_gram

PENALTIES = {"ridge": {"l2": 1e-3}, "lasso": {"l1": 1e-2}, "both": {"l1": 1e-2, "l2": 1e-2}}


def rows_of(features, n=1500, d=150, seed=0):
    """Rows whose features are independent, or each nearly the one before."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + 3.0
    if features == "alike":
        for j in range(1, d):
            X[:, j] = 0.95 * X[:, j - 1] + 0.3 * X[:, j]
    return X


def target_of(loss, X, seed=1):
    rng = np.random.default_rng(seed)
    score = (X - X.mean(axis=0)) @ rng.normal(size=X.shape[1])
    score /= score.std()
    if loss in ("logistic", "squared_hinge"):
        return np.where(score + rng.normal(size=len(X)) > 0, 1.0, -1.0)
    if loss == "poisson":
        return rng.poisson(np.exp(0.5 * score)).astype(float)
    return score + rng.normal(size=len(X))


@pytest.fixture
def formed(monkeypatch):
    """The matrices that are formed, by how many rows they are of; said to be dear."""
    rows = []
    monkeypatch.setattr(gram, "_WORTH", 0.0)
    monkeypatch.setattr(gram, "_PASS", {True: 1.0, False: 1.0})
    monkeypatch.setattr(
        gram,
        "weighted_gram",
        lambda problem, *rest: rows.append(problem.design.n) or weighted_gram(problem, *rest),
    )
    return rows


@pytest.mark.parametrize("features", ["independent", "alike"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "squared_hinge", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_and_without_a_trial_the_optimum_is_the_same(
    formed, monkeypatch, features, penalty, loss, weighted
):
    X = rows_of(features, n=600, d=40)
    y = target_of(loss, X)
    weight = np.random.default_rng(2).integers(0, 3, len(X)) if weighted else None
    terms = {"loss": loss, "fit_intercept": True, "sample_weight": weight, **PENALTIES[penalty]}
    problem = make_problem(X, y, **terms)
    tried = solve(problem, method="gram", tol=1e-10)
    monkeypatch.setattr(gram, "_WORTH", np.inf)
    known = solve(problem, method="gram", tol=1e-12)
    assert tried.converged
    assert tried.objective - tried.gap <= known.objective <= tried.objective + 1e-12
    assert tried.gap <= 1e-10 * problem.null()[1]


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_independent_features_need_no_matrix_and_those_that_resemble_each_other_do(
    formed, loss, penalty, dtype
):
    for features in ("independent", "alike"):
        X = rows_of(features).astype(dtype)
        y = target_of(loss, X)
        result = solve(make_problem(X, y, loss=loss, fit_intercept=True, **PENALTIES[penalty]))
        assert result.converged
        assert bool(formed) == (features == "alike")


def test_features_that_resemble_each_other_are_seen_before_a_step_is_lost(formed, monkeypatch):
    X = rows_of("alike")
    passes = []
    problem = make_problem(X, target_of("squared", X), loss="squared", l2=0.1)
    for worth in (0.0, np.inf):
        monkeypatch.setattr(gram, "_WORTH", worth)
        passes.append(solve(problem).passes)
    assert passes[0] == passes[1] + 1  # of what was looked at


def test_groups_may_be_tried_too(formed):
    X = rows_of("independent", n=600, d=40)
    terms = {"loss": "squared", "l1": 0.02, "l2": 1e-3, "groups": np.arange(40) // 4}
    problem = make_problem(X, target_of("squared", X), fit_intercept=True, **terms)
    found = solve(problem, method="gram", tol=1e-9)
    assert not formed
    known = solve(problem, method="prox_newton", tol=1e-11)
    assert found.objective - found.gap <= known.objective <= found.objective + 1e-12


def test_a_constant_feature_stays_at_zero_while_a_diagonal_is_tried(formed):
    X = rows_of("independent", n=600, d=40)
    X[:, 0] = 5.0
    for penalty in PENALTIES.values():
        y = target_of("squared", X)
        result = solve(make_problem(X, y, loss="squared", fit_intercept=True, **penalty))
        assert result.converged
        assert result.coef[0] == 0.0
    assert not formed


def test_a_path_forms_the_matrix_that_all_its_penalties_share(formed):
    X = rows_of("independent")
    y = target_of("squared", X)
    problem = make_problem(X, y, loss="squared", fit_intercept=True)
    penalties = [ElasticNet(l1, 1e-3) for l1 in (0.3, 0.1, 0.03, 0.01)]
    results = list(solve_path(problem, penalties, method="gram", tol=1e-9))
    assert formed == [len(X)]
    for penalty, result in zip(penalties, results, strict=True):
        alone = make_problem(X, y, loss="squared", fit_intercept=True, l1=penalty.l1, l2=1e-3)
        known = solve(alone, method="prox_newton", tol=1e-11).objective
        assert result.objective - result.gap <= known <= result.objective + 1e-12


def test_only_a_matrix_that_costs_many_steps_over_dense_rows_is_put_off():
    def trial(n, d, loss="squared", kind=np.asarray, rows=None):
        problem = make_problem(kind(np.ones((n, d))), np.arange(n) % 2 * 2.0 - 1.0, loss=loss)
        return _Trial.before(problem, rows or n)

    assert trial(4000, 200) is not None
    assert trial(4000, 60) is None
    assert trial(4000, 200, kind=sparse.csr_array) is None
    assert trial(300, 200) is None  # a step costs more of the matrix than of the rows
    assert trial(4000, 200, rows=400, loss="logistic") is None
    # The matrix costs more where every row has its own curvature.
    assert trial(4000, 100) is None
    assert trial(4000, 100, loss="logistic") is not None


@pytest.mark.parametrize(
    ("price", "steps", "pays"),
    [
        # Of the way by e^16.1 each step does e^4: four steps in all.
        (3.1, [(1.0, np.exp(-4.0))], True),
        (2.9, [(1.0, np.exp(-4.0))], False),
        # Afterwards the mean of all steps counts.
        (4.0, [(1.0, np.exp(-4.0)), (1.0, np.exp(-5.5))], True),
        (3.0, [(1.0, np.exp(-4.0)), (1.0, np.exp(-5.5))], False),
        # What is nearer than expected goes on, as long as it comes nearer.
        (0.1, [(1.0, np.exp(-17.0))], True),
        (0.1, [(1.0, np.exp(-17.0)), (1.0, np.exp(-17.05))], False),
        (999.0, [(1.0, 0.89)], True),
        (999.0, [(1.0, 0.91)], False),
        (99.0, [(0.5, 1e-3)], False),
        (99.0, [(0.0, 1e-3)], False),
        (99.0, [(1.0, 0.0)], False),
        (99.0, [(1.0, -1e-20)], False),
        (99.0, [(1.0, np.nan)], False),
    ],
)
def test_a_trial_ends_when_the_steps_left_cost_more_than_a_matrix(price, steps, pays):
    trial, last, said = _Trial(price), 1.0, []
    for step, promised in steps:
        said.append(trial.pays(step, promised, last))
        last = promised
    assert said[-1] == pays


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_diagonal_is_that_of_the_matrix(fit_intercept):
    X = rows_of("alike", n=2500, d=7)
    X[:, 3] = 2.0
    weights = np.random.default_rng(0).random(2500)
    problem = make_problem(X, target_of("logistic", X), fit_intercept=fit_intercept)
    matrix = np.empty((7, 7))
    means, total = weighted_gram(problem, weights, matrix)
    narrow = make_problem((1e21 * X).astype(np.float32), target_of("logistic", X))
    squares = weighted_diagonal(narrow, weights)[0]  # which overflow in the data's own type
    np.testing.assert_allclose(squares, weights @ (1e21 * X) ** 2, rtol=1e-5)
    diagonal, own_means, own_total = weighted_diagonal(problem, weights)
    np.testing.assert_allclose(diagonal, matrix.diagonal(), rtol=1e-9)
    assert (diagonal[3] == 0.0) == fit_intercept
    np.testing.assert_allclose(own_means, means)
    assert own_total == pytest.approx(total)


def test_the_diagonal_that_is_tried_is_that_of_all_rows(formed):
    X = rows_of("independent")
    problem = make_problem(X, target_of("logistic", X), fit_intercept=True, l2=1e-3)
    z = np.zeros(len(X))
    model = gram._begun(problem, np.zeros(150), z, problem.back(problem.slopes(z)))
    expected = weighted_diagonal(problem, problem.curvatures(z))[0]
    np.testing.assert_array_equal(model.diagonal, expected)


def test_what_was_refused_is_not_tried_again(formed, monkeypatch):
    """Else poor samples, as these, would serve as long as the trial is content."""
    monkeypatch.setattr(gram, "_ROWS", 1)
    X = rows_of("alike")
    problem = make_problem(X, target_of("logistic", X), fit_intercept=True, l1=1e-3)
    results = []
    for worth in (0.0, np.inf):
        monkeypatch.setattr(gram, "_WORTH", worth)
        results.append((solve(problem).objective, tuple(formed)))
        formed.clear()
    assert results[0] == results[1]
    assert len(results[0][1]) > 1
