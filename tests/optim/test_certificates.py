"""No duality gap that a solver reports is ever smaller than the true one, however bad the data."""

import warnings
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from telic.errors import InputError
from telic.optim import (
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
    certify,
    make_problem,
    minimize,
    solve_path,
)
from telic.optim.loop import Iterate, drive
from telic.optim.losses import as_loss

METHODS = ["asbcd", "gram", "mrbcd", "prox_newton", "saga", "sbcd", "sdca", "sgd", "svrg"]
GROUPED = ["asbcd", "gram", "mrbcd", "prox_newton", "saga", "sbcd", "sgd", "svrg"]
LOSSES = ["squared", "logistic", "squared_hinge", "huber", "poisson", "gamma", "tweedie"]
LOG_LINK = LOSSES[4:]


class Case:
    """A small problem with all that makes rounding matter, and its exact objective."""

    def __init__(self, seed, loss):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 16)), int(rng.integers(1, 7))
        reach = rng.choice([0, 1, 12])
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-reach, reach, d)
        kind = rng.integers(0, 5)
        if kind == 1:  # far from zero, up to where only the last digits differ
            X[:, 0] = 10.0 ** rng.uniform(2, 13) + np.arange(n)
        if kind == 2 and d > 1:  # one column twice
            X[:, 1] = X[:, 0]
        if kind == 3:  # constant, and rows that repeat each other
            X[:, -1] = 10.0 ** rng.uniform(-12, 12)
            X[n // 2 :] = X[: n - n // 2]
        score = np.sign(X[:, 0]) if kind == 4 else rng.normal(size=n)
        self.loss, self.X = as_loss(loss), X
        if self.loss.classifies:
            y = np.where(score + rng.choice([0.0, 0.3]) * rng.normal(size=n) > 0, 1.0, -1.0)
            y[:2] = 1.0, -1.0
        elif loss == "poisson":
            y = rng.poisson(np.exp(score)).astype(float)
        elif loss in LOG_LINK:
            y = np.exp(rng.choice([1.0, 20.0]) * score)
            y *= 1.0 if loss == "gamma" else rng.random(n) < 0.7
        else:
            y = score + rng.choice([0.0, 0.0, 1e3, 1e9])
        self.y = y
        weight = rng.random(n) * (rng.random(n) < 0.8) + 1e-3 * (np.arange(n) < 2)
        self.weight = weight if rng.random() < 0.5 else None
        self.mass = np.full(n, 1 / n) if self.weight is None else weight / weight.sum()
        self.l1, self.l2 = (10.0 ** rng.uniform(-8, 1, 2)) * rng.choice([[0, 1], [1, 0], [1, 1]])
        self.groups = rng.integers(0, 3, d) if rng.random() < 0.25 else None
        self.has_b = bool(rng.random() < 0.6)
        self.start = rng.normal(size=d) / np.abs(X).max(axis=0) if rng.random() < 0.3 else None
        self.matrix = sparse.csr_matrix(X) if rng.random() < 0.3 else X
        self.offset = None
        if rng.random() < 0.4:
            self.offset = rng.normal(size=n) * rng.choice([1.0, 4.0])
        self.shift = np.zeros(n) if self.offset is None else self.offset
        self.positive = bool(self.groups is None and rng.random() < 0.3)

    def options(self):
        return {
            "loss": self.loss,
            "l1": self.l1,
            "l2": self.l2,
            "groups": self.groups,
            "positive": self.positive,
            "fit_intercept": self.has_b,
            "sample_weight": self.weight,
            "coef_init": self.start,
            "offset": self.offset,
        }

    def norm(self, w, soft=0.0):
        """The norm behind λ₁, made smooth by `soft`, and its gradient."""
        label = np.arange(w.size) if self.groups is None else self.groups
        _, label, size = np.unique(label, return_inverse=True, return_counts=True)
        norms = np.sqrt(np.bincount(label, w * w) + soft**2)
        weighted = np.sqrt(size) / np.where(norms > 0, norms, 1.0)
        return np.sqrt(size) @ norms, weighted[label] * w

    def objective(self, w, b):
        """By the definition; the predictions are exact but for one rounding each."""
        if self.positive and w.min() < 0:
            return np.inf
        terms = [Fraction(float(v)) for v in w]
        z = [
            float(
                sum(
                    (Fraction(float(x)) * t for x, t in zip(row, terms, strict=True)),
                    Fraction(float(b)) + Fraction(float(o)),
                )
            )
            for row, o in zip(self.X, self.shift, strict=True)
        ]
        with np.errstate(over="ignore"):
            risk = self.loss.value(np.array(z), self.y)
        return self.mass @ risk + self.l1 * self.norm(w)[0] + self.l2 / 2 * (w @ w)

    def best(self, points):
        """The lowest objective of some points, and of where L-BFGS-B gets from the best of them.

        It works on centred columns of unit length, where the scales do not matter.
        """
        values = [self.objective(*point) for point in points]
        w, b = points[int(np.argmin(values))]
        c = np.array([float(col[np.argmax(self.mass)]) for col in self.X.T]) * self.has_b
        Z = self.X - c
        unit = 1 / np.sqrt(self.mass @ Z**2 + self.l2 + 1e-300)
        free = 1.0 if self.has_b else 0.0

        def value(v, soft):
            u, z = unit * v[:-1], (Z * unit) @ v[:-1] + free * v[-1] + self.shift
            a = self.mass * self.loss.gradient(z, self.y)
            size, slope = self.norm(u, soft)
            total = self.mass @ self.loss.value(z, self.y) + self.l1 * size + self.l2 / 2 * u @ u
            along = unit * (Z.T @ a + self.l1 * slope + self.l2 * u)
            return total, np.append(along, free * a.sum())

        v = np.append(w / unit, b + c @ w)
        least = 0.0 if self.positive else -np.inf
        with np.errstate(all="ignore"):
            for soft in (1e-4, 1e-8):
                v = optimize.minimize(
                    value,
                    v,
                    (soft * unit.min(),),
                    jac=True,
                    method="L-BFGS-B",
                    bounds=[(least, np.inf)] * w.size + [(-np.inf, np.inf)],
                    options={"ftol": 1e-16, "gtol": 1e-13, "maxfun": 150},
                ).x
                if np.isfinite(v).all():
                    values.append(self.objective(unit * v[:-1], v[-1] - c @ (unit * v[:-1])))
        return np.nanmin(values)


def rounding(case, coef, intercept):
    """Of an objective: that of the products whose sum is the prediction."""
    size = np.abs(case.X) @ np.abs(coef) + abs(intercept) + np.abs(case.y) + np.abs(case.shift)
    return 1e-12 * (1 + abs(case.objective(coef, intercept)) + case.mass @ size)


def is_bound(case, coef, intercept, gap, best, name):
    value = case.objective(coef, intercept)
    assert value - gap <= best + rounding(case, coef, intercept), name


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    passes=st.sampled_from([1, 3, 20, 200]),
)
@settings(max_examples=60, derandomize=True)
def test_no_gap_is_smaller_than_the_true_one(seed, loss, passes):
    case = Case(seed, loss)
    results = {}
    for method in METHODS if case.groups is None else GROUPED:
        if loss in LOG_LINK and method not in ("gram", "prox_newton", "sdca"):
            continue
        barred = case.loss.classifies and case.offset is not None
        if barred and method not in ("gram", "prox_newton"):
            continue
        if method == "sdca" and case.l2 == 0:
            continue
        with warnings.catch_warnings(), suppress(InputError):  # said is not returned
            warnings.simplefilter("ignore")
            results[method] = minimize(
                case.matrix, case.y, method=method, tol=1e-10, max_passes=passes, **case.options()
            )
    assert "gram" in results
    assert all(np.isfinite(r.coef).all() for r in results.values())
    points = [(np.zeros(case.X.shape[1]), 0.0)]
    points += [(r.coef, r.intercept) for r in results.values()]
    best = case.best(points)
    for method, r in results.items():
        is_bound(case, r.coef, r.intercept, r.gap, best, method)


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSSES),
    off=st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
)
@settings(max_examples=60, derandomize=True)
def test_no_gap_of_coefficients_from_elsewhere_is_smaller_than_the_true_one(seed, loss, off):
    case = Case(seed, loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = minimize(case.matrix, case.y, method="gram", tol=1e-10, **case.options())
    rng = np.random.default_rng(seed)
    far = 1 + (np.abs(case.X) @ np.abs(found.coef)).max()  # so that predictions move by about `off`
    coef = found.coef * (1 + off / far * rng.normal(size=found.coef.size))
    intercept = found.intercept + off * rng.normal() * case.has_b
    options = case.options()
    del options["coef_init"]
    objective, gap = certify(make_problem(case.matrix, case.y, **options), coef, intercept)
    if case.positive and coef.min() < 0:
        assert objective == gap == np.inf
        return
    value = case.objective(coef, intercept)
    assert objective == pytest.approx(value, rel=1e-9, abs=rounding(case, coef, intercept))
    best = case.best([(found.coef, found.intercept), (coef, intercept)])
    is_bound(case, coef, intercept, gap, best, "certify")


def test_the_certificate_of_an_optimum_is_tight_and_bad_coefficients_are_refused(make_data):
    X, y = make_data("squared", n=60, d=5)
    terms = {"loss": "squared", "l1": 0.02, "l2": 0.02, "fit_intercept": True}
    found, problem = minimize(X, y, tol=1e-10, **terms), make_problem(X, y, **terms)
    objective, gap = certify(problem, found.coef, found.intercept)
    assert objective == pytest.approx(found.objective, rel=1e-12)
    assert gap <= found.gap + 1e-12
    further, wider = certify(problem, found.coef, found.intercept + 0.1)
    assert wider - gap == pytest.approx(further - objective)  # the intercept is judged as it is
    assert np.isnan(certify(make_problem(X, y, loss="squared"), found.coef)[1])
    barred = make_problem(X, y, loss="squared", l1=0.02, positive=True)
    assert certify(barred, -np.ones(5)) == (np.inf, np.inf)
    for coef, intercept in ((np.ones(4), 0.0), (np.full(5, np.nan), 0.0), (np.ones(5), np.inf)):
        with pytest.raises(InputError, match="expected 5 finite numbers"):
            certify(problem, coef, intercept)
    with pytest.raises(InputError, match="the problem has none"):
        certify(barred, np.ones(5), 1.0)


@given(seed=st.integers(0, 2**32 - 1), cv=st.booleans(), regression=st.booleans())
@settings(max_examples=15, derandomize=True)
def test_the_gap_of_an_estimator_is_that_of_its_objective(seed, cv, regression):
    case = Case(seed, "squared" if regression else "logistic")
    case.groups, case.has_b = None, True
    repeat = np.tile(np.arange(case.y.size), 3)
    X, y = case.X[repeat], case.y[repeat]
    weight = None if case.weight is None else case.weight[repeat]
    total = len(y) if weight is None else weight.sum()
    options = {"l1_ratio": 0.5, "max_iter": 30, "positive": case.positive}
    kinds = {
        (True, True): lambda: ElasticNetRegressorCV(alphas=[1.0, 0.1], cv=3, **options),
        (True, False): lambda: ElasticNetRegressor(alpha=0.1, **options),
        (False, True): lambda: ElasticNetClassifierCV(Cs=[0.1, 1.0], cv=3, **options),
        (False, False): lambda: ElasticNetClassifier(C=1.0, **options),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        offset = {} if case.offset is None else {"offset": case.offset[repeat]}
        model = kinds[regression, cv]().fit(X, y, weight, **offset)
    alpha = getattr(model, "alpha_", 0.1) if regression else 1 / (getattr(model, "C_", 1.0) * total)
    case.l1 = case.l2 = alpha / 2
    coef, intercept = np.atleast_2d(model.coef_)[0], float(np.ravel(model.intercept_)[0])
    best = case.best([(np.zeros(coef.size), 0.0), (coef, intercept)])
    is_bound(case, coef, intercept, float(np.ravel(model.gap_)[0]), best, type(model).__name__)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["gram", "prox_newton"])
@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("d", [5, 530])
def test_a_column_of_which_only_the_last_digits_differ_is_solved(make_data, loss, method, kind, d):
    """Squares of 1e24 would leave nothing of a spread of 100, and nothing but NaN of the rest."""
    X, y = make_data(loss, n=60, d=5)
    noise = np.random.default_rng(1)
    X = np.column_stack([X, noise.normal(size=(60, d - 5)) * (noise.random((60, d - 5)) < 0.1)])
    near = np.column_stack([np.arange(60.0), X])
    far = np.column_stack([1e12 + np.arange(60), np.full(60, 1e9), X])
    far = {"dense": far, "csr": sparse.csr_matrix(far), "csc": sparse.csc_matrix(far)}[kind]
    terms = {"loss": loss, "l1": 0.02, "l2": 0.02, "method": method, "tol": 1e-9}
    expected = minimize(near, y, fit_intercept=True, **terms)
    seen = []
    found = minimize(far, y, fit_intercept=True, callback=lambda *at: seen.append(at), **terms)
    assert found.converged
    assert found.objective == pytest.approx(expected.objective, abs=1e-8)
    np.testing.assert_allclose(np.delete(found.coef, 1), expected.coef, atol=2e-3)
    assert found.coef[1] == 0
    assert seen[-1][2] == pytest.approx(found.intercept, rel=1e-12)
    again = minimize(
        far, y, fit_intercept=True, coef_init=found.coef, intercept_init=found.intercept, **terms
    )
    assert again.passes <= found.passes


@pytest.mark.parametrize("d", [6, 600])
def test_far_columns_that_repeat_each_other_lose_no_digits_without_an_intercept(d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, d))
    X[:, :3] += np.array([1e12, 1e12, 1e8])
    X[:, 1] = X[:, 0]
    y = np.where(X[:, 3] > 0, 1.0, -1.0)
    for loss in LOSSES:
        target = np.abs(y) if loss in LOG_LINK else y
        for method in ("gram", "prox_newton", "sdca"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                result = minimize(
                    X, target, loss=loss, l1=1e-3, l2=1e-3, method=method, max_passes=30
                )
            assert np.isfinite(result.coef).all()
            assert np.isfinite(result.objective)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca"])
def test_rows_that_weigh_nothing_may_be_as_far_away_as_they_like(make_data, loss, method):
    """Where exp of their prediction is infinite, too: it times 0 is no number."""
    X, y = make_data(loss, n=60, d=5)
    far = np.vstack([X, 1e6 * np.ones(5), -1e6 * np.ones(5)])
    weight = np.repeat([1.0, 0.0], [60, 2])
    terms = {"loss": loss, "l1": 0.01, "l2": 0.01, "fit_intercept": True, "method": method}
    alone = minimize(X, y, tol=1e-9, **terms)
    found = minimize(far, np.append(y, [1.0, 1.0]), sample_weight=weight, tol=1e-9, **terms)
    assert found.converged
    np.testing.assert_allclose(found.coef, alone.coef, atol=1e-3)
    assert found.objective == pytest.approx(alone.objective, rel=1e-7)


def test_slopes_that_are_no_numbers_bound_nothing():
    problem = make_problem(np.eye(2), [0.0, 1.0], loss="poisson", l1=0.1, l2=0.1)
    groups = make_problem(np.eye(2), [0.0, 1.0], loss="poisson", l1=0.1, l2=0.1, groups=[0, 1])
    for each in (problem, groups):
        assert each.dual_value(np.zeros(2), np.array([0.0, np.nan])) == -np.inf
        assert each.dual_value(np.zeros(2), np.array([np.inf, 0.0])) == -np.inf


@pytest.mark.parametrize("coef", [1e4, np.inf, np.nan])
def test_what_is_not_finite_is_an_error_and_no_result(coef):
    """The dual method may pass such points, where exp of a prediction is infinite."""
    problem = make_problem(np.ones((4, 1)), np.arange(4.0), loss="poisson", l2=0.1)
    points = [Iterate(np.zeros(1), 0.0, 4), Iterate(np.array([coef]), 0.0, 4)]
    with (
        np.errstate(all="ignore"),
        pytest.raises(InputError, match="no finite result after 2 pass"),
    ):
        drive(problem, iter(points), method="sdca", tol=0.0, max_passes=2, has_step=False)


def test_the_rounding_of_a_far_intercept_is_part_of_the_gap():
    """At 1e16 the intercept can only be even: the fit cannot be exact, and must not say it is."""
    rng = np.random.default_rng(0)
    x = np.arange(40.0)
    y = x + rng.normal(size=40)
    far = (1e16 + 2 * x)[:, None]
    with pytest.warns(ConvergenceWarning, match="rounding of the intercept.* Subtract their means"):
        found = minimize(far, y, loss="squared", l2=1e-9, fit_intercept=True, tol=1e-9)
    assert not found.converged
    near = minimize((2 * x)[:, None], y, loss="squared", l2=1e-9, fit_intercept=True, tol=1e-12)
    z = [
        float(Fraction(v) * Fraction(float(found.coef[0])) + Fraction(found.intercept))
        for v in far[:, 0].tolist()
    ]
    true = np.mean((np.array(z) - y) ** 2) / 2 + 0.5e-9 * found.coef[0] ** 2
    assert found.objective == pytest.approx(true, rel=1e-9)
    assert true - found.gap <= near.objective + 1e-12
    assert found.gap < 1.0


@pytest.mark.parametrize("level", [0.0, 500.0, 2000.0])
def test_where_the_intercepts_rounding_costs_more_than_the_tolerance_it_is_said(level):
    """The tolerance is relative to what an intercept leaves, however far the targets are from 0."""
    rng = np.random.default_rng(0)
    x = np.arange(40.0)
    y, far = x + rng.normal(size=40) + level, (1e16 + 2 * x)[:, None]
    with pytest.warns(ConvergenceWarning, match="rounding of the intercept"):
        found = minimize(far, y, loss="squared", l2=1e-9, fit_intercept=True, tol=1e-6)
    assert found.gap > 1e-6 * y.var() / 2
    assert not found.converged


@pytest.mark.parametrize("scale", [1e12, 1e15])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca"])
def test_gammas_loss_knows_no_unit_of_the_target(scale, method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = np.exp(X @ [0.5, 0.2, 0.0]) * rng.gamma(2.0, size=100)
    terms = {"loss": "gamma", "l1": 1e-2, "l2": 1e-2, "fit_intercept": True, "method": method}
    near, far = minimize(X, y, **terms), minimize(X, scale * y, **terms)
    assert far.gap <= 1e-6 * far.history[0].objective
    np.testing.assert_allclose(far.coef, near.coef, atol=1e-3)


@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(["squared", "logistic", *LOG_LINK]),
    method=st.sampled_from(["gram", "prox_newton"]),
    passes=st.sampled_from([1, 3, 200]),
)
@settings(max_examples=40, derandomize=True)
def test_no_gap_along_a_path_is_smaller_than_the_true_one(seed, loss, method, passes):
    """What goes on from one penalty to the next must not be what the next is certified by."""
    case = Case(seed, loss)
    problem = make_problem(
        *(case.matrix, case.y),
        groups=case.groups,
        positive=case.positive,
        loss=loss,
        sample_weight=case.weight,
        offset=case.offset,
        fit_intercept=case.has_b,
    )
    l1, l2 = case.l1, case.l2
    scales = [1.0, 0.1, 1e-3, 10.0]
    with warnings.catch_warnings(), suppress(InputError):  # said is not returned
        warnings.simplefilter("ignore")
        path = solve_path(
            problem,
            [replace(problem.penalty, l1=l1 * s, l2=l2 * s) for s in scales],
            method=method,
            tol=1e-10,
            max_passes=passes,
        )
        for scale, r in zip(scales, path, strict=True):
            case.l1, case.l2 = l1 * scale, l2 * scale
            best = case.best([(np.zeros(r.coef.size), 0.0), (r.coef, r.intercept)])
            is_bound(case, r.coef, r.intercept, r.gap, best, method)
