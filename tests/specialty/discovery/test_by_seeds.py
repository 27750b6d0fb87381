"""Who seeds a cluster, who is in one, and what its stability compares with."""

import numpy as np
import pytest
from scipy import sparse

from telic.errors import InputError
from telic.simulate.hospital_families import simulate_family
from telic.specialty.discovery import by_seeds
from telic.specialty.discovery.by_seeds import group_by_seeds, links_of, path_of, representatives
from telic.specialty.discovery.pathselclus import Clustering


def test_seeds_are_the_half_nearest_to_the_codes_mean_profile():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 6, (21, 8)) + 1
    taxonomy = np.array(["a"] * 9 + ["b"] * 8 + [""] * 4)
    share = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    found = representatives(taxonomy, sparse.csr_array(counts), ["b", "a"])
    for k, code in enumerate(["b", "a"]):
        users = np.flatnonzero(taxonomy == code)
        mean = share[users].mean(axis=0)
        nearest = sorted(users, key=lambda u: -(share[u] @ mean))[: (len(users) + 1) // 2]
        assert set(np.flatnonzero(found == k)) == set(nearest)
    assert (found[taxonomy == ""] == -1).all()


def test_full_paths_of_busy_users_do_not_overflow():
    seen = sparse.csr_array(np.array([[50_000, 0], [60_000, 3]], np.int32))
    full = path_of("U-P-D-P-U", seen.sign(), seen).toarray()
    assert full.tolist() == [[2_500_000_000, 3_000_000_000], [3_000_000_000, 3_600_000_009]]


class Log:
    """30 users, of whom user 29 opened nothing; code a has 12 users, b has 9, which is too few."""

    users = np.array([f"u{i}" for i in range(30)])
    taxonomy = np.array(["a"] * 12 + ["b"] * 9 + [""] * 9)
    fine = fine_patient = None

    def __init__(self):
        counts = np.random.default_rng(1).integers(0, 5, (30, 6))
        counts[29] = 0
        self.counts = sparse.csr_array(counts)

    def class_sizes(self):
        return {"a": 12, "b": 9}

    def user_patient(self, rows=slice(None)):
        return self.counts.sign()

    def patient_diagnosis(self):
        return sparse.csr_array(np.eye(6, dtype=int))

    def user_diagnosis(self, rows=slice(None)):
        return self.counts


def test_a_user_is_in_a_cluster_by_a_share_of_a_quarter_and_sizes_are_one_fewer_and_more(
    monkeypatch,
):
    asked, told = [], []

    def fitted(links, seeds, *, n_clusters, finished, **options):
        asked.append((n_clusters, finished, sorted(set(seeds))))
        options["progress"](f"{n_clusters} clusters")
        theta = np.full((29, n_clusters), 1e-6)
        theta[:, 0] = 0.2499
        theta[:10, 1] = 0.25
        rest = 1 - theta.sum(axis=1)
        theta[:, 2:] += rest[:, None] / (n_clusters - 2)
        theta[:, 2:] = np.minimum(theta[:, 2:], 0.24)
        return Clustering(theta, {}, {"U-P-D": 2.0}, 1.0, tuple([theta] * finished))

    monkeypatch.setattr(by_seeds, "fit_pathselclus", fitted)
    monkeypatch.setattr(by_seeds, "path_contrast", lambda *args, **options: {})
    found = group_by_seeds(
        Log(),
        paths=["U-P-D"],
        view=None,
        free=5,
        restarts=3,
        seed=0,
        threads=1,
        progress=told.append,
    )
    assert told == [f"PathSelClus with {free} free clusters" for free in (5, 4, 6)]
    assert found.cluster.tolist() == [1] * 10 + [-1] * 20
    assert found.in_view.tolist() == list(range(29))
    assert found.details["seeded_codes"] == ["a"]
    # One seeded cluster beside five free ones; then beside four and six, one run each.
    assert asked == [(6, 3, [-1, 0]), (5, 1, [-1, 0]), (7, 1, [-1, 0])]
    assert (found.n_clusters, len(found.restarts), len(found.sizes)) == (6, 2, 2)


ONE_RUN = {
    **{"paths": ["U-P-D"], "view": None, "free": 2, "restarts": 1, "seed": 0, "threads": 1},
    "progress": lambda step: None,
}


def test_a_log_of_one_diagnosis_has_paths_that_say_nothing(monkeypatch):
    log = Log()
    log.counts = sparse.csr_array(np.ones((30, 1), int))
    monkeypatch.setattr(log, "patient_diagnosis", lambda: sparse.csr_array([[1]]))
    found = group_by_seeds(log, **ONE_RUN)
    assert found.details["path_share"] == {"U-P-D": 0.0}


def test_a_month_is_scored_by_the_clusters_profiles_of_the_year(monkeypatch):
    log = Log()
    theta = np.eye(3)[np.arange(29) % 3]
    model = Clustering(theta, {}, {"U-P-D": 1.0}, 1.0, (theta,))
    monkeypatch.setattr(by_seeds, "fit_pathselclus", lambda *args, **options: model)
    monkeypatch.setattr(by_seeds, "path_contrast", lambda *args, **options: {})
    found = group_by_seeds(log, **ONE_RUN)
    counts = log.counts.toarray()
    score = found.by_month(np.arange(5))
    for k in range(3):
        own = counts[[u for u in range(29) if u % 3 == k]].sum(axis=0) + 0.5
        np.testing.assert_allclose(score[:, k], counts @ np.log(own / own.sum()))
    assert found.restarts == found.sizes == []


def test_a_view_that_the_log_has_not_is_refused():
    log = simulate_family("wards", 0).log
    with pytest.raises(InputError, match=r"no access_diagnoses table.* Use the general view"):
        links_of(log, "fine")
    with pytest.raises(InputError, match="view is 'coarse', expected 'fine' or 'general'"):
        links_of(log, "coarse")
    patient, diagnosis = links_of(log, "general")
    np.testing.assert_array_equal(
        diagnosis.toarray(), patient.toarray() @ log.patient_diagnosis().toarray()
    )


def test_no_seeds_is_said(monkeypatch):
    log = Log()
    monkeypatch.setattr(log, "class_sizes", lambda: {"a": 9})
    with pytest.raises(InputError, match="no declared specialty has 10 users"):
        group_by_seeds(
            log,
            paths=["U-P-D"],
            view=None,
            free=2,
            restarts=1,
            seed=0,
            threads=1,
            progress=lambda step: None,
        )
