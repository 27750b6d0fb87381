"""Sums of a loss over all pairs of a positive and a negative score, in O(n log n)."""

import numpy as np

Sums = tuple[np.ndarray, np.ndarray, np.ndarray]


def squared_hinge_sums(
    high: np.ndarray,
    low: np.ndarray,
    margin: float,
    high_weight: np.ndarray | None = None,
    low_weight: np.ndarray | None = None,
) -> Sums:
    """Sum over low_j of max(0, margin − (high_i − low_j))², for each high_i; two gradients of all.

    Each element needs only weight, sum and sum of squares of the others that violate the margin
    with it. Both arrays ascend: binary search is many times faster with ordered needles.

    Examples
    --------
    >>> value, of_high, of_low = squared_hinge_sums(np.array([1.0]), np.array([-3.0, 0.5]), 1.0)
    >>> value, of_high, of_low
    (array([0.25]), array([-1.]), array([-0.,  1.]))
    """
    mine, theirs = _counted(high, high_weight), _counted(low, low_weight)
    # Negatives above high_i − margin violate, and so do positives below low_j + margin.
    first = np.searchsorted(low, high - margin, side="right")
    count = _sums_from(theirs)[first]
    above, above_square = _sums_from(theirs * low)[first], _sums_from(theirs * low**2)[first]
    short = margin - high
    value = mine * (count * short**2 + 2 * short * above + above_square)
    of_high = -2 * mine * (count * short + above)
    last = np.searchsorted(high, low + margin, side="left")
    count, below = _sums_to(mine)[last], _sums_to(mine * high)[last]
    of_low = 2 * theirs * (count * (margin + low) - below)
    return value, of_high, of_low


def _counted(scores: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Weights of scores, or ones, as exact as the scores are."""
    return np.ones_like(scores) if weight is None else weight.astype(scores.dtype)


def _sums_from(values: np.ndarray) -> np.ndarray:
    """Sum of the values from each position to the end, and 0 after it."""
    return np.concatenate([np.cumsum(values[::-1])[::-1], [0.0]])


def _sums_to(values: np.ndarray) -> np.ndarray:
    """Sum of the values before each position, and of all of them."""
    return np.concatenate([[0.0], np.cumsum(values)])


def smoothed_hinge_sums(
    high: np.ndarray,
    low: np.ndarray,
    corner: float,
    high_weight: np.ndarray | None = None,
    low_weight: np.ndarray | None = None,
) -> Sums:
    """As `squared_hinge_sums` for the hinge, its corner rounded over a width of `corner`.

    At most the number of pairs times corner/2 below the hinge: a margin m below 1 costs
    (1 − m)²/(2·corner) in the corner, and 1 − m − corner/2 below it.
    """
    mine, theirs = _counted(high, high_weight), _counted(low, low_weight)
    # In the corner are the negatives from the first to before the second place, then the line.
    corners = [np.searchsorted(low, high - 1.0 + off, side="right") for off in (0.0, corner)]
    count, above, square = (_sums_from(theirs * power) for power in (1.0, low, low**2))
    short = 1.0 - high
    first, then = corners
    inside, near = count[first] - count[then], above[first] - above[then]
    squares = np.maximum(inside * short**2 + 2 * short * near + (square[first] - square[then]), 0.0)
    line = count[then] * (short - corner / 2) + above[then]
    value = mine * (squares / (2 * corner) + line)
    of_high = -mine * ((inside * short + near) / corner + count[then])
    last = np.searchsorted(high, low + 1.0, side="left")
    then = np.searchsorted(high, low + 1.0 - corner, side="left")
    count, below = _sums_to(mine), _sums_to(mine * high)
    inside, near = count[last] - count[then], below[last] - below[then]
    of_low = theirs * ((inside * (1.0 + low) - near) / corner + count[then])
    return value, of_high, of_low


def hinge(high: np.ndarray, low: np.ndarray) -> float:
    """Mean of max(0, 1 − (high_i − low_j)) over all pairs."""
    low = np.sort(low)
    first = np.searchsorted(low, high - 1, side="right")
    total = ((1 - high) * (low.size - first) + _sums_from(low)[first]).sum()
    return float(total / (high.size * low.size))
