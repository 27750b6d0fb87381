import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from telic import kernels
from telic.cli import app
from telic.errors import InputError

ROOT = Path(__file__).parents[2]
MODULE = import_module("telic.cli.warmup")  # `telic.cli.warmup` is the command


@pytest.fixture
def brief(monkeypatch):
    """A function that gives `telic warmup` one command, and code that is compiled after it."""

    def set_up(command="auc fit --help", compiled=()):
        monkeypatch.setattr(kernels, "COMPILED", [Path("/before/it.nbc")])
        monkeypatch.setattr(MODULE, "COMMANDS", command)
        monkeypatch.setattr(MODULE, "_type_into_boxes", lambda: None)
        monkeypatch.setattr(MODULE, "_fit_estimators", lambda: kernels.COMPILED.extend(compiled))

    return set_up


def test_it_says_how_much_was_compiled_and_where_it_is(brief, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    brief(compiled=[Path("/kept/a/f.nbc"), Path("/kept/b/g.nbc")])
    said = CliRunner().invoke(app, ["warmup"], catch_exceptions=False).stdout
    assert said.startswith("2 kernels compiled in ")
    assert said.endswith(" s, kept in /kept\n")
    brief(compiled=[Path("/kept/a/f.nbc"), Path("/kept/b/g.nbc")])
    found = json.loads(CliRunner().invoke(app, ["warmup", "--json"]).stdout)
    assert found["compiled"] == 2
    assert found["folder"] == "/kept"
    assert not list(tmp_path.iterdir())


def test_a_second_run_says_that_nothing_was_left(brief):
    brief()
    assert CliRunner().invoke(app, ["warmup"]).stdout == "Nothing was left to compile.\n"


def test_a_command_that_fails_is_not_passed_over(brief):
    brief("auc fit nothing.csv --label y --model m")
    with pytest.raises(InputError, match=r"nothing\.csv"):
        CliRunner().invoke(app, ["warmup"], catch_exceptions=False)


@pytest.mark.slow
def test_after_it_no_first_use_compiles_anything(tmp_path):
    """First uses: the commands of test_words.py, and the pages of Learn and How to."""

    kept, source = tmp_path / "kept", tmp_path / "src"  # without what lies beside our source
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    changed = {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(source), "TELIC_SLOW": ""}
    environment = os.environ | changed

    def run(*command):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=ROOT, env=environment, capture_output=True
        )
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout, {file.name for file in kept.rglob("*.nbc")}

    said, compiled = run("telic", "warmup", "--json")
    assert json.loads(said)["compiled"] == len(compiled) > 200
    assert json.loads(said)["folder"] == str(kept)
    said, _ = run("telic", "warmup", "--json")
    assert json.loads(said)["compiled"] == 0
    first_uses = ["tests/cli/test_words.py", "tests/test_pages_run.py", "tests/test_readme.py"]
    _, after = run("pytest", *first_uses, "-k", "not explain-")
    assert after - compiled == set()
