import json
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import (
    BOUNDED,
    CAREFUL,
    PAPER,
    Completer,
    PhoneRanker,
    PrefixIndex,
    Relevance,
    Replay,
    UserState,
    fit_completer,
    fold,
)
from telic.completion.fit.models import fit_models
from telic.completion.learning.adaqac import FeedbackDesign, OnlineRule
from telic.completion.learning.appaware import AppTable
from telic.completion.learning.do_no_harm import (
    ALLOWANCE,
    FORGETTING,
    Gate,
    RunningCheck,
    gate_facts,
)
from telic.data import save_model
from telic.data.compositions import read_compositions
from telic.errors import InputError, ModelError

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
import adaqac as reference

DWELL = 1  # total dwell


def make_completer(phrases, weights, *, sink=0.0, model="adaqac-online", n=10):
    """A completer by hand: each second that a suggestion is shown costs it `sink`."""
    feedback = np.zeros(16)
    feedback[DWELL] = -sink
    relevance = Relevance("personal-s", popular=0.5, personal=0.5)
    return Completer(
        PrefixIndex.build(phrases, weights),
        relevance,
        FeedbackDesign(np.ones(16), False),
        feedback,
        {},
        Gate.always(0),
        model,
        n,
        0.1,
        "careful",
        False,
    )


def texts(suggestions):
    return [suggestion.text for suggestion in suggestions]


def test_what_was_skipped_sinks_and_says_why():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5)
    composition = completer.compose(completer.user())
    assert texts(composition.suggest("fac", at=0.0, show=1)) == ["facebook"]
    first, second = composition.suggest("face", at=2.0)
    assert [first.text, second.text] == ["facetime", "facebook"]
    assert (second.static_position, second.feedback) == (1, -1.0)
    assert second.explain().reasons == {"DwellT": -1.0}
    assert second.explain().observed == {"DwellT-M": 2.0, "DwellT": 2.0, "Pos@1": 1.0}
    assert first.explain().observed == {}
    assert first.feedback == 0.0  # never shown: keeps its relevance


@pytest.mark.parametrize(
    ("model", "reranks", "anywhere"),
    [("static", True, True), ("adaqac-unp", False, True), ("adaqac-unp", True, False)],
)
def test_the_static_order_is_kept_where_it_must_be(model, reranks, anywhere):
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5, model=model)
    object.__setattr__(completer, "gate", Gate(anywhere, np.ones(5, bool), np.ones(0, bool)))
    user = completer.user()
    user.reranks = reranks
    composition = completer.compose(user)
    composition.suggest("fac", at=0.0)
    assert texts(composition.suggest("face", at=2.0)) == ["facebook", "facetime"]


@settings(max_examples=40)
@given(
    weights=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    history=st.dictionaries(st.integers(0, 35), st.integers(1, 4), max_size=6),
    prefix=st.sampled_from(["", "p", "p1", "P 1", "x"]),
)
def test_candidates_are_the_best_of_all(weights, history, prefix):
    phrases = [f"p{i}" for i in range(len(weights))]
    completer = make_completer(phrases, weights, n=4)
    user = completer.user()
    user.history = {f"p{i}": float(count) for i, count in history.items()}
    found = completer.compose(user).suggest(prefix, at=0.0)
    every = dict(zip(phrases, map(float, weights), strict=True))
    for query, count in user.history.items():
        every[query] = every.get(query, 0.0) + 0.5 * np.log1p(count)
    matching = {q: r for q, r in every.items() if fold(q).startswith(fold(prefix))}
    best = sorted(matching.values(), reverse=True)[:4]
    np.testing.assert_allclose([s.relevance for s in found], best)
    assert all(matching[s.text] == pytest.approx(s.relevance) for s in found)


