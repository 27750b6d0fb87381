"""Products, Gram matrices and quadratic models by their definitions, at any number of threads."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from scipy import sparse

from telic.optim import make_problem, row_products
from telic.optim.methods import prox_newton_anderson, prox_newton_gram
from telic.optim.methods.block_descent import LARGEST, _turn, descend_blocks
from telic.optim.methods.gram_descent import add_two, descend, descend_together
from telic.optim.methods.prox_newton import _grown, _largest
from telic.optim.methods.prox_newton_gram import WorkingGram, weighted_lines
from telic.optim.methods.sampled_gram import weighted_gram
from telic.optim.threads import share

THREADS = [1, 2, 3]
KINDS = ["dense", "csr"]


def uneven(n, d, seed=0):
    """Rows of very different length, some of them empty."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.random(n)[:, None] ** 3)


@njit
def cuts(A, n, threads):
    return [row_products._cut(A, n, turn, threads) for turn in range(threads + 1)]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("kind", KINDS)
def test_products_with_rows_and_columns(kind, threads):
    X, rng = uneven(200, 9), np.random.default_rng(1)
    design = make_problem(sparse.csr_array(X) if kind == "csr" else X, np.ones(200), loss="squared")
    rows, columns = design.design.rows, design.design.columns
    w, a, some = rng.normal(size=9), rng.normal(size=200) * (np.arange(200) % 5 > 0), [7, 2, 3]
    out = np.full(200, np.nan)
    share(row_products.products, threads, rows, w, 0.25, out)
    np.testing.assert_allclose(out, X @ w + 0.25, atol=1e-13)
    for runs in (1, 7):
        out = np.full((runs, 9), np.nan)
        share(row_products.combine, threads, rows, a, out)
        ends = 200 * np.arange(runs + 1) // runs
        parts = [a[i:j] @ X[i:j] for i, j in pairwise(ends)]
        np.testing.assert_allclose(out, parts, atol=1e-13)
    out, working = np.full(3, np.nan), np.array(some)
    share(row_products.some_products, threads, columns, working, a, out)
    np.testing.assert_allclose(out, a @ X[:, some], atol=1e-13)
    out, move = np.full(200, 0.5), np.array([1.0, 0.0, -2.0])
    share(row_products.some_sums, threads, columns, working, move, out)
    np.testing.assert_allclose(out, 0.5 + X[:, some] @ move, atol=1e-13)
    out = np.full(200, np.nan)
    row_products.squares(rows, out)
    np.testing.assert_allclose(out, (X**2).sum(axis=1))
    share(prox_newton_anderson._weighted_squares, threads, columns, a**2, working, (out := out[:3]))
    np.testing.assert_allclose(out, a**2 @ X[:, some] ** 2)


@pytest.mark.parametrize("threads", THREADS)
def test_every_thread_has_rows_that_cost_as_much(threads):
    X = sparse.csr_array(uneven(400, 30))
    A = make_problem(X, np.ones(400), loss="squared").design.rows
    found = cuts(A, 400, threads)
    assert (found[0], found[-1]) == (0, 400)
    costs = np.r_[0, np.cumsum(np.diff(X.indptr) + 8)]
    for turn, cut in enumerate(found[1:-1], start=1):
        goal = costs[-1] * turn // threads
        assert costs[cut - 1] < goal <= costs[cut]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("kind", [*KINDS, "single"])
