"""Paths: each penalty is solved as if it came alone, and sooner."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression, PoissonRegressor, RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import scale

from telic.errors import InputError
from telic.optim import (
    ElasticNet,
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
    GroupElasticNet,
    choose_method,
    make_problem,
    minimize,
    solve,
    solve_path,
)
from telic.optim.penalties import group_penalty

LOG_LINK = ["poisson", "gamma", "tweedie"]
PENALTIES = [ElasticNet(l1, l2) for l1, l2 in ((0.2, 0.0), (0.05, 0.01), (0.0, 0.1), (0.0, 0.02))]


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca", "auto"])
@pytest.mark.parametrize("far", [0.0, 1e7])
def test_each_penalty_of_a_path_is_solved_as_if_it_came_alone(make_data, loss, method, far):
    X, y = make_data(loss)
    X[:, 0] += far
    problem = make_problem(X, y, loss=loss, fit_intercept=True)
    penalties = [*PENALTIES, PENALTIES[1], ElasticNet(0.01, 0.01)]
    if method == "sdca":
        penalties = [each for each in penalties if each.l2 > 0]
    options = {"method": method, "tol": 1e-10, "max_passes": 3000}
    for penalty, found in zip(penalties, solve_path(problem, penalties, **options), strict=True):
        alone = make_problem(X, y, loss=loss, l1=penalty.l1, l2=penalty.l2, fit_intercept=True)
        expected = solve(alone, **options)
        assert found.converged
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)
        np.testing.assert_allclose(found.coef, expected.coef, atol=2e-4)


@pytest.mark.parametrize("d", [15, 600])
def test_a_path_reads_the_data_less_often_than_its_penalties_do_alone(make_data, d):
    X, _ = make_data("poisson", n=400, d=d)
    y = np.random.default_rng(0).poisson(np.exp(X[:, :5].sum(axis=1) / 2)).astype(float)
    problem = make_problem(X, y, loss="poisson", fit_intercept=True)
    penalties = [ElasticNet(l1, l1) for l1 in np.geomspace(0.3, 0.02, 30)]
    path = sum(result.gradients for result in solve_path(problem, penalties))
    alone = [
        solve(make_problem(X, y, loss="poisson", l1=p.l1, l2=p.l2, fit_intercept=True))
        for p in penalties
    ]
    assert path < 0.7 * sum(result.gradients for result in alone)


def test_results_of_a_path_are_not_changed_by_the_next(make_data):
    X, y = make_data("poisson")
    path = solve_path(make_problem(X, y, loss="poisson"), PENALTIES)
    first = next(path)
    kept = first.coef.copy()
    assert len(list(path)) == 3
    np.testing.assert_array_equal(first.coef, kept)


def test_a_penalty_that_the_method_does_not_know_is_refused(make_data):
    X, y = make_data()
    penalties = [PENALTIES[0], group_penalty(np.arange(15) // 3, l1=0.1, l2=0.0)]
    penalties[0] = ElasticNet(0.1, 0.1)
    with pytest.raises(InputError, match="sdca does not know groups"):
        list(solve_path(make_problem(X, y), penalties, method="sdca"))


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
def test_a_path_goes_on_from_features_to_groups_and_to_others(make_data, method):
    X, y = make_data()
    kinds = [np.arange(15), np.arange(15) // 3, np.arange(15) % 4, np.arange(15) // 3]
    penalties = [ElasticNet(0.1, 0.0)]
    penalties += [group_penalty(labels, l1=0.05, l2=0.0) for labels in kinds]
    found = list(solve_path(make_problem(X, y), penalties, method=method, tol=1e-9))
    for result, labels in zip(found[1:], kinds, strict=True):
        alone = solve(make_problem(X, y, groups=labels, l1=0.05), method="gram", tol=1e-9)
        assert result.objective == pytest.approx(alone.objective, rel=1e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_groups_of_a_wide_set_enter_a_path_as_a_whole(make_data, loss, kind):
    X, y = make_data(loss, n=60, d=300, kind=kind)
    labels = np.arange(300) % 75
    problem = make_problem(X, y, loss=loss, groups=labels, fit_intercept=True)
    z = np.full(60, problem.null()[0])
    top = problem.penalty.dual_norm(-problem.back(problem.slopes(z)))
    penalties = [group_penalty(labels, l1=0.6 * a, l2=0.4 * a) for a in top * 0.6 ** np.arange(8)]
    assert choose_method(replace(problem, penalty=penalties[0])) == "prox_newton"
    found = list(solve_path(problem, penalties, tol=1e-8))
    expected = solve_path(problem, penalties, method="gram", tol=1e-8)
    for ours, other in zip(found, expected, strict=True):
        assert ours.converged
        assert abs(ours.objective - other.objective) <= ours.gap + other.gap
        used = np.unique(labels[ours.coef != 0])
        # A column of zeros has no coefficient.
        filled = np.diff(problem.design.matrix.tocsc().indptr) > 0 if kind == "csr" else X.any(0)
        assert (ours.coef != 0).sum() == (np.isin(labels, used) & filled).sum()
    assert 0 < used.size < 75


@pytest.mark.parametrize("before", [[], [ElasticNet(0.1, 0.0)]])
def test_no_group_is_ever_split(make_data, monkeypatch, before):
    """Not where more violate than enter at once, nor after features that entered singly."""
    X, y = make_data(n=60, d=350)
    penalty = group_penalty(np.arange(350) // 7, l1=1e-3, l2=1e-3)
    among = GroupElasticNet.among
    seen = []

    def watched(self, features):
        seen.append(np.bincount(features // 7, minlength=50))
        return among(self, features)

    monkeypatch.setattr(GroupElasticNet, "among", watched)
    path = solve_path(make_problem(X, y), [*before, penalty], method="prox_newton", tol=1e-9)
    assert list(path)[-1].converged
    assert np.isin(seen, [0, 7]).all()
    assert (seen[0] == 0).any()


def test_cross_validation_chooses_a_penalty_of_groups(make_data):
    X, y = make_data("squared")
    labels = np.arange(15) // 3
    model = ElasticNetRegressorCV(groups=labels, alphas=8, eps=0.05, cv=3, tol=1e-9).fit(X, y)
    first = ElasticNetRegressor(model.alphas_[0, 0] * 0.999, groups=labels, tol=1e-9).fit(X, y)
    assert np.unique(labels[first.coef_ != 0]).size == 1  # the strongest that leaves a group
    alone = ElasticNetRegressor(model.alpha_, groups=labels, tol=1e-9).fit(X, y)
    terms = {"l1": model.alpha_ / 2, "l2": model.alpha_ / 2, "groups": labels}
    found = minimize(X, y, loss="squared", fit_intercept=True, tol=1e-9, **terms)
    for coef in (alone.coef_, found.coef):
        np.testing.assert_allclose(model.coef_, coef, atol=1e-4)
    for train, test in KFold(3).split(X):
        part = ElasticNetRegressor(model.alphas_[0, 3], groups=labels, tol=1e-9)
        score = part.fit(X[train], y[train]).score(X[test], y[test])
        assert np.isclose(model.scores_[0, 3], score, atol=1e-4).any()
    X, y = make_data("logistic")
    chosen = ElasticNetClassifierCV(groups=labels, Cs=[1.0, 0.1], cv=3, tol=1e-9).fit(X, y)
    alone = ElasticNetClassifier(C=chosen.C_, groups=labels, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(chosen.coef_, alone.coef_, atol=1e-4)
    assert np.isin(np.bincount(labels, chosen.coef_[0] != 0), [0, 3]).all()
    with pytest.raises(InputError, match="groups is not for several classes that are fitted"):
        ElasticNetClassifier(groups=labels).fit(X, np.arange(y.size) % 3)


def test_groups_in_use_beyond_the_matrix_are_refused(make_data, monkeypatch):
    monkeypatch.setattr("telic.optim.methods.prox_newton_gram.LARGEST_SET", 20)
    X, y = make_data(n=60, d=40)
    groups = np.arange(40) // 4
    assert minimize(X, y, groups=groups, l1=0.1, method="prox_newton").converged
    with pytest.raises(InputError, match=r"hold more than 20 features. Raise l1, or use saga"):
        minimize(X, y, groups=groups, l1=1e-3, method="prox_newton", tol=1e-9)


def test_an_exposure_is_a_weight_of_rates(make_data):
    """What scikit-learn's users do who have no offset: rates, weighted by the exposures."""
    X, y = make_data("poisson")
    exposure = np.random.default_rng(1).uniform(0.1, 5.0, y.size)
    rates = PoissonRegressor(alpha=0.1, tol=1e-12, max_iter=1000)
    rates.fit(X, y / exposure, sample_weight=exposure)
    # scikit-learn takes the mean by weight.
    ours = ElasticNetRegressor(0.1 * exposure.mean(), l1_ratio=0.0, loss="poisson", tol=1e-12)
    ours.fit(X, y, offset=np.log(exposure))
    np.testing.assert_allclose(ours.predict(X), rates.predict(X), rtol=1e-5)
    np.testing.assert_allclose(ours.predict(X, np.log(exposure)), rates.predict(X) * exposure, 1e-5)
    assert ours.score(X, y) != ours.score(X, y, offset=np.log(exposure))
    weight = np.arange(1.0, 1.0 + y.size)
    plain = PoissonRegressor(alpha=0.1, tol=1e-12, max_iter=1000).fit(X, y, weight)
    ours = ElasticNetRegressor(0.1, l1_ratio=0.0, loss="poisson", tol=1e-12).fit(X, y, weight)
    assert ours.score(X, y, weight) == pytest.approx(plain.score(X, y, weight), abs=1e-6)
    assert np.isnan(ours.score(X, np.ones_like(y)))


