from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.access_reasons import find_reasons
from telic.specialty.alarms.beyond_chance import FirstReasons, limit, random_records
from telic.specialty.alarms.colleagues import UNEXPLAINED, ask_colleagues, care_of
from telic.specialty.alarms.diagnosis_lifts import ask_specialties, coverage_of
from telic.specialty.alarms.explained_alarms import COLLEAGUES, COVERED, judge, lines
from telic.specialty.discovery.result import Discovery
from telic.specialty.report.tables import queue_table


@pytest.fixture(scope="module")
def log():
    return simulate_family("wards", 0).log


def nothing_found(log):
    return Discovery("residuals", [], np.full(len(log.users), -1))


def reference_strength(log, user, encounter, *, opened):
    """The definition of `Care.strength`, pair by pair."""
    first, nothing = FirstReasons(log), nothing_found(log)
    ask_specialties(first, nothing, coverage_of(log, nothing))
    pairs = zip(log.access_user.tolist(), log.access_encounter.tolist(), strict=True)
    fits = {pair for pair, kind in zip(pairs, first.kind, strict=True) if kind}
    assert 0 < len(fits) < len(log.access_user)
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
            weight = 1.0 if (v, e) in fits else UNEXPLAINED
            total += weight * max(0.0, np.log((shared + 0.5) / (chance + 0.5)))
        found.append(total / len(others) if others else 0.0)
    return np.array(found)


@pytest.mark.parametrize("opened", [True, False])
def test_strength_is_as_defined_and_pairs_come_in_any_order(log, opened):
    care = care_of(log, nothing_found(log))
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
    np.testing.assert_allclose(
        care_of(log, nothing_found(log)).profiles(counts, users), expected, atol=1e-9
    )
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
        diagnosis=log.diagnosis[:5],
        encounters=np.array([f"E{i}" for i in range(5)]),
        patients=np.array([f"P{i}" for i in range(3)]),
    )
    care = care_of(log, nothing_found(log))
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
        assert limit(accesses, chance, likelier=1.0) == np.inf
    assert limit(some, np.zeros(2), likelier=1.0) == 0.0


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
    nothing = nothing_found(log)
    care = care_of(nobody, nothing)
    before, now = judge(nobody, nothing), judge(nobody, nothing, care=care)
    assert not before.explained.any()
    assert now.explained.any()
    first = FirstReasons(nobody, care.seed)
    ask_colleagues(first, care)
    seen = first.kind > 0
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
    nothing = nothing_found(log)
    before, now = judge(known, nothing), judge(known, nothing, care=care_of(known, nothing))
    np.testing.assert_array_equal(now.declared, before.declared)
    alarms = now.queue()
    np.testing.assert_array_equal(np.sort(alarms), np.sort(before.queue()))
    first = now.queue("open")
    assert (np.diff(now.declared[first]) >= 0).all()  # the least covered first


def test_what_has_no_reason_is_listed_alarms_first_and_the_least_covered_first(log):
    half = replace(log, taxonomy=np.where(np.arange(len(log.users)) % 2, log.taxonomy, ""))
    nothing = nothing_found(log)
    care = care_of(half, nothing)
    alerts, reasons = judge(half, nothing, care=care), find_reasons(half, nothing, care=care)
    queue = alerts.queue("no-reason")
    np.testing.assert_array_equal(np.sort(queue), np.flatnonzero(reasons.kind == 0))
    raised = alerts.raised[queue]
    assert raised.any()
    assert not raised.all()
    assert (np.diff(raised.astype(int)) <= 0).all()  # alarms, then the others
    assert (np.diff(alerts.place[queue[raised]]) >= 0).all()
    assert (np.diff(alerts.declared[queue[~raised]]) >= 0).all()
    described = list(lines(half, nothing, alerts, queue, pseudonyms=None, because=False))
    assert [line["status"] != "no alarm" for line in described] == raised.tolist()
    table = queue_table("No reason", described)
    assert list(table.columns)[-2:] == ["status", "lift"]
    assert {row[-2] for row in table.rows} == {"open", "no alarm"}
    with pytest.raises(ValueError, match="'no-reason' needs alarms that were judged with `care`"):
        judge(half, nothing).queue("no-reason")


def test_users_without_a_code_stand_by_what_their_colleagues_see_and_not_at_the_end(log):
    half = log.taxonomy.copy()
    half[::2] = ""
    some = replace(log, taxonomy=half)
    nothing = nothing_found(log)
    without = half[log.access_user] == ""
    place = {}
    for name, care in (("before", None), ("now", care_of(some, nothing))):
        queue = judge(some, nothing, care=care).queue("open")
        place[name] = np.flatnonzero(without[queue]).mean() / len(queue)
        declared = np.flatnonzero(~without[queue])
        place[name] -= declared.mean() / len(queue)
    assert place["before"] > 0.2  # all of them behind
    assert place["now"] < 0
    explained = judge(some, nothing, care=care_of(some, nothing))
    assert (np.diff(explained.explained[explained.queue()].astype(int)) >= 0).all()  # at the end
    assert (judge(some, nothing).declared[without] <= COVERED).all()


@pytest.fixture(scope="module")
def curious_workmates(log):
    """Forty teams of four, five of each code; many stand in elsewhere, and three are curious."""
    rng = np.random.default_rng(0)
    n_users, n = 160, 1200
    users = np.arange(n_users)
    team = rng.integers(0, 40, n)
    diagnosis = np.where(
        rng.random(n) < 0.1, rng.integers(0, 40, n), 5 * (team % 8) + rng.integers(0, 5, n)
    )
    member = 4 * team[:, None] + np.arange(4)
    opened = rng.random((n, 4)) < 0.7
    staff = np.where(
        rng.random(opened.sum()) < 0.4, rng.integers(0, n_users, opened.sum()), member[opened]
    )
    curious = rng.choice(n, 20, replace=False)
    workmates = 4 * ((team[curious] + 7) % 40)[:, None] + np.arange(3)
    user = np.concatenate([staff, workmates.ravel()])
    encounter = np.concatenate([np.nonzero(opened)[0], np.repeat(curious, 3)])
    pairs = sparse.csr_array((np.ones(n), (np.arange(n), diagnosis)), shape=(n, 40))
    log = replace(
        log,
        users=np.array([f"U{u:03}" for u in users]),
        taxonomy=np.array(list("abcdefgh"))[users // 4 % 8],
        codes=np.array([f"{d:02}" for d in range(40)]),
        patients=np.array([f"P{i:04}" for i in range(n)]),
        encounters=np.array([f"E{i:04}" for i in range(n)]),
        encounter_patient=np.arange(n, dtype=np.int32),
        diagnosis=pairs,
        access_user=user.astype(np.int32),
        access_encounter=encounter.astype(np.int32),
        access_row=np.arange(1, len(user) + 1),
        access_at=np.zeros(len(user), dtype=np.int64),
    )
    return log, np.arange(len(user)) >= opened.sum()


def test_workmates_who_are_curious_together_speak_less_for_each_other(
    curious_workmates, monkeypatch
):
    log, snooping = curious_workmates
    explained = {}
    for weight in (1.0, UNEXPLAINED):
        monkeypatch.setattr("telic.specialty.alarms.colleagues.UNEXPLAINED", weight)
        explained[weight] = find_reasons(log, nothing_found(log)).explained
    assert explained[1.0][snooping].mean() > 0.95
    assert explained[UNEXPLAINED][snooping].mean() < 0.75
    assert explained[UNEXPLAINED][~snooping].mean() > explained[1.0][~snooping].mean() - 0.02
