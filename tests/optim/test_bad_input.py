"""Unusual input gives the answer of its canonical form, or one clear line."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

from telic.errors import InputError
from telic.optim import (
    ElasticNetClassifier,
    ElasticNetClassifierCV,
    ElasticNetRegressor,
    ElasticNetRegressorCV,
    Logistic,
    certify,
    make_problem,
    minimize,
)
from telic.optim.admm import (
    GeneralizedLasso,
    GraphFusedClassifier,
    GraphFusedRegressor,
    TrendFilter,
    minimize_admm,
)
from telic.simulate.text_corpora import rcv1_like

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
from optimum import optimum

CERTAIN = ["asbcd", "gram", "mrbcd", "prox_newton", "saga", "sdca", "svrg"]
ALL = [*CERTAIN, "sgd", "sbcd"]


def fitted(X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sgd and sbcd are sublinear
        return minimize(X, y, l1=0.01, l2=0.05, max_passes=3000, **options)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_every_method_with_intercept_weights_and_each_layout_meets_the_optimum(
    make_data, method, loss
):
    """1e-8 from an independent optimum; SGD and SBCD, whose theory is sublinear, 1e-2."""
    X, y = make_data(loss, n=60, d=8)
    weight = np.random.default_rng(1).random(60)
    weight[:3] = 0.0
    best = optimum(X, y, loss=loss, l1=0.01, l2=0.05, fit_intercept=True, sample_weight=weight)
    close = 1e-8 if method in CERTAIN else 1e-2
    for single, near in ((np.float64, close), (np.float32, max(close, 1e-6))):
        dense = X.astype(single)
        for matrix in (dense, sparse.csr_matrix(dense), sparse.csc_matrix(dense)):
            result = fitted(
                matrix,
                y,
                loss=loss,
                method=method,
                tol=1e-9,
                fit_intercept=True,
                sample_weight=weight,
            )
            assert abs(result.objective - best) <= near


def test_wide_indices_are_narrowed_and_too_wide_shapes_refused(make_data):
    X, y = make_data(kind="csr")
    wide = X.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(fitted(wide, y).coef, fitted(X, y).coef)
    far = sparse.csr_matrix(
        (np.ones(2), np.array([0, 2**31 + 5]), np.array([0, 1, 2])), shape=(2, 2**31 + 10)
    )
    with pytest.raises(InputError, match="at most 2147483647 rows and features"):
        minimize(far, [1.0, -1.0], l1=0.1)


@pytest.mark.parametrize("method", CERTAIN)
def test_disorder_duplicates_and_strides_are_their_canonical_form(make_data, method):
    X, y = make_data(n=50, d=6)
    tidy = sparse.csr_matrix(X)
    expected = fitted(tidy, y, method=method, tol=1e-10).coef
    shuffled = tidy.copy()
    for i in range(50):
        row = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[row] = shuffled.indices[row][::-1]
        shuffled.data[row] = shuffled.data[row][::-1]
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    doubled = sparse.csr_matrix(
        (np.repeat(tidy.data, 2) / 2, np.repeat(tidy.indices, 2), tidy.indptr * 2), tidy.shape
    )
    before = shuffled.indices.copy()
    for matrix in (shuffled, doubled):
        np.testing.assert_array_equal(fitted(matrix, y, method=method, tol=1e-10).coef, expected)
    np.testing.assert_array_equal(shuffled.indices, before)
    dense = fitted(X, y, method=method, tol=1e-10).coef
    for matrix in (np.asfortranarray(X), np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]):
        found = fitted(matrix, y, method=method, tol=1e-10).coef
        np.testing.assert_allclose(found, dense, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e-60, 1e60])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca", "saga", "auto"])
def test_huge_scales_are_solved_or_refused(make_data, scale, method):
    X, y = make_data("squared", n=40, d=5)
    expected = minimize(X, y, loss="squared", l1=0.01, l2=0.05, tol=1e-12).coef
    terms = {"loss": "squared", "method": method, "tol": 1e-10, "max_passes": 5000}
    if scale == 1e-150:
        # λ₂ would be 1e-302: what remains is that nothing else than zero is worth its ℓ₁ norm.
        assert not minimize(scale * X, y, l1=0.01, l2=0.05, **terms).coef.any()
        with pytest.raises(InputError, match="too large to square"):
            minimize(X / scale, y, l1=0.01, l2=0.05, **terms)
        return
    found = minimize(scale * X, y, l1=0.01 * scale, l2=0.05 * scale**2, **terms).coef
    np.testing.assert_allclose(found * scale, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_features_far_from_zero_cost_newton_no_passes(make_data, loss, method, kind):
    """Years, temperatures in kelvin, a constant column: an intercept makes up for all of it."""
    X, y = make_data(loss)
    terms = {"loss": loss, "l1": 1e-2, "l2": 1e-2, "tol": 1e-9, "method": method}
    near = minimize(X, y, fit_intercept=True, **terms)
    far = np.column_stack([X + 2000.0, np.full(y.size, 3.7)])
    far = sparse.csr_matrix(far) if kind == "csr" else far
    found = minimize(far, y, fit_intercept=True, **terms)
    assert found.objective == pytest.approx(near.objective, abs=1e-8)
    assert found.passes <= near.passes + 10
    np.testing.assert_allclose(found.coef, [*near.coef, 0.0], atol=1e-4)


def test_groups_far_from_zero_are_found_too(make_data):
    X, y = make_data()
    terms = {"l1": 1e-2, "groups": np.arange(15) // 3, "method": "gram", "fit_intercept": True}
    near, far = (minimize(X + shift, y, tol=1e-9, **terms) for shift in (0.0, 2000.0))
    assert far.objective == pytest.approx(near.objective, abs=1e-8)


def test_a_constant_feature_is_left_to_the_intercept(make_data):
    X, y = make_data()
    X = np.column_stack([X, np.full(y.size, 3.7)])
    for penalties in ({}, {"l1": 1e-9}, {"l2": 1e-9}):
        result = minimize(X, y, method="gram", fit_intercept=True, **penalties)
        assert result.converged
        assert abs(result.coef[-1]) < 1e-6


@pytest.mark.parametrize("method", CERTAIN)
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_target_far_from_zero_is_the_target_near_it(make_data, method, loss):
    """Seconds since 1970: their squares' rounding is larger than what the features explain."""
    X, y = make_data("squared")
    y = np.round(y * 1024) / 1024  # exact after the shift too
    terms = {"loss": loss, "l1": 1e-2, "l2": 1e-2, "method": method, "fit_intercept": True}
    terms |= {"tol": 1e-8, "max_passes": 5000}
    near = minimize(X, y, **terms)
    for shift in (2.0**6, 2.0**10, 2.0**30):
        seen = []
        far = minimize(X, y + shift, callback=lambda *at, seen=seen: seen.append(at), **terms)
        assert far.objective == pytest.approx(near.objective, abs=1e-8)
        np.testing.assert_allclose(far.coef, near.coef, atol=1e-3)
        assert far.intercept - shift == pytest.approx(near.intercept, abs=1e-3)
        assert seen[-1][2] == pytest.approx(far.intercept, rel=1e-9)
        start = {"coef_init": far.coef, "intercept_init": far.intercept}
        assert minimize(X, y + shift, **start, **terms).passes <= far.passes


