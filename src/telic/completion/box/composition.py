"""One query being typed: what to suggest at each keystroke, and what the submission teaches.

A keystroke is ids and arrays until its list is returned; texts are made for what is shown, and
reasons for who asks.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from telic.completion.box.own_queries import OTHERS, OwnQueries, OwnQuery, own_relevance
from telic.completion.box.suggestion import Keystroke, Listed, Suggestion
from telic.completion.box.user_signals import UserSignals
from telic.completion.box.word_and_typo_matches import beyond
from telic.completion.engine.filters import Filter
from telic.completion.engine.folding import checked_form, encoded_prefix, fold
from telic.completion.engine.typos import QUARTER_EDIT
from telic.completion.learning.feedback import Feedback
from telic.completion.learning.phone_ranker import Phone
from telic.completion.learning.reranking_gains import Gains
from telic.errors import expect_whole
from telic.evaluate import team_draft

if TYPE_CHECKING:
    from telic.completion.box.completer import Completer
    from telic.completion.box.user_state import UserState


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
    denied: bool = False
    """Whether the query is on the deny list: then it teaches nothing."""
    at: int = 0
    """When it was submitted, in microseconds since 1970; 0 where no signal looks at it."""
    began: int = 0
    """When it was begun, which decides whether it continues a session."""


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
        *,
        keep_static: bool = False,
        interleave: np.random.Generator | None = None,
        at: int | None = None,
    ) -> None:
        self._filter, self._keep_static, self._interleave = through, keep_static, interleave
        self.completer = completer
        self.user = user
        self._phone = phone
        self._version = completer.live.version
        # A filter's own table is not kept: every composition may have another.
        self._own = (
            user.own_queries(completer)
            if through is None
            else OwnQueries.of(completer, user, through)
        )
        self._first_other = OTHERS + len(self._own.others)
        self._others: dict[str, int] = {}  # further texts that are not in the catalogue
        self._other_texts: list[str] = []
        previous = -1 if user.previous is None else self._number(user.previous)
        self._feedback = Feedback(previous)
        self._shown: tuple[bytes, list[int], float] | None = None
        self._last: Keystroke | None = None
        self._gains = Gains(completer.n)
        self._checks = completer.has_running_check
        self._now = time.time_ns() // 1000 if at is None else at
        # What the user submits elsewhere while this is typed is no part of the session before it.
        signals = completer.signals
        self._before = (
            user.latest_session(self._now, signals.session_minutes) if signals is not None else []
        )
        self._first_at: float | None = None
        self._user_signals: UserSignals | None = None

    def suggest(self, prefix: str, *, at: float, show: int = 10) -> list[Suggestion]:
        """Return what to show for a prefix, best first.

        Parameters
        ----------
        prefix : str
            What stands in the box now.
        at : float
            Seconds on any clock that does not run backwards. The time since the previous call is
            the dwell on the list that it returned.
        show : int
            How many to return, at most `Completer.n`.

        Raises
        ------
        InputError
            If the prefix is no str, or `show` no integer from 0.
        """
        expect_whole(0, show=show)
        return self.listed(prefix, at=at, show=show).suggestions()

    def listed(self, prefix: str, *, at: float, show: int = 10) -> Listed:
        """Do as `suggest`, without making texts and reasons that perhaps nobody asks for."""
        if self.completer.feeds_back:
            self._observe(at)
        self._keep_up()
        completer, user = self.completer, self.user
        show = min(show, completer.n)  # a longer list would skip phrases that begin with the prefix
        typed = encoded_prefix(prefix)
        told = signals = None
        if completer.signals is None:
            numbers, relevance = self._candidates(prefix, typed)
        else:
            numbers, relevance, told, signals = self._signals(at).candidates(typed)
        may_rerank = (
            completer.model != "static" and user.reranks and completer.gate.open_at(len(prefix))
        )
        lets = not completer.do_no_harm or user.check.open
        served = lets and not self._keep_static and self._interleave is None
        phone = self._phone if may_rerank and completer.phones is not None else None
        features = columns = parts = feedback = apps = None
        if completer.feeds_back:
            features, columns, parts, feedback = self._feedback.weighed(
                numbers, relevance, completer.design, user.weights if may_rerank else None
            )
        order, drawn = list(range(len(numbers))), None
        if may_rerank:
            scores = relevance if feedback is None else relevance + feedback
            if completer.phones is not None and phone is not None:
                apps = completer.phones.added(completer.catalogued(numbers), phone)
                scores = relevance + (feedback + apps)
            if signals is not None:
                scores = scores + signals
            # Of equal ones, the more relevant first.
            order = sorted(order, key=scores.tolist().__getitem__, reverse=True)
        ids = numbers.tolist()
        if self._checks:
            self._gains.add(numbers, order, served=served)
        if not served:
            # The static order knows no query that one user alone submitted.
            static = [i for i, number in enumerate(ids) if told is None or number < OTHERS]
            if self._interleave is not None:
                drawn = team_draft(
                    static, order if lets else static, length=show, seed=self._interleave
                )
            order = static if drawn is None else cast(list[int], drawn.items)
            feedback, apps, signals = None, None, None
        last = self._last = Keystroke(
            completer, numbers, relevance, features, columns, parts, phone, served, told
        )
        rows = order[:show]
        shown = [ids[i] for i in rows]
        self._shown = typed, shown, at
        listed = Listed(shown, rows, relevance, feedback, apps, last, self._texts, signals, drawn)
        if completer.words is not None and len(rows) < show and typed:
            self._add_beyond(prefix, typed, listed, show - len(rows))
        return listed

    def _keep_up(self) -> None:
        """Look own queries up anew if the list has changed; texts beyond it keep their numbers."""
        version = self.completer.live.version
        if version != self._version:
            numbered = self._own.others | self._others
            self._own = OwnQueries.of(self.completer, self.user, self._filter, numbered)
            self._first_other = OTHERS + len(self._own.others)
            self._others, self._other_texts, self._version = {}, [], version

    def _signals(self, at: float) -> UserSignals:
        """Return what the signals look at of the user: once, unless the catalogue changes."""
        if self._first_at is None:
            self._first_at = at
        known = self._user_signals
        if known is None or known.ranker is not self.completer.ranker():
            known = UserSignals.of(self.completer, self._before, self._own, self._now, self._phone)
            self._user_signals = known
        return known

    def _add_beyond(self, prefix: str, typed: bytes, listed: Listed, wanted: int) -> None:
        """Fill the list with phrases that have the typed words elsewhere, or mistyped."""
        completer, live = self.completer, self.completer.live
        edit = completer.unit * QUARTER_EDIT

        def others(text: str, typos: int) -> list[tuple[int, float]]:
            how: Any = {"typos": typos, "keyboard": completer.keyboard}
            own = self._own.having(text, **how) if completer.personal else []
            found = [
                (each.number, each.relevance - edit * cost)
                for each, cost in own
                if not each.folded.startswith(typed)
            ]
            mine = {number for number, _ in found}
            return found + [
                (number, weight - edit * cost)
                for form, number, weight, cost in live.having(text, self._filter, mine, **how)
                if not form.startswith(typed)
            ]

        found = beyond(
            completer,
            prefix,
            there=len(listed.keystroke.numbers),
            wanted=wanted,
            others=others,
            through=self._filter,
        )
        listed.numbers.extend(number for number, _ in found)
        listed.beyond = [score for _, score in found]

    def shown(self, texts: Sequence[str]) -> None:
        """Say what was really shown for the last prefix, where it was not what `suggest` returned.

        Feedback is about what people saw: a page may show fewer suggestions, or others besides.
        """
        if self._shown is not None:
            typed, _, at = self._shown
            self._shown = typed, [self._number(self.known_as(text)) for text in texts], at

    def submit(self, query: str) -> bool:
        """End the composition; return whether the weights of the user changed.

        A query on the deny list teaches nothing. Else it joins the user's history, adaQAC-Online
        takes one step, [Zhang2017] (2.7.2), by the completer's `OnlineRule`, and the user's
        `RunningCheck` sees what re-ranking was worth.

        Raises
        ------
        InputError
            If the query could not be suggested later: nothing to match, too long, no valid Unicode.
        """
        learned = self.completer.teach(self.user, self.lesson(query))
        self._shown = self._last = None
        self._gains = Gains(self.completer.n)
        return learned

    def lesson(self, query: str) -> Lesson:
        """Say what submitting a query now would teach; nothing is changed.

        Raises
        ------
        InputError
            As `submit`.
        """
        query = self.completer.live.spelled(query)  # a blank at its end makes it no other query
        checked_form(query, "query")
        query, deny = self.known_as(query), self.completer.deny
        if deny is not None and deny.denies(query):
            return Lesson(query, denied=True)
        last, number, gains = self._last, self._number(query), None
        if self.completer.signals is not None:
            seconds = 0.0
            if self._shown is not None and self._first_at is not None:
                seconds = self._shown[2] - self._first_at
            return Lesson(query, at=self._now + round(1e6 * seconds), began=self._now)
        if last is None:
            return Lesson(query)
        if self._checks:
            gains = self._gains.mean(number)
        if self.completer.model != "adaqac-online" or last.columns is None:
            return Lesson(query, gains=gains)
        columns, relevance = last.columns, last.relevance
        chosen = np.flatnonzero(last.numbers == number)
        if not len(chosen):
            if not self.completer.rule.keep_unlisted:
                return Lesson(query, gains=gains)
            times = self.user.history.get(query, 0.0)
            own = own_relevance(self.completer, [number], [times], self._filter)
            features = self._feedback.features([number])
            chosen, relevance = np.array([len(relevance)]), np.concatenate([relevance, own])
            columns = np.vstack([columns, self.completer.design.columns(features, own)])
        return Lesson(query, int(chosen[0]), columns, relevance, gains)

    def known_as(self, text: str) -> str:
        """Return the spelling by which a text is suggested here, where near-duplicates are merged.

        Another tenant may spell it otherwise.
        """
        completer = self.completer
        if not completer.merged:
            return text
        alike = completer.index.alike(text)
        return completer.live.shown_for(text, alike, self._filter) or self._own.alike(text)

    def _observe(self, at: float) -> None:
        if self._shown is None:
            return
        prefix, numbers, since = self._shown
        index = self.completer.index
        if max(numbers, default=0) < len(index):
            self._feedback.observe_phrases(prefix, numbers, dwell=at - since, index=index)
        else:
            texts = [self._folded(number) for number in numbers]
            self._feedback.observe(prefix, numbers, dwell=at - since, texts=texts)

    def _candidates(self, prefix: str, typed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the n most relevant candidates and their relevance, best first.

        A sum of a shared and a personal part is largest either where the shared part is largest or
        where the personal part is not zero: the top of the index and the own history suffice.
        """
        n = self.completer.n
        ids, weights = self._heaviest(prefix, typed, n)
        own = self._own.starting(typed)
        own = own + self._changed(typed, {each.number for each in own})
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

    def _heaviest(self, prefix: str, typed: bytes, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the n heaviest of the catalogue that are neither deleted nor changed."""
        index, live, k = self.completer.index, self.completer.live, n
        while True:
            if self._filter is not None:
                ids, weights = self._filter.top(prefix, k)
            else:
                ids, weights = index.top_of(typed, k)
            left = live.left(ids)
            if len(left) == len(ids):
                return ids[:n], weights[:n]
            if len(left) >= n or len(ids) < k:
                stays = np.isin(ids, left)
                return ids[stays][:n], weights[stays][:n]
            k *= 4

    def _changed(self, typed: bytes, own: set[int]) -> list[OwnQuery]:
        """Return the heaviest of what was added or counted up since, besides own queries."""
        live = self.completer.live
        return [
            OwnQuery(form, live.order(number, form), number, weight)
            for form, number, weight in live.heaviest(typed, self.completer.n, self._filter, own)
        ]

    def _number(self, text: str) -> int:
        """Return a text's id in the catalogue, or a number beyond them."""
        number = self.completer.live.shown_as(text, self._filter)
        if number < 0:
            number = self._own.others.get(text, self._others.get(text, -1))
        if number < 0:
            number = self._others[text] = self._first_other + len(self._other_texts)
            self._other_texts.append(text)
        return number

    def _texts(self, numbers: list[int]) -> list[str]:
        index, size = self.completer.index, len(self.completer.index)
        phrases = iter(index.phrases([number for number in numbers if number < size]))
        return [next(phrases) if n < size else self._text_beyond(n) for n in numbers]

    def _text_beyond(self, number: int) -> str:
        """Return the text of a number that is no id of the index."""
        if number < OTHERS:
            return self.completer.live.text(number)
        if number < self._first_other:
            return self._own.other_texts[number - OTHERS]
        return self._other_texts[number - self._first_other]

    def _folded(self, number: int) -> bytes:
        index = self.completer.index
        if number < len(index):
            return index.folded(number)
        return fold(self._text_beyond(number)).encode()
