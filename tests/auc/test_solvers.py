"""Batch solvers against the definition of the objective and independent optima."""

from dataclasses import replace
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import RidgeClassifier

from telic.auc import VRSPAM
from telic.auc.drawn_rows import as_rows
from telic.auc.methods.exact import EPS, conjugate_gradient, curvature, elastic_net, exact
from telic.auc.methods.pairwise import (
    _draw_pairs,
    _newton,
    _of_all_pairs,
    pairwise,
)
from telic.auc.methods.pairwise_sums import hinge, smoothed_hinge_sums, squared_hinge_sums
from telic.auc.methods.spam import centred, spam, spam_pass
from telic.auc.methods.spdam import _pass, spdam
from telic.auc.methods.vrspam import _l2_stage, _net_stage, vrspam
from telic.auc.methods.vrspam_pairs import pair_stage
from telic.auc.objective import class_means, loss_gradient, moments, objective
from telic.errors import InputError
from telic.evaluate.classification import partial_auc


def by_pairs(X, positive, w, beta, beta1=0.0):
    """The objective as it is written: a mean over all pairs."""
    scores, p = X @ w, positive.mean()
    margins = scores[positive][:, None] - scores[~positive][None, :]
    loss = p * (1 - p) * np.mean((1 - margins) ** 2)
    return loss + beta / 2 * w @ w + beta1 * np.abs(w).sum()


