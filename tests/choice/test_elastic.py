from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from tests.held import column, hold

from telic.choice import (
    Elastic,
    FactoredChoices,
    chapter3_algorithm,
    fit_accelerated,
    fit_printed,
    fit_saga,
    fit_sdca,
    minibatch_saga,
)
from telic.choice.accelerated_gradient import _step_sizes
from telic.choice.chapter3_algorithm import smoothness, step_size
from telic.choice.minibatch_saga import _lagged
from telic.choice.sdca import _probabilities, _surely
from telic.errors import InputError


def random_choices(seed=0, n=80, outcomes=5, entries=4, shared=2, widest=4, correlated=False):
    """Random choices; correlated: every context holds every entry, at nearly equal values."""
    rng = np.random.default_rng(seed)
    outcome, start, context, shares = [], [0], [], []
    for _ in range(n):
        size = int(rng.integers(2, widest + 1))
        outcome += list(rng.choice(outcomes, size, replace=False))
        start.append(len(outcome))
        k = entries if correlated else int(rng.integers(0, entries + 1))
        context.append(rng.choice(entries, k, replace=False))
    for _ in outcome:
        shares.append(rng.choice(shared, int(rng.integers(0, shared + 1)), replace=False))
    lengths = np.diff(start)
    values = rng.lognormal(0, 0.05 if correlated else 0.7, sum(map(len, context)))
    return FactoredChoices(
        outcomes,
        entries,
        shared,
        np.array(outcome),
        rng.standard_normal(len(outcome)),
        np.array(start),
        np.array(start[:-1]) + rng.integers(0, lengths),
        np.cumsum([0, *map(len, context)]),
        np.concatenate([[], *context]).astype(int),
        values,
        np.cumsum([0, *map(len, shares)]),
        np.concatenate([[], *shares]).astype(int),
        rng.standard_normal(sum(map(len, shares))),
    )


def dense_scores(choices, w):
    """The definition (3.3.1), row by row."""
    out = []
    for c in range(len(choices)):
        context = range(choices.context_start[c], choices.context_start[c + 1])
        for r in range(choices.start[c], choices.start[c + 1]):
            score = choices.offset[r]
            for e in context:
                j = choices.outcome[r] * choices.entries + choices.context_entry[e]
                score += choices.context_value[e] * w[j]
            for e in range(choices.shared_start[r], choices.shared_start[r + 1]):
                j = choices.outcomes * choices.entries + choices.shared_feature[e]
                score += choices.shared_value[e] * w[j]
            out.append(score)
    return np.array(out)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_scores_and_gradient_follow_the_definition(seed):
    choices = random_choices(seed)
    w = np.random.default_rng(seed).standard_normal(choices.size)
    np.testing.assert_allclose(choices.scores(w), dense_scores(choices, w))
    np.testing.assert_allclose(choices.scores(w), choices.offset + choices.matrix() @ w)
    numeric = optimize.approx_fprime(w, choices.loss, 1e-6)
    np.testing.assert_allclose(choices.gradient(w), numeric, atol=1e-5)
    some = np.random.default_rng(seed).permutation(len(choices))[:7]
    rows = np.concatenate([np.arange(choices.start[c], choices.start[c + 1]) for c in some])
    np.testing.assert_allclose(choices.take(some).scores(w), choices.scores(w)[rows])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"outcome": [0, 0]}, "none twice in a choice"),
        ({"outcome": [0, 9]}, "outcomes must lie in 0..1"),
        ({"outcome": [0, 2]}, "outcomes must lie in 0..1"),
        ({"outcome": [0, -1]}, "outcomes must lie in 0..1"),
        ({"context_entry": [3]}, "context entries"),
        ({"context_entry": [-1]}, "context entries must lie in 0..0, none twice in a row"),
        ({"context_value": [np.nan]}, "context values must be finite"),
        ({"context_value": [2.0, 3.0]}, "context values must be finite, one for each entry"),
        ({"context_start": [0, 2]}, "context_start"),
        ({"context_start": [1, 1]}, "context_start"),
        ({"context_start": [0, 1, 1]}, "context_start"),
        (
            {"entries": 2, "context_start": [0, 2], "context_entry": [1, 1]}
            | {"context_value": [2.0, 3.0]},
            "context entries must lie in 0..1, none twice in a row",
        ),
        (
            {"shared": 1, "shared_start": [0, 1, 1], "shared_feature": [1], "shared_value": [2.0]},
            "shared entries must lie in 0..0",
        ),
        (
            {"shared": 1, "shared_start": [0, 1], "shared_feature": [0], "shared_value": [2.0]},
            "shared_start",
        ),
        ({"offset": [0.0, np.inf]}, "finite"),
        (
            {"outcome": [0.4, 1.0]},
            "outcome is float64 of shape .* expected a list of whole numbers",
        ),
        ({"context_entry": [0.4]}, "context_entry is float64"),
        ({"context_entry": [2**32]}, "context_entry must lie in -2147483648..2147483647"),
        ({"outcome": [0, 2**32 + 1]}, "outcome must lie in"),
        (
            {"shared": 2, "shared_start": [0, 2, 1], "shared_feature": [0], "shared_value": [2.0]},
            "shared_start must ascend",
        ),
    ],
)
def test_bad_factored_choices_are_refused(change, message):
    good = {
        "outcomes": 2,
        "entries": 1,
        "shared": 0,
        "outcome": [0, 1],
        "offset": [0.0, 0.0],
        "start": [0, 2],
        "chosen": [1],
        "context_start": [0, 1],
        "context_entry": [0],
        "context_value": [2.0],
    }
    with pytest.raises(InputError, match=message):
        FactoredChoices(**(good | change))


