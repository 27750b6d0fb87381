"""What a matrix A sees of x: the directions that it does not, and the least u with Aᵀu = r."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import cg, splu

DENSE_UP_TO = 2000
"""Most columns for which the null space is found of a matrix that is no graph's."""
SPARSE_UP_TO = 2.1
"""Edges for each node up to which a large Laplacian is factored: that of a chain or a grid hardly
fills in. Beyond, conjugate gradients need few steps."""
FAINTEST = 1e-8
"""Share of the largest conductance of a graph's edges below which all count alike: what is much
less would be lost to rounding."""
UNSEEN = 1e-10
"""Share of the largest eigenvalue below which a direction counts as not seen."""


@dataclass(frozen=True, slots=True)
class Span:
    """The null space of A, and AᵀVA inverted beside it, V = diag(weight)."""

    A: sparse.csr_matrix
    weight: np.ndarray
    null: sparse.csr_matrix
    """Columns that span the null space, shape (d, q)."""
    solve: Callable[[np.ndarray], np.ndarray]
    """Some v with AᵀVA v = r, for r in the row space."""

    def least(self, r: np.ndarray) -> np.ndarray:
        """Return the u of least Σ u_e²/weight_e with Aᵀu = r, r in the row space."""
        return self.weight * (self.A @ self.solve(r))


def span_of(A: sparse.csr_matrix, weight: np.ndarray, lengths: np.ndarray) -> Span | None:
    """Find the span of A; None for more than `DENSE_UP_TO` columns that are no graph's.

    A graph's rows have one entry, or two that sum to zero: each component without a row of one
    entry is one direction that A does not see. What rounding leaves of r outside the row space
    stays at the component's column of greatest length, where it is least.
    """
    A = sparse.csr_matrix(A)
    A.eliminate_zeros()
    entries = np.diff(A.indptr)
    if entries.max(initial=0) <= 2 and not (A.sum(axis=1)[entries == 2]).any():
        return _span_of_graph(A, weight, lengths)
    if A.shape[1] > DENSE_UP_TO:
        return None
    # In units of the columns: what is seen does not depend on theirs, and rounding is alike in all.
    L = A.T @ sparse.diags_array(weight) @ A
    unit = 1.0 / np.where(lengths > 0, lengths, lengths.max(initial=0.0) or 1.0)
    values, vectors = eigh(unit[:, None] * L.toarray() * unit)
    seen = values > UNSEEN * max(values[-1], 0.0)
    V, inverse = unit[:, None] * vectors[:, seen], 1.0 / values[seen]
    null = sparse.csr_matrix(unit[:, None] * vectors[:, ~seen])
    return Span(A, weight, null, lambda r: V @ (inverse * (V.T @ r)))


def _span_of_graph(A: sparse.csr_matrix, weight: np.ndarray, lengths: np.ndarray) -> Span:
    d, single = A.shape[1], np.diff(A.indptr) == 1
    size = abs(A).max(axis=1).toarray().ravel()
    size[size == 0] = 1.0
    conductance = weight * size**2
    weight = np.maximum(conductance, FAINTEST * conductance.max(initial=0.0)) / size**2
    L = sparse.csc_matrix(A.T @ sparse.diags_array(weight) @ A)
    count, label = connected_components(L, directed=False)
    held = np.zeros(count, bool)
    held[label[A.indices[A.indptr[:-1][single]]]] = True
    loose = np.flatnonzero(~held[label])
    place = (np.cumsum(~held) - 1)[label[loose]]
    shape = (d, int((~held).sum()))
    null = sparse.csr_matrix((np.ones(loose.size), (loose, place)), shape=shape)
    # With its longest column held too, a component is invertible; in the row space v is 0 there.
    order = loose[np.argsort(-lengths[loose], kind="stable")]
    ground = order[np.unique(label[order], return_index=True)[1]]
    held_at = np.zeros(d)
    held_at[ground] = np.where(L.diagonal()[ground] > 0, L.diagonal()[ground], 1.0)
    grounded = sparse.csc_matrix(L + sparse.diags_array(held_at))
    if d <= DENSE_UP_TO or A.shape[0] <= SPARSE_UP_TO * d:
        factor = splu(grounded, "MMD_AT_PLUS_A", 0.0, options={"SymmetricMode": True})
        return Span(A, weight, null, factor.solve)
    scale = sparse.diags_array(1.0 / grounded.diagonal())
    return Span(A, weight, null, lambda r: cg(grounded, r, rtol=1e-14, maxiter=500, M=scale)[0])