@pytest.mark.parametrize(
    ("loss", "method"),
    [(loss, "sdca") for loss in ("squared", "huber", *LOG_LINK)]
    + [
        (loss, method)
        for loss in ("squared", "huber", *LOG_LINK, "logistic", "squared_hinge")
        for method in ("gram", "prox_newton")
    ],
)
@pytest.mark.parametrize("n", [200, 4000])  # a sample of the rows makes the first model of many
def test_the_objective_with_an_offset_is_that_of_its_definition(make_data, loss, method, n):
    X, y = make_data(loss, n=n)
    offset = 2 * np.random.default_rng(1).normal(size=y.size)
    options = {"loss": loss, "l1": 0.05, "l2": 0.01, "offset": offset, "fit_intercept": True}
    found = minimize(X, y, method=method, tol=1e-9, **options)
    value = make_problem(X, y, loss=loss).loss.value

    def objective(w, b):
        return value(X @ w + b + offset, y).mean() + 0.05 * np.abs(w).sum() + 0.005 * w @ w

    least = objective(found.coef, found.intercept)
    assert found.objective == pytest.approx(least, rel=1e-12)
    for move in 1e-3 * np.random.default_rng(2).normal(size=(50, 16)):
        assert objective(found.coef + move[1:], found.intercept + move[0]) >= least - 1e-9


