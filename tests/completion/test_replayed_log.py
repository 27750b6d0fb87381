import datetime as dt
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from telic.completion.engine.folding import fold
from telic.completion.fit.sources import joined_logs
from telic.completion.learning.feedback import Feedback
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID, Replay
from telic.data.compositions import read_compositions
from telic.data.queries import read_queries
from telic.errors import InputError

sys.path.insert(0, str(Path(__file__).parent.parent / "reference"))
import adaqac as reference

WINDOW = 28 * 24 * 3600 * 1_000_000
"""Microseconds that TimeSense looks back (2.4.2)."""


def strokes_of(log, c):
    return [
        (
            log.at[k] / 1e6,
            log.prefixes[log.prefix[k]],
            [log.phrases[q] for q in log.shown[log.list_start[k] : log.list_start[k + 1]]],
        )
        for k in range(log.keystroke_start[c], log.keystroke_start[c + 1])
    ]


def previous_of(log, c):
    own = [i for i in range(c) if log.user[i] == log.user[c]]
    return log.phrases[log.query[own[-1]]] if own else None


@pytest.mark.parametrize("seed", range(3))
def test_training_replay_serving_and_the_definition_give_the_same_features(make_table, seed):
    phrases = ["new york", "news", "são paulo", "st. ives", "a-b c", "日本 語", "x" * 40]
    phrases += [f"new {letter}" for letter in "abcdefghij"]
    log = read_compositions(make_table(seed, phrases=phrases, list_length=14))
    replay = Replay(log)
    texts = replay.index.phrases(range(len(replay.index)))
    relevance = Relevance.named("mpc")
    last = replay.moments(relevance, replay.last_keystrokes(TRAIN, VALID, TEST))
    every = replay.moments(relevance, replay.every_keystroke(TRAIN, VALID, TEST))
    of_last, of_every = replay.features(last), replay.features(every)
    row_of = {k: t for t, k in enumerate(every.keystroke)}
    for t, k in enumerate(last.keystroke):
        np.testing.assert_array_equal(of_last[t], of_every[row_of[k]])
    nonzero = 0
    for c in range(len(log)):
        strokes = strokes_of(log, c)
        previous = previous_of(log, c)
        serving = Feedback(replay.previous[c])
        for j in range(len(strokes)):
            t = row_of[log.keystroke_start[c] + j]
            wanted = every.candidates[t][every.candidates[t] >= 0]
            expected = [reference.feedback(strokes[: j + 1], texts[q], previous) for q in wanted]
            expected = np.array(expected).reshape(-1, 16)
            np.testing.assert_allclose(of_every[t, : len(wanted), :16], expected, atol=1e-6)
            served = serving.features(wanted)
            np.testing.assert_allclose(served, expected, atol=1e-6)
            nonzero += (expected > 0).any(axis=0)
            at, prefix, shown = strokes[j]
            dwell = strokes[j + 1][0] - at if j + 1 < len(strokes) else 0.0
            serving.observe(
                fold(prefix).encode(),
                [replay.index.find(q) for q in shown],
                dwell=dwell,
                texts=[fold(q).encode() for q in shown],
            )
    assert (nonzero > 0).all()  # the comparison has seen every feature at work


def rare_table(make_table, seed=3):
    """Lists that name only some phrases, and queries that one or two people alone submit.

    Everything happens at noon or midnight and takes days, so that compositions overlap, of one user
    too, and things happen at the same time.
    """
    table = make_table(seed, users=6, list_length=2)
    rows = table.to_pylist()
    half_day = dt.timedelta(hours=12)
    start = min(row["submitted_at"] for row in rows)
    for i, row in enumerate(rows):
        begin = start + (row["submitted_at"] - start) // half_day * half_day
        for j, stroke in enumerate(row["keystrokes"]):
            stroke["at"] = begin + j * half_day
        row["submitted_at"] = begin + (len(row["keystrokes"]) + i % 20) * half_day
        if i % 5 == 0:
            row["query"] = f"{row['query']} {'mine' if i % 2 else 'ours'} {i % 3}"
        if i % 4 == 0:  # nothing was shown
            row["keystrokes"] = [stroke | {"suggestions": []} for stroke in row["keystrokes"]]
    return pa.Table.from_pylist(rows, schema=table.schema)


