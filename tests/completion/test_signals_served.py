"""A box with signals does what was measured, says why, and keeps what one user did to that user."""

import json
from dataclasses import replace

import numpy as np
import pytest

from telic.completion import Completer, DenyList, fold
from telic.completion.box.live_changes import LEAST, Live, compacted
from telic.completion.box.user_state import UserState
from telic.completion.evaluation.json_facts import model_facts
from telic.completion.fit.from_searches import completer_of_searches, fit_signals
from telic.completion.signals import (
    FEATURES,
    GROUPS,
    STATIC,
    Searches,
    lessons_of,
    measured,
    pair_lessons_of,
    sweep,
)
from telic.completion.signals.groups import PAIRS
from telic.completion.signals.log_split import TESTED
from telic.completion.signals.query_pairs import PairWeights
from telic.completion.signals.ranker import SignalRanker
from telic.errors import InputError, ModelError
from telic.simulate.searchers import Causes, searchers

CAUSES = Causes(refine=0.3, sibling=0.2, associated=0.2, repeat=0.15)
MINUTE = 60 * 1_000_000
NOW = 1_780_000_000_000_000


def searched(**how):
    """People with sessions; every seventh submission names nobody."""
    log = searchers(CAUSES, users=24, sessions=16, nouns=12, seed=3)
    user = np.where(np.arange(len(log.query)) % 7 == 0, len(log.users), log.user)
    return Searches(replace(log, users=[*log.users, None], user=user.astype(np.int32)), **how)


@pytest.fixture(scope="module")
def searches():
    return searched()


@pytest.fixture(scope="module")
def lessons(searches):
    return lessons_of(searches)


def with_pairs(searches, fitted):
    """Add weights to every pair of the part to test on: so many that they are seen."""
    events = np.flatnonzero(searches.part == TESTED)
    moments = sweep.walk(searches, *sweep.every_prefix(searches, events))
    pair = np.unique(np.concatenate([piece.pair for piece in moments]))
    weight = np.random.default_rng(0).normal(scale=3.0, size=len(pair))
    learned = pair_lessons_of(searches, fitted).fit(1.0)
    return replace(learned, pairs=PairWeights(pair, weight))


@pytest.fixture(scope="module")
def weights(searches, lessons):
    return with_pairs(searches, lessons.fit(dict.fromkeys(GROUPS, 10.0)))


@pytest.fixture(scope="module")
def box(searches, weights):
    return completer_of_searches(searches, weights)


def walk(searches, weights):
    """Serve every submission of the part to test on; return ranks and scores by (event, length).

    Users are those whom the box itself knew when they began; from then on they are taught by their
    submissions alone.
    """
    users, ranks = {}, {}
    for e in np.flatnonzero(searches.part == TESTED).tolist():
        at, text = int(searches.at[e]), searches.index.phrase(int(searches.query[e]))
        name = searches.names[searches.user[e]] if searches.user[e] >= 0 else None
        completer = completer_of_searches(searches, weights, at=at)
        known = completer.user(name)
        user = users.setdefault(name, known) if name is not None else known
        for part in ("history", "last", "session", "previous"):
            assert getattr(user, part) == getattr(known, part)
        composition = completer.compose(user, at=at)
        for length in range(1, searches.prefixes[e] + 1):
            shown = composition.suggest(fold(text)[:length], at=0.0)
            texts = [fold(suggestion.text) for suggestion in shown]
            ranks[e, length] = 1 / (texts.index(fold(text)) + 1) if fold(text) in texts else 0.0
            for each in shown:
                why = each.explain()
                assert sum(why.signals.values()) == pytest.approx(each.signals)
                assert set(why.signals) == set(weights.penalties)
        composition.submit(text)
    return ranks