def dense_set(n=1500, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / 5 + 3
    z = (X - X.mean(0)) @ rng.normal(size=d)
    positive = z + rng.normal(size=n) > 1
    return X / np.linalg.norm(X, axis=1).max(), positive


def sparse_set(n=1500, d=200, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.05, random_state=seed, format="csr")
    z = X @ rng.normal(size=d)
    return X, z + 0.1 * rng.normal(size=n) > 0.3


SETS = {"dense": dense_set(), "sparse": sparse_set()}
BETA = 2e-3


@pytest.fixture(params=SETS)
def rows(request):
    return SETS[request.param]


def independent_optimum(X, positive, beta):
    """Class-balanced ridge by scikit-learn gives the direction, one division the length."""
    p = positive.mean()
    ridge = RidgeClassifier(
        class_weight="balanced",
        alpha=positive.size * beta / (4 * p * (1 - p)),
        tol=1e-14,
        solver="cholesky" if not sparse.issparse(X) else "sparse_cg",
    )
    direction = ridge.fit(X, positive).coef_.ravel()
    scores = X @ direction
    gap = scores[positive].mean() - scores[~positive].mean()
    spread = scores[positive].var() + scores[~positive].var() + gap**2
    return direction * gap / (spread + beta / (2 * p * (1 - p)) * direction @ direction)


def relative_gap(X, positive, w, beta):
    best = objective(X, positive, independent_optimum(X, positive, beta), beta=beta)
    return objective(X, positive, w, beta=beta) / best - 1


@given(seed=st.integers(0, 10**6), beta=st.floats(0, 10), beta1=st.floats(0, 10))
@settings(max_examples=25)
def test_objective_is_the_mean_over_pairs(seed, beta, beta1):
    X, positive = dense_set(n=60, d=3, seed=seed)
    if positive.all() or not positive.any():
        return
    w = np.random.default_rng(seed).normal(size=3)
    expected = by_pairs(X, positive, w, beta, beta1)
    assert objective(X, positive, w, beta=beta, beta1=beta1) == pytest.approx(expected)
    found = moments(X, positive)
    assert found.objective(w, beta=beta, beta1=beta1) == pytest.approx(expected)
    analytic = loss_gradient(X, positive, X @ w, found.means)
    assert found.gradient(w) == pytest.approx(analytic, abs=1e-10)
    shift = 1e-6 * np.eye(3)
    numeric = [
        (by_pairs(X, positive, w + s, 0) - by_pairs(X, positive, w - s, 0)) / 2e-6 for s in shift
    ]
    assert analytic == pytest.approx(numeric, abs=1e-5)


def test_moments_keep_their_digits_at_a_large_offset():
    X, positive = dense_set()
    near, far = moments(X, positive), moments(X + 1e6, positive)
    assert far.within == pytest.approx(near.within, abs=1e-8)
    assert far.means.delta == pytest.approx(near.means.delta, abs=1e-8)


def test_exact_cg_vrspam_and_spdam_reach_an_independent_optimum(rows):
    X, positive = rows
    rng = np.random.default_rng(0)
    found = exact(moments(X, positive), beta=BETA)
    assert abs(relative_gap(X, positive, found.coef, BETA)) < 1e-8
    ridge = independent_optimum(X, positive, BETA)
    cosine = found.coef @ ridge / np.linalg.norm(found.coef) / np.linalg.norm(ridge)
    assert cosine == pytest.approx(1, abs=1e-6)
    for solution in (
        conjugate_gradient(X, positive, beta=BETA, tol=1e-9),
        vrspam(X, positive, beta=BETA, rng=rng),
        vrspam(X, positive, beta=BETA, rng=rng, center=False, step_size=0.5),
        spdam(X, positive, beta=BETA, rng=rng, batch_size=1),
        spdam(X, positive, beta=BETA, rng=rng, batch_size=0.02, max_iter=2000),
    ):
        assert solution.converged
        assert relative_gap(X, positive, solution.coef, BETA) < 1e-8


def test_spam_comes_near_in_20_passes_and_its_printed_steps_do_not(rows):
    X, positive = rows
    # The 1/t step's gap is about its variance over beta·t: a beta that 20 passes can serve.
    beta = 2e-2

    def gap(**options):
        rng = np.random.default_rng(1)
        return relative_gap(
            X, positive, spam(X, positive, beta=beta, rng=rng, **options).coef, beta
        )

    start = relative_gap(X, positive, np.zeros(X.shape[1]), beta)
    assert gap() < 1e-2 < start
    assert gap(step="sqrt", step_size=2.0) < 0.2
    assert gap(step="theory-power") > 0.5 * start
    loose = spam(X, positive, beta=20.0, step="theory-linear", rng=np.random.default_rng(1))
    assert relative_gap(X, positive, loose.coef, 20.0) < 1e-2


def test_a_stage_of_vrspam_that_went_up_is_taken_back():
    X, positive = dense_set()
    solution = vrspam(X, positive, beta=BETA, step_size=60.0, rng=np.random.default_rng(0))
    assert solution.converged
    assert relative_gap(X, positive, solution.coef, BETA) < 1e-8


@pytest.mark.parametrize("name", SETS)
def test_elastic_net_methods_agree_and_are_optimal(name):
    X, positive = SETS[name]
    beta, beta1 = 5e-3, 2e-3
    found = moments(X, positive)
    w, _ = elastic_net(found, beta=beta, beta1=beta1)
    slope = found.gradient(w) + beta * w
    active = w != 0
    assert 0 < active.sum() < active.size
    assert slope[active] == pytest.approx(-beta1 * np.sign(w[active]), abs=1e-8)
    assert np.abs(slope[~active]).max() <= beta1 + 1e-8
    best = objective(X, positive, w, beta=beta, beta1=beta1)
    rng = np.random.default_rng(0)
    fast = vrspam(X, positive, beta=beta, beta1=beta1, rng=rng, max_iter=1000)
    assert objective(X, positive, fast.coef, beta=beta, beta1=beta1) / best - 1 < 1e-8
    paired = vrspam(X, positive, beta=beta, beta1=beta1, pairs=True, rng=rng, max_iter=1000)
    assert paired.converged
    assert objective(X, positive, paired.coef, beta=beta, beta1=beta1) / best - 1 < 1e-8
    slow = spam(X, positive, beta=beta, beta1=beta1, rng=rng)
    assert objective(X, positive, slow.coef, beta=beta, beta1=beta1) / best - 1 < 0.05


@pytest.mark.parametrize("beta", [0.05, 20.0])  # with 20 a scale that is kept falls below 1e-60
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("beta1", [0.0, 2e-3])
def test_spams_steps_are_the_printed_ones_from_any_centre(rows, beta1, center, beta):
    X, positive = rows[0][:60], rows[1][:60]
    view, rng = centred(X, positive, center), np.random.default_rng(0)
    pos, neg, p = view.means.pos, view.means.neg, view.means.share
    order, steps = rng.integers(60, size=120), rng.uniform(0.1, 0.5, 120)
    start = 0.1 * rng.normal(size=X.shape[1])
    w, dense = start.copy(), X.toarray() if sparse.issparse(X) else X
    for done, (i, eta) in enumerate(zip(order, steps, strict=True), start=1):
        score, alpha = dense[i] @ w, (neg - pos) @ w
        if positive[i]:
            slope = 2 * (1 - p) * (score - pos @ w - 1 - alpha)
        else:
            slope = 2 * p * (score - neg @ w + 1 + alpha)
        w = w - eta * slope * (dense[i] - view.centre)
        w = np.sign(w) * np.maximum(np.abs(w) - eta * beta1, 0) / (1 + eta * beta)
        found, first = start.copy(), slice(done)
        spam_pass(
            as_rows(X), positive, view, found, order[first], steps[first], beta=beta, beta1=beta1
        )
        assert found == pytest.approx(w, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("steps", [300, 2000])  # columns that few rows have wait for long
@pytest.mark.parametrize("beta1", [0.0, 2e-3])
def test_a_stage_on_pairs_is_the_plain_one(beta1, steps):
    X, positive = sparse_set(n=60)
    means, rng = class_means(X, positive), np.random.default_rng(0)
    snapshot = 0.1 * rng.normal(size=200)
    scores, eta, beta = X @ snapshot, 0.3, 0.05
    gradient = loss_gradient(X, positive, scores, means)
    drawn = tuple(rng.choice(np.flatnonzero(side), steps) for side in (positive, ~positive))
    w, dense = snapshot.copy(), X.toarray()
    for i, j in zip(*drawn, strict=True):
        gap = dense[i] - dense[j]
        move = 2 * means.pair_weight * (gap @ (w - snapshot)) * gap + gradient + beta * w
        w = w - eta * move
        w = np.sign(w) * np.maximum(np.abs(w) - eta * beta1, 0)
    found = pair_stage(as_rows(X), drawn, scores, snapshot, gradient, means, beta, beta1, eta)
    assert found == pytest.approx(w, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("beta1", "batch", "beta"), [(0.0, 1, 0.05), (0.0, 1, 20.0), (2e-3, 1, 0.05), (2e-3, 3, 0.05)]
)
def test_a_stage_on_rows_is_the_plain_one(rows, beta1, batch, beta):
    X, positive = rows[0][:60], rows[1][:60]
    view, rng = centred(X, positive, True), np.random.default_rng(0)
    means, p, eta = view.means, view.means.share, 0.3
    snapshot = 0.1 * rng.normal(size=X.shape[1])
    gradient = loss_gradient(X, positive, X @ snapshot, means)
    order = rng.integers(60, size=(100, batch))
    w, dense = snapshot.copy(), X.toarray() if sparse.issparse(X) else X
    table, centres = as_rows(X), (view.centre, means.pos, means.neg)
    whole = gradient + beta * snapshot
    kept = np.column_stack([view.projected, X @ whole])
    anchors = np.array([whole @ means.pos, whole @ means.neg])
    for done, drawn in enumerate(order, start=1):
        move = gradient.copy()
        for i in drawn:
            rival, weight = (means.neg, 1 - p) if positive[i] else (means.pos, p)
            slope = 2 * weight * (dense[i] - rival) @ (w - snapshot)
            move += slope * (dense[i] - view.centre) / batch
        w = w - eta * move
        w = np.sign(w) * np.maximum(np.abs(w) - eta * beta1, 0) / (1 + eta * beta)
        if beta1:
            found, rates = snapshot.copy(), (beta, beta1, eta)
            first = order[:done]
            _net_stage(table, positive, first, found, snapshot, gradient, centres, p, rates)
        else:
            u, first = np.zeros(w.size), order[:done].ravel()
            r = _l2_stage(table, positive, first, u, view.centre, kept, anchors, p, beta, eta)
            found = snapshot + u + r * whole
        assert found == pytest.approx(w, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [1, 7])  # the last batch of seven has four rows
def test_a_pass_of_spdam_is_the_plain_one(rows, size):
    X, positive = rows[0][:60], rows[1][:60]
    means, rng = class_means(X, positive), np.random.default_rng(0)
    factor, ridge, tau, sigma, theta = rng.uniform(0.5, 2, 60), 0.05, 0.3, 0.7, 0.9
    w, ahead, u = 0.1 * rng.normal(size=(3, X.shape[1]))
    dual, order = rng.normal(size=60), rng.permutation(60)
    found = tuple(part.copy() for part in (w, ahead, u, dual))
    away = X.toarray() if sparse.issparse(X) else X
    away = factor[:, None] * (away - np.where(positive[:, None], means.pos, means.neg))
    gap = means.neg - means.pos
    for start in range(0, 60, size):
        batch = order[start : start + size]
        new = (dual[batch] + sigma * away[batch] @ ahead) / (1 + sigma)
        moved = (new - dual[batch]) @ away[batch] / 60
        dual[batch] = new
        # The least of (gap'v + 1)²/2 + ridge/2 |v|² + (u + n/size moved)'v + |v - w|²/(2 tau).
        system = np.outer(gap, gap) + (ridge + 1 / tau) * np.eye(w.size)
        v = np.linalg.solve(system, w / tau - gap - u - 60 / batch.size * moved)
        u = u + moved
        w, ahead = v, v + theta * (v - w)
    rates = ridge, tau, sigma, theta
    _pass(as_rows(X), positive, factor, order, size, found, (means.pos, means.neg), rates)
    for one, expected in zip(found, (w, ahead, u, dual), strict=True):
        assert one == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_curvature_is_the_least_eigenvalue_less_what_rounding_may_have_added():
    X, positive = small()
    found, beta = moments(X * [1.0, 1e3, 1e-3, 1.0], positive), 1e-2
    p = positive.mean()
    matrix = found.within + beta / (2 * p * (1 - p)) * np.eye(4)
    root = np.sqrt(np.diag(matrix))
    least = np.linalg.eigvalsh(matrix / root[:, None] / root)[0]
    for noise in (np.zeros(4), 1e-4 * root**2):
        hidden = 10 * 4 * (EPS + (noise / root**2).max())
        sure = curvature(replace(found, noise=noise), beta)
        assert sure.root == pytest.approx(root)
        assert sure.modulus == pytest.approx(2 * p * (1 - p) * (least - hidden), rel=1e-9)
    flat = replace(found, within=np.ones((4, 4)))
    assert curvature(flat, 0.0).modulus == 0
    constant = replace(found, within=np.diag([1.0, 1.0, 1.0, 0.0]))
    assert curvature(constant, 0.0).modulus == 0


def test_gradient_of_a_row_is_unbiased():
    X, positive = dense_set(n=200)
    means = class_means(X, positive)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    p = means.share
    each = np.where(
        positive, 2 * (1 - p) * ((X - means.neg) @ w - 1), 2 * p * ((X - means.pos) @ w + 1)
    )
    mean = (each[:, None] * X).mean(0)
    assert mean == pytest.approx(moments(X, positive).gradient(w), abs=1e-12)


def test_singular_covariance_without_ridge_warns_and_gives_the_least_norm():
    X, positive = dense_set()
    doubled = np.hstack([X, X, np.ones((len(X), 1))])
    with pytest.warns(UserWarning, match="least norm"):
        solution = exact(moments(doubled, positive), beta=0.0)
    single = exact(moments(X, positive), beta=0.0).coef
    assert solution.coef == pytest.approx(np.concatenate([single, single, [0]]) / 2, abs=1e-5)


def test_a_batch_of_more_rows_than_there_are_is_all_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 1
    one, other = (
        VRSPAM(0.1, beta1=0.01, batch_size=size, random_state=0).fit(X, y) for size in (60, 10**9)
    )
    assert one.coef_.tolist() == other.coef_.tolist()
    assert one.n_iter_ == other.n_iter_


def test_a_column_that_differs_between_classes_alone_leaves_no_loss():
    X, positive = dense_set()
    separated = np.column_stack([X, 3.0 * positive, np.full(len(X), 7.0), 1.0 - positive])
    with pytest.warns(UserWarning, match="least norm"):
        w = exact(moments(separated, positive), beta=0.0).coef
    assert w == pytest.approx([*np.zeros(X.shape[1]), 0.3, 0, -0.1])
    assert objective(separated, positive, w, beta=0) == pytest.approx(0, abs=1e-25)


@given(seed=st.integers(0, 10**6), margin=st.floats(0.1, 2))
@settings(max_examples=25)
def test_squared_hinge_sums_by_definition(seed, margin):
    rng = np.random.default_rng(seed)
    high, low = np.sort(rng.normal(size=9).round(1)), np.sort(rng.normal(size=7).round(1))
    short = np.maximum(0, margin - (high[:, None] - low[None, :]))
    value, of_high, of_low = squared_hinge_sums(high, low, margin)
    assert value == pytest.approx((short**2).sum(axis=1))
    assert of_high == pytest.approx(-2 * short.sum(1), abs=1e-9)
    assert of_low == pytest.approx(2 * short.sum(0), abs=1e-9)
    mean = np.maximum(0, 1 - (high[:, None] - low[None, :])).mean()
    assert hinge(high, low) == pytest.approx(mean)


@given(seed=st.integers(0, 10**6), corner=st.sampled_from([1.0, 0.1, 0.001]))
@settings(max_examples=25)
def test_smoothed_hinge_sums_by_definition(seed, corner):
    rng = np.random.default_rng(seed)
    # The rounded scores put margins on the ends of the corner, too.
    high, low = np.sort(rng.normal(size=9).round(1)), np.sort(rng.normal(size=7).round(1))
    mine, theirs = rng.random(9), rng.random(7)
    short, share = 1 - (high[:, None] - low[None, :]), np.outer(mine, theirs)
    inside = np.clip(short, 0, corner)
    loss = inside**2 / (2 * corner) + np.maximum(short - corner, 0)
    value, of_high, of_low = smoothed_hinge_sums(high, low, corner, mine, theirs)
    assert value == pytest.approx((share * loss).sum(axis=1))
    assert of_high == pytest.approx(-(share * inside).sum(1) / corner, abs=1e-9)
    assert of_low == pytest.approx((share * inside).sum(0) / corner, abs=1e-9)
    plain = smoothed_hinge_sums(high, low, corner)
    assert plain[0] == pytest.approx(loss.sum(axis=1))


@pytest.mark.parametrize("sums", [squared_hinge_sums, smoothed_hinge_sums])
def test_sums_over_pairs_are_as_exact_as_the_scores_numbers(sums):
    rng = np.random.default_rng(0)
    high, low = (np.sort(rng.normal(size=n) + 1e4).astype(np.longdouble) for n in (90, 150))
    weights = [np.full(n, 1 / n) for n in (90, 150)]
    of_high, of_low = sums(high, low, 1.0 if sums is squared_hinge_sums else 1e-3, *weights)[1:]
    short = 1 - (high[:, None] - low)
    bends = np.clip(short, 0, None) * 2
    if sums is smoothed_hinge_sums:
        bends = np.clip(short / 1e-3, 0, 1)
    share = np.outer(*weights).astype(np.longdouble)
    off = max(
        np.abs(of_high + (share * bends).sum(1)).max(),
        np.abs(of_low - (share * bends).sum(0)).max(),
    )
    assert off <= 1e4 / 1e-3 * 100 * np.finfo(np.longdouble).eps / 90
    assert of_high.dtype == np.longdouble


def test_the_rounded_corner_is_as_exact_far_out():
    high, low = np.array([3.0, 1e11]), np.array([-1e11, 2.0 + 5e-4])
    value, of_high, of_low = smoothed_hinge_sums(high, low, 1e-3)
    assert value == pytest.approx([5e-4**2 / 2e-3, 0.0], rel=1e-6)
    assert of_high == pytest.approx([-0.5, 0.0], rel=1e-6)
    assert of_low == pytest.approx([0.0, 0.5], rel=1e-6)


def small():
    rng = np.random.default_rng(3)
    positive = rng.random(60) < 0.4
    return rng.normal(size=(60, 4)) + 0.5 * positive[:, None], positive


def test_pairwise_hinge_reaches_the_optimum_of_its_dual():
    X, positive = small()
    beta, p = 1e-2, positive.mean()
    D = (X[positive][:, None] - X[~positive][None]).reshape(-1, 4)
    # max Σα − ½‖Dᵀα‖² over 0 <= α <= weight/(pairs·beta), solved by scipy.
    dual = minimize(
        lambda a: (0.5 * np.sum((D.T @ a) ** 2) - a.sum(), D @ (D.T @ a) - 1),
        np.zeros(len(D)),
        jac=True,
        bounds=[(0, p * (1 - p) / len(D) / beta)] * len(D),
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-14},
    )
    w = pairwise(X, positive, beta=beta, rng=np.random.default_rng(0)).coef
    scores = X @ w
    primal = p * (1 - p) * hinge(scores[positive], scores[~positive]) + beta / 2 * w @ w
    assert primal == pytest.approx(-dual.fun * beta, rel=2e-5)


@pytest.mark.parametrize(
    ("loss", "phi"),
    [
        ("squared_hinge", lambda m: np.maximum(0, 1 - m) ** 2),
        ("logistic", lambda m: np.logaddexp(0, -m)),
    ],
)
def test_other_surrogates_reach_scipys_optimum_of_the_definition(loss, phi):
    X, positive = small()
    beta, p = 1e-2, positive.mean()

    def defined(w):
        scores = X @ w
        margins = scores[positive][:, None] - scores[~positive][None]
        return p * (1 - p) * phi(margins).mean() + beta / 2 * w @ w

    w = pairwise(X, positive, beta=beta, loss=loss, rng=np.random.default_rng(0)).coef
    assert defined(w) == pytest.approx(minimize(defined, np.zeros(4)).fun, rel=1e-7)


@pytest.mark.parametrize("min_tpr", [0.0, 0.6])
def test_partial_range_counts_the_highest_negatives_and_the_lowest_positives(min_tpr):
    X, positive = small()
    beta, p = 1e-2, positive.mean()
    top, bottom = (
        round(share * rows.sum()) for share, rows in ((0.2, ~positive), (1 - min_tpr, positive))
    )
    ranges = {"fpr": (0.0, top / (~positive).sum()), "min_tpr": 1 - bottom / positive.sum()}

    def defined(w):
        scores = X @ w
        low, high = np.sort(scores[~positive])[-top:], np.sort(scores[positive])[:bottom]
        margins = high[:, None] - low[None]
        return p * (1 - p) * (np.maximum(0, 1 - margins) ** 2).mean() + beta / 2 * w @ w

    rng = np.random.default_rng(0)
    found = pairwise(X, positive, beta=beta, loss="squared_hinge", rng=rng, **ranges)
    w = found.coef
    assert found.objective == pytest.approx(defined(w))
    reference = minimize(defined, np.zeros(4), method="Nelder-Mead", options={"maxiter": 5000})
    assert defined(w) <= reference.fun * (1 + 1e-3)
    assert defined(w) - found.gap <= reference.fun
    everything = pairwise(X, positive, beta=beta, loss="squared_hinge", rng=rng).coef
    assert defined(w) < defined(everything)


RANGES = [((0.0, 0.1), 0.0), ((0.0, 1.0), 0.45), ((0.0, 0.35), 0.6)]


@pytest.mark.parametrize(("fpr", "min_tpr"), RANGES)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_partial_range_is_minimised_from_where_all_scores_are_equal(loss, fpr, min_tpr):
    # At 0 any negatives are the highest: the gradient of any of them need not lead down.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    positive = 0.7 * X[:, 0] + rng.normal(size=300) > 1.5
    options = {"beta": 1e-4, "loss": loss, "fpr": fpr, "min_tpr": min_tpr}
    ends = []
    for order in (np.arange(300), rng.permutation(300)):
        found = pairwise(X[order], positive[order], rng=rng, **options)
        assert found.gap < 5e-3 * found.objective
        ends.append(found.objective)
        scores = X @ found.coef
        assert partial_auc(positive, scores, fpr=fpr, min_tpr=min_tpr) > 0.6
    assert ends[0] == pytest.approx(ends[1], rel=2e-5)


@pytest.mark.parametrize("scale", [1e-20, 1e6, 1e20])
@pytest.mark.parametrize(("fpr", "min_tpr"), RANGES)
def test_rounded_ranges_stand_scores_of_any_size(scale, fpr, min_tpr):
    X, positive = small()
    options = {"loss": "squared_hinge", "fpr": fpr, "min_tpr": min_tpr}
    found = pairwise(scale * X, positive, beta=1e-4, rng=np.random.default_rng(0), **options)
    assert 0 <= found.gap < np.inf
    rows, counts = (np.flatnonzero(positive), np.flatnonzero(~positive)), np.ones(60)
    mean_loss = partial(_of_all_pairs, "squared_hinge", rows, counts, fpr, min_tpr)
    for scores in (scale * X[:, 0], np.where(positive, -scale, 0.0)):  # differing, and all alike
        value, exact = (mean_loss(scores, 1e-3, exact=so)[0] for so in (False, True))
        assert value <= exact * (1 + 1e-12)


def test_a_range_from_above_0_is_minimised_from_where_all_scores_are_equal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    positive = 0.7 * X[:, 0] + rng.normal(size=300) > 1.5
    w = pairwise(X, positive, beta=1e-4, loss="squared_hinge", fpr=(0.02, 0.1), rng=rng).coef
    assert partial_auc(positive, X @ w, fpr=(0.02, 0.1)) > 0.6


@given(
    seed=st.integers(0, 10**6), corner=st.sampled_from([0.1, 0.01]), ranges=st.sampled_from(RANGES)
)
@settings(max_examples=30, deadline=None)
def test_rounded_ranges_are_smooth_and_a_little_below(seed, corner, ranges):
    rng = np.random.default_rng(seed)
    scores, counts = 2 * rng.normal(size=60).round(1), rng.integers(1, 4, size=60).astype(float)
    positive = rng.random(60) < 0.4
    rows = np.flatnonzero(positive), np.flatnonzero(~positive)
    mean_loss = partial(_of_all_pairs, "squared_hinge", rows, counts, *ranges)
    value, slopes = mean_loss(scores, corner)
    exact, _ = mean_loss(scores, corner, exact=True)
    parts = 2 - (ranges[0] == (0.0, 1.0)) - (ranges[1] == 0.0)
    assert value - 1e-12 <= exact <= value + parts * corner / 2 + 1e-12
    for row in range(0, 60, 13):
        step = 1e-6 * (np.arange(60) == row)
        change = mean_loss(scores + step, corner)[0] - mean_loss(scores - step, corner)[0]
        assert change / 2e-6 == pytest.approx(slopes[row], abs=2e-5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y, rng: spam(X, y, beta=0.0, rng=rng), "beta > 0"),
        (lambda X, y, rng: spam(X, y, beta=1e-6, step="theory-linear", rng=rng), "diverged"),
        (lambda X, y, rng: spam(X, y, beta=1.0, step="fast", rng=rng), "expected one of"),
        (lambda X, y, rng: vrspam(X, y, beta=0.0, rng=rng), "beta > 0"),
        (lambda X, y, rng: spdam(X, y, beta=0.0, rng=rng), "beta > 0"),
        (lambda X, y, rng: spdam(X, y, beta=1.0, batch_size=0, rng=rng), "batch_size"),
        (lambda X, y, rng: pairwise(X, y, beta=1.0, loss="exp", rng=rng), "expected one of"),
        (lambda X, y, rng: pairwise(X, y, beta=1.0, fpr=(0.5, 0.5), rng=rng), "rates"),
        (lambda X, y, rng: pairwise(X, y, beta=1.0, min_tpr=1, rng=rng), "min_tpr: 1"),
        (
            lambda X, y, rng: pairwise(X, y, beta=1.0, loss="logistic", min_tpr=0.5, rng=rng),
            "no partial range",
        ),
    ],
)
def test_parameters_out_of_range_are_named(call, message):
    X, positive = dense_set(n=300)
    with pytest.raises(InputError, match=message):
        call(X, positive, np.random.default_rng(0))


