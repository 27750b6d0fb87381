import numpy as np
import pytest

from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.discovery.discover import discover
from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.recognition.classifiers import CLASSIFIERS
from telic.specialty.recognition.recognise import recognise
from telic.specialty.recognition.shuffled_control import DE_FACTO, shuffle
from telic.study import chapter6
from telic.study.chapter6 import pathselclus_ablation, tables
from telic.study.chapter6.calibration import counts, knob
from telic.study.chapter6.dblp import held_out
from telic.study.chapter6.hospital import Truth, hospital
from telic.study.chapter6.pathselclus_ablation import clustered
from telic.study.chapter6.recognition import recognised
from telic.study.chapter6.topics import urologists_topic
from telic.study.chapter6.truth import counted_alarms, nearest_found
from telic.study.steps import Steps

SMALL = {"scale": 0.02, "seed": 0}
DATA = data_folder() / "hin"


@pytest.fixture(scope="module")
def log():
    return hospital(0.02, 0)[0]


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


def test_truth_and_alarms_count_what_they_say(log):
    found = discover(log, method="lda", n_topics=30, restarts=1)
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


def test_tables_of_recognition_show_published_means_and_every_pipeline(log, monkeypatch):
    one = Specialty(
        "of urologists", None, None, np.flatnonzero(log.taxonomy == "Urology"), [], *[None] * 3
    )
    asked = []

    def naive(counts, labels, *, method, **options):
        asked.append((method, options))
        return recognise(counts, labels, method="Naive")

    monkeypatch.setattr("telic.study.chapter6.recognition.recognise", naive)
    monkeypatch.setattr("telic.specialty.recognition.shuffled_control.recognise", naive)
    found = recognised(log, shuffle(log, n_topics=4), one, fine=False, pipeline="printed", seed=3)
    assert {method for method, _ in asked} == set(CLASSIFIERS[1:])
    assert all(o["pipeline"] == "printed" and o["seed"] == 3 for _, o in asked)
    scores, _, differences, by_pipeline = tables.recognition_tables("Table 6.7", found)
    rows = scores.records()
    assert [(row["class"], row["classifier"]) for row in rows] == [
        (name, c) for name in (DE_FACTO, "mean of core classes") for c in CLASSIFIERS[1:]
    ]
    published = [f"published {name}" for name in ("precision", "recall", "F1")]
    assert [rows[3][name] for name in published] == pytest.approx([0.925, 0.9311, 0.928])
    assert [rows[7][name] for name in published] == pytest.approx([0.893, 0.8672, 0.8799])
    assert [row["F1 in shuffled data"] is None for row in rows] == [False] * 4 + [True] * 4
    assert [row[0] for row in differences.rows] == list(CLASSIFIERS[1:])
    assert [row[0] for row in by_pipeline.rows] == list(CLASSIFIERS[1:])
    for row, score in zip(by_pipeline.rows, rows[:4], strict=True):
        assert row[1:3] == ["20 conditions", score["F1"]]
        assert row[-1] == ", ".join(f"{r}.{half}" for r in range(1, 6) for half in (1, 2))


def test_recovery_adds_up_its_seeds():
    alarms = {"planted": 40, "planted_explained": 30}
    seeds = [
        {
            "seed": 0,
            "f1": {"Breast Cancer": 0.9, "Obesity": 0.5},
            "snooping": {"k": [10, 5, 6, 1, 2]},
            **alarms,
        },
        {
            "seed": 1,
            "f1": {"Breast Cancer": 0.8, "Obesity": 0.9},
            "snooping": {"k": [20, 9, 9, 3, 3]},
            **alarms,
        },
    ]
    found, snooping = tables.recovery_tables("lda", seeds)
    assert found.rows[-1] == ["together", "2 of 2 ≥ .8", "1 of 2 ≥ .8", 80, 60, 0.75]
    assert snooping.rows[-1][:7] == ["together", "together", 30, 14, 15, 4, 5]
    assert snooping.rows[-1][7] == pytest.approx(100 / 30)


def test_the_table_by_the_simulators_knob_says_what_was_simulated():
    table = tables.knob_table([knob(scale=0.004, tilt=3.0)])
    (row,) = table.rows
    assert row[:2] == [0.004, 3]
    assert 0 < row[-1] < 0.2  # some six accesses a user, of 603 diagnoses


def test_a_start_at_the_truth_is_another_clustering():
    found = {
        name: clustered(scale=0.02, from_truth=start) for name, start in (("0", False), ("1", True))
    }
    table = tables.diagnosis_table(0.02, found)
    assert found["0"]["objective"] != found["1"]["objective"]
    assert all(score > 0 for one in found.values() for score in one["f1"].values())
    assert [row["α ratio of U-P-D"] for row in table.records()] == [
        one["ratios"]["U-P-D"] for one in found.values()
    ]


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


@pytest.mark.slow  # three minutes
def test_a_small_hospital_gives_the_whole_page_and_finished_steps_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(chapter6, "RECOVERY", (("lda", 1.0, 2),))
    monkeypatch.setattr(chapter6, "TILTS", ((1.0, 1.6),))
    monkeypatch.setattr(chapter6, "SETTINGS", {"general view": {"view": "general"}})
    options = {"scale": 0.05, "data": tmp_path, "part": "all", "pipeline": "printed"}
    page = chapter6.study(Steps(tmp_path / "work"), **options)
    titles = " ".join(table.title for table in page.tables)
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
    assert "DBLP is left out" in page.markdown()
    hospital.cache_clear()
    monkeypatch.setattr("telic.study.chapter6.hospital.simulate_hospital", pytest.fail)
    assert chapter6.study(Steps(tmp_path / "work"), **options).markdown() == page.markdown()
    alone = chapter6.study(Steps(tmp_path / "work"), **options | {"part": "recovery"})
    assert {table.title for table in alone.tables} < {table.title for table in page.tables}


@pytest.mark.slow  # two minutes
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder at {DATA}")
def test_a_research_area_without_seeds_is_found():
    found = held_out(folder=DATA)
    assert all(0 <= row["share"] <= 1 for row in found)
    scores = [row["seeded"] for row in found]
    assert min(scores) > 0.6
    assert np.mean(scores) > 0.7
