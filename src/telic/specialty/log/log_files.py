"""An access log in files: read by its contract, written whole or not at all."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from scipy import sparse

from telic.data import contracts
from telic.data.atomic_writes import atomic_path
from telic.errors import InputError
from telic.specialty.log.access_log import AccessLog, count_pairs, mark_pairs
from telic.specialty.log.contract_tables import find_table, is_simulated, read_table
from telic.specialty.log.diagnosis_codes import categorise, read_vocabulary
from telic.specialty.small_cells import shown


def read_log(
    folder: str | Path, *, on_bad_row: str = "raise", code_table: str | Path | None = None
) -> AccessLog:
    """Read an access log that keeps data contract 3.

    Parameters
    ----------
    folder : path
        Holds ``accesses``, ``diagnoses``, ``providers`` (Parquet or CSV), ``meta.json`` and,
        optionally, ``access_diagnoses`` and ``names``.
    on_bad_row : {"raise", "skip"}
        What to do with a row that breaks the contract. Duplicated rows, accesses to encounters
        without a diagnosis, and second codes of a provider are dropped and counted either way.
    code_table : path, optional
        See `telic.specialty.log.diagnosis_codes.categorise`.

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
    files = _Files(folder, on_bad_row)
    accesses = files.read("accesses", contracts.ACCESSES)
    diagnoses = files.read("diagnoses", contracts.DIAGNOSES)
    providers = files.read("providers", contracts.PROVIDERS)
    if not accesses.num_rows or not diagnoses.num_rows:
        empty = "accesses" if not accesses.num_rows else "diagnoses"
        raise InputError(f"{find_table(folder, empty)}: holds no usable row.")

    users, (provider, access_user) = _number(providers["user"], accesses["user"])
    names = _names(files)
    taxonomy = _declared(users, provider, providers, access_user, accesses["row"], files.notes)
    taxonomy = _called(taxonomy, names)
    patients, (diagnosis_patient, access_patient) = _number(
        diagnoses["patient"], accesses["patient"]
    )
    diagnosed = _diagnosed(diagnoses, diagnosis_patient, vocabulary, code_table, files)
    access_encounter = _places(accesses["encounter"], diagnosed.encounters)
    at = accesses["at"].to_numpy().astype("datetime64[us]").astype(np.int64)
    order = _usable(accesses, access_user, access_patient, access_encounter, at, diagnosed, files)
    if not len(order):
        raise InputError(f"{find_table(folder, 'accesses')}: no access is to a known encounter.")
    fine, fine_patient = _read_fine(files, users, patients, diagnosed)
    log = AccessLog(
        users=users,
        taxonomy=taxonomy,
        patients=patients,
        encounters=diagnosed.encounters,
        codes=diagnosed.codes,
        labels=names | diagnosed.labels,
        access_user=access_user[order],
        access_encounter=access_encounter[order],
        access_at=at[order],
        access_row=accesses["row"].to_numpy()[order],
        encounter_patient=diagnosed.encounter_patient,
        diagnosis=diagnosed.diagnosis,
        fine=fine,
        fine_patient=fine_patient,
        simulated=is_simulated(folder),
        notes=files.notes,
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


class _Files:
    """Where a log's tables are read, and what is noted of them."""

    def __init__(self, folder: Path, on_bad_row: str) -> None:
        self.folder, self.on_bad_row = folder, on_bad_row
        self.notes: list[str] = []

    def read(self, name: str, schema: pa.Schema) -> pa.Table:
        """Read a table by its contract."""
        file = find_table(self.folder, name)
        table, found = read_table(file, schema, on_bad_row=self.on_bad_row)
        self.notes += found
        return table

    def read_any(self, name: str, schema: pa.Schema) -> pa.Table | None:
        """Read a table that need not be there."""
        try:
            find_table(self.folder, name)
        except InputError:
            return None
        return self.read(name, schema)

    def drop(self, bad: np.ndarray, table: pa.Table, name: str, reason: str) -> None:
        """Note rows that are left out, if there are any."""
        if bad.any():
            count, first = shown(int(bad.sum())), table["row"][int(bad.argmax())]
            self.notes.append(f"{name}: {count} rows {reason} (the first is row {first})")

    def refuse(self, bad: np.ndarray, table: pa.Table, name: str, reason: str) -> None:
        """Raise InputError for rows of a wrong patient, or note that they are skipped."""
        if self.on_bad_row == "raise" and bad.any():
            # The ids of patients are not for messages.
            raise InputError(
                f"{name}: row {table['row'][int(bad.argmax())]}: 'patient': {reason}. Correct the "
                "row or skip bad rows (on_bad_row='skip', --skip-bad-rows)."
            )
        self.drop(bad, table, name, f"skipped: {reason}")


def _number(*columns: pa.ChunkedArray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Number the ids of several columns together, in sorted order."""
    used: set[str] = set()
    for column in columns:
        used.update(column.unify_dictionaries().unique().to_pylist())
    ids = np.array(sorted(used), dtype=str)
    return ids, [_places(column, ids) for column in columns]


def _places(column: pa.ChunkedArray, ids: np.ndarray) -> np.ndarray:
    """Return the number of each id, -1 where it is none of these."""
    encoded = column.unify_dictionaries().combine_chunks()
    known = pa.array(ids.tolist(), pa.string())
    place = pc.index_in(encoded.dictionary.cast(pa.string()), known).fill_null(-1)
    numbers: np.ndarray = place.to_numpy().astype(np.int32)
    return numbers[encoded.indices.to_numpy()]


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


def _names(files: _Files) -> dict[str, str]:
    """What codes are called, if the log says so; the first name counts."""
    table = files.read_any("names", contracts.NAMES)
    if table is None:
        return {}
    names: dict[str, str] = {}
    other = []
    for row, code, name in zip(
        *(table[column].to_pylist() for column in ("row", "code", "name")), strict=True
    ):
        if names.setdefault(code, name) != name:
            other.append(row)
    if other:
        files.notes.append(
            f"names: {len(other):,} rows dropped: their code has another name already (the first "
            f"is row {other[0]})"
        )
    return names


def _called(taxonomy: np.ndarray, names: Mapping[str, str]) -> np.ndarray:
    """Name specialties instead of their codes; codes of one name are told apart by themselves."""
    codes, of = np.unique(taxonomy, return_inverse=True)
    called = [names.get(code, code) for code in codes.tolist()]
    several = {name for name, number in Counter(called).items() if number > 1}
    told = [
        f"{name} ({code})" if name in several and name != code else name
        for name, code in zip(called, codes.tolist(), strict=True)
    ]
    return np.array(told, dtype=str)[of]


class _Diagnosed(NamedTuple):
    """The table of diagnoses, its ids numbered."""

    encounters: np.ndarray
    encounter_patient: np.ndarray
    codes: np.ndarray
    labels: dict[str, str]
    written: np.ndarray
    """Codes as they are written in the table."""
    code_of: np.ndarray
    """The number in `codes` of each of these."""
    diagnosis: sparse.csr_array
    """Encounters by codes, 1 where an encounter has a code."""


def _diagnosed(
    diagnoses: pa.Table,
    patient: np.ndarray,
    vocabulary: str,
    code_table: str | Path | None,
    files: _Files,
) -> _Diagnosed:
    encounters, (encounter,) = _number(diagnoses["encounter"])
    raw_codes, (code,) = _number(diagnoses["code"])
    encounter_patient = np.full(len(encounters), -1, dtype=np.int32)
    encounter_patient[encounter[::-1]] = patient[::-1]
    other = encounter_patient[encounter] != patient
    reason = "the encounter's other rows name another patient"
    files.refuse(other, diagnoses, "diagnoses", reason)
    categories = categorise(raw_codes.tolist(), vocabulary=vocabulary, code_table=code_table)
    codes, code_of = np.unique(np.array(categories.category, dtype=str), return_inverse=True)
    code_of = code_of.astype(np.int32)
    if categories.outside:
        outside = np.isin(raw_codes, categories.outside)[code]
        files.notes.append(
            f"diagnoses: {len(categories.outside):,} codes ({shown(int(outside.sum()))} rows) are "
            f"outside the vocabulary {vocabulary!r} and kept as they are (the first is in row "
            f"{diagnoses['row'][int(outside.argmax())]})"
        )
    encounter, code = encounter[~other], code[~other]
    rows = count_pairs(encounter, code, (len(encounters), len(raw_codes)))
    if (repeated := int(rows.sum()) - rows.nnz) > 0:
        files.notes.append(f"diagnoses: {shown(repeated)} duplicated rows dropped")
    diagnosis = mark_pairs(encounter, code_of[code], (len(encounters), len(codes)))
    labels = categories.label
    return _Diagnosed(encounters, encounter_patient, codes, labels, raw_codes, code_of, diagnosis)


def _usable(
    accesses: pa.Table,
    user: np.ndarray,
    patient: np.ndarray,
    encounter: np.ndarray,
    at: np.ndarray,
    diagnosed: _Diagnosed,
    files: _Files,
) -> np.ndarray:
    """Return the places of the accesses that count, by user, encounter and time."""
    known = encounter >= 0
    files.drop(~known, accesses, "accesses", "dropped: their encounter has no diagnosis")
    elsewhere = known & (diagnosed.encounter_patient[encounter] != patient)
    reason = "the encounter belongs to another patient in diagnoses"
    files.refuse(elsewhere, accesses, "accesses", reason)
    keep = np.flatnonzero(known & ~elsewhere)
    order: np.ndarray = keep[np.lexsort((at[keep], encounter[keep], user[keep]))]
    again = np.all([np.diff(one[order]) == 0 for one in (user, encounter, at)], axis=0)
    if again.any():
        files.notes.append(f"accesses: {shown(int(again.sum()))} duplicated rows dropped")
        order = np.delete(order, np.flatnonzero(again) + 1)
    return order


def _read_fine(
    files: _Files, users: np.ndarray, patients: np.ndarray, diagnosed: _Diagnosed
) -> tuple[sparse.csr_array | None, sparse.csr_array | None]:
    table = files.read_any("access_diagnoses", contracts.ACCESS_DIAGNOSES)
    if table is None:
        return None, None
    ids = {"user": users, "patient": patients, "code": diagnosed.written}
    places = [_places(table[name], known) for name, known in ids.items()]
    known = np.all([place >= 0 for place in places], axis=0)
    reason = "dropped: their user, patient or code is in no other table"
    files.drop(~known, table, "access_diagnoses", reason)
    user, patient, code = (place[known] for place in places)
    fine_patient = mark_pairs(user, patient, (len(users), len(patients)))
    shape = (len(users), len(diagnosed.codes))
    return count_pairs(user, diagnosed.code_of[code], shape), fine_patient


def _note_gaps(log: AccessLog) -> None:
    month = log.month()
    present = np.bincount(month - month.min())
    if not present.all():
        empty = np.flatnonzero(present == 0) + month.min()
        names = ", ".join(str(np.datetime64(int(one), "M")) for one in empty[:5])
        more = f" and {len(empty) - 5:,} more months" if len(empty) > 5 else ""
        log.notes.append(f"accesses: no access in {names}{more}")
