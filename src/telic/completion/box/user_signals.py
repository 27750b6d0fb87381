"""What the signals look at of a user: own queries and when, the session, apps, and the moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from telic.completion.box.own_queries import OTHERS, OwnQueries
from telic.completion.learning.phone_ranker import Phone
from telic.completion.signals.counts import Beyond, Own, Session
from telic.completion.signals.overlap import Texts, texts_of_forms
from telic.completion.signals.ranker import Ranked, SignalRanker, opened_of

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer


@dataclass(frozen=True, slots=True)
class UserSignals:
    """A user's own queries and session as the ranker takes them, for one composition."""

    ranker: SignalRanker
    now: int
    """Microseconds since 1970."""
    own: Own
    beyond: Beyond
    session: Session
    opened: np.ndarray
    """Numbers of the apps just opened: see `SignalRanker.ranked`."""
    _strings: tuple[np.ndarray, ...]
    """Of the box's index."""

    @classmethod
    def of(
        cls,
        completer: "Completer",
        before: Sequence[str],
        queries: OwnQueries,
        now: int,
        phone: Phone | None = None,
    ) -> "UserSignals":
        """Take the session before and the own queries, as a composition numbers them."""
        ranker, index = completer.ranker(), completer.index
        places = [index.place(query) for query in before]
        ids = np.array(
            [
                place.at
                if place.there
                else max(completer.live.added(query), queries.others.get(query, -1))
                for query, place in zip(before, places, strict=True)
            ],
            np.int64,
        )
        ids[ids >= OTHERS] -= OTHERS - len(ranker)
        # Writable, as a session's are when a log is walked through: kernels compile for one type.
        texts = Texts(*map(np.copy, texts_of_forms([place.folded for place in places])))
        own, beyond = queries.table(ranker)
        return cls(ranker, now, own, beyond, Session(ids, texts), opened_of(phone), index.strings)

    def candidates(self, typed: bytes) -> Ranked:
        """Return the candidates of a keystroke, numbered as in the box."""
        found = self.ranker.ranked(
            self._strings, typed, self.now, self.own, self.beyond, self.session, self.opened
        )
        own = found.numbers >= len(self.ranker)
        if own.any():
            found.numbers[own] += OTHERS - len(self.ranker)
        return found
