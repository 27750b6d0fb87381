"""The data of a conditional logit: candidate rows grouped by the choice they were offered in."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked


@dataclass(frozen=True)
class Choices:
    """Choices, each among a few candidates.

    The probability that candidate j of choice i is picked is the softmax over the candidates of i
    of ``offset[j] + x[j] @ w`` (equation 2.3.2, with the relevance score as the offset).

    Parameters
    ----------
    x : float64 array of shape (rows, d)
        Features of the candidates, all choices stacked.
    offset : float64 array of shape (rows,)
        The part of the score whose weight is fixed at 1.
    start : int64 array of shape (n + 1,)
        Choice ``i`` owns the rows ``start[i]:start[i + 1]``; at least one each.
    chosen : int64 array of shape (n,)
        The row that was picked, within ``start[i]:start[i + 1]``.
    group : int64 array of shape (g + 1,), optional
        Group ``u`` (a user) owns the choices ``group[u]:group[u + 1]``; may be empty. Default: one
        group of all.

    Raises
    ------
    InputError
        If shapes disagree, a position is no whole number, a chosen row lies outside its choice, or
        a number is not finite.

    Examples
    --------
    >>> Choices(x=[[0.0], [1.0]], offset=[0.0, 0.0], start=[0, 2], chosen=[1]).probabilities([2.0])
    array([0.11920292, 0.88079708])
    """

    x: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    chosen: np.ndarray
    group: np.ndarray = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        for name in ("x", "offset"):
            refuse_masked(name, getattr(self, name))
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        for name in ("start", "chosen"):
            object.__setattr__(self, name, positions(name, getattr(self, name)))
        group = [0, len(self.chosen)] if self.group is None else self.group
        object.__setattr__(self, "group", positions("group", group))
        x, offset, start, chosen, group = self.arrays
        if x.ndim != 2 or offset.shape != x.shape[:1]:
            raise InputError(
                f"x has shape {x.shape} and offset {offset.shape}: expected (rows, d) and (rows,)."
            )
        if len(start) != len(chosen) + 1 or start[0] != 0 or start[-1] != len(x):
            raise InputError("start must run from 0 to the number of rows, one more than choices.")
        outside = (chosen < start[:-1]) | (chosen >= start[1:])
        if outside.any():
            bad = int(np.argmax(outside))
            raise InputError(f"choice {bad}: its chosen row is not among its own candidates.")
        if not ascends(group, len(chosen)):
            raise InputError("group must ascend from 0 to the number of choices.")
        if not (np.isfinite(x).all() and np.isfinite(offset).all()):
            raise InputError("x and offset must be finite; look for NaN or inf in the features.")

    @classmethod
    def checked(cls, *arrays: np.ndarray) -> Self:
        """Return choices of arrays that were choices' before: they are not looked at again."""
        choices = object.__new__(cls)
        for part, array in zip(fields(cls), arrays, strict=True):
            object.__setattr__(choices, part.name, array)
        return choices

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The arrays, in their order, as kernels take them."""
        return self.x, self.offset, self.start, self.chosen, self.group

    @property
    def widest(self) -> int:
        """The largest number of candidates in one choice."""
        return int(np.diff(self.start).max(initial=1))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return ``offset + x @ weights``, one number a row."""
        return self.offset + self.x @ np.asarray(weights, float)

    def probabilities(self, weights: np.ndarray) -> np.ndarray:
        """Return the probability of every row within its choice."""
        return np.exp(self.log_probabilities(weights))

    def log_probabilities(self, weights: np.ndarray) -> np.ndarray:
        """Return the logarithm of `probabilities`, finite where they are too small for a float."""
        score, first, counts = self.scores(weights), self.start[:-1], np.diff(self.start)
        below_top = score - np.repeat(np.maximum.reduceat(score, first), counts)
        return below_top - np.repeat(np.log(np.add.reduceat(np.exp(below_top), first)), counts)

    def loss(self, weights: np.ndarray, *, l2: float = 0.0) -> float:
        """Return [Zhang2017] (2.3.6): minus the log-likelihood plus ``l2 / 2 * |w|^2``."""
        weights = np.asarray(weights, float)
        chosen = self.log_probabilities(weights)[self.chosen]
        return float(-chosen.sum() + l2 / 2 * weights @ weights)

    def gradient(self, weights: np.ndarray, *, l2: float = 0.0) -> np.ndarray:
        """Return the gradient of `loss` (2.7.3): expected minus chosen features, and ``l2 * w``."""
        weights = np.asarray(weights, float)
        expected = self.probabilities(weights) @ self.x
        return expected - self.x[self.chosen].sum(axis=0) + l2 * weights


def pieces_of(choices: Choices | Sequence[Choices]) -> Sequence[Choices]:
    """Return choices as pieces whose groups follow one another.

    Raises
    ------
    InputError
        If there is none, or they have other features. Kernels do not look where they read.
    """
    pieces = [choices] if isinstance(choices, Choices) else choices
    widths = {piece.x.shape[1] for piece in pieces}
    if len(widths) != 1:
        raise InputError(
            f"the pieces of choices have {sorted(widths) or 'no'} features, expected at least one "
            "piece, and as many features in each. Make all pieces with the same columns."
        )
    return pieces


def group_starts(choices: Choices | Sequence[Choices]) -> np.ndarray:
    """Return where each group begins among the choices of all pieces, int64 of shape (g + 1,)."""
    sizes = [np.diff(piece.group) for piece in pieces_of(choices)]
    return np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)


def positions(name: str, values: ArrayLike, dtype: type = np.int64) -> np.ndarray:
    """Return a list of positions.

    Raises
    ------
    InputError
        If they are no whole numbers, as 0.9 would become 0, or too large for the type: in 32 bits,
        2**32 would become 0.
    """
    refuse_masked(name, values)
    given = np.asarray(values)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InputError(
            f"{name} is {given.dtype} of shape {given.shape}, expected a list of whole numbers."
        )
    limits = np.iinfo(dtype)
    if given.size and not limits.min <= given.min() <= given.max() <= limits.max:
        raise InputError(f"{name} must lie in {limits.min}..{limits.max}.")
    return np.ascontiguousarray(given, dtype)


def ascends(start: np.ndarray, end: int) -> bool:
    """Whether positions ascend from 0 to an end, where some may be equal."""
    within = start.size > 0 and start[0] == 0 and start[-1] == end
    return within and not (np.diff(start) < 0).any()


def row_a_group(name: str, rows: ArrayLike, shape: tuple[int, int]) -> np.ndarray:
    """Return weights of the shape (g, d), given a row for each group, one row or one number.

    Raises
    ------
    InputError
        If they have another shape, or a number is not finite.
    """
    refuse_masked(name, rows)
    given = np.asarray(rows, float)
    try:
        found = np.broadcast_to(given, shape)
    except ValueError:
        raise InputError(
            f"{name} has shape {given.shape}, expected {shape[1:]} or {shape}, or one number."
        ) from None
    if not np.isfinite(given).all():
        raise InputError(f"{name} must be finite; look for NaN or inf.")
    return found
