"""Bounds on the gap against optima in rational arithmetic: never false, and tight enough to use."""

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from telic.auc import (
    OAM,
    OPAUC,
    SOLAM,
    SPAM,
    SPDAM,
    VRSPAM,
    AUCClassifier,
    ConjugateGradientAUC,
    ExactAUC,
    PairwiseAUC,
    RegSOLAM,
    UniExp,
)
from telic.auc.methods import pairwise as pairwise_module
from telic.auc.methods.pairwise import SMOOTHING
from telic.auc.methods.pairwise_sums import hinge, smoothed_hinge_sums
from telic.auc.optimality_bound import EPS, ball_gap, certified, scores_at, slope_at, slope_of
from telic.errors import InputError


class Rational:
    """F in exact arithmetic: wᵀQw − 2bᵀw + c + (beta/2)‖w‖² + beta1‖w‖₁."""

    def __init__(self, X, y, weight, beta, beta1=0.0):
        rows = [[Fraction(float(v)) for v in row] for row in X]
        weight = [Fraction(float(v)) for v in weight]
        self.d = len(rows[0])
        total = {
            side: sum(w for w, t in zip(weight, y, strict=True) if t == side)
            for side in (True, False)
        }
        mean = {
            side: [
                sum(w * r[j] for w, r, t in zip(weight, rows, y, strict=True) if t == side)
                / total[side]
                for j in range(self.d)
            ]
            for side in (True, False)
        }
        self.pq = total[True] * total[False] / (total[True] + total[False]) ** 2
        self.delta = [a - b for a, b in zip(mean[True], mean[False], strict=True)]
        away = [
            [a - m for a, m in zip(r, mean[bool(t)], strict=True)]
            for r, t in zip(rows, y, strict=True)
        ]
        shares = [w / total[bool(t)] for w, t in zip(weight, y, strict=True)]
        self.Q = [
            [
                sum(s * r[i] * r[j] for s, r in zip(shares, away, strict=True))
                + self.delta[i] * self.delta[j]
                for j in range(self.d)
            ]
            for i in range(self.d)
        ]
        self.beta, self.beta1 = Fraction(float(beta)), Fraction(float(beta1))

    def value(self, w):
        w = [Fraction(float(v)) if not isinstance(v, Fraction) else v for v in w]
        pairs = sum(w[i] * self.Q[i][j] * w[j] for i in range(self.d) for j in range(self.d))
        pairs += 1 - 2 * sum(a * b for a, b in zip(self.delta, w, strict=True))
        ridge = self.beta / 2 * sum(v * v for v in w)
        return self.pq * pairs + ridge + self.beta1 * sum(abs(v) for v in w)

    def best(self):
        """The least F: with ℓ₁ the best of every support and sign's own optimum."""
        signs = itertools.product((-1, 0, 1) if self.beta1 else (1,), repeat=self.d)
        return min(self.value(self._at(sign)) for sign in signs)

    def _at(self, sign):
        kept = [j for j in range(self.d) if sign[j]]
        rows = [
            [2 * self.pq * self.Q[i][j] + (self.beta if i == j else 0) for j in kept]
            + [2 * self.pq * self.delta[i] - self.beta1 * sign[i]]
            for i in kept
        ]
        for k in range(len(kept)):  # positive definite: no pivoting
            for i in range(len(kept)):
                if i != k:
                    ratio = rows[i][k] / rows[k][k]
                    rows[i] = [a - ratio * b for a, b in zip(rows[i], rows[k], strict=True)]
        w = [Fraction(0)] * self.d
        for k, j in enumerate(kept):
            w[j] = rows[k][-1] / rows[k][k]
        return w


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    n, d = draw(st.integers(4, 9)), draw(st.integers(1, 3))
    X = rng.normal(size=(n, d))
    y = np.arange(n) % 3 == 0
    if draw(st.booleans()):  # near-separable
        X[:, 0] = y + 10.0 ** draw(st.integers(-12, -1)) * X[:, 0]
    if d > 1 and draw(st.booleans()):  # near or true duplicates
        X[:, 1] = X[:, 0] + draw(st.sampled_from([0.0, 1e-12, 1e-6])) * X[:, 1]
    X = X + draw(st.sampled_from([0.0, 0.0, 1.0, 1e4, 1e8, 1e12])) * rng.choice([0, 1], size=d)
    X = X * 10.0 ** np.array(draw(st.lists(st.integers(-12, 12), min_size=d, max_size=d)))
    beta = 10.0 ** draw(st.integers(-8, 3))
    weight = rng.integers(1, 4, size=n) if draw(st.booleans()) else np.ones(n)
    return X, y, weight, beta


