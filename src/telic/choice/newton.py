"""Batch fits of the conditional logit: Newton for all groups at once, gradient descent to study."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from telic.choice.choices import Choices, row_a_group
from telic.choice.logit_kernels import add_moments
from telic.errors import expect_above, expect_at_least, warn_unconverged
from telic.kernels import kernel

if TYPE_CHECKING:
    from telic.scale import Executor

_MAX_NEWTON = 200


def fit_groups(
    choices: Choices,
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
    choices : Choices
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
    g, d = len(choices.group) - 1, choices.x.shape[1]
    given = {"center": row_a_group("center", 0.0 if center is None else center, (g, d))}
    if executor is None:
        found = _newton(choices, given, l2=l2, tol=tol, threads=os.cpu_count() or 1)
    else:
        from telic.choice.group_buckets import by_bucket

        found = by_bucket(partial(_newton, l2=l2, tol=tol), choices, given, executor, work)
    left = int(found["unconverged"].sum())
    if left:
        warn_unconverged(
            f"{left} of {g} groups did not converge; scale the features to a spread of about 1.",
            stacklevel=2,
        )
    return found["weights"]


def fit_pooled(choices: Choices, *, l2: float, tol: float = 1e-10) -> np.ndarray:
    """Fit one weight vector, shape (d,), to the choices of all groups together."""
    everyone = Choices(choices.x, choices.offset, choices.start, choices.chosen)
    return fit_groups(everyone, l2=l2, tol=tol)[0]


def leave_one_group_out(
    choices: Choices,
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
    choices : Choices
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
    g, d = len(choices.group) - 1, choices.x.shape[1]
    pooled = np.ascontiguousarray(row_a_group("pooled", pooled, (g, d)))
    given = {"weights": pooled}
    if executor is None:
        found = _slopes(choices, given, threads=os.cpu_count() or 1)
    else:
        from telic.choice.group_buckets import by_bucket

        found = by_bucket(_slopes, choices, given, executor, work)
    gradient, hessian = found["gradient"], found["hessian"]
    rest_gradient = gradient.sum(axis=0) + l2 * pooled - gradient
    rest_hessian = hessian.sum(axis=0) + l2 * np.eye(d) - hessian
    return pooled - _solve(rest_hessian, rest_gradient)


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
    """Run plain gradient descent on all choices together and return every iterate.

    For the convergence study (Figure 2.4). [Zhang2017] gives no step size; this one is 1/L with
    ``L = l2 + sum over choices of max |x_i - x_j|^2 / 4``, a bound of the Hessian.

    Returns
    -------
    float64 array of shape (max_passes + 1, d)
        Row 0 is `start` (zero by default; [Zhang2017] draws it from U(0, 0.01)).
    """
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


@np.errstate(over="ignore", invalid="ignore")  # what overflows does not converge, and is said
def _newton(
    choices: Choices,
    given: Mapping[str, np.ndarray],
    *,
    l2: float,
    tol: float,
    threads: int = 1,
) -> dict[str, np.ndarray]:
    """Fit each group around its row of `given["center"]`."""
    center, (g, d) = given["center"], given["center"].shape

    def objective(w: np.ndarray, todo: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        value, gradient, hessian = _moments(choices, w, todo, threads)
        value += l2 / 2 * ((w - center) ** 2).sum(axis=1)
        return value, gradient + l2 * (w - center), hessian + l2 * np.eye(d)

    w, size, todo = center.copy(), np.ones(g), np.arange(g)
    value, gradient, hessian = objective(w, todo)
    for _ in range(_MAX_NEWTON):
        step = _solve(hessian, gradient)
        decrement = (step * gradient).sum(axis=1)
        todo = np.flatnonzero((decrement > tol * (1 + abs(value))) & (size > 1e-10))
        if not len(todo):
            break
        trial = w - size[:, None] * step
        found = objective(trial, todo)
        better = todo[found[0][todo] <= (value - 1e-4 * size * decrement)[todo]]
        size[todo] /= 2
        size[better] = 1
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


def _moments(
    choices: Choices, w: np.ndarray, todo: np.ndarray, threads: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
