import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import beta
from tests.reference import specialty as reference
from threadpoolctl import threadpool_info, threadpool_limits

from telic.simulate.hospital_families import FAMILIES, simulate_family
from telic.specialty.discovery import by_residuals, practice_mixture
from telic.specialty.discovery.by_residuals import (
    SHUFFLES,
    Signal,
    directions,
    pearson_residuals,
    signal,
)
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.practice_mixture import (
    EM_STEPS,
    HALVINGS,
    MIN_USERS,
    SHRINK,
    Practices,
    held_up,
    members,
    merge,
    profiles_of,
    refine,
    shares,
)
from telic.specialty.discovery.user_patient_units import FEWEST_USERS, Units, units_of


@pytest.fixture(scope="module")
def hospital():
    return simulate_family("problem lists", 0)


@pytest.fixture(scope="module")
def units(hospital):
    return units_of(hospital.log)


@pytest.mark.parametrize(("family", "control"), [("panels", "lean"), ("wards", "none")])
def test_dimensions_are_those_above_every_shuffle(family, control):
    units, rng = units_of(simulate_family(family, 0, control=control).log), np.random.default_rng(0)

    def sizes(units):
        return np.linalg.svd(pearson_residuals(units.counts().toarray()), compute_uv=False)

    chance = max(sizes(units.dealt(rng))[0] for _ in range(SHUFFLES))
    found = signal(units, np.random.default_rng(0))
    assert found.n_dimensions == (sizes(units) > chance).sum() > 2


@pytest.mark.parametrize("shown", [*product([True, False], repeat=2 * HALVINGS)])
def test_what_shows_in_most_halves_is_kept_however_soon_that_is_decided(shown, monkeypatch):
    turn, member = iter(shown), np.repeat([0, -1], MIN_USERS)

    def measured(counts, profile):
        return np.where(member == 0, float(next(turn)), 0.0)[:, None]

    found = Practices(np.zeros((2, 1)), member)
    monkeypatch.setattr(practice_mixture, "refine", lambda *given: found)
    monkeypatch.setattr(practice_mixture, "shares", measured)
    user = np.arange(2 * MIN_USERS)
    codes = sparse.csr_array(np.ones((len(user), 1)))
    units = Units(user, user, codes, len(user), np.zeros(1, dtype=int))
    assert held_up(units, found, np.random.default_rng(0)).tolist() == [sum(shown) > HALVINGS]


def f1(truth, found):
    return 2 * (truth & found).sum() / max(truth.sum() + found.sum(), 1)


def test_units_are_users_and_patients_however_often_a_chart_is_read(hospital, units):
    log = hospital.log
    table, kept = reference.counts(log, FEWEST_USERS)
    assert units.code.tolist() == kept
    np.testing.assert_array_equal(units.counts().toarray(), table)
    pairs = reference.units(log)
    assert units.patients().sum() == len(pairs)
    assert set(units.user.tolist()) == {user for user, _ in pairs}
    again = replace(
        log,
        access_user=np.tile(log.access_user, 2),
        access_encounter=np.tile(log.access_encounter, 2),
        access_at=np.tile(log.access_at, 2),
    )
    np.testing.assert_array_equal(units_of(again).counts().toarray(), table)


def test_diagnoses_of_few_users_are_left_out(hospital, units):
    log = hospital.log
    new = sparse.csr_array((len(log.encounters), 2), dtype=log.diagnosis.dtype).tolil()
    users = np.unique(log.access_user)
    for column, number in enumerate((FEWEST_USERS - 1, FEWEST_USERS)):
        for user in users[:number]:
            new[log.access_encounter[log.access_user == user], column] = 1
    opened_by = np.zeros((len(log.users), 2), dtype=int)
    wider = replace(
        log,
        codes=np.array([*log.codes, "rare", "seen"]),
        diagnosis=sparse.csr_array(sparse.hstack([log.diagnosis, new])),
    )
    opened_by = (wider.user_diagnosis()[:, -2:] > 0).sum(axis=0)
    for place, seen in enumerate(opened_by):
        assert (len(log.codes) + place in units_of(wider).code) == (seen >= FEWEST_USERS)


