"""The exact optimum where there are fewer rows than columns: Cholesky on the products of rows."""

import numpy as np
from scipy import linalg, sparse

from telic.auc.drawn_rows import Matrix
from telic.auc.objective import ClassMeans, Solution, class_means, row_shares, squares
from telic.auc.optimality_bound import certified
from telic.kernels import kernel
from telic.optim.rows import FAST


def exact_by_rows(
    X: Matrix,
    positive: np.ndarray,
    *,
    beta: float,
    tol: float,
    weight: np.ndarray | None = None,
) -> Solution:
    """Solve the system of `telic.auc.methods.exact.exact` by Cholesky on an n × n matrix.

    With the rows of A those of X less the means of their classes, times the roots of their shares,
    S₊ + S₋ = AᵀA, and by Woodbury's identity, with ρ = beta/(2p(1−p)),

        (AᵀA + ρI)⁻¹·r = (r − Aᵀ(AAᵀ + ρI)⁻¹A·r)/ρ.

    What rounding leaves is solved for again, until the gap is certified or stays; it may stay where
    columns of sparse rows lie far from 0.

    Parameters
    ----------
    tol : float
        Certified relative gap that counts as converged.

    Other parameters as in `telic.auc.methods.exact.conjugate_gradient`; beta > 0.
    """
    means = class_means(X, positive, weight)
    ridge, delta = beta / (2 * means.pair_weight), means.delta
    rows = _WithinClasses(X, positive, means, np.sqrt(row_shares(positive, means, weight)))
    gram = rows.gram()
    # The sums over each class, times the roots, are 0 in A: what stands there in the matrix does
    # not matter, but for its factor, where beta is small.
    sums = np.stack([positive, ~positive]) * rows.root
    gram += np.trace(gram) / positive.size * (sums.T @ sums)
    gram[np.diag_indices_from(gram)] += ridge
    try:
        factor = linalg.cho_factor(gram, lower=True, overwrite_a=True)
    except linalg.LinAlgError:  # beta is less than rounding
        return Solution(np.zeros(delta.size), 1, False, np.inf, np.inf)

    def solved(r: np.ndarray) -> np.ndarray:
        return (r - rows.back(linalg.cho_solve(factor, rows.times(r)))) / ridge

    u, best = solved(delta), np.inf
    while True:
        w = u / (1 + delta @ u)  # as in `exact`
        found = certified(X, positive, w, 1, beta=beta, tol=tol, weight=weight, means=means)
        if found.converged or not found.gap < best / 2:
            return found
        best = found.gap
        u = u + solved(delta - rows.back(rows.times(u)) - ridge * u)


class _WithinClasses:
    """The matrix A of `exact_by_rows`; where X is sparse, it is never made."""

    def __init__(
        self, X: Matrix, positive: np.ndarray, means: ClassMeans, root: np.ndarray
    ) -> None:
        self._sparse = sparse.issparse(X)
        self._X, self.root = X, root
        self._in_class = np.stack([positive, ~positive])
        self._means = np.stack([means.pos, means.neg])
        if not self._sparse:
            self._X = np.empty(X.shape)
            _centre(np.require(X, float, ["C", "A", "W"]), self._means, positive, root, self._X)

    def times(self, v: np.ndarray) -> np.ndarray:
        """A·v."""
        if not self._sparse:
            return np.asarray(self._X @ v)
        centre = (self._means @ v) @ self._in_class
        return np.asarray((self._X @ v - centre) * self.root)

    def back(self, z: np.ndarray) -> np.ndarray:
        """Aᵀ·z, for a z = A·v: the sums over each class, times the roots, are 0."""
        return np.asarray(self._X.T @ (z * self.root if self._sparse else z))

    def gram(self) -> np.ndarray:
        """A·Aᵀ."""
        if not self._sparse:
            return np.asarray(self._X @ self._X.T)
        products = squares(self._X.T, np.ones(self._X.shape[1]))
        centre = (self._X @ self._means.T) @ self._in_class
        products -= centre + centre.T
        products += self._in_class.T @ (self._means @ self._means.T) @ self._in_class
        return products * self.root[:, None] * self.root


@kernel(fastmath=FAST)
def _centre(rows, means, positive, root, out):
    """Rows less the means of their classes, times their roots."""
    for i in range(rows.shape[0]):
        mean = means[0] if positive[i] else means[1]
        for j in range(rows.shape[1]):
            out[i, j] = (rows[i, j] - mean[j]) * root[i]
