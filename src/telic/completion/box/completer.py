"""A fitted search box: what to suggest now, why, and what it learns from each submission."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from telic.choice.online import Schedule
from telic.completion.box.composition import Composition, Lesson
from telic.completion.box.live_changes import Live
from telic.completion.box.suggestion import Suggestion
from telic.completion.box.user_state import UserState
from telic.completion.engine.filters import Contexts, Filter
from telic.completion.engine.keyboards import keys_beside
from telic.completion.engine.payloads import Records
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.engine.rules import DenyList, Synonyms, kept
from telic.completion.engine.word_index import WordIndex
from telic.completion.learning.adaqac import FeedbackDesign, OnlineRule
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.feedback import FEATURES
from telic.completion.learning.phone_ranker import Phone, PhoneRanker
from telic.completion.learning.relevance import Relevance
from telic.completion.signals.groups import FEEDBACK
from telic.completion.signals.ranker import SignalRanker
from telic.data import load_model, save_model
from telic.data.object_storage import place
from telic.data.saved_models import adopt, hashes, on_disk
from telic.errors import InputError, ModelError, expect_whole

KIND = "completer"
KEPT = 2
"""Format of the lists that are kept of a model (`telic.completion.box.compaction`): those of
another one are made anew."""
OF_COMPOSITIONS = (
    "static",
    "adaqac-unp",
    "adaqac-batch",
    "adaqac-online",
    "appaware",
    "appaware-adaqac",
)
"""Models of a composition log that a completer can serve."""
SIGNALS = "signals"
"""The model of a query log: see `telic.completion.signals`."""


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
    design : FeedbackDesign
    everyone : float64 array of shape (d,)
        Un-personalised weights, for users never seen before.
    users : dict of str to UserState
        Users of the log it was fitted on.
    gate : Gate
        Where feedback may re-rank; what it says of users is read from `UserState.reranks`.
    model : str
        `SIGNALS`, or one of `OF_COMPOSITIONS`. "adaqac-online" learns from each submission.
    n : int
        Candidates that are re-ranked.
    step_size : float
    protocol : str
    simulated : bool
        Whether the log it was fitted on came from simulated people.
    phones : PhoneRanker, optional
        What installed and opened apps add; with "appaware" and "appaware-adaqac".
    signals : SignalRanker, optional
        Groups of signals and the candidates that they rank, with "signals".
    schedule, l2, keep_unlisted
        With `step_size`, how "adaqac-online" learns: see `OnlineRule`.
    do_no_harm : bool
        Keep the static order for a user while `UserState.check` says that re-ranking harms.
    records : Records, optional
        The id and payload that a list gave each phrase.
    merged : bool
        Whether spellings that fold alike are one phrase; submissions then count for its spelling.
    words : WordIndex, optional
        Of the index's phrases, to fill lists that the prefix leaves room in: with phrases that have
        the typed words elsewhere, or mistyped.
    contexts : Contexts, optional
        What each phrase is limited to, such as a tenant or a language.
    deny : DenyList, optional
        What is never suggested; what the catalogue has of it is deleted in `live`.
    synonyms : Synonyms, optional
        Other words to look for, where there are `words`.
    live : Live
        What was added, counted up or deleted since; not saved, see `Live.as_json`. Where
        `dataclasses.replace` leaves the index as it is, the new completer begins with a copy.
    stored : tuple of path and str, optional
        The folder that it was loaded from, and what tells its list and rules from any other.
    found : dict
        What `telic.completion.fit_files` says of the files.
    keyboard : str
        The layout on which people type, where there are `words`: see `WordIndex.top`. Empty: typos
        cost the same, whichever keys they are made of.
    """

    index: PrefixIndex
    relevance: Relevance
    design: FeedbackDesign
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
    records: Records | None = None
    merged: bool = False
    words: WordIndex | None = None
    contexts: Contexts | None = None
    deny: DenyList | None = None
    synonyms: Synonyms | None = None
    signals: SignalRanker | None = None
    found: dict[str, Any] = field(default_factory=dict)
    keyboard: str = ""
    live: Live = field(default=None, compare=False, repr=False)  # type: ignore[assignment]
    stored: tuple[Path, str] | None = field(init=False, compare=False, repr=False)
    _changed: tuple[tuple[int, int], SignalRanker] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        keys_beside(self.keyboard)  # says what is wrong with it
        expect_whole(1, n=self.n)
        live = Live(self.index, self.unit or 1.0, self.deny)
        if self.live is not None and self.live.index is self.index:
            live.take_over(self.live)
        object.__setattr__(self, "live", live)
        object.__setattr__(self, "stored", None)
        object.__setattr__(self, "_changed", ((0, 0), self.signals))

    def ranker(self) -> SignalRanker:
        """Return the signals over the catalogue as it is now."""
        if self.signals is None:
            raise ValueError("the model has no signals")
        version = self.live.version, len(self.live.gone)
        if self._changed[0] != version:
            object.__setattr__(self, "_changed", (version, self.live.applied(self.signals)))
        return self._changed[1]

    @property
    def feeds_back(self) -> bool:
        """Whether the lists that were shown tell something."""
        return self.signals is None or FEEDBACK in self.signals.weights.penalties

    @property
    def has_running_check(self) -> bool:
        """Whether it is watched what re-ranking is worth; a static order needs no check."""
        return self.do_no_harm and self.model != "static"

    @property
    def personal(self) -> bool:
        """Whether a user's own queries are suggested that nobody else is shown."""
        if self.signals is not None:
            return self.signals.weights.personal
        return bool(self.relevance.factors[1] > 0)

    @property
    def rule(self) -> OnlineRule:
        """How "adaqac-online" learns from a submission."""
        return OnlineRule(self.step_size, self.schedule, self.l2, self.keep_unlisted)

    def user(self, name: str | None = None) -> UserState:
        """Return a fresh copy of a user's state; a new user's for an unknown name or None."""
        known = self.users.get(name) if name is not None else None
        known = known or UserState(self.everyone)
        known.own_queries(self)  # which the copies then know
        return replace(
            known,
            weights=known.weights.copy(),
            history=dict(known.history),
            last=dict(known.last),
            session=list(known.session),
            check=replace(known.check),
        )

    def check_summary(self) -> str:
        """Say in a few words for whom the running check keeps the static order."""
        if not self.do_no_harm:
            return "none"
        held = sum(not state.check.open for state in self.users.values())
        return (
            f"keeps the static order for {held} of {len(self.users)} users, to whom re-ranking did "
            "harm lately; goes on with each submission"
        )

    def catalogued(self, numbers: np.ndarray) -> np.ndarray:
        """Return ids of the catalogue as they are, and -1 for numbers beyond them."""
        return np.where(numbers < len(self.index), numbers, -1)

    @property
    def trained_on(self) -> str:
        """What it was made from, for the people who see its suggestions."""
        if self.simulated:
            return "simulated people, not real ones"
        return str(self.found.get("trained on", "a log of real searches"))

    def phone(
        self, installed: Mapping[str, float], opened: Sequence[tuple[str, float]] = ()
    ) -> Phone | None:
        """Take in one phone's apps, as `PhoneRanker.phone`; None if the model looks at none."""
        ranker = self.phones or self.signals
        return ranker.phone(installed, opened) if ranker is not None else None

    def telling_apps(self) -> list[str]:
        """Return the apps that tell most, for people to choose from."""
        ranker = self.phones or self.signals
        return ranker.telling() if ranker is not None else []

    def order_summary(self) -> str:
        """Say in a few words where feedback, or what signals, move suggestions."""
        if self.signals is not None:
            on = ", ".join(self.signals.weights.penalties)
            return f"signals of {on}" if on else "static order kept everywhere: no signal helps"
        if self.model == "static":
            return "the static order everywhere: the model has no feedback"
        return self.gate.summary()

    @property
    def unit(self) -> float:
        """How much the logarithm of popularity weighs in the catalogue's weights."""
        return float(self.relevance.factors[[0, 2]].sum())

    def compose(
        self,
        user: UserState,
        phone: Phone | None = None,
        *,
        where: Mapping[str, str] | None = None,
        boost: Mapping[str, Mapping[str, float]] | None = None,
        keep_static: bool = False,
        interleave: np.random.Generator | None = None,
        at: int | None = None,
    ) -> Composition:
        """Begin a composition.

        Parameters
        ----------
        user : UserState
        phone : Phone, optional
            What `phone` gives of the apps.
        where : mapping of str to str, optional
            Context → value: only phrases with this value, or with none, are suggested.
        boost : mapping, optional
            Context → value → factor by which its phrases count as more popular.
        keep_static : bool
            Show the static order, as the control of a trial; the composition teaches all the same.
        interleave : numpy.random.Generator, optional
            Draws each list from the static order and the model's: see `telic.evaluate.team_draft`.
        at : int, optional
            When it begins, in microseconds since 1970, which signals look at; by default now.

        Raises
        ------
        InputError
            If a context is named that the phrases do not have.
        """
        if self.contexts is None:
            if where or boost:
                raise InputError(
                    f"filter {next(iter({**(where or {}), **(boost or {})}))!r}: the phrases of "
                    "this model have no contexts. Fit it on a list that has such a column."
                )
            through = None
        else:
            through = Filter(self.index, self.contexts, where, boost, unit=self.unit)
        return Composition(
            self, user, phone, through, keep_static=keep_static, interleave=interleave, at=at
        )

    def suggest(
        self,
        prefix: str,
        *,
        user: str | None = None,
        show: int = 10,
        where: Mapping[str, str] | None = None,
        boost: Mapping[str, Mapping[str, float]] | None = None,
    ) -> list[Suggestion]:
        """Return the first list of a composition, of `user` or of somebody new; see `compose`."""
        composition = self.compose(self.user(user), where=where, boost=boost)
        return composition.suggest(prefix, at=0.0, show=show)

    def teach(self, user: UserState, lesson: Lesson) -> bool:
        """Add what a composition taught to a state; return whether the weights changed."""
        if lesson.denied:
            return False
        x, relevance = lesson.columns, lesson.relevance
        if learned := x is not None:
            assert relevance is not None
            self.rule.learn(x, relevance, lesson.chosen, user.weights, user.updates)
            user.updates += 1
        if lesson.gains is not None:
            user.check.observe(*lesson.gains)
        if self.signals is not None:
            minutes = self.signals.session_minutes
            user.submitted(lesson.query, lesson.at, began=lesson.began, minutes=minutes)
        user.history[lesson.query] = user.history.get(lesson.query, 0.0) + 1.0
        user.previous = lesson.query
        return learned

    def save(self, folder: str | Path) -> None:
        """Write a model folder; see `telic.data.save_model`."""
        states = list(self.users.values())
        meta = {
            "relevance": asdict(self.relevance),
            "learn_relevance": self.design.learn_relevance,
            "bound": self.design.bound if self.design.bound < np.inf else None,
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
            "signals": self.signals.meta() if self.signals else None,
            "schedule": self.schedule,
            "l2": self.l2,
            "keep_unlisted": self.keep_unlisted,
            "do_no_harm": self.do_no_harm,
            "merged": self.merged,
            "found": self.found,
            "deny": self.deny.rules if self.deny else None,
            "denied": self._denied(),
            "keyboard": self.keyboard,
            "synonyms": self.synonyms.groups if self.synonyms else None,
            "contexts": self.contexts.meta() if self.contexts else None,
        }
        arrays = {
            "deviations": self.design.deviations,
            "caps": self.design.caps,
            "everyone": self.everyone,
            "weights": np.array([s.weights for s in states]).reshape(
                len(states), len(self.everyone)
            ),
            "bins": self.gate.bins,
            "p_values": self.gate.p_values,
        }
        if self.phones:
            arrays |= self.phones.arrays()
        mapped = self.list_arrays()
        if self.signals:
            mapped |= self.signals.arrays()
        save_model(folder, kind=KIND, meta=meta, arrays=arrays, mapped=mapped)

    def _denied(self) -> list[int]:
        """Return the ids that are gone for being denied, and not for a change."""
        deny, gone = self.deny, sorted(self.live.gone)
        if deny is None:
            return []
        phrases = self.index.phrases(gone)
        return [id for id, phrase in zip(gone, phrases, strict=True) if deny.denies(phrase)]

    def list_arrays(self) -> dict[str, np.ndarray]:
        """Return what a folder keeps of the phrases and of what goes with them."""
        arrays = self.index.arrays()
        if self.records:
            arrays |= self.records.arrays()
        if self.words:
            arrays |= self.words.arrays()
        if self.contexts:
            arrays["contexts.codes"] = self.contexts.codes
        return arrays

    def with_list(self, arrays: Mapping[str, np.ndarray], folder: str | Path) -> Self:
        """Return it with the list that `list_arrays` gave of a completer like it."""
        contexts = self.contexts
        return replace(
            self,
            index=PrefixIndex.stored(arrays, folder),
            records=Records.stored(arrays),
            words=WordIndex.stored(arrays),
            contexts=contexts and replace(contexts, codes=np.asarray(arrays["contexts.codes"])),
        )

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = False) -> Self:
        """Read a model folder that `save` wrote, its index memory-mapped.

        See `telic.data.load_model`, also for `verify`.

        Raises
        ------
        ModelError
            If the folder is damaged, of another kind, of a newer format or from before the rule of
            learning was kept.
        """
        folder = on_disk(folder)
        before = hashes(folder)
        meta, arrays = load_model(folder, kind=KIND, verify=verify)
        if "schedule" not in meta:
            raise ModelError(f"{folder}: says not how it learns, as older models. Fit it again.")
        index = PrefixIndex.stored(arrays, folder)
        relevance = meta["relevance"] | {"deviations": tuple(meta["relevance"]["deviations"])}
        states = [
            UserState.from_json(state | {"weights": weights})
            for state, weights in zip(meta["states"], arrays["weights"], strict=True)
        ]
        # Older models know no bounds.
        caps = arrays.get("caps", np.full(len(FEATURES), np.inf))
        bound = meta.get("bound") or np.inf
        design = FeedbackDesign(arrays["deviations"], meta["learn_relevance"], caps, bound)
        reranks = np.array([state.reranks for state in states], bool)
        deny, synonyms = meta.get("deny"), meta.get("synonyms")
        completer = cls(
            index=index,
            relevance=Relevance(**relevance),
            design=design,
            everyone=arrays["everyone"],
            users=dict(zip(meta["users"], states, strict=True)),
            gate=Gate(meta["anywhere"], arrays["bins"], reranks, arrays["p_values"]),
            model=meta["model"],
            n=meta["n"],
            step_size=meta["step_size"],
            protocol=meta["protocol"],
            simulated=meta["simulated"],
            phones=PhoneRanker.stored(meta["phones"], arrays) if meta.get("phones") else None,
            schedule=meta["schedule"],
            l2=meta["l2"],
            keep_unlisted=meta["keep_unlisted"],
            do_no_harm=meta["do_no_harm"],
            records=Records.stored(arrays),
            merged=meta.get("merged", False),
            words=WordIndex.stored(arrays),
            contexts=Contexts.stored(meta.get("contexts"), arrays),
            deny=DenyList(tuple(deny)) if deny else None,
            synonyms=Synonyms(tuple(map(tuple, synonyms))) if synonyms else None,
            signals=SignalRanker.stored(meta["signals"], arrays) if meta.get("signals") else None,
            found=meta.get("found", {}),
            keyboard=meta.get("keyboard", ""),
        )
        completer.live.gone |= set(meta.get("denied", []))
        if before == hashes(folder):  # it was not replaced by another while it was read
            files = {name: before[f"{name}.npy"] for name in completer.list_arrays()}
            told = json.dumps([files, deny, completer.unit, KEPT], sort_keys=True)
            digest = hashlib.sha256(told.encode()).hexdigest()
            object.__setattr__(completer, "stored", (Path(folder).absolute(), digest))
        return completer

    def denying(self, deny: DenyList) -> Self:
        """Return a completer that never suggests what a list denies, in place of its own list."""
        phrases = self.index.phrases(range(len(self.index)))
        denied = {i for i, phrase in enumerate(phrases) if deny.denies(phrase)}
        users = {
            name: replace(
                user,
                history={q: c for q, c in user.history.items() if not deny.denies(q)},
                previous=next(iter(kept([user.previous] if user.previous else [], deny)), None),
                last={q: at for q, at in user.last.items() if not deny.denies(q)},
                session=kept(user.session, deny),
            )
            for name, user in self.users.items()
        }
        found = self.found | {"phrases denied": len(denied)}
        completer = replace(self, deny=deny, users=users, found=found)
        # What only the list before denied is there again.
        lifted = {id for id in self._denied() if not self.live.was_deleted(self.index.folded(id))}
        completer.live.gone -= lifted
        completer.live.gone |= denied
        return completer

    def without(self, user: str) -> Self:
        """Return a completer that knows nothing of a user of the log it was fitted on.

        Weights that all users share stay as they are: they are counts and means over many.
        """
        numbers = {name: i for i, name in enumerate(self.users)}
        if user not in numbers:
            raise InputError(f"the model knows no user {user!r}.")
        keep = np.arange(len(numbers)) != numbers[user]
        gate = self.gate
        if len(gate.users) == len(keep):
            gate = replace(gate, users=gate.users[keep])
        users = {name: state for name, state in self.users.items() if name != user}
        return replace(self, users=users, gate=gate)


def erase_user(folder: str | Path, user: str) -> bool:
    """Write a model folder anew without a user; return whether it knew the user.

    The folder may be a copy, or a link to it.
    """
    found = place(folder)
    folder = found.resolve() if isinstance(found, Path) else folder
    completer = Completer.load(folder)
    known = user in completer.users
    if known:
        if isinstance(folder, Path):
            adopt(folder)
        completer.without(user).save(folder)
    return known
