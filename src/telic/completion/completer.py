"""A fitted search box: what to suggest now, why, and what it learns from each submission."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from telic.choice.online import Schedule
from telic.completion.adaqac import Design, OnlineRule
from telic.completion.feedback import FEATURES, Feedback
from telic.completion.folding import fold
from telic.completion.harm import Gate, RunningCheck
from telic.completion.index import PrefixIndex, checked_form
from telic.completion.phones import Phone, PhoneRanker
from telic.completion.relevance import Relevance
from telic.data import load_model, save_model
from telic.errors import InputError, ModelError

KIND = "completer"
SERVED = (
    "static", "adaqac-unp", "adaqac-batch", "adaqac-online", "appaware", "appaware-adaqac",
)  # fmt: skip
"""Models that a completer can serve."""


@dataclass(frozen=True)
class Suggestion:
    """One suggestion, with what put it where it is."""

    text: str
    relevance: float
    feedback: float
    """What implicit feedback adds to the relevance; 0 where the static order is kept."""
    static_position: int
    """Position, from 1, by relevance alone."""
    reasons: dict[str, float]
    """Parts of `feedback`: feature → its share, largest first."""
    observed: dict[str, float]
    """What was fed back on it so far in this composition: feature → value, 0 left out."""
    apps: float = 0.0
    """What the phone's apps add to the relevance."""
    app_reasons: dict[str, float] = field(default_factory=dict)
    """Parts of `apps`: app → its share, largest first."""


@dataclass
class UserState:
    """What a completer remembers of one user between compositions."""

    weights: np.ndarray
    updates: int = 0
    """Submissions learned from online."""
    history: dict[str, float] = field(default_factory=dict)
    """Own submissions: query → count."""
    previous: str | None = None
    """The query submitted last."""
    reranks: bool = True
    """False where validation showed that feedback does not help this user."""
    check: RunningCheck = field(default_factory=RunningCheck)
    """What re-ranking was worth to this user lately."""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON; `from_json` reads it back."""
        return asdict(self) | {"weights": self.weights.tolist()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what `as_json` wrote."""
        weights = np.array(stored["weights"], float)
        check = RunningCheck(**stored.get("check", {}))
        return cls(**(dict(stored) | {"weights": weights, "check": check}))


