"""Changes to a catalogue while it serves: phrases added, counted up, deleted."""

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from telic.completion.box.word_and_typo_matches import OwnWords
from telic.completion.engine.filters import NO_VALUE
from telic.completion.engine.folding import checked_form, fold
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.engine.rules import DenyList
from telic.completion.engine.word_index import WordIndex
from telic.completion.signals.counts import Beyond
from telic.completion.signals.overlap import texts_of_forms
from telic.completion.signals.ranker import SignalRanker
from telic.data.contracts import MAX_COUNT
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer

LEAST = 1e-9
"""What the signals take a popularity of 0 for: they suggest nothing that nobody ever submitted."""


@dataclass
class Live:
    """What has changed since a catalogue was built, merged into every list from the next keystroke.

    Attributes
    ----------
    index : PrefixIndex
    unit : float
        Weight of the logarithm of popularity in the index's weights.
    deny : DenyList, optional
        What it denies is never added.
    gone : set of int
        Ids that are deleted.
    weights : dict of int to float
        New weights, by number: of ids, and of added phrases, numbered from ``len(index)`` on.
    version : int
        Counts the changes: what was derived before the last is out of date.

    Examples
    --------
    >>> live = Live(PrefixIndex.build(["tea"], [1.0]))
    >>> live.put("teapot", 20.0)
    >>> live.delete("tea"), [live.text(number) for _, number in live.changed(b"te")]
    (True, ['teapot'])
    """

    index: PrefixIndex
    unit: float = 1.0
    deny: DenyList | None = None
    gone: set[int] = field(default_factory=set)
    weights: dict[int, float] = field(default_factory=dict)
    version: int = 0
    _texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    # Where each added phrase would stand among the ids.
    _stands: list[int] = field(default_factory=list)
    # Changed and added phrases in the order of an index that has them: folded form, spelling and
    # number; with their numbers and weights as columns.
    _forms: list[tuple[bytes, str, int]] = field(default_factory=list)
    _places: "array[int]" = field(default_factory=lambda: array("q"))
    _heft: "array[float]" = field(default_factory=lambda: array("d"))
    _known: dict[str, int] = field(default_factory=dict)
    _words: "OwnWords | None" = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __len__(self) -> int:
        """Return how many phrases are kept for having been changed, added or deleted."""
        return len(self._texts) + len(self.gone) + len(self.weights) - len(self._numbers)

    def put(self, phrase: str, popularity: float) -> None:
        """Add a phrase, or give a known one another popularity.

        Raises
        ------
        InputError
            If the phrase cannot be indexed or is denied, or the popularity is no number from 0 to
            `telic.data.contracts.MAX_COUNT`.
        """
        with self._lock:
            self._put(phrase, self.unit * np.log1p(_checked(popularity)))

    def increment(self, phrase: str, by: float = 1.0) -> None:
        """Count a phrase up; one that is not there, or was deleted, begins at 0.

        With recency in the weights this is an approximation: the count is added to the popularity
        that alone would give the phrase its weight.
        """
        with self._lock:
            number = self.find(phrase)
            known = np.expm1(self.weight(number) / self.unit) if number >= 0 else 0.0
            self._put(phrase, self.unit * np.log1p(known + _checked(by)))

    def delete(self, phrase: str) -> bool:
        """Delete a phrase in every spelling that folds as it does; say whether there was one."""
        with self._lock:
            form = checked_form(phrase, "phrase").encode()
            found = [id for id in self.index.alike(phrase) if id not in self.gone]
            added = [n for f, _, n in self._with(form) if f == form and n >= len(self.index)]
            for number in [*found, *added]:
                self._forget(form, number)
            self.gone |= set(found)
            self.version += 1
            return bool(found or added)

    def check(self, phrase: str, count: float = 0.0, *, deleted: bool = False) -> str:
        """Return a phrase's folded form; raise what `put` would of it and a count, or `delete`."""
        form = checked_form(phrase, "phrase")
        if not deleted and self.deny is not None and self.deny.denies(phrase):
            raise InputError(f"phrase {phrase[:60]!r} is on the deny list. Take it off first.")
        _checked(count)
        return form

    def find(self, phrase: str) -> int:
        """Return the number of a phrase in exactly this spelling, -1 if it is not there."""
        number = self.added(phrase)
        if number < 0:
            number = self.index.find(phrase)
        return -1 if number in self.gone else number

    def added(self, phrase: str) -> int:
        """Return the number of an added phrase, -1 if it is none."""
        return self._numbers.get(phrase, -1)

    def weight(self, number: int) -> float:
        """Return the weight of a number now."""
        changed = self.weights.get(number)
        return float(self.index.weights_of(number)) if changed is None else changed

    def text(self, number: int) -> str:
        """Return an added phrase."""
        return self._texts[number - len(self.index)]

    def order(self, number: int, form: bytes) -> tuple[int, bool, bytes, str]:
        """Return what sorts a changed or added phrase, by its number and form, among the ids."""
        if number < len(self.index):
            return number, True, b"", ""
        return self._stands[number - len(self.index)], False, form, self.text(number)

    def changed(self, typed: bytes) -> list[tuple[bytes, int]]:
        """Return the changed or added phrases that begin with a folded prefix: form and number."""
        return [(form, number) for form, _, number in self._with(typed)]

    def heaviest(
        self,
        typed: bytes,
        n: int,
        fits: Callable[[np.ndarray], np.ndarray],
        added: Callable[[np.ndarray], np.ndarray],
    ) -> list[tuple[bytes, int, float]]:
        """Return the n heaviest of those that `changed` gives, with weights; of equal, the first.

        `fits` says of an array of numbers which may be, `added` what to add to their weights.
        """
        if not self._forms:
            return []
        with self._lock:
            first, last = self._range(typed)
            numbers = np.array(self._places[first:last])
            weights = np.array(self._heft[first:last]) + added(numbers)
            places = np.flatnonzero(fits(numbers))
            if len(places) > n:
                least = np.partition(weights[places], -n)[-n]
                above, equal = (places[weights[places] > least], places[weights[places] == least])
                places = np.sort(np.concatenate([above, equal[: n - len(above)]]))
            forms = [self._forms[first + place] for place in places.tolist()]
            heavy = zip(forms, weights[places].tolist(), strict=True)
            return [(form, number, weight) for (form, _, number), weight in heavy]

    def having(self, tokens: list[str]) -> list[tuple[bytes, int]]:
        """Return the changed or added phrases that have begun words for all tokens."""
        if not self._forms:
            return []
        with self._lock:
            if self._words is None:
                self._words = OwnWords([form for form, _, _ in self._forms])
            found = [self._forms[place] for place in self._words.matching(tokens)]
            return [(form, number) for form, _, number in found]

    def left(self, ids: np.ndarray) -> np.ndarray:
        """Return those ids that are neither deleted nor changed."""
        if not self.gone and not self.weights:
            return ids
        return np.array(
            [id for id in ids.tolist() if id not in self.gone and id not in self.weights], np.int64
        )

    def applied(self, ranker: SignalRanker) -> SignalRanker:
        """Return the ranker of signals over the index as it is now."""
        with self._lock:
            n = len(self.index)
            count = {i: max(np.expm1(w / self.unit), LEAST) for i, w in self.weights.items()}
            added = np.array([count.pop(n + i, 0.0) for i in range(len(self._texts))])
            forms = [fold(text).encode() for text in self._texts]
            return ranker.changed(self.gone, count, Beyond(texts_of_forms(forms), added))

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON; `restore` reads it back."""
        with self._lock:
            return {
                "gone": sorted(self.gone),
                "changed": {str(id): w for id, w in self.weights.items() if id < len(self.index)},
                "added": {text: self.weights[n] for text, n in self._numbers.items()},
            }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take over what `as_json` gave for the same index."""
        with self._lock:
            self.gone |= set(stored["gone"])
            self.version += 1
            for id, weight in stored["changed"].items():
                self._put(self.index.phrase(int(id)), weight)
            for text, weight in stored["added"].items():
                self._put(text, weight)

    def _put(self, phrase: str, weight: float) -> None:
        form = self.check(phrase).encode()
        number = self.find(phrase)
        if number < 0:
            number = self._known.setdefault(phrase, len(self.index) + len(self._texts))
            if number == len(self.index) + len(self._texts):
                self._texts.append(phrase)
                self._stands.append(self.index.place(phrase).at)
            self._numbers[phrase] = number
        place = bisect_left(self._forms, (form, phrase, number))
        if number not in self.weights:
            self._forms.insert(place, (form, phrase, number))
            self._places.insert(place, number)
            self._heft.insert(place, 0.0)
        self.weights[number] = self._heft[place] = float(weight)
        self._words = None
        self.version += 1

    def _forget(self, form: bytes, number: int) -> None:
        self._words = None
        if self.weights.pop(number, None) is not None:
            text = self.text(number) if number >= len(self.index) else self.index.phrase(number)
            place = bisect_left(self._forms, (form, text, number))
            del self._forms[place], self._places[place], self._heft[place]
        if number >= len(self.index):
            del self._numbers[self.text(number)]

    def _with(self, typed: bytes) -> list[tuple[bytes, str, int]]:
        first, last = self._range(typed)
        return self._forms[first:last]

    def _range(self, typed: bytes) -> tuple[int, int]:
        """Return where forms begin with a prefix; no UTF-8 has the byte that ends the range."""
        first = bisect_left(self._forms, (typed,))
        return first, bisect_left(self._forms, (typed + b"\xff",), first)


