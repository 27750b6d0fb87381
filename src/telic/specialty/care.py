"""Who works with whom: users who open the same patients' records more often than by chance."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy import sparse

from telic.specialty.access import AccessLog

LEAST_SHARED = 2
"""Patients, beside the one in question, that colleagues share at least."""
TIMES_CHANCE = 3.0
"""How many times the number of patients shared by chance they share at least."""


@dataclass(frozen=True, eq=False)
class Care:
    """Users' colleagues, and who opened each encounter's record."""

    colleagues: sparse.csr_array
    """Users × users: 2 for colleagues, 1 for those who are only if no shared patient is left out,
    nothing for others."""
    openers: sparse.csr_array
    """Encounters × users, 1 where the user opened a record of the encounter."""

    def share(self, user: np.ndarray, encounter: np.ndarray, *, opened: bool) -> np.ndarray:
        """Return the share of an encounter's other users who are the user's colleagues.

        Parameters
        ----------
        user, encounter : ndarray of int
            Pairs, in any order.
        opened : bool
            Whether the users opened these records. If so, the patient in question does not count
            among those that make two users colleagues: nobody is excused by the access itself.

        Returns
        -------
        ndarray of float
            In [0, 1]; 0 where nobody else opened the record.
        """
        order = np.argsort(user, kind="stable")
        found = np.empty(len(user))
        found[order] = _share(
            user[order],
            encounter[order],
            self.openers.indptr,
            self.openers.indices,
            self.colleagues.indptr,
            self.colleagues.indices,
            self.colleagues.data,
            2 if opened else 1,
        )
        return found

    def profiles(self, counts: np.ndarray, users: np.ndarray) -> np.ndarray:
        """Add up what some users' colleagues see.

        Parameters
        ----------
        counts : ndarray of shape (n_users, n_columns)
        users : ndarray of int

        Returns
        -------
        ndarray of shape (len(users), n_columns)
            The users' own rows do not count.
        """
        colleagues = self.colleagues[users]
        colleagues.data = (colleagues.data == 2).astype(np.float64)
        return np.asarray(colleagues @ counts)


def care_of(log: AccessLog) -> Care:
    """Find every user's colleagues.

    Two users are colleagues if they opened records of `LEAST_SHARED` patients both, and of
    `TIMES_CHANCE` times as many as they would if each kept their number of patients and each
    patient their number of users.

    Examples
    --------
    >>> from telic.simulate.hospital_families import simulate_family
    >>> care = care_of(simulate_family("wards", 0).log)
    >>> care.colleagues.shape, bool((care.colleagues.diagonal() == 0).all())
    ((150, 150), True)
    """
    opened = log.user_patient()
    patients = np.asarray(opened.sum(axis=1)).ravel().astype(np.float64)
    users = np.asarray(opened.sum(axis=0)).ravel().astype(np.float64)
    by_chance = (users**2).sum() / users.sum() ** 2
    shared = sparse.coo_array(opened @ opened.T)
    first, second = shared.coords
    least = np.maximum(LEAST_SHARED, TIMES_CHANCE * by_chance * patients[first] * patients[second])
    level = (shared.data >= least).astype(np.int8) + (shared.data - 1 >= least)
    kept = (level > 0) & (first != second)
    found = sparse.coo_array((level[kept], (first[kept], second[kept])), shape=shared.shape)
    openers = sparse.csr_array(log.user_encounter().T)
    return Care(sparse.csr_array(found), openers)


@njit(cache=True, nogil=True)
def _share(user, encounter, openers_start, openers, start, colleagues, level, least):
    """Share of other openers who are colleagues of at least this level; pairs sorted by user."""
    found = np.zeros(len(user))
    mark = np.zeros(len(start) - 1, dtype=np.bool_)
    first = 0
    while first < len(user):
        u = user[first]
        for p in range(start[u], start[u + 1]):
            mark[colleagues[p]] = level[p] >= least
        last = first
        while last < len(user) and user[last] == u:
            here, others = 0, 0
            for p in range(openers_start[encounter[last]], openers_start[encounter[last] + 1]):
                if openers[p] != u:
                    others += 1
                    here += mark[openers[p]]
            if others:
                found[last] = here / others
            last += 1
        for p in range(start[u], start[u + 1]):
            mark[colleagues[p]] = False
        first = last
    return found