def test_columns_of_very_different_size_are_no_trouble():
    X, positive = dense_set()
    sizes = np.geomspace(1e-9, 1e9, X.shape[1])
    plain, scaled = (exact(moments(rows, positive), beta=0.0).coef for rows in (X, X * sizes))
    assert scaled * sizes == pytest.approx(plain, rel=1e-5)


def test_a_covariance_that_is_singular_but_for_rounding_counts_as_singular():
    X, positive = small()
    twice = np.column_stack([X, X[:, 0]])
    found = moments(twice, positive)
    spread = found.within[0, 0]
    for off, singular in ((1e-16, True), (1e-6, False)):
        within = found.within.copy()
        within[0, -1] = within[-1, 0] = spread * (1 - off)
        given = replace(found, within=within)
        if singular:
            with pytest.warns(UserWarning, match="singular and beta=0 does not repair it"):
                w = exact(given, beta=0.0).coef
            assert w[0] == pytest.approx(w[-1])
        else:
            w = exact(given, beta=0.0).coef
            assert w @ within @ w + (found.means.delta @ w) ** 2 == pytest.approx(
                found.means.delta @ w
            )


def test_pairs_are_drawn_as_often_as_their_weights_say():
    counts = np.array([1.0, 3.0, 2.0, 2.0, 4.0])
    rows = np.array([0, 1]), np.array([2, 3, 4])
    every, share = _draw_pairs(rows, counts, 6, np.random.default_rng(0))
    assert sorted(zip(*every, strict=True)) == [(i, j) for i in (0, 1) for j in (2, 3, 4)]
    expected = {(i, j): counts[i] * counts[j] / 32 for i in (0, 1) for j in (2, 3, 4)}
    assert dict(zip(zip(*every, strict=True), share, strict=True)) == pytest.approx(expected)
    (high, low), share = _draw_pairs(rows, np.tile(counts, 2), 5, np.random.default_rng(0))
    np.testing.assert_array_equal(share, np.full(5, 0.2))
    most = 4000
    many = np.repeat(rows[0], 50), np.repeat(rows[1], 50)
    (high, low), share = _draw_pairs(many, counts, most, np.random.default_rng(0))
    assert (high.size, share.sum()) == (most, pytest.approx(1.0))
    for (i, j), chance in expected.items():
        seen = ((high == i) & (low == j)).mean()
        assert seen == pytest.approx(chance, abs=4 * (chance / most) ** 0.5)


