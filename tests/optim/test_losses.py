import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.optim import loss_kernels
from telic.optim.loss_rows import rows_of
from telic.optim.loss_rows.newton_shift import newton_shift
from telic.optim.losses import (
    Huber,
    Logistic,
    LogLink,
    Poisson,
    Squared,
    SquaredHinge,
    Tweedie,
    as_loss,
)
from telic.optim.vector_math import BLOCK

LOSSES = [Squared(), Logistic(), SquaredHinge(), Huber(0.7), Poisson()]
LOSSES += [Tweedie(2.0), Tweedie(1.5), Tweedie(1.05), Tweedie(1.97)]
numbers = st.floats(-8, 8)


def targets(loss):
    if loss.classifies:
        return st.sampled_from([-1.0, 1.0])
    if isinstance(loss, LogLink):
        return st.integers(1 if loss.power == 2 else 0, 9).map(float)
    return numbers


def drawn(loss, rng, n):
    if loss.classifies:
        return rng.choice([-1.0, 1.0], n)
    return rng.integers(1 if getattr(loss, "power", 0) == 2 else 0, 5, n).astype(float)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_gradient_is_the_slope_of_the_value_and_the_curvature_its_slope(loss):
    @settings(max_examples=40)
    @given(z=numbers, y=targets(loss))
    def check(z, y):
        h = 1e-5
        slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
        # Half a kink's jump in curvature times h is what a difference quotient may miss.
        assert slope == pytest.approx(loss.gradient(z, y), rel=1e-5, abs=3e-5)
        bend = (loss.gradient(z + h, y) - loss.gradient(z - h, y)) / (2 * h)
        near_kink = abs(loss.curvature(z + h, y) - loss.curvature(z - h, y)) > 1e-1
        assert near_kink or bend == pytest.approx(float(loss.curvature(z, y)), rel=1e-3, abs=1e-4)
        assert loss.value(z, y) >= -1e-12
        assert 0 <= loss.curvature(z, y) <= loss.smoothness + 1e-12

    check()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_conjugate_is_the_largest_difference_from_a_line(loss):
    """Fenchel-Young: equality at the derivative, inequality everywhere else."""

    @settings(max_examples=40)
    @given(z=numbers, other=numbers, y=targets(loss))
    def check(z, other, y):
        a = loss.gradient(z, y)
        assert a * z - loss.value(z, y) == pytest.approx(float(loss.conjugate(a, y)), abs=1e-7)
        assert a * other - loss.value(other, y) <= loss.conjugate(a, y) + 1e-7

    check()


@pytest.mark.parametrize(
    ("loss", "y", "outside"),
    [
        (Logistic(), 1.0, 0.1),
        (Logistic(), 1.0, -1.1),
        (SquaredHinge(), -1.0, -0.1),
        (Huber(1.0), 0.0, 1.1),
        (Poisson(), 2.0, -2.1),
        (Tweedie(2.0), 2.0, 1.1),
        (Tweedie(1.5), 0.0, -0.1),
    ],
)
def test_the_conjugate_is_infinite_where_no_line_of_that_slope_lies_below(loss, y, outside):
    assert loss.conjugate(outside, y) == np.inf