def compacted(completer: "Completer") -> "Completer":
    """Return a completer with the changes of another built into its index.

    Raises
    ------
    InputError
        If it has phones or signals: what these know is by phrase, and must be fitted again.
    """
    if not compactable(completer):
        raise InputError("a model with phones or signals cannot be compacted. Fit it again.")
    index, live = completer.index, completer.live
    old = np.delete(np.arange(len(index)), list(live.gone))
    added = [number for _, number in live.changed(b"") if number >= len(index)]
    texts = [index.spellings(old), pa.array(map(live.text, added), pa.large_string())]
    weights = index.weights_of()
    changed = [number for number in live.weights if number < len(index)]
    weights[changed] = [live.weights[number] for number in changed]
    weights = np.concatenate([weights[old], [live.weights[number] for number in added]])
    source = np.concatenate([old, np.full(len(added), -1)])
    built, given = PrefixIndex.build_ordered(
        pa.chunked_array(texts), weights, apart=np.arange(len(source))
    )
    came = source[given]
    records, contexts = completer.records, completer.contexts
    if records is not None:
        records = records.take(came)
    if contexts is not None:
        codes = np.where(came < 0, NO_VALUE, contexts.codes[:, came]).astype(np.int32)
        contexts = replace(contexts, codes=codes)
    words = None if completer.words is None else WordIndex.build(built)
    return replace(completer, index=built, records=records, contexts=contexts, words=words)


def compactable(completer: "Completer") -> bool:
    """Whether all that a completer knows of phrases goes with them into another index."""
    return completer.phones is None and completer.signals is None


def _checked(count: float) -> float:
    if not 0 <= count <= MAX_COUNT:
        raise InputError(f"a count is {count!r}, expected a number from 0 to {MAX_COUNT:g}.")
    return float(count)
