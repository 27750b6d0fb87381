"""How long the steps are and how many: what the docstrings say, seen where the steps are taken."""

from importlib import import_module

import numpy as np
import pytest
from scipy import sparse

from telic.auc.methods.pairwise import pairwise
from telic.auc.methods.spam import centred, spam, step_sizes
from telic.auc.methods.spdam import spdam
from telic.auc.methods.vrspam import vrspam

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) * [1.0, 2.0, 0.3] + [3.0, 0.0, -1.0]
POSITIVE = np.arange(40) % 4 == 0
WEIGHT = RNG.integers(1, 4, size=40).astype(float)


def watched(monkeypatch, module, name, result):
    """Calls of a function of a module, in place of it."""
    calls = []

    def call(*given):
        calls.append(given)
        return result(*given) if callable(result) else result

    monkeypatch.setattr(import_module(f"telic.auc.methods.{module}"), name, call)
    return calls


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("center", [True, False])
def test_rows_are_measured_from_their_centre(kind, center, weight):
    view = centred(kind(X), POSITIVE, center, weight)
    centre = np.average(X, axis=0, weights=weight) if center else np.zeros(3)
    assert view.centre == pytest.approx(centre)
    assert view.bound == pytest.approx(((X - centre) ** 2).sum(axis=1).max())
    means = [
        np.average(X[side], axis=0, weights=None if weight is None else weight[side])
        for side in (POSITIVE, ~POSITIVE)
    ]
    away = X - centre
    expected = np.column_stack([X @ centre, *(away @ mean for mean in means)])
    assert view.projected == pytest.approx(expected)


def test_spams_steps_shrink_as_printed(monkeypatch):
    times, beta, bound = np.array([1.0, 4.0, 100.0]), 0.3, 5.0
    C, slower = beta / (128 * bound**2), beta / (1 + beta**2 / (128 * bound**2)) ** 2
    for step, expected in (
        ("linear", 1 / (beta * (times + 4 * bound / beta))),
        ("sqrt", 2.0 / (4 * bound * np.sqrt(times))),
        ("theory-power", C / times**0.7),
        ("theory-linear", 1 / (slower * (times + 1))),
    ):
        found = step_sizes(step, times, beta, bound, 2.0, 0.7)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    # From pass to pass the count goes on.
    calls = watched(monkeypatch, "spam", "step_sizes", lambda step, times, *_: 0 * times)
    spam(X, POSITIVE, beta=beta, passes=3, rng=np.random.default_rng(0))
    assert np.concatenate([times for _, times, *_ in calls]).tolist() == list(range(1, 121))


@pytest.mark.parametrize("share", [0.5, 5.0, 50.0])
def test_a_stage_of_vrspam_has_so_many_steps_of_such_a_length(monkeypatch, share):
    bound = centred(X, POSITIVE, True).bound
    beta, told = bound / (40 * share), []
    calls = watched(monkeypatch, "vrspam", "_l2_stage", 0.0)
    rng = np.random.default_rng(0)
    options = {"step_size": 0.5, "max_iter": 3, "rng": rng, "tol": 0.0}
    options["callback"] = lambda passes, w: told.append(passes)
    vrspam(X, POSITIVE, beta=beta, **options)
    steps = round(40 * np.clip(share, 1, 20))
    assert [call[2].size for call in calls] == [steps] * 3
    assert [call[-1] for call in calls] == pytest.approx([0.5 / (2 * bound)] * 3)
    # A pass of SPAM first, then of each stage one for the gradient and one for each n steps.
    assert told == pytest.approx([1 + k * (1 + steps / 40) for k in (1, 2, 3)])