METHODS = {
    "exact": lambda beta: ExactAUC(beta),
    "exact net": lambda beta: ExactAUC(beta, beta1=0.1 * beta, max_iter=300),
    "net that stops early": lambda beta: ExactAUC(beta, beta1=1e-3, max_iter=2),
    "cg": lambda beta: ConjugateGradientAUC(beta),
    "cg that stops early": lambda beta: ConjugateGradientAUC(beta, max_iter=1),
    "vrspam": lambda beta: VRSPAM(beta, max_iter=10, random_state=0),
    "vrspam net": lambda beta: VRSPAM(beta, beta1=0.1 * beta, max_iter=10, random_state=0),
    "spdam": lambda beta: SPDAM(beta, max_iter=40, random_state=0),
    "spam": lambda beta: SPAM(beta, max_iter=3, random_state=0),
    "regsolam": lambda beta: RegSOLAM(beta, max_iter=3, random_state=0),
    "opauc": lambda beta: OPAUC(beta, max_iter=3, random_state=0),
}
CERTIFYING = ("exact", "exact net", "cg", "vrspam", "vrspam net", "spdam")


@given(problem=problems(), name=st.sampled_from(list(METHODS)), kind=st.booleans())
@settings(max_examples=150, derandomize=True)
def test_no_bound_is_ever_below_the_true_gap(problem, name, kind):
    X, y, weight, beta = problem
    model = METHODS[name](beta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(sparse.csr_matrix(X) if kind else X, y, weight)
        except InputError:  # weights beyond what numbers hold
            return
    exactly = Rational(X, y, weight, beta, getattr(model, "beta1", 0.0))
    value = exactly.value(model.coef_[0])
    gap = value - exactly.best()
    assert gap >= 0
    assert float(gap) <= model.gap_
    if model.converged_:
        assert float(gap) <= 1e-8 * float(value) * (1 + 1e-6)
    assert model.converged_ is None or name in METHODS


@pytest.mark.parametrize("name", CERTIFYING)
def test_on_plain_data_the_bound_is_met(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0.7
    model = METHODS[name](1e-2).set_params(max_iter=2000).fit(X, y)  # a warning would be an error
    assert model.converged_ is True
    assert 0 <= model.gap_ <= 1e-8 * 0.25


def test_columns_of_any_size_are_certified_by_the_exact_solver_and_doubted_by_none():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) + 1
    y = X[:, 0] - X[:, 3] + rng.normal(size=200) > 1
    wide = X * [1e-12, 1e-4, 1e6, 1e12]
    assert ExactAUC(1e-9).fit(wide, y).converged_ is True
    assert ExactAUC(0.0).fit(wide, y).converged_ is True


def test_a_singular_covariance_of_unequal_columns_keeps_the_column_that_ranks():
    rng = np.random.default_rng(0)
    noise, signal = rng.normal(size=(2, 500))
    y = signal + 0.3 * rng.normal(size=500) > 1
    X = np.column_stack([1e6 * noise, 1e6 * noise, 1e-3 * signal])
    with pytest.warns(UserWarning, match="singular"):
        model = ExactAUC(0.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert np.isnan(model.gap_)
    assert model.converged_ is None


EARLY = {
    "cg": ConjugateGradientAUC(1e-6, max_iter=2),
    "vrspam": VRSPAM(1e-6, max_iter=1, random_state=0),
    "spdam": SPDAM(1e-6, max_iter=3, random_state=0),
    "net": ExactAUC(1e-6, beta1=1e-3, max_iter=1),
    "hinge": PairwiseAUC(1e-6, max_iter=2),
    "facade": AUCClassifier("vrspam", beta=1e-6, solver_options={"max_iter": 1}),
    "no ridge": ConjugateGradientAUC(0.0, max_iter=1),
}


@pytest.mark.parametrize("name", EARLY)
def test_who_ends_before_the_tolerance_says_so_and_what_to_do(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8)) * np.geomspace(0.1, 10, 8)
    y = X[:, 0] * 5 + rng.normal(size=3000) > 1
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol, .*scale the columns"):
        model = EARLY[name].fit(X, y)
    assert not model.converged_


def test_a_callback_that_ends_a_solver_is_no_reason_to_warn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8)) * np.geomspace(0.1, 10, 8)
    y = X[:, 0] * 5 + rng.normal(size=3000) > 1
    for model in (ConjugateGradientAUC(1e-6), VRSPAM(1e-6), SPDAM(1e-6), PairwiseAUC(1e-6)):
        model.fit(X, y, callback=lambda passes, w: True)
        assert model.converged_ is False


