"""Which method ``auto`` takes, as measured."""

import numpy as np

from telic.optim import row_products
from telic.optim.losses import Squared
from telic.optim.methods.gram import LARGEST_D
from telic.optim.problem import Problem


def choose_method(problem: Problem) -> str:
    """Return the method that ``auto`` takes.

    Groups take ``gram`` up to 256 features (up to `LARGEST_D` where λ₁ = 0), ``prox_newton`` with
    more, and ``saga`` beyond `LARGEST_D`. Without groups it is ``gram`` up to 512 features. With
    more it is ``prox_newton`` where λ₂ = 0, where the loss has no Lipschitz gradient (but ``sdca``
    where λ₁ = 0 and there are fewer rows than features), and where the solution will be sparse: λ₁
    is at least 0.07 of the λ₁ that leaves no feature. In all other cases it is ``sdca`` where its
    condition number, smoothness · mean ‖x‖² / (n λ₂), is at most 15, or where λ₁ = 0 and there are
    fewer rows than features (dense rows: at most a fifth more); otherwise it is ``prox_newton``.
    Beyond that condition number a ridge (squared loss, λ₁ = 0) of dense rows, half as many as
    features at least, takes ``gram`` up to `LARGEST_D` features: a Cholesky factor is the solution.
    An offset of a classification loss leaves ``gram`` (up to 256 features with groups) and
    ``prox_newton``.
    `docs/measured/optim-auto.md` holds the measurements behind the branches without groups,
    `docs/measured/optim-paths.md` those of groups.
    """
    n, d = problem.design.n, problem.design.d
    if problem.offset is not None:
        return "gram" if d <= (256 if problem.is_grouped else 512) else "prox_newton"
    if problem.is_grouped:
        if d > LARGEST_D:
            return "saga"
        return "gram" if d <= 256 or problem.l1 == 0 else "prox_newton"
    if d <= 512:
        return "gram"
    if problem.l2 == 0:
        return "prox_newton"
    if not np.isfinite(problem.loss.smoothness):
        return "sdca" if problem.l1 == 0 and n < d else "prox_newton"
    squared = np.empty(n)
    row_products.squares(problem.design.rows, squared)
    squared *= problem.mass
    condition = problem.loss.smoothness * squared.sum() / (n * problem.l2)
    if not condition <= 15.0:
        ridge = isinstance(problem.loss, Squared) and problem.is_smooth
        sparse = problem.design.is_sparse
        if ridge and not sparse and d <= min(LARGEST_D, 2 * n):
            return "gram"
        if problem.l1 != 0 or n >= (d if sparse else 1.2 * d):
            return "prox_newton"
    return "prox_newton" if problem.l1 >= 0.07 * problem.strongest_l1() else "sdca"
