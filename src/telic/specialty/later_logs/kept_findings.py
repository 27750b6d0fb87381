"""What a hospital's logs taught, kept without their rows: findings, and their form on disk.

Findings are counts: of every user, the diagnoses and the patients. What later rows are judged by is
made of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from telic.data.saved_models import load_model, save_model
from telic.specialty.discovery.practice_mixture import profiles_of
from telic.specialty.discovery.result import Discovery, Specialty, specialty_from
from telic.specialty.discovery.user_patient_units import Units, units_of
from telic.specialty.log.access_log import AccessLog

KIND = "specialty-findings"


class Staff(NamedTuple):
    """Everybody who is known at a hospital, by whose accesses profiles are made."""

    seen: np.ndarray
    """Users × (codes of the log, and one column of all): accesses by diagnosis."""
    taxonomy: np.ndarray
    cluster: np.ndarray
    place: np.ndarray
    """Row of each of the log's users."""

    def profiles(self, group: np.ndarray) -> np.ndarray:
        """Add up the rows of each group; −1 is none."""
        profiles = np.zeros((max(int(group.max(initial=-1)) + 1, 1), self.seen.shape[1]))
        np.add.at(profiles, group[group >= 0], self.seen[group >= 0])
        return profiles


def staff_of(log: AccessLog, discovery: Discovery) -> Staff:
    """Return everybody of one log."""
    counts = log.user_diagnosis().toarray().astype(np.float64)
    seen = np.hstack([counts, counts.sum(axis=1, keepdims=True)])
    return Staff(seen, log.taxonomy, discovery.cluster, np.arange(len(log.users)))


