import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.errors import DivergedError, InputError
from telic.optim import (
    METHODS,
    ElasticNetClassifier,
    Huber,
    Problem,
    choose_method,
    make_problem,
    minimize,
    solve,
)
from telic.optim.design import as_design
from telic.optim.loop import Iterate, Record, _forecast, drive
from telic.optim.methods import gram, prox_newton, prox_newton_anderson
from telic.optim.methods.line_search import backtrack
from telic.optim.recentring import Recentred
from telic.simulate.text_corpora import rcv1_like

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
from optimum import optimum

LINEAR = ["asbcd", "gram", "mrbcd", "prox_newton", "saga", "sdca", "svrg"]
LOSSES = ["squared", "logistic", "squared_hinge", "huber", "poisson", "gamma", "tweedie"]
LOG_LINK = LOSSES[4:]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_each_method_reaches_the_independent_optimum(make_data, loss, fit_intercept):
    X, y = make_data(loss)
    weight = np.random.default_rng(1).random(y.size)
    terms = {"loss": loss, "l1": 0.01, "l2": 0.05, "fit_intercept": fit_intercept}
    best = optimum(X, y, sample_weight=weight, **terms)
    for method in LINEAR:
        if loss in LOG_LINK and method not in ("gram", "prox_newton", "sdca"):
            continue
        for matrix in (X, sparse.csr_matrix(X)):
            result = minimize(
                matrix, y, method=method, sample_weight=weight, tol=1e-9, max_passes=9000, **terms
            )
            assert result.converged
            assert -1e-10 <= result.objective - best <= 1e-8, method
            assert result.objective - best <= result.gap + 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_one_mass_for_all_rows_takes_the_same_path_as_one_each(make_data, method):
    X, y = make_data()
    shared = make_problem(X, y, l1=0.01, l2=0.05, fit_intercept=True)
    equal = make_problem(X, y, l1=0.01, l2=0.05, fit_intercept=True, sample_weight=3 + 0 * y)
    assert shared.mass.size == equal.mass.size == 1
    paths = []
    for mass in (shared.mass, np.full(y.size, 1.0 / y.size)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = solve(replace(shared, mass=mass), method=method, max_passes=4)
        paths.append([*result.coef, result.intercept, result.objective, result.gap])
    np.testing.assert_allclose(*paths, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["asbcd", "sbcd", "mrbcd"])
def test_blocks_reach_the_same_point(make_data, method):
    X, y = make_data(kind="csr")
    best = minimize(X, y, l1=0.01, l2=0.05, tol=1e-12).objective
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sbcd is sublinear
        result = minimize(
            X, y, l1=0.01, l2=0.05, method=method, blocks=4, tol=1e-9, max_passes=3000
        )
    assert abs(result.objective - best) < (1e-3 if method == "sbcd" else 1e-8)


def test_sgd_comes_close_and_says_that_it_did_not_converge(make_data):
    X, y = make_data()
    with pytest.warns(ConvergenceWarning, match="sgd stopped after 200 passes with a duality gap"):
        result = minimize(X, y, l1=0.01, l2=0.05, method="sgd", max_passes=200)
    assert not result.converged
    assert 0 < result.objective - minimize(X, y, l1=0.01, l2=0.05).objective < 1e-3


@pytest.mark.parametrize("l1", [0.0, 0.02])
@pytest.mark.parametrize("l2", [0.0, 0.02])
@pytest.mark.parametrize("method", ["gram", "prox_newton"])
def test_each_mix_of_penalties_is_solved(make_data, method, l1, l2):
    for loss in ("squared", "logistic", "huber"):
        X, y = make_data(loss)
        result = minimize(X, y, loss=loss, l1=l1, l2=l2, method=method, tol=1e-9)
        assert result.objective == pytest.approx(optimum(X, y, loss=loss, l1=l1, l2=l2), abs=1e-8)
        assert np.isnan(result.gap) == (l1 == l2 == 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_sdca_converges_on_rows_of_very_different_norms(loss):
    """Where a row's dual problem is far from quadratic one Newton move circles around it."""
    text = rcv1_like(n=1000, d=5000, words=30)
    norms = np.sqrt(1.0 + np.random.default_rng(0).pareto(1.2, size=1000))
    y = np.abs(text.y) if loss in LOG_LINK else text.y
    X = sparse.diags(norms) @ text.X
    assert minimize(X, y, loss=loss, l1=1e-4, l2=1e-4, method="sdca", tol=1e-9).converged


def _group_optimum(X, y, terms):
    """Objective by accelerated proximal gradient in plain NumPy, from the definition alone."""
    size, l1, l2 = np.sqrt(3.0), terms["l1"], terms["l2"]
    A = np.column_stack([X, np.ones(len(y))])
    bound = 0.25 if terms["loss"] == "logistic" else 1.0
    step = 1.0 / (bound * np.linalg.norm(A, 2) ** 2 / len(y) + l2)
    w, ahead, pace = np.zeros(16), np.zeros(16), 1.0
    for _ in range(5000):
        z = A @ ahead
        slope = -y / (1.0 + np.exp(y * z)) if terms["loss"] == "logistic" else z - y
        ahead = ahead - step * (A.T @ slope / len(y) + np.append(l2 * ahead[:15], 0.0))
        blocks = ahead[:15].reshape(5, 3)
        norms = np.linalg.norm(blocks, axis=1, keepdims=True)
        blocks *= np.maximum(0.0, 1.0 - step * l1 * size / np.maximum(norms, 1e-300))
        last, w, following = w, ahead, 0.5 + np.sqrt(0.25 + pace * pace)
        ahead, pace = w + (pace - 1.0) / following * (w - last), following
    z, v = A @ w, w[:15]
    risk = np.log1p(np.exp(-y * z)) if terms["loss"] == "logistic" else 0.5 * (z - y) ** 2
    return (
        risk.mean() + 0.5 * l2 * (v @ v) + l1 * size * np.linalg.norm(v.reshape(5, 3), axis=1).sum()
    )


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_group_methods_agree_and_leave_groups_out_as_a_whole(make_data, loss):
    X, y = make_data(loss)
    groups = np.arange(15) // 3
    terms = {
        "loss": loss,
        "l1": 0.08 if loss == "logistic" else 0.25,
        "l2": 0.01,
        "groups": groups,
        "fit_intercept": True,
    }
    results = [
        minimize(X, y, method=method, blocks=blocks, tol=1e-10, max_passes=5000, **terms)
        for method, blocks in (
            *(("gram", None), ("prox_newton", None), ("saga", None), ("svrg", None)),
            *(("asbcd", 1), ("asbcd", 3), ("mrbcd", 1), ("mrbcd", 3)),
        )
    ]
    optimum = _group_optimum(X, y, terms)
    for result in results:
        assert result.converged
        assert result.objective == pytest.approx(results[0].objective, abs=1e-8)
        assert result.objective == pytest.approx(optimum, abs=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sgd and sbcd are sublinear
        for method in ("sgd", "sbcd"):
            found = minimize(X, y, method=method, tol=1e-10, max_passes=500, **terms).objective
            assert 0 < found - results[0].objective <= 1e-2
    zero = (results[0].coef.reshape(5, 3) == 0).sum(axis=1)
    assert set(zero) <= {0, 3}
    assert 3 in zero


def test_the_gap_is_a_bound_at_every_check(make_data):
    X, y = make_data(kind="csr")
    for l1, l2 in ((0.02, 0.0), (0.02, 0.01), (0.0, 0.01)):
        best = minimize(X, y, l1=l1, l2=l2, tol=1e-13, fit_intercept=True).objective
        for method in ("prox_newton", "asbcd"):
            history = minimize(
                X, y, l1=l1, l2=l2, fit_intercept=True, method=method, tol=1e-5, check_every=1
            ).history
            assert all(record.objective - best <= record.gap + 1e-12 for record in history)
            assert history[-1].gap < 1e-4 < history[0].gap


def test_formats_layouts_and_types_give_the_same_answer(make_data):
    X, y = make_data()
    expected = minimize(X, y, l1=0.01, l2=0.05, tol=1e-12).coef
    messy = sparse.coo_matrix(X)
    twice = sparse.csr_matrix(
        (np.tile(messy.data / 2, 2), (np.tile(messy.row, 2), np.tile(messy.col, 2))), X.shape
    )
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    unsorted = sparse.csr_matrix(X[:, ::-1])[:, ::-1]
    for matrix in (
        np.asfortranarray(X),
        np.repeat(X, 2, axis=0)[::2],
        twice,
        wide,
        unsorted,
        messy,
    ):
        found = minimize(matrix, y, l1=0.01, l2=0.05, tol=1e-12).coef
        np.testing.assert_allclose(found, expected, atol=1e-9)
    for method in ("gram", "asbcd"):
        for single in (X.astype(np.float32), sparse.csr_matrix(X, dtype=np.float32)):
            found = minimize(single, y, l1=0.01, l2=0.05, tol=1e-10, method=method).coef
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_seed_decides_and_a_warm_start_saves_passes(make_data):
    X, y = make_data(kind="csr")
    terms = {"l1": 0.01, "l2": 0.05, "method": "asbcd"}
    first, second = (minimize(X, y, seed=7, **terms) for _ in range(2))
    np.testing.assert_array_equal(first.coef, second.coef)
    assert (first.coef != minimize(X, y, seed=8, **terms).coef).any()
    for method in ("asbcd", "sdca", "prox_newton", "gram"):
        terms["method"] = method
        cold = minimize(X, y, **terms)
        warm = minimize(X, y, coef_init=cold.coef, **terms)
        assert warm.passes < cold.passes


@pytest.mark.parametrize("far", [100.0, -500.0])
@pytest.mark.parametrize("method", ["gram", "prox_newton", "saga"])
def test_an_intercept_that_starts_far_out_comes_back(make_data, method, far):
    X, y = make_data()
    terms = {"l2": 0.1, "fit_intercept": True, "method": method}
    found = minimize(X, y, intercept_init=far, **terms)
    assert found.objective == pytest.approx(minimize(X, y, **terms).objective, abs=1e-5)


def test_the_callback_sees_the_history_and_can_stop(make_data):
    X, y = make_data()
    seen = []

    def callback(record, coef, intercept):
        seen.append(record)
        return len(seen) == 2

    result = minimize(X, y, l2=1e-3, method="saga", tol=1e-12, check_every=1, callback=callback)
    assert result.history == seen
    assert len(seen) == 2


def test_a_diverging_step_is_named_with_a_safe_one(make_data):
    X, y = make_data("squared")
    with pytest.raises(
        DivergedError, match=r"saga diverged .* A step_size of (.*) is safe"
    ) as caught:
        minimize(X, y, loss="squared", l2=0.01, method="saga", step_size=10.0)
    safe = float(str(caught.value).split("step_size of ")[1].split(" is")[0])
    assert minimize(X, y, loss="squared", l2=0.01, method="saga", step_size=safe).converged


@pytest.mark.parametrize("method", ["asbcd", "mrbcd", "saga", "sbcd", "sgd", "svrg"])
def test_every_method_with_a_step_names_a_safe_one_when_it_diverges(make_data, method):
    X, y = make_data("squared")
    with pytest.raises(DivergedError, match=rf"{method} diverged .* A step_size of .* is safe"):
        minimize(X, y, loss="squared", l2=1e-9, method=method, step_size=1e6, max_passes=100)


def test_separated_classes_without_a_penalty_are_reported():
    X, y = np.array([[1.0], [2.0], [-1.0], [-3.0]]), np.array([1.0, 1.0, -1.0, -1.0])
    with pytest.warns(ConvergenceWarning, match="separated"):
        minimize(X, y)
    labels, far = np.array([0, 0, 1, 2]), np.array([[1.0], [2.0], [-1.0], [-3.0]])
    with pytest.warns(ConvergenceWarning, match="separated"):
        ElasticNetClassifier(None).fit(far, labels)
    with warnings.catch_warnings():  # two rows of equal features, of which one counts for nothing
        warnings.simplefilter("error")
        ElasticNetClassifier(None).fit(np.r_[far, far], [0, 0, 1, 2, 1, 2, 0, 1])
    with pytest.warns(ConvergenceWarning, match="separated"):
        ElasticNetClassifier(None).fit(
            np.r_[far, far], [0, 0, 1, 2, 1, 2, 0, 1], sample_weight=[1, 1, 1, 1, 0, 0, 0, 0]
        )


def test_scales_far_from_one_are_solved_or_refused(make_data):
    X, y = make_data("squared")
    assert minimize(X * 1e-150, y, loss="squared", l1=0.1).coef.any() == 0
    # Scaling X by c and the penalties with it scales the coefficients by 1/c.
    plain = minimize(X, y, loss="squared", l1=0.01, l2=0.01, tol=1e-12).coef
    large = minimize(X * 1e40, y, loss="squared", l1=0.01e40, l2=0.01e80, tol=1e-12).coef
    np.testing.assert_allclose(large * 1e40, plain, rtol=1e-6, atol=1e-9)
    with pytest.raises(InputError, match="too large to square"):
        minimize(X * 1e150, y, loss="squared", l1=0.1)


def test_one_row_and_empty_columns_are_no_special_case():
    result = minimize(np.array([[2.0, 0.0]]), [3.0], loss="squared", l1=0.0, l2=1.0, tol=1e-12)
    np.testing.assert_allclose(result.coef, [6.0 / 5.0, 0.0], atol=1e-8)
    for method in LINEAR:
        assert (
            minimize(sparse.csr_matrix((4, 3)), [1, 1, -1, -1], l2=0.1, method=method).coef.any()
            == 0
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[np.nan, 1.0], [1.0, 2.0]]}, "NaN or infinity at row 0, column 0"),
        ({"X": [[1.0, np.inf], [1.0, 2.0]]}, "row 0, column 1"),
        ({"X": sparse.csr_matrix([[1.0, 0.0], [0.0, np.inf]])}, "row 1, column 1"),
        ({"X": [1.0, 2.0]}, "1 dimension"),
        ({"X": np.empty((2, 0))}, "at least one row and one feature"),
        ({"X": [[1j, 0], [0, 1]]}, "complex"),
        ({"X": np.ma.masked_equal([[1.0, 9.0], [1.0, 2.0]], 9.0)}, "X is a masked array with 1 "),
        ({"y": np.ma.masked_equal([1.0, -1.0], -1.0)}, "y is a masked array with 1 value"),
        ({"X": [[1.0, 2.0], [3.0]]}, "cannot be read as a table of numbers"),
        ({"X": sparse.coo_array(np.ones(2))}, "1 dimension"),
        ({"y": [1j, -1.0]}, "y holds complex values"),
        ({"y": [[1.0], [1.0, -1.0]]}, "y cannot be read as numbers"),
        ({"groups": np.ma.masked_equal([0, 1], 1)}, "groups is a masked array"),
        ({"coef_init": np.ma.masked_equal([0.0, 1.0], 1.0)}, "coef_init is a masked array"),
        ({"loss": ["squared"]}, "loss is .*, expected one of"),
        ({"X": [["a", "b"], ["c", "d"]]}, "cannot be read as numbers"),
        ({"y": [1.0]}, r"y has shape \(1,\), expected \(2,\)"),
        ({"y": [1.0, np.nan]}, "y contains NaN or infinity at row 1"),
        ({"y": [1.0, 2.0]}, "expected -1 and \\+1"),
        ({"y": [1.0, 1.0]}, "one class only"),
        ({"sample_weight": [0.0, 1.0]}, "all weight is on one class"),
        ({"y": [0.0, -1.0], "loss": "poisson"}, "counts"),
        ({"y": [0.0, 1.0], "loss": "gamma"}, "y holds 0, expected numbers > 0 for the gamma loss"),
        ({"y": [0.0, -1.0], "loss": "tweedie"}, "y holds -1, expected numbers >= 0"),
        ({"y": [0.0, 1e-120], "loss": "tweedie"}, "y holds 1e-120, expected at least 1e-100"),
        ({"y": [0.0, 1e120], "loss": "squared"}, "Scale it"),
        ({"l1": -1.0}, "l1 is -1.0, expected a finite number >= 0"),
        ({"l2": np.nan}, "l2 is nan"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight must be >= 0"),
        ({"groups": [0]}, "groups has 1 labels, X has 2 features"),
        ({"method": "newton"}, "method is 'newton', expected one of"),
        ({"method": "saga", "groups": [0, 1], "l1": 1.0, "step_size": 0.0}, "step_size is 0.0"),
        ({"method": "sdca", "groups": [0, 1]}, "sdca does not know groups"),
        ({"method": "saga", "loss": "poisson", "y": [0.0, 1.0]}, "no Lipschitz gradient"),
        ({"method": "sdca", "l1": 0.1}, "sdca needs l2 > 0"),
        (
            {"method": "gram", "X": np.ones((2, gram.LARGEST_D + 1))},
            "gram keeps .* Use prox_newton",
        ),
        ({"method": "asbcd", "blocks": 3}, "blocks is 3, expected 1 to the 2 features"),
        ({"method": "mrbcd", "batch_size": 0}, "batch_size is 0"),
        ({"method": "gram", "step_size": 1.0}, "gram has no step_size"),
        ({"method": "sgd", "l2": 0.1, "step_size": 10.0}, "step_size of .* is safe"),
        ({"method": "gram", "sampling": "greedy"}, "sampling is 'greedy'"),
        ({"coef_init": [1.0]}, "coef_init has shape"),
        ({"coef_init": ["a", "b"]}, "coef_init cannot be read as numbers"),
        ({"intercept_init": np.nan}, "intercept_init is nan"),
        ({"tol": -1.0}, "tol is -1.0"),
        ({"l1": "a"}, "l1 is 'a', expected a finite number >= 0"),
        ({"loss": 3}, "loss is 3, expected one of"),
        ({"groups": [0.0, np.nan]}, "groups contains NaN"),
        ({"method": "asbcd", "blocks": 1.5}, "blocks is 1.5"),
        ({"method": "saga", "seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_is_one_clear_line(change, message):
    given = {"X": [[1.0, 0.0], [0.0, 1.0]], "y": [1.0, -1.0], **change}
    with pytest.raises(InputError, match=message) as caught:
        minimize(given.pop("X"), given.pop("y"), **given)
    assert "\n" not in str(caught.value)


def test_auto_picks_by_shape_and_conditioning(make_data):
    X, y = make_data(n=60, d=600, kind="csr")
    assert choose_method(make_problem(X[:, :20], y, l2=0.1)) == "gram"
    assert choose_method(make_problem(X, y, l1=0.1)) == "prox_newton"
    assert choose_method(make_problem(X, y, l2=100.0)) == "sdca"
    assert choose_method(make_problem(X, y, l1=1e-4, l2=1e-6)) == "prox_newton"
    assert choose_method(make_problem(X, y, l2=1e-6)) == "sdca"
    assert choose_method(make_problem(X, y, l1=0.05, l2=0.05)) == "prox_newton"
    counts = {"y": np.arange(60) % 3, "loss": "poisson"}
    assert choose_method(make_problem(X, l2=1e-3, **counts)) == "sdca"
    assert choose_method(make_problem(X, l1=1e-3, l2=1e-3, **counts)) == "prox_newton"
    assert choose_method(make_problem(X, **counts)) == "prox_newton"
    tall = sparse.vstack([X] * 11)
    many = np.tile(counts["y"], 11)
    assert choose_method(make_problem(tall, many, loss="poisson", l2=100.0)) == "prox_newton"
    groups = np.arange(600) // 2
    assert choose_method(make_problem(X, y, l1=0.1, groups=groups)) == "prox_newton"
    assert choose_method(make_problem(X, y, l2=0.1, groups=groups)) == "gram"
    assert choose_method(make_problem(X[:, :20], y, l1=0.1, groups=groups[:20])) == "gram"
    assert minimize(X, y, loss=Huber(0.5), l1=0.1).method in METHODS
    # The condition number, mean ‖x‖² / (4 n λ₂) for logistic loss, around 15.
    square = sparse.linalg.norm(X) ** 2 / 60
    for condition, method in ((14.9, "sdca"), (15.1, "prox_newton")):
        l2 = square / (4 * 60 * condition)
        assert choose_method(make_problem(X, y, l1=1e-9, l2=l2)) == method
    # Around 0.07 of the λ₁ that leaves no feature.
    uneven = np.where(np.arange(60) < 6, -1.0, 1.0)
    for intercept, chance in ((False, 0.5), (True, 0.9)):
        most = abs(X.T @ (chance - (uneven > 0))).max() / 60
        for l1, method in ((0.069 * most, "sdca"), (0.071 * most, "prox_newton")):
            problem = make_problem(X, uneven, l1=l1, l2=1.0, fit_intercept=intercept)
            assert choose_method(problem) == method
    # No method keeps a matrix for groups of so many features.
    wide, many = sparse.csr_matrix((60, gram.LARGEST_D + 1)), np.arange(gram.LARGEST_D + 1) // 2
    assert choose_method(make_problem(wide, y, l1=0.1, groups=many)) == "saga"
    assert choose_method(make_problem(wide[:, 1:], y, l2=0.1, groups=many[1:])) == "gram"


@pytest.mark.parametrize("held", [np.asarray, sparse.csr_array])
def test_auto_climbs_the_dual_of_dense_rows_that_are_few_for_their_features(make_data, held):
    X, y = make_data("logistic", n=720, d=600)
    for rows, dense in ((599, "sdca"), (719, "sdca"), (720, "prox_newton")):
        problem = make_problem(held(X[:rows]), y[:rows], l2=1e-6)
        method = dense if held is np.asarray or rows < 600 else "prox_newton"
        assert choose_method(problem) == method
        l1 = make_problem(held(X[:rows]), y[:rows], l1=1e-4, l2=1e-6)
        assert choose_method(l1) == "prox_newton"


def test_auto_takes_a_factor_for_badly_conditioned_ridges_of_dense_rows(make_data):
    X, y = make_data("squared", n=350, d=600)
    ridge = {"loss": "squared", "l2": 1e-5}
    assert choose_method(make_problem(X, y, **ridge)) == "gram"
    assert choose_method(make_problem(sparse.csr_array(X), y, **ridge)) == "sdca"
    assert choose_method(make_problem(X[:290], y[:290], **ridge)) == "sdca"
    assert choose_method(make_problem(X, y, positive=True, **ridge)) == "sdca"
    assert choose_method(make_problem(X, y, **{**ridge, "l2": 100.0})) == "sdca"
    result = minimize(X, y, fit_intercept=True, **ridge)  # sdca stops far from it, with a warning
    assert result.gap <= 1e-9 * result.history[0].objective


def test_a_line_search_takes_the_longest_step_that_lowers_the_objective_or_none(make_data):
    X, y = make_data("squared", n=50, d=4)
    problem = make_problem(X, y, loss="squared", l1=0.01)
    w, z = np.ones(4), problem.predict(np.ones(4), 0.0)
    risk, slope = problem.risk(z), problem.back(problem.slopes(z))
    before = risk + problem.penalty.value(w)

    def searched(move, claimed):
        return backtrack(problem, problem.penalty, z, X @ move, w, move, claimed, risk)

    for length in (0.1, 3.0, 50.0):
        move = -length * slope
        step, then = searched(move, slope @ move)
        assert then == pytest.approx(problem.risk(z + step * (X @ move)))
        values = {
            s: problem.risk(z + s * (X @ move)) + problem.penalty.value(w + s * move)
            for s in 0.5 ** np.arange(30)
        }
        promised = slope @ move + problem.penalty.value(w + move) - problem.penalty.value(w)
        enough = [s for s, value in values.items() if value - before <= 0.01 * s * promised]
        assert step == max(enough)
    assert searched(slope, -100.0) == (0.0, risk)  # uphill, though a fall is promised
    for claimed in (100.0, np.nan):  # no fall is promised
        assert searched(-0.1 * slope, claimed) == (0.0, risk)


@pytest.mark.parametrize("d", [15, 300])
@pytest.mark.parametrize("method", ["gram", "prox_newton"])
def test_a_step_that_lowers_nothing_leaves_everything_where_it_was(
    make_data, monkeypatch, method, d
):
    X, y = make_data(n=200, d=d, kind="csr")

    def none(problem, penalty, z, move_z, w, move, slope, risk):
        move[:] = move_z[:] = np.inf  # as a move of nothing but rounding may be
        return 0.0, risk

    for module in (gram, prox_newton, prox_newton_anderson):
        monkeypatch.setattr(module, "backtrack", none)
    begin = np.linspace(-1, 1, d)
    with pytest.warns(ConvergenceWarning, match="stopped"):
        found = minimize(
            X, y, l1=1e-3, l2=1e-3, method=method, coef_init=begin, max_passes=40, tol=1e-9
        )
    np.testing.assert_array_equal(found.coef, begin)
    assert found.passes >= 40
    assert len({record.objective for record in found.history}) == 1


def test_extrapolation_finds_where_a_linear_iteration_leads():
    rng = np.random.default_rng(0)
    M, shift = rng.normal(size=(4, 4)) / 3, rng.normal(size=4)
    trail = [np.zeros(4)]
    for _ in range(5):
        trail.append(M @ trail[-1] + shift)
    found = prox_newton_anderson.mixture(np.array(trail)) @ trail[1:]
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(4) - M, shift), rtol=1e-6)
    # In more dimensions than steps: one iteration from the mixture that moves least.
    points = rng.normal(size=(6, 9))
    steps, loose = np.diff(points, axis=0), np.vstack([np.eye(4), -np.ones(4)])
    t = np.linalg.lstsq((loose.T @ steps).T, -steps[4], rcond=None)[0]
    mixture = (loose @ t + np.eye(5)[4]) @ points[1:]
    found = prox_newton_anderson.mixture(points) @ points[1:]
    np.testing.assert_allclose(found, mixture, rtol=1e-8)
    # Of points that do not differ, or by less than a square can hold, there is none.
    for differ in (0.0, 1e-160):
        assert prox_newton_anderson.mixture(differ * np.array(trail)) is None


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_that_do_not_add_up_to_zero_are_balanced_before_they_certify(
    make_data, loss, monkeypatch
):
    """With an intercept they are no dual point, and their "bound" may lie above the optimum."""
    X, y = make_data(loss)
    y = y + 5.0 if loss in ("squared", "huber") else y
    terms = {"loss": loss, "l1": 0.1, "fit_intercept": True}
    best = minimize(X, y, tol=1e-12, **terms).objective
    problem = make_problem(X, y, **terms)
    a = problem.slopes(np.full(y.size, 0.3))
    fair = problem.balanced(a)
    assert abs(a.sum()) > 1e-3
    assert abs(fair.sum()) < 1e-15
    assert (np.abs(fair) <= np.abs(a)).all()
    assert problem.dual_value(a, problem.back(a)) > best or loss != "squared"
    assert problem.dual_value(fair, problem.back(fair)) <= best
    bent = problem.balanced_by_bending(a, np.full(y.size, 0.3))
    assert abs(bent.sum()) < 1e-14
    with np.errstate(invalid="ignore"):  # it may leave the conjugates' domain, and bounds nothing
        assert not problem.dual_value(bent, problem.back(bent)) > best
    monkeypatch.setattr(Problem, "best_shift", lambda problem, z: 0.0)
    with pytest.warns(ConvergenceWarning, match="a duality gap of"):
        result = minimize(X, y, method="gram", max_passes=3, tol=1e-14, **terms)
    assert result.objective - result.gap <= best + 1e-12


def test_rounding_of_an_intercept_is_carried_by_rows_whose_loss_bends():
    """Far rows' slopes are Huber's bound, from which the least change costs the distance."""
    y, weights = np.array([-8e5, -13e5, -2e5, 4e5]), np.array([1e4, 1e-5, 1e-3, 1e-2])
    X = np.random.default_rng(0).normal(size=(4, 2))
    terms = {"loss": "huber", "l1": 1e3, "fit_intercept": True, "sample_weight": weights}
    problem = make_problem(X, y, **terms)
    z = np.full(4, problem.best_shift(np.zeros(4)))
    a = problem.slopes(z)
    assert problem.balanced(a) is not a
    bent = problem.balanced_by_bending(a, z)
    np.testing.assert_array_equal(bent[1:], a[1:])  # the first row alone is near
    assert abs(bent.sum()) < abs(a.sum()) / 100
    result = minimize(X, y, tol=1e-8, max_passes=20, **terms)
    assert result.converged
    shrunk = problem.balanced(a)
    assert problem.risk(z) - problem.dual_value(shrunk, problem.back(shrunk)) > 1e-6
    assert result.gap < 1e-8 * result.objective


@pytest.mark.parametrize(
    ("passes", "gap", "target", "iterates"),
    [
        # The gap falls by e^2 in a pass, e^32 are wanted: 16 passes, half of them are 4 iterates.
        ((4.0, 6.0), (1e-3, 1e-3 * np.exp(-4)), 1e-3 * np.exp(-36), 4),
        ((4.0, 6.0), (1e-3, 1e-3 * np.exp(-4)), 1e-3 * np.exp(-400), 10),
        ((4.0, 6.0), (1e-3, 1e-3 * np.exp(-4)), 1e-3 * np.exp(-5), 1),
        ((4.0, 6.0), (1e-3, 2e-3), 1e-9, 3),
        ((4.0,), (1e-3,), 1e-9, 1),
        ((4.0, 6.0), (1e-3, np.inf), 1e-9, 1),
    ],
)
def test_the_gap_is_looked_at_when_half_of_the_way_should_be_done(passes, gap, target, iterates):
    history = [Record(p, 0, 0.0, 1.0, g) for p, g in zip(passes, gap, strict=True)]
    assert _forecast(history, target) == iterates


def test_what_the_rounding_of_a_far_intercept_costs_is_that_of_the_data_as_they_came():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    problem = make_problem(X, y, loss="squared", l2=0.1, fit_intercept=True)
    # Beside the optimum, where signs differ. The last bits of a solver's weights, which decide
    # what is rounded, are not the same on every processor.
    found = replace(solve(problem), coef=np.array([-0.13, -0.12]), intercept=0.7)
    far = Recentred(problem, np.array([0]), np.array([3e16]), 0.0)
    with pytest.warns(ConvergenceWarning, match="rounding of the intercept"):
        back = far.back(found, 1e-6)
    moved = Fraction(back.intercept) + Fraction(3e16) * Fraction(float(found.coef[0]))
    risk = problem.risk(X @ found.coef + float(moved)) - problem.risk(X @ found.coef + 0.7)
    assert abs(float(moved) - 0.7) > 0.01
    assert back.objective - found.objective == pytest.approx(risk)
    assert back.gap == pytest.approx(max(found.gap + risk, 0.0))


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("rows", [7, 3_000])
def test_columns_that_are_full_and_far_from_zero_are_moved_there(stored, rows):
    rng = np.random.default_rng(0)
    far, half, near = rng.random(rows) + 1e6, np.arange(rows) % 2 * 1e6, rng.standard_normal(rows)
    moved, columns, centres = as_design(stored(np.column_stack([near, far, half]))).near
    assert columns.tolist() == [1]
    assert centres == pytest.approx([(far.min() + far.max()) / 2], abs=1e-6)
    dense = moved.matrix.toarray() if sparse.issparse(moved.matrix) else moved.matrix
    np.testing.assert_array_equal(dense[:, 1], far - centres[0])
    np.testing.assert_array_equal(dense[:, [0, 2]], np.column_stack([near, half]))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_what_counts_as_diverged_or_converged_goes_with_the_units_of_y(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), scale * rng.normal(size=30)
    problem, best = make_problem(X, y, loss="squared"), np.linalg.lstsq(X, y)[0]
    at_zero = problem.risk(np.zeros(30))

    def run(coefs, tol=0.01):
        iterates = (Iterate(coef, 0.0, gradients=30) for coef in coefs)
        options = {"method": "saga", "tol": tol, "max_passes": len(coefs), "check_every": 1}
        return drive(problem, iterates, **options)

    # Without a penalty the gradient decides: it is the share of the way that is left.
    found = run([(1 - left) * best for left in (0.5, 0.02, 0.011, 0.009, 0.001)])
    assert found.converged
    assert found.passes == 4
    for times, diverged in ((1e5, False), (1e7, True)):
        coef = 1e3 * best
        for _ in range(20):  # to a loss that is so many times that at zero
            coef = coef * np.sqrt(times * at_zero / problem.risk(X @ coef))
        assert problem.risk(X @ coef) == pytest.approx(times * at_zero)
        if diverged:
            with pytest.raises(DivergedError, match="saga diverged after 1 passes"):
                run([coef])
        else:
            with pytest.warns(ConvergenceWarning, match="saga stopped after 1 passes"):
                run([coef])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("method", ["auto", "prox_newton", "gram", "sdca"])
def test_rows_without_weight_count_for_nothing_where_features_are_many(method, is_sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 600))
    y = X[:, 0] + rng.normal(size=50)
    weights = np.ones(50)
    weights[[0, 7]] = 0.0
    rows = sparse.csr_array(X) if is_sparse else X
    options = {"loss": "squared", "l1": 0.01, "method": method, "tol": 1e-9}
    options["max_passes"] = 5000
    options["l2"] = 0.01 if method == "sdca" else 0.0
    found = minimize(rows, y, sample_weight=weights, **options)
    without = minimize(rows[weights > 0], y[weights > 0], **options)
    assert found.objective == pytest.approx(without.objective, rel=1e-7)
    assert found.converged
