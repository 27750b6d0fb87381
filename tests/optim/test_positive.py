"""No coefficient below zero: the optima of scikit-learn and SciPy, by every method."""

from itertools import product

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import LogisticRegression

from telic.errors import InputError
from telic.optim import (
    ElasticNet,
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
    make_problem,
    minimize,
    solve_path,
)
from telic.optim.losses import as_loss

LOSSES = ["squared", "huber", "logistic", "squared_hinge", "poisson", "gamma", "tweedie"]
EXACT = ["gram", "prox_newton", "sdca", "asbcd", "saga", "svrg", "mrbcd"]


def least(X, y, loss, l1, l2):
    """Coefficients, intercept and objective by L-BFGS-B: where w >= 0 the penalty is smooth."""
    loss = as_loss(loss)

    def objective(v):
        w, z = v[:-1], X @ v[:-1] + v[-1]
        a = loss.gradient(z, y) / y.size
        value = loss.value(z, y).mean() + l1 * w.sum() + l2 / 2 * (w @ w)
        return value, np.append(X.T @ a + l1 + l2 * w, a.sum())

    d = X.shape[1]
    at = np.zeros(d + 1)
    for _ in range(2):  # it may stop early, and goes on if it is begun anew where it stopped
        found = optimize.minimize(
            objective,
            at,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * d + [(None, None)],
            options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-10},
        )
        at = found.x
    return found.x[:-1], found.x[-1], found.fun


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        *product(LOSSES[:5], ["dense", "csr", "float32"]),
        *product(LOSSES[5:], ["csr"]),
    ],
)
def test_every_method_finds_the_constrained_optimum(make_data, loss, kind):
    X, y = make_data(loss)
    X = X.astype(np.float32).astype(float)
    held = {"dense": X, "csr": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    free = minimize(X, y, loss=loss, l1=0.02, l2=0.02, fit_intercept=True)
    assert free.coef.min() < -0.1
    w, b, objective = least(X, y, loss, 0.02, 0.02)
    for method in EXACT[:3] if loss in LOSSES[4:] else EXACT:
        found = minimize(
            *(held, y),
            loss=loss,
            l1=0.02,
            l2=0.02,
            positive=True,
            fit_intercept=True,
            method=method,
            tol=1e-9,
            max_passes=10_000,
        )
        assert found.converged, method
        assert found.coef.min() >= 0, method
        assert found.objective == pytest.approx(objective, rel=1e-8), method
        np.testing.assert_allclose(found.coef, w, atol=1e-3)
        assert found.intercept == pytest.approx(b, abs=1e-3), method


@pytest.mark.parametrize("method", ["sgd", "sbcd"])
@pytest.mark.filterwarnings("ignore:.*stopped after")
def test_the_methods_with_shrinking_steps_stay_above_zero_and_come_near(make_data, method):
    X, y = make_data("logistic")
    found = minimize(X, y, l1=0.02, l2=0.02, positive=True, method=method, max_passes=200)
    exact = minimize(X, y, l1=0.02, l2=0.02, positive=True, tol=1e-10)
    assert found.coef.min() >= 0
    assert 0 <= found.objective - exact.objective <= min(0.01, found.gap)


@pytest.mark.parametrize("loss", LOSSES[:5])
@pytest.mark.parametrize(("l1", "l2"), [(0.02, 0.0), (0.0, 0.02)])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "auto"])
def test_wide_problems_are_solved_with_either_penalty(loss, l1, l2, method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 600))
    score = X[:, :10] @ rng.normal(size=10)
    y = {"poisson": rng.poisson(np.exp(0.3 * score)), "squared": score, "huber": score}.get(
        loss, np.where(score > 0, 1, -1)
    )
    found = minimize(
        X, y, loss=loss, l1=l1, l2=l2, positive=True, fit_intercept=True, method=method, tol=1e-8
    )
    assert found.converged
    assert found.coef.min() >= 0
    expected = least(X, y.astype(float), loss, l1, l2)[2]
    assert found.objective == pytest.approx(expected, abs=found.gap + 1e-9 * abs(expected))


