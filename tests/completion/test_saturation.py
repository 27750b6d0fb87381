"""Feedback has bounds that no number and length of lists goes beyond; as printed it has none."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import BOUNDED, CAREFUL, PAPER, Completer, PrefixIndex, Relevance, Replay
from telic.completion.evaluation.json_facts import most_feedback
from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.feedback import Feedback
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID
from telic.completion.learning.saturation import D, Saturation, bounded, limits
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.errors import InputError
from telic.evaluate import paired_t_test, reciprocal_ranks
from telic.simulate import SETTINGS, read_catalogue, simulate_typists

numbers = st.floats(-50, 50)


@given(st.lists(numbers, min_size=D + 1, max_size=D + 1), st.floats(0.01, 20))
def test_bounded_feedback_keeps_its_sign_and_its_parts_their_shares(parts, bound):
    parts = np.array([parts])
    found = bounded(parts.copy(), bound)
    total = parts[0, :D].sum()
    assert found[0, :D].sum() == pytest.approx(np.clip(total, -bound, bound), abs=1e-9)
    assert found[0, D] == parts[0, D]  # the relevance is no feedback
    if abs(total) <= bound:
        assert found == pytest.approx(parts)
    assert bounded(parts.copy(), np.inf).tolist() == parts.tolist()


def test_caps_are_what_the_log_knows():
    rng = np.random.default_rng(0)
    rows = rng.exponential(size=(500, D)) * (rng.random((500, D)) < 0.4)
    rows[:, 3] = 0.0
    caps = Saturation(0.9, 1.0).caps(rows)
    for column, cap in zip(rows.T, caps, strict=True):
        assert ((column[column > 0] <= cap).mean() if cap else 0.9) == pytest.approx(0.9, abs=0.01)
    assert caps[3] == 0.0


@given(
    st.integers(0, 10_000),
    st.sampled_from([0.3, 2.0, np.inf]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, -np.inf, np.inf]),
)
@settings(max_examples=60)
def test_the_kernel_of_a_keystroke_weighs_as_the_definition_does(seed, bound, capped, learn, odd):
    rng = np.random.default_rng(seed)
    caps = rng.uniform(0.1, 2, D) if capped else np.full(D, np.inf)
    design = FeedbackDesign(rng.uniform(0.5, 2, D), learn, caps, bound)
    weights, relevance = rng.normal(size=D + learn), np.array([0.5, odd, -2.0])
    feedback = Feedback(previous=0)
    for prefix in (b"te", b"tea", b"tea "):
        feedback.observe(prefix, [1, 0], dwell=rng.exponential(), texts=[b"tea pot", b"tea"])
    rows, columns, parts, added = feedback.weighed(np.arange(3), relevance, design, weights)
    assert rows.tolist() == feedback.features(np.arange(3)).tolist()
    assert columns == pytest.approx(design.columns(rows, relevance))
    assert parts == pytest.approx(design.parts(columns.copy(), weights))
    assert added == pytest.approx(parts.sum(axis=1))


@pytest.mark.parametrize("learn", [False, True])
def test_suggestions_at_the_bound_keep_their_order_to_the_last_bit(learn):
    """Their feedback differs and lies beyond the bound; their relevance is the same."""
    design = FeedbackDesign(np.ones(D), learn, np.full(D, np.inf), 0.3)
    relevance = np.full(20, 1.7)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights = -rng.uniform(0.1, 1, D + learn)
        feedback = Feedback()
        for _ in range(5):
            shown = rng.permutation(20).astype(np.int32)
            feedback.observe(b"t", shown, dwell=rng.exponential(), texts=[b"tea"] * 20)
        rows, _, parts, added = feedback.weighed(np.arange(20), relevance, design, weights)
        assert (np.abs((rows * weights[:D]).sum(axis=1)) > 0.3).all()
        assert len(np.unique(added)) == 1
        assert len(np.unique(design.scores(rows[None], relevance[None], weights))) == 1
        assert parts[:, :D].sum(axis=1) == pytest.approx(np.full(20, -0.3))


@given(st.integers(0, 10_000), st.sampled_from([0.3, 2.0, np.inf]), st.booleans())
@settings(max_examples=40)
def test_no_list_and_no_composition_moves_more_than_the_limits(seed, bound, capped):
    rng = np.random.default_rng(seed)
    weights, deviations = rng.normal(size=D), rng.uniform(0.5, 2, D)
    caps = rng.uniform(0.1, 4, D) if capped else np.full(D, np.inf)
    design = FeedbackDesign(deviations, False, caps, bound)
    by_list, whole = limits(weights, deviations, caps, bound)
    feedback, before = Feedback(previous=int(rng.integers(4))), np.zeros(4)
    texts = [b"tea", b"tea pot", b"te", b"t-shirt"]
    for _ in range(30):
        shown = rng.permutation(4)[: rng.integers(1, 5)].tolist()
        prefix = [b"t", b"te", b"tea", b"tea ", b"t-"][rng.integers(5)]
        feedback.observe(prefix, shown, dwell=rng.exponential(2), texts=[texts[i] for i in shown])
        columns = design.columns(feedback.features(range(4)), np.zeros(4))
        now = design.parts(columns, weights).sum(axis=1)
        assert (np.abs(now - before) <= by_list + 1e-9).all()
        assert (np.abs(now) <= whole + 1e-9).all()
        before = now
    assert np.isfinite(whole) == (capped or bound < np.inf)


def slow_box(design):
    """Each second that a suggestion is shown, and each list it led, costs it."""
    weights = np.zeros(D)
    weights[1], weights[6] = -0.5, -0.3
    return Completer(
        PrefixIndex.build([f"new {c}" for c in "abcdefghij"], np.linspace(7.1, 5.0, 10)),
        Relevance("mpc"),
        design,
        weights,
        {},
        Gate.always(0),
        "adaqac-unp",
        10,
        0.1,
        "careful",
        False,
    )


def typed_slowly(box, keys=25):
    composition = box.compose(box.user())
    for key in range(keys):  # types and deletes a letter, 1.4 s each, and chooses nothing
        shown = composition.suggest("new" if key % 2 else "ne", at=1.4 * key)
    return [s.text for s in shown], [s.feedback for s in shown]


def test_a_slow_typist_sees_the_static_order_where_all_were_skipped_alike():
    order = [f"new {c}" for c in "abcdefghij"]
    printed, fed_back = typed_slowly(slow_box(FeedbackDesign(np.ones(D), False)))
    assert printed.index("new a") > 5  # the most popular sinks on and on
    assert min(fed_back) < -15
    bound = FeedbackDesign(np.ones(D), False, np.full(D, 3.0), 0.5)
    text, fed_back = typed_slowly(slow_box(bound))
    assert text == order
    assert fed_back == pytest.approx([-0.5] * 10)


def test_explanations_add_up_to_the_bounded_feedback():
    composition = (
        box := slow_box(FeedbackDesign(np.ones(D), False, np.full(D, 3.0), 0.5))
    ).compose(box.user())
    for key in range(5):
        shown = composition.suggest("new", at=1.4 * key)
    for suggestion in shown:
        assert sum(suggestion.explain().reasons.values()) == pytest.approx(suggestion.feedback)


def test_the_box_keeps_its_bounds_and_older_ones_have_none(tmp_path):
    box = slow_box(FeedbackDesign(np.ones(D), False, np.arange(D) / 4, 0.5))
    box.save(tmp_path / "box")
    kept = Completer.load(tmp_path / "box").design
    assert kept.bound == 0.5
    assert kept.caps.tolist() == box.design.caps.tolist()
    assert most_feedback(box) == pytest.approx([0.425, 0.5])
    free = slow_box(FeedbackDesign(np.ones(D), False))
    free.save(tmp_path / "free")
    assert Completer.load(tmp_path / "free").design.bound == np.inf
    said = most_feedback(free)
    assert said == [pytest.approx(1.8), "no bound"]
    json.dumps(said, allow_nan=False)


def test_printed_and_careful_have_no_bounds(toy_log):
    replay = Replay(toy_log, min_compositions=4)
    last = replay.moments(Relevance.named("mpc"), replay.last_keystrokes(TRAIN))
    features = replay.features(last)
    for protocol in (PAPER, CAREFUL):
        design = FeedbackDesign.of(protocol, [(last, features)])
        assert (design.caps == np.inf).all()
        assert design.bound == np.inf
    design = FeedbackDesign.of(BOUNDED, [(last, features)])
    assert design.bound == 0.5
    scaled = design.scaled(features) * design.deviations
    assert (scaled <= design.caps).all()
    for weights in (np.ones(D + 1), -np.ones(D + 1)):
        there = last.candidates >= 0
        bare = np.where(there, 2 * last.relevance if weights[0] > 0 else 0.0, 0.0)
        moved = np.where(there, design.scores(features, last.relevance, weights), 0.0) - bare
        assert np.abs(moved).max() <= 0.5 + 1e-9


@pytest.mark.parametrize(("quantile", "bound"), [(0, 1), (1.1, 1), (0.5, 0), (0.5, np.inf)])
def test_bounds_must_be_bounds(quantile, bound):
    with pytest.raises(InputError, match=r"expected a( finite)? number"):
        Saturation(quantile, bound)


@pytest.mark.slow
def test_slow_fast_distracted_and_screen_reader_typists_keep_what_the_static_order_gave():
    """Simulated, fitted on calibrated typists, without gate and check: bounds alone."""
    catalogue, calibrated = read_catalogue(None), SETTINGS["calibrated"]
    kinds = {
        "slow": {"key_seconds": (1.4, 1.4)},
        "slow, never looks": {"key_seconds": (1.4, 1.4), "attention": 0.02},
        "fast": {"key_seconds": (0.07, 0.07)},
        "distracted": {"hesitation_share": 0.25, "hesitation_seconds": 4.0, "attention": 0.3},
        "screen reader": {"key_seconds": (0.3, 0.3), "read_seconds": 0.9, "attention": 0.95},
    }

    earlier = read_queries(
        catalogue.as_queries(simulate_typists(catalogue, users=1, compositions=1))
    )

    def replay_of(setting, seed, users, compositions):
        log = simulate_typists(
            catalogue, users=users, compositions=compositions, setting=setting, seed=seed
        )
        return Replay(read_compositions(log), queries=earlier)

    replay = replay_of(calibrated, 7, 40, 40)
    relevance = fit_relevance(replay, "mpc", CAREFUL)
    fitted = {
        protocol.name: fit_models(replay, relevance, replace(protocol, do_no_harm=False))
        for protocol in (BOUNDED, CAREFUL)
    }
    lost = {}
    for kind, changes in kinds.items():
        other = replay_of(replace(calibrated, **changes), 8, 30, 20)
        moments = other.moments(relevance, other.every_keystroke(TRAIN, VALID, TEST))
        features, user = other.features(moments), other.log.user[moments.composition]
        static = reciprocal_ranks(moments.relevance, moments.position)
        for name, models in fitted.items():
            scores = models.design.scores(features, moments.relevance, models.everyone)
            test = paired_t_test(reciprocal_ranks(scores, moments.position), static, user)
            lost[name, kind] = test
    for kind in kinds:
        assert lost["bounded", kind].difference > -0.004, (kind, lost["bounded", kind])
    assert lost["careful", "slow, never looks"].high < -0.01  # what the bounds are for