@dataclass(frozen=True)
class Completer:
    """A catalogue with a relevance score, and weights for what users feed back while they type.

    Make one with `telic.completion.fit_completer` or `load`. It holds no state of its own: what a
    user teaches it is kept in the user's `UserState`.

    Attributes
    ----------
    index : PrefixIndex
        The catalogue; its weights are the part of the relevance that all users share.
    relevance : Relevance
        Without what was learned of each query, which is in the catalogue's weights.
    design : Design
    everyone : float64 array of shape (d,)
        Un-personalised weights, for users never seen before.
    users : dict of str to UserState
        Users of the log it was fitted on.
    gate : Gate
        Where feedback may re-rank; what it says of users is read from `UserState.reranks`.
    model : str
        One of `SERVED`. "adaqac-online" learns from each submission.
    n : int
        Candidates that are re-ranked.
    step_size : float
    protocol : str
    simulated : bool
        Whether the log it was fitted on came from simulated people.
    phones : PhoneRanker, optional
        What installed and opened apps add; with "appaware" and "appaware-adaqac".
    schedule, l2, keep_unlisted
        With `step_size`, how "adaqac-online" learns: see `OnlineRule`.
    do_no_harm : bool
        Keep the static order for a user while `UserState.check` says that re-ranking harms.
    """

    index: PrefixIndex
    relevance: Relevance
    design: Design
    everyone: np.ndarray
    users: dict[str, UserState]
    gate: Gate
    model: str
    n: int
    step_size: float
    protocol: str
    simulated: bool
    phones: PhoneRanker | None = None
    schedule: Schedule = "steady"
    l2: float = 0.0
    keep_unlisted: bool = False
    do_no_harm: bool = True

    @property
    def rule(self) -> OnlineRule:
        """How "adaqac-online" learns from a submission."""
        return OnlineRule(self.step_size, self.schedule, self.l2, self.keep_unlisted)

    def user(self, name: str | None = None) -> UserState:
        """Return a fresh copy of what is known of a user; of nobody for an unknown name or None."""
        known = self.users.get(name) if name is not None else None
        return UserState.from_json((known or UserState(self.everyone)).as_json())

    def check_summary(self) -> str:
        """Say in a few words for whom the running check keeps the static order."""
        if not self.do_no_harm:
            return "none"
        held = sum(not state.check.open for state in self.users.values())
        return (
            f"keeps the static order for {held} of {len(self.users)} users, to whom re-ranking did "
            "harm lately; goes on with each submission"
        )

    def compose(self, user: UserState, phone: Phone | None = None) -> "Composition":
        """Begin a composition, on a phone if `PhoneRanker.phone` gives its signals."""
        return Composition(self, user, phone)

    def save(self, folder: str | Path) -> None:
        """Write a model folder; see `telic.data.save_model`."""
        states = list(self.users.values())
        meta = {
            "relevance": asdict(self.relevance),
            "learn_relevance": self.design.learn_relevance,
            "users": list(self.users),
            "states": [state.as_json() | {"weights": None} for state in states],
            "model": self.model,
            "n": self.n,
            "step_size": self.step_size,
            "protocol": self.protocol,
            "simulated": self.simulated,
            "anywhere": self.gate.anywhere,
            "features": FEATURES,
            "phones": self.phones.meta() if self.phones else None,
            "schedule": self.schedule,
            "l2": self.l2,
            "keep_unlisted": self.keep_unlisted,
            "do_no_harm": self.do_no_harm,
        }
        arrays = {
            "deviations": self.design.deviations,
            "everyone": self.everyone,
            "weights": np.array([s.weights for s in states]).reshape(
                len(states), len(self.everyone)
            ),
            "bins": self.gate.bins,
            "p_values": self.gate.p_values,
        }
        if self.phones:
            arrays |= self.phones.arrays()
        mapped = {f"index.{f.name}": getattr(self.index, f.name) for f in fields(self.index)}
        save_model(folder, kind=KIND, meta=meta, arrays=arrays, mapped=mapped)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model folder that `save` wrote, its index memory-mapped.

        Raises
        ------
        ModelError
            If the folder is damaged, of another kind, of a newer format or from before the rule of
            learning was kept.
        """
        meta, arrays = load_model(folder, kind=KIND)
        if "schedule" not in meta:
            raise ModelError(f"{folder}: says not how it learns, as older models. Fit it again.")
        index = PrefixIndex(**{f.name: arrays[f"index.{f.name}"] for f in fields(PrefixIndex)})
        relevance = meta["relevance"] | {"deviations": tuple(meta["relevance"]["deviations"])}
        states = [
            UserState.from_json(state | {"weights": weights})
            for state, weights in zip(meta["states"], arrays["weights"], strict=True)
        ]
        reranks = np.array([state.reranks for state in states], bool)
        return cls(
            index, Relevance(**relevance), Design(arrays["deviations"], meta["learn_relevance"]),
            arrays["everyone"], dict(zip(meta["users"], states, strict=True)),
            Gate(meta["anywhere"], arrays["bins"], reranks, arrays["p_values"]), meta["model"],
            meta["n"], meta["step_size"], meta["protocol"], meta["simulated"],
            PhoneRanker.stored(meta["phones"], arrays) if meta.get("phones") else None,
            meta["schedule"], meta["l2"], meta["keep_unlisted"], meta["do_no_harm"],
        )  # fmt: skip


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

    def __init__(self, completer: Completer, user: UserState, phone: Phone | None = None) -> None:
        self.completer = completer
        self.user = user
        self._phone = phone
        self._numbers: dict[str, int] = {}  # of texts that are not in the catalogue
        previous = -1 if user.previous is None else self._number(user.previous)
        self._feedback = Feedback(previous)
        self._shown: tuple[bytes, list[str], float] | None = None
        self._rows: tuple[list[str], np.ndarray, np.ndarray] | None = None
        self._orders: list[_Orders] = []

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
        completer = self.completer
        texts, relevance = self._candidates(prefix)
        features = self._feedback.features([self._number(text) for text in texts])
        columns = completer.design.columns(features, relevance)
        self._rows = texts, relevance, columns
        parts = columns * self.user.weights if self._may_rerank(prefix) else np.zeros_like(columns)
        apps, app_reasons = self._apps(prefix, texts)
        order = np.argsort(-(relevance + parts.sum(axis=1) + apps), kind="stable")
        served = not completer.do_no_harm or self.user.check.open
        self._orders.append(_Orders(texts, order, served))
        if not served:
            parts, apps, app_reasons = np.zeros_like(parts), np.zeros_like(apps), _no_reasons
            order = np.sort(order)
        feedback = parts.sum(axis=1)
        suggestions = [
            Suggestion(
                texts[i],
                float(relevance[i]),
                float(feedback[i]),
                int(i) + 1,
                _reasons(parts[i]),
                _named(features[i]),
                float(apps[i]),
                app_reasons(i),
            )
            for i in order
        ]
        shown = suggestions[:show]
        # A lone surrogate, half of a character, is no text but may well be typed.
        typed = fold(prefix).encode(errors="surrogatepass")
        self._shown = typed, [s.text for s in shown], at
        return shown

    def shown(self, texts: Sequence[str]) -> None:
        """Say what was really shown for the last prefix, where it was not what `suggest` returned.

        Feedback is about what people saw: a page may show fewer suggestions, or others besides.
        """
        if self._shown is not None:
            typed, _, at = self._shown
            self._shown = typed, list(texts), at

    def submit(self, query: str) -> bool:
        """End the composition; return whether the weights of the user changed.

        The query joins the user's history, adaQAC-Online takes one step (2.7.2) by the completer's
        `OnlineRule`, and the user's `RunningCheck` sees what re-ranking was worth.

        Raises
        ------
        InputError
            If the query could not be suggested later: nothing to match, too long, no valid Unicode.
        """
        checked_form(query, "query")
        user, completer = self.user, self.completer
        learned = completer.model == "adaqac-online" and self._learn(query)
        if completer.do_no_harm and self._orders:
            gains = np.array([orders.gain(query) for orders in self._orders])
            served = gains * [orders.served for orders in self._orders]
            user.check.observe(float(gains.mean()), float(served.mean()))
        user.history[query] = user.history.get(query, 0.0) + 1.0
        user.previous = query
        self._rows = self._shown = None
        self._orders = []
        return learned

    def _learn(self, query: str) -> bool:
        """Take a step of adaQAC-Online, if the submitted query is, or may join, the candidates."""
        if self._rows is None:
            return False
        (texts, relevance, columns), user = self._rows, self.user
        rule = self.completer.rule
        if query not in texts:
            if not rule.keep_unlisted:
                return False
            own = np.array([self._relevance(query)])
            features = self._feedback.features([self._number(query)])
            texts, relevance = [*texts, query], np.concatenate([relevance, own])
            columns = np.vstack([columns, self.completer.design.columns(features, own)])
        rule.learn(columns, relevance, texts.index(query), user.weights, user.updates)
        user.updates += 1
        return True

    def _observe(self, at: float) -> None:
        if self._shown is not None:
            prefix, texts, since = self._shown
            self._feedback.observe(
                prefix, [self._number(text) for text in texts], dwell=at - since,
                texts=[fold(text).encode() for text in texts],
            )  # fmt: skip

    def _candidates(self, prefix: str) -> tuple[list[str], np.ndarray]:
        """Return the n most relevant texts and their relevance, best first.

        A sum of a shared and a personal part is largest either where the shared part is largest or
        where the personal part is not zero: the top of the index and the own history suffice.
        """
        completer = self.completer
        index, relevance = completer.index, completer.relevance
        ids = index.top(prefix, completer.n)
        found = dict(zip(index.phrases(ids), index.weights[ids].tolist(), strict=True))
        if relevance.factors[1] > 0:
            folded = fold(prefix)
            for query in self.user.history:
                if fold(query).startswith(folded):
                    found[query] = self._relevance(query)
        best = sorted(found.items(), key=_precedence)[: completer.n]
        return [text for text, _ in best], np.array([score for _, score in best])

    def _relevance(self, query: str) -> float:
        """Return the relevance of a query to this user, whether the catalogue has it or not."""
        index, relevance = self.completer.index, self.completer.relevance
        i = index.find(query)
        shared = float(index.weights[i]) if i >= 0 else (relevance.unlearned or 0.0)
        count = self.user.history.get(query, 0.0)
        own = np.log1p(count) if relevance.scale == "log" else count
        return shared + float(relevance.factors[1] * own)

    def _apps(
        self, prefix: str, texts: list[str]
    ) -> tuple[np.ndarray, Callable[[int], dict[str, float]]]:
        """Return what the phone adds to each text, and a function that says why."""
        ranker, phone = self.completer.phones, self._phone
        if ranker is None or phone is None or not self._may_rerank(prefix):
            return np.zeros(len(texts)), _no_reasons
        queries = np.array([self.completer.index.find(text) for text in texts], np.int64)
        return ranker.added(queries, phone), lambda i: ranker.reasons(int(queries[i]), phone)

    def _may_rerank(self, prefix: str) -> bool:
        """Whether the fitted gate is open; the user's running check may still close it."""
        gate = self.completer.gate
        if self.completer.model == "static" or not self.user.reranks:
            return False
        everybody = Gate(gate.anywhere, gate.bins, np.ones(1, bool))
        return bool(everybody.open(np.zeros(1, int), np.array([len(prefix)]))[0])

    def _number(self, text: str) -> int:
        i = self.completer.index.find(text)
        if i >= 0:
            return i
        return self._numbers.setdefault(text, len(self.completer.index) + len(self._numbers))


