from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from telic.auc import SPAM, VRSPAM
from telic.auc.diagnostics import batch_sizes, step_noise, trace
from telic.auc.feature_scaling import SCALINGS, Scaling
from telic.errors import InputError

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
    with pytest.raises(InputError, match="scaling: 'log'"):
        Scaling.fit(X, "log")
