from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from telic.errors import InputError
from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.before_and_after import effect
from telic.specialty.alarms.colleagues import care_of
from telic.specialty.alarms.explained_alarms import judge, lines
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.user_patient_units import units_of
from telic.specialty.later_logs.carry import _median, carry
from telic.specialty.later_logs.kept_findings import findings_of, read_findings

SEED = 4  # 400 users, no drift


def rows_of(log, rows):
    """The same log with some of its accesses."""
    kept = {
        name: getattr(log, name)[rows]
        for name in ("access_user", "access_encounter", "access_at", "access_row")
    }
    return replace(log, **kept)


def cut(log, share=0.75):
    """The first accesses, and the rest."""
    day = np.sort(log.access_at)[int(share * len(log.access_at))]
    return rows_of(log, log.access_at <= day), rows_of(log, log.access_at > day)


@pytest.fixture(scope="module")
def hospital():
    return simulate_family("problem lists", SEED)


@pytest.fixture(scope="module")
def parts(hospital):
    return cut(hospital.log)


@pytest.fixture(scope="module")
def found(parts):
    return discover(parts[0], restarts=1)


@pytest.fixture(scope="module")
def findings(parts, found):
    return findings_of(parts[0], found)


def test_findings_come_back_from_disk_as_they_were(findings, tmp_path):
    findings.save(tmp_path / "findings")
    again = read_findings(tmp_path / "findings")
    for name in ("users", "taxonomy", "cluster", "codes", "patients", "profile"):
        np.testing.assert_array_equal(getattr(again, name), getattr(findings, name))
    for name in ("accesses", "seen"):
        assert (getattr(again, name) != getattr(findings, name)).nnz == 0
    assert [one.as_json() for one in again.specialties] == [
        one.as_json() for one in findings.specialties
    ]
    assert again.until == findings.until


def test_a_later_log_is_judged_by_both_logs_and_never_by_the_users_own_accesses(
    hospital, parts, findings
):
    whole, later = hospital.log, parts[1]
    carried = carry(findings, later)
    alerts = judge(later, carried.discovery, before=findings)
    # By definition: the whole log's accesses, without the user's own.
    counts = whole.user_diagnosis().toarray().astype(float)
    base = counts.sum(axis=0) / counts.sum()
    rng = np.random.default_rng(0)
    for a in rng.choice(len(later.access_user), 40, replace=False):
        u = later.access_user[a]
        k = carried.discovery.cluster[u]
        codes = later.diagnosis[[later.access_encounter[a]]].indices
        for group, lift in (
            (carried.findings.cluster == k if k >= 0 else None, alerts.practised[a]),
            (
                whole.taxonomy == whole.taxonomy[u] if whole.taxonomy[u] else None,
                alerts.declared[a],
            ),
        ):
            if group is None:
                continue
            group = group.copy()
            group[u] = False
            mine = counts[group].sum(axis=0)
            lifts = (mine + 200 * base) / ((mine.sum() + 200) * base)
            assert lift == pytest.approx(lifts[codes].max())


def test_members_stay_and_people_of_whom_nothing_was_known_are_folded_in(hospital):
    first, later = cut(hospital.log)
    found = discover(first, restarts=1)
    members = np.flatnonzero(found.cluster >= 0)
    away = members[::4]  # as if they had not worked there before
    before = rows_of(first, ~np.isin(first.access_user, away))
    cluster = found.cluster.copy()
    cluster[away] = -1
    specialties = [replace(one, users=np.setdiff1d(one.users, away)) for one in found.specialties]
    findings = findings_of(before, replace(found, specialties=specialties, cluster=cluster))
    carried = carry(findings, later)
    kept = np.setdiff1d(members, away)
    np.testing.assert_array_equal(carried.discovery.cluster[kept], found.cluster[kept])
    active = np.bincount(later.access_user, minlength=len(later.users)) >= 10
    enough = away[active[away]]
    assert len(enough) >= 10
    right = carried.discovery.cluster[enough] == found.cluster[enough]
    assert right.mean() > 0.25  # of some ten patients: the rule is a cautious one
    assert ((carried.discovery.cluster[enough] >= 0) & ~right).mean() < 0.1
    assert sum(one.folded_in for one in carried.drift) >= right.sum()


