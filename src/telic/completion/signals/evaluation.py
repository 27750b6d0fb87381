"""What each signal is worth on a query log, on users that nothing was learned from, later in time.

Two controls say what the measure itself makes up: sessions exchanged between users, and times
exchanged between submissions. What they are worth must be nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.completion.signals.gates import learn, learn_pairs
from telic.completion.signals.groups import PAIRS
from telic.completion.signals.log_split import TESTED, Searches
from telic.completion.signals.sweep import SHRINKAGE, RankedPrefixes, Shrinkage, every_prefix, walk
from telic.completion.signals.weights import (
    SHOWN,
    STATIC,
    USUAL,
    Lessons,
    SignalWeights,
    choosing_moments,
    lessons_of,
    some_of,
)
from telic.evaluate import paired_t_test, success_rate
from telic.report.table import finite

MOST_TESTED = 10_000
"""Submissions that are tested at most, drawn at random; each at all of its prefixes."""
BINS = {"1–3": (1, 4), "4–6": (4, 7), "7+": (7, 10_000)}
"""Ranges of prefix length, in characters; their ends are not in them."""
SEEN = {"0": (0, 1), "1–9": (1, 10), "10–99": (10, 100), "100+": (100, 10**12)}
"""Ranges of how often something was submitted before; their ends are not in them."""
ALL = "all that help"
"""The name of the model in which each group has a gate."""
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Tested:
    """Ranks of some models at every prefix of the submissions that were tested."""

    event: np.ndarray
    length: np.ndarray
    unit: np.ndarray
    """int64 (T,): what an interval takes as one; see `Searches.unit`."""
    possible: np.ndarray
    """bool (T,): whether the query was known by then: the ceiling of every model."""
    candidate: np.ndarray
    """bool (T,): whether it was among the candidates that are ranked."""
    seen: np.ndarray
    """float64 (T, 2): see `RankedPrefixes`."""
    ranks: dict[str, np.ndarray]
    """Model → float64 (T,): reciprocal rank, 0 beyond the list shown."""
    longest: np.ndarray
    """int64 (T,): characters of the whole query, at most `LONGEST`."""

    def slices(self) -> dict[str, np.ndarray]:
        """Return which prefixes belong to each slice: bool (T,)."""
        found = {"all": np.ones(len(self.event), bool)}
        for name, (first, last) in BINS.items():
            found[f"{name} characters"] = (self.length >= first) & (self.length < last)
        for column, what in ((0, "user seen"), (1, "query seen")):
            for name, (first, last) in SEEN.items():
                own = self.seen[:, column]
                found[f"{what} {name}"] = (own >= first) & (own < last)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each model and slice.

        ``mrr``, ``sr@k``, ``ceiling`` and ``reached`` (the query is among the candidates) are means
        over prefixes. ``difference`` from the static order with its interval takes users as unit.
        """
        out = []
        for name, inside in self.slices().items():
            base = self.ranks["static"][inside]
            for model, ranks in self.ranks.items():
                own = ranks[inside]
                row: dict[str, Any] = {"model": model, "slice": name, "n": int(inside.sum())}
                row |= compared(own, None if model == "static" else base, self.unit[inside])
                if inside.any():
                    row["mrr"] = float(own.mean())
                    row["ceiling"] = float(self.possible[inside].mean())
                    row |= {f"sr@{k}": success_rate(own, k) for k in (1, 3, SHOWN)}
                    row["reached"] = float(self.candidate[inside].mean())
                out.append(row)
        return out

    def effort(self) -> list[dict[str, Any]]:
        """Return, for each model, keystrokes to the first five and characters saved, by submission.

        A query that never comes up costs all its characters, and saves none. Both end at `LONGEST`
        characters. ``more saved`` is the difference from the static order in points, with its
        interval; users are the unit.
        """
        first = np.flatnonzero(np.r_[True, self.event[1:] != self.event[:-1]])
        whole, unit = self.longest[first].astype(float), self.unit[first]
        out, base = [], np.empty(0)
        for model, ranks in self.ranks.items():
            needed = {
                k: np.minimum.reduceat(
                    np.where(
                        ranks > 1 / (k + 0.5), np.minimum(self.length, self.longest), self.longest
                    ),
                    first,
                )
                for k in (5, SHOWN)
            }
            saved = 1 - needed[SHOWN] / whole
            base = saved if model == "static" else base
            row: dict[str, Any] = {"model": model, "n": len(first)}
            row |= {"to top 5": float(needed[5].mean()), "saved": float(saved.mean())}
            out.append(row | compared(saved, None if model == "static" else base, unit))
        return out


