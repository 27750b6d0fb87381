import json

import numpy as np
from typer.testing import CliRunner

from telic.cli import app
from telic.optim import make_problem
from telic.optim.datasets import e2006_like, rcv1_like
from telic.study import chapter4


def small_case():
    text = rcv1_like(n=200, d=300, words=20)
    return chapter4.Case("small", make_problem(text.X, text.y, l1=1e-3, l2=1e-2), "generated")


def test_variance_reduction_converges_and_plain_sgd_does_not():
    curves, certified = chapter4.convergence(
        small_case().problem, replications=2, passes=40, progress=lambda step: None
    )
    last = {curve.method: curve.gap[-1] for curve in curves}
    assert certified < 1e-9
    assert len(last) == 8
    assert max(last[name] for name in ("SAGA", "SVRG", "ASBCD-U", "ASBCD-O")) < 1e-4
    assert min(last["SGD"], last["SBCD"]) > 1e-4


def test_the_command_writes_the_report_and_prints_json(tmp_path, monkeypatch):
    monkeypatch.setattr(chapter4, "cases", lambda share, data, seed: [small_case()])
    out = tmp_path / "report.html"
    options = ["--replications", "1", "--passes", "15", "--data", str(tmp_path), "--json"]
    done = CliRunner().invoke(app, ["study", "chapter-4", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    numbers = json.loads(done.stdout)["small"]
    assert numbers["measured_factor"] > 0
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