@pytest.mark.parametrize("ratio", [0.0, 0.5])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("scaled", [False, True])
def test_an_automatic_grid_reaches_what_ridge_finds_in_any_unit(ratio, unit, scaled):
    X, y = load_diabetes(return_X_y=True)
    X = scale(X) if scaled else X
    ridge = RidgeCV(alphas=np.logspace(-4, 4, 50), cv=5).fit(scale(X), y)
    path = ElasticNetRegressorCV(l1_ratio=ratio, alphas=50).fit(X, unit * y)
    assert path.scores_.mean(axis=-1).max() == pytest.approx(ridge.best_score_, abs=0.005)
    assert path.alphas_[0, -1] < path.alpha_ < path.alphas_[0, 0]
    # A grid's ends are where the penalty leaves little, and where it changes little.
    ends = [
        ElasticNetRegressor(alpha=alpha, l1_ratio=ratio, tol=1e-9)
        .fit(X, unit * y)
        .score(X, y * unit)
        for alpha in path.alphas_[0, [0, -1]]
    ]
    assert ends[0] < 0.3
    assert ends[1] == pytest.approx(LinearRegression().fit(X, y).score(X, y), abs=1e-3)


def test_the_strongest_ridge_is_the_largest_curvature():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(60, 5)) * [1, 2, 3, 4, 9], rng.uniform(0.5, 2, 60)
    problem = make_problem(X, X[:, 0], loss="squared", sample_weight=weights, fit_intercept=True)
    centred = X - np.average(X, axis=0, weights=weights)
    hessian = centred.T @ (weights[:, None] / weights.sum() * centred)
    largest = np.linalg.eigvalsh(hessian)[-1]
    assert problem.strongest_l2() == pytest.approx(largest, rel=1e-3)
    flat = make_problem(np.ones((9, 2)), np.arange(9.0), loss="squared", fit_intercept=True)
    assert flat.strongest_l2() == pytest.approx(0, abs=1e-12)


