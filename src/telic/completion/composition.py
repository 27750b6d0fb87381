"""One query being typed: what to suggest at each keystroke, and what the submission teaches.

A keystroke is ids and arrays until its list is returned; texts are made for what is shown, and
reasons for who asks.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.completion.feedback import FEATURES, Feedback
from telic.completion.folding import fold
from telic.completion.index import checked_form
from telic.completion.phones import Phone

if TYPE_CHECKING:
    from telic.completion.completer import Completer, UserState


@dataclass(frozen=True, slots=True)
class Explanation:
    """What put a suggestion where it is."""

    reasons: dict[str, float]
    """Parts of `Suggestion.feedback`: feature → its share, largest first."""
    observed: dict[str, float]
    """What was fed back on it so far in this composition: feature → value, 0 left out."""
    apps: dict[str, float]
    """Parts of `Suggestion.apps`: app → its share, largest first."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One suggestion, and where its parts put it."""

    text: str
    relevance: float
    feedback: float
    """What implicit feedback adds to the relevance; 0 where the static order is kept."""
    static_position: int
    """Position, from 1, by relevance alone."""
    apps: float
    """What the phone's apps add to the relevance."""
    _keystroke: "_Keystroke" = field(compare=False, repr=False)

    def explain(self) -> Explanation:
        """Take the feedback and the apps' part to pieces."""
        return self._keystroke.explain(self.static_position - 1)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one submitted composition teaches, whatever its user's state has become meanwhile.

    `Completer.teach` adds it to a state, so states that see the same lessons in the same order are
    the same, wherever they are kept.
    """

    query: str
    chosen: int = -1
    """Row of the submitted query among the candidates; -1 if adaQAC-Online takes no step."""
    columns: np.ndarray | None = None
    """Columns of the candidates at the last keystroke, shape (n, d)."""
    relevance: np.ndarray | None = None
    """Their relevance, shape (n,)."""
    gains: tuple[float, float] | None = None
    """What `RunningCheck.observe` takes, or None if it sees nothing."""


class _Own(NamedTuple):
    """A user's own query among candidates."""

    folded: bytes
    order: tuple[int, bool, bytes, str]
    """Sorts own queries among catalogue ids: its place, and what tells those of one place apart."""
    number: int
    relevance: float


@dataclass(frozen=True, slots=True)
class _Keystroke:
    """The candidates of one keystroke in the static order, and what moves them."""

    completer: "Completer"
    numbers: np.ndarray
    relevance: np.ndarray
    features: np.ndarray
    columns: np.ndarray
    parts: np.ndarray
    """Columns times weights: what each column adds to each candidate."""
    apps: np.ndarray
    phone: Phone | None
    """The phone whose apps count, if any do."""
    order: np.ndarray
    """The model's order."""
    served: bool
    """Whether the model's order was shown."""

    def gain(self, number: int) -> float:
        """Reciprocal rank of a candidate in the model's order minus that in the static order."""
        static = np.flatnonzero(self.numbers == number)
        if not len(static):
            return 0.0
        model = np.flatnonzero(self.order == static[0])
        return float(1 / (1 + model[0]) - 1 / (1 + static[0]))

    def explain(self, i: int) -> Explanation:
        ranker, apps = self.completer.phones, {}
        if self.served and ranker is not None and self.phone is not None:
            apps = ranker.reasons(self.completer.catalogued(self.numbers[i : i + 1])[0], self.phone)
        parts = _named(self.parts[i]) if self.served else {}
        reasons = dict(sorted(parts.items(), key=lambda part: -abs(part[1])))
        return Explanation(reasons, _named(self.features[i]), apps)


