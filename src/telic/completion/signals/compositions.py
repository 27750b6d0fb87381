"""A composition log made ready for signals: real keystrokes, and what was fed back by then."""

from copy import copy
from functools import cached_property

import numpy as np

from telic.completion.engine.array_kernels import joined_texts
from telic.completion.engine.folding import fold
from telic.completion.learning.app_features import MINUTES, opened_lately
from telic.completion.learning.feedback import FEATURES, WIDTH
from telic.completion.learning.relevance import Submissions
from telic.completion.learning.replayed_log import replay_feedback
from telic.completion.signals.groups import APPS, EVERY_GROUP
from telic.completion.signals.log_split import MINUTE, SESSION_GAP, Searches
from telic.completion.signals.opened_apps import MOST_OPENED, Openings
from telic.data.compositions import CompositionLog
from telic.data.queries import QueryLog


class Compositions(Searches):
    """The compositions of a log, after an earlier query log if there is one.

    Everything is as of when a composition began. Its prefixes are those that were typed, one for
    each keystroke. It has one group more, feedback on the lists that were really shown, and where
    it says which apps were opened, these are another.

    Parameters
    ----------
    log : CompositionLog
    joined : QueryLog
        Its submissions first, then those of other logs: see `joined_submissions`.
    session_gap, min_users, seed
        As of `Searches`.
    minutes : float >= 0
        How long before the first keystroke an app that was opened counts.
    """

    controls = (*Searches.controls[:2], (APPS, "shuffled_apps"))

    def __init__(
        self,
        log: CompositionLog,
        joined: QueryLog,
        *,
        session_gap: float = SESSION_GAP,
        min_users: int = 3,
        seed: int = 0,
        minutes: float = MINUTES,
    ) -> None:
        super().__init__(joined, session_gap=session_gap, min_users=min_users, seed=seed)
        self.log, self.minutes = log, minutes
        order = np.argsort(joined.at, kind="stable")  # as Submissions has them
        self.composition = np.where(order < len(log), order, -1)
        self.asked = self.composition >= 0
        self.begin = self.at.copy()
        first = log.at[log.keystroke_start[:-1]]
        self.begin[self.asked] = first[self.composition[self.asked]]
        self.before = self._last(int(session_gap * MINUTE))
        # The queries of the joined log begin with the texts of this one.
        self._shown = self.number[log.shown].astype(np.int32)
        previous = self._last(None)
        self._previous = np.full(len(log), -1, np.int32)
        had = self.asked & (previous >= 0)
        self._previous[self.composition[had]] = self.query[previous[had]]

        start, opened = opened_lately(log, minutes)
        first = np.where(self.asked, start[self.composition], 0)
        last = np.where(self.asked, start[self.composition + 1], 0)
        self.apps = log.apps
        self.opened = self._known_since(first, np.minimum(last, first + MOST_OPENED), opened)
        tells = len(opened) > 0
        self.groups = tuple(group for group in EVERY_GROUP if tells or group != APPS)

    def _known_since(self, first: np.ndarray, last: np.ndarray, app: np.ndarray) -> Openings:
        """Return openings, with the submission at which each app has enough users."""
        opened = Openings(first, last, app, np.zeros(len(app), bool))
        where, event = opened.entries()
        network = self.submissions.network
        opened.opens[where] = Submissions.gathered(
            [
                (
                    self.at[event],
                    app[where],
                    self.user[event],
                    self.count[event],
                    self.submissions.vouched[event],
                )
            ],
            min_users=self.min_users,
            network=None if network is None else network[event],
        ).opens
        return opened

    def shuffled_apps(self) -> "Compositions":
        """Return the control in which the apps are another user's: they must be worth nothing.

        Compositions before which some app was opened exchange their apps among themselves, within
        the same part of the split; one for which no other user's are left has none.
        Everything else stays.
        """
        other, opened = copy(self), self.opened
        whose = self._exchanged(opened.last > opened.first, 6)
        first, last = (np.where(whose >= 0, ends[whose], 0) for ends in opened[:2])
        other.opened = self._known_since(first, last, opened.app)
        return other

    def _last(self, gap: int | None) -> np.ndarray:
        """Return the user's last submission before each was begun, by at most `gap`; -1 if none."""
        last = np.full(len(self), -1, np.int64)
        by_user = np.lexsort((np.arange(len(self)), self.user))
        bounds = np.searchsorted(self.user[by_user], np.arange(self.users + 1))
        for u in range(self.users):
            own = by_user[bounds[u] : bounds[u + 1]]
            done = np.searchsorted(self.at[own], self.begin[own])
            before = own[np.maximum(done - 1, 0)]
            fits = done > 0
            if gap is not None:
                fits &= self.begin[own] - self.at[before] <= gap
            last[own] = np.where(fits, before, -1)
        return last

    @property
    def prefixes(self) -> np.ndarray:
        """int64 (m,): keystrokes of each composition."""
        return np.where(self.asked, np.diff(self.log.keystroke_start)[self.composition], 0)

    def typed(self, events: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many characters stood in the box, and which of the log's prefixes."""
        prefix = self.log.prefix[self._keystroke(events, places)]
        return np.array([len(text) for text in self.log.prefixes])[prefix], prefix.astype(np.int64)

    @cached_property
    def prefix_texts(self) -> tuple[np.ndarray, np.ndarray]:
        """The prefixes of the log, folded and joined, and where each begins."""
        return joined_texts([fold(prefix).encode() for prefix in self.log.prefixes])

    def feedback(
        self, events: np.ndarray, places: np.ndarray, candidates: np.ndarray
    ) -> np.ndarray:
        """Return adaQAC's features of some candidates before some keystrokes: (T, POOL, 16)."""
        log, keystroke = self.log, self._keystroke(events, places)
        order = np.argsort(keystroke, kind="stable")
        out = np.empty((*candidates.shape, WIDTH))
        replay_feedback(
            (log.keystroke_start, log.at, log.prefix, self._previous),
            (log.list_start, self._shown),
            self.prefix_texts,
            self.index.all_folded(),
            (keystroke[order], self.composition[events][order], order),
            np.ascontiguousarray(candidates[order]),
            out,
        )
        return out[..., : len(FEATURES)]

    def _keystroke(self, events: np.ndarray, places: np.ndarray) -> np.ndarray:
        return self.log.keystroke_start[self.composition[events]] + places - 1


def joined_submissions(log: CompositionLog) -> QueryLog:
    """Return the submissions of a composition log; its queries are all texts, the lists' too."""
    return QueryLog(
        list(log.phrases),
        log.query,
        log.submitted_at,
        list(log.users),
        log.user,
        np.ones(len(log)),
        groups=log.groups,
    )
