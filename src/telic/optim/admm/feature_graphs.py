"""Graphs over the features, and the matrix A whose rows are their edges."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.covariance import graphical_lasso
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.neighbors import NearestNeighbors

from telic.errors import InputError, expect_whole
from telic.evaluate.checked_numbers import checked_numbers, refuse_masked
from telic.evaluate.column_spread import ROUNDING
from telic.optim.threads import small_products

GLASSO_UP_TO = 300
"""Most features for scikit-learn's graphical lasso; beyond, each feature chooses neighbours."""


@dataclass(frozen=True, slots=True)
class Graph:
    """Undirected edges with weights over `size` features."""

    size: int
    edges: np.ndarray
    """Shape (k, 2), int64: i < j, each pair once."""
    weights: np.ndarray
    """W_ij >= 0, shape (k,)."""

    @property
    def incidence(self) -> sparse.csr_matrix:
        """The design matrix A, shape (k, size): row e is +1 at i and −1 at j."""
        k = self.edges.shape[0]
        signs = np.tile([1.0, -1.0], k)
        return sparse.csr_matrix(
            (signs, self.edges.reshape(-1), np.arange(0, 2 * k + 1, 2)), shape=(k, self.size)
        )

    @property
    def components(self) -> np.ndarray:
        """Label of each feature's connected component; a feature without edges is one alone."""
        ones = np.ones(self.edges.shape[0])
        adjacency = sparse.csr_matrix((ones, self.edges.T), shape=(self.size, self.size))
        return connected_components(adjacency, directed=False)[1]


def as_graph(size: int, edges: Any, weights: Any = None) -> Graph:
    """Check edges and weights over `size` features.

    Parameters
    ----------
    size : int
    edges : array of int, shape (k, 2)
        Features from 0 to size − 1; the direction does not matter.
    weights : array, shape (k,), optional
        W_ij >= 0; ones by default.

    Raises
    ------
    InputError
        For an empty graph, a self-loop, an edge given twice or out of range, a negative weight.

    Examples
    --------
    >>> as_graph(3, [[0, 1], [2, 1]]).edges.tolist()
    [[0, 1], [1, 2]]
    """
    refuse_masked("edges", edges)
    try:
        given = np.asarray(edges)
    except ValueError:  # rows of different lengths
        raise InputError(
            "edges has rows of different lengths, expected two features each."
        ) from None
    if given.size == 0:
        raise InputError("the graph has no edges: nothing would be fused. Give at least one edge.")
    if given.ndim != 2 or given.shape[1] != 2:
        raise InputError(f"edges has shape {given.shape}, expected (k, 2): two features per edge.")
    if not np.issubdtype(given.dtype, np.integer):
        raise InputError(f"edges holds {given.dtype}, expected integers: positions of features.")
    wrong = np.flatnonzero(((given < 0) | (given >= size)).any(axis=1))
    if wrong.size:
        raise InputError(
            f"edge {wrong[0]} is {given[wrong[0]].tolist()}, "
            f"expected features from 0 to {size - 1}."
        )
    wrong = np.flatnonzero(given[:, 0] == given[:, 1])
    if wrong.size:
        raise InputError(
            f"edge {wrong[0]} joins feature {given[wrong[0], 0]} to itself. Drop self-loops."
        )
    ordered = np.sort(given.astype(np.int64), axis=1)
    _, first = np.unique(ordered, axis=0, return_index=True)
    if first.size < len(ordered):
        again = np.setdiff1d(np.arange(len(ordered)), first)[0]
        raise InputError(
            f"edge {again} is {given[again].tolist()}, which is given twice. Sum their weights."
        )
    strength = np.ones(len(ordered)) if weights is None else checked_numbers("weights", weights)
    if strength.shape != (len(ordered),):
        raise InputError(
            f"weights has shape {strength.shape}, expected ({len(ordered)},): one per edge."
        )
    wrong = np.flatnonzero(~((strength >= 0) & (strength < np.inf)))
    if wrong.size:
        raise InputError(
            f"the weight of edge {wrong[0]} is {strength[wrong[0]]:g}, expected a number >= 0."
        )
    return Graph(size, ordered, strength)


def chain(size: int) -> Graph:
    """Join each feature to the next.

    Examples
    --------
    >>> chain(3).edges.tolist()
    [[0, 1], [1, 2]]
    """
    first = np.arange(size - 1)
    return as_graph(size, np.column_stack([first, first + 1]))


def grid(height: int, width: int) -> Graph:
    """Join each pixel of an image, numbered row by row, to its right and lower neighbours.

    Examples
    --------
    >>> grid(2, 2).edges.tolist()
    [[0, 1], [0, 2], [1, 3], [2, 3]]
    """
    at = np.arange(height * width).reshape(height, width)
    right = np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()])
    down = np.column_stack([at[:-1].ravel(), at[1:].ravel()])
    edges = np.concatenate([right, down])
    return as_graph(height * width, edges[np.lexsort(edges.T[::-1])])


