from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.recognition.classifiers import CLASSIFIERS
from telic.specialty.recognition.recognise import CORE_CLASSES, MIN_CLASS, present_core, recognise
from telic.specialty.recognition.shuffled_control import DE_FACTO, shuffle
from telic.study import chapter6
from telic.study.chapter6 import calibration, dblp, pathselclus_ablation, recognition, tables
from telic.study.chapter6.calibration import counts, knob
from telic.study.chapter6.dblp import AREAS, held_out
from telic.study.chapter6.hospital import Truth, hospital
from telic.study.chapter6.pathselclus_ablation import clustered
from telic.study.chapter6.recognition import recognised
from telic.study.chapter6.topics import class_sizes, unlisted, urologists_topic
from telic.study.chapter6.truth import (
    alarms,
    counted_alarms,
    hidden_found,
    nearest_found,
    recovery,
)
from telic.study.steps import Steps

SMALL = {"scale": 0.02, "seed": 0}
DATA = data_folder() / "hin"


@pytest.fixture(scope="module")
def log():
    return hospital(0.02, 0)[0]


@pytest.fixture(scope="module")
def mixed(log):
    return shuffle(log, n_topics=4)


@pytest.mark.slow
def test_summary_and_topics_have_the_tables_shape(log):
    table = tables.counts_table(counts(**SMALL))
    assert table.records()[0] == {
        "": "accesses",
        "simulated": len(log.access_user),
        "published": 4_829_376,
    }
    table = tables.urologists_table(urologists_topic(**SMALL, n_topics=30))
    assert len(table.rows) == 10
    assert list(table.columns) == ["user documents", "patient documents"]
    urology = {"Calculus of kidney", "Hematuria", "Hyperplasia of prostate"}
    assert all(urology <= {row[k] for row in table.rows} for k in range(2))


def test_truth_and_alarms_count_what_they_say(log):
    found = discover(log, method="lda", n_topics=8, restarts=1)
    practice = np.full(len(log.users), "none", dtype=object)
    practice[found.specialties[0].users] = "Obesity"
    obesity = list(HIDDEN_SIZES).index("Obesity")
    truth = Truth(practice, {"known": np.array([1])}, np.full(len(log.encounters), obesity))
    scores = {row["hidden"]: row["f1"] for row in nearest_found(log, truth, found)}
    assert scores == {"Breast Cancer": 0, "Obesity": 1}
    counted = counted_alarms(log, found, truth)
    planted, *_ = counted["snooping"]["known"]
    assert planted == 1
    assert 0 < counted["planted_explained"] < counted["planted"]
    # Users that discovery missed are counted all the same, and nothing explains their alarms.
    missed = counted_alarms(log, Discovery("lda", [], np.full(len(log.users), -1)), truth)
    assert (missed["planted"], missed["planted_explained"]) == (counted["planted"], 0)
    elsewhere = truth._replace(hidden_encounter=np.full(len(log.encounters), -1))
    assert counted_alarms(log, found, elsewhere)["planted"] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pipeline": "best"}, "pipeline is 'best', expected 'chosen' or 'printed'"),
        ({"part": "6.7"}, "part '6.7' of chapter 6 does not exist"),
    ],
)
def test_a_wrong_option_is_said_before_anything_is_simulated(options, message):
    with pytest.raises(InputError, match=message):
        chapter6.study(Steps(progress=pytest.fail), **options)


