"""How well a specialty covers a record: the lift of its diagnoses among the specialty's users."""

from dataclasses import dataclass

import numpy as np

from telic.kernels import kernel
from telic.specialty.alarms.beyond_chance import SPECIALTY_LIKELIER, FirstReasons
from telic.specialty.discovery.result import Discovery
from telic.specialty.later_logs.kept_findings import Findings, Staff, staff_of
from telic.specialty.log.access_log import AccessLog

COVERED = 1.0
"""Lift above which a specialty covers a diagnosis."""
SHRINK = 200.0
"""Imagined accesses of the hospital's mix that every specialty's profile starts from."""


@kernel
def _best_lift(user, encounter, start, code, profile_of, counts, own, base, shrink, best, reason):
    """Largest lift, over an encounter's codes, for the user's profile without the user's share."""
    for a in range(len(user)):
        u = user[a]
        k = profile_of[u]
        best[a] = -1.0
        for p in range(start[encounter[a]], start[encounter[a] + 1]):
            d = code[p]
            here, total = 0.0, 0.0
            if k >= 0:
                here = counts[k, d] - own[u, d]
                total = counts[k, -1] - own[u, -1]
            lift = (here + shrink * base[d]) / ((total + shrink) * base[d])
            if lift > best[a]:
                best[a] = lift
                reason[a] = d


@dataclass(frozen=True, eq=False)
class Coverage:
    """Profiles of everybody who is known, to judge any user's look at any record."""

    log: AccessLog
    staff: Staff
    own: np.ndarray
    """The log's users × (codes, all): their own accesses, which never count for them."""

    def declared(self, user: np.ndarray, encounter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the largest lift of each encounter's diagnoses under the declared specialty.

        With it comes the code that decided it. The lift is 1 where the user declares none.
        """
        taxonomy = self.staff.taxonomy
        codes = np.unique(taxonomy[taxonomy != ""])
        group = np.where(taxonomy == "", -1, np.searchsorted(codes, taxonomy))
        return self._best(group[self.staff.place], self.staff.profiles(group), user, encounter)

    def practised(self, user: np.ndarray, encounter: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same under the de facto specialty."""
        group = self.staff.cluster
        return self._best(group[self.staff.place], self.staff.profiles(group), user, encounter)

    def beside(
        self, users: np.ndarray, profiles: np.ndarray, user: np.ndarray, encounter: np.ndarray
    ) -> np.ndarray:
        """Return the largest lift under a profile of each of some `users`; 1 for others.

        The profiles, of shape (len(users), n_codes + 1), are without what these themselves saw.
        """
        group = np.full(len(self.own), -1)
        group[users] = np.arange(len(users))
        # The kernel takes the user's own accesses from the profile: give them to it first.
        return self._best(group, profiles + self.own[users], user, encounter)[0]

    def _best(
        self, group: np.ndarray, profiles: np.ndarray, user: np.ndarray, encounter: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        base = self.staff.seen[:, :-1].sum(axis=0) / self.staff.seen[:, -1].sum()
        base[base == 0] = 1.0
        lift, code = np.empty(len(user)), np.zeros(len(user), dtype=np.int32)
        codes = self.log.diagnosis.indptr, self.log.diagnosis.indices
        known = group.astype(np.int32), profiles, self.own, base, SHRINK
        _best_lift(user, encounter, *codes, *known, lift, code)
        # A specialty that opens what the hospital does has a lift of 1, which rounding would move.
        return lift.round(12), code


def coverage_of(log: AccessLog, discovery: Discovery, before: Findings | None = None) -> Coverage:
    """Make profiles of a log's users, and of those that earlier findings know.

    Examples
    --------
    >>> from telic.simulate.hospital_families import simulate_family
    >>> log = simulate_family("wards", 0).log
    >>> nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    >>> lift, _ = coverage_of(log, nothing).practised(log.access_user, log.access_encounter)
    >>> bool((lift == 1).all())
    True
    """
    staff = staff_of(log, discovery) if before is None else before.staff(log, discovery)
    return Coverage(log, staff, staff.seen[staff.place])


def ask_specialties(
    first: FirstReasons, discovery: Discovery, coverage: Coverage
) -> tuple[np.ndarray, np.ndarray]:
    """Ask whether the declared, then the practised specialty explains accesses.

    Returned is the diagnosis of each access's record that each covers best, −1 if it covers none.
    """
    covered = []
    for kind, has, lifts in (
        ("declared", coverage.log.taxonomy != "", coverage.declared),
        ("practised", discovery.cluster >= 0, coverage.practised),
    ):
        (lift, best), (by_chance, _) = lifts(*first.made), lifts(*first.chance)
        lift = np.where(has[first.made[0]], lift, 0.0)
        by_chance = np.where(has[first.chance[0]], by_chance, 0.0)
        first.ask(kind, lift, by_chance, SPECIALTY_LIKELIER)
        covered.append(np.where(lift > COVERED, best, -1))
    return covered[0], covered[1]
