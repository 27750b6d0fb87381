"""The model that Gram descent steps by: its sample of the rows, and what it learns from steps."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.optim import ElasticNetRegressor, make_problem, solve
from telic.optim.methods import gram, gram_descent, prox_newton
from telic.optim.methods.block_descent import _steepest, descend_blocks
from telic.optim.methods.gram_descent import descend, minimise
from telic.optim.methods.sampled_gram import sampled, weighted_gram
from telic.optim.penalties import ElasticNet, GroupElasticNet


@pytest.mark.parametrize("kind", ["dense", "csr", "csc"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_sample_is_every_so_manieth_row_and_its_masses_sum_to_one(make_data, kind, weighted):
    X, y = make_data(n=100, d=6, kind=kind)
    weight = np.arange(100.0) if weighted else None
    problem = make_problem(X, y, sample_weight=weight)
    part, some = sampled(problem, 30)
    rows = np.arange(100)[some]
    assert rows.tolist() == list(range(0, 100, 3))
    full = X.toarray() if sparse.issparse(X) else X
    held = part.design.matrix
    np.testing.assert_array_equal(held.toarray() if sparse.issparse(held) else held, full[::3])
    np.testing.assert_array_equal(part.y, y[::3])
    expected = rows / rows.sum() if weighted else [1 / 34]
    np.testing.assert_allclose(part.mass, expected)
    assert sampled(problem, 60)[0] is problem


def test_a_sample_without_weight_is_not_taken(make_data):
    X, y = make_data(n=100, d=6)
    problem = make_problem(X, y, sample_weight=np.arange(100) % 3 > 0)
    assert sampled(problem, 30)[0] is problem


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_gram_matrix_by_its_definition(make_data, kind):
    X, y = make_data(n=3000, d=6, kind=kind)
    weights = np.random.default_rng(0).random(3000)
    out = np.empty((6, 6))
    means, total = weighted_gram(make_problem(X, y, fit_intercept=True), weights, out)
    full = X.toarray() if kind == "csr" else X
    np.testing.assert_allclose(means, np.average(full, axis=0, weights=weights))
    spread = full - means
    np.testing.assert_allclose(out, spread.T @ (spread * weights[:, None]), atol=1e-10)
    assert total == pytest.approx(weights.sum())


@pytest.mark.parametrize("l1", [0.0, 1e-3])
def test_a_model_that_learned_agrees_with_the_change_of_the_gradient(make_data, l1):
    X, y = make_data(n=50, d=5)
    problem = make_problem(X, y, l1=l1, l2=0.1)
    model = (gram._Cholesky if l1 == 0 else gram._Descent)(problem)
    model.form(problem, problem.curvatures(np.zeros(50)))
    move, change = np.arange(1.0, 6.0), np.arange(1.0, 6.0) ** 2
    model.learn(move, change)
    if l1:
        np.testing.assert_allclose(model.matrix @ move, change)
    else:
        # Where the gradient is that change, the way to the least is the move.
        np.testing.assert_allclose(model.minimum(move, change), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(model.matrix).min() > 0


@pytest.mark.parametrize(
    "loss", ["logistic", "squared_hinge", "huber", "poisson", "gamma", "tweedie"]
)
@pytest.mark.parametrize("l1", [0.0, 1e-3])
def test_a_poor_sample_costs_steps_and_not_the_answer(make_data, loss, l1):
    X, y = make_data(loss, n=4000, d=5)
    # What the sample of every so manieth row sees of the first feature has another scale.
    X[::40, 0] *= 30.0
    problem = make_problem(X, y, loss=loss, l1=l1, l2=1e-3, fit_intercept=True)
    result = solve(problem, method="gram", tol=1e-11)
    assert result.converged
    other = solve(problem, method="prox_newton", tol=1e-11)
    assert result.objective == pytest.approx(other.objective, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_constant_column_and_two_equal_ones_do_not_stop_the_factor(make_data, loss):
    X, y = make_data(loss, n=80, d=6)
    X[:, 0], X[:, 1] = 3.0, X[:, 2]
    for l2 in (0.0, 1e-12, 1.0):
        result = solve(
            make_problem(X, y, loss=loss, l2=l2, fit_intercept=True), method="gram", tol=1e-9
        )
        assert result.converged


@pytest.mark.parametrize("kind", ["independent", "equal", "opposite", "single"])
def test_the_curvature_of_a_block_is_bounded_by_no_less_than_its_largest_eigenvalue(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    if kind == "equal":
        X[:, 1:] = X[:, :1]
    if kind == "opposite":
        X[:, 1] = -X[:, 0]
    hessian = np.zeros((6, 6))
    block = np.array([5, 1, 3, 2])[: 1 if kind == "single" else 4]
    hessian[np.ix_(block, block)] = (X.T @ X / 200)[: block.size, : block.size]
    largest = np.linalg.eigvalsh(hessian).max()
    bound, _ = _steepest(hessian, block)
    assert largest * (1 - 1e-12) <= bound <= hessian.trace()
    if kind == "independent":
        assert bound < 0.5 * hessian.trace()
    if kind == "single":
        assert bound == pytest.approx(largest)


def test_the_diagonal_stands_for_a_matrix_that_rounding_gave_two_signs(make_data):
    X, y = make_data(n=50, d=3)
    problem = make_problem(X, y, l2=0.1)
    model = gram._Cholesky(problem)
    model.form(problem, problem.curvatures(np.zeros(50)))
    curved, coef, gradient = model.diagonal + 0.1, np.array([1.0, 0.0, -2.0]), np.arange(3.0)
    newton = coef - np.linalg.solve(
        model.matrix - np.diag(model.matrix.diagonal() - curved), gradient + 0.1 * coef
    )
    np.testing.assert_allclose(model.minimum(coef, gradient), newton, rtol=1e-9)
    model.matrix[:] = 10.0
    model.take(problem)
    expected = coef - (gradient + 0.1 * coef) / curved
    np.testing.assert_allclose(model.minimum(coef, gradient), expected, rtol=1e-9)


@st.composite
def models(draw):
    """A quadratic model whose features may be copies of each other, and a penalty."""
    rng, d = np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.integers(1, 12))
    X = rng.normal(size=(20, d)) + draw(st.sampled_from([0.0, 3.0, 300.0]))
    copies = rng.integers(0, d, draw(st.integers(0, d)))
    X[:, rng.permutation(d)[: len(copies)]] = X[:, copies] * draw(st.sampled_from([1.0, -2.0]))
    w = rng.normal(size=d) * rng.integers(0, 2, d)
    positive = draw(st.booleans())
    l1, l2 = draw(st.sampled_from([0.0, 0.1, 3.0])), draw(st.sampled_from([0.0, 1e-3]))
    slope = X.T @ rng.normal(size=20) / 20
    return X.T @ X / 20, slope, abs(w) if positive else w, ElasticNet(l1, l2, positive)


def value(matrix, slope, start, w, penalty):
    move = w - start
    return slope @ move + 0.5 * move @ matrix @ move + penalty.value(w)


@given(models(), st.integers(1, 5))
@settings(max_examples=60)
def test_factors_and_descent_find_the_minimum_of_a_model(model, turn):
    """A factor is tried after every few rounds here, however small the model is."""
    matrix, slope, w, penalty = model
    start, along = w.copy(), slope.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_descent, "CALL", (turn - 1) * w.size * (w.size + gram_descent.ZERO))
        minimise(matrix, along, w, penalty, tol=1e-9, rounds=20_000)
    np.testing.assert_allclose(along, slope + matrix @ (w - start), atol=1e-6 * matrix.max())
    other, moved = start.copy(), slope.copy()
    options = penalty.l1, penalty.below, penalty.l2
    descend(matrix, moved, other, *options, 1e-12, 0.0, 200_000)
    best = value(matrix, slope, start, other, penalty)
    assert value(matrix, slope, start, w, penalty) <= best + 1e-6 * (1.0 + abs(best))


@given(models())
@settings(max_examples=60)
def test_a_factor_lowers_the_model_and_changes_no_sign(model):
    matrix, slope, w, penalty = model
    start, along = w.copy(), slope.copy()
    curved, reached = gram_descent._keep_signs(matrix, along, w, penalty)
    signs = np.sign(start)
    assert ((np.sign(w) == signs) | (w == 0.0)).all()
    assert ((w == 0.0) & (signs != 0.0)).any() or reached or not curved
    before = penalty.value(start)
    assert value(matrix, slope, start, w, penalty) <= before + 1e-9 * (1.0 + before)


def nearly_copies(d=40):
    """A model along which descent takes many thousand rounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1)) + 0.02 * rng.normal(size=(200, d))
    return X.T @ X / 200, X.T @ rng.normal(size=200) / 200