@pytest.mark.parametrize("left_out", [(), (PAIRS, "personal"), tuple(GROUPS)], ids=str)
def test_the_evaluation_reports_what_is_served(searches, lessons, weights, left_out):
    if left_out:
        weights = lessons.fit({group: 10.0 for group in GROUPS if group not in left_out})
        weights = weights if PAIRS in left_out else with_pairs(searches, weights)
    found = measured(searches, {"static": STATIC, "model": weights})
    served = walk(searches, weights)
    keys = list(zip(found.event.tolist(), found.length.tolist(), strict=True))
    assert len(keys) == len(served) > 500
    assert found.ranks["model"].tolist() == [served[key] for key in keys]
    assert (found.ranks["model"] != found.ranks["static"]).mean() > 0.05  # signals were at work


def test_signals_of_another_version_are_refused(box):
    meta, arrays = box.signals.meta(), box.signals.arrays()
    assert SignalRanker.stored(meta, arrays).weights.penalties == box.signals.weights.penalties
    for features in (meta["features"][:-1], [*meta["features"][1:], meta["features"][0]]):
        with pytest.raises(ModelError, match="signals are of another version"):
            SignalRanker.stored(meta | {"features": features}, arrays)


def test_what_no_fit_said_is_not_written_as_a_number(box):
    """Of pairs alone no other weights were fitted, and JSON has no such numbers."""
    weights = replace(box.signals.weights, objective=np.nan, static=np.nan, gap=np.nan)
    signals = replace(box.signals, weights=weights)
    written = json.dumps(signals.meta(), allow_nan=False)
    again = SignalRanker.stored(json.loads(written), signals.arrays()).weights
    assert np.isnan([again.objective, again.static, again.gap]).all()
    assert again.pair_gap == weights.pair_gap


def test_signals_that_were_stored_with_wider_runs_of_characters_are_read(box):
    meta, arrays = box.signals.meta(), box.signals.arrays()
    name = "signals.texts.gram"
    wider = arrays | {name: arrays[name].astype(np.uint64)}
    gram = SignalRanker.stored(meta, wider).state.texts.gram
    assert gram.dtype == arrays[name].dtype == np.uint32
    assert gram.tolist() == arrays[name].tolist()


def test_a_box_that_was_saved_is_the_same(box, searches, tmp_path):
    box.save(tmp_path / "box")
    again = Completer.load(tmp_path / "box")
    name = searches.names[3]
    assert again.user(name).as_json() == box.user(name).as_json()
    assert again.user(name).session
    for one, other in zip(again.signals.weights.pairs, box.signals.weights.pairs, strict=True):
        assert one.tolist() == other.tolist() != []
    for prefix in ("", "a", "ba"):
        one, other = (
            each.compose(each.user(name), at=int(searches.at[-1]) + MINUTE).suggest(prefix, at=0.0)
            for each in (box, again)
        )
        assert one == other
        assert [each.signals for each in one] == [each.signals for each in other]


def test_a_box_of_what_each_user_alone_submitted_keeps_its_signals(lessons, tmp_path):
    weights = lessons.fit(dict.fromkeys(GROUPS, 10.0))
    box = completer_of_searches(searched(min_users=1_000), weights)
    assert len(box.index) == 0
    box.save(tmp_path / "box")
    again, (name, known) = Completer.load(tmp_path / "box"), next(iter(box.users.items()))
    at = max(known.last.values()) + MINUTE
    one, other = (each.compose(each.user(name), at=at).suggest("", at=0.0) for each in (box, again))
    assert one == other
    assert len(one) > 2
    assert "signals" in model_facts(again)


@pytest.mark.parametrize("bound", [0.5, np.inf])
def test_what_feedback_may_do_at_most_is_kept_with_the_box(box, tmp_path, bound):
    box = replace(
        box, signals=replace(box.signals, weights=replace(box.signals.weights, bound=bound))
    )
    box.save(tmp_path / "box")
    assert Completer.load(tmp_path / "box").signals.weights.bound == bound


