"""A hospital's access log: who opened which record, and what was diagnosed there."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from telic.data import contracts
from telic.data.store import atomic_path
from telic.errors import InputError
from telic.specialty.codes import categorise, read_vocabulary
from telic.specialty.small_cells import shown
from telic.specialty.tables import find_table, is_simulated, read_table


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
        matrix = _count(self.access_user[rows], patient, (len(self.users), len(self.patients)))
        matrix.data[:] = 1
        return matrix

    def user_encounter(self, rows: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Users × encounters: 1 where the user opened a record of the encounter."""
        shape = (len(self.users), len(self.encounters))
        matrix = _count(self.access_user[rows], self.access_encounter[rows], shape)
        matrix.data[:] = 1
        return matrix

    def patient_diagnosis(self) -> sparse.csr_array:
        """Patients × codes: encounters of the patient with the diagnosis (P–D)."""
        belongs = _count(
            self.encounter_patient,
            np.arange(len(self.encounters)),
            (len(self.patients), len(self.encounters)),
        )
        return belongs @ self.diagnosis

    def user_diagnosis(self, rows: np.ndarray | slice = slice(None)) -> sparse.csr_array:
        """Users × codes: accesses to encounters with the diagnosis, v_u(d) of section 6.4.4."""
        opened = _count(
            self.access_user[rows],
            self.access_encounter[rows],
            (len(self.users), len(self.encounters)),
        )
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


def read_log(
    folder: str | Path, *, on_bad_row: str = "raise", code_table: str | Path | None = None
) -> AccessLog:
    """Read an access log that keeps data contract 3.

    Parameters
    ----------
    folder : path
        Holds ``accesses``, ``diagnoses``, ``providers`` (Parquet or CSV), ``meta.json`` and,
        optionally, ``access_diagnoses``.
    on_bad_row : {"raise", "skip"}
        What to do with a row that breaks the contract. Duplicated rows, accesses to encounters
        without a diagnosis, and second codes of a provider are dropped and counted either way.
    code_table : path, optional
        See `telic.specialty.codes.categorise`.

    Returns
    -------
    AccessLog

    Raises
    ------
    InputError
        Naming file, row and column, and never a value, which may be an id.
    """
    folder = Path(folder)
    vocabulary = read_vocabulary(folder)
    notes: list[str] = []

    def read(name: str, schema: pa.Schema) -> pa.Table:
        table, found = read_table(find_table(folder, name), schema, on_bad_row=on_bad_row)
        notes.extend(found)
        return table

    accesses = read("accesses", contracts.ACCESSES)
    diagnoses = read("diagnoses", contracts.DIAGNOSES)
    providers = read("providers", contracts.PROVIDERS)
    if not accesses.num_rows or not diagnoses.num_rows:
        empty = "accesses" if not accesses.num_rows else "diagnoses"
        raise InputError(f"{find_table(folder, empty)}: holds no usable row.")

    users, (provider, access_user) = _number(providers["user"], accesses["user"])
    taxonomy = _declared(users, provider, providers, access_user, accesses["row"], notes)
    patients, (diagnosis_patient, access_patient) = _number(
        diagnoses["patient"], accesses["patient"]
    )
    encounters, (diagnosis_encounter,) = _number(diagnoses["encounter"])
    raw_codes, (diagnosis_code,) = _number(diagnoses["code"])

    encounter_patient = np.full(len(encounters), -1, dtype=np.int32)
    encounter_patient[diagnosis_encounter[::-1]] = diagnosis_patient[::-1]
    other = encounter_patient[diagnosis_encounter] != diagnosis_patient
    reason = "the encounter's other rows name another patient"
    _refuse(other, diagnoses, "diagnoses", reason, on_bad_row, notes)
    pair = np.stack([diagnosis_encounter[~other], diagnosis_code[~other]])
    categories = categorise(raw_codes.tolist(), vocabulary=vocabulary, code_table=code_table)
    codes, code_of = np.unique(np.array(categories.category, dtype=str), return_inverse=True)
    if categories.outside:
        outside = np.isin(raw_codes, categories.outside)[diagnosis_code]
        notes.append(
            f"diagnoses: {len(categories.outside):,} codes ({shown(int(outside.sum()))} rows) are "
            f"outside the vocabulary {vocabulary!r} and kept as they are (the first is in row "
            f"{diagnoses['row'][int(outside.argmax())]})"
        )
    distinct = _count(pair[0], pair[1], (len(encounters), len(raw_codes)))
    if (repeated := int(distinct.sum()) - distinct.nnz) > 0:
        notes.append(f"diagnoses: {shown(repeated)} duplicated rows dropped")
    diagnosis = _count(pair[0], code_of[pair[1]].astype(np.int32), (len(encounters), len(codes)))
    diagnosis.data[:] = 1

    index = pc.index_in(accesses["encounter"].cast(pa.string()), pa.array(encounters.tolist()))
    access_encounter = index.fill_null(-1).to_numpy().astype(np.int32)
    known = access_encounter >= 0
    if not known.all():
        notes.append(
            f"accesses: {shown(int((~known).sum()))} rows dropped: their encounter has no "
            f"diagnosis (the first is row {accesses['row'][int((~known).argmax())]})"
        )
    elsewhere = known & (encounter_patient[access_encounter] != access_patient)
    reason = "the encounter belongs to another patient in diagnoses"
    _refuse(elsewhere, accesses, "accesses", reason, on_bad_row, notes)
    at = accesses["at"].to_numpy().astype("datetime64[us]").astype(np.int64)
    keep = np.flatnonzero(known & ~elsewhere)
    order = keep[np.lexsort((at[keep], access_encounter[keep], access_user[keep]))]
    again = (
        (np.diff(access_user[order]) == 0)
        & (np.diff(access_encounter[order]) == 0)
        & (np.diff(at[order]) == 0)
    )
    if again.any():
        notes.append(f"accesses: {shown(int(again.sum()))} duplicated rows dropped")
        order = np.delete(order, np.flatnonzero(again) + 1)
    if not len(order):
        raise InputError(f"{find_table(folder, 'accesses')}: no access is to a known encounter.")
    fine, fine_patient = _read_fine(
        folder,
        users,
        patients,
        dict(zip(raw_codes, code_of, strict=True)),
        len(codes),
        on_bad_row,
        notes,
    )
    log = AccessLog(
        users=users,
        taxonomy=taxonomy,
        patients=patients,
        encounters=encounters,
        codes=codes,
        labels=categories.label,
        access_user=access_user[order],
        access_encounter=access_encounter[order],
        access_at=at[order],
        access_row=accesses["row"].to_numpy()[order],
        encounter_patient=encounter_patient,
        diagnosis=diagnosis,
        fine=fine,
        fine_patient=fine_patient,
        simulated=is_simulated(folder),
        notes=notes,
    )
    _note_gaps(log)
    return log


