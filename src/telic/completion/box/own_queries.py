"""A user's own queries as candidates, found by prefix: one table for all open compositions."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
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
NOT_SHOWN = -1
"""Stands for the number of a query that must not be suggested."""


class OwnQuery(NamedTuple):
    """A user's own query among candidates."""

    folded: bytes
    order: tuple[int, bool, bytes, str]
    """Sorts own queries among catalogue ids: its place, and what tells those of one place apart."""
    number: int
    """Its id in the catalogue, or a number beyond them."""
    relevance: float
    times: float = 0.0
    """How often it was submitted."""
    last: int = 0
    """When it was submitted last, in microseconds since 1970; signals look at it."""


@dataclass(slots=True)
class OwnQueries:
    """A user's own queries, if the relevance or signals count them."""

    each: list[OwnQuery]
    """By folded form."""
    forms: list[bytes]
    """Their folded forms."""
    others: dict[str, int]
    """Numbers, from `OTHERS` on, of those that are not in the catalogue, and of what was numbered
    before."""
    other_texts: list[str]
    """Their texts, in that order."""
    _words: FewWords | None = field(default=None, repr=False)
    _table: tuple[SignalRanker, Own, Beyond] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        completer: "Completer",
        user: "UserState",
        through: Filter | None = None,
        numbered: Mapping[str, int] | None = None,
    ) -> "OwnQueries":
        """Look up and score the queries of a user's history, those that pass a filter.

        Texts that are `numbered` already, from `OTHERS` on without a gap, keep their numbers.
        """
        history, others = user.history, dict(numbered or {})
        if not history or (completer.relevance.factors[1] <= 0 and completer.signals is None):
            return cls([], [], others, list(others))
        known = user.places(completer.index, completer.deny)
        live = completer.live
        last_spelled = {place.folded: query for query, place in known.items() if place is not None}

        tenants = None if through is None else through.of_tenant()

        def number_of(query: str, place: Place | None) -> int:
            if place is None or live.was_deleted(place.folded):
                return NOT_SHOWN
            if place.there and place.at not in live.gone:
                if through is None:
                    return place.at
                if (number := live.shown_as(query, through)) >= 0:
                    return number
                if live.shown_as(query, tenants) >= 0:
                    return NOT_SHOWN  # it passes no filter that the phrase does not pass
                # Only other tenants have it, which must make no difference here.
            if (added := live.added(query)) >= 0:  # perhaps it was added again
                return added
            shown = live.shown_for(query, place.alike, through)
            if not shown and through is not None and live.shown_for(query, place.alike, tenants):
                return NOT_SHOWN
            if completer.merged:
                if shown:
                    return live.shown_as(shown, through)
                query = last_spelled[place.folded]
            return others.setdefault(query, OTHERS + len(others))

        # What was deleted, is denied or does not pass the filter is not shown. Spellings that are
        # merged have one together: a history may be older than the list, or its spelling.
        spellings: dict[int, list[str]] = {}
        for query in history:
            if (number := number_of(query, known[query])) != NOT_SHOWN:
                spellings.setdefault(number, []).append(query)
        counts = [sum(history[query] for query in own) for own in spellings.values()]
        relevance = own_relevance(completer, list(spellings), counts, through).tolist()
        each = []
        for (number, own), count, r in zip(spellings.items(), counts, relevance, strict=True):
            place = known[own[0]]
            assert place is not None
            at, there = place.at, False
            if number < OTHERS:
                at, there, *_ = live.order(number, place.folded)
            last = max(user.last.get(query, 0) for query in own)
            order = (at, there, place.folded, own[-1])  # as it was spelled last
            each.append(OwnQuery(place.folded, order, number, r, count, last))
        each.sort()
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

    def table(self, ranker: SignalRanker) -> tuple[Own, Beyond]:
        """Return them as signals take them: numbered without a gap, beyond the catalogue too.

        After the catalogue's phrases come those added since, then those that only the user knows.
        """
        if self._table is None or self._table[0] is not ranker:
            number = np.array([each.number for each in self.each], np.int32)
            number[number >= OTHERS] -= OTHERS - len(ranker)
            order = np.argsort(number, kind="stable")
            count = np.array([each.times for each in self.each], float)
            last = np.array([each.last for each in self.each], np.int64)
            beyond = ranker.beyond([encoded_prefix(text) for text in self.other_texts])
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