@pytest.mark.parametrize("lists", ["own", "shown"])
@pytest.mark.parametrize("name", ["mpc", "personal", "timesense"])
@pytest.mark.parametrize("catalogue", [False, True])
def test_candidates_by_definition(make_table, name, catalogue, lists):
    log = read_compositions(rare_table(make_table))
    queries = None
    events = [
        (int(at), log.phrases[q], log.users[u])
        for at, q, u in zip(log.submitted_at, log.query, log.user, strict=True)
    ]
    if catalogue:
        early = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
        who = [None, "user 0", "user 0", "user 1", "somebody else"]
        texts = ["newton", "new delhi", "new delhi", "new delhi", "paris"]
        table = pa.table({"query": texts, "at": [early] * 5, "user": who})
        listed, named = table.slice(0, 1).drop("user"), table.slice(1)  # one without users vouches
        queries = joined_logs([read_queries(listed), read_queries(named)])
        events += [(int(early.timestamp() * 1e6), q, u) for q, u in zip(texts, who, strict=True)]
    replay = Replay(log, queries=queries).over(lists)
    texts = replay.index.phrases(range(len(replay.index)))
    relevance = Relevance(name, deviations=(1.5, 0.7, 1.1)).mixed(0.4)
    moments = replay.moments(relevance, replay.every_keystroke(TRAIN, VALID, TEST), n=4)
    f = relevance.factors
    unknown = 0
    for t in range(0, len(moments), 7):
        c, k = moments.composition[t], moments.keystroke[t]
        _, prefix, shown = strokes_of(log, c)[k - log.keystroke_start[c]]
        now, user = log.at[log.keystroke_start[c]], log.users[log.user[c]]
        best, scores = reference.candidates(
            events,
            now,
            user,
            prefix,
            shown if lists == "shown" else None,
            3,
            WINDOW,
            lambda *counts: float(np.log1p(counts) @ f),
            4,
            own=name == "personal",
        )
        found = [texts[q] for q in moments.candidates[t] if q >= 0]
        assert found == best
        np.testing.assert_allclose(moments.relevance[t, : len(best)], scores, atol=1e-9)
        assert np.isneginf(moments.relevance[t, len(best) :]).all()
        wanted = log.phrases[log.query[c]]
        assert moments.position[t] == (best.index(wanted) if wanted in best else -1)
        unknown += (~moments.known[t, : len(best)]).sum()
    assert (unknown > 0) == (name == "personal")  # of one's own alone


def test_what_was_submitted_last_had_been_submitted_before_a_composition_began(make_table):
    table = rare_table(make_table)
    rows = sorted(table.to_pylist(), key=lambda row: row["submitted_at"])
    replay = Replay(read_compositions(table))
    texts = replay.index.phrases(range(len(replay.index)))
    overlaps = 0
    for c, row in enumerate(rows):
        begin = row["keystrokes"][0]["at"]
        others = [other for other in rows if other["user"] == row["user"]]
        done = [other for other in others if other["submitted_at"] < begin]
        overlaps += len(done) < others.index(row)
        expected = done[-1]["query"] if done else None
        last = replay.previous[c]
        assert (texts[last] if last >= 0 else None) == expected
    assert overlaps > 10


def test_relevance_of_one_query_agrees_with_the_sweep(toy_log):
    replay = Replay(toy_log)
    relevance = Relevance(
        "timesense", deviations=(2.0, 1.0, 3.0), learned=np.linspace(0, 1, len(replay.index))
    ).mixed(0.3)
    moments = replay.moments(relevance, replay.last_keystrokes(TRAIN, VALID, TEST))
    moments = moments.where(moments.candidates[:, 0] >= 0)
    assert len(moments) >= 50
    first = moments.candidates[:, 0]
    found = replay.relevance_of(relevance, first, moments.composition)
    np.testing.assert_allclose(found, moments.relevance[:, 0], atol=1e-9)


