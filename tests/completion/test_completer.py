import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import (
    CAREFUL,
    PAPER,
    Completer,
    PrefixIndex,
    Relevance,
    Replay,
    UserState,
    fit_completer,
    fold,
)
from telic.completion.adaqac import Design
from telic.completion.harm import Gate
from telic.data.compositions import read_compositions
from telic.errors import InputError, ModelError

DWELL = 1  # total dwell


def make_completer(phrases, weights, *, sink=0.0, model="adaqac-online", n=10):
    """A completer by hand: each second that a suggestion is shown costs it `sink`."""
    feedback = np.zeros(16)
    feedback[DWELL] = -sink
    relevance = Relevance("personal-s", popular=0.5, personal=0.5)
    return Completer(
        PrefixIndex.build(phrases, weights), relevance, Design(np.ones(16), False), feedback, {},
        Gate.always(0), model, n, 0.1, "careful", False,
    )  # fmt: skip


def texts(suggestions):
    return [suggestion.text for suggestion in suggestions]


def test_what_was_skipped_sinks_and_says_why():
    completer = make_completer(["facebook", "facetime"], [1.0, 0.9], sink=0.5)
    composition = completer.compose(completer.user())
    assert texts(composition.suggest("fac", at=0.0, show=1)) == ["facebook"]
    first, second = composition.suggest("face", at=2.0)
    assert [first.text, second.text] == ["facetime", "facebook"]
    assert (second.static_position, second.feedback) == (1, -1.0)
    assert second.reasons == {"DwellT": -1.0}
    assert second.observed == {"DwellT-M": 2.0, "DwellT": 2.0, "Pos@1": 1.0}
    assert first.observed == {}
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


@settings(max_examples=40, deadline=None)
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
@pytest.mark.parametrize("protocol", [PAPER, CAREFUL])
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


def test_a_damaged_model_and_an_unknown_kind_of_model_are_named(replay, tmp_path):
    with pytest.raises(InputError, match="'magic'"):
        fit_completer(replay, model="magic")
    fit_completer(replay).save(tmp_path / "model")
    (tmp_path / "model" / "index.weights.npy").write_bytes(b"")
    with pytest.raises(ModelError, match=r"index\.weights\.npy"):
        Completer.load(tmp_path / "model")


def test_where_it_acts_is_still_known_once_loaded(tmp_path):
    users = {name: UserState(np.zeros(16), reranks=name != "ada") for name in ("ada", "bob")}
    for known, says in (({}, "re-ranks everywhere"), (users, "kept for 1 of 2 users")):
        completer = replace(make_completer(["tea"], [1.0]), users=known)
        completer.save(tmp_path / "model")
        assert says in Completer.load(tmp_path / "model").gate.summary()
