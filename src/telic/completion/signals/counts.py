"""What is known at a moment of a query log: counts of phrases, of users' own queries, of sessions.

The arrays are moved on submission by submission; nothing is counted before it happened.
"""

from typing import NamedTuple

import numpy as np

from telic.completion.engine.array_kernels import frozen, place_in
from telic.completion.engine.prefix_kernels import BLOCK
from telic.completion.signals.log_split import Searches
from telic.completion.signals.opened_apps import AppCounts, count_opened
from telic.completion.signals.overlap import NO_TEXTS, Texts, taken, texts_of
from telic.kernels import kernel

DAY = 24 * 3600 * 1_000_000
WINDOWS = (28 * DAY, 7 * DAY, DAY)
"""Microseconds that the recent counts look back."""
WEEK = 1
"""Which of them ranks the candidates that are popular lately."""
CONTEXT = 5
"""How many earlier submissions of a session are looked at."""
HOURS, WEEKDAYS = 24, 7


class CountArrays(NamedTuple):
    """The arrays; phrases are numbered as in the index."""

    texts: Texts
    """The folded phrases."""
    apps: AppCounts
    """What was submitted after which app."""
    known: np.ndarray
    """bool (n,): whether the phrase may be suggested to everybody."""
    popular: np.ndarray
    """float64 (n,): submissions; of a phrase that an editor counted anew, what he said."""
    logged: np.ndarray
    """The same as the log has them: what the hours, the apps and the sessions below are shares of.
    It is the very array of `popular` where nothing was counted anew."""
    people: np.ndarray
    """float64 (n,): different users who submitted it."""
    recent: np.ndarray
    """float64 (n, 3): submissions within each of `WINDOWS`."""
    clock: np.ndarray
    """float64 (n + 1, 31): submissions by hour of the day and by day of the week; of all phrases
    in the last row."""
    total: np.ndarray
    """float64 (1,): all submissions."""
    best_popular: np.ndarray
    best_recent: np.ndarray
    """float64: the largest popular, and recent, count of known phrases in each `BLOCK`."""
    own_start: np.ndarray
    own_query: np.ndarray
    own_count: np.ndarray
    own_last: np.ndarray
    """User u's own phrases, ascending: ``own_query[own_start[u]:own_start[u + 1]]``, how often and
    when last; those of later are there with the count 0."""
    pair_start: np.ndarray
    pair_next: np.ndarray
    pair_count: np.ndarray
    """Phrases submitted after phrase p in one session, ascending, in the same layout."""


def read_only(state: CountArrays) -> CountArrays:
    """Return views of a state as those who read it take them, whoever writes it."""
    texts, apps, *arrays = state
    read = Texts(*map(frozen, texts)), AppCounts(*map(frozen, apps))
    return CountArrays(*read, *map(frozen, arrays))


class Own(NamedTuple):
    """The own queries of one user, ascending by number."""

    query: np.ndarray
    times: np.ndarray
    """float64: how often each was submitted."""
    last: np.ndarray
    """int64: when each was submitted last, in microseconds."""


class Beyond(NamedTuple):
    """Phrases that the catalogue does not have: of n there, row i here has the number n + i.

    They are a user's own, or were added while the box serves.
    """

    texts: Texts
    popular: np.ndarray
    """float64: submissions of those that were added; 0 of what one user alone knows."""


class Session(NamedTuple):
    """The earlier queries of a session, the latest first."""

    ids: np.ndarray
    """int64: their numbers; -1 of what is neither in the catalogue nor the user's own."""
    texts: Texts


NOTHING_BEYOND = Beyond(NO_TEXTS, np.zeros(0))


def begun(searches: Searches) -> CountArrays:
    """Return the state before the first submission, with room for what is to come."""
    index = searches.index
    n = len(index)
    named = searches.user >= 0
    own = searches.user[named].astype(np.int64) * n + searches.query[named]
    own_start, own_query = _rows(own, searches.users, n)
    pair_start, pair_next = _rows(_session_pairs(searches.before, searches.query, n), n, n)
    where, event = searches.opened.entries()
    apps = len(searches.apps)
    opened = searches.opened.app[where].astype(np.int64) * n + searches.query[event]
    app_start, app_query = _rows(opened, apps, n)
    blocks, popular = n // BLOCK + 1, np.zeros(n)
    return CountArrays(
        texts_of(*index.all_folded()),
        AppCounts(
            np.zeros(apps, bool), np.zeros(apps), app_start, app_query, np.zeros(len(app_query))
        ),
        np.zeros(n, bool),
        popular,
        popular,
        np.zeros(n),
        np.zeros((n, len(WINDOWS))),
        np.zeros((n + 1, HOURS + WEEKDAYS)),
        np.zeros(1),
        np.zeros(blocks),
        np.zeros(blocks),
        own_start,
        own_query,
        np.zeros(len(own_query)),
        np.zeros(len(own_query), np.int64),
        pair_start,
        pair_next,
        np.zeros(len(pair_next)),
    )


