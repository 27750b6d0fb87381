"""Batch fits of the conditional logit: Newton for all groups at once, gradient descent to study."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from telic.choice.by_group import by_group
from telic.choice.choices import Choices, pieces_of, row_a_group
from telic.choice.logit_kernels import add_moments
from telic.errors import expect_above, expect_at_least, expect_whole, warn_unconverged
from telic.kernels import kernel

if TYPE_CHECKING:
    from telic.scale import Executor

AT_ONCE = 1 << 12
"""Groups whose systems of equations are solved at a time."""
_MAX_NEWTON = 200
_Moments = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Loss (g,), gradient (g, d) and Hessian (g, d, d)."""


def fit_groups(
    choices: Choices | Sequence[Choices],
    *,
    l2: float,
    center: np.ndarray | None = None,
    tol: float = 1e-10,
    executor: "Executor | None" = None,
    work: str | Path | None = None,
) -> np.ndarray:
    """Fit one weight vector per group by Newton's method, groups in parallel.

    Minimises, for each group u, the objective [Zhang2017] (2.3.6)
    ``sum of losses over the choices of u + l2 / 2 * |w - center|^2``: a *sum*, as there, so the
    penalty weighs less the more choices a group has. With `center` zero (the default) this is
    adaQAC-Batch.

    Parameters
    ----------
    choices : Choices or sequence of Choices
        Pieces are worked on one after another, so that they may lie in files: their groups follow
        one another.
    l2 : float > 0
        Weight of the penalty (lambda).
    center : array of shape (d,) or (g, d), optional
        Where the penalty pulls to; also where the iteration starts.
    tol : float
        Stop when the Newton decrement, an estimate of the distance of the objective from its
        optimum, is below ``tol * (1 + |objective|)``.
    executor : telic.scale.Executor, optional
        Fits buckets of groups; the weights are the same to the bit.
    work : path, optional
        Needed with an executor: a folder for these choices, which every worker reaches. The same
        fit goes on there if it was interrupted.

    Returns
    -------
    float64 array of shape (g, d)

    Examples
    --------
    >>> choices = Choices(x=[[0.0], [1.0]], offset=[0.0, 0.0], start=[0, 2], chosen=[1])
    >>> fit_groups(choices, l2=0.1).round(4)
    array([[1.6335]])
    """
    expect_above(0, l2=l2)  # without it the optimum need not exist
    expect_at_least(0, tol=tol)
    g, d = _shape(choices)
    given = {"center": row_a_group("center", 0.0 if center is None else center, (g, d))}
    fit = partial(_fit_each, l2=l2, tol=tol)
    found = by_group(fit, choices, given, executor, work, threads=os.cpu_count() or 1)
    _warn_of(found["unconverged"])
    return found["weights"]


def fit_pooled(
    choices: Choices | Sequence[Choices], *, l2: float, tol: float = 1e-10
) -> np.ndarray:
    """Fit one weight vector, shape (d,), to the choices of all groups, and pieces, together."""
    expect_above(0, l2=l2)
    expect_at_least(0, tol=tol)
    pieces, (_, d) = pieces_of(choices), _shape(choices)

    def moments(w: np.ndarray, _: np.ndarray) -> _Moments:
        threads = min(os.cpu_count() or 1, len(pieces))
        with ThreadPoolExecutor(threads) as pool:
            found = list(pool.map(lambda i: _moments_together(pieces[i], w), range(len(pieces))))
        value, gradient, hessian = zip(*found, strict=True)
        return sum(value), sum(gradient), sum(hessian)

    found = _newton(moments, np.zeros((1, d)), l2=l2, tol=tol)
    _warn_of(found["unconverged"])
    return found["weights"][0]


def _shape(choices: Choices | Sequence[Choices]) -> tuple[int, int]:
    """Return how many groups and features there are."""
    pieces = pieces_of(choices)
    return sum(len(piece.group) - 1 for piece in pieces), pieces[0].x.shape[1]


def _warn_of(unconverged: np.ndarray) -> None:
    left = int(unconverged.sum())
    if left:
        warn_unconverged(
            f"{left} of {len(unconverged)} groups did not converge; scale the features to a spread "
            "of about 1.",
            stacklevel=3,
        )


