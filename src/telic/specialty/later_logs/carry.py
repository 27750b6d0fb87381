"""Findings taken to a later log of the same hospital, and how far its specialties have drifted.

Members stay members, people who are new (or of whom too little was known) are folded in, and every
specialty is measured on the new patients. Rows that are not later than those already counted are
not counted again, so an export that grows can be given whole, again and again.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when they are used: they take seconds
from scipy import sparse

from telic.errors import InputError
from telic.specialty.discovery.practice_mixture import ONE_THREAD, members, shares
from telic.specialty.discovery.result import Discovery
from telic.specialty.discovery.user_patient_units import Units, units_of
from telic.specialty.later_logs.kept_findings import (
    Findings,
    places,
    shared_codes,
    spread,
    with_users,
)
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import SMALL_CELL, shown

ENOUGH_PATIENTS = 5
"""New patients, with a diagnosis that the findings know, that a member must have for the drift of a
specialty to count them."""

KNOWN_CODES = 0.5
"""Share of a log's diagnoses that the findings must know; else the logs are coded differently."""


class Drift(NamedTuple):
    """A specialty on patients that are new since it was found."""

    name: str
    found: float | None
    """Share of the practice in its median member's work when it was found, on the half of the
    patients that did not form it."""
    now: float | None
    """The same on the new patients; None where no member has enough of them."""
    interval: tuple[float, float] | None
    """Distribution-free 95 % interval of the median; None with fewer than six members."""
    members: int
    """Members with `ENOUGH_PATIENTS` new patients."""
    folded_in: int
    """Users who are members now and were none before."""

    @property
    def verdict(self) -> str:
        """Whether the specialty still holds."""
        if self.interval is None or self.found is None:
            return "too few new patients to say"
        return "weaker than it was found" if self.interval[1] < self.found else "holds"

    def as_json(self) -> dict[str, Any]:
        """Return the machine-readable form; small numbers of people are null."""
        of_people = {
            name: value if value >= SMALL_CELL or value == 0 else None
            for name, value in (("members", self.members), ("folded_in", self.folded_in))
        }
        return {**self._asdict(), **of_people, "verdict": self.verdict}


@dataclass(frozen=True, eq=False)
class Carried:
    """A later log, seen with the findings of an earlier one."""

    log: AccessLog
    """The later log. Whoever declares nothing there keeps the code that was declared before."""
    discovery: Discovery
    """For the later log's users."""
    findings: Findings
    """With the later log's new rows."""
    drift: list[Drift]
    mix_moved: float
    """Share of the hospital's diagnoses that moved (total variation), in [0, 1]."""
    mix_by_chance: float
    """What random halves of the new patients let expect."""
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """Return the machine-readable form."""
        return {
            "specialties": [one.as_json() for one in self.drift],
            "mix_moved": round(self.mix_moved, 4),
            "mix_moved_by_chance": round(self.mix_by_chance, 4),
            "notes": self.notes,
        }


@ONE_THREAD
def carry(findings: Findings, log: AccessLog, *, seed: int = 0) -> Carried:
    """Take findings to a later log of the same hospital.

    Members keep their specialty. Other users who have new patients are folded in by the rule that
    made the members (`telic.specialty.discovery.practice_mixture.members`), on all patients known
    of them. Groups that did not show to be specialties take part: whoever is of one of them is no
    member.

    Parameters
    ----------
    findings : Findings
    log : AccessLog
    seed : int
        Fixes the halves that `Carried.mix_by_chance` is measured on.

    Raises
    ------
    InputError
        If the log has no user of the findings, or its diagnoses are coded differently.
    """
    place, known_user = places(log.users, findings.users)
    if not known_user.any():
        raise InputError(
            "the log names no user of the findings. Are they of the same hospital, and are the "
            "users' ids the same? If not, run `telic specialty discover` on this log."
        )
    known, column = shared_codes(log.codes, findings.codes)
    opened = log.user_diagnosis().sum(axis=0)
    if opened[known].sum() < KNOWN_CODES * opened.sum():
        raise InputError(
            f"the findings know fewer than {KNOWN_CODES:.0%} of the diagnoses that this log's "
            "users accessed. Read both logs with the same --code-table, or discover anew."
        )
    before = np.where(known_user, findings.taxonomy[place], "")
    kept = (log.taxonomy == "") & (before != "")
    log = replace(log, taxonomy=np.where(kept, before, log.taxonomy))
    later = findings.later(log)
    units = units_of(log, later, fewest_users=1)
    fresh = spread(units, len(log.codes))

    n = len(findings.specialties)
    usable = findings.profile[-1, column] > 0
    known, column = known[usable], column[usable]
    # Patients of whom no diagnosis is known tell nothing of a practice.
    told = units.codes[:, np.isin(units.code, known)].sum(axis=1) > 0
    patients = np.bincount(units.user[told], minlength=units.n_users)
    # All codes of the findings count: that a code no longer comes says much of a practice.
    past = np.zeros((len(log.users), len(findings.codes)))
    past[known_user] = findings.seen[place[known_user]].toarray()
    now = np.zeros_like(past)
    now[:, column] = fresh[:, known].toarray()

    cluster = np.full(len(log.users), -1)
    cluster[known_user] = findings.cluster[place[known_user]]
    was = cluster.copy()
    seen_before = np.zeros(len(log.users), dtype=np.int64)
    seen_before[known_user] = findings.patients[place[known_user]]
    if n:
        share = shares(past + now, findings.profile)[:, :-1]
        folded = members(share, seen_before + patients)
        folded[folded >= n] = -1  # they practise what did not show to be a specialty
        cluster = np.where((cluster >= 0) | (patients == 0), cluster, folded)
        # As when it was found: beside everybody's work and the other specialties alone.
        share = shares(now, findings.profile[[*range(n), -1]])[:, :-1]
    drift = []
    for k, one in enumerate(findings.specialties):
        counted = (was == k) & (patients >= ENOUGH_PATIENTS)
        median, interval = _median(share[counted, k])
        found = one.evidence.share if one.evidence else None
        new = int(((cluster == k) & (was < 0)).sum())
        drift.append(Drift(one.name, found, median, interval, int(counted.sum()), new))
    discovery = Discovery(findings.method, with_users(findings.specialties, cluster), cluster)
    moved, by_chance = _mix(findings, units, known, column, np.random.default_rng(seed))
    notes = []
    if not_later := len(log.access_user) - len(later):
        notes.append(
            f"{shown(not_later)} accesses are not later than the last of the findings, and are not "
            "added to these: they are counted there already, or came late"
        )
    if (strangers := int((~known_user).sum())) > 0:
        notes.append(f"{shown(strangers)} users are new since the findings")
    if kept.any():
        notes.append(
            f"{shown(int(kept.sum()))} users without a code keep the one that they declared before"
        )
    unknown = 1 - opened[known].sum() / opened.sum()
    if unknown > 0:
        notes.append(f"{unknown:.1%} of the accessed diagnoses are of codes new to the findings")
    added = _added(findings, log, discovery, fresh, patients)
    return Carried(log, discovery, added, drift, moved, by_chance, notes)


