"""The finite-sum problem: data, loss, penalty; its objective and its duality gap."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.errors import InputError, expect_at_least, expect_whole
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim import row_products
from telic.optim.design import LARGEST, Design, as_design
from telic.optim.loss_rows import rows_of
from telic.optim.losses import LogLink, Loss, Tweedie, as_loss
from telic.optim.offset import without_offset
from telic.optim.penalties import ElasticNet, Penalty, dual_scales, group_penalty
from telic.optim.threads import SMALLEST, share
from telic.optim.vector_math import BLOCK

POWERS = 20
"""Powers of the Hessian by which `strongest_l2` finds its largest eigenvalue."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Minimise Σ_i mass_i loss(⟨w, x_i⟩ + b + offset_i, y_i) + penalty(w).

    Without sample weights each mass is 1/n, and this is P(w) of [Zhang2017] (4.1.1), whose
    component functions are f_i(w) = n mass_i loss_i + (l2/2)‖w‖². The masses sum to 1, unless
    `make_problem` put an offset into them. Predictions z are ⟨w, x_i⟩ + b, without the offset.
    """

    design: Design
    y: np.ndarray
    loss: Loss
    penalty: Penalty
    mass: np.ndarray
    """One number for all rows unless sample weights differ: a vector of length n less to hold."""
    fit_intercept: bool
    threads: int = 1
    offset: np.ndarray | None = None
    """Where targets and masses cannot hold it: of a classification loss."""

    @property
    def l1(self) -> float:
        """λ₁."""
        return self.penalty.l1

    @property
    def l2(self) -> float:
        """λ₂, the strong convexity μ of each component."""
        return self.penalty.l2

    @property
    def below(self) -> float:
        """What stands for λ₁ where a coefficient is negative: infinite where none may be."""
        return self.penalty.below

    @property
    def is_smooth(self) -> bool:
        """Whether the penalty has neither a kink nor an edge: λ₂ alone."""
        return self.l1 == 0 and self.below == 0

    @property
    def is_grouped(self) -> bool:
        """Whether the ℓ₁ part is a group norm."""
        return not isinstance(self.penalty, ElasticNet)

    @property
    def terms(self) -> tuple[int, float, np.ndarray, np.ndarray]:
        """The weighted losses as kernels take them: code and shape of the loss, y, mass."""
        return self.loss.code, self.loss.shape, self.y, self.mass

    def rates(self, step: float) -> tuple[float, float, float, float, float]:
        """A step as kernels take it: of the coefficients, of the intercept, λ₁, `below`, λ₂."""
        return step, step if self.fit_intercept else 0.0, self.l1, self.below, self.l2

    def predict(self, w: np.ndarray, b: float, out: np.ndarray | None = None) -> np.ndarray:
        """⟨w, x_i⟩ + b for every row."""
        z = np.empty(self.design.n) if out is None else out
        if not w.any():
            z[:] = b
            return z
        share(row_products.products, self.threads, self.design.rows, w, b, z)
        return z

    def slopes(self, z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Derivatives of the weighted losses in the predictions z, which out may be."""
        out = np.empty_like(z) if out is None else out
        share(rows_of(self.loss.code).gradients, self.threads, *self._losses(z), out)
        return out

    def curvatures(self, z: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Second derivatives of the weighted losses, at least 1e-12 times the weights."""
        out = np.empty_like(z) if out is None else out
        share(rows_of(self.loss.code).curvatures, self.threads, *self._losses(z), out)
        return out

    def back(self, a: np.ndarray) -> np.ndarray:
        """Xᵀ a."""
        # Sums of runs of rows take little memory, and can be shared, where rows are many.
        runs = 16 if 16 * self.design.d <= self.design.n else 1
        out = np.empty((runs, self.design.d))
        share(row_products.combine, self.threads, self.design.rows, a, out)
        return out.sum(axis=0) if runs > 1 else out[0]

    def risk(self, z: np.ndarray, move: np.ndarray | None = None, step: float = 0.0) -> float:
        """Weighted loss of the predictions z + step · move."""
        sums = np.empty(-(-z.size // BLOCK))
        along = z if move is None else move
        share(
            rows_of(self.loss.code).losses, self.threads, *self._losses(z), along, float(step), sums
        )
        return float(sums.sum())

    def _losses(self, z: np.ndarray) -> tuple[Any, ...]:
        """What the kernels of the losses at predictions z begin with."""
        at = z if self.offset is None else z + self.offset
        return self.loss.code, self.loss.shape, at, self.y, self.mass

    def null(self) -> tuple[float, float, float]:
        """Best intercept without any coefficient, the loss there, and the loss without it."""
        z = np.zeros(self.design.n)
        unit = self.risk(z)
        if not (shift := self.best_shift(z)):
            return 0.0, unit, unit
        z += shift
        return shift, self.risk(z), unit

    def best_shift(self, z: np.ndarray) -> float:
        """What to add to the intercept to make it optimal for the other coefficients."""
        if not self.fit_intercept:
            return 0.0
        return rows_of(self.loss.code).best_shift(*self._losses(z))

    def slope_alone(self, b: float) -> np.ndarray:
        """Gradient of the loss at no coefficients and the intercept b."""
        z = np.full(self.design.n, b)
        return self.back(self.slopes(z, out=z))

    def strongest_l1(self) -> float:
        """Least λ₁ that leaves no feature."""
        shift = self.best_shift(np.zeros(self.design.n))
        return self.penalty.dual_norm(-self.slope_alone(shift))

    def strongest_l2(self) -> float:
        """Curvature of the risk where that is largest, at coefficients of 0; nearly, from below.

        A ridge penalty of ten times as much leaves about a tenth of any feature, or less. Where
        the loss's curvature is bounded, the bound stands for it.
        """
        if np.isfinite(self.loss.smoothness):  # rows far away may bend where they lie now, or not
            bends = np.full(self.design.n, self.loss.smoothness * self.mass)
        else:
            z = np.zeros(self.design.n)
            bends = self.curvatures(z + self.best_shift(z))
        # No vector of the data's own, such as of ones, to which all rows may be orthogonal.
        v, found = np.random.default_rng(0).normal(size=self.design.d), 0.0
        v /= np.linalg.norm(v)
        for _ in range(POWERS):
            along = self.predict(v, 0.0)
            if self.fit_intercept and (total := bends.sum()) > 0:
                along -= bends @ along / total
            v = self.back(bends * along)
            found = float(np.linalg.norm(v))
            if not 0 < found < np.inf:
                return 0.0
            v /= found
        return found

    def settle(self, z: np.ndarray, b: float, risk: float | None) -> tuple[float, float]:
        """Make the intercept optimal, z in place; returns it and the weighted loss there.

        `risk` is that of z as it was, or None if nobody knows it.
        """
        if shift := self.best_shift(z):
            z += shift
            return b + shift, self.risk(z)
        return b, self.risk(z) if risk is None else risk

    def balanced(self, a: np.ndarray) -> np.ndarray:
        """Return slopes with Σ a = 0, as the bound of `dual_value` needs for an intercept.

        They are the given ones, but for rounding; else those of the heavier sign are shrunk, which
        leaves them within the domain of every loss's conjugate.
        """
        # √(n a·a) stands for Σ|a|, which it exceeds, without a second vector.
        if not self.fit_intercept or abs(a.sum()) <= 1e-14 * np.sqrt(a.size * (a @ a)):
            return a
        above, below = a[a > 0].sum(), -a[a < 0].sum()
        sign = 1.0 if above > below else -1.0
        return np.where(sign * a > 0, a * (min(above, below) / max(above, below)), a)

    def balanced_by_bending(self, a: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Return slopes with Σ a = 0 as `balanced` does, changing rows whose loss bends at z alone.

        Where the loss is straight, as Huber's far away, a change of its slope costs as much as the
        row is far, times the change. Where it bends, it costs next to nothing. Whether the slopes
        are within the conjugates' domain is left to the bound.
        """
        bends = self.curvatures(z)
        return a - a.sum() / bends.sum() * bends

    def dual_value(
        self, a: np.ndarray, gradient: np.ndarray, conjugates: float | None = None
    ) -> float:
        """Lower bound on the optimum from weighted slopes a and gradient = Xᵀ a.

        Any a inside the domain of the conjugates, with Σ a = 0 if there is an intercept, bounds
        the optimum from below by −Σ (mass_i loss*(a_i / mass_i) − a_i offset_i) − penalty*(−Xᵀ a).
        The sum of the conjugates at a itself, less a·offset, may be known: at the slopes of
        predictions z it is a·z less the loss.
        """
        if not np.isfinite(gradient).all():
            return -np.inf  # what is no number bounds nothing, though a maximum may hide it
        best, sums = -np.inf, np.empty(-(-a.size // BLOCK))
        for scale, conjugate in dual_scales(self.penalty, -gradient):
            total = conjugates
            if total is None or scale < 1.0:
                known = self.loss.code, self.loss.shape, a, self.y, self.mass
                share(rows_of(self.loss.code).conjugates, self.threads, *known, scale, sums)
                total = sums.sum() - (0.0 if self.offset is None else scale * (a @ self.offset))
            best = max(best, -total - conjugate)
        return best

    def row_constants(self) -> np.ndarray:
        """L_i, the Lipschitz constant of the gradient of f_i, for each row.

        n mass_i smoothness (‖x_i‖² + 1 with an intercept) + l2.

        Raises
        ------
        InputError
            If the loss has no Lipschitz gradient.
        """
        if not np.isfinite(self.loss.smoothness):
            raise InputError(
                f"the {type(self.loss).__name__} loss has no Lipschitz gradient, which this method "
                "needs for its step. Use prox_newton, gram or sdca."
            )
        out = np.empty(self.design.n)
        row_products.squares(self.design.rows, out)
        if self.fit_intercept:
            out += 1.0
        out *= self.mass
        out *= self.design.n * self.loss.smoothness
        out += self.l2
        return out


def make_problem(
    X: Any,
    y: Any,
    *,
    loss: str | Loss = "logistic",
    l1: float = 0.0,
    l2: float = 0.0,
    groups: Any = None,
    positive: bool = False,
    sample_weight: Any = None,
    offset: Any = None,
    fit_intercept: bool = False,
    threads: int = 1,
) -> Problem:
    """Check everything and build a `Problem`; parameters as in `telic.optim.minimize`.

    Raises
    ------
    InputError
        With what is wrong, where, and what was expected.
    """
    design = as_design(X)
    loss = as_loss(loss)
    expect_at_least(0, l1=l1, l2=l2)
    y = as_vector("y", y, design.n)
    if loss.classifies:
        if not (np.abs(y) == 1.0).all():
            raise InputError(
                f"y holds {np.unique(y)[:4].tolist()}, expected -1 and +1 for a classification "
                "loss. Use the estimators for other labels."
            )
        if y.min() == y.max():
            raise InputError("y holds one class only: there is nothing to separate.")
    if isinstance(loss, LogLink):
        _check_range(loss, y)
    mass = np.array([1.0 / design.n])
    if sample_weight is not None:
        weights = as_vector("sample_weight", sample_weight, design.n)
        if weights.min() < 0 or weights.sum() <= 0:
            raise InputError("sample_weight must be >= 0 and not all zero.")
        if loss.classifies and np.unique(y[weights > 0]).size < 2:
            raise InputError("sample_weight: all weight is on one class: nothing to separate.")
        # The estimators always pass weights: equal ones are none.
        if weights.min() < weights.max():
            mass = weights / weights.sum()
    if offset is not None:
        offset = as_vector("offset", offset, design.n)
        if not loss.classifies:
            y, mass = without_offset(loss, y, mass, offset)
            offset = None
    if not isinstance(positive, bool | np.bool_):
        raise InputError(f"positive is {positive!r}, expected True or False.")
    if groups is None:
        penalty: Penalty = ElasticNet(float(l1), float(l2), bool(positive))
    elif positive:
        raise InputError("positive is not for groups. Leave one of the two out.")
    else:
        penalty = group_penalty(groups, l1=float(l1), l2=float(l2))
        if penalty.order.size != design.d:
            raise InputError(f"groups has {penalty.order.size} labels, X has {design.d} features.")
    expect_whole(1, threads=threads)
    if design.stored < SMALLEST:
        threads = 1
    return Problem(design, y, loss, penalty, mass, bool(fit_intercept), int(threads), offset)


def _check_range(loss: LogLink, y: np.ndarray) -> None:
    """Refuse targets that the distribution behind a loss does not have."""
    if not isinstance(loss, Tweedie):
        if y.min() < 0:
            raise InputError(f"y holds {y.min():g}, expected counts >= 0 for the poisson loss.")
        return
    if y.min() < 0 or (loss.power == 2 and y.min() == 0):
        expected = "> 0 for the gamma loss" if loss.power == 2 else ">= 0 for the tweedie loss"
        raise InputError(f"y holds {y.min():g}, expected numbers {expected}.")
    if (least := y[y > 0].min(initial=1.0)) < 1.0 / LARGEST:
        raise InputError(f"y holds {least:g}, expected at least {1.0 / LARGEST:g}. Scale it.")


def as_vector(name: str, values: Any, n: int) -> np.ndarray:
    """Check a vector of one number per row."""
    refuse_masked(name, values)
    try:
        is_real = not np.iscomplexobj(values)
        vector = np.ascontiguousarray(values, dtype=np.float64) if is_real else np.empty(0)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be read as numbers: {error}.") from None
    if not is_real:
        raise InputError(f"{name} holds complex values, expected real numbers.")
    if vector.shape != (n,):
        raise InputError(
            f"{name} has shape {vector.shape}, expected ({n},): one value per row of X."
        )
    if not np.isfinite(vector).all():
        row = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(f"{name} contains NaN or infinity at row {row}. Drop the row.")
    if np.abs(vector).max() > LARGEST:
        raise InputError(f"{name} has an absolute value above {LARGEST:g}. Scale it.")
    return vector
