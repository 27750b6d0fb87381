import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.errors import InputError
from telic.optim import prox_kernels
from telic.optim.methods.asbcd import tables
from telic.optim.penalties import ElasticNet, group_penalty, soft

weights = st.floats(0, 3)


@settings(max_examples=60)
@given(z=st.floats(-5, 5), step=st.floats(1e-3, 5), l1=weights, l2=weights, positive=st.booleans())
def test_the_prox_minimises_its_definition(z, step, l1, l2, positive):
    def objective(u):
        allowed = np.where(positive & (u < 0), np.inf, 0.0)
        return (u - z) ** 2 / (2 * step) + l1 * np.abs(u) + l2 * u**2 / 2 + allowed

    best = ElasticNet(l1, l2, positive).prox(np.array([z]), step)[0]
    assert objective(best) <= objective(np.linspace(z - 6, z + 6, 2001)).min() + 1e-9


@settings(max_examples=40)
@given(seed=st.integers(0, 99), step=st.floats(1e-2, 5), l1=weights, l2=weights)
def test_the_group_prox_minimises_its_definition(seed, step, l1, l2):
    rng = np.random.default_rng(seed)
    penalty = group_penalty([0, 1, 0, 2, 2, 2], l1=l1, l2=l2)
    z = rng.normal(size=6)

    def objective(u):
        return ((u - z) ** 2).sum() / (2 * step) + penalty.value(u)

    best = penalty.prox(z, step)
    others = [best + scale * rng.normal(size=6) for scale in (1e-3, 1e-2, 0.1, 1.0) * 20]
    assert objective(best) <= min(objective(u) for u in others) + 1e-12


@settings(max_examples=40)
@given(seed=st.integers(0, 99), l1=weights, l2=weights)
def test_a_groups_violation_is_the_least_subgradient_and_zero_at_the_prox(seed, l1, l2):
    rng = np.random.default_rng(seed)
    labels = np.array([0, 1, 0, 2, 2, 2, 1])
    penalty = group_penalty(labels, l1=l1, l2=l2)
    w, gradient = rng.normal(size=7) * np.array([1, 0, 1, 0, 1, 1, 0]), 3.0 * rng.normal(size=7)
    found = penalty.violations(gradient, w)
    for label in range(3):
        mine = labels == label
        slope, cut = gradient[mine] + l2 * w[mine], l1 * np.sqrt(mine.sum())
        if w[mine].any():
            expected = np.linalg.norm(slope + cut * w[mine] / np.linalg.norm(w[mine]))
        else:
            expected = max(0.0, np.linalg.norm(slope) - cut)
        np.testing.assert_allclose(found[mine], expected, atol=1e-12)
    # At the prox of z the gradient of half its squared distance is u − z.
    z = rng.normal(size=7)
    u = penalty.prox(z, 1.0)
    np.testing.assert_allclose(penalty.violations(u - z, u), 0.0, atol=1e-12)
    some = np.array([6, 5, 1, 3, 4])
    part = penalty.among(some)
    assert part.value(w[some]) == pytest.approx(penalty.value(np.where(labels > 0, w, 0.0)))
    np.testing.assert_allclose(part.violations(gradient[some], w[some]), found[some])


@pytest.mark.parametrize(
    "penalty",
    [
        ElasticNet(0.3, 0.5),
        ElasticNet(0.3, 0.5, positive=True),
        group_penalty([0, 0, 1], l1=0.3, l2=0.5),
    ],
)
def test_the_conjugate_bounds_every_line_and_is_met_at_the_prox(penalty):
    rng = np.random.default_rng(0)
    for v in rng.normal(size=(20, 3)):
        # The maximiser of <v, w> - penalty(w) is the prox of v/l2 without the l2 part.
        best = penalty.prox(1e9 * v, 1e9)
        assert v @ best - penalty.value(best) == pytest.approx(penalty.conjugate(v), rel=1e-6)
        for w in rng.normal(size=(20, 3)):
            assert v @ w - penalty.value(w) <= penalty.conjugate(v) + 1e-12


