import importlib
import inspect
import json
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from typer.testing import CliRunner

from telic.cli import app
from telic.report import Report, Table
from telic.study import do_no_harm

DOCS = Path(__file__).parents[2] / "docs" / "measured"


@pytest.mark.parametrize(
    "name",
    [*(f"chapter-{i}" for i in range(2, 8)), "do-no-harm", "shoppers", "drift", "session-pairs"],
)
def test_a_command_has_every_setting_of_its_study_with_the_same_default(name):
    words = name.replace("chapter-", "chapter").replace("-", "_")
    of_study = inspect.signature(importlib.import_module(f"telic.study.{words}").study).parameters
    command = getattr(importlib.import_module("telic.cli.study"), name.replace("-", "_"))
    of_command = inspect.signature(command).parameters
    for setting, parameter in of_study.items():
        if setting != "steps":
            assert of_command[setting].default == parameter.default, setting


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("chapter-2", "{users} typists with {compositions} compositions each"),
        ("chapter-2", "without the gate), {seeds} seeds"),
        ("chapter-3", "{users} people with {compositions} compositions each"),
        ("chapter-3", "intervals over {seeds} logs"),
        ("chapter-4", "{share:.0%} of the rows, means of {replications} replications"),
        ("chapter-5", "medians of {replications} replications"),
        ("chapter-5", "of at most {seconds:g} s of processor time"),
        ("chapter-6", "A simulated hospital of the published size, seed {seed}"),
        ("chapter-7", "{samples} groups of 1,000 per density, seed {seed}"),  # and other users
        ("do-no-harm", "{seeds} seeds of made-up phrases"),
        ("do-no-harm", "fitted on {fits} logs"),
        ("shoppers", "{users} shoppers with {compositions} compositions each, {seeds} logs"),
        ("drift", "{users} simulated searchers with {sessions} sessions each"),
        ("drift", "(telic.simulate.searchers), {seeds} logs of each world"),
        ("session-pairs", "Each simulated user has {sessions} sessions"),
        ("session-pairs", "8,000 users, log {seeds} | all that help"),
    ],
)
def test_a_page_is_made_with_the_defaults_of_its_command(name, stated):
    command = getattr(importlib.import_module("telic.cli.study"), name.replace("-", "_"))
    defaults = {key: one.default for key, one in inspect.signature(command).parameters.items()}
    assert stated.format(**defaults) in (DOCS / f"results-{name}.md").read_text()


@pytest.mark.parametrize("name", [*(f"chapter-{n}" for n in range(2, 8)), "do-no-harm"])
def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path, name):
    out = tmp_path / "no folder" / "report.html"
    result = CliRunner().invoke(app, ["study", name, "--out", str(out)])
    assert "its folder" in str(result.exception)


def test_a_page_that_telic_did_not_write_is_refused_before_the_work(tmp_path, monkeypatch):
    def study(steps, **settings):
        pytest.fail("the work began")

    monkeypatch.setattr(do_no_harm, "study", study)
    out = tmp_path / "thesis.html"
    out.write_text("years of work")
    result = CliRunner().invoke(app, ["study", "do-no-harm", "--out", str(out), "--overwrite"])
    assert "telic did not write this file" in str(result.exception)
    assert out.read_text() == "years of work"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a study's command in a folder of its own, where the harm study takes no time."""
    monkeypatch.chdir(tmp_path)

    def study(steps, *, seeds=2, users=24, place_users=40, fits=16):
        report = Report("Harm", "A lead.")
        report.table(Table("One", {"a": "d"}, [[seeds]]))
        report.table(Table("Two", {"b": "d"}, [[users]]))
        return report

    monkeypatch.setattr(do_no_harm, "study", study)

    def invoked(*words):
        return CliRunner().invoke(app, ["study", *words], env={"COLUMNS": "200"})

    return invoked


def test_a_study_writes_a_page_named_after_it_and_prints_its_first_table(run, tmp_path):
    done = run("do-no-harm")
    assert done.exit_code == 0, done.output
    assert "<h1>Harm</h1>" in (tmp_path / "telic-do-no-harm.html").read_text()
    assert "report: telic-do-no-harm.html" in done.stderr
    assert done.stdout.split()[0] == "One"
    assert "Two" not in done.stdout
    printed = json.loads(run("do-no-harm", "--overwrite", "--json").stdout)
    assert [table["title"] for table in printed["tables"]] == ["One", "Two"]


def test_a_page_says_which_command_writes_it(run, tmp_path):
    page = tmp_path / "page.md"
    done = run("do-no-harm", "--seeds", "3", "--out", str(page))
    assert done.exit_code == 0, done.output
    title, lead, *_, last = page.read_text().split("\n\n")
    assert (title, lead) == ("# Harm", "A lead.")
    assert last == 'Written by `make page ARGS="do-no-harm --seeds 3"`; do not edit.\n'


def test_a_folder_of_figures_that_telic_did_not_write_stays(run, tmp_path):
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "thesis").write_text("years")
    for name in ("do-no-harm", "all"):
        done = run(name, "--out", "page.md")
        assert "page: is a folder that exists already" in str(done.exception)
    assert run("do-no-harm", "--out", "page.html").exit_code == 0


@pytest.mark.parametrize(
    ("options", "page", "figures", "command"),
    [
        (["--quick"], "telic-study-all.html", True, ""),  # which HTML does not say
        (["--out", "page.md"], "page.md", True, "all"),
        (["--quick", "--seed", "7", "--out", "page.md"], "page.md", False, "all --quick --seed 7"),
        (["--seed", "1", "--out", "page.md"], "page.md", True, "all --seed 1"),
    ],
)
def test_all_studies_are_one_page(run, tmp_path, monkeypatch, options, page, figures, command):
    """A Markdown page is the site's, where the figures of a quick run have no place."""
    book = MagicMock()
    report = book.report.return_value = Report("Claims", "A lead.")
    report.table(Table("Claims", {"a": ""}, [["holds"]]))
    report.table(Table("Sources", {"a": ""}, [["here"]]))
    book.as_json.return_value = {"claims": []}
    book.failures.return_value = []
    monkeypatch.setattr("telic.study.book.run_all", lambda *given, **settings: book)
    done = run("all", *options)
    assert done.exit_code == 0, done.output
    book.report.assert_called_once_with(figures=figures)
    assert "Claims" in (text := (tmp_path / page).read_text())
    assert not command or f'`make page ARGS="{command}"`' in text
    assert f"report: {page}" in done.stderr
    assert "holds" in done.stdout
    assert "Sources" not in done.stdout
    book.failures.return_value = ["chapter-9: no such chapter"]
    done = run("all", *options, "--overwrite", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout) == {"claims": []}
    assert "telic: failed: chapter-9: no such chapter" in done.stderr
