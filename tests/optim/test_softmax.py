"""Several classes at once: the objective, its certificate, and the estimator."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import logsumexp, softmax
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score

from telic.errors import InputError
from telic.optim import ElasticNetClassifier, ElasticNetClassifierCV, softmax_newton
from telic.optim.penalties import ElasticNet
from telic.optim.softmax import make_softmax_problem
from telic.optim.softmax_lbfgs import descend_ridge
from telic.optim.softmax_newton import (
    _extrapolate,
    _intercepts_alone,
    _Models,
    _State,
    solve_softmax,
)


class Case:
    """A small problem with all that makes rounding matter, and its objective."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.K = int(rng.integers(2, 6))
        n, d = int(rng.integers(self.K, 25)), int(rng.integers(1, 7))
        reach = rng.choice([0, 1, 6])
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-reach, reach, d)
        kind = rng.integers(0, 5)
        if kind == 1:
            X[:, 0] = 10.0 ** rng.uniform(2, 12) + np.arange(n)
        if kind == 2 and d > 1:
            X[:, 1] = X[:, 0]
        if kind == 3:
            X[:, -1] = 10.0 ** rng.uniform(-12, 12)
        self.X, self.labels = X, rng.permutation(np.arange(n) % self.K)
        if kind == 4:  # separated
            self.labels = np.argsort(np.argsort(X[:, 0])) * self.K // n
        weight = rng.random(n) + 1e-3 if rng.random() < 0.5 else np.ones(n)
        self.weight, self.mass = weight, weight / weight.sum()
        self.l1, self.l2 = (10.0 ** rng.uniform(-6, 1, 2)) * rng.choice([[0, 1], [1, 0], [1, 1]])
        self.fit_intercept = bool(rng.random() < 0.7)
        self.held = sparse.csr_matrix(X) if rng.random() < 0.3 else X
        self.grouped = bool(rng.random() < 0.4)
        self.offset = rng.normal(size=(n, self.K)) * rng.choice([0.0, 1.0, 30.0])
        self.problem = make_softmax_problem(
            *(self.held, self.labels),
            l1=self.l1,
            l2=self.l2,
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            grouped=self.grouped,
            offset=self.offset if self.offset.any() else None,
        )

    def norm(self, W):
        """What λ₁ weighs."""
        return self.K**0.5 * np.linalg.norm(W, axis=0).sum() if self.grouped else np.abs(W).sum()

    def objective(self, W, b):
        """P with exact predictions, by its definition."""
        exact = [
            [
                float(
                    sum(
                        (Fraction(v) * Fraction(w) for v, w in zip(x, row, strict=True)),
                        Fraction(c),
                    )
                )
                for row, c in zip(W.tolist(), b.tolist(), strict=True)
            ]
            for x in self.X.tolist()
        ]
        z = np.array(exact) + self.offset
        loss = logsumexp(z, axis=1) - z[np.arange(len(z)), self.labels]
        return self.mass @ loss + self.l1 * self.norm(W) + self.l2 / 2 * (W**2).sum()

    def descended(self, steps=100):
        """Where plain proximal gradient steps lead, which know nothing of any gap."""
        W, b = np.zeros((self.K, self.X.shape[1])), np.log(self.problem.shares)
        b = b if self.fit_intercept else np.zeros(self.K)
        centre = self.mass @ self.X if self.fit_intercept else np.zeros(self.X.shape[1])
        X = self.X - centre
        steepest = 0.5 * (self.mass @ (X**2).sum(axis=1)) + self.l2
        step = 1.0 / steepest if steepest else 0.0  # nothing varies, and nothing is to be gained
        for _ in range(steps):
            wrong = softmax(X @ W.T + b + self.offset, axis=1) - np.eye(self.K)[self.labels]
            slope = (wrong * self.mass[:, None]).T @ X + self.l2 * W
            W = W - step * slope
            if self.grouped:
                norms = np.linalg.norm(W, axis=0)
                left = np.maximum(norms - step * self.l1 * self.K**0.5, 0.0)
                W = W * np.divide(left, norms, out=np.zeros_like(norms), where=norms > 0.0)
            else:
                W = np.sign(W) * np.maximum(np.abs(W) - step * self.l1, 0.0)
        return self.objective(W, b - W @ centre)

    def solve(self, tol, passes):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return solve_softmax(self.problem, tol=tol, max_passes=passes)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_no_gap_is_smaller_than_the_true_one(seed):
    case = Case(seed)
    runs = [case.solve(0.0, passes) for passes in (1, 3, 9, 400)]
    true = [case.objective(run.coef, run.intercept) for run in runs]
    least = min([*true, case.descended()])
    for run, objective in zip(runs, true, strict=True):
        assert run.objective == pytest.approx(objective, rel=1e-9)
        assert objective - run.gap <= least + 1e-12 * (1.0 + objective)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_any_probabilities_bound_the_optimum_from_below(seed):
    case = Case(seed)
    problem, rng = case.problem, np.random.default_rng(seed)
    best = case.solve(1e-9, 600)
    own = np.eye(case.K)[case.labels]
    for p in (
        softmax(rng.normal(size=own.shape) * 3.0, axis=1),
        own,
        0.9 * own + 0.1 / case.K,
        np.roll(own, 1, axis=1),
    ):
        bound = problem.lower_bound(p, problem.back(p))
        assert bound <= best.objective + 1e-12 * (1.0 + best.objective)


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_the_bound_is_the_duals_objective_at_the_mixed_rows(spread):
    """By definition, under squares alone: Σ mass (⟨q − e, o⟩ − Σ q log q) − ‖Xᵀ(q − e)‖²/(2 λ₂)."""
    rng = np.random.default_rng(4)
    X, labels, weight = rng.normal(size=(40, 3)), rng.integers(0, 3, 40), rng.random(40)
    offset = spread * rng.normal(size=(40, 3))
    terms = {"l1": 0.0, "l2": 0.3, "sample_weight": weight, "fit_intercept": True}
    problem = make_softmax_problem(X, labels, **terms, offset=offset)
    p, mass = softmax(rng.normal(size=(40, 3)), axis=1), problem.mass
    excess = mass @ p - problem.shares
    ratio = (excess / problem.shares).max()
    row = problem.shares - excess / ratio
    q = (p + ratio * row) / (1.0 + ratio)
    np.testing.assert_allclose(mass @ q, problem.shares)
    slopes = q - np.eye(3)[labels]
    pulled = slopes.T @ (mass[:, None] * X)
    dual = mass @ ((slopes * offset).sum(axis=1) - (q * np.log(q)).sum(axis=1))
    dual -= (pulled**2).sum() / (2 * 0.3)
    assert problem.lower_bound(p, problem.back(p)) == pytest.approx(dual, rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_bound_is_the_optimum_at_the_solution(grouped):
    X, y = load_iris(return_X_y=True)
    for l1, l2 in ((0.0, 1e-2), (1e-2, 0.0), (1e-2, 1e-3)):
        problem = make_softmax_problem(
            *(X, y),
            l1=l1,
            l2=l2,
            sample_weight=np.ones(150),
            fit_intercept=True,
            grouped=grouped,
        )
        result = solve_softmax(problem, tol=1e-9, max_passes=5000)
        assert result.converged
        assert result.gap <= 1e-9 * np.log(3)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_matrix])