def test_the_running_check_sees_what_reranking_was_worth_and_keeps_the_static_order():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5, model="adaqac-unp")
    completer = replace(completer, relevance=Relevance.named("mpc"))
    user = completer.user()

    def search(wanted):
        composition = completer.compose(user)
        composition.suggest("fac", at=0.0, show=1)
        composition.suggest("fax", at=1.0)  # nothing to suggest, nothing to lose
        found = composition.suggest("face", at=2.0)
        composition.submit(wanted)
        reranked = {bool(s.explain().reasons) for s in found}
        assert reranked == ({True, False} if found[0].text == "facetime" else {False})
        return texts(found), {s.feedback for s in found}

    assert search("facebook") == (["facetime", "facebook"], {0.0, -0.5})
    assert user.check.recent == pytest.approx(-0.5 / 3)  # one of three keystrokes fell from 1 to 2
    assert user.check.drawdown == pytest.approx(0.5 / 3 - ALLOWANCE)
    assert not user.check.open
    worth = -0.5 / 3
    for wanted, gain in (("facebook", -0.5 / 3), ("elsewhere", 0.0), *[("facetime", 0.5 / 3)] * 2):
        assert search(wanted) == (["facebook", "facetime"], {0.0})  # the model's order is not seen
        worth = FORGETTING * worth + gain
        assert user.check.recent == pytest.approx(worth)
    assert user.check.drawdown == pytest.approx(0.5 / 3 - 5 * ALLOWANCE)  # nor does it cost
    assert user.check.open
    assert search("elsewhere")[0] == ["facetime", "facebook"]


def test_a_composition_counts_once_in_the_running_check():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5)
    user = completer.user()
    composition = completer.compose(user)
    composition.suggest("fac", at=0.0, show=1)
    composition.suggest("face", at=2.0)
    composition.submit("facebook")
    once = replace(user.check)
    composition.submit("facebook")
    assert once != RunningCheck()
    assert user.check == once


def test_for_how_many_users_the_running_check_keeps_the_static_order_is_said(tmp_path):
    users = {name: UserState(np.zeros(16)) for name in ("ada", "bob", "eve")}
    users["eve"].check = RunningCheck(recent=-1.0)
    completer = replace(make_completer(["tea"], [1.0]), users=users)
    completer.save(tmp_path / "model")
    assert "for 1 of 3 users" in Completer.load(tmp_path / "model").check_summary()
    assert replace(completer, do_no_harm=False).check_summary() == "none"


def test_a_phones_apps_move_what_they_speak_of_and_each_suggestion_says_which():
    completer = make_completer(["sage", "soup", "sun"], [1.0, 0.9, 0.8], model="appaware")
    one, half = np.array([3.0, -1.0]), np.array([0.5])
    sage, soup, sun = (completer.index.find(text) for text in ("sage", "soup", "sun"))
    ranker = PhoneRanker(
        ["garden", "recipes"],
        AppTable.of(np.array([soup, sun]), np.array([0, 0]), one, 3),
        AppTable.of(np.array([sun]), np.array([1]), half, 3),
        np.array([8.0, 6.0, *np.zeros(46)]),
    )
    phone = ranker.phone({"garden": 1.0}, [("recipes", 5.0), ("of nobody", 1.0)])
    assert ranker.added(np.array([sage, soup, sun, -1]), phone) == pytest.approx(
        [0.0, 3 * np.log(2), 0.5 * 6 - np.log(2), 0.0]
    )
    found = replace(completer, phones=ranker).compose(completer.user(), phone).suggest("s", at=0.0)
    assert texts(found) == ["sun", "soup", "sage"]
    assert found[0].apps == pytest.approx(0.5 * 6 - np.log(2))
    assert list(found[0].explain().apps.items()) == [
        ("opened: recipes", pytest.approx(3.0)),
        ("installed: garden", pytest.approx(-np.log(2))),
    ]
    assert found[1].explain().apps == {"installed: garden": pytest.approx(3 * np.log(2))}
    assert found[2].explain().apps == {}
    assert ranker.telling() == ["garden", "recipes"]
    assert ranker.telling(1) == ["garden"]