def test_units_are_small_and_gone_when_all_is_found(hospital, units):
    """In a large log they are most of what is in memory."""
    each = units.user, units.patient, units.codes.data, units.codes.indices
    assert {part.dtype for part in each} == {np.dtype(np.int32)}
    there = {id(one) for one in gc.get_objects() if isinstance(one, Units)}
    found = by_residuals.group_by_residuals(
        hospital.log, restarts=1, seed=0, threads=1, progress=lambda done: None
    )
    assert (found.cluster >= 0).any()
    gc.collect()
    assert {id(one) for one in gc.get_objects() if isinstance(one, Units)} == there


def test_dealing_moves_whole_units_and_keeps_every_users_number(units):
    dealt = units.dealt(np.random.default_rng(0))
    np.testing.assert_array_equal(dealt.patients(), units.patients())
    assert dealt.codes is units.codes
    assert (dealt.user != units.user).any()


def test_halves_are_all_of_it_and_nothing_twice(units):
    first, second = units.halves(np.random.default_rng(0))
    np.testing.assert_array_equal(
        first.counts().toarray() + second.counts().toarray(), units.counts().toarray()
    )
    assert 0.4 < len(first.user) / len(units.user) < 0.6


def test_residuals_by_their_definition(units):
    table = units.counts().toarray()
    table[0] = 0  # a user without diagnoses
    np.testing.assert_allclose(
        pearson_residuals(table), reference.pearson_residuals(table), atol=1e-12
    )
    rare = np.zeros((30, 3))
    rare[:, 0], rare[0, 1] = 1000, 800  # one user's diagnosis
    assert pearson_residuals(rare).max() == np.sqrt(30)


def test_shares_by_their_definition(units):
    table = units.counts().toarray()[:12]
    profile = np.random.default_rng(0).dirichlet(np.ones(table.shape[1]), 3)
    found = shares(table, profile)
    for row, share in zip(table, found, strict=True):
        np.testing.assert_allclose(share, reference.shares(row, profile, EM_STEPS), atol=1e-9)
    assert shares(np.zeros((1, table.shape[1])), profile) == pytest.approx(np.full((1, 3), 1 / 3))
    unseen = np.array([[0.0, 1.0], [0.0, 1.0]])  # profiles of other users, without the diagnosis
    assert shares(np.array([[1.0, 0.0]]), unseen).tolist() == [[0.5, 0.5]]


def test_profiles_by_their_definition(hospital, units):
    table, n = units.counts().toarray(), hospital.plan.practices
    mix = table.sum(axis=0) / table.sum()
    profile, share = np.tile(mix, (n + 1, 1)), np.eye(n + 1)[hospital.practice]
    profile = reference.profiles(table, hospital.practice, profile, share, SHRINK)
    for u in np.flatnonzero(hospital.practice >= 0):  # the others' shares have no say
        share[u] = reference.shares(table[u], profile, EM_STEPS)
    profile = reference.profiles(table, hospital.practice, profile, share, SHRINK)
    np.testing.assert_allclose(profiles_of(units, hospital.practice, n), profile, atol=1e-8)


def test_membership_asks_for_a_large_and_a_sure_share():
    share = np.array([[0.34, 0.1], [0.32, 0.1], [0.2, 0.5], [0.2, 0.5], [0.2, 0.5]])
    patients = np.array([400, 10_000, 11, 10, 0])
    # 1.645 · √(.5 · .5 / n) ≤ 1/4 from n = 10.8 on.
    assert members(share, patients).tolist() == [0, -1, 1, -1, -1]