def test_the_objective_is_scikit_learns(ratio, kind):
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = 1.0 + (np.arange(150) % 3)
    ours = ElasticNetClassifier(l1_ratio=ratio, C=0.3, tol=1e-9, max_iter=5000)
    ours.fit(kind(X), y, weight)
    theirs = LogisticRegression(l1_ratio=ratio, C=0.3, solver="saga", max_iter=20_000, tol=1e-9)
    theirs.fit(X, y, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-4)
    assert ours.gap_.shape == (1,)
    assert ours.score(X, y) > 0.9


@pytest.mark.parametrize("grouped", [False, True])
def test_many_features_are_solved_by_the_diagonal(monkeypatch, grouped):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 30)), np.arange(60) % 3
    terms = {"l1": 1e-2, "l2": 1e-2, "sample_weight": np.ones(60), "fit_intercept": True}
    problem = make_softmax_problem(X, y, grouped=grouped, **terms)
    expected = solve_softmax(problem, tol=1e-8, max_passes=5000)
    monkeypatch.setattr("telic.optim.softmax_newton.LARGEST", 10)
    found = solve_softmax(problem, tol=1e-8, max_passes=20_000)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, abs=3e-8)


@pytest.mark.parametrize("far", [0.0, 1e5])
@pytest.mark.parametrize("grouped", [False, True])
def test_a_ridge_of_few_rows_is_solved_with_as_many_features_as_rows(monkeypatch, grouped, far):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 80)).astype(np.float32), np.arange(30) % 3
    X[:, 0] += far
    features, form = [], _Models.form

    def noted(models, p):
        features.append(models.problem.design.d)
        form(models, p)

    monkeypatch.setattr(_Models, "form", noted)
    terms = {"penalty": "l2", "C": 3.0, "grouped": grouped, "tol": 1e-9}
    model = ElasticNetClassifier(**terms).fit(X, y)
    weak = ElasticNetClassifierCV(l1_ratio=0.0, Cs=[0.1, 3.0], cv=2, grouped=grouped, tol=1e-9)
    weak.fit(X, y)
    assert features
    assert set(features) <= {15, 30}
    X = X.astype(float) - X.mean(axis=0, dtype=float)
    theirs = LogisticRegression(C=3.0, tol=1e-9, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-4)
    assert model.gap_[0] <= 1e-9 * np.log(3)