class Composition:
    """One query being typed: call `suggest` at every keystroke, `submit` at the end.

    Examples
    --------
    A completer fitted on simulated typists::

        composition = completer.compose(completer.user("ada"))
        for second, prefix in enumerate(["f", "fa", "fac"]):
            suggestions = composition.suggest(prefix, at=float(second))
        composition.submit("facetime")
    """

    def __init__(
        self, completer: "Completer", user: "UserState", phone: Phone | None = None
    ) -> None:
        self.completer = completer
        self.user = user
        self._phone = phone
        self._others: dict[str, int] = {}  # texts that are not in the catalogue: numbered after it
        self._other_texts: list[str] = []
        previous = -1 if user.previous is None else self._number(user.previous)
        self._feedback = Feedback(previous)
        self._own = self._own_queries()
        self._own_forms = [own.folded for own in self._own]
        self._shown: tuple[bytes, list[int], float] | None = None
        self._keystrokes: list[_Keystroke] = []

    def suggest(self, prefix: str, *, at: float, show: int = 10) -> list[Suggestion]:
        """Return what to show for a prefix, best first.

        Parameters
        ----------
        prefix : str
            What stands in the box now.
        at : float
            Seconds on any clock that does not run backwards; the time since the call before is
            how long the list returned then was looked at.
        show : int
            How many to return, at most `Completer.n`.
        """
        self._observe(at)
        completer, user = self.completer, self.user
        # A lone surrogate, half of a character, is no text but may well be typed.
        typed = fold(prefix).encode(errors="surrogatepass")
        numbers, relevance = self._candidates(prefix, typed)
        features = self._feedback.features(numbers)
        columns = completer.design.columns(features, relevance)
        may_rerank = (
            completer.model != "static" and user.reranks and completer.gate.open_at(len(prefix))
        )
        parts = columns * user.weights if may_rerank else np.zeros_like(columns)
        phone = self._phone if may_rerank and completer.phones is not None else None
        apps = np.zeros(len(numbers))
        if completer.phones is not None and phone is not None:
            apps = completer.phones.added(completer.catalogued(numbers), phone)
        feedback = parts.sum(axis=1)
        order = np.argsort(-(relevance + feedback + apps), kind="stable")
        served = not completer.do_no_harm or user.check.open
        keystroke = _Keystroke(
            completer, numbers, relevance, features, columns, parts, apps, phone, order, served
        )
        self._keystrokes.append(keystroke)
        shown = order[:show].tolist() if served else list(range(min(show, len(order))))
        self._shown = typed, numbers[shown].tolist(), at
        if not served:
            feedback = apps = np.zeros(len(numbers))
        added = np.array([relevance, feedback, apps])[:, shown].T.tolist()
        return [
            Suggestion(self._text(number), r, fed_back, i + 1, from_apps, keystroke)
            for i, number, (r, fed_back, from_apps) in zip(
                shown, self._shown[1], added, strict=True
            )
        ]

    def shown(self, texts: Sequence[str]) -> None:
        """Say what was really shown for the last prefix, where it was not what `suggest` returned.

        Feedback is about what people saw: a page may show fewer suggestions, or others besides.
        """
        if self._shown is not None:
            typed, _, at = self._shown
            self._shown = typed, [self._number(text) for text in texts], at

    def submit(self, query: str) -> bool:
        """End the composition; return whether the weights of the user changed.

        The query joins the user's history, adaQAC-Online takes one step (2.7.2) by the completer's
        `OnlineRule`, and the user's `RunningCheck` sees what re-ranking was worth.

        Raises
        ------
        InputError
            If the query could not be suggested later: nothing to match, too long, no valid Unicode.
        """
        learned = self.completer.teach(self.user, self.lesson(query))
        self._shown = None
        self._keystrokes = []
        return learned

    def lesson(self, query: str) -> Lesson:
        """Say what submitting a query now would teach; nothing is changed.

        Raises
        ------
        InputError
            As `submit`.
        """
        checked_form(query, "query")
        if not self._keystrokes:
            return Lesson(query)
        number, gains = self._number(query), None
        if self.completer.do_no_harm:
            gain = np.array([keystroke.gain(number) for keystroke in self._keystrokes])
            served = gain * [keystroke.served for keystroke in self._keystrokes]
            gains = float(gain.mean()), float(served.mean())
        if self.completer.model != "adaqac-online":
            return Lesson(query, gains=gains)
        last = self._keystrokes[-1]
        columns, relevance = last.columns, last.relevance
        chosen = np.flatnonzero(last.numbers == number)
        if not len(chosen):
            if not self.completer.rule.keep_unlisted:
                return Lesson(query, gains=gains)
            own = self._relevance([number], [self.user.history.get(query, 0.0)])
            features = self._feedback.features([number])
            chosen, relevance = np.array([len(relevance)]), np.concatenate([relevance, own])
            columns = np.vstack([columns, self.completer.design.columns(features, own)])
        return Lesson(query, int(chosen[0]), columns, relevance, gains)

    def _observe(self, at: float) -> None:
        if self._shown is not None:
            prefix, numbers, since = self._shown
            self._feedback.observe(
                prefix, numbers, dwell=at - since,
                texts=[self._folded(number) for number in numbers],
            )  # fmt: skip

    def _candidates(self, prefix: str, typed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the n most relevant candidates and their relevance, best first.

        A sum of a shared and a personal part is largest either where the shared part is largest or
        where the personal part is not zero: the top of the index and the own history suffice.
        """
        index, n = self.completer.index, self.completer.n
        ids = index.top(prefix, n)
        weights = index.weights[ids]
        first = last = bisect_left(self._own_forms, typed)
        while last < len(self._own) and self._own_forms[last].startswith(typed):
            last += 1
        if first == last:
            return ids, weights
        own = self._own[first:last]
        mine = {each.number for each in own}
        # Of equally relevant ones, those of the catalogue come in its order.
        found = [
            (-weight, (id, True, b"", ""), id)
            for id, weight in zip(ids.tolist(), weights.tolist(), strict=True)
            if id not in mine
        ]
        found += [(-each.relevance, each.order, each.number) for each in own]
        found = sorted(found)[:n]
        return np.array([row[2] for row in found]), -np.array([row[0] for row in found])

    def _own_queries(self) -> list[_Own]:
        """Return the user's own queries by folded form, if the relevance counts them."""
        completer, user = self.completer, self.user
        if completer.relevance.factors[1] <= 0:
            return []
        known, history = user.places(completer.index), user.history
        places = [known[query] for query in history]
        numbers = [
            place.at if place.there else self._other(query)
            for query, place in zip(history, places, strict=True)
        ]
        relevance = self._relevance(numbers, list(history.values())).tolist()
        return sorted(
            _Own(place.folded, (place.at, place.there, place.folded, query), number, r)
            for query, place, number, r in zip(history, places, numbers, relevance, strict=True)
        )

    def _relevance(self, numbers: list[int], counts: list[float]) -> np.ndarray:
        """Return the relevance of numbered texts that the user has submitted so often."""
        index, relevance = self.completer.index, self.completer.relevance
        ids = self.completer.catalogued(np.array(numbers, np.int64))
        shared = np.full(len(ids), relevance.unlearned or 0.0)
        shared[ids >= 0] = index.weights[ids[ids >= 0]]
        own = np.log1p(counts) if relevance.scale == "log" else np.array(counts)
        return shared + relevance.factors[1] * own

    def _number(self, text: str) -> int:
        """Return a text's id in the catalogue, or a number beyond them."""
        id = self.completer.index.find(text)
        return id if id >= 0 else self._other(text)

    def _other(self, text: str) -> int:
        if text not in self._others:
            self._others[text] = len(self.completer.index) + len(self._others)
            self._other_texts.append(text)
        return self._others[text]

    def _text(self, number: int) -> str:
        index = self.completer.index
        if number < len(index):
            return index.phrase(number)
        return self._other_texts[number - len(index)]

    def _folded(self, number: int) -> bytes:
        index = self.completer.index
        if number < len(index):
            return index.folded(number)
        return fold(self._other_texts[number - len(index)]).encode()


def _named(values: np.ndarray) -> dict[str, float]:
    names = (*FEATURES, "Relevance")
    return {names[i]: float(values[i]) for i in np.flatnonzero(abs(values) > 1e-9)}
