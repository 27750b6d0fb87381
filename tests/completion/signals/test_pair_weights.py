"""Weights for pairs of queries: their optimum by definition, and what of a log they are learned."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.signals import sessions_of

from telic.completion.signals import STATIC, Searches, learn, lessons_of
from telic.completion.signals.gates import Worth
from telic.completion.signals.groups import FEATURES, PAIRS
from telic.completion.signals.pair_weights import (
    SPARSITY,
    PairLessons,
    pair_lessons_of,
    users_of,
)
from telic.completion.signals.pool import POOL
from telic.completion.signals.query_pairs import (
    NO_PAIRS,
    PairWeights,
    pair_number,
    pair_weight,
    weights_of,
)
from telic.completion.signals.sweep import one_prefix, walk
from telic.completion.signals.weights import choosing_moments
from telic.data.queries import QueryLog
from telic.errors import InputError
from telic.simulate.searchers import Causes, searchers

FOLLOWING = Causes(**dict.fromkeys(Causes.__dataclass_fields__, 0.0) | {"associated": 0.9})


@pytest.fixture(scope="module")
def caused():
    return Searches(searchers(FOLLOWING, users=60, sessions=20, nouns=12, seed=4), min_users=2)


@pytest.fixture(scope="module")
def moments(caused):
    events = np.flatnonzero(caused.part == 1)
    return list(walk(caused, *one_prefix(caused, events, np.random.default_rng(0)), at_once=50))


def by_definition(moments, model):
    """Yield of each choice the score and the pairs of each candidate, and which was chosen."""
    for piece in moments:
        scores = model.scores(piece)
        for t in range(len(piece)):
            rows = [
                (scores[t, j], piece.pair[piece.followed == t * POOL + j].tolist())
                for j in range(POOL)
                if scores[t, j] > -np.inf
            ]
            chosen = int(piece.position[t])
            if chosen >= 0 and scores[t, chosen] > -np.inf and any(pairs for _, pairs in rows):
                before = int((scores[t, :chosen] > -np.inf).sum())
                yield rows, before


@pytest.mark.parametrize("penalty", [0.3, 3.0])
@pytest.mark.parametrize("base", [(), ("popularity", "personal")], ids=str)
def test_the_weights_are_at_their_optimum(caused, moments, base, penalty):
    model = lessons_of(caused).fit(dict.fromkeys(base, 10.0))
    lessons = PairLessons(moments, model)
    choices = list(by_definition(moments, model))
    assert len(lessons) == len(choices) > 50
    fitted = lessons.fit(penalty)
    weight = dict(zip(*(array.tolist() for array in fitted.pairs), strict=True))
    slope = {}
    for rows, chosen in choices:
        scores = np.array([score + sum(weight.get(p, 0.0) for p in pairs) for score, pairs in rows])
        chance = np.exp(scores - scores.max())
        chance /= chance.sum()
        for j, (_, pairs) in enumerate(rows):
            for p in pairs:
                slope[p] = slope.get(p, 0.0) + chance[j] - (j == chosen)
    assert len(weight) > 3
    assert 0.0 not in weight.values()
    assert set(weight) < set(slope)
    for p, own in slope.items():
        w = weight.get(p, 0.0)
        if w:
            assert own + penalty * (w + SPARSITY * np.sign(w)) == pytest.approx(0, abs=0.02)
        else:
            assert abs(own) <= SPARSITY * penalty + 0.02
    assert fitted.pair_choices == len(choices) == len(lessons)
    assert 0 <= fitted.pair_gap < 0.1
    assert fitted.penalties == model.penalties | {PAIRS: penalty}
    assert fitted.weights[FEATURES.index("learned to follow")] == 1.0


def test_scores_add_the_weight_of_each_earlier_query(caused, moments):
    fitted = PairLessons(moments, STATIC).fit(0.3)
    weight = dict(zip(*(array.tolist() for array in fitted.pairs), strict=True))
    moved = 0
    for piece in moments:
        expected = STATIC.scores(piece)
        for at, pair in zip(piece.followed.tolist(), piece.pair.tolist(), strict=True):
            expected[divmod(at, POOL)] += weight.get(pair, 0.0)
            moved += pair in weight
        assert fitted.scores(piece) == pytest.approx(expected)
    assert moved > 50


def log_of(rows):
    """Return a log of (user, minute, query)."""
    users, minutes, texts = zip(*rows, strict=True)
    names, queries = sorted(set(users)), sorted(set(texts))
    return QueryLog(
        queries,
        np.array([queries.index(text) for text in texts], np.int32),
        60_000_000 * np.array(minutes),
        names,
        np.array([names.index(user) for user in users], np.int32),
        np.ones(len(rows)),
    )


def test_a_query_that_was_submitted_twice_in_the_session_counts_twice():
    rows = [("ann", 0, "tea"), ("ann", 1, "tea pot"), ("ben", 0, "tea"), ("ben", 1, "tea cup")]
    rows += [("cat", 100, "tea"), ("cat", 101, "tea"), ("cat", 102, "tea pot")]
    searches = Searches(log_of(sorted(rows, key=lambda row: row[1])), min_users=1)
    moments = list(walk(searches, np.array([6]), np.array([1])))
    choices = PairLessons(moments, STATIC)._choices
    assert sorted(choices.shared_value.tolist()) == [2.0, 2.0, 2.0]  # tea, tea pot and tea cup
    ((rows, _),) = by_definition(moments, STATIC)
    assert len(rows) == 3
    assert all(len(pairs) == 2 for _, pairs in rows)


def test_sessions_that_cause_something_open_the_gate_and_exchanged_ones_do_not():
    told = Searches(sessions_of(60, 12, caused=True), min_users=2)
    for log, expected in ((told, "on: MRR +"), (told.shuffled_sessions(), "off: MRR ")):
        found = learn(log, lessons_of(log), choosing_moments(log), (PAIRS,))
        assert found.gates[PAIRS].startswith(expected)
        assert (PAIRS in found.penalties) == (len(found.pairs.pair) > 0) == ("on" in expected)


def test_the_prefixes_to_learn_from_can_be_given(caused):
    events = np.flatnonzero(caused.part == 1)[:150]
    given = pair_lessons_of(caused, STATIC, (events, np.ones(len(events), np.int64)))
    drawn = pair_lessons_of(caused, STATIC, most=150)
    assert 0 < len(given) < 150 > len(drawn) > 0
    assert given.fit(1.0).pairs.pair.tolist() != drawn.fit(1.0).pairs.pair.tolist()
    every = pair_lessons_of(caused, STATIC)
    assert len(every) > len(drawn)


def test_of_a_log_without_sessions_no_pair_is_learned(caused):
    alone = caused.shuffled_times()  # leaves sessions out
    lessons = pair_lessons_of(alone, STATIC)
    assert len(lessons) == 0
    fitted = lessons.fit(1.0)
    assert len(fitted.pairs.pair) == 0
    found = learn(alone, lessons_of(alone), choosing_moments(alone), (PAIRS,))
    assert found.gates[PAIRS].startswith("off: no pair of queries came before")
    assert not found.penalties


def test_what_followed_nothing_is_one_candidate_without_a_change_of_any_loss(caused, moments):
    model = lessons_of(caused).fit({"popularity": 10.0})
    lessons, losses = PairLessons(moments, model), []
    for rows, chosen in by_definition(moments, model):
        scores = np.array([score for score, _ in rows])
        losses.append(np.log(np.exp(scores - scores[chosen]).sum()))
    choices = lessons._choices
    assert choices.loss(np.zeros(choices.size)) == pytest.approx(np.mean(losses))
    told = [sum(bool(pairs) for _, pairs in rows) for rows, _ in by_definition(moments, model)]
    assert (np.diff(choices.start) <= np.array(told) + 2).all()


def users_by_definition(searches, end):
    users = {}
    for e in range(end):
        b, steps = searches.before[e], 0
        while b >= 0 and steps < 5 and searches.count[e] > 0:
            pair = int(searches.query[b]) * len(searches.index) + int(searches.query[e])
            users.setdefault(pair, set()).add(int(searches.user[e]))
            b, steps = searches.before[b], steps + 1
    return users


def test_users_of_a_pair_are_counted_once_each(caused):
    end = len(caused) // 2
    expected = users_by_definition(caused, end)
    pairs = np.array(sorted({*expected, 0, 10**9}))
    counts = [len(expected.get(pair, ())) for pair in pairs.tolist()]
    assert users_of(caused, pairs, end).tolist() == counts
    assert len(set(counts)) > 3
    assert users_of(caused, pairs, 0).tolist() == [0] * len(pairs)
    uncounted = copy(caused)
    uncounted.count = np.zeros(len(caused))
    assert users_of(uncounted, pairs, end).tolist() == [0] * len(pairs)


def test_users_of_one_network_are_perhaps_one_person(caused):
    log = copy(caused)
    log.submissions = replace(caused.submissions, network=np.zeros(len(caused), np.int64))
    pairs = np.array(sorted(users_by_definition(caused, len(caused))))
    assert users_of(caused, pairs, len(caused)).max() > 1
    assert users_of(log, pairs, len(log)).tolist() == [1] * len(pairs)


def test_what_few_users_did_next_has_no_weight():
    """Three go from red to tea, one from red to tee, again and again, and a fourth at last."""
    visits = [(user, "tea") for user in ("ann", "ben", "cat")] + [("dan", "tee")]
    rows = [(f"u{n}", n % 3, text) for n in range(12) for text in ("tea", "tee", "red")]
    for time in range(40):
        for n, (user, then) in enumerate(visits):
            at = 100 + 200 * time + 10 * n
            rows += [(user, at, "red"), (user, at + 1, then)]
    rows += [("eve", 9000, "red"), ("eve", 9001, "tea")]
    searches = Searches(log_of(sorted(rows, key=lambda row: row[1])), min_users=4)
    events = np.flatnonzero(searches.before >= 0)

    def learned(events):
        lessons = pair_lessons_of(searches, STATIC, (events, np.ones(len(events), np.int64)))
        fitted = lessons.fit(0.1)
        assert (fitted.pair_choices > 0) == (len(lessons) > 0) == (len(fitted.pairs.pair) > 0)
        return fitted.pairs.pair.tolist()

    red, tea = (searches.index.find(text) for text in ("red", "tea"))
    assert learned(events) == [pair_number(red, tea, len(searches.index))]
    assert learned(events[:-1]) == []  # eve is not known by then


def test_of_a_query_that_only_its_user_knows_nothing_is_learned_for_all():
    """Lists for everybody do not have it, so that no pair is to blame that it was not first."""
    log = searchers(FOLLOWING, users=60, sessions=20, nouns=12, seed=4)
    searches = Searches(log, min_users=12)
    events = np.flatnonzero(searches.part == 1)
    moments = list(walk(searches, *one_prefix(searches, events, np.random.default_rng(0))))
    expected = list(by_definition(moments, STATIC))
    own = sum(int((~piece.known[piece.position >= 0]).sum()) for piece in moments)
    lessons = PairLessons(moments, STATIC)
    assert own > 5
    assert len(lessons) == len(expected) > 5
    losses = [
        np.log(sum(np.exp(score - rows[chosen][0]) for score, _ in rows))
        for rows, chosen in expected
    ]
    choices = lessons._choices
    assert choices.loss(np.zeros(choices.size)) == pytest.approx(np.mean(losses))


def test_prefixes_without_a_pair_of_many_are_not_counted(moments):
    """They stay in the logit, where they change nothing."""
    every = PairLessons(moments, STATIC)
    some = PairLessons(moments, STATIC, lambda pairs: np.arange(len(pairs)) % 7 == 0)
    kept = set(some._pairs.tolist())
    told = [
        any(kept & set(pairs) for _, pairs in rows) for rows, _ in by_definition(moments, STATIC)
    ]
    assert 0 < len(some) == sum(told) < len(every) == len(told)


def test_no_prefix_is_no_lesson(caused):
    none = np.zeros(0, np.int64)
    with pytest.raises(InputError, match="no prefix to learn weights of pairs from"):
        pair_lessons_of(caused, STATIC, (none, none))


def test_a_penalty_is_above_zero(caused):
    with pytest.raises(InputError, match="penalty"):
        pair_lessons_of(caused, STATIC, most=100).fit(0.0)


@given(
    st.dictionaries(st.tuples(st.integers(0, 8), st.integers(0, 8)), st.floats(-5, 5)),
    st.permutations(range(9)),
    st.integers(0, 9),
)
def test_weights_of_some_phrases_are_found_by_their_new_numbers(weight, order, kept):
    keys = sorted(pair_number(p, q, 9) for p, q in weight)
    pairs = PairWeights(np.array(keys, np.int64), np.array([weight[divmod(k, 9)] for k in keys]))
    new = pairs.renumbered(np.array(order[:kept], np.int64), 9)
    assert (np.diff(new.pair) > 0).all()
    asked = [(p, q) for p in range(kept) for q in range(kept)]
    numbers = np.array([pair_number(p, q, kept) for p, q in asked], np.int64)
    expected = [weight.get((order[p], order[q]), 0.0) for p, q in asked]
    assert weights_of(new, numbers).tolist() == expected
    assert [pair_weight.py_func(new, number) for number in numbers] == expected
    assert len(new.pair) == sum(p in order[:kept] and q in order[:kept] for p, q in weight)


def test_without_pairs_nothing_is_added():
    assert weights_of(NO_PAIRS, np.arange(3)).tolist() == [0.0, 0.0, 0.0]


def test_a_gain_of_few_users_is_not_certain():
    unit = np.repeat(np.arange(4), 50)
    alike = Worth.of(np.full(200, 0.5), np.full(200, 0.5), unit)
    assert "+0.00 points" in alike.said
    assert "(+0.00 to +0.00)" not in alike.said  # users seen were alike; others need not be
    worth = Worth.of(np.full(200, 0.5), np.full(200, 0.4), unit)
    assert not worth.certain
    assert worth.gain == pytest.approx(0.1)
    assert worth.said.startswith("off: MRR +10.00")
