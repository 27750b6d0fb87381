"""The compiled steps against the same steps written plainly, with the same draws."""

from itertools import islice

import numpy as np
import pytest
from scipy import sparse

from telic.optim import sampling
from telic.optim.admm import certificate, make_admm_problem, separable
from telic.optim.admm.defaults import balanced_rows, choose_x_step, default_batch, default_rho
from telic.optim.admm.duality_gap import _excess
from telic.optim.admm.methods.batch import METHOD as BATCH
from telic.optim.admm.methods.sdca import sdca_admm
from telic.optim.admm.methods.steps import State, make_steps, squared_norm
from telic.optim.admm.methods.stochastic import stoc
from telic.optim.admm.methods.stochastic_average import sa
from telic.optim.admm.methods.variance_reduced import svr_d, svr_s
from telic.optim.admm.residual_balancing import balance, next_due, rho_factor
from telic.optim.admm.x_step_metric import CHUNK, Metric, diagonal, gram
from telic.optim.losses import as_loss

N, D, K = 12, 4, 3
ETA, RHO = 0.4, 0.7


def made(*, kind=np.asarray, bias=True, general=False, c=True, loss="squared"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.7)
    y = rng.normal(size=N) if loss == "squared" else rng.choice([-1.0, 1.0], N)
    A, B = rng.normal(size=(K, D)), rng.normal(size=(K, 2)) if general else None
    size = 2 if general else K
    return make_admm_problem(
        kind(X),
        y,
        A=A,
        B=B,
        c=rng.normal(size=K) if c else None,
        g=separable(size, l1=np.linspace(0.1, 0.3, size), l2=0.2, low=-1.0, high=2.0),
        loss=loss,
        l2=0.05,
        sample_weight=rng.uniform(0.5, 2.0, N),
        fit_intercept=bias,
    )


class Plain:
    """x, y and the scaled dual z, moved by whole matrices."""

    def __init__(self, problem, steps, x, z):
        X = problem.data.design.matrix
        self.X = X.toarray() if sparse.issparse(X) else X
        if problem.data.fit_intercept:
            self.X = np.column_stack([self.X, np.ones(N)])
        self.problem, self.steps, self.mass = problem, steps, problem.data.mass
        self.A, self.ridge = problem.A.toarray(), np.full(problem.size, problem.data.l2)
        self.ridge[D:] = 0.0
        self.B = -np.eye(K) if problem.B is None else problem.B.toarray()
        self.x, self.z = x, z
        self.y = self.A @ x - problem.c if problem.B is None else np.zeros(2)

    def slopes(self, x):
        """n mass_i times the derivative of each row's loss."""
        return N * self.mass * self.problem.data.loss.gradient(self.X @ x, self.problem.data.y)

    def gradient(self, x):
        return self.X.T @ self.slopes(x) / N

    def step(self, h, eta):
        problem, (_, rho, theta, tau, inverse) = self.problem, self.steps
        left = self.A @ self.x - problem.c + self.z
        if problem.B is None:
            self.y = problem.g.prox(left, 1 / rho)
        else:
            back = self.B.T @ (left + self.B @ self.y)
            self.y = problem.g.prox(self.y - back / tau, 1 / (rho * tau))
        total = h + self.ridge * self.x + rho * self.A.T @ (left + self.B @ self.y)
        self.x = self.x - (inverse @ total if inverse.size else eta / theta * total)
        self.z = self.z + self.A @ self.x + self.B @ self.y - problem.c
        return np.concatenate([self.x, self.y, self.z])


@pytest.fixture(
    params=[
        {},
        {"kind": sparse.csr_array},
        {"bias": False},
        {"general": True},
        {"loss": "logistic", "exact": True},
        {"general": True, "exact": True, "kind": sparse.csr_array},
    ],
    ids=str,
)
def begun(request):
    options = dict(request.param)
    exact = options.pop("exact", False)
    problem = made(**options)
    rng, P = np.random.default_rng(1), None
    if exact:
        P = np.eye(problem.size) + 0.1
    unit = rng.uniform(0.5, 2.0, problem.size)
    steps = make_steps(problem, eta=ETA, rho=RHO, unit=unit, P=P)
    x, z = rng.normal(size=problem.size), rng.normal(size=K)
    return problem, steps, State.start(problem, x.copy(), z), Plain(problem, steps, x, z)