@pytest.mark.parametrize("seed", [15, 25, 30])
def test_a_small_loss_of_large_scores_converges(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 20)), rng.integers(3, size=30)
    X[:, 0] *= 1e6
    model = ElasticNetClassifier(penalty="l2", C=1e3, fit_intercept=False, tol=1e-8).fit(X, y)
    assert model.n_iter_[0] < 300  # without a warning, too, which the tests do not let pass
    assert model.gap_[0] <= 1e-8 * np.log(3)


def test_groups_are_used_by_all_classes_or_by_none():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(150, 6))])
    terms = {"l1": 0.03, "l2": 1e-3, "sample_weight": np.ones(150), "fit_intercept": True}
    problem = make_softmax_problem(X, y, grouped=True, **terms)
    found = solve_softmax(problem, tol=1e-10, max_passes=5000)
    assert found.converged
    used = (found.coef != 0).sum(axis=0)
    assert set(used.tolist()) == {0, 3}
    # Optimal by its definition: the slope lies in λ₁√K times the subdifferential of the norm.
    p = softmax(X @ found.coef.T + found.intercept, axis=1)
    slope = ((p - np.eye(3)[y]) / 150).T @ X + 1e-3 * found.coef
    reach = 0.03 * 3**0.5
    assert (np.linalg.norm(slope[:, used == 0], axis=0) < reach).all()
    W = found.coef[:, used > 0]
    np.testing.assert_allclose(
        slope[:, used > 0], -reach * W / np.linalg.norm(W, axis=0), atol=1e-5
    )


def test_a_warm_start_takes_fewer_passes_also_with_a_far_column():
    X, y = load_iris(return_X_y=True)
    X[:, 0] += 1e6
    model = ElasticNetClassifier(warm_start=True).fit(X, y)
    cold = int(model.n_iter_[0])
    assert model.fit(X, y).n_iter_[0] < cold / 2


