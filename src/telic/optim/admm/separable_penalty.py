"""g of f(x) + g(y): a sum over coordinates, which covers ℓ₁, squared ℓ₂, bounds and their mixes."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.errors import InputError
from telic.evaluate.checked_numbers import checked_numbers
from telic.optim.penalties import soft

ROUNDING = 1e-9
"""How far, relatively, beyond a bound rounding may take a sum that meets it."""


@dataclass(frozen=True, slots=True)
class Separable:
    """``Σ_e l1_e |y_e| + (l2_e / 2) y_e²``, for low_e <= y_e <= high_e."""

    l1: np.ndarray
    l2: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def value(self, y: np.ndarray) -> float:
        """Penalty of y; infinite where it passes a bound b by more than 1e-9 (1 + abs(b))."""
        below = self.low - ROUNDING * (1.0 + np.abs(self.low))
        above = self.high + ROUNDING * (1.0 + np.abs(self.high))
        if (y < below).any() or (y > above).any():
            return np.inf
        return self.l1 @ np.abs(y) + 0.5 * (self.l2 @ y**2)

    def prox(self, v: np.ndarray, step: float | np.ndarray) -> np.ndarray:
        """Argmin over y of ‖y − v‖²/(2 step) + g(y); in one dimension a bound only clips."""
        return np.clip(soft(v, step * self.l1) / (1.0 + step * self.l2), self.low, self.high)

    def conjugate(self, u: np.ndarray) -> float:
        """Sup over y of ⟨u, y⟩ − g(y): infinite beyond l1 where neither l2 nor a bound holds y."""
        with np.errstate(divide="ignore", invalid="ignore"):
            best = np.clip(soft(u, self.l1) / self.l2, self.low, self.high)
        best = np.where(np.abs(u) <= self.l1, np.clip(0.0, self.low, self.high), best)
        if not np.isfinite(best).all():
            return np.inf
        return u @ best - self.value(best)

    @property
    def domain(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest u at which the conjugate is finite; 0 lies between."""
        low = np.where((self.l2 > 0) | np.isfinite(self.low), -np.inf, -self.l1)
        high = np.where((self.l2 > 0) | np.isfinite(self.high), np.inf, self.l1)
        return low, high

    def nearest_dual(self, u: np.ndarray) -> np.ndarray:
        """Nearest point at which the conjugate is finite."""
        return np.clip(u, *self.domain)

    def room(self, u: np.ndarray) -> float:
        """Return the largest t <= 1 for which the conjugate is finite at t u."""
        over = np.abs(u) / np.maximum(np.abs(self.nearest_dual(u)), 1e-300)
        return 1.0 / max(1.0, over.max(initial=1.0, where=u != 0))

    def excess(self, y: np.ndarray, u: np.ndarray) -> float:
        """g(y) + g*(u) − ⟨u, y⟩, >= 0: zero where u is a subgradient at y."""
        return max(float(self.value(y) + self.conjugate(u) - u @ y), 0.0)


def separable(
    size: int, *, l1: Any = 0.0, l2: Any = 0.0, low: Any = -np.inf, high: Any = np.inf
) -> Separable:
    """Build the penalty of y with `size` entries; each argument is a number or one per entry.

    Raises
    ------
    InputError
        If a weight is negative or not finite, or a lower bound above its upper one.

    Examples
    --------
    >>> float(separable(2, l1=[1.0, 2.0]).value(np.array([-3.0, 1.0])))
    5.0
    """
    given = {"l1": l1, "l2": l2, "low": low, "high": high}
    vectors = {}
    for name, value in given.items():
        vector = checked_numbers(name, value)
        if vector.shape not in ((), (size,)):
            raise InputError(
                f"{name} has shape {vector.shape}, expected a number or ({size},): one per row of "
                "A (of B's columns, if B is given)."
            )
        vectors[name] = np.array(np.broadcast_to(vector, (size,)))
    for name in ("l1", "l2"):
        wrong = np.flatnonzero(~((vectors[name] >= 0) & (vectors[name] < np.inf)))
        if wrong.size:
            raise InputError(
                f"{name} is {vectors[name][wrong[0]]:g} at entry {wrong[0]}, "
                "expected a number >= 0."
            )
    wrong = np.flatnonzero(~(vectors["low"] <= vectors["high"]))
    if wrong.size:
        raise InputError(f"low is above high at entry {wrong[0]}: no y is allowed there.")
    return Separable(**vectors)