def test_who_practises_what_did_not_show_is_not_folded_into_what_is_nearest(parts, found):
    first, later = parts
    taken = 0
    for k in range(len(found.specialties)):
        dropped = found.cluster == k  # as if it had not shown on other patients
        fewer = replace(
            found,
            specialties=[one for j, one in enumerate(found.specialties) if j != k],
            cluster=np.where(dropped, -1, found.cluster - (found.cluster > k)),
            other_groups=None,
        )
        known = replace(fewer, other_groups=np.where(dropped, 0, -1))
        unknown, folded = (
            int((carry(findings_of(first, one), later).discovery.cluster[dropped] >= 0).sum())
            for one in (fewer, known)
        )
        assert folded == 0
        taken += unknown
    assert taken > 5  # who else would be members


def test_groups_that_did_not_show_are_told(found):
    others = found.other_groups[found.other_groups >= 0]
    assert len(others) > 0
    assert (found.cluster[found.other_groups >= 0] == -1).all()
    np.testing.assert_array_equal(np.unique(others), np.arange(others.max() + 1))


def test_whoever_a_later_log_does_not_list_keeps_the_code_that_was_declared(parts, findings):
    later = parts[1]
    listed = np.arange(len(later.users)) < 20
    partly = replace(later, taxonomy=np.where(listed, later.taxonomy, ""))
    moved = replace(partly, taxonomy=np.where(np.arange(len(listed)) == 0, "New", partly.taxonomy))
    for log, first in ((partly, later.taxonomy[0]), (moved, "New")):
        carried = carry(findings, log).findings
        found = dict(zip(carried.users, carried.taxonomy, strict=True))
        for user, code in zip(findings.users, findings.taxonomy, strict=True):
            assert found[user] == (first if user == later.users[0] else code)
    seen = []
    for log in (later, partly):
        carried = carry(findings, log)
        care = care_of(carried.log, carried.discovery, before=findings)
        alerts = judge(carried.log, carried.discovery, before=findings, care=care)
        queue = alerts.queue()
        described = lines(carried.log, carried.discovery, alerts, queue, pseudonyms=None)
        seen.append((effect(carried.log, carried.discovery, alerts), [*described]))
    assert seen[0] == seen[1]
    assert "users without a code keep the one that they declared before" in carried.notes[-1]


def test_rows_that_were_counted_are_not_counted_again(hospital, parts, findings):
    grown = carry(findings, hospital.log)  # an export that holds the earlier rows too
    fresh = carry(findings, parts[1])
    assert (grown.findings.accesses != fresh.findings.accesses).nnz == 0
    assert any("they are counted there already" in note for note in grown.notes)
    same = carry(findings, parts[0])
    np.testing.assert_array_equal(same.discovery.cluster, findings.cluster)
    assert (same.findings.accesses != findings.accesses).nnz == 0
    again = carry(grown.findings, hospital.log)
    assert (again.findings.accesses != grown.findings.accesses).nnz == 0
    whole = hospital.log.user_diagnosis()
    assert (grown.findings.accesses != whole).nnz == 0


def drifting(family, seed, change):
    """A log and its last quarter; with `change`, everybody sees anything there."""
    log = simulate_family(family, seed).log
    first, later = cut(log)
    if change:
        shuffled = np.random.default_rng(0).permutation(later.access_encounter)
        later = replace(later, access_encounter=shuffled)
    return first, later


def test_drift_is_seen_where_it_is_and_hardly_where_it_is_not():
    weaker = {}
    for change in (False, True):
        first, later = drifting("problem lists", SEED, change)
        drift = carry(findings_of(first, discover(first, restarts=1)), later).drift
        said = [one.verdict for one in drift]
        assert len(said) >= 4
        weaker[change] = sum("weaker" in one for one in said) / len(said)
    assert weaker[False] <= 0.25
    assert weaker[True] >= 0.8


def test_a_move_of_the_mix_is_set_against_what_new_patients_alone_would_move(parts, findings):
    first, later = parts
    carried = carry(findings, later)

    def seen(log):
        """One row for each patient: how many users saw each diagnosis of the patient."""
        units = units_of(log, fewest_users=1)
        table = np.zeros((len(log.patients), len(log.codes)))
        for patient, codes in zip(units.patient, units.codes.toarray(), strict=True):
            table[patient, units.code] += codes
        return table[np.unique(units.patient)]

    def apart(one, other):
        one, other = (part.sum(axis=0) / part.sum() for part in (one, other))
        return np.abs(one - other).sum() / 2

    assert first.codes.tolist() == later.codes.tolist()
    old, new = seen(first), seen(later)
    everybody_saw = np.isin(first.codes, findings.codes)
    old, new = old[:, everybody_saw], new[:, everybody_saw]
    assert carried.mix_moved == pytest.approx(apart(old, new), rel=0.02)
    rng, both = np.random.default_rng(1), np.vstack([old, new])
    chance = []
    for _ in range(20):
        both = rng.permutation(both)
        chance.append(apart(both[: len(old)], both[len(old) :]))
    assert carried.mix_by_chance == pytest.approx(np.mean(chance), rel=0.25)