@pytest.mark.parametrize("opened", [[], ["b"], ["a"], ["c", "b", "a"]])
def test_the_reasons_of_a_phone_add_up_to_what_it_adds_the_largest_first(opened):
    rng = np.random.default_rng(2)
    query, app = (each.ravel() for each in np.meshgrid(np.arange(4), np.arange(3)))
    tables = [AppTable.of(query, app, rng.normal(size=12).round(2), 4) for _ in range(2)]
    ranker = PhoneRanker(["a", "b", "c"], *tables, np.linspace(2.0, 0.1, 48))
    phone = ranker.phone({"a": 2.0, "c": 0.5}, [(name, 1.0 + i) for i, name in enumerate(opened)])
    for query, added in enumerate(ranker.added(np.arange(4), phone)):
        reasons = ranker.reasons(query, phone)
        assert sum(reasons.values()) == pytest.approx(added)
        sizes = [abs(part) for part in reasons.values()]
        assert sizes == sorted(sizes, reverse=True)
        assert {*reasons} == {"installed: a", "installed: c"} | {f"opened: {o}" for o in opened}
    assert ranker.reasons(-1, phone) == {}


def test_a_forgotten_user_leaves_everybody_elses_gate():
    users = {name: UserState(np.zeros(16)) for name in ("ada", "bob", "eve")}
    gate = Gate(True, np.ones(5, bool), np.array([True, False, True]))
    completer = replace(make_completer(["tea"], [1.0]), users=users, gate=gate)
    assert completer.without("ada").gate.users.tolist() == [False, True]
    assert completer.without("bob").gate.users.tolist() == [True, True]
    # A gate that is of no single users stays as it is.
    shared = replace(completer, gate=Gate.always(2)).without("ada").gate
    assert shared.users.tolist() == [True, True]


def test_an_own_query_that_the_catalogue_has_not_is_no_less_relevant_than_the_unlearned():
    relevance = Relevance("personal", popular=0.5, personal=0.5, unlearned=2.0)
    completer = replace(make_completer(["tea"], [1.0]), relevance=relevance)
    user = completer.user()
    user.history = {"teapot": 1.0}
    found = {s.text: s.relevance for s in completer.compose(user).suggest("te", at=0.0)}
    assert found == {"tea": 1.0, "teapot": pytest.approx(2.0 + 0.5 * np.log(2))}


@pytest.mark.parametrize("closed", ["gate", "user", "protocol"])
def test_where_the_order_is_not_the_models_the_running_check_sees_nothing(closed):
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5, model="adaqac-unp")
    completer = replace(completer, relevance=Relevance.named("mpc"))
    if closed == "gate":
        completer = replace(completer, gate=Gate(True, np.zeros(5, bool), np.ones(0, bool)))
    if closed == "protocol":
        completer = replace(completer, do_no_harm=False)
    user = completer.user()
    user.reranks = closed != "user"
    for _ in range(3):
        composition = completer.compose(user)
        composition.suggest("fac", at=0.0, show=1)
        found = composition.suggest("face", at=2.0)
        composition.submit("facebook")
    assert user.check == RunningCheck()
    assert texts(found)[0] == ("facetime" if closed == "protocol" else "facebook")


def test_a_submission_teaches_the_user_and_nobody_else():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9])
    user, other = completer.user("ada"), completer.user("bob")
    composition = completer.compose(user)
    composition.suggest("fac", at=0.0, show=1)
    composition.suggest("face", at=2.0)
    assert composition.submit("facetime")
    assert user.updates == 1
    assert user.weights[DWELL] < 0  # dwelling on facebook came to mean: not wanted
    assert not other.weights.any()
    assert not completer.everyone.any()
    assert user.history == {"facetime": 1.0}
    assert UserState.from_json(json.loads(json.dumps(user.as_json()))).as_json() == user.as_json()