def test_one_against_the_rest_is_there_on_request():
    X, y = load_iris(return_X_y=True)
    ovr = ElasticNetClassifier(multi_class="ovr").fit(X, y)
    for k in range(3):
        one = ElasticNetClassifier().fit(X, y == k)
        np.testing.assert_allclose(ovr.coef_[k], one.coef_[0], atol=1e-3)
    np.testing.assert_allclose(ovr.predict_proba(X).sum(axis=1), 1.0)
    assert ovr.gap_.shape == (3,)
    assert ElasticNetClassifier(loss="squared_hinge").fit(X, y).gap_.shape == (3,)


@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e4])
def test_intercepts_alone_make_the_classes_as_frequent_as_they_are(spread):
    """The optimality condition: the mean of the probabilities is the share of each class."""
    rng = np.random.default_rng(0)
    labels, weight = rng.integers(0, 4, 500), rng.random(500)
    offset = spread * rng.normal(size=(500, 4))
    terms = {"l1": 0.1, "l2": 0.0, "sample_weight": weight}
    data = rng.normal(size=(500, 2)), labels
    problem = make_softmax_problem(*data, **terms, fit_intercept=True, offset=offset)
    b, risk = _intercepts_alone(problem)
    scores = offset + b
    loss = logsumexp(scores, axis=1) - scores[np.arange(500), labels]
    assert risk == pytest.approx(problem.mass @ loss, rel=1e-12)
    if spread < 1e4:  # there, hardly any row can be moved from its class to another
        np.testing.assert_allclose(problem.mass @ softmax(scores, axis=1), problem.shares)
    fixed = make_softmax_problem(*data, **terms, fit_intercept=False, offset=offset)
    b, risk = _intercepts_alone(fixed)
    loss = logsumexp(offset, axis=1) - offset[np.arange(500), labels]
    assert not b.any()
    assert risk == pytest.approx(problem.mass @ loss, rel=1e-12)


