import itertools
import mmap
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.exceptions import ConvergenceWarning

from telic.choice import (
    Choices,
    descend,
    fit_groups,
    fit_pooled,
    gap_bound,
    learn_online,
    leave_one_group_out,
)
from telic.choice.choices import group_starts
from telic.choice.group_buckets import StoredChoices, _cut
from telic.data.growing_arrays import let_go
from telic.errors import InputError
from telic.scale import Local


def random_choices(seed, groups=4, per_group=30, d=3, widest=6):
    rng = np.random.default_rng(seed)
    n = groups * per_group
    start = np.concatenate([[0], np.cumsum(rng.integers(1, widest + 1, n))])
    x = rng.normal(size=(start[-1], d)) * rng.integers(0, 2, (start[-1], 1))
    truth = rng.normal(size=d)
    score = x @ truth + rng.gumbel(size=len(x))
    chosen = [a + np.argmax(score[a:b]) for a, b in itertools.pairwise(start)]
    return Choices(x, rng.normal(size=len(x)), start, chosen, np.arange(groups + 1) * per_group)


def part(choices, groups):
    """The choices of some groups, as a Choices of its own: slow and obvious."""
    x, offset, start, chosen = [], [], [0], []
    for u in groups:
        for c in range(choices.group[u], choices.group[u + 1]):
            a, b = choices.start[c], choices.start[c + 1]
            chosen.append(start[-1] + choices.chosen[c] - a)
            x.append(choices.x[a:b])
            offset.append(choices.offset[a:b])
            start.append(start[-1] + b - a)
    return Choices(np.concatenate(x), np.concatenate(offset), start, chosen)


@settings(max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_gradient_is_the_slope_of_the_loss(seed):
    choices = random_choices(seed, groups=1)
    w = np.random.default_rng(seed).normal(size=3)
    slope = approx_fprime(w, lambda w: choices.loss(w, l2=0.3), 1e-6)
    np.testing.assert_allclose(choices.gradient(w, l2=0.3), slope, rtol=1e-4, atol=1e-4)


def test_loss_is_minus_the_log_of_the_product_of_probabilities():
    choices = random_choices(0, groups=1, per_group=5)
    w = np.array([0.5, -1.0, 2.0])
    product = 1.0
    for a, b, j in zip(choices.start, choices.start[1:], choices.chosen, strict=False):
        odds = np.exp(choices.offset[a:b] + choices.x[a:b] @ w)
        product *= odds[j - a] / odds.sum()
    assert choices.loss(w) == pytest.approx(-np.log(product))


@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_newton_reaches_the_optimum_of_every_group(l2):
    choices = random_choices(1)
    center = np.array([0.5, 0.0, -0.5])
    fitted = fit_groups(choices, l2=l2, center=center)
    np.testing.assert_array_equal(fitted, fit_groups(choices, l2=l2, center=center[None]))
    for u, w in enumerate(fitted):
        alone = part(choices, [u])

        def objective(w, alone=alone):
            return alone.loss(w) + l2 / 2 * ((w - center) ** 2).sum()

        best = minimize(objective, center, method="BFGS", options={"gtol": 1e-8})
        assert objective(w) <= best.fun + 1e-8
        np.testing.assert_allclose(w, best.x, atol=1e-4)


def test_newton_survives_huge_features_and_an_empty_group():
    choices = Choices([[1e4], [-1e4], [3.0]], [0, 0, 0], [0, 2, 3], [1, 2], [0, 2, 2])
    fitted = fit_groups(choices, l2=0.01)
    alone = part(choices, [0])
    assert abs(alone.gradient(fitted[0], l2=0.01)).max() < 1e-3
    assert fitted[1] == 0


@pytest.mark.parametrize("seed", [17, 29, 63, 66, 92])
def test_newton_finds_the_optimum_from_where_the_curvature_is_next_to_nothing(seed):
    """Offsets of some hundred make each choice certain, and so a full step of any length."""
    rng = np.random.default_rng(seed)
    n, d = 3, 3
    x, offset = rng.normal(size=(3 * n, d)), 300.0 * rng.normal(size=3 * n)
    chosen = 3 * np.arange(n) + rng.integers(0, 3, n)
    choices = Choices(x, offset, np.arange(0, 3 * n + 1, 3), chosen)
    found = fit_pooled(choices, l2=1e-6)
    best = minimize(
        partial(choices.loss, l2=1e-6),
        np.zeros(d),
        jac=partial(choices.gradient, l2=1e-6),
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15},
    )
    assert choices.loss(found, l2=1e-6) <= best.fun + 1e-6 * (1 + best.fun)