@pytest.mark.slow
def test_a_composition_stays_small_however_long_it_is_typed(held_by_compositions):
    """Keystrokes on the way to a phrase and back, by a user with a long history."""
    phrases = [f"p{i:03}" for i in range(300)]
    completer = make_completer(phrases, np.arange(300.0), sink=0.1)
    user = completer.user()
    user.history = {f"p{i:03} of my own": 1.0 for i in range(1_000)}

    def typed(keystrokes):
        composition = completer.compose(user)
        for at in range(keystrokes):
            composition.suggest("p123"[: 1 + abs(at % 6 - 3)], at=float(at))
        return composition

    def taken_after(keystrokes):
        # Each allocation notes up to 20 frames: a thread of its own has few.
        with ThreadPoolExecutor(1) as pool:
            composition = pool.submit(typed, keystrokes).result()
        whole = held_by_compositions()
        del composition
        return whole - held_by_compositions()

    typed(12)  # compiles and loads every kernel, which takes a minute while it is traced
    tracemalloc.start(20)
    taken_after(12)  # the user's own table
    short, long = taken_after(90), taken_after(210)
    tracemalloc.stop()
    assert 1_000 < long < 20_000
    assert long - short < 120 * 4  # less than a pointer for each keystroke


def test_own_queries_are_looked_up_anew_once_they_have_changed():
    completer = make_completer(["tea"], [1.0])
    user = completer.user()
    for query in ("tea cup", "tea time", "tea cup"):
        completer.compose(user).submit(query)
        found = texts(completer.compose(user).suggest("tea ", at=0.0))
        assert set(found) == set(user.history)
    assert found == ["tea cup", "tea time"]  # by how often


def test_of_a_history_that_is_full_the_latest_query_is_suggested_and_the_oldest_not():
    completer = make_completer(["tea"], [9])
    ada, stored = completer.user("ada"), completer.user("ada")
    ada.history |= {"teak": 1.0, "team": 1.0}
    stored.history |= {"team": 1.0, "tennis": 1.0}  # as many queries, and as many submissions
    before = texts(completer.compose(ada).suggest("te", at=0.0))
    ada.become(stored)
    after = texts(completer.compose(ada).suggest("te", at=0.0))
    assert (sorted(before), sorted(after)) == (["tea", "teak", "team"], ["tea", "team", "tennis"])


@pytest.mark.parametrize("merged", [True, False])
def test_a_submitted_query_is_kept_as_a_log_has_it(merged):
    completer = replace(make_completer(["tea", "a\x07b"], [9, 1]), merged=merged)
    user = completer.user()
    for query in ("tea ", " tea", "tea", "a\x07b", "iced  tea\n"):
        completer.compose(user).submit(query)
    assert user.history == {"tea": 3.0, "a\x07b": 1.0, "iced tea": 1.0}


def test_a_lesson_changes_nothing_until_it_is_taught_and_may_be_taught_elsewhere():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5)
    here, elsewhere = completer.user("ada"), completer.user("ada")
    for query in ("facetime", "facebook", "fax machine"):
        composition = completer.compose(here)
        for second, prefix in enumerate(["fac", "face"]):
            composition.suggest(prefix, at=2.0 * second, show=1)
        before = json.dumps(here.as_json())
        lesson = composition.lesson(query)
        assert json.dumps(here.as_json()) == before
        assert completer.teach(elsewhere, lesson) == composition.submit(query)
        assert here.as_json() == elsewhere.as_json()
        assert json.dumps(here.as_json()) != before
    assert here.check.recent != 0


def test_a_query_that_was_no_candidate_joins_the_history_but_teaches_nothing():
    completer = make_completer(["facebook"], [1.0])
    user = completer.user()
    composition = completer.compose(user)
    composition.suggest("fa", at=0.0)
    assert not composition.submit("fax machine")
    assert texts(completer.compose(user).suggest("FAX", at=9.0)) == ["fax machine"]
    assert user.previous == "fax machine"


@pytest.mark.parametrize("query", ["", " ", "´", "x" * 10_000_000, "te\ud83d"])
def test_what_could_never_be_suggested_is_not_learned(query):
    completer = make_completer(["tea"], [1.0])
    composition = completer.compose(completer.user())
    with pytest.raises(InputError, match="query is "):
        composition.submit(query)
    assert composition.user.history == {}