def leave_one_group_out(
    choices: Choices | Sequence[Choices],
    pooled: np.ndarray,
    *,
    l2: float,
    executor: "Executor | None" = None,
    work: str | Path | None = None,
) -> np.ndarray:
    """Fit the pooled model without each group in turn, by one Newton step from `pooled`.

    The step uses the exact gradient and Hessian of the remaining groups at the optimum of all, so
    its error is of second order in the share of the group left out.

    Parameters
    ----------
    choices : Choices or sequence of Choices
    pooled : array of shape (d,)
        The optimum for all groups with the same `l2`, from `fit_pooled`.
    l2 : float > 0
    executor, work
        As in `fit_groups`.

    Returns
    -------
    float64 array of shape (g, d)
        Row u is what `fit_pooled` finds, to that accuracy, when the choices of u are left out.
    """
    expect_above(0, l2=l2)
    pooled = np.ascontiguousarray(row_a_group("pooled", pooled, _shape(choices)))
    given, threads = {"weights": pooled}, os.cpu_count() or 1
    found = by_group(_slopes, choices, given, executor, work, threads=threads)
    slope, curvature = found["gradient"].sum(axis=0), found["hessian"].sum(axis=0)
    curvature += l2 * np.eye(len(curvature))
    weights = np.empty_like(pooled)
    for first in range(0, len(pooled), AT_ONCE):
        own = slice(first, first + AT_ONCE)
        gradient = slope + l2 * pooled[own] - found["gradient"][own]
        step = _solve(curvature - found["hessian"][own], gradient)
        weights[own] = pooled[own] - step
    return weights


def gap_bound(choices: Choices, weights: np.ndarray, *, l2: float) -> float:
    """Bound how far the objective (2.3.6) at some weights is above its optimum, over all groups.

    The dual objective at the probabilities that the weights give falls short of the primal one by
    ``|gradient|^2 / (2 * l2)``, which is also what strong convexity bounds.

    Parameters
    ----------
    choices : Choices
    weights : array of shape (d,)
    l2 : float > 0

    Examples
    --------
    >>> choices = Choices(x=[[0.0], [1.0]], offset=[0.0, 0.0], start=[0, 2], chosen=[1])
    >>> gap_bound(choices, fit_pooled(choices, l2=0.1), l2=0.1) < 1e-9
    True
    """
    expect_above(0, l2=l2)
    gradient = choices.gradient(weights, l2=l2)
    return float(gradient @ gradient) / (2 * l2)


def descend(
    choices: Choices, *, l2: float, max_passes: int = 40, start: np.ndarray | None = None
) -> np.ndarray:
    """Run plain gradient descent on all choices together and return every iterate; l2 > 0.

    For the convergence study (Figure 2.4). [Zhang2017] gives no step size; this one is 1/L with
    ``L = l2 + sum over choices of max |x_i - x_j|^2 / 4``, a bound of the Hessian.

    Returns
    -------
    float64 array of shape (max_passes + 1, d)
        Row 0 is `start` (zero by default; [Zhang2017] draws it from U(0, 0.01)).
    """
    expect_above(0, l2=l2)
    expect_whole(0, max_passes=max_passes)
    first = choices.start[:-1]
    low = np.minimum.reduceat(choices.x, first, axis=0)
    high = np.maximum.reduceat(choices.x, first, axis=0)
    lipschitz = l2 + ((high - low) ** 2).sum() / 4
    w = np.zeros(choices.x.shape[1]) if start is None else np.array(start, float)
    path = [w]
    for _ in range(max_passes):
        w = w - choices.gradient(w, l2=l2) / lipschitz
        path.append(w)
    return np.array(path)


def _fit_each(
    choices: Choices,
    given: Mapping[str, np.ndarray],
    *,
    l2: float,
    tol: float,
    threads: int = 1,
) -> dict[str, np.ndarray]:
    """Fit each group around its row of `given["center"]`."""
    return _newton(partial(_moments, choices, threads=threads), given["center"], l2=l2, tol=tol)


