import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.simulate.hospital import simulate_hospital
from telic.specialty.alarms.access_reasons import NO_REASON, find_reasons
from telic.specialty.alarms.patient_log import LACKING, NOT_JUDGED, patient_log
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.log.log_files import read_log
from telic.specialty.pseudonyms import Pseudonyms


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patient") / "log"
    simulate_hospital(folder, scale=0.005)
    # One encounter loses its diagnoses: `read_log` leaves its accesses out.
    diagnoses = pq.read_table(folder / "diagnoses.parquet")
    first = pq.read_table(folder / "accesses.parquet").slice(0, 1).to_pylist()[0]
    kept = [one != first["encounter"] for one in diagnoses["encounter"].to_pylist()]
    pq.write_table(diagnoses.filter(kept), folder / "diagnoses.parquet")
    return folder


@pytest.fixture(scope="module")
def judged(folder):
    log = read_log(folder)
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    return log, nothing, find_reasons(log, nothing)


def test_every_access_is_listed_whether_it_could_be_judged_or_not(folder, judged):
    accesses = pq.read_table(folder / "accesses.parquet").to_pylist()
    patient = accesses[0]["patient"]
    mine = [(i + 1, one) for i, one in enumerate(accesses) if one["patient"] == patient]
    own = patient_log(folder, *judged, patient)
    assert sorted(one["row"] for one in own.rows) == [i for i, _ in mine]
    assert [one["at"] for one in own.rows] == sorted(one["at"] for one in own.rows)
    users = {i: one["user"] for i, one in mine}
    assert all(one["user"] == users[one["row"]] for one in own.rows)
    (first,) = (one for one in own.rows if one["row"] == 1)
    assert first["reason"] == NOT_JUDGED
    assert own.simulated
    assert own.lacking == LACKING
    reasons = [one["reason"] for one in own.rows]
    without, left = reasons.count(NO_REASON), reasons.count(NOT_JUDGED)
    assert (
        f"{len(reasons)} accesses. A reason was inferred for {len(reasons) - without - left}; for "
        f"{without} none was found, and {left} could not be judged."
    ) in own.report().html()


def test_reasons_are_those_of_the_accesses(folder, judged):
    log, nothing, why = judged
    counts = np.bincount(log.encounter_patient[log.access_encounter])
    patient = str(log.patients[counts.argmax()])
    own = patient_log(folder, *judged, patient, origin="the clinic's system")
    by_row = dict(zip(log.access_row, range(len(log.access_row)), strict=True))
    for one in own.rows:
        if one["row"] in by_row:
            assert one["reason"] == why.words(log, nothing, by_row[one["row"]])
            assert one["diagnoses"]
    assert "origin of the data" not in own.lacking
    assert all(one["origin"] == "the clinic's system" for one in own.rows)
    page = own.report().html()
    assert "Simulated" in page
    assert "healthcare provider" in page
    shown = own.report().tables[0]
    assert "origin" in shown.columns
    assert [row[0] for row in shown.rows] == [one["at"][:19].replace("T", " ") for one in own.rows]
    without = replace(own, rows=[one | {"origin": None, "practised": None} for one in own.rows])
    left = {"origin", "practised"}
    assert [*without.report().tables[0].columns] == [c for c in shown.columns if c not in left]


def test_users_can_stand_under_pseudonyms(folder, judged):
    patient = str(judged[0].patients[0])
    own = patient_log(folder, *judged, patient, pseudonyms=Pseudonyms())
    assert not {one["user"] for one in own.rows} & set(judged[0].users)


@pytest.mark.parametrize(("users", "named"), [(10, False), (11, True)])
def test_under_pseudonyms_what_few_practise_is_not_named(folder, judged, users, named):
    log, _, why = judged
    few = Specialty("of few", None, None, np.arange(users), [], None, None, None)
    found = Discovery("residuals", [few], np.zeros(len(log.users), int))
    own, open_ = (
        patient_log(folder, log, found, why, str(log.patients[0]), pseudonyms=given)
        for given in (Pseudonyms(), None)
    )
    said = "of few" if named else "a specialty of fewer than 11 users"
    assert {one["practised"] for one in own.rows} == {said}
    assert {one["practised"] for one in open_.rows} == {"of few"}


def test_a_patient_whom_nobody_opened_is_said(folder, judged):
    with pytest.raises(InputError, match="no access to this patient"):
        patient_log(folder, *judged, "nobody")


def test_an_encounter_diagnosed_for_somebody_else_is_not_called_undiagnosed(folder, tmp_path):
    log = tmp_path / "log"
    shutil.copytree(folder, log)
    accesses = pq.read_table(log / "accesses.parquet").to_pylist()
    known = read_log(folder).access_row[0] - 1
    other = next(one["patient"] for one in accesses if one["patient"] != accesses[known]["patient"])
    accesses[known]["patient"] = other
    schema = pq.read_schema(log / "accesses.parquet")
    pq.write_table(pa.Table.from_pylist(accesses, schema), log / "accesses.parquet")
    records = read_log(log, on_bad_row="skip")
    nothing = Discovery("residuals", [], np.full(len(records.users), -1))
    own = patient_log(log, records, nothing, find_reasons(records, nothing), other)
    (wrong,) = (one for one in own.rows if one["row"] == known + 1)
    assert wrong["reason"].endswith("the log has no diagnosis of this patient in this encounter")
