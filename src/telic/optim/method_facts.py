"""What `solve` has to know of a method; each states it beside its loop."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from telic.optim.loop import Iterate
from telic.optim.problem import Problem


@dataclass(frozen=True)
class Method:
    """A way to minimise a `Problem`.

    Parameters
    ----------
    name : str
    run : function
        Yields an `Iterate` after about one pass; takes the problem, ``coef`` and ``intercept`` to
        start at, and what the fields below say.
    safe_step : function, optional
        From the problem, the sampling and the batch to the step size that the method's theory
        gives; ``run`` then takes ``step_size``. None: the method has no step.
    groups : bool
        Whether it knows the group norm.
    random : bool
        Whether ``run`` takes the ``state`` of the random numbers.
    samples : bool
        Whether ``run`` takes the ``sampling`` of rows.
    blocks, batch_size : int, optional
        Default number of coordinate blocks, and of rows of one step, where ``run`` takes them.
    resumes : bool
        Whether ``run`` is a generator that takes the same data under another penalty, sent to it
        as a problem where it yields, and goes on with what it knows.
    offsets : bool
        Whether it minimises a problem whose `offset` is not None.
    """

    name: str
    run: Callable[..., Iterator[Iterate]]
    safe_step: Callable[[Problem, str, int], float] | None = None
    groups: bool = True
    random: bool = True
    samples: bool = False
    blocks: int | None = None
    batch_size: int | None = None
    resumes: bool = False
    offsets: bool = False
