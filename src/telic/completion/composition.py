"""One query being typed: what to suggest at each keystroke, and what the submission teaches.

A keystroke is ids and arrays until its list is returned; texts are made for what is shown, and
reasons for who asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from telic.completion.feedback import FEATURES, Feedback
from telic.completion.folding import fold
from telic.completion.index import checked_form
from telic.completion.own_queries import own_relevance
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


@dataclass(frozen=True, slots=True)
class _Keystroke:
    """The candidates of one keystroke in the static order, and what moves them."""

    completer: "Completer"
    numbers: np.ndarray
    relevance: np.ndarray
    features: np.ndarray
    columns: np.ndarray
    parts: np.ndarray | None
    """Columns times weights: what each column adds to each candidate, if feedback may."""
    phone: Phone | None
    """The phone whose apps count, if any do."""
    served: bool
    """Whether the model's order was shown."""

    def explain(self, i: int) -> Explanation:
        ranker, apps = self.completer.phones, {}
        if self.served and ranker is not None and self.phone is not None:
            apps = ranker.reasons(self.completer.catalogued(self.numbers[i : i + 1])[0], self.phone)
        parts = _named(self.parts[i]) if self.served and self.parts is not None else {}
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
        self._own = user.own_queries(completer)
        self._first_other = len(completer.index) + len(self._own.others)
        self._others: dict[str, int] = {}  # further texts that are not in the catalogue
        self._other_texts: list[str] = []
        previous = -1 if user.previous is None else self._number(user.previous)
        self._feedback = Feedback(previous)
        self._shown: tuple[bytes, list[int], float] | None = None
        self._last: _Keystroke | None = None
        self._keystrokes = 0
        # Sums over the keystrokes, by candidate: what the model's order gained over the static one
        # in reciprocal rank, and the part of that which was shown. Left out are zeros.
        self._gains: dict[int, list[float]] = {}

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
        served = not completer.do_no_harm or user.check.open
        phone = self._phone if may_rerank and completer.phones is not None else None
        parts, order = None, list(range(len(numbers)))
        feedback = apps = np.zeros(len(numbers))
        if may_rerank:
            parts = columns * user.weights
            added = feedback = parts.sum(axis=1)
            if completer.phones is not None and phone is not None:
                apps = completer.phones.added(completer.catalogued(numbers), phone)
                added = feedback + apps
            order = np.argsort(-(relevance + added), kind="stable").tolist()
        ids = numbers.tolist()
        self._count(ids, order, served)
        if not served:
            order, feedback = list(range(len(ids))), np.zeros(len(ids))
            apps = feedback
        last = self._last = _Keystroke(
            completer, numbers, relevance, features, columns, parts, phone, served
        )
        rows = order[:show]
        self._shown = typed, [ids[i] for i in rows], at
        base, fed_back, from_apps = relevance.tolist(), feedback.tolist(), apps.tolist()
        return [
            Suggestion(self._text(ids[i]), base[i], fed_back[i], i + 1, from_apps[i], last)
            for i in rows
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
        self._shown = self._last = None
        self._keystrokes, self._gains = 0, {}
        return learned

    def lesson(self, query: str) -> Lesson:
        """Say what submitting a query now would teach; nothing is changed.

        Raises
        ------
        InputError
            As `submit`.
        """
        checked_form(query, "query")
        last, number, gains = self._last, self._number(query), None
        if last is None:
            return Lesson(query)
        if self.completer.do_no_harm:
            gain, served = self._gains.get(number, (0.0, 0.0))
            gains = gain / self._keystrokes, served / self._keystrokes
        if self.completer.model != "adaqac-online":
            return Lesson(query, gains=gains)
        columns, relevance = last.columns, last.relevance
        chosen = np.flatnonzero(last.numbers == number)
        if not len(chosen):
            if not self.completer.rule.keep_unlisted:
                return Lesson(query, gains=gains)
            own = own_relevance(self.completer, [number], [self.user.history.get(query, 0.0)])
            features = self._feedback.features([number])
            chosen, relevance = np.array([len(relevance)]), np.concatenate([relevance, own])
            columns = np.vstack([columns, self.completer.design.columns(features, own)])
        return Lesson(query, int(chosen[0]), columns, relevance, gains)

    def _count(self, ids: list[int], order: list[int], served: bool) -> None:
        self._keystrokes += 1
        for place, i in enumerate(order):
            if place != i:
                gain = 1 / (1 + place) - 1 / (1 + i)
                sums = self._gains.setdefault(ids[i], [0.0, 0.0])
                sums[0] += gain
                sums[1] += gain * served

    def _observe(self, at: float) -> None:
        if self._shown is None:
            return
        prefix, numbers, since = self._shown
        index = self.completer.index
        if all(number < len(index) for number in numbers):
            self._feedback.observe_phrases(prefix, numbers, dwell=at - since, index=index)
        else:
            texts = [self._folded(number) for number in numbers]
            self._feedback.observe(prefix, numbers, dwell=at - since, texts=texts)

    def _candidates(self, prefix: str, typed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the n most relevant candidates and their relevance, best first.

        A sum of a shared and a personal part is largest either where the shared part is largest or
        where the personal part is not zero: the top of the index and the own history suffice.
        """
        index, n = self.completer.index, self.completer.n
        ids = index.top(prefix, n)
        weights = index.weights[ids]
        own = self._own.starting(typed)
        if not own:
            return ids, weights
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

    def _number(self, text: str) -> int:
        """Return a text's id in the catalogue, or a number beyond them."""
        id = self.completer.index.find(text)
        return id if id >= 0 else self._other(text)

    def _other(self, text: str) -> int:
        number = self._own.others.get(text, self._others.get(text, -1))
        if number < 0:
            number = self._others[text] = self._first_other + len(self._other_texts)
            self._other_texts.append(text)
        return number

    def _text(self, number: int) -> str:
        index = self.completer.index
        if number < len(index):
            return index.phrase(number)
        if number < self._first_other:
            return self._own.other_texts[number - len(index)]
        return self._other_texts[number - self._first_other]

    def _folded(self, number: int) -> bytes:
        index = self.completer.index
        return index.folded(number) if number < len(index) else fold(self._text(number)).encode()


def _named(values: np.ndarray) -> dict[str, float]:
    names = (*FEATURES, "Relevance")
    return {names[i]: float(values[i]) for i in np.flatnonzero(abs(values) > 1e-9)}
