from dataclasses import replace

import numpy as np
import pytest

from telic.simulate.hospital import simulate_hospital
from telic.specialty.alarms.before_and_after import Caught, Effect, effect, known_snooping
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.log.log_files import read_log

COUNTS = Effect(
    alerts=1000,
    explained=40,
    open=960,
    uncovered_alerts=700,
    undeclared_alerts=300,
    unlisted_alerts=50,
    unlisted_explained=30,
    unlisted_open=20,
)


def test_a_small_cell_is_neither_shown_nor_had_by_subtraction():
    assert COUNTS.cells()["explained"] == 40
    hidden = replace(COUNTS, few=frozenset({"explained"}))
    assert (hidden.cells()["explained"], hidden.cells()["open"]) == ("<11 patients", "withheld")
    assert hidden.cells()["undeclared_alerts"] == 300
    content = hidden.as_json()
    assert (content["explained"], content["open"], content["alerts"]) == (None, None, 1000)
    assert content["withheld"] == {"explained": "<11 patients", "open": "withheld"}
    nothing = replace(hidden, explained=0, few=frozenset()).cells()
    assert (nothing["explained"], nothing["open"]) == (0, 960)


def test_the_parts_of_a_sum_that_is_withheld_are_withheld_with_it():
    few_open = replace(
        COUNTS,
        explained=995,
        open=5,
        explained_by_practice=500,
        explained_by_colleagues=495,
        few=frozenset({"open"}),
    ).cells()
    hidden = ("explained", "explained_by_practice", "explained_by_colleagues")
    assert [few_open[name] for name in hidden] == ["withheld"] * 3
    assert few_open["alerts"] == 1000


@pytest.mark.parametrize(
    ("rest", "withheld"),
    [
        ("listed_open", {"unlisted_explained", "unlisted_open"}),
        ("listed_explained", {"unlisted_explained", "unlisted_open"}),
        ("listed_alerts", {"unlisted_alerts", "unlisted_explained", "unlisted_open"}),
    ],
)
def test_what_is_left_without_the_unlisted_is_not_had_by_subtraction(rest, withheld):
    hidden = replace(COUNTS, few=frozenset({rest}))
    assert hidden.withheld() == dict.fromkeys(withheld, "withheld")
    both = replace(COUNTS, few=frozenset({rest, "unlisted_open"})).withheld()
    assert both["unlisted_open"] == "<11 patients"
    assert rest not in hidden.as_json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("effect") / "log"
    simulate_hospital(folder, scale=0.005)
    return folder


@pytest.fixture(scope="module")
def log(folder):
    return read_log(folder)


def test_cells_are_small_by_patients_not_by_accesses(log):
    users = np.flatnonzero(log.taxonomy == "Urology")
    found = Discovery(
        "lda",
        [Specialty("one", None, None, users, [], None, None, None)],
        np.where(log.taxonomy == "Urology", 0, -1),
    )
    # All accesses of the group are to ten patients' encounters, each opened over and over.
    ten = np.flatnonzero(log.encounter_patient < 10)
    own = np.isin(log.access_user, users)
    rng = np.random.default_rng(0)
    encounter = np.where(own, rng.choice(ten, len(own)), log.access_encounter).astype(np.int32)
    nobody = np.full(len(log.users), "")  # so that every access is an alarm
    log = replace(log, access_encounter=encounter, taxonomy=nobody)
    alerts = judge(log, found)
    counted = effect(log, found, alerts)
    assert counted.unlisted_alerts > 11
    assert counted.cells()["unlisted_alerts"] == "<11 patients"
    assert counted.cells()["alerts"] == counted.alerts