def test_leaving_one_group_out_comes_close_to_an_exact_refit():
    choices = random_choices(2, groups=20, per_group=40)
    l2 = 0.5
    pooled = fit_pooled(choices, l2=l2)
    quick = leave_one_group_out(choices, pooled, l2=l2)
    for u in (0, 7, 19):
        exact = fit_pooled(part(choices, [v for v in range(20) if v != u]), l2=l2)
        # Of second order: far closer to the refit than the optimum of all is.
        assert np.linalg.norm(quick[u] - exact) < 0.1 * np.linalg.norm(pooled - exact)


def test_gradient_descent_never_rises_and_reaches_newton():
    choices = random_choices(3, groups=1, per_group=100)
    path = descend(choices, l2=5.0, max_passes=400)
    losses = [choices.loss(w, l2=5.0) for w in path]
    assert (np.diff(losses) <= 1e-12).all()
    np.testing.assert_allclose(path[-1], fit_pooled(choices, l2=5.0), atol=1e-6)


@pytest.mark.parametrize("schedule", ["annealed", "steady"])
def test_online_walk_follows_the_printed_update(schedule):
    choices = random_choices(4, groups=2, per_group=10)
    initial = np.array([0.1, 0.2, 0.3])
    path = learn_online(choices, initial, step_size=0.5, l2=0.1, schedule=schedule)
    for u in range(2):
        w = initial.copy()
        for t, c in enumerate(range(choices.group[u], choices.group[u + 1])):
            np.testing.assert_allclose(path[c + u], w)
            a, b = choices.start[c], choices.start[c + 1]
            one = Choices(choices.x[a:b], choices.offset[a:b], [0, b - a], [choices.chosen[c] - a])
            eta = 0.5 * 0.9**t if schedule == "annealed" else 0.5 / np.sqrt(1 + t)
            w = w - eta * one.gradient(w, l2=0.1)
        np.testing.assert_allclose(path[choices.group[u + 1] + u], w)


@pytest.mark.parametrize("per_group", [False, True])
def test_online_walk_is_pulled_to_its_centre(per_group):
    """Where features say nothing the penalty alone moves the weights, from anywhere to there."""
    choices = Choices(
        np.zeros((20, 2)), np.zeros(20), np.arange(0, 21, 2), np.arange(0, 20, 2), [0, 4, 10]
    )
    center = np.array([[1.0, -2.0], [3.0, 0.5]]) if per_group else np.array([1.0, -2.0])
    path = learn_online(choices, np.zeros(2), step_size=0.5, l2=0.2, center=center)
    for u, first, last in ((0, 0, 4), (1, 5, 11)):
        goal = center[u] if per_group else center
        left = np.prod(1 - 0.2 * 0.5 / np.sqrt(1 + np.arange(last - first)))
        np.testing.assert_allclose(path[last], (1 - left) * goal)
    still = learn_online(choices, center, step_size=0.5, l2=0.2, center=center)
    np.testing.assert_allclose(still[4], center[0] if per_group else center)


def test_leaving_one_group_out_is_newtons_step_on_the_others():
    """Where one group holds nearly all, only the others' own curvature gives their optimum."""
    rng = np.random.default_rng(8)
    sizes = [200, 3, 4]
    start = np.arange(sum(sizes) + 1) * 3
    x = 0.3 * rng.normal(size=(start[-1], 2))
    choices = Choices(
        x,
        np.zeros(len(x)),
        start,
        start[:-1] + rng.integers(0, 3, sum(sizes)),
        np.cumsum([0, *sizes]),
    )
    l2 = 2.0
    pooled = fit_pooled(choices, l2=l2)
    quick = leave_one_group_out(choices, pooled, l2=l2)
    np.testing.assert_array_equal(leave_one_group_out(choices, pooled.tolist(), l2=l2), quick)
    for u in range(3):
        rest = part(choices, [v for v in range(3) if v != u])
        slope = rest.gradient(pooled, l2=l2)
        bend = approx_fprime(pooled, lambda w, rest=rest: rest.gradient(w, l2=l2), 1e-6)
        np.testing.assert_allclose(quick[u], pooled - np.linalg.solve(bend, slope), atol=1e-5)
        exact = fit_pooled(rest, l2=l2)
        assert np.linalg.norm(quick[u] - exact) <= 0.1 * np.linalg.norm(pooled - exact) + 1e-12