@pytest.mark.parametrize("multi_class", ["multinomial", "ovr"])
def test_each_class_has_an_offset_of_its_scores(multi_class):
    """What a model knows already is not learned again: its log probabilities are the offset."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    known = 2.0 * X[:, [0]] * [1.0, -1.0, 0.0]
    scores = known + X[:, [1]] * [0.0, 1.0, -1.0]
    y = np.array([rng.choice(3, p=p) for p in softmax(scores, axis=1)])
    terms = {"C": 1.0, "l1_ratio": 0.9, "multi_class": multi_class}
    model = ElasticNetClassifier(**terms).fit(X, y, offset=known)
    assert np.abs(model.coef_[:, 1]).max() > 0.5
    if multi_class == "multinomial":
        assert np.abs(model.coef_[:, [0, 2]]).max() < 0.2
        assert np.abs(ElasticNetClassifier(**terms).fit(X, y).coef_[:, 0]).max() > 1.0
        expected = softmax(X @ model.coef_.T + model.intercept_ + known, axis=1)
        np.testing.assert_allclose(model.predict_proba(X, known), expected)
    else:
        one = ElasticNetClassifier(C=1.0, l1_ratio=0.9).fit(X, y == 2, offset=known[:, 2])
        np.testing.assert_allclose(model.coef_[2], one.coef_[0], atol=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X, known), model.decision_function(X) + known
    )
    assert model.score(X, y, offset=known) > model.score(X, y) + 0.05
    chosen = ElasticNetClassifierCV(Cs=[1e-4, 1.0], l1_ratio=0.9, cv=3, multi_class=multi_class)
    chosen.fit(X, y, offset=known)
    assert chosen.C_ == 1.0
    np.testing.assert_allclose(chosen.coef_, model.coef_, atol=1e-2)
    assert chosen.scores_.mean(axis=-1).max() == pytest.approx(
        model.score(X, y, offset=known), abs=0.05
    )


def test_what_softmax_cannot_do_is_said():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="multi_class='ovr'"):
        ElasticNetClassifier(solver="saga").fit(X, y)
    with pytest.raises(InputError, match="multi_class is 'both'"):
        ElasticNetClassifier(multi_class="both").fit(X, y)
    with pytest.raises(InputError, match="max_iter"):
        ElasticNetClassifier(max_iter=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="softmax stopped after .* passes"):
        ElasticNetClassifier(max_iter=2).fit(X, y)
    with pytest.raises(InputError, match="grouped is for classes that are fitted together"):
        ElasticNetClassifier(grouped=True, multi_class="ovr").fit(X, y)
    with pytest.raises(InputError, match="multi_class='ovr'"):
        ElasticNetClassifierCV(solver="saga").fit(X, y)
    for bad in (np.zeros(150), np.zeros((150, 2)), np.zeros((3, 150))):
        for refused in (ElasticNetClassifier().fit, ElasticNetClassifierCV().fit):
            with pytest.raises(
                InputError, match=r"expected \(150, 3\): a number for each row of X"
            ):
                refused(X, y, offset=bad)
    holes = np.zeros((150, 3))
    holes[7, 1] = np.nan
    with pytest.raises(InputError, match="offset contains NaN or infinity at row 7"):
        ElasticNetClassifier().fit(X, y, offset=holes)
    with pytest.raises(InputError, match="mask"):
        ElasticNetClassifier().fit(X, y, offset=np.ma.masked_invalid(holes))


@pytest.mark.parametrize("grouped", [False, True])
def test_cross_validation_fits_the_classes_together_too(grouped):
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    Cs, cv = [0.01, 0.1, 1.0], StratifiedKFold(3)
    model = ElasticNetClassifierCV(Cs=Cs, cv=cv, grouped=grouped, tol=1e-8).fit(X, y)
    # Folds keep the penalty per unit of weight: two thirds of the rows, and C half as large again.
    for k, C in enumerate(Cs):
        one = ElasticNetClassifier(C=1.5 * C, grouped=grouped, tol=1e-8)
        np.testing.assert_allclose(model.scores_[0, k], cross_val_score(one, X, y, cv=cv))
    alone = ElasticNetClassifier(C=model.C_, grouped=grouped, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-3)
    assert model.gap_.shape == model.n_iter_.shape == (1,)
    assert model.gap_[0] <= 1e-8 * np.log(3)
    if grouped:
        assert set((alone.coef_ != 0).sum(axis=0).tolist()) <= {0, 3}
    else:
        ovr = ElasticNetClassifierCV(Cs=Cs, cv=cv, multi_class="ovr").fit(X, y)
        assert ovr.gap_.shape == (3,)


def test_without_a_penalty_the_gradient_says_when_it_is_done():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]  # three classes that overlap
    model = ElasticNetClassifier(penalty=None, tol=1e-6).fit(X, y)
    assert np.isnan(model.gap_).all()
    P = model.predict_proba(X) - np.eye(3)[y]
    at_start = abs(X.T @ (1 / 3 - np.eye(3)[y]) / 150).max()
    assert abs(X.T @ P).max() / 150 <= 1e-6 * at_start * 3
    known = LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), known.predict_proba(X), atol=1e-3)
    rough = ElasticNetClassifier(penalty=None, tol=1e-2).fit(X, y)
    assert rough.n_iter_[0] < model.n_iter_[0]
    with pytest.warns(ConvergenceWarning, match=r"softmax stopped .* with a gradient of"):
        ElasticNetClassifier(penalty=None, tol=1e-9, max_iter=3).fit(X, y)


def test_a_class_without_weight_is_refused():
    with pytest.raises(InputError, match="a class has no weight"):
        make_softmax_problem(
            *(np.eye(3), np.arange(3)),
            l1=0.1,
            l2=0.0,
            sample_weight=np.array([1.0, 1.0, 0.0]),
            fit_intercept=True,
        )


def test_of_states_that_hardly_differ_there_is_no_extrapolation():
    problem = Case(3).problem
    state = _State.of(problem, (np.zeros((problem.classes, problem.design.d)), problem.shares))
    W, b, z = state.W, state.b, state.z
    for differ in (0.0, 1e-160):
        _extrapolate(problem, state, [(W + i * differ, b, z) for i in range(6)])
        assert state.W is W


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_the_diagonal_model_is_its_definition_and_left_at_its_least(kind, grouped):
    """Where features are many: one curvature each, and a step that needs no iteration."""
    rng = np.random.default_rng(0)
    n, d, K = 30, 8, 3
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    l1, l2, bend = 0.05, 0.3, 1.7
    problem = make_softmax_problem(
        *(kind(X), np.arange(n) % K),
        **{"l1": l1, "l2": l2, "grouped": grouped, "fit_intercept": True},
        sample_weight=rng.random(n),
    )
    models, p = _Models(problem, rows=n, full=False), rng.dirichlet(np.ones(K), n)
    models.form(p)
    matrix = problem.design.matrix
    matrix = matrix.toarray() if problem.design.is_sparse else matrix
    curved = problem.mass[:, None] * p * (1 - p)
    assert models.matrices == pytest.approx(curved.T @ matrix**2, rel=1e-9)
    assert models.weights == pytest.approx(curved.sum(axis=0), rel=1e-9)
    W, gradient, slope_b = rng.normal(size=(K, d)), rng.normal(size=(K, d)) / 5, rng.normal(size=K)
    W[:, :2], gradient[:, 0] = 0.0, 1e-3  # a column that stays 0
    target, moves = models.minimum(W, gradient, slope_b, bend)
    assert moves == pytest.approx(-slope_b / (bend * curved.sum(axis=0)), rel=1e-9)
    bends = bend * models.matrices
    slope = gradient + (bends.max(axis=0) if grouped else bends) * (target - W) + l2 * target
    at_zero = ~target.any(axis=0) if grouped else target == 0
    if grouped:  # −slope is a subgradient of l1 √K ‖·‖ at each column
        cut, norms = l1 * K**0.5, np.linalg.norm(target, axis=0)
        own = target[:, ~at_zero] / norms[~at_zero]
        assert slope[:, ~at_zero] == pytest.approx(-cut * own, rel=1e-9)
        assert (np.linalg.norm(slope[:, at_zero], axis=0) <= cut).all()
    else:
        assert slope[~at_zero] == pytest.approx(-l1 * np.sign(target[~at_zero]), rel=1e-9)
        assert (np.abs(slope[at_zero]) <= l1).all()
    assert not target[:, 0].any()
    assert (~at_zero).sum() > 4


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_warm_start_on_a_constant_feature_is_left(grouped, value):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    X[:, 0] = value
    given = {"l1": 0.02, "l2": 0.0, "fit_intercept": True, "sample_weight": np.ones(100)}
    problem = make_softmax_problem(X, rng.integers(0, 3, 100), grouped=grouped, **given)
    start = rng.normal(size=(3, 5)), np.zeros(3)
    found = solve_softmax(problem, tol=1e-7, max_passes=400, start=start)
    assert found.converged
    assert (found.coef[:, 0] == 0.0).all()


def _wide(seed, *, fit_intercept=True, offset=None, held=np.asarray, spread=0.0, shift=0.0):
    """A ridge of more numbers than small problems have, and far too dear for Newton's models."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 120)) * 10.0 ** rng.uniform(-spread, spread, 120) + shift
    labels = rng.permutation(np.arange(150) % 3)
    return make_softmax_problem(
        *(held(X), labels),
        l1=0.0,
        l2=1e-3,
        sample_weight=rng.random(150) + 0.1,
        fit_intercept=fit_intercept,
        offset=None if offset is None else rng.normal(size=(150, 3)) * offset,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"fit_intercept": False},
        {"offset": 3.0},
        {"held": sparse.csr_matrix},
        {"spread": 2.0},
        {"shift": 1.0},
    ],
    ids=["plain", "no intercept", "offset", "sparse", "scales", "off centre"],
)
def test_a_ridge_is_brought_to_its_gap_by_lbfgs(monkeypatch, options):
    problem = _wide(0, **options)
    alone, zero = _intercepts_alone(problem)
    newton = solve_softmax(problem, tol=1e-12, max_passes=1e5)  # it is small for the rule
    nothing = np.zeros((3, 120))
    W, _, z, passes = descend_ridge(
        *(problem, nothing, alone), gap=1e-6 * zero, max_passes=1e4, patience=1e4
    )
    p = np.empty_like(z)
    objective = problem.risk(z, p) + problem.value(W)
    gap = objective - problem.lower_bound(p, problem.back(p))
    assert 0 <= gap <= 1e-6 * zero + 1e-15
    assert newton.objective - 1e-12 <= objective <= newton.objective + gap
    # The gap that it stops at is that of the gradient.
    slopes = problem.back(p) - problem.own + problem.penalty.l2 * W
    assert gap == pytest.approx((slopes**2).sum() / (2 * problem.penalty.l2), rel=1e-6, abs=1e-15)
    monkeypatch.setattr(softmax_newton, "_SMALL", 0)
    found = solve_softmax(problem, tol=1e-6, max_passes=1e4)
    assert (found.passes, len(found.history)) == (passes + 2, 1)


