"""Which positives and negatives a range of rates holds: exactly, or rounded and so smooth."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from telic.auc.methods.pairwise_sums import Sums

ROUNDS = 20
"""Times at most that positives are chosen by the chosen negatives, and these by those."""


def in_range(
    rows: np.ndarray, counts: np.ndarray, start: float, stop: float
) -> tuple[np.ndarray, np.ndarray]:
    """Keep a class's rows, in the order of their scores, within rates counted from the highest.

    Returns
    -------
    rows : ndarray
    share : ndarray
        What part of the range is theirs; the rows at its ends are in it in part.
    """
    if (start, stop) == (0.0, 1.0):
        return rows, counts[rows] / counts[rows].sum()
    ends = np.cumsum(counts[rows][::-1])[::-1]
    ends /= ends[0]
    begins = np.r_[ends[1:], 0.0]
    inside = np.clip(np.minimum(ends, stop) - np.maximum(begins, start), 0.0, None)
    kept = inside > 0
    return rows[kept], inside[kept] / inside[kept].sum()


def row_losses(
    sums: Callable[..., Sums],
    high: np.ndarray,
    low: np.ndarray,
    high_weight: np.ndarray | None = None,
    low_weight: np.ndarray | None = None,
) -> np.ndarray:
    """Mean loss of each positive with negatives of these weights; or the other way round."""
    if high_weight is None:
        return sums(high, low, low_weight=low_weight)[0]
    # Margins stay what they are where classes and signs change places.
    return sums(-low[::-1], -high[::-1], low_weight=high_weight[::-1])[0][::-1]


def in_rounded_ranges(
    losses_of: Callable[..., np.ndarray],
    high: tuple[np.ndarray, float],
    low: tuple[np.ndarray, float],
    corner: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Weights of positives and negatives in their ranges, and by how much rounding lowers the mean.

    `high` and `low` hold the share of each row in its class, and the share of them that counts.
    """
    weights, lowered = [high[0], low[0]], [0.0, 0.0]
    for _ in range(ROUNDS):
        before = weights.copy()
        if low[1] < 1:
            losses = losses_of(high_weight=weights[0])
            weights[1], lowered[1] = _in_rounded_range(losses, *low, corner)
        if high[1] < 1:
            losses = losses_of(low_weight=weights[1])
            weights[0], lowered[0] = _in_rounded_range(losses, *high, corner)
        moved = (np.abs(new - old).sum() for new, old in zip(weights, before, strict=True))
        if high[1] == 1 or low[1] == 1 or sum(moved) < 1e-12:
            break
    return weights[0], weights[1], sum(lowered)


def _in_rounded_range(
    losses: np.ndarray, share: np.ndarray, rate: float, corner: float
) -> tuple[np.ndarray, float]:
    """Weights of the rows of largest loss, and by how much rounding lowers their mean loss.

    Of all weights a with 0 ≤ a_j ≤ share_j/rate and Σ a_j = 1, those that maximise
    Σ a_j·losses_j − corner·rate/2·Σ a_j²/share_j: rows are part of the range by how far their loss
    is above a level, in full from one corner's width on.
    """
    most = float(losses.max())
    if share.sum() <= rate or not np.isfinite(most):
        return share, 0.0

    def part_above(level: float) -> np.ndarray:
        return np.clip((losses - level) / corner, 0.0, 1.0)

    # Far below all of them, so that rounding does not keep large losses from being above.
    least = float(losses.min()) - corner - 1e-9 * most
    level = brentq(lambda at: share @ part_above(at) - rate, least, most, xtol=1e-15, rtol=1e-15)
    part = part_above(level)
    # Where losses are so large that a corner's width is rounding, no weight exceeds its bound.
    return share * part / max(share @ part, rate), float(corner / (2 * rate) * (share @ part**2))
