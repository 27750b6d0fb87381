"""The one objective of the square-loss methods, and the class moments that hold all of it.

With p the share of positives, every square-loss method here minimises

    F(w) = p(1 − p)·E[(1 − wᵀ(x − x'))²] + (beta/2)·‖w‖² + beta1·‖w‖₁,

the expectation over a positive x and a negative x'. Written with class means m₊, m₋,
δ = m₊ − m₋ and population covariances S₊, S₋, the expectation is
wᵀ(S₊ + S₋)w + (1 − δᵀw)²: two passes over the scores instead of n₊·n₋ pairs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import Matrix
from telic.kernels import kernel
from telic.optim.rows import FAST, entries, entry, sparse_rows

FAR = 1e4
"""A column's spread within the classes has lost its digits below so many times its rounding."""

Callback = Callable[[float, np.ndarray], bool | None]
"""Called with the passes so far, as in `Solution`, and the weights; True ends the solver."""


class Solution(NamedTuple):
    """What a solver returns."""

    coef: np.ndarray
    passes: float
    """Passes over the data, each n gradients of single rows or one of all rows."""
    converged: bool | None = None
    """Whether `gap` is at most tol times the objective; None for a method without that rule."""
    gap: float = np.nan
    """Bound on objective minus optimum (`telic.auc.optimality_bound`); NaN where there is none."""
    objective: float = np.nan
    """What `gap` belongs to."""
    stopped: bool = False
    """Whether a callback ended the solver."""
    exhausted: bool = False
    """Whether a limit of iterations ended a method that stops by a rule other than a bound."""


class ClassMeans(NamedTuple):
    """Counts (total weights) and means of the two classes."""

    n_pos: float
    n_neg: float
    pos: np.ndarray
    neg: np.ndarray

    @property
    def share(self) -> float:
        """Share of positives, p."""
        return self.n_pos / (self.n_pos + self.n_neg)

    @property
    def pair_weight(self) -> float:
        """p(1 − p): turns the mean over pairs into f."""
        return self.n_pos * self.n_neg / (self.n_pos + self.n_neg) ** 2

    @property
    def delta(self) -> np.ndarray:
        """Difference of the class means, m₊ − m₋."""
        return self.pos - self.neg

    @property
    def overall(self) -> np.ndarray:
        """Mean of all rows."""
        return self.share * self.pos + (1 - self.share) * self.neg


def class_means(X: Matrix, positive: np.ndarray, weight: np.ndarray | None = None) -> ClassMeans:
    """Count and average each class of a dense or sparse X; a row of weight 2 counts as two."""
    in_class = np.stack([positive, ~positive]) * (1.0 if weight is None else weight)
    n_pos, n_neg = (float(total) for total in in_class.sum(axis=1))
    pos, neg = (in_class / [[n_pos], [n_neg]]) @ X
    return ClassMeans(n_pos, n_neg, pos, neg)


def row_shares(
    positive: np.ndarray, means: ClassMeans, weight: np.ndarray | None = None
) -> np.ndarray:
    """Weight of each row in the mean of its class."""
    share = np.where(positive, 1 / means.n_pos, 1 / means.n_neg)
    return share if weight is None else share * weight


@dataclass(frozen=True, slots=True)
class Moments:
    """Class means and the within-class covariance: the objective without the rows.

    `within` is S₊ + S₋, shape (d, d); `noise`, shape (d,), what rounding may have left on its
    diagonal.
    """

    means: ClassMeans
    within: np.ndarray
    noise: np.ndarray

    def objective(self, w: np.ndarray, *, beta: float, beta1: float = 0.0) -> float:
        """Return F(w)."""
        pairs = w @ self.within @ w + (1 - self.means.delta @ w) ** 2
        return float(self.means.pair_weight * pairs + penalty(w, beta, beta1))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        """Return the gradient of the loss, without the penalty."""
        delta = self.means.delta
        return 2 * self.means.pair_weight * (self.within @ w - (1 - delta @ w) * delta)


