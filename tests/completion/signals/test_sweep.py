"""Candidates and signals against their definitions, at every prefix of every submission."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.signals import Oracle, grams, words

from telic.completion.engine.folding import fold
from telic.completion.signals import features, pool, sweep
from telic.completion.signals.counts import CONTEXT, WEEK
from telic.completion.signals.groups import FEATURES
from telic.completion.signals.log_split import Searches
from telic.completion.signals.overlap import NO_TEXTS, common, gram_set, texts_of_forms, word_set
from telic.data.queries import QueryLog


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shuffle", ["", "shuffled_sessions", "shuffled_times"])
def test_signals_are_what_they_say(make_log, seed, shuffle):
    searches = Searches(make_log(seed), min_users=2, seed=seed)
    searches = getattr(searches, shuffle)() if shuffle else searches
    events = np.arange(0, len(searches), 3)
    moments = [*sweep.walk(searches, *sweep.every_prefix(searches, events), at_once=100)]
    at_length = [(m, t) for m in moments for t in range(len(m))]
    assert len(at_length) > 150
    oracle = None
    for piece, t in at_length:
        event = int(piece.event[t])
        if oracle is None or oracle.event != event:
            oracle = Oracle(searches, event)
        query = int(searches.query[event])
        prefix = fold(searches.index.phrase(query))[: piece.length[t]]
        found = [int(q) for q in piece.candidates[t] if q >= 0]
        expected, first = oracle.pool(prefix, pool.POPULAR, pool.RECENT, pool.OWN, pool.FOLLOWING)
        assert found[: len(first)] == first
        following = {
            q
            for p, q, _ in oracle.pairs
            if p in oracle.session and oracle.known(p) and oracle.known(q)
        }
        assert expected <= set(found) <= expected | following
        for j, q in enumerate(found):
            assert piece.known[t, j] == oracle.known(q)
            row = oracle.row(q, prefix)
            assert piece.features[t, j] == pytest.approx(row, abs=1e-12), FEATURES
            pairs = piece.pair[piece.followed == t * pool.POOL + j]
            assert sorted(pairs) == sorted(
                p * len(searches.index) + q for p in oracle.session if oracle.follows(p, q, 1) > 0
            )
        assert piece.position[t] == (found.index(query) if query in found else -1)
        assert piece.possible[t] == (oracle.known(query) or bool(oracle.own(query)))
        own = [e for e in oracle.past if searches.user[e] == oracle.user >= 0]
        assert piece.seen[t].tolist() == [oracle.counted(own), oracle.counted(oracle.of(query))]


@pytest.mark.parametrize("min_users", [1, 2])
def test_what_one_user_alone_did_next_tells_nothing(min_users):
    """Ann goes from her own query to one that all know, twice; the third time it would follow."""
    rows = [(0, "house"), (0, "house")]  # the second by somebody else
    rows += [(100, "mine"), (101, "house"), (200, "mine"), (201, "house"), (300, "mine")]
    rows += [(301, "house")]
    log = QueryLog(
        ["house", "mine"],
        np.array([text == "mine" for _, text in rows], np.int32),
        60_000_000 * np.array([minute for minute, _ in rows]),
        ["ann", "ben"],
        np.array([0, 1, *[0] * 6], np.int32),
        np.ones(8),
    )
    searches = Searches(log, min_users=min_users)
    (moments,) = sweep.walk(searches, np.array([7]), np.array([1]))
    house = moments.features[0, moments.candidates[0].tolist().index(searches.query[7])]
    assert (house[FEATURES.index("follows")] > 0) == (min_users == 1)
    assert house[FEATURES.index("submitted before")] == 0


def test_a_query_goes_on_from_the_last_one_of_a_longer_session():
    """Ann asks for coffee, for milk, for tea, and then for a tea pot, all within minutes."""
    texts = ["coffee", "milk", "tea", "tea pot"]
    rows = [(0, 3, 1), (0, 2, 1), (100, 0, 0), (101, 1, 0), (102, 2, 0), (103, 3, 0)]
    minutes, query, user = map(np.array, zip(*rows, strict=True))
    log = QueryLog(
        texts,
        query.astype(np.int32),
        60_000_000 * minutes,
        ["ann", "ben"],
        user.astype(np.int32),
        np.ones(6),
    )
    searches = Searches(log, min_users=1)
    (moments,) = sweep.walk(searches, np.array([5]), np.array([1]))
    candidates = [searches.index.phrase(q) for q in moments.candidates[0] if q >= 0]
    rows = dict(zip(candidates, moments.features[0], strict=False))
    assert rows["tea pot"][FEATURES.index("continues")] == 1
    assert rows["tea"][FEATURES.index("continues")] == 0


def test_each_query_follows_the_last_ones_of_its_session_and_none_before():
    texts = list("abcdefgh")
    minutes = np.array([*range(8), *range(8)])
    log = QueryLog(
        texts,
        np.tile(np.arange(8), 2)[np.argsort(minutes, kind="stable")].astype(np.int32),
        60_000_000 * np.sort(minutes),
        ["ann", "ben"],
        np.tile([0, 1], 8).astype(np.int32),
        np.ones(16),
    )
    searches = Searches(log, min_users=1)
    state = sweep.state_before(searches, int(log.at[-1]) + 1)
    name = searches.index.phrase
    found = {
        (name(p), name(int(q))): count
        for p in range(8)
        for q, count in zip(
            state.pair_next[state.pair_start[p] : state.pair_start[p + 1]],
            state.pair_count[state.pair_start[p] : state.pair_start[p + 1]],
            strict=True,
        )
    }
    expected = {
        (texts[e], texts[later]): 2
        for later in range(8)
        for e in range(max(0, later - CONTEXT), later)
    }
    assert found == expected


def test_the_state_at_the_end_goes_on_where_the_walk_was(make_log):
    searches = Searches(make_log(7), min_users=2)
    state = sweep.state_before(searches, int(searches.at[-1]) + 1)
    assert state.total[0] == searches.count.sum()
    assert (
        state.popular.tolist()
        == np.bincount(searches.query, searches.count, len(searches.index)).tolist()
    )


def test_the_largest_count_of_each_block_is_known_at_every_moment():
    rng = np.random.default_rng(0)
    m, day = 600, 24 * 3600 * 1_000_000
    log = QueryLog(
        [f"{i:03}" for i in range(150)],
        rng.integers(0, 150, m).astype(np.int32),
        np.sort(rng.integers(0, 40 * day, m)),
        [None, "ann", "ben"],
        rng.integers(0, 3, m).astype(np.int32),
        rng.integers(1, 9, m).astype(float),
    )
    searches = Searches(log, min_users=2)
    for at in (0, 3 * day, 20 * day, 50 * day):
        state = sweep.state_before(searches, at)
        for best, counts in (
            (state.best_popular, state.popular),
            (state.best_recent, state.recent[:, WEEK]),
        ):
            blocks = [counts[b : b + 64] * state.known[b : b + 64] for b in range(0, 150, 64)]
            assert best.tolist() == [block.max() for block in blocks]


def test_the_largest_counts_are_found_across_blocks():
    rng = np.random.default_rng(0)
    n = 500
    for _ in range(30):
        counts, known = rng.integers(0, 9, n).astype(float), rng.random(n) < 0.6
        best = np.array([(counts * known)[b : b + 64].max() for b in range(0, n, 64)])
        low, high = np.sort(rng.integers(0, n, 2))
        ids, room = np.empty(20, np.int64), np.empty(20)
        found = pool._top(counts, known, best, low, high, 20, ids, room)
        fits = [q for q in range(low, high) if known[q] and counts[q] > 0]
        assert ids[:found].tolist() == sorted(fits, key=lambda q: (-counts[q], q))[:20]


texts = st.text("ab é-", max_size=12).map(fold)


@given(texts, texts)
def test_what_two_texts_share(one, other):
    for made, sets in ((word_set, words), (gram_set, grams)):
        arrays = [made(np.frombuffer(text.encode(), np.uint8)) for text in (one, other)]
        plain = [sets(text) if sets is grams else plain_words(text) for text in (one, other)]
        assert [len(a) for a in arrays] == [len(p) for p in plain]
        assert common(*arrays) == len(plain[0] & plain[1])


def plain_words(text):
    found, word = set(), b""
    for byte in [*text.encode(), 32]:
        if byte >= 128 or chr(byte).isalnum():
            word += bytes([byte])
        elif word:
            found.add(word)
            word = b""
    return found


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.just(0.0) | st.floats(1e-12, 1),  # of counts: not below one in a million million
    st.floats(1e-3, 1e3),
)
def test_a_lift_is_drawn_towards_nothing(part, more, share, shrinkage):
    whole = part + more
    value = features.lift(part, whole, share, shrinkage)
    if share <= 0:
        assert value == 0
    elif whole > 0:
        bare = np.log(max(part / whole / share, 1e-300))
        assert min(0, bare) - 1e-9 <= value <= max(0, bare) + 1e-9


def test_no_texts_are_those_of_no_forms():
    for ours, made in zip(NO_TEXTS, texts_of_forms([]), strict=True):
        assert (ours.dtype, ours.shape, ours.flags.writeable) == (made.dtype, made.shape, False)
        np.testing.assert_array_equal(ours, made)
