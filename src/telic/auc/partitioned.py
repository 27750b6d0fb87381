"""Rows that lie in files: the exact optimum from sums over blocks, and the exact AUC of a ranking.

Neither needs the rows in memory, and neither depends on how they are cut or who reads them.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np

from telic.auc.file_design import BLOCK, FileDesign, mapped
from telic.auc.methods import exact as _exact
from telic.auc.objective import ClassMeans, Moments, Solution, rounding
from telic.data.numpy_files import load_npy
from telic.data.object_storage import Place, place, refuse_remote
from telic.errors import InputError, expect_at_least, expect_whole
from telic.optim.threads import small_products
from telic.scale import Executor, Local
from telic.scale.arrays import Arrays, fold
from telic.scale.job_folder import begun_in
from telic.scale.partitions import Range, ranges


def moments_of(
    design: FileDesign, *, executor: Executor | None = None, out: str | Place | None = None
) -> Moments:
    """Read the rows once, in pieces, and keep what the objective needs.

    Parameters
    ----------
    design : FileDesign
    executor : telic.scale.Executor, optional
        Default this machine's threads.
    out : path, optional
        Keeps the sums of finished pieces, so that an interrupted job goes on.

    Returns
    -------
    Moments
        The same to the bit for any executor: blocks of `BLOCK` rows are added neighbour to
        neighbour. They differ from those of rows in memory by rounding.

    Raises
    ------
    InputError
        Naming what is not finite, or if there is one class only.
    """
    executor = Local() if executor is None else executor
    with small_products(0):
        offset = near(design)
        task = partial(over_blocks, partial(_sums, offset), added, design)
        parts = partitions(design, executor, out)
        total, _report = executor.tree_reduce(task, added, parts, out=out)
    n, sums, squares = total["n"], total["sums"], total["squares"]
    refuse_one_class(design, *n)
    raw = squares[0] / n[0] + squares[1] / n[1]
    pos, neg = sums[0] / n[0], sums[1] / n[1]
    within = raw - np.outer(pos, pos) - np.outer(neg, neg)
    means = ClassMeans(float(n[0]), float(n[1]), pos + offset, neg + offset)
    return Moments(means, within, rounding(np.diag(raw), design.rows))


def partitions(
    design: FileDesign, executor: Executor, out: str | Place | None = None
) -> list[Range]:
    """Cut rows between blocks, in groups of a power of two as the tree wants them.

    A job that goes on in `out` keeps to its pieces, however many slots there are now; larger ones
    than `piece` allows are another job's.
    """
    rows = executor.piece // (4 * 8 * (design.width + 1))
    begun = 0 if out is None else begun_in(place(out))
    enough = begun or executor.slots * 4
    groups = 1
    while 2 * groups * BLOCK <= rows and groups * BLOCK * enough < design.rows:
        groups *= 2
    return ranges(design.rows, groups * BLOCK)


def near(design: FileDesign) -> np.ndarray:
    """Return a point near the rows: seen from there large offsets do not eat the digits."""
    first, _ = next(design.blocks(0, min(BLOCK, design.rows)))
    return first.mean(axis=0) if len(first) else np.zeros(design.width)


def refuse_one_class(design: FileDesign, n_pos: int, n_neg: int) -> None:
    """Raise InputError unless there are rows of both classes."""
    if min(n_pos, n_neg) < 1:
        raise InputError(f"{design.path}: one class only, expected two: pos_label picks one.")


OfBlock = Callable[[np.ndarray, np.ndarray], Arrays]
"""What is added up of a block's rows and of which are positive."""


