"""Online fits of the conditional logit: one stochastic gradient step a choice."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from telic.choice.by_group import by_group
from telic.choice.choices import Choices, pieces_of, row_a_group
from telic.choice.logit_kernels import softmax_rows
from telic.errors import expect_above, expect_at_least, expect_one_of
from telic.kernels import kernel

if TYPE_CHECKING:
    from telic.scale import Executor

Schedule = Literal["annealed", "steady"]
"""How the step shrinks from one choice to the next."""


def learn_online(
    choices: Choices | Sequence[Choices],
    initial: np.ndarray,
    *,
    step_size: float,
    l2: float = 0.0,
    schedule: Schedule = "steady",
    center: np.ndarray | None = None,
    executor: "Executor | None" = None,
    work: str | Path | None = None,
) -> np.ndarray:
    """Walk through each group's choices in order, one gradient step after each.

    Parameters
    ----------
    choices : Choices or sequence of Choices
        In time order within each group; the groups of pieces follow one another.
    initial : array of shape (d,) or (g, d)
        Weights before a group's first choice (adaQAC-Online: the un-personalised ones).
    step_size : float > 0
        eta of the first step.
    l2 : float
        Weight of the penalty ``l2 / 2 * |w - center|^2``, added whole at every step: [Zhang2017]
        (2.7.2).
    schedule : {"annealed", "steady"}
        The step after t choices: ``eta * 0.9^t`` (2.7.2; it has spent 95.8 % of its total length
        after 30 choices) or ``eta / sqrt(1 + t)``, which keeps learning.
    center : array of shape (d,) or (g, d), optional
        Where the penalty pulls to; zero by default, as in [Zhang2017].
    executor, work
        As in `telic.choice.fit_groups`.

    Returns
    -------
    float64 array of shape (n + g, d)
        The weights *before* each choice, and after the last one of each group: group ``u`` owns
        the rows ``group[u] + u : group[u + 1] + u + 1``, groups counted over all pieces.

    Examples
    --------
    >>> choices = Choices(x=[[0.0], [1.0]], offset=[0.0, 0.0], start=[0, 2], chosen=[1])
    >>> learn_online(choices, [0.0], step_size=1.0)
    array([[0. ],
           [0.5]])
    """
    expect_one_of(("annealed", "steady"), schedule=schedule)
    expect_above(0, step_size=step_size)
    expect_at_least(0, l2=l2)
    pieces = pieces_of(choices)
    shape = (sum(len(piece.group) - 1 for piece in pieces), pieces[0].x.shape[1])
    given = {
        name: np.ascontiguousarray(row_a_group(name, rows, shape))
        for name, rows in (("initial", initial), ("center", 0.0 if center is None else center))
    }
    steps = partial(
        _path, step_size=float(step_size), l2=float(l2), annealed=schedule == "annealed"
    )
    return by_group(steps, choices, given, executor, work)["path"]


def _path(
    choices: Choices,
    given: Mapping[str, np.ndarray],
    *,
    step_size: float,
    l2: float,
    annealed: bool,
) -> dict[str, np.ndarray]:
    weights = given["initial"], given["center"]
    path = _walk(*choices.arrays, *weights, step_size, l2, annealed, choices.widest)
    return {"path": path}


@kernel
def step_after(step_size, t, annealed):
    """Step size after t updates: eta 0.9^t as printed [Zhang2017] (2.7.2), or eta / sqrt(1 + t)."""
    return step_size * 0.9**t if annealed else step_size / np.sqrt(1.0 + t)


@kernel
def online_step(x, offset, first, last, chosen, w, center, step, l2, p):
    """Move w by one gradient step on the choice with the rows first:last, in place."""
    softmax_rows(x, offset, first, last, w, p)
    for j in range(len(w)):
        slope = l2 * (w[j] - center[j]) - x[chosen, j]
        for r in range(first, last):
            slope += p[r - first] * x[r, j]
        w[j] -= step * slope


@kernel
def _walk(x, offset, start, chosen, group, initial, center, step_size, l2, annealed, widest):
    """Weights before every choice and after the last one, group by group."""
    g, d = initial.shape
    path = np.empty((len(chosen) + g, d))
    p = np.empty(widest)
    for u in range(g):
        w = initial[u].copy()
        for c in range(group[u], group[u + 1]):
            for j in range(d):
                path[c + u, j] = w[j]
            step = step_after(step_size, c - group[u], annealed)
            online_step(x, offset, start[c], start[c + 1], chosen[c], w, center[u], step, l2, p)
        for j in range(d):
            path[group[u + 1] + u, j] = w[j]
    return path
