"""Methods beside each other on the same splits: which one ranks a table's rows best?

80 % train, 20 % test, stratified, one split a run. Each method's parameter comes from 5-fold
cross-validation on the first split's training part (at most `SEARCH_ROWS` of it; fewer where steps
are slow, see `Contender.search_rows`) and is used in all runs.
"""

import warnings
import zlib
from collections.abc import Callable, Sequence
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
from telic.errors import InputError
from telic.evaluate.average_precision import average_precision
from telic.evaluate.classification import roc_auc
from telic.evaluate.repeated_cv import nadeau_bengio_interval

BETAS = tuple(10.0**k for k in range(-5, 6))
TESTED = 0.2
"""Share of the rows that a split tests on."""
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


@dataclass(frozen=True)
class Contender:
    """A way to fit a ranker, and the values its one searched parameter may take."""

    make: Callable[[float, int], Any]
    """From the parameter and the number of columns."""
    grid: Sequence[float] = BETAS
    most_rows: int | None = None
    dense_step: bool = False
    """Whether a step costs O(d) however sparse the row."""

    def search_rows(self, d: int) -> int:
        """Rows at most to search the parameter on."""
        return WIDE_SEARCH_ROWS if self.dense_step and d > DENSE_COLUMNS else SEARCH_ROWS


def _logistic(C: float, d: int) -> LogisticRegression:
    solver = "newton-cholesky" if d <= 200 else "lbfgs"
    # L-BFGS at 1e-3 stops sparse unit rows points of AUC short of the optimum.
    tol, steps = (1e-3, 100) if d <= 200 else (1e-5, 300)
    return LogisticRegression(C=C, solver=solver, max_iter=steps, tol=tol)


METHODS: dict[str, Contender] = {
    "exact": Contender(lambda beta, d: AUCClassifier(beta=beta)),
    "logistic": Contender(_logistic, tuple(10.0**k for k in range(-3, 5))),
    "hinge": Contender(
        lambda beta, d: PairwiseAUC(beta, tol=1e-6, max_iter=100), BETAS[:7], HINGE_ROWS
    ),
    "SPAM-L2": Contender(lambda beta, d: SPAM(beta, max_iter=5, random_state=0)),
    "SPAM-NET": Contender(
        lambda beta, d: SPAM(beta, beta1=beta / 10, max_iter=5, random_state=0), dense_step=True
    ),
    "VRSPAM-L2": Contender(lambda beta, d: VRSPAM(beta, tol=1e-4, max_iter=10, random_state=0)),
    "VRSPAM-NET": Contender(
        lambda beta, d: VRSPAM(beta, beta1=beta / 10, tol=1e-4, max_iter=10, random_state=0)
    ),
    "SPDAM": Contender(lambda beta, d: SPDAM(beta, batch_size=0.01, max_iter=20, random_state=0)),
    "SOLAM": Contender(
        lambda radius, d: SOLAM(radius, max_iter=5, random_state=0),
        tuple(10.0**k for k in range(-1, 4)),
    ),
    "regSOLAM": Contender(lambda beta, d: RegSOLAM(beta, max_iter=5, random_state=0)),
    "OPAUC": Contender(
        lambda beta, d: OPAUC(
            beta, rank=50 if d > SKETCH_ABOVE else None, max_iter=1, random_state=0
        ),
        dense_step=True,
    ),
    "OAM-seq": Contender(
        lambda C, d: OAM("seq", C=C, max_iter=1, random_state=0),
        tuple(10.0**k for k in range(-7, 1)),
    ),
    "OAM-gra": Contender(
        lambda beta, d: OAM("gra", beta=beta, max_iter=1, random_state=0),
    ),
    "Uni-Exp": Contender(lambda beta, d: UniExp(beta, max_iter=1, random_state=0)),
}


def one_run(data: DataSet, method: str, scaling: str, run: int, parameter: float) -> float:
    """Test AUC of one method on one split."""
    return roc_auc(*tested(data, method, scaling, run, parameter))


def tested(
    data: DataSet, method: str, scaling: str, run: int, parameter: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows of a split's test part are positive, and one method's scores of them."""
    train, test = split(data, run)
    way = METHODS[method]
    train = at_most(train, data.positive, way.most_rows)
    measured = Scaling.fit(data.X[train], scaling)
    model = fitted(way, parameter, measured.apply(data.X[train]), data.positive[train])
    return data.positive[test], model.decision_function(measured.apply(data.X[test]))


def search(data: DataSet, method: str, scaling: str) -> float:
    """Choose a method's parameter by 5-fold cross-validation on the first training part."""
    way = METHODS[method]
    most = way.search_rows(data.X.shape[1])
    rows = at_most(split(data, 0)[0], data.positive, most)
    X, positive = data.X[rows], data.positive[rows]
    X = Scaling.fit(X, scaling).apply(X)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, positive))

    def mean_auc(parameter: float) -> float:
        scores = []
        for train, test in folds:
            model = fitted(way, parameter, X[train], positive[train])
            scores.append(roc_auc(positive[test], model.decision_function(X[test])))
        return float(np.mean(scores))

    with warnings.catch_warnings():
        # Grids reach where every weight is 0; such a parameter scores 0.5 and is not chosen.
        warnings.filterwarnings("ignore", message="all weights are 0")
        return max(way.grid, key=mean_auc)


def fitted(way: Contender, parameter: float, X: Matrix, positive: np.ndarray) -> Any:
    """Return a method fitted with a parameter."""
    model = way.make(parameter, X.shape[1])
    if isinstance(model, LinearAUC):
        model.set_params(pos_label=True)
    with warnings.catch_warnings():
        # The tables fix the passes of each method, as the documents do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, positive)


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
        ends of Nadeau and Bengio's 95 % interval, None where there is one split), the parameter
        chosen, and the positive label.

    Raises
    ------
    InputError
        If there is no run, or a class has fewer than ten rows.

    Examples
    --------
    Fourteen methods, each with a search for its parameter, take a while::

        rows = read_labelled("payments.csv", label="fraud", drop=["id"])
        for row in compare_rankers("payments", rows, runs=3):
            print(row["method"], row["auc"], row["sd"])
    """
    if runs < 1:
        raise InputError(f"runs is {runs}, expected at least 1.")
    enough_of_each(rows)
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
                "parameter": parameters[method],
                "positive": rows.positive_label,
            }
        )
    return sorted(found, key=lambda row: -row["auc"])
