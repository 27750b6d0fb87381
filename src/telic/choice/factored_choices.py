"""Choices whose features are candidate × context, kept factored: never the products."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from telic.choice.choices import Choices, ascends, positions
from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked
from telic.kernels import kernel


class FactoredRows(NamedTuple):
    """What kernels read of `FactoredChoices`."""

    outcome: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    context_start: np.ndarray
    context_entry: np.ndarray
    context_value: np.ndarray
    shared_start: np.ndarray
    shared_feature: np.ndarray
    shared_value: np.ndarray
    entries: int
    first: int


@dataclass(frozen=True)
class FactoredChoices:
    """Choices in which a weight belongs to each pair of an outcome and an entry of the context.

    The score of row r, a candidate in choice c whose outcome is o = ``outcome[r]``, is equation
    [Zhang2017] (3.3.1): ``offset[r] + sum over the context of c of value * W[o, entry]
    + sum over the shared features of r of value * v[feature]``. With queries as outcomes and
    installed apps as context, W holds [Zhang2017]'s beta_{q,a}; with recency orders as shared
    features, v holds its beta_k. A context of 95 entries and 11 candidates is 95 numbers here,
    where the rows of `telic.choice.Choices` would hold 1,045 products each over.

    All weights are one vector w: W row by row, then v.

    Parameters
    ----------
    outcomes, entries, shared : int
        Numbers of outcomes, of entries of the context and of shared features.
    outcome : int32 array of shape (rows,)
    offset : float64 array of shape (rows,)
        The part of the score whose weight is fixed at 1.
    start : int64 array of shape (n + 1,)
        Choice ``i`` owns the rows ``start[i]:start[i + 1]``; at least one each, no outcome twice.
    chosen : int64 array of shape (n,)
        The row that was picked, within ``start[i]:start[i + 1]``.
    context_start : int64 array of shape (n + 1,)
        Choice ``i`` has the context ``context_start[i]:context_start[i + 1]``.
    context_entry : int32 array
        Position of the entry, none twice in one choice.
    context_value : float64 array
    shared_start : int64 array of shape (rows + 1,)
    shared_feature : int32 array
    shared_value : float64 array

    Raises
    ------
    InputError
        If lengths disagree, a position is out of range or comes twice, or a number is not finite.

    Examples
    --------
    One choice between two outcomes, with one entry of context of value 2:

    >>> choices = FactoredChoices(
    ...     outcomes=2, entries=1, shared=0, outcome=[0, 1], offset=[0.0, 0.0], start=[0, 2],
    ...     chosen=[1], context_start=[0, 1], context_entry=[0], context_value=[2.0],
    ... )
    >>> choices.probabilities(np.array([0.0, 1.0]))
    array([0.11920292, 0.88079708])
    """

    outcomes: int
    entries: int
    shared: int
    outcome: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    chosen: np.ndarray
    context_start: np.ndarray
    context_entry: np.ndarray
    context_value: np.ndarray
    shared_start: np.ndarray = None  # type: ignore[assignment]  # set below
    shared_feature: np.ndarray = None  # type: ignore[assignment]
    shared_value: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.shared_start is None:
            object.__setattr__(self, "shared_start", np.zeros(len(self.outcome) + 1, np.int64))
            object.__setattr__(self, "shared_feature", np.zeros(0, np.int32))
            object.__setattr__(self, "shared_value", np.zeros(0))
        for dtype, names in (
            (np.int64, ("start", "chosen", "context_start", "shared_start")),
            (np.int32, ("outcome", "context_entry", "shared_feature")),
        ):
            for name in names:
                object.__setattr__(self, name, positions(name, getattr(self, name), dtype))
        for name in ("offset", "context_value", "shared_value"):
            refuse_masked(name, getattr(self, name))
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))
        # The rows and the chosen ones are checked where every conditional logit is.
        Choices(np.empty((len(self.outcome), 0)), self.offset, self.start, self.chosen)
        for what, one, owners, size in (
            ("context", "entry", len(self), self.entries),
            ("shared", "feature", self.rows, self.shared),
        ):
            start, position, value = (
                getattr(self, f"{what}_{part}") for part in ("start", one, "value")
            )
            if len(start) != owners + 1 or not ascends(start, len(position)):
                raise InputError(f"{what}_start must ascend from 0 to the number of entries.")
            if len(position) != len(value) or not np.isfinite(value).all():
                raise InputError(f"{what} values must be finite, one for each entry.")
            if _twice(start, position, size):
                raise InputError(f"{what} entries must lie in 0..{size - 1}, none twice in a row.")
        if _twice(self.start, self.outcome, self.outcomes):
            raise InputError(f"outcomes must lie in 0..{self.outcomes - 1}, none twice in a choice")

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def rows(self) -> int:
        """Number of candidates of all choices."""
        return len(self.outcome)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.outcomes * self.entries + self.shared

    @property
    def choice(self) -> np.ndarray:
        """int64 (rows,): the choice that each row belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the score of every row."""
        out = np.empty(self.rows)
        _scores(self.arrays, _numbers("weights", weights, self.size), out)
        return out

    def probabilities(self, weights: np.ndarray) -> np.ndarray:
        """Return the probability of every row within its choice."""
        rows = Choices(np.empty((self.rows, 0)), self.scores(weights), self.start, self.chosen)
        return rows.probabilities(np.empty(0))

    def loss(self, weights: np.ndarray) -> float:
        """Return the *mean* over choices of minus the log-likelihood, as in (3.3.5)."""
        scores = self.scores(weights)
        scores -= np.maximum.reduceat(scores, self.start[:-1])[self.choice]
        total = np.add.reduceat(np.exp(scores), self.start[:-1])
        return float((np.log(total) - scores[self.chosen]).mean())

    def gradient(self, weights: np.ndarray) -> np.ndarray:
        """Return the gradient of `loss`."""
        return -self.slope(self.probabilities(weights))

    def slope(self, p: np.ndarray) -> np.ndarray:
        """Return the mean of the chosen features minus those expected at the probabilities p."""
        residual = -p
        residual[self.chosen] += 1
        return self.transposed(residual / len(self))

    def entropy(self, p: np.ndarray) -> float:
        """Return the *mean* over choices of the entropy of p, plus p's offsets minus the chosen's.

        Minus the conjugate of `loss`, as a function of the probabilities p of the rows.
        """
        # Differences from the largest: where offsets are large, p is small.
        offset = self.offset - np.maximum.reduceat(self.offset, self.start[:-1])[self.choice]
        log = np.log(p, out=np.zeros(self.rows), where=p > 0)
        return float((p @ (offset - log) - offset[self.chosen].sum()) / len(self))

    def transposed(self, residual: np.ndarray) -> np.ndarray:
        """Return the product of the transposed features with a number per row."""
        out = np.zeros(self.size)
        _transposed(self.arrays, _numbers("residual", residual, self.rows), out)
        return out

    def take(self, choices: np.ndarray) -> "FactoredChoices":
        """Return some of the choices, by position."""
        rows, start = _ranges(self.start, choices)
        context, context_start = _ranges(self.context_start, choices)
        shared, shared_start = _ranges(self.shared_start, rows)
        return FactoredChoices(
            self.outcomes,
            self.entries,
            self.shared,
            self.outcome[rows],
            self.offset[rows],
            start,
            start[:-1] + (self.chosen - self.start[:-1])[choices],
            context_start,
            self.context_entry[context],
            self.context_value[context],
            shared_start,
            self.shared_feature[shared],
            self.shared_value[shared],
        )

    def matrix(self) -> "scipy.sparse.csr_matrix":
        """Return the products, rows × weights: the slow definition, for small data only."""
        counts = np.diff(self.context_start)[self.choice]
        context, _ = _ranges(self.context_start, self.choice)
        own = np.repeat(np.arange(self.rows), np.diff(self.shared_start))
        row = np.concatenate([np.repeat(np.arange(self.rows), counts), own])
        pair = np.repeat(self.outcome.astype(np.int64), counts) * self.entries
        pairs, shared = pair + self.context_entry[context], self.first + self.shared_feature
        column = np.concatenate([pairs, shared])
        value = np.concatenate([self.context_value[context], self.shared_value])
        return scipy.sparse.csr_matrix((value, (row, column)), shape=(self.rows, self.size))

    @property
    def first(self) -> int:
        """Position of the first shared weight."""
        return self.outcomes * self.entries

    @property
    def arrays(self) -> "FactoredRows":
        """The same as kernels take it."""
        return FactoredRows(*(getattr(self, name) for name in FactoredRows._fields))


def _numbers(name: str, values: ArrayLike, size: int) -> np.ndarray:
    """Return so many numbers, as kernels take them, which look nowhere whether they are there."""
    given = np.ascontiguousarray(values, np.float64)
    if given.shape != (size,):
        raise InputError(f"{name} has shape {given.shape}, expected {(size,)}.")
    return given


def squared_norms(choices: FactoredChoices) -> tuple[np.ndarray, np.ndarray]:
    """Squared norms of the context of each choice, and of the shared features of each row."""
    found = []
    for start, value in (
        (choices.context_start, choices.context_value),
        (choices.shared_start, choices.shared_value),
    ):
        sums = np.add.reduceat(np.append(value**2, 0.0), start[:-1])
        found.append(sums * (np.diff(start) > 0))
    return found[0], found[1]


def _ranges(start: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the entries of some owners, and where each owner's begin among them."""
    lengths = np.diff(start)[chosen]
    begins = np.concatenate([[0], np.cumsum(lengths)])
    shift = np.repeat(np.asarray(start)[:-1][chosen] - begins[:-1], lengths)
    return np.arange(begins[-1]) + shift, begins