def test_a_factor_is_where_rounds_would_hardly_move():
    matrix, slope = nearly_copies()
    penalty, ends = ElasticNet(1e-4, 0.0), []
    for rounds in (10_000, 1_000_000):
        w = np.zeros(40)
        descend(matrix, slope.copy(), w, 1e-4, 1e-4, 0.0, 1e-9, 0.0, rounds)
        ends.append(value(matrix, slope, 0.0, w, penalty))
    w = np.zeros(40)
    minimise(matrix, slope.copy(), w, penalty, tol=1e-9, rounds=10_000)
    left = value(matrix, slope, 0.0, w, penalty) - ends[1]
    assert left <= 1e-6 * (ends[0] - ends[1])


@pytest.mark.parametrize("l1", [1.0, 1e3])
def test_a_set_of_no_features_has_its_minimum(l1):
    """As where nothing violates anything, while rounding keeps the gap above its tolerance."""
    minimise(np.empty((0, 0)), np.empty(0), np.empty(0), ElasticNet(l1, 0.0), rounds=5)
    y, weights = np.array([-8e5, -13e5, -2e5, 4e5]), [1e4, 1e-5, 1e-3, 1e-2]
    X = np.random.default_rng(0).normal(size=(4, 2))
    model = ElasticNetRegressor(alpha=l1, loss="huber", solver="prox_newton", max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weights)
    assert model.intercept_ == pytest.approx(-8e5, rel=1e-4)