@given(w=st.floats(-5, 5), step=st.floats(1e-3, 5), l1=st.floats(0, 2), l2=st.floats(1e-6, 2))
@settings(max_examples=50)
def test_prox_minimises_its_definition(w, step, l1, l2):
    penalty = Elastic(l1, l2)

    def objective(u):
        return (u - w) ** 2 / (2 * step) + l1 * abs(u) + l2 / 2 * u**2

    best = float(penalty.prox(np.array([w]), step)[0])
    assert objective(best) <= min(map(objective, np.linspace(-6, 6, 401))) + 1e-9


@given(
    w=st.floats(-3, 3),
    g=st.floats(-2, 2),
    step=st.floats(1e-3, 2),
    l1=st.floats(0, 1),
    l2=st.floats(1e-5, 1),
    m=st.integers(0, 300),
)
@settings(max_examples=100)
@example(w=1.0, g=5e-324, step=1.0, l1=0.0, l2=1.0, m=1)
def test_steps_made_up_in_closed_form_equal_the_steps_one_by_one(w, g, step, l1, l2, m):
    one_by_one = np.array([w])
    for _ in range(m):
        one_by_one = Elastic(l1, l2).prox(one_by_one - step * g, step)
    assert _lagged(w, g, step, l1, l2, m) == pytest.approx(one_by_one[0], rel=1e-7, abs=1e-9)


def independent_optimum(choices, penalty):
    """L-BFGS-B on w = positive - negative part."""
    d = choices.size

    def value(z):
        w = z[:d] - z[d:]
        slope = choices.gradient(w) + penalty.l2 * w
        value = choices.loss(w) + penalty.l2 / 2 * w @ w + penalty.l1 * z.sum()
        return value, np.concatenate([slope + penalty.l1, -slope + penalty.l1])

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10}
    found = optimize.minimize(
        value,
        np.zeros(2 * d),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * (2 * d),
        options=options,
    )
    return penalty.objective(choices, found.x[:d] - found.x[d:])


@pytest.mark.parametrize("penalty", [Elastic(1e-3, 1e-2), Elastic(1e-2, 1e-3), Elastic(0.0, 1e-2)])
def test_all_methods_reach_one_optimum(penalty):
    choices = random_choices(3)
    best = independent_optimum(choices, penalty)
    fits = [
        fit_accelerated(choices, penalty, max_passes=20_000),
        fit_saga(choices, penalty, batch_size=1, max_passes=600),
        fit_sdca(choices, penalty, max_passes=2000, tol=1e-9),
        fit_saga(choices, penalty, batch_size=10, max_passes=600),
        fit_saga(choices, penalty, batch_size=80, max_passes=2000),
        fit_printed(choices, penalty, batch_size=5, max_passes=1000),
    ]
    for fit in fits:
        gap = (penalty.objective(choices, fit.weights) - best) / best
        assert -1e-8 < gap < 1e-6, fit.method
        assert fit.objective == pytest.approx(penalty.objective(choices, fit.weights))
    assert penalty.violation(choices, fits[0].weights) < 1e-6


