"""scikit-learn estimators whose weights are fused along a graph of the features."""

import warnings
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets

from telic.errors import InputError, expect_at_least
from telic.optim.admm import feature_graphs
from telic.optim.admm.estimators.generalized_lasso import Fitted, Regressor
from telic.optim.admm.loop import AdmmResult
from telic.optim.estimators.linear import (
    example_weights,
    likeliest,
    one_vs_rest_probabilities,
    validated,
)
from telic.optim.losses import Loss

GRAPHS = ("glasso", "knn", "chain")


class _GraphFused(Fitted):
    """The graph, by name or by its edges, and the matrix that fuses along it."""

    def _graph(self, X: Any, sample_weight: Any) -> feature_graphs.Graph:
        d = X.shape[1]
        if self.edge_weights is not None and isinstance(self.graph, str | feature_graphs.Graph):
            raise InputError("edge_weights go with edges (k, 2); this graph has its own.")
        if isinstance(self.graph, feature_graphs.Graph):
            if self.graph.size != d:
                raise InputError(f"graph has {self.graph.size} features, X has {d}.")
            graph = self.graph
        elif not isinstance(self.graph, str):
            graph = feature_graphs.as_graph(d, self.graph, self.edge_weights)
        elif self.graph not in GRAPHS:
            raise InputError(
                f"graph is {self.graph!r}, expected one of {', '.join(GRAPHS)}, or edges (k, 2)."
            )
        elif d == 1:
            raise InputError("X has 1 feature(s), and a graph joins at least two.")
        elif self.graph == "chain":
            graph = feature_graphs.chain(d)
        elif self.graph == "knn":
            graph = feature_graphs.knn(X, sample_weight=sample_weight)
        else:
            graph = feature_graphs.inverse_covariance(X, sample_weight=sample_weight)
        expect_at_least(0, gamma=self.gamma, l1=self.l1, l2=self.l2)
        if self.l1 == 0 and self.l2 == 0 and not isinstance(self.graph, str):
            self._warn_if_free(graph)
        return graph

    def _warn_if_free(self, graph: feature_graphs.Graph) -> None:
        alone = np.flatnonzero(np.bincount(graph.components)[graph.components] == 1)
        if alone.size:
            warnings.warn(
                f"{alone.size} of {graph.size} features have no edge (the first is {alone[0]}), so "
                "nothing restrains their weights and the minimum need not exist. "
                "Set l1 or l2, or add edges.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _fit_graph(
        self, X: Any, targets: list[np.ndarray], *, loss: str | Loss, sample_weight: Any
    ) -> list[AdmmResult]:
        graph = self._graph(X, sample_weight)
        A, l1 = graph.incidence, self.gamma * graph.weights
        if self.l1 > 0:
            A = sparse.vstack([A, sparse.eye_array(graph.size)], format="csr")
            l1 = np.concatenate([l1, np.full(graph.size, float(self.l1))])
        results = [
            self._solve(X, target, A, l1, loss=loss, sample_weight=sample_weight)
            for target in targets
        ]
        self.edges_, self.edge_weights_ = graph.edges, graph.weights
        self._record(results)
        return results


