"""What users saw, in pieces that chance can deal: one for each user and patient."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from telic.specialty.log.access_log import AccessLog, count_pairs

FEWEST_USERS = 10
"""Diagnoses that fewer users saw are left out."""


@dataclass(frozen=True, eq=False)
class Units:
    """Pairs of a user and a patient, and the diagnoses that the user saw of the patient.

    A chart that is read again and again is one unit: repeated reading is no evidence of a practice,
    and chance must not take it apart.
    """

    user: np.ndarray
    """User of each unit."""
    patient: np.ndarray
    """Patient of each unit."""
    codes: sparse.csr_array
    """Units × diagnoses, 1 where the user saw the diagnosis of the patient."""
    n_users: int
    code: np.ndarray
    """Place of each column in `AccessLog.codes`."""

    def counts(self) -> sparse.csr_array:
        """Return users × diagnoses: patients of whom the user saw the diagnosis."""
        n = len(self.user)
        owned = count_pairs(self.user, np.arange(n), (self.n_users, n))
        return sparse.csr_array(owned @ self.codes, dtype=float)

    def patients(self) -> np.ndarray:
        """Return each user's number of patients."""
        return np.bincount(self.user, minlength=self.n_users)

    def of_active(self) -> tuple["Units", np.ndarray]:
        """Return the units of the users who have any, numbered anew, and who these users are."""
        active, user = np.unique(self.user, return_inverse=True)
        return replace(self, user=user, n_users=len(active)), active

    def dealt(self, rng: np.random.Generator) -> "Units":
        """Deal the units to users at random; each user keeps their number."""
        return replace(self, user=rng.permutation(self.user))

    def halves(self, rng: np.random.Generator) -> tuple["Units", "Units"]:
        """Cut the patients in two at random: colleagues who share one are in the same half."""
        first = (rng.random(self.patient.max(initial=-1) + 1) < 0.5)[self.patient]
        return self._of(first), self._of(~first)

    def _of(self, chosen: np.ndarray) -> "Units":
        rows = np.flatnonzero(chosen)
        return replace(
            self, user=self.user[rows], patient=self.patient[rows], codes=self.codes[rows]
        )


def units_of(
    log: AccessLog, rows: np.ndarray | slice = slice(None), *, fewest_users: int = FEWEST_USERS
) -> Units:
    """Gather the units of some accesses; diagnoses that too few users saw are left out."""
    kept = np.flatnonzero((log.user_diagnosis(rows) > 0).sum(axis=0) >= fewest_users)
    user, encounter = log.access_user[rows], log.access_encounter[rows]
    patients = np.int64(len(log.patients))
    pair, unit = np.unique(user * patients + log.encounter_patient[encounter], return_inverse=True)
    user, patient = (part.astype(np.int32) for part in (pair // patients, pair % patients))
    # Whole numbers of four bytes: in a large log these are most of what is in memory.
    codes = count_pairs(unit, encounter, (len(pair), len(log.encounters))) @ log.diagnosis[:, kept]
    codes.data[:] = 1
    return Units(user, patient, codes, len(log.users), kept)