def test_the_printed_step_diverges_for_batches_and_the_corrected_does_not():
    choices = random_choices(1, n=60, outcomes=3, entries=6, shared=1, widest=3, correlated=True)
    penalty = Elastic(1e-4, 1e-4)
    start = penalty.objective(choices, np.zeros(choices.size))
    wild = fit_printed(
        choices, penalty, batch_size=30, max_passes=30, rule="printed", every_coordinate=True
    )
    tame = fit_printed(choices, penalty, batch_size=30, max_passes=300, every_coordinate=True)
    assert not wild.objective < start
    assert tame.objective < start
    printed_single = fit_printed(choices, penalty, batch_size=1, max_passes=30, rule="printed")
    assert printed_single.objective < start


def test_step_sizes_use_true_lipschitz_constants():
    choices = random_choices(2)
    mean, largest = smoothness(choices, 0.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        a, b = rng.standard_normal((2, choices.size))
        change = np.linalg.norm(choices.gradient(a) - choices.gradient(b))
        assert change <= mean * np.linalg.norm(a - b)
    assert mean <= largest
    with pytest.raises(InputError, match="method='saga'"):
        fit_printed(random_choices(n=9, outcomes=500, entries=9), Elastic())
    assert step_size(
        "printed", n=9, batch_size=1, mean_lipschitz=1.0, max_lipschitz=1.0, mu=0.0
    ) == pytest.approx(0.5)


def test_accelerated_steps_do_not_depend_on_the_offset():
    choices = random_choices(2)
    without = replace(choices, offset=np.zeros_like(choices.offset))
    steps, passes = _step_sizes(choices)
    np.testing.assert_allclose(steps, _step_sizes(without)[0], rtol=1e-12)
    assert (steps > 0).all()
    assert passes > 0


def test_the_corrected_step_goes_from_the_largest_constant_to_the_mean_one():
    def step(batch_size, n=7, mu=0.3):
        given = {"mean_lipschitz": 2.5, "max_lipschitz": 20.0, "mu": mu}
        return step_size("corrected", n=n, batch_size=batch_size, **given)

    # Batches without replacement: E|sum over b of n|^2 / b mixes the two by (b - 1) : (n - b) / n.
    for b in range(1, 8):
        smooth = (7 * (b - 1) * 2.5 + (7 - b) * 20.0) / (6 * b)
        noise = (7 - b) * 20.0 / (6 * b) + 0.3 * 7 / (4 * b)
        assert step(b) == pytest.approx(1 / (4 * max(smooth, noise)))
    assert step(1, mu=0.0) == pytest.approx(1 / 80)
    assert step(7, mu=0.0) == pytest.approx(1 / 10)


def test_a_strong_penalty_gives_exact_zeros_and_equal_seeds_equal_fits():
    choices = random_choices(4)
    assert not fit_saga(choices, Elastic(10.0, 1e-3), max_passes=3).weights.any()
    again = [fit_saga(choices, Elastic(), max_passes=3, seed=5).weights for _ in range(2)]
    np.testing.assert_array_equal(*again)
    with pytest.raises(InputError, match="l2 is 0"):
        Elastic(0.0, 0.0)
    with pytest.raises(InputError, match="l1 is -1"):
        Elastic(-1.0, 1.0)


@given(
    linear=st.lists(st.floats(-40, 40), min_size=1, max_size=8),
    log_a=st.floats(-20, 8),
    seed=st.integers(0, 99),
)
@settings(max_examples=200)
@pytest.mark.parametrize("solve", [_probabilities, _surely])
def test_the_dual_step_meets_its_condition_of_optimality(solve, linear, log_a, seed):
    linear, a = np.array(linear), np.exp(log_a)
    p = np.random.default_rng(seed).dirichlet(np.full(len(linear), 0.1))
    solve(linear, a, p)
    assert p.sum() == pytest.approx(1)
    level = linear - a * p - np.log(np.maximum(p, 1e-300))
    some = p > 1e-12
    np.testing.assert_allclose(level[some], level[some][0], atol=1e-6 * max(1.0, a))


def test_the_dual_gap_bounds_the_true_one_after_every_pass():
    choices, penalty = random_choices(6), Elastic(1e-3, 1e-2)
    best = independent_optimum(choices, penalty)
    for passes in (1, 2, 5, 20):
        fit = fit_sdca(choices, penalty, max_passes=passes, tol=0.0)
        assert fit.gap >= fit.objective - best - 1e-12
    assert fit_sdca(choices, penalty, tol=1e-4).gap < 1e-4 * best
    alone = FactoredChoices(2, 0, 0, [0, 1], [0.0, 1.0], [0, 2], [1], [0, 0], [], [])
    assert fit_sdca(alone, penalty).objective == pytest.approx(np.log1p(np.exp(-1)))


def made_up_phones(n=480, queries=40, apps=60, installed=30, seed=0):
    """Few choices, each of a phone with many apps that cause some of them: l2 n is small."""
    rng = np.random.default_rng(seed)
    outcome = np.concatenate([rng.choice(queries, 8, replace=False) for _ in range(n)])
    start = np.arange(n + 1) * 8
    context = np.concatenate([rng.choice(apps, installed, replace=False) for _ in range(n)])
    value = np.log1p(rng.lognormal(0, 1, n * installed))
    empty = FactoredChoices(
        queries,
        apps,
        0,
        outcome,
        rng.normal(size=8 * n),
        start,
        start[:-1],
        np.arange(n + 1) * installed,
        context,
        value / value.std(),
    )
    truth = rng.normal(size=empty.size) * (rng.random(empty.size) < 0.05)
    noisy = empty.scores(truth) + rng.gumbel(size=empty.rows)
    return replace(empty, chosen=start[:-1] + noisy.reshape(n, 8).argmax(axis=1))


@pytest.mark.parametrize("seed", [0, 1])
def test_few_choices_cost_sdca_few_passes(seed):
    """Plain ascent would take mean |x_c|^2 / (l2 n) of them, which is in the thousands here."""
    choices, penalty = made_up_phones(seed=seed), Elastic(1e-4, 1e-4)
    square = sum(choices.context_value**2) / len(choices)
    assert square / (penalty.l2 * len(choices)) > 1000
    fit = fit_sdca(choices, penalty, tol=1e-3)
    assert fit.converged
    assert fit.passes <= 45  # 57 if the momentum never started again
    exact = fit_sdca(choices, penalty, tol=1e-9)
    assert exact.passes <= 150  # 306
    assert 0 <= fit.objective - exact.objective <= fit.gap


@pytest.mark.parametrize("passes", [1, 2, 3, 7])
def test_no_return_is_worse_than_zero_weights(passes):
    choices, penalty = made_up_phones(n=60), Elastic(1e-5, 1e-5)
    start = penalty.objective(choices, np.zeros(choices.size))
    for fit in (
        fit_sdca(choices, penalty, max_passes=passes, tol=0.0),
        fit_saga(choices, penalty, max_passes=passes),
        fit_accelerated(choices, penalty, max_passes=12 + passes, tol=0.0),
    ):
        assert fit.objective <= start
        assert fit.objective == pytest.approx(penalty.objective(choices, fit.weights))
        assert fit.gap >= fit.objective - fit_sdca(choices, penalty, tol=1e-4).objective


def test_a_gap_that_is_missed_is_said_and_one_that_is_not_asked_for_is_not():
    choices, penalty = random_choices(3), Elastic(1e-3, 1e-3)
    for fit in (
        lambda **options: fit_sdca(choices, penalty, **options),
        lambda **options: fit_saga(choices, penalty, **options),
        lambda **options: fit_accelerated(choices, penalty, **options),
    ):
        with pytest.warns(ConvergenceWarning, match="a duality gap of .*, above the .* asked for"):
            missed = fit(max_passes=14, tol=1e-12)
        assert not missed.converged
        assert missed.gap > missed.target
        assert fit(max_passes=14, tol=0.0).target == 0
        assert fit(max_passes=20_000, tol=1e-3).converged


def test_what_is_not_worth_its_penalty_converges_at_zero_weights():
    choices = random_choices(3)
    for penalty in (Elastic(10.0, 1e-3), Elastic(10.0, 1e3)):
        for fit in (fit_sdca(choices, penalty), fit_accelerated(choices, penalty)):
            assert fit.converged
            assert not fit.weights.any()


def test_choices_that_the_offset_has_decided_need_no_gap_below_rounding():
    choices = random_choices(1)
    offset = np.zeros(choices.rows)
    offset[choices.chosen] = 25.0
    decided = replace(choices, offset=offset)
    for method in (fit_sdca, fit_saga, fit_accelerated):
        fit = method(decided, Elastic(1e-3, 10.0))
        assert fit.converged
        assert fit.passes <= 30


def test_where_there_is_nothing_to_choose_from_one_look_is_enough():
    """The objective is 0 at zero weights, and so is the gap that is asked for."""
    alone = FactoredChoices(
        2,
        1,
        0,
        [0, 1],
        [0.0, 0.0],
        [0, 1, 2],
        [0, 1],
        [0, 1, 2],
        [0, 0],
        [1.0, 2.0],
        [0, 0, 0],
        [],
        [],
    )
    for method in (fit_sdca, fit_saga, fit_accelerated):
        fit = method(alone, Elastic(1e-4, 1e-4))
        assert fit.converged
        assert fit.gap == fit.objective == 0
        assert fit.passes <= 30


@pytest.mark.parametrize("step", [1e-18, 1e-9])
def test_steps_too_short_to_be_seen_beside_one_are_made_up_too(step):
    """1 + step * l2 is 1 there; the slope is large enough to move the weight all the same."""
    w, g, l2, m = 1.0, 0.3 / step, 0.5, 3
    assert _lagged(w, g, step, 0.0, l2, m) == pytest.approx(w - m * step * g, abs=1e-8)


@given(seed=st.integers(0, 10_000), share=st.floats(0, 1))
@settings(max_examples=20)
def test_any_probabilities_bound_the_optimum_from_below(seed, share):
    choices, penalty = random_choices(seed, n=10), Elastic(1e-2, 1e-2)
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.dirichlet(np.full(m, 0.3)) for m in np.diff(choices.start)])
    p *= share
    p[choices.chosen] += 1 - share
    best = fit_sdca(choices, penalty, tol=1e-10)
    assert penalty.bound(choices, p, choices.slope(p)) <= best.objective + 1e-12
    own = choices.probabilities(best.weights)
    assert penalty.bound(choices, own, choices.slope(own)) >= best.objective - 1e-6
    assert penalty.gap(choices, best.weights) < 1e-6
    np.testing.assert_allclose(choices.slope(own), -choices.gradient(best.weights), atol=1e-14)