@pytest.mark.parametrize(("kind", "batch"), [(np.asarray, 1), (sparse.csr_array, 4), (None, 7)])
def test_a_step_with_an_l1_term_takes_rows_enough_to_pay_for_its_columns(monkeypatch, kind, batch):
    """As many rows as have about d nonzeros together; or as many as are asked for."""
    rows = np.where(np.arange(40)[:, None] % 4 == np.arange(4) % 4, 1.0 + RNG.random((40, 4)), 0.0)
    calls = watched(monkeypatch, "vrspam", "_net_stage", None)
    options = {"beta": 10.0, "beta1": 1e-3, "max_iter": 1, "rng": np.random.default_rng(0)}
    if kind is None:
        kind, options["batch_size"] = np.asarray, batch
    vrspam(kind(rows), np.arange(40) % 3 == 0, **options)
    assert calls[0][2].shape == (40 // batch, batch)


def test_a_step_on_pairs_is_as_long_as_the_pairs_curvature_allows(monkeypatch):
    told = []
    calls = watched(monkeypatch, "vrspam", "pair_stage", lambda rows, drawn, scores, w, *_: w)
    options = {"beta": 0.1, "beta1": 1e-3, "pairs": True, "max_iter": 1}
    options |= {"rng": np.random.default_rng(0), "callback": lambda passes, w: told.append(passes)}
    vrspam(X, POSITIVE, **options)
    bound, share = centred(X, POSITIVE, True).bound, 0.25
    (_, (high, low), *_, eta) = calls[0]
    assert eta == pytest.approx(1 / (8 * share * (1 - share) * bound + 0.1))
    assert POSITIVE[high].all()
    assert not POSITIVE[low].any()
    assert told == pytest.approx([2 + 2 * high.size / 40])


def test_a_stage_that_rose_is_taken_back_and_its_step_halved(monkeypatch):
    seen = []

    def rising(rows, positive, order, u, *rest):
        seen.append(rest[-1])
        u += 1e3
        return 0.0

    watched(monkeypatch, "vrspam", "_l2_stage", rising)
    found = vrspam(X, POSITIVE, beta=1.0, max_iter=7, rng=np.random.default_rng(0))
    assert seen == pytest.approx(seen[0] / 2.0 ** np.arange(4))
    assert np.abs(found.coef).max() < 10  # the last stage rose, too


@pytest.mark.parametrize(("batch_size", "size"), [(0.09, 4), (1, 1), (7, 7), (100, 40)])
def test_spdams_rates_are_those_of_its_docstring(monkeypatch, batch_size, size):
    calls, told = watched(monkeypatch, "spdam", "_pass", None), []
    found = spdam(
        X,
        POSITIVE,
        beta=0.3,
        batch_size=batch_size,
        max_iter=3,
        weight=WEIGHT,
        rng=np.random.default_rng(0),
        callback=lambda passes, w: told.append(passes),
    )
    assert told == [1, 2, 3]
    assert found.passes == 3
    share = np.average(POSITIVE, weights=WEIGHT)
    strong = 0.3 / (2 * share * (1 - share))
    lengths = []
    for side, part in ((POSITIVE, share), (~POSITIVE, 1 - share)):
        away = X[side] - np.average(X[side], axis=0, weights=WEIGHT[side])
        # A row of weight 2 counts as two, of those that weigh 1 in the mean.
        lengths.append((away**2).sum(axis=1) * WEIGHT[side] / WEIGHT.mean() / part)
    R = np.sqrt(np.concatenate(lengths).max())
    tau, sigma = np.sqrt(size / (40 * strong)) / (2 * R), np.sqrt(40 * strong / size) / (2 * R)
    theta = 1 - 1 / (40 / size + R * np.sqrt(40 / (size * strong)))
    assert calls[0][4] == size
    assert calls[0][-1] == pytest.approx((strong, tau, sigma, theta))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_a_pairwise_loss_counts_a_pass_for_each_look(loss):
    told = []
    options = {"beta": 0.1, "loss": loss, "rng": np.random.default_rng(0)}
    first = pairwise(X, POSITIVE, callback=lambda passes, w: told.append(passes) or True, **options)
    assert first.stopped
    assert told == [first.passes]
    assert first.passes >= 2  # at 0, and where the first line search ended
    told.clear()
    found = pairwise(X, POSITIVE, callback=lambda passes, w: told.append(passes), **options)
    assert not found.stopped
    assert (np.diff(told) >= 1).all()
    assert found.passes >= told[-1]