def write_log(
    folder: str | Path,
    tables: Mapping[str, pa.Table],
    *,
    vocabulary: str,
    simulated: bool = False,
    lacks: Mapping[str, str] | None = None,
) -> None:
    """Write an access log, whole or not at all.

    Parameters
    ----------
    folder : path
        Must not exist.
    tables : mapping of str to pyarrow.Table
        ``accesses``, ``diagnoses``, ``providers`` and any further table.
    vocabulary : {"icd9", "icd10", "ccs", "other"}
    simulated : bool
        Marks every file as simulated.
    lacks : mapping of str to str, optional
        What the log's source does not have, and why; goes to ``meta.json``.
    """
    folder = Path(folder)
    if folder.exists():
        raise InputError(f"{folder}: exists already and is not overwritten. Choose another name.")
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        for name, table in tables.items():
            if simulated:
                table = table.replace_schema_metadata({contracts.SIMULATED: b"true"})
            pq.write_table(table, temporary / f"{name}.parquet", compression="zstd")
        meta = json.dumps(
            {"vocabulary": vocabulary} | ({"lacks": lacks} if lacks else {}), indent=1
        )
        (temporary / "meta.json").write_text(meta, encoding="utf-8")


def _number(*columns: pa.ChunkedArray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the ids of several columns together, in sorted order."""
    encoded = [column.unify_dictionaries().combine_chunks() for column in columns]
    values = [np.asarray(one.dictionary.to_pylist(), dtype=object) for one in encoded]
    used = [
        value[np.unique(one.indices.to_numpy())] for one, value in zip(encoded, values, strict=True)
    ]
    ids = np.array(sorted(set().union(*used)), dtype=str)
    numbers = []
    for one, value in zip(encoded, values, strict=True):
        place = pc.index_in(pa.array(value.tolist(), pa.string()), pa.array(ids.tolist()))
        place = place.fill_null(-1).to_numpy().astype(np.int32)
        numbers.append(place[one.indices.to_numpy()])
    return ids, numbers


def _declared(
    users: np.ndarray,
    provider: np.ndarray,
    providers: pa.Table,
    access_user: np.ndarray,
    access_row: pa.ChunkedArray,
    notes: list[str],
) -> np.ndarray:
    """The first code each provider declares."""
    column = providers["taxonomy"].cast(pa.string())
    declared = np.array([code or "" for code in column.to_pylist()], dtype=object)
    taxonomy = np.full(len(users), "", dtype=object)
    has_code = declared != ""
    taxonomy[provider[has_code][::-1]] = declared[has_code][::-1]
    second = has_code & (taxonomy[provider] != declared)
    if second.any():
        several = np.unique(provider[second])
        notes.append(
            f"providers: {shown(len(several))} declare more than one code; the first is used, "
            f"{shown(int(second.sum()))} rows dropped (the first is row "
            f"{providers['row'][int(second.argmax())]})"
        )
    unlisted = np.setdiff1d(access_user, provider)
    if len(unlisted):
        first = int(np.isin(access_user, unlisted).argmax())
        notes.append(
            f"providers: {shown(len(unlisted))} users of accesses are not listed and count as "
            f"without a code (the first is in row {access_row[first]} of accesses)"
        )
    if not (taxonomy != "").any():
        notes.append("providers: nobody declares a code, so no specialty can count as listed")
    return taxonomy.astype(str)


def _refuse(
    bad: np.ndarray, table: pa.Table, name: str, reason: str, on_bad_row: str, notes: list[str]
) -> None:
    if not bad.any():
        return
    first = table["row"][int(bad.argmax())]  # the ids of patients are not for messages
    if on_bad_row == "raise":
        raise InputError(
            f"{name}: row {first}: 'patient': {reason}. Correct the row or skip bad rows "
            "(on_bad_row='skip', --skip-bad-rows)."
        )
    notes.append(
        f"{name}: {shown(int(bad.sum()))} rows skipped: {reason} (the first is row {first})"
    )


def _read_fine(
    folder: Path,
    users: np.ndarray,
    patients: np.ndarray,
    code_of: Mapping[str, int],
    n_codes: int,
    on_bad_row: str,
    notes: list[str],
) -> tuple[sparse.csr_array | None, sparse.csr_array | None]:
    try:
        path = find_table(folder, "access_diagnoses")
    except InputError:
        return None, None
    table, found = read_table(path, contracts.ACCESS_DIAGNOSES, on_bad_row=on_bad_row)
    notes.extend(found)
    columns = {
        "user": {name: i for i, name in enumerate(users)},
        "patient": {name: i for i, name in enumerate(patients)},
        "code": code_of,
    }
    number = {}
    for name, places in columns.items():
        column = table[name].unify_dictionaries().combine_chunks()
        place = np.array([places.get(one, -1) for one in column.dictionary.to_pylist()], np.int32)
        number[name] = place[column.indices.to_numpy()] if len(place) else np.empty(0, np.int32)
    known = np.all([place >= 0 for place in number.values()], axis=0)
    if not known.all():
        notes.append(
            f"access_diagnoses: {shown(int((~known).sum()))} rows dropped: their user, patient or "
            f"code is in no other table (the first is row {table['row'][int((~known).argmax())]})"
        )
    user, patient, code = (number[name][known] for name in ("user", "patient", "code"))
    fine_patient = _count(user, patient, (len(users), len(patients)))
    fine_patient.data[:] = 1
    return _count(user, code, (len(users), n_codes)), fine_patient


def _note_gaps(log: AccessLog) -> None:
    month = log.month()
    present = np.bincount(month - month.min())
    if not present.all():
        empty = np.flatnonzero(present == 0) + month.min()
        names = ", ".join(str(np.datetime64(int(one), "M")) for one in empty[:5])
        more = f" and {len(empty) - 5:,} more months" if len(empty) > 5 else ""
        log.notes.append(f"accesses: no access in {names}{more}")


def _count(row: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """Count pairs into a sparse matrix."""
    ones = np.ones(len(row), dtype=np.int32)
    matrix = sparse.coo_array((ones, (row, column)), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix
