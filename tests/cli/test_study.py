import importlib
import inspect
from pathlib import Path

import pytest
from typer.testing import CliRunner

from telic.cli import app

DOCS = Path(__file__).parents[2] / "docs" / "measured"


@pytest.mark.parametrize(
    "name",
    [*(f"chapter-{i}" for i in range(2, 8)), "do-no-harm"],
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
        ("chapter-6", "A simulated hospital at {scale:g} of the published size, seed {seed}"),
        ("chapter-7", "{samples} groups of 1,000 per density, seed {seed}"),  # and other users
        ("do-no-harm", "{seeds} seeds of made-up phrases"),
        ("do-no-harm", "{fits} logs of a setting"),
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


def test_a_report_is_named_after_its_command(tmp_path, monkeypatch):
    from telic.report import Report, Table
    from telic.study import do_no_harm

    def study(steps, **settings):
        report = Report("Made up")
        report.table(Table("t", {"a": ""}, [[1]]))
        return report

    monkeypatch.setattr(do_no_harm, "study", study)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["study", "do-no-harm"]).exit_code == 0
    assert "Made up" in (tmp_path / "telic-do-no-harm.html").read_text()


def test_a_page_says_which_command_writes_it(tmp_path, monkeypatch):
    from telic.report import Report, Table
    from telic.study import do_no_harm

    def study(steps, *, seeds=2, users=24, place_users=40, fits=16):
        report = Report("Harm", "A lead.")
        report.table(Table("One", {"a": "d"}, [[seeds]]))
        return report

    monkeypatch.setattr(do_no_harm, "study", study)
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["study", "do-no-harm", "--seeds", "3", "--out", str(page)])
    assert done.exit_code == 0, done.output
    title, lead, *_, last = page.read_text().split("\n\n")
    assert (title, lead) == ("# Harm", "A lead.")
    assert last == 'Written by `make page ARGS="do-no-harm --seeds 3"`; do not edit.\n'