def test_a_sample_of_the_pairs_comes_near_the_logistic_optimum_of_all():
    X, positive = small()
    terms = {"beta": 1e-2, "loss": "logistic"}
    every = pairwise(X, positive, rng=np.random.default_rng(0), **terms).coef
    pairs = positive.sum() * (~positive).sum()
    sampled = pairwise(X, positive, rng=np.random.default_rng(0), max_pairs=pairs - 1, **terms).coef
    assert not np.array_equal(sampled, every)
    np.testing.assert_allclose(sampled, every, atol=0.2 * abs(every).max())


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_columns_far_from_0_and_columns_that_repeat_are_no_trouble(loss):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(120, 3)) * 1024) / 1024  # so that adding 2³⁰ rounds nothing
    positive = X[:, 0] + rng.normal(size=120) > 1
    near, far = (
        pairwise(rows, positive, beta=1e-2, loss=loss, rng=rng).coef for rows in (X, X + 2.0**30)
    )
    assert far == pytest.approx(near, rel=1e-6)
    alone, twice = (
        pairwise(rows, positive, beta=1e-20, loss=loss, rng=rng, tol=1e-3).coef
        for rows in (X, np.hstack([X, X]))
    )
    assert twice[:3] + twice[3:] == pytest.approx(alone, abs=0.02)