def knn(X: Any, *, neighbors: int = 5, sample_weight: Any = None) -> Graph:
    """Join each feature to those most correlated with it; the weight is ``|correlation|``.

    An edge stands if either end chose it. Constant features stay alone.

    Parameters
    ----------
    X : array or scipy.sparse matrix, shape (n, d)
    neighbors : int
        Edges that each feature chooses.
    sample_weight : array, shape (n,), optional
        Weights of the rows in the correlations.

    Raises
    ------
    InputError
        If fewer than two features vary.
    """
    columns, varying = _standardised(X, sample_weight)
    expect_whole(1, neighbors=neighbors)
    count = min(neighbors, varying.size - 1)
    # A feature and its negation are neighbours too: of unit columns, the nearer of ±.
    both = np.concatenate([columns.T, -columns.T])
    found = NearestNeighbors(n_neighbors=min(count + 1, len(both))).fit(both)
    near = found.kneighbors(columns.T, return_distance=False) % varying.size
    pairs = {
        tuple(sorted((int(i), int(j))))
        for i in range(varying.size)
        for j in [j for j in near[i] if j != i][:count]
    }
    edges = np.array(sorted(pairs))
    strength = np.abs(np.einsum("ni,ni->i", columns[:, edges[:, 0]], columns[:, edges[:, 1]]))
    return as_graph(X.shape[1], varying[edges], strength)


def inverse_covariance(
    X: Any,
    *,
    alpha: float | None = None,
    weighted: bool = False,
    join_lone: bool = True,
    sample_weight: Any = None,
) -> Graph:
    """Join features that depend on each other given all the others (sparse inverse covariance).

    scikit-learn's graphical lasso on the correlation matrix; for more than `GLASSO_UP_TO` features,
    or where it does not converge, each feature's lasso regression on the others instead
    (Meinshausen and Bühlmann 2006; an edge stands if either end chose it).

    Parameters
    ----------
    X : array or scipy.sparse matrix, shape (n, d)
    alpha : float, optional
        Penalty of both, in correlations; by default √(log d / n), at least 0.1.
    weighted : bool
        Whether W_ij is ``|partial correlation|`` (the coefficient, for the regressions) or 1.
    join_lone : bool
        Whether a feature that is left without an edge is joined to the most correlated one (with
        W_ij = ``|correlation|`` if weighted): without an edge nothing restrains its weight, and the
        minimum over it need not exist.
    sample_weight : array, shape (n,), optional
        Weights of the rows in the correlations.

    Raises
    ------
    InputError
        If fewer than two features vary, or no pair depends on each other at this alpha.
    """
    columns, varying = _standardised(X, sample_weight)
    n, d = columns.shape
    if alpha is None:
        alpha = max(0.1, float(np.sqrt(np.log(max(d, 2)) / n)))
    with small_products(d):
        strength = _glasso(columns, alpha) if d <= GLASSO_UP_TO else None
        if strength is None:
            strength = _neighbourhoods(columns, alpha)
    np.fill_diagonal(strength, 0.0)
    edges = np.argwhere(np.triu(strength) > 1e-8)
    if not len(edges):
        raise InputError(
            f"no two features depend on each other at alpha={alpha:.3g}: the graph is empty. "
            "Lower alpha, or give edges."
        )
    for j in np.flatnonzero(join_lone & (strength.max(axis=0) <= 1e-8)):
        correlation = np.abs(columns.T @ columns[:, j])
        correlation[j] = 0.0
        nearest = int(correlation.argmax())
        strength[j, nearest] = strength[nearest, j] = max(correlation[nearest], 1e-6)
    edges = np.argwhere(np.triu(strength) > 1e-8)
    weights = strength[edges[:, 0], edges[:, 1]] if weighted else None
    return as_graph(X.shape[1], varying[edges], weights)


def _glasso(columns: np.ndarray, alpha: float) -> np.ndarray | None:
    """|Partial correlation| by the graphical lasso; None where it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            _, precision = graphical_lasso(columns.T @ columns, alpha=alpha, max_iter=200)
    except (FloatingPointError, ConvergenceWarning):
        return None
    scale = np.sqrt(np.diag(precision))
    return np.abs(precision / np.outer(scale, scale))


def _neighbourhoods(columns: np.ndarray, alpha: float) -> np.ndarray:
    """|Coefficient| of each feature's lasso regression on the others, larger of both directions."""
    d = columns.shape[1]
    gram = columns.T @ columns
    found = np.zeros((d, d))
    for j in range(d):
        others = np.delete(np.arange(d), j)
        between = np.ascontiguousarray(gram[np.ix_(others, others)])
        model = Lasso(alpha=alpha / len(columns), fit_intercept=False, precompute=between)
        model.fit(np.asfortranarray(columns[:, others]), columns[:, j])
        found[j, others] = np.abs(model.coef_)
    return np.maximum(found, found.T)


def _standardised(X: Any, sample_weight: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Centred columns of norm 1, dense, and the positions of those that vary, two at least."""
    dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
    dense = dense.astype(np.float64)
    weight = np.ones(len(dense)) if sample_weight is None else np.asarray(sample_weight, float)
    dense, weight = dense[weight > 0], weight[weight > 0]  # a row without weight is none
    largest = np.abs(dense).max(axis=0)
    dense = (dense - np.average(dense, axis=0, weights=weight)) * np.sqrt(weight)[:, None]
    norms = np.linalg.norm(dense, axis=0)
    varying = np.flatnonzero(norms > ROUNDING * largest * np.sqrt(weight.sum()))
    if varying.size < 2:
        raise InputError(
            f"fewer than two features vary (n_samples={len(dense)}): X gives no graph."
        )
    return dense[:, varying] / norms[varying], varying