def test_the_gram_matrix_of_all_features(kind, shared, loss, fit_intercept, threads):
    X, rng = uneven(2500, 6), np.random.default_rng(1)
    X[:, 4] = 3.0  # constant
    mass = None if shared else rng.random(2500)
    matrix = {"dense": X, "csr": sparse.csr_array(X), "single": X.astype(np.float32)}[kind]
    problem = make_problem(
        matrix, np.ones(2500), loss=loss, sample_weight=mass, fit_intercept=fit_intercept
    )
    problem = replace(problem, threads=threads)
    weights = problem.curvatures(rng.normal(size=2500))
    out = np.full((6, 6), np.nan)
    means, total = weighted_gram(problem, weights, out)
    expected, centre = np.asarray(matrix.astype(float).todense() if kind == "csr" else matrix), 0.0
    if fit_intercept:
        centre = np.average(expected, axis=0, weights=weights)
        assert total == pytest.approx(weights.sum())
        np.testing.assert_allclose(means, centre, rtol=1e-6)
        assert not out[4].any()
        assert not out[:, 4].any()
    else:
        assert (total, means.tolist()) == (1.0, [0.0] * 6)
    spread = expected - centre
    scale = 1e-6 if kind == "single" else 1e-12
    np.testing.assert_allclose(out, spread.T @ (spread * weights[:, None]), atol=scale)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("d", [5, 40, 300])  # more runs of rows where the matrix is small
def test_weighted_lines_of_sparse_rows(d, threads):
    X, rng = uneven(90, d), np.random.default_rng(1)
    X[:, 0] = 1.0
    problem = replace(
        make_problem(sparse.csr_array(X), np.ones(90), loss="squared"), threads=threads
    )
    weights, known = rng.random(90), 2
    features = rng.permutation(d)[: max(4, d // 2)]
    features[known:].sort()
    place = np.full(d, -1, np.int32)
    place[features] = np.arange(features.size)
    out = np.zeros((features.size, features.size))
    weighted_lines(problem, weights, place, known, out)
    expected = np.tril(X[:, features].T @ (X[:, features] * weights[:, None]))
    np.testing.assert_allclose(out[known:], expected[known:], atol=1e-13)
    assert not out[:known].any()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("density", [1.0, 0.02])  # as one product, or line by line
@pytest.mark.parametrize("kind", KINDS)
def test_the_gram_matrix_of_a_set_grows_with_it(kind, density, fit_intercept, threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 40)) * (rng.random((700, 40)) < density)
    X[:, 7] = 2.0  # which the intercept makes up for
    matrix = sparse.csr_array(X) if kind == "csr" else X
    y = np.where(rng.random(700) < 0.5, 1.0, -1.0)
    problem = make_problem(matrix, y, l1=0.1, fit_intercept=fit_intercept)
    gram, z = WorkingGram(replace(problem, threads=threads)), rng.normal(size=700)
    assert gram.limit == max(64, int(problem.design.stored**0.5))
    gram.restart(z, np.array([9, 3, 20]))
    gram.extend(np.array([31, 7, 1]))
    assert gram.features.tolist() == [3, 9, 20, 1, 7, 31]
    assert np.flatnonzero(gram.inside).tolist() == [1, 3, 7, 9, 20, 31]
    weights = problem.curvatures(z)
    kept = X[:, gram.features]
    centre = np.average(kept, axis=0, weights=weights) if fit_intercept else np.zeros(6)
    np.testing.assert_allclose(gram.means, centre, atol=1e-12)
    spread = kept - centre
    np.testing.assert_allclose(gram.matrix, spread.T @ (spread * weights[:, None]), atol=1e-12)
    assert fit_intercept == (not gram.matrix[4].any())
    np.testing.assert_array_equal(gram.matrix, gram.matrix.T)
    again = rng.normal(size=700)
    gram.restart(again, np.array([5]))
    np.testing.assert_allclose(gram.weights, problem.curvatures(again))
    assert gram.matrix.shape == (1, 1)


def test_a_set_grows_by_the_worst_and_starts_anew_where_it_is_full(make_data):
    X, y = make_data(n=80, d=30)
    gram = WorkingGram(make_problem(X, y, l1=0.1))
    violation, z = np.linspace(1.0, 4.0, 30), np.zeros(80)
    violation[[3, 5]] = np.inf, 0.0  # in use; optimal as it is
    gram.limit = 6
    assert _grown(gram, violation, 3, z)
    assert gram.features.tolist() == [3, 28, 29]
    assert _grown(gram, violation, 2, z)
    assert gram.features.tolist() == [3, 28, 29, 26, 27]
    violation[[28, 29]] = 0.0
    assert _grown(gram, violation, 3, z)  # full: what is optimal leaves
    assert gram.features.tolist() == [3, 23, 24, 25, 26, 27]
    assert not _grown(gram, violation, 2, z)
    assert gram.features.size == 6
    assert _grown(gram, np.where(gram.inside, violation, 0.0), 2, z)  # nothing to add
    assert gram.features.size == 6


def test_the_largest_values_with_those_that_equal_the_last():
    values = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 2.0])
    assert _largest(values, 0).tolist() == []
    assert _largest(values, 2).tolist() == [0, 4]
    assert len(_largest(values, 3)) == 3
    assert _largest(values, 3, ties=True).tolist() == [0, 2, 3, 4, 5]
    assert _largest(values, 6).tolist() == list(range(6))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("size", [1, 3])