@pytest.mark.parametrize(
    "model", [SPAM(), SOLAM(), RegSOLAM(), OPAUC(), OAM("gra"), OAM("seq"), UniExp()], ids=str
)
def test_methods_that_stop_by_no_rule_claim_nothing(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(size=400) > 1
    assert model.fit(X, y).converged_ is None
    assert np.isnan(model.gap_) == isinstance(model, OAM | UniExp)
    stream = type(model)().partial_fit(X, y, classes=[False, True])
    assert stream.converged_ is None
    assert np.isnan(stream.gap_)


@given(seed=st.integers(0, 10**6), radius=st.sampled_from([0.01, 0.3, 2.0, 50.0]))
@settings(max_examples=30, derandomize=True)
def test_solams_bound_holds_over_its_ball(seed, radius):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)) * [1, 3]
    y = X[:, 0] + rng.normal(size=40) > 0.8
    if not 1 <= y.sum() <= 19:
        return
    model = SOLAM(radius, max_iter=3, random_state=0).fit(X, y)
    exactly = Rational(X, y, np.ones(40), 0.0)
    # The ball's optimum is a ridge's: bisect the ridge until the norm is the radius.
    low, high = 1e-12, 1e6
    for _ in range(80):
        ridge = np.sqrt(low * high)
        exactly.beta = Fraction(ridge)
        w = np.array([float(v) for v in exactly._at((1, 1))])
        low, high = (ridge, high) if np.linalg.norm(w) > radius else (low, ridge)
    exactly.beta = Fraction(0)
    gap = float(exactly.value(model.coef_[0]) - exactly.value(w))
    assert gap <= model.gap_ + 1e-12
    assert ball_gap(w, slope_at(X, y, w), radius) <= 1e-6  # and it is tight at the optimum


@given(seed=st.integers(0, 10**6), loss=st.sampled_from(["hinge", "squared_hinge", "logistic"]))
@settings(max_examples=25, derandomize=True)
def test_the_pairwise_bounds_hold_against_a_dual_point(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-3, 3, size=3)
    y = np.arange(40) < 15
    beta, share = 10.0 ** rng.integers(-4, 1), 15 * 25 / 1600
    phi = {
        "hinge": lambda m: np.maximum(0, 1 - m),
        "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
        "logistic": lambda m: np.logaddexp(0, -m),
    }[loss]
    # What the dual of each pair's loss is at t in [0, 1] (t >= 0 for the squared hinge).
    dual = {
        "hinge": lambda t: t,
        "squared_hinge": lambda t: t - t**2 / 4,
        "logistic": lambda t: (
            -(
                np.where(t > 0, t * np.log(np.maximum(t, 1e-300)), 0)
                + np.where(t < 1, (1 - t) * np.log(np.maximum(1 - t, 1e-300)), 0)
            )
        ),
    }[loss]
    pairs = (X[y][:, None] - X[~y][None]).reshape(-1, 3)

    def value(w):
        return share * phi(pairs @ w).mean() + beta / 2 * w @ w

    def lower(w):
        m = pairs @ w
        t = {
            "hinge": lambda: np.clip((1 - m) / 1e-3, 0, 1),
            "squared_hinge": lambda: 2 * np.maximum(0, 1 - m),
            "logistic": lambda: np.exp(-np.logaddexp(0, m)),
        }[loss]()
        z = share * (t @ pairs) / len(pairs)
        return share * dual(t).mean() - z @ z / (2 * beta)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loose = PairwiseAUC(beta, loss=loss, max_iter=3).fit(X, y)
        tight = PairwiseAUC(beta, loss=loss).fit(X, y)
    best = max(lower(tight.coef_[0]), lower(loose.coef_[0]))
    for model in (loose, tight):
        # The optimum lies between the dual point and the best primal one.
        at_least = value(model.coef_[0]) - min(value(tight.coef_[0]), value(loose.coef_[0]))
        assert at_least <= model.gap_ * (1 + 1e-9) + 1e-15
    assert value(tight.coef_[0]) - best <= max(1.01 * tight.gap_, 1e-12)
    if loss == "hinge":
        scores = X @ tight.coef_[0]
        assert hinge(scores[y], scores[~y]) == pytest.approx(phi(pairs @ tight.coef_[0]).mean())


