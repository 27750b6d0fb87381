"""What is known at a moment of a query log: counts of phrases, of users' own queries, of sessions.

The arrays are moved on submission by submission; nothing is counted before it happened.
"""

from typing import NamedTuple

import numpy as np

from telic.completion.engine.prefix_kernels import BLOCK
from telic.completion.signals.overlap import sets_of
from telic.completion.signals.searches import Searches
from telic.kernels import kernel

DAY = 24 * 3600 * 1_000_000
WINDOWS = (28 * DAY, 7 * DAY, DAY)
"""Microseconds that the recent counts look back."""
WEEK = 1
"""Which of them ranks the candidates that are popular lately."""
CONTEXT = 5
"""How many earlier submissions of a session are looked at."""
HOURS, WEEKDAYS = 24, 7


class State(NamedTuple):
    """The arrays; phrases are numbered as in the index."""

    text: np.ndarray
    text_start: np.ndarray
    """Folded phrase q is ``text[text_start[q]:text_start[q + 1]]``."""
    word: np.ndarray
    word_start: np.ndarray
    gram: np.ndarray
    gram_start: np.ndarray
    """Words, and runs of three characters, of each phrase: see `overlap`."""
    known: np.ndarray
    """bool (n,): whether the phrase may be suggested to everybody."""
    popular: np.ndarray
    """float64 (n,): submissions."""
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


def begun(searches: Searches) -> State:
    """Return the state before the first submission, with room for what is to come."""
    index = searches.index
    n = len(index)
    text, text_start = index.all_folded()
    word_start, word = sets_of(text, text_start, True)
    gram_start, gram = sets_of(text, text_start, False)
    named = searches.user >= 0
    own_start, own_query = _rows(searches.user[named], searches.query[named], searches.users, n)
    earlier, later = _session_pairs(searches.before, searches.query)
    pair_start, pair_next = _rows(earlier, later, n, n)
    blocks = n // BLOCK + 1
    return State(
        text,
        text_start,
        word,
        word_start,
        gram,
        gram_start,
        np.zeros(n, bool),
        np.zeros(n),
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


def _rows(
    owner: np.ndarray, query: np.ndarray, owners: int, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return, sparse by owner, the different queries of each."""
    pairs = np.unique(owner.astype(np.int64) * size + query)
    start = np.searchsorted(pairs, np.arange(owners + 1, dtype=np.int64) * size)
    return start.astype(np.int64), (pairs % max(size, 1)).astype(np.int32)


@kernel
def _session_pairs(before, query):
    """Every earlier query of a session, and the later one, up to `CONTEXT` back."""
    m = len(before)
    pairs = 0
    for e in range(m):
        b, steps = before[e], 0
        while b >= 0 and steps < CONTEXT:
            pairs += 1
            b, steps = before[b], steps + 1
    earlier, later = np.empty(pairs, np.int64), np.empty(pairs, np.int64)
    used = 0
    for e in range(m):
        b, steps = before[e], 0
        while b >= 0 and steps < CONTEXT:
            earlier[used], later[used] = query[b], query[e]
            used += 1
            b, steps = before[b], steps + 1
    return earlier, later


@kernel
def place_in(sorted_ids, first, last, wanted):
    """First position in sorted_ids[first:last] that is not below `wanted`."""
    while first < last:
        middle = (first + last) // 2
        if sorted_ids[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return first


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
    at, query, user, count, opens, before = log
    while done < len(at) and at[done] < until:
        q, c, u = query[done], count[done], user[done]
        state.popular[q] += c
        state.total[0] += c
        state.known[q] |= opens[done]
        for w in range(len(WINDOWS)):
            state.recent[q, w] += c
        hour, day = moment_of_week(at[done])
        for row in range(2):
            owner = q if row == 0 else len(state.known)
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
