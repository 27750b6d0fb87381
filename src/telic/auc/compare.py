"""Methods beside each other on the same splits: which one ranks a table's rows best?

80 % train, 20 % test, stratified, one split a run. Each method's parameters come from 5-fold
cross-validation on the first split's training part (at most `SEARCH_ROWS` of it; fewer where steps
are slow, see `Contender.search_rows`) and are used in all runs.
"""

import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC
from telic.auc.estimators.by_name import AUCClassifier
from telic.auc.estimators.deterministic import PairwiseAUC
from telic.auc.estimators.online import OAM, OPAUC, SOLAM, RegSOLAM, UniExp
from telic.auc.estimators.stochastic import SPAM, SPDAM, VRSPAM
from telic.auc.feature_scaling import Scaling
from telic.auc.table_ranker import Labelled, enough_of_each
from telic.errors import DivergedError, expect_whole
from telic.evaluate.average_precision import average_precision
from telic.evaluate.classification import roc_auc
from telic.evaluate.repeated_cv import nadeau_bengio_interval

BETAS = tuple(10.0**k for k in range(-5, 6))
TESTED = 0.2
"""Share of the rows that a split tests on."""
_SHARES = (0.01, 0.1, 1.0, 10.0)
"""ℓ₁ weights that are tried, as shares of the ℓ₂ weight."""
SEARCH_ROWS = 10_000
WIDE_SEARCH_ROWS = 1_000
"""Of sets with more than `DENSE_COLUMNS` columns, for methods whose step costs O(d)."""
HINGE_ROWS = 20_000
"""The pairwise hinge trains on at most this many rows."""
SKETCH_ABOVE = 200
"""OPAUC keeps a sketch of rank 50 above this many columns."""
DENSE_COLUMNS = 10_000


class DataSet(NamedTuple):
    """A labelled set and its scaling; its name gives the splits."""

    name: str
    X: Matrix
    positive: np.ndarray
    scaling: str
    digest: str = ""
    """Of the file it was read from and of the label rule."""


Parameters = Mapping[str, float]
"""Of an estimator, by name: those that are searched."""


def _each(name: str, values: Sequence[float]) -> tuple[Parameters, ...]:
    return tuple({name: value} for value in values)


ONE_BETA = _each("beta", BETAS)
BOTH_BETAS = tuple({"beta": beta, "beta1": share * beta} for beta in BETAS for share in _SHARES)


@dataclass(frozen=True)
class Contender:
    """A way to fit a ranker, and the parameters that are tried."""

    make: Callable[..., Any]
    """From the number of columns, and the parameters by name."""
    grid: Sequence[Parameters] = ONE_BETA
    most_rows: int | None = None
    dense_step: bool = False
    """Whether a step costs O(d) however sparse the row."""

    def search_rows(self, d: int) -> int:
        """Rows at most to search the parameters on."""
        return WIDE_SEARCH_ROWS if self.dense_step and d > DENSE_COLUMNS else SEARCH_ROWS


def _logistic(d: int, C: float) -> LogisticRegression:
    solver = "newton-cholesky" if d <= 200 else "lbfgs"
    # L-BFGS at 1e-3 stops sparse unit rows points of AUC short of the optimum.
    tol, steps = (1e-3, 100) if d <= 200 else (1e-5, 300)
    return LogisticRegression(C=C, solver=solver, max_iter=steps, tol=tol)


METHODS: dict[str, Contender] = {
    "exact": Contender(lambda d, beta: AUCClassifier(beta=beta)),
    "logistic": Contender(_logistic, _each("C", [10.0**k for k in range(-3, 5)])),
    "hinge": Contender(
        lambda d, beta: PairwiseAUC(beta, tol=1e-6, max_iter=100), ONE_BETA[:7], HINGE_ROWS
    ),
    "SPAM-L2": Contender(lambda d, beta: SPAM(beta, max_iter=5, random_state=0)),
    "SPAM-NET": Contender(
        lambda d, beta, beta1: SPAM(beta, beta1=beta1, max_iter=5, random_state=0),
        BOTH_BETAS,
        dense_step=True,
    ),
    "VRSPAM-L2": Contender(lambda d, beta: VRSPAM(beta, tol=1e-4, max_iter=10, random_state=0)),
    "VRSPAM-NET": Contender(
        lambda d, beta, beta1: VRSPAM(beta, beta1=beta1, tol=1e-4, max_iter=10, random_state=0),
        BOTH_BETAS,
    ),
    "SPDAM": Contender(lambda d, beta: SPDAM(beta, batch_size=0.01, max_iter=20, random_state=0)),
    "SOLAM": Contender(
        lambda d, radius: SOLAM(radius, max_iter=5, random_state=0),
        _each("radius", [10.0**k for k in range(-1, 4)]),
    ),
    "regSOLAM": Contender(
        lambda d, beta, step_size: RegSOLAM(beta, step_size=step_size, max_iter=5, random_state=0),
        [{"beta": beta, "step_size": step} for beta in BETAS for step in (0.1, 1.0, 10.0)],
    ),
    "OPAUC": Contender(
        lambda d, beta: OPAUC(
            beta, rank=50 if d > SKETCH_ABOVE else None, max_iter=1, random_state=0
        ),
        dense_step=True,
    ),
    "OAM-seq": Contender(
        lambda d, C: OAM("seq", C=C, max_iter=1, random_state=0),
        _each("C", [10.0**k for k in range(-7, 1)]),
    ),
    "OAM-gra": Contender(lambda d, beta: OAM("gra", beta=beta, max_iter=1, random_state=0)),
    "Uni-Exp": Contender(lambda d, beta: UniExp(beta, max_iter=1, random_state=0)),
}


