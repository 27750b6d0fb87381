"""Multinomial ridges: L-BFGS to the gradient that the duality gap asks for."""

import math

import numpy as np
from scipy.optimize import minimize

from telic.optim.softmax import SoftmaxProblem, best_intercepts

_STEPS = 1000
"""Most steps: Newton's models go on from there."""
_PAIRS, _NUMBERS = 20, 40_000_000
"""Steps whose curvature is remembered: so many, or of many coefficients what takes so much room."""
_TRIED = 20
"""Gradients whose decrease says how many more it would take."""


def descend_ridge(
    problem: SoftmaxProblem,
    W: np.ndarray,
    b: np.ndarray,
    *,
    gap: float,
    max_passes: float,
    patience: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return coefficients, intercepts and scores at about that duality gap, and passes taken.

    At the probabilities of the scores, and with the best intercepts for the coefficients, the gap
    is the square of the gradient over 2 λ₂, so that nothing else has to be computed to know it.
    Coefficients are scaled by their curvatures where all classes are alike, and features are taken
    from their means, so that the intercepts hardly move with them.

    Parameters
    ----------
    problem : SoftmaxProblem
        With λ₁ = 0 < λ₂.
    W, b
        Where to begin.
    gap : float
    max_passes : float
        Passes over the data after which it stops wherever it is.
    patience : float
        It stops, too, where it seems to need so many more gradients.
    """
    (K, d), l2, matrix = W.shape, problem.penalty.l2, problem.design.matrix
    if problem.design.is_sparse:
        curvature = matrix.multiply(matrix).T @ problem.mass
    else:
        curvature = np.einsum("ij,ij,i->j", matrix, matrix, problem.mass)  # without a copy
    centre = np.asarray(matrix.T @ problem.mass, np.float64).ravel() * problem.fit_intercept
    curvature = np.maximum(curvature - centre**2, 0.0)
    curved = np.append(curvature, 1.0) * (K - 1) / K**2 + l2
    scale = np.broadcast_to(1.0 / np.sqrt(curved), (K, d + 1))
    p, passes, norm = np.empty((problem.design.n, K)), 0.0, np.inf
    norms: list[float] = []

    def at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        V = x.reshape(K, d + 1) * scale
        W, b = V[:, :-1], V[:, -1] - V[:, :-1] @ centre
        z = problem.predict(W, b)
        if problem.offset is not None:
            z += problem.offset
        return W, b, z

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal passes, norm
        W, _, z = at(x)
        objective = problem.risk(z, p) + problem.value(W)
        slopes = problem.back(p) - problem.own + l2 * W
        slope_b = (problem.mass @ p - problem.shares) * problem.fit_intercept
        slopes -= np.outer(slope_b, centre)  # about what they are beside the best intercepts
        passes, norm = passes + 2.0, float(np.linalg.norm(slopes))
        norms.append(norm)
        return objective, (np.column_stack([slopes, slope_b]) * scale).ravel()

    def with_best_intercepts(x: np.ndarray) -> np.ndarray:
        _, _, z = at(x)
        moved = x.reshape(K, d + 1).copy()
        moved[:, -1] += best_intercepts(problem, z, np.zeros(K))[0] / scale[:, -1]
        return moved.ravel()

    enough = steepest = max(math.sqrt(2.0 * l2 * gap), 1e-200)

    def hopeless() -> bool:
        if len(norms) <= _TRIED or norm <= steepest:
            return False
        least = min(norms)
        fallen = math.log(min(norms[:-_TRIED]) / least)
        return math.log(least / steepest) * _TRIED > patience * fallen

    def look(x: np.ndarray) -> None:
        nonlocal steepest
        if passes >= max_passes or hopeless():
            raise StopIteration
        if norm <= steepest:
            value(with_best_intercepts(x))
            if norm <= enough:
                raise StopIteration
            steepest *= 0.5

    start = np.column_stack([W, b + W @ centre])
    _, first = value((start / scale).ravel())
    # Its first step is of length 1: now that of Newton's method, were the curvatures all there is.
    scale = scale * max(float(np.linalg.norm(first)), 1e-12)
    pairs = int(np.clip(_NUMBERS // start.size, 5, _PAIRS))
    options = {"maxcor": pairs, "maxiter": _STEPS, "maxfun": 2 * _STEPS, "gtol": 0.0, "ftol": 0.0}
    found = minimize(
        *(value, (start / scale).ravel()),
        jac=True,
        method="L-BFGS-B",
        callback=look,
        options=options,
    ).x
    W, b, z = at(with_best_intercepts(found))
    return np.ascontiguousarray(W), np.ascontiguousarray(b), z, passes
