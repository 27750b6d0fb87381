"""SAGA: the incremental gradient table with uniform draws and all coordinates at each step."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from telic.optim.loop import Iterate
from telic.optim.method_facts import Method
from telic.optim.methods.asbcd import incremental
from telic.optim.problem import Problem


def saga(problem: Problem, *, step_size: float | None = None, **start: Any) -> Iterator[Iterate]:
    """Run SAGA (Defazio, Bach and Lacoste-Julien 2014), one iterate per n draws.

    The step is 1/(2(nμ + L)) or, if larger, 1/(3L), with L the largest Lipschitz constant; both
    are from that paper. Parameters as in `telic.optim.methods.asbcd.asbcd`.
    """
    n = problem.design.n
    step = safe_step(problem) if step_size is None else step_size
    return incremental(problem, p=np.full(n, 1.0 / n), blocks=1, step=step, **start)


def safe_step(problem: Problem, *_: object) -> float:
    """Return the larger of the two step sizes that are proved."""
    largest = problem.row_constants().max()
    return 1.0 / min(2.0 * (problem.design.n * problem.l2 + largest), 3.0 * largest)


METHOD = Method("saga", saga, safe_step=safe_step)
