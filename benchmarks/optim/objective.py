"""What is minimised, and how far a solution is from the best one known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from telic.optim import make_problem, solve


@dataclass
class Objective:
    """An elastic-net problem without intercept; matrices are converted outside the clock."""

    name: str
    X: Any
    y: np.ndarray
    loss: str
    l1: float
    l2: float

    def __post_init__(self):
        self.X = self.X.tocsr()
        self.columns = self.X.tocsc()
        self.problem = make_problem(self.X, self.y, loss=self.loss, l1=self.l1, l2=self.l2)
        self.problem.design.columns  # noqa: B018
        self.zero = self.value(np.zeros(self.X.shape[1]))
        # A certified optimum: its gap bounds what the relative gaps below can be wrong by.
        result = solve(self.problem, tol=1e-11, max_passes=20_000)
        self.best, self.certified = result.objective, result.gap

    def value(self, w: np.ndarray) -> float:
        """P(w)."""
        z = self.X @ w
        return float(self.problem.loss.value(z, self.y).mean() + self.problem.penalty.value(w))

    def relative_gap(self, w: np.ndarray) -> float:
        """(P(w) − P*)/(P(0) − P*)."""
        return (self.value(w) - self.best) / (self.zero - self.best)