def test_descent_and_factors_stop_at_a_share_of_the_first_round(monkeypatch):
    matrix, slope = nearly_copies()
    called = []
    monkeypatch.setattr(
        gram_descent, "descend", lambda *model: called.append(descend(*model)) or called[-1]
    )
    minimise(matrix, slope.copy(), np.zeros(40), ElasticNet(1e-4, 0.0), tol=1e-6, rounds=10_000)
    assert 1 < len(called) < 20
    assert called[-1][0] <= 1e-6 * called[0][1]


def test_groups_only_descend():
    matrix, slope = nearly_copies()
    penalty = GroupElasticNet(1e-4, 0.0, np.arange(40), np.arange(0, 41, 2))
    w, other, slopes = np.zeros(40), np.zeros(40), slope.copy()
    minimise(matrix, slopes, w, penalty, rounds=500)
    blocks = penalty.starts, penalty.order, penalty.weights
    descend_blocks(matrix, slope, other, blocks, 1e-4, 0.0, 0.0, 0.0, 500)
    np.testing.assert_array_equal(w, other)
    np.testing.assert_array_equal(slopes, slope)


def test_factors_cost_no_more_than_the_rounds_they_stand_for(monkeypatch):
    """Also of all coordinates, where none was in use at first; a round has the last word."""
    rng, d, costs = np.random.default_rng(0), 600, []
    X = rng.normal(size=(d, d))

    def factor(matrix, slope, w, penalty):
        costs.append(np.count_nonzero(w) ** 3 / 3)
        return keep_signs(matrix, slope, w, penalty)

    def rounds(*model):
        costs.append(0.0)
        return descend(*model)

    keep_signs = gram_descent._keep_signs
    monkeypatch.setattr(gram_descent, "_keep_signs", factor)
    monkeypatch.setattr(gram_descent, "descend", rounds)
    slope = X.T @ rng.normal(size=d) / d
    minimise(X.T @ X / d, slope, np.zeros(d), ElasticNet(1e-4, 0.0), tol=1e-9, rounds=1000)
    assert 0.0 < sum(costs) <= 1000 * d * (d + gram_descent.ZERO)
    assert costs[-1] == 0.0