def agree(point, expected, rho):
    parts = np.concatenate([point.x, point.y, point.u / rho])
    np.testing.assert_allclose(parts, expected, rtol=1e-9, atol=1e-11)


def draws(batch):
    """Rows of each step, as the compiled methods draw them from seed 3."""
    seed = sampling.random_state(3)
    while True:
        yield [int(sampling.uniform(seed) * N) for _ in range(batch)]


@pytest.mark.parametrize("batch", [1, 5])
def test_stages_that_double_are_the_plain_ones(begun, batch):
    problem, steps, state, plain = begun
    seed, rows = sampling.random_state(3), draws(batch)
    points = svr_d(problem, steps, state, seed=seed, first=2.5, batch_size=batch)
    anchor, m = plain.x, 2.5
    for stage in (1, 2, 3):
        m *= 2
        full, then = plain.gradient(anchor), plain.slopes(anchor)
        total, counted = 0.0, N
        for t in range(1, int(m) + 1):
            some = next(rows)
            change = (plain.slopes(plain.x) - then)[some] / batch
            total = total + plain.step(full + change @ plain.X[some], ETA)
            counted += 2 * batch
            if t % (N // batch) == 0 or t == m:
                point = next(points)
                agree(point, total / t, RHO)
                assert (point.stage, point.complete) == (stage, t == m)
                assert point.gradients == counted
                counted = 0
        anchor = (total / m)[: problem.size]


def test_steady_stages_restart_from_their_averages(begun):
    problem, steps, state, plain = begun
    seed, rows = sampling.random_state(3), draws(5)
    points = svr_s(problem, steps, state, seed=seed, batch_size=5)
    for stage in (1, 2, 3):
        full, then, total = plain.gradient(plain.x), plain.slopes(plain.x), 0.0
        for _ in range(N // 5):
            some = next(rows)
            change = (plain.slopes(plain.x) - then)[some] / 5
            total = total + plain.step(full + change @ plain.X[some], ETA)
        mean = total / (N // 5)
        point = next(points)
        agree(point, mean, RHO)
        assert (point.stage, point.complete, point.gradients) == (stage, True, N + 10 * (N // 5))
        plain.x, plain.z = mean[: problem.size], mean[-K:]
    points = svr_s(problem, steps, state, seed=seed, inner=7)
    assert next(points).gradients == N + 14


@pytest.mark.parametrize("batch", [1, 5])
def test_steps_that_shrink_and_steps_with_a_table_are_the_plain_ones(begun, batch):
    problem, steps, state, plain = begun
    kept = State(*(part.copy() for part in state)), (plain.x, plain.y, plain.z)
    m, rows, total = N // batch, draws(batch), 0.0
    points = stoc(problem, steps, state, seed=sampling.random_state(3), batch_size=batch)
    plain.steps = steps._replace(inverse=np.empty((0, 0)))  # whatever was asked for
    for done in range(3 * m):
        some = next(rows)
        h = plain.slopes(plain.x)[some] @ plain.X[some] / batch
        total = total + plain.step(h, ETA / np.sqrt(1 + done / m))
        if (done + 1) % m == 0:
            point = next(points)
            agree(point, total / (done + 1), RHO)
            assert point.gradients == m * batch
    state, (plain.x, plain.y, plain.z) = kept
    plain.steps = steps
    rows, table = draws(batch), np.zeros(N)
    points = sa(problem, steps, state, seed=sampling.random_state(3), batch_size=batch)
    for done in range(3 * m):
        for i in next(rows):
            table[i] = plain.slopes(plain.x)[i]
        last = plain.step(table @ plain.X / N, ETA)
        if (done + 1) % m == 0:
            point = next(points)
            agree(point, last, RHO)
            assert point.gradients == m * batch


def test_batch_steps_take_the_whole_gradient(begun):
    problem, steps, state, plain = begun
    points = BATCH.run(problem, steps, state)
    for point in islice(points, 4):
        agree(point, plain.step(plain.gradient(plain.x), ETA), RHO)
        assert point.gradients == N


@pytest.mark.parametrize("bias", [False, True])
def test_the_ascent_of_the_dual_is_the_plain_one(bias):
    problem = made(bias=bias, c=False)
    steps = make_steps(problem, eta=ETA, rho=RHO, unit=np.ones(problem.size))
    x, z = np.zeros(problem.size), np.zeros(K)
    points = sdca_admm(
        problem, steps, State.start(problem, x, z), seed=sampling.random_state(3), perturbation=0.1
    )
    plain = Plain(problem, steps, x, z)
    A = np.vstack([plain.A, np.eye(D, problem.size)])
    g = separable(
        K + D,
        l1=np.append(problem.g.l1, np.zeros(D)),
        l2=np.append(problem.g.l2, np.full(D, 0.05 + 0.1)),
        low=np.append(problem.g.low, np.full(D, -np.inf)),
        high=np.append(problem.g.high, np.full(D, np.inf)),
    )
    y, weight, square = problem.data.y, N * plain.mass, (plain.X**2).sum(axis=1)
    a, u, left = np.zeros(N), np.zeros(K + D), np.zeros(problem.size)
    inverse = RHO * squared_norm(sparse.csr_matrix(A))
    rows = draws(1)
    for _ in range(3):
        for _ in range(N):
            old = left
            v = u + A @ (x - RHO * left) / inverse
            following = v - g.prox(v * inverse, N * inverse) / inverse
            left = left + A.T @ (following - u)
            u, (i,) = following, next(rows)
            q = RHO * square[i]
            at = plain.X[i] @ (x - RHO * left) + q * a[i]
            # Least of (p - at)²/2 + q weight (p - y)²/2; its slope is the new dual.
            p = (at + q * weight[i] * y[i]) / (1 + q * weight[i])
            new = weight[i] * (p - y[i])
            left = left + (new - a[i]) * plain.X[i]
            a[i] = new
            x = x - RHO / (4 * N) * (N * (left - old) + old)
        point = next(points)
        assert point.gradients == N
        np.testing.assert_allclose(point.x, x, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(point.y, plain.A @ x, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(point.u, u[:K] / N, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("general", [False, True])
def test_the_constants_of_a_step_keep_its_matrix_positive(general):
    problem, unit = made(general=general), np.array([0.5, 2.0, 1.0, 3.0, 1.0])
    steps = make_steps(problem, eta=ETA, rho=RHO, unit=unit)
    A = problem.A.toarray() * unit
    largest = np.linalg.norm(A, 2) ** 2
    np.testing.assert_allclose(steps.theta * unit**2, 1 + ETA * RHO * largest, rtol=0.02)
    assert (steps.theta * unit**2 >= 1 + ETA * RHO * largest).all()
    norm = np.linalg.norm(problem.B.toarray(), 2) ** 2 if general else 1.0
    assert norm <= steps.tau <= 1.02 * norm
    P = np.diag([1.0, 2.0, 3.0, 4.0, 5.0])
    exact = make_steps(problem, eta=ETA, rho=RHO, unit=unit, P=P)
    gram = P / ETA + RHO * (problem.A.T @ problem.A).toarray()
    np.testing.assert_allclose(exact.inverse, np.linalg.inv(gram), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_value_and_gradient_of_f_and_its_gram_matrix(kind, bias, loss):
    problem = made(kind=kind, bias=bias, loss=loss)
    rng = np.random.default_rng(2)
    x = rng.normal(size=problem.size)
    plain = Plain(problem, None, x, np.zeros(K))
    value = plain.mass @ problem.data.loss.value(plain.X @ x, problem.data.y)
    value += 0.05 / 2 * x[:D] @ x[:D]
    slope = plain.gradient(x) + plain.ridge * x
    found, gradient = problem.smooth(x)
    assert found == pytest.approx(value)
    assert problem.value(x) == pytest.approx(value)
    np.testing.assert_allclose(gradient, slope, atol=1e-12)
    np.testing.assert_allclose(problem.gradient(x), slope - plain.ridge * x, atol=1e-12)
    v = plain.A @ x - problem.c
    assert problem.objective(x) == pytest.approx(value + problem.g.value(v))
    weight = rng.random(N)
    expected = plain.X.T @ (plain.X * weight[:, None])
    np.testing.assert_allclose(gram(problem, weight), expected, atol=1e-12)
    squares = plain.mass @ plain.X[:, :D] ** 2 + 0.05
    np.testing.assert_allclose(problem.units, [*squares**-0.5, *np.ones(int(bias))])


def test_many_dense_rows_are_taken_in_chunks():
    rng = np.random.default_rng(0)
    n = CHUNK + 500
    X, y, weight = rng.normal(size=(n, 2)), rng.normal(size=n), rng.random(n)
    problem = make_admm_problem(
        X, y, A=np.eye(2), g=separable(2, l1=0.1), loss="squared", fit_intercept=True
    )
    X1 = np.column_stack([X, np.ones(n)])
    np.testing.assert_allclose(gram(problem, weight), X1.T @ (X1 * weight[:, None]), atol=1e-9)


def test_units_of_another_b_bring_its_entries_to_order_one():
    problem = made(general=True)
    unit, B = problem.units, abs(problem.B.toarray())
    rows = np.sqrt(problem.A.toarray() ** 2 @ unit[: D + 1] ** 2)
    np.testing.assert_allclose(unit[D + 1 :], (rows[:, None] / B).min(axis=0))


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
def test_the_excess_of_slopes_is_their_gap_to_fenchels_equality(loss):
    rng = np.random.default_rng(0)
    loss, n = as_loss(loss), 9
    z, mass = 2 * rng.normal(size=n), rng.random(n) * (np.arange(n) > 0)
    y = rng.choice([-1.0, 1.0], n) if loss.classifies else rng.normal(size=n)
    slopes = mass * loss.gradient(z + 0.5 * rng.normal(size=n), y)
    for share in (1.0, 0.6):
        a = share * slopes[1:] / mass[1:]
        parts = loss.value(z[1:], y[1:]) + loss.conjugate(a, y[1:]) - a * z[1:]
        found = _excess(loss.code, loss.shape, z, y, mass, slopes, share)
        assert found == pytest.approx(mass[1:] @ parts, rel=1e-9)
    assert _excess(loss.code, loss.shape, z, y, mass, mass * loss.gradient(z, y), 1.0) < 1e-13
    outside = {"Logistic": (0.1, -1.1), "SquaredHinge": (0.1,), "Huber": (1.5, -1.5)}
    for p in outside.get(type(loss).__name__, ()):
        wrong = slopes.copy()
        wrong[3] = mass[3] * p * (y[3] if loss.classifies else loss.shape)
        assert _excess(loss.code, loss.shape, z, y, mass, wrong, 1.0) == np.inf


def test_a_certificate_measures_the_point_and_the_equations():
    problem = made(bias=False)
    rng = np.random.default_rng(3)
    x, y, u = rng.normal(size=D), rng.uniform(-1, 2, K), rng.normal(size=K)
    # Within the bounds of g, Ax − c has an objective.
    inside = np.linalg.lstsq(problem.A.toarray(), problem.c + 0.3, rcond=None)[0]
    for point in (x, inside):
        found = certificate(problem, point, y, u)
        value, v = problem.value(point), problem.A @ point - problem.c
        assert found.objective == pytest.approx(value + problem.g.value(v))
        assert found.objective_y == pytest.approx(value + problem.g.value(y))
        assert found.primal_residual == pytest.approx(np.linalg.norm(v - y))
        assert np.isinf(found.gap) == np.isinf(found.objective)
    data = problem.data.design.matrix, problem.data.y
    A, u5 = rng.normal(size=(5, D)), rng.normal(size=5)  # which see every direction
    seen = make_admm_problem(*data, A=A, g=separable(5, l1=0.1), loss="squared")
    found = certificate(seen, x, A @ x, u5)
    assert found.dual_residual == pytest.approx(np.linalg.norm(seen.gradient(x) + A.T @ u5))
    tied = make_admm_problem(
        *data,
        A=problem.A,
        c=problem.c,
        g=separable(K, l1=0.1, low=[0.5, -1.0, -np.inf], high=[0.5, 1.0, np.inf]),
        loss="squared",
        l2=0.05,
    )
    found = certificate(tied, inside, y, u)
    v = tied.A @ found.x - tied.c
    assert v[0] == pytest.approx(0.5, abs=1e-12)
    assert found.objective == pytest.approx(tied.value(found.x) + 0.1 * np.abs(v).sum())
    general = made(general=True)
    x, y = rng.normal(size=D + 1), rng.uniform(0, 1, 2)
    found = certificate(general, x, y, u)
    assert general.A @ found.x + general.B @ found.y == pytest.approx(general.c)
    expected = general.value(found.x) + general.g.value(found.y)
    assert found.objective == pytest.approx(expected)
    assert found.objective_y == pytest.approx(general.value(x) + general.g.value(y))
    residual = general.A @ x + general.B @ y - general.c
    assert found.primal_residual == pytest.approx(np.linalg.norm(residual))


def test_residuals_are_balanced_ever_more_rarely():
    parts = np.array([3.0, 4.0]), np.array([0.0, 10.0]), np.array([1.0])
    other = np.array([0.4, 0.3]), np.array([5.0])
    # 5 of 10 against 0.5 of 5: five times as far, so its root.
    assert balance(parts, other) == pytest.approx(np.sqrt(5))
    assert balance(other, parts) == pytest.approx(1 / np.sqrt(5))
    assert balance(parts, (np.zeros(2), np.ones(2))) == 10
    assert balance((np.zeros(2), np.ones(2)), parts) == 0.1
    due = [2]
    while due[-1] < 30:
        due.append(next_due(due[-1]))
    assert due == [2, 4, 7, 11, 17, 26, 40]
    problem = made(general=True)
    rng = np.random.default_rng(0)
    x, y, old, u = (rng.normal(size=size) for size in (D + 1, 2, 2, K))
    Ax, By, A = problem.A @ x, problem.B @ y, problem.A
    primal = (Ax + By - problem.c, Ax, By, problem.c)
    shadow = 0.3 * A.T @ (problem.B @ (y - old)), A.T @ u
    assert rho_factor(problem, x, y, old, u, 0.3) == pytest.approx(balance(primal, shadow))


def test_rho_batch_and_rows_are_chosen_by_the_data():
    problem = made()
    unit = np.array([0.5, 2.0, 1.0, 3.0, 1.0])
    metric = diagonal(problem, unit)
    A = problem.A.toarray()
    largest = np.linalg.norm(A * unit, 2) ** 2
    assert default_rho(problem, metric) == pytest.approx(metric.euclidean / (3 * largest), rel=0.02)
    norms = np.linalg.norm(A * unit, axis=1)
    np.testing.assert_allclose(balanced_rows(problem, metric), np.median(norms) / norms)
    assert (balanced_rows(problem, diagonal(problem, np.ones(D + 1))) == 1).all()

    def batch(n, whole, largest, k=1):
        X, A = np.ones((n, 2)), np.ones((k, 2))
        given = make_admm_problem(
            X, np.arange(n, dtype=float), A=A, g=separable(k, l1=1.0), loss="squared"
        )
        return default_batch(given, Metric(None, np.ones(2), whole, largest, whole))

    assert batch(160, 2.0, 14.0) == 7  # L_M / L
    assert batch(160, 2.0, 14.0, k=9) == 9  # 18 entries of A, 2 of a row
    assert batch(160, 1.0, 1e9) == 20  # n / 8
    assert batch(4000, 1.0, 1e9) == 256
    assert batch(5, 1.0, 1e9) == 1
    assert choose_x_step(problem, "batch-admm", "auto") == "newton"
    assert choose_x_step(problem, "batch-admm", "auto", 0.1) == "curvature"
    assert choose_x_step(problem, "svr-admm-d", "auto") == "curvature"
    assert choose_x_step(problem, "stoc-admm", "auto") == "linearised"
