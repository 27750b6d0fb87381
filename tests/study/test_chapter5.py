import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from telic.cli import app
from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.optim.admm import feature_graphs, make_admm_problem, separable, solve_admm
from telic.optim.penalties import ElasticNet
from telic.report import Table
from telic.study import chapter5
from telic.study.chapter5 import claims, experiments
from telic.study.chapter5.tables import printed_table
from telic.study.claims import cases

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


def test_the_error_of_an_optimum_is_certified_relative_to_the_start(problem, monkeypatch):
    found = solve_admm(problem, method="batch-admm", tol=1e-4, max_passes=200)
    monkeypatch.setattr(experiments, "solve_admm", lambda *_, **options: found)
    _, certified = experiments.optimum(problem)
    start = problem.objective(np.zeros(problem.size)) - problem.objective(found.coef)
    assert certified == pytest.approx(found.gap / start)


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
    monkeypatch.setattr(chapter5, "PRINTED_FOR", "small")
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
    reached, measures, bias, printed, sizes = map(
        Table.from_json, json.loads(done.stdout)["tables"]
    )
    methods = {row["method"]: row for row in reached.records()}
    for name in ("batch, curvature", "SA, curvature", "SVR-s, curvature", "SVR-D, curvature"):
        seconds, passes = methods[name]["1e-06"]
        assert seconds > 0
        assert passes > 1
    assert methods["STOC"]["last"] > methods["SVR-D, curvature"]["last"]
    limits = [row["its own limit"] for row in bias.records()]
    assert limits[0] > 5 * limits[1] > 0
    assert [(row["rows"], row["features"]) for row in sizes.records()] == [(300, 8)]
    assert [row["method"] for row in measures.records()] == [
        name for name in methods if name != "SDCA"
    ]
    assert {row["passes"] for row in printed.records()} == {5, 20, 60}
    page = out.read_text()
    assert page.count("<svg") == 1
    assert "Against the dissertation" in page
    assert len(list(work.glob("small-*.json"))) == 13
    again = CliRunner().invoke(app, ["study", "chapter-5", *options, "--overwrite", "--json"])
    assert again.stdout == done.stdout  # whose seconds would differ


def test_the_step_that_is_first_at_the_gap_is_taken_or_else_the_lowest(monkeypatch):
    apart = []
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
            apart.append((seconds, seed)) or (curves[multiple] and np.array(curves[multiple]))
        ),
    )
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 1.0
    assert apart == [(1.0, 10_000)] * 3  # the runs that are measured have the seeds from 0 on
    curves[1.0] = [[1, 1.0, 1e-3], [2, 2.0, 3e-4]]
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 0.5
    curves[0.5] = [[1, 1.0, 1e-5], [2, 2.0, 9e-4]]
    assert experiments._best_multiple(None, None, seconds=1.0, seed=0) == 1.0


def test_the_levels_of_a_run_are_those_of_the_points_it_went_through(problem, monkeypatch):
    best, _ = experiments.optimum(problem)
    points = []

    def solve(*given, callback, **options):
        points.clear()

        def keep(record, point):
            points.append((point.x.copy(), point.y.copy(), record.passes))
            return callback(record, point)

        asked.append(options)
        return solve_admm(*given, callback=keep, **options)

    asked = []
    monkeypatch.setattr(experiments, "solve_admm", solve)
    monkeypatch.setattr(experiments, "DONE", 1e-3)
    (line,) = (one for one in experiments.CURVATURE if one.name == "SVR-D, curvature")
    rows = experiments.run(best, line, multiple=2.0, seconds=1e9, seed=0)
    start = problem.objective(np.zeros(problem.size)) - best.objective
    loss = problem.objective(points[-1][0]) - problem.g.value(problem.A @ points[-1][0])
    lagging = loss + problem.g.value(points[-1][1])
    assert len(rows) == len(points)
    for row, (x, _, passes) in zip(rows, points, strict=True):
        assert row[0] == passes
        assert row[2] == pytest.approx((problem.objective(x) - best.objective) / start, abs=1e-12)
    assert rows[-1, 3] == pytest.approx((lagging - best.objective) / start, abs=1e-12)
    assert rows[-1, 4] == pytest.approx(best.q(*points[-1][:2]) / start, abs=1e-12)
    assert rows[-1, 2] <= 1e-3 < rows[:-1, 2].min()
    single = experiments.run(best, line, multiple=1.0, seconds=0.0, seed=0)
    assert len(single) == 1  # its time was over at once
    assert asked[0]["step_size"] == 2 * asked[1]["step_size"]
    assert asked[0]["batch_size"] == experiments.BATCH["curvature"]