def test_a_session_goes_on_if_its_query_began_in_time_however_long_it_was_typed():
    user = UserState(np.zeros(16))
    user.submitted("tea", 0, began=0, minutes=30)
    user.submitted("cup", 40 * MINUTE, began=30 * MINUTE, minutes=30)
    assert user.session == ["cup", "tea"]
    user.submitted("pot", 71 * MINUTE, began=70 * MINUTE + 1, minutes=30)
    assert user.session == ["pot"]


def test_a_composition_goes_by_what_its_user_had_submitted_when_it_began(box):
    """In two pages at once, or in a log that is replayed: what is submitted in the other page."""
    compared = 0
    for name, known in box.users.items():
        at = max(known.last.values(), default=0) + 10 * MINUTE
        query, other = ([*known.history] * 2)[:2]
        alone, user = box.compose(box.user(name), at=at), box.user(name)
        beside = box.compose(user, at=at)
        box.compose(user, at=at + 1).submit(other)
        for length in range(1, 4):
            shown = [each.suggest(query[:length], at=0.0) for each in (alone, beside)]
            assert shown[0] == shown[1]
            compared += len(shown[0])
    assert compared > 100


def test_a_query_that_is_forgotten_while_another_is_typed_is_still_known_to_that(box):
    box = replace(box)  # with changes of its own
    user = replace(box.user(), history={"xx one": 1.0, "xx two": 2.0}, last={"xx one": 5})
    composition = box.compose(user, at=10)
    assert {each.text for each in composition.suggest("xx", at=0.0)} == {"xx one", "xx two"}
    del user.history["xx one"]
    box.live.put("xx three", 5.0)
    assert [each.text for each in composition.suggest("xx t", at=1.0)] == ["xx three", "xx two"]


def test_groups_that_do_not_help_stay_off_in_what_is_fitted(searches):
    fitted = fit_signals(searches, ("personal", "time"))
    assert set(fitted.signals.weights.gates) == {"personal", "time"}
    assert "signals" in fitted.order_summary() or "static" in fitted.order_summary()
    assert not fitted.signals.weights.weights[:2].any()


def test_an_own_query_and_the_session_move_up_what_they_speak_of(box):
    at = int(max(box.users[name].last[q] for name in box.users for q in box.users[name].last))
    user, stranger = box.user(), box.user()
    box.compose(user, at=at).submit("a query of mine alone")
    shown = box.compose(user, at=at + MINUTE).suggest("a query of", at=0.0)
    assert [each.text for each in shown] == ["a query of mine alone"]
    why = shown[0].explain()
    assert why.signals["personal"] > 0
    assert "personal" in why.line or "session" in why.line
    assert box.compose(stranger, at=at + MINUTE).suggest("a query of", at=0.0) == []
    # With the session over, and years later, it is still the user's, and less pressing.
    later = box.compose(user, at=at + 10**6 * MINUTE).suggest("a query of", at=0.0)
    assert later[0].explain().signals["session"] == 0
    assert later[0].explain().signals["personal"] != why.signals["personal"]


def test_a_session_ends_after_its_gap_and_holds_five(box):
    user, at = box.user(), 10**15
    for place in range(7):
        box.compose(user, at=at + 20 * place * MINUTE).submit(f"query {place}")
    assert user.session == [f"query {place}" for place in (6, 5, 4, 3, 2)]
    box.compose(user, at=at + 200 * MINUTE).submit("a new one")
    assert user.session == ["a new one"]
    assert user.last["query 6"] == at + 120 * MINUTE


@pytest.mark.parametrize("begun", [0.0, 100.0])
def test_a_submission_is_dated_by_the_keystrokes(box, begun):
    user = box.user()
    composition = box.compose(user, at=10**15)
    composition.suggest("t", at=begun)
    composition.suggest("te", at=begun + 7.5)
    composition.submit("te")
    assert user.last["te"] == 10**15 + 7_500_000


