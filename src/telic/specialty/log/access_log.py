"""A hospital's access log: who opened which record, and what was diagnosed there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse


@dataclass(frozen=True, eq=False)
class AccessLog:
    """An access log as arrays; ids are numbered in sorted order, so rows may come in any order."""

    users: np.ndarray
    taxonomy: np.ndarray
    """Declared specialty of each user, ``""`` for none."""
    patients: np.ndarray
    encounters: np.ndarray
    codes: np.ndarray
    """Diagnosis categories."""
    labels: Mapping[str, str]
    """Names of categories, where known."""
    access_user: np.ndarray
    access_encounter: np.ndarray
    access_at: np.ndarray
    """Microseconds since 1970, UTC."""
    access_row: np.ndarray
    """1-based row in the accesses file, so that every finding can be traced."""
    encounter_patient: np.ndarray
    diagnosis: sparse.csr_array
    """Encounters × codes, 1 where the code was diagnosed."""
    fine: sparse.csr_array | None
    """Users × codes: accesses tied to the code (the fine-grained view); None if not given."""
    fine_patient: sparse.csr_array | None
    """Users × patients of the fine-grained view."""
    simulated: bool
    notes: list[str] = field(default_factory=list)
    """What was dropped, skipped or assumed, with counts."""

    def label(self, code: str) -> str:
        """Return the name of a category, or the category itself."""
        return self.labels.get(code, code)

    def user_patient(self, rows: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Users × patients: 1 where the user opened a record of the patient (U–P)."""
        patient = self.encounter_patient[self.access_encounter[rows]]
        return mark_pairs(self.access_user[rows], patient, (len(self.users), len(self.patients)))

    def user_encounter(self, rows: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Users × encounters: 1 where the user opened a record of the encounter."""
        shape = (len(self.users), len(self.encounters))
        return mark_pairs(self.access_user[rows], self.access_encounter[rows], shape)

    def patient_diagnosis(self) -> sparse.csr_array:
        """Patients × codes: encounters of the patient with the diagnosis (P–D)."""
        shape = (len(self.patients), len(self.encounters))
        belongs = count_pairs(self.encounter_patient, np.arange(len(self.encounters)), shape)
        return belongs @ self.diagnosis

    def user_diagnosis(self, rows: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Users × codes: accesses to encounters with the diagnosis, v_u(d) of section 6.4.4."""
        shape = (len(self.users), len(self.encounters))
        opened = count_pairs(self.access_user[rows], self.access_encounter[rows], shape)
        return opened @ self.diagnosis

    def n_patients(self, accesses: np.ndarray) -> int:
        """Distinct patients of some accesses (indices or a mask)."""
        seen = np.zeros(len(self.patients), dtype=bool)
        seen[self.encounter_patient[self.access_encounter[accesses]]] = True
        return int(seen.sum())

    def diagnosed_patients(self, users: np.ndarray) -> np.ndarray:
        """Distinct patients per code, among the encounters whose records `users` opened."""
        member = np.zeros(len(self.users), dtype=bool)
        member[users] = True
        opened = np.unique(self.access_encounter[member[self.access_user]])
        diagnosed = self.diagnosis[opened].tocoo()
        patient = self.encounter_patient[opened][diagnosed.coords[0]]
        pairs = np.unique(patient * np.int64(len(self.codes)) + diagnosed.coords[1])
        return np.bincount(pairs % len(self.codes), minlength=len(self.codes))

    def month(self) -> np.ndarray:
        """Return the calendar month of each access, as months since January 1970."""
        at = self.access_at.astype("datetime64[us]")
        return at.astype("datetime64[M]").astype(np.int64)

    def class_sizes(self) -> dict[str, int]:
        """Users per declared specialty, largest first."""
        names, sizes = np.unique(self.taxonomy[self.taxonomy != ""], return_counts=True)
        order = np.lexsort((names, -sizes))
        return {str(names[i]): int(sizes[i]) for i in order}


def count_pairs(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Count pairs into a sparse matrix."""
    ones = np.ones(len(row), dtype=np.int32)
    # Places of eight bytes would stay so in all that is made of this.
    place = np.int32 if max(*shape, len(row)) < 2**31 else np.int64
    places = row.astype(place, copy=False), column.astype(place, copy=False)
    matrix = sparse.coo_array((ones, places), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix


def mark_pairs(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Return a sparse matrix with 1 at each pair, however often it comes."""
    matrix = count_pairs(row, column, shape)
    matrix.data[:] = 1
    return matrix