def test_a_run_that_diverges_counts_for_nothing(problem, monkeypatch):
    best, _ = experiments.optimum(problem)

    def diverges(*_, **options):
        warnings.warn("not yet converged", ConvergenceWarning, stacklevel=2)
        raise InputError("diverged")

    monkeypatch.setattr(experiments, "solve_admm", diverges)
    assert experiments.run(best, experiments.LINEARISED[1], multiple=1, seconds=1, seed=0) is None


def test_the_printed_parameters_are_those_of_ijcnn1_and_theory_has_a_twelfth(problem, monkeypatch):
    settings = experiments.printed_settings(problem)
    printed, identity, constant, theory, ours = settings.values()
    for one in (printed, identity, constant):
        assert (one["step_size"], one["rho"], one["batch_size"]) == (5e-3, 1e-4, 1)
    assert printed["first"] == identity["first"] == 1.0
    assert (printed["x_step"], identity["x_step"]) == ("linearised", "exact")
    assert constant["method"] == "svr-admm-s"
    X = np.random.default_rng(0).normal(size=(300, 8)) * np.geomspace(1, 0.2, 8)
    assert theory["step_size"] == pytest.approx(4 / (12 * (X**2).sum(axis=1).max()))
    assert ours == {"method": "svr-admm-d"}

    followed = []
    monkeypatch.setattr(experiments, "printed_settings", lambda problem: {"some": {"rho": 2}})

    def follow(best, options, *, passes, seed):
        followed.append((options, passes, seed))
        return np.full((1, 5), float(seed))

    monkeypatch.setattr(experiments, "_followed", follow)
    monkeypatch.setattr(experiments, "_best", lambda case, data: (SimpleNamespace(problem=0), 0))
    found = experiments.as_printed(case="small", data=None, replications=2, seed=3)
    assert found == {"some": [[[3.0] * 5], [[4.0] * 5]]}
    assert followed == [({"rho": 2}, experiments.PRINTED_PASSES, seed) for seed in (3, 4)]


def test_what_is_printed_is_the_median_of_the_last_looks_by_then():
    ends = ((0.1, 0.01), (0.2, 0.03), (0.4, 0.02))
    runs = [
        [[1, 0, 0.5, -0.5, 0.25], [4, 0, early, -early, early / 2], [30, 0, late, -late, late / 2]]
        for early, late in ends
    ]
    found = printed_table("small", {"some": runs}).rows
    assert found == [
        ["some", 5, 0.2, -0.2, 0.1],
        ["some", 20, 0.2, -0.2, 0.1],
        ["some", 60, 0.02, -0.02, 0.01],
    ]
    begun = [[[7.0, 0, 0.5, 0.5, 0.5]]]  # whose first look is after five passes
    assert printed_table("small", {"late": begun}).rows[0][2] == 0.5


def test_a_measure_has_settled_when_it_no_longer_leaves():
    def run(*gaps):
        return [[number, 0.0, 0.0, gap, 0.0] for number, gap in enumerate(gaps, 1)]

    crossing = run(0.5, 1e-4, -0.5, -1e-3, 1e-5)
    assert experiments.settle([crossing], 1e-3, 3) == 4
    assert experiments.settle([run(1e-4, 1e-5)], 1e-3, 3) == 1
    assert experiments.settle([run(1e-4, 0.1)], 1e-3, 3) == np.inf
    assert experiments.settle([crossing, crossing, run(0.1)], 1e-3, 3) == 4


def test_both_measures_agree_where_they_order_the_methods_alike():
    def page(gaps, qs):
        return [
            {"method": method, "gap": gap, "Q": q}
            for method, gap, q in zip(("STOC", "SA", "SVR-D", "other"), gaps, qs, strict=True)
        ]

    pages = {
        "20news": page((None, 3.0, 2.0, 1.0), (None, 9.0, 8.0, 10.0)),
        "a9a": page((None, 3.0, 2.0, 1.0), (5.0, 9.0, 8.0, 1.0)),
        "ijcnn1": page((4.0, 3.0, 2.0, 1.0), (4.0, 3.0, 2.0, 1.0)),
    }
    tables = SimpleNamespace(rows=lambda title: pages[title.partition(": passes after")[0]])
    assert claims._agree(tables) == cases([True, False, True])


