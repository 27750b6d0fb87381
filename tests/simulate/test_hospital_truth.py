"""The simulated hospital's knobs do what they say, measured against its truth."""

from functools import cache

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from telic.simulate.hospital import FINE_PATIENTS, FINE_USERS, Difficulty, simulate_hospital
from telic.simulate.hospital_practices import (
    CORE_SIZES,
    GENERAL_CONDITIONS,
    HIDDEN_SIZES,
    SURGICAL,
    conditions,
)

NAMES = list(conditions())


class Hospital:
    """A simulated log's tables as numbers, with its truth."""

    def __init__(self, folder, **options):
        simulate_hospital(folder, **options)

        def column(table, name):
            return pq.read_table(folder / f"{table}.parquet", columns=[name])[name]

        @cache
        def read(table, name):
            return np.array(column(table, name).to_pylist())

        @cache
        def number(table, name):
            names = column(table, name).cast("string")
            return pc.utf8_ltrim(names, "UPE").cast("int64").to_numpy()

        self.column, self.read, self.number = column, read, number
        self.practice = read("truth_users", "practice")
        self.taxonomy = np.array([code or "" for code in read("providers", "taxonomy")])
        self.of_encounter = read("truth_encounters", "practice")
        self.user, self.encounter = number("accesses", "user"), number("accesses", "encounter")
        self.row, self.kind = read("truth_accesses", "row") - 1, read("truth_accesses", "kind")

    def diagnoses(self):
        return self.number("diagnoses", "encounter"), self.read("diagnoses", "code")


@pytest.fixture(scope="module")
def hospital(tmp_path_factory):
    return Hospital(
        tmp_path_factory.mktemp("truth") / "log", scale=0.05, difficulty=Difficulty(snooping=0.02)
    )


@pytest.fixture
def small(tmp_path):
    def make(**knobs):
        difficulty = Difficulty(**knobs)
        return Hospital(tmp_path / f"log{knobs}", scale=0.004, difficulty=difficulty)

    return make


def test_focus_is_the_mean_share_of_a_specialists_accesses(hospital):
    own = hospital.practice[hospital.user] == hospital.of_encounter[hospital.encounter]
    count = np.bincount(hospital.user, minlength=3269)
    share = np.bincount(hospital.user, own, 3269) / np.maximum(count, 1)
    specialist = np.isin(hospital.practice, NAMES) & (count > 0)
    # The rest of the accesses is anyone's: it hits the own practice as often as others hit it.
    usual = {
        name: (hospital.of_encounter[hospital.encounter[others]] == name).mean()
        for others in [np.isin(hospital.user, np.flatnonzero(~specialist))]
        for name in NAMES
    }
    by_chance = np.array([usual[name] for name in hospital.practice[specialist]])
    focus = (share[specialist] - by_chance) / (1 - by_chance)
    assert focus.mean() == pytest.approx(0.45, abs=0.03)
    assert focus.std() > 0.1  # people differ


def test_patients_have_a_main_practice(hospital):
    patient = hospital.number("diagnoses", "patient")
    encounter, first = np.unique(hospital.number("diagnoses", "encounter"), return_index=True)
    assert len(encounter) == len(hospital.of_encounter)
    patient = patient[first]
    order = np.argsort(patient, kind="stable")
    pair = np.flatnonzero(np.diff(patient[order]) == 0)
    same = hospital.of_encounter[order[pair]] == hospital.of_encounter[order[pair + 1]]
    share = np.array([(hospital.of_encounter == name).mean() for name in NAMES])
    assert same.mean() == pytest.approx(0.36 + 0.64 * share @ share, abs=0.02)


def test_only_anesthesiologists_lean_to_surgery_and_by_the_tilt(hospital):
    surgical = np.isin(hospital.of_encounter, SURGICAL)[hospital.encounter]

    def odds(practice):
        share = surgical[np.isin(hospital.user, np.flatnonzero(hospital.practice == practice))]
        return share.mean() / (1 - share.mean())

    assert set(hospital.taxonomy[hospital.practice == "flat, surgical"]) == {"Anesthesiology"}
    assert odds("flat, surgical") / odds("flat") == pytest.approx(1.6, abs=0.15)