def test_no_passes_and_no_batch_are_refused():
    choices, penalty = random_choices(), Elastic(1e-3, 1e-2)
    for name in ("batch_size", "max_passes"):
        for fit in (fit_saga, fit_printed):
            with pytest.raises(InputError, match=f"{name} is 0, expected a whole number >= 1"):
                fit(choices, penalty, **{name: 0})
    with pytest.raises(InputError, match="max_passes is 0, expected a whole number >= 1"):
        fit_sdca(choices, penalty, max_passes=0)
    with pytest.raises(InputError, match="max_passes is 12, expected more than 12"):
        fit_accelerated(choices, penalty, max_passes=12)
    with pytest.raises(InputError, match="rule is 'longer', expected one of printed, corrected"):
        fit_printed(choices, penalty, rule="longer")


@pytest.mark.parametrize("fit", [fit_saga, fit_sdca, fit_accelerated, fit_printed])
def test_no_choice_at_all_is_refused(fit):
    none = random_choices().take(np.zeros(0, int))
    with pytest.raises(InputError, match="choices holds no choice"):
        fit(none, Elastic())


@pytest.mark.parametrize("fit", [fit_saga, fit_sdca, fit_accelerated, fit_printed])
def test_where_no_candidate_has_a_feature_the_weights_are_zero(fit):
    bare = FactoredChoices(2, 1, 0, [0, 1], [0.0, 1.0], [0, 2], [0], [0, 0], np.zeros(0, int), [])
    found = fit(bare, Elastic())
    assert not found.weights.any()
    assert found.gap == pytest.approx(0, abs=1e-12)


