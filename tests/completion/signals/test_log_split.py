"""Sessions, the split and the controls."""

from dataclasses import replace

import numpy as np
import pytest

from telic.completion.signals.log_split import CHOSEN, LEARNED, TESTED, Searches
from telic.data.queries import QueryLog
from telic.errors import InputError

MINUTE = 60_000_000


def log_of(rows, users=("ann", "ben")):
    """A log from (minute, user, query)."""
    texts = sorted({text for _, _, text in rows})
    at, user, text = zip(*rows, strict=True)
    return QueryLog(
        texts,
        np.array([texts.index(t) for t in text], np.int32),
        MINUTE * np.array(at, np.int64),
        list(users),
        np.array(user, np.int32),
        np.ones(len(rows)),
    )


def padded(rows):
    """With more submissions, much later, so that the log can be split."""
    return log_of(
        [*rows, *((10_000 + 100 * i, i % 4, f"later {i}") for i in range(60))],
        users=("ann", "ben", "eve", "joe"),
    )


def test_a_session_ends_after_the_gap_and_holds_one_user():
    rows = [(0, 0, "a"), (10, 1, "b"), (20, 0, "c"), (50, 0, "d"), (81, 0, "e")]
    assert Searches(padded(rows), min_users=1).before[:5].tolist() == [-1, -1, 0, 2, -1]
    assert Searches(padded(rows), session_gap=10).before[:5].tolist() == [-1] * 5


def test_what_comes_at_the_same_moment_is_not_before():
    rows = [(0, 0, "a"), (0, 0, "b"), (5, 0, "c"), (5, 0, "d"), (6, 0, "e")]
    assert Searches(padded(rows)).before[:5].tolist() == [-1, -1, 1, 1, 3]


def test_users_of_one_network_do_not_pass_for_many():
    rows = [(i, i % 4, "a") for i in range(4)] + [(10 + i, i % 4, "b") for i in range(4)]
    log = padded(rows)
    network = np.zeros(len(log.query), np.int32)
    network[4:8] = [1, 2, 3, -1]
    apart = replace(log, groups={"network": (["x", "y", "z", "w"], network)})
    for each, opened in ((log, ["a", "b"]), (apart, ["b"])):
        searches = Searches(each, min_users=3)
        assert searches.index.phrases(searches.query[:8][searches.opens[:8]]) == opened
        shuffled = searches.shuffled_times()
        assert (shuffled.submissions.network is None) == (each is log)


def test_exchanged_times_keep_which_submissions_vouch(make_log):
    log = make_log(3, rows=300, users=20)
    told = np.arange(300) % 7 == 0
    searches = Searches(replace(log, of_catalogue=told), min_users=50)  # so many users never meet
    other = searches.shuffled_times()
    for each in (searches, other):
        opened = each.query[each.submissions.vouched]
        assert sorted(set(each.query[each.opens])) == sorted(set(opened))
    vouching = np.sort(searches.query[searches.submissions.vouched])
    assert (np.sort(other.query[other.submissions.vouched]) == vouching).all()


def test_submissions_that_name_nobody_have_no_session():
    log = log_of([(i, 0, "a") for i in range(0, 4000, 100)], users=(None,))
    searches = Searches(log)
    assert (searches.before == -1).all()
    assert len(np.unique(searches.unit)) == len(searches)


def test_spellings_that_fold_alike_are_one_phrase_in_the_commonest_spelling():
    rows = [(i, 0, text) for i, text in enumerate(["té", "Tea", "tea", "TE", "te", "te"])]
    searches = Searches(padded(rows))
    assert searches.index.phrases(searches.query[:6]) == ["te", "Tea", "Tea", "te", "te", "te"]


def test_the_split_is_later_in_time_and_other_people(make_log):
    for seed in range(5):
        searches = Searches(make_log(seed, rows=400, users=20), seed=seed)
        part, user = searches.part, searches.user
        learned, chosen, tested = (part == p for p in (LEARNED, CHOSEN, TESTED))
        assert searches.at[learned].max() < searches.at[chosen | tested].min()
        assert not set(user[tested & (user >= 0)]) & set(user[(learned | chosen) & (user >= 0)])


def test_exchanged_sessions_are_other_peoples_and_keep_their_number(make_log):
    searches = Searches(make_log(1, rows=4000, users=20))
    other = searches.shuffled_sessions()
    had = searches.before >= 0
    assert ((other.before >= 0) == had).all()
    assert sorted(other.before[had]) == sorted(searches.before[had])
    own = searches.user[other.before[had]] == searches.user[had]
    assert own.mean() < 0.02
    for part in np.unique(searches.part):
        rows = had & (searches.part == part)
        assert sorted(other.before[rows]) == sorted(searches.before[rows])


@pytest.mark.parametrize("most", [0.5, 0.9, 1.0])
def test_who_makes_most_of_the_log_gets_no_session_of_his_own_back(most):
    rng, rows = np.random.default_rng(0), 2000
    user = np.where(rng.random(rows) < most, 0, rng.integers(0, 8, rows)).astype(np.int32)
    log = QueryLog(
        ["tea", "ten"],
        rng.integers(0, 2, rows).astype(np.int32),
        60_000_000 * np.arange(rows),
        list("abcdefgh"),
        user,
        np.ones(rows),
    )
    searches = Searches(log, min_users=1)
    searches.__dict__["part"] = np.full(rows, TESTED, np.int8)
    other = searches.shuffled_sessions()
    had = other.before >= 0
    assert (searches.user[other.before[had]] != searches.user[had]).all()
    # As many of the others' as there are find somebody to exchange with, or nearly.
    others = (searches.before >= 0) & (searches.user > 0)
    assert had.sum() >= 1.5 * others.sum()


def test_exchanged_times_keep_who_submitted_what(make_log):
    searches = Searches(make_log(2, rows=400, users=20))
    lengths = dict(zip(searches.query.tolist(), searches.longest.tolist(), strict=True))
    other = searches.shuffled_times()

    def pairs(s):
        return sorted(zip(s.user.tolist(), s.query.tolist(), s.count.tolist(), strict=True))

    assert pairs(searches) == pairs(other)
    assert (searches.at == other.at).all()
    assert (searches.query != other.query).mean() > 0.5
    assert (other.before == -1).all()
    # Whatever was known of the queries in their old places, each has its own prefixes.
    assert other.longest.tolist() == [lengths[query] for query in other.query.tolist()]


def test_a_log_that_cannot_be_split_says_so(make_log):
    with pytest.raises(InputError, match="too few to split"):
        Searches(make_log(0, rows=10)).part  # noqa: B018
    with pytest.raises(InputError, match="split in time"):
        Searches(log_of([(0, i % 2, "a") for i in range(50)])).part  # noqa: B018
    with pytest.raises(InputError, match="session_gap is 0"):
        Searches(make_log(0), session_gap=0)
    with pytest.raises(InputError, match="session_gap is inf"):
        Searches(make_log(0), session_gap=float("inf"))
    with pytest.raises(InputError, match="min_users is 0"):
        Searches(make_log(0), min_users=0)
