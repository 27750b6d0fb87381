from copy import copy
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from telic.choice import fit_pooled
from telic.completion import CAREFUL, PAPER, Replay, evaluate
from telic.completion.evaluation.adaqac_evaluation import (
    PREFIXES,
    evaluate_models,
    measures,
    slices_of,
)
from telic.completion.fit import log_parts, models
from telic.completion.fit.from_compositions import completer_of
from telic.completion.fit.models import LEAST, MODELS, fit_models, fit_relevance
from telic.completion.learning.adaqac import (
    FeedbackDesign,
    online,
    training_choices,
    unpersonalised,
)
from telic.completion.learning.do_no_harm import PREFIX_BINS, Gate, bin_of
from telic.completion.learning.feedback import LONGEST_AT, WIDTH
from telic.completion.learning.filtering_qac import Filtering, tune_filtering
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID, RankedKeystrokes
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks
from telic.simulate import Catalogue, simulate_typists


@pytest.fixture(scope="module")
def catalogue():
    """Many phrases behind few first letters, so that what is wanted is often not at the top."""
    rng = np.random.default_rng(0)
    letters = [[*"abc"][i] for i in rng.integers(0, 3, 400 * 12)]
    phrases = sorted({"".join(letters[12 * i : 12 * i + 12]) for i in range(400)})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


@pytest.fixture(scope="module")
def readers(catalogue):
    """Typists who read lists and dwell in proportion: there is something to learn."""
    log = simulate_typists(catalogue, setting="readers", users=24, compositions=40, seed=1)
    return Replay(read_compositions(log), queries=read_queries(catalogue.as_queries(log)))


@pytest.fixture(scope="module")
def fitted(readers):
    return fit_models(readers, fit_relevance(readers, "mpc", CAREFUL), CAREFUL)


def test_a_long_log_is_learned_from_in_runs_of_users(readers, fitted, monkeypatch):
    """The same but for rounding, and the weights of users are in the order of users."""
    monkeypatch.setattr(models, "RUN", 200)
    monkeypatch.setattr(log_parts, "RUN", 200)
    monkeypatch.setattr(log_parts, "CHUNK", 70)
    keystrokes = readers.last_keystrokes(TRAIN, TEST)
    runs = readers.runs(keystrokes[::-1], 90)
    assert [run.first for run in runs[1:]] == [run.last for run in runs[:-1]]
    assert (runs[0].first, runs[-1].last, len(runs)) == (0, 24, 8)
    owner = np.searchsorted(readers.log.keystroke_start, keystrokes, side="right") - 1
    for run in runs:
        user = readers.log.user[owner[np.isin(keystrokes, run.keystrokes)]]
        assert {*user} == {*range(run.first, run.last)}
    (first, _, _), *more = readers.runs(keystrokes[readers.log.user[owner] < 9], 10)
    assert (first, more[-1].last) == (0, 24)
    assert all(len(run.keystrokes) for run in more)
    relevance = fit_relevance(readers, "mpc", CAREFUL)
    found = fit_models(readers, relevance, CAREFUL)
    np.testing.assert_allclose(relevance.deviations, fitted.relevance.deviations)
    assert (found.l2, found.step_size) == (fitted.l2, fitted.step_size)
    assert found.filtering == fitted.filtering
    for name in ("everyone", "without", "personal", "online", "latest"):
        expected = getattr(fitted, name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-6, atol=1e-9)
    for name in ("walked", "steps", "updates"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fitted, name))
    for name, gate in found.gates.items():
        np.testing.assert_allclose(gate.p_values, fitted.gates[name].p_values, rtol=1e-6)
        np.testing.assert_array_equal(gate.users, fitted.gates[name].users)
    served, expected = (completer_of(readers, m, "adaqac-online").users for m in (found, fitted))
    assert [served[u].check for u in served] == [expected[u].check for u in expected]


def moments_of(position, n=3):
    t = len(position)
    relevance = np.tile(-np.arange(float(n)), (t, 1))
    ids = np.tile(np.arange(n, dtype=np.int32), (t, 1))
    return RankedKeystrokes(
        np.arange(t),
        np.arange(t),
        ids,
        relevance,
        np.zeros((t, n, 3)),
        np.array(position),
        np.ones((t, n), bool),
    )


def test_filtering_drops_what_was_high_and_long():
    features = np.zeros((1, 3, WIDTH))
    features[0, 0, LONGEST_AT] = 1.2  # at position 1
    features[0, 1, LONGEST_AT + 2] = 2.5  # at position 3
    relevance = np.array([[3.0, 2.0, 1.0]])
    dropped = np.isneginf(Filtering(1.2, 1).scores(features, relevance))
    assert dropped.tolist() == [[True, False, False]]
    dropped = np.isneginf(Filtering(1.3, 3).scores(features, relevance))
    assert dropped.tolist() == [[False, True, False]]


