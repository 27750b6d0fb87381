"""One query being typed: what to suggest at each keystroke, and what the submission teaches.

A keystroke is ids and arrays until its list is returned; texts are made for what is shown, and
reasons for who asks.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from telic.completion.beyond import OwnWords, beyond, typed_words
from telic.completion.contexts import Filter
from telic.completion.feedback import Feedback
from telic.completion.folding import fold
from telic.completion.index import Place, checked_form
from telic.completion.phones import Phone
from telic.completion.suggestion import Keystroke, Suggestion

if TYPE_CHECKING:
    from telic.completion.completer import Completer, UserState


class _Own(NamedTuple):
    """A user's own query among candidates."""

    folded: bytes
    order: tuple[int, bool, bytes, str]
    """Sorts own queries among catalogue ids: its place, and what tells those of one place apart."""
    number: int
    relevance: float


_OTHERS = 1 << 30  # numbers of texts that only this composition knows


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
        self,
        completer: "Completer",
        user: "UserState",
        phone: Phone | None = None,
        through: Filter | None = None,
    ) -> None:
        self._filter = through
        self.completer = completer
        self.user = user
        self._phone = phone
        self._others: dict[str, int] = {}  # texts that are not in the catalogue
        self._other_texts: list[str] = []
        previous = -1 if user.previous is None else self._number(user.previous)
        self._feedback = Feedback(previous)
        self._own = self._own_queries()
        self._own_forms = [own.folded for own in self._own]
        self._own_words: OwnWords | None = None
        self._shown: tuple[bytes, list[int], float] | None = None
        self._keystrokes: list[Keystroke] = []

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
        keystroke = Keystroke(
            completer, numbers, relevance, features, columns, parts, apps, phone, order, served
        )
        self._keystrokes.append(keystroke)
        shown = order[:show].tolist() if served else list(range(min(show, len(order))))
        self._shown = typed, numbers[shown].tolist(), at
        if not served:
            feedback = apps = np.zeros(len(numbers))
        added = np.array([relevance, feedback, apps])[:, shown].T.tolist()
        begun = [
            Suggestion(self._text(number), r, fed_back, i + 1, from_apps, number, keystroke)
            for i, number, (r, fed_back, from_apps) in zip(
                shown, self._shown[1], added, strict=True
            )
        ]
        if completer.words is None or len(begun) >= show or not typed:
            return begun
        return begun + self._beyond(prefix, typed, keystroke, show - len(begun))

    def _beyond(
        self, prefix: str, typed: bytes, keystroke: Keystroke, wanted: int
    ) -> list[Suggestion]:
        """Fill the list with phrases that have the typed words elsewhere, or mistyped."""
        there, tokens, own = len(keystroke.numbers), typed_words(prefix), []
        if self._own:
            if self._own_words is None:
                self._own_words = OwnWords(self._own_forms)
            matching = map(self._own.__getitem__, self._own_words.matching(tokens))
            own = [
                (each.number, each.relevance)
                for each in matching
                if not each.folded.startswith(typed)
            ]
        live, mine = self.completer.live, {number for number, _ in own}
        own += [
            (number, live.weight(number))
            for form, number in live.having(tokens)
            if not form.startswith(typed) and number not in mine and self._passes(number)
        ]
        found = beyond(
            self.completer, prefix, there=there, wanted=wanted, own=own, through=self._filter
        )
        assert self._shown is not None
        self._shown[1].extend(found.numbers)
        return [
            Suggestion(self._text(number), score, 0.0, there + i, 0.0, number, keystroke)
            for i, (number, score) in enumerate(zip(*found, strict=True), 1)
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

        A query on the deny list teaches nothing. Else it joins the user's history, adaQAC-Online
        takes one step (2.7.2) by the completer's `OnlineRule`, and the user's `RunningCheck` sees
        what re-ranking was worth.

        Raises
        ------
        InputError
            If the query could not be suggested later: nothing to match, too long, no valid Unicode.
        """
        checked_form(query, "query")
        user, completer = self.user, self.completer
        query = completer.known_as(query)
        if completer.deny is not None and completer.deny.denies(query):
            self._shown, self._keystrokes = None, []
            return False
        number = self._number(query)
        learned = completer.model == "adaqac-online" and self._learn(query, number)
        if completer.do_no_harm and self._keystrokes:
            gains = np.array([keystroke.gain(number) for keystroke in self._keystrokes])
            served = gains * [keystroke.served for keystroke in self._keystrokes]
            user.check.observe(float(gains.mean()), float(served.mean()))
        user.history[query] = user.history.get(query, 0.0) + 1.0
        user.previous = query
        self._shown = None
        self._keystrokes = []
        return learned

    def _learn(self, query: str, number: int) -> bool:
        """Take a step of adaQAC-Online, if the submitted query is, or may join, the candidates."""
        if not self._keystrokes:
            return False
        last, user, rule = self._keystrokes[-1], self.user, self.completer.rule
        columns, relevance = last.columns, last.relevance
        chosen = np.flatnonzero(last.numbers == number)
        if not len(chosen):
            if not rule.keep_unlisted:
                return False
            own = self._relevance([number], [user.history.get(query, 0.0)])
            features = self._feedback.features([number])
            chosen, relevance = np.array([len(relevance)]), np.concatenate([relevance, own])
            columns = np.vstack([columns, self.completer.design.columns(features, own)])
        rule.learn(columns, relevance, int(chosen[0]), user.weights, user.updates)
        user.updates += 1
        return True

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
        n = self.completer.n
        ids, weights = self._heaviest(prefix, n)
        first = last = bisect_left(self._own_forms, typed)
        while last < len(self._own) and self._own_forms[last].startswith(typed):
            last += 1
        own = self._own[first:last] + self._changed(
            typed, {q.number for q in self._own[first:last]}
        )
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

    def _heaviest(self, prefix: str, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the n heaviest of the catalogue that are neither deleted nor changed."""
        index, live, k = self.completer.index, self.completer.live, n
        while True:
            if self._filter is not None:
                ids, weights = self._filter.top(prefix, k)
            else:
                ids = index.top(prefix, k)
                weights = index.weights[ids]
            left = live.left(ids)
            if len(left) == len(ids):
                return ids[:n], weights[:n]
            if len(left) >= n or len(ids) < k:
                stays = np.isin(ids, left)
                return ids[stays][:n], weights[stays][:n]
            k *= 4

    def _changed(self, typed: bytes, own: set[int]) -> list[_Own]:
        """Return what was added or counted up since, besides own queries."""
        live, index = self.completer.live, self.completer.index
        return [
            _Own(form, (number, number < len(index), form, ""), number, live.weight(number))
            for form, number in live.changed(typed)
            if number not in own and self._passes(number)
        ]

    def _passes(self, number: int) -> bool:
        """Whether a phrase passes the filter; what was added since is limited to nothing."""
        if self._filter is None or number >= len(self.completer.index):
            return True
        allowed = self._filter.contexts.allowed(self._filter.wanted, np.array([number]))
        return bool(allowed[0])

    def _own_queries(self) -> list[_Own]:
        """Return the user's own queries by folded form, if the relevance counts them."""
        completer, user = self.completer, self.user
        if completer.relevance.factors[1] <= 0:
            return []
        known, history = user.places(completer.index), user.history
        places = [known[query] for query in history]
        numbers = [
            self._own_number(place, query) for query, place in zip(history, places, strict=True)
        ]
        relevance = self._relevance(numbers, list(history.values())).tolist()
        # Own queries that a filter keeps back have no number.
        return sorted(
            _Own(place.folded, (place.at, place.there, place.folded, query), number, r)
            for query, place, number, r in zip(history, places, numbers, relevance, strict=True)
            if number >= 0
        )

    def _own_number(self, place: Place, query: str) -> int:
        live = self.completer.live
        if place.there and place.at in live.gone:
            return -1
        if not place.there:
            added = live.added(query)
            return added if added >= 0 else self._other(query)
        return place.at if self._filter is None else self._filter.find(query)

    def _relevance(self, numbers: list[int], counts: list[float]) -> np.ndarray:
        """Return the relevance of numbered texts that the user has submitted so often."""
        index, relevance = self.completer.index, self.completer.relevance
        ids = self.completer.catalogued(np.array(numbers, np.int64))
        shared = np.full(len(ids), relevance.unlearned or 0.0)
        there = ids >= 0
        through = self._filter
        shared[there] = through.boosted(ids[there]) if through else index.weights[ids[there]]
        live = self.completer.live
        for i, number in enumerate(numbers if live.weights else ()):
            shared[i] = live.weights.get(number, shared[i])
        own = np.log1p(counts) if relevance.scale == "log" else np.array(counts)
        return shared + relevance.factors[1] * own

    def _number(self, text: str) -> int:
        """Return a text's id in the catalogue, or a number beyond them."""
        id = self._find(text)
        return id if id >= 0 else self._other(text)

    def _find(self, text: str) -> int:
        if self._filter is not None:
            return self._filter.find(text)
        return self.completer.live.find(text)

    def _other(self, text: str) -> int:
        if text not in self._others:
            self._others[text] = _OTHERS + len(self._others)
            self._other_texts.append(text)
        return self._others[text]

    def _text(self, number: int) -> str:
        index = self.completer.index
        if number < len(index):
            return index.phrase(number)
        if number < _OTHERS:
            return self.completer.live.text(number)
        return self._other_texts[number - _OTHERS]

    def _folded(self, number: int) -> bytes:
        index = self.completer.index
        if number < len(index):
            return index.folded(number)
        return fold(self._text(number)).encode()
