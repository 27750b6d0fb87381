"""x and y at once by Newton's method: the method of multipliers, of which ADMM is a sweep."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import splu

from telic.optim.admm.duality_gap import Dual
from telic.optim.admm.loop import Point
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.x_step_metric import gram
from telic.optim.losses import Huber, Logistic, Loss, SquaredHinge

SPARSE_BEYOND = 300
"""Features beyond which the Hessian of a sparse problem is held sparse."""
MOST_MOVES = 30
"""Newton's, for one multiplier."""
MOST_HALVINGS = 8
"""Of a move; then the Hessian is damped."""
AIM, GROWTH, MOST_GROWN = 0.05, 10.0, 1e12
"""What a multiplier should leave of how far a row is from met: where it leaves more, the row's ρ
grows by as much, up to ten times, and so far in all."""
NEAR = 1e-4
"""Share of a move's fall that ends the moves for one multiplier."""
FLAT = 1e-12
"""Curvature, as a share of the largest possible, of a direction along which nothing bends."""

Solve = Callable[[np.ndarray], np.ndarray]


def multipliers(
    problem: AdmmProblem, x: np.ndarray, y: np.ndarray, u: np.ndarray, *, rho: float | None
) -> Iterator[Point]:
    """Run the method of multipliers, one point for each u; each move counts n gradients.

    [Zhang2017] (5.3.1) and (5.3.2) at once: with y = prox(Ax − c + u/ρ), which depends on x
    smoothly enough, f(x) + g(y) + (ρ/2)‖Ax − y − c + u/ρ‖² is minimised over x. Its Hessian is that
    of f and Σ ρ_e A_eᵀA_e over the rows on which y does not follow Ax − c. Then u ← u + ρ(Ax − y −
    c), which is within its bounds, as ADMM's is not.

    Parameters
    ----------
    rho : float, optional
        By default a ρ_e for each row, in the units of the data's curvature, that grows where the
        constraint is slow to be met.
    """
    newton = _Newton(problem, x, y, u)
    newton.set_rho(rho)
    most = MOST_GROWN * newton.rho
    stage, missed = 0, np.full(newton.c.size, np.inf)
    while True:
        gradients, before, stage = newton.minimise(), missed, stage + 1
        missed = newton.update()
        x, y = problem.part(newton.x, newton.y)
        u = newton.u[: problem.c.size]
        yield Point(x, y, u, gradients, stage=stage, dual=newton.dual())
        if rho is None and newton.done:
            wanted = np.maximum(AIM * before, 1e-14 * newton.size())
            factor = missed / np.maximum(wanted, 1e-300)
            newton.rho = np.minimum(newton.rho * np.clip(factor, 1.0, GROWTH), most)