def test_the_median_lies_between_order_statistics():
    values = np.random.default_rng(0).permutation(10) + 1.0
    assert _median(values) == (5.5, (2.0, 9.0))  # the sign test's, in any table
    assert _median(values[values < 7]) == (3.5, (1.0, 6.0))
    assert _median(np.arange(5.0)) == (2.0, None)
    assert _median(np.empty(0)) == (None, None)


def test_another_hospital_and_other_codes_are_refused(parts, findings):
    later = parts[1]
    others = replace(later, users=np.array([f"X{i:04d}" for i in range(len(later.users))]))
    with pytest.raises(InputError, match="no user of the findings"):
        carry(findings, others)
    coded = replace(later, codes=np.array([f"E{i:03d}" for i in range(len(later.codes))]))
    with pytest.raises(InputError, match="--code-table"):
        carry(findings, coded)


def test_new_users_and_codes_are_said(parts, findings):
    later = parts[1]
    # As if the findings were of fewer users, and the later log of other codes in part.
    user = later.access_user[0]
    newcomer = later.users.astype(object)
    newcomer[user] = "Z-new"
    order = np.argsort(newcomer.astype(str))
    place = np.empty(len(order), later.access_user.dtype)
    place[order] = np.arange(len(order))
    changed = replace(
        later,
        users=newcomer.astype(str)[order],
        taxonomy=later.taxonomy[order],
        access_user=place[later.access_user],
    )
    notes = carry(findings, changed).notes
    assert "<11 users are new since the findings" in notes
    opened = np.asarray(later.diagnosis[later.access_encounter].sum(axis=0)).ravel()
    code = int(np.argmax(opened))
    codes = later.codes.astype(object)
    codes[code] = "~" + codes[code]  # the last in order
    order = np.argsort(codes.astype(str))
    changed = replace(
        later, codes=codes.astype(str)[order], diagnosis=later.diagnosis[:, order], labels={}
    )
    share = opened[code] / opened.sum()
    assert [note for note in carry(findings, changed).notes if "codes new" in note] == [
        f"{share:.1%} of the accessed diagnoses are of codes new to the findings"
    ]
    assert not any("new" in note for note in carry(findings, later).notes)


def test_a_diagnosis_that_no_longer_comes_counts_whether_or_not_the_log_still_lists_it(
    parts, findings
):
    later = parts[1]
    gone = int(later.user_diagnosis().sum(axis=0).argmax())
    has = later.diagnosis[:, [gone]].toarray().ravel() > 0
    rest = rows_of(later, ~has[later.access_encounter])
    kept = np.arange(len(later.codes)) != gone
    carried = [
        carry(findings, log)
        for log in (rest, replace(rest, codes=rest.codes[kept], diagnosis=rest.diagnosis[:, kept]))
    ]
    assert carried[0].drift == carried[1].drift
    units = units_of(rest, fewest_users=1)
    new = np.zeros(len(findings.codes))
    new[np.searchsorted(findings.codes, rest.codes[units.code])] = units.counts().sum(axis=0)
    old = findings.seen.sum(axis=0)
    moved = np.abs(new / new.sum() - old / old.sum()).sum() / 2
    assert [one.mix_moved for one in carried] == pytest.approx([moved, moved])


def test_whoever_sees_new_codes_alone_is_no_member_and_tells_of_no_drift(parts, found):
    first, later = parts
    cluster = np.where(found.cluster == 0, 0, -1)
    one = replace(found, specialties=found.specialties[:1], cluster=cluster)
    members = np.flatnonzero(cluster == 0)
    strangers = np.setdiff1d(np.unique(later.access_user), members)[:20]
    findings = findings_of(rows_of(first, ~np.isin(first.access_user, strangers)), one)
    theirs = np.isin(later.access_user, np.append(strangers, members))
    changed = np.isin(np.arange(len(later.encounters)), later.access_encounter[theirs])
    diagnosis = later.diagnosis.toarray() * ~changed[:, None]
    recoded = replace(
        later,
        codes=np.append(later.codes, "new"),
        diagnosis=sparse.csr_array(np.column_stack([diagnosis, changed])),
    )
    carried = carry(findings, recoded)
    assert (carried.discovery.cluster[strangers] == -1).all()
    assert carried.drift[0].verdict == "too few new patients to say"
