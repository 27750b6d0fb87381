"""The compiled streams against the same steps written plainly, on dense and on sparse rows."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import lambertw
from sklearn.base import clone

from telic.auc import OAM, SOLAM, SPAM, RegSOLAM, UniExp

RNG = np.random.default_rng(3)
N, D = 400, 30
X = sparse.random(N, D, density=0.2, format="csr", random_state=3).toarray()
X[20:25] = X[0]  # rows met again
POSITIVE = X[:, :5].sum(axis=1) + 0.3 * RNG.normal(size=N) > 0.6
BETA = 0.05


def counted(forgetting):
    """Each row with the counts of both classes after it."""
    counts = np.zeros(2)
    for x, y in zip(X, POSITIVE, strict=True):
        counts *= forgetting
        counts[int(y)] += 1
        yield x, bool(y), counts


def solam(forgetting, beta=0.0, radius=np.inf, step_size=1.0):
    w, average, total, largest = np.zeros(D), np.zeros(D), 0.0, 0.0
    a = b = alpha = 0.0
    for x, y, counts in counted(forgetting):
        p, score, largest = counts[1] / counts.sum(), w @ x, max(largest, x @ x)
        eta = step_size / ((1 + largest) * np.sqrt(counts.sum()))
        if y:
            slope = 2 * (1 - p) * (score - a - (1 + alpha))
            a += eta * 2 * (1 - p) * (score - a)
            alpha += eta * (-2 * (1 - p) * score - 2 * p * (1 - p) * alpha)
        else:
            slope = 2 * p * (score - b + (1 + alpha))
            b += eta * 2 * p * (score - b)
            alpha += eta * (2 * p * score - 2 * p * (1 - p) * alpha)
        reach = radius * np.sqrt(largest)
        a, b = np.clip([a, b], -reach, reach)
        alpha = np.clip(alpha, -2 * reach, 2 * reach)
        w = w - eta * (slope * x + beta * w)
        w = w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))
        share = 1 / np.sqrt(counts.sum())
        total = forgetting * total + share
        average = average + share / total * (w - average)
    return average


def uniexp(forgetting):
    w, bias, largest = np.zeros(D), 0.0, 0.0
    for x, y, counts in counted(forgetting):
        if counts.min() == 0:
            continue
        largest, seen = max(largest, 1 + x @ x), counts.sum()
        ridge = BETA * seen**2 / counts.prod()
        eta = 1 / (seen / (2 * counts.min()) * largest + ridge * seen)
        sign, own = 1 if y else -1, 1 + x @ x
        w = w / (1 + eta * ridge)
        margin = sign * (w @ x + bias)
        step = eta * seen / (2 * counts[int(y)])
        push = sign * lambertw(step * own * np.exp(-margin)).real / own
        w = w + push * x
        bias += push
    return w


def oam(update, forgetting, size=7, C=0.03):
    w, largest = np.zeros(D), 0.0
    buffers, seen = ([], []), [0, 0]
    draws = np.random.default_rng(0).random(N)
    for (x, y, counts), draw in zip(counted(forgetting), draws, strict=True):
        c, sign = int(y), (1 if y else -1)
        seen[c] += 1
        place = int(draw * seen[c])
        if len(buffers[c]) < size:
            buffers[c].append(x)
        elif place < size:
            buffers[c][place] = x
        others = buffers[1 - c]
        if not others:
            continue
        if update == "seq":
            for other in others:
                gap = x - other
                loss = 1 - sign * gap @ w
                if loss > 0 and gap.any():
                    most = C * max(1.0, seen[1 - c] / len(others))
                    w = w + sign * min(most, loss / (gap @ gap)) * gap
            continue
        push = np.zeros(D)
        for other in others:
            if sign * (x - other) @ w < 1:
                push += sign * (x - other) / len(others)
        largest = max(largest, push @ push)
        ridge = BETA * counts.sum() ** 2 / counts.prod()
        w = w + (push - ridge * w) / (largest + ridge * counts.sum() + 1e-300)
    return w


def spam(forgetting, beta1=0.0, step="linear", step_size=1.0, center=True):
    w, means, largest, number = np.zeros(D), np.zeros((2, D)), 0.0, 0.0
    for x, y, counts in counted(forgetting):
        c = int(y)
        means[c] += (x - means[c]) / counts[c]
        number = forgetting * number + 1
        if counts.min() == 0:
            continue
        p = counts[1] / counts.sum()
        far = x - (p * means[1] + (1 - p) * means[0]) if center else x
        largest = max(largest, far @ far)
        if step == "linear":
            eta = 1 / (BETA * number + 4 * largest)
        else:
            eta = step_size / (4 * largest * np.sqrt(number))
        score = w @ (x - means[1 - c])
        slope = 2 * (1 - p) * (score - 1) if y else 2 * p * (score + 1)
        z = w - eta * slope * far
        w = np.sign(z) * np.maximum(abs(z) - eta * beta1, 0) / (1 + eta * BETA)
    return w


NET = {"beta1": 0.01, "step": "sqrt", "step_size": 3.0, "center": False}
STEPS = {
    "SPAM": (lambda f: SPAM(BETA, forgetting=f), spam),
    "SPAM-NET": (lambda f: SPAM(BETA, forgetting=f, **NET), lambda f: spam(f, **NET)),
    "SOLAM": (lambda f: SOLAM(0.4, forgetting=f), lambda f: solam(f, radius=0.4)),
    "SOLAM, far": (  # a, b and α leave what scores in the ball can be, at either end
        lambda f: SOLAM(0.4, step_size=200.0, forgetting=f),
        lambda f: solam(f, radius=0.4, step_size=200.0),
    ),
    "regSOLAM": (lambda f: RegSOLAM(BETA, forgetting=f), lambda f: solam(f, beta=BETA)),
    "Uni-Exp": (lambda f: UniExp(BETA, forgetting=f), uniexp),
    "OAM-seq": (
        lambda f: OAM("seq", C=0.03, buffer_size=7, forgetting=f, random_state=0),
        lambda f: oam("seq", f),
    ),
    "OAM-gra": (
        lambda f: OAM("gra", beta=BETA, buffer_size=7, forgetting=f, random_state=0),
        lambda f: oam("gra", f),
    ),
}


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize("name", STEPS)
def test_every_step_is_the_plain_one_on_dense_and_sparse_rows(name, forgetting):
    make, plain = STEPS[name]
    expected = plain(forgetting)
    weights = forgetting ** np.arange(N)[::-1]
    means = [np.average(X[y == POSITIVE], axis=0, weights=weights[y == POSITIVE]) for y in (0, 1)]
    for kind in (np.asarray, sparse.csr_matrix):
        model = make(forgetting)
        for rows in (slice(0, 150), slice(150, 151), slice(151, N)):
            model.partial_fit(kind(X[rows]), POSITIVE[rows], classes=[False, True])
        assert model.coef_[0] == pytest.approx(expected, rel=1e-8, abs=1e-12)
        assert model.intercept_[0] == pytest.approx(-(means[0] + means[1]) @ expected / 2)


@pytest.mark.parametrize("model", [RegSOLAM(3.0), UniExp(3.0), OAM("gra", beta=3.0)], ids=str)
def test_a_long_stream_does_not_lose_its_scale(model):
    # The factor that holds the ridge, and the one that forgets, fall below 1e-60 many times over;
    # each call multiplies them out, so that short calls never come near.
    rows, y = np.tile(X, (60, 1)), np.tile(POSITIVE, 60)
    at_once, in_blocks = (
        clone(model).set_params(forgetting=0.98, random_state=0) for _ in range(2)
    )
    at_once.partial_fit(rows, y, classes=[False, True])
    for start in range(0, len(rows), 300):
        part = slice(start, start + 300)
        in_blocks.partial_fit(rows[part], y[part], classes=[False, True])
    assert at_once.coef_ == pytest.approx(in_blocks.coef_, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("update", ["seq", "gra"])
def test_a_reservoir_takes_the_other_kind_of_rows_too(update):
    coefs = []
    for kinds in (
        (np.asarray, np.asarray),
        (np.asarray, sparse.csr_matrix),
        (sparse.csr_matrix, np.asarray),
    ):
        model = OAM(update, buffer_size=7, random_state=0)
        for kind, rows in zip(kinds, (slice(0, 200), slice(200, N)), strict=True):
            model.partial_fit(kind(X[rows]), POSITIVE[rows], classes=[False, True])
        coefs.append(model.coef_[0])
    assert coefs[1] == pytest.approx(coefs[0])
    assert coefs[2] == pytest.approx(coefs[0])