def test_tables_of_recognition_show_published_means_and_every_pipeline(log, mixed, monkeypatch):
    one = Specialty(
        "of urologists", None, None, np.flatnonzero(log.taxonomy == "Urology"), [], *[None] * 3
    )
    asked = []

    def naive(counts, labels, *, method, **options):
        asked.append((method, options))
        return recognise(counts, labels, method="Naive")

    monkeypatch.setattr("telic.study.chapter6.recognition.recognise", naive)
    monkeypatch.setattr("telic.specialty.recognition.shuffled_control.recognise", naive)
    found = recognised(log, mixed, one, fine=False, pipeline="printed", seed=3)
    assert {method for method, _ in asked} == set(CLASSIFIERS[1:])
    assert all(o["pipeline"] == "printed" and o["seed"] == 3 for _, o in asked)
    scores, differences, by_pipeline = tables.recognition_tables("Table 6.7", found)
    rows = scores.records()
    core = present_core(np.where(log.taxonomy == "Urology", "", log.taxonomy))
    assert [(row["class"], row["classifier"]) for row in rows] == [
        (name, c) for name in (DE_FACTO, "mean of core classes", *core) for c in CLASSIFIERS[1:]
    ]
    published = [f"published {name}" for name in ("precision", "recall", "F1")]
    assert [rows[3][name] for name in published] == pytest.approx([0.925, 0.9311, 0.928])
    assert [rows[7][name] for name in published] == pytest.approx([0.893, 0.8672, 0.8799])
    (one,) = [row for row in rows if (row["class"], row["classifier"]) == ("Neurology", "SVM")]
    assert [one[name] for name in published] == pytest.approx([0.8148, 0.9362, 0.8713])
    assert one["F1"] == found["classifiers"]["SVM"]["scores"]["Neurology"][2]
    assert {row["classifier"] for row in rows if row["F1 in shuffled data"] is not None} == {
        row["classifier"] for row in rows[:4]
    }
    assert all(row["F1 in shuffled data"] is None for row in rows[4:])
    assert [row[0] for row in differences.rows] == list(CLASSIFIERS[1:])
    assert [row[0] for row in by_pipeline.rows] == list(CLASSIFIERS[1:])
    for row, score in zip(by_pipeline.rows, rows[:4], strict=True):
        assert row[1:3] == ["20 conditions", score["F1"]]
        assert row[-1] == ", ".join(f"{r}.{half}" for r in range(1, 6) for half in (1, 2))


@pytest.mark.parametrize("size", [3, 4])
def test_core_classes_of_fewer_than_four_in_the_fine_view_are_left_out(
    log, mixed, monkeypatch, size
):
    one = Specialty("some", None, None, np.flatnonzero(log.taxonomy == "Urology"), [], *[None] * 3)
    core = next(c for c in present_core(log.taxonomy) if c != "Urology")
    fine = log.user_diagnosis().toarray()
    fine[np.flatnonzero(log.taxonomy == core)[size:]] = 0
    log = replace(log, fine=sparse.csr_array(fine))
    monkeypatch.setattr(recognition, "CLASSIFIERS", ("Naive", "Naive"))
    found = recognised(log, mixed, one, fine=True, pipeline="printed", seed=3)
    assert (core in found["classifiers"]["Naive"]["scores"]) == (size == 4)


def test_recovery_adds_up_its_seeds():
    alarms = {"planted": 40, "planted_explained": 30}
    seeds = [
        {
            "seed": 0,
            "f1": {"Breast Cancer": 0.9, "Obesity": 0.5},
            "snooping": {"k": [10, 2.5, 5, 6, 1, 2]},
            **alarms,
        },
        {
            "seed": 1,
            "f1": {"Breast Cancer": 0.8, "Obesity": 0.9},
            "snooping": {"k": [20, 4.0, 9, 9, 3, 3]},
            **alarms,
        },
    ]
    found, snooping = tables.recovery_tables("lda", seeds)
    assert found.rows[-1] == ["together", "2 of 2 ≥ .8", "1 of 2 ≥ .8", 80, 60, 0.75]
    assert snooping.rows[-1][:8] == ["together", "together", 30, 6.5, 14, 15, 4, 5]
    assert snooping.rows[-1][8] == pytest.approx(100 / 30)
    found, snooping = tables.recovery_tables("lda", seeds[1:])
    assert found.rows[-1] == ["together", "1 of 1 ≥ .8", "1 of 1 ≥ .8", 40, 30, 0.75]
    assert snooping.rows[-1][:8] == ["together", "together", 20, 4.0, 9, 9, 3, 3]


def test_the_table_by_the_simulators_knob_says_what_was_simulated():
    table = tables.knob_table([knob(scale=0.004, tilt=3.0)])
    (row,) = table.rows
    assert row[:2] == [0.004, 3]
    assert 0 < row[-1] < 0.2  # some six accesses a user, of 603 diagnoses


