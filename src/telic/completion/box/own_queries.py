"""A user's own queries as candidates, found by prefix: one table for all open compositions."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.completion.engine.few_words import FewWords
from telic.completion.engine.filters import Filter
from telic.completion.engine.folding import encoded_prefix
from telic.completion.engine.prefix_index import Place
from telic.completion.signals.counts import Beyond, Own
from telic.completion.signals.ranker import SignalRanker

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer
    from telic.completion.box.user_state import UserState

OTHERS = 1 << 30
"""From here on numbers are of texts that only a user, or a composition, knows."""


class OwnQuery(NamedTuple):
    """A user's own query among candidates."""

    folded: bytes
    order: tuple[int, bool, bytes, str]
    """Sorts own queries among catalogue ids: its place, and what tells those of one place apart."""
    number: int
    """Its id in the catalogue, or a number beyond them."""
    relevance: float


@dataclass(slots=True)
class OwnQueries:
    """A user's own queries, if the relevance or signals count them."""

    each: list[OwnQuery]
    """By folded form."""
    forms: list[bytes]
    """Their folded forms."""
    others: dict[str, int]
    """Numbers, from `OTHERS` on, of those that are not in the catalogue."""
    other_texts: list[str]
    """Their texts, in that order."""
    _words: FewWords | None = field(default=None, repr=False)
    _table: tuple[SignalRanker, Own, Beyond] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, completer: "Completer", user: "UserState", through: Filter | None = None
    ) -> "OwnQueries":
        """Look up and score the queries of a user's history, those that pass a filter."""
        history = user.history
        if not history or (completer.relevance.factors[1] <= 0 and completer.signals is None):
            return cls([], [], {}, [])
        known = user.places(completer.index, completer.deny)
        others: dict[str, int] = {}
        places = [known[query] for query in history]
        live = completer.live

        def number_of(query: str, place: Place | None) -> int:
            if place is None or place.folded.rstrip(b" ") in live.deleted:
                return -1
            gone = place.there and place.at in live.gone
            if place.there and not gone:
                return place.at if through is None else live.shown_as(query, through)
            if (added := live.added(query)) >= 0 or gone:  # perhaps it was added again
                return added
            return others.setdefault(query, OTHERS + len(others))

        numbers = [number_of(*pair) for pair in zip(history, places, strict=True)]
        relevance = own_relevance(completer, numbers, list(history.values()), through).tolist()
        # What was deleted, is denied or does not pass the filter has no number.
        each = sorted(
            OwnQuery(
                place.folded,
                (place.at, place.there and number < len(completer.index), place.folded, query),
                number,
                r,
            )
            for query, place, number, r in zip(history, places, numbers, relevance, strict=True)
            if number >= 0 and place is not None
        )
        return cls(each, [own.folded for own in each], others, list(others))

    def starting(self, typed: bytes) -> list[OwnQuery]:
        """Return those that start with a folded prefix."""
        first = last = bisect_left(self.forms, typed)
        while last < len(self.forms) and self.forms[last].startswith(typed):
            last += 1
        return self.each[first:last]

    def alike(self, text: str) -> str:
        """Return the spelling of the own query that folds as a text does; the text if none does."""
        form = encoded_prefix(text) if self.each else b""
        first = bisect_left(self.forms, form)
        found = first < len(self.forms) and self.forms[first] == form
        return self.each[first].order[3] if found else text

    def having(
        self, typed: str, *, typos: int = 0, keyboard: str | None = None
    ) -> list[tuple[OwnQuery, int]]:
        """Return those that have every typed word, with the cost: see `FewWords.matching`."""
        if not self.each:
            return []
        if self._words is None:
            self._words = FewWords(self.forms)
        places, costs = self._words.matching(typed, typos=typos, keyboard=keyboard)
        return [(self.each[at], c) for at, c in zip(places.tolist(), costs.tolist(), strict=True)]

    def table(self, ranker: SignalRanker, user: "UserState") -> tuple[Own, Beyond]:
        """Return them as signals take them: numbered without a gap, beyond the catalogue too.

        After the catalogue's phrases come those added since, then those that only the user knows.
        """
        if self._table is None or self._table[0] is not ranker:
            number = np.array([each.number for each in self.each], np.int32)
            number[number >= OTHERS] -= OTHERS - len(ranker)
            order = np.argsort(number, kind="stable")
            texts = [each.order[3] for each in self.each]
            count = np.array([user.history[text] for text in texts], float)
            last = np.array([user.last.get(text, 0) for text in texts], np.int64)
            forms = {each.number: each.folded for each in self.each}
            beyond = ranker.beyond([forms[OTHERS + i] for i in range(len(self.others))])
            self._table = ranker, Own(number[order], count[order], last[order]), beyond
        return self._table[1:]


def own_relevance(
    completer: "Completer",
    numbers: Sequence[int],
    counts: Sequence[float],
    through: Filter | None = None,
) -> np.ndarray:
    """Return the relevance of numbered texts that a user has submitted so often."""
    index, relevance = completer.index, completer.relevance
    ids = completer.catalogued(np.array(numbers, np.int64))
    shared = np.full(len(ids), relevance.unlearned or 0.0)
    there = ids >= 0
    shared[there] = index.weights_of(ids[there])
    changed = completer.live.weights
    for i, number in enumerate(numbers if changed else ()):
        shared[i] = changed.get(number, shared[i])
    if through is not None:
        shared[there] += through.added(ids[there])
    own = np.log1p(counts) if relevance.scale == "log" else np.array(counts)
    return shared + relevance.factors[1] * own
