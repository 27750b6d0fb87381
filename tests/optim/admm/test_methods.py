"""Every method against an optimum found by SciPy, the theorem's bound, and what is refused."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from telic.errors import DivergedError, InputError
from telic.optim.admm import (
    METHODS,
    PRINTED,
    Optimum,
    make_admm_problem,
    minimize_admm,
    separable,
    solve_admm,
)
from telic.optim.admm.methods import newton
from telic.optim.losses import as_loss

D = np.diff(np.eye(6), axis=0)
EXACT = [m for m in METHODS if m not in ("stoc-admm", "sdca-admm")]


def data(loss="logistic", *, n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ np.repeat([1.0, -1.0], d // 2)
    noise = rng.normal(size=n)
    return X, np.where(score + noise > 0, 1.0, -1.0) if loss == "logistic" else score + noise


def optimum(X, y, A, l1, loss, *, l2=0.0):
    """Least objective by SLSQP with a bound t >= |Ax| per row: smooth, constrained, independent."""
    loss, d, k = as_loss(loss), X.shape[1], A.shape[0]

    def objective(v):
        w, b, t = v[:d], v[d], v[d + 1 :]
        z = X @ w + b
        a = loss.gradient(z, y) / y.size
        slope = np.concatenate([X.T @ a + l2 * w, [a.sum()], np.full(k, l1)])
        return loss.value(z, y).mean() + l2 / 2 * w @ w + l1 * t.sum(), slope

    rows = np.block([[-A, np.zeros((k, 1)), np.eye(k)], [A, np.zeros((k, 1)), np.eye(k)]])
    found = minimize(
        objective,
        np.zeros(d + 1 + k),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: rows @ v, "jac": lambda v: rows},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return found.fun


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("method", EXACT)
def test_each_method_reaches_the_independent_optimum(loss, method):
    X, y = data(loss)
    best = optimum(X, y, D, 0.03, loss, l2=0.01)
    terms = {"A": D, "l1": 0.03, "l2": 0.01, "loss": loss, "fit_intercept": True}
    for matrix in (X, sparse.csr_matrix(X)):
        found = minimize_admm(matrix, y, method=method, tol=1e-7, max_passes=9000, **terms)
        assert found.converged
        assert abs(found.objective - best) < 1e-6
        assert found.objective - best <= found.gap + 1e-8
    for settings in ({"x_step": "exact"}, {"B": -2.0 * np.eye(5), "l1": 0.06}):
        found = minimize_admm(
            X, y, method=method, tol=1e-6, max_passes=9000, **{**terms, **settings}
        )
        assert abs(found.objective - best) < 1e-5


@pytest.mark.parametrize(
    ("method", "x_step"),
    [*product(EXACT, ["linearised", "curvature"]), ("batch-admm", "newton")],
)
def test_a_general_constraint_gives_the_optimum_of_slsqp(method, x_step):
    X, y = data("squared")
    rng = np.random.default_rng(1)
    A, B, c = rng.normal(size=(4, 6)), rng.normal(size=(4, 3)), rng.normal(size=4)

    def objective(v):
        x, t = v[:6], v[9:]
        return 0.5 * np.mean((X @ x - y) ** 2) + 0.2 * t.sum()

    # t >= |y| for each of the three y.
    bounds = np.block([[np.zeros((3, 6)), s * np.eye(3), np.eye(3)] for s in (1, -1)])
    best = minimize(
        objective,
        np.zeros(12),
        method="SLSQP",
        constraints=[
            {"type": "eq", "fun": lambda v: A @ v[:6] + B @ v[6:9] - c},
            {"type": "ineq", "fun": lambda v: bounds @ v},
        ],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    found = minimize_admm(
        X,
        y,
        A=A,
        B=B,
        c=c,
        g=separable(3, l1=0.2),
        loss="squared",
        method=method,
        x_step=x_step,
        tol=1e-7,
        max_passes=50_000,
    )
    np.testing.assert_allclose(found.coef, best.x[:6], atol=1e-4)
    np.testing.assert_allclose(A @ found.coef + B @ found.y, c, atol=1e-5)
    assert abs(found.objective - best.fun) < 1e-5


def test_sdca_reaches_the_optimum_up_to_its_perturbation_and_stoc_keeps_falling():
    X, y = data()
    best = optimum(X, y, D, 0.03, "logistic")
    terms = {"A": D, "l1": 0.03, "fit_intercept": True, "tol": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        errors = [
            minimize_admm(
                X, y, method="sdca-admm", perturbation=p, max_passes=800, **terms
            ).objective
            - best
            for p in (1e-1, 1e-2, 0.0)
        ]
        early, late = (
            minimize_admm(X, y, method="stoc-admm", max_passes=p, **terms).objective - best
            for p in (50, 1000)
        )
    assert errors[0] > 3 * errors[1] > 0
    assert abs(errors[2]) < 1e-6
    assert 0 < late < early < 0.1


@pytest.fixture(scope="module")
def solved():
    X, y = data()
    problem = make_admm_problem(X, y, A=D, g=separable(5, l1=0.03))
    best = solve_admm(problem, method="batch-admm", x_step="exact", tol=1e-12, max_passes=9000)
    return problem, Optimum(problem, best.coef, best.dual)


def test_measures_agree_at_and_around_the_optimum(solved):
    _, best = solved
    rng = np.random.default_rng(0)
    assert abs(best.gap(best.x)) < 1e-12
    for _ in range(20):
        x, y = best.x + rng.normal(size=6), rng.normal(size=5)
        assert best.gap(x) > 0
        assert best.q(x, y) >= best.q_smooth(x) > 0
        # With y = Ax both gaps are one; Q adds the dual's term, which then vanishes.
        assert best.gap_with_y(x, D @ x) == pytest.approx(best.gap(x))
        assert best.q(x, D @ x) == pytest.approx(best.gap(x))


def test_measures_agree_where_the_constraint_has_an_offset():
    X, y = data()
    problem = make_admm_problem(X, y, A=D, c=np.arange(5.0), g=separable(5, l1=0.03))
    found = solve_admm(problem, method="batch-admm", x_step="exact", tol=1e-12, max_passes=9000)
    best = Optimum(problem, found.coef, found.dual)
    for x in (best.x, np.ones(6)):
        assert best.q(x, D @ x - problem.c) == pytest.approx(best.gap(x), abs=1e-12)
    assert best.q(best.x, np.ones(5)) > 0


def test_theorem_5_5_3_bounds_q_at_each_stage_and_its_half_per_stage_is_not_vacuous(solved):
    problem, best = solved
    rho, m0 = 0.05, 8.0
    largest = problem.data.row_constants().max()
    eta = 1.0 / (12.0 * largest)
    stages, runs = 7, 30
    total = np.zeros(stages)
    for seed in range(runs):
        found = []

        def keep(record, point, found=found):
            if point.complete and point.stage:
                found.append(best.q(point.x, point.y))
            return len(found) == stages

        solve_admm(
            problem,
            step_size=eta,
            rho=rho,
            first=m0,
            batch_size=1,
            tol=0.0,
            seed=seed,
            max_passes=1e9,
            callback=keep,
        )
        total += found
    mean = total / runs
    # P = θI − ηρAᵀA, so P + ηρAᵀA of the theorem is θI.
    theta = 1.0 + 1.01 * eta * rho * np.linalg.norm(D, 2) ** 2
    zero = np.zeros(6)
    first = (
        best.q(zero, D @ zero)
        + 9 * largest / m0 * theta * (best.x @ best.x)
        + best.q_smooth(zero) / (2 * m0)
        + 3 * rho / (4 * m0) * (best.u @ best.u) / rho**2
    )
    bound = first * 0.5 ** np.arange(1, stages + 1)
    assert (mean <= bound).all()
    # Control: a run that stood still would break the bound at the last stages.
    assert best.q(zero, D @ zero) > bound[-1]
    assert mean[-1] < 0.05 * mean[0]


def test_same_seed_same_result_and_printed_settings_run(solved):
    problem, _ = solved
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        a, b, c = (solve_admm(problem, seed=s, max_passes=50, tol=0.0).coef for s in (1, 1, 2))
        printed = solve_admm(problem, max_passes=50, tol=0.0, **PRINTED)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    assert (printed.rho, printed.step_size) == (1e-4, 5e-3)
    assert printed.objective < printed.history[0].objective


def test_a_run_may_be_stopped_before_its_first_step(solved):
    problem, _ = solved
    begin = np.arange(6.0)
    found = solve_admm(problem, x_init=begin, callback=lambda record, point: True)
    assert (found.stopped, found.passes, len(found.history)) == ("callback", 0.0, 1)
    np.testing.assert_array_equal(found.coef, begin)


def test_a_stage_that_nobody_looked_at_is_the_result_all_the_same(solved):
    """Looks may be rarer than stages: the last complete stage is certified at the end."""
    problem, _ = solved
    stages = []

    def keep(record, point):
        if point.stage and point.complete:
            stages.append((record, point.x.copy()))

    terms = {"tol": 0.0, "seed": 0}
    with pytest.warns(ConvergenceWarning, match="passes"):
        solve_admm(problem, max_passes=40, callback=keep, **terms)
    # The run ends within the stage after this one, which is not complete then.
    record, x = stages[-2]
    until = 0.5 * (record.passes + stages[-1][0].passes)
    with pytest.warns(ConvergenceWarning, match="passes"):
        found = solve_admm(problem, max_passes=until, check_every=1e6, **terms)
    assert len(found.history) == 2
    assert found.stage == record.stage
    np.testing.assert_array_equal(found.coef, x)
    assert found.objective == pytest.approx(problem.objective(x), rel=1e-12)
    assert found.gap == pytest.approx(record.gap)


def test_an_interrupted_run_returns_its_last_complete_stage(solved):
    problem, _ = solved
    seen = []

    def interrupt(record, point):
        seen.append((record, point.x.copy()))
        if record.stage == 5:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        result = solve_admm(problem, tol=0.0, callback=interrupt)
    assert (result.stopped, result.converged) == ("interrupted", False)
    record, x = [s for s in seen if s[0].complete][-1]
    np.testing.assert_array_equal(result.coef, x)
    assert (result.stage, result.gap) == (record.stage, record.gap)
    stopped = solve_admm(problem, tol=0.0, callback=lambda record, point: record.stage == 3)
    assert stopped.stopped == "callback"
    with pytest.warns(ConvergenceWarning, match="seconds"):
        assert solve_admm(problem, tol=0.0, max_seconds=1e-6).stopped == "seconds"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": D[:, :4]}, "A has 4 columns, X has 6"),
        ({"A": D * np.nan}, "A contains NaN or infinity at row 0, column 0"),
        ({"B": np.eye(4)}, "B has 4 rows, A has 5"),
        ({"c": np.zeros(4)}, r"c has shape \(4,\)"),
        ({"l1": -1.0}, "l1 is -1 at entry 0"),
        ({"l1": np.ones(4)}, r"l1 has shape \(4,\)"),
        ({"g": separable(4, l1=1.0)}, "g is for 4 entries, expected 5: the rows of A"),
        ({"g": separable(5, l1=1.0), "B": np.ones((5, 2))}, "expected 2: the columns of B"),
        ({"perturbation": -0.1}, "perturbation is -0.1, expected a finite number >= 0"),
        ({"tol": -1.0}, "tol is -1.0, max_passes .* expected numbers >= 0, > 0 and > 0"),
        ({"max_passes": 0}, "max_passes 0, .* expected numbers >= 0, > 0 and > 0"),
        ({"max_seconds": 0.0}, r"max_seconds 0.0: expected numbers >= 0, > 0 and > 0"),
        ({"max_seconds": "a"}, r"max_seconds .a.: expected numbers"),
        ({"l1": "a"}, "l1: cannot be read as numbers"),
        ({"rho": 0.0}, "rho is 0.0"),
        ({"step_size": -1.0}, "step_size is -1.0"),
        ({"first": 0.3}, "first is 0.3"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"method": "admm"}, "method is 'admm'"),
        ({"x_step": "none"}, "x_step is 'none'"),
        ({"x_init": np.zeros(3)}, r"x_init has shape \(3,\)"),
        ({"method": "sdca-admm", "c": np.ones(5)}, "sdca-admm needs B"),
        ({"method": "sdca-admm", "B": np.eye(5)}, "sdca-admm needs B"),
        ({"method": "sdca-admm", "x_init": np.ones(6)}, "sdca-admm .* starts from zero"),
        ({"method": "sdca-admm", "dual_init": np.ones(5)}, "sdca-admm .* starts from zero"),
        ({"method": "stoc-admm", "x_step": "exact"}, "stoc-admm has no other x-step"),
        ({"x_step": "newton"}, "x_step='newton' is batch-admm's alone"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y = data()
    with pytest.raises(InputError, match=message):
        minimize_admm(X, y, **{"A": D, **({} if "g" in change else {"l1": 0.1}), **change})


def test_bounds_without_room_and_too_wide_a_matrix_are_refused():
    with pytest.raises(InputError, match="low is above high at entry 1: no y is allowed there"):
        separable(3, low=[0.0, 1.0, 0.0], high=0.5)
    separable(1, low=0.5, high=0.5)  # one y is
    X = sparse.csr_matrix(np.eye(2, 2001))
    wide = {"A": sparse.eye_array(1, 2001), "l1": 0.1, "l2": 1.0, "max_passes": 2, "tol": 1.0}
    for x_step in ("exact", "curvature"):
        with pytest.raises(InputError, match=r"needs a dense 2001 × 2001 .*x_step='scaled'"):
            minimize_admm(X, [1.0, -1.0], x_step=x_step, **wide)
    for x_step in ("linearised", "scaled"):
        assert minimize_admm(X, [1.0, -1.0], x_step=x_step, **wide).converged


def test_nan_in_the_data_is_named_by_row_and_column():
    X, y = data()
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="X contains NaN or infinity at row 3, column 1"):
        minimize_admm(X, y, A=D, l1=0.1)


def test_a_loss_without_a_lipschitz_gradient_is_refused():
    X, y = data()
    with pytest.raises(InputError, match="Poisson loss has no Lipschitz gradient"):
        minimize_admm(X, np.abs(y), A=D, l1=0.1, loss="poisson")


@pytest.mark.parametrize("loss", ["logistic", "squared", "squared_hinge", "huber"])
def test_newtons_x_step_finds_the_same_optimum_dense_and_sparse(loss):
    X, y = data("logistic" if loss in ("logistic", "squared_hinge") else "squared")
    y = y if loss != "huber" else 30.0 * y  # nearly all rows beyond the kink at the start
    X, y = X * [1.0, 1e3, 1.0, 1e-3, 1.0, 1.0], y
    terms = {"A": D, "l1": 0.01, "loss": loss, "fit_intercept": True, "method": "batch-admm"}
    best = minimize_admm(X, y, tol=1e-7, max_passes=5000, **terms)
    assert best.converged
    found = minimize_admm(sparse.csr_matrix(X), y, tol=1e-7, max_passes=5000, **terms)
    assert found.objective == pytest.approx(best.objective, rel=1e-5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton, "SPARSE_BEYOND", 1)
        spread = minimize_admm(sparse.csr_matrix(X), y, tol=1e-7, max_passes=5000, **terms)
    assert spread.objective == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.parametrize("rho", [0.02, 3.0])
def test_newtons_first_point_is_the_minimum_for_the_rho_that_was_given(solved, rho):
    problem, _ = solved
    points = []
    solve_admm(
        problem,
        method="batch-admm",
        x_step="newton",
        rho=rho,
        callback=lambda record, point: points.append(point) or len(points) == 2,
    )
    point = points[-1]
    # y = prox(Ax), u = ρ(Ax − y), and with this u the slope of f is balanced: (5.3.1)–(5.3.3).
    y = np.sign(D @ point.x) * np.maximum(abs(D @ point.x) - 0.03 / rho, 0.0)
    np.testing.assert_allclose(point.y, y, atol=1e-9)
    np.testing.assert_allclose(point.u, rho * (D @ point.x - y), atol=1e-9)
    slopes = problem.data.slopes(problem.data.predict(point.x, 0.0))
    np.testing.assert_allclose(problem.data.back(slopes), -D.T @ point.u, atol=1e-5)


def test_newtons_x_step_takes_a_general_constraint_on_sparse_data_too():
    X, y = data("squared")
    rng = np.random.default_rng(1)
    terms = {
        "A": rng.normal(size=(4, 6)),
        "B": rng.normal(size=(4, 3)),
        "c": rng.normal(size=4),
        "g": separable(3, l1=0.2),
        "loss": "squared",
        "l2": 0.1,
        "fit_intercept": True,
        "method": "batch-admm",
        "x_step": "newton",
        "tol": 1e-9,
    }
    dense = minimize_admm(X, y, **terms)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(newton, "SPARSE_BEYOND", 1)
        spread = minimize_admm(sparse.csr_matrix(X), y, **terms)
    assert spread.converged
    np.testing.assert_allclose(spread.coef, dense.coef, atol=1e-5)
    np.testing.assert_allclose(spread.y, dense.y, atol=1e-5)


@pytest.mark.parametrize("method", EXACT)
def test_one_row_and_a_constraint_on_nothing_have_their_closed_forms(method):
    """One row: (⟨w, x⟩ − 3)²/2 + l1|w₁ − w₂| + l2‖w‖²/2. A of zeros restrains nothing."""
    terms = {"loss": "squared", "l2": 1.0, "method": method, "tol": 1e-9, "max_passes": 20_000}
    free = minimize_admm([[2.0, 0.0]], [3.0], A=np.zeros((1, 2)), l1=5.0, **terms)
    np.testing.assert_allclose(free.coef, [1.2, 0.0], atol=1e-4)
    tied = minimize_admm([[2.0, 0.0]], [3.0], A=[[1.0, -1.0]], l1=0.1, **terms)
    np.testing.assert_allclose(tied.coef, [5.9 / 5.0, 0.1], atol=1e-4)


def test_stochastic_methods_name_a_step_that_diverges():
    X, y = data("squared")
    for method in ("svr-admm-d", "sa-admm"):
        with pytest.raises(DivergedError, match=rf"{method} diverged .* is safe"):
            minimize_admm(X, y, A=D, l1=0.1, loss="squared", method=method, step_size=100.0)


def test_a_step_that_diverges_is_named_with_a_safe_one():
    X, y = data("squared")
    with pytest.raises(DivergedError, match=r"diverged .* A step_size of 1 is safe"):
        minimize_admm(X, y, A=D, l1=0.1, loss="squared", step_size=50.0, method="batch-admm")


def test_rows_of_skewed_norm_do_not_diverge_at_the_default_step():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * np.sqrt(1.0 + rng.pareto(1.1, size=300))[:, None]
    y = X @ np.ones(6) + rng.normal(size=300)
    for batch_size in (1, None):
        result = minimize_admm(
            X, y, A=D, l1=0.1, loss="squared", batch_size=batch_size, max_passes=3000
        )
        assert result.converged


@pytest.mark.parametrize("method", ["stoc-admm", "sa-admm"])
def test_a_pass_is_n_rows_whatever_the_batch(method):
    X, y = data("squared")
    problem = make_admm_problem(X, y, A=D, g=separable(len(D), l1=0.1), loss="squared")
    with pytest.warns(ConvergenceWarning):
        found = solve_admm(
            problem, method=method, batch_size=8, max_passes=20, check_every=1, tol=0.0
        )
    assert np.diff([record.passes for record in found.history]).tolist() == [1.0] * 20


def test_a_residual_is_not_forgiven_for_another_b():
    wanted = separable(3, l1=0.1)
    parts = {"A": np.eye(3), "c": [1.0, 2.0, 3.0], "g": wanted, "loss": "squared"}
    plain = solve_admm(
        make_admm_problem(np.eye(3), np.zeros(3), **parts), method="batch-admm", tol=1e-8
    )
    other = solve_admm(make_admm_problem(np.eye(3), np.zeros(3), B=-np.eye(3), **parts), tol=1e-6)
    assert other.converged
    assert other.primal_residual < 1e-4
    np.testing.assert_allclose(other.coef, plain.coef, atol=1e-3)


@pytest.mark.parametrize("x_step", ["newton", "curvature"])
def test_a_far_start_does_not_count_as_converged(x_step):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    y = np.sign(X[:, 0] + rng.standard_normal(200))
    problem = make_admm_problem(X, y, A=np.eye(5), g=separable(5, l1=0.01), loss="logistic")
    near = solve_admm(problem, method="batch-admm", x_step=x_step, tol=1e-6)
    far = solve_admm(
        problem,
        method="batch-admm",
        x_step=x_step,
        tol=1e-6,
        x_init=np.full(5, 1e3),
        max_passes=20_000,
    )
    assert far.converged
    assert far.objective == pytest.approx(near.objective, rel=1e-5)


@pytest.mark.parametrize("method", ["svr-admm-d", "sa-admm", "batch-admm"])
def test_an_equality_met_to_rounding_has_an_objective(method):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = X @ np.array([1.0, 2.0, 0.0, 0.0]) + 0.1 * rng.standard_normal(200)
    equal = separable(1, low=0.0, high=0.0)
    problem = make_admm_problem(X, y, A=[[1.0, -1.0, 0.0, 0.0]], g=equal, loss="squared")
    found = solve_admm(problem, method=method, tol=1e-6)
    merged = np.column_stack([X[:, 0] + X[:, 1], X[:, 2:]])
    best = np.linalg.lstsq(merged, y, rcond=None)[0]
    np.testing.assert_allclose(found.coef, best[[0, 0, 1, 2]], atol=2e-3)
    assert found.converged