def over_blocks(
    of_block: OfBlock,
    combine: Callable[[Arrays, Arrays], Arrays],
    design: FileDesign,
    part: Range,
) -> Arrays:
    """Add up what a function says of each block of a partition."""
    count = -(-(part.stop - part.start) // BLOCK)
    with small_products(0):
        found = (of_block(X, positive) for X, positive in design.blocks(*part))
        total: Arrays = fold(enumerate(found), combine, count)
    return total


def _sums(offset: np.ndarray, X: np.ndarray, positive: np.ndarray) -> Arrays:
    """Count, sum and products of each class."""
    X -= offset
    sides = X[positive], X[~positive]
    return {
        "n": np.array([len(side) for side in sides]),
        "sums": np.stack([side.sum(axis=0) for side in sides]),
        "squares": np.stack([side.T @ side for side in sides]),
    }


def added(one: Arrays, other: Arrays) -> Arrays:
    """Add the sums of two neighbours."""
    return {name: one[name] + other[name] for name in one}


def exact_in_pieces(
    design: FileDesign,
    *,
    beta: float = 1e-4,
    beta1: float = 0.0,
    tol: float = 1e-8,
    max_passes: int = 10_000,
    executor: Executor | None = None,
    out: str | Place | None = None,
) -> Solution:
    """Find the optimum of the pairwise square loss over rows that lie in files, in one pass.

    Parameters
    ----------
    design : FileDesign
    beta, beta1 : float
        Weights of (1/2)‖w‖² and ‖w‖₁, as in `ExactAUC`.
    tol : float
        With beta1: relative gap at which coordinate descent stops.
    max_passes : int
        With beta1: most sweeps of coordinate descent.
    executor, out
        As in `moments_of`.

    Returns
    -------
    Solution
        That of `ExactAUC` up to rounding; `gap` is not certified from the rows.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", np.array([[2.0], [1.0], [0.0], [1.5]]))
    >>> np.save(folder / "y.npy", np.array([1, 0, 0, 1]))
    >>> exact_in_pieces(FileDesign.open(folder / "X.npy", folder / "y.npy")).coef.round(3)
    array([0.667])
    """
    expect_at_least(0, beta=beta, beta1=beta1, tol=tol)
    expect_whole(1, max_passes=max_passes)
    found = moments_of(design, executor=executor, out=out)
    with small_products(design.width):
        if beta1 == 0:
            solution = _exact.exact(found, beta=beta)
        else:
            coef, _ = _exact.elastic_net(
                found, beta=beta, beta1=beta1, tol=tol, max_iter=max_passes
            )
            solution = Solution(coef, 1)
    objective = found.objective(solution.coef, beta=beta, beta1=beta1)
    return solution._replace(objective=objective, gap=np.nan, converged=None)


def auc_in_pieces(
    design: FileDesign, coef: np.ndarray, *, out: str | Path, executor: Executor | None = None
) -> float:
    """Return the exact AUC of ``X @ coef`` over rows that lie in files, ties counting half.

    The scores of each piece are sorted into a file. Then each range of scores, with the rows that
    all pieces have in it, is counted by itself, in whole numbers.

    Parameters
    ----------
    design : FileDesign
    coef : array of shape (d,)
    out : path
        Folder of the sorted scores, which every worker reaches.
    executor : telic.scale.Executor, optional

    Returns
    -------
    float
        Equal to the bit to `telic.evaluate.classification.roc_auc` of the same scores.

    Raises
    ------
    InputError
        If there is one class only, or a score that is no number.
    """
    executor = Local() if executor is None else executor
    coef = np.asarray(coef, float)
    if coef.shape != (design.width,):
        raise InputError(f"coef has shape {coef.shape}, expected ({design.width},).")
    refuse_remote(out, "out", "the sorted scores are mapped")
    out = Path(out).absolute()
    parts = partitions(design, executor, out / "scores")
    with small_products(0):
        sorted_parts = executor.map(partial(_score, design, coef), parts, out=out / "scores").values
    samples = np.sort(np.concatenate([load_npy(path / "sample.npy") for path in sorted_parts]))
    pieces = max(1, -(-design.rows * 200 // executor.piece))
    cuts = samples[np.arange(1, pieces) * len(samples) // pieces]
    edges = np.unique(np.concatenate([[-np.inf], cuts, [np.inf]]))  # a score may be infinite
    bounds = [(float(low), float(high)) for low, high in pairwise(edges)]
    counts = executor.map(partial(_wins, sorted_parts), bounds).values
    wins, below, positives = 0, 0, 0
    for high, low, twice in counts:
        wins += twice + 2 * high * below
        below, positives = below + low, positives + high
    refuse_one_class(design, positives, below)
    return wins / (2 * positives * below)


SAMPLE = 1024
"""At most so many scores of each piece, and a few, say which ranges are counted by themselves."""


CLASSES = ("positive", "negative")


def _score(design: FileDesign, coef: np.ndarray, part: Range, out: Path) -> None:
    """Write each class's distinct scores of some rows in order, and how many rows have them."""
    scores, positive = [], []
    for X, chosen in design.blocks(*part):
        scores.append(X @ coef)
        positive.append(chosen)
    found, chosen = np.concatenate(scores), np.concatenate(positive)
    if np.isnan(found).any():
        raise InputError(f"{design.path}, rows {part}: a score is no number. Check the weights.")
    out.mkdir()
    sample = []
    for name, own in zip(CLASSES, (found[chosen], found[~chosen]), strict=True):
        values = np.sort(own)
        sample.append(values[:: len(found) // SAMPLE + 1])
        starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(own)])
        counts = np.diff(starts, append=len(values))
        np.save(out / f"{name}.npy", values[starts])
        # Ties are rare among scores: one byte of each is enough.
        np.save(
            out / f"{name}-counts.npy", counts.astype(np.min_scalar_type(counts.max(initial=0)))
        )
    np.save(out / "sample.npy", np.concatenate(sample))


def _in_order(parts: list[Path], name: str, bounds: tuple[float, float]) -> list[np.ndarray]:
    """Return a class's scores in (low, high] in order, and how many rows have each."""
    side: Literal["left", "right"] = "left" if bounds[0] == -np.inf else "right"
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for path in parts:
        values = mapped(path / f"{name}.npy")
        begin = np.searchsorted(values, bounds[0], side)
        end = np.searchsorted(values, bounds[1], "right")
        held.append((values[begin:end], mapped(path / f"{name}-counts.npy")[begin:end]))
    values, counts = map(np.concatenate, zip(*held, strict=True))
    if (counts == 1).all():
        return [np.sort(values), counts]
    order = np.argsort(values)
    return [values[order], counts[order]]


def _wins(parts: list[Path], bounds: tuple[float, float]) -> tuple[int, int, int]:
    """Count positives, negatives and twice the wins among rows of scores in (low, high]."""
    (high, highs), (low, lows) = (_in_order(parts, name, bounds) for name in CLASSES)
    highs, below = highs.astype(np.int64), np.concatenate([[0], np.cumsum(lows, dtype=np.int64)])
    twice = below[np.searchsorted(low, high)] + below[np.searchsorted(low, high, "right")]
    # In two halves, as products of counts may need more than 63 bits.
    wins = (int((highs * (twice >> 20)).sum()) << 20) + int((highs * (twice & 0xFFFFF)).sum())
    return int(highs.sum()), int(below[-1]), wins