def test_lbfgs_gives_up_and_newtons_models_go_on(monkeypatch):
    problem = _wide(1, spread=2.0)
    alone, zero = _intercepts_alone(problem)
    _, _, _, passes = descend_ridge(
        *(problem, np.zeros((3, 120)), alone), gap=1e-12 * zero, max_passes=1e4, patience=1.0
    )
    assert 2 * 21 <= passes <= 2 * 30
    _, _, _, passes = descend_ridge(
        *(problem, np.zeros((3, 120)), alone), gap=1e-12 * zero, max_passes=20, patience=1e4
    )
    assert 20 <= passes <= 24
    monkeypatch.setattr(softmax_newton, "_SMALL", 0)
    monkeypatch.setattr(softmax_newton, "_cost_of_models", lambda problem: -10.0)
    found = solve_softmax(problem, tol=1e-10, max_passes=1e4)
    assert found.converged
    assert len(found.history) > 1


@pytest.mark.parametrize("l2", [10.0, 1e-3], ids=["strong", "weak"])
def test_diagonal_models_are_tried_before_lbfgs(monkeypatch, l2):
    problem = replace(_wide(2), penalty=ElasticNet(0.0, l2))
    monkeypatch.setattr(softmax_newton, "LARGEST", 1)
    monkeypatch.setattr(softmax_newton, "_SMALL", 0)
    asked = []

    def ask(*given, max_passes, **options):
        asked.append(max_passes)
        return descend_ridge(*given, max_passes=max_passes, **options)

    monkeypatch.setattr(softmax_newton, "descend_ridge", ask)
    assert solve_softmax(problem, tol=1e-6, max_passes=1e4).converged
    assert asked == ([9e3] if l2 < 1 else [])
    monkeypatch.setattr(softmax_newton, "LARGEST", 10**6)  # no diagonals: they may have half
    assert solve_softmax(problem, tol=1e-6, max_passes=1e4).converged
    assert asked[-1] == 5e3


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_intercepts_of_all_classes_add_up_to_nothing(shift, penalty):
    """A common part of them changes no probability, and would be left to where the search began."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + 2 * rng.normal(size=90) > 0).astype(int) + 2 * (rng.random(90) < 0.2)
    times = rng.integers(1, 4, 90)
    fits = [
        ElasticNetClassifier(penalty=penalty, C=0.5, tol=1e-10).fit(*rows, **weights)
        for rows, weights in (
            ((X + shift, y), {"sample_weight": times}),
            ((np.repeat(X + shift, times, axis=0), np.repeat(y, times)), {}),
        )
    ]
    if not shift:
        assert [fit.intercept_.sum() for fit in fits] == pytest.approx([0.0, 0.0], abs=1e-12)
    if penalty == "l2":  # under λ₁ coefficients of four classes may have a common part, too
        scores = [fit.decision_function(X + shift) for fit in fits]
        np.testing.assert_allclose(*scores, atol=1e-4)
