from pathlib import Path

import numpy as np
import pytest
from tests.held import drawn, hold, page
from tests.study.outline import left_out
from typer.testing import CliRunner

from telic.choice import Choices, fit_groups
from telic.cli import app
from telic.errors import InputError
from telic.simulate import Catalogue, dwell_effect
from telic.simulate.replays import TOLD
from telic.study import chapter2
from telic.study.chapter2 import experiments
from telic.study.chapter2.experiments import knowledge
from telic.study.chapter2.tables import (
    convergence_table,
    knowledge_table,
    not_submitted_table,
    published_table,
    regulariser_table,
    standard_error,
    users_table,
)
from telic.study.steps import Steps

SMALL = {"users": 12, "compositions": 24}


@pytest.fixture(scope="module")
def catalogue():
    rng = np.random.default_rng(0)
    letters = rng.integers(0, 3, (80, 10))
    phrases = sorted({"".join("abc"[i] for i in row) for row in letters})
    return Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)


def test_what_the_lists_know_shows_in_the_re_ranked_row_alone(catalogue):
    logs = [knowledge(catalogue, setting="inattentive", seed=s, **SMALL) for s in (0, 1)]
    table = knowledge_table({"inattentive": {told: [log[told] for log in logs] for told in TOLD}})
    found = {row["completer is told"]: row for row in table.records()}
    assert tuple(found) == TOLD
    everything, older, nothing = (found[told] for told in TOLD)
    # Told what the lists are made from, a completer has the list that was shown.
    assert everything["static"] == pytest.approx(everything["re-ranked static"])
    assert everything["shown, own"] > 0.9
    assert nothing["static"] < nothing["re-ranked static"] - 0.02
    assert older["static"] < everything["static"]
    assert nothing["shown, own"] < older["shown, own"] < everything["shown, own"]
    for row in found.values():  # nobody looks: dwell times tell nothing, whatever lists know
        assert abs(row["log − dwell twin"][0]) < 0.02


def test_told_everything_a_log_has_the_effect_of_the_control(catalogue):
    size = {"users": 8, "compositions": 16}
    (own,) = knowledge(catalogue, setting="readers", seed=1, told=["all"], **size).values()
    effect = dwell_effect(catalogue, setting="readers", seed=1, **size)
    assert {key: own[key] for key in effect} == pytest.approx(effect)