@dataclass(frozen=True, eq=False)
class Findings:
    """What logs of a hospital taught so far."""

    users: np.ndarray
    taxonomy: np.ndarray
    cluster: np.ndarray
    """Specialty of each user, −1 for none."""
    codes: np.ndarray
    accesses: sparse.csr_array
    """Users × codes: accesses to encounters with the diagnosis."""
    seen: sparse.csr_array
    """Users × codes: patients of whom the user saw the diagnosis. A patient whom the user saw in
    two logs counts in both."""
    patients: np.ndarray
    """Patients of each user, counted in the same way; of later logs those alone of whom a diagnosis
    was known when the specialties were found."""
    profile: np.ndarray
    """Groups × codes: profiles of the specialties, of `Discovery.other_groups`, and of everybody,
    as in `telic.specialty.discovery.practice_mixture.Practices`."""
    specialties: list[Specialty]
    """Their users as indices into `users`."""
    until: int
    """Time of the last access that was counted, in microseconds since 1970."""
    method: str
    simulated: bool

    def staff(self, log: AccessLog, discovery: Discovery) -> Staff:
        """Return everybody of these findings and of a later log together.

        Whoever the later log does not list keeps the specialty that was declared before.
        """
        users = np.union1d(self.users, log.users)
        before, place = np.searchsorted(users, self.users), np.searchsorted(users, log.users)
        known, column = shared_codes(log.codes, self.codes)
        seen = np.zeros((len(users), len(log.codes) + 1))
        seen[np.ix_(before, known)] = self.accesses[:, column].toarray()
        seen[before, -1] = self.accesses.sum(axis=1)
        new = log.user_diagnosis(self.later(log)).toarray()
        seen[place] += np.hstack([new, new.sum(axis=1, keepdims=True)])
        taxonomy = np.full(len(users), "", dtype=object)
        cluster = np.full(len(users), -1)
        taxonomy[before], cluster[before] = self.taxonomy, self.cluster
        # A later list of providers may name those alone who are new.
        taxonomy[place] = np.where(log.taxonomy == "", taxonomy[place], log.taxonomy)
        cluster[place] = discovery.cluster
        return Staff(seen, taxonomy.astype(str), cluster, place)

    def later(self, log: AccessLog) -> np.ndarray:
        """Rows of a log that are not counted yet."""
        return np.flatnonzero(log.access_at > self.until)

    def card(self) -> dict[str, Any]:
        """Return what whoever keeps the findings must know, without anybody's data."""
        until = np.datetime64(self.until, "us").astype("datetime64[D]")
        listed = sum(one.listed_code is not None for one in self.specialties)
        return {
            "for": "judging the later logs of the same hospital",
            "fitted on": f"{'a simulated' if self.simulated else 'a'} log of {len(self.users):,} "
            f"users and {int(self.accesses.sum()):,} accesses with a diagnosis, until {until}",
            "method": self.method,
            "specialties": f"{len(self.specialties)}, {listed} of them with a listed code",
            "holds": "ids of users, and counts of the diagnoses that each saw; no patients' ids",
            "limits": "one hospital's practices: telic specialty explain says how they changed",
        }

    def save(self, folder: str | Path) -> None:
        """Write the findings to a folder, whole or not at all. It holds user ids."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        for name in MATRICES:
            matrix = getattr(self, name)
            arrays |= {f"{name}_{part}": getattr(matrix, part) for part in PARTS}
        meta: dict[str, Any] = {"specialties": [one.as_json() for one in self.specialties]}
        meta |= {name: getattr(self, name) for name in PLAIN}
        arrays["taxonomy"] = self.taxonomy.astype(str)
        save_model(folder, kind=KIND, meta=meta, arrays=arrays)


ARRAYS = ("users", "taxonomy", "cluster", "codes", "patients", "profile")
MATRICES = ("accesses", "seen")
PARTS = ("data", "indices", "indptr")
PLAIN = ("until", "method", "simulated")
"""How `Findings` lie on disk, beside their specialties."""


def read_findings(folder: str | Path) -> Findings:
    """Read what `Findings.save` wrote.

    Raises
    ------
    ModelError
        If the folder is missing, damaged or of another kind.
    """
    stored = load_model(folder, kind=KIND)
    meta, arrays = stored.meta, stored.arrays
    shape = (len(arrays["users"]), len(arrays["codes"]))

    def matrix(name: str) -> sparse.csr_array:
        return sparse.csr_array(tuple(arrays[f"{name}_{part}"] for part in PARTS), shape=shape)

    specialties = [
        specialty_from(one, np.flatnonzero(arrays["cluster"] == k))
        for k, one in enumerate(meta["specialties"])
    ]
    kept: dict[str, Any] = {name: arrays[name] for name in ARRAYS}
    kept |= {name: matrix(name) for name in MATRICES} | {name: meta[name] for name in PLAIN}
    return Findings(**kept, specialties=specialties)


def findings_of(log: AccessLog, discovery: Discovery) -> Findings:
    """Keep what a log taught, for `carry`."""
    units = units_of(log, fewest_users=1)
    group, n_groups = discovery.cluster, len(discovery.specialties)
    if (others := discovery.other_groups) is not None:
        group = np.where((group < 0) & (others >= 0), n_groups + others, group)
        n_groups += int(others.max(initial=-1)) + 1
    profile = np.zeros((n_groups + 1, len(log.codes)))
    profile[:, units.code] = profiles_of(units, group, n_groups)
    return Findings(
        users=log.users,
        taxonomy=log.taxonomy,
        cluster=discovery.cluster,
        codes=log.codes,
        accesses=log.user_diagnosis(),
        seen=spread(units, len(log.codes)),
        patients=units.patients(),
        profile=profile,
        specialties=discovery.specialties,
        until=int(log.access_at.max()),
        method=discovery.method,
        simulated=log.simulated,
    )


def with_users(specialties: Iterable[Specialty], cluster: np.ndarray) -> list[Specialty]:
    """Return specialties whose users are those of each cluster."""
    return [replace(one, users=np.flatnonzero(cluster == k)) for k, one in enumerate(specialties)]


def places(wanted: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of ids in a sorted array, and which of them are there at all."""
    place = np.searchsorted(among, wanted).clip(max=len(among) - 1)
    return place, among[place] == wanted


def shared_codes(codes: np.ndarray, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of the codes that both have, in either."""
    place, known = places(codes, among)
    return np.flatnonzero(known), place[known]


def spread(units: Units, n_codes: int) -> sparse.csr_array:
    """Users × all codes: patients of whom the user saw the diagnosis."""
    seen = np.zeros((units.n_users, n_codes), dtype=np.int32)
    seen[:, units.code] = units.counts().toarray()
    return sparse.csr_array(seen)
