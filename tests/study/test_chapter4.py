import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tests.held import column, hold
from typer.testing import CliRunner

from telic.cli import app
from telic.optim import make_problem
from telic.simulate.text_corpora import e2006_like, rcv1_like
from telic.study import chapter4
from telic.study.chapter4 import experiment

HERE = Path(__file__).parent


def small():
    text = rcv1_like(n=200, d=300, words=20)
    return make_problem(text.X, text.y, l1=1e-3, l2=1e-2)


def test_variance_reduction_converges_and_plain_sgd_does_not():
    found = experiment.measured(small(), replications=2, passes=40)
    last = {method: curve["gap"][-1] for method, curve in found["curves"].items()}
    assert found["certified"] < 1e-9
    assert len(last) == 8
    assert max(last[name] for name in ("SAGA", "SVRG", "ASBCD-U", "ASBCD-O")) < 1e-4
    assert min(last["SGD"], last["SBCD"]) > 1e-4
    curves = []
    for name, curve in found["curves"].items():
        early = curve["gap"] > 1e-6  # later rounding has a part in it
        axes = [column(curve[axis]) for axis in ("gradients", "passes")]
        curves.append([name, float(curve["step"]), *axes, column(curve["gap"][early])])
    rest = [found[name] for name in ("n", "d", "predicted_factor", "measured_factor")]
    hold(HERE / "pages" / "chapter-4-curves.jsonl", [*curves, rest])


def test_the_command_writes_the_report_and_prints_json(tmp_path, monkeypatch):
    monkeypatch.setattr(experiment, "make_case", lambda *settings: small())
    monkeypatch.setattr(chapter4, "CASES", {"COVTYPE": "left out", "small": "generated"})
    out = tmp_path / "report.html"
    options = ["--replications", "1", "--passes", "15", "--data", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, ["study", "chapter-4", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    saving, reach = json.loads(done.stdout)["tables"]
    ((name, predicted, measured, level),) = saving["rows"]
    assert name == "small"
    assert predicted > 1
    assert measured > 0
    assert level >= 1e-3
    assert len(reach["rows"]) == 8
    page = out.read_text()
    assert "COVTYPE is left out" in page
    assert page.count("<svg") == 1


def test_what_optimal_sampling_saves_by_the_theory_and_as_measured():
    problem = small()
    constants, condition = problem.row_constants(), 200 * 1e-2
    uniform = {"gradients": 2 * np.arange(1.0, 9.0), "gap": 0.09 ** np.arange(8)}
    optimal = {"gradients": np.arange(2.0, 10.0), "gap": 0.01 ** np.arange(8)}
    found = experiment._saving(problem, uniform, optimal)
    expected = (condition + constants.max()) / (condition + constants.mean())
    assert found["predicted_factor"] == pytest.approx(expected)
    assert (found["measured_at"], found["measured_factor"]) == (1e-3, pytest.approx(8 / 4))
    slow = uniform | {"gap": np.full(8, 0.5)}
    found = experiment._saving(problem, slow, optimal)
    assert (found["measured_at"], found["measured_factor"]) == (0.5, pytest.approx(2 / 3))


def test_needed_is_the_first_place_below_a_gap():
    curve = {"gap": [1.0, 0.1, 0.2, 0.01], "passes": [5, 6, 7, 8]}
    assert experiment.needed(curve, 0.1, "passes") == 6.0
    assert experiment.needed(curve, 0.05, "passes") == 8.0
    assert experiment.needed(curve, 1e-3, "passes") is None


def test_cases_are_a_share_of_their_shapes_and_scaled(monkeypatch):
    text = experiment.make_case("RCV1 shape", 0.01, None, 3)
    skewed = experiment.make_case("RCV1 shape, skewed norms", 0.01, None, 3)
    assert (text.design.n, text.l1, text.l2) == (202, 1e-4, 1e-4)
    lengths = np.sqrt(np.asarray(skewed.design.matrix.power(2).sum(axis=1)).ravel())
    norms = 1.0 + np.random.default_rng(3).pareto(1.5, size=202)
    np.testing.assert_allclose(lengths, np.sqrt(norms))
    assert experiment.make_case("E2006-TFIDF shape", 0.01, None, 3).design.n == 160
    rng = np.random.default_rng(0)
    X, y = sparse.csr_matrix(rng.normal(size=(50, 3)) * [1, 100, 0]), rng.choice([-1.0, 1.0], 50)
    monkeypatch.setattr(experiment, "labelled_set", lambda name, data: (X, y, None))
    made = experiment.make_case("COVTYPE", 0.5, None, 3)
    rows = np.random.default_rng(3).permutation(50)[:25]
    largest = np.maximum(abs(X).max(axis=0).toarray(), 1e-12)
    np.testing.assert_allclose(made.design.matrix.toarray(), X.toarray()[rows] / largest)
    np.testing.assert_array_equal(made.y, y[rows])


def test_the_corpora_have_the_shape_asked_for():
    corpus = e2006_like(n=300, d=2000, words=50.0)
    assert corpus.X.shape == (300, 2000)
    assert 40 < corpus.X.nnz / 300 < 60
    np.testing.assert_allclose(np.asarray(corpus.X.multiply(corpus.X).sum(axis=1)).ravel(), 1.0)
    assert abs(corpus.y.mean() + 3.5) < 0.2
    again = e2006_like(n=300, d=2000, words=50.0)
    assert (corpus.X != again.X).nnz == 0