@pytest.mark.usefixtures("small")
def test_what_sdca_perturbs_is_what_it_ends_at(problem, monkeypatch):
    asked = []

    def run(best, method, *, multiple, seconds, seed):
        asked.append((method.options["method"], method.options["perturbation"], seconds, seed))
        return None if len(asked) == 2 else np.array([[1.0, 2.0, 0.5], [7.0, 3.0, 0.25]])

    monkeypatch.setattr(experiments, "run", run)
    found = experiments.bias(case="small", data=None, multiple=1.0, seconds=0.5, seed=4)
    assert asked == [("sdca-admm", 1e-2, 10.0, 4), ("sdca-admm", 1e-3, 10.0, 4)]
    least = newton_optimum(problem)
    start = problem.objective(np.zeros(problem.size)) - problem.objective(least)
    for (perturbation, limit, *_), expected in zip(found, (1e-2, 1e-3), strict=True):
        assert perturbation == expected
        ridge = replace(problem.data, penalty=ElasticNet(0.0, perturbation))
        moved = newton_optimum(replace(problem, data=ridge))
        gap = (problem.objective(moved) - problem.objective(least)) / start
        assert limit == pytest.approx(gap, rel=1e-3)
    assert found[0][2:] == [0.25, 7.0]
    assert np.isnan(found[1][2])
    assert found[1][3] == 0


@pytest.mark.usefixtures("small")
def test_who_takes_long_runs_fewer_times_and_whom_nothing_is_drawn_for_once(monkeypatch):
    lines = {one.name: one for one in (*experiments.LINEARISED, *experiments.CURVATURE)}
    runs = {name: one.runs(30, 2.0) for name, one in lines.items()}
    assert runs["batch"] == runs["batch, curvature"] == (1, 40.0)
    assert runs["SDCA"] == (experiments.SLOW_RUNS, 2.0)
    assert lines["SDCA"].runs(2, 2.0) == (2, 2.0)
    assert {runs[name] for name in runs.keys() - {"batch", "batch, curvature", "SDCA"}} == {
        (30, 2.0)
    }
    tuned, made = [], []

    def best_multiple(best, method, *, seconds, seed):
        tuned.append((method.name, seconds, seed))
        return 4.0

    def run(best, method, *, multiple, seconds, seed):
        made.append((method.name, multiple, seconds, seed))
        return None if seed == 8 else np.full((1, 5), float(seed))

    monkeypatch.setattr(experiments, "_best_multiple", best_multiple)
    monkeypatch.setattr(experiments, "run", run)
    given = {"case": "small", "data": None, "replications": 3, "seconds": 2.0, "seed": 7}
    found = experiments.measured(method="STOC", **given)
    assert found["multiple"] == 4
    assert [each[0, 0] for each in found["runs"]] == [7, 9]  # 8 diverged
    assert made == [("STOC", 4.0, 2.0, seed) for seed in (7, 8, 9)]
    assert experiments.measured(method="batch", **given)["runs"][0][0, 0] == 7
    assert tuned == [("STOC", 1.0, 7), ("batch", 6.0, 7)]
    facts = experiments.problem_and_optimum(case="small", data=None)
    assert (facts["n"], facts["d"], facts["edges"]) == (300, 8, 7)


def test_a_set_becomes_the_problem_of_the_dissertation(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    X[:, 1] += 3 * X[:, 0]
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    monkeypatch.setattr(experiments, "SETS", {"some": ("some", 50), "all": ("some", None)})
    asked = []
    monkeypatch.setattr(
        experiments, "labelled_set", lambda *given: asked.append(given) or (X, y, None)
    )
    some, whole = experiments.load("some", tmp_path), experiments.load("all")
    assert asked == [("some", tmp_path), ("some", None)]
    assert (some.data.design.n, whole.data.design.n) == (50, 60)
    w = rng.normal(size=5)
    joined = np.abs(some.A @ w).sum()
    expected = np.logaddexp(0, -y[:50] * (X[:50] @ w)).mean() + 1e-3 * joined
    assert some.objective(w) == pytest.approx(expected)
    edges = {tuple(np.flatnonzero(row)) for row in some.A.toarray()}
    assert (0, 1) in edges
    assert {feature for edge in edges for feature in edge} == set(range(5))


def test_missing_data_is_named_before_the_work(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"a9a.npz not found. Set TELIC_DATA"):
        experiments.load("a9a", tmp_path)
    monkeypatch.setattr(chapter5, "Report", None)
    with pytest.raises(InputError, match=r"npz not found. Set TELIC_DATA"):
        chapter5.study(None, data=tmp_path)