def test_what_the_rounded_corner_hides_is_in_the_bound():
    """Under a heavy ridge all pairs lie below the corner, where the rounding hides half of it."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) < 15
    share = y.mean() * (1 - y.mean())
    model = PairwiseAUC(100.0, loss="hinge").fit(X, y)
    margins = X[y] @ model.coef_[0] - (X[~y] @ model.coef_[0])[:, None]
    assert margins.max() < 1 - SMOOTHING[-1]
    assert model.gap_ == pytest.approx(share * SMOOTHING[-1] / 2, rel=1e-3)


def test_converged_is_the_bound_against_the_tolerance_and_nothing_looser():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) > 0.7
    w = ConjugateGradientAUC(1e-2, max_iter=3).fit(X, y, callback=lambda passes, w: True).coef_[0]
    found = certified(X, y, w, 1, beta=1e-2, tol=None)
    assert found.converged is None
    relative = found.gap / found.objective
    assert relative > 1e-6
    for factor in (1.001, 0.999, 0.1):
        held = certified(X, y, w, 1, beta=1e-2, tol=factor * relative)
        assert held.converged is (factor > 1)
    # The bound on a ridge's gap is ‖∇F‖²/(2·beta).
    exactly = Rational(X, y, np.ones(60), 1e-2)
    steps = 1e-6 * np.eye(3)
    slope = [float(exactly.value(w + e) - exactly.value(w - e)) / 2e-6 for e in steps]
    assert found.gap == pytest.approx(np.dot(slope, slope) / 2e-2, rel=1e-5)
    assert found.objective == pytest.approx(float(exactly.value(w)))


def test_who_ended_at_a_limit_and_is_certified_all_the_same_does_not_warn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + rng.normal(size=40) > 0.7
    # L-BFGS meets its limit; Newton's method, which small problems end with, does not need it.
    assert PairwiseAUC(1e-2, max_iter=2).fit(X, y).converged_ is True


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_a_lasso_without_a_ridge_has_a_bound_too(seed, kind):
    rng = np.random.default_rng(seed)
    X, y = rng.normal([0.0, 5.0, 0.0], size=(20, 3)), np.arange(20) % 3 == 0
    X[y, 0] += 1.0
    weight = rng.integers(1, 4, size=20).astype(float) if seed % 2 else None
    for beta1 in (1e-3, 0.03, 10.0):
        exactly = Rational(X, y, np.ones(20) if weight is None else weight, 0.0, beta1)
        best = exactly.best()

        def certain(w, beta1=beta1):
            terms = {"beta": 0.0, "beta1": beta1, "tol": 1e-8, "weight": weight}
            return certified(kind(X), y, w, 1, **terms)

        for w in (np.zeros(3), *rng.normal(size=(4, 3))):
            assert certain(w).gap >= float(exactly.value(w) - best)
        solved = np.zeros(3)  # which a large beta1 leaves
        if beta1 < 1:
            solved = ExactAUC(0.0, beta1=beta1, tol=1e-12).fit(X, y, weight).coef_[0]
        found = certain(solved)
        assert float(exactly.value(solved) - best) <= found.gap <= 1e-8 * found.objective
        assert found.converged
    with np.errstate(all="raise"):
        blown = certified(kind(X), y, np.full(3, 1e300), 1, beta=0.0, beta1=1.0, tol=1e-8)
    assert (blown.converged, blown.gap) == (False, np.inf)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize(("shift", "beta", "tol"), [(1e6, 0.1, 1e-6), (1e7, 1.0, 1e-3)])
@pytest.mark.parametrize("seed", [4, 8, 9])
def test_the_pairwise_bounds_hold_for_columns_far_from_zero(loss, shift, beta, tol, seed):
    """Sparse rows are stored from zero, and their scores lose digits that dense ones keep."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 10)) + shift
    y = rng.random(60) < 0.4
    phi = {
        "hinge": lambda m: np.maximum(0, 1 - m),
        "squared_hinge": lambda m: np.maximum(0, 1 - m) ** 2,
        "logistic": lambda m: np.logaddexp(0, -m),
    }[loss]

    def value(w):
        scores = (X.astype(np.longdouble) - shift) @ w
        margins = scores[y][:, None] - scores[~y][None]
        return y.mean() * (~y).mean() * phi(margins).mean() + beta / 2 * w @ w

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            PairwiseAUC(beta, loss=loss, tol=t).fit(kind(X), y)
            for kind in (np.asarray, sparse.csr_array)
            for t in (tol, 1e-12)
        ]
    values = [value(model.coef_[0]) for model in models]
    for model, found in zip(models, values, strict=True):
        assert found - min(values) <= model.gap_ + 1e-15
        assert found <= value(np.zeros(10))
    assert models[2].gap_ <= tol * values[2] + 0.0005