def test_descent_ends_where_no_block_can_lower_the_model(size, positive):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(20, 6))
    B[:, 5] *= 0.0  # nothing bends there
    H, slope, start = B.T @ B / 20, rng.normal(size=6) * (np.arange(6) < 5), rng.random(6)
    start[5] = 0.7
    l1, l2 = 0.2, 0.0 if size == 1 else 0.1
    order, weights = np.array([4, 0, 2, 1, 5, 3]), np.sqrt(np.full(6 // size, float(size)))
    blocks = np.arange(0, 7, size), order, weights
    w, left = start.copy(), slope.copy()
    below = np.inf if positive and size == 1 else l1
    if size == 1:
        descend(H, left, w, l1, below, l2, 0.0, 1e-13, 10_000)
    else:
        descend_blocks(H, left, w, blocks, l1, l2, 0.0, 1e-13, 10_000)
    np.testing.assert_allclose(left, slope + H @ (w - start), atol=1e-10)
    gradient = left + l2 * w
    for g, weight in enumerate(weights):
        block = order[g * size : (g + 1) * size]
        norm = np.linalg.norm(w[block])
        if below == np.inf and not norm:
            assert (gradient[block] >= -l1 * weight - 1e-9).all()
        elif norm:
            if H[block, block].any():
                expected = -l1 * weight * w[block] / norm
                np.testing.assert_allclose(gradient[block], expected, atol=1e-9)
        else:
            assert np.linalg.norm(gradient[block]) <= l1 * weight + 1e-9
    assert (w >= 0).all() or below == l1
    if size == 1:
        assert w[5] == 0.0  # where nothing bends λ₁ alone says where to go


def test_descent_stops_at_its_goal_or_at_its_share_of_the_first_round():
    H, slope = np.array([[1.0, 0.9], [0.9, 1.0]]), np.array([-1.0, 0.5])

    def plain(rounds):
        w, changes = np.zeros(2), []
        for _ in range(rounds):
            worst = 0.0
            for j in range(2):
                change = -(slope + H @ w)[j]
                w[j] += change
                worst = max(worst, abs(change))
            changes.append(worst)
        return w, changes

    _, changes = plain(30)
    for rounds in (1, 2, 7):
        for tol, goal in (
            (0.0, changes[rounds - 1] * 1.001),
            (changes[rounds - 1] * 1.001 / changes[0], 0.0),
        ):
            w = np.zeros(2)
            descend(H, slope.copy(), w, 0.0, 0.0, 0.0, tol, goal, 30)
            np.testing.assert_allclose(w, plain(rounds)[0], rtol=1e-12)
    w = np.zeros(2)
    descend(H, slope.copy(), w, 0.0, 0.0, 0.0, 0.0, 0.0, 4)
    np.testing.assert_allclose(w, plain(4)[0], rtol=1e-12)


@pytest.mark.parametrize("l2", [0.0, 0.3])
@pytest.mark.parametrize("cut", [1e-6, 0.3, 3.0, 1e3])
@pytest.mark.parametrize("alike", [0.0, 0.99])
def test_a_group_goes_to_its_minimum_at_once(l2, cut, alike):
    rng = np.random.default_rng(1)
    B = rng.normal(size=(20, 1)) * alike + rng.normal(size=(20, 6)) * (1 - alike)
    H, slope = B.T @ B, 5.0 * rng.normal(size=6)
    group = np.array([4, 0, 5, 2])
    for start in (np.zeros(6), rng.normal(size=6)):
        w, left = start.copy(), slope.copy()
        blocks = np.array([0, 4]), group, np.ones(1)
        descend_blocks(H, left, w, blocks, cut, l2, 0.0, 0.0, 1)
        assert (w[[1, 3]] == start[[1, 3]]).all()
        np.testing.assert_allclose(left, slope + H @ (w - start), atol=1e-8)
        gradient, norm = (left + l2 * w)[group], np.linalg.norm(w[group])
        if norm:
            np.testing.assert_allclose(gradient, -cut * w[group] / norm, atol=1e-7)
        else:
            assert np.linalg.norm(gradient) <= cut
    assert (cut < 1e3) == w[group].any()


@pytest.mark.parametrize("unit", [1e-150, 1e-8, 1.0, 1e8, 1e150])
@pytest.mark.parametrize("start", [0.0, 1e-300, 1e-18, 1.0])
def test_a_group_of_copies_goes_to_its_minimum_from_anywhere_in_any_unit(unit, start):
    """An eigenvalue is then 0 but for rounding; and a length may be lost beside the next one."""
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 3))
    B = np.c_[B, B[:, 0], B[:, 0] + 1e-9 * B[:, 1]]
    H, slope, w = B.T @ B * unit, -(B.T @ rng.normal(size=30)) * unit, np.full(5, start)
    blocks = np.array([0, 5]), np.arange(5), np.ones(1)
    descend_blocks(H, slope, w, blocks, unit, 0.0, 0.0, 0.0, 2)
    np.testing.assert_allclose(slope / unit, -w / np.linalg.norm(w), atol=1e-6)