def test_a_start_at_the_truth_is_another_clustering():
    found = {
        name: clustered(scale=0.01, from_truth=start) for name, start in (("0", False), ("1", True))
    }
    table = tables.diagnosis_table(0.01, found)
    assert found["0"]["objective"] != found["1"]["objective"]
    assert all(score > 0 for one in found.values() for score in one["f1"].values())
    assert [row["α ratio of U-P-D"] for row in table.records()] == [
        one["ratios"]["U-P-D"] for one in found.values()
    ]


def test_by_argmax_every_user_is_in_a_cluster_and_else_those_of_a_large_share(monkeypatch):
    monkeypatch.setattr(pathselclus_ablation, "MIN_THETA", 1.1)
    assert not any(clustered(**SMALL)["f1"].values())
    assert all(score > 0 for score in clustered(**SMALL, argmax=True)["f1"].values())


def test_every_code_of_enough_users_has_a_cluster_beside_three_free_ones(log, monkeypatch):
    asked = {}

    def fit(links, seeds, **options):
        asked.update(options, seeds=seeds)
        raise KeyboardInterrupt

    monkeypatch.setattr(pathselclus_ablation, "fit_pathselclus", fit)
    with pytest.raises(KeyboardInterrupt):
        clustered(**SMALL)
    enough = sum(size >= pathselclus_ablation.SEED_CLASS for size in log.class_sizes().values())
    assert asked["n_clusters"] == enough + 3
    assert set(asked["seeds"]) == set(range(-1, enough))
    some = (asked["seeds"] >= 0).sum()
    with pytest.raises(KeyboardInterrupt):
        clustered(**SMALL, everyone=True)
    assert set(asked["seeds"]) == set(range(-1, enough))
    seen = np.asarray(log.fine.sum(axis=1)).ravel() > 0
    large = [code for code, n in log.class_sizes().items() if n >= pathselclus_ablation.SEED_CLASS]
    assert (asked["seeds"] >= 0).sum() == (np.isin(log.taxonomy, large) & seen).sum() > some
    with pytest.raises(KeyboardInterrupt):
        clustered(**SMALL, core_only=True, free=1)
    assert asked["n_clusters"] == len(CORE_CLASSES) + 1


@pytest.fixture(scope="module")
def found(log):
    """Urologists, who are a listed specialty, and some others, who are none."""
    urologists = np.flatnonzero(log.taxonomy == "Urology")
    others = np.flatnonzero(log.taxonomy == "Pediatrics")[:30]
    cluster = np.full(len(log.users), -1)
    cluster[others], cluster[urologists] = 0, 1
    made = [
        Specialty("children", None, None, others, [], 0.8, 0.7, 0.6),
        Specialty("kidneys", "Urology", "Urology", urologists, [], 0.5, 0.4, 0.3),
    ]
    return Discovery("lda", made, cluster, {"n_topics": 7})


def test_clusters_without_a_code_are_described_by_the_diagnoses_they_open_most(log, found):
    (row,) = unlisted(**SMALL, found=found.as_json(log))
    users = found.specialties[0].users
    assert row["users"] == len(users)
    assert [row[key] for key in ("stability", "stability_sizes", "stability_months")] == [
        0.8,
        0.7,
        0.6,
    ]
    counts = log.user_diagnosis().toarray()
    share = counts[users].sum(axis=0) / counts[users].sum()
    everybody = counts.sum(axis=0) / counts.sum()
    by_name = {log.label(str(code)): k for k, code in enumerate(log.codes)}
    top = [by_name[name] for name in row["top"]]
    assert 5 < len(top) <= 10
    assert (share[top] > everybody[top]).all()
    assert share[top].min() >= 0.01


def test_steps_measure_what_was_found_before(log, found):
    _, truth = hospital(0.02, 0)
    stored = found.as_json(log)
    assert hidden_found(**SMALL, found=stored) == nearest_found(log, truth, found)
    assert alarms(**SMALL, found=stored) == counted_alarms(log, found, truth)
    sizes = class_sizes(**SMALL)
    codes = log.taxonomy[log.taxonomy != ""].tolist()
    assert sizes == sorted(map(codes.count, set(codes)), reverse=True)[:100]


