import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from rich.progress import Progress
from scipy.sparse import issparse
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
        done = []
        monkeypatch.setattr(MODULE, "_write_tables", lambda: done.append("tables"))
        monkeypatch.setattr(MODULE, "_type_into_boxes", lambda: done.append("boxes"))
        monkeypatch.setattr(MODULE, "_fit_estimators", lambda: kernels.COMPILED.extend(compiled))
        return done

    return set_up


def test_it_says_how_much_was_compiled_and_where_it_is(brief, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = brief(
        "auc fit --help\nauc fit --label y --help", [*map(Path, ("/kept/a/f", "/kept/b/g"))]
    )
    told, update = [], Progress.update

    def noted(*given, **options):
        told.append(options["description"])
        update(*given, **options)

    monkeypatch.setattr(Progress, "update", noted)
    said = CliRunner().invoke(app, ["warmup"], catch_exceptions=False).stdout
    assert done == ["tables", "boxes"]
    steps = ["auc fit", "auc fit", "typing into search boxes", "estimators"]
    assert told == [*(f"warmup: {step}" for step in steps), "warmup"]
    seconds = re.fullmatch(r"2 kernels compiled in (\d+) s, kept in /kept\n", said)[1]
    assert int(seconds) < 60
    brief(compiled=[Path("/kept/a/f.nbc"), Path("/kept/b/g.nbc")])
    found = json.loads(CliRunner().invoke(app, ["warmup", "--json"]).stdout)
    assert found["compiled"] == 2
    assert found["folder"] == "/kept"
    assert 0 <= found["seconds"] < 60
    assert not list(tmp_path.iterdir())


def test_a_second_run_says_that_nothing_was_left(brief):
    brief()
    assert CliRunner().invoke(app, ["warmup"]).stdout == "Nothing was left to compile.\n"


def test_a_command_that_fails_is_not_passed_over(brief):
    brief("auc fit nothing.csv --label y --model m")
    with pytest.raises(InputError, match=r"nothing\.csv"):
        CliRunner().invoke(app, ["warmup"], catch_exceptions=False)


def test_commands_find_the_files_that_they_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    MODULE._write_tables()
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    named = {*re.findall(r"[\w-]+\.(?:csv|json)\b", MODULE.COMMANDS + files["tables.json"])}
    assert files.keys() == named - {"ranked.csv", "advised.json"}  # which are written
    assert all(files.values())


def test_boxes_are_typed_into(monkeypatch):
    typed = MagicMock()
    monkeypatch.setattr("telic.completion.Completer", typed)
    MODULE._type_into_boxes()
    composed = ["load().compose", *4 * ["load().compose().suggest"], "load().compose().submit"]
    listed = ["load", "load().suggest", "load", "load().index.top_phrases", "load().user"]
    assert [name for name, *_ in typed.mock_calls] == [*listed, *composed, *composed]


ELASTIC = [("Regressor", 60), ("RegressorCV", 60), ("Classifier", 2), ("ClassifierCV", 2)]
"""And how many different values of y each is fitted to."""


def test_estimators_are_fitted_to_dense_and_sparse_rows_of_two_classes_and_of_three(monkeypatch):
    fitted = []
    kinds = (
        *(f"optim.ElasticNet{name}" for name, _ in ELASTIC),
        "optim.admm.GraphFusedRegressor",
        "optim.admm.GraphFusedClassifier",
        "auc.ConjugateGradientAUC",
    )
    for kind in kinds:
        monkeypatch.setattr(
            f"telic.{kind}.fit",
            lambda self, X, y, kind=kind: fitted.append((kind, issparse(X), len({*y}))),
        )
    MODULE._fit_estimators()
    by_rows = [
        *((f"optim.ElasticNet{name}", values) for name, values in ELASTIC),
        ("optim.ElasticNetClassifier", 3),
        ("auc.ConjugateGradientAUC", 2),
    ]
    assert sorted(fitted) == sorted(
        [
            *((kind, sparse, values) for kind, values in by_rows for sparse in (False, True)),
            ("optim.admm.GraphFusedRegressor", False, 60),
            ("optim.admm.GraphFusedClassifier", False, 2),
        ]
    )


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
    for many in ("fold_kernels._fold-", "prefix_kernels.large_ranges-"):  # of many phrases alone
        assert any(name.startswith(many) for name in compiled)
    said, _ = run("telic", "warmup", "--json")
    assert json.loads(said)["compiled"] == 0
    first_uses = ["tests/cli/test_words.py", "tests/test_pages_run.py", "tests/test_readme.py"]
    _, after = run("pytest", *first_uses, "-k", "not explain-")
    assert after - compiled == set()