def test_few_patients_beside_the_unlisted_specialties_cannot_be_counted(log):
    """All users but one are of a specialty without a code: who is not has few patients."""
    accesses = np.bincount(log.access_user, minlength=len(log.users))
    alone = int(np.argmin(np.where(accesses, accesses, len(log.access_user))))
    others = np.flatnonzero(np.arange(len(log.users)) != alone)
    found = Discovery(
        "lda",
        [Specialty("one", None, None, others, [], None, None, None)],
        np.where(np.arange(len(log.users)) == alone, -1, 0),
    )
    log = replace(log, taxonomy=np.full(len(log.users), ""))  # so that every access is an alarm
    counted = effect(log, found, judge(log, found))
    assert counted.alerts - counted.unlisted_alerts == accesses[alone] > 0
    assert "listed_alerts" in counted.few
    shown = counted.cells()
    assert shown["alerts"] == counted.alerts
    unlisted = ("unlisted_alerts", "unlisted_explained", "unlisted_open")
    assert [shown[name] for name in unlisted] == ["withheld"] * 3


def test_snooping_is_counted_by_kind(folder, log):
    kinds = known_snooping(folder)
    assert set(kinds) == {"random patient", "random topic"}
    found = Discovery("lda", [], np.full(len(log.users), -1))
    counted = effect(log, found, judge(log, found), kinds)
    for kind, one in counted.snooping.items():
        assert one.planted == len(kinds[kind])
        assert one.known - one.without == one.gained - one.lost == 0  # nothing was found
    assert known_snooping(folder.parent) is None


def test_snooping_is_caught_in_queues_as_long_as_there_are_open_alarms(log):
    users = np.flatnonzero(log.taxonomy == "Urology")
    found = Discovery(
        "lda",
        [Specialty("one", None, None, users, [], None, None, None)],
        np.where(log.taxonomy == "Urology", 0, -1),
    )
    other = replace(log, taxonomy=np.where(log.taxonomy == "Urology", "Surgery", log.taxonomy))
    alerts = judge(other, found)
    rows = {"odd": log.access_row[1::2], "rest": log.access_row[::2]}
    counted = effect(other, found, alerts, rows)
    number = int((alerts.raised & ~alerts.explained).sum())
    assert 0 < number < alerts.raised.sum()
    raised = np.flatnonzero(alerts.raised)
    before = sorted(raised, key=lambda a: (alerts.declared[a], a))[:number]
    now = np.flatnonzero(alerts.raised & ~alerts.explained)
    for kind, known in rows.items():
        one, two = (set(log.access_row[list(queue)]) & set(known) for queue in (before, now))
        assert counted.snooping[kind] == Caught(
            len(known),
            pytest.approx(len(known) * number / len(log.access_row)),
            len(one),
            len(two),
            len(one - two),
            len(two - one),
        )


def test_known_snooping_is_no_alarm_of_an_unlisted_specialty(log):
    users = np.flatnonzero(log.taxonomy == "Urology")
    nobody = replace(log, taxonomy=np.full(len(log.users), ""))  # every access is an alarm
    found = Discovery(
        "lda",
        [Specialty("one", None, None, users, [], None, None, None)],
        np.where(log.taxonomy == "Urology", 0, -1),
    )
    alerts = judge(nobody, found)
    own = np.flatnonzero(alerts.raised & np.isin(nobody.access_user, users))
    explained = own[alerts.explained[own]]
    known = {"one": log.access_row[explained[:3]], "two": log.access_row[own[-2:]]}
    with_truth, without = (effect(nobody, found, alerts, k) for k in (known, None))
    rows = np.isin(log.access_row[own], np.concatenate(list(known.values())))
    assert without.unlisted_alerts == len(own)
    assert with_truth.unlisted_alerts == len(own) - rows.sum() == len(own) - 5
    assert with_truth.unlisted_explained == alerts.explained[own[~rows]].sum()
    assert with_truth.unlisted_open == (~alerts.explained[own[~rows]]).sum()
    # Every alarm stays in the totals and in the queues.
    assert (with_truth.alerts, with_truth.open) == (without.alerts, without.open)
    assert with_truth.snooping["one"].planted == 3


def test_points_are_the_paired_comparison():
    one = Caught(planted=100, chance=20.0, without=50, known=44, lost=8, gained=2)
    points = one.points()
    assert points.difference == pytest.approx(-6)
    assert points.low < -6 < points.high
    assert points.p_value == pytest.approx(2 * sum([1, 10, 45]) / 2**10)
