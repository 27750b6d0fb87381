"""Access logs from other systems' exports: OMOP CDM, FHIR NDJSON, MIMIC-III and eICU."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from telic.errors import InputError
from telic.specialty.log.contract_tables import unreadable
from telic.specialty.log.log_files import write_log
from telic.specialty.log.source_gaps import LACKS
from telic.specialty.small_cells import shown


class Tables(NamedTuple):
    """The tables of an access log and how its diagnoses are coded."""

    tables: dict[str, pa.Table]
    vocabulary: str
    notes: list[str]
    """What could not be used, with counts."""


def import_log(source: str | Path, folder: str | Path, *, kind: str) -> list[str]:
    """Convert an export to an access log that keeps data contract 3.

    Parameters
    ----------
    source : path
        Folder of the export.
    folder : path
        Folder to write; must not exist.
    kind : {"omop", "fhir", "mimic3", "eicu"}

    Returns
    -------
    list of str
        What could not be used, with counts. Which elements the source lacks stands in the log's
        ``meta.json`` (`telic.specialty.log.source_gaps`).

    Raises
    ------
    InputError
        If a file or column is missing, or a line is not JSON.
    """
    if kind not in READERS:
        raise InputError(f"kind is {kind!r}, expected one of {', '.join(READERS)}.")
    found = READERS[kind](Path(source))
    write_log(folder, found.tables, vocabulary=found.vocabulary, lacks=LACKS[kind])
    return found.notes


def read_omop(source: Path) -> Tables:
    """Read OMOP CDM tables: visit_occurrence, condition_occurrence, provider and care_site.

    An access is a provider of a visit or of a condition recorded in it. A condition's provider
    gives the fine-grained view. Codes are `condition_source_value`, taken as ICD-10; a provider's
    specialty is `specialty_source_value`, or else the name of the provider's care site (the
    department), if the export has one.
    """
    visit = _table(source, ["visit_occurrence"])
    condition = _table(source, ["condition_occurrence"])
    provider = _table(source, ["provider"])
    at = (
        "visit_start_datetime"
        if "visit_start_datetime" in visit.column_names
        else ("visit_start_date")
    )
    visits = _rename(
        visit, user="provider_id", patient="person_id", encounter="visit_occurrence_id", at=at
    )
    conditions = _rename(
        condition,
        user="provider_id",
        patient="person_id",
        encounter="visit_occurrence_id",
        code="condition_source_value",
    )
    complete, notes = _complete(conditions.select(["patient", "encounter", "code"]), "conditions")
    tied = conditions.filter(pc.is_valid(conditions["user"])).drop_null()
    when = visits.select(["encounter", "at"])
    by_condition = tied.select(["user", "patient", "encounter"]).join(when, "encounter")
    accesses = (
        pa.concat_tables([visits, by_condition.select(["user", "patient", "encounter", "at"])])
        .group_by(["user", "patient", "encounter", "at"])
        .aggregate([])
    )
    accesses, more = _complete(accesses, "visits and conditions")
    providers = _rename(provider, user="provider_id", taxonomy="specialty_source_value")
    providers, departments = _departments(source, provider, providers)
    tables = {"accesses": accesses, "diagnoses": complete, "providers": providers}
    if tied.num_rows:
        tables["access_diagnoses"] = tied
    return Tables(tables, "icd10", notes + more + departments)


def _departments(
    source: Path, provider: pa.Table, providers: pa.Table
) -> tuple[pa.Table, list[str]]:
    """Let the care site stand in where a provider declares no specialty."""
    if "care_site_id" not in provider.column_names or not _holds(source, "care_site"):
        return providers, []
    sites = _rename(_table(source, ["care_site"]), site="care_site_id", name="care_site_name")
    name_of = dict(zip(sites["site"].to_pylist(), sites["name"].to_pylist(), strict=True))
    names = pa.array(
        [name_of.get(one) for one in provider["care_site_id"].to_pylist()], pa.string()
    )
    declared = providers["taxonomy"]
    taxonomy = pc.coalesce(declared, names)
    used = declared.null_count - taxonomy.null_count
    note = f"providers: {shown(used)} declare no specialty and count under their care site"
    return providers.set_column(1, "taxonomy", taxonomy), [note] * bool(used)


def read_fhir(source: Path) -> Tables:
    """Read FHIR NDJSON: AuditEvent, Encounter, Condition, Practitioner and PractitionerRole.

    An access is an AuditEvent whose agent is a Practitioner or a PractitionerRole and whose entity
    is an Encounter; the patient is the encounter's. Codes are a Condition's ICD-10 coding, or else
    its first one. A provider has one row per PractitionerRole, with its first specialty; without a
    role that has one, the first qualification counts.
    """
    patient_of: dict[str, str] = {}
    practitioner_of: dict[str, str] = {}
    events: list[tuple[list[str], list[str], list[str], str]] = []
    diagnoses: list[tuple[str, str, str]] = []
    qualified: dict[str, str | None] = {}
    declared: dict[tuple[str, str], None] = {}
    for resource in _resources(source):
        kind = resource.get("resourceType")
        if kind == "Encounter":
            patient_of[str(resource.get("id"))] = _reference(resource.get("subject"), "Patient")
        elif kind == "AuditEvent":
            agents = [agent.get("who") for agent in _objects(resource.get("agent"))]
            opened = [entity.get("what") for entity in _objects(resource.get("entity"))]
            events.append(
                (
                    [_reference(who, "Practitioner") for who in agents],
                    [_reference(who, "PractitionerRole") for who in agents],
                    [one for what in opened if (one := _reference(what, "Encounter"))],
                    str(resource.get("recorded") or ""),
                )
            )
        elif kind == "Condition":
            diagnoses.append(
                (
                    _reference(resource.get("subject"), "Patient"),
                    _reference(resource.get("encounter"), "Encounter"),
                    _first_code(resource.get("code"), system="icd-10"),
                )
            )
        elif kind == "Practitioner":
            codes = [_first_code(q.get("code")) for q in _objects(resource.get("qualification"))]
            qualified[str(resource.get("id"))] = next(filter(None, codes), None)
        elif kind == "PractitionerRole":
            user = _reference(resource.get("practitioner"), "Practitioner")
            practitioner_of[str(resource.get("id"))] = user
            codes = [_first_code(one) for one in _objects(resource.get("specialty"))]
            if user and (code := next(filter(None, codes), None)):
                declared[user, code] = None
    accesses: list[tuple[str, str, str]] = []
    unusable, undated = 0, 0
    for users, roles, encounters, at in events:
        # An agent named both ways is one user.
        named = dict.fromkeys([*users, *(practitioner_of.get(role, "") for role in roles)])
        pairs = [(user, one, at) for user in named if user for one in encounters]
        unusable += not pairs
        undated += bool(pairs) and not at
        accesses += pairs if at else []
    in_roles = {user for user, _ in declared}
    providers: list[tuple[str, str | None]] = [*declared]
    providers += ((u, code) for u, code in qualified.items() if u not in in_roles)
    notes = [f"audit events: {shown(unusable)} name no practitioner and encounter"] * bool(unusable)
    notes += [f"audit events: {shown(undated)} have no time ('recorded')"] * bool(undated)
    kept = [one for one in diagnoses if all(one)]
    if len(kept) < len(diagnoses):
        notes.append(
            f"conditions: {shown(len(diagnoses) - len(kept))} lack patient, encounter or code"
        )
    known = [one for one in accesses if patient_of.get(one[1])]
    if len(known) < len(accesses):
        notes.append(f"audit events: {shown(len(accesses) - len(known))} are of unknown encounters")
    tables = {
        "accesses": _text_table(
            ["user", "patient", "encounter", "at"],
            [(user, patient_of[one], one, at) for user, one, at in known],
        ),
        "diagnoses": _text_table(["patient", "encounter", "code"], kept),
        "providers": _text_table(["user", "taxonomy"], providers),
    }
    return Tables(tables, "icd10", notes)


def read_mimic3(source: Path) -> Tables:
    """Read MIMIC-III: CHARTEVENTS, DIAGNOSES_ICD and CAREGIVERS, or the demo's hourly extract.

    An access is a charted event of a caregiver; the declared specialty is the caregiver's role.
    """
    events = _table(source, ["chartevents", "mimic3_demo_access_hourly"])
    diagnoses = _table(source, ["diagnoses_icd", "mimic3_demo_diagnoses"])
    caregivers = _table(source, ["caregivers", "mimic3_demo_caregivers"])
    hourly = "hour" in events.column_names
    accesses = _rename(
        events,
        user="cgid",
        patient="subject_id",
        encounter="hadm_id",
        at="hour" if hourly else "charttime",
    )
    if hourly:
        at = pc.binary_join_element_wise(accesses["at"].cast(pa.string()), "00", ":")
        accesses = accesses.set_column(3, "at", at)
    accesses = accesses.group_by(accesses.column_names).aggregate([])
    accesses, notes = _complete(accesses, "events")
    coded = _rename(diagnoses, patient="subject_id", encounter="hadm_id", code="icd9_code")
    coded, more = _complete(coded, "diagnoses")
    providers = _rename(caregivers, user="cgid", taxonomy="description")
    return Tables(
        {"accesses": accesses, "diagnoses": coded, "providers": providers}, "icd9", notes + more
    )


def read_eicu(source: Path) -> Tables:
    """Read eICU: careProvider, diagnosis and patient.

    eICU does not identify providers, so a "user" is a specialty at a hospital. Times are minutes
    since admission and are counted from 1970.
    """
    provider = _table(source, ["careprovider", "eicu_demo_care_provider"])
    diagnosis = _table(source, ["diagnosis", "eicu_demo_diagnosis"])
    stay = _table(source, ["patient", "eicu_demo_stay"])
    code = "icd9code" if "icd9code" in diagnosis.column_names else "icd9"
    stays = _rename(stay, encounter="patientunitstayid", patient="uniquepid", hospital="hospitalid")
    seen = _rename(
        provider,
        encounter="patientunitstayid",
        taxonomy="specialty",
        minutes="careprovidersaveoffset",
    )
    seen, notes = _complete(seen, "care providers")
    seen, unknown = _complete(seen.join(stays, "encounter"), "care providers with their stay")
    user = pc.binary_join_element_wise(seen["taxonomy"], seen["hospital"], " at hospital ")
    try:
        minutes = seen["minutes"].cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        raise InputError(
            f"{source}: 'careprovidersaveoffset' of a care provider is not a number, expected "
            "minutes since admission. Correct the row."
        ) from None
    at = (minutes * 60e6).astype(np.int64)
    accesses = pa.table(
        {
            "user": user,
            "patient": seen["patient"],
            "encounter": seen["encounter"],
            "at": pa.array(at, pa.timestamp("us", tz="UTC")),
        }
    )
    coded = _rename(diagnosis, encounter="patientunitstayid", code=code)
    coded, more = _complete(coded, "diagnoses")
    # A cell may hold several codes, ICD-9 first.
    first = pc.list_element(pc.split_pattern(coded["code"].cast(pa.string()), ","), 0)
    coded = coded.set_column(coded.column_names.index("code"), "code", first)
    coded = coded.join(stays.select(["encounter", "patient"]), "encounter")
    coded, strange = _complete(coded, "diagnoses with their stay")
    providers = pa.table({"user": user, "taxonomy": seen["taxonomy"]})
    tables = {
        "accesses": accesses,
        "diagnoses": coded.select(["patient", "encounter", "code"]),
        "providers": providers.group_by(["user", "taxonomy"]).aggregate([]),
    }
    return Tables(tables, "icd9", notes + unknown + more + strange)


READERS: dict[str, Callable[[Path], Tables]] = {
    "omop": read_omop,
    "fhir": read_fhir,
    "mimic3": read_mimic3,
    "eicu": read_eicu,
}


def _holds(source: Path, stem: str) -> bool:
    return any(f.name.lower().startswith(f"{stem}.") for f in source.iterdir())


def _table(source: Path, stems: list[str]) -> pa.Table:
    """The table of one of these names, as text, its columns in lower case."""
    files = {f.name.lower(): f for f in sorted(source.iterdir())} if source.is_dir() else {}
    for stem in stems:
        for suffix in (".parquet", ".csv", ".csv.gz"):
            if (file := files.get(stem + suffix)) is not None:
                table = _as_text(file)
                table = table.rename_columns([name.lower() for name in table.column_names])
                return table.replace_schema_metadata({"file": str(file)})
    raise InputError(
        f"{source}: holds no {' or '.join(stems)} (.parquet, .csv or .csv.gz). "
        "Is this the export's folder?"
    )


def _as_text(file: Path) -> pa.Table:
    try:
        if file.suffix == ".parquet":
            table = pq.read_table(file)
            return pa.table({n: table[n].cast(pa.string()) for n in table.column_names})
        with pacsv.open_csv(file) as stream:
            names = stream.schema.names
        text = pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True
        )
        return pacsv.read_csv(file, convert_options=text)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, UnicodeDecodeError) as error:
        raise unreadable(file, error) from None


def _rename(table: pa.Table, **columns: str) -> pa.Table:
    missing = [old for old in columns.values() if old not in table.column_names]
    if missing:
        file = table.schema.metadata[b"file"].decode()
        raise InputError(f"{file}: column {missing[0]!r} is missing. Is the first line the header?")
    return pa.table({new: table[old] for new, old in columns.items()})


def _complete(table: pa.Table, what: str) -> tuple[pa.Table, list[str]]:
    kept = table.drop_null()
    lost = table.num_rows - kept.num_rows
    return kept, [f"{what}: {shown(lost)} rows with an empty value are left out"] * bool(lost)


def _resources(source: Path) -> Iterator[dict[str, Any]]:
    files = sorted(source.glob("*.ndjson"))
    if not files:
        raise InputError(f"{source}: holds no .ndjson file. Is this the export's folder?")
    for file in files:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    resource = json.loads(line.decode("utf-8"))
                except ValueError:
                    raise InputError(f"{file}: line {number}: is not JSON in UTF-8.") from None
                if isinstance(resource, dict):
                    yield resource


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON list; none if it is null or no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _reference(value: Any, kind: str) -> str:
    """Id of a reference of this kind, or an empty string."""
    reference = value.get("reference", "") if isinstance(value, dict) else ""
    parts = str(reference).partition("/_history/")[0].split("/")
    return parts[-1] if len(parts) >= 2 and parts[-2] == kind else ""


def _first_code(value: Any, *, system: str = "") -> str:
    """Code of the first coding, of one whose system is named like `system` if there is any."""
    coding = _objects(value.get("coding")) if isinstance(value, dict) else []
    own = [one for one in coding if system in str(one.get("system", "")).lower()]
    return next((str(one.get("code") or "") for one in [*own, *coding]), "")


def _text_table(names: list[str], rows: Sequence[tuple[str | None, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    arrays = [pa.array(column, pa.string()) for column in columns]
    return pa.table(dict(zip(names, arrays, strict=True)))