def test_spellings_of_an_own_query_are_one(box):
    user = box.user()
    for text in ("Crème brûlée", "creme brulee", "CREME BRULEE"):
        box.compose(user).submit(text)
    assert user.history == {"Crème brûlée": 3.0}
    assert [each.text for each in box.compose(user).suggest("creme", at=0.0)] == ["Crème brûlée"]


def test_nobody_is_shown_what_one_user_alone_submitted(box, searches):
    alone = {
        (name, text)
        for name, user in box.users.items()
        for text in user.history
        if box.index.find(text) < 0
    }
    assert len(alone) > 50
    for name, text in sorted(alone)[:50]:
        stranger = box.user(next(n for n in box.users if text not in box.users[n].history))
        stranger.session = [text]
        stranger.last[text] = int(searches.at[-1])
        for prefix in (text, text[:4]):
            typing = box.compose(stranger, at=int(searches.at[-1]) + MINUTE)
            assert text not in [each.text for each in typing.suggest(prefix, at=0.0, show=50)]
        owner = box.compose(box.user(name)).suggest(text, at=0.0)
        assert text in [each.text for each in owner]


def test_what_few_submitted_tells_nothing_of_what_comes_next(box, searches):
    """Not in the model either: its pairs are of phrases that may be suggested to everybody."""
    ids = np.concatenate([box.signals.state.pair_next, [0]])
    assert ids.max() < len(box.index)
    assert len(box.signals.state.pair_start) == len(box.index) + 1
    assert len(box.signals.state.own_query) == 0


def test_the_control_of_a_trial_is_the_static_order(box):
    name = next(name for name, user in box.users.items() if len(user.history) > 5)
    user = box.user(name)
    box.compose(user).submit("zz top of mine")
    treated, control = (
        box.compose(user, keep_static=kept).suggest("z", at=0.0, show=50) for kept in (False, True)
    )
    assert "zz top of mine" in [each.text for each in treated]
    assert "zz top of mine" not in [each.text for each in control]
    for prefix in ("", "b"):
        control = box.compose(user, keep_static=True).suggest(prefix, at=0.0)
        assert [each.text for each in control] == box.index.phrases(box.index.top(prefix))
        assert {each.signals for each in control} == {0.0}
        assert {each.explain().line for each in control} == {""}


def test_a_static_fit_says_so(searches):
    static = completer_of_searches(searches, STATIC)
    assert "static order" in static.order_summary()
    shown = static.compose(static.user()).suggest("b", at=0.0)
    assert [each.text for each in shown] == static.index.phrases(static.index.top("b"))
    assert {each.explain().line for each in shown} == {"popularity alone"}


def test_changes_count_from_the_next_keystroke_on(searches, lessons):
    weights = lessons.fit({"popularity": 10.0, "match": 10.0, "personal": 10.0})
    box = completer_of_searches(searches, weights)
    best = box.index.phrase(int(box.index.top("b")[0]))
    user = box.user()
    for _ in range(3):
        box.compose(user).submit(best)
    composition = box.compose(user)

    def texts(prefix="b"):
        return [each.text for each in composition.suggest(prefix, at=0.0, show=50)]

    assert best in texts()
    box.live.delete(best)
    assert best not in texts()
    box.live.put("bright new thing", 1e6)
    shown = composition.suggest("bright", at=0.0)
    assert [each.text for each in shown] == ["bright new thing"]
    assert shown[0].relevance == pytest.approx(np.log1p(1e6))
    assert shown[0].explain().signals["match"] == pytest.approx(
        6 / 16 * weights.weights[FEATURES.index("share typed")]
        + weights.weights[FEATURES.index("ends a word")]
    )
    last = box.index.phrase(int(box.index.range("b")[1]) - 1)
    before = next(e for e in composition.suggest(last, at=0.0) if e.text == last).relevance
    box.live.increment(last, 100.0)
    after = next(e for e in composition.suggest(last, at=0.0) if e.text == last).relevance
    assert after == pytest.approx(np.log1p(np.expm1(before) + 100))
    box.live.delete("bright new thing")
    assert texts("bright") == []
    # The user's own query that somebody adds for all is one suggestion, and still the user's own.
    box.compose(user).submit("brand mine")
    box.live.put("brand mine", 3.0)
    (shown,) = box.compose(user).suggest("brand", at=0.0)
    assert shown.relevance == pytest.approx(np.log1p(3.0))
    assert shown.explain().signals["personal"] != 0


