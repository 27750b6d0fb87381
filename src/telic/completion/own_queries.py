"""A user's own queries as candidates, found by prefix: one table for all open compositions."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from telic.completion.completer import Completer, UserState


class OwnQuery(NamedTuple):
    """A user's own query among candidates."""

    folded: bytes
    order: tuple[int, bool, bytes, str]
    """Sorts own queries among catalogue ids: its place, and what tells those of one place apart."""
    number: int
    """Its id in the catalogue, or a number beyond them."""
    relevance: float


@dataclass(frozen=True, slots=True)
class OwnQueries:
    """A user's own queries, if the relevance counts them."""

    each: list[OwnQuery]
    """By folded form."""
    forms: list[bytes]
    """Their folded forms."""
    others: dict[str, int]
    """Numbers of those that are not in the catalogue, which come after its ids."""
    other_texts: list[str]
    """Their texts, in that order."""

    @classmethod
    def of(cls, completer: "Completer", user: "UserState") -> "OwnQueries":
        """Look up and score the queries of a user's history."""
        if completer.relevance.factors[1] <= 0:
            return cls([], [], {}, [])
        known, history = user.places(completer.index), user.history
        others: dict[str, int] = {}
        places = [known[query] for query in history]
        for query, place in zip(history, places, strict=True):
            if not place.there:
                others[query] = len(completer.index) + len(others)
        numbers = [
            place.at if place.there else others[query]
            for query, place in zip(history, places, strict=True)
        ]
        relevance = own_relevance(completer, numbers, list(history.values())).tolist()
        each = sorted(
            OwnQuery(place.folded, (place.at, place.there, place.folded, query), number, r)
            for query, place, number, r in zip(history, places, numbers, relevance, strict=True)
        )
        return cls(each, [own.folded for own in each], others, list(others))

    def starting(self, typed: bytes) -> list[OwnQuery]:
        """Return those that start with a folded prefix."""
        first = last = bisect_left(self.forms, typed)
        while last < len(self.forms) and self.forms[last].startswith(typed):
            last += 1
        return self.each[first:last]


def own_relevance(
    completer: "Completer", numbers: Sequence[int], counts: Sequence[float]
) -> np.ndarray:
    """Return the relevance of numbered texts that a user has submitted so often."""
    index, relevance = completer.index, completer.relevance
    ids = completer.catalogued(np.array(numbers, np.int64))
    shared = np.full(len(ids), relevance.unlearned or 0.0)
    shared[ids >= 0] = index.weights[ids[ids >= 0]]
    own = np.log1p(counts) if relevance.scale == "log" else np.array(counts)
    return shared + relevance.factors[1] * own
