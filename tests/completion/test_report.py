"""Reports of an evaluation: tables hold what the results hold."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot
from tests.held import drawn, hold, page

from telic.completion import CAREFUL, PAPER, Replay, evaluate
from telic.completion.evaluation.appaware_evaluation import evaluate_phones
from telic.completion.evaluation.figures import users_figure
from telic.completion.evaluation.json_facts import findings, log_facts
from telic.completion.evaluation.report import (
    accuracy_table,
    add_evaluation,
    apps_report,
    apps_summary,
    feedback_summary,
    lengths_table,
    overview_table,
)
from telic.completion.learning.dwell_times import dwell_histograms, not_submitted
from telic.data.compositions import read_compositions
from telic.report import Report
from telic.simulate import Catalogue, simulate_phones


@pytest.fixture(scope="module")
def replay(make_table):
    return Replay(read_compositions(make_table(users=6)), min_users=1)


@pytest.fixture(scope="module")
def phones():
    catalogue = Catalogue([f"{a}{b} x" for a in "stpb" for b in "aeiou"], np.arange(20.0, 0, -1))
    log = simulate_phones(catalogue, users=6, compositions=12, seed=0)
    return Replay(read_compositions(log), min_users=1)


@pytest.fixture(scope="module")
def results(replay):
    return evaluate(replay, relevances=["mpc", "personal"], protocols=[CAREFUL, PAPER])


def test_the_overview_holds_each_models_change_over_its_own_static_order(results):
    rows = [row for result in results for row in result.rows()]
    table = overview_table(rows, "all")
    assert len(table.rows) == len(results) == 8
    for result, row in zip(results, table.records(), strict=True):
        own = {r["model"].split(": ")[-1]: r for r in result.rows() if r["prefixes"] == "all"}
        assert row["relevance"] == result.models.relevance.name
        assert row["list"] == {"own": "own", "shown": "the shown list, re-ranked"}[result.lists]
        assert row["static"] == own["static"]["mrr"]
        for model in ("filtering", "adaqac-batch", "adaqac-unp", "adaqac-online"):
            assert row[model] == [own[model]["difference"], own[model]["p_value"]]


def test_one_table_has_every_measure_for_programs_and_part_of_it_for_people(results):
    rows = [row for result in results for row in result.rows()]
    whole, part = accuracy_table(rows), accuracy_table(rows, "last")
    assert len(whole.rows) == len(rows)
    assert {*whole.columns} - {*part.columns} == {"list", "prefixes", "keystrokes"}
    last = [row for row in whole.records() if row["prefixes"] == "last"]
    for short, full in zip(part.records(), last, strict=True):
        assert short.items() <= full.items()
    for row, full in zip(rows, whole.records(), strict=True):
        assert full["95 % interval"] == (None if row["low"] is None else [row["low"], row["high"]])
        assert (full["MRR"], full["keystrokes"]) == (row["mrr"], row["n"])


def test_a_length_that_nobody_typed_has_no_accuracy(results):
    lengths = lengths_table(results[0].rows())
    assert all(row["13+"] is None for row in lengths.records())
    assert all(row["1-3"] is not None for row in lengths.records())
    assert "—" in lengths.markdown()


def test_what_is_found_can_be_joined_and_kept_as_json(replay, results):
    whole = findings(results)
    joined = {key: [] for key in whole}
    for result in results:
        for key, values in json.loads(json.dumps(findings([result]))).items():
            joined[key] += values
    assert joined == whole
    for result, one in zip(results, whole["users"], strict=True):
        last = result.slices["last"]
        for model, means in one["mrr"].items():
            per_user = [
                result.ranks[model][last & (result.user == u)].mean()
                for u in np.unique(result.user[last])
            ]
            np.testing.assert_allclose(means, per_user)
    gated = {(gate["protocol"], gate["lists"]) for gate in whole["gates"]}
    assert gated == {("careful", "own"), ("careful", "shown")}


def test_a_summary_prints_what_its_page_shows(replay, results):
    summary = feedback_summary(replay, results)
    with drawn() as outlines:
        report = summary.page()
    hold(Path(__file__).parent / "feedback.jsonl", page(report, outlines))
    for table in summary.tables[:2]:
        assert table in report.tables
    assert "SIMULATED" not in report.html()
    assert report.html().count("<svg") == 3
    assert len(summary.facts["rows"]) == 8 * 5 * 7
    json.dumps(summary.facts)


def test_apps_are_shown_with_the_relative_change_and_the_gap(phones):
    said = []
    (result,) = results = evaluate_phones(
        phones, relevances=["mpc"], lists=["own"], progress=said.append
    )
    assert said == ["mpc, careful protocol, 10 candidates, own lists"]
    summary = apps_summary(phones, results)
    (table,) = summary.tables
    standard, *variants = table.records()
    assert standard["relative change"] is standard["gap"] is None
    inside = result.slices["all"]
    for row in variants:
        ratio = result.ranks[row["model"]][inside].mean() / standard["MRR"]
        assert row["relative change"] == pytest.approx(ratio - 1)
        assert row["gap"] >= 0
    assert {"learned popularity", "keystrokes"} <= summary.facts["rows"][0].keys()
    with drawn() as outlines:
        report = summary.page()
    hold(Path(__file__).parent / "apps.jsonl", page(report, outlines))
    assert report.html().count("<svg") == 1


def test_the_users_figure_has_a_box_for_each_model_and_names_them():
    mrr = {"static": [0.1, 0.4], "filtering": [0.2, 0.5], "adaqac": [0.3, 0.6]}
    figure = users_figure(
        [
            {"relevance": "mpc", "candidates": 10, "mrr": mrr},
            {"relevance": "personal", "candidates": 5, "mrr": mrr},
        ]
    )
    (axes,), (legend,) = figure.axes, figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(mrr)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["mpc", "personal\nN = 5"]
    assert len(axes.patches) == 6
    pyplot.close(figure)


@pytest.fixture(scope="module")
def dwelt(make_table):
    """A log with more than ten suggestions in some lists, and dwells beyond what is drawn."""
    phrases = ["new york", "news", *(f"new {letter}" for letter in "abcdefghijkl")]
    return Replay(read_compositions(make_table(8, phrases=phrases, list_length=14)), min_users=1)


def test_what_was_shown_high_and_long_and_not_submitted_is_counted(dwelt):
    log, shown = dwelt.log, []  # of each suggestion its dwell, its position, whether it was wrong
    for c in range(len(log)):
        for k in range(log.keystroke_start[c], log.keystroke_start[c + 1] - 1):
            listed = dwelt.shown[log.list_start[k] : log.list_start[k + 1]]
            for place, q in enumerate(listed, start=1):
                shown.append((log.at[k + 1] - log.at[k], place, q != dwelt.query[c]))
    dwell, position, wrong = np.array(shown).T
    assert dwell.max() > 3_000_000
    assert position.max() > 10
    expected = np.full((30, 10), np.nan)
    for tenths, most in np.ndindex(30, 10):
        counted = (dwell >= 100_000 * (tenths + 1)) & (position <= most + 1)
        if counted.any():
            expected[tenths, most] = wrong[counted].mean()
    np.testing.assert_allclose(not_submitted(dwelt), expected)


def test_dwells_are_counted_by_user_in_tenths_of_a_second(dwelt):
    log = dwelt.log
    counts = np.zeros((len(log.users), 31))
    for c in range(len(log)):
        times = [*log.at[log.keystroke_start[c] : log.keystroke_start[c + 1]], log.submitted_at[c]]
        for tenths in np.diff(times) // 100_000:
            if tenths < 31:
                counts[log.user[c], tenths] += 1
    found = dwell_histograms(log, users=3)
    np.testing.assert_allclose(found["edges"], np.arange(32) / 10)
    assert found["peaks"].tolist() == np.bincount(counts.argmax(axis=1), minlength=31).tolist()
    shares = (counts / counts.sum(axis=1, keepdims=True)).tolist()
    drawn = [shares.index(row) for row in found["sample"].tolist()]
    assert len(drawn) == len(set(drawn)) == 3


def test_who_looks_longer_than_the_bins_has_no_peak(dwelt):
    log = dwelt.log
    at = 3_500_000 * np.arange(len(log.at))
    slow = replace(log, at=at, submitted_at=at[log.keystroke_start[1:] - 1] + 3_500_000)
    assert not dwell_histograms(slow)["peaks"].any()


def test_a_page_says_what_was_left_out_and_what_is_simulated(replay, results):
    facts = log_facts(replay)
    assert facts["skipped"] == {}
    assert facts["dropped_users"] == 0
    found = findings(results)
    said = {"skipped": {"no query": 1234, "no user": 2}, "dropped_users": 5678, "off_prefix": 9012}

    def written(**changes):
        report = Report("Feedback")
        with drawn():
            add_evaluation(report, facts | changes, found)
        return report.markdown()

    whole, plain = written(simulated=True, **said), written(off_prefix=0)
    for text in (
        "1,234 rows were skipped: no query.",
        "2 rows were skipped: no user.",
        "5,678 users with too few compositions were left out.",
        "9,012 suggestions shown do not begin with the prefix",
        "SIMULATED",
    ):
        assert text in whole
        assert text[text.find(",") + 1 :] not in plain
    assert "Where the static order is kept" in plain
    found = found | {"gates": [], "shown": [np.nan]}
    bare = written()
    assert "Where the static order is kept" not in bare
    assert "are among a completer's own candidates" in plain
    assert "are among a completer's own candidates" not in bare


def test_a_page_of_apps_says_what_is_simulated(phones):
    results = evaluate_phones(phones, relevances=["mpc"], lists=["own"])
    rows = [row for result in results for row in result.rows()]
    pages = [apps_report(rows, simulated=simulated).markdown() for simulated in (True, False)]
    assert ["SIMULATED people and phones" in page for page in pages] == [True, False]