def moments(X: Matrix, positive: np.ndarray, weight: np.ndarray | None = None) -> Moments:
    """Read the rows once and keep what the objective needs, O(n·d²) time and O(d²) memory.

    Dense rows go through in blocks that stay in cache, centred on the first block's mean so that
    large offsets do not eat the digits; so do sparse rows of which a column lies so far from 0
    that they would.
    """
    n, d = X.shape
    if sparse.issparse(X):
        means = class_means(X, positive, weight)
        raw = squares(X, np.sqrt(row_shares(positive, means, weight)))
        within = raw - np.outer(means.pos, means.pos) - np.outer(means.neg, means.neg)
        noise = rounding(np.diag(raw), n)
        far = np.flatnonzero(np.diag(within) < FAR * noise)
        if not (far.size and _vary(sparse.csc_array(X)[:, far])):
            return Moments(means, within, noise)
        X = sparse.csr_array(X)
    counts = np.ones(n) if weight is None else weight
    n_pos, n_neg = float(counts[positive].sum()), float(counts[~positive].sum())
    root = np.sqrt(counts / np.where(positive, n_pos, n_neg))
    size = max(256, 200_000 // d)
    offset = np.asarray(X[:size].mean(axis=0, dtype=np.float64))
    total, sums = np.zeros((d, d)), np.zeros((2, d))
    buffer = np.empty((min(size, n), d))
    for start in range(0, n, size):
        part, rooted = X[start : start + size], root[start : start + size]
        if sparse.issparse(part):
            part = part.toarray()
        block = buffer[: len(part)]
        _weigh(np.require(part, np.float64, ["C", "A", "W"]), offset, rooted, block)
        total += block.T @ block
        in_class = positive[start : start + size]
        sums += np.stack([rooted * in_class, rooted * ~in_class]) @ block
    within = total - sums.T @ sums
    means = ClassMeans(n_pos, n_neg, sums[0] + offset, sums[1] + offset)
    return Moments(means, within, rounding(np.diag(total), n))


def _vary(columns: sparse.csc_array) -> bool:
    """Whether a column has two different values: a constant one has no digits to lose."""
    return bool((columns.max(axis=0) != columns.min(axis=0)).nnz)


def squares(X: Matrix, root: np.ndarray) -> np.ndarray:
    """Sum of the outer products of sparse rows times `root` with themselves."""
    X = sparse.csr_array(X)
    data = X.data * np.repeat(root, np.diff(X.indptr))
    rows = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
    total = np.zeros((X.shape[1], X.shape[1]))
    _add_products(sparse_rows(rows.tocsc()), sparse_rows(rows), total)
    return total


@kernel(fastmath={"contract"})
def _add_products(columns, rows, total):
    """Add XᵀX to total, a row of it at a time, which stays in cache."""
    for j in range(total.shape[0]):
        own = total[j]
        first, last = entries(columns, j)
        for p in range(first, last):
            i, x = entry(columns, j, p)
            start, end = entries(rows, i)
            for q in range(start, end):
                k, v = entry(rows, i, q)
                own[k] += x * v


def rounding(squares: np.ndarray, n: int) -> np.ndarray:
    """Bound what rounding may have left of sums of n squares."""
    return (32 + 8 * np.sqrt(n)) * np.finfo(float).eps * squares


@kernel(fastmath=FAST)
def _weigh(rows, offset, weights, out):
    """(rows − offset)·weights into out, at once: NumPy reads short rows twice and slowly."""
    for i in range(rows.shape[0]):
        for j in range(offset.size):
            out[i, j] = (rows[i, j] - offset[j]) * weights[i]


def penalty(w: np.ndarray, beta: float, beta1: float = 0.0) -> float:
    """(beta/2)·‖w‖² + beta1·‖w‖₁."""
    return beta / 2 * float(w @ w) + beta1 * float(np.abs(w).sum())


def objective(
    X: Matrix,
    positive: np.ndarray,
    w: np.ndarray,
    *,
    beta: float,
    beta1: float = 0.0,
    weight: np.ndarray | None = None,
) -> float:
    """Return F(w) from the rows, in one pass.

    Examples
    --------
    >>> X, positive = np.array([[2.0], [1.0], [0.0]]), np.array([True, False, False])
    >>> round(objective(X, positive, np.array([1.0]), beta=0.0), 4)  # 2/9 of (0² + 1²)/2
    0.1111
    """
    share = float(np.average(positive, weights=weight))
    loss = pair_loss(X @ w, positive, weight)
    return float(share * (1 - share) * loss + penalty(w, beta, beta1))


def pair_loss(scores: np.ndarray, positive: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Mean of (1 − (s − s'))² over the pairs of a positive and a negative score."""
    spread, mean = 0.0, {}
    for side in (True, False):
        mine = positive == side
        own = None if weight is None else weight[mine]
        mean[side] = np.average(scores[mine], weights=own)
        spread += np.average((scores[mine] - mean[side]) ** 2, weights=own)
    return float(spread + (1 - mean[True] + mean[False]) ** 2)


def loss_gradient(
    X: Matrix,
    positive: np.ndarray,
    scores: np.ndarray,
    means: ClassMeans,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Gradient of the loss at w, given scores = X @ w: one product with X transposed."""
    return X.T @ row_slopes(positive, scores, row_shares(positive, means, weight), means)


def row_slopes(
    positive: np.ndarray, scores: np.ndarray, shares: np.ndarray, means: ClassMeans
) -> np.ndarray:
    """Derivative of the loss by each score: the per-row scalar of the saddle form, weighted."""
    high, low = (shares * side @ scores for side in (positive, ~positive))
    missing = np.where(positive, scores - low - 1, scores - high + 1)
    return 2 * means.pair_weight * shares * missing