def test_half_an_emoji_is_a_prefix_like_any_other():
    completer = make_completer(["face"], [1.0])
    composition = completer.compose(completer.user())
    composition.suggest("f\ud83d", at=0.0)
    assert composition.suggest("f", at=1.0)


@pytest.fixture(scope="module")
def replay(make_table):
    return Replay(read_compositions(make_table(0, users=8, compositions=40)))


@pytest.mark.parametrize("relevance", ["personal", "timesense"])
@pytest.mark.parametrize("protocol", [PAPER, CAREFUL, BOUNDED])
def test_served_relevance_is_the_replayed_one_at_the_end_of_the_log(replay, relevance, protocol):
    completer = fit_completer(replay, relevance=relevance, protocol=protocol)
    log = replay.log
    later = int(log.submitted_at[-1]) + 1
    for c in (3, 50, 101):  # as if the user of composition c began a new one after the log
        start_at, replay.start_at = replay.start_at, np.full(len(log), later)
        expected = replay.relevance_of(completer.relevance, replay.query[c : c + 1], np.array([c]))
        replay.start_at = start_at
        query = log.phrases[log.query[c]]
        user = completer.user(log.users[log.user[c]])
        found = completer.compose(user).suggest(query, at=0.0)
        assert {s.text: s.relevance for s in found}[query] == pytest.approx(expected[0])


@pytest.mark.parametrize("model", ["static", "adaqac-unp", "adaqac-batch", "adaqac-online"])
def test_a_saved_completer_suggests_the_same(replay, tmp_path, model):
    completer = fit_completer(replay, model=model)
    completer.save(tmp_path / "model")
    again = Completer.load(tmp_path / "model")
    name = replay.log.users[0]
    for user in (name, None, "unknown"):
        one, two = (c.compose(c.user(user)) for c in (completer, again))
        for second, prefix in enumerate(["n", "ne", "new", "new y"]):
            assert one.suggest(prefix, at=second) == two.suggest(prefix, at=second)
    assert again.user(name).as_json() == completer.user(name).as_json()
    assert gate_facts(again.gate) == gate_facts(completer.gate)
    assert any(p["p_value"] for p in gate_facts(completer.gate)["ranges"]) == (model != "static")


def test_a_damaged_model_and_an_unknown_kind_of_model_are_named(replay, tmp_path):
    with pytest.raises(InputError, match="'magic'"):
        fit_completer(replay, model="magic")
    fit_completer(replay).save(tmp_path / "model")
    (tmp_path / "model" / "index.weight_values.npy").write_bytes(b"")
    with pytest.raises(ModelError, match=r"index\.weight_values\.npy"):
        Completer.load(tmp_path / "model")


def test_a_model_from_before_the_rule_was_kept_is_refused(tmp_path, monkeypatch):
    def without_rule(folder, *, kind, meta, arrays, mapped):
        old = {name: value for name, value in meta.items() if name != "schedule"}
        save_model(folder, kind=kind, meta=old, arrays=arrays, mapped=mapped)

    monkeypatch.setattr("telic.completion.box.completer.save_model", without_rule)
    make_completer(["tea"], [1.0]).save(tmp_path / "model")
    with pytest.raises(ModelError, match="Fit it again"):
        Completer.load(tmp_path / "model")


def test_where_it_acts_is_still_known_once_loaded(tmp_path):
    users = {name: UserState(np.zeros(16), reranks=name != "ada") for name in ("ada", "bob")}
    for known, says in (({}, "re-ranks everywhere"), (users, "kept for 1 of 2 users")):
        completer = replace(make_completer(["tea"], [1.0]), users=known)
        completer.save(tmp_path / "model")
        assert says in Completer.load(tmp_path / "model").gate.summary()


