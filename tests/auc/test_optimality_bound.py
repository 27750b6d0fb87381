"""The parts of the bound by their definitions, with noise so coarse that it shows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from telic.auc.objective import class_means
from telic.auc.optimality_bound import (
    EPS,
    Curvature,
    Slope,
    ball_gap,
    fenchel_terms,
    gap_bound,
    least_subgradient,
    scores_at,
    slope_at,
    slope_of,
    small,
)

NUMBERS = st.floats(-3, 3)
WEIGHTS = st.floats(0.05, 3)


def plain_terms(w, z, beta, beta1):
    conjugate = np.maximum(np.abs(z) - beta1, 0) ** 2 / (2 * beta)
    return conjugate + beta / 2 * w**2 + beta1 * np.abs(w) - w * z


@given(st.one_of(st.just(0.0), NUMBERS), NUMBERS, WEIGHTS, st.floats(0, 3))
def test_fenchels_terms_and_the_least_subgradient_are_their_definitions(w, z, beta, beta1):
    w, z = np.array([w]), np.array([z])
    found = fenchel_terms(w, z, beta, beta1)
    assert found == pytest.approx(plain_terms(w, z, beta, beta1), abs=1e-12)
    signs = np.sign(w) if w[0] else np.linspace(-1, 1, 20_001)
    least = np.abs(z + beta * w + beta1 * signs).min()
    assert np.abs(least_subgradient(w, z, beta, beta1)) == pytest.approx(least, abs=3e-4)


@given(st.tuples(NUMBERS, NUMBERS), st.tuples(WEIGHTS, WEIGHTS), WEIGHTS, st.floats(0, 2))
def test_a_noisy_slope_is_given_the_worst_that_it_can_be(gradient, noise, beta, beta1):
    w, gradient, noise = np.array([0.7, 0.0]), np.array(gradient), np.array(noise)
    slope = Slope(gradient, noise, 0.1, 0.5)
    ends = np.linspace(-gradient - noise, -gradient + noise, 2001)
    worst = plain_terms(w, ends, beta, beta1).max(axis=0).sum()
    assert gap_bound(w, slope, 0.5, beta=beta, beta1=beta1) == pytest.approx(worst)
    # What is strongly convex in the columns' own units has a bound of its own.
    curved = Curvature(0.4, np.array([2.0, 0.0]))
    least = abs(least_subgradient(w, gradient, beta, beta1)[0]) + noise[0]
    found = gap_bound(w, slope, 0.5, beta=beta, beta1=beta1, curvature=curved)
    assert found == pytest.approx(min(worst, (least / 2.0) ** 2 / (2 * 0.4)))
    flat = Curvature(0.0, np.array([2.0, 1.0]))
    same = gap_bound(w, slope, 0.5, beta=beta, beta1=beta1, curvature=flat)
    assert same == pytest.approx(worst)
    assert np.isnan(gap_bound(w, slope, 0.5, beta=0.0, curvature=flat))


@pytest.mark.parametrize("weight", [None, np.array([3.0, 1.0, 1.0])])
@pytest.mark.parametrize("beta1", [0.01, 0.3, 2.0])
def test_without_a_ridge_the_bound_is_the_lassos_at_the_best_scaled_residual(weight, beta1):
    positive = np.array([True, False, False])
    share = np.average(positive, weights=weight)
    pairs = share * (1 - share)
    w, gradient, noise = np.array([0.2, -0.4]), np.array([0.5, -0.3]), np.array([0.1, 0.05])
    slope = Slope(gradient, noise, loss=0.15, lead=0.6)
    scales = np.linspace(0, min(beta1 / 0.6, 3.0), 100_001)  # 0.6: what |∇f| can be at most
    dual = (pairs * 2 * scales * (1 - slope.lead) - scales**2 * slope.loss).max()
    found = gap_bound(w, slope, float(np.average(positive, weights=weight)), beta=0.0, beta1=beta1)
    assert found == pytest.approx(0.15 + beta1 * 0.6 - dual, rel=1e-8)


def test_a_lasso_that_leaves_no_gap_keeps_what_rounding_hides():
    slope = Slope(np.array([0.1]), np.zeros(1), loss=0.25, lead=0.0)
    found = gap_bound(np.zeros(1), slope, 0.5, beta=0.0, beta1=1.0)
    assert found == pytest.approx(64 * EPS * 0.25, rel=1e-6, abs=0)
    exact = Slope(np.array([0.1]), np.zeros(1), loss=0.0, lead=1.0)
    assert gap_bound(np.ones(1), exact, 0.5, beta=0.0, beta1=0.5) >= 0.5


def test_an_optimum_is_as_uncertain_as_its_slope_and_the_penaltys_rounding():
    slope = Slope(np.array([-2.0]), np.array([8 * EPS]), 0.1, 0.5)
    found = gap_bound(np.ones(1), slope, 0.5, beta=1.0, beta1=1.0)
    assert found == pytest.approx((8 * EPS + 4 * EPS * 2) ** 2 / 2, rel=1e-9, abs=0)


def test_a_slope_over_a_ball_is_bounded_by_its_length():
    slope = Slope(np.array([3.0, -4.0]), np.array([0.0, 0.0]), 0.1, 0.5)
    w = np.array([0.1, 0.2])
    assert ball_gap(w, slope, 2.0) == pytest.approx(0.3 - 0.8 + 2.0 * 5.0)
    noisy = slope._replace(noise=np.array([2.0, 8.0]))
    assert ball_gap(w, noisy, 2.0) == pytest.approx(-0.5 + 0.2 + 1.6 + 2.0 * 13.0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weight", [None, np.array([1.0, 3.0, 2.0, 1.0, 5.0])])
def test_the_noise_of_a_slope_is_the_size_of_what_is_summed(kind, weight):
    rng = np.random.default_rng(0)
    X, w, positive = rng.normal(1, 1, (5, 3)), rng.normal(size=3), np.arange(5) < 2
    share = np.average(positive, weights=weight)
    counts = np.ones(5) if weight is None else weight
    shares = counts / np.where(positive, counts[positive].sum(), counts[~positive].sum())
    # Dense rows are seen from their mean, sparse ones from 0.
    centre = np.average(X, axis=0, weights=counts) if kind is np.asarray else 0.0
    sizes = np.abs(X - centre) @ np.abs(w)
    others = [shares[side] @ sizes[side] for side in (positive, ~positive)]
    terms = 2 * share * (1 - share) * shares * (sizes + np.where(positive, *others[::-1]) + 1)
    rounding = EPS * (8 + 2 * np.sqrt(5) + 2 * np.sqrt(3))
    found = slope_at(kind(X), positive, w, weight)
    np.testing.assert_allclose(found.noise, rounding * (np.abs(X - centre).T @ terms), rtol=1e-9)
    assert found.lead == pytest.approx((shares[:2] @ X[:2] - shares[2:] @ X[2:]) @ w)
    slopes, errors = np.array([1.0, -3.0, 2.0, 1.0, -1.0]), np.array([0.0, 1e-3, 0.0, 2e-3, 0.0])
    middle = X.mean(axis=0)
    gradient, noise = slope_of(kind(X), slopes, errors, middle)
    assert gradient == pytest.approx(X.T @ slopes)
    seen = np.abs(X - (middle if kind is np.asarray else 0.0)).T
    expected = rounding * (seen @ np.abs(slopes)) + np.abs(X - middle).T @ errors
    np.testing.assert_allclose(noise, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scores_are_seen_from_the_centre_and_say_what_rounding_may_do(kind):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(50, 7)) + 1e9, rng.normal(size=7)
    centre = X.mean(axis=0)
    scores, blur = scores_at(kind(X), centre, w)
    exact = ((X.astype(np.longdouble) - centre) @ w).astype(float)
    off = np.abs(scores - exact).max()
    assert off <= blur <= (1e-4 if kind is sparse.csr_array else 1e-13)
    assert off > 0


@pytest.mark.parametrize(
    "kind", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]
)
def test_a_slope_is_the_same_wherever_its_means_are_from(kind):
    rng = np.random.default_rng(1)
    X, w, positive = rng.normal(3, 1, (40, 3)), rng.normal(size=3), np.arange(40) < 9
    means = class_means(X, positive)
    rough = means._replace(pos=means.pos + 0.3, neg=means.neg - 0.1)
    exact = slope_at(kind(X), positive, w)
    for given_means in (means, rough):
        found = slope_at(kind(X), positive, w, None, given_means)
        np.testing.assert_allclose(found.gradient, exact.gradient, atol=1e-13)
        assert found.loss == pytest.approx(exact.loss, rel=1e-13)
    slopes = [
        (slope_at(kind(X), positive, w + e).loss - slope_at(kind(X), positive, w - e).loss) / 2e-5
        for e in 1e-5 * np.eye(3)
    ]
    assert exact.gradient == pytest.approx(slopes, rel=1e-7)


def test_small_problems_have_ten_thousand_numbers_at_most():
    assert small(np.empty((100, 100)))
    assert not small(np.empty((1, 10_001)))