class GraphFusedClassifier(ClassifierMixin, _GraphFused):
    """Logistic regression whose weights are fused along the edges of a feature graph.

    Minimises [Zhang2017] (5.7.3), with W_ij the weight of edge (i, j)::

        Σ_i s_i log(1 + exp(−y_i (⟨w, x_i⟩ + b))) / Σ_i s_i + gamma Σ W_ij |w_i − w_j|
            + l1 ‖w‖₁ + (l2/2)‖w‖²

    More than two classes are fitted one against the rest.

    Parameters
    ----------
    graph : {"glasso", "knn", "chain"}, Graph, or array of int, shape (k, 2)
        ``glasso`` joins features that depend on each other given the others
        (`telic.optim.admm.feature_graphs.inverse_covariance`), ``knn`` each feature to the most
        correlated ones, ``chain`` each to the next. An array lists edges. The correlations take the
        weights of the samples.
    gamma : float
        Strength of the fusion, >= 0.
    edge_weights : array, shape (k,), optional
        W_ij for an array of edges; ones by default.
    l1, l2 : float
        Optional lasso and ridge. Without them nothing restrains the sum of w over a connected
        component but the loss: on separable data the minimum need not exist.
    solver : str
        One of `telic.optim.admm.METHODS`, or "auto": batch ADMM with Newton's
        x-step up to 5000 samples and 512 features (sparse data: 300), where sampling saves
        little, SVR-ADMM-D beyond.
    fit_intercept : bool
        The intercept is not penalised.
    tol : float
        Gap at which to stop, relative to the objective at w = 0 with the best intercept.
    max_iter : int
        Passes over the data.
    max_seconds : float, optional
        Stop then; the result is the last complete stage's.
    class_weight : dict or "balanced", optional
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
    coef_ : array, shape (1 or n_classes, n_features)
    intercept_ : array, shape (1 or n_classes,)
    edges_, edge_weights_ : the graph used
    n_iter_ : int
        Passes over the data.
    gap_ : float
        Bound on the objective's distance from the optimum, always: by a feasible point of the
        dual (`telic.optim.admm.certificate`). With several classes the largest of theirs.
    stopped_ : str
        "tolerance", or why the fit ended before: "passes", "seconds" or "interrupted" (Ctrl-C).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 6))
    >>> y = X @ [1, 1, 1, -1, -1, -1] + rng.normal(size=300) > 0
    >>> model = GraphFusedClassifier("chain", gamma=0.02).fit(X, y)
    >>> model.coef_[0].round(1)
    array([ 1.2,  1.2,  1.2, -1.3, -1.3, -1.3])
    """

    def __init__(
        self,
        graph: Any = "knn",
        *,
        gamma: float = 1e-3,
        edge_weights: Any = None,
        l1: float = 0.0,
        l2: float = 0.0,
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: float = 1000,
        max_seconds: float | None = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.gamma = gamma
        self.edge_weights = edge_weights
        self.l1 = l1
        self.l2 = l2
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validated(self, X, y)
        check_classification_targets(y)
        classes = np.unique(y)
        if classes.size < 2:
            raise InputError(f"y holds one class only ({classes[0]!r}): at least two are needed.")
        weights = example_weights(self.class_weight, y, sample_weight)
        if np.unique(y[weights > 0]).size < classes.size:
            raise InputError(
                "sample_weight leaves a class without any weight. Drop it or weigh it."
            )
        positive = classes[1:] if classes.size == 2 else classes
        targets = [np.where(y == label, 1.0, -1.0) for label in positive]
        results = self._fit_graph(X, targets, loss="logistic", sample_weight=weights)
        self.classes_ = classes
        self.coef_ = np.array([result.coef for result in results])
        self.intercept_ = np.array([result.intercept for result in results])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Signed score of each sample: shape (n,), or (n, n_classes) beyond two classes."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Return the most likely class of each sample."""
        scores = self.decision_function(X)
        return self.classes_[likeliest(scores)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class; beyond two classes the scores' odds, normalised to 1."""
        return one_vs_rest_probabilities(self.decision_function(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class GraphFusedRegressor(Regressor, _GraphFused):
    """Linear regression whose weights are fused along the edges of a feature graph.

    Minimises, the squared loss being half the square::

        Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + gamma Σ W_ij |w_i − w_j|
            + l1 ‖w‖₁ + (l2/2)‖w‖²

    Parameters
    ----------
    graph, gamma, edge_weights, l1, l2, solver, fit_intercept, tol, max_iter, max_seconds, \
random_state
        As in `GraphFusedClassifier`.
    loss : {"squared", "huber"} or Loss

    Attributes
    ----------
    coef_ : array, shape (n_features,)
    intercept_ : float
    edges_, edge_weights_, n_iter_, gap_, stopped_
        As in `GraphFusedClassifier`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> model = GraphFusedRegressor("chain", gamma=0.05).fit(X, X @ [1.0, 1.0, 3.0, 3.0])
    >>> model.coef_.round(1)
    array([1., 1., 3., 3.])
    """

    def __init__(
        self,
        graph: Any = "knn",
        *,
        gamma: float = 1e-3,
        edge_weights: Any = None,
        l1: float = 0.0,
        l2: float = 0.0,
        loss: str | Loss = "squared",
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-4,
        max_iter: float = 1000,
        max_seconds: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.gamma = gamma
        self.edge_weights = edge_weights
        self.l1 = l1
        self.l2 = l2
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validated(self, X, y, y_numeric=True)
        weights = example_weights(None, y, sample_weight)
        return self._keep(self._fit_graph(X, [y], loss=self.loss, sample_weight=weights))
