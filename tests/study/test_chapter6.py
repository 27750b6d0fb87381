import os
from pathlib import Path

import numpy as np
import pytest

import telic
from telic.errors import InputError
from telic.simulate.hospital_practices import HIDDEN_SIZES
from telic.specialty.control import DE_FACTO, shuffle
from telic.specialty.discover import discover
from telic.specialty.discovery import Discovery, Specialty
from telic.specialty.pipelines import CLASSIFIERS
from telic.specialty.recognise import recognise
from telic.study.chapter6 import Kept, _approaches, _recognition, chapter6
from telic.study.chapter6_calibration import summary, tilts
from telic.study.chapter6_dblp import dblp_held_out
from telic.study.chapter6_truth import Table, Truth, against_truth, alarms, simulated

DATA = Path(os.environ.get("TELIC_DATA", Path(__file__).parents[2] / "../shared/data")) / "hin"


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return simulated(tmp_path_factory.mktemp("chapter6") / "log", scale=0.02, seed=0)[0]


def test_summary_and_topics_have_the_tables_shape(log):
    assert [row[0] for row in summary(log).rows][:2] == ["accesses", "patients"]
    table = _approaches(log, 30, 0, 1)
    assert len(table.rows) == 10
    assert table.columns == ["user documents", "patient documents"]


def test_truth_and_alarms_count_what_they_say(log):
    found = discover(log, n_topics=30, restarts=1)
    practice = np.full(len(log.users), "none", dtype=object)
    practice[found.specialties[0].users] = "Obesity"
    obesity = list(HIDDEN_SIZES).index("Obesity")
    truth = Truth(practice, {"known": np.array([1])}, np.full(len(log.encounters), obesity))
    rows = {row[1]: row for row in against_truth(log, truth, {"LDA": found}).rows}
    assert rows["Obesity"][2] == "1.000"
    assert rows["Breast Cancer"][2] == "0.000"
    counted = alarms(log, found, truth)
    assert counted.effect.snooping["known"].planted == 1
    assert 0 < counted.planted_explained < counted.planted
    # Users that discovery missed are counted all the same, and nothing explains their alarms.
    missed = alarms(log, Discovery("lda", [], np.full(len(log.users), -1)), truth)
    assert (missed.planted, missed.planted_explained) == (counted.planted, 0)
    elsewhere = truth._replace(hidden_encounter=np.full(len(log.encounters), -1))
    assert alarms(log, found, elsewhere).planted == 0


def test_a_finished_step_is_not_done_again(tmp_path):
    steps = []
    kept = Kept(tmp_path / "work", {"seed": 1}, steps.append)
    table = Table("title", ["a"], [[1]])
    assert kept.tables("one", lambda: [table]) == [table]
    again = Kept(tmp_path / "work", {"seed": 1}, steps.append)
    assert again.tables("one", lambda: pytest.fail("made twice")) == [table]
    assert steps == ["one", "one"]
    with pytest.raises(InputError, match="other settings"):
        Kept(tmp_path / "work", {"seed": 2}, steps.append)


def test_steps_that_other_code_made_are_refused(tmp_path, monkeypatch):
    source = tmp_path / "telic"
    (source / "specialty").mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "specialty" / "recognise.py").write_text("C = 1\n")
    monkeypatch.setattr(telic, "__file__", str(source / "__init__.py"))
    Kept(tmp_path / "work", {"seed": 1}, print)
    Kept(tmp_path / "work", {"seed": 1}, print)
    (source / "specialty" / "recognise.py").write_text("C = 10\n")
    with pytest.raises(InputError, match="made by other code"):
        Kept(tmp_path / "work", {"seed": 1}, print)


def test_a_wrong_pipeline_is_said_before_anything_is_simulated():
    with pytest.raises(InputError, match="pipeline is 'best', expected 'chosen' or 'printed'"):
        chapter6(pipeline="best", on_step=lambda step: pytest.fail(step))


def test_tables_of_recognition_show_published_means_and_every_pipeline(log, monkeypatch):
    one = Specialty(
        "of urologists", None, None, np.flatnonzero(log.taxonomy == "Urology"), [], *[None] * 3
    )
    asked = []

    def naive(counts, labels, *, method, **options):
        asked.append((method, options))
        return recognise(counts, labels, method="Naive")

    monkeypatch.setattr("telic.study.chapter6.recognise", naive)
    monkeypatch.setattr("telic.specialty.control.recognise", naive)
    mixed = shuffle(log, n_topics=4)
    scores, differences, by_pipeline = _recognition(
        log, lambda: mixed, "Table 6.7", one, fine=False, pipeline="printed", seed=3
    )
    assert {method for method, _ in asked} == set(CLASSIFIERS[1:])
    assert all(o["pipeline"] == "printed" and o["seed"] == 3 for _, o in asked)
    assert [row[0] for row in scores.rows[:5]] == [
        DE_FACTO, "– published", "as many users in shuffled data, F1", "mean of core classes",
        "– published",
    ]  # fmt: skip
    assert scores.rows[1][1:] == [
        "86.7 / 57.1 / 68.9", "89.1 / 64.2 / 74.6", "77.0 / 79.1 / 78.0", "92.5 / 93.1 / 92.8"
    ]  # fmt: skip
    assert [row[0] for row in differences.rows] == list(CLASSIFIERS[1:])
    assert [row[0] for row in by_pipeline.rows] == list(CLASSIFIERS[1:])
    for row, found in zip(by_pipeline.rows, scores.rows[0][1:], strict=True):
        assert row[1:3] == ["20 conditions", found.split(" / ")[-1]]
        assert row[-1] == ", ".join(f"{r}.{half}" for r in range(1, 6) for half in (1, 2))


def test_the_table_by_the_simulators_knob_says_what_was_simulated():
    steps = []
    table = tilts(settings=((0.004, 3.0),), on_step=steps.append)
    assert steps == ["scale 0.004, tilt 3"]
    (row,) = table.rows
    assert row[:2] == ["0.004", "3"]
    assert len(row) == len(table.columns)
    assert 0 < int(row[-1].rstrip("%")) < 20  # some six accesses a user, of 603 diagnoses


@pytest.mark.slow  # two minutes
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data folder at {DATA}")
def test_a_research_area_without_seeds_is_found():
    scores = [float(row[2]) for row in dblp_held_out(DATA).rows]
    assert min(scores) > 0.6
    assert np.mean(scores) > 0.7