def test_newton_does_not_mind_scales_and_repeated_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 1)) * np.array([[1e12, 1e12, 1e-12]])
    choices = Choices(x, np.zeros(40), np.arange(0, 41, 4), np.arange(0, 40, 4))
    w = fit_pooled(choices, l2=1e-6)
    one = fit_pooled(
        Choices(x[:, :1] / 1e12, choices.offset, choices.start, choices.chosen), l2=1e-30
    )
    np.testing.assert_allclose([1e12 * (w[0] + w[1]), w[2]], [one[0], 0.0], rtol=1e-6, atol=1e-6)


def test_annealing_spends_its_steps_early():
    spent = np.cumsum(0.9 ** np.arange(10_000))
    assert 1 - spent[29] / spent[-1] == pytest.approx(0.042, abs=0.001)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chosen": [2]}, "choice 0"),
        ({"chosen": [-1]}, "choice 0"),
        ({"start": [0, 1, 2], "chosen": [0, 0]}, "choice 1: its chosen row is not among its own"),
        ({"start": [0, 2, 2], "chosen": [0, 1]}, "choice 1"),
        ({"start": [0, 1]}, "start must run"),
        ({"start": [1, 2]}, "start must run"),
        ({"start": [0, 1, 2]}, "start must run"),
        ({"offset": [0.0]}, "shape"),
        ({"x": [0.0, 1.0]}, "shape"),
        ({"x": [[np.nan], [0.0]]}, "finite"),
        ({"offset": [np.inf, 0.0]}, "finite"),
        ({"x": np.ma.array([[0.0], [9.0]], mask=[[0], [1]])}, "x is a masked array"),
        ({"offset": np.ma.array([0.0, 9.0], mask=[0, 1])}, "offset is a masked array"),
        ({"chosen": np.ma.array([1], mask=[1])}, "chosen is a masked array"),
        ({"group": [0, 2]}, "group"),
        ({"group": [1, 1]}, "group"),
        ({"group": [0, 2, 1]}, "group"),
        ({"group": []}, "group"),
        ({"group": [[0, 1]]}, "group"),
        ({"offset": [[0.0], [0.0]]}, r"offset \(2, 1\): expected \(rows, d\) and \(rows,\)"),
        ({"chosen": [0.9]}, "chosen is float64 of shape .* expected a list of whole numbers"),
        ({"chosen": [[1]]}, "chosen is int64 of shape"),
        ({"start": [[0], [2]]}, "start is int64 of shape"),
        ({"group": [0.0, 1.5]}, "group is float64"),
    ],
)
def test_bad_choices_are_named(change, message):
    good = {"x": [[0.0], [1.0]], "offset": [0.0, 0.0], "start": [0, 2], "chosen": [1]}
    with pytest.raises(InputError, match=message):
        Choices(**(good | change))


def test_the_loss_of_a_choice_nobody_would_make_is_finite():
    unlikely = Choices(x=[[0.0], [1.0]], offset=[0.0, -1e5], start=[0, 2], chosen=[1])
    assert unlikely.loss([0.0]) == pytest.approx(1e5)


