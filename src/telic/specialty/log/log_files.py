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
from telic.specialty.log.access_log import AccessLog, count_pairs
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
    names = _names(folder, on_bad_row, notes)
    taxonomy = _declared(users, provider, providers, access_user, accesses["row"], notes)
    taxonomy = _called(taxonomy, names)
    patients, (diagnosis_patient, access_patient) = _number(
        diagnoses["patient"], accesses["patient"]
    )
    diagnosed = _diagnosed(diagnoses, diagnosis_patient, vocabulary, code_table, on_bad_row, notes)
    access_encounter = _places(accesses["encounter"], diagnosed.encounters)
    at = accesses["at"].to_numpy().astype("datetime64[us]").astype(np.int64)
    order = _usable(
        accesses, access_user, access_patient, access_encounter, at, diagnosed, on_bad_row, notes
    )
    if not len(order):
        raise InputError(f"{find_table(folder, 'accesses')}: no access is to a known encounter.")
    fine, fine_patient = _read_fine(
        folder,
        users,
        patients,
        diagnosed.code_of,
        len(diagnosed.codes),
        on_bad_row,
        notes,
    )
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


def _names(folder: Path, on_bad_row: str, notes: list[str]) -> dict[str, str]:
    """What codes are called, if the log says so; the first name counts."""
    try:
        path = find_table(folder, "names")
    except InputError:
        return {}
    table, found = read_table(path, contracts.NAMES, on_bad_row=on_bad_row)
    notes.extend(found)
    names: dict[str, str] = {}
    other = []
    for row, code, name in zip(
        *(table[column].to_pylist() for column in ("row", "code", "name")), strict=True
    ):
        if names.setdefault(code, name) != name:
            other.append(row)
    if other:
        notes.append(
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
    code_of: dict[str, int]
    """The number in `codes` of each code as it is written in the table."""
    diagnosis: sparse.csr_array
    """Encounters by codes, 1 where an encounter has a code."""


def _diagnosed(
    diagnoses: pa.Table,
    patient: np.ndarray,
    vocabulary: str,
    code_table: str | Path | None,
    on_bad_row: str,
    notes: list[str],
) -> _Diagnosed:
    encounters, (encounter,) = _number(diagnoses["encounter"])
    raw_codes, (code,) = _number(diagnoses["code"])
    encounter_patient = np.full(len(encounters), -1, dtype=np.int32)
    encounter_patient[encounter[::-1]] = patient[::-1]
    other = encounter_patient[encounter] != patient
    reason = "the encounter's other rows name another patient"
    _refuse(other, diagnoses, "diagnoses", reason, on_bad_row, notes)
    categories = categorise(raw_codes.tolist(), vocabulary=vocabulary, code_table=code_table)
    codes, code_of = np.unique(np.array(categories.category, dtype=str), return_inverse=True)
    if categories.outside:
        outside = np.isin(raw_codes, categories.outside)[code]
        notes.append(
            f"diagnoses: {len(categories.outside):,} codes ({shown(int(outside.sum()))} rows) are "
            f"outside the vocabulary {vocabulary!r} and kept as they are (the first is in row "
            f"{diagnoses['row'][int(outside.argmax())]})"
        )
    encounter, code = encounter[~other], code[~other]
    rows = count_pairs(encounter, code, (len(encounters), len(raw_codes)))
    if (repeated := int(rows.sum()) - rows.nnz) > 0:
        notes.append(f"diagnoses: {shown(repeated)} duplicated rows dropped")
    shape = (len(encounters), len(codes))
    diagnosis = count_pairs(encounter, code_of[code].astype(np.int32), shape)
    diagnosis.data[:] = 1
    numbers = dict(zip(raw_codes, code_of, strict=True))
    return _Diagnosed(encounters, encounter_patient, codes, categories.label, numbers, diagnosis)


def _places(column: pa.ChunkedArray, ids: np.ndarray) -> np.ndarray:
    """Return the number of each id, -1 where it is none of these."""
    place = pc.index_in(column.cast(pa.string()), pa.array(ids.tolist(), pa.string()))
    numbers: np.ndarray = place.fill_null(-1).to_numpy().astype(np.int32)
    return numbers


def _usable(
    accesses: pa.Table,
    user: np.ndarray,
    patient: np.ndarray,
    encounter: np.ndarray,
    at: np.ndarray,
    diagnosed: _Diagnosed,
    on_bad_row: str,
    notes: list[str],
) -> np.ndarray:
    """Return the places of the accesses that count, by user, encounter and time."""
    known = encounter >= 0
    if not known.all():
        notes.append(
            f"accesses: {shown(int((~known).sum()))} rows dropped: their encounter has no "
            f"diagnosis (the first is row {accesses['row'][int((~known).argmax())]})"
        )
    elsewhere = known & (diagnosed.encounter_patient[encounter] != patient)
    reason = "the encounter belongs to another patient in diagnoses"
    _refuse(elsewhere, accesses, "accesses", reason, on_bad_row, notes)
    keep = np.flatnonzero(known & ~elsewhere)
    order: np.ndarray = keep[np.lexsort((at[keep], encounter[keep], user[keep]))]
    again = np.all([np.diff(one[order]) == 0 for one in (user, encounter, at)], axis=0)
    if again.any():
        notes.append(f"accesses: {shown(int(again.sum()))} duplicated rows dropped")
        order = np.delete(order, np.flatnonzero(again) + 1)
    return order


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
    fine_patient = count_pairs(user, patient, (len(users), len(patients)))
    fine_patient.data[:] = 1
    return count_pairs(user, code, (len(users), n_codes)), fine_patient


def _note_gaps(log: AccessLog) -> None:
    month = log.month()
    present = np.bincount(month - month.min())
    if not present.all():
        empty = np.flatnonzero(present == 0) + month.min()
        names = ", ".join(str(np.datetime64(int(one), "M")) for one in empty[:5])
        more = f" and {len(empty) - 5:,} more months" if len(empty) > 5 else ""
        log.notes.append(f"accesses: no access in {names}{more}")
