"""A fitted search box with signals: what to suggest to whom, after what, at what time, and why."""

import datetime as dt
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from telic.completion.engine.folding import fold
from telic.completion.engine.front_coding import prefix_range
from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.signals.counts import CONTEXT, State
from telic.completion.signals.features import FEATURES, GROUP_OF, GROUPS, WIDTH, write_features
from telic.completion.signals.overlap import gram_set, word_set
from telic.completion.signals.pool import POOL, POPULAR, gather
from telic.completion.signals.searches import Searches
from telic.completion.signals.sweep import SHRINKAGE, Shrinkage, at_the_end
from telic.completion.signals.weights import SHOWN, SignalWeights
from telic.data import load_model, save_model
from telic.errors import InputError
from telic.kernels import kernel

KIND = "signals"


@dataclass(frozen=True)
class SignalSuggestion:
    """A suggestion and why it stands where it does."""

    text: str
    score: float
    """The preference: log(1 + submissions) plus what the groups add."""
    _added: np.ndarray = field(compare=False, repr=False)
    """float64 (WIDTH,): what each feature adds."""
    _groups: Collection[str] = field(compare=False, repr=False)

    @property
    def parts(self) -> dict[str, float]:
        """What each group that is on adds to the score."""
        return {
            group: float(self._added[[of == group for of in GROUP_OF]].sum())
            for group in GROUPS
            if group in self._groups
        }

    @property
    def line(self) -> str:
        """Up to three features, by how much they move the score, for people."""
        added = self._added
        strongest = np.argsort(-np.abs(added), kind="stable")[:3]
        said = [
            f"{GROUP_OF[j]}: {FEATURES[j]} {added[j]:+.1f}"
            for j in strongest
            if abs(added[j]) > 0.05
        ]
        return ", ".join(said) or "popularity alone"


