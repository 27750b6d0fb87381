"""Multinomial logistic regression: the objective, and a lower bound that holds at any point."""

from dataclasses import dataclass

import numpy as np

from telic.errors import InputError
from telic.kernels import kernel
from telic.optim.design import Design
from telic.optim.penalties import ElasticNet, GroupElasticNet, Penalty, dual_scales, group_penalty
from telic.optim.problem import make_problem
from telic.optim.vector_math import SUMS, exp_negative, log


@dataclass(frozen=True, slots=True)
class SoftmaxProblem:
    """Minimise Σ_i mass_i (log Σ_k exp z_ik − z_iy) + λ₁‖W‖₁ + (λ₂/2)‖W‖², z_i = W x_i + b + o_i.

    The masses sum to 1. W has a row for each of K classes, b is not penalised, and the offset o_i
    is given. Or the norm is Σ_j √K ‖W_·j‖₂, that of groups: all classes use a feature, or none
    does.
    """

    design: Design
    labels: np.ndarray
    """Numbers of the classes of the rows, 0 to K − 1."""
    classes: int
    mass: np.ndarray
    penalty: Penalty
    """Of all coefficients in one row, class by class."""
    fit_intercept: bool
    shares: np.ndarray
    """Mass of each class."""
    own: np.ndarray
    """Σ_i mass_i x_i over the rows of each class, shape (K, d)."""
    columns: np.ndarray
    """Columns far from zero, which the design holds moved there, as the intercept allows."""
    centres: np.ndarray
    """What was taken off them."""
    offset: np.ndarray | None = None
    """Of the scores, shape (n, K)."""

    @property
    def is_grouped(self) -> bool:
        """Whether the classes use features together."""
        return isinstance(self.penalty, GroupElasticNet)

    def predict(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Scores of all rows without the offset, shape (n, K)."""
        z = np.ascontiguousarray(self.design.matrix @ W.T, dtype=np.float64)
        z += b
        return z

    def risk(self, z: np.ndarray, p: np.ndarray) -> float:
        """Loss of the scores; p takes the probabilities."""
        return _softmax(z, self.labels, self.mass, p)

    def back(self, p: np.ndarray) -> np.ndarray:
        """Σ_i mass_i p_ik x_i for each class, shape (K, d)."""
        weighted = p * self.mass[:, None]
        return np.ascontiguousarray((self.design.matrix.T @ weighted).T, dtype=np.float64)

    def value(self, W: np.ndarray) -> float:
        """The penalty."""
        return self.penalty.value(W.ravel())

    def lower_bound(self, p: np.ndarray, pulled: np.ndarray) -> float:
        """Lower bound of the optimum from probabilities p, with pulled = `back(p)`.

        Fenchel's duality: any rows of probabilities whose mean, under the masses, is the share of
        each class (without an intercept: any) bound the optimum from below, and so do the slopes
        they stand for shrunk towards zero. Given ones are mixed with one fixed row until their mean
        is right.
        """
        mixed = 0.0
        row = self.shares
        if self.fit_intercept:
            excess = self.mass @ p - self.shares
            ratio = float((excess / self.shares).max())
            if ratio > 0.0:
                mixed = ratio / (1.0 + ratio)
                row = np.maximum(self.shares - excess / ratio, 0.0)
                centre = np.asarray(self.design.matrix.T @ self.mass, dtype=np.float64).ravel()
                pulled = (1.0 - mixed) * pulled + mixed * np.outer(row, centre)
        best = -np.inf
        for scale, conjugate in dual_scales(self.penalty, (pulled - self.own).ravel()):
            entropy = _conjugates(p, self.labels, self.mass, mixed, row, scale)
            best = max(best, scale * self._offsets_part(p, mixed, row) - entropy - conjugate)
        return best

    def _offsets_part(self, p: np.ndarray, mixed: float, row: np.ndarray) -> float:
        """Σ_i mass_i ⟨slope_i, o_i⟩ at the slopes of the mixed rows, which bounds the loss, too."""
        if self.offset is None:
            return 0.0
        own = self.offset[np.arange(self.labels.size), self.labels]
        mean = (1.0 - mixed) * np.einsum("ik,ik->i", p, self.offset) + mixed * (self.offset @ row)
        return float(self.mass @ (mean - own))


def make_softmax_problem(
    X: object,
    labels: np.ndarray,
    *,
    l1: float,
    l2: float,
    sample_weight: np.ndarray,
    fit_intercept: bool,
    grouped: bool = False,
    offset: np.ndarray | None = None,
) -> SoftmaxProblem:
    """Check the data as `make_problem` does, and build the problem.

    Parameters
    ----------
    labels : array of int, shape (n,)
        0 to K − 1, each with some weight.
    grouped : bool
        Whether all classes use a feature, or none.
    offset : array, shape (n, K), optional
        Added to the scores.

    Raises
    ------
    InputError
        If the data cannot be used, or a class has no weight.
    """
    n, classes = labels.size, int(labels.max()) + 1
    checked = make_problem(
        *(X, np.zeros(n)), loss="squared", l1=l1, l2=l2, sample_weight=sample_weight
    )
    design, columns, centres = checked.design.near
    if not fit_intercept:
        design, columns, centres = checked.design, columns[:0], centres[:0]
    mass = np.broadcast_to(checked.mass, n).astype(np.float64)
    shares = np.bincount(labels, mass, classes)
    if not (shares > 0).all():
        raise InputError("a class has no weight. Drop it or weigh it.")
    indicator = np.zeros((n, classes))
    indicator[np.arange(n), labels] = mass
    own = np.ascontiguousarray((design.matrix.T @ indicator).T, dtype=np.float64)
    penalty: Penalty = ElasticNet(float(l1), float(l2))
    if grouped:
        penalty = group_penalty(np.tile(np.arange(design.d), classes), l1=penalty.l1, l2=penalty.l2)
    return SoftmaxProblem(
        design=design,
        labels=labels.astype(np.int64),
        classes=classes,
        mass=mass,
        penalty=penalty,
        fit_intercept=fit_intercept,
        shares=shares,
        own=own,
        columns=columns,
        centres=centres.astype(np.float64),
        offset=offset,
    )


def best_intercepts(
    problem: SoftmaxProblem, z: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the intercepts that are best beside scores z, and the loss; without any, b is."""
    p, moved = np.empty_like(z), np.empty_like(z)
    risk = problem.risk(z + b, p)
    for _ in range(100 if problem.fit_intercept else 0):
        mean = problem.mass @ p
        if np.abs(mean - problem.shares).max() <= 1e-12:
            break
        curved = np.diag(mean) - p.T @ (p * problem.mass[:, None])
        # Newton's step, or where it overshoots that of iterative scaling, which never does.
        for move in (
            np.linalg.lstsq(curved, problem.shares - mean)[0],
            np.log(problem.shares) - np.log(np.maximum(mean, 1e-300)),
        ):
            lower = problem.risk(z + b + move, moved)
            if lower < risk:
                break
        else:
            break  # Only rounding is left.
        b, p, moved, risk = b + move, moved, p, lower
    return b, risk


@kernel(error_model="numpy", fastmath=SUMS)
def _softmax(z, labels, mass, p):
    """Weighted loss of the scores z; p takes the probabilities of the classes."""
    total = 0.0
    for i in range(z.shape[0]):
        largest = z[i].max()
        for k in range(z.shape[1]):
            p[i, k] = exp_negative(z[i, k] - largest)
        whole = p[i].sum()
        share = 1.0 / whole
        for k in range(z.shape[1]):
            p[i, k] *= share
        # The sum is from 1 to K: its logarithm is that of its inverse.
        total += mass[i] * (largest - z[i, labels[i]] - log(share))
    return total


@kernel(error_model="numpy")
def _conjugates(p, labels, mass, mixed, row, scale):
    """Weighted sum of the conjugates at the slopes of the mixed rows, shrunk by scale."""
    total = 0.0
    for i in range(p.shape[0]):
        entropy = 0.0
        for k in range(p.shape[1]):
            q = scale * ((1.0 - mixed) * p[i, k] + mixed * row[k])
            if labels[i] == k:
                q += 1.0 - scale
            if q > 1e-300:
                entropy += q * log(min(q, 1.0))
        total += mass[i] * entropy
    return total
