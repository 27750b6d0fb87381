"""Access logs from other systems' exports: OMOP CDM, FHIR NDJSON, MIMIC-III and eICU."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from telic.data import contracts
from telic.errors import InputError, expect_one_of
from telic.specialty.log.exported_tables import (
    ExportedTable,
    distinct,
    file_of,
    look_up,
    open_table,
)
from telic.specialty.log.fhir_exports import read_fhir
from telic.specialty.log.log_files import write_log
from telic.specialty.log.source_gaps import LACKS
from telic.specialty.small_cells import shown

Tables = dict[str, pa.Table]
DISTINCT = {"omop": ("accesses",), "mimic3": ("accesses",), "eicu": ("providers",)}
"""Tables of which rows that are alike are one before they are counted: there are too many."""
_SCHEMAS = {
    "accesses": contracts.ACCESSES,
    "diagnoses": contracts.DIAGNOSES,
    "providers": contracts.PROVIDERS,
    "access_diagnoses": contracts.ACCESS_DIAGNOSES,
    "names": contracts.NAMES,
}


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
        If a file or column is missing, a line is not JSON, a value is not what its column holds, or
        no access to an encounter with a diagnosis is left.
    """
    expect_one_of(READERS, kind=kind)
    read, vocabulary = READERS[kind]
    notes: list[str] = []
    tables = _by_contract(kind, read(Path(source), notes), Path(source), notes)
    write_log(folder, tables, vocabulary=vocabulary, lacks=LACKS[kind])
    return notes


def _by_contract(kind: str, tables: Tables, source: Path, notes: list[str]) -> Tables:
    """Leave out and count rows that break data contract 3; refuse a log of which none is left."""
    kept, distinct_tables = {}, DISTINCT.get(kind, ())
    for name, table in tables.items():
        required = [table[field.name] for field in _SCHEMAS[name] if not field.nullable]
        empty = reduce(pc.or_, (column.is_null() for column in required))
        table = table.select(_SCHEMAS[name].names)
        rows = "different rows" if name in distinct_tables else "rows"
        kept[name] = _without(empty, table, f"{name}: {{}} {rows} with an empty value", notes)
    owners = kept["diagnoses"]
    for name in (name for name in ("diagnoses", "accesses", "access_diagnoses") if name in kept):
        table = kept[name]
        owner = look_up(table["encounter"], owners, "encounter")["patient"]
        other = pc.not_equal(table["patient"], owner).fill_null(False)
        rows = "different rows" if name in distinct_tables else "rows"
        what = f"{name}: {{}} {rows} of another patient than the encounter's first diagnosis"
        kept[name] = _without(other, table, what, notes)
    accesses, providers = kept["accesses"], kept["providers"]
    opened = look_up(accesses["encounter"], owners, "encounter")["encounter"]
    if opened.null_count == len(opened):
        lack = next((name for name in ("accesses", "diagnoses") if not len(kept[name])), None)
        said = f"no {lack}" if lack else "no accesses to encounters with a diagnosis"
        todo = "Is the export whole?" if lack else "Are ids written alike in all of its files?"
        found = [f"{shown(len(table))} {name}" for name, table in tables.items()]
        raise InputError(
            f"{source}: {said} could be used; found {', '.join([*found, *notes])}. {todo}"
        )
    listed = look_up(accesses["user"], providers, "user")["user"]
    if listed.null_count == len(listed):
        notes.append(
            "providers: none of the users of accesses is among them, so that nobody has a "
            "specialty: are their ids written alike?"
        )
    return kept


def _without(bad: pa.ChunkedArray, table: pa.Table, what: str, notes: list[str]) -> pa.Table:
    """Leave out some rows, and count them."""
    if count := pc.sum(bad).as_py():
        notes.append(f"{what.format(shown(count))} are left out")
    return table.filter(pc.invert(bad))


def read_omop(source: Path, notes: list[str]) -> Tables:
    """Read OMOP CDM tables: visit_occurrence, condition_occurrence, provider and care_site.

    An access is a provider of a visit or of a condition recorded in it. A condition's provider
    gives the fine-grained view. Codes are `condition_source_value`, taken as ICD-10; a provider's
    specialty is `specialty_source_value`, or else the name of the provider's care site (the
    department), if the export has one.
    """
    visits = open_table(source, "visit_occurrence", notes=notes).read(
        user="provider_id",
        patient="person_id",
        encounter="visit_occurrence_id",
        # In CDM 5.3 the date alone is required.
        at=["visit_start_datetime", "visit_start_date"],
    )
    conditions = open_table(source, "condition_occurrence", notes=notes).read(
        user="provider_id",
        patient="person_id",
        encounter="visit_occurrence_id",
        code="condition_source_value",
    )
    provider = open_table(source, "provider", notes=notes)
    # Whoever recorded a condition opened the record, whether the condition has a code or not.
    seen = conditions.select(["user", "patient", "encounter"]).drop_null()
    lost = "conditions: {} name a visit that is not there"
    visit = look_up(seen["encounter"], visits, "encounter", lost=lost, notes=notes)
    by_condition = seen.append_column("at", visit["at"])
    tied = conditions.drop_null()
    tables = {
        "accesses": distinct(pa.concat_tables([visits, by_condition])),
        "diagnoses": conditions,
        "providers": _with_departments(source, provider, notes),
    }
    return tables | ({"access_diagnoses": tied} if tied.num_rows else {})


