"""A query log made ready: phrases, sessions, and which submissions are learned from or tested."""

from copy import copy
from functools import cached_property
from typing import Self

import numpy as np

from telic.completion.engine.folding import fold
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.learning.app_features import MINUTES
from telic.completion.learning.relevance import Submissions
from telic.completion.signals.groups import GROUPS, PAIRS
from telic.completion.signals.opened_apps import no_openings
from telic.data.queries import QueryLog
from telic.errors import InputError, expect_above, expect_whole

MINUTE = 60 * 1_000_000
SESSION_GAP = 30.0
"""Minutes without a submission after which a user's next one begins a new session."""
WARM_UP, LEARN = 0.4, 0.7
"""Shares of the submissions, in time: before the first only counts are taken, up to the second
weights are learned, and the rest chooses penalties on one half of the users and tests on the other.
"""
COUNTED, LEARNED, CHOSEN, TESTED = 0, 1, 2, 3
LONGEST = 20
"""Characters up to which prefixes are completed; few people type more before they choose."""


class Searches:
    """The submissions of a query log in time order, with users, sessions and the split.

    Queries that fold alike are one phrase, spelled as it is submitted most. Weights are learned and
    penalties chosen on one half of the users, and everything is reported on the other half, later
    in time. Who belongs to which half is drawn by `seed`. A log that names nobody has one half of
    its submissions for each.

    Parameters
    ----------
    log : QueryLog
    session_gap : float > 0
        Minutes: see `SESSION_GAP`.
    min_users : int
        A query may be suggested once so many users submitted it, from as many networks where the
        log says these; see `Submissions`.
    seed : int

    Raises
    ------
    InputError
        If a setting is out of its range.

    Attributes
    ----------
    index : PrefixIndex
        Every phrase of the log; which of them are known when is in `opens`.
    at, query, user, count, opens
        As in `telic.completion.learning.relevance.Submissions`; `user` is -1 where nobody is named.
    session_minutes : float
        As given: `session_gap`.
    submissions : Submissions
        All of these.
    before : int64 array of shape (m,)
        The submission before this one in its session; -1 where it is the first.
    number : int64 array
        The phrase of each of the log's queries.
    begin : int64 array of shape (m,)
        When the query was begun: what counts is what was submitted before. A query log does not
        say it, so that it is the submission itself.
    asked : bool array of shape (m,)
        What may be learned from or tested; the rest is counted alone.
    groups : tuple of str
        The groups of signals that the log tells of.
    names : list of str
        The users.
    apps : list of str
        Those that were opened before a submission; a query log does not say it, so that there are
        none.
    opened : Openings
        By submission.
    minutes : float
        How long before a query an app that was opened counts.

    Examples
    --------
    >>> log = QueryLog(["tea", "Tea", "teapot"], np.array([0, 2, 1, 0]),
    ...     60_000_000 * np.array([0, 1, 90, 91]), ["ann"], np.zeros(4, int), np.ones(4))
    >>> searches = Searches(log, min_users=1)
    >>> searches.index.phrases(searches.query), searches.before.tolist()
    (['tea', 'teapot', 'tea', 'tea'], [-1, 0, -1, 2])
    """

    groups: tuple[str, ...] = (*GROUPS, PAIRS)
    controls: tuple[tuple[str, str], ...] = (
        ("session", "shuffled_sessions"),
        (PAIRS, "shuffled_sessions"),
        ("time", "shuffled_times"),
    )
    """Groups, and the controls in which they can tell nothing."""
    minutes: float = MINUTES

    def __init__(
        self,
        log: QueryLog,
        *,
        session_gap: float = SESSION_GAP,
        min_users: int = 3,
        seed: int = 0,
    ) -> None:
        expect_above(0, session_gap=session_gap)
        expect_whole(1, min_users=min_users)
        self.index, self.number = _catalogue(log)
        named = [i for i, name in enumerate(log.users) if name is not None]
        self.names = [str(log.users[i]) for i in named]
        person = np.full(len(log.users), -1, np.int32)
        person[named] = np.arange(len(named))
        query, user = self.number[log.query], person[log.user]
        network = log.groups["network"][1] if "network" in log.groups else None
        columns = log.at, query, user, log.count, log.vouched
        self.submissions = events = Submissions.gathered(
            [columns], min_users=min_users, network=network
        )
        self.at, self.query, self.user = events.at, events.query.astype(np.int32), events.user
        self.count, self.opens = events.count, events.opens
        self.begin, self.asked = self.at, np.ones(len(self.at), bool)
        self.before = _before(self.at, self.user, int(session_gap * MINUTE))
        self.apps: list[str] = []
        self.opened = no_openings(len(self.at))
        self.seed, self.min_users, self.session_minutes = seed, min_users, session_gap

    def __len__(self) -> int:
        return len(self.at)

    @property
    def users(self) -> int:
        """Number of users."""
        return len(self.names)

    @property
    def unit(self) -> np.ndarray:
        """int64 (m,): what intervals take as one: the user, or the submission that names nobody."""
        return np.where(self.user >= 0, self.user, self.users + np.arange(len(self)))

    @cached_property
    def longest(self) -> np.ndarray:
        """int64 (m,): characters of each query, folded, at most `LONGEST`."""
        text, offsets = self.index.all_folded()
        before = np.concatenate([[0], np.cumsum(text & 0xC0 != 0x80)])
        return np.minimum(before[offsets[1:]] - before[offsets[:-1]], LONGEST)[self.query]

    @property
    def prefixes(self) -> np.ndarray:
        """int64 (m,): how many prefixes of each query are completed."""
        return self.longest

    def typed(self, events: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many characters some prefixes have, and their numbers among `prefix_texts`.

        A query log has none, so each query is taken to have been typed from left to right; -1 says
        so. `places` are from 1 to `prefixes`.
        """
        return places, np.full(len(places), -1)

    @property
    def prefix_texts(self) -> tuple[np.ndarray, np.ndarray]:
        """The prefixes that were typed, folded and joined, and where each begins."""
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)

    def feedback(
        self, events: np.ndarray, places: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray | None:
        """Return what was fed back on some candidates; None where the log has no lists."""
        return None

    @cached_property
    def part(self) -> np.ndarray:
        """int8 (m,): `COUNTED`, `LEARNED`, `CHOSEN` or `TESTED`.

        Raises
        ------
        InputError
            If there are too few submissions to split, or all are from one moment.
        """
        at, rng = self.at[self.asked], np.random.default_rng(self.seed)
        m = len(at)
        if m < 20:
            raise InputError(
                f"the log holds {m} submissions: too few to split. Bring a longer log."
            )
        half = rng.permutation(self.users) % 2 == 0
        learns = np.where(
            self.user >= 0, np.append(half, False)[self.user], rng.random(len(self)) < 0.5
        )
        first, second = at[int(WARM_UP * m)], at[int(LEARN * m)]
        part = np.full(len(self), COUNTED, np.int8)
        part[(self.at >= first) & (self.at < second) & learns] = LEARNED
        part[(self.at >= second) & learns] = CHOSEN
        part[(self.at >= second) & ~learns] = TESTED
        part[~self.asked] = COUNTED
        for name, which in (("learn from", LEARNED), ("choose by", CHOSEN), ("test on", TESTED)):
            if not (part == which).any():
                raise InputError(
                    f"the log has no submission to {name}: it is split in time, at "
                    f"{WARM_UP:.0%} and {LEARN:.0%}, and by users. Bring a log of more days and "
                    "users."
                )
        return part

    def shuffled_sessions(self) -> Self:
        """Return the control in which each session is another user's: it must be worth nothing.

        Submissions that have one before them exchange it among themselves, within the same part
        of the split; one for which no other user's is left has none. Everything else stays.
        """
        other, whose = copy(self), self._exchanged(self.before >= 0, 1)
        other.before = np.where(whose >= 0, self.before[whose], -1)
        return other

    def _exchanged(self, which: np.ndarray, stream: int) -> np.ndarray:
        """Return for each submission the one that it gets something of; most get their own.

        Those of `which` get it of another user, within the same part of the split; of none, -1,
        where one user has most of a part.
        """
        rng = np.random.default_rng([self.seed, stream])
        whose = np.arange(len(self))
        for part in np.unique(self.part):
            rows = np.flatnonzero((self.part == part) & which)
            given = rng.permutation(rows)
            for _ in range(20):  # those who drew themselves draw again
                own = np.flatnonzero(self.user[given] == self.user[rows])
                if not len(own):
                    break
                mixed = np.union1d(own, rng.integers(len(rows), size=len(own)))
                given[mixed] = given[rng.permutation(mixed)]
            whose[rows] = np.where(self.user[given] == self.user[rows], -1, given)
        return whose

    def shuffled_times(self) -> Self:
        """Return the control in which submissions exchange their times: time must be worth nothing.

        Counts, users and the split in time keep their sizes; sessions are left out, because they
        would be torn apart.
        """
        rng = np.random.default_rng([self.seed, 2])
        other = copy(self)
        order = rng.permutation(len(self))
        other.query, other.user, other.count = (
            a[order] for a in (self.query, self.user, self.count)
        )
        # When a query may be suggested follows the new order.
        network = self.submissions.network
        network = None if network is None else network[order]
        columns = self.at, other.query, other.user, other.count, self.submissions.vouched[order]
        other.submissions = Submissions.gathered(
            [columns], min_users=self.min_users, network=network
        )
        other.opens = other.submissions.opens
        other.before = np.full(len(self), -1)
        for name in ("part", "longest"):  # made anew, for users and queries where they are now
            other.__dict__.pop(name, None)
        return other


def _catalogue(log: QueryLog) -> tuple[PrefixIndex, np.ndarray]:
    """Index the phrases of a log and return the id of each of its queries."""
    forms: dict[str, int] = {}
    form = np.array([forms.setdefault(fold(text), len(forms)) for text in log.queries], np.int64)
    submitted = np.bincount(log.query, log.count, len(log.queries))
    # Of the spellings of a form, the one submitted most; the first of equals.
    order = np.lexsort((-np.arange(len(form)), submitted))
    spelling = np.zeros(len(forms), np.int64)
    spelling[form[order]] = order
    texts = [log.queries[i] for i in spelling]
    index, given = PrefixIndex.build_ordered(texts, np.zeros(len(texts)))
    number = np.empty(len(texts), np.int64)
    number[given] = np.arange(len(texts))
    return index, number[form]


def _before(at: np.ndarray, user: np.ndarray, gap: int) -> np.ndarray:
    """Return the last submission of the same user that is earlier, by at most `gap`; -1 if none."""
    by_user = np.lexsort((np.arange(len(at)), user))
    first = np.ones(len(at), bool)  # of the submissions of one user at one moment
    first[1:] = (np.diff(user[by_user]) != 0) | (np.diff(at[by_user]) != 0)
    place = np.maximum.accumulate(np.where(first, np.arange(len(at)), 0))
    found = by_user[np.maximum(place - 1, 0)]
    fits = (place > 0) & (user[found] == user[by_user]) & (at[by_user] - at[found] <= gap)
    before = np.full(len(at), -1, np.int64)
    before[by_user] = np.where(fits & (user[by_user] >= 0), found, -1)
    return before