class _Newton:
    """x of `AdmmProblem.plain`, y = prox, u and ρ_e of its rows."""

    def __init__(self, problem: AdmmProblem, x: np.ndarray, y: np.ndarray, u: np.ndarray) -> None:
        self.problem, data = problem, problem.data
        self.A, self.c, self.g = problem.plain
        self.x = problem.join(x, y).copy()
        self.u = problem.plain_dual(u)
        self.ridge = np.zeros(self.x.size)
        self.ridge[: problem.size] = problem.ridge
        self.rho, self.mu, self.y = np.ones(self.c.size), 0.0, y
        self.spread = data.design.is_sparse and problem.size > SPARSE_BEYOND
        self.rows: Any = self.A if self.spread else self.A.toarray()
        # Kept, since to make them anew takes SciPy longer than a small product does.
        self.transposed, self.squares = self.A.T, self.A.power(2)
        self.columns_squares, self.magnitude = self.squares.T, abs(self.A)
        self.bent = data.loss.smoothness * data.mass
        self.P = self.H = self._bend(self.bent)
        self.z = data.predict(*problem.split(self.x))
        self.kept: tuple[np.ndarray, np.ndarray, Solve]
        self.done = False

    def set_rho(self, rho: float | None) -> None:
        """Set ρ: as given, or so that a row's penalty bends like the data beneath it."""
        if rho is not None:
            self.rho[:] = rho
            return
        across = np.sqrt(self.squares @ self.problem.units**2)
        across = np.where(across > 0, across, 1.0)
        low, high = self.g.domain
        width = np.minimum(np.where(low < 0, -low, np.inf), np.where(high > 0, high, np.inf))
        self.rho[:] = np.minimum(self.problem.data.loss.smoothness / across, width) / across

    def _bend(self, weight: np.ndarray) -> Any:
        """Hessian of f, with the rows' curvatures given."""
        problem, extra = self.problem, self.x.size - self.problem.size
        if self.spread:
            X = sparse.csr_array(problem.data.design.matrix, dtype=np.float64)
            if problem.data.fit_intercept:
                X = sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")
            H = X.T @ sparse.diags_array(weight) @ X
            if extra:
                H = sparse.block_diag([H, sparse.csr_array((extra, extra))])
            return H + sparse.diags_array(self.ridge)
        H = np.zeros((self.x.size, self.x.size))
        H[: problem.size, : problem.size] = gram(problem, weight)
        H[np.diag_indices_from(H)] += self.ridge
        return H

    def _solver(self, bent: np.ndarray, room: np.ndarray, mu: float) -> Solve:
        """Inverse of XᵀWX + l2 I + AᵀVA, W = diag(bent), V = diag(room), damped by mu."""
        # A squared loss bends alike everywhere, and others where their kinks stay.
        if not np.array_equal(bent, self.bent):
            self.bent, self.H = bent, self._bend(bent)
        K, room = self.H + mu * self.P, room + mu * self.rho
        # Dense rows are scaled without SciPy's overhead, which was most of a small step.
        scaled = sparse.diags_array(room) @ self.rows if self.spread else room[:, None] * self.rows
        K = K + self.rows.T @ scaled
        # In units in which the diagonal is 1; a direction along which nothing bends has the unit
        # of where something would.
        reach = self.P.diagonal() + self.columns_squares @ self.rho
        unit = 1.0 / np.sqrt(K.diagonal() + FLAT * np.where(reach > 0, reach, 1.0))
        if self.spread:
            scale = sparse.diags_array(unit)
            K = sparse.csc_matrix(scale @ K @ scale)
            K.setdiag(1.0 + FLAT)
            factor = splu(K)
            return lambda v: unit * factor.solve(unit * v)
        K = unit[:, None] * K * unit
        K[np.diag_indices_from(K)] = 1.0 + FLAT
        dense = cho_factor(K)
        return lambda v: unit * cho_solve(dense, unit * v)

    def _split(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y at v = Ax − c, and its derivative there, 0 or up to 1."""
        step = 1.0 / self.rho
        y = self.g.prox(v + self.u * step, step)
        stuck = ((y == 0) & (self.g.l1 > 0)) | (y == self.g.low) | (y == self.g.high)
        return y, np.where(stuck, 0.0, 1.0 / (1.0 + step * self.g.l2))

    def _value(self, z: np.ndarray, x: np.ndarray, v: np.ndarray) -> float:
        y, _ = self._split(v)
        off = v - y
        return float(
            self.problem.data.risk(z)
            + 0.5 * self.ridge @ x**2
            + self.g.value(y)
            + self.u @ off
            + 0.5 * self.rho @ off**2
        )

    def _slope(self, slopes: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Gradient of f and Aᵀu."""
        out = self.ridge * self.x + self.transposed @ u
        d = self.problem.data.design.d
        out[:d] += self.problem.data.back(slopes)
        if self.problem.data.fit_intercept:
            out[d] += slopes.sum()
        return out

    def minimise(self) -> int:
        """Move x to the minimum for this u and ρ; return the component gradients it took."""
        data, moves = self.problem.data, 0
        v = self.A @ self.x - self.c
        value = self._value(self.z, self.x, v)
        wanted, self.done = 1e-17 * abs(value), False
        while moves < MOST_MOVES:
            y, follows = self._split(v)
            slope = self._slope(data.slopes(self.z), self.u + self.rho * (v - y))
            bent, room = data.curvatures(self.z), self.rho * (1.0 - follows)
            solve = self._solver(bent, room, self.mu)
            move = -solve(slope)
            fall = -float(slope @ move)
            moves += 1
            self.kept = bent, room, solve
            if not fall > wanted:
                # So near, a whole move leaves the square of what is left.
                self._move(move)
                self.done = True
                break
            along, across = data.predict(*self.problem.split(move)), self.A @ move
            step = 1.0
            for _ in range(MOST_HALVINGS):
                trial = self._value(self.z + step * along, self.x + step * move, v + step * across)
                # The slope goes on to fall where rounding hides the objective's fall.
                if trial <= value - 1e-4 * step * fall + 1e-14 * abs(value):
                    break
                step /= 2
            else:
                self.mu = max(10.0 * self.mu, 1e-4)
                continue
            self.mu = self.mu / 10.0 if self.mu > 1e-6 else 0.0
            self._move(step * move)
            wanted = max(wanted, NEAR * (value - trial))
            v, value = self.A @ self.x - self.c, trial
        return max(moves, 1) * data.design.n

    def _move(self, move: np.ndarray) -> None:
        self.x = self.x + move
        self.z = self.problem.data.predict(*self.problem.split(self.x))

    def update(self) -> np.ndarray:
        """Take the multiplier's step; return how far each row is from met."""
        v = self.A @ self.x - self.c
        self.y, _ = self._split(v)
        self.u = self.g.nearest_dual(self.u + self.rho * (v - self.y))
        return abs(v - self.y)

    def size(self) -> np.ndarray:
        """Return the size of what each row adds up."""
        return self.magnitude @ abs(self.x) + abs(self.c)

    def dual(self) -> Dual:
        """Return a feasible point of the dual beside (slopes, u): what a last move would make."""
        data, (bent, room, solve) = self.problem.data, self.kept
        slopes, u = data.slopes(self.z), self.u
        for _ in range(3):
            move = -solve(self._slope(slopes, u))
            slopes = _within(
                data.loss,
                slopes + bent * data.predict(*self.problem.split(move)),
                data.y,
                data.mass,
            )
            u = u + room * (self.A @ move)
        return Dual(slopes, u)


def _within(loss: Loss, slopes: np.ndarray, y: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return the nearest slopes at which the conjugate of the loss is finite."""
    if isinstance(loss, Logistic):
        return -y * np.clip(-y * slopes, 0.0, mass)
    if isinstance(loss, SquaredHinge):
        return -y * np.maximum(-y * slopes, 0.0)
    if isinstance(loss, Huber):
        return np.clip(slopes, -loss.delta * mass, loss.delta * mass)
    return slopes