def test_newtons_last_steps_end_where_nothing_is_lower():
    w = np.array([1.0, -2.0])
    sides = [np.eye(2), -np.eye(2)], np.full((2, 2), 0.25)

    def rising(v):  # whatever the slope promises
        return 1.0 + float(abs(v - w).sum()), np.ones(2)

    found = _newton(sides, rising, w, beta=1.0, bend_of=np.ones_like)
    np.testing.assert_array_equal(found, w)


@pytest.mark.parametrize("module", ["spdam", "vrspam"])
def test_a_solver_goes_on_while_its_bound_is_not_met(monkeypatch, module):
    """Its own measure is cheaper than the bound, which is looked at where that is met."""
    solver = import_module(f"telic.auc.methods.{module}")
    looks, certified = [], solver.certified

    def doubtful(X, positive, w, passes, **options):
        looks.append(passes)
        found = certified(X, positive, w, passes, **options)
        return found._replace(converged=len(looks) == 3)

    monkeypatch.setattr(solver, "certified", doubtful)
    monkeypatch.setattr(solver, "small", lambda X: False)
    X, positive = small()
    solve = getattr(solver, module)
    options = {"beta": 1e-4, "tol": 1e-3, "max_iter": 1000, "rng": np.random.default_rng(0)}
    found = solve(X * [1.0, 1.0, 1.0, 0.1], positive, **options)
    assert len(looks) == 3
    assert (np.diff(looks) > 0).all()
    # Each look that disappoints asks for a tenth.
    assert found.gap <= 1.01e-5 * found.objective