def test_the_truth_stays_where_it_starts_and_profiles_lose_everybodys_work(hospital, units):
    n = hospital.plan.practices
    found = refine(units, hospital.practice, n)
    kept = found.member[hospital.practice >= 0] == hospital.practice[hospital.practice >= 0]
    assert kept.mean() > 0.6
    table = units.counts().toarray()
    for k in hospital.hidden:
        users = hospital.practice == k
        raw = table[users].sum(axis=0) / table[users].sum()
        mix = found.profile[-1]
        assert np.abs(found.profile[k] - mix).sum() > 1.2 * np.abs(raw - mix).sum()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_practice_that_is_cut_in_two_is_joined_again_and_no_other(family):
    hospital = simulate_family(family, 6)
    units, n = units_of(hospital.log), hospital.plan.practices
    true = refine(units, hospital.practice, n)
    assert merge(units, true) is true
    largest = true.sizes.argmax()
    cut = true.member.copy()
    cut[np.flatnonzero(cut == largest)[::2]] = n
    # The halves may have any numbers, and there may be a practice without members.
    for order in (np.arange(n + 2), np.arange(n + 2)[::-1]):
        member = np.where(cut >= 0, order[cut], -1)
        joined = merge(units, Practices(profiles_of(units, member, n + 2), member))
        assert len(joined.sizes) == n + 1
        both = np.stack([true.member, joined.member])[:, joined.member >= 0]
        (old, new), count = np.unique(both, axis=1, return_counts=True)
        together = [new[old == k][count[old == k].argmax()] for k in range(n)]
        assert len(set(together)) == n  # every practice is one, and a different one
        assert count[(old == largest) & (new == together[largest])] > 0.8 * true.sizes[largest]


def test_a_group_that_does_not_show_on_other_patients_is_dropped(hospital, units):
    n = hospital.plan.practices
    rng = np.random.default_rng(0)
    true = refine(units, hospital.practice, n)
    large = np.flatnonzero(np.bincount(hospital.practice[hospital.practice >= 0]) >= 12)
    assert held_up(units, true, rng)[large].all()
    nothing = units.dealt(rng)
    invented = Practices(true.profile, true.member)
    assert not held_up(nothing, invented, rng).any()
    few = np.where(np.arange(len(true.member)) == np.flatnonzero(true.member == large[0])[0], 0, -1)
    assert not held_up(units, Practices(true.profile[[large[0], -1]], few), rng).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_planted_specialties_are_found(family):
    hospital = simulate_family(family, 8 if family == "panels" else 6)  # 1,200 and 700 users
    told = []
    found = discover(hospital.log, restarts=1, progress=told.append)
    n = found.details["looked_for"]
    assert n == found.details["n_practices"] + 1
    assert told == ["number of practices", f"{n} practices"]
    assert found.method == "residuals"
    assert found.details["n_practices"] <= hospital.plan.practices
    assert all(len(one.users) >= MIN_USERS for one in found.specialties)
    unlisted = [
        np.isin(np.arange(len(found.cluster)), one.users)
        for one in found.specialties
        if one.listed_code is None
    ]
    for k in hospital.hidden:
        assert max(f1(hospital.practice == k, users) for users in unlisted) >= 0.7
    assert any(one.listed_code for one in found.specialties)


@pytest.mark.parametrize("control", ["moved", "lean"])
@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_found_where_nobody_specialises(family, control):
    # Six hospitals each, 48 in all: none in 48 bounds the rate at 6 % (95 %, Clopper-Pearson).
    assert beta.ppf(0.95, 1, 48) < 0.061
    for seed in (0, 1, 2, 4, 12, 13):  # 150, 250 or 400 users
        hospital = simulate_family(family, seed, control=control)
        assert discover(hospital.log, restarts=1).specialties == []


def test_users_who_stand_out_are_those_beyond_shuffled_ones(hospital, units):
    found = signal(units, np.random.default_rng(0))
    assert found.n_practices == found.n_dimensions + 1 == hospital.plan.practices - 1
    special = hospital.practice >= 0
    assert found.standing_out[special].mean() > 0.7
    nothing = signal(units.dealt(np.random.default_rng(1)), np.random.default_rng(2))
    assert (nothing.n_dimensions, nothing.n_practices) == (0, 0)
    assert not nothing.standing_out.any()


def test_a_direction_and_not_a_distance_makes_a_cluster(hospital, units):
    found = signal(units, np.random.default_rng(0))
    stretch = np.random.default_rng(1).uniform(0.1, 10, len(found.place))[:, None]
    far = replace(found, place=found.place * stretch)
    same = directions(far, 5, 0), directions(found, 5, 0)
    np.testing.assert_array_equal(*same)
    assert (same[0][~found.standing_out] == -1).all()


