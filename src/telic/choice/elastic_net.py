"""The elastic-net conditional logit, [Zhang2017] (3.3.5): objective, bound, result of a fit."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy

from telic.choice.factored_choices import FactoredChoices
from telic.errors import InputError, expect_above, expect_at_least, warn_unconverged
from telic.optim.penalties import soft

Progress = Callable[[str], None]
"""Told each pass when it is done."""


@dataclass(frozen=True)
class Elastic:
    """The penalty ``l1 * |w|_1 + l2 / 2 * |w|^2`` (lambda_1 and lambda_2).

    The objective it joins is a *mean* over choices, so the penalty does not weigh less the more
    choices there are.
    """

    l1: float = 1e-4
    l2: float = 1e-4

    def __post_init__(self) -> None:
        expect_at_least(0, l1=self.l1)
        expect_above(0, l2=self.l2)  # without it the optimum need not exist

    def value(self, w: np.ndarray) -> float:
        """Return the penalty of all weights."""
        return float(self.l1 * np.abs(w).sum() + self.l2 / 2 * (w @ w))

    def prox(self, w: np.ndarray, step: np.ndarray | float) -> np.ndarray:
        """Return argmin over u of ``(u - w)^2 / (2 step) + penalty(u)``, for each weight.

        Remark 3.3.1 prints the case l2 = 0, garbled.
        """
        return soft(w, step * self.l1) / (1 + step * self.l2)

    def weights(self, slope: np.ndarray) -> np.ndarray:
        """Return the weights at which `slope` is a subgradient of the penalty."""
        return soft(slope, self.l1) / self.l2

    def conjugate(self, slope: np.ndarray) -> float:
        """Return the largest ``slope @ w - penalty(w)`` over w."""
        beyond = soft(slope, self.l1)
        return float(beyond @ beyond) / (2 * self.l2)

    def objective(self, choices: FactoredChoices, w: np.ndarray) -> float:
        """Return (3.3.5)."""
        return choices.loss(w) + self.value(w)

    def bound(self, choices: FactoredChoices, p: np.ndarray, slope: np.ndarray) -> float:
        """Return the dual objective at the probabilities p of the rows: never above the optimum.

        Parameters
        ----------
        choices : FactoredChoices
        p : float64 array of shape (rows,)
            Within each choice >= 0 and of sum 1.
        slope : float64 array of shape (size,)
            ``choices.slope(p)``.
        """
        return choices.entropy(p) - self.conjugate(slope)

    def gap(self, choices: FactoredChoices, w: np.ndarray) -> float:
        """Return a bound of how far (3.3.5) at w is above its optimum; 0 at the optimum alone.

        The dual point is w's probabilities, drawn towards what was chosen as far as that helps:
        where l2 is weak the probabilities alone say little until w is very near the optimum.
        """
        p, chosen = choices.probabilities(w), np.zeros(choices.rows)
        chosen[choices.chosen] = 1.0
        slope = choices.slope(p)
        steep = slope[np.abs(slope) > self.l1]

        # The slope of a mixture is the mixture of slopes, and that of the chosen is 0.
        def bound(share: float) -> float:
            return self.bound(choices, share * p + (1 - share) * chosen, share * steep)

        best = scipy.optimize.minimize_scalar(
            lambda share: -bound(share), bounds=(0.0, 1.0), method="bounded"
        )
        return max(self.objective(choices, w) - max(bound(1.0), bound(best.x)), 0.0)

    def violation(self, choices: FactoredChoices, w: np.ndarray) -> float:
        """Return the largest distance from 0 to the subdifferential of (3.3.5) in any weight."""
        slope = choices.gradient(w) + self.l2 * w
        at_zero = np.abs(soft(slope, self.l1))
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
    """(passes, objective), at zero weights first, of `weights` last."""
    gap: float = np.nan
    """The objective of `weights` is at most so far above the optimum."""
    target: float = 0.0
    """The gap that was asked for; 0 where the number of passes was."""

    @property
    def objective(self) -> float:
        """Objective of `weights`."""
        return self.history[-1][1]

    @property
    def converged(self) -> bool:
        """Whether the gap is what was asked for."""
        return self.gap <= self.target

    def checked(self) -> "Fit":
        """Return the fit itself, after a `ConvergenceWarning` where a gap was asked for in vain."""
        if self.target and not self.converged:
            other = "" if self.method == "sdca" else "use sdca, "
            warn_unconverged(
                f"{self.method} stopped after {self.passes:.4g} passes with a duality gap of "
                f"{self.gap:.2g}, above the {self.target:.2g} asked for. Raise passes or tol, "
                f"{other}or scale the features to a spread of about 1.",
                stacklevel=3,
            )
        return self


def refuse_no_choices(choices: FactoredChoices) -> None:
    """Raise InputError if there is no choice to fit: the mean over none is no objective."""
    if not len(choices):
        raise InputError("choices holds no choice, expected at least one.")


def target_gap(tol: float, history: list[tuple[float, float]]) -> float:
    """Return the gap at which to stop: tol of what was gained, and of the objective.

    Where next to nothing can be gained, a trillionth of the objective at zero weights is enough:
    less is rounding, as is what a logarithm near 0 loses. A tol of 0 asks for passes, not for a
    gap.
    """
    start, now = history[0][1], history[-1][1]
    return max(tol * min(start - now, now), 1e-12 * start, 1e-15) if tol else 0.0