@pytest.mark.parametrize(("n", "threads"), [(2, 1), (2 * BLOCK + 300, 1), (2 * BLOCK + 300, 3)])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_kernels_agree_with_the_reference(loss, shared, n, threads):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=3, size=n)
    z[2:6] = (-40.0, 40.0, -700.0, 0.0)[: n - 2]
    y = drawn(loss, rng, n)
    mass = np.array([0.3]) if shared else rng.random(n) * (rng.random(n) < 0.9)
    every = np.broadcast_to(mass, (n,))
    out, first, move = np.empty(n), (loss.code, loss.shape), rng.normal(size=n)

    def of_blocks(kernel, *given):
        sums = np.full(-(-n // BLOCK), np.nan)
        for turn in range(threads):
            kernel(*first, *given, sums, turn, threads)
        return sums

    def of_rows(kernel):
        for turn in range(threads):
            kernel(*first, z, y, mass, out, turn, threads)
        return out

    def blocks(values):
        return [values[start : start + BLOCK].sum() for start in range(0, n, 1024)]

    found = of_blocks(rows_of(loss.code).losses, z, y, mass, move, 0.5)
    assert found == pytest.approx(blocks(every * loss.value(z + 0.5 * move, y)), rel=1e-12)
    slopes = every * loss.gradient(z, y)
    np.testing.assert_allclose(
        of_rows(rows_of(loss.code).gradients), slopes, rtol=1e-12, atol=1e-14
    )
    bent = np.maximum(loss.curvature(z, y), 1e-12)
    np.testing.assert_allclose(of_rows(rows_of(loss.code).curvatures), every * bent, rtol=1e-12)
    found = of_blocks(rows_of(loss.code).conjugates, slopes, y, mass, 0.7)
    duals = np.divide(0.7 * slopes, every, out=np.zeros(n), where=every > 0)
    expected = every * np.where(every > 0, loss.conjugate(duals, y), 0.0)
    assert found == pytest.approx(blocks(expected), rel=1e-10)


def test_a_row_that_does_not_count_adds_nothing_where_its_loss_is_infinite():
    z, y, mass = np.array([0.0, 800.0]), np.array([1.0, 1.0]), np.array([1.0, 0.0])
    for loop in (rows_of(4).gradients, rows_of(4).curvatures):
        out = np.empty(2)
        loop(4, 0.0, z, y, mass, out, 0, 1)
        assert out[1] == 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_kernels_of_one_row_agree_with_the_reference_where_it_has_edges(loss):
    z = np.array([-60.0, -2.0, -1.0, -0.7, -0.2, 0.0, 0.3, 0.7, 1.0, 1.7, 3.0, 30.0])
    first = loss.code, loss.shape
    for y in (-1.0, 1.0) if loss.classifies else (0.0, 1.0, 3.0):
        if y == 0.0 and getattr(loss, "power", 0) == 2:
            continue
        for name in ("value", "gradient", "curvature"):
            kernel = getattr(loss_kernels, f"loss_{name}")
            found = [kernel(*first, one, y) for one in z]
            np.testing.assert_allclose(found, getattr(loss, name)(z, y), rtol=1e-12, atol=1e-14)
        ends = {1: (0.0, -y), 2: (0.0, -5 * y), 3: (-loss.shape, loss.shape), 4: (-y, 2.0)}
        ends[5] = (0.0, 1.0) if y == 0.0 else (-9.0, 1.0)
        for a in (*ends.get(loss.code, (-3.0, 2.0)), *loss.gradient(z, y)):
            found = loss_kernels.loss_conjugate(*first, a, y)
            if loss.code == 5:  # made for many rows at once
                assert np.isnan(found)
                one = np.array([a]), np.array([y]), np.ones(1), 1.0, np.empty(1)
                rows_of(loss.code).conjugates(*first, *one, 0, 1)
                found = one[-1][0]
            assert found == pytest.approx(float(loss.conjugate(a, y)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_prox_of_the_loss_is_stationary_even_for_large_weights(loss):
    rng = np.random.default_rng(1)
    for _ in range(500):
        c, q = rng.normal() * 10 ** rng.uniform(-1, 3), 10 ** rng.uniform(-3, 4)
        y = float(drawn(loss, rng, 1)[0])
        for guess in (c, 0.0, c + 3.0 * rng.normal()):
            u, slope = loss_kernels.loss_prox(loss.code, loss.shape, c, q, y, guess, 0.0)
            assert slope == pytest.approx(loss.gradient(u, y), rel=1e-12)
            residual = u - c + q * slope
            assert abs(residual) <= 1e-10 * (1 + abs(c) + q * (1 + y))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_second_derivative_follows_from_the_first_where_that_is_known(loss):
    rng = np.random.default_rng(3)
    code = loss.code, loss.shape
    for z, y in zip(rng.normal(size=200) * 5, drawn(loss, rng, 200), strict=True):
        slope = loss_kernels.loss_gradient(*code, z, y)
        found = loss_kernels._curvature_at(*code, z, y, slope)
        expected = loss_kernels.loss_curvature(*code, z, y)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("scale", "away"), [(3, 0), (0.1, 500), (0.1, -500), (100, 0)])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_best_intercept_leaves_no_slope(loss, scale, away):
    rng, n = np.random.default_rng(2), 2500
    z = scale * rng.normal(size=n) + away
    y = drawn(loss, rng, n)
    weights = rng.random(n)
    for mass in (np.full(1, 1 / n), weights / weights.sum()):
        t = rows_of(loss.code).best_shift(loss.code, loss.shape, z, y, mass)
        slopes = mass * loss.gradient(z + t, y)
        assert abs(slopes.sum()) <= 1e-12 * np.abs(slopes).sum()


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_best_intercept_of_two_rows_weighs_them(loss):
    z, y, mass = np.array([0.3, -0.2]), np.array([1.0, -1.0]), np.array([0.1, 0.9])
    y = y if loss.classifies else np.array([3.0, 1.0])
    t = rows_of(loss.code).best_shift(loss.code, loss.shape, z, y, mass)
    assert abs(mass @ loss.gradient(z + t, y)) < 1e-15


def test_the_best_intercept_is_found_where_newtons_moves_are_short():
    assert newton_shift(lambda t: (t - 1e6, 1e3, 1.0), 0.0) == pytest.approx(1e6, rel=1e-4)


def test_poissons_intercept_is_found_from_anywhere_at_once():
    """Where exp overflows, or nothing is left of it; without a count there is no best one."""
    y, mass = np.array([0.0, 3.0, 1e6]), np.array([0.5, 0.2, 0.3])
    for z in (np.array([0.0, 1.0, 2.0]), np.array([-1e4, 800.0, 3e3]), np.full(3, -2e3)):
        t = rows_of(4).best_shift(4, 0.0, z, y, mass)
        assert mass @ np.exp(z + t) == pytest.approx(mass @ y, rel=1e-12)
        assert abs(rows_of(4).best_shift(4, 0.0, z + t, y, mass)) <= 4e-12
    z = np.zeros(3)
    while t := rows_of(4).best_shift(4, 0.0, z, 0.0 * y, mass):
        z += t
    assert mass @ np.exp(z) < 1e-30


@pytest.mark.parametrize("power", [1.05, 1.5, 2.0])
def test_tweedies_intercept_is_found_from_anywhere_at_once(power):
    """Where exponentials overflow; rows without weight count nothing, and zeros only upwards."""
    y, mass = np.array([0.0, 3.0, 1e6, 2.0]), np.array([0.5, 0.2, 0.3, 0.0])
    y[0] += power == 2
    for z in (np.array([0.0, 1.0, 2.0, 9e3]), np.array([-1e2, 8e2, 1e2, -2e3]), np.full(4, -2e3)):
        t = rows_of(5).best_shift(5, power, z, y, mass)
        at = (z + t)[:3]
        rising, falling = (
            mass[:3] @ np.exp((2 - power) * at),
            mass[:3] * y[:3] @ np.exp(-(power - 1) * at),
        )
        assert rising == pytest.approx(falling, rel=1e-12)
        assert abs(rows_of(5).best_shift(5, power, z + t, y, mass)) <= 4e-12
    z = np.zeros(4)
    while power < 2 and (t := rows_of(5).best_shift(5, power, z, 0.0 * y, mass)):
        z += t
    assert power == 2 or mass @ np.exp((2 - power) * z) < 1e-30


def test_bad_losses_are_named():
    with pytest.raises(InputError, match="squared_hinge"):
        as_loss("hinge")
    with pytest.raises(InputError, match="delta"):
        Huber(-1.0)
    for power in (1.0, 2.1):
        with pytest.raises(InputError, match=r"power is .*, expected a number above 1 and at most"):
            Tweedie(power)


def test_the_intercept_of_targets_far_from_zero_is_settled_as_far_as_they_can_tell():
    rng = np.random.default_rng(0)
    y = rng.normal(size=100_000) + 1e4
    for mass in (np.full(1, 1e-5), rng.random(y.size) / y.size):
        t = rows_of(0).best_shift(0, 0.0, np.zeros(y.size), y, mass)
        slopes = mass * (t - y)
        assert abs(slopes.sum()) <= 1e-11 * np.abs(slopes).sum()


def test_what_rounding_alone_unbalances_is_left():
    z = np.array([1.0, -1.0, 2.0**-53])
    assert rows_of(0).best_shift(0, 0.0, z, np.zeros(3), np.full(1, 1 / 3)) == 0.0