def test_between_factors_rounds_cost_as_much_as_one(monkeypatch):
    (matrix, slope), rounds = nearly_copies(), []
    monkeypatch.setattr(gram_descent, "_keep_signs", lambda *_: (True, True))
    monkeypatch.setattr(
        gram_descent, "descend", lambda *model: rounds.append(model[-1]) or descend(*model)
    )
    w = np.ones(40)
    minimise(matrix, slope, w, ElasticNet(0.0, 0.0), tol=1e-12, rounds=1_000)
    assert (w != 0.0).all()
    assert len(rounds) > 3
    assert set(rounds[:-1]) == {gram_descent._price(w)}


def test_a_coefficient_along_which_nothing_bends_goes_to_zero_and_stops_no_factor():
    """As that of a feature of zeros, which a warm start may hold."""
    near, along = nearly_copies()
    matrix, slope = np.zeros((41, 41)), np.zeros(41)
    matrix[1:, 1:], slope[1:] = near, along
    w, other = np.append(2.0, np.zeros(40)), np.zeros(40)
    minimise(matrix, slope, w, ElasticNet(1e-4, 0.0), tol=1e-9, rounds=10_000)
    minimise(near, along, other, ElasticNet(1e-4, 0.0), tol=1e-9, rounds=10_000)
    assert w[0] == 0.0
    np.testing.assert_allclose(w[1:], other, atol=1e-6)


def test_a_model_that_bends_nowhere_is_left_to_descent():
    """As the model of a loss that is straight there: nothing says how far to go."""
    w, slope = np.array([2.0, 1.0]), np.array([-1.0, 0.0])
    minimise(np.diag([0.0, 1.0]), slope, w, ElasticNet(0.1, 0.0), tol=1e-9, rounds=100_000)
    np.testing.assert_allclose(w, [2.0, 0.9])


@pytest.mark.parametrize("bend", [0.0, -1e-20])
def test_a_curvature_that_rounding_left_below_zero_moves_nothing(bend):
    w, penalty = np.zeros(2), ElasticNet(0.1, 0.0)
    minimise(np.diag([bend, 1.0]), np.array([0.0, 1.0]), w, penalty, tol=1e-9, rounds=10)
    np.testing.assert_allclose(w, [0.0, -0.9])


@pytest.mark.parametrize("way", ["gram", "prox_newton", "by columns"])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_warm_start_on_a_constant_feature_is_left(make_data, monkeypatch, way, value):
    if way == "by columns":
        monkeypatch.setattr(prox_newton, "_grown", lambda *_: False)
    X, y = make_data(n=100, d=5)
    X[:, 0] = value
    problem = make_problem(X, y, l1=1e-3, fit_intercept=True)
    method = "gram" if way == "gram" else "prox_newton"
    result = solve(problem, method=method, tol=1e-8, coef_init=np.full(5, 2.0))
    assert result.converged
    assert result.coef[0] == 0.0


def test_a_model_is_minimised_as_closely_as_the_last_step_was_good(make_data, monkeypatch):
    X, y = make_data(n=200, d=15)  # all rows are in the first sample: one model serves all steps
    asked, promised, found = [], [], gram._minimum

    def counted(*model, tol, rounds):
        asked.append(tol)
        minimise(*model, tol=tol, rounds=rounds)

    def noted(*given):
        promised.append(found(*given))
        return promised[-1]

    monkeypatch.setattr(gram, "minimise", counted)
    monkeypatch.setattr(gram, "_minimum", noted)
    problem = make_problem(X, y, l1=1e-3, fit_intercept=True)
    assert solve(problem, method="gram", tol=1e-10).converged
    # The last steps promise nothing but rounding, which may be less than nothing.
    ratios = [later[1] / one[1] if one[1] > 0 else np.inf for one, later in pairwise(promised)]
    assert asked[:2] == [0.1, 0.1]
    assert len(asked) > 4
    np.testing.assert_allclose(asked[2:], np.clip(ratios[:-1], 1e-3, 0.1))
    assert min(asked) < 0.05
