"""A suggestion, what put it where it is, and what it carries."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from telic.completion.learning.feedback import FEATURES
from telic.completion.learning.phone_ranker import Phone
from telic.completion.signals.ranker import in_words
from telic.evaluate import Interleaved

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer


@dataclass(frozen=True, slots=True)
class Explanation:
    """What put a suggestion where it is."""

    reasons: dict[str, float]
    """Parts of `Suggestion.feedback`: feature → its share, largest first."""
    observed: dict[str, float]
    """What was fed back on it so far in this composition: feature → value, 0 left out."""
    apps: dict[str, float]
    """Parts of `Suggestion.apps`: app → its share, largest first."""
    signals: dict[str, float] = field(default_factory=dict)
    """Parts of `Suggestion.signals`: group → its share, of the groups that are on."""
    line: str = ""
    """The signals that move it most, in words; empty where the model has none."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One suggestion, and where its parts put it."""

    text: str
    relevance: float
    """Of a phrase that does not begin with what was typed, its score: see `WordIndex.top`."""
    feedback: float
    """What implicit feedback adds to the relevance; 0 where the static order is kept."""
    static_position: int
    """Position, from 1, by relevance alone."""
    apps: float
    """What the phone's apps add to the relevance."""
    _number: int = field(compare=False, repr=False)
    _keystroke: "Keystroke" = field(compare=False, repr=False)
    signals: float = 0.0
    """What the signals add: see `telic.completion.signals`."""

    @property
    def id(self) -> str | None:
        """One's own id of the phrase; None if it has none."""
        records = self._keystroke.completer.records
        return records.id(self._number) if records else None

    @property
    def payload(self) -> Any:
        """What JSON the phrase carries; None if it carries none."""
        records = self._keystroke.completer.records
        return records.payload(self._number) if records else None

    def explain(self) -> Explanation:
        """Take the feedback and the apps' part to pieces."""
        return self._keystroke.explain(self.static_position - 1)


@dataclass(slots=True)  # frozen would cost as much as all the rest of making one
class Keystroke:
    """The candidates of one keystroke in the static order, and what moves them."""

    completer: "Completer"
    numbers: np.ndarray
    relevance: np.ndarray
    features: np.ndarray | None
    """What was fed back; None where that tells nothing."""
    columns: np.ndarray | None
    parts: np.ndarray | None
    """Columns times weights: what each column adds to each candidate, if feedback may."""
    phone: Phone | None
    """The phone whose apps count, if any do."""
    served: bool
    """Whether the model's order was shown."""
    told: np.ndarray | None = None
    """What each signal adds to each candidate, if any does."""

    def explain(self, i: int) -> Explanation:
        """Take a candidate's score to pieces."""
        ranker, apps = self.completer.phones, {}
        if i >= len(self.numbers):  # beyond the prefix: nothing moves it
            return Explanation({}, {}, {})
        if self.served and ranker is not None and self.phone is not None:
            apps = ranker.reasons(self.completer.catalogued(self.numbers[i : i + 1])[0], self.phone)
        parts = _named(self.parts[i]) if self.served and self.parts is not None else {}
        reasons = dict(sorted(parts.items(), key=lambda part: -abs(part[1])))
        signals, line = {}, ""
        if self.served and self.told is not None:
            signals = self.completer.ranker().by_group(self.told[i])
            told = [self.told[i]] if self.parts is None else [self.told[i], self.parts[i]]
            line = in_words(np.concatenate(told))
        observed = {} if self.features is None else _named(self.features[i])
        return Explanation(reasons, observed, apps, signals, line)


@dataclass(slots=True)
class Listed:
    """What one keystroke was answered with; texts and reasons are made for who asks for them."""

    numbers: list[int]
    """What is shown, best first: ids of the catalogue, or numbers beyond them."""
    rows: list[int]
    """The rows among the keystroke's candidates of those that start with the prefix."""
    relevance: np.ndarray
    feedback: np.ndarray | None
    apps: np.ndarray | None
    """None where they add nothing."""
    keystroke: Keystroke
    texts_of: Callable[[list[int]], list[str]]
    """Gives the texts of numbers."""
    signals: np.ndarray | None = None
    """None where they add nothing."""
    drawn: Interleaved | None = None
    """Whether the static order, 0, or the model's, 1, put each row there, where both were mixed."""
    beyond: list[float] = field(default_factory=list)
    """Scores of those shown that do not start with the prefix; they come last."""

    def texts(self) -> list[str]:
        """Return the texts that are shown."""
        return self.texts_of(self.numbers)

    def suggestions(self) -> list[Suggestion]:
        """Return what is shown, with what put it where it is."""
        there = len(self.keystroke.numbers)
        base, fed_back, apps, signals = (
            [0.0] * there if column is None else column.tolist()
            for column in (self.relevance, self.feedback, self.apps, self.signals)
        )
        parts = [(base[i], fed_back[i], i + 1, apps[i]) for i in self.rows]
        parts += [(score, 0.0, there + i, 0.0) for i, score in enumerate(self.beyond, 1)]
        told = [signals[i] for i in self.rows] + [0.0] * len(self.beyond)
        each = zip(self.texts(), self.numbers, parts, told, strict=True)
        return [
            Suggestion(text, *part, number, self.keystroke, added)
            for text, number, part, added in each
        ]


def _named(values: np.ndarray) -> dict[str, float]:
    names = (*FEATURES, "Relevance")
    return {names[i]: float(values[i]) for i in np.flatnonzero(abs(values) > 1e-9)}
