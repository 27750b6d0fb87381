"""Who works with whom: users whose colleagues opened a record have a reason to open it too.

Two users work together as far as they opened the same encounters of more patients than chance
gives. What speaks for an access is how well its user works with the record's other users, beside
what the same user's work says of records drawn at random.

Several people of one team who look at a record out of curiosity work together as well as those who
treat the patient. But such patients are not what their specialty sees, so a colleague counts less
if no specialty explains the colleague's own access.
"""

from dataclasses import dataclass

import numpy as np

from telic.kernels import kernel
from telic.specialty.alarms.beyond_chance import LIKELIER, FirstReasons
from telic.specialty.alarms.diagnosis_lifts import Coverage, ask_specialties, coverage_of
from telic.specialty.discovery.result import Discovery
from telic.specialty.later_logs.kept_findings import Findings
from telic.specialty.log.access_log import AccessLog

UNEXPLAINED = 0.4
"""Weight of a colleague whose own access to the record no specialty explains."""
BLOCK = 256
"""Users whose colleagues are held at once."""


@dataclass(frozen=True, eq=False)
class Care:
    """Who opened which encounter's record, in the order that counting shared patients needs."""

    user_start: np.ndarray
    encounter: np.ndarray
    """Encounters of each user, by patient."""
    patient: np.ndarray
    """Patient of each encounter."""
    opener_start: np.ndarray
    opener: np.ndarray
    """Users of each encounter."""
    weight: np.ndarray
    """Of each of these: 1 if a specialty explains the user's access, else `UNEXPLAINED`."""
    expected: np.ndarray
    """Square root of the number of patients that two such users share by chance, so that the
    product of two users' is their number."""
    coverage: Coverage
    """How well specialties cover records."""
    seed: int
    """Fixes the random records that accesses are compared with."""

    def strength(self, user: np.ndarray, encounter: np.ndarray, *, opened: bool) -> np.ndarray:
        """Return how well users work with the other users of an encounter's record.

        Between two users it is ln((s + ½)/(c + ½)), 0 at least, where they opened the same
        encounters of s patients, and of c by chance. The mean, over the record's other users, of
        this times the user's weight is returned, so that a record that many look up out of
        curiosity excuses nobody.

        Parameters
        ----------
        user, encounter : ndarray of int
            Pairs, in any order.
        opened : bool
            Whether the users opened these records. If so, the patient in question is not counted
            in s: nobody is excused by the access itself.

        Returns
        -------
        ndarray of float
            0 where nobody else opened the record.
        """
        order = np.argsort(user, kind="stable")
        found = np.empty(len(user))
        rows, expected = self._arrays()
        found[order] = _strength(
            user[order], encounter[order], rows, expected, self.weight, int(opened)
        )
        return found

    def profiles(self, counts: np.ndarray, users: np.ndarray) -> np.ndarray:
        """Add up what some users' colleagues see, each colleague by how well they work together.

        Parameters
        ----------
        counts : ndarray of shape (n_users, n_columns)
        users : ndarray of int

        Returns
        -------
        ndarray of shape (len(users), n_columns)
            The users' own rows do not count.
        """
        found = np.empty((len(users), counts.shape[1]))
        for first in range(0, len(users), BLOCK):
            block = slice(first, first + BLOCK)
            found[block] = _colleagues(users[block], *self._arrays()) @ counts
        return found

    def _arrays(self) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        rows = self.user_start, self.encounter, self.patient, self.opener_start, self.opener
        return rows, self.expected


def care_of(
    log: AccessLog, discovery: Discovery, *, before: Findings | None = None, seed: int = 0
) -> Care:
    """Prepare a log for asking who works with whom.

    Parameters
    ----------
    log, discovery
    before : Findings, optional
        As in `judge`.
    seed : int
        Fixes the random records that accesses are compared with.

    Examples
    --------
    >>> from telic.simulate.hospital_families import simulate_family
    >>> log = simulate_family("wards", 0).log
    >>> nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    >>> care = care_of(log, nothing)
    >>> found = care.strength(log.access_user[:3], log.access_encounter[:3], opened=True)
    >>> found.shape, bool((found >= 0).all())
    ((3,), True)
    """
    opened = log.user_encounter()
    openers = opened.T.tocsr()
    user = np.repeat(np.arange(len(log.users)), np.diff(opened.indptr))
    order = np.lexsort((log.encounter_patient[opened.indices], user))
    encounters = np.diff(opened.indptr).astype(np.float64)
    size = np.diff(openers.indptr).astype(np.float64)
    by_chance = (size * (size - 1)).sum() / size.sum() ** 2

    first = FirstReasons(log, seed)
    coverage = coverage_of(log, discovery, before)
    ask_specialties(first, discovery, coverage)
    # Pairs of encounter and user as numbers; those of `openers` ascend.
    n_users = np.int64(len(log.users))
    pair = np.repeat(np.arange(len(size)), np.diff(openers.indptr)) * n_users + openers.indices
    fits = first.kind > 0
    weight = np.full(len(pair), UNEXPLAINED)
    weight[np.searchsorted(pair, log.access_encounter[fits] * n_users + log.access_user[fits])] = 1
    return Care(
        opened.indptr,
        opened.indices[order],
        log.encounter_patient,
        openers.indptr,
        openers.indices,
        weight,
        encounters * np.sqrt(by_chance),
        coverage,
        seed,
    )


def ask_colleagues(first: FirstReasons, care: Care) -> None:
    """Ask whether the record's other users explain accesses."""
    made = care.strength(*first.made, opened=True)
    first.ask("colleagues", made, care.strength(*first.chance, opened=False), LIKELIER)


@kernel
def _shared(u, rows, shared, last):
    """Count the patients whose same encounters a user and each other user opened."""
    user_start, encounter, patient, opener_start, opener = rows
    shared[:] = 0
    last[:] = -1
    for a in range(user_start[u], user_start[u + 1]):
        e = encounter[a]
        for p in range(opener_start[e], opener_start[e + 1]):
            v = opener[p]
            if last[v] != patient[e]:
                shared[v] += 1
                last[v] = patient[e]
    shared[u] = 0


@kernel
def _strength(user, asked, rows, expected, weight, own):
    """Mean weighted strength between a user and an encounter's others; pairs sorted by user."""
    user_start, _, _, opener_start, opener = rows
    found = np.zeros(len(user))
    n_users = len(user_start) - 1
    shared, last = np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int64)
    for i in range(len(user)):
        u, e = user[i], asked[i]
        if i == 0 or user[i - 1] != u:
            _shared(u, rows, shared, last)
        others, total = 0, 0.0
        for p in range(opener_start[e], opener_start[e + 1]):
            v = opener[p]
            if v != u:
                others += 1
                ratio = (shared[v] - own + 0.5) / (expected[u] * expected[v] + 0.5)
                if ratio > 1.0:
                    total += weight[p] * np.log(ratio)
        if others:
            found[i] = total / others
    return found


@kernel
def _colleagues(users, rows, expected):
    """Strength between some users and all."""
    n_users = len(rows[0]) - 1
    found = np.zeros((len(users), n_users))
    shared, last = np.zeros(n_users, dtype=np.int64), np.empty(n_users, dtype=np.int64)
    for i in range(len(users)):
        u = users[i]
        _shared(u, rows, shared, last)
        for v in range(n_users):
            ratio = (shared[v] + 0.5) / (expected[u] * expected[v] + 0.5)
            if shared[v] and ratio > 1.0:
                found[i, v] = np.log(ratio)
    return found