@kernel
def _twice(start, position, size):
    """Whether a position is out of range or comes twice with one owner."""
    seen = np.full(size, -1)
    for i in range(len(start) - 1):
        for e in range(start[i], start[i + 1]):
            j = position[e]
            if j < 0 or j >= size or seen[j] == i:
                return True
            seen[j] = i
    return False


@kernel
def _scores(rows, w, out):
    """Write the score of every row."""
    for c in range(len(rows.start) - 1):
        for r in range(rows.start[c], rows.start[c + 1]):
            base = np.int64(rows.outcome[r]) * rows.entries
            total = rows.offset[r]
            for e in range(rows.context_start[c], rows.context_start[c + 1]):
                total += rows.context_value[e] * w[base + rows.context_entry[e]]
            for e in range(rows.shared_start[r], rows.shared_start[r + 1]):
                total += rows.shared_value[e] * w[rows.first + rows.shared_feature[e]]
            out[r] = total


@kernel
def _transposed(rows, residual, out):
    """Add every row's features, times its residual, to out."""
    for c in range(len(rows.start) - 1):
        for r in range(rows.start[c], rows.start[c + 1]):
            base = np.int64(rows.outcome[r]) * rows.entries
            for e in range(rows.context_start[c], rows.context_start[c + 1]):
                out[base + rows.context_entry[e]] += rows.context_value[e] * residual[r]
            for e in range(rows.shared_start[r], rows.shared_start[r + 1]):
                out[rows.first + rows.shared_feature[e]] += rows.shared_value[e] * residual[r]