def test_snooping_is_half_on_a_random_patient_half_on_a_random_topic(hospital):
    n = len(hospital.user)
    assert len(hospital.row) == pytest.approx(0.02 * n, abs=6 * (0.02 * n) ** 0.5)
    topic = hospital.kind == "random topic"
    assert abs(topic.sum() - (~topic).sum()) <= 1
    opened = hospital.of_encounter[hospital.encounter[hospital.row]]
    usual = np.array([(hospital.of_encounter == name).mean() for name in NAMES])
    for kind, expected in ((topic, np.full(len(NAMES), 1 / len(NAMES))), (~topic, usual)):
        seen = np.array([(opened[kind] == name).mean() for name in NAMES])
        assert (abs(seen - expected) < 5 * np.sqrt(expected / kind.sum())).all()
        # Specialists snoop outside their own practice like anybody.
        who = hospital.practice[hospital.user[hospital.row[kind]]]
        assert (who == opened[kind])[np.isin(who, NAMES)].mean() < 0.1


def test_the_fine_view_names_a_diagnosis_of_the_encounters_practice(hospital):
    encounter = hospital.number("access_diagnoses", "encounter")
    code, of = hospital.read("access_diagnoses", "code"), conditions()
    assert all(c in of[hospital.of_encounter[e]] for c, e in zip(code, encounter, strict=True))
    held = set(zip(*hospital.diagnoses(), strict=True))
    assert all(pair in held for pair in zip(encounter, code, strict=True))
    patients = len(set(hospital.number("access_diagnoses", "patient")))
    assert 0.8 * FINE_PATIENTS * 0.05 < patients <= round(FINE_PATIENTS * 0.05)
    assert len(set(hospital.number("access_diagnoses", "user"))) <= FINE_USERS


def test_activity_is_log_normal_and_all_is_in_one_year(hospital):
    count = np.bincount(hospital.user, minlength=3269)
    assert np.log(count[count > 0]).std() == pytest.approx(0.8, abs=0.06)
    at = hospital.column("accesses", "at")
    assert (np.diff(at.to_numpy()) >= np.timedelta64(0)).all()
    assert {time.as_py().year for time in (at[0], at[-1])} == {2024}


def test_background_and_comorbidity_add_what_is_not_of_the_practice(small):
    of = conditions()

    def foreign(hospital):
        encounter, code = hospital.diagnoses()
        own = [c in of[p] for c, p in zip(code, hospital.of_encounter[encounter], strict=True)]
        general = np.isin(code, GENERAL_CONDITIONS) & ~np.array(own)
        return encounter[~np.array(own)], general, len(hospital.of_encounter)

    none, _, _ = foreign(small(background=0.0, comorbid=0.0))
    assert len(none) == 0
    every, general, n = foreign(small(background=0.0, comorbid=1.0))
    assert not general.any() or general.mean() < 0.1
    assert len(set(every)) / n == pytest.approx(1 - 1 / len(NAMES), abs=0.06)
    behind, general, n = foreign(small(background=3.0, comorbid=0.0))
    assert general.any()
    assert len(set(behind)) / n > 0.85  # 1 − e^-3, less what the practice has anyway


def test_wrong_and_hidden_codes_are_as_many_as_asked_for(small):
    for wrong, coded in ((0.0, 0.0), (0.5, 1.0)):
        hospital = small(wrong_codes=wrong, hidden_coded=coded)
        core = np.isin(hospital.taxonomy, list(CORE_SIZES))
        surgeon = hospital.taxonomy == "Neurological Surgery"
        strange = (hospital.practice != hospital.taxonomy)[core & ~surgeon].mean()
        assert strange == pytest.approx(wrong, abs=0.08)
        assert not wrong or strange > 0.4
        hidden = np.isin(hospital.practice, list(HIDDEN_SIZES))
        assert (hospital.taxonomy[hidden] != "").mean() == coded
        if not wrong:  # most neurosurgeons see neurology's patients
            assert set(hospital.practice[surgeon]) == {"Neurology", "Neurological Surgery"}
            assert 0.3 < (hospital.practice[surgeon] == "Neurology").mean() < 0.9
