import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.optim import loss_kernels
from telic.optim.losses import Huber, Logistic, Poisson, Squared, SquaredHinge, as_loss

LOSSES = [Squared(), Logistic(), SquaredHinge(), Huber(0.7), Poisson()]
numbers = st.floats(-8, 8)


def targets(loss):
    if loss.classifies:
        return st.sampled_from([-1.0, 1.0])
    return st.integers(0, 9).map(float) if isinstance(loss, Poisson) else numbers


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
    ],
)
def test_the_conjugate_is_infinite_where_no_line_of_that_slope_lies_below(loss, y, outside):
    assert loss.conjugate(outside, y) == np.inf


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_kernels_agree_with_the_reference(loss):
    rng = np.random.default_rng(0)
    z = rng.normal(scale=3, size=200)
    y = rng.choice([-1.0, 1.0], 200) if loss.classifies else rng.integers(0, 5, 200).astype(float)
    mass = rng.random(200)
    out, first = np.empty(200), (loss.code, loss.shape)
    sums = np.empty(1)
    loss_kernels.losses(*first, z, y, mass, z[::-1].copy(), 0.5, sums, 0, 1)
    assert sums[0] == pytest.approx(mass @ loss.value(z + 0.5 * z[::-1], y), rel=1e-12)
    loss_kernels.gradients(*first, z, y, mass, out, 0, 1)
    np.testing.assert_allclose(out, mass * loss.gradient(z, y), rtol=1e-12, atol=1e-14)
    loss_kernels.conjugates(*first, out, y, mass, 0.7, sums, 0, 1)
    assert sums[0] == pytest.approx(mass @ loss.conjugate(0.7 * out / mass, y), rel=1e-10)
    loss_kernels.curvatures(*first, z, y, mass, out, 0, 1)
    bent = np.maximum(loss.curvature(z, y), 1e-12)
    np.testing.assert_allclose(out, mass * bent, rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_prox_of_the_loss_is_stationary_even_for_large_weights(loss):
    rng = np.random.default_rng(1)
    for _ in range(500):
        c, q = rng.normal() * 10 ** rng.uniform(-1, 3), 10 ** rng.uniform(-3, 4)
        y = float(rng.choice([-1, 1])) if loss.classifies else float(rng.integers(0, 5))
        for guess in (c, 0.0, c + 3.0 * rng.normal()):
            u, slope = loss_kernels.loss_prox(loss.code, loss.shape, c, q, y, guess, 0.0)
            assert slope == pytest.approx(loss.gradient(u, y), rel=1e-12)
            residual = u - c + q * slope
            assert abs(residual) <= 1e-10 * (1 + abs(c) + q * (1 + y))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_best_intercept_leaves_no_slope(loss):
    rng = np.random.default_rng(2)
    z = 3 * rng.normal(size=50)
    y = rng.choice([-1.0, 1.0], 50) if loss.classifies else rng.integers(0, 5, 50).astype(float)
    mass = np.full(50, 0.02)
    t = loss_kernels.intercept_shift(loss.code, loss.shape, z, y, mass)
    assert abs(mass @ loss.gradient(z + t, y)) < 1e-14


def test_poissons_intercept_is_found_from_anywhere_at_once():
    """Where exp overflows, or nothing is left of it; without a count there is no best one."""
    y, mass = np.array([0.0, 3.0, 1e6]), np.array([0.5, 0.2, 0.3])
    for z in (np.array([0.0, 1.0, 2.0]), np.array([-1e4, 800.0, 3e3]), np.full(3, -2e3)):
        t = loss_kernels.intercept_shift(4, 0.0, z, y, mass)
        assert mass @ np.exp(z + t) == pytest.approx(mass @ y, rel=1e-12)
        assert abs(loss_kernels.intercept_shift(4, 0.0, z + t, y, mass)) <= 4e-12
    z = np.zeros(3)
    while t := loss_kernels.intercept_shift(4, 0.0, z, 0.0 * y, mass):
        z += t
    assert mass @ np.exp(z) < 1e-30


def test_bad_losses_are_named():
    with pytest.raises(InputError, match="squared_hinge"):
        as_loss("hinge")
    with pytest.raises(InputError, match="delta"):
        Huber(-1.0)
