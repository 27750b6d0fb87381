import importlib
import inspect
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from telic.cli import app

SCRIPTS = Path(__file__).parents[2] / "scripts"
STUDIES = {
    "4": ("telic.study.chapter4", "chapter4_study"),
    "5": ("telic.study.chapter5_report", "chapter5_study"),
}


class Called(Exception):
    """Raised in the study's place, with what it was asked for."""


@pytest.mark.parametrize("chapter", STUDIES)
def test_a_command_without_options_makes_what_its_page_shows(monkeypatch, tmp_path, chapter):
    name, function = STUDIES[chapter]
    module = importlib.import_module(name)
    signature = inspect.signature(getattr(module, function))

    def study(*given, **named):
        bound = signature.bind(*given, **named)
        bound.apply_defaults()
        raise Called({k: v for k, v in bound.arguments.items() if isinstance(v, int | float)})

    monkeypatch.setattr(module, function, study)
    monkeypatch.chdir(tmp_path)
    command = CliRunner().invoke(app, ["study", f"chapter-{chapter}"]).exception
    with pytest.raises(Called) as page:
        runpy.run_path(str(SCRIPTS / f"results_chapter{chapter}.py"))["main"]()
    assert isinstance(command, Called)
    assert command.args == page.value.args


@pytest.mark.parametrize("chapter", range(2, 8))
def test_a_page_that_cannot_be_written_is_refused_before_the_work(tmp_path, chapter):
    out = tmp_path / "no folder" / "report.html"
    result = CliRunner().invoke(app, ["study", f"chapter-{chapter}", "--out", str(out)])
    assert "its folder" in str(result.exception)