def slopes_and_errors(monkeypatch, X, y, beta=1.0, **options):
    """The slopes that a bound rests on, how far they may be off by it, and the weights."""
    seen = []

    def noted(rows, slopes, errors, centre):
        seen.append((slopes, errors))
        return slope_of(rows, slopes, errors, centre)

    monkeypatch.setattr(pairwise_module, "slope_of", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PairwiseAUC(beta, tol=1e-9, **options).fit(X, y)
    return *seen[-1], model.coef_[0]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("blurred", [True, False])
def test_the_slopes_of_pairs_are_as_exact_as_the_bound_says(
    loss, kind, scale, blurred, monkeypatch
):
    """Against exact scores; or against the scores as they are, which are then taken for exact."""
    rng = np.random.default_rng(1)
    y = np.arange(240) < 90
    X = scale * (rng.normal(size=(240, 6)) + 2 * y[:, None]) + 1e7 * blurred
    at, summed = [], []

    def sums_of(high, *rest, **how):
        summed.append(high.dtype)
        return smoothed_hinge_sums(high, *rest, **how)

    def scored(*given):
        scores, blur = scores_at(*given)
        at.append(scores)
        return scores, blur * blurred

    monkeypatch.setattr(pairwise_module, "scores_at", scored)
    monkeypatch.setattr(pairwise_module, "smoothed_hinge_sums", sums_of)
    options = {"loss": loss, "beta": 1e-6, "max_iter": 2}
    if scale > 1.0:  # scores so large that sums of them cancel
        found = rng.random(6), False, True
        monkeypatch.setattr(pairwise_module, "_descend", lambda *given, **how: found)
    slopes, errors, w = slopes_and_errors(monkeypatch, kind(X), y, **options)
    exact = [Fraction(float(s)) for s in at[-1]]
    if blurred:
        exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(x, w, strict=True)) for x in X]
    corner, n = Fraction(1e-3), len(y)
    true = [Fraction(0)] * n
    for i in np.flatnonzero(y):
        for j in np.flatnonzero(~y):
            short = 1 - (exact[i] - exact[j])
            if short > 0:
                bend = 2 * short if loss == "squared_hinge" else min(short / corner, Fraction(1))
                true[i] -= bend
                true[j] += bend
    off = np.abs([float(Fraction(s) - t / n**2) for s, t in zip(slopes, true, strict=True)])
    assert (off <= errors + 3 * EPS * np.abs(slopes)).all()
    assert off.max() > 0.0
    assert set(summed[-2:]) == ({np.dtype(np.longdouble)} if loss == "hinge" else set())


def test_a_range_of_rates_weighs_its_rows_and_their_errors_more(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(80, 6)), np.arange(80) < 30
    whole, part = (
        slopes_and_errors(monkeypatch, X, y, loss="squared_hinge", beta=1e6, fpr=fpr)[1]
        for fpr in ((0.0, 1.0), (0.0, 0.25))
    )  # so strong a penalty that all scores are next to 0
    assert part / whole == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize("lost", [1e6, np.nan])
def test_a_search_that_rounding_leads_astray_ends_at_no_weights(lost, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 50)), np.arange(300) < 90
    astray = np.full(50, lost), False, False
    monkeypatch.setattr(pairwise_module, "_descend", lambda *given, **options: astray)
    with pytest.warns(UserWarning, match="all weights are 0"), pytest.warns(ConvergenceWarning):
        model = PairwiseAUC(0.1).fit(X, y)
    assert not model.coef_.any()
    assert 0.1 < model.gap_ < np.inf