def _rows(pairs: np.ndarray, owners: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, sparse by owner, the different queries of each, of ``owner · size + query``."""
    pairs.sort()  # in place: there may be some hundred million of them
    new = np.ones(len(pairs), bool)
    np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
    pairs = pairs[new]
    start = np.searchsorted(pairs, np.arange(owners + 1, dtype=np.int64) * size)
    return start.astype(np.int64), (pairs % max(size, 1)).astype(np.int32)


def of_catalogue(state: CountArrays, ids: np.ndarray) -> CountArrays:
    """Return what a state knows of some phrases, numbered anew, without anybody's own queries.

    The apps are numbered anew, too: those that are known.
    """
    n = len(ids)
    number = np.full(len(state.known), -1, np.int32)
    number[ids] = np.arange(n)
    texts = state.texts
    forms = [
        array
        for held, start in (
            (texts.text, texts.text_start),
            (texts.word, texts.word_start),
            (texts.gram, texts.gram_start),
        )
        for array in taken(held, start, ids)
    ]
    pairs = _renumbered(
        state.pair_start, state.pair_next, state.pair_count, owners=ids, number=number
    )
    known_apps = np.flatnonzero(state.apps.known)
    apps = _renumbered(
        state.apps.start, state.apps.query, state.apps.times, owners=known_apps, number=number
    )
    popular, recent, known = state.popular[ids], state.recent[ids], state.known[ids]
    return CountArrays(
        Texts(*forms),
        AppCounts(state.apps.known[known_apps], state.apps.total[known_apps], *apps),
        known,
        popular,
        popular,
        state.people[ids],
        recent,
        np.concatenate([state.clock[ids], state.clock[-1:]]),
        state.total,
        best_of(popular, known),
        best_of(recent[:, WEEK], known),
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        np.zeros(0, np.int64),
        *pairs,
    )


def _renumbered(
    start: np.ndarray,
    query: np.ndarray,
    count: np.ndarray,
    *,
    owners: np.ndarray,
    number: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the counts of some owners, of phrases that have a new number."""
    later, begin = taken(query, start, owners)
    times, _ = taken(count, start, owners)
    keep = (number[later] >= 0) & (times > 0)
    start = np.concatenate([[0], np.cumsum(keep)])[begin]
    return start, number[later[keep]], times[keep]


def best_of(counts: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the largest count of known phrases in each `BLOCK`."""
    blocks = np.zeros((len(counts) // BLOCK + 1) * BLOCK)
    blocks[: len(counts)] = np.where(known, counts, 0.0)
    return blocks.reshape(-1, BLOCK).max(axis=1)


@kernel
def _session_pairs(before, query, size):
    """Each query of a session after up to `CONTEXT` earlier ones: earlier · size + query."""
    pairs = np.empty(CONTEXT * len(before), np.int64)
    used = 0
    for e in range(len(before)):
        b, steps = before[e], 0
        while b >= 0 and steps < CONTEXT:
            pairs[used] = np.int64(query[b]) * size + query[e]
            b, steps, used = before[b], steps + 1, used + 1
    return pairs[:used]


@kernel
def own_of(state, u):
    """The own queries of a user of the log, by now; of nobody where u is -1."""
    first, last = (state.own_start[u], state.own_start[u + 1]) if u >= 0 else (0, 0)
    return Own(state.own_query[first:last], state.own_count[first:last], state.own_last[first:last])


@kernel
def moment_of_week(at):
    """The hour of the day and the day of the week (Monday is 0) of a time in UTC."""
    hours = at // (3600 * 1_000_000)
    return hours % HOURS, (hours // HOURS + 3) % WEEKDAYS  # 1 January 1970 was a Thursday


@kernel
def _settle(best, counts, known, q):
    """Find the largest count of a block anew, after one of its counts fell."""
    block = q // BLOCK
    top = 0.0
    for i in range(block * BLOCK, min((block + 1) * BLOCK, len(known))):
        if known[i]:
            top = max(top, counts[i])
    best[block] = top


@kernel
def move_on(state, log, until, expired, done):
    """Count the submissions before the time `until`, and drop what is too old; return how many.

    `done` submissions are counted already; ``expired[w]`` have left window w, and are moved on.
    """
    at, query, user, count, opens, before, opened = log
    while done < len(at) and at[done] < until:
        q, c, u = query[done], count[done], user[done]
        state.popular[q] += c
        state.total[0] += c
        state.known[q] |= opens[done]
        for w in range(len(WINDOWS)):
            state.recent[q, w] += c
        hour, day = moment_of_week(at[done])
        for owner in (np.int64(q), len(state.known)):
            state.clock[owner, hour] += c
            state.clock[owner, HOURS + day] += c
        if u >= 0:
            own = place_in(state.own_query, state.own_start[u], state.own_start[u + 1], q)
            state.people[q] += c > 0.0 and state.own_count[own] == 0.0
            state.own_count[own] += c
            state.own_last[own] = at[done]
        else:
            state.people[q] += c
        if state.known[q]:
            block = q // BLOCK
            state.best_popular[block] = max(state.best_popular[block], state.popular[q])
            state.best_recent[block] = max(state.best_recent[block], state.recent[q, WEEK])
        b, steps = before[done], 0
        while b >= 0 and steps < CONTEXT:
            p = query[b]
            pair = place_in(state.pair_next, state.pair_start[p], state.pair_start[p + 1], q)
            state.pair_count[pair] += c
            b, steps = before[b], steps + 1
        count_opened(state.apps, opened, done, q, c)
        done += 1
    for w in range(len(WINDOWS)):
        while expired[w] < done and at[expired[w]] < until - WINDOWS[w]:
            q = query[expired[w]]
            fell = state.recent[q, w]
            state.recent[q, w] -= count[expired[w]]
            if w == WEEK and state.known[q] and fell >= state.best_recent[q // BLOCK]:
                _settle(state.best_recent, state.recent[:, WEEK], state.known, q)
            expired[w] += 1
    return done