def test_rows_whose_sums_are_constant_have_a_grid_too():
    classes = np.random.default_rng(0).integers(0, 4, 256)
    X, y = np.eye(4)[classes], classes * 1e-6
    model = ElasticNetRegressorCV(alphas=20).fit(X, y)
    assert model.alphas_.max() < 1e-5
    assert model.score(X, y) > 0.9
    problem = make_problem(X, y, loss="squared", fit_intercept=True)
    assert problem.strongest_l2() == pytest.approx(
        np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1], rel=0.02
    )


def test_rows_far_away_count_in_the_strongest_ridge_of_a_robust_loss():
    X = np.random.default_rng(0).normal(size=(50, 3))
    far = make_problem(X, 1e6 * X[:, 0], loss="huber", fit_intercept=True)
    near = make_problem(X, 1e-6 * X[:, 0], loss="squared", fit_intercept=True)
    assert far.strongest_l2() == pytest.approx(near.strongest_l2())


def test_a_row_without_weight_is_no_row_of_a_class_in_a_fold():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y, weight = np.arange(40) % 3, np.ones(40)
    weight[20:][y[20:] == 2] = 0
    folds = [(np.arange(20, 40), np.arange(20))]
    model = ElasticNetClassifierCV(Cs=3, cv=folds).fit(X, y, sample_weight=weight)
    kept = np.flatnonzero(weight[20:]) + 20
    same = ElasticNetClassifierCV(Cs=3, cv=[(kept, np.arange(20))]).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.scores_, same.scores_)


def test_cross_validation_takes_the_offset_into_folds_and_scores(make_data):
    X, y = make_data("poisson", n=300)
    offset = np.random.default_rng(1).normal(size=y.size)
    y = np.random.default_rng(2).poisson(np.exp(0.5 * X[:, 0] + offset)).astype(float)
    with_it = ElasticNetRegressorCV(loss="poisson", alphas=10, cv=3).fit(X, y, offset=offset)
    alone = ElasticNetRegressor(with_it.alpha_, loss="poisson").fit(X, y, offset=offset)
    np.testing.assert_allclose(with_it.coef_, alone.coef_, atol=1e-3)
    assert with_it.score(X, y, offset=offset) > with_it.score(X, y) + 0.1
    best = with_it.scores_.mean(axis=-1).max()
    assert best == pytest.approx(with_it.score(X, y, offset=offset), abs=0.1)
    with pytest.raises(InputError, match="takes no offset"):
        ElasticNetRegressorCV(loss="poisson", scoring="r2").fit(X, y, offset=offset)


