"""What the methods share: the y-step with the dual update, the x-step, and their step sizes."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from telic.errors import expect_above
from telic.kernels import kernel
from telic.optim.admm.problem import AdmmProblem
from telic.optim.prox_kernels import soft
from telic.optim.rows import row_add, row_dot


class State(NamedTuple):
    """x, y and the dual variable, with the vectors that a step writes on.

    The scaled dual z is kept as s = z − Ax. After the dual update z ← z + Ax + By − c that is
    the old z plus By − c, which is known before the x-step: one sweep over A's rows then does
    the dual update of one step, the y-step of the next and Aᵀ(Ax + By − c + z).
    """

    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    pull: np.ndarray
    move: np.ndarray

    @classmethod
    def start(cls, problem: AdmmProblem, x: np.ndarray, z: np.ndarray) -> "State":
        """Return the state at x and z, with the y that suits them."""
        y = problem.A @ x - problem.c if problem.B is None else np.zeros(problem.g.l1.size)
        return cls(x, y, z - problem.A @ x, np.zeros(x.size), np.zeros(x.size))


class Steps(NamedTuple):
    """The constants of a step."""

    eta: float
    """η, the step size."""
    rho: float
    """ρ, the penalty parameter."""
    theta: np.ndarray
    """θ of P = diag(θ) − ηρAᵀA: x ← x − (η/θ)(h + ρAᵀ(Ax + By − c + z)).

    [Zhang2017] (5.7.1) has one θ.
    """
    tau: float
    """Of the linearised y-step with a general B, at least ‖BᵀB‖."""
    inverse: np.ndarray
    """(P/η + ρAᵀA)⁻¹ of the exact x-step (5.7.2); empty for the linearised one."""


def squared_norm(matrix: sparse.csr_matrix) -> float:
    """Return an upper estimate of ‖MᵀM‖ by power iteration, at most the bound ‖M‖₁‖M‖_∞.

    Examples
    --------
    >>> round(squared_norm(sparse.csr_matrix([[3.0, 0.0], [0.0, 1.0]])), 1)
    9.0
    """
    size = abs(matrix)
    bound = float(size.sum(axis=0).max() * size.sum(axis=1).max())
    v = np.random.default_rng(0).normal(size=matrix.shape[1])
    estimate, transposed = 0.0, matrix.T
    for _ in range(100):
        v /= np.linalg.norm(v)
        v = transposed @ (matrix @ v)
        last, estimate = estimate, float(np.linalg.norm(v))
        if estimate == 0 or abs(estimate - last) <= 1e-4 * estimate:
            break
    # Power iteration comes from below: 1 % above its last value is safe in practice.
    return min(1.01 * estimate, bound)


def make_steps(
    problem: AdmmProblem,
    *,
    eta: float,
    rho: float,
    unit: np.ndarray,
    P: np.ndarray | None = None,
) -> Steps:
    """Return the constants for step size η and penalty ρ.

    Parameters
    ----------
    problem : AdmmProblem
    eta, rho : float
    unit : array, shape (size,)
        Of each entry of x, for the linearised x-step; ones are 5.7.1.
    P : array, shape (size, size), optional
        Metric of the exact x-step; without it the x-step is the linearised one.

    Raises
    ------
    InputError
        If η or ρ is not positive.
    """
    expect_above(0, step_size=eta, rho=rho)
    inverse, theta = np.empty((0, 0)), np.ones(problem.size)
    if P is None:
        A = sparse.csr_matrix(problem.A @ sparse.diags_array(unit))
        theta = (1.0 + eta * rho * squared_norm(A)) / unit**2
    else:
        gram = P / eta + rho * (problem.A.T @ problem.A).toarray()
        inverse = cho_solve(cho_factor(gram), np.eye(problem.size))
    tau = 1.0 if problem.B is None else max(squared_norm(problem.B), 1e-12)
    return Steps(float(eta), float(rho), theta, tau, inverse)


@kernel
def prox(C, e, v, step):
    """Proximal operator of entry e of g."""
    cut = step * C.l1[e]
    return min(max(soft(v, cut, cut) / (1.0 + step * C.l2[e]), C.low[e]), C.high[e])


@kernel
def sweep(C, state, steps):
    """Dual update of the last step, y-step, and pull = Aᵀ(Ax + By − c + z)."""
    x, y, s, pull, _ = state
    rho, tau = steps.rho, steps.tau
    pull[:] = 0.0
    if C.identity:
        for e in range(s.size):
            r = row_dot(C.A, e, x)
            z = r + s[e]
            y[e] = prox(C, e, r - C.c[e] + z, 1.0 / rho)
            s[e] = z - y[e] - C.c[e]
            row_add(C.A, e, r + s[e], pull)
        return
    back = np.zeros(y.size)
    for e in range(s.size):
        r = row_dot(C.A, e, x)
        s[e] += r
        row_add(C.B, e, r + row_dot(C.B, e, y) - C.c[e] + s[e], back)
    for j in range(y.size):
        y[j] = prox(C, j, y[j] - back[j] / tau, 1.0 / (rho * tau))
    for e in range(s.size):
        s[e] += row_dot(C.B, e, y) - C.c[e]
        row_add(C.A, e, row_dot(C.A, e, x) + s[e], pull)


@kernel
def x_step(h, ridge, state, steps, eta):
    """Linearised or exact x-step with the gradient estimate h of the loss."""
    x, _, _, pull, move = state
    _, rho, theta, _, inverse = steps
    if inverse.size == 0:
        for j in range(x.size):
            x[j] -= eta / theta[j] * (h[j] + ridge[j] * x[j] + rho * pull[j])
        return
    for j in range(x.size):
        move[j] = h[j] + ridge[j] * x[j] + rho * pull[j]
    for q in range(x.size):
        for j in range(x.size):
            x[j] -= inverse[q, j] * move[q]


@kernel
def add_iterate(state, sums):
    """Add x, y and s to their sums."""
    # Loops: `sums[0] += x` would make a temporary array at every step.
    for j in range(state.x.size):
        sums[0][j] += state.x[j]
    for e in range(state.y.size):
        sums[1][e] += state.y[e]
    for e in range(state.s.size):
        sums[2][e] += state.s[e]


def dual(problem: AdmmProblem, x: np.ndarray, s: np.ndarray, rho: float) -> np.ndarray:
    """Return the unscaled dual u = ρz of a state."""
    return rho * (problem.A @ x + s)