def test_a_block_is_turned_into_its_eigenvectors():
    rng = np.random.default_rng(0)
    for size, rank in ((2, 2), (5, 5), (5, 2), (LARGEST, LARGEST)):
        B, block = rng.normal(size=(rank, size + 3)), rng.permutation(size + 3)[:size]
        H, turned, bends = B.T @ B, np.empty((size, size)), np.empty(size)
        _turn(H, block, np.empty((size, size)), turned, bends)
        np.testing.assert_allclose(turned.T @ turned, np.eye(size), atol=1e-12)
        square = H[np.ix_(block, block)]
        np.testing.assert_allclose(turned * bends @ turned.T, square, atol=1e-11 * np.trace(square))
        assert np.count_nonzero(bends) == rank
        assert (bends >= 0.0).all()


def test_a_group_that_is_large_or_bends_nowhere_descends_by_steps():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(200, LARGEST + 1))
    H, slope, w = B.T @ B / 200, rng.normal(size=LARGEST + 1), np.zeros(LARGEST + 1)
    blocks = np.array([0, LARGEST + 1]), np.arange(LARGEST + 1), np.ones(1)
    last, first = descend_blocks(H, slope, w, blocks, 0.5, 0.1, 0.0, 0.0, 1)
    assert last == first > 0
    assert descend_blocks(H, slope, w, blocks, 0.5, 0.1, 0.0, 0.0, 1)[0] > 1e-3  # not there yet
    descend_blocks(H, slope, w, blocks, 0.5, 0.1, 0.0, 0.0, 500)
    np.testing.assert_allclose(slope + 0.1 * w, -0.5 * w / np.linalg.norm(w), atol=1e-9)
    # The largest curvature is positive, but along the slope a model that learned may bend down.
    H, slope, w = np.array([[2.0, 0.0], [0.0, -1.0]]), np.array([0.0, 1.0]), np.zeros(2)
    descend_blocks(H, slope, w, (np.array([0, 2]), np.arange(2), np.ones(1)), 0.1, 0.0, 0, 0, 1)
    assert w.tolist() == [0.0, pytest.approx(-0.9)]