def test_a_fold_that_cannot_be_fitted_is_named():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.repeat([0, 1, 2], 10)
    model = ElasticNetClassifierCV(Cs=2, cv=KFold(3))
    with pytest.raises(InputError, match="rows of fold 0: a class is missing, and the offset"):
        model.fit(X, y, offset=np.zeros((30, 3)))
    with pytest.raises(InputError, match=r"rows of fold 0: .*one class.* Or use another cv\."):
        model.fit(X[10:], y[10:], sample_weight=np.repeat([1, 0, 1], [7, 4, 9]))
    weight = np.repeat([0, 1, 0], 10)
    with pytest.raises(InputError, match=r"rows of fold 1: sample_weight must be"):
        ElasticNetRegressorCV(alphas=2, cv=KFold(3)).fit(X, X[:, 0], sample_weight=weight)


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
def test_a_path_with_an_offset_is_that_of_its_fits(make_data, method):
    X, y = make_data("logistic")
    offset = 2 * np.random.default_rng(1).normal(size=y.size)
    problem = make_problem(X, y, offset=offset, fit_intercept=True)
    for penalty, found in zip(
        PENALTIES, solve_path(problem, PENALTIES, method=method, tol=1e-10), strict=True
    ):
        alone = solve(replace(problem, penalty=penalty), method=method, tol=1e-10)
        np.testing.assert_allclose(found.coef, alone.coef, atol=1e-4)


def test_a_classifier_adds_the_offset_to_its_scores(make_data):
    """What a model knows already is not learned again: its log odds are the offset."""
    X, _ = make_data("logistic", n=2000)
    known = 2.0 * X[:, 0]
    odds = known - X[:, 1]
    y = np.random.default_rng(0).random(odds.size) < 1 / (1 + np.exp(-odds))
    model = ElasticNetClassifier(C=10.0).fit(X, y, offset=known)
    assert model.coef_[0, :2] == pytest.approx([0.0, -1.0], abs=0.2)
    scores = model.decision_function(X) + known
    np.testing.assert_allclose(model.decision_function(X, known), scores)
    np.testing.assert_array_equal(model.predict(X, known), scores > 0)
    np.testing.assert_allclose(model.predict_proba(X, known)[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(X, known)[:, 1]), 1 / (1 + np.exp(-scores))
    )
    assert model.score(X, y, offset=known) == np.mean(model.predict(X, known) == y)
    assert model.score(X, y, offset=known) > model.score(X, y) + 0.05
    chosen = ElasticNetClassifierCV(Cs=[1e-4, 10.0], cv=3).fit(X, y, offset=known)
    assert chosen.C_ == 10.0
    np.testing.assert_allclose(chosen.coef_, model.coef_, atol=1e-3)
    assert chosen.scores_.mean(axis=-1).max() == pytest.approx(
        model.score(X, y, offset=known), abs=0.05
    )


def test_an_offset_that_cannot_be_used_is_refused(make_data):
    X, y = make_data()
    with pytest.raises(InputError, match=r"saga takes no offset with the Logistic loss. Use one"):
        minimize(X, y, method="saga", offset=np.zeros(y.size))
    three = ElasticNetClassifier().fit(X, np.arange(y.size) % 3)
    for refused in (three.fit, three.score, ElasticNetClassifierCV().fit):
        with pytest.raises(InputError, match="a number for each row of X and each class"):
            refused(X, np.arange(y.size) % 3, offset=np.zeros(y.size))
    with pytest.raises(InputError, match=r"offset has shape \(3,\)"):
        ElasticNetClassifier().fit(X, y).predict(X, offset=np.zeros(3))
    with pytest.raises(InputError, match=r"offset is 800 at row 0.*logarithm of the exposure"):
        minimize(X, np.abs(y), loss="poisson", offset=np.full(y.size, 800.0))
    with pytest.raises(InputError, match=r"offset has shape \(3,\)"):
        minimize(X, np.abs(y), loss="poisson", offset=np.zeros(3))


def test_an_offset_leaves_the_methods_that_take_it(make_data):
    X, y = make_data("logistic", n=50, d=600)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    terms = {"l2": 1.0, "loss": "logistic"}
    assert choose_method(make_problem(X, y, **terms)) == "sdca"
    assert choose_method(make_problem(X, y, offset=np.ones(50), **terms)) == "prox_newton"
    groups = np.arange(600) // 2
    assert choose_method(make_problem(X, y, groups=groups, offset=y, **terms)) == "prox_newton"
    assert choose_method(make_problem(X[:, :9], y, offset=y, **terms)) == "gram"