def _precedence(item: tuple[str, float]) -> tuple[float, str, str]:
    """Sort by relevance, equal ones in the order of the catalogue."""
    text, relevance = item
    return -relevance, fold(text), text


@dataclass(frozen=True)
class _Orders:
    """The candidates of one keystroke in the static order and in the model's."""

    texts: list[str]
    order: np.ndarray
    """The model's order, as positions in `texts`."""
    served: bool
    """Whether the model's order was shown."""

    def gain(self, query: str) -> float:
        """Reciprocal rank of a query in the model's order minus that in the static order."""
        if query not in self.texts:
            return 0.0
        static = self.texts.index(query)
        return 1 / (1 + int(np.flatnonzero(self.order == static)[0])) - 1 / (1 + static)


def _no_reasons(i: int) -> dict[str, float]:
    return {}


def _reasons(parts: np.ndarray) -> dict[str, float]:
    found = _named(parts)
    return dict(sorted(found.items(), key=lambda part: -abs(part[1])))


def _named(values: np.ndarray) -> dict[str, float]:
    names = (*FEATURES, "Relevance")
    return {names[i]: float(values[i]) for i in np.flatnonzero(abs(values) > 1e-9)}


def served(model: str) -> str:
    """Return `model` if it can be served, else raise InputError."""
    if model not in SERVED:
        raise InputError(f"model is {model!r}, expected one of {', '.join(SERVED)}.")
    return model
