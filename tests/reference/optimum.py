"""The optimum by SciPy, on the split w = u - v with u, v >= 0: slow and independent."""

import numpy as np
from scipy.optimize import minimize

from telic.optim.losses import as_loss


def optimum(X, y, *, loss, l1, l2, fit_intercept=False, sample_weight=None):
    """Return the least value of the objective."""
    loss = as_loss(loss)
    X = np.asarray(X.todense() if hasattr(X, "todense") else X)
    n, d = X.shape
    s = np.full(n, 1.0 / n) if sample_weight is None else sample_weight / sample_weight.sum()

    def objective(v):
        w, b = v[:d] - v[d : 2 * d], v[2 * d] * fit_intercept
        z = X @ w + b
        a = s * loss.gradient(z, y)
        g = X.T @ a + l2 * w
        value = s @ loss.value(z, y) + l2 / 2 * w @ w + l1 * v[: 2 * d].sum()
        return value, np.concatenate([g + l1, -g + l1, [a.sum() * fit_intercept]])

    bounds = [(0, None)] * (2 * d) + [(None, None)]
    best = np.zeros(2 * d + 1)
    # L-BFGS-B stops early on flat objectives: start again from where it stopped.
    for _ in range(20):
        found = minimize(
            objective,
            best,
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxiter": 10_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12},
        )
        best = found.x
    return found.fun
