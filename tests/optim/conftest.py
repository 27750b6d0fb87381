import numpy as np
import pytest
from scipy import sparse


@pytest.fixture(scope="session")
def make_data():
    """Return X, y of a small problem: dense or sparse, for a loss by name."""

    def make(loss="logistic", *, n=120, d=15, kind="dense", seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
        score = X @ rng.normal(size=d) / 2
        if loss in ("logistic", "squared_hinge"):
            y = np.where(score + rng.normal(size=n) > 0, 1.0, -1.0)
        elif loss == "poisson":
            y = rng.poisson(np.exp(0.5 * score)).astype(float)
        elif loss in ("gamma", "tweedie"):
            y = rng.gamma(2.0, np.exp(0.5 * score)) * (
                1.0 if loss == "gamma" else rng.random(n) < 0.7
            )
        else:
            y = score + 0.5 * rng.normal(size=n) + 1.0
        return {"dense": X, "csr": sparse.csr_matrix(X), "csc": sparse.csc_matrix(X)}[kind], y

    return make