def test_whoever_has_no_choice_to_learn_from_keeps_weights_of_nought(monkeypatch):
    rng = np.random.default_rng(0)
    start = np.arange(11) * 3
    choices = Choices(
        rng.normal(size=(30, 2)), np.zeros(30), start, start[:-1] + 1, group=np.array([0, 4, 4, 10])
    )

    class Batch:
        training = choices

        def measures(self, weights):
            return {"weights": weights}

    monkeypatch.setattr(experiments._Batch, "of", lambda *_: Batch())
    rows = experiments.convergence(None, iterations=30, l2=0.5)
    assert [row["iteration"] for row in rows] == [*range(31)]
    weights = np.array([row["weights"] for row in rows])
    assert (weights[:, 1] == 0).all()
    best = fit_groups(choices, l2=0.5)
    parts = [
        Choices(choices.x[a:b], choices.offset[a:b], start[: (b - a) // 3 + 1], chosen)
        for a, b, chosen in ((0, 12, start[:4] + 1), (12, 30, start[:6] + 1))
    ]
    for row, own in zip(rows, weights, strict=True):
        gaps = []
        for part, u in zip(parts, (0, 2), strict=True):
            first, now, least = (part.loss(w, l2=0.5) for w in (np.zeros(2), own[u], best[u]))
            gaps.append((now - least) / (first - least))
        assert row["gap"] == pytest.approx(np.mean(gaps), abs=1e-9)
    assert rows[0]["gap"] == 1
    assert rows[-1]["gap"] < 0.01


def test_a_standard_error_is_that_of_the_mean_over_seeds():
    effects = [{"gain": value} for value in (1.0, 2.0, 3.0)]
    assert standard_error(effects, "gain") == pytest.approx([2.0, 1 / np.sqrt(3)])


@pytest.fixture(scope="module")
def catalogue_file(tmp_path_factory, catalogue):
    file = tmp_path_factory.mktemp("catalogue") / "catalogue.csv"
    lines = [f"{p},{w}" for p, w in zip(catalogue.phrases, catalogue.weights, strict=True)]
    file.write_text("\n".join(["query,count", *lines]))
    return file


def test_a_tiny_page_is_what_it_was(catalogue_file, monkeypatch):
    monkeypatch.setattr(chapter2, "NAMES", ("mpc",))
    monkeypatch.setattr(chapter2, "SETTINGS", ("readers",))
    monkeypatch.setattr(chapter2, "CANDIDATES", (5,))
    monkeypatch.setattr(chapter2, "LEVELS", (0.0, 1.0))
    options = {"catalogue": catalogue_file, "seeds": 2, "users": 6, "compositions": 12}
    with drawn():
        report = chapter2.study(Steps(), **options)
    file = Path(__file__).parent / "pages" / "chapter-2.jsonl"
    hold(file, page(report, without=("µs per keystroke",)))
    (costs,) = [table for table in report.tables if "µs per keystroke" in table.columns]
    ((*_, micro),) = costs.rows
    assert 0 < micro < 1e5  # nobody waits for a tenth of a second


@pytest.mark.slow
def test_the_whole_chapter_is_one_page_and_goes_on_where_it_stopped(
    tmp_path, catalogue_file, monkeypatch
):
    monkeypatch.setattr(chapter2, "NAMES", ("mpc", "personal-s"))
    monkeypatch.setattr(chapter2, "CANDIDATES", (5, 10))
    monkeypatch.setattr(chapter2, "LEVELS", (0.0, 1.0))
    options = {"catalogue": catalogue_file, "seeds": 2, "users": 8, "compositions": 16}
    report = chapter2.study(Steps(tmp_path / "work"), **options)
    report.write(tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.count("![") == len(list((tmp_path / "page").iterdir())) == 6
    assert not left_out("chapter-2", page)
    overview, accuracy, every = report.tables[:3]
    assert [row["relevance"] for row in overview.records()] == ["mpc", "personal-s"] * 4
    assert {row["protocol"] for row in every.records()} == {"careful", "paper"}
    static = {
        (row["relevance"], row["protocol"], row["model"]): row["MRR"] for row in accuracy.records()
    }
    for row in overview.records():
        name = "static" if row["list"] == "own" else "re-rank the shown list: static"
        assert row["static"] == static[row["relevance"], row["protocol"], name]

    def none(*given, **named):
        raise AssertionError("a finished step was made again")

    monkeypatch.setattr("telic.study.chapter2.experiments.phrases", none)
    again = chapter2.study(Steps(tmp_path / "work"), **options)
    assert again.html() == report.html()


def test_what_the_dissertation_prints_stands_beside_the_protocol_it_is_of():
    rows = [
        {"prefixes": prefixes, "lists": lists, "relevance": "mpc", "protocol": protocol, "mrr": mrr}
        for prefixes, lists in (("last", "own"), ("last", "shown"), ("all", "own"))
        for protocol in ("careful", "paper")
        for mrr in (0.1, 0.2, 0.3, 0.4, 0.5)
    ]
    careful, paper = published_table(rows).records()
    assert (careful["protocol"], paper["protocol"]) == ("careful", "paper")
    assert careful["adaqac-online"] == 0.5
    assert paper["published, static"] == pytest.approx(0.5062)
    assert paper["published, adaqac-online"] == pytest.approx(0.6092)


def test_one_seed_has_no_interval_and_is_refused(tmp_path):
    with pytest.raises(InputError, match="seeds is 1"):
        chapter2.study(Steps(), seeds=1)
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["study", "chapter-2", "--seeds", "1", "--out", str(out)])
    assert done.exit_code == 2
    assert not out.exists()


def test_figures_stand_in_tables_too():
    user = {"relevance": "mpc", "protocol": "careful", "lists": "own"}
    table = users_table([user | {"mrr": {"static": [0.1, 0.2, 0.9], "adaqac-batch": [0.4, 0.3]}}])
    assert table.rows == [["mpc", "careful", "own", 0.2, 0.35]]
    shares = np.arange(300.0).reshape(30, 10) / 1000
    shares[29, 0] = np.nan  # nothing was shown so long
    rows = not_submitted_table(shares).rows
    assert rows[0] == [0.1, 0.0, 0.002, 0.009]
    assert rows[2] == [0.9, 0.08, 0.082, 0.089]
    assert rows[-1] == [3.0, None, 0.292, 0.299]
    steps = [{"iteration": t, "gap": 1 / (t + 1), "mrr": t / 100} for t in range(41)]
    assert convergence_table(steps).rows[-1] == [40, 1 / 41, 0.4]
    assert [row[0] for row in convergence_table(steps).rows] == [0, 5, 10, 20, 40]
    assert regulariser_table([{"l2": 0.01, "mrr": 0.5}]).rows == [[0.01, 0.5]]