@pytest.mark.parametrize("beta", [0.5, 0.02, 3.0])
def test_conjugate_gradients_end_at_the_first_iterate_that_is_near_enough(beta):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) * np.geomspace(0.1, 10, 12)
    positive = X @ rng.standard_normal(12) + 3 * rng.standard_normal(300) > 0
    found, known, tol = [], moments(X, positive), 1e-3

    def bound(_, w):
        slope = known.gradient(w) + beta * w
        found.append(slope @ slope / (2 * beta) / known.objective(w, beta=beta))

    conjugate_gradient(X, positive, beta=beta, tol=tol, callback=bound)
    assert len(found) > 1
    assert [one <= tol for one in found] == [False] * (len(found) - 1) + [True]


@pytest.mark.parametrize("met_at", [1, 2, 3, 4, 9])
def test_conjugate_gradients_go_on_while_their_bound_is_not_met(monkeypatch, met_at):
    exact = import_module("telic.auc.methods.exact")
    looks, certified = [], exact.certified

    def doubtful(X, positive, w, passes, **options):
        found = certified(X, positive, w, passes, **options)
        looks.append(found.gap / found.objective)
        return found._replace(converged=len(looks) == met_at)

    monkeypatch.setattr(exact, "certified", doubtful)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12)) * np.geomspace(0.1, 10, 12)
    positive = X @ rng.standard_normal(12) + 3 * rng.standard_normal(300) > 0
    found = exact.conjugate_gradient(X, positive, beta=0.5, tol=1e-3, max_iter=500)
    # Each look that disappoints asks for a tenth, until that is below a thousandth.
    assert len(looks) == min(met_at, 5)
    asked = 1e-3 * 0.1 ** np.arange(len(looks))
    assert (np.array(looks) <= 1.01 * asked).all()
    assert found.converged is (met_at <= 5)
    assert found.exhausted is False


def test_conjugate_gradients_are_given_up_as_soon_as_they_are_too_slow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X @ rng.normal(size=60) + rng.normal(size=400) > 0
    spread = X @ np.linalg.qr(rng.normal(size=(60, 60)))[0] * np.geomspace(1, 1e-3, 60)
    slow = spread @ np.linalg.qr(rng.normal(size=(60, 60)))[0]  # no diagonal helps
    calls = []

    def taken(rows, **more):
        calls.clear()
        given = {
            "beta": 1e-6,
            "tol": 1e-8,
            "max_iter": 30,
            "callback": lambda *now: calls.append(1),
        }
        return conjugate_gradient(rows, y, **given, **more)

    assert taken(X).coef.tolist() == taken(X, in_time=True).coef.tolist()
    assert taken(X).converged
    assert not taken(slow).converged
    assert len(calls) == 30
    given_up = taken(slow, in_time=True)
    assert not given_up.converged
    assert given_up.exhausted
    assert given_up.passes == len(calls) + 1 < 15  # it does not begin again