def test_without_l2_the_conjugate_is_the_indicator_of_the_dual_ball():
    penalty = ElasticNet(1.0, 0.0)
    assert penalty.conjugate(np.array([1.0, -1.0])) == 0.0
    assert penalty.conjugate(np.array([1.1, 0.0])) == np.inf
    assert penalty.dual_norm(np.array([0.5, -2.0])) == 2.0
    positive = ElasticNet(1.0, 0.0, positive=True)
    assert positive.conjugate(np.array([1.0, -9.0])) == 0.0
    assert positive.conjugate(np.array([1.1, 0.0])) == np.inf
    assert positive.dual_norm(np.array([0.5, -2.0])) == 0.5
    assert positive.value(np.array([1.0, -1e-300])) == np.inf


def test_groups_of_one_are_the_l1_norm():
    w = np.array([1.0, -2.0, 0.5])
    alone = group_penalty([2, 0, 1], l1=0.7, l2=0.2)
    assert alone.value(w) == pytest.approx(ElasticNet(0.7, 0.2).value(w))
    np.testing.assert_allclose(alone.prox(w, 0.5), ElasticNet(0.7, 0.2).prox(w, 0.5))


@settings(max_examples=150)
@given(
    w=st.floats(-3, 3),
    g=st.floats(-2, 2),
    q=st.integers(0, 60),
    step=st.floats(1e-3, 0.5),
    l1=st.sampled_from([0.0, 0.1, 1.0]),
    l2=st.sampled_from([0.0, 0.01, 1.0]),
    positive=st.booleans(),
)
def test_q_steps_at_once_are_q_steps(w, g, q, step, l1, l2, positive):
    """The just-in-time update, across zero and beyond the length of its tables."""
    powers, sums = tables(step * l2, 20)
    below, least = (np.inf, 0.0) if positive else (l1, -np.inf)
    w = plain = max(w, least)
    for _ in range(q):
        plain = max(least, soft((1 - step * l2) * plain - step * g, step * l1))
    found = prox_kernels.advance(w, g, q, step, l1, below, l2, powers, sums)
    assert found == pytest.approx(plain, abs=1e-11)


def test_many_features_are_summed_to_the_last():
    """More than a block of the sums."""
    rng = np.random.default_rng(0)
    w, v = 2 * rng.normal(size=(2, 2500))
    for positive in (False, True):
        penalty = ElasticNet(0.3, 0.5, positive)
        point = np.abs(w) if positive else w
        expected = 0.3 * np.abs(w).sum() + 0.25 * w @ w
        assert penalty.value(point) == pytest.approx(expected, rel=1e-12)
        excess = np.maximum((v if positive else np.abs(v)) - 0.3, 0.0)
        assert penalty.conjugate(v) == pytest.approx(excess @ excess / (2 * 0.5), rel=1e-12)
        largest = (v if positive else np.abs(v)).max()
        assert penalty.dual_norm(v) == largest
        slope = v + 0.5 * point
        least = np.where(
            point != 0,
            np.abs(slope + 0.3 * np.sign(point)),
            np.maximum(0, np.abs(slope) - 0.3),
        )
        assert penalty.violations(v, point) == pytest.approx(least)
    at_zero = ElasticNet(0.3, 0.5, positive=True).violations(v, np.zeros(2500))
    assert at_zero == pytest.approx(np.maximum(0, -v - 0.3))  # what cannot fall is not broken


def test_bad_groups_are_named():
    with pytest.raises(InputError, match="one label per feature"):
        group_penalty([], l1=1.0, l2=0.0)
    for odd in ([None, 1, 1], np.array(["a", 1], dtype=object), [[0, 1], [2]]):
        with pytest.raises(InputError, match="groups: labels of several kinds, or none"):
            group_penalty(odd, l1=1.0, l2=0.0)
