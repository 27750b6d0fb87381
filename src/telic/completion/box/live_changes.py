"""Changes to a catalogue while it serves: phrases added, counted up, deleted."""

import math
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from telic.completion.box.changed_phrases import ChangedPhrases
from telic.completion.engine.filters import NO_VALUE, Filter
from telic.completion.engine.folding import checked_form, encoded_prefix, fold
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.engine.rules import DenyList, kept
from telic.completion.engine.word_index import NONE_LEFT_OUT, WordIndex
from telic.completion.signals.counts import Beyond
from telic.completion.signals.overlap import texts_of_forms
from telic.completion.signals.ranker import SignalRanker
from telic.data.contracts import MAX_COUNT
from telic.data.tables import tidy
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
    deleted : set of bytes
        Folded forms that were deleted: no user's own query that folds so is suggested either.
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
    deleted: set[bytes] = field(default_factory=set)
    weights: dict[int, float] = field(default_factory=dict)
    version: int = 0
    _texts: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    # Where each added phrase would stand among the ids.
    _stands: list[int] = field(default_factory=list)
    _known: dict[str, int] = field(default_factory=dict)
    _changed: ChangedPhrases = field(init=False, repr=False, compare=False)
    _touched: tuple[int, int, np.ndarray] = field(
        default=(0, 0, NONE_LEFT_OUT), repr=False, compare=False
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._changed = ChangedPhrases(len(self.index))

    def __len__(self) -> int:
        """Return how many phrases are kept for having been changed, added or deleted."""
        return len(self._texts) + len(self.gone) + len(self.weights) - len(self._numbers)

    def put(self, phrase: str, popularity: float) -> None:
        """Add a phrase, or give a known one another popularity, in all of its contexts.

        White space and control characters in it become one space between words, as in the phrases
        of files.

        Raises
        ------
        InputError
            If the phrase cannot be indexed or is denied, or the popularity is no number from 0 to
            `telic.data.contracts.MAX_COUNT`.
        """
        with self._lock:
            phrase, weight = self.spelled(phrase), self.unit * math.log1p(_checked(popularity))
            self._put(phrase, dict.fromkeys(self._numbers_of(phrase), weight))

    def increment(self, phrase: str, by: float = 1.0) -> None:
        """Count a phrase up, in each of its contexts; one that is not there begins at 0.

        With recency in the weights this is an approximation: the count is added to the popularity
        that alone would give the phrase its weight.
        """
        with self._lock:
            phrase, count, weights = self.spelled(phrase), _checked(by), {}
            for number in self._numbers_of(phrase):
                there = number in self.weights or number < len(self.index)
                known = _popularity(self.weight(number) / self.unit) if there else 0.0
                weights[number] = self.unit * math.log1p(known + count)
            self._put(phrase, weights)

    def delete(self, phrase: str) -> bool:
        """Delete a phrase in every spelling that folds as it does; say whether the list had one.

        Users who submitted it are not shown it either, until it is added again.
        """
        with self._lock:
            phrase = self.spelled(phrase)
            form = checked_form(phrase, "phrase").encode()
            found = [id for id in self.index.alike(phrase) if id not in self.gone]
            places = self._changed.alike(form)
            changed = self._changed.rows[places.start : places.stop]
            self._changed.replace(places, [], [])
            for _, text, number in changed:
                del self.weights[number]
                self._numbers.pop(text, None)
            self.gone |= set(found)
            self.deleted.add(form)
            self.version += 1
            return bool(found or changed)

    def spelled(self, phrase: str) -> str:
        """Return a phrase as it is given where the index has it, or else tidied as in files.

        An index that Python made of a list may hold phrases that are not tidy.
        """
        if not isinstance(phrase, str):
            checked_form(phrase, "phrase")
        return phrase if self.find(phrase) >= 0 else tidy(phrase)

    def check(self, phrase: str, count: float = 0.0, *, deleted: bool = False) -> str:
        """Return a phrase's folded form; raise what `put` would of it and a count, or `delete`."""
        phrase = self.spelled(phrase)
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

    def shown_for(self, phrase: str, alike: range, through: Filter | None) -> str | None:
        """Return the spelling that is shown for a phrase where spellings are merged, or None.

        `alike` are the index's ids that fold as it does. An editor may have added it since, or
        deleted it and added it in another spelling.
        """
        id = next(iter(alike), -1) if through is None else through.first_of(alike)
        if id >= 0 and id not in self.gone:
            return self.index.phrase(id)
        changed = (self._changed.rows[i] for i in self._changed.alike(encoded_prefix(phrase)))
        return next((text for _, text, number in changed if number >= len(self.index)), None)

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

    def place(self, number: int) -> tuple[int, bool, bytes, str]:
        """Return what sorts any number among the ids; a user's own come after those of all."""
        added = 0 <= number - len(self.index) < len(self._texts)
        if not added:
            return number, True, b"", ""
        return self.order(number, fold(self.text(number)).encode())

    def changed(self, typed: bytes) -> list[tuple[bytes, int]]:
        """Return the changed or added phrases that begin with a folded prefix: form and number."""
        places = self._changed.beginning(typed)
        return [
            (form, number) for form, _, number in self._changed.rows[places.start : places.stop]
        ]

    def heaviest(
        self, typed: bytes, n: int, through: Filter | None, besides: Collection[int] = ()
    ) -> list[tuple[bytes, int, float]]:
        """Return the n heaviest of those that `changed` gives: see `ChangedPhrases.heaviest`."""
        if not self._changed.rows:
            return []
        with self._lock:
            return self._changed.heaviest(self._changed.beginning(typed), through, besides, n)

    def having(
        self,
        typed: str,
        through: Filter | None,
        besides: Collection[int] = (),
        *,
        typos: int = 0,
        keyboard: str | None = None,
    ) -> list[tuple[bytes, int, float, int]]:
        """Return all of them that have every typed word: see `ChangedPhrases.having`."""
        if not self._changed.rows:
            return []
        with self._lock:
            return self._changed.having(typed, through, besides, typos=typos, keyboard=keyboard)

    def shown_as(self, phrase: str, through: Filter | None) -> int:
        """Return the number by which a phrase is suggested through a filter, -1 if it is not."""
        number = self.find(phrase)
        if through is None or number < 0:
            return number
        if number not in self.weights:
            return through.find(phrase)
        with self._lock:
            places = self._changed.alike(encoded_prefix(phrase), phrase)
            best = self._changed.heaviest(places, through)
            return next((number for _, number, _ in best), -1)

    def left(self, ids: np.ndarray) -> np.ndarray:
        """Return those ids that are neither deleted nor changed."""
        touched = self.touched()
        return ids[~touched[ids]] if len(touched) else ids

    def touched(self) -> np.ndarray:
        """Return which ids are deleted or changed: bool of shape (phrases,), or empty if none."""
        if not self.gone and not self.weights:
            return NONE_LEFT_OUT
        with self._lock:
            if self._touched[:2] != (self.version, len(self.gone)):
                mask = np.zeros(len(self.index), np.bool_)
                mask[list(self.gone)] = True
                mask[[number for number in self.weights if number < len(mask)]] = True
                self._touched = self.version, len(self.gone), mask
            return self._touched[2]

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
                "deleted": sorted(form.decode() for form in self.deleted),
                "changed": {str(id): w for id, w in self.weights.items() if id < len(self.index)},
                "added": {text: self.weights[n] for text, n in self._numbers.items()},
            }

    def restore(self, stored: Mapping[str, Any], scale: float = 1.0) -> None:
        """Take over what `as_json` gave for the same index, but for what is denied by now.

        `scale` is the unit over that of the stored weights.
        """
        with self._lock:
            self.gone |= set(stored["gone"])
            self.deleted |= {form.encode() for form in stored.get("deleted", [])}
            self.version += 1
            texts: dict[str, dict[int, float]] = {}
            for id, weight in stored["changed"].items():
                texts.setdefault(self.index.phrase(int(id)), {})[int(id)] = scale * weight
            for text in kept(texts, self.deny):
                self._put(text, texts[text])
            for text in kept(stored["added"], self.deny):
                weight = scale * stored["added"][text]
                self._put(text, dict.fromkeys(self._numbers_of(text), weight))

    def take_over(self, other: "Live") -> None:
        """Take over the changes to the same index of a completer with other parts."""
        if len(other) or other.deleted:
            self.restore(other.as_json(), self.unit / other.unit)

    def was_deleted(self, form: bytes) -> bool:
        """Say whether what folds so was deleted, and not added again."""
        return form.rstrip(b" ") in self.deleted

    def _numbers_of(self, phrase: str) -> list[int]:
        """Return the numbers of a phrase in exactly this spelling; of a new one, its own to be."""
        if (added := self.added(phrase)) >= 0:
            return [added]
        ids = [id for id in self.index.spelled_as(phrase) if id not in self.gone]
        return ids or [self._known.get(phrase, len(self.index) + len(self._texts))]

    def _put(self, phrase: str, weights: Mapping[int, float]) -> None:
        """Set the weights of a phrase, by number."""
        form = self.check(phrase).encode()
        self.deleted.discard(form)
        for number in weights:
            if number == len(self.index) + len(self._texts):
                self._known[phrase] = number
                self._texts.append(phrase)
                self._stands.append(self.index.place(phrase).at)
            if number >= len(self.index):
                self._numbers[phrase] = number
        places = self._changed.alike(form, phrase)
        numbers = sorted({*self._changed.numbers(places), *weights})
        self.weights.update(weights)
        rows = [(form, phrase, number) for number in numbers]
        self._changed.replace(places, rows, [self.weights[number] for number in numbers])
        self.version += 1


def compacted(completer: "Completer") -> "Completer":
    """Return a completer with its own changes built into its index.

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
        codes, known = np.full((len(contexts.names), len(came)), NO_VALUE, np.int32), came >= 0
        codes[:, known] = contexts.codes[:, came[known]]  # there may be none to take them from
        contexts = replace(contexts, codes=codes)
    words = None if completer.words is None else WordIndex.build(built)
    made = replace(completer, index=built, records=records, contexts=contexts, words=words)
    made.live.deleted |= live.deleted
    return made


def compactable(completer: "Completer") -> bool:
    """Whether all that a completer knows of phrases goes with them into another index."""
    return completer.phones is None and completer.signals is None


def _popularity(weight: float) -> float:
    """Return what a logarithm of popularity was taken of, without what it lost to rounding.

    So phrases that are counted up to the same popularity are equal, to the last bit, with
    `math.log1p`, which gives what a fit's kernels give; `numpy.log1p` may not.
    """
    return float(f"{math.expm1(weight):.13g}")


def _checked(count: float) -> float:
    if not isinstance(count, Real) or not 0 <= count <= MAX_COUNT:
        raise InputError(f"a count is {count!r}, expected a number from 0 to {MAX_COUNT:g}.")
    return float(count)