TYPED = (  # prefixes and the submitted query
    (["n", "ne", "new"], "new york"),
    (["n", "ne", "new y"], "new jersey"),  # shown at first, no candidate at the end
    (["p"], "parma"),
    (["p", "pa"], "pancakes"),  # in nobody's catalogue
    (["n", "new", "news"], "news"),
    (["p", "zz"], "zzz"),  # no candidate at all
    (["s", "st"], "st. ives"),
    (["pa", "pan"], "pancakes"),  # now from the own history
    (["n", "ne", "new"], "new times"),
) * 2


def served(completer, user, typed, *, after=lambda *parts: parts):
    """Type and submit; return what the printed algorithm sees of each composition, found anew.

    Returns the compositions for `reference.online`, which of their queries were candidates, and
    the user.
    """
    seen, listed = [], []
    phrases = completer.index.phrases(range(len(completer.index)))
    shared = dict(zip(phrases, completer.index.weights_of().tolist(), strict=True))
    factor = completer.relevance.factors[1]
    for prefixes, query in typed:
        history, previous = dict(user.history), user.previous
        composition = completer.compose(user)
        strokes = []
        for j, prefix in enumerate(prefixes):
            last = composition.suggest(prefix, at=0.7 * j + 0.2 * j**2, show=completer.n)
            strokes.append((0.7 * j + 0.2 * j**2, prefix, texts(last)))
        composition.submit(query)
        completer, user = after(completer, user)
        listed.append(query in texts(last))
        candidates = list(dict.fromkeys([*texts(last), query]))
        x = np.array([reference.feedback(strokes, q, previous) for q in candidates])
        relevance = [shared.get(q, 0.0) + factor * history.get(q, 0.0) for q in candidates]
        seen.append((x / completer.design.deviations, relevance, candidates.index(query)))
    return seen, listed, user


@pytest.mark.parametrize("relevance", ["mpc", "personal"])
def test_a_served_paper_model_is_the_printed_online_algorithm(replay, tmp_path, relevance):
    """With submitted queries that were no candidates, and after restarts of all kinds."""
    completer = fit_completer(replay, relevance=relevance, protocol=PAPER, n=3)
    name = replay.log.users[2]
    start = completer.user(name)
    assert start.updates == 20  # the last half of the user's 40, all of them

    def restarted(completer, user):
        completer.save(tmp_path / f"model {user.updates}")
        again = Completer.load(tmp_path / f"model {user.updates}")
        return again, UserState.from_json(json.loads(json.dumps(user.as_json())))

    seen, listed, user = served(completer, completer.user(name), TYPED, after=restarted)
    joined = [one for one, was_listed in zip(seen, listed, strict=True) if not was_listed]
    lengths = {len(relevance) for _, relevance, _ in joined}
    assert {1, 4} <= lengths  # nothing but the query itself; three candidates and the query
    assert any(x[chosen].any() for x, _, chosen in joined)  # one was shown, and sank
    expected = reference.online(
        seen, start.weights, step_size=completer.step_size, l2=0.01, updates=20
    )
    np.testing.assert_allclose(user.weights, expected, rtol=1e-12, atol=1e-14)
    assert user.updates == 20 + len(TYPED)
    assert abs(user.weights - start.weights).max() > 1e-4
    assert user.check == RunningCheck()  # the text prints no check


def test_a_served_careful_model_learns_from_candidates_alone_and_without_a_penalty(replay):
    protocol = replace(CAREFUL, learn_relevance=False, scale="count")
    completer = fit_completer(replay, relevance="mpc", protocol=protocol, n=3)
    seen, listed, user = served(completer, completer.user(), TYPED)
    assert 0 < user.updates == sum(listed) < len(TYPED)
    weights = completer.everyone.copy()
    learned = [one for one, was_listed in zip(seen, listed, strict=True) if was_listed]
    for t, (x, relevance, chosen) in enumerate(learned):
        e = np.exp(relevance + x @ weights)
        weights -= completer.step_size / np.sqrt(1 + t) * (e @ x / e.sum() - x[chosen])
    np.testing.assert_allclose(user.weights, weights, rtol=1e-10, atol=1e-13)