@pytest.mark.parametrize("method", ["gram", "prox_newton", "sdca"])
def test_poisson_does_not_overflow(method):
    rng = np.random.default_rng(0)
    X = 300.0 * rng.normal(size=(80, 4))
    y = rng.poisson(np.exp(np.clip(X @ np.array([0.01, -0.01, 0.0, 0.005]), -20, 8))).astype(float)
    terms = {"loss": "poisson", "l2": 1e-3, "l1": 1e-3, "tol": 1e-8, "fit_intercept": True}
    if method == "sdca":  # the curvature is too large for it, and it says so
        with pytest.warns(ConvergenceWarning, match="sdca stopped"):
            result = minimize(X, y, method=method, max_passes=50, **terms)
    else:
        result = minimize(X, y, method=method, **terms)
        assert result.gap <= 1e-6 * result.objective
    assert np.isfinite(result.coef).all()


@pytest.mark.parametrize("method", ["gram", "prox_newton"])
@pytest.mark.parametrize("mean", [200.0, 1e3, 1e8])
def test_large_counts_are_fitted(method, mean):
    """The search for the intercept starts near y, where exp is far too large or overflows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.poisson(mean * np.exp(X @ np.array([0.5, 0.0, -0.2]))).astype(float)
    result = minimize(X, y, loss="poisson", l2=1e-3, method=method, fit_intercept=True)
    assert result.converged
    np.testing.assert_allclose(result.coef, [0.5, 0.0, -0.2], atol=0.02)
    assert result.intercept == pytest.approx(np.log(mean), abs=0.02)


@pytest.mark.parametrize("method", CERTAIN)
def test_one_row_has_its_closed_form(method):
    result = minimize([[2.0, 0.0]], [3.0], loss="squared", l2=1.0, method=method, tol=1e-12)
    np.testing.assert_allclose(result.coef, [1.2, 0.0], atol=1e-6)


def test_a_constant_target_needs_the_intercept_alone(make_data):
    X, _ = make_data("squared")
    for method in CERTAIN:
        result = minimize(
            X, np.full(120, 7.0), loss="squared", l1=0.1, l2=0.1, fit_intercept=True, method=method
        )
        assert not result.coef.any()
        assert result.intercept == pytest.approx(7.0)
    model = ElasticNetRegressor().fit(X, np.full(120, 7.0))
    np.testing.assert_allclose(model.predict(X), 7.0)


def test_one_class_and_separation_are_said(make_data):
    X, _ = make_data()
    with pytest.raises(InputError, match=r"one class only \(1.0\)"):
        ElasticNetClassifier().fit(X, np.ones(120))
    apart = np.sign(X[:, :1] + 1e-3)
    for method in ("gram", "prox_newton", "saga"):
        with pytest.warns(ConvergenceWarning, match="separated"):
            minimize(apart, apart[:, 0], method=method, tol=1e-3, max_passes=300)


def test_sorted_classes_cost_sdca_no_passes():
    """Runs of neighbouring rows of one class must not slow it down."""
    X, y = rcv1_like(n=4000, d=3000, words=30)
    order = np.argsort(y, kind="stable")
    mixed = minimize(X, y, l1=1e-5, l2=1e-4, method="sdca", tol=1e-7).passes
    by_class = minimize(X[order], y[order], l1=1e-5, l2=1e-4, method="sdca", tol=1e-7).passes
    assert by_class <= 1.3 * mixed


def test_sorted_targets_cost_sdca_no_passes(make_data):
    X, y = make_data("squared", n=2000, d=15)
    order = np.argsort(y)
    problem = {"loss": "squared", "l2": 1e-3, "method": "sdca", "tol": 1e-8}
    assert minimize(X[order], y[order], **problem).passes <= 1.3 * minimize(X, y, **problem).passes


def test_a_problem_names_what_it_cannot_hold():
    with pytest.raises(InputError, match=r"X has shape \(0, 2\)"):
        make_problem(np.empty((0, 2)), [])
    with pytest.raises(InputError, match=r"X has shape \(2, 0\)"):
        make_problem(np.empty((2, 0)), [1.0, -1.0])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_l1_too_strong_for_any_feature_leaves_none(make_data, loss):
    X, y = make_data(loss)
    for method in ("gram", "prox_newton"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = minimize(
                X, y, loss=loss, l1=1e3, method=method, tol=0.0, max_passes=9, fit_intercept=True
            )
        assert not result.coef.any()


@pytest.mark.parametrize(
    "make",
    [
        ElasticNetClassifier,
        ElasticNetRegressor,
        ElasticNetClassifierCV,
        ElasticNetRegressorCV,
        GeneralizedLasso,
        GraphFusedClassifier,
    ],
)
@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"solver": "lbfgs"}, "solver is 'lbfgs', expected one of auto, "),
        ({"max_iter": 0}, "max_iter 0"),
        ({"tol": -1.0}, "tol is -1.0"),
    ],
)
def test_an_estimator_refuses_an_option_by_the_name_that_it_has_there(make, option, says):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(InputError, match=says):
        make(**option).fit(X, (X[:, 0] > 0).astype(int))


def test_a_method_is_recommended_in_words_that_fit_solvers_and_estimators(make_data):
    X, y = make_data()
    model = ElasticNetRegressor(loss="poisson", solver="saga")
    with pytest.raises(InputError, match=r"Use prox_newton, gram or sdca\."):
        model.fit(X, np.abs(y))
    with pytest.raises(InputError, match="D has 2 columns, X has"):
        GeneralizedLasso(D=np.ones((1, 2))).fit(X, y)


def test_an_offset_to_predict_by_is_checked_as_one_to_fit_by(make_data):
    """A column of offsets gave a table of predictions, and a mask was passed over."""
    X, y = make_data("poisson", n=30, d=3)
    offset = np.linspace(-1.0, 1.0, 30)
    column, masked = offset[:, None], np.ma.masked_greater(offset, 0.5)
    for loss in ("squared", "poisson"):
        model = ElasticNetRegressor(0.1, loss=loss).fit(X, y, offset=offset)
        assert model.score(X, y, offset=list(offset)) == model.score(X, y, offset=offset)
        for bad, message in (
            (column, r"offset has shape \(30, 1\), expected \(30,\)"),
            (offset[:5], r"offset has shape \(5,\)"),
            (np.full(30, np.nan), "offset contains NaN"),
            (masked, "offset is a masked array"),
        ):
            with pytest.raises(InputError, match=message):
                model.predict(X, bad)
            with pytest.raises(InputError, match=message):
                model.score(X, y, offset=bad)
    for search in (ElasticNetRegressorCV(alphas=2, loss="poisson"), ElasticNetClassifierCV(Cs=2)):
        with pytest.raises(InputError, match="offset is a masked array"):
            search.fit(X, y > np.median(y), offset=masked)


def test_a_loss_given_as_an_object_is_the_loss_of_that_name(make_data):
    """Three classes were fitted one against the rest, and had no probabilities."""
    X, y = make_data("logistic", n=60)
    classes = (y > 0) + (X[:, 0] > 1.0)
    named = ElasticNetClassifier().fit(X, classes)
    given = ElasticNetClassifier(loss=Logistic()).fit(X, classes)
    np.testing.assert_array_equal(given.coef_, named.coef_)
    np.testing.assert_array_equal(given.predict_proba(X), named.predict_proba(X))


def test_numbers_under_a_mask_are_never_used(make_data):
    X, y = make_data("squared", n=30, d=3)
    three = np.ma.masked_greater([1.0, 2.0, 3.0], 2.0)
    problem = make_problem(X, y, loss="squared", l2=1.0)
    for name, call in (
        ("y", lambda: TrendFilter().fit(np.ma.masked_greater(y, 0.0))),
        ("D", lambda: GeneralizedLasso(np.ma.masked_equal(np.eye(3), 1.0)).fit(X, y)),
        ("l1", lambda: minimize_admm(X, y, A=np.eye(3), l1=three, loss="squared")),
        ("c", lambda: minimize_admm(X, y, A=np.eye(3), c=three, loss="squared")),
        ("x_init", lambda: minimize_admm(X, y, A=np.eye(3), x_init=three, loss="squared")),
        (
            "weights",
            lambda: GraphFusedRegressor([[0, 1], [1, 2]], edge_weights=three[1:]).fit(X, y),
        ),
        ("coef", lambda: certify(problem, three)),
    ):
        with pytest.raises(InputError, match=f"{name} is a masked array"):
            call()
    with pytest.raises(InputError, match="y cannot be read as numbers"):
        TrendFilter().fit(["a", "b", "c"])
    with pytest.raises(InputError, match="y holds complex values"):
        TrendFilter().fit([1j, 2.0, 3.0])


@pytest.mark.parametrize("model", [ElasticNetRegressor, ElasticNetRegressorCV])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": "all"}, "n_jobs is 'all', expected a whole number or None"),
        ({"random_state": "a"}, "random_state is 'a', expected a whole number >= 0"),
        ({"random_state": -1}, "random_state is -1, expected a whole number >= 0"),
        ({"cv": [1]}, r"cv is \[1\], expected a number of folds"),
        ({"cv": [([0, 1], [99])]}, r"cv is .*99.*, expected a number of folds"),
        ({"cv": []}, "cv gives no fold"),
        ({"cv": GroupKFold(2)}, "cv: GroupKFold needs groups of rows. Give its folds themselves"),
        ({"scoring": ["r2"]}, r"scoring is \['r2'\], expected one name or one function"),
    ],
)
def test_settings_that_are_not_used_are_checked_too(make_data, model, options, message):
    if options.keys() - model().get_params():
        pytest.skip("it has no such setting")
    X, y = make_data("squared", n=30, d=3)
    with pytest.raises(InputError, match=message):
        model(**options).fit(X, y)


def test_a_matrix_of_differences_is_of_numbers(make_data):
    X, y = make_data("squared", n=30, d=3)
    with pytest.raises(InputError, match="D: cannot be read as numbers"):
        GeneralizedLasso("a").fit(X, y)
    with pytest.raises(InputError, match="D holds complex values"):
        GeneralizedLasso(sparse.csr_matrix(1j * np.eye(3))).fit(X, y)