@pytest.mark.parametrize(("worth", "kept"), [(0.0, 1.0), (-1.0, LEAST)])
def test_popularity_keeps_some_weight_and_wins_ties(readers, monkeypatch, worth, kept):
    """However little popularity helps here, those without a history need it."""
    tried = []
    moments = Replay.moments

    def seen(replay, relevance, *arguments, **options):
        tried.append(relevance.popular)
        return moments(replay, relevance, *arguments, **options)

    monkeypatch.setattr(Replay, "moments", seen)
    monkeypatch.setattr(models, "mean_reciprocal_rank", lambda ranks: worth * tried[-1])
    found = fit_relevance(readers, "personal-s", CAREFUL)
    assert found.popular == pytest.approx(kept)
    assert found.personal == pytest.approx(1 - kept)


def test_filtering_is_tuned_on_all_300_pairs():
    features = np.zeros((2, 3, WIDTH))
    features[:, 0, LONGEST_AT + 1] = 0.75  # the wrong first candidate was read at position 2
    features[:, 1, LONGEST_AT + 4] = 0.75  # so was the wanted one, at position 5
    best, grid = tune_filtering([(moments_of([1, 1]), features)])
    assert grid.shape == (30, 10)
    assert best == Filtering(0.7, 2)
    assert grid.max() == 1.0
    assert grid[0, 9] == 0.0  # dropping both loses the wanted query


def test_training_choices_keep_or_leave_out_unlisted_queries(readers):
    relevance = fit_relevance(readers, "mpc", PAPER)
    last = readers.moments(relevance, readers.last_keystrokes(TRAIN), n=3)
    features = readers.features(last)
    design = FeedbackDesign.of(PAPER, [(last, features)])
    unlisted = int((last.position < 0).sum())
    assert unlisted > 0
    kept, row = training_choices(
        readers, last, features, design, relevance=relevance, keep_unlisted=True
    )
    assert len(kept) == len(row) == len(last)
    left, _ = training_choices(
        readers, last, features, design, relevance=relevance, keep_unlisted=False
    )
    assert len(left) == len(last) - unlisted
    assert np.diff(kept.start).max() == 4  # three candidates and the union's fourth
    listed = last.position[row] >= 0
    np.testing.assert_array_equal(
        (kept.chosen - kept.start[:-1])[listed], last.position[row][listed]
    )


def test_average_of_personal_weights_leaves_one_out(readers):
    relevance = fit_relevance(readers, "mpc", CAREFUL)
    last = readers.moments(relevance, readers.last_keystrokes(TRAIN))
    features = readers.features(last)
    choices, _ = training_choices(
        readers,
        last,
        features,
        FeedbackDesign.of(CAREFUL, [(last, features)]),
        relevance=relevance,
        keep_unlisted=False,
    )
    everyone, without = unpersonalised(choices, l2=1.0, variant="average")
    np.testing.assert_allclose(without.mean(axis=0), everyone)
    pooled, left = unpersonalised(choices, l2=1.0)
    np.testing.assert_allclose(pooled, fit_pooled(choices, l2=1.0))
    assert 0 < abs(left - pooled).max() < 0.5


def test_online_scores_each_composition_before_it_learns_from_it(readers):
    relevance = fit_relevance(readers, "mpc", CAREFUL)
    last = readers.moments(relevance, readers.last_keystrokes(VALID, TEST))
    features = readers.features(last)
    choices, row = training_choices(
        readers,
        last,
        features,
        FeedbackDesign.of(CAREFUL, [(last, features)]),
        relevance=relevance,
        keep_unlisted=False,
    )
    users = readers.log.user[last.composition]
    initial = np.zeros((len(readers.log.users), choices.x.shape[1]))
    path, before, latest = online(
        choices, row, users, initial, l2=0.0, step_size=0.1, schedule="steady"
    )
    weights = path[before]
    assert weights.shape[0] == len(last)
    for u in np.unique(users):
        own = np.flatnonzero(users == u)
        assert not weights[own[0]].any()
        learned = np.isin(own, row)
        moved = (np.diff(weights[own], axis=0) != 0).any(axis=1)
        assert not moved[~learned[:-1]].any()
        assert moved[learned[:-1]].any()
        assert (latest[u] != weights[own[-1]]).any() == learned[-1]


