"""Walk through a query log: at chosen prefixes, the candidates and their signals as of then."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from telic.completion.engine.array_kernels import frozen, place_in
from telic.completion.engine.front_coding import prefix_range
from telic.completion.signals.counts import (
    CONTEXT,
    NOTHING_BEYOND,
    WINDOWS,
    CountArrays,
    Session,
    begun,
    move_on,
    own_of,
    read_only,
)
from telic.completion.signals.features import (
    CLOCK_SHRINKAGE,
    FOLLOWS_SHRINKAGE,
    text_of,
    times_followed,
    write_features,
)
from telic.completion.signals.groups import WIDTH
from telic.completion.signals.log_split import Searches
from telic.completion.signals.opened_apps import APP_SHRINKAGE, Openings
from telic.completion.signals.overlap import Texts, taken
from telic.completion.signals.pool import POOL, POPULAR, gather
from telic.completion.signals.query_pairs import NO_PAIRS, pair_number
from telic.kernels import kernel

AT_ONCE = 5_000
"""Prefixes whose candidates are held in memory at a time."""


@dataclass(frozen=True)
class RankedPrefixes:
    """Some prefixes of some submissions, with candidates: a row each, in order of time."""

    event: np.ndarray
    """int64 (T,): submission of the log."""
    length: np.ndarray
    """int64 (T,): characters typed."""
    candidates: np.ndarray
    """int32 (T, POOL): phrases, the most popular first; -1 where there are fewer."""
    known: np.ndarray
    """bool (T, POOL): whether it may be suggested to everybody; else it is the user's own."""
    features: np.ndarray
    """float64 (T, POOL, WIDTH), or (T, POOL, len(FEATURES)) with feedback: see `groups`. What
    weights of pairs add is not in them."""
    position: np.ndarray
    """int64 (T,): column of the query that was submitted; -1 if it is no candidate."""
    possible: np.ndarray
    """bool (T,): whether anything could have suggested it: it was known, or the user's own."""
    seen: np.ndarray
    """float64 (T, 2): how often the user had submitted anything, and anybody this query, before."""
    followed: np.ndarray
    """int64 (K,): candidates that had followed an earlier query of the session before, as
    ``row * POOL + column``; once for each of these queries."""
    pair: np.ndarray
    """int64 (K,): the number of the pair of the two; see `query_pairs`."""

    def __len__(self) -> int:
        return len(self.event)


@dataclass(frozen=True)
class Shrinkage:
    """Numbers of submissions that rates are mixed with: see `telic.completion.signals.features`."""

    clock: float = CLOCK_SHRINKAGE
    follows: float = FOLLOWS_SHRINKAGE
    apps: float = APP_SHRINKAGE


SHRINKAGE = Shrinkage()


