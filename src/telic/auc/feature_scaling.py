"""Scaling of columns and rows, explicit and recorded: it moves AUC more than the method does."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from telic.auc.drawn_rows import Matrix
from telic.errors import expect_one_of
from telic.evaluate import standard_deviations

SCALINGS = ("raw", "unit", "minmax", "minmax+unit", "standard", "standard+unit")


@dataclass(frozen=True, slots=True)
class Scaling:
    """(x − offset)·factor for each column, then unit rows if wanted.

    Parameters
    ----------
    name : {"raw", "unit", "minmax", "minmax+unit", "standard", "standard+unit"}
        "minmax" brings each column to [−1, 1], "standard" to mean 0 and variance 1, "unit"
        each row to ℓ₂ norm 1. Sparse rows are not shifted: "minmax" then divides by the largest
        absolute value and "standard" by the standard deviation.
    offset, factor : arrays of shape (d,)
    """

    name: str
    offset: np.ndarray
    factor: np.ndarray

    @classmethod
    def fit(cls, X: Matrix, name: str) -> "Scaling":
        """Measure the columns of training rows.

        Examples
        --------
        >>> X = np.array([[0.0, 1.0], [4.0, 1.0]])
        >>> Scaling.fit(X, "minmax").apply(X)
        array([[-1.,  0.],
               [ 1.,  0.]])
        """
        expect_one_of(SCALINGS, scaling=name)
        d = X.shape[1]
        offset, spread = np.zeros(d), np.ones(d)
        if name.startswith("minmax"):
            low, high = (_flat(side(axis=0)) for side in (X.min, X.max))
            if sparse.issparse(X):
                spread = np.maximum(np.abs(low), np.abs(high))
            else:
                offset, spread = (low + high) / 2, (high - low) / 2
            spread = np.where(spread <= 1e-12 * np.abs(offset), 1.0, spread)
        elif name.startswith("standard"):
            spread = standard_deviations(X)
            if not sparse.issparse(X):
                offset = X.mean(axis=0)
        return cls(name, offset, 1 / spread)

    def apply(self, X: Matrix) -> Matrix:
        """Scale rows; a row of zeros stays as it is."""
        if sparse.issparse(X):
            if not (self.factor == 1).all():
                X = sparse.csr_matrix(X.multiply(self.factor))
            if self.name.endswith("unit"):
                norms = np.sqrt(_flat(X.multiply(X).sum(axis=1)))
                X = sparse.csr_matrix(X.multiply(1 / np.where(norms > 0, norms, 1.0)[:, None]))
            return X
        X = (X - self.offset) * self.factor
        if self.name.endswith("unit"):
            norms = np.linalg.norm(X, axis=1)
            X /= np.where(norms > 0, norms, 1.0)[:, None]
        return X


def _flat(values: Matrix) -> np.ndarray:
    """A row or column of sums as a plain array, whatever SciPy returned."""
    return np.asarray(values.todense() if sparse.issparse(values) else values).ravel()