def test_online_learns_of_a_composition_only_once_it_is_submitted(readers):
    """Each user's compositions are begun in time and submitted three at a time."""
    log = readers.log
    overlapping = copy(readers)
    overlapping.start_at = readers.start_at.copy()
    for u in range(len(log.users)):
        own = np.flatnonzero(log.user == u)
        overlapping.start_at[own] = readers.start_at[own[np.arange(len(own)) // 3 * 3]]
    relevance = fit_relevance(overlapping, "mpc", CAREFUL)
    models = fit_models(overlapping, relevance, replace(CAREFUL, do_no_harm=False))
    online = models.before(np.arange(len(log)))
    moments = overlapping.moments(relevance, overlapping.last_keystrokes(VALID, TEST))
    taught = dict(zip(moments.composition.tolist(), moments.position >= 0, strict=True))
    waiting = 0
    for c in taught:
        earlier = [d for d in taught if log.user[d] == log.user[c] and taught[d]]
        done = [d for d in earlier if log.submitted_at[d] < overlapping.start_at[c]]
        assert models.steps[c] == len(done)
        waiting += len(done) < sum(d < c for d in earlier)
        if not done:
            np.testing.assert_array_equal(online[c], models.without[log.user[c]])
        for d in taught:
            if log.user[d] == log.user[c] and models.steps[d] == models.steps[c]:
                np.testing.assert_array_equal(online[d], online[c])
    assert waiting > 20


def test_planted_feedback_is_found_and_its_rows_are_complete(readers, fitted):
    ungated = fit_models(
        readers, fit_relevance(readers, "mpc", CAREFUL), replace(CAREFUL, do_no_harm=False)
    )
    result = evaluate_models(readers, ungated)
    last = result.slices["last"]
    assert result.ranks["adaqac-unp"][last].mean() > result.ranks["static"][last].mean()
    rows = result.rows()
    assert {(row["model"], row["prefixes"]) for row in rows} == {
        (model, prefixes) for model in MODELS for prefixes in PREFIXES
    }
    for row in rows:
        assert row["n"] == int(result.slices[row["prefixes"]].sum())
        if row["model"] == "static":
            assert row["p_value"] is None
    assert fitted.gates.keys() == set(MODELS[1:])


def test_ranks_do_not_depend_on_the_size_of_the_pieces(readers, fitted, monkeypatch):
    moments = readers.moments(fitted.relevance, readers.last_keystrokes(TEST))
    whole = fitted.reciprocal_ranks(readers, moments)
    monkeypatch.setattr("telic.completion.fit.log_parts.CHUNK", 7)
    for model, ranks in fitted.reciprocal_ranks(readers, moments).items():
        np.testing.assert_array_equal(ranks, whole[model])


def test_static_does_not_depend_on_models_and_tuning_beats_equal_weights(readers):
    personal = fit_relevance(readers, "personal", CAREFUL)
    tuned = fit_relevance(readers, "personal-s", CAREFUL)
    held = readers.last_keystrokes(VALID)

    def accuracy(relevance):
        moments = readers.moments(relevance, held)
        return mean_reciprocal_rank(reciprocal_ranks(moments.relevance, moments.position))

    assert accuracy(tuned) >= accuracy(personal)
    assert tuned.popular + tuned.personal == pytest.approx(1)


def test_a_log_in_which_nothing_listed_was_wanted_is_served_statically(make_table):
    table = make_table(0, users=3, list_length=1, phrases=["a", "b", "c"])
    column = [f"unheard of {i}" for i in range(len(table))]
    table = table.set_column(2, table.schema.field("query"), [column])
    replay = Replay(read_compositions(table))
    for result in evaluate(replay, relevances=["mpc"], protocols=[CAREFUL]):
        for row in result.rows():
            assert row["mrr"] in (0.0, None)


def test_a_log_without_information_is_not_made_worse(catalogue):
    """Nobody looks at the lists. The printed protocol overfits; the careful one must do no harm."""
    gains = {PAPER: [], CAREFUL: []}
    for seed in range(3):
        log = simulate_typists(
            catalogue, setting="inattentive", users=24, compositions=40, seed=seed
        )
        replay = Replay(read_compositions(log), queries=read_queries(catalogue.as_queries(log)))
        for result in evaluate(replay, relevances=["mpc"], protocols=tuple(gains)):
            static = result.ranks["static"]
            gains[result.models.protocol] += [
                (result.ranks[model] - static)[result.slices["last"]].mean() for model in MODELS[1:]
            ]
    assert np.mean(gains[CAREFUL]) > -0.003
    assert np.mean(gains[PAPER]) < -0.003  # the harm that the gate is there to prevent


@settings(max_examples=30)
@given(effect=st.sampled_from([-0.1, 0.1]), seed=st.integers(0, 1000))
def test_the_gate_opens_for_a_gain_and_closes_for_a_loss(effect, seed):
    rng = np.random.default_rng(seed)
    user, length = np.repeat(np.arange(20), 50), rng.integers(1, 20, 1000)
    gain = np.where(length <= 6, effect, 0.0) + rng.normal(0, 0.1, 1000)
    gate = Gate.fitted(gain, user, length, 20)
    assert gate.bins[:2].all() == (effect > 0)
    if effect > 0:
        assert gate.users.all()
        assert gate.open(np.array([0]), np.array([2]))[0]
    else:
        assert not gate.open(np.array([0, 3]), np.array([2, 5])).any()


def test_the_gate_closes_for_users_who_lose_clearly():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(20), 100)
    gain = np.where(user == 3, -0.5, 0.1) + rng.normal(0, 0.1, 2000)
    gate = Gate.fitted(gain, user, np.full(2000, 5), 20)
    assert np.flatnonzero(~gate.users).tolist() == [3]
    assert "1 of 20 users" in gate.summary()
    assert not gate.open(np.array([3]), np.array([5]))[0]


def test_prefix_bins_cover_every_length():
    lengths = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 1000])
    assert bin_of(lengths).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert len(PREFIX_BINS) == 5