def every_prefix(searches: Searches, events: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each of the submissions with each of its prefixes: (event, place)."""
    count = searches.prefixes[events]
    first = np.cumsum(count) - count
    return np.repeat(events, count), np.arange(count.sum()) - np.repeat(first, count) + 1


def one_prefix(
    searches: Searches, events: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return each of the submissions with one prefix, drawn evenly: (event, place)."""
    return events, rng.integers(1, searches.prefixes[events] + 1)


def walk(
    searches: Searches,
    events: np.ndarray,
    places: np.ndarray,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    at_once: int = AT_ONCE,
) -> Iterator[RankedPrefixes]:
    """Yield the moments of some prefixes, piece by piece, everything counted before each.

    Parameters
    ----------
    searches : Searches
    events, places : int arrays of shape (T,)
        Submissions, ascending, and which of the prefixes of each; of a query log, how many
        characters are typed.
    shrinkage : Shrinkage
    at_once : int
        Prefixes in a piece.
    """
    state, log = begun(searches), log_of(searches)
    expired, done = np.zeros(len(WINDOWS), np.int64), 0
    activity = np.zeros(searches.users + 1)
    order = np.argsort(searches.begin[events], kind="stable")
    events, places = events[order], places[order]
    texts = tuple(map(frozen, searches.prefix_texts))
    for first in range(0, len(events), at_once):
        part = slice(first, first + at_once)
        lengths, typed = searches.typed(events[part], places[part])
        *moments, pairs = _empty(events[part], lengths)
        mixed = shrinkage.clock, shrinkage.follows, shrinkage.apps
        strings = searches.index.strings
        done = _fill(
            state,
            read_only(state),
            NO_PAIRS,
            NOTHING_BEYOND,
            strings,
            log,
            mixed,
            (typed, *texts, searches.begin),
            (*moments, pairs),
            activity,
            expired,
            done,
        )
        there = np.flatnonzero(pairs >= 0)
        moments += [there // CONTEXT, pairs.reshape(-1)[there]]
        found = RankedPrefixes(*moments)
        fed_back = searches.feedback(found.event, places[part], found.candidates)
        if fed_back is not None:
            found = replace(found, features=np.concatenate([found.features, fed_back], axis=2))
        yield found


def log_of(searches: Searches) -> tuple[np.ndarray | Openings, ...]:
    """Return the submissions as `state.move_on` takes them."""
    s = searches
    return s.at, s.query, s.user, s.count, s.opens, s.before, s.opened


def state_before(searches: Searches, at: int) -> CountArrays:
    """Return the state after the submissions before a moment, in microseconds since 1970."""
    state = begun(searches)
    move_on(state, log_of(searches), at, np.zeros(len(WINDOWS), np.int64), 0)
    return state


def _empty(events: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    t = len(events)
    return (
        np.ascontiguousarray(events, np.int64),
        np.ascontiguousarray(lengths, np.int64),
        np.full((t, POOL), -1, np.int32),
        np.zeros((t, POOL), bool),
        np.zeros((t, POOL, WIDTH)),
        np.full(t, -1, np.int64),
        np.zeros(t, bool),
        np.zeros((t, 2)),
        np.full((t, POOL, CONTEXT), -1, np.int64),
    )


@kernel
def bytes_typed(text, characters):
    """How many bytes of a UTF-8 text its first characters are."""
    for p in range(len(text)):
        if text[p] & 0xC0 != 0x80:
            if characters == 0:
                return p
            characters -= 1
    return len(text)


@kernel
def session_of(state, query, first, before):
    """The earlier queries of a session."""
    ids = np.empty(CONTEXT, np.int64)
    used, b = 0, first
    while b >= 0 and used < CONTEXT:
        ids[used] = query[b]
        used, b = used + 1, before[b]
    ids, of = ids[:used], state.texts
    text, text_start = taken(of.text, of.text_start, ids)
    word, word_start = taken(of.word, of.word_start, ids)
    gram, gram_start = taken(of.gram, of.gram_start, ids)
    return Session(ids, Texts(text, text_start, word, word_start, gram, gram_start))


@kernel
def _fill(
    state,
    read,
    no_pairs,
    beyond,
    strings,
    log,
    shrinkage,
    prefixes,
    moments,
    activity,
    expired,
    done,
):
    """Fill the rows of some moments; return how many submissions are counted.

    `read` are views of the state of the type that a box reads, whose kernels then serve here too.
    """
    _, query, user, count, _, before, openings = log
    typed, prefix_text, prefix_start, begin = prefixes
    event, length, candidates, known, features, position, possible, seen, pairs = moments
    ids, counts = np.empty(POPULAR, np.int64), np.empty(POPULAR)
    current = -1
    own = own_of(state, -1)
    session = session_of(state, query, -1, before)
    opened = openings.app[:0]
    for t in range(len(event)):
        e = event[t]
        q, u = query[e], user[e]
        if e != current:
            current = e
            counted = done
            done = move_on(state, log, begin[e], expired, done)
            for i in range(counted, done):
                activity[user[i]] += count[i]  # the last place is nobody's
            own = own_of(state, u)
            session = session_of(state, query, before[e], before)
            opened = openings.app[openings.first[e] : openings.last[e]]
        text = text_of(read, beyond, q)
        prefix = text[: bytes_typed(text, length[t])]
        if typed[t] >= 0:
            prefix = prefix_text[prefix_start[typed[t]] : prefix_start[typed[t] + 1]]
        low, high = prefix_range(strings, len(state.known), prefix)
        row, now = candidates[t], begin[e]
        used = gather(read, beyond, low, high, prefix, own, session.ids, ids, counts, row)
        row, out = row[:used], features[t, :used]
        write_features(
            read, no_pairs, beyond, shrinkage, now, own, session, opened, prefix, row, out
        )
        for j in range(used):
            for s in range(len(session.ids)):
                p = session.ids[s]
                if times_followed(read, p, row[j]) > 0.0:
                    pairs[t, j, s] = pair_number(p, row[j], len(state.known))
            known[t, j] = state.known[candidates[t, j]]
            if candidates[t, j] == q:
                position[t] = j
        possible[t] = state.known[q] or is_own(own, q)
        seen[t, 0] = activity[u] if u >= 0 else 0.0
        seen[t, 1] = state.popular[q]
    return done


@kernel
def is_own(own, q):
    """Whether the user has submitted a phrase before."""
    i = place_in(own.query, 0, len(own.query), q)
    return i < len(own.query) and own.query[i] == q and own.times[i] > 0.0