def test_along_one_dimension_there_are_two_directions():
    place = np.array([[3.0], [2.0], [-4.0], [-1.0], [0.1]])
    cluster = directions(Signal(place, np.abs(place[:, 0]) > 0.5), 4, 0)
    assert cluster[0] == cluster[1] != cluster[2] == cluster[3]
    assert cluster[4] == -1


def shared_patients(seed):
    """Units of eight teams of six who see the same 30 patients each; what ails them is chance."""
    rng = np.random.default_rng(seed)
    codes = (rng.random((8 * 30, 40)) < 0.1).astype(float)
    user, patient = np.divmod(np.arange(48 * 30), 30)
    patient += user // 6 * 30
    return Units(user, patient, sparse.csr_array(codes[patient]), 48, np.arange(40))


def test_a_team_that_shares_patients_is_no_practice():
    kept = by_units = 0
    for seed in range(10):
        units = shared_patients(seed)
        teams = refine(units, np.arange(48) // 6, 8)
        kept += held_up(units, teams, np.random.default_rng(seed)).sum()
        # The control: where units are halved, every patient is on both sides, and teams do show.
        alone = replace(units, patient=np.arange(48 * 30))
        by_units += held_up(alone, teams, np.random.default_rng(seed)).sum()
    assert kept <= 2  # of 80
    assert by_units > 20


def test_halves_share_no_patient_and_hold_every_unit(units):
    one, other = units.halves(np.random.default_rng(0))
    assert not set(one.patient) & set(other.patient)
    assert len(one.user) + len(other.user) == len(units.user)
    assert len(one.user) / len(units.user) == pytest.approx(0.5, abs=0.1)
    np.testing.assert_array_equal(
        one.counts().toarray() + other.counts().toarray(), units.counts().toarray()
    )


def test_a_diagnosis_that_no_profile_holds_tells_nothing():
    profile = np.array([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0]])
    counts = np.array([[9.0, 1.0, 0.0], [9.0, 1.0, 7.0], [0.0, 0.0, 7.0]])
    share = shares(counts, profile)
    np.testing.assert_allclose(share[1], share[0])
    assert share[2].tolist() == [0.5, 0.5]


def test_every_run_has_one_thread_for_its_sums(hospital, monkeypatch):
    """More would add in another order each time; OpenMP counts threads for each thread apart."""
    begun_with_two = partial(
        ThreadPoolExecutor, initializer=threadpool_limits, initargs=(2, "openmp")
    )
    seen = []

    def looked_at(*given):
        seen.extend(one["num_threads"] for one in threadpool_info())
        return directions(*given)

    monkeypatch.setattr(by_residuals, "ThreadPoolExecutor", begun_with_two)
    monkeypatch.setattr(by_residuals, "directions", looked_at)
    discover(hospital.log, restarts=1, threads=2)
    assert set(seen) == {1}


def test_the_same_seed_finds_the_same_with_any_number_of_threads(hospital):
    once, again = (discover(hospital.log, restarts=2, seed=3, threads=n) for n in (1, 3))
    assert once.as_json(hospital.log) == again.as_json(hospital.log)
    assert once.specialties[0].stability is not None


def test_a_log_too_small_for_any_practice_finds_nothing(hospital):
    log = hospital.log
    few = replace(log, access_user=log.access_user[:3], access_encounter=log.access_encounter[:3])
    assert discover(few).specialties == []


def test_stability_is_judged_by_as_many_runs_and_sizes_as_were_made(hospital, monkeypatch):
    made = []

    def run(units, cluster, n_clusters):
        made.append(n_clusters)
        return refine(units, cluster, n_clusters)

    monkeypatch.setattr(by_residuals, "refine", run)
    found = by_residuals.group_by_residuals(
        hospital.log, restarts=3, seed=0, threads=1, progress=lambda text: None
    )
    n = found.details["looked_for"]
    assert made == [n, n, n, n - 1, n + 1]
    assert (len(found.restarts), len(found.sizes)) == (2, 2)
    assert [one.max() < k for one, k in zip(found.sizes, (n - 1, n + 1), strict=True)] == [True] * 2
