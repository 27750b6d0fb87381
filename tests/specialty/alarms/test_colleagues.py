from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.colleagues import care_of, limit, random_records, treated
from telic.specialty.alarms.explained_alarms import COLLEAGUES, COVERED, judge, lines
from telic.specialty.discovery.result import Discovery


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


def reference_strength(log, user, encounter, *, opened):
    """The definition of `Care.strength`, pair by pair."""
    seen = [set() for _ in log.users]
    for u, e in zip(log.access_user, log.access_encounter, strict=True):
        seen[u].add(int(e))
    size = np.bincount([e for one in seen for e in one])
    by_chance = (size * (size - 1)).sum() / size.sum() ** 2
    found = []
    for u, e in zip(user, encounter, strict=True):
        others = [v for v in range(len(seen)) if e in seen[v] and v != u]
        total = 0.0
        for v in others:
            shared = len({log.encounter_patient[both] for both in seen[u] & seen[v]}) - opened
            chance = by_chance * len(seen[u]) * len(seen[v])
            total += max(0.0, np.log((shared + 0.5) / (chance + 0.5)))
        found.append(total / len(others) if others else 0.0)
    return np.array(found)


@pytest.mark.parametrize("opened", [True, False])
def test_strength_is_as_defined_and_pairs_come_in_any_order(log, opened):
    care = care_of(log)
    rng = np.random.default_rng(0)
    rows = rng.choice(len(log.access_user), 200, replace=False)
    user, encounter = log.access_user[rows], log.access_encounter[rows]
    if not opened:
        user, encounter = random_records(log)
        user, encounter = user[:200], encounter[:200]
        assert not (set(zip(user.tolist(), encounter.tolist(), strict=True)) & made(log))
    found = care.strength(user, encounter, opened=opened)
    assert found.max() > 0
    np.testing.assert_allclose(found, reference_strength(log, user, encounter, opened=opened))


def test_colleagues_see_as_much_as_one_works_with_each(log, monkeypatch):
    monkeypatch.setattr("telic.specialty.alarms.colleagues.BLOCK", 7)
    seen = [set(log.access_encounter[log.access_user == u].tolist()) for u in range(len(log.users))]
    size = np.bincount([e for one in seen for e in one])
    by_chance = (size * (size - 1)).sum() / size.sum() ** 2
    counts = np.random.default_rng(1).integers(0, 5, (len(seen), 3))
    users = np.arange(5, 25)
    expected = np.zeros((len(users), 3))
    for i, u in enumerate(users):
        for v in set(range(len(seen))) - {u}:
            shared = len(set(log.encounter_patient[[*(seen[u] & seen[v])]]))
            chance = by_chance * len(seen[u]) * len(seen[v])
            expected[i] += counts[v] * max(0.0, np.log((shared + 0.5) / (chance + 0.5)))
    np.testing.assert_allclose(care_of(log).profiles(counts, users), expected, atol=1e-9)
    assert (expected > 0).any()


def made(log):
    return set(zip(log.access_user.tolist(), log.access_encounter.tolist(), strict=True))


def test_an_access_and_its_patient_excuse_nobody(log):
    # Two users share one patient alone, in three encounters.
    log = replace(
        log,
        access_user=np.array([0, 0, 0, 1, 1, 1, 2, 3], dtype=np.int32),
        access_encounter=np.array([0, 1, 2, 0, 1, 2, 3, 4], dtype=np.int32),
        encounter_patient=np.array([0, 0, 0, 1, 2], dtype=np.int32),
        encounters=np.array([f"E{i}" for i in range(5)]),
        patients=np.array([f"P{i}" for i in range(3)]),
    )
    care = care_of(log)
    asked = np.array([0]), np.array([0])
    assert care.strength(*asked, opened=True).tolist() == [0.0]
    assert care.strength(*asked, opened=False)[0] > 0


@given(
    accesses=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    chance=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    likelier=st.sampled_from([1.0, 2.0, 5.0]),
)
@settings(max_examples=100, derandomize=True)
def test_the_limit_explains_most_beyond_chance(accesses, chance, likelier):
    accesses, chance = np.array(accesses, float), np.array(chance, float)
    found = limit(accesses, chance, likelier=likelier)

    def gain(at):
        return (accesses > at).mean() - likelier * (chance > at).mean()

    assert gain(found) >= max(gain(at) for at in np.arange(-1, 8, 0.5) if at >= 0) - 1e-9
    assert gain(found) >= 0


def test_without_accesses_or_records_to_compare_nothing_is_explained():
    some, none = np.array([1.0, 2.0]), np.empty(0)
    for accesses, chance in ((none, some), (some, none), (none, none), (some, some)):
        assert limit(accesses, chance) == np.inf
    assert limit(some, np.zeros(2)) == 0.0


def test_users_of_whom_nothing_is_known_come_first_and_colleagues_explain(log):
    hermit = log.access_user[-1]  # opens records alone, each new
    own = log.access_user == hermit
    new = np.arange(own.sum(), dtype=np.int32) + len(log.encounters)
    log = replace(
        log,
        access_encounter=np.concatenate([log.access_encounter[~own], new]).astype(np.int32),
        encounters=np.concatenate([log.encounters, [f"N{i}" for i in new]]),
        encounter_patient=np.concatenate(
            [log.encounter_patient, log.encounter_patient[: len(new)]]
        ),
        diagnosis=sparse.vstack([log.diagnosis, log.diagnosis[: len(new)]]).tocsr(),
    )
    nobody = replace(log, taxonomy=np.full(len(log.users), ""))
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    care = care_of(nobody)
    before, now = judge(nobody, nothing), judge(nobody, nothing, care=care)
    assert not before.explained.any()
    assert now.explained.any()
    seen = treated(nobody, care)
    np.testing.assert_array_equal(now.explained, seen)
    first = now.queue("open")
    colleagues = care.profiles(np.ones((len(log.users), 1)), np.arange(len(log.users)))[:, 0]
    alone = colleagues[log.access_user[first]] == 0
    assert alone.any()
    assert not alone.all()
    assert (np.diff(alone.astype(int)) <= 0).all()  # those without colleagues, then the others
    described = next(lines(nobody, nothing, now, np.flatnonzero(seen)[:1], pseudonyms=None))
    assert (described["status"], described["because"]) == ("explained", COLLEAGUES)


def test_where_everybody_is_known_colleagues_explain_and_reorder_nothing(log):
    known = replace(log, taxonomy=np.where(np.arange(len(log.users)) % 2, "a", "b"))
    nothing = Discovery("residuals", [], np.full(len(log.users), -1))
    before, now = judge(known, nothing), judge(known, nothing, care=care_of(known))
    np.testing.assert_array_equal(now.declared, before.declared)
    alarms = now.queue()
    np.testing.assert_array_equal(np.sort(alarms), np.sort(before.queue()))
    first = now.queue("open")
    assert (np.diff(now.declared[first]) >= 0).all()  # the least covered first


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
    assert place["now"] < 0
    explained = judge(some, nothing, care=care_of(some))
    assert (np.diff(explained.explained[explained.queue()].astype(int)) >= 0).all()  # at the end
    assert (judge(some, nothing).declared[without] <= COVERED).all()
