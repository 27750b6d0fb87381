"""scikit-learn estimators: weights fused along a graph, generalised lasso, trend filtering."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from telic.errors import InputError
from telic.optim.admm import graphs
from telic.optim.admm.penalty import separable
from telic.optim.admm.problem import make_admm_problem
from telic.optim.admm.solve import solve_admm
from telic.optim.admm.steps import EXACT_UP_TO
from telic.optim.linear import FORMATS, example_weights, seed_of

GRAPHS = ("glasso", "knn", "chain")


class _Fitted(BaseEstimator):
    """A linear prediction whose weights are held by a matrix A."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _scores(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, **FORMATS)
        return np.asarray(X @ self.coef_.T) + self.intercept_

    def _solve(self, X, y, A, l1, *, loss, sample_weight):
        problem = make_admm_problem(
            X, y, A=A, g=separable(A.shape[0], l1=l1), loss=loss, l2=self.l2,
            sample_weight=sample_weight, fit_intercept=self.fit_intercept,
        )  # fmt: skip
        return solve_admm(
            problem, method=self.solver, tol=self.tol, max_passes=self.max_iter,
            max_seconds=np.inf if self.max_seconds is None else self.max_seconds,
            random_state=seed_of(self.random_state),
        )  # fmt: skip

    def _record(self, results):
        """Keep what the fit says of itself; several results are those of several classes."""
        self.n_iter_ = max(1, *(round(result.passes) for result in results))
        self.gap_ = max(result.gap for result in results)
        reasons = {result.stopped for result in results}
        self.stopped_ = "tolerance" if reasons == {"tolerance"} else max(reasons - {"tolerance"})