@np.errstate(over="ignore", invalid="ignore")  # what overflows does not converge, and is said
def _newton(
    moments: Callable[[np.ndarray, np.ndarray], _Moments],
    center: np.ndarray,
    *,
    l2: float,
    tol: float,
) -> dict[str, np.ndarray]:
    """Fit each row of `center` around it, by the `moments` at a row of weights for each group."""
    g, d = center.shape

    def objective(w: np.ndarray, todo: np.ndarray) -> _Moments:
        value, gradient, hessian = moments(w, todo)
        value += l2 / 2 * ((w - center) ** 2).sum(axis=1)
        return value, gradient + l2 * (w - center), hessian + l2 * np.eye(d)

    w, size, todo = center.copy(), np.ones(g), np.arange(g)
    value, gradient, hessian = objective(w, todo)
    for _ in range(_MAX_NEWTON):
        step = _solve(hessian, gradient)
        decrement = (step * gradient).sum(axis=1)
        todo = np.flatnonzero((decrement > tol * (1 + abs(value))) & (size > 1e-16))
        if not len(todo):
            break
        trial = w - size[:, None] * step
        found = objective(trial, todo)
        better = todo[found[0][todo] <= (value - 1e-4 * size * decrement)[todo]]
        size[todo] /= 2
        # Twice as long as the step that did well: a full one may be of any length again.
        size[better] = np.minimum(4 * size[better], 1)
        w[better] = trial[better]
        for old, new in zip((value, gradient, hessian), found, strict=True):
            old[better] = new[better]
    # Rounding may end the line search a hair above `tol`; only more than that is worth a word. What
    # overflowed, to NaN or an infinite objective, has not converged.
    converged = (decrement <= max(1e-6, tol) * (1 + abs(value))) & np.isfinite(value)
    return {"weights": w, "unconverged": ~converged}


def _solve(hessian: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Return each Hessian's inverse times its gradient, whatever the scales of the features."""
    unit = 1 / np.sqrt(np.diagonal(hessian, axis1=1, axis2=2))
    scaled = hessian * unit[:, :, None] * unit[:, None, :]
    # Where features repeat each other, l2 can drown in rounding: what is left must stay regular.
    scaled += 1e-14 * np.eye(gradient.shape[-1])
    return unit * np.linalg.solve(scaled, (unit * gradient)[..., None])[..., 0]


def _slopes(
    choices: Choices, given: Mapping[str, np.ndarray], *, threads: int = 1
) -> dict[str, np.ndarray]:
    """Return each group's gradient and Hessian at its row of `given["weights"]`."""
    w = given["weights"]
    _, gradient, hessian = _moments(choices, w, np.arange(len(w)), threads)
    return {"gradient": gradient, "hessian": hessian}


def _moments_together(choices: Choices, w: np.ndarray) -> _Moments:
    """Loss, gradient and Hessian of all groups together; w has one row."""
    rows = choices.x, choices.offset, choices.start, choices.chosen
    return _moments(Choices.checked(*rows, np.array([0, len(choices)])), w, np.zeros(1, int), 1)


def _moments(choices: Choices, w: np.ndarray, todo: np.ndarray, threads: int) -> _Moments:
    """Loss, gradient and Hessian of the groups in `todo`, without penalty; w has a row a group."""
    g, d = w.shape
    value, gradient, hessian = np.zeros(g), np.zeros((g, d)), np.zeros((g, d, d))
    parts = np.array_split(todo, threads)

    def fill(part: np.ndarray) -> None:
        p = np.empty(choices.widest)
        _moments_by_group(*choices.arrays, part, w, p, value, gradient, hessian)

    # The kernel releases the interpreter's lock, so threads really run side by side.
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, parts))
    return value, gradient, hessian


@kernel
def _moments_by_group(x, offset, start, chosen, group, todo, w, p, value, gradient, hessian):
    """Fill loss, gradient and Hessian of every group in todo."""
    d = w.shape[1]
    mean = np.empty(d)
    for u in todo:
        value[u] = add_moments(
            x, offset, start, chosen, group[u], group[u + 1], w[u], p, mean, gradient[u], hessian[u]
        )
        for j in range(d):
            for k in range(j):
                hessian[u, k, j] = hessian[u, j, k]
