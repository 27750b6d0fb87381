"""The penalty (λ₂/2)‖w‖² + λ₁ Ω(w), where Ω is the ℓ₁ norm or a group norm over a partition."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim import prox_kernels


@dataclass(frozen=True, slots=True)
class ElasticNet:
    """(l2/2)‖w‖² + l1‖w‖₁; `positive` makes it infinite where a coefficient is below 0."""

    l1: float
    l2: float
    positive: bool = False

    @property
    def below(self) -> float:
        """What stands for l1 where w < 0."""
        return np.inf if self.positive else self.l1

    def value(self, w: np.ndarray) -> float:
        """Penalty of the coefficients w."""
        if self.positive and w.min(initial=0.0) < 0.0:
            return np.inf
        return prox_kernels.elastic_net(w, self.l1, self.l2)

    def prox(self, z: np.ndarray, step: float) -> np.ndarray:
        """Argmin over u of ‖u − z‖²/(2 step) + penalty(u)."""
        u = soft(z, step * self.l1) / (1.0 + step * self.l2)
        return np.maximum(u, 0.0) if self.positive else u

    def dual_norm(self, v: np.ndarray) -> float:
        """Least l1 at which v, minus the gradient of the loss, makes w = 0 optimal."""
        return max(v.max(initial=0.0), 0.0 if self.positive else -v.min(initial=0.0))

    def conjugate(self, v: np.ndarray) -> float:
        """Sup over w of ⟨v, w⟩ − penalty(w)."""
        return _half_square(prox_kernels.squared_excess(v, self.l1, self.below), self.l2)

    def violations(self, gradient: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Distance of each coordinate from optimal, given the loss's gradient there."""
        out = np.empty_like(w)
        prox_kernels.violations(gradient, w, self.l1, self.below, self.l2, out)
        return out

    def in_use(self, w: np.ndarray) -> np.ndarray:
        """Whether each coordinate is not zero."""
        return w != 0

    def among(self, features: np.ndarray) -> "ElasticNet":
        """Return the penalty of some of the coordinates."""
        return self

    def has_blocks_of(self, other: "Penalty") -> bool:
        """Whether the other one treats coordinates singly, too."""
        return isinstance(other, ElasticNet)


