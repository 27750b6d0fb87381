import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from telic.cli import app
from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.access_reasons import find_reasons
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.alarms.fhir_audit_events import (
    ALARM,
    REASON,
    audit_events,
    write_audit_events,
)
from telic.specialty.discovery.result import Discovery
from telic.specialty.log.fhir_exports import read_fhir
from telic.specialty.log.log_files import read_log
from telic.specialty.log.other_systems import READERS
from telic.specialty.log.source_gaps import LACKS, lacks_of


@pytest.fixture(scope="module")
def log():
    """Every fourth access of a ward."""
    log = simulate_family("wards", 0).log
    columns = ("access_user", "access_encounter", "access_at", "access_row")
    return replace(log, **{name: getattr(log, name)[::4] for name in columns})


@pytest.fixture(scope="module")
def export(log, tmp_path_factory):
    """What is written, beside the resources that make it an export again."""
    folder = tmp_path_factory.mktemp("export")
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    why = find_reasons(log, nothing)
    write_audit_events(folder / "AuditEvent.ndjson", log, nothing, judge(log, nothing), why)
    with (folder / "rest.ndjson").open("w") as lines:
        for e in np.unique(log.access_encounter):
            name = log.encounters[e]
            patient = f"Patient/{log.patients[log.encounter_patient[e]]}"
            one = {"resourceType": "Encounter", "id": name, "subject": {"reference": patient}}
            lines.write(json.dumps(one) + "\n")
            for d in log.diagnosis[[e]].indices:
                code = {"coding": [{"code": str(log.codes[d])}]}
                one = {
                    "resourceType": "Condition",
                    "subject": {"reference": patient},
                    "encounter": {"reference": f"Encounter/{name}"},
                    "code": code,
                }
                lines.write(json.dumps(one) + "\n")
    return folder, why, nothing


def test_events_say_who_opened_what_when_and_why(log, export):
    folder, why, nothing = export
    events = [json.loads(line) for line in (folder / "AuditEvent.ndjson").read_text().splitlines()]
    assert len(events) == len(log.access_user)
    for a in (0, 77, len(events) - 1):
        said = {one["url"]: one for one in events[a]["extension"]}
        assert said[REASON]["valueString"] == why.words(log, nothing, a)
        assert said[ALARM]["valueCode"] in ("none", "open", "explained")
        who = events[a]["agent"][0]["who"]["reference"]
        assert who == f"Practitioner/{log.users[log.access_user[a]]}"
        at = np.datetime64(int(log.access_at[a]), "us").astype("datetime64[ms]")
        assert events[a]["recorded"] == f"{at}Z"  # no microseconds are there to be kept


def test_they_come_back_as_the_same_accesses_and_say_what_is_lacking(log, export, tmp_path):
    folders = [str(export[0]), str(tmp_path / "log")]
    run = CliRunner().invoke(app, ["specialty", "import", *folders, "--kind", "fhir"])
    assert run.exit_code == 0
    for element in LACKS["fhir"]:
        assert f"note: fhir lacks {element}: " in run.stderr
    assert lacks_of(tmp_path / "log") == LACKS["fhir"]
    meta = json.loads((tmp_path / "log" / "meta.json").read_text())
    (tmp_path / "log" / "meta.json").write_text(json.dumps(meta | {"vocabulary": "other"}))
    again = read_log(tmp_path / "log")

    def accesses(of):
        return sorted(
            zip(
                of.users[of.access_user].tolist(),
                of.encounters[of.access_encounter].tolist(),
                of.access_at.tolist(),
                strict=True,
            )
        )

    assert accesses(again) == sorted(set(accesses(log)))


def test_ids_that_fhir_cannot_have_and_microseconds_come_back(tmp_path):
    tables = {
        "accesses": ["user,patient,encounter,at", "u/1,p 1,é1,2024-01-05T10:00:00.123456Z"],
        "diagnoses": ["patient,encounter,code", "p 1,é1,C50"],
        "providers": ["user,taxonomy", "u/1,A"],
    }
    for name, rows in tables.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(rows), encoding="utf-8")
    (tmp_path / "meta.json").write_text('{"vocabulary": "other"}')
    log = read_log(tmp_path)
    nothing = Discovery("residuals", [], np.full(1, -1))
    why = find_reasons(log, nothing)
    (event,) = audit_events(log, nothing, judge(log, nothing), why)
    assert event["recorded"] == "2024-01-05T10:00:00.123456Z"
    assert event["agent"][0]["who"] == {
        "type": "Practitioner",
        "identifier": {"system": "urn:telic:id", "value": "u/1"},
    }
    patient = {"reference": "Patient/p 1"}
    resources = [
        event,
        {"resourceType": "Encounter", "id": "é1", "subject": patient},
        {
            "resourceType": "Condition",
            "subject": patient,
            "encounter": {"reference": "Encounter/é1"},
            "code": {"coding": [{"code": "C50"}]},
        },
    ]
    (tmp_path / "all.ndjson").write_text("\n".join(map(json.dumps, resources)))
    accesses = read_fhir(tmp_path, [])["accesses"].drop_columns("at").to_pylist()
    assert accesses == [{"user": "u/1", "patient": "p 1", "encounter": "é1"}]


def test_every_source_says_what_it_lacks():
    assert set(LACKS) == set(READERS)
    assert all(LACKS.values())