def test_what_discovers_is_asked_with_the_studys_settings(log, found, monkeypatch):
    asked = []

    def discovers(log, **options):
        asked.append(options)
        return found

    for module in (chapter6.hospital, chapter6.truth):
        monkeypatch.setattr(module, "discover", discovers)
    again = chapter6.hospital.found_in(**SMALL, method="pathselclus", view="fine", threads=2)
    assert again == found.as_json(log)
    common = {"naming": "overlap", "seed": 0, "threads": 2, "method": "pathselclus"}
    assert asked.pop() == common | {"view": "fine"}
    one = recovery(**SMALL, method="pathselclus", threads=2)
    assert asked == [common | {"restarts": 1}]
    _, truth = hospital(0.02, 0)
    scores = {row["hidden"]: row["f1"] for row in nearest_found(log, truth, found)}
    assert one == {"seed": 0, "f1": scores} | counted_alarms(log, found, truth)


def test_small_classes_are_dropped_before_the_contrast(log, monkeypatch):
    monkeypatch.setattr(calibration, "contrast", lambda log, seed, svm: [seed, *svm])
    made = calibration.naive_contrast(**SMALL)
    sizes = log.class_sizes().values()
    assert made["dropped"] == sum(size < MIN_CLASS for size in sizes)
    assert made["f1"] == [0, "printed", calibration.KNOB, "chosen"]


def test_a_specialty_is_recognised_only_where_one_was_found(log, found, monkeypatch):
    def shuffles(log, **options):
        asked.append(options)
        return "shuffled"

    asked = []
    monkeypatch.setattr(recognition, "shuffle", shuffles)
    monkeypatch.setattr(
        recognition, "recognised", lambda log, mixed, one, **options: [mixed, one.name, options]
    )
    recognition.shuffled.cache_clear()
    given = {**SMALL, "n_topics": 7, "fine": True, "hidden": "Obesity", "pipeline": "printed"}
    one = recognition.recognise_nearest(found=found.as_json(log), **given)
    _, truth = hospital(0.02, 0)
    expected, _ = chapter6.hospital.nearest(found, truth, "Obesity")
    assert one == ["shuffled", expected.name, {"fine": True, "pipeline": "printed", "seed": 0}]
    assert asked == [{"n_topics": 7, "fine": True, "seed": 0, "threads": 1}]
    empty = Discovery("lda", [], np.full(len(log.users), -1))
    assert recognition.recognise_nearest(found=empty.as_json(log), **given) is None
    recognition.shuffled.cache_clear()


def test_in_shuffled_data_practices_are_looked_for_and_groups_recognised(log, found, monkeypatch):
    class Mixed:
        def f1(self, taxonomy, size, core, **options):
            asked.append(options)
            assert "Urology" in core
            return size / 1000, core

    def discovers(mixed, **options):
        moved.append(mixed)
        asked.append(options)
        return found

    asked, moved = [], []
    monkeypatch.setattr(recognition, "shuffled", lambda **given: asked.append(given) or Mixed())
    monkeypatch.setattr(recognition, "discover", discovers)
    made = recognition.shuffled_clusters(**SMALL, n_topics=7, pipeline="printed")
    assert made["f1"] == {20: 0.02, 50: 0.05, 100: 0.1, 200: 0.2, 400: 0.4}
    assert made["found"] == sum(len(one.users) for one in found.specialties)
    common = {"n_topics": 7, "seed": 0, "threads": 1}
    assert asked[0] == SMALL | common | {"fine": False}
    assert asked[1] == common | {"method": "lda", "restarts": 1}
    assert asked[2] == {"method": "SVM", "pipeline": "printed", "seed": 0}
    (mixed,) = moved
    assert (mixed.access_encounter != log.access_encounter).mean() > 0.9
    assert (np.sort(mixed.access_encounter) == np.sort(log.access_encounter)).all()


def test_who_is_in_the_fine_view_has_a_diagnosis_there(log):
    found = Discovery("pathselclus", [], np.full(len(log.users), -1), {"view": "fine"})
    inside = chapter6.hospital.in_view(log, found)
    assert inside.tolist() == [row.sum() > 0 for row in log.fine.toarray()]
    assert 0 < inside.sum() < len(log.users)
    general = Discovery("pathselclus", [], found.cluster, {"view": "general"})
    assert chapter6.hospital.in_view(log, general) is None
    assert chapter6.hospital.in_view(replace(log, fine=None), found) is None