@dataclass(frozen=True)
class SignalCompleter:
    """A query log as of its end, with weights for its signals.

    Make one with `fitted` or `load`. It does not change while it serves; fit it again, say every
    night, on the log that has grown.

    Attributes
    ----------
    index : PrefixIndex
    state : State
    weights : SignalWeights
    users : dict of str to int
        The users of the log, whose own queries are known.
    shrinkage : Shrinkage
    """

    index: PrefixIndex
    state: State
    weights: SignalWeights
    users: dict[str, int]
    shrinkage: Shrinkage = SHRINKAGE

    @classmethod
    def fitted(
        cls, searches: Searches, weights: SignalWeights, shrinkage: Shrinkage = SHRINKAGE
    ) -> Self:
        """Return the completer of the whole log, with weights from `learning.learn`."""
        users = {name: number for number, name in enumerate(searches.names)}
        return cls(searches.index, at_the_end(searches), weights, users, shrinkage)

    def compose(
        self,
        user: str | None = None,
        *,
        session: Sequence[str] = (),
        at: dt.datetime | None = None,
    ) -> "SignalComposition":
        """Begin a composition.

        Parameters
        ----------
        user : str, optional
            Who types; of somebody whom the log does not name nothing is known.
        session : sequence of str
            Earlier queries of the session, the latest first; the first `CONTEXT` count.
        at : datetime, optional
            When; by default now. Without a zone it is UTC.
        """
        at = at or dt.datetime.now(dt.UTC)
        at = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
        number = self.users.get(user, -1) if user is not None else -1
        own = (0, 0)
        if number >= 0:
            own = int(self.state.own_start[number]), int(self.state.own_start[number + 1])
        now = int(at.timestamp() * 1e6)
        return SignalComposition(self, own, self._session(session[:CONTEXT]), now)

    def _session(self, queries: Sequence[str]) -> tuple[np.ndarray, ...]:
        ids = [next(iter(self.index.alike(query)), -1) for query in queries]
        texts = [np.frombuffer(fold(query).encode(), np.uint8) for query in queries]
        out = [np.array(ids, np.int64)]
        for sets in (texts, [*map(word_set, texts)], [*map(gram_set, texts)]):
            dtype = np.uint8 if sets is texts else np.uint64
            out.append(np.concatenate([np.empty(0, dtype), *sets]))
            out.append(np.cumsum([0, *map(len, sets)]))
        return tuple(out)

    def save(self, folder: str | Path) -> None:
        """Write a model folder; see `telic.data.save_model`."""
        fitted = asdict(self.weights) | {"weights": None, "deviations": None}
        meta: dict[str, Any] = {"users": list(self.users), "features": list(FEATURES)}
        meta |= {"fit": fitted, "shrinkage": asdict(self.shrinkage)}
        arrays = {"weights": self.weights.weights, "deviations": self.weights.deviations}
        mapped = {f"state.{name}": array for name, array in self.state._asdict().items()}
        mapped |= self.index.arrays()
        save_model(folder, kind=KIND, meta=meta, arrays=arrays, mapped=mapped)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a model folder that `save` wrote, memory-mapped.

        Raises
        ------
        ModelError
            If the folder is damaged, of another kind or of a newer format.
        InputError
            If it was fitted with other signals than this version's.
        """
        meta, arrays = load_model(folder, kind=KIND)
        if meta["features"] != list(FEATURES):
            raise InputError(f"{folder}: its signals are of another version. Fit it again.")
        index = PrefixIndex.stored(arrays, folder)
        stored = {name: arrays[f"state.{name}"] for name in State._fields}
        fit = meta["fit"] | {name: arrays[name] for name in ("weights", "deviations")}
        users = {name: number for number, name in enumerate(meta["users"])}
        return cls(
            index,
            State(**{name: np.asarray(array) for name, array in stored.items()}),
            SignalWeights(**fit),
            users,
            Shrinkage(**meta["shrinkage"]),
        )


@dataclass(frozen=True)
class SignalComposition:
    """One composition; make it with `SignalCompleter.compose`."""

    completer: SignalCompleter
    own: tuple[int, int]
    session: tuple[np.ndarray, ...]
    now: int
    """Microseconds since 1970."""

    def suggest(self, prefix: str, *, show: int = SHOWN) -> list[SignalSuggestion]:
        """Return suggestions for a prefix, best first, with their reasons."""
        ids, scores, features = self.ranked(prefix, show=show)
        weights, phrase = self.completer.weights, self.completer.index.phrase
        added, groups = features * weights.weights, weights.penalties.keys()
        return [
            SignalSuggestion(phrase(q), score, row, groups)
            for q, score, row in zip(ids.tolist(), scores.tolist(), added, strict=True)
        ]

    def ranked(
        self, prefix: str, *, show: int = SHOWN
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ids, scores and features of the suggestions for a prefix, best first."""
        box = self.completer
        typed = np.frombuffer(fold(prefix).encode(), np.uint8)
        return _ranked(
            box.state,
            box.index.strings,
            (box.shrinkage.clock, box.shrinkage.pairs),
            box.weights.weights,
            box.weights.personal,
            self.now,
            self.own,
            self.session,
            typed,
            show,
        )


@kernel
def _ranked(state, strings, shrinkage, weights, personal, now, own, session, prefix, show):
    """Ids, scores and features of the best candidates; equal scores keep the candidates' order."""
    ids, counts = np.empty(POPULAR, np.int64), np.empty(POPULAR)
    candidates, features = np.empty(POOL, np.int32), np.empty((POOL, WIDTH))
    low, high = prefix_range(strings, len(state.known), prefix)
    used = gather(state, low, high, own, session[0], ids, counts, candidates)
    if not personal:
        kept = 0
        for j in range(used):
            if state.known[candidates[j]]:
                candidates[kept] = candidates[j]
                kept += 1
        used = kept
    write_features(state, shrinkage, now, own, session, prefix, candidates[:used], features[:used])
    scores = features[:used, 0].copy()
    for j in range(used):
        for k in range(WIDTH):
            scores[j] += features[j, k] * weights[k]
    best = np.argsort(-scores, kind="mergesort")[:show]
    return candidates[best], scores[best], features[best]