def test_numbers_that_are_too_few_are_refused_and_not_looked_for_elsewhere():
    choices = random_choices()
    for call in (choices.scores, choices.probabilities, choices.loss, choices.gradient):
        with pytest.raises(InputError, match=r"weights has shape \(3,\), expected \(22,\)"):
            call(np.zeros(3))
    with pytest.raises(InputError, match=r"residual has shape \(1,\), expected"):
        choices.transposed(np.ones(1))


@pytest.mark.parametrize("fit", [fit_saga, fit_sdca, fit_accelerated, fit_printed])
def test_progress_is_told_pass_by_pass(fit):
    told = []
    fit(
        random_choices(),
        Elastic(1e-3, 1e-2),
        max_passes=40,
        progress=told.append,
        **({} if fit is fit_printed else {"tol": 0.0}),
    )
    first = int(told[0].split()[1])
    assert told == [f"pass {done} of 40" for done in range(first, 41)]


def test_passes_that_only_went_up_are_given_back_for_zero_weights(monkeypatch):
    choices, penalty = random_choices(), Elastic(1e-3, 1e-2)
    safe = minibatch_saga._step_sizes
    monkeypatch.setattr(minibatch_saga, "_step_sizes", lambda *given: 1e4 * safe(*given))
    found = fit_saga(choices, penalty, max_passes=1, tol=0.0)
    assert not found.weights.any()
    (_, at_zero), (_, up), (passes, last) = found.history
    assert up > at_zero == last == penalty.objective(choices, found.weights)
    assert passes == 2.0


