import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from telic.cli import app
from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.optim.admm import feature_graphs, make_admm_problem, separable
from telic.report import Table
from telic.study import chapter5
from telic.study.chapter5 import experiments

sys.path.insert(0, str(Path(__file__).parents[1] / "reference"))
from fused_newton import newton_optimum


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * np.geomspace(1, 0.2, 8)
    y = np.where(X @ np.repeat([1.0, -1.0], 4) + rng.normal(size=300) > 0, 1.0, -1.0)
    graph = feature_graphs.chain(8)
    return make_admm_problem(X, y, A=graph.incidence, g=separable(7, l1=1e-2))


def test_the_optimum_agrees_with_newtons(problem):
    best, certified = experiments.optimum(problem)
    assert certified < 1e-12
    assert best.objective == pytest.approx(problem.objective(newton_optimum(problem)), abs=1e-11)


@pytest.mark.slow  # several seconds for each set
@pytest.mark.parametrize("name", list(experiments.SETS))
def test_the_optima_of_the_real_sets_are_certified(name):
    if not (data_folder() / "ml").is_dir():
        pytest.skip("the real sets are not here: set TELIC_DATA to their folder")
    real = experiments.load(name)
    best, certified = experiments.optimum(real)
    assert certified < 1e-10
    assert best.objective == pytest.approx(real.objective(newton_optimum(real)), abs=1e-10)


@pytest.fixture
def small(problem, monkeypatch):
    monkeypatch.setattr(chapter5, "labelled_set", lambda name, data: None)
    monkeypatch.setattr(chapter5, "SETS", {"small": ("small", None)})
    monkeypatch.setattr(experiments, "load", lambda name, data: problem)
    monkeypatch.setattr(experiments, "BIAS", (1e-2, 1e-3))
    monkeypatch.setattr(experiments, "MULTIPLES", (1.0, 4.0))
    monkeypatch.setattr(experiments, "BATCH", {"linearised": 8, "curvature": 16})
    experiments._best.cache_clear()
    yield
    experiments._best.cache_clear()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_study_runs_resumes_and_prints_json(tmp_path):
    out, work = tmp_path / "report.html", tmp_path / "work"
    options = ["--replications", "1", "--seconds", "0.15", "--work", str(work), "--out", str(out)]
    done = CliRunner().invoke(app, ["study", "chapter-5", *options, "--json"])
    assert done.exit_code == 0, done.output
    reached, bias, sizes = map(Table.from_json, json.loads(done.stdout)["tables"])
    methods = {row["method"]: row for row in reached.records()}
    for name in ("batch, curvature", "SA, curvature", "SVR-s, curvature", "SVR-D, curvature"):
        seconds, passes = methods[name]["1e-06"]
        assert seconds > 0
        assert passes > 1
    assert methods["STOC"]["last"] > methods["SVR-D, curvature"]["last"]
    limits = [row["its own limit"] for row in bias.records()]
    assert limits[0] > 5 * limits[1] > 0
    assert [(row["rows"], row["features"]) for row in sizes.records()] == [(300, 8)]
    page = out.read_text()
    assert page.count("<svg") == 1
    assert "Against the dissertation" in page
    assert len(list(work.glob("small-*.json"))) == 12
    again = CliRunner().invoke(app, ["study", "chapter-5", *options, "--overwrite", "--json"])
    assert again.stdout == done.stdout  # whose seconds would differ


def test_the_step_that_is_first_at_the_gap_is_taken_or_else_the_lowest(monkeypatch):
    curves = {
        0.5: [[1, 1.0, 1e-5], [2, 2.0, 9e-7]],
        1.0: [[1, 1.0, 9e-7], [2, 2.0, 1e-8]],
        4.0: None,  # diverged
    }
    monkeypatch.setattr(experiments, "MULTIPLES", tuple(curves))
    monkeypatch.setattr(
        experiments,
        "run",
        lambda best, method, *, multiple, seconds, seed: (
            curves[multiple] and np.array(curves[multiple])
        ),
    )
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 1.0
    curves[1.0] = [[1, 1.0, 1e-3], [2, 2.0, 3e-4]]
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 0.5
    curves[0.5] = [[1, 1.0, 1e-5], [2, 2.0, 9e-4]]
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 1.0


def test_missing_data_is_named_before_the_work(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"a9a.npz not found. Set TELIC_DATA"):
        experiments.load("a9a", tmp_path)
    monkeypatch.setattr(chapter5, "Report", None)
    with pytest.raises(InputError, match=r"npz not found. Set TELIC_DATA"):
        chapter5.study(None, data=tmp_path)
