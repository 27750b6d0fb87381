"""A meta-path's links of users to objects, and what PathSelClus computes from them."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln

from telic.kernels import kernel

FLOOR = 1e-12
"""Added inside logarithms and divisions."""
MAX_QUALITY = 1e8
"""Cap on a path's α."""
DENSE = 0.2
"""Share of non-zeros from which a path is held as a full array."""


# Sums may be reordered, which lets the loops over clusters use vector instructions.
@kernel(fastmath={"reassoc", "contract"})
def _sparse_gains(start, column, weight, rows, columns, row_gain, column_gain):
    """Add R · columns and Rᵀ · rows to the gains, where R = W / (rows · columnsᵀ)."""
    n_clusters = rows.shape[1]
    for i in range(rows.shape[0]):
        row, gain = rows[i], row_gain[i]
        for p in range(start[i], start[i + 1]):
            other, other_gain = columns[column[p]], column_gain[column[p]]
            explained = 1e-12
            for k in range(n_clusters):
                explained += row[k] * other[k]
            ratio = weight[p] / explained
            for k in range(n_clusters):
                gain[k] += ratio * other[k]
            for k in range(n_clusters):
                other_gain[k] += ratio * row[k]


@kernel
def _sparse_likelihood(start, column, weight, rows, columns):
    """Σ w ln π over the non-zeros."""
    total = 0.0
    for i in range(rows.shape[0]):
        for p in range(start[i], start[i + 1]):
            explained = 1e-12
            for k in range(rows.shape[1]):
                explained += rows[i, k] * columns[column[p], k]
            total += weight[p] * np.log(explained)
    return total


@dataclass(frozen=True, eq=False)
class Path:
    """One meta-path, scaled so that its weights sum to the number of users."""

    weight: np.ndarray | sparse.csr_array
    """Users × objects; dense where a fifth or more is filled, because matrix products then win;
    objects × users where there are more objects, because the smaller side then stays in cache."""
    by_object: bool
    row_sum: np.ndarray
    n_objects: int
    values: np.ndarray
    """Distinct weights and how often each occurs: J needs only these."""
    repeats: np.ndarray

    @classmethod
    def of(cls, counts: sparse.csr_array) -> "Path":
        """Drop empty columns and scale."""
        W = sparse.csr_array(counts, dtype=np.float64, copy=True)
        W.sum_duplicates()
        W.eliminate_zeros()
        W = W[:, np.flatnonzero(W.sum(axis=0) > 0)]
        W.data *= W.shape[0] / W.data.sum()
        values, repeats = np.unique(W.data, return_counts=True)
        row_sum = W.sum(axis=1)
        n_users, n_objects = W.shape
        if W.nnz >= DENSE * n_users * n_objects:
            return cls(W.toarray(), False, row_sum, n_objects, values, repeats)
        by_object = n_objects > n_users
        W = sparse.csr_array(W.T) if by_object else W
        return cls(W, by_object, row_sum, n_objects, values, repeats)

    def profile(self, theta: np.ndarray) -> np.ndarray:
        """Objects × clusters: the objects of users, shared out by θ."""
        shared = self.weight @ theta if self.by_object else self.weight.T @ theta
        return normalise_columns(shared + FLOOR)

    def gains(self, theta: np.ndarray, feature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R B and Rᵀ θ with R = W / (θ Bᵀ) on the non-zeros of W."""
        W = self.weight
        if isinstance(W, np.ndarray):
            ratio = theta @ feature.T
            ratio += FLOOR
            np.divide(W, ratio, out=ratio)
            return ratio @ feature, ratio.T @ theta
        theta_gain, feature_gain = np.zeros_like(theta), np.zeros_like(feature)
        sides = [(theta, theta_gain), (feature, feature_gain)]
        (rows, row_gain), (columns, column_gain) = sides[:: -1 if self.by_object else 1]
        _sparse_gains(W.indptr, W.indices, W.data, rows, columns, row_gain, column_gain)
        return theta_gain, feature_gain

    def likelihood(self, theta: np.ndarray, feature: np.ndarray) -> float:
        """Σ w ln π over the path's non-zeros."""
        W = self.weight
        if isinstance(W, np.ndarray):
            return float((W * np.log(theta @ feature.T + FLOOR)).sum())
        rows, columns = (feature, theta) if self.by_object else (theta, feature)
        return _sparse_likelihood(W.indptr, W.indices, W.data, rows, columns)

    def objective(self, quality: float, likelihood: float) -> float:
        """The path's part of J, given Σ w ln π."""
        spread = gammaln(quality * self.row_sum + self.n_objects).sum()
        spread -= self.repeats @ gammaln(quality * self.values + 1)
        return float(spread + quality * likelihood)

    def refit_quality(self, quality: float, likelihood: float) -> float:
        """Fixed point of dJ/dα = 0, given Σ w ln π."""
        for _ in range(200):
            pull = digamma(quality * self.row_sum + self.n_objects) @ self.row_sum
            pull -= self.repeats @ (digamma(quality * self.values + 1) * self.values)
            new = float(np.clip(quality * pull / max(-likelihood, FLOOR), 0.0, MAX_QUALITY))
            if abs(new - quality) <= 5e-4 * max(quality, FLOOR):
                return new
            quality = new
        return quality

    def by_user(self) -> sparse.csr_array:
        """Users × objects."""
        return sparse.csr_array(self.weight.T if self.by_object else self.weight)


def normalise_columns(matrix: np.ndarray) -> np.ndarray:
    """Divide each column by its sum."""
    return matrix / np.maximum(matrix.sum(axis=0), FLOOR)