def test_the_printed_algorithm_takes_so_many_weights_and_no_more(monkeypatch):
    choices = random_choices(2, n=5)
    monkeypatch.setattr(chapter3_algorithm, "MAX_SIZE", choices.size)
    assert fit_printed(choices, Elastic(), max_passes=1).passes == 2.0
    monkeypatch.setattr(chapter3_algorithm, "MAX_SIZE", choices.size - 1)
    with pytest.raises(InputError, match=f"{choices.size} weights: .* at most {choices.size - 1}"):
        fit_printed(choices, Elastic(), max_passes=1)


WAYS = Path(__file__).parent / "ways"
FITS = {
    "sdca": (fit_sdca, {"max_passes": 12}),
    "sdca to a gap": (fit_sdca, {"tol": 1e-4}),
    "saga": (fit_saga, {"batch_size": 10, "max_passes": 8, "tol": 0.0}),
    "saga row by row": (fit_saga, {"batch_size": 1, "max_passes": 40, "tol": 1e-2}),
    "accelerated": (fit_accelerated, {"max_passes": 60, "tol": 1e-4}),
    "printed": (fit_printed, {"batch_size": 5, "max_passes": 3, "rule": "printed"}),
    "corrected": (fit_printed, {"batch_size": 7, "max_passes": 3, "every_coordinate": True}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_the_way_of_each_fit_to_its_optimum_is_held_to_a_file(name):
    """Constants that change nothing else."""
    fit, options = FITS[name]
    found = []
    data = {"few": random_choices(3), "alike": random_choices(1, n=60, correlated=True)}
    if fit is not fit_printed:
        data["phones"] = made_up_phones(n=80)
        data["context alone"] = made_up_phones(n=60, queries=12, apps=20, installed=6)
    for (which, choices), l2 in product(data.items(), (1e-4, 1e-2)):
        result = fit(choices, Elastic(1e-3, l2), **options)
        # A run that diverges has no digits to hold.
        looks = [[passes, float(value)] for passes, value in result.history if value < 1e3]
        ends = [result.passes, float(result.gap) if result.gap > 1e-6 else 0]
        found.append([which, l2, looks, ends, column(result.weights) if looks else []])
    hold(WAYS / f"{name.replace(' ', '_')}.jsonl", found, digits=5)
