import json

import numpy as np
from typer.testing import CliRunner

from telic.cli import app
from telic.optim import make_problem
from telic.simulate.text_corpora import e2006_like, rcv1_like
from telic.study import chapter4
from telic.study.chapter4 import experiment


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


def test_the_corpora_have_the_shape_asked_for():
    corpus = e2006_like(n=300, d=2000, words=50.0)
    assert corpus.X.shape == (300, 2000)
    assert 40 < corpus.X.nnz / 300 < 60
    np.testing.assert_allclose(np.asarray(corpus.X.multiply(corpus.X).sum(axis=1)).ravel(), 1.0)
    assert abs(corpus.y.mean() + 3.5) < 0.2
    again = e2006_like(n=300, d=2000, words=50.0)
    assert (corpus.X != again.X).nnz == 0
