"""Who works with whom: users whose colleagues opened a record have a reason to open it too.

Two users work together as far as they opened the same encounters of more patients than chance
gives. What speaks for an access is how well its user works with the record's other users, beside
what the same user's work says of records drawn at random: an access is explained from the figure
on that is `LIKELIER` times as frequent among accesses as among random records.
"""

from dataclasses import dataclass

import numpy as np

from telic.kernels import kernel
from telic.specialty.log.access_log import AccessLog

LIKELIER = 1.0
"""How many times as frequent among accesses a figure must be as among random records. With 1, as
many more accesses as possible are explained than random records."""
RANDOM_RECORDS = 20_000
"""Random records that are looked at, at most."""
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
    expected: np.ndarray
    """Square root of the number of patients that two such users share by chance, so that the
    product of two users' is their number."""

    def strength(self, user: np.ndarray, encounter: np.ndarray, *, opened: bool) -> np.ndarray:
        """Return how well users work with the other users of an encounter's record.

        Between two users it is ln((s + ½)/(c + ½)), 0 at least, where they opened the same
        encounters of s patients, and of c by chance. The mean over the record's other users is
        returned, so that a record that many look up out of curiosity excuses nobody.

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
        found[order] = _strength(user[order], encounter[order], *self._arrays(), int(opened))
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


def care_of(log: AccessLog) -> Care:
    """Prepare a log for asking who works with whom.

    Examples
    --------
    >>> from telic.simulate.hospital_families import simulate_family
    >>> log = simulate_family("wards", 0).log
    >>> care = care_of(log)
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
    return Care(
        opened.indptr,
        opened.indices[order],
        log.encounter_patient,
        openers.indptr,
        openers.indices,
        encounters * np.sqrt(by_chance),
    )


def random_records(log: AccessLog, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw users by their number of accesses, and for each an encounter that somebody opened.

    Returns
    -------
    user, encounter : ndarray of int
        Pairs of which the user did not open the encounter.
    """
    rng = np.random.default_rng(seed)
    user = rng.choice(log.access_user, RANDOM_RECORDS)
    encounter = rng.choice(np.unique(log.access_encounter), RANDOM_RECORDS)
    opened = log.user_encounter()
    strange = np.asarray(opened[user, encounter]).ravel() == 0
    return user[strange], encounter[strange]


def limit(accesses: np.ndarray, by_chance: np.ndarray, *, likelier: float = LIKELIER) -> float:
    """Return the figure from which on accesses are `likelier` times as frequent as by chance.

    Parameters
    ----------
    accesses, by_chance : ndarray of float
        Figures of accesses and of random records.
    likelier : float

    Returns
    -------
    float
        What a figure must exceed; infinite if none is likelier enough, or nothing was given.

    Examples
    --------
    >>> limit(np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    1.0
    """
    if not len(accesses) or not len(by_chance):
        return np.inf
    tried = np.unique(np.concatenate([accesses, by_chance]))
    above = [
        1 - np.searchsorted(np.sort(x), tried, side="right") / len(x) for x in (accesses, by_chance)
    ]
    gain = above[0] - likelier * above[1]
    best = int(gain.argmax())
    return float(tried[best]) if gain[best] > 0 else np.inf


def treated(log: AccessLog, care: Care, *, seed: int = 0) -> np.ndarray:
    """Say which accesses the record's other users explain.

    Returns
    -------
    ndarray of bool
        In the order of ``log.access_row``.
    """
    made = care.strength(log.access_user, log.access_encounter, opened=True)
    chance = care.strength(*random_records(log, seed), opened=False)
    return made > limit(made, chance)


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
def _strength(user, asked, rows, expected, own):
    """Mean strength between each pair's user and the encounter's other users; sorted by user."""
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
                    total += np.log(ratio)
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
