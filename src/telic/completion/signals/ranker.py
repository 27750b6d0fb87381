"""The signals at the search box: candidates, and what the groups add, for a user at a moment.

The state is that of the catalogue, as of the end of the log. What one user submitted is not in it:
it comes with each call, since it grows with each submission and is forgotten on demand.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from telic.completion.engine.array_kernels import frozen
from telic.completion.engine.front_coding import prefix_range
from telic.completion.learning.app_features import MINUTES
from telic.completion.learning.phone_ranker import Phone, phone_of
from telic.completion.signals.counts import (
    NOTHING_BEYOND,
    WEEK,
    Beyond,
    CountArrays,
    Own,
    Session,
    best_of,
    read_only,
)
from telic.completion.signals.features import in_catalogue, write_features
from telic.completion.signals.groups import APPS, FEATURES, GROUP_OF, WIDTH, WITH_APPS
from telic.completion.signals.log_split import SESSION_GAP
from telic.completion.signals.opened_apps import MOST_OPENED, AppCounts
from telic.completion.signals.overlap import Texts, joined, texts_of_forms
from telic.completion.signals.pool import POOL, POPULAR, gather
from telic.completion.signals.query_pairs import PairWeights
from telic.completion.signals.sweep import SHRINKAGE, Shrinkage
from telic.completion.signals.weights import SignalWeights
from telic.errors import ModelError
from telic.kernels import kernel

_ARRAYS = ("weights", "deviations", "caps")
"""Parts of `SignalWeights` that a model folder keeps as arrays."""
_UNKNOWN = {"bound": np.inf} | dict.fromkeys(("objective", "static", "gap", "pair_gap"), np.nan)
"""What the others are where JSON, which has no such numbers, has none."""


class Ranked(NamedTuple):
    """The candidates of a keystroke in the static order, by popularity alone."""

    numbers: np.ndarray
    """int32: of the catalogue, or beyond it: see `Beyond`."""
    popularity: np.ndarray
    """float64: log(1 + submissions)."""
    parts: np.ndarray
    """float64 (candidates, WIDTH): what each feature adds."""
    added: np.ndarray
    """float64: their sums."""


@dataclass(frozen=True)
class SignalRanker:
    """Fitted signals over a catalogue, whose phrases are numbered as in the box's index.

    Attributes
    ----------
    state : CountArrays
        From `telic.completion.signals.counts.of_catalogue`.
    weights : SignalWeights
    shrinkage : Shrinkage
    session_minutes : float
        Minutes without a submission after which a new session begins.
    added : Beyond
        What was added to the catalogue since.
    apps : sequence of str
        Those that enough people had opened before they searched, numbered as in the state.
    app_minutes : float
        For how long an app that was opened counts.
    """

    state: CountArrays
    weights: SignalWeights
    shrinkage: Shrinkage = SHRINKAGE
    session_minutes: float = SESSION_GAP
    added: Beyond = NOTHING_BEYOND
    apps: Sequence[str] = ()
    app_minutes: float = MINUTES

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", read_only(self.state))

    def __len__(self) -> int:
        """Return the number of phrases, those added included."""
        return len(self.state.known) + len(self.added.popular)

    def __bool__(self) -> bool:
        """Of no phrase, too, it ranks what a user alone submitted."""
        return True

    def phone(
        self, installed: Mapping[str, float], opened: Sequence[tuple[str, float]] = ()
    ) -> Phone | None:
        """Take in one phone's apps as `PhoneRanker.phone` does; None if they tell nothing."""
        if APPS not in self.weights.penalties:
            return None
        return phone_of(self._app_numbers, installed, opened, minutes=self.app_minutes)

    @cached_property
    def _app_numbers(self) -> dict[str, int]:
        return {app: i for i, app in enumerate(self.apps)}

    def telling(self, top: int = 50) -> list[str]:
        """Return the apps that were opened most often before a search."""
        order = np.argsort(-self.state.apps.total, kind="stable")[:top]
        return [self.apps[a] for a in order] if APPS in self.weights.penalties else []

    def changed(
        self, gone: Iterable[int], popular: Mapping[int, float], added: Beyond
    ) -> "SignalRanker":
        """Return the ranker of a catalogue that changed: phrases deleted, counted anew, added."""
        known, counts = self.state.known.copy(), self.state.popular.copy()
        known[list(gone)] = False
        counts[list(popular)] = list(popular.values())
        best = best_of(counts, known), best_of(self.state.recent[:, WEEK], known)
        state = self.state._replace(
            known=known, popular=counts, best_popular=best[0], best_recent=best[1]
        )
        return replace(self, state=state, added=added)

    def beyond(self, forms: Sequence[bytes]) -> Beyond:
        """Return what was added, and after it a user's own queries, by their folded forms."""
        texts = joined(self.added.texts, texts_of_forms(forms))
        return Beyond(texts, np.concatenate([self.added.popular, np.zeros(len(forms))]))

    def ranked(
        self,
        strings: tuple[np.ndarray, ...],
        typed: bytes,
        now: int,
        own: Own,
        beyond: Beyond,
        session: Session,
        opened: np.ndarray,
    ) -> Ranked:
        """Gather what begins with a folded prefix, and say what the groups add to each.

        Parameters
        ----------
        strings : tuple of arrays
            Of the box's index.
        typed : bytes
        now : int
            Microseconds since 1970.
        own, beyond, session
            The user's; the rows of `beyond` begin with those of `added`.
        opened : int32 array
            Apps, the one opened last first, each once; -1 for one that is not in `apps`.
        """
        return Ranked(
            *_ranked(
                self.state,
                beyond,
                strings,
                (self.shrinkage.clock, self.shrinkage.follows, self.shrinkage.apps),
                self.weights.weights,
                self.weights.pairs,
                self.weights.personal,
                now,
                own,
                session,
                opened,
                np.frombuffer(typed, np.uint8),
            )
        )

    def by_group(self, parts: np.ndarray) -> dict[str, float]:
        """Return what each group that is on adds to a candidate, but for feedback; see `Ranked`."""
        sums = {group: 0.0 for group in WITH_APPS if group in self.weights.penalties}
        for group, part in zip(GROUP_OF, parts.tolist(), strict=False):
            if group in sums:
                sums[group] += part
        return sums

    def meta(self) -> dict[str, Any]:
        """Return the part of a model folder's description."""
        fit = asdict(self.weights) | dict.fromkeys((*_ARRAYS, "pairs"))
        fit |= {name: None for name in _UNKNOWN if not np.isfinite(fit[name])}
        return {
            "features": list(FEATURES),
            "fit": fit,
            "shrinkage": asdict(self.shrinkage),
            "session_minutes": self.session_minutes,
            "apps": list(self.apps),
            "app_minutes": self.app_minutes,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a model folder keeps of it, beside `meta`."""
        state = self.state._asdict()
        del state["logged"]
        for part in ("texts", "apps"):
            state |= {f"{part}.{name}": a for name, a in state.pop(part)._asdict().items()}
        fit = {name: getattr(self.weights, name) for name in _ARRAYS}
        fit |= {f"pairs.{name}": array for name, array in self.weights.pairs._asdict().items()}
        return {f"signals.{name}": array for name, array in (state | fit).items()}

    @classmethod
    def stored(cls, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "SignalRanker":
        """Read back what `meta` and `arrays` gave.

        Raises
        ------
        ModelError
            If it was fitted with other signals than this version's.
        """
        if meta["features"] != list(FEATURES):
            raise ModelError("its signals are of another version. Fit it again.")
        texts = Texts(*(arrays[f"signals.texts.{name}"] for name in Texts._fields))
        texts = texts._replace(gram=texts.gram.astype(np.uint32, copy=False))  # they were wider
        apps = AppCounts(*(arrays[f"signals.apps.{name}"] for name in AppCounts._fields))
        arrays = dict(arrays) | {"signals.logged": arrays["signals.popular"]}
        names = [name for name in CountArrays._fields if name not in ("texts", "apps")]
        fit = meta["fit"] | {name: arrays[f"signals.{name}"] for name in _ARRAYS}
        pairs = (frozen(arrays[f"signals.pairs.{name}"]) for name in PairWeights._fields)
        fit["pairs"] = PairWeights(*pairs)
        fit |= {name: number for name, number in _UNKNOWN.items() if fit[name] is None}
        return cls(
            CountArrays(texts, apps, *(arrays[f"signals.{name}"] for name in names)),
            SignalWeights(**fit),
            Shrinkage(**meta["shrinkage"]),
            meta["session_minutes"],
            apps=meta["apps"],
            app_minutes=meta["app_minutes"],
        )


def opened_of(phone: Phone | None) -> np.ndarray:
    """Return the apps that a phone just opened, as `SignalRanker.ranked` takes them."""
    if phone is None:
        return np.zeros(0, np.int32)
    opened = np.full(min(phone.opened, MOST_OPENED), -1, np.int32)
    there = np.flatnonzero((phone.order >= 0) & (phone.order < MOST_OPENED))
    opened[phone.order[there]] = there
    return opened


def in_words(parts: np.ndarray) -> str:
    """Say which features move a candidate most, three at most, given what each adds.

    Parts of feedback may come after the others.
    """
    strongest = np.argsort(-np.abs(parts), kind="stable")[:3]
    said = [
        f"{GROUP_OF[j]}: {FEATURES[j]} {parts[j]:+.1f}" for j in strongest if abs(parts[j]) > 0.05
    ]
    return ", ".join(said) or "popularity alone"


@kernel
def _ranked(
    state, beyond, strings, shrinkage, weights, pairs, personal, now, own, session, opened, prefix
):
    """Candidates in the static order, its score, what each feature adds to each, and the sums."""
    n = len(state.known)
    ids, counts = np.empty(POPULAR, np.int64), np.empty(POPULAR)
    candidates, parts = np.empty(POOL, np.int32), np.empty((POOL, WIDTH))
    low, high = prefix_range(strings, n, prefix)
    used = gather(state, beyond, low, high, prefix, own, session.ids, ids, counts, candidates)
    kept = 0
    for j in range(used):
        q = candidates[j]
        # What is in the catalogue and not known was deleted.
        if in_catalogue(state, q) or (q >= n and (personal or beyond.popular[q - n] > 0.0)):
            candidates[kept] = q
            kept += 1
    used = kept
    candidates, parts = candidates[:used], parts[:used]
    write_features(
        state, pairs, beyond, shrinkage, now, own, session, opened, prefix, candidates, parts
    )
    order = np.argsort(-parts[:, 0], kind="mergesort")
    candidates, parts = candidates[order], parts[order]
    popularity, added = parts[:, 0].copy(), np.zeros(used)
    for j in range(used):
        for k in range(WIDTH):
            parts[j, k] *= weights[k]
            added[j] += parts[j, k]
    return candidates, popularity, parts, added
