"""What `solve_admm` has to know of a method; each states it beside its loop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from telic.optim.admm.loop import Point
from telic.optim.admm.x_step_metric import Metric

EVERY_X_STEP = ("linearised", "scaled", "exact", "curvature")


def step_of_batches(metric: Metric, n: int, batch_size: int) -> float:
    """1/(2 L_b): the step of the stochastic methods, see `telic.optim.admm.safe_step`."""
    if n == 1:
        return 0.5 / metric.largest
    rare = (n - batch_size) / (batch_size * (n - 1))
    return 0.5 / (metric.whole * (1.0 - rare) + metric.largest * rare)


@dataclass(frozen=True)
class AdmmMethod:
    """A way to solve an `AdmmProblem`.

    Parameters
    ----------
    name : str
    run : function
        Yields points; takes the problem, the constants of a step, the state to start from, and
        the keywords in `takes`.
    takes : tuple of str
        Among ``seed``, ``batch_size``, ``first`` and ``perturbation``.
    x_steps : tuple of str
        The x-steps that it can take.
    safe_step : function
        From the metric of the x-step, the number of rows and the batch to the default step size.
    from_zero : bool
        Whether it starts from zero, with B = −I and c = 0, and its step size is ρ.
    """

    name: str
    run: Callable[..., Iterator[Point]]
    takes: tuple[str, ...] = ("seed", "batch_size")
    x_steps: tuple[str, ...] = EVERY_X_STEP
    safe_step: Callable[[Metric, int, int], float] = step_of_batches
    from_zero: bool = False