def test_bad_parameters_are_named():
    choices = random_choices(5)
    for wrong, name in (({"l2": 0}, "l2"), ({"l2": 1, "max_passes": -3}, "max_passes")):
        with pytest.raises(InputError, match=name):
            descend(choices, **wrong)
    with pytest.raises(InputError, match="l2"):
        fit_groups(choices, l2=0.0)
    with pytest.raises(InputError, match="l2"):
        fit_groups(choices, l2=np.inf)
    for step_size in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="step_size"):
            learn_online(choices, np.zeros(choices.x.shape[1]), step_size=step_size)
    with pytest.raises(InputError, match="schedule"):
        learn_online(choices, np.zeros(3), step_size=1.0, schedule="never")
    fitted = fit_pooled(choices, l2=1.0)
    for value in (np.nan, np.inf, -np.inf):
        weights = np.array([value, 0, 0])
        for call, name in (
            (lambda w: fit_groups(choices, l2=1.0, center=w), "center"),
            (lambda w: learn_online(choices, w, step_size=1.0), "initial"),
            (lambda w: learn_online(choices, fitted, step_size=1.0, center=w), "center"),
            (lambda w: leave_one_group_out(choices, w, l2=1.0), "pooled"),
        ):
            with pytest.raises(InputError, match=f"{name} must be finite"):
                call(weights)
        for call, name in (
            (lambda x: learn_online(choices, fitted, step_size=1.0, l2=x), "l2"),
            (lambda x: leave_one_group_out(choices, fitted, l2=x), "l2"),
            (lambda x: gap_bound(choices, fitted, l2=x), "l2"),
            (lambda x: fit_groups(choices, l2=1.0, tol=x), "tol"),
        ):
            with pytest.raises(InputError, match=f"{name} is {value}, expected a finite number >"):
                call(value)
    with pytest.raises(InputError, match=r"center has shape \(2, 3\), expected \(3,\) or \(4, 3\)"):
        fit_groups(choices, l2=1.0, center=np.zeros((2, 3)))


@pytest.mark.parametrize(("x", "offset"), [(1e200, 0.0), (1.0, -1.7e308)])
def test_a_fit_that_overflows_does_not_count_as_converged(x, offset):
    choices = Choices(x=[[0.0], [x]], offset=[-offset, offset], start=[0, 2], chosen=[1])
    with pytest.warns(ConvergenceWarning, match="1 of 1 groups did not converge; scale the feat"):
        fit_groups(choices, l2=1.0)


@pytest.mark.parametrize("ends", [(4,), (1, 4), (0, 1, 1, 3, 4)])
def test_pieces_of_choices_are_fitted_as_the_whole(ends, tmp_path, monkeypatch):
    whole = random_choices(3)
    left_out = leave_one_group_out(whole, fit_pooled(whole, l2=0.5), l2=0.5)
    monkeypatch.setattr("telic.choice.newton.AT_ONCE", 3)
    chunks = leave_one_group_out(whole, fit_pooled(whole, l2=0.5), l2=0.5)
    np.testing.assert_array_equal(chunks, left_out)
    pieces, stored = [], StoredChoices(tmp_path)
    for first, last in itertools.pairwise([0, *ends]):
        if first < last:
            own = part(whole, range(first, last))
        else:
            own = Choices(np.empty((0, 3)), [], np.zeros(1, int), np.zeros(0, int))
        group = whole.group[first : last + 1] - whole.group[first]
        pieces.append(Choices(own.x, own.offset, own.start, own.chosen, group))
        stored.append(pieces[-1])
    np.testing.assert_array_equal(group_starts(pieces), whole.group)
    assert len(stored) == len(ends)
    center = np.arange(12.0).reshape(4, 3)
    pooled = fit_pooled(whole, l2=0.5)
    for found in (pieces, stored):
        np.testing.assert_allclose(fit_pooled(found, l2=0.5), pooled, rtol=1e-9)
        for function in (
            partial(fit_groups, l2=0.5, center=center),
            partial(leave_one_group_out, pooled=pooled, l2=0.5),
            partial(learn_online, initial=center, step_size=0.1),
        ):
            np.testing.assert_array_equal(function(found), function(whole))
    with pytest.raises(IndexError):
        stored[len(ends)]
    other = StoredChoices(tmp_path)
    with pytest.raises(InputError, match="holds another job's arrays"):
        other.append(random_choices(4))


