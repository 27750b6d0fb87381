"""The changed and added phrases of a catalogue that serves, as an index would order them."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from telic.completion.engine.few_words import FewWords
from telic.completion.engine.filters import Filter


class ChangedPhrases:
    """Folded form, spelling, number and weight of each, sorted by the first three.

    Parameters
    ----------
    ids : int
        How many phrases the index has: smaller numbers are its ids, the others' phrases were added.

    Examples
    --------
    >>> changed = ChangedPhrases(ids=5)
    >>> changed.replace(range(0, 0), [(b"tea", "Tea", 3), (b"tea", "Tea", 4)], [1.0, 2.0])
    >>> changed.heaviest(changed.beginning(b"te"), None)
    [(b'tea', 4, 2.0)]
    """

    def __init__(self, ids: int) -> None:
        self.ids = ids
        self.rows: list[tuple[bytes, str, int]] = []
        # Columns of the rows, for NumPy: a text in several contexts is known by its first number.
        self._numbers, self._firsts, self._weights = array("q"), array("q"), array("d")
        # The words of the distinct forms, and which of these each row has.
        self._words: tuple[FewWords, np.ndarray] | None = None

    def beginning(self, typed: bytes) -> range:
        """Return the places of the forms that begin with a folded prefix."""
        return self._between((typed,), (typed + b"\xff",))  # a byte that no UTF-8 has

    def alike(self, form: bytes, spelling: str | None = None) -> range:
        """Return the places of a form, or of one spelling of it."""
        if spelling is None:
            return self._between((form,), (form + b"\0",))
        return self._between((form, spelling), (form, spelling + "\0"))

    def _between(self, first: tuple[Any, ...], last: tuple[Any, ...]) -> range:
        begin = bisect_left(self.rows, first)
        return range(begin, bisect_left(self.rows, last, begin))

    def numbers(self, places: range) -> list[int]:
        """Return the numbers at some places."""
        return self._numbers[places.start : places.stop].tolist()

    def replace(
        self, places: range, rows: Sequence[tuple[bytes, str, int]], weights: Iterable[float]
    ) -> None:
        """Put the rows of one text, or none, where there were others of the same form."""
        there = slice(places.start, places.stop)
        if [form for form, _, _ in self.rows[there]] != [form for form, _, _ in rows]:
            self._words = None
        numbers = [number for _, _, number in rows]
        self.rows[there] = rows
        self._numbers[there] = array("q", numbers)
        self._firsts[there] = array("q", numbers[:1] * len(numbers))
        self._weights[there] = array("d", weights)

    def heaviest(
        self,
        places: range | np.ndarray,
        through: Filter | None,
        besides: Collection[int] = (),
        n: int | None = None,
    ) -> list[tuple[bytes, int, float]]:
        """Return form, number and weight of the n heaviest at some places, in their order.

        A text in several contexts comes once, as the heaviest that passes a filter, whose boosts
        count; not at all if one of its numbers is among those `besides` which others are asked for.
        Of equal weights the first count.
        """
        places = np.asarray(places, np.int64)
        numbers, firsts = (
            np.frombuffer(each, np.int64)[places] for each in (self._numbers, self._firsts)
        )
        weights = np.frombuffer(self._weights)[places]
        may = np.ones(len(places), bool)
        if besides:
            may = ~np.isin(firsts, firsts[np.isin(numbers, list(besides))])
        if through is not None:  # what was added since is limited to nothing, and not boosted
            there = numbers < self.ids
            may[there] &= through.contexts.allowed(through.wanted, numbers[there])
            weights[there] += through.added(numbers[there])
        chosen = np.flatnonzero(may)
        begins = np.flatnonzero(np.diff(firsts[chosen], prepend=-1))
        if len(begins) < len(chosen):  # a text is in several contexts
            texts = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(chosen)))
            heavy = weights[chosen] == np.maximum.reduceat(weights[chosen], begins)[texts]
            chosen = chosen[heavy][np.unique(texts[heavy], return_index=True)[1]]
        if n is not None and len(chosen) > n:
            least = np.partition(weights[chosen], -n)[-n]
            above = chosen[weights[chosen] > least]
            equal = chosen[weights[chosen] == least]
            chosen = np.sort(np.concatenate([above, equal[: n - len(above)]]))
        return [(self.rows[places[i]][0], int(numbers[i]), float(weights[i])) for i in chosen]

    def having(
        self,
        typed: str,
        through: Filter | None,
        besides: Collection[int] = (),
        *,
        typos: int = 0,
        keyboard: str | None = None,
    ) -> list[tuple[bytes, int, float, int]]:
        """Return, as `heaviest` does, all that have every typed word, with what that costs.

        Costs are in quarters of an edit: see `telic.completion.engine.few_words.FewWords`.
        """
        if self._words is None:
            forms = [form for form, _, _ in self.rows]
            first = [i for i, form in enumerate(forms) if not i or form != forms[i - 1]]
            of_row = np.repeat(np.arange(len(first)), np.diff([*first, len(forms)]))
            self._words = FewWords([forms[i] for i in first]), of_row
        words, of_row = self._words
        found, costs = words.matching(typed, typos=typos, keyboard=keyboard)
        of_form = np.full(len(words), -1)
        of_form[found] = costs
        places = np.flatnonzero(of_form[of_row] >= 0)
        cost = {self.rows[place][0]: int(of_form[of_row[place]]) for place in places}
        best = self.heaviest(places, through, besides)
        return [(form, number, weight, cost[form]) for form, number, weight in best]
