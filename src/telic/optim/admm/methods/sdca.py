"""SDCA-ADMM: coordinate ascent on the dual of a slightly perturbed problem."""

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from telic.errors import InputError
from telic.kernels import kernel
from telic.optim import sampling
from telic.optim.admm.loop import Point
from telic.optim.admm.method_facts import AdmmMethod
from telic.optim.admm.methods.steps import State, Steps, prox, squared_norm
from telic.optim.admm.problem import AdmmProblem, Constraint
from telic.optim.loss_kernels import loss_prox
from telic.optim.row_products import squares
from telic.optim.rows import row_add, row_dot, sparse_rows


def sdca_admm(
    problem: AdmmProblem, steps: Steps, state: State, *, seed: np.ndarray, perturbation: float
) -> Iterator[Point]:
    """Run SDCA-ADMM (Suzuki 2014), one point per n steps, from zero; B = −I and c = 0 only.

    The dual is minimise Σ φ*_i(a_i) + n g*(u/n) subject to Xᵀa + Aᵀu = 0, with x its multiplier.
    A step updates all of u, then one a_i, then x, with the damping 1/(4n) of the paper. The ridge
    (l2 + λ₂)‖w‖²/2 enters as rows of I below A with a squared penalty: λ₂ = `perturbation` is what
    the method's linear rate needs, and its limit is the minimiser of that perturbed problem.

    Parameters
    ----------
    steps : Steps
        Its ρ is the augmented Lagrangian's parameter, for n times the objective.
    state : State
        At zero.
    perturbation : float
        λ₂ >= 0.
    """
    if problem.B is not None or problem.c.any() or state.x.any() or state.s.any():
        raise InputError("sdca-admm needs B = −I, c = 0 and starts from zero. Use svr-admm-d.")
    data, rho = problem.data, steps.rho
    n, d, size = data.design.n, data.design.d, problem.size
    k = problem.A.shape[0]
    ridge = sparse.eye_array(d, size, format="csr")
    A = sparse.csr_matrix(sparse.vstack([problem.A, ridge], format="csr"))
    zeros, free = np.zeros(d), np.full(d, np.inf)
    g = problem.g
    constraint = Constraint(
        *(sparse_rows(A), sparse_rows(A), True, np.zeros(k + d)),
        np.concatenate([g.l1, zeros]),
        np.concatenate([g.l2, zeros + data.l2 + perturbation]),
        np.concatenate([g.low, -free]),
        np.concatenate([g.high, free]),
    )
    norms = np.empty(n)
    squares(data.design.rows, norms)
    norms += data.fit_intercept
    span = max(squared_norm(A), 1e-12)
    x, a, u, residual = np.zeros(size), np.zeros(n), np.zeros(k + d), np.zeros(size)
    point, room = (x, a, u, residual), (np.zeros(size), np.zeros(size))
    terms = problem.terms._replace(mass=n * data.mass)
    while True:
        _run(data.design.rows, terms, constraint, norms, span, rho, point, room, seed)
        yield Point(x, problem.A @ x, u[:k] / n, n)


METHOD = AdmmMethod(
    "sdca-admm",
    sdca_admm,
    takes=("seed", "perturbation"),
    x_steps=("linearised",),
    safe_step=lambda metric, n, batch_size: 0.3 / metric.largest,
    from_zero=True,
)


@kernel
def _run(A, terms, C, norms, span, rho, point, room, seed):
    """Take n steps; point = (x, a, u, Xᵀa + Aᵀu), and two vectors of x's length to write on."""
    code, shape, y, weight, bias, _ = terms
    x, a, u, residual = point
    change, old = room
    n, d = y.size, x.size
    inverse = rho * span
    sigma = 1.0 / inverse
    for _ in range(n):
        for j in range(d):
            change[j] = x[j] - rho * residual[j]
            old[j] = residual[j]
        for e in range(u.size):
            v = u[e] + sigma * row_dot(C.A, e, change)
            following = v - sigma * prox(C, e, v * inverse, n * inverse)
            if following != u[e]:
                row_add(C.A, e, following - u[e], residual)
                u[e] = following
        i = int(sampling.uniform(seed) * n)
        if weight[i] > 0 and norms[i] > 0:
            q = rho * norms[i]
            z = row_dot(A, i, x) + bias * x[d - 1]
            z -= rho * (row_dot(A, i, residual) + bias * residual[d - 1])
            at = z + q * a[i]
            _, slope = loss_prox(code, shape, at, q * weight[i], y[i], z, 0.0)
            slope *= weight[i]
            row_add(A, i, slope - a[i], residual)
            residual[d - 1] += bias * (slope - a[i])
            a[i] = slope
        for j in range(d):
            x[j] -= rho / (4.0 * n) * (n * (residual[j] - old[j]) + old[j])
