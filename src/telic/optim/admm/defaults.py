"""The x-step, the step size, ρ and the batch that are taken unless the user says otherwise."""

from dataclasses import replace

import numpy as np
from scipy import sparse

from telic.errors import InputError
from telic.optim.admm.method_facts import EVERY_X_STEP
from telic.optim.admm.methods import METHODS
from telic.optim.admm.methods.steps import squared_norm
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.x_step_metric import Metric, curvature, diagonal, units_of

X_STEPS = ("auto", *EVERY_X_STEP, "newton")
DENSE_UP_TO = 2000
"""Most features for an x-step with a dense matrix."""
CURVATURE_UP_TO = 300
"""Most features for which x_step="auto" takes the curvature's or Newton's."""


def choose_x_step(
    problem: AdmmProblem, method: str, x_step: str, step_size: float | None = None
) -> str:
    """Return the x-step that "auto" stands for, and refuse one that the method has not."""
    known = METHODS[method].x_steps
    if x_step == "auto":
        if len(known) == 1:
            return known[0]
        if problem.size > CURVATURE_UP_TO:
            return "scaled"
        return "newton" if "newton" in known and step_size is None else "curvature"
    if x_step == "newton" and ("newton" not in known or step_size is not None):
        raise InputError("x_step='newton' is batch-admm's alone, and takes no step_size.")
    if x_step not in known:
        raise InputError(f"{method} has no other x-step than x_step={known[0]!r}.")
    spread = x_step == "newton" and problem.data.design.is_sparse
    thin = x_step in ("linearised", "scaled") or spread
    if problem.size > DENSE_UP_TO and not thin:
        raise InputError(
            f"x_step={x_step!r} needs a dense {problem.size} × {problem.size} matrix. "
            "Use x_step='scaled'."
        )
    return x_step


def metric_of(problem: AdmmProblem, x_step: str) -> Metric:
    """Return the metric of an x-step."""
    if x_step == "curvature":
        return curvature(problem)
    ones = np.ones(problem.size)
    found = diagonal(problem, units_of(problem) if x_step == "scaled" else ones)
    return replace(found, P=np.eye(problem.size)) if x_step == "exact" else found


def safe_step(
    problem: AdmmProblem, *, method: str = "svr-admm-d", x_step: str = "auto", batch_size: int = 1
) -> float:
    """Return the step size η that `solve_admm` takes by default.

    Batch ADMM: 1/L. The stochastic methods: 1/(2 L_b) with
    L_b = L (b−1)n/(b(n−1)) + L_M (n−b)/(b(n−1)), which is L_M = max_i L_i for single rows.
    Theorem 5.5.3 proves 1/(12 L_M). The constants are those in the metric of the x-step.
    SDCA-ADMM: 0.3/L_M, a value of its ρ.

    Parameters
    ----------
    problem : AdmmProblem
    method, x_step, batch
        As in `solve_admm`.
    """
    metric = metric_of(problem, choose_x_step(problem, method, x_step))
    return METHODS[method].safe_step(metric, problem.data.design.n, batch_size)


def default_rho(problem: AdmmProblem, metric: Metric) -> float:
    """Return L / (3 ‖AᵀA‖), in the units of the metric."""
    A = sparse.csr_matrix(problem.A @ sparse.diags_array(metric.unit))
    return metric.euclidean / (3.0 * max(squared_norm(A), 1e-12))


def balanced_rows(problem: AdmmProblem, metric: Metric) -> np.ndarray:
    """Return what to multiply the rows of the constraint by: in the metric's units all are alike.

    One ρ then suits every row. Without units the rows stay as they are.
    """
    if (metric.unit == 1.0).all():
        return np.ones(problem.c.size)
    norms = np.sqrt(problem.A.power(2) @ metric.unit**2)
    typical = float(np.median(norms[norms > 0])) if norms.any() else 1.0
    return typical / np.where(norms > 0, norms, typical)


def default_batch(problem: AdmmProblem, metric: Metric) -> int:
    """Return the rows of one stochastic step.

    L_M / L rows make a batch as smooth as twice the whole, and as many rows as A has entries per
    entry of a row make the two halves of a step cost the same: the larger, up to n/8 and 256.
    """
    n = problem.data.design.n
    shared = problem.A.nnz / max(problem.data.design.stored / n, 1.0)
    return int(np.clip(max(metric.largest / metric.whole, shared), 1, max(1, min(n // 8, 256))))