@pytest.mark.parametrize("lists", ["own", "shown"])
def test_nothing_is_fitted_on_the_test_part(readers, lists):
    """Other lists and times in the test part change no scale, weight, threshold or gate."""
    log, rng = readers.log, np.random.default_rng(0)
    composition = np.repeat(np.arange(len(log)), np.diff(log.keystroke_start))
    tested = readers.part[composition] == TEST
    listed = np.repeat(tested, np.diff(log.list_start))
    shown = readers.shown.copy()
    shown[listed] = rng.permutation(shown[listed])
    later = np.where(tested, np.arange(len(log.at)) - log.keystroke_start[composition], 0)
    other = copy(readers.over(lists))
    other.shown, other.log = shown, replace(log, at=log.at + 700_000 * later)
    one, two = (
        fit_models(replay, fit_relevance(replay, "personal-s", CAREFUL), CAREFUL)
        for replay in (readers.over(lists), other)
    )
    assert one.relevance == two.relevance
    for name in ("everyone", "without", "personal"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.design.deviations, two.design.deviations)
    assert (one.filtering, one.l2, one.step_size) == (two.filtering, two.l2, two.step_size)
    for model, gate in one.gates.items():
        np.testing.assert_array_equal(gate.bins, two.gates[model].bins)
        np.testing.assert_array_equal(gate.users, two.gates[model].users)
    assert (one.latest != two.latest).any()  # online goes on learning


def test_thresholds_and_gates_are_those_of_the_validation_part(readers, fitted):
    last = readers.moments(fitted.relevance, readers.last_keystrokes(VALID))
    assert fitted.filtering == tune_filtering([(last, readers.features(last))])[0]
    every = readers.moments(fitted.relevance, readers.every_keystroke(VALID))
    found = fitted.reciprocal_ranks(readers, every, gated=False)
    length = np.array([len(readers.log.prefixes[p]) for p in readers.log.prefix[every.keystroke]])
    user = readers.log.user[every.composition]
    for model, gate in fitted.gates.items():
        gain = found[model] - found["static"]
        expected = Gate.fitted(gain, user, length, len(readers.log.users))
        np.testing.assert_array_equal(gate.bins, expected.bins)
        np.testing.assert_array_equal(gate.users, expected.users)


def test_every_keystroke_leaves_out_the_empty_box_and_ranges_are_by_characters(make_table):
    table = make_table(0, users=3)
    rows = table.to_pylist()
    for row in rows[::3]:  # a backspace to nothing, as the second keystroke or the last
        row["keystrokes"].insert(1, row["keystrokes"][0] | {"prefix": ""})
    log = read_compositions(pa.Table.from_pylist(rows, schema=table.schema))
    replay = Replay(log)
    moments = replay.moments(Relevance.named("mpc"), replay.every_keystroke(TEST))
    slices = slices_of(replay, moments)
    texts = [log.prefixes[log.prefix[k]] for k in moments.keystroke]
    assert slices["all"].tolist() == [text != "" for text in texts]
    assert not slices["all"].all()
    for name, (first, most) in zip(PREFIXES[2:], PREFIX_BINS, strict=True):
        assert slices[name].tolist() == [first <= len(text) <= most for text in texts]
    ends = {log.keystroke_start[c + 1] - 1 for c in moments.composition}
    assert slices["last"].tolist() == [k in ends for k in moments.keystroke]


def test_a_test_takes_users_as_the_unit():
    rng = np.random.default_rng(0)
    user = np.repeat([0, 1, 2, 3], [1, 5, 30, 200])
    own, other = rng.random((2, len(user)))
    found = measures(own, other, user)
    means = [(own - other)[user == u].mean() for u in range(4)]
    expected = stats.ttest_1samp(means, 0.0)
    assert found["difference"] == pytest.approx(np.mean(means))
    assert found["p_value"] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (found["low"], found["high"]) == (pytest.approx(low), pytest.approx(high))
    assert found["mrr"] == pytest.approx(own.mean())
