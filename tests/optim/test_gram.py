"""The model that Gram descent steps by: its sample of the rows, and what it learns from steps."""

import numpy as np
import pytest
from scipy import sparse

from telic.optim import make_problem, solve
from telic.optim.methods import gram
from telic.optim.methods.gram_descent import _steepest
from telic.optim.methods.sampled_gram import sampled, weighted_gram


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
    bound = _steepest(hessian, block)
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
