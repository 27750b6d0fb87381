"""Does `method="auto"` take the fastest method? CPU seconds of each on a grid of problems."""

import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.exceptions import ConvergenceWarning

from telic.optim import choose_method, make_problem, solve
from telic.optim.datasets import rcv1_like

METHODS = ("gram", "sdca", "prox_newton", "asbcd")


def auto_table(*, tol: float = 1e-6, max_passes: float = 300) -> None:
    """Print the seconds each method needs to a gap of tol; — where it does not get there."""
    table = Table(
        title=f"CPU seconds to a relative duality gap of {tol:g}; auto's choice in brackets"
    )
    for column in ("problem", "L/(n l2)", *METHODS):
        table.add_column(column, justify="left" if column == "problem" else "right")
    for name, problem in _grid():
        smoothness = problem.loss.smoothness
        condition = smoothness / (problem.design.n * problem.l2) if problem.l2 else np.inf
        chosen = choose_method(problem)
        cells = []
        for method in METHODS:
            seconds = _seconds(problem, method, tol, max_passes)
            shown = "—" if seconds is None else f"{seconds:.3f}"
            cells.append(f"[{shown}]" if method == chosen else shown)
        table.add_row(name, f"{condition:.2g}", *(cell.replace("[", r"\[") for cell in cells))
    Console(width=120).print(table)


def _grid():
    rng = np.random.default_rng(0)
    for n, d, words in ((20_000, 100, 20), (20_000, 500, 40), (5_000, 20_000, 70)):
        X, y = rcv1_like(n=n, d=d, words=words)
        for l1, l2 in ((1e-4, 0.0), (1e-4, 1e-5), (1e-4, 1e-4), (0.0, 1e-4), (0.0, 1e-3)):
            problem = make_problem(X, y, l1=l1, l2=l2)
            yield f"logistic, sparse {n} × {d}, l1 {l1:g}, l2 {l2:g}", problem
    X = rng.normal(size=(2_000, 1_000))
    y = X @ rng.normal(size=1_000) / 30 + rng.normal(size=2_000)
    for l1, l2 in ((1e-2, 0.0), (1e-2, 1e-2), (0.0, 1e-1)):
        problem = make_problem(X, y, loss="squared", l1=l1, l2=l2)
        yield f"squared, dense 2000 × 1000, l1 {l1:g}, l2 {l2:g}", problem


def _seconds(problem, method, tol, max_passes):
    if method == "sdca" and problem.l2 == 0:
        return None
    if method == "gram" and problem.design.d > 4096:
        return None
    times = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(2):  # the first run compiles
            began = time.process_time()
            converged = solve(problem, method=method, tol=tol, max_passes=max_passes).converged
            times.append(time.process_time() - began)
    return times[-1] if converged else None