def _added(
    findings: Findings,
    log: AccessLog,
    discovery: Discovery,
    fresh: sparse.csr_array,
    patients: np.ndarray,
) -> Findings:
    """Add a log's new rows. Profiles stay: slow drift is to be seen, not followed."""
    users, codes = np.union1d(findings.users, log.users), np.union1d(findings.codes, log.codes)
    staff = findings.staff(log, discovery)

    def placed(matrix: sparse.csr_array, of: Findings | AccessLog) -> sparse.csr_array:
        row, column = np.searchsorted(users, of.users), np.searchsorted(codes, of.codes)
        coo = sparse.coo_array(matrix)
        where = row[coo.coords[0]], column[coo.coords[1]]
        return sparse.csr_array((coo.data, where), shape=(len(users), len(codes)))

    def both(old: sparse.csr_array, new: sparse.csr_array) -> sparse.csr_array:
        return placed(old, findings) + placed(new, log)

    later = findings.later(log)
    profile = np.zeros((len(findings.profile), len(codes)))
    profile[:, np.searchsorted(codes, findings.codes)] = findings.profile
    number = np.zeros(len(users), dtype=np.int64)
    number[np.searchsorted(users, findings.users)] = findings.patients
    number[np.searchsorted(users, log.users)] += patients
    return replace(
        findings,
        users=users,
        taxonomy=staff.taxonomy,
        cluster=staff.cluster,
        codes=codes,
        accesses=both(findings.accesses, log.user_diagnosis(later)),
        seen=both(findings.seen, fresh),
        patients=number,
        profile=profile,
        specialties=with_users(findings.specialties, staff.cluster),
        until=max(findings.until, int(log.access_at.max())),
    )


def _median(values: np.ndarray) -> tuple[float | None, tuple[float, float] | None]:
    """Median, and the 95 % interval between two order statistics."""
    if not len(values):
        return None, None
    ordered = np.sort(values)
    below = int(scipy.stats.binom.ppf(0.025, len(values), 0.5))
    interval = (float(ordered[below - 1]), float(ordered[-below])) if below else None
    return float(np.median(ordered)), interval


def _mix(
    findings: Findings,
    units: Units,
    known: np.ndarray,
    column: np.ndarray,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """How far the hospital's diagnoses moved, and how far new patients alone would move them."""

    def mix(counts: np.ndarray) -> np.ndarray:
        return counts / max(counts.sum(), 1)

    def of(part: Units) -> np.ndarray:
        return spread(part, int(known.max(initial=0)) + 1).sum(axis=0)[known]

    if not len(units.user):
        return 0.0, 0.0
    both = np.isin(units.code, known)
    trimmed = replace(units, codes=units.codes[:, both], code=units.code[both])
    old = np.where(findings.profile[-1] > 0, findings.seen.sum(axis=0), 0)
    new = np.zeros(len(old))
    new[column] = of(trimmed)
    moved = 0.5 * np.abs(mix(new) - mix(old)).sum()
    first, second = trimmed.halves(rng)
    halves = 0.5 * np.abs(mix(of(first)) - mix(of(second))).sum()
    # Halves differ by 4/n, new and old patients by 1/n + 1/m; of n and m the ratio alone counts, so
    # units stand for patients.
    n, m = len(units.user), max(int(findings.patients.sum()), 1)
    return float(moved), float(halves * np.sqrt((1 + n / m) / 4))