def test_a_set_too_large_for_a_matrix_is_descended_by_columns(monkeypatch):
    monkeypatch.setattr("telic.optim.methods.prox_newton._grown", lambda *_: False)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300)) + 2.0 * rng.normal(size=(60, 1))
    y = np.where(X[:, :10] @ rng.normal(size=10) > 0, 1.0, -1.0)
    found = minimize(X, y, l1=0.005, positive=True, method="prox_newton", tol=1e-8)
    assert found.converged
    assert found.coef.min() >= 0
    expected = minimize(X, y, l1=0.005, positive=True, method="gram", tol=1e-8)
    assert found.objective == pytest.approx(expected.objective, abs=1e-8)


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
def test_without_a_penalty_it_is_non_negative_least_squares(make_data, method):
    X, y = make_data("squared")
    expected = optimize.nnls(X, y)[0]
    found = minimize(X, y, loss="squared", positive=True, method=method, tol=1e-12)
    assert found.converged
    assert np.isnan(found.gap)
    np.testing.assert_allclose(found.coef, expected, atol=1e-8)


def test_a_target_that_falls_with_every_feature_leaves_no_coefficient(make_data):
    X, y = np.abs(make_data("squared")[0]), -np.abs(make_data("squared")[1])
    y -= X.sum(axis=1)
    for l1, l2 in ((0.0, 0.0), (0.0, 0.1), (1e-9, 0.0)):
        for method in ("gram", "prox_newton", "saga"):
            found = minimize(X, y, loss="squared", l1=l1, l2=l2, positive=True, method=method)
            assert found.converged
            assert not found.coef.any()


def test_the_regressor_is_scikit_learns(make_data):
    X, y = make_data("squared")
    weight = np.arange(1.0, 1.0 + y.size)
    options = {"alpha": 0.05, "l1_ratio": 0.7, "positive": True}
    expected = SklearnElasticNet(**options, tol=1e-12, max_iter=100_000).fit(X, y, weight)
    found = ElasticNetRegressor(**options, tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-5)
    assert found.intercept_ == pytest.approx(expected.intercept_, abs=1e-5)


def test_the_estimators_take_it_into_their_folds(make_data):
    X, y = make_data("squared")
    found = ElasticNetRegressorCV(positive=True, alphas=20, cv=3).fit(X, y)
    assert found.coef_.min() >= 0
    alone = ElasticNetRegressor(found.alpha_, positive=True).fit(X, y)
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-2)
    # The grid begins where a coefficient would leave zero upwards, not where one would at all.
    slopes = X.T @ (y - y.mean()) / y.size
    assert -slopes.min() > slopes.max()
    assert found.alphas_.max() == pytest.approx(slopes.max() / 0.5)
    X, y = make_data("logistic")
    model = ElasticNetClassifierCV(Cs=5, cv=3, positive=True).fit(X, y)
    alone = ElasticNetClassifier(C=model.C_, positive=True).fit(X, y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-2)
    assert model.coef_.min() >= 0 > LogisticRegression().fit(X, y).coef_.min()


def test_a_start_or_a_penalty_before_may_be_below_zero(make_data):
    X, y = make_data("logistic")
    model = ElasticNetClassifier(warm_start=True).fit(X, y)
    assert model.coef_.min() < 0
    assert model.set_params(positive=True).fit(X, y).coef_.min() >= 0
    penalties = [ElasticNet(0.01, 0.01), ElasticNet(0.01, 0.01, positive=True)] * 2
    for method in ("gram", "prox_newton", "sdca", "saga"):
        path = solve_path(make_problem(X, y), penalties, method=method, tol=1e-9)
        free, bounded, again, last = list(path)
        assert free.objective == pytest.approx(again.objective, abs=1e-8)
        assert bounded.objective == pytest.approx(last.objective, abs=1e-8)
        assert free.objective < bounded.objective - 0.01
        assert bounded.coef.min() >= 0


def test_who_cannot_do_it_says_so(make_data):
    X, y = make_data("logistic")
    with pytest.raises(InputError, match="positive is not for groups"):
        minimize(X, y, groups=np.arange(15) // 3, positive=True)
    with pytest.raises(InputError, match="positive is 'yes', expected True or False"):
        minimize(X, y, positive="yes")
    several = np.arange(y.size) % 3
    for model in (ElasticNetClassifier(positive=True), ElasticNetClassifierCV(positive=True)):
        with pytest.raises(InputError, match=r"positive is not for several classes.*'ovr'"):
            model.fit(X, several)
    assert ElasticNetClassifier(positive=True, multi_class="ovr").fit(X, several).coef_.min() >= 0