def _with_departments(source: Path, provider: ExportedTable, notes: list[str]) -> pa.Table:
    """Specialties of providers; the care site stands in where one declares none."""
    columns = {"user": "provider_id", "taxonomy": "specialty_source_value"}
    if "care_site_id" not in provider.names or not file_of(source, "care_site"):
        return provider.read(**columns)
    providers = provider.read(**columns, site="care_site_id")
    sites = open_table(source, "care_site", notes=notes).read(
        site="care_site_id", name=["care_site_name", "care_site_source_value"]
    )
    lost = "providers: {} name a care site that is not there"
    site = look_up(providers["site"], sites, "site", lost=lost, notes=notes)
    declared = providers["taxonomy"]
    taxonomy = pc.coalesce(declared, site["name"])
    if used := declared.null_count - taxonomy.null_count:
        notes.append(
            f"providers: {shown(used)} declare no specialty and count under their care site"
        )
    return pa.table({"user": providers["user"], "taxonomy": taxonomy})


def read_mimic3(source: Path, notes: list[str]) -> Tables:
    """Read MIMIC-III: CHARTEVENTS, DIAGNOSES_ICD and CAREGIVERS, or the demo's hourly extract.

    An access is a charted event of a caregiver; the declared specialty is the caregiver's role.
    """
    events = open_table(source, "chartevents", "mimic3_demo_access_hourly", notes=notes)
    diagnoses = open_table(source, "diagnoses_icd", "mimic3_demo_diagnoses", notes=notes)
    caregivers = open_table(source, "caregivers", "mimic3_demo_caregivers", notes=notes)
    accesses = events.read(
        user="cgid",
        patient="subject_id",
        encounter="hadm_id",
        at="hour" if "hour" in events.names else ["charttime", "storetime"],
    )
    return {
        "accesses": distinct(accesses),
        "diagnoses": diagnoses.read(patient="subject_id", encounter="hadm_id", code="icd9_code"),
        "providers": caregivers.read(user="cgid", taxonomy=["description", "label"]),
    }


def read_eicu(source: Path, notes: list[str]) -> Tables:
    """Read eICU: careProvider, diagnosis and patient.

    eICU does not identify providers, so a "user" is a specialty at a hospital. Times are minutes
    since admission and are counted from 1970.
    """
    providers = open_table(source, "careprovider", "eicu_demo_care_provider", notes=notes)
    diagnosis = open_table(source, "diagnosis", "eicu_demo_diagnosis", notes=notes)
    stays = open_table(source, "patient", "eicu_demo_stay", notes=notes).read(
        encounter="patientunitstayid", patient="uniquepid", hospital="hospitalid"
    )
    seen = providers.read(
        encounter="patientunitstayid", taxonomy="specialty", minutes="careprovidersaveoffset"
    )
    lost = "care providers: {} name a stay that is not there"
    stay = look_up(seen["encounter"], stays, "encounter", lost=lost, notes=notes)
    user = pc.binary_join_element_wise(seen["taxonomy"], stay["hospital"], " at hospital ")
    microseconds = pc.multiply(seen["minutes"], 60e6).cast(pa.int64(), safe=False)
    code = "icd9code" if "icd9code" in diagnosis.names else "icd9"
    coded = diagnosis.read(encounter="patientunitstayid", code=code)
    # A cell may hold several codes, ICD-9 first.
    first = pc.utf8_trim_whitespace(pc.list_element(pc.split_pattern(coded["code"], ","), 0))
    lost = "diagnoses: {} name a stay that is not there"
    patient = look_up(coded["encounter"], stays, "encounter", lost=lost, notes=notes)["patient"]
    return {
        "accesses": pa.table(
            {
                "user": user,
                "patient": stay["patient"],
                "encounter": seen["encounter"],
                "at": microseconds.cast(contracts.TIMESTAMP),
            }
        ),
        "diagnoses": pa.table(
            {
                "patient": patient,
                "encounter": coded["encounter"],
                "code": pc.if_else(pc.equal(first, ""), None, first),
            }
        ),
        "providers": distinct(pa.table({"user": user, "taxonomy": seen["taxonomy"]}).drop_null()),
    }


READERS: dict[str, tuple[Callable[[Path, list[str]], Tables], str]] = {
    "omop": (read_omop, "icd10"),
    "fhir": (read_fhir, "icd10"),
    "mimic3": (read_mimic3, "icd9"),
    "eicu": (read_eicu, "icd9"),
}
"""Reader of each kind of export, and how its diagnoses are coded. A reader adds to notes."""
