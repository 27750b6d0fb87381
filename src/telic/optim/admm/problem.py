"""The constrained problem: minimise f(x) + g(y) subject to Ax + By = c, f a finite sum."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked
from telic.kernels import kernel
from telic.optim.admm.separable_penalty import Separable
from telic.optim.design import as_design
from telic.optim.loss_kernels import loss_gradient, loss_value
from telic.optim.losses import Loss
from telic.optim.problem import Problem, make_problem
from telic.optim.rows import SparseRows, entries, entry, row_add, row_dot, sparse_rows


class Plain(NamedTuple):
    """A problem as f(x) + g(Ax − c), for another B over x and y at once."""

    A: sparse.csr_matrix
    c: np.ndarray
    g: Separable


class Constraint(NamedTuple):
    """A, B, c and g as arrays, the form in which kernels take them."""

    A: SparseRows
    B: SparseRows
    identity: bool
    """B = −I: the fast path, with a y-step that is one proximal operator."""
    c: np.ndarray
    l1: np.ndarray
    l2: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Terms(NamedTuple):
    """The weighted losses of f and its ridge, the form in which kernels take them."""

    code: int
    shape: float
    y: np.ndarray
    mass: np.ndarray
    bias: float
    """1 if there is an intercept, the last entry of x; else 0."""
    ridge: np.ndarray


@dataclass(frozen=True, slots=True)
class AdmmProblem:
    """Minimise f(x) + g(y) subject to Ax + By = c [Zhang2017] (5.1.1).

    f(x) = Σ_i mass_i loss(⟨w, x_i⟩ + b, y_i) + (l2/2)‖w‖² of x = (w, b), without b if there is no
    intercept; A has a last column of zeros for b.
    """

    data: Problem
    A: sparse.csr_matrix
    B: sparse.csr_matrix | None
    """None stands for −I."""
    c: np.ndarray
    g: Separable

    @property
    def size(self) -> int:
        """Entries of x: the features, and one more for an intercept."""
        return self.data.design.d + self.data.fit_intercept

    @property
    def constraint(self) -> Constraint:
        """The constraint and g as the kernels take them."""
        A, g = sparse_rows(self.A), self.g
        B = sparse_rows(sparse.csr_matrix((1, 1)) if self.B is None else self.B)
        return Constraint(A, B, self.B is None, self.c, g.l1, g.l2, g.low, g.high)

    @property
    def terms(self) -> Terms:
        """The weighted losses as kernels take them, with what the ridge adds to each entry of x."""
        return Terms(*self.data.terms, float(self.data.fit_intercept), self.ridge)

    @property
    def ridge(self) -> np.ndarray:
        """l2 for each entry of x: the intercept has none."""
        ridge = np.full(self.size, self.data.l2)
        ridge[self.data.design.d :] = 0.0
        return ridge

    @property
    def plain(self) -> Plain:
        """The problem without B: Ax + By = c become rows tied to 0, and y has rows of its own."""
        if self.B is None:
            return Plain(self.A, self.c, self.g)
        tied, g = np.zeros(self.c.size), self.g
        eye = sparse.eye_array(self.B.shape[1])
        return Plain(
            sparse.csr_matrix(sparse.block_array([[self.A, self.B], [None, eye]])),
            np.concatenate([self.c, np.zeros(g.l1.size)]),
            Separable(*(np.concatenate([tied, part]) for part in (g.l1, g.l2, g.low, g.high))),
        )

    @property
    def units(self) -> np.ndarray:
        """A unit for each entry of x, then of y for another B: with it the data's are of order 1.

        A feature's is one over the root of its column's mean square and the ridge.
        """
        unit, d = np.ones(self.size), self.data.design.d
        squares = np.full(d, self.data.l2)
        _squares(self.data.design.rows, self.data.mass, squares)
        unit[:d] = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))
        if (squares > 0).any():
            unit[:d][squares == 0] = np.median(unit[:d][squares > 0])
        if self.B is None:
            return unit
        B = abs(self.B).tocoo()
        of_rows = np.sqrt(self.A.power(2) @ unit**2)
        of_rows[of_rows == 0] = 1.0
        of_y = np.full(self.B.shape[1], np.inf)
        np.minimum.at(of_y, B.col, of_rows[B.row] / np.where(B.data > 0, B.data, np.inf))
        return np.concatenate([unit, np.where(np.isfinite(of_y) & (of_y > 0), of_y, 1.0)])

    def with_rows(self, factor: np.ndarray) -> "AdmmProblem":
        """Return the same problem with each row of Ax + By = c multiplied by a number > 0.

        x is the same, u is divided by the factor; y is multiplied where B = −I.
        """
        rows, g, B = sparse.diags_array(factor), self.g, self.B
        if B is None:
            g = Separable(g.l1 / factor, g.l2 / factor**2, g.low * factor, g.high * factor)
        else:
            B = sparse.csr_matrix(rows @ B)
        A = sparse.csr_matrix(rows @ self.A)
        return AdmmProblem(self.data, A, B, factor * self.c, g)

    def split(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of x."""
        d = self.data.design.d
        return x[:d], float(x[d]) if self.data.fit_intercept else 0.0

    def join(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the x of `plain`."""
        return x if self.B is None else np.concatenate([x, y])

    def plain_dual(self, u: np.ndarray) -> np.ndarray:
        """Return the u of `plain`: what ties y down is Bᵀu."""
        return u if self.B is None else np.concatenate([u, -(self.B.T @ u)])

    def part(self, full: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x and y of the x of `plain`; y as given where it has none."""
        return (full, y) if self.B is None else (full[: self.size], full[self.size :])

    def smooth(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x) and its gradient, in one pass that keeps nothing per row."""
        out = np.zeros(self.size)
        value = _pass(self.data.design.rows, self.terms, x, out, True, True)
        return value + 0.5 * self.ridge @ x**2, out + self.ridge * x

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient of the loss part of f: without the ridge."""
        out = np.zeros(self.size)
        _pass(self.data.design.rows, self.terms, x, out, False, True)
        return out

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        total = _pass(self.data.design.rows, self.terms, x, x, True, False)
        return total + 0.5 * self.ridge @ x**2

    def by(self, y: np.ndarray) -> np.ndarray:
        """B y."""
        return -y if self.B is None else self.B @ y

    def objective(self, x: np.ndarray) -> float:
        """P(x) = f(x) + g(Ax − c) where B = −I; NaN for another B."""
        return self.value(x) + self.g.value(self.A @ x - self.c) if self.B is None else np.nan


@kernel
def _pass(A, terms, x, out, values, slopes):
    """Sum of the weighted losses, and of their gradients into out."""
    code, shape, y, mass, bias, _ = terms
    total, last = 0.0, x.size - 1
    for i in range(y.size):
        z = row_dot(A, i, x) + bias * x[last]
        if values:
            total += mass[i] * loss_value(code, shape, z, y[i])
        if slopes:
            a = mass[i] * loss_gradient(code, shape, z, y[i])
            row_add(A, i, a, out)
            out[last] += bias * a
    return total


@kernel
def _squares(A, mass, out):
    """Add the weighted squares of each column to out."""
    for i in range(mass.size):
        start, end = entries(A, i)
        for p in range(start, end):
            j, value = entry(A, i, p)
            out[j] += mass[i] * value * value


def make_admm_problem(
    X: Any,
    y: Any,
    *,
    A: Any,
    g: Separable,
    B: Any = None,
    c: Any = None,
    loss: str | Loss = "logistic",
    l2: float = 0.0,
    sample_weight: Any = None,
    fit_intercept: bool = False,
) -> AdmmProblem:
    """Check everything and build the problem: minimise f(x) + g(y) subject to Ax + By = c.

    Parameters
    ----------
    X : array or scipy.sparse matrix, shape (n, d)
    y : array, shape (n,)
        Targets; −1 and +1 for a classification loss.
    A : array or scipy.sparse matrix, shape (k, d)
    g : Separable
        Penalty of the constraint's y, from `separable`.
    B : array or scipy.sparse matrix, shape (k, size of g), optional
        By default −I: then y = Ax − c, and the problem is f(x) + g(Ax − c).
    c : array, shape (k,), optional
        Zero by default.
    loss, l2, sample_weight, fit_intercept
        As in `telic.optim.minimize`; the intercept enters neither A nor the ridge l2.

    Raises
    ------
    InputError
        With what is wrong, where, and what was expected.

    Examples
    --------
    >>> from telic.optim.admm import separable
    >>> X, y = np.eye(3), np.array([1.0, 2.0, 4.0])
    >>> D = np.array([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]])
    >>> problem = make_admm_problem(X, y, A=D, g=separable(2, l1=0.1), loss="squared")
    >>> float(round(problem.objective(y), 3))
    0.3
    """
    data = make_problem(
        X, y, loss=loss, l2=l2, sample_weight=sample_weight, fit_intercept=fit_intercept
    )
    # ADMM's kernels read a mass per row.
    data = replace(data, mass=np.array(np.broadcast_to(data.mass, data.y.shape)))
    if not np.isfinite(data.loss.smoothness):
        raise InputError(
            f"the {type(data.loss).__name__} loss has no Lipschitz gradient, which ADMM's step "
            "needs. Use a squared, logistic, squared hinge or Huber loss."
        )
    A = _matrix("A", A)
    if A.shape[1] != data.design.d:
        raise InputError(
            f"A has {A.shape[1]} columns, X has {data.design.d} features: expected one each."
        )
    k = A.shape[0]
    B = None if B is None else _matrix("B", B)
    columns = k if B is None else B.shape[1]
    if B is not None and B.shape[0] != k:
        raise InputError(f"B has {B.shape[0]} rows, A has {k}: expected the same number.")
    if g.l1.size != columns:
        raise InputError(
            f"g is for {g.l1.size} entries, expected {columns}: "
            + ("the rows of A." if B is None else "the columns of B.")
        )
    refuse_masked("c", c)
    c = np.zeros(k) if c is None else np.asarray(c, dtype=np.float64)
    if c.shape != (k,) or not np.isfinite(c).all():
        raise InputError(
            f"c has shape {c.shape}, expected ({k},) finite numbers: one per row of A."
        )
    if data.fit_intercept:
        A = sparse.hstack([A, sparse.csr_matrix((k, 1))], format="csr")
    return AdmmProblem(data, A, B, c, g)


def _matrix(name: str, values: Any) -> sparse.csr_matrix:
    try:
        return sparse.csr_matrix(as_design(values).matrix, dtype=np.float64)
    except InputError as error:
        raise InputError(str(error).replace("X", name, 1)) from None