def one_run(data: DataSet, method: str, scaling: str, run: int, parameters: Parameters) -> float:
    """Test AUC of one method on one split."""
    return roc_auc(*tested(data, method, scaling, run, parameters))


def tested(
    data: DataSet, method: str, scaling: str, run: int, parameters: Parameters
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows of a split's test part are positive, and one method's scores of them."""
    train, test = split(data, run)
    way = METHODS[method]
    train = at_most(train, data.positive, way.most_rows)
    measured = Scaling.fit(data.X[train], scaling)
    fit, unseen = measured.apply(data.X[train]), measured.apply(data.X[test])
    return data.positive[test], scored(way, parameters, fit, data.positive[train], unseen)


def search(data: DataSet, method: str, scaling: str) -> Parameters:
    """Choose a method's parameters by 5-fold cross-validation on the first training part."""
    way = METHODS[method]
    most = way.search_rows(data.X.shape[1])
    rows = at_most(split(data, 0)[0], data.positive, most)
    X, positive = data.X[rows], data.positive[rows]
    X = Scaling.fit(X, scaling).apply(X)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, positive))

    def mean_auc(parameters: Parameters) -> float:
        scores = []
        for train, test in folds:
            found = scored(way, parameters, X[train], positive[train], X[test])
            scores.append(roc_auc(positive[test], found))
        return float(np.mean(scores))

    with warnings.catch_warnings():
        # Grids reach where every weight is 0; such parameters score 0.5 and are not chosen.
        warnings.filterwarnings("ignore", message="all weights are 0")
        return max(way.grid, key=mean_auc)


def scored(
    way: Contender, parameters: Parameters, X: Matrix, positive: np.ndarray, unseen: Matrix
) -> np.ndarray:
    """Return the scores of unseen rows by a method that is fitted with some parameters.

    All are 0 where the method diverges, on either rows: it ranks nothing.
    """
    model = way.make(X.shape[1], **parameters)
    if isinstance(model, LinearAUC):
        model.set_params(pos_label=True)
    with warnings.catch_warnings():
        # The tables fix the passes of each method, as the documents do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model.fit(X, positive)
        except DivergedError:
            return np.zeros(unseen.shape[0])
    found = np.asarray(model.decision_function(unseen))
    return found if np.isfinite(found).all() else np.zeros(len(found))


def split(data: DataSet, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train and to test on in one run."""
    seed = (zlib.crc32(data.name.encode()) + run) % 2**31
    rows = np.arange(data.positive.size)
    return train_test_split(rows, test_size=TESTED, random_state=seed, stratify=data.positive)


def at_most(rows: np.ndarray, positive: np.ndarray, most: int | None) -> np.ndarray:
    """At most so many of the rows, class shares kept."""
    if most is None or rows.size <= most:
        return rows
    return train_test_split(rows, train_size=most, random_state=0, stratify=positive[rows])[0]


def compare_rankers(
    name: str,
    rows: Labelled,
    *,
    scaling: str = "standard",
    runs: int = 5,
    progress: Callable[[str], None] = lambda method: None,
) -> list[dict[str, Any]]:
    """Compare every method on a table.

    Parameters
    ----------
    name : str
        Gives the splits: equal names, equal splits.
    rows : Labelled
    scaling : str
        As in `telic.auc.feature_scaling.Scaling`.
    runs : int
        Random splits.
    progress : callable
        Told each method when it begins.

    Returns
    -------
    list of dict
        The highest mean AUC first: the method, its mean AUC and average precision over the splits
        with their standard deviations, how far its AUC is above logistic regression's (with the
        ends of Nadeau and Bengio's 95 % interval, None where there is one split), the parameters
        chosen, by name, and the positive label.

    Raises
    ------
    InputError
        If there is no run, or a class has fewer than ten rows.

    Examples
    --------
    Fourteen methods, each with a search for its parameters, take a while::

        rows = read_labelled("payments.csv", label="fraud", drop=["id"])
        for row in compare_rankers("payments", rows, runs=3):
            print(row["method"], row["auc"], row["sd"])
    """
    expect_whole(1, runs=runs)
    enough_of_each(int(rows.positive.sum()), rows.positive.size, rows.positive_label)
    data = DataSet(name, rows.X, rows.positive, scaling)
    parameters, aucs, precisions = {}, {}, {}
    for method in METHODS:
        progress(method)
        parameters[method] = search(data, method, scaling)
        results = [tested(data, method, scaling, run, parameters[method]) for run in range(runs)]
        aucs[method] = np.array([roc_auc(*result) for result in results])
        precisions[method] = np.array([average_precision(*result) for result in results])
    found = []
    for method in METHODS:
        gain = aucs[method] - aucs["logistic"]
        interval: tuple[float | None, float | None] = (None, None)
        if runs > 1:
            interval = nadeau_bengio_interval(gain, test_over_train=TESTED / (1 - TESTED))
        found.append(
            {
                "method": method,
                "auc": float(aucs[method].mean()),
                "sd": float(aucs[method].std()),
                "average_precision": float(precisions[method].mean()),
                "average_precision_sd": float(precisions[method].std()),
                "over_logistic": float(gain.mean()),
                "over_logistic_low": interval[0],
                "over_logistic_high": interval[1],
                "parameters": dict(parameters[method]),
                "positive": rows.positive_label,
            }
        )
    return sorted(found, key=lambda row: -row["auc"])
