"""Weights for pairs of queries: the study finds what is there, and nothing where nothing is."""

from pathlib import Path

import numpy as np
import pytest
from tests.held import hold, page

from telic.choice import Elastic
from telic.completion.signals import Searches
from telic.completion.signals.log_split import LEARNED
from telic.data.queries import QueryLog
from telic.errors import InputError
from telic.study import session_pairs
from telic.study.session_pairs import BASES, PENALTIES, earlier_queries, with_pairs
from telic.study.steps import Steps

FIRST, THEN = ("red", "blue"), ("tea", "tee")
MINUTE, HOUR = 60 * 1_000_000, 3600 * 1_000_000


def sessions_of(users, each, *, caused, seed=0):
    """Sessions of two queries; the second is equally often either of two that begin alike."""
    rng = np.random.default_rng(seed)
    first = rng.integers(2, size=(users, each))
    then = 2 + (first if caused else rng.integers(2, size=first.shape))
    at = 2 * HOUR * np.arange(users * each).reshape(each, users).T + rng.integers(MINUTE)
    return QueryLog(
        [*FIRST, *THEN],
        np.stack([first, then], axis=2).ravel().astype(np.int32),
        np.stack([at, at + MINUTE], axis=2).ravel(),
        [f"u{user}" for user in range(users)],
        np.repeat(np.arange(users), 2 * each).astype(np.int32),
        np.ones(2 * users * each),
    )


@pytest.mark.parametrize("caused", [True, False])
def test_weights_gain_where_a_query_causes_the_next_and_only_there(caused):
    found = with_pairs(Searches(sessions_of(40, 12, caused=caused), min_users=2))
    assert [row["model"] for row in found] == list(BASES)
    assert all(Elastic(row["l1"], row["l2"]) in PENALTIES for row in found)
    alone = found[0]
    assert alone["choices"] > 0
    if caused:
        assert alone["low"] > 0
        assert alone["difference"] > 0.05
    else:
        assert alone["low"] <= 0
        assert abs(alone["difference"]) < 0.05


def test_the_penalty_is_that_which_gains_most(monkeypatch):
    monkeypatch.setattr(session_pairs, "PENALTIES", [Elastic(10, 1), Elastic(1e-6, 1e-4)])
    found = with_pairs(Searches(sessions_of(40, 12, caused=True), min_users=2))
    assert (found[0]["l1"], found[0]["l2"]) == (1e-6, 1e-4)
    assert found[0]["weights"] > 0


def test_pairs_are_counted_before_anything_is_learned():
    searches = Searches(sessions_of(40, 12, caused=True), min_users=2)
    red, tee = (searches.index.find(query) for query in ("red", "tee"))
    learned = searches.part == LEARNED
    searches.query[learned & (searches.query == tee)] = red
    pairs = {
        searches.query[searches.before[e]] * len(searches.index) + searches.query[e]: searches.at[e]
        for e in np.flatnonzero(searches.before >= 0)[::-1]
    }
    wanted = {pair for pair, first in pairs.items() if first < searches.at[learned].min()}
    assert 0 < len(wanted) < len(pairs)
    assert set(session_pairs._counted(searches).tolist()) == wanted


def test_a_pair_stands_where_its_earlier_query_and_candidate_say():
    searches = Searches(sessions_of(40, 12, caused=True), min_users=2)
    pairs, n = session_pairs._counted(searches), len(searches.index)
    with_last = np.union1d(pairs, np.arange(n) * n + n - 1)  # as if -1 were the last query
    for moments, place in session_pairs._moments(searches, with_last, LEARNED, 10_000):
        before = earlier_queries(searches, moments.event)
        for t, c, k in np.ndindex(place.shape):
            p, q = int(before[t, k]), int(moments.candidates[t, c])
            pair = p * n + q if p >= 0 and q >= 0 else -1
            found = place[t, c, k]
            assert (with_last[found] == pair) if found >= 0 else pair not in with_last


def test_a_log_without_sessions_is_refused():
    with pytest.raises(InputError, match="no query of the log follows another"):
        with_pairs(Searches(sessions_of(40, 12, caused=True), min_users=2, session_gap=0.001))


def test_a_query_before_another_counts_once():
    searches = Searches(sessions_of(40, 12, caused=True), min_users=2)
    later = np.flatnonzero(searches.before >= 0)
    found = earlier_queries(searches, later)
    assert (found[:, 0] == searches.query[searches.before[later]]).all()
    assert (found[:, 1:] == -1).all()
    again = Searches(sessions_of(2, 40, caused=True), min_users=1, session_gap=24 * 60)
    for before in earlier_queries(again, np.arange(len(again))):
        there = before[before >= 0]
        assert len(np.unique(there)) == len(there)


def test_the_page_says_what_is_gained_on_logs_of_each_size(tmp_path):
    (tmp_path / "qac").mkdir()
    (tmp_path / "qac" / "unimobile_queries.parquet").touch()

    def steps(name, made, *, seed, **options):
        gain = -0.001 if made is session_pairs.real else 1e-6 * options["users"] + 1e-4 * seed
        fitted = {"choices": 9, "weights": 4, "l1": 1e-6, "l2": 1e-4, "mrr": 0.4}
        gained = {"difference": gain, "low": gain - 0.001, "high": gain + 0.001}
        return [{"model": base} | fitted | gained for base in BASES]

    report = session_pairs.study(steps, data=tmp_path)
    hold(Path(__file__).parent / "pages" / "session-pairs.jsonl", page(report))
    text = report.markdown()
    assert "+0.07 (simulated, all causes, 400 users)" in text
    assert "+0.83 (simulated, all causes, 8,000 users)" in text
    assert "too few submissions with such a pair (9)" in text


def test_at_least_one_log_of_each_kind_is_asked_for():
    with pytest.raises(InputError, match="at least 1"):
        session_pairs.study(Steps(), seeds=0)
