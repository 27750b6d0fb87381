"""Columns and targets far from zero, moved there for a solver and the result moved back."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from telic.errors import warn_unconverged
from telic.optim.loop import Record, SolveResult
from telic.optim.losses import Huber, Squared
from telic.optim.problem import Problem


@dataclass(frozen=True, slots=True)
class Recentred:
    """A problem whose columns and target far from zero are moved there; the intercept makes up.

    Otherwise their spread, which is all that an intercept leaves of them, would drown in rounding.
    """

    problem: Problem
    columns: np.ndarray
    centres: np.ndarray
    """What was taken off those columns."""
    centre: float
    """What was taken off the target."""

    @classmethod
    def of(cls, problem: Problem, null: tuple[float, float, float]) -> "Recentred":
        """Move what must be moved; `null` is what `Problem.null` gives."""
        if not problem.fit_intercept:
            return cls(problem, np.empty(0, int), np.empty(0), 0.0)
        design, columns, centres = problem.design.near
        if columns.size:
            problem = replace(problem, design=design)
        # A target's residuals, and with an intercept the optimum, do not change. It is moved where
        # its spread would drown in rounding; a spread of a few units in the last place is none.
        centre, near, far = null
        if not isinstance(problem.loss, Squared | Huber) or not 1e28 * near > far > 1e6 * near:
            centre = 0.0
        if centre:
            problem = replace(problem, y=problem.y - centre)
        return cls(problem, columns, centres.astype(np.float64), centre)

    def there(self, coef: np.ndarray, intercept: float) -> float:
        """Intercept of the moved problem."""
        return intercept + float(self.centres @ coef[self.columns]) - self.centre

    def told(
        self, callback: Callable[[Record, np.ndarray, float], bool | None] | None
    ) -> Callable[[Record, np.ndarray, float], bool | None] | None:
        """Return the callback, told the intercept for the data as they came."""
        if callback is None or not (self.columns.size or self.centre):
            return callback
        return lambda record, coef, intercept: callback(
            record, coef, intercept - self.there(coef, 0.0)
        )

    def back(self, result: SolveResult, tol: float) -> SolveResult:
        """Return the result for the data as they came.

        Its intercept is a sum of large numbers, and its rounding costs part of the objective: the
        gap says so.
        """
        if not (self.columns.size or self.centre):
            return result
        exact = exact_intercept(result.intercept, self.centres, result.coef[self.columns])
        exact += Fraction(self.centre)
        intercept = float(exact)
        z = self.problem.predict(result.coef, result.intercept)
        risk = self.problem.risk(z)
        z += float(Fraction(intercept) - exact)
        loss = self.problem.risk(z) - risk
        objective, gap = result.objective + loss, max(result.gap + loss, 0.0)
        allowed = max(tol * self.problem.null()[1], 4e-15 * abs(objective))
        if result.converged and loss > allowed:
            warn_unconverged(
                f"features or targets are so far from zero that the rounding of the intercept, "
                f"{intercept:.6g}, costs {loss:.2g} of the objective. Subtract their means first.",
                stacklevel=4,
            )
        return replace(
            result,
            intercept=intercept,
            objective=objective,
            gap=gap,
            converged=result.converged and loss <= allowed,
        )


def exact_intercept(intercept: float, centres: np.ndarray, coef: np.ndarray) -> Fraction:
    """Intercept for columns that had their centres taken off, and have them again."""
    products = (Fraction(float(c)) * Fraction(float(w)) for c, w in zip(centres, coef, strict=True))
    return Fraction(float(intercept)) - sum(products)
