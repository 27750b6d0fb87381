"""How far from the optimum: the gap to a feasible dual, Q of [Zhang2017] (5.5.1), residuals."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from scipy.linalg import pinvh
from scipy.sparse.linalg import lsqr

from telic.kernels import kernel
from telic.optim.admm.nullspace import DENSE_UP_TO, Span, span_of
from telic.optim.admm.problem import AdmmProblem
from telic.optim.loss_kernels import loss_conjugate, loss_value
from telic.optim.loss_rows.shares import of_row

FEASIBLE = 1e-12
"""How far, of the size of its parts, a sum may be from zero that is zero but for rounding."""
FAINT = 1e-4
"""Most of a penalty's own strength that rounding may stand for."""
ROUNDING = 1e-15
"""Of the size of its parts, what a sum cannot be known below."""
MOST_SETTLED = 512
"""Most directions, unseen by A, along which a point is settled."""
DENSE_DIRECTIONS = 8
"""Directions up to which the data's products with them are held dense."""
MOST_MOVES = 30
"""Newton's, to settle a point."""


class Rows(Protocol):
    """Products with the data; the rows may be elsewhere."""

    def predict(self, w: np.ndarray, b: float) -> np.ndarray:
        """⟨w, x_i⟩ + b for every row."""

    def back(self, a: np.ndarray) -> np.ndarray:
        """Xᵀa."""

    def project(self, N: sparse.csr_matrix) -> Any:
        """X N."""

    def lengths(self) -> np.ndarray:
        """Norms of the columns of X."""


@dataclass(frozen=True, slots=True)
class LocalRows:
    """The rows of a problem that holds them itself."""

    problem: AdmmProblem

    def predict(self, w: np.ndarray, b: float) -> np.ndarray:
        """⟨w, x_i⟩ + b for every row."""
        return self.problem.data.predict(w, b)

    def back(self, a: np.ndarray) -> np.ndarray:
        """Xᵀa."""
        return self.problem.data.back(a)

    def project(self, N: sparse.csr_matrix) -> Any:
        """X N."""
        X = self.problem.data.design.matrix
        return X @ (N if sparse.issparse(X) else N.toarray())

    def lengths(self) -> np.ndarray:
        """Norms of the columns of X."""
        X = self.problem.data.design.matrix
        squares = X.power(2).sum(axis=0) if sparse.issparse(X) else np.einsum("ij,ij->j", X, X)
        return np.sqrt(np.asarray(squares, dtype=np.float64)).ravel()


class Dual(NamedTuple):
    """A point of the dual."""

    slopes: np.ndarray
    """Of the weighted losses, one for each row."""
    u: np.ndarray
    """For each row of `AdmmProblem.plain`."""
    gradient: np.ndarray | None = None
    """Xᵀ slopes, with their sum for an intercept, where it is known."""


class Certificate(NamedTuple):
    """What can be said of a point without knowing the optimum."""

    x: np.ndarray
    y: np.ndarray
    """The point; moved to the nearest that meets the equations if there are any (another B, or a
    y that g ties down), since no other has an objective."""
    objective: float
    objective_y: float
    gap: float
    """At least the objective's distance from the optimum."""
    primal_residual: float
    dual_residual: float


def certificate(problem: AdmmProblem, x: np.ndarray, y: np.ndarray, u: np.ndarray) -> Certificate:
    """Say how good a point is: its gap to a feasible point of the dual, which bounds P(x) − P*.

    For all slopes a and multipliers u with Xᵀa + Aᵀu = 0 and, with an intercept, Σ a = 0

        P* >= −Σ mass_i loss*(a_i / mass_i) − g*(u) − ⟨u, c⟩,

    and with a ridge Xᵀa + Aᵀu = −l2 w for any w, at the price of (l2/2)‖w‖². Such a point is made
    of x and u. Along the directions that A does not see (a constant on a component of a graph, the
    intercept) x goes where the loss is least; the slopes there balance along them. What is left of
    Xᵀa + Aᵀu, A then sees, and u takes it in: u − VA(AᵀVA)⁺(Xᵀa + Aᵀu), V the squared bounds of u.
    Last, a and u shrink together until u meets its bounds. At the optimum nothing has to move.

    Parameters
    ----------
    problem : AdmmProblem
    x, y, u : array
        u = ρz, the multiplier of Ax + By = c.

    Returns
    -------
    Certificate
        The gap is infinite where x itself violates a bound of g.

    Examples
    --------
    >>> from telic.optim.admm import make_admm_problem, separable
    >>> problem = make_admm_problem(
    ...     np.eye(2), [0.0, 2.0], A=[[1.0, -1.0]], g=separable(1, l1=0.25), loss="squared"
    ... )
    >>> x = np.array([0.5, 1.5])  # the optimum
    >>> certificate(problem, x, problem.A @ x, np.array([-0.25])).gap
    0.0
    """
    return Certifier(problem)(x, y, u)


