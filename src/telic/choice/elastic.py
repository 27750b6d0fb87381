"""The elastic-net conditional logit (3.3.5): objective, optimality, and what a fit gives."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from telic.choice.factored import FactoredChoices
from telic.errors import InputError

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Elastic:
    """The penalty ``l1 * |w|_1 + l2 / 2 * |w|^2`` (lambda_1 and lambda_2).

    The objective it joins is a *mean* over choices, so the penalty does not weigh less the more
    choices there are.
    """

    l1: float = 1e-4
    l2: float = 1e-4

    def __post_init__(self) -> None:
        if not (np.isfinite(self.l1) and self.l1 >= 0):
            raise InputError(f"l1 is {self.l1}, expected a finite number >= 0.")
        if not (np.isfinite(self.l2) and self.l2 > 0):
            raise InputError(
                f"l2 is {self.l2}, expected a finite number > 0: without it the optimum need not "
                "exist."
            )

    def value(self, w: np.ndarray) -> float:
        """Return the penalty of all weights."""
        return float(self.l1 * np.abs(w).sum() + self.l2 / 2 * (w @ w))

    def prox(self, w: np.ndarray, step: np.ndarray | float) -> np.ndarray:
        """Return argmin over u of ``(u - w)^2 / (2 step) + penalty(u)``, for each weight.

        Remark 3.3.1 prints the case l2 = 0, garbled.
        """
        return np.sign(w) * np.maximum(np.abs(w) - step * self.l1, 0.0) / (1 + step * self.l2)

    def weights(self, slope: np.ndarray) -> np.ndarray:
        """Return the weights at which `slope` is a subgradient of the penalty."""
        return np.sign(slope) * np.maximum(np.abs(slope) - self.l1, 0.0) / self.l2

    def objective(self, choices: FactoredChoices, w: np.ndarray) -> float:
        """Return (3.3.5)."""
        return choices.loss(w) + self.value(w)

    def violation(self, choices: FactoredChoices, w: np.ndarray) -> float:
        """Return the largest distance from 0 to the subdifferential of (3.3.5) in any weight."""
        slope = choices.gradient(w) + self.l2 * w
        at_zero = np.maximum(np.abs(slope) - self.l1, 0.0)
        away = np.abs(slope + self.l1 * np.sign(w))
        return float(np.where(w == 0, at_zero, away).max(initial=0.0))


@dataclass(frozen=True)
class Fit:
    """Weights of a fit and how it went."""

    weights: np.ndarray
    """float64 (size,): see `FactoredChoices`."""
    method: str
    passes: float
    """Component gradients computed, divided by the number of choices."""
    history: list[tuple[float, float]] = field(default_factory=list)
    """(passes, objective), before the first pass and after each."""
    gap: float = np.inf
    """The objective is at most so far above the optimum; infinite where a method does not know."""

    @property
    def objective(self) -> float:
        """The last objective seen."""
        return self.history[-1][1]
