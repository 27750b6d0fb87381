"""What the de facto specialties change: alarms before and after, and snooping that stays caught."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from telic.evaluate.paired import PairedTest, paired_proportions
from telic.specialty.alarms.explained_alarms import Alerts
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import SMALL_CELL


class Caught(NamedTuple):
    """Known snooping accesses, and those found in queues of equal length, before and after."""

    planted: int
    chance: float
    """How many a queue would hold that is as long, and drawn at random from all accesses."""
    without: int
    """Caught where nobody knew the de facto specialties."""
    known: int
    """Caught where they are known."""
    lost: int
    """Caught without them and not with them."""
    gained: int
    """Caught with them and not without them."""

    def points(self) -> PairedTest:
        """Percentage points of recall gained, with the 95 % interval and the exact paired test."""
        test = paired_proportions(self.gained, self.lost, self.planted)
        return PairedTest(100 * test.difference, test.p_value, 100 * test.low, 100 * test.high)


def together(kinds: Mapping[str, Caught]) -> Caught:
    """Add up all kinds.

    Examples
    --------
    >>> together({"a": Caught(5, 1.5, 3, 2, 2, 1), "b": Caught(4, 1.0, 1, 2, 0, 1)})
    Caught(planted=9, chance=2.5, without=4, known=4, lost=2, gained=2)
    """
    return Caught(*(sum(counts) for counts in zip(*kinds.values(), strict=True)))


SUMS = (
    ("alerts", ("explained", "open")),
    ("explained", ("explained_by_practice", "explained_by_colleagues")),
    ("alerts", ("uncovered_alerts", "undeclared_alerts")),
    ("unlisted_alerts", ("unlisted_explained", "unlisted_open")),
)
"""Counts, and those that add up to them."""
RESTS = {
    "listed_alerts": ("unlisted_alerts", "unlisted_explained", "unlisted_open"),
    "listed_explained": ("unlisted_explained", "unlisted_open"),
    "listed_open": ("unlisted_explained", "unlisted_open"),
}
"""What is left of `alerts`, `explained` and `open` without the unlisted ones, after "listed_". No
output shows these rests; without the counts beside each nobody can work it out by subtraction."""


@dataclass(frozen=True)
class Effect:
    """Counts of alarms, with known snooping or without."""

    alerts: int
    explained: int
    open: int
    """Also the length of the queues in which caught snooping is counted."""
    uncovered_alerts: int
    """Alarms of users whose declared specialty does not cover the access."""
    undeclared_alerts: int
    """Alarms of users without a declared specialty: no code of theirs could cover anything."""
    unlisted_alerts: int
    """Alarms raised by users of specialties without a listed code."""
    unlisted_explained: int
    unlisted_open: int
    explained_by_practice: int = 0
    """Alarms that a de facto specialty explains."""
    explained_by_colleagues: int = 0
    """Alarms that colleagues at the same record alone explain."""
    few: frozenset[str] = frozenset()
    """Counts of alarms, and `RESTS`, that concern fewer than `SMALL_CELL` patients."""
    snooping: Mapping[str, Caught] = field(default_factory=dict)
    """By kind, where the truth is known."""

    def withheld(self) -> dict[str, str]:
        """Counts not to be shown, and what stands for them: "<11 patients", or "withheld".

        Withheld is what would give a small cell away by subtraction.
        """
        hidden = dict.fromkeys(sorted(self.few - RESTS.keys()), f"<{SMALL_CELL} patients")
        for rest in self.few & RESTS.keys():
            hidden = dict.fromkeys(RESTS[rest], "withheld") | hidden
        for total, parts in SUMS:
            if total in hidden or self.few.intersection(parts):
                for name in parts:
                    if getattr(self, name):
                        hidden.setdefault(name, "withheld")
        return hidden

    def cells(self) -> dict[str, int | str]:
        """Every count of alarms as a table may hold it: a number, or what stands for it."""
        return self._counts() | self.withheld()

    def as_json(self) -> dict[str, Any]:
        """Return the machine-readable form; null for what is not shown."""
        hidden = self.withheld()
        content: dict[str, Any] = {
            name: None if name in hidden else value for name, value in self._counts().items()
        }
        content["withheld"] = hidden
        if self.snooping:
            kinds = {**self.snooping, "together": together(self.snooping)}
            content["snooping"] = {
                kind: {**one._asdict(), "points": one.points()._asdict()}
                for kind, one in kinds.items()
            }
        return content

    def _counts(self) -> dict[str, int]:
        return {n: v for n, v in vars(self).items() if n not in ("few", "snooping")}


def effect(
    log: AccessLog,
    discovery: Discovery,
    alerts: Alerts,
    snooping: Mapping[str, np.ndarray] | None = None,
) -> Effect:
    """Count alarms before and after, and known snooping caught at equal queue length.

    Parameters
    ----------
    log, discovery, alerts
    snooping : mapping of str to ndarray of int, optional
        Kind of snooping: 1-based rows of the accesses file that are known to be it.
    """
    unlisted = [k for k, one in enumerate(discovery.specialties) if one.listed_code is None]
    kinds = {kind: np.isin(log.access_row, rows) for kind, rows in (snooping or {}).items()}
    known = np.any([np.zeros(len(log.access_row), dtype=bool), *kinds.values()], axis=0)
    hidden = alerts.raised & np.isin(alerts.specialty, unlisted) & ~known
    undeclared = log.taxonomy[log.access_user] == ""
    masks = {
        "alerts": alerts.raised,
        "explained": alerts.explained,
        "open": alerts.raised & ~alerts.explained,
        "uncovered_alerts": alerts.raised & ~undeclared,
        "undeclared_alerts": alerts.raised & undeclared,
        "unlisted_alerts": hidden,
        "unlisted_explained": hidden & alerts.explained,
        "unlisted_open": hidden & ~alerts.explained,
        "explained_by_practice": alerts.by_practice,
        "explained_by_colleagues": alerts.explained & ~alerts.by_practice,
    }
    listed = {rest: masks[rest.removeprefix("listed_")] & ~hidden for rest in RESTS}
    few = frozenset(
        name for name, mask in (masks | listed).items() if 0 < log.n_patients(mask) < SMALL_CELL
    )
    length = int(masks["open"].sum())
    without, with_ = (np.zeros(len(known), dtype=bool) for _ in range(2))
    without[alerts.queue_without()[:length]] = True
    with_[alerts.queue()[:length]] = True
    caught = {
        kind: Caught(
            planted=int(is_it.sum()),
            chance=float(is_it.mean() * length),
            without=int((is_it & without).sum()),
            known=int((is_it & with_).sum()),
            lost=int((is_it & without & ~with_).sum()),
            gained=int((is_it & with_ & ~without).sum()),
        )
        for kind, is_it in kinds.items()
    }
    return Effect(**{n: int(m.sum()) for n, m in masks.items()}, few=few, snooping=caught)


def known_snooping(folder: str | Path) -> dict[str, np.ndarray] | None:
    """Rows that a simulated log knows to be snooping, by kind; None where there is no truth."""
    file = Path(folder) / "truth_accesses.parquet"
    if not file.is_file():
        return None
    truth = pq.read_table(file, columns=["row", "kind"])
    rows, kind = truth["row"].to_numpy(), np.array(truth["kind"].to_pylist(), dtype=str)
    return {str(one): rows[kind == one] for one in np.unique(kind)}