class _GraphFused(_Fitted):
    """The graph, by name or by its edges, and the matrix that fuses along it."""

    def _graph(self, X):
        d = X.shape[1]
        if isinstance(self.graph, graphs.Graph):
            if self.graph.size != d:
                raise InputError(f"graph has {self.graph.size} features, X has {d}.")
            graph = self.graph
        elif not isinstance(self.graph, str):
            graph = graphs.as_graph(d, self.graph, self.edge_weights)
        elif self.graph not in GRAPHS:
            raise InputError(
                f"graph is {self.graph!r}, expected one of {', '.join(GRAPHS)}, or edges (k, 2)."
            )
        elif d == 1:
            raise InputError("X has 1 feature(s), and a graph joins at least two.")
        elif self.graph == "chain":
            graph = graphs.chain(d)
        elif self.graph == "knn":
            graph = graphs.knn(X)
        else:
            graph = graphs.inverse_covariance(X)
        for name, value in (("gamma", self.gamma), ("l1", self.l1), ("l2", self.l2)):
            if not 0 <= value < np.inf:
                raise InputError(f"{name} is {value!r}, expected a number >= 0.")
        if self.l1 == 0 and self.l2 == 0 and not isinstance(self.graph, str):
            self._warn_if_free(graph)
        return graph

    def _warn_if_free(self, graph):
        alone = np.flatnonzero(np.bincount(graph.components)[graph.components] == 1)
        if alone.size:
            warnings.warn(
                f"{alone.size} of {graph.size} features have no edge (the first is {alone[0]}), so "
                "nothing restrains their weights and the minimum need not exist. "
                "Set l1 or l2, or add edges.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _fit_graph(self, X, targets, *, loss, sample_weight):
        graph = self._graph(X)
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
    """Logistic regression whose weights are fused along the edges of a feature graph (5.7.3).

    Minimises Σ_i s_i log(1 + exp(−y_i (⟨w, x_i⟩ + b))) / Σ_i s_i + gamma Σ W_ij |w_i − w_j|
    + l1 ‖w‖₁ + (l2/2)‖w‖². More than two classes are fitted one against the rest.

    Parameters
    ----------
    graph : {"glasso", "knn", "chain"}, Graph, or array of int, shape (k, 2)
        ``glasso`` joins features that depend on each other given the others
        (`telic.optim.admm.graphs.inverse_covariance`), ``knn`` each feature to the most correlated
        ones, ``chain`` each to the next. An array lists edges.
    gamma : float
        Strength of the fusion, >= 0.
    edge_weights : array, shape (k,), optional
        W_ij for an array of edges; ones by default.
    l1, l2 : float
        Optional lasso and ridge. Without them nothing restrains the sum of w over a connected
        component but the loss: on separable data the minimum need not exist.
    solver : str
        One of `telic.optim.admm.METHODS`.
    fit_intercept : bool
        The intercept is not penalised.
    tol : float
        Gap at which to stop, relative to the objective at w = 0.
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
        Bound on the objective's distance from the optimum.
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
        graph="glasso",
        *,
        gamma=1e-3,
        edge_weights=None,
        l1=0.0,
        l2=0.0,
        solver="svr-admm-d",
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        max_seconds=None,
        class_weight=None,
        random_state=None,
    ):
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

    def fit(self, X, y, sample_weight=None):
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validate_data(self, X, y, **FORMATS)
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

    def decision_function(self, X):
        """Signed score of each sample: shape (n,), or (n, n_classes) beyond two classes."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X):
        """Return the most likely class of each sample."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[chosen]

    def predict_proba(self, X):
        """Probability of each class; beyond two classes the scores' odds, normalised to 1."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])

    def predict_log_proba(self, X):
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class _Regressor(RegressorMixin, _Fitted):
    def _keep(self, results):
        (result,) = results
        self.coef_, self.intercept_ = result.coef, result.intercept
        return self

    def predict(self, X):
        """Return the expected target of each sample."""
        return self._scores(X)


class GraphFusedRegressor(_Regressor, _GraphFused):
    """Linear regression whose weights are fused along the edges of a feature graph.

    Minimises Σ_i s_i loss(⟨w, x_i⟩ + b, y_i) / Σ_i s_i + gamma Σ W_ij |w_i − w_j| + l1 ‖w‖₁
    + (l2/2)‖w‖², the squared loss being half the square.

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
    >>> model = GraphFusedRegressor("chain", gamma=0.1).fit(X, X @ [1.0, 1.0, 3.0, 3.0])
    >>> model.coef_.round(1)
    array([1.1, 1.1, 3. , 3. ])
    """

    def __init__(
        self,
        graph="glasso",
        *,
        gamma=1e-3,
        edge_weights=None,
        l1=0.0,
        l2=0.0,
        loss="squared",
        solver="svr-admm-d",
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        max_seconds=None,
        random_state=None,
    ):
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

    def fit(self, X, y, sample_weight=None):
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validate_data(self, X, y, y_numeric=True, **FORMATS)
        weights = example_weights(None, y, sample_weight)
        return self._keep(self._fit_graph(X, [y], loss=self.loss, sample_weight=weights))


class GeneralizedLasso(_Regressor):
    """Regression with an ℓ₁ penalty on any linear map of the weights.

    Minimises Σ_i s_i (⟨w, x_i⟩ + b − y_i)² / (2 Σ_i s_i) + alpha ‖Dw‖₁ + (l2/2)‖w‖².

    Parameters
    ----------
    D : array or scipy.sparse matrix, shape (k, n_features), optional
        The identity by default, which is scikit-learn's ``Lasso(alpha)``.
    alpha : float
        Strength, >= 0.
    l2, solver, fit_intercept, tol, max_iter, max_seconds, random_state
        As in `GraphFusedClassifier`.
    loss : {"squared", "huber"} or Loss

    Attributes
    ----------
    coef_, intercept_, n_iter_, gap_, stopped_
        As in `GraphFusedRegressor`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> model = GeneralizedLasso([[1.0, -1.0, 0.0]], alpha=0.1).fit(X, X @ [1.0, 1.0, 3.0])
    >>> model.coef_.round(3)
    array([1., 1., 3.])
    """

    def __init__(
        self,
        D=None,
        *,
        alpha=0.1,
        l2=0.0,
        loss="squared",
        solver="svr-admm-d",
        fit_intercept=True,
        tol=1e-4,
        max_iter=1000,
        max_seconds=None,
        random_state=None,
    ):
        self.D = D
        self.alpha = alpha
        self.l2 = l2
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        """Fit the weights; Ctrl-C ends the fit with the last complete stage's."""
        X, y = validate_data(self, X, y, y_numeric=True, **FORMATS)
        weights = example_weights(None, y, sample_weight)
        D: Any = sparse.eye_array(X.shape[1], format="csr") if self.D is None else self.D
        D = D if sparse.issparse(D) else np.atleast_2d(np.asarray(D, dtype=np.float64))
        result = self._solve(X, y, D, self.alpha, loss=self.loss, sample_weight=weights)
        self._record([result])
        return self._keep([result])


class TrendFilter(BaseEstimator):
    """Piecewise polynomial fit to a series: ‖y − x‖²/(2n) + alpha ‖D x‖₁, D the differences.

    Order 0 gives steps (total variation), 1 straight pieces, 2 parabolas.

    Parameters
    ----------
    order : int
        Degree of the pieces, 0 to 3; the differences are of order + 1.
    alpha : float
        Strength, >= 0.
    solver, tol, max_iter, max_seconds, random_state
        As in `GraphFusedClassifier`. The default is batch ADMM with the exact x-step: one sample
        per unknown leaves nothing to sample.

    Attributes
    ----------
    trend_ : array, shape (n,)
    n_iter_, gap_, stopped_
        As in `GraphFusedRegressor`.

    Examples
    --------
    >>> y = np.repeat([0.0, 1.0], 10) + 0.1 * np.sin(np.arange(20))
    >>> np.unique(TrendFilter(0, alpha=0.03).fit_transform(y).round(2))
    array([0.08, 0.92])
    """

    def __init__(
        self,
        order=1,
        *,
        alpha=0.1,
        solver="batch-admm",
        tol=1e-5,
        max_iter=20_000,
        max_seconds=None,
        random_state=None,
    ):
        self.order = order
        self.alpha = alpha
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.random_state = random_state

    def fit(self, y, _=None, sample_weight=None):
        """Fit the trend of a series y, shape (n,), evenly spaced; returns self."""
        if self.order not in (0, 1, 2, 3):
            raise InputError(f"order is {self.order!r}, expected 0, 1, 2 or 3.")
        y = np.asarray(y, dtype=np.float64)
        if y.ndim != 1 or y.size < self.order + 2:
            raise InputError(
                f"y has shape {y.shape}, expected a series of at least {self.order + 2} values."
            )
        n = y.size
        D = sparse.eye_array(n, format="csr")
        for _ in range(self.order + 1):
            D = sparse.csr_array(D[1:] - D[:-1])
        problem = make_admm_problem(
            sparse.eye_array(n, format="csr"), y, A=D, g=separable(D.shape[0], l1=self.alpha),
            loss="squared", sample_weight=sample_weight,
        )  # fmt: skip
        exact = n <= EXACT_UP_TO and self.solver not in ("stoc-admm", "sdca-admm")
        result = solve_admm(
            problem, method=self.solver, x_step="exact" if exact else "linearised", tol=self.tol,
            max_passes=self.max_iter, random_state=seed_of(self.random_state),
            max_seconds=np.inf if self.max_seconds is None else self.max_seconds,
        )  # fmt: skip
        self.trend_ = result.coef
        self.n_iter_ = max(1, round(result.passes))
        self.gap_, self.stopped_ = result.gap, result.stopped
        return self

    def fit_transform(self, y, _=None):
        """Fit and return the trend, shape (n,)."""
        return self.fit(y).trend_