def test_an_area_without_seeds_is_found_where_its_papers_have_words_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    area = np.repeat(np.arange(4), 12)
    author = rng.permutation(500)[: len(area)]
    writes = np.repeat(np.arange(len(area)), 4)
    paper = 1000 + np.arange(len(writes))
    term = [10 * area[a] + rng.integers(0, 10, 6) for a in writes]
    unknown = {"paper": [*paper, *paper[:5]], "author": [*author[writes], *[999] * 5]}
    tables = {
        "author_label": {"author": author, "label": area},
        "paper_author": unknown,
        "paper_term": {"paper": np.repeat(paper, 6), "term": np.concatenate(term)},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"dblp4area_{name}.parquet")
    rows = held_out(folder=tmp_path, seed=1)
    assert [row["area"] for row in rows] == list(AREAS)
    assert [row["authors"] for row in rows] == [12] * 4
    assert min(row["seeded"] for row in rows) > 0.9
    assert min(row["lda"] for row in rows) > 0.9
    assert all(0.5 < row["share"] < 1 for row in rows)


def test_seeds_are_a_tenth_of_the_areas_that_have_some(tmp_path, monkeypatch):
    author = np.arange(80)
    paper = np.arange(80)
    for name, columns in {
        "author_label": {"author": author, "label": author % 4},
        "paper_author": {"paper": paper, "author": author},
        "paper_term": {"paper": paper, "term": author % 4},
    }.items():
        pq.write_table(pa.table(columns), tmp_path / f"dblp4area_{name}.parquet")
    asked = []

    def fit(paths, seeds, *, n_clusters, seed, threads):
        asked.append((paths, seeds))
        labels = np.where(author % 4 == len(asked) - 1, 3, 0)
        return SimpleNamespace(labels=labels, quality={"A-P-T": 3.0, "A-P": 1.0})

    monkeypatch.setattr(dblp, "fit_pathselclus", fit)
    rows = held_out(folder=tmp_path)
    assert [row["seeded"] for row in rows] == [1.0] * 4  # the cluster after those of the others
    assert [row["share"] for row in rows] == [0.75] * 4
    for k, (paths, seeds) in enumerate(asked):
        others = [area for area in range(4) if area != k]
        assert [set(author[seeds == c] % 4) for c in range(3)] == [{area} for area in others]
        assert [(seeds == c).sum() for c in range(-1, 3)] == [74, 2, 2, 2]
        assert paths["A-P"].toarray().tolist() == np.eye(80).tolist()
        assert (paths["A-P-T"].toarray().argmax(axis=1) == author % 4).all()


@pytest.mark.slow  # three minutes
def test_a_small_hospital_gives_both_pages_and_finished_steps_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(chapter6, "RECOVERY", (("lda", 1.0, 2),))
    monkeypatch.setattr(chapter6, "TILTS", ((1.0, 1.6),))
    monkeypatch.setattr(chapter6, "SETTINGS", {"general view": {"view": "general"}})
    options = {"scale": 0.05, "data": tmp_path, "pipeline": "printed"}

    def pages(*parts):
        return [chapter6.study(Steps(tmp_path / "work"), **options, part=part) for part in parts]

    made = pages("tables", "checks")
    titles = " ".join(table.title for page in made for table in page.tables)
    for name in (
        "6.1",
        "6.2",
        "6.3",
        "6.4",
        "6.5",
        "6.6",
        "6.8",
        "shuffled",
        "Recovery",
        "surgical tilt",
    ):
        assert name in titles
    first, second = [page.markdown() for page in made]
    assert "DBLP is left out" in first
    hospital.cache_clear()
    monkeypatch.setattr("telic.study.chapter6.hospital.simulate_hospital", pytest.fail)
    assert [page.markdown() for page in pages("tables", "checks")] == [first, second]
    alone = pages(*chapter6.CHECKS)
    assert [t.title for page in alone for t in page.tables] == [t.title for t in made[1].tables]


@pytest.mark.slow  # two minutes
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder at {DATA}")
def test_a_research_area_without_seeds_is_found():
    found = held_out(folder=DATA)
    assert all(0 <= row["share"] <= 1 for row in found)
    scores = [row["seeded"] for row in found]
    assert min(scores) > 0.6
    assert np.mean(scores) > 0.7