class Certifier:
    """`certificate` for many points of one problem."""

    def __init__(self, problem: AdmmProblem, rows: Rows | None = None) -> None:
        self.problem, self.plain = problem, problem.plain
        self.rows: Rows = LocalRows(problem) if rows is None else rows
        self.size = self.plain.A.shape[1]
        self.magnitude = abs(self.plain.A)
        # Kept, since to transpose a small matrix takes SciPy longer than its product does.
        self.transposed, self.transposed_magnitude = self.plain.A.T, self.magnitude.T
        self.transposed_given = problem.A.T
        self.ridge, self.lengths = np.zeros(self.size), np.zeros(self.size)
        self.ridge[: problem.size] = problem.ridge
        self.lengths[: problem.data.design.d] = self.rows.lengths()
        if problem.data.fit_intercept:
            self.lengths[problem.data.design.d] = np.sqrt(problem.data.y.size)
        self.tied = np.flatnonzero(self.plain.g.low == self.plain.g.high)
        low, high = self.plain.g.domain
        self.width = np.minimum(-low, high)
        self.soft = np.flatnonzero(self.width > 0)
        self.force = self.transposed_magnitude @ self.width

    @cached_property
    def span(self) -> Span | None:
        """What the rows see whose multipliers may take either sign; None if that is too much."""
        width = self.width[self.soft]
        most = width[np.isfinite(width)].max(initial=0.0) or 1.0
        weight = (np.minimum(width, most) / most) ** 2
        span = span_of(self.plain.A[self.soft], weight, self.lengths)
        return None if span is None or span.null.shape[1] > MOST_SETTLED else span

    @cached_property
    def unseen(self) -> "_Directions | None":
        """The data along the directions that those rows do not see."""
        return None if self.span is None else _Directions(self, self.span.null)

    def __call__(
        self, x: np.ndarray, y: np.ndarray, u: np.ndarray, dual: Dual | None = None
    ) -> Certificate:
        """Certify a point, from a dual point of its own where a method has one."""
        problem, data = self.problem, self.problem.data
        with np.errstate(all="ignore"):
            full = problem.join(x, y)
            z = self._predict(full)
            f = data.risk(z) + 0.5 * self.ridge @ full**2
            objective_y = f + problem.g.value(y)
            if self.tied.size:
                full = self._tie(full)
                z = self._predict(full)
                f = data.risk(z) + 0.5 * self.ridge @ full**2
            v = self._constrained(full)
            objective = f + self.plain.g.value(v)
            if dual is None:
                duals, slope = self._duals(full, z, u)
            else:
                duals = [dual]
                slope = self.gradient(data.slopes(z)) + self.ridge * full
            # No slopes, no multipliers: a bound that always is there.
            gap = objective + self.plain.g.conjugate(np.zeros_like(v))
            if np.isfinite(objective):
                for found in duals:
                    gap = np.fmin(gap, self._gap(full, z, v, found))
            residual = problem.A @ x + problem.by(y) - problem.c
            slope = slope[: problem.size] + self.transposed_given @ u
        gap = np.inf if np.isnan(gap) else max(float(gap), 0.0)
        return Certificate(
            *problem.part(full, y),
            float(objective),
            float(objective_y),
            gap,
            float(np.linalg.norm(residual)),
            float(np.linalg.norm(slope)),
        )

    def gradient(self, slopes: np.ndarray) -> np.ndarray:
        """Xᵀ slopes, with their sum for an intercept."""
        out, d = np.zeros(self.size), self.problem.data.design.d
        out[:d] = self.rows.back(slopes)
        if self.problem.data.fit_intercept:
            out[d] = slopes.sum()
        return out

    def _predict(self, full: np.ndarray) -> np.ndarray:
        return self.rows.predict(*self.problem.split(full))

    def _tie(self, full: np.ndarray) -> np.ndarray:
        """Return the nearest point, in units of the data's, with Ax − c where g ties it down."""
        A, unit = self.plain.A[self.tied], self.problem.units
        left = self.plain.c[self.tied] + self.plain.g.low[self.tied] - A @ full
        scaled = sparse.csr_matrix(A @ sparse.diags_array(unit))
        if self.size <= DENSE_UP_TO:
            return full + unit * np.linalg.lstsq(scaled.toarray(), left, rcond=None)[0]
        return full + unit * lsqr(scaled, left, atol=1e-15, btol=1e-15)[0]

    def _constrained(self, full: np.ndarray) -> np.ndarray:
        """Ax − c, without the rounding of what is tied down."""
        g, v = self.plain.g, self.plain.A @ full - self.plain.c
        size = self.magnitude @ abs(full) + abs(self.plain.c) + abs(v)
        near = self.tied[(abs(v - g.low) <= FEASIBLE * size)[self.tied]]
        v[near] = g.low[near]
        return v

    def _gap(self, full: np.ndarray, z: np.ndarray, v: np.ndarray, dual: Dual) -> float:
        """P(x) less the dual's value, as a sum of parts that are >= 0; infinite if infeasible."""
        data, (slopes, u, gradient) = self.problem.data, dual
        left = self.gradient(slopes) if gradient is None else gradient
        left = left + self.transposed @ u
        parts = np.linalg.norm(slopes) * self.lengths
        parts += self.transposed_magnitude @ np.maximum(
            abs(u), np.nan_to_num(self.width, posinf=0.0)
        )
        # Along a direction that the data do not see a penalty alone holds x: what is left of the
        # balance must be less than it, or than what can be known.
        allowed = np.clip(FAINT * self.force, ROUNDING * parts, FEASIBLE * parts)
        allowed[self.force == 0] = FEASIBLE * parts[self.force == 0]
        free = self.ridge == 0
        if not (abs(left) <= allowed)[free].all():
            return np.inf
        share = self.plain.g.room(u)
        loss = data.loss.code, data.loss.shape
        gap = _excess(*loss, z, data.y, data.mass, slopes, share)
        gap += self.plain.g.excess(v, self.plain.g.nearest_dual(share * u))
        # Without a ridge rounding is all that is left.
        gap += share * float(abs(left[free]) @ abs(full[free]))
        off = (share * left + self.ridge * full)[~free]
        return gap + 0.5 * float(off @ (off / self.ridge[~free]))

    def _duals(
        self, full: np.ndarray, z: np.ndarray, u: np.ndarray
    ) -> tuple[list[Dual], np.ndarray]:
        """Return the dual points that x and u make, and the gradient of f where x is settled."""
        u = self.plain.g.nearest_dual(self.problem.plain_dual(u))
        slopes = self.problem.data.slopes(z)
        if self.unseen is not None:
            slopes, full = self._settle(self.unseen, full, z, slopes, u)
        gradient = self.gradient(slopes)
        slope = gradient + self.ridge * full
        # With a ridge they are one already.
        found = [Dual(slopes, u, gradient)] if self.problem.data.l2 > 0 else []
        if self.span is not None:
            u = u.copy()
            for _ in range(2):
                u[self.soft] -= self.span.least(slope + self.transposed @ u)
            found.append(Dual(slopes, u, gradient))
        return found, slope

    def _settle(
        self,
        M: "_Directions",
        full: np.ndarray,
        z: np.ndarray,
        slopes: np.ndarray,
        u: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return slopes and x at the least f(x) + ⟨u, Ax⟩ along what A does not see.

        The slopes must balance there to rounding: nothing says how far off the optimum lies. Where
        Newton's method does not get there they stay as they are, and make no bound.
        """
        data, N = self.problem.data, M.N
        pull = N.T @ (self.transposed @ u + self.ridge * full)
        t = before = np.zeros(N.shape[1])
        first, inverse, last = slopes, None, np.inf
        for _ in range(MOST_MOVES):
            held = M.ridge @ t
            g = M.back(slopes) + pull + held
            parts = np.linalg.norm(slopes) * M.lengths + abs(pull) + abs(held)
            if (abs(g) <= 0.1 * FEASIBLE * parts).all():
                return slopes, full + N @ t
            # Half of a move after which the slope has not fallen, in the metric of that move.
            if inverse is not None and not g @ (inverse @ g) < last:
                t = 0.5 * (t + before)
            else:
                inverse = M.inverse(data.curvatures(z + M.predict(t)))
                last, before = float(g @ (inverse @ g)), t
                t = t - inverse @ g
            slopes = data.slopes(z + M.predict(t))
        return first, full


class _Directions:
    """The data along some directions N: X N, to which an intercept adds a column of ones."""

    def __init__(self, certifier: Certifier, N: sparse.csr_matrix) -> None:
        problem = certifier.problem
        d, n, q = problem.data.design.d, problem.data.y.size, N.shape[1]
        X = certifier.rows.project(N[:d])
        self.N = N
        self.X = X.toarray() if sparse.issparse(X) and q <= DENSE_DIRECTIONS else X
        # What each direction has of the intercept.
        self.ones = N[[d]].toarray()[0] if problem.data.fit_intercept else np.zeros(q)
        self.ridge = (N.T @ sparse.diags_array(certifier.ridge) @ N).toarray()
        squares = self.X.power(2) if sparse.issparse(self.X) else np.square(self.X)
        self.lengths = np.sqrt(np.asarray(squares.sum(axis=0)).ravel())
        self.lengths += np.sqrt(n) * abs(self.ones)

    def predict(self, t: np.ndarray) -> np.ndarray:
        return self.X @ t + self.ones @ t

    def back(self, a: np.ndarray) -> np.ndarray:
        return self.X.T @ a + self.ones * a.sum()

    def inverse(self, bent: np.ndarray) -> np.ndarray:
        """Inverse of the second derivatives of f."""
        if sparse.issparse(self.X):
            G = (self.X.T @ sparse.diags_array(bent) @ self.X).toarray()
        else:
            G = self.X.T @ (bent[:, None] * self.X)
        cross = np.outer(self.X.T @ bent, self.ones)
        G = G + cross + cross.T + bent.sum() * np.outer(self.ones, self.ones) + self.ridge
        unit = 1.0 / np.sqrt(np.where(np.diag(G) > 0, np.diag(G), 1.0))
        return unit[:, None] * pinvh(unit[:, None] * G * unit) * unit


@kernel
def _excess(code, shape, z, y, mass, slopes, share):
    """Σ mass_i [loss(z_i) + loss*(a_i) − a_i z_i] >= 0 at a = share · slopes / mass."""
    total = 0.0
    for i in range(z.size):
        m = of_row(mass, i)
        if m == 0.0:
            continue
        a, at, target = share * slopes[i] / m, z[i], y[i]
        if code == 1 or code == 2:
            p = -a * target
            if p < 0.0 or (code == 1 and p > 1.0 + 1e-15):
                return np.inf
        else:
            # What z and y have in common cancels here rather than in the sum.
            at, target = at - target, 0.0
            if code == 3 and abs(a) > shape * (1.0 + 1e-15):
                return np.inf
        found = loss_value(code, shape, at, target) + loss_conjugate(code, shape, a, target)
        total += m * max(found - a * at, 0.0)
    return total


def origin_of(problem: AdmmProblem) -> tuple[np.ndarray, float]:
    """Return zeros with the best intercept, and |P| there: what a gap is large or small against.

    Where g is infinite there, it is left out.
    """
    x, floor = np.zeros(problem.size), 0.0
    if problem.data.fit_intercept:
        floor = 1e-24 * float(np.square(problem.data.y).max())  # what rounding leaves of squares
        x[-1] = problem.data.best_shift(np.zeros(problem.data.design.n))
    return x, scale_of(problem, problem.value(x), floor)


def scale_of(problem: AdmmProblem, f: float, floor: float = 0.0) -> float:
    """Return the objective's size where f has this value and the features count for nothing."""
    y = -problem.c if problem.B is None else lsqr(problem.B, problem.c)[0]
    g = problem.g.value(y)
    return max(abs(f + g) if np.isfinite(g) else abs(f), floor)
