from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot
from scipy import sparse

from telic.auc import SPAM, VRSPAM, diagnostics
from telic.auc.diagnostics import TracePoint, batch_sizes, convergence, step_noise, trace
from telic.auc.feature_scaling import SCALINGS, Scaling
from telic.auc.objective import objective
from telic.errors import InputError
from telic.evaluate.classification import roc_auc

RNG = np.random.default_rng(0)
X = RNG.normal(size=(800, 6))
POSITIVE = X[:, 0] + RNG.normal(size=800) > 1
BETA = 0.05


def test_noise_of_a_step_by_its_definition():
    p = POSITIVE.mean()
    pos, neg = X[POSITIVE].mean(0), X[~POSITIVE].mean(0)

    def each(w):
        slopes = np.where(POSITIVE, 2 * (1 - p) * ((X - neg) @ w - 1), 2 * p * ((X - pos) @ w + 1))
        return slopes[:, None] * X

    w, snapshot = RNG.normal(size=(2, 6))
    spread = each(w) - each(w).mean(0)
    assert step_noise(X, POSITIVE, w) == pytest.approx((spread**2).sum(1).mean())
    reduced = each(w) - each(snapshot)
    spread = reduced - reduced.mean(0)
    assert step_noise(X, POSITIVE, w, snapshot) == pytest.approx((spread**2).sum(1).mean())
    assert step_noise(X, POSITIVE, w, w) == 0


def test_a_trace_reaches_its_gap_and_variance_reduction_wins():
    fast = trace(VRSPAM(BETA, random_state=0), X, POSITIVE, beta=BETA, until=1e-7)
    slow = trace(SPAM(BETA, random_state=0), X, POSITIVE, beta=BETA, until=1e-7)
    assert fast[-1].gap <= 1e-7 < slow[-1].gap
    assert fast[-1].passes < slow[-1].passes * 2
    assert all(a.passes < b.passes for a, b in pairwise(fast))


def test_smaller_batches_need_fewer_passes():
    small, large = batch_sizes(X, POSITIVE, beta=BETA, shares=(0.01, 0.25), until=1e-5)
    assert small[1] < (large[1] or np.inf)


def test_a_trace_says_where_the_method_stood_and_leaves_out_the_time_of_looking(monkeypatch):
    class Steps:
        """Stands at 0, halfway and at the optimum after one, two and three passes."""

        def get_params(self, deep=True):
            return {}

        def set_params(self, pos_label):
            return self

        def fit(self, rows, positive, callback):
            for passes, part in enumerate((0.0, 0.5, 1.0), start=1):
                if callback(passes, part * best):
                    break

    best = diagnostics.conjugate_gradient(X, POSITIVE, beta=BETA, tol=1e-13).coef
    ticks = count()
    monkeypatch.setattr(diagnostics, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr(diagnostics, "clone", lambda model: model)
    points = trace(Steps(), X, POSITIVE, beta=BETA, until=1e-9)
    assert [point.passes for point in points] == [1, 2, 3]
    assert [point.seconds for point in points] == [1, 2, 3]  # of 1, 3, 5 on the clock
    least = objective(X, POSITIVE, best, beta=BETA)
    for point, part in zip(points, (0.0, 0.5, 1.0), strict=True):
        value = objective(X, POSITIVE, part * best, beta=BETA)
        assert point.gap == pytest.approx(value / least - 1, abs=1e-9)
        assert point.auc == roc_auc(POSITIVE, X @ (part * best))
        np.testing.assert_array_equal(point.weights, part * best)


def test_figures_show_each_rivals_points(monkeypatch):
    rng = np.random.default_rng(1)
    points = {
        name: [TracePoint(k, 10.0 * k, gap, 0.5 + gap, rng.normal(size=6)) for k, gap in shown]
        for name, shown in (
            ("SPAM", [(1.0, 0.2), (2.0, 0.1)]),
            ("VRSPAM", [(2.0, 0.1), (4.0, 0.0)]),
        )
    }
    monkeypatch.setattr(diagnostics, "rivals", lambda beta, seed: {name: name for name in points})
    monkeypatch.setattr(diagnostics, "trace", lambda model, *_, beta: points[model])
    found, figures = convergence(X, POSITIVE, beta=BETA)
    assert found == points
    (spam, spam2), (vr, vr2) = points.values()
    noise = {
        "SPAM": [step_noise(X, POSITIVE, p.weights) for p in (spam, spam2)],
        "VRSPAM": [step_noise(X, POSITIVE, vr2.weights, vr.weights)],
    }
    gaps = {"SPAM": [0.2, 0.1], "VRSPAM": [0.1, 1e-16]}
    passes = {"SPAM": [1.0, 2.0], "VRSPAM": [2.0, 4.0]}
    seconds = {name: [10 * k for k in at] for name, at in passes.items()}
    aucs = {"SPAM": [0.7, 0.6], "VRSPAM": [0.6, 0.5]}
    label = "Passes over the data"
    for figure, (x_label, y_label, log, x, y) in zip(
        figures,
        [
            (label, "Relative gap", True, passes, gaps),
            ("Seconds", "Relative gap", True, seconds, gaps),
            (label, "AUC (training rows)", False, passes, aucs),
            (label, "Variance of a step", True, passes | {"VRSPAM": [4.0]}, noise),
        ],
        strict=True,
    ):
        (axes,) = figure.axes
        assert (axes.get_xlabel(), axes.get_ylabel()) == (x_label, y_label)
        assert axes.get_yscale() == ("log" if log else "linear")
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(points)
        for line, name in zip(axes.lines, points, strict=True):
            assert line.get_xdata() == pytest.approx(x[name])
            assert line.get_ydata() == pytest.approx(y[name])
        pyplot.close(figure)


def test_a_batch_size_that_never_arrived_has_no_passes(monkeypatch):
    asked = []

    def traced(model, *_, beta, until):
        asked.append(model.batch_size)
        last = 1e-6 if len(asked) == 1 else 2e-6
        return [TracePoint(1.0, 2.0, 1.0, 0.5, X[0]), TracePoint(7.0, 3.0, last, 0.5, X[0])]

    monkeypatch.setattr(diagnostics, "trace", traced)
    found = batch_sizes(X, POSITIVE, beta=BETA, shares=(0.25, 0.0001), until=1e-6)
    assert found == [(0.25, 7.0, 3.0), (0.0001, None, None)]
    assert asked == [200, 1]


@pytest.mark.parametrize("name", SCALINGS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_scaling_does_what_its_name_says(name, kind):
    rows = X * np.arange(6) + 2  # the first column is constant
    scaled = Scaling.fit(kind(rows), name).apply(kind(rows))
    dense = scaled.toarray() if sparse.issparse(scaled) else scaled
    assert np.isfinite(dense).all()
    if name.endswith("unit"):
        assert np.linalg.norm(dense, axis=1) == pytest.approx(np.ones(800))
    elif name == "minmax":
        assert np.abs(dense).max() == pytest.approx(1)
    elif name == "standard":
        assert dense[:, 1:].std(axis=0) == pytest.approx(np.ones(5))
    else:
        assert dense == pytest.approx(rows)


def test_an_unknown_scaling_is_named():
    with pytest.raises(InputError, match="scaling is 'log'"):
        Scaling.fit(X, "log")