def test_what_is_denied_is_in_no_list_history_or_session(box):
    name = next(name for name, user in box.users.items() if user.session)
    text = box.users[name].session[0]
    denying = box.denying(DenyList((text,)))
    user = denying.user(name)
    assert text not in {*user.history, *user.last, *user.session, user.previous}
    shown = denying.compose(user).suggest(text, at=0.0, show=50)
    assert text not in [each.text for each in shown]
    denying.compose(user).submit(text)
    assert text not in user.last


def test_what_a_user_is_taught_stays_out_of_the_model(box):
    name = next(name for name, user in box.users.items() if user.session)
    before = box.users[name].as_json()
    user = box.user(name)
    user.session.append("an old one")
    box.compose(user, at=10**15).submit("taught while it serves")
    assert user.session[0] == "taught while it serves"
    assert box.users[name].as_json() == before


def test_a_forgotten_user_leaves_nothing(box, searches, tmp_path):
    name, text = next(
        (name, text)
        for name, user in box.users.items()
        for text in user.history
        if box.index.find(text) < 0
        and sum(text in other.history for other in box.users.values()) == 1
    )
    box.without(name).save(tmp_path / "box")
    again = Completer.load(tmp_path / "box")
    assert name not in again.users
    assert again.user(name).history == again.user(name).last == {}
    assert again.user(name).session == []
    for file in (tmp_path / "box").iterdir():
        assert text.encode() not in file.read_bytes()


def test_it_says_what_cannot_be(box, searches):
    with pytest.raises(InputError, match="phones or signals"):
        compacted(box)
    with pytest.raises(ValueError, match="no signals"):
        replace(box, signals=None, model="static").ranker()


def test_what_a_session_and_the_hour_tell_of_a_phrase_stays_when_an_editor_counts_it_anew(
    searches, weights
):
    """As a share of next to nothing it would be huge: a phrase that was counted down came first."""
    box = completer_of_searches(searches, weights)
    state = box.signals.state
    pair = next(
        i
        for i in np.flatnonzero(state.pair_count > 2)
        if state.known[state.pair_next[i]]
        and state.known[np.searchsorted(state.pair_start, i, "right") - 1]
    )
    before = box.index.phrase(int(np.searchsorted(state.pair_start, pair, "right") - 1))
    after = box.index.phrase(int(state.pair_next[pair]))
    user = box.user()
    earlier = box.compose(user, at=NOW)
    earlier.suggest(before, at=0.0)
    earlier.submit(before)

    def told():
        composition = box.compose(user, at=NOW + MINUTE)
        shown = composition.suggest(after, at=0.0, show=50)
        return next(each for each in shown if each.text == after).explain().signals

    first = told()
    assert first["session"] != 0
    for count in (1000.0, 1.0, 0.0):
        box.live.put(after, count)
        now = told()
        assert now["popularity"] != first["popularity"]
        for group in ("session", "time", "pairs"):
            assert now[group] == pytest.approx(first[group])


def test_signals_are_told_of_changes_as_counts(box):
    live = Live(box.index, unit=0.5)
    known = box.index.phrase(0)
    live.put(known, 30.0)
    live.put("never seen", 6.0)
    live.put("never submitted", 0.0)
    changed = live.applied(box.signals)
    assert changed.state.popular[0] == pytest.approx(30.0)
    assert changed.state.popular[1:].tolist() == box.signals.state.popular[1:].tolist()
    assert changed.added.popular == pytest.approx([6.0, LEAST])
