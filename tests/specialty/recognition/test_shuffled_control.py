from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from telic.simulate.hospital import simulate_hospital
from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery.by_topics import mean_share
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.gibbs_lda import GibbsLDA
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.log.log_files import read_log
from telic.specialty.recognition.recognise import recognise
from telic.specialty.recognition.shuffled_control import (
    CLUSTERS,
    DE_FACTO,
    NO_CLASS,
    Shuffled,
    _thinned,
    recognise_found,
    recognition_facts,
    shuffle,
)

PIPELINE = "rows of length 1, linear, C = 1"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    folder = tmp_path_factory.mktemp("control") / "log"
    simulate_hospital(folder, scale=0.03)
    return read_log(folder)


def specialty(users):
    return Specialty("of nothing", None, None, users, [], None, None, None)


@pytest.mark.slow
def test_a_found_specialty_is_far_from_a_cluster_of_nothing(log):
    found = discover(log, method="lda", n_topics=40, restarts=1)
    recognised, notes = recognise_found(log, found, pipeline=PIPELINE)
    assert recognised
    assert {len(one.of_pipelines) for one in recognised.values()} == {1}
    for (k, _), one in recognised.items():
        assert found.specialties[k].listed_code is None
        assert one.of(DE_FACTO)[2] > one.shuffled_f1 + 0.25
    assert all("not recognised" in note for note in notes)


