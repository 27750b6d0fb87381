"""Rows that lie in files: conjugate gradients and SPAM by passes over them, block by block.

An executor shares out the passes whose sums do not depend on their order. Nothing here is as long
as there are rows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from telic.auc.drawn_rows import Draws
from telic.auc.estimators.base import generator
from telic.auc.file_design import FileDesign
from telic.auc.methods.exact import gradients
from telic.auc.methods.spam import centred_as, check_step, spam_pass, step_sizes
from telic.auc.objective import ClassMeans, Solution, rounding
from telic.auc.optimality_bound import Slope, judged, rounding_share
from telic.auc.partitioned import (
    OfBlock,
    added,
    near,
    over_blocks,
    partitions,
    refuse_one_class,
)
from telic.data.object_storage import Place, place
from telic.errors import DivergedError, expect_above, expect_at_least, expect_whole
from telic.evaluate.column_spread import ROUNDING
from telic.optim.threads import small_products
from telic.scale import Executor, Local
from telic.scale.arrays import Arrays


def cg_in_pieces(
    design: FileDesign,
    *,
    beta: float = 1e-4,
    tol: float = 1e-8,
    max_passes: int = 1000,
    executor: Executor | None = None,
    out: str | Place | None = None,
) -> Solution:
    """Find the optimum of `exact_in_pieces` without its d² numbers, by a pass for each iteration.

    Parameters
    ----------
    design : FileDesign
    beta, tol, max_passes
        As in `ConjugateGradientAUC`, whose `max_iter` are the passes.
    executor : telic.scale.Executor, optional
        Default this machine's threads.
    out : path, optional
        Keeps the sums of finished passes, so that an interrupted job goes on.

    Returns
    -------
    Solution
        That of `ConjugateGradientAUC` up to rounding, certified from the rows; the same to the bit
        for any executor.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", np.array([[2.0], [1.0], [0.0], [1.5]]))
    >>> np.save(folder / "y.npy", np.array([1, 0, 0, 1]))
    >>> cg_in_pieces(FileDesign.open(folder / "X.npy", folder / "y.npy")).coef.round(3)
    array([0.667])
    """
    expect_at_least(0, beta=beta, tol=tol)
    expect_whole(1, max_passes=max_passes)
    with small_products(0):
        rows = _Passes(design, executor, out)
        return gradients(
            rows.means,
            rows.within,
            rows.noise,
            rows.covariance,
            partial(rows.certified, beta=beta, tol=tol),
            beta=beta,
            tol=tol,
            max_iter=max_passes,
        )


def spam_in_pieces(
    design: FileDesign,
    *,
    beta: float = 1e-4,
    beta1: float = 0.0,
    step: str = "linear",
    step_size: float = 1.0,
    theta: float = 0.5,
    center: bool = True,
    max_passes: int = 20,
    seed: Any = None,
    executor: Executor | None = None,
    out: str | Place | None = None,
) -> Solution:
    """Run SPAM over rows that lie in files, group of rows by group (`FileDesign.groups`).

    A pass visits the groups in random order, and takes as many steps in each as it has rows, on
    rows of this group. Only one group is in memory. Where there is one group alone, this is `SPAM`.

    Parameters
    ----------
    design : FileDesign
    beta, beta1, step, step_size, theta, center, max_passes, seed
        As in `SPAM`, whose `max_iter` are the passes.
    executor : telic.scale.Executor, optional
        For the sums that the steps need, and the bound at the end; the steps follow one another in
        this process. Averages of steps that shards do apart would be another method; to use all
        workers take `exact_in_pieces` or `cg_in_pieces`, which end at the optimum.
    out : path, optional
        Keeps these sums, so that an interrupted job does not read the rows for them again.

    Returns
    -------
    Solution
        The last iterate; no rule stops by its gap.
    """
    check_step(step, beta)
    expect_at_least(0, beta=beta, beta1=beta1)
    expect_above(0, step_size=step_size)
    expect_whole(1, max_passes=max_passes)
    rng, groups = generator(seed), design.groups()
    with small_products(0):
        rows = _Passes(design, executor, out)
        centre = rows.means.overall if center else np.zeros(design.width)
        bound = rows.largest(centre)
        w, done = np.zeros(design.width), 0
        for number in range(int(max_passes)):
            times = 0
            for g in rng.permutation(len(groups)):
                X, positive = design.rows_of(groups[g])
                view = centred_as(X, rows.means, centre, bound)
                draws = Draws(X)
                since = number * rows.size + times
                steps = step_sizes(
                    step, np.arange(1.0, len(X) + 1) + since, beta, bound, step_size, theta
                )
                order = draws.independent(rng, len(X))
                spam_pass(X, positive, view, w, order, steps, beta=beta, beta1=beta1)
                times += len(X)
            done += 1
            if not np.isfinite(w).all():
                raise DivergedError(
                    f"SPAM diverged with step={step!r} and beta={beta:g}; "
                    "use step='linear' or a larger beta."
                )
        return rows.certified(w, done, False, beta=beta, beta1=beta1, tol=None)


class _Passes:
    """Sums over all rows of a design, each by one pass."""

    def __init__(
        self, design: FileDesign, executor: Executor | None, out: str | Place | None
    ) -> None:
        self.design, self.executor = design, Local() if executor is None else executor
        self.out, self.done = None if out is None else place(out), 0
        self.parts = partitions(design, self.executor, self.out and self.out / "pass-00001")
        offset = near(design)
        found = self.sums(partial(_class_sums, offset))
        n, means = found["n"].astype(float), found["sums"] / np.maximum(found["n"], 1)[:, None]
        refuse_one_class(design, *n)
        self.size = int(n.sum())
        self.means = ClassMeans(n[0], n[1], *(means + offset))
        raw = (found["squares"] / n[:, None]).sum(axis=0)
        self.within, self.noise = raw - (means**2).sum(axis=0), rounding(raw, self.size)

    def sums(
        self, of_block: OfBlock, combine: Callable[[Arrays, Arrays], Arrays] = added
    ) -> Arrays:
        """Add up what a function says of each block."""
        self.done += 1
        here = None if self.out is None else self.out / f"pass-{self.done:05d}"
        task = partial(over_blocks, of_block, combine, self.design)
        return self.executor.tree_reduce(task, combine, self.parts, out=here)[0]

    def covariance(self, v: np.ndarray) -> np.ndarray:
        """(S₊ + S₋)v."""
        sides = np.stack([self.means.pos, self.means.neg])
        shares = 1 / np.array([self.means.n_pos, self.means.n_neg])
        return self.sums(partial(_covariance, v, sides, shares))["product"]

    def largest(self, centre: np.ndarray) -> float:
        """Return the largest squared norm of a row from a centre."""
        found = self.sums(partial(_largest, centre), _larger)["square"]
        return max(float(found), np.finfo(float).tiny)

    def certified(self, w: np.ndarray, passes: float, stopped: bool, **options: Any) -> Solution:
        """Return weights with the bound on their gap, as `optimality_bound.certified`."""
        means, size = self.means, self.size
        counts = np.array([means.n_pos, means.n_neg])
        with np.errstate(over="ignore", invalid="ignore"):  # weights that blew up certify nothing
            told = self.sums(partial(_scores, w, means.overall))
            scores, sizes = told["scores"] / counts, told["sizes"] / counts
            found = self.sums(
                partial(_slopes, w, means.overall, scores, sizes, means.pair_weight / counts)
            )
            spread = found["spread"].sum()
            lead = float(scores[0] - scores[1])
            slope = Slope(
                found["gradient"],
                found["noise"] * rounding_share(size, found["noise"].size),
                float(spread + means.pair_weight * (1 - lead) ** 2),
                lead,
            )
            return judged(w, slope, means.share, passes, stopped=stopped, **options)


def _class_sums(offset: np.ndarray, X: np.ndarray, positive: np.ndarray) -> Arrays:
    sides = [X[which] - offset for which in (positive, ~positive)]
    return {
        "n": np.array([len(side) for side in sides]),
        "sums": np.stack([side.sum(axis=0) for side in sides]),
        "squares": np.stack([(side * side).sum(axis=0) for side in sides]),
    }


def _covariance(
    v: np.ndarray, means: np.ndarray, shares: np.ndarray, X: np.ndarray, positive: np.ndarray
) -> Arrays:
    total = np.zeros(v.size)
    for mean, share, which in zip(means, shares, (positive, ~positive), strict=True):
        side = X[which] - mean
        total += share * ((side @ v) @ side)
    return {"product": total}


def _largest(centre: np.ndarray, X: np.ndarray, positive: np.ndarray) -> Arrays:
    rows = X - centre
    return {"square": np.array(np.einsum("ij,ij->i", rows, rows).max(initial=0.0))}


def _larger(one: Arrays, other: Arrays) -> Arrays:
    return {name: np.maximum(one[name], other[name]) for name in one}


def _scores(w: np.ndarray, centre: np.ndarray, X: np.ndarray, positive: np.ndarray) -> Arrays:
    rows = X - centre
    scores, sizes = rows @ w, np.abs(rows) @ np.abs(w)
    sides = (positive, ~positive)
    return {
        "scores": np.array([scores[which].sum() for which in sides]),
        "sizes": np.array([sizes[which].sum() for which in sides]),
    }


def _slopes(
    w: np.ndarray,
    centre: np.ndarray,
    scores: np.ndarray,
    sizes: np.ndarray,
    weights: np.ndarray,
    X: np.ndarray,
    positive: np.ndarray,
) -> Arrays:
    """Add up the gradient, what its rounding is proportional to, and the spread of the scores."""
    total: Arrays = {"gradient": np.zeros(w.size), "noise": np.zeros(w.size), "spread": np.zeros(2)}
    for side, which in enumerate((positive, ~positive)):
        rows, other = X[which] - centre, 1 - side
        missing = rows @ w - scores[other] - (1 if side == 0 else -1)
        errors = np.abs(rows) @ np.abs(w) + sizes[other] + 1
        total["gradient"] += 2 * weights[side] * (missing @ rows)
        total["noise"] += 2 * weights[side] * (errors @ np.abs(rows))
        total["spread"][side] = weights[side] * ((rows @ w - scores[side]) ** 2).sum()
    return total


def columns_of(
    design: FileDesign, executor: Executor, out: Place
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return least, largest, mean and standard deviation of each column; 1 where it is constant."""
    task = partial(over_blocks, _extent, _joined, design)
    parts = partitions(design, executor, out / "extent")
    found, _ = executor.tree_reduce(task, _joined, parts, out=out / "extent")
    mean = found["low"] + found["sum"] / found["n"]
    task = partial(over_blocks, partial(_squares, mean), added, design)
    squares, _ = executor.tree_reduce(task, added, parts, out=out / "spread")
    largest = np.maximum(np.abs(found["low"]), np.abs(found["high"]))
    deviation = np.sqrt(squares["squares"] / found["n"])
    return (
        found["low"],
        found["high"],
        mean,
        np.where(deviation > ROUNDING * largest, deviation, 1.0),
    )


def _extent(X: np.ndarray, positive: np.ndarray) -> Arrays:
    low = X.min(axis=0, initial=np.inf)
    return {
        "n": np.array(len(X)),
        "low": low,
        "high": X.max(axis=0, initial=-np.inf),
        "sum": (X - low).sum(axis=0),
    }


def _joined(one: Arrays, other: Arrays) -> Arrays:
    if not (one["n"] and other["n"]):
        return one if one["n"] else other
    low = np.minimum(one["low"], other["low"])
    parts = [part["sum"] + part["n"] * (part["low"] - low) for part in (one, other)]
    return {
        "n": one["n"] + other["n"],
        "low": low,
        "high": np.maximum(one["high"], other["high"]),
        "sum": parts[0] + parts[1],
    }


def _squares(mean: np.ndarray, X: np.ndarray, positive: np.ndarray) -> Arrays:
    return {"squares": ((X - mean) ** 2).sum(axis=0)}
