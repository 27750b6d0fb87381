"""What a phone tells before a query: apps installed, apps just opened [Zhang2017] (3.3.3)."""

from dataclasses import dataclass, replace

import numpy as np

from telic.data.compositions import CompositionLog
from telic.errors import InputError

MINUTES = 30.0
"""[Zhang2017]'s window for recently opened apps."""
MOST_RECENT = 48
"""Recency orders with a weight of their own: the most that [Zhang2017] saw in half an hour."""


def opened_lately(log: CompositionLog, minutes: float) -> tuple[np.ndarray, np.ndarray]:
    """Return `Signals.recent_start` and `Signals.recent_app`; takes and raises as `Signals.of`."""
    if not (np.isfinite(minutes) and minutes >= 0):
        raise InputError(f"the window is {minutes} minutes, expected a number >= 0.")
    n = len(log)
    owner = np.repeat(np.arange(n), np.diff(log.opened_start))
    back = log.at[log.keystroke_start[:-1]][owner] - log.opened_at
    recent = np.flatnonzero(back < minutes * 60e6)  # the latest first, within a composition
    pair = owner[recent] * np.int64(len(log.apps)) + log.opened_app[recent]
    kept = recent[np.sort(np.unique(pair, return_index=True)[1])]
    place = np.arange(len(kept)) - np.searchsorted(owner[kept], owner[kept])
    kept = kept[place < MOST_RECENT]
    return np.searchsorted(owner[kept], np.arange(n + 1)), log.opened_app[kept]


@dataclass(frozen=True)
class Signals:
    """Both signals of every composition of a log; composition ``c`` owns ``start[c]:start[c + 1]``.

    The four variants of 3.4.3 are four choices of signals, for one and the same model.
    """

    apps: int
    """Number of apps."""
    installed_start: np.ndarray
    """int64 (n + 1,)."""
    installed_app: np.ndarray
    """int32."""
    installed_value: np.ndarray
    """float64: ``log(1 + openings a day)``, not centred, so that an absent app stays 0."""
    recent_start: np.ndarray
    """int64 (n + 1,)."""
    recent_app: np.ndarray
    """int32: distinct, the most recent first."""
    known: np.ndarray
    """bool (apps,): whether an app counts; others only keep their place among the most recent."""

    @classmethod
    def of(cls, log: CompositionLog, *, minutes: float = MINUTES) -> "Signals":
        """Take the signals of a log; an app opened many times counts once, when last opened.

        Parameters
        ----------
        log : CompositionLog
        minutes : float >= 0
            How long before the first keystroke an opening is recent; 0: none is.

        Raises
        ------
        InputError
            If `minutes` is negative or not a number.
        """
        start, app = opened_lately(log, minutes)
        value, known = np.log1p(log.daily_opens, dtype=float), np.ones(len(log.apps), bool)
        return cls(len(known), log.installed_start, log.installed_app, value, start, app, known)

    def among(self, known: np.ndarray) -> "Signals":
        """Return what these apps tell: bool (apps,). Of the others it is as if nobody had them."""
        n = len(self.installed_start) - 1
        kept = known[self.installed_app]
        owner = np.repeat(np.arange(n), np.diff(self.installed_start))[kept]
        return replace(
            self,
            installed_start=_starts(np.bincount(owner, minlength=n)),
            installed_app=self.installed_app[kept],
            installed_value=self.installed_value[kept],
            known=self.known & known,
        )

    def variant(self, name: str) -> "Signals":
        """Return what a variant of 3.4.3 may see: "i", "o", "c", "a", or "s" for nothing."""
        if name == "a":
            return self
        n = len(self.installed_start) - 1
        everything, nothing = np.ones(n, bool), np.zeros(n, bool)
        opened = np.diff(self.recent_start) > 0
        installed, recent = {
            "s": (nothing, nothing),
            "i": (everything, nothing),
            "o": (nothing, everything),
            "c": (~opened, opened),
        }[name]
        keep = np.repeat(installed, np.diff(self.installed_start))
        also = np.repeat(recent, np.diff(self.recent_start))
        return replace(
            self,
            installed_start=_starts(np.diff(self.installed_start) * installed),
            installed_app=self.installed_app[keep],
            installed_value=self.installed_value[keep],
            recent_start=_starts(np.diff(self.recent_start) * recent),
            recent_app=self.recent_app[also],
        )


@dataclass(frozen=True)
class OpenedShares:
    """y(q, a): how often q was submitted among the compositions where a was recently opened."""

    apps: int
    pair: np.ndarray
    """int64, ascending: ``query * apps + app``."""
    count: np.ndarray
    """float64: compositions of each pair."""
    total: np.ndarray
    """float64 (apps,): compositions in which each app was recently opened."""

    @classmethod
    def counted(
        cls, signals: Signals, query: np.ndarray, compositions: np.ndarray
    ) -> "OpenedShares":
        """Count over some compositions: those of the training part."""
        where, owner = entries_of(signals.recent_start, compositions)
        known = signals.known[signals.recent_app[where]]
        app, owner = signals.recent_app[where[known]], owner[known]
        pair, count = np.unique(
            query[compositions][owner].astype(np.int64) * signals.apps + app, return_counts=True
        )
        total = np.bincount(app, minlength=signals.apps).astype(float)
        return cls(signals.apps, pair, count.astype(float), total)

    def of(self, query: np.ndarray, app: np.ndarray, submitted: np.ndarray) -> np.ndarray:
        """Return y for pairs in *training* compositions: each without its own composition.

        With its own, an app opened once would have y = 1 for exactly the query to be predicted.

        Parameters
        ----------
        query, app : int arrays of shape (m,)
        submitted : bool array of shape (m,)
            Whether the query is the one that its composition submitted.
        """
        key = query.astype(np.int64) * self.apps + app
        at = np.minimum(np.searchsorted(self.pair, key), max(len(self.pair) - 1, 0))
        found = self.pair[at] == key if len(self.pair) else np.zeros(len(key), bool)
        count = np.where(found, self.count[at] if len(self.pair) else 0.0, 0.0) - submitted
        return np.maximum(count, 0.0) / np.maximum(self.total[app] - 1, 1.0)

    @property
    def values(self) -> np.ndarray:
        """float64: y of every pair counted."""
        return self.count / self.total[self.pair % self.apps]


def entries_of(start: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the entries of some owners, and which of `owners` (0, 1, …) each belongs to."""
    lengths = np.diff(start)[owners]
    begins = _starts(lengths)
    owner = np.repeat(np.arange(len(owners)), lengths)
    return np.arange(begins[-1]) + (start[:-1][owners] - begins[:-1])[owner], owner


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
