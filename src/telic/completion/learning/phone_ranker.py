"""AppAware at the search box: one phone's signals, and candidates ranked by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from telic.completion.engine.prefix_index import PrefixIndex
from telic.completion.learning.app_features import MINUTES, MOST_RECENT
from telic.completion.learning.appaware import AppAware, AppTable, score_candidates
from telic.data.composition_rows import MAX_APPS, MAX_DAILY_OPENS
from telic.errors import InputError


@dataclass(frozen=True)
class Phone:
    """The known apps of one phone: what they add is worked out once for each composition."""

    value: np.ndarray
    """float64 (apps,): ``log(1 + openings a day)``; 0 for apps that are not installed."""
    order: np.ndarray
    """int64 (apps,): recency order from 0; -1 for apps that were not just opened."""
    opened: int
    """How many were just opened, unknown ones too."""


@dataclass(frozen=True)
class PhoneRanker:
    """A fitted `AppAware` with its queries numbered as a catalogue's phrases.

    Parameters
    ----------
    apps : list of str
    weights, shares : AppTable
        By phrase of the catalogue.
    recency : float64 array of shape (48,)
    minutes : float
        The window in which an opened app is recent.
    fit : dict
        How the weights were found: method, passes, objective, and gap, which bounds how far the
        objective is above its optimum. Empty if it is not known.
    """

    apps: list[str]
    weights: AppTable
    shares: AppTable
    recency: np.ndarray
    minutes: float = MINUTES
    fit: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: AppAware,
        apps: list[str],
        known: np.ndarray,
        phrases: list[str],
        index: PrefixIndex,
        *,
        minutes: float,
    ) -> "PhoneRanker":
        """Renumber the queries of a model, `phrases`, as those of a catalogue's index.

        Of its apps those that are known remain: bool, one each.
        """
        number = np.array([index.find(phrase) for phrase in phrases])
        place = np.cumsum(known) - 1

        def moved(table: AppTable) -> AppTable:
            query = number[np.repeat(np.arange(len(phrases)), np.diff(table.start))]
            kept = query >= 0
            return AppTable.of(query[kept], place[table.app[kept]], table.value[kept], len(index))

        weights = moved(model.weights)
        weights = weights._replace(value=weights.value / model.relevance_weight)
        recency = model.recency / model.relevance_weight
        fit = {part: getattr(model.fit, part) for part in ("method", "passes", "objective", "gap")}
        names = [apps[a] for a in np.flatnonzero(known)]
        return cls(names, weights, moved(model.shares), recency, minutes, fit)

    def phone(
        self, installed: Mapping[str, float], opened: Sequence[tuple[str, float]] = ()
    ) -> Phone:
        """Check and take in one phone's signals.

        Apps that too few training phones had add nothing. If opened, they keep their place in the
        order, so that what was opened before them is less recent.

        Parameters
        ----------
        installed : mapping of str to float
            App → average openings a day.
        opened : sequence of (str, float)
            App and minutes since it was opened, in any order; only the last opening of each counts.

        Raises
        ------
        InputError
            If a count or a time is no number or out of range, or there are too many.
        """
        return phone_of(self._numbers, installed, opened, minutes=self.minutes)

    def added(self, queries: np.ndarray, phone: Phone) -> np.ndarray:
        """Return what the phone adds to the relevance of phrases (-1: not of the catalogue)."""
        out = np.zeros(len(queries))
        score_candidates(
            queries, phone.value, phone.order, self.weights, self.shares, self.recency, out
        )
        return out

    def reasons(self, query: int, phone: Phone) -> dict[str, float]:
        """Return the part of each app in what a phone adds to one phrase, largest first."""
        if query < 0:
            return {}
        found: dict[str, float] = {}
        own = slice(self.weights.start[query], self.weights.start[query + 1])
        for a, w in zip(self.weights.app[own], self.weights.value[own], strict=True):
            if phone.value[a]:
                found[f"installed: {self.apps[a]}"] = float(w * phone.value[a])
        own = slice(self.shares.start[query], self.shares.start[query + 1])
        for a, y in zip(self.shares.app[own], self.shares.value[own], strict=True):
            if phone.order[a] >= 0:
                found[f"opened: {self.apps[a]}"] = float(y * self.recency[phone.order[a]])
        kept = {name: part for name, part in found.items() if abs(part) > 1e-9}
        return dict(sorted(kept.items(), key=lambda item: -abs(item[1])))

    def telling(self, top: int = 50) -> list[str]:
        """Return the apps whose weights are largest in sum."""
        size = np.bincount(self.weights.app, np.abs(self.weights.value), len(self.apps))
        return [self.apps[a] for a in np.argsort(-size, kind="stable")[:top]]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {app: i for i, app in enumerate(self.apps)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a model folder keeps of it, beside `meta`."""
        parts = {"recency": self.recency}
        for name, table in (("weights", self.weights), ("shares", self.shares)):
            parts |= {f"{name}.{part}": array for part, array in table._asdict().items()}
        return {f"phones.{name}": array for name, array in parts.items()}

    def meta(self) -> dict[str, Any]:
        """Return the part of a model folder's description."""
        return {"apps": self.apps, "minutes": self.minutes, "fit": self.fit}

    @classmethod
    def stored(cls, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "PhoneRanker":
        """Read back what `meta` and `arrays` gave."""

        def table(name: str) -> AppTable:
            return AppTable(*(arrays[f"phones.{name}.{part}"] for part in AppTable._fields))

        return cls(
            list(meta["apps"]),
            table("weights"),
            table("shares"),
            arrays["phones.recency"],
            float(meta["minutes"]),
            meta.get("fit", {}),
        )


def phone_of(
    number: Mapping[str, int],
    installed: Mapping[str, float],
    opened: Sequence[tuple[str, float]],
    *,
    minutes: float,
) -> Phone:
    """Do what `PhoneRanker.phone` says for known apps, numbered from 0, and a window."""
    if len(installed) > MAX_APPS or len(opened) > MAX_APPS:
        raise InputError(f"over {MAX_APPS} apps or openings. Send the most used ones.")
    value, order = np.zeros(len(number)), np.full(len(number), -1)
    for app, opens in installed.items():
        opens = _number(opens)
        if not 0 <= opens <= MAX_DAILY_OPENS:
            raise InputError(
                f"installed app {app[:40]!r}: the openings a day must be a number from 0 to "
                f"{MAX_DAILY_OPENS:.0f}."
            )
        if app in number:
            value[number[app]] = np.log1p(opens)
    recent = []
    for app, since in opened:
        since = _number(since)
        if not since >= 0:
            raise InputError(
                f"opened app {app[:40]!r}: the minutes since must be a number >= 0; "
                "openings after the first keystroke do not count."
            )
        if since < minutes:
            recent.append((since, app))
    # Unknown apps keep their place in the order: what was opened before is less recent.
    latest = list(dict.fromkeys(a for _, a in sorted(recent)))[:MOST_RECENT]
    for k, app in enumerate(latest):
        if app in number:
            order[number[app]] = k
    return Phone(value, order, len(latest))


def _number(value: Any) -> float:
    # True is a number to Python, but not to those who send it.
    if not isinstance(value, Real) or isinstance(value, bool):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an int of hundreds of digits
        return np.inf