def test_any_mixture_of_protocols_is_served_as_it_was_fitted(replay):
    mine = replace(PAPER, name="mine", l2=(0.5,), schedule="steady", keep_unlisted=True)
    completer = fit_completer(replay, model="adaqac-online", protocol=mine)
    assert completer.rule == OnlineRule(completer.step_size, "steady", 0.0, keep_unlisted=True)
    composition = completer.compose(completer.user())
    composition.suggest("n", at=0.0)
    assert composition.submit("nowhere")


def test_a_composition_without_a_keystroke_teaches_nothing(replay):
    completer = fit_completer(replay, protocol=PAPER)
    user = completer.user()
    assert not completer.compose(user).submit("news")
    assert user.updates == 0


@pytest.mark.parametrize(("people", "shared"), [(2, False), (3, True)])
def test_what_fewer_than_three_people_searched_for_is_suggested_to_themselves_alone(
    make_table, people, shared
):
    rows = make_table(0, users=5, compositions=8).to_pylist()
    for row in rows:
        if row["user"] in [f"user {u}" for u in range(people)] and row["composition"][2:] in "12":
            row["query"] = "private matter"  # twice by each: people count, not submissions
    replay = Replay(read_compositions(pa.Table.from_pylist(rows, schema=make_table(0).schema)))
    completer = fit_completer(replay, model="static")
    for name in (None, "user 4"):
        found = texts(completer.compose(completer.user(name)).suggest("priv", at=0.0))
        assert found == (["private matter"] if shared else [])
    own = completer.compose(completer.user("user 0")).suggest("priv", at=0.0)
    assert texts(own) == ["private matter"]


def test_served_online_weights_have_learned_from_the_whole_log(replay):
    completer = fit_completer(replay, relevance="mpc", protocol=PAPER)
    models = fit_models(replay, completer.relevance, PAPER)
    for name, latest, start in zip(replay.log.users, models.latest, models.without, strict=True):
        user = completer.user(name)
        np.testing.assert_array_equal(user.weights, latest)
        assert user.updates == 20
        assert abs(latest - start).max() > 0


def test_a_history_is_looked_up_once_however_often_its_user_types(monkeypatch):
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9])
    history = {"facetime": 2.0, "face paint": 1.0}
    completer.users["ada"] = UserState(np.zeros(16), history=history)
    looked_up = []
    place = PrefixIndex.place
    monkeypatch.setattr(
        PrefixIndex, "place", lambda self, phrase: looked_up.append(phrase) or place(self, phrase)
    )
    for _ in range(3):
        composition = completer.compose(completer.user("ada"))
        shown = texts(composition.suggest("face", at=0.0))
        assert set(shown) == {"facebook", *history}
    assert sorted(looked_up) == sorted(history)
    other = make_completer(["face paint"], [1.0])  # another catalogue has other places
    assert texts(other.compose(completer.user("ada")).suggest("face p", at=0.0)) == ["face paint"]
    assert composition.user.history == history


def test_of_queries_that_a_history_forgot_nothing_stays():
    completer = make_completer(["facebook"], [1.0])
    user = completer.user()
    for number in range(20):
        user.history = {f"face {number}": 1.0}
        completer.compose(user).suggest("face", at=0.0)
    assert list(user.places(completer.index)) == ["face 19"]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 6, 7, 9, 10, 12, 13, 50_000])
@pytest.mark.parametrize("anywhere", [True, False])
def test_one_prefix_is_gated_as_many_are(length, anywhere):
    for bins in np.eye(5, dtype=bool):
        gate = Gate(anywhere, bins, np.ones(1, bool))
        assert gate.open_at(length) == gate.open(np.zeros(1, int), np.array([length]))[0]


def test_what_a_suggestion_says_of_itself_stays_when_the_weights_move_on():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5)
    composition = completer.compose(completer.user())
    composition.suggest("fac", at=0.0, show=1)
    found = composition.suggest("face", at=2.0)
    assert composition.submit("facebook")
    assert composition.user.weights[DWELL] != -0.5
    assert found[1].explain().reasons == {"DwellT": -1.0}