def test_descent_of_several_classes_together_ends_where_no_column_can_lower_them():
    rng = np.random.default_rng(0)
    B, l1, l2 = rng.normal(size=(3, 20, 5)), 0.3, 0.05
    B[:, :, 4] = 0.0
    H, slopes = np.einsum("kni,knj->kij", B, B) / 20, rng.normal(size=(3, 5)) * [1, 1, 1, 0.1, 0]
    start, left = rng.normal(size=(3, 5)), slopes.copy()
    W = start.copy()
    descend_together(H, left, W, np.empty(3), l1, l2, 0.0, 5000)
    np.testing.assert_allclose(left, slopes + np.einsum("kij,kj->ki", H, W - start), atol=1e-10)
    gradient, norms = left + l2 * W, np.linalg.norm(W, axis=0)
    kept = norms > 0
    assert 0 < kept.sum() < 5
    np.testing.assert_allclose(gradient[:, kept], -l1 * W[:, kept] / norms[kept], atol=1e-9)
    assert (np.linalg.norm(gradient[:, ~kept], axis=0) <= l1 + 1e-9).all()
    # Without any curvature a column stays.
    still = np.ones((2, 1))
    descend_together(np.zeros((2, 1, 1)), np.ones((2, 1)), still, np.empty(2), 0.0, 0.0, 0.0, 5)
    assert still.tolist() == [[1.0], [1.0]]


def test_two_outer_products_are_added():
    rng = np.random.default_rng(0)
    M, (u, v) = rng.normal(size=(4, 4)), rng.normal(size=(2, 4))
    expected = M + 0.3 * np.outer(u, u) - 2.0 * np.outer(v, v)
    add_two(M, u, 0.3, v, -2.0)
    np.testing.assert_allclose(M, expected, rtol=1e-12)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_by_columns_is_minimised_over_the_move(kind, fit_intercept, positive):
    X, rng = uneven(60, 8), np.random.default_rng(1)
    matrix = sparse.csr_array(X) if kind == "csr" else X
    columns = make_problem(matrix, np.ones(60), loss="squared").design.columns
    working, curvature = np.array([6, 1, 4, 2]), rng.random(60) / 60
    gradient, w = 0.05 * rng.normal(size=4), np.array([0.0, 0.4, 0.0, 0.2])
    slope_b, l1, l2 = 0.02 if fit_intercept else 0.0, 0.01, 0.003
    below = np.inf if positive else l1
    Z = np.column_stack([X[:, working], np.full(60, float(fit_intercept))])
    gram = Z.T @ (Z * curvature[:, None])
    gram[range(4), range(4)] += l2
    model = prox_newton_anderson.Model(
        columns, working, curvature, gradient, np.diag(gram)[:4].copy(), slope_b, w, l1, below, l2
    )

    def value(move, b):
        m = np.append(move, b)
        smooth = np.append(gradient, slope_b) @ m + m @ gram @ m / 2
        return smooth + l1 * np.abs(w + move).sum()

    bent, other = np.empty(60), np.empty(60)
    move, b = prox_newton_anderson._minimise(model, bent, other, 1e-12, fit_intercept)
    np.testing.assert_allclose(bent, curvature * (X[:, working] @ move + b), atol=1e-12)
    found = prox_newton_anderson._value(model, np.append(move, b), bent)
    assert found == pytest.approx(value(move, b), rel=1e-9)
    slope = np.append(gradient, slope_b) + gram @ np.append(move, b)
    assert abs(slope[4]) <= 1e-10 or not fit_intercept
    now = w + move
    assert not positive or now.min() >= 0
    for k in range(4):
        if now[k]:
            assert slope[k] == pytest.approx(-l1 * np.sign(now[k]), abs=1e-10)
        else:
            assert -l1 - 1e-10 <= slope[k] <= below + 1e-10
    assert fit_intercept or b == 0


def test_rows_are_written_where_features_have_a_place():
    X = uneven(10, 6)
    place = np.array([2, -1, 0, -1, 1, -1], np.int32)
    for matrix in (X, sparse.csr_array(X)):
        A = make_problem(matrix, np.ones(10), loss="squared").design.rows
        out = np.full((4, 3), np.nan)
        prox_newton_gram._fill(A, place, 3, out)
        np.testing.assert_array_equal(out, X[3:7][:, [2, 4, 0]])
