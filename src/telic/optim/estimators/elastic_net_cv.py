"""Elastic nets whose strength is chosen by cross-validation along warm-started paths."""

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from telic.errors import InputError
from telic.evaluate.checked_numbers import refuse_masked
from telic.optim.design import as_design
from telic.optim.estimators.elastic_net_classifier import (
    ElasticNetClassifier,
    checked_offset,
    offsets_of,
)
from telic.optim.estimators.elastic_net_regressor import ElasticNetRegressor
from telic.optim.estimators.linear import (
    Linear,
    check_solver,
    example_weights,
    own_threads,
    seed_of,
    validated,
)
from telic.optim.loop import SolveResult
from telic.optim.losses import Loss
from telic.optim.penalties import ElasticNet, Penalty, group_penalty
from telic.optim.problem import Problem, make_problem
from telic.optim.softmax import SoftmaxProblem
from telic.optim.softmax_newton import SoftmaxResult, softmax_path
from telic.optim.solver import solve_path

Solved = SolveResult | SoftmaxResult


class _PathCV(Linear):
    """Cross-validation over (l1_ratio, alpha); the folds run in threads, each path warm-started."""

    def _search(
        self,
        X: Any,
        y: Any,
        weights: np.ndarray,
        alphas_of: Callable[[list[Problem], float], np.ndarray],
        fitted: Callable[[Sequence[Any], Any], Any],
        offset: Any = None,
    ) -> tuple[list[Any], Any, tuple[int, int], np.ndarray]:
        """Return results on all data, classes, places of the ratio and of alpha, and the grids.

        alphas_of maps (problem, ratio) to a decreasing grid; fitted makes an estimator from
        (results, classes).
        """
        refuse_masked("offset", offset)
        offset = None if offset is None else np.asarray(offset)
        check_solver(self)
        ratios = _numbers(np.atleast_1d(self.l1_ratio))
        if not ((ratios >= 0) & (ratios <= 1)).all() or ratios.size == 0:
            raise InputError(f"l1_ratio is {self.l1_ratio!r}, expected numbers from 0 to 1.")
        if offset is not None and self.scoring is not None:
            raise InputError(
                f"scoring is {self.scoring!r}, which takes no offset. Leave scoring out."
            )
        problems, classes = self._problems(X, y, weights, offset)
        grids = [alphas_of(problems, ratio) for ratio in ratios]
        own_threads(self.n_jobs)  # refuses what is no number
        splits = self._splits(X, y)
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise InputError(f"scoring is {self.scoring!r}, expected one name or one function.")
        scorer = check_scoring(self, scoring=self.scoring)
        options: dict[str, Any] = {
            "method": self.solver,
            "tol": self.tol,
            "max_passes": self.max_iter,
            "seed": seed_of(self.random_state),
        }

        def one_fold(number: int, train: np.ndarray, test: np.ndarray) -> np.ndarray:
            if (train_weights := weights[train]).any():
                train = train[train_weights > 0]  # what has no weight is no row of a class
            known: Any = None if offset is None else offset[train]
            try:
                if np.ndim(known) == 2 and np.unique(y[train]).size < np.unique(y).size:
                    raise InputError("a class is missing, and the offset has a column for each.")
                inside, labels = self._problems(X[train], y[train], weights[train], known)
            except InputError as error:
                raise InputError(
                    f"cv: training rows of fold {number}: {error} Or use another cv."
                ) from None
            X_test, y_test = X[test], y[test]
            options_of_score = {} if offset is None else {"offset": offset[test]}
            table = np.empty((ratios.size, len(grids[0])))
            for r, (ratio, grid) in enumerate(zip(ratios, grids, strict=True)):
                penalties = self._penalties(ratio, grid)
                paths = [_path(problem, penalties, options) for problem in inside]
                for k, results in enumerate(zip(*paths, strict=True)):
                    model = fitted(results, labels)
                    table[r, k] = scorer(model, X_test, y_test, **options_of_score)
            return table

        scores = np.stack(
            Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(one_fold)(number, train, test)
                for number, (train, test) in enumerate(splits)
            ),
            axis=-1,
        )
        means = scores.mean(axis=-1)
        if np.isnan(means).any():
            number = int(np.argmax(np.isnan(scores).any(axis=(0, 1))))
            raise InputError(
                f"cv: the score of fold {number} is NaN, so nothing can be chosen: its test rows "
                "leave nothing to explain, as one row alone or counts that are all 0. Use a cv "
                "that shuffles the rows, fewer folds, or another scoring."
            )
        # Ties go to the strongest penalty: the grids decrease and argmax takes the first.
        r, k = divmod(int(means.argmax()), means.shape[1])
        self.l1_ratio_, self.scores_ = float(ratios[r]), scores
        penalties = self._penalties(self.l1_ratio_, grids[r][: k + 1])
        results = [list(_path(problem, penalties, options))[-1] for problem in problems]
        return results, classes, (r, k), np.array(grids)

    def _splits(self, X: Any, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the rows to train and to test on, of each fold."""
        cv = check_cv(self.cv, y, classifier=isinstance(self, ElasticNetClassifier))
        every = np.arange(len(y))
        try:
            splits = [(every[train], every[test]) for train, test in cv.split(X, y)]
        except (TypeError, IndexError):
            raise InputError(
                f"cv is {self.cv!r}, expected a number of folds, a splitter, or pairs of rows to "
                "train and to test on."
            ) from None
        except ValueError as error:
            if "groups" not in str(error):
                raise
            raise InputError(
                f"cv: {type(self.cv).__name__} needs groups of rows. Give its folds themselves: "
                "cv=list(splitter.split(X, y, groups))."
            ) from None
        if not splits:
            raise InputError("cv gives no fold. Name a number of folds, or a splitter.")
        return splits

    def _penalties(self, ratio: float, grid: np.ndarray) -> list[Penalty]:
        pairs = [(a * ratio, a * (1.0 - ratio)) for a in grid]
        if self.groups is None:
            return [ElasticNet(l1, l2, self.positive) for l1, l2 in pairs]
        return [group_penalty(self.groups, l1=l1, l2=l2) for l1, l2 in pairs]

    def _problems(
        self, X: Any, y: Any, weights: np.ndarray, offset: Any = None
    ) -> tuple[list[Any], np.ndarray | None]:
        """Return the problems of a fit, without penalties, and the classes if there are any."""
        return [self._problem(X, y, weights, offset)], None

    def _problem(self, X: Any, y: Any, weights: np.ndarray, offset: Any) -> Problem:
        return make_problem(
            *(X, y),
            loss=self.loss,
            sample_weight=weights,
            offset=offset,
            groups=self.groups,
            positive=self.positive,
            fit_intercept=self.fit_intercept,
        )


def _path(
    problem: Problem | SoftmaxProblem, penalties: list[Any], options: dict[str, Any]
) -> Iterator[Solved]:
    if isinstance(problem, Problem):
        return solve_path(problem, penalties, **options)
    return softmax_path(problem, penalties, tol=options["tol"], max_passes=options["max_passes"])


class ElasticNetRegressorCV(_PathCV, ElasticNetRegressor):
    """`ElasticNetRegressor` with alpha, and if wanted l1_ratio, chosen by cross-validation.

    Parameters
    ----------
    l1_ratio : float or list of float
        One share of ℓ₁, or several to choose from.
    alphas : int or array
        Length of the grid, from the strongest useful penalty to one that is weak, or the grid.
    eps : float
        How weak that is: its ℓ₁ part at most `eps` times that which leaves no feature, its ℓ₂
        part at most the square of `eps` times that which shrinks each to about a tenth.
        (scikit-learn's grids look at the first alone, so how weak the second gets depends on the
        unit of y.)
    loss, groups, positive, fit_intercept, solver, tol, max_iter, random_state
        As in `ElasticNetRegressor`.
    cv : int, splitter or None
        5 folds by default.
    scoring : str, callable or None
        By default `ElasticNetRegressor.score`. Sample weights enter the fits, not the score.
    n_jobs : int, optional
        Threads over the folds.

    Attributes
    ----------
    alpha_, l1_ratio_ : float
        The choice.
    alphas_ : array, shape (n_ratios, n_alphas)
    scores_ : array, shape (n_ratios, n_alphas, n_folds)
    coef_, intercept_, n_iter_, gap_
        Of the fit to all data, as in `ElasticNetRegressor`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ElasticNetRegressorCV(alphas=20).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.52
    """

    def __init__(
        self,
        *,
        l1_ratio: Any = 0.5,
        alphas: Any = 100,
        eps: float = 1e-3,
        loss: str | Loss = "squared",
        groups: Any = None,
        positive: bool = False,
        fit_intercept: bool = True,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.l1_ratio = l1_ratio
        self.alphas = alphas
        self.eps = eps
        self.loss = loss
        self.groups = groups
        self.positive = positive
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose alpha and l1_ratio, then fit to all data; parameters as in the base class."""
        self._check_loss()
        X, y = validated(self, X, y, y_numeric=True)
        weights = example_weights(None, y, sample_weight)

        def alphas_of(problems: list[Problem], ratio: float) -> np.ndarray:
            if not _is_length(self.alphas):
                return given_grid(self.alphas)
            return np.geomspace(*_ends(problems[0], ratio, self.eps), self.alphas)

        def fitted(results: Sequence[Any], _: Any) -> ElasticNetRegressor:
            model = ElasticNetRegressor(loss=self.loss)
            model.coef_, model.intercept_ = results[0].coef, results[0].intercept
            model.n_features_in_ = X.shape[1]
            return model

        results, _, best, self.alphas_ = self._search(X, y, weights, alphas_of, fitted, offset)
        self.alpha_ = float(self.alphas_[best])
        self.coef_, self.intercept_ = results[0].coef, results[0].intercept
        self.n_iter_, self.gap_ = max(1, round(results[0].passes)), results[0].gap
        return self


class ElasticNetClassifierCV(_PathCV, ElasticNetClassifier):
    """`ElasticNetClassifier` with C, and if wanted l1_ratio, chosen by cross-validation.

    More than two classes are fitted together, as in `ElasticNetClassifier`.

    Parameters
    ----------
    Cs : int or array
        Length of a grid of C from 1e-4 to 1e4 as in scikit-learn's ``LogisticRegressionCV``, or
        the grid. Folds keep the penalty per unit of weight, alpha = 1/(C Σ s_i) over all data.
    l1_ratio : float or list of float
        One share of ℓ₁, or several to choose from.
    loss, fit_intercept, class_weight, multi_class, grouped, groups, positive, solver, tol, max_iter
        As in `ElasticNetClassifier`.
    random_state : int, RandomState or None
        Seeds the stochastic solvers.
    cv : int, splitter or None
        5 stratified folds by default.
    scoring : str, callable or None
        By default the accuracy. Sample weights enter the fits, but not the score.
    n_jobs : int, optional
        Threads over the folds.

    Attributes
    ----------
    C_, l1_ratio_ : float
        The choice.
    Cs_ : array, shape (n_Cs,)
        Increasing.
    scores_ : array, shape (n_ratios, n_Cs, n_folds)
    classes_, coef_, intercept_, n_iter_, gap_
        Of the fit to all data, as in `ElasticNetClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ElasticNetClassifierCV(Cs=5).fit(scale(X), y)
    >>> round(model.C_, 3)
    1.0
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        l1_ratio: Any = 0.5,
        loss: str | Loss = "logistic",
        fit_intercept: bool = True,
        class_weight: Any = None,
        multi_class: str = "multinomial",
        grouped: bool = False,
        groups: Any = None,
        positive: bool = False,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: float = 1000,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.grouped = grouped
        self.groups = groups
        self.positive = positive
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Choose C and l1_ratio, then fit to all data; parameters as in the base class."""
        X, y = validated(self, X, y)
        classes = self._checked_classes(y)
        weights = example_weights(self.class_weight, y, sample_weight)
        self._check_both_weighted(classes, y, weights)
        Cs = np.logspace(-4, 4, self.Cs) if _is_length(self.Cs) else np.sort(_numbers(self.Cs))
        if not (Cs.size and Cs[0] > 0 and not np.isnan(Cs[-1])):
            raise InputError(f"Cs is {self.Cs!r}, expected a length >= 1 or numbers > 0.")

        def fitted(results: Sequence[Any], labels: np.ndarray) -> ElasticNetClassifier:
            model = ElasticNetClassifier(loss=self.loss, multi_class=self.multi_class)
            model.classes_, model.n_features_in_ = labels, X.shape[1]
            model._store(results)
            return model

        total = weights.sum()
        results, self.classes_, (_, best), _ = self._search(
            X, y, weights, lambda _, ratio: 1.0 / (Cs * total), fitted, offset
        )
        self.C_, self.Cs_ = float(Cs[best]), Cs
        self._store(results)
        return self

    def _problems(
        self, X: Any, y: Any, weights: np.ndarray, offset: Any = None
    ) -> tuple[list[Any], np.ndarray | None]:
        classes = np.unique(y)
        offset = checked_offset(classes, offset, y.size)
        if classes.size > 2 and self._is_softmax():
            return [self._softmax_problem(X, y, weights, 0.0, 0.0, offset)], classes
        positive = classes[1:] if classes.size == 2 else classes
        # One design for all classes: its transposed copy is made once.
        design, owns = as_design(X), offsets_of(positive, offset)
        return [
            self._problem(design, np.where(y == label, 1.0, -1.0), weights, own)
            for label, own in zip(positive, owns, strict=True)
        ], classes


def _ends(problem: Problem, ratio: float, eps: float) -> tuple[float, float]:
    """Return the strongest and the weakest alpha of an automatic grid."""
    if not isinstance(eps, Real) or not 0 < eps < 1:
        raise InputError(f"eps is {eps!r}, expected a number between 0 and 1.")
    by_l1 = problem.strongest_l1() / max(ratio, 1e-3) if ratio > 0 else 0.0
    by_l2 = 10 * problem.strongest_l2() / (1 - ratio) if ratio < 1 else 0.0
    largest = by_l1 if ratio > 0 else by_l2
    weak = [end for end in (by_l1 * eps, by_l2 * eps**2) if end > 0]
    if not 0 < largest < np.inf or not weak:
        return 1.0, eps  # nothing to learn
    return largest, min(largest, max(min(weak), largest * 1e-100))


def given_grid(alphas: Any) -> np.ndarray:
    """Return penalties that are given, in falling order."""
    values = np.sort(_numbers(alphas))[::-1]
    if values.size == 0 or values[-1] < 0 or not np.isfinite(values).all():
        raise InputError(f"alphas is {alphas!r}, expected a length >= 1 or numbers >= 0.")
    return values


def _is_length(grid: Any) -> bool:
    """Whether a grid is given by its length."""
    return isinstance(grid, Integral) and int(grid) >= 1


def _numbers(grid: Any) -> np.ndarray:
    """Return a grid that is given by its values; empty for what is none."""
    refuse_masked("the grid", grid)
    try:
        values = np.asarray(grid, dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)
    return values if values.ndim == 1 else np.empty(0)