@pytest.mark.slow
def test_where_nothing_is_to_find_a_cluster_is_near_a_cluster_of_nothing(log):
    rng = np.random.default_rng(7)
    empty = replace(log, access_encounter=rng.permutation(log.access_encounter))
    documents = empty.patient_diagnosis()
    topics = GibbsLDA(n_topics=40, random_state=5).fit_transform(documents)
    share = mean_share(empty.user_patient(), topics)
    clusters = [
        specialty(np.argsort(-share[:, k])[:size]) for k, size in ((3, 60), (8, 60), (5, 200))
    ]
    found = Discovery("lda", clusters, np.full(len(log.users), -1), {"n_topics": 40})
    recognised, _ = recognise_found(empty, found, pipeline=PIPELINE, seed=1)
    assert len(recognised) == 3
    for one in recognised.values():
        assert one.of(DE_FACTO)[2] == pytest.approx(one.shuffled_f1, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", ["chosen", "printed"])
def test_a_cluster_of_nothing_is_recognised_with_the_same_pipelines(log, pipeline):
    mixed = shuffle(log, n_topics=4)
    core = ["Urology", "Neurology"]
    expected = []
    for users in mixed.clusters(30):
        labels = np.where(np.isin(log.taxonomy, core), log.taxonomy, "").astype(object)
        labels[users] = DE_FACTO
        labels[np.setdiff1d(np.arange(len(labels)), mixed.users)] = ""
        options = {"method": "Decision Trees", "pipeline": pipeline, "seed": 2}
        expected.append(recognise(mixed.counts, labels.astype(str), **options).of(DE_FACTO)[2])
    found, beside = mixed.f1(log.taxonomy, 30, core, **options)
    assert found == pytest.approx(np.mean(expected))
    assert beside == core


@pytest.mark.parametrize(("size", "left"), [(8, ["A", "B"]), (12, ["A"]), (16, None)])
def test_a_cluster_of_nothing_may_leave_no_class_to_tell_it_from(size, left):
    # Of one topic, so that the cluster is of its first users; the last declare codes.
    taxonomy = np.repeat(["", "B", "A"], [8, 6, 7])
    counts = sparse.csr_array(np.random.default_rng(0).integers(0, 5, size=(21, 6)))
    mixed = Shuffled(np.arange(21), counts, np.arange(21.0, 0, -1)[:, None])
    f1, beside = mixed.f1(taxonomy, size + 2, ["A", "B"], method="Naive")
    assert (f1 is None) == (left is None)
    assert beside == (left or [])


def test_a_specialty_larger_than_all_who_declare_codes_is_recognised_without_its_control(small):
    log, _ = small
    seen = np.unique(log.access_user)
    taxonomy = np.full(len(log.users), "", dtype="U1")
    taxonomy[seen[:12]] = np.repeat(["A", "B"], 6)
    log, many = replace(log, taxonomy=taxonomy), seen[12:]
    found = Discovery("residuals", [specialty(many)], np.full(len(log.users), -1))
    recognised, notes = recognise_found(log, found, methods=("Naive",))
    (one,) = recognised.values()
    assert one.shuffled_f1 is None
    assert "no F1 in shuffled data" in notes[-1]
    (facts,) = recognition_facts(found, recognised)
    assert facts["shuffled_f1"] is None


def test_a_control_beside_fewer_codes_is_said(small, monkeypatch):
    log, users = small
    found = Discovery("residuals", [specialty(users)], np.full(len(log.users), -1))
    monkeypatch.setattr(Shuffled, "f1", lambda self, taxonomy, size, core, **how: (0.5, core[1:]))
    recognised, notes = recognise_found(log, found, methods=("Naive",))
    (one,) = recognised.values()
    assert one.shuffled_f1 == 0.5
    core = len(one.classes) - 1
    assert f"in shuffled data told from {core - 1} of the {core} codes at times" in notes[-1]


def test_shuffling_moves_every_access_and_loses_none(log):
    mixed = shuffle(log, n_topics=5)
    own, moved = log.user_diagnosis(), mixed.counts
    np.testing.assert_array_equal(own.sum(axis=0), moved.sum(axis=0))
    assert (own != moved).nnz > 0.3 * own.nnz
    np.testing.assert_allclose(mixed.share.sum(axis=1), 1)
    assert [len(set(users)) for users in mixed.clusters(33)] == [33] * 3
    largest = mixed.clusters(33)[0]
    assert any(
        set(largest) == set(mixed.users[np.argsort(-mixed.share[:, k])[:33]]) for k in range(5)
    )


def test_the_fine_view_keeps_each_users_number_of_accesses(log):
    mixed = shuffle(log, n_topics=5, fine=True)
    own = np.asarray(log.fine.sum(axis=1)).ravel()
    moved = np.asarray(mixed.counts.sum(axis=1)).ravel()
    np.testing.assert_array_equal(own, moved)
    np.testing.assert_array_equal(mixed.users, np.flatnonzero(own))


def test_an_access_of_the_fine_view_sees_any_of_its_diagnoses_alike(log):
    rng = np.random.default_rng(0)
    opened = np.bincount(log.access_user, minlength=len(log.users))
    rows, counts = _thinned(log, opened, rng)
    assert sorted(rows) == [*range(len(log.access_user))]
    diagnosis = log.diagnosis[log.access_encounter].sign()
    length = np.asarray(diagnosis.sum(axis=1)).ravel()
    expected = np.asarray(diagnosis.T @ (1 / length)).ravel()
    assert length.max() > 1
    found = np.asarray(counts.sum(axis=0)).ravel()
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected) + 1e-9).all()
    rows, counts = _thinned(log, opened // 2, rng)
    assert (np.bincount(log.access_user[rows], minlength=len(log.users)) == opened // 2).all()
    per_user = np.asarray(counts.sum(axis=1)).ravel()
    np.testing.assert_array_equal(per_user, opened // 2)
    assert rows.mean() == pytest.approx(len(log.access_user) / 2, rel=0.05)  # not the first ones


def test_clusters_of_nothing_are_those_nearest_in_size():
    largest = np.repeat(np.arange(5), [2, 8, 14, 30, 0])  # topic 4 is nobody's largest
    rng = np.random.default_rng(1)
    share = 0.5 * np.eye(5)[largest] + rng.random((54, 5)) / 20
    users = np.arange(100, 154)
    found = Shuffled(users, None, share).clusters(10)
    assert len(found) == CLUSTERS
    for k, cluster in zip((1, 2, 3), found, strict=True):  # 10/8 < 14/10 < 30/10 < 10/2 < 10/½
        best = sorted(range(54), key=lambda place: -share[place, k])[:10]
        assert cluster.tolist() == users[best].tolist()


@pytest.mark.slow
def test_small_and_listed_specialties_are_not_recognised(log):
    users = np.arange(4)
    listed = replace(specialty(np.arange(100, 200)), listed_code="Urology")
    found = Discovery("lda", [specialty(users), listed], np.full(len(log.users), -1))
    recognised, notes = recognise_found(log, found)
    assert recognised == {}
    assert "of nothing: not recognised: 5 users are needed to measure anything" in notes[-1]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A hospital whose codes have names of their own, and a group of eight who see one thing."""
    folder = tmp_path_factory.mktemp("small") / "log"
    simulate_hospital(folder, scale=0.002)
    log = read_log(folder)
    taxonomy = np.array([f"Ward {name}" if name else "" for name in log.taxonomy])
    busy = np.intersect1d(np.flatnonzero(taxonomy == "Ward Dermatology"), log.access_user)[:8]
    return replace(log, taxonomy=taxonomy), busy


def test_few_users_beside_codes_of_another_hospital_are_recognised(small):
    log, users = small
    found = Discovery("residuals", [specialty(users)], np.full(len(log.users), -1))
    recognised, notes = recognise_found(log, found, methods=("Naive",))
    (one,) = recognised.values()
    assert one.support[one.classes.index(DE_FACTO)] == 8
    assert {name[:5] for name in one.classes} == {"Ward ", DE_FACTO[:5]}
    assert "fewer than two of the dissertation's core classes" in notes[0]
    assert len(notes) == 1
    (facts,) = recognition_facts(found, recognised)
    assert facts["users"] is None  # a small cell
    assert facts["beside"] == [name for name in one.classes if name != DE_FACTO]
    low, high = facts["f1_interval"]
    assert low <= facts["f1"] <= high
    assert high - low > 0.3
    assert facts["users_needed"] > 8
    few = replace(found, specialties=[specialty(users[:4])])
    said = "of nothing: not recognised: 5 users are needed to measure anything"
    recognised, notes = recognise_found(log, few)
    assert (recognised, len(notes)) == ({}, 1)
    assert said in notes[0]


def test_a_hospital_that_declares_no_codes_is_told_what_is_missing(small):
    log, users = small
    bare = replace(log, taxonomy=np.full(len(log.users), ""))
    found = Discovery("residuals", [specialty(users)] * 2, np.full(len(log.users), -1))
    assert recognise_found(bare, found) == ({}, [NO_CLASS])


def test_users_who_accessed_nothing_change_no_score():
    log = simulate_family("problem lists", 0).log
    codes = log.taxonomy[log.taxonomy != ""]
    idle = np.array([f"~{number:03d}" for number in range(200)])
    more = replace(
        log,
        users=np.concatenate([log.users, idle]),
        taxonomy=np.concatenate([log.taxonomy, np.resize(codes, len(idle))]),
    )
    members, facts = np.arange(0, 150, 7), []
    for one, users in ((log, members), (more, np.append(members, [150, 151]))):
        cluster = np.where(np.isin(np.arange(len(one.users)), users), 0, -1)
        found = Discovery("residuals", [specialty(users)], cluster, {"n_topics": 5})
        recognitions, notes = recognise_found(one, found, pipeline=PIPELINE)
        facts.append((recognition_facts(found, recognitions), notes))
    assert facts[0][0]
    assert facts[0] == facts[1]
