from dataclasses import replace

import numpy as np
import pytest

from telic.simulate.hospital_families import simulate_family
from telic.specialty.care import LEAST_SHARED, TIMES_CHANCE, care_of
from telic.specialty.discovery import Discovery
from telic.specialty.explain import COLLEAGUES, COVERED, TREATED, judge, lines


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


def reference_share(log, user, encounter, *, opened):
    """The definition of `Care.share`, pair by pair."""
    patients = [set() for _ in log.users]
    for u, e in zip(log.access_user, log.access_encounter, strict=True):
        patients[u].add(log.encounter_patient[e])
    size = np.bincount([p for one in patients for p in one])
    by_chance = (size**2).sum() / size.sum() ** 2
    found = []
    for u, e in zip(user, encounter, strict=True):
        others = set(log.access_user[log.access_encounter == e]) - {u}
        colleagues = 0
        for v in others:
            shared = len(patients[u] & patients[v]) - opened
            chance = TIMES_CHANCE * by_chance * len(patients[u]) * len(patients[v])
            colleagues += shared >= max(LEAST_SHARED, chance)
        found.append(colleagues / len(others) if others else 0.0)
    return np.array(found)


@pytest.mark.parametrize("opened", [True, False])
def test_colleagues_are_as_defined_and_in_any_order(log, opened):
    care = care_of(log)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(log.access_user), 200, replace=False)
    user, encounter = log.access_user[rows], log.access_encounter[rows]
    if not opened:
        encounter = rng.integers(0, len(log.encounters), len(rows))
    found = care.share(user, encounter, opened=opened)
    assert found.max() > 0 or not opened
    np.testing.assert_allclose(found, reference_share(log, user, encounter, opened=opened))


def test_an_access_does_not_excuse_itself():
    # Two users share one patient too few: the access in question is the last one.
    log = simulate_family("wards", 0).log
    patient = np.arange(LEAST_SHARED + 5, dtype=np.int32)
    user = np.repeat(np.array([0, 1], dtype=np.int32), LEAST_SHARED)
    encounter = np.tile(np.arange(LEAST_SHARED, dtype=np.int32), 2)
    others = np.arange(2, 7, dtype=np.int32)
    log = replace(
        log,
        access_user=np.concatenate([user, others]),
        access_encounter=np.concatenate([encounter, LEAST_SHARED + others - 2]).astype(np.int32),
        encounter_patient=patient,
        encounters=np.array([f"E{i}" for i in patient]),
        patients=np.array([f"P{i}" for i in patient]),
    )
    care = care_of(log)
    asked = np.array([0]), np.array([0])
    assert care.share(*asked, opened=True).tolist() == [0.0]
    assert care.share(*asked, opened=False).tolist() == [1.0]


def test_users_of_whom_nothing_is_known_come_first_and_colleagues_explain(log):
    nobody = replace(log, taxonomy=np.full(len(log.users), ""))
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    care = care_of(nobody)
    before, now = judge(nobody, nothing), judge(nobody, nothing, care=care)
    assert not before.explained.any()
    assert now.explained.any()
    treated = care.share(log.access_user, log.access_encounter, opened=True) >= TREATED
    np.testing.assert_array_equal(now.explained, treated)
    first = now.queue("open")
    colleagues = care.profiles(np.ones((len(log.users), 1)), np.arange(len(log.users)))[:, 0]
    alone = colleagues[log.access_user[first]] == 0
    assert alone.any()
    assert not alone.all()
    assert (np.diff(alone.astype(int)) <= 0).all()  # those without colleagues, then the others
    described = next(lines(nobody, nothing, now, np.flatnonzero(treated)[:1], pseudonyms=None))
    assert (described["status"], described["because"]) == ("explained", COLLEAGUES)


def test_users_without_a_code_stand_by_what_their_colleagues_see_and_not_at_the_end(log):
    half = log.taxonomy.copy()
    half[::2] = ""
    some = replace(log, taxonomy=half)
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    without = half[log.access_user] == ""
    place = {}
    for name, care in (("before", None), ("now", care_of(some))):
        queue = judge(some, nothing, care=care).queue("open")
        place[name] = np.flatnonzero(without[queue]).mean() / len(queue)
        declared = np.flatnonzero(~without[queue])
        place[name] -= declared.mean() / len(queue)
    assert place["before"] > 0.2  # all of them behind
    assert place["now"] < 0.1
    assert (judge(some, nothing).declared[without] <= COVERED).all()