@pytest.mark.parametrize(("widths", "said"), [((2, 3), r"\[2, 3\]"), ((3, 2), "2, 3"), ((), "no")])
def test_pieces_of_other_features_and_none_at_all_are_refused(widths, said):
    pieces = [Choices(np.ones((2, d)), [0.0, 0.0], [0, 2], [1]) for d in widths]
    for function in (
        partial(fit_groups, l2=0.5),
        partial(fit_pooled, l2=0.5),
        partial(leave_one_group_out, pooled=np.zeros(2), l2=0.5),
        partial(learn_online, initial=np.zeros(2), step_size=0.1),
    ):
        with pytest.raises(InputError, match=f"{said}.* features"):
            function(pieces)


def test_no_group_is_nothing_to_learn_with_an_engine_too(tmp_path):
    nobody = Choices(np.empty((0, 2)), [], [0], [], [0])
    on = {"executor": Local(threads=1), "work": tmp_path}
    assert fit_groups(nobody, l2=0.5, **on).shape == (0, 2)
    assert leave_one_group_out(nobody, np.zeros(2), l2=0.5, **on).shape == (0, 2)
    assert learn_online(nobody, np.zeros(2), step_size=0.1, **on).shape == (0, 2)


def test_what_an_engine_learns_lies_in_a_file_and_may_be_let_go(tmp_path):
    choices = random_choices(0)
    alone = learn_online(choices, np.zeros(3), step_size=0.1)
    path = learn_online(
        choices, np.zeros(3), step_size=0.1, executor=Local(threads=1), work=tmp_path
    )
    within = path
    while isinstance(within, np.ndarray):
        within = within.base
    assert isinstance(within, mmap.mmap)
    for _ in range(2):
        np.testing.assert_array_equal(path, alone)
        let_go(path)  # which reads it from the file again


def buckets_of(sizes, d, *, slots, piece):
    """Bytes of each bucket of groups that have so many candidates: features, offsets, results."""
    start = np.concatenate([[0], np.cumsum(sizes)])
    choices = Choices(
        np.zeros((start[-1], d)), np.zeros(start[-1]), start, start[:-1], np.arange(len(start))
    )
    cuts = _cut(choices, SimpleNamespace(slots=slots, piece=piece))
    assert (cuts[0], cuts[-1]) == (0, len(sizes))
    each = 8 * (np.array(sizes) * (d + 1) + 3 * d * d)
    return [each[a:b].sum() for a, b in itertools.pairwise(cuts)], each


def test_buckets_of_groups_are_two_for_each_slot_alike_in_bytes_and_of_a_piece_at_most():
    found, each = buckets_of([5] * 100, 2, slots=3, piece=10**9)
    assert [size // each[0] for size in found] == pytest.approx([100 / 6] * 6, abs=1)
    piece = int(10.5 * each[0])
    found, _ = buckets_of([5] * 100, 2, slots=3, piece=piece)
    assert found == [10 * each[0]] * 10
    # Few groups with most of the candidates, and many whose own results take the most.
    found, each = buckets_of([1] * 30 + [300] * 5 + [1] * 30, 8, slots=2, piece=10**9)
    assert len(found) == 4
    assert max(found) <= each.sum() / 4 + each.max()
    assert min(found) >= each.sum() / 4 - each.max()
    assert found[0] == pytest.approx(each.sum() / 4, rel=0.5)
    found, each = buckets_of([1] * 40, 8, slots=2, piece=6400)
    assert len(found) == -(-each.sum() // 6400)
    assert max(found) <= 6400 + each[0]


@pytest.mark.parametrize("cores", [3, None])  # None: the system does not tell
def test_groups_are_fitted_by_as_many_threads_as_there_are_cores(monkeypatch, cores):
    choices, asked = random_choices(7, groups=5, per_group=4), []

    def pool(threads):
        asked.append(threads)
        return ThreadPoolExecutor(threads)

    alone = fit_groups(choices, l2=1.0)
    monkeypatch.setattr("telic.choice.newton.ThreadPoolExecutor", pool)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    np.testing.assert_array_equal(fit_groups(choices, l2=1.0), alone)
    assert set(asked) == {cores or 1}
    asked.clear()
    leave_one_group_out(choices, alone[0], l2=1.0)
    assert asked == [cores or 1]