def compared(own: np.ndarray, base: np.ndarray | None, unit: np.ndarray) -> dict[str, Any]:
    """Return the difference between two models with its interval, None where there is none."""
    if base is None or not len(own):
        return dict.fromkeys(("difference", "low", "high", "p_value"))
    test = paired_t_test(own, base, unit)
    return {name: finite(getattr(test, name)) for name in ("difference", "low", "high", "p_value")}


def models_of(
    searches: Searches,
    groups: Sequence[str] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    progress: Progress = lambda step: None,
) -> dict[str, SignalWeights]:
    """Fit what is compared: popularity alone, with each other group, and all groups behind gates.

    The models with one group have no gate: their figure says what the group is worth, also where
    that is less than nothing.
    """
    groups = searches.groups if groups is None else groups
    progress("gathering what to learn from")
    lessons = lessons_of(searches, shrinkage=shrinkage)
    chosen_by = choosing_moments(searches, shrinkage=shrinkage)
    everything = learn(searches, lessons, chosen_by, groups, shrinkage=shrinkage, progress=progress)
    models = {"static": STATIC}
    base = {group: everything.penalties.get(group, USUAL) for group in groups}
    popularity = {g: p for g, p in base.items() if g == "popularity"}
    models |= {"popularity": lessons.fit(popularity)} if popularity else {}
    for group, penalty in base.items():
        if group != "popularity":
            models[f"+ {group}"] = _beside(
                searches, lessons, chosen_by, popularity, {group: penalty}, shrinkage
            )
    return models | {ALL: everything}


def _beside(
    searches: Searches,
    lessons: Lessons,
    chosen_by: Sequence[RankedPrefixes],
    base: dict[str, float],
    group: dict[str, float],
    shrinkage: Shrinkage,
) -> SignalWeights:
    """Fit one group beside others, given the penalties; weights of pairs choose their own."""
    if PAIRS in group:
        learned = lessons.fit(base)
        return learn_pairs(searches, learned, chosen_by, shrinkage=shrinkage)[0]
    return lessons.fit(base | group)


def measured(
    searches: Searches,
    models: dict[str, SignalWeights],
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    most: int = MOST_TESTED,
) -> Tested:
    """Rank the candidates at every prefix of at most so many submissions of the part to test on."""
    rng = np.random.default_rng([searches.seed, 5])
    events = some_of(np.flatnonzero(searches.part == TESTED), most, rng)
    pieces: list[tuple[np.ndarray, ...]] = []
    ranks: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for piece in walk(searches, *every_prefix(searches, events), shrinkage=shrinkage):
        pieces.append((piece.event, piece.length, piece.possible, piece.position >= 0, piece.seen))
        for name, model in models.items():
            ranks[name].append(model.ranks(piece))
    event, length, possible, candidate, seen = map(np.concatenate, zip(*pieces, strict=True))
    return Tested(
        event,
        length,
        searches.unit[event],
        possible,
        candidate,
        seen,
        {name: np.concatenate(parts) for name, parts in ranks.items()},
        searches.longest[event],
    )


def controls(
    searches: Searches,
    groups: Sequence[str] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    most: int = MOST_TESTED,
    progress: Progress = lambda step: None,
) -> list[dict[str, Any]]:
    """Return what a group is worth, and what it seems worth where it cannot be worth anything.

    Of `groups`, those of `Searches.controls` have a control. Each row compares the learned
    popularity with and without the group: as the log is, and with sessions, or times, exchanged.
    """
    groups = searches.groups if groups is None else groups
    sessions = bool((searches.before >= 0).any())
    asked = [
        (group, shuffled)
        for group, shuffled in searches.controls
        if group in groups and (sessions or shuffled != "shuffled_sessions")
    ]
    rows = {}
    # The log as it is serves all groups, and a log that is shuffled may serve several.
    for way in dict.fromkeys(way for _, shuffled in asked for way in (None, shuffled)):
        own = getattr(searches, way)() if way else searches
        beside = [group for group, shuffled in asked if way in (None, shuffled)]
        progress(f"{', '.join(beside)}, {'exchanged' if way else 'as it is'}")
        lessons = lessons_of(own, shrinkage=shrinkage)
        chosen_by = choosing_moments(own, shrinkage=shrinkage) if PAIRS in beside else []
        base = {"popularity": USUAL}
        models = {"static": lessons.fit(base)}
        for group in beside:
            models[group] = _beside(own, lessons, chosen_by, base, {group: USUAL}, shrinkage)
        found = measured(own, models, shrinkage=shrinkage, most=most)
        for group in beside:
            gained = compared(found.ranks[group], found.ranks["static"], found.unit)
            row = {"group": group, "exchanged": bool(way), "n": len(found.event)}
            rows[group, bool(way)] = row | gained
    return [rows[group, exchanged] for group, _ in asked for exchanged in (False, True)]
