"""`telic completion signals`: a page from a query log alone, and one line for what is wrong."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from telic import cli
from telic.completion import Completer, fit_files
from telic.report import Table
from telic.simulate import Catalogue, made_up_affinity, simulate_phones, simulate_typists
from telic.simulate.searchers import searchers


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    made = searchers(users=60, sessions=12, nouns=30)
    table = pa.table(
        {
            "who": np.array(made.users, object)[made.user],
            "text": np.array(made.queries, object)[made.query],
            "at": pa.array(made.at, pa.timestamp("us", tz="UTC")).cast(pa.string()),
        }
    )
    path = tmp_path_factory.mktemp("log") / "log.csv"
    pa.csv.write_csv(table, path)
    return path


@pytest.fixture
def telic(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["telic", "completion", "signals", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = capsys.readouterr()
        return end.value.code or 0, said.out, said.err

    return run


def test_a_log_becomes_a_page_json_and_a_box(telic, log, tmp_path, monkeypatch):
    told = []

    @contextmanager
    def steps(title):
        yield told.append

    monkeypatch.setattr(sys.modules["telic.cli.completion.signals"], "steps", steps)
    code, out, err = telic(
        log,
        "--column",
        "user=who",
        "--column",
        "phrase=text",
        "--tested",
        "150",
        "--report",
        "page.html",
        "--model",
        "box",
        "--json",
    )
    assert code == 0, err
    assert told[:2] == ["reading", "gathering what to learn from"]
    assert told[told.index("testing") + 1 :] == [
        "session, pairs, time, as it is",
        "session, pairs, exchanged",
        "time, exchanged",
        "the completer",
    ]
    found = json.loads(out)
    assert set(found) == {"facts", "results", "effort", "controls", "signals"}
    assert found["facts"]["users"] == 60
    assert found["facts"]["submissions tested"] == 150
    whole = {row["model"]: row for row in found["results"] if row["slice"] == "all"}
    assert list(whole) == [
        "static",
        "popularity",
        "+ time",
        "+ personal",
        "+ session",
        "+ match",
        "+ pairs",
        "all that help",
    ]
    assert 0 < whole["static"]["mrr"] < whole["static"]["reached"] <= whole["static"]["ceiling"]
    assert [(row["group"], row["exchanged"]) for row in found["controls"]] == [
        ("session", False),
        ("session", True),
        ("pairs", False),
        ("pairs", True),
        ("time", False),
        ("time", True),
    ]
    page = (tmp_path / "page.html").read_text()
    assert "What each signal is worth" in page
    assert "control: session of somebody else" in page
    box = Completer.load(tmp_path / "box")
    assert box.model == "signals"
    assert box.found["files"]
    assert box.suggest("b")


def test_a_composition_log_tells_what_feedback_is_worth_and_makes_a_box(telic, tmp_path):
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (60, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    typed = simulate_typists(catalogue, setting="readers", users=12, compositions=20, seed=1)
    pyarrow.parquet.write_table(typed, tmp_path / "typed.parquet")
    words = ("typed.parquet", "--min-users", "1", "--tested", "100")
    code, out, err = telic(*words, "--model", "box", "--report", "page.md", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [row["group"] for row in found["signals"]][-1] == "feedback"
    assert {row["model"] for row in found["results"]} >= {"+ feedback", "all that help"}
    assert {row["group"] for row in found["controls"]} <= {"session", "pairs"}
    page = (tmp_path / "page.md").read_text()
    assert "lists that they were shown" in page
    assert "synthetic" not in page
    box = Completer.load(tmp_path / "box")
    assert box.simulated
    assert "feedback" in box.signals.weights.gates
    code, _, err = telic("typed.parquet", "--groups", "feedback,phones")
    assert code == 2
    assert "--groups names 'phones', expected some of popularity" in err
    code, _, err = telic("typed.parquet", "--groups", "apps", "--min-users", "1")
    assert code == 2
    assert "the log tells nothing of 'apps'" in err


def test_a_log_of_phones_tells_what_apps_are_worth_and_makes_a_box(telic, log, tmp_path):
    """Simulated phones; the box that is fitted alone is that of the evaluation."""
    rng = np.random.default_rng(0)
    phrases = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (60, 7))})
    catalogue = Catalogue(phrases, rng.pareto(1.2, len(phrases)) + 1)
    affinity = made_up_affinity(catalogue, apps=20)
    phones = simulate_phones(
        catalogue, affinity=affinity, strength=0.9, users=60, compositions=40, seed=1
    )
    pyarrow.parquet.write_table(phones, tmp_path / "phones.parquet")
    words = ("phones.parquet", "--groups", "popularity,apps", "--window", "20", "--tested", "200")
    code, out, err = telic(*words, "--model", "box", "--report", "page.md", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [row["model"] for row in found["results"]][:4] == [
        "static",
        "popularity",
        "+ apps",
        "all that help",
    ]
    assert [(row["group"], row["exchanged"]) for row in found["controls"]] == [
        ("apps", False),
        ("apps", True),
    ]
    page = (tmp_path / "page.md").read_text()
    assert "apps, as they are" in page
    assert "control: apps of somebody else" in page
    box = Completer.load(tmp_path / "box")
    assert box.signals.app_minutes == 20
    assert box.signals.weights.gates["apps"].startswith("on")
    assert "goes with the apps" in page
    fit = fit_files(tmp_path / "phones.parquet", signals=("popularity", "apps"), minutes=20)
    assert fit.signals.weights.weights == pytest.approx(box.signals.weights.weights)
    code, _, err = telic(log, "--window", "20")
    assert code == 2
    assert "--window changes nothing without a composition log" in err


def test_equal_seeds_give_equal_results_and_groups_can_be_left_out(telic, log):
    words = (log, "--column", "user=who", "--column", "phrase=text", "--tested", "100", "--json")
    first, again, other = (
        telic(*words, "--groups", "personal", "--seed", seed)[1] for seed in (1, 1, 2)
    )
    assert first == again != other
    gates = {row["group"]: row["gate"] for row in json.loads(first)["signals"]}
    assert gates.pop("personal") != "not asked for"
    assert set(gates.values()) == {"not asked for"}


def test_what_is_wrong_is_said_in_one_line(telic, log, tmp_path):
    (tmp_path / "list.csv").write_text("title,views\ntea,3\n")
    (tmp_path / "few.csv").write_text("query,at\ntea,2026-01-01T00:00:00Z\n")
    for words, said in (
        ([log, "--groups", "phones"], "--groups names 'phones', expected some of popularity, "),
        ([log, "--groups", "apps"], "the log tells nothing of 'apps', expected some of popular"),
        (["list.csv"], "expected query logs, with a time in each row"),
        (["few.csv"], "the log holds 1 submissions: too few"),
        (["none.csv"], "no such file"),
    ):
        code, _, err = telic(*words)
        assert code == 2
        assert said in err.splitlines()[-1]
        assert not list(tmp_path.glob("*.html"))


def test_people_read_a_sentence_five_tables_and_what_was_skipped(telic, log, tmp_path, monkeypatch):
    tables = [Table(f"Table {number}", {"a": ""}, [[number]]) for number in range(6)]
    findings = MagicMock()
    findings.sentence.return_value = "Popularity is worth most."
    findings.tables.return_value = tables
    measured = {"measured": MagicMock(), "controls": MagicMock(), "models_of": MagicMock()}
    for name, stub in measured.items():
        monkeypatch.setattr(f"telic.completion.signals.{name}", stub)
    monkeypatch.setattr(
        "telic.completion.signals.report.SignalFindings.of", lambda *given: findings
    )
    (tmp_path / "log.csv").write_text(log.read_text() + "nobody,,2026-01-01T00:00:00Z\n")
    words = ("log.csv", "--column", "user=who", "--column", "phrase=text", "--skip-bad-rows")
    code, out, err = telic(*words, "--report", "page.html", "--tested", "150")
    assert code == 0, err
    titles = [line.strip() for line in out.splitlines() if "Table" in line]
    assert titles == [table.title for table in tables[:5]]
    assert "skipped 1 rows: " in err
    assert "report: page.html" in err
    assert "Popularity is worth most." in err
    findings.page.return_value.write.assert_called_once_with(Path("page.html"))
    assert measured["measured"].call_args.kwargs["most"] == 150
    assert measured["controls"].call_args.kwargs["most"] == 150