@dataclass(frozen=True, slots=True)
class GroupElasticNet:
    """(l2/2)‖w‖² + l1 Σ_g √|g| ‖w_g‖₂ over the groups g of a partition of the coordinates.

    `order` lists the coordinates group by group; group g is ``order[starts[g]:starts[g + 1]]``.
    """

    l1: float
    l2: float
    order: np.ndarray
    starts: np.ndarray

    @property
    def below(self) -> float:
        """What stands for l1 where w < 0: l1."""
        return self.l1

    @property
    def weights(self) -> np.ndarray:
        """√|g| for each group."""
        return np.sqrt(np.diff(self.starts))

    def norms(self, w: np.ndarray) -> np.ndarray:
        """‖w_g‖ for each group."""
        return np.sqrt(np.add.reduceat(w[self.order] ** 2, self.starts[:-1]))

    def value(self, w: np.ndarray) -> float:
        """Penalty of the coefficients w."""
        sizes = self._sizes(w, 0.0)
        return 0.5 * self.l2 * (w @ w) + self.l1 * sizes[0]

    def prox(self, z: np.ndarray, step: float) -> np.ndarray:
        """Argmin over u of ‖u − z‖²/(2 step) + penalty(u)."""
        norms = self.norms(z)
        shrunk = np.maximum(norms - step * self.l1 * self.weights, 0.0)
        factor = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0)
        u = np.empty_like(z)
        u[self.order] = z[self.order] * np.repeat(factor, np.diff(self.starts))
        return u / (1.0 + step * self.l2)

    def dual_norm(self, v: np.ndarray) -> float:
        """Least l1 at which v, minus the gradient of the loss, makes w = 0 optimal."""
        return self._sizes(v, 0.0)[1]

    def conjugate(self, v: np.ndarray) -> float:
        """Sup over w of ⟨v, w⟩ − penalty(w)."""
        return _half_square(self._sizes(v, self.l1)[2], self.l2)

    def _sizes(self, v: np.ndarray, l1: float) -> tuple[float, float, float]:
        """Norm Ω, dual norm, and the squares of what the norms of groups exceed l1 √|g| by."""
        return prox_kernels.group_sizes(v, self.order, self.starts, l1)

    def violations(self, gradient: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Distance of each coordinate's group from optimal, given the loss's gradient there."""
        out = np.empty_like(w)
        prox_kernels.group_violations(gradient, w, self.order, self.starts, self.l1, self.l2, out)
        return out

    def in_use(self, w: np.ndarray) -> np.ndarray:
        """Whether the group of each coordinate is not zero."""
        used = np.empty(w.size, np.bool_)
        used[self.order] = np.repeat(self.norms(w) > 0, np.diff(self.starts))
        return used

    def among(self, features: np.ndarray) -> "GroupElasticNet":
        """Return the penalty of some of the coordinates: whole groups, in any order."""
        place = np.full(self.order.size, -1)
        place[features] = np.arange(features.size)
        places = place[self.order]
        sizes = np.add.reduceat(places >= 0, self.starts[:-1])
        starts = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return replace(self, order=places[places >= 0], starts=starts)

    def has_blocks_of(self, other: "Penalty") -> bool:
        """Whether the other one has the same groups."""
        if not isinstance(other, GroupElasticNet):
            return False
        same = np.array_equal(self.starts, other.starts)
        return same and np.array_equal(self.order, other.order)


Penalty = ElasticNet | GroupElasticNet


def soft(z: np.ndarray, threshold: float | np.ndarray) -> np.ndarray:
    """Soft-thresholding: sign(z) max(|z| − threshold, 0)."""
    return np.sign(z) * np.maximum(np.abs(z) - threshold, 0.0)


def dual_scales(penalty: Penalty, v: np.ndarray) -> Iterator[tuple[float, float]]:
    """Scales at which v is a point of the dual, and the conjugate of the penalty at v so scaled.

    Scaling v towards 0 makes it feasible: without l2 that is needed, with l2 the better of both
    counts.
    """
    norm, l1, l2 = penalty.dual_norm(v), penalty.l1, penalty.l2
    scales = {min(1.0, l1 / norm)} if 0 < norm < np.inf and l1 > 0 else set()
    if l2 > 0 or norm <= l1:
        scales.add(1.0)
    for scale in scales:
        # Without l2 the scaled point is feasible, though rounding may hide it. With l1/scale no
        # scaled copy of v is needed.
        weaker = replace(penalty, l1=l1 / scale)
        yield scale, weaker.conjugate(v) * scale**2 if l2 > 0 else 0.0


def group_penalty(groups: Sequence[int] | np.ndarray, *, l1: float, l2: float) -> GroupElasticNet:
    """Build the group penalty from one label per coordinate.

    Parameters
    ----------
    groups : array of int, shape (d,)
        Coordinates with the same label form a group.
    l1, l2 : float
        Weights, >= 0.

    Raises
    ------
    InputError
        If `groups` is not one label per coordinate.

    Examples
    --------
    >>> penalty = group_penalty([0, 0, 1], l1=1.0, l2=0.0)
    >>> float(penalty.value(np.array([3.0, 4.0, -2.0])).round(3))
    9.071
    """
    refuse_masked("groups", groups)
    try:
        labels = np.asarray(groups)
        np.unique(labels)
    except (TypeError, ValueError):
        raise InputError(
            "groups: labels of several kinds, or none. Give one text or number per feature."
        ) from None
    if labels.ndim != 1 or labels.size == 0:
        raise InputError(f"groups has shape {labels.shape}, expected one label per feature.")
    if (labels != labels).any():
        raise InputError("groups contains NaN, expected one label per feature.")
    order = np.argsort(labels, kind="stable").astype(np.int64)
    _, sizes = np.unique(labels, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return GroupElasticNet(l1=l1, l2=l2, order=order, starts=starts)


def _half_square(total: float, l2: float) -> float:
    if l2 > 0:
        return total / (2.0 * l2)
    return 0.0 if total == 0 else np.inf
