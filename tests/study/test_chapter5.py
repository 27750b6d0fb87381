import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from telic.cli import app
from telic.errors import InputError
from telic.optim.admm import graphs, make_admm_problem, separable
from telic.study import chapter5, chapter5_report

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from fused_newton import newton_optimum


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * np.geomspace(1, 0.2, 8)
    y = np.where(X @ np.repeat([1.0, -1.0], 4) + rng.normal(size=300) > 0, 1.0, -1.0)
    graph = graphs.chain(8)
    return make_admm_problem(X, y, A=graph.incidence, g=separable(7, l1=1e-2))


def test_the_optimum_agrees_with_newtons(problem):
    best, certified = chapter5.optimum(problem)
    assert certified < 1e-12
    assert best.objective == pytest.approx(problem.objective(newton_optimum(problem)), abs=1e-11)


@pytest.mark.slow  # several seconds for each set
@pytest.mark.parametrize("name", list(chapter5.SETS))
def test_the_optima_of_the_real_sets_are_certified(name):
    folder = Path(os.environ.get("TELIC_DATA", "../shared/data"))
    if not (folder / "ml").is_dir():
        pytest.skip("the real sets are not here: set TELIC_DATA to their folder")
    real = chapter5.load(name)
    best, certified = chapter5.optimum(real)
    assert certified < 1e-10
    assert best.objective == pytest.approx(real.objective(newton_optimum(real)), abs=1e-10)


def test_the_study_runs_resumes_and_prints_json(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(chapter5_report, "load", lambda name, folder: problem)
    monkeypatch.setattr(chapter5_report, "SETS", {"small": ("small", None)})
    monkeypatch.setattr(chapter5, "BIAS", (1e-2, 1e-3))
    monkeypatch.setattr(chapter5, "MULTIPLES", (1.0, 4.0))
    monkeypatch.setattr(chapter5, "BATCH", {"linearised": 8, "curvature": 16})
    out, work = tmp_path / "report.html", tmp_path / "work"
    options = ["--replications", "2", "--seconds", "0.05", "--work", str(work), "--out", str(out)]
    done = CliRunner().invoke(app, ["study", "chapter-5", *options, "--json"])
    assert done.exit_code == 0, done.output
    (numbers,) = json.loads(done.stdout)
    methods = numbers["methods"]
    for name in ("batch, curvature", "SA, curvature", "SVR-s, curvature", "SVR-D, curvature"):
        assert methods[name]["reach"]["1e-06"][1] is not None
    assert methods["STOC"]["last"] > methods["SVR-D, curvature"]["last"]
    biases = [numbers["sdca_bias"][key][0] for key in ("0.01", "0.001")]
    assert biases[0] > 5 * biases[1] > 0
    page = out.read_text()
    assert page.count("<svg") == 1
    assert "Against the text" in page
    kept = sorted(work.iterdir())
    assert len(kept) == 11
    again = CliRunner().invoke(app, ["study", "chapter-5", *options, "--overwrite", "--json"])
    assert json.loads(again.stdout)[0]["methods"] == methods


def test_missing_data_is_named(tmp_path):
    with pytest.raises(InputError, match=r"a9a.npz not found. Set TELIC_DATA"):
        chapter5.load("a9a", tmp_path)
