"""A point near the optimum of f(x) + Σ l1_e |(Ax − c)_e|, whatever the units, in plain NumPy."""

import numpy as np


def objective(X, y, mass, loss, A, c, l1, l2, w, b):
    """P(w, b), term by term."""
    v = A @ w - c
    return mass @ loss.value(X @ w + b, y) + l1 @ np.abs(v) + 0.5 * l2 * (w @ w)


@np.errstate(all="ignore")
def near_optimum(X, y, mass, loss, A, c, l1, l2, intercept, *, last=1e-13):
    """Minimise by Newton's method with |v| smoothed to √(v² + μ²), μ falling to `last`.

    Every column is divided by its largest value first, and μ has the unit of its row.
    """
    d, intercept = X.shape[1], int(intercept)
    unit = np.abs(X).max(axis=0)
    unit = np.append(np.where(unit > 0, unit, 1.0), np.ones(intercept))
    X1 = np.column_stack([X, np.ones((len(X), intercept))]) / unit
    A1 = np.column_stack([A, np.zeros((len(A), intercept))]) / unit
    size = np.linalg.norm(A1, axis=1)
    size = np.where(size > 0, size, 1.0)
    ridge = np.append(np.full(d, l2), np.zeros(intercept)) / unit**2
    t = np.zeros(d + intercept)

    def smoothed(t, mu):
        v = A1 @ t - c
        r = np.sqrt(v * v + (mu * size) ** 2)
        return mass @ loss.value(X1 @ t, y) + l1 @ r + 0.5 * ridge @ t**2, v, r

    mu = 1.0
    while mu > last:
        for _ in range(40):
            value, v, r = smoothed(t, mu)
            z = X1 @ t
            slope = X1.T @ (mass * loss.gradient(z, y)) + A1.T @ (l1 * v / r) + ridge * t
            H = X1.T @ ((mass * loss.curvature(z, y))[:, None] * X1) + np.diag(ridge)
            H += A1.T @ ((l1 * (mu * size) ** 2 / r**3)[:, None] * A1)
            H += np.diag(1e-13 * np.diag(H) + 1e-300)
            move = -np.linalg.lstsq(H, slope, rcond=1e-15)[0]
            fall, step = -float(move @ slope), 1.0
            if not np.isfinite(move).all():
                break
            while (
                step > 1e-9 and not smoothed(t + step * move, mu)[0] <= value - 1e-4 * step * fall
            ):
                step /= 2
            if not fall > 1e-16 * abs(value) or step <= 1e-9:
                break
            t = t + step * move
        mu /= 8
    t = t / unit
    return t[:d], float(t[d]) if intercept else 0.0