def test_the_split_is_by_time_within_each_user(toy_log):
    replay = Replay(toy_log)
    for u in range(len(toy_log.users)):
        own = toy_log.user == u
        assert np.bincount(replay.part[own]).tolist() == [8, 4, 4]
        assert (np.diff(replay.part[own]) >= 0).all()  # the log is in order of submission


def test_users_with_too_few_compositions_are_left_out(make_table):
    rare = [
        row | {"user": "rare", "composition": f"rare {i}"}
        for i, row in enumerate(make_table(1, users=1, compositions=3).to_pylist())
    ]
    table = make_table(0, users=2)
    table = pa.concat_tables([table, pa.Table.from_pylist(rare, schema=table.schema)])
    replay = Replay(read_compositions(table), min_compositions=10)
    assert replay.dropped_users == 1
    with pytest.raises(InputError, match="no user has 100 compositions"):
        Replay(read_compositions(table), min_compositions=100)
    with pytest.raises(InputError, match="at least 4"):
        Replay(read_compositions(table), min_compositions=1)


def test_suggestions_off_the_prefix_are_counted(make_table):
    table = make_table(0, users=1)
    log = read_compositions(table)
    expected = sum(
        not fold(shown).startswith(fold(stroke["prefix"]))
        for row in table.to_pylist()
        for stroke in row["keystrokes"]
        for shown in stroke["suggestions"]
    )
    assert Replay(log).off_prefix == expected > 0


def test_the_share_of_what_was_shown_that_a_completer_would_suggest(make_table):
    log = read_compositions(rare_table(make_table))
    replay = Replay(log)
    texts = replay.index.phrases(range(len(replay.index)))
    moments = replay.moments(Relevance.named("mpc"), replay.every_keystroke(TEST), n=3)
    suggested = []
    for t, k in enumerate(moments.keystroke):
        own = {texts[q] for q in moments.candidates[t] if q >= 0}
        listed = log.shown[log.list_start[k] : log.list_start[k + 1]]
        suggested += [log.phrases[q] in own for q in listed]
    assert 0 < sum(suggested) < len(suggested)
    assert replay.shown_share(moments) == pytest.approx(np.mean(suggested))
    nothing = moments.where(np.diff(log.list_start)[moments.keystroke] == 0)
    assert len(nothing)
    assert np.isnan(replay.shown_share(nothing))


def test_the_submitted_query_joins_with_the_relevance_that_it_has_then(make_table):
    log = read_compositions(rare_table(make_table))
    replay = Replay(log)
    texts = replay.index.phrases(range(len(replay.index)))
    relevance = Relevance("personal", deviations=(1.5, 0.7, 1.1)).mixed(0.4)
    moments = replay.moments(relevance, replay.last_keystrokes(TRAIN, VALID, TEST), n=1)
    joined = replay.with_submitted(moments, relevance)
    times = zip(log.submitted_at.tolist(), log.query, log.user, strict=True)
    events = [(at, log.phrases[q], log.users[u]) for at, q, u in times]
    high = 0
    for t, c in enumerate(joined.composition):
        wanted = log.phrases[log.query[c]]
        assert texts[joined.candidates[t, joined.position[t]]] == wanted
        if moments.position[t] >= 0:
            assert joined.candidates[t, -1] == -1
            continue
        now, user = log.at[log.keystroke_start[c]], log.users[log.user[c]]
        every, scores = reference.candidates(
            events,
            now,
            user,
            wanted,
            None,
            3,
            WINDOW,
            lambda *counts: float(np.log1p(counts) @ relevance.factors),
            99,
            own=True,
        )
        expected = dict(zip(every, scores, strict=True)).get(wanted, 0.0)
        assert joined.relevance[t, -1] == pytest.approx(expected)
        high += expected > 0
    assert high > 5
