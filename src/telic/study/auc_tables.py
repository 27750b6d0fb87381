"""The AUC tables of both documents, run again beside the exact optimum and two controls.

80 % train, 20 % test, stratified, one split a run. Each method's parameter comes from 5-fold
cross-validation on the first split's training part (at most `SEARCH_ROWS` of it; fewer where steps
are slow, see `Method.search_rows`) and is used in all runs. Every result is a line of a file as
soon as it is known, with a fingerprint of the code, the settings and the data that made it, so that
a run can be resumed and what other code made is computed again.
"""

import hashlib
import json
import logging
import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split

import telic.auc.scaling
import telic.evaluate.classification
from telic.auc import OAM, OPAUC, SOLAM, SPAM, SPDAM, VRSPAM, PairwiseAUC, RegSOLAM, UniExp
from telic.auc.estimators import AUCClassifier
from telic.auc.linear import LinearAUC
from telic.auc.rows import Matrix
from telic.auc.scaling import Scaling
from telic.data.fingerprint import fingerprint
from telic.errors import InputError
from telic.evaluate.classification import roc_auc

BETAS = tuple(10.0**k for k in range(-5, 6))
SEARCH_ROWS = 10_000
WIDE_SEARCH_ROWS = 1_000
"""Of sets with more than `DENSE_COLUMNS` columns, for methods whose step costs O(d)."""
HINGE_ROWS = 20_000
"""The pairwise hinge trains on at most this many rows."""
SKETCH_ABOVE = 200
"""OPAUC keeps a sketch of rank 50 above this many columns."""
DENSE_COLUMNS = 10_000
CEILINGS = ("exact", "hinge", "logistic")
CONTROL_SCALINGS = ("raw", "unit", "minmax", "minmax+unit", "standard", "standard+unit")


class DataSet(NamedTuple):
    """A labelled set, with the scaling its published results fit best."""

    name: str
    X: Matrix
    positive: np.ndarray
    scaling: str
    digest: str = ""
    """Of the file it was read from and of the label rule."""


# LIBSVM offers these scaled by column; the others are taken as they are. Unit rows keep
# the norm bound M = 1 that both documents assume.
SCALED = ("covtype", "diabetes", "fourclass", "german", "ionosphere")
RULES: Mapping[str, Mapping[str, Callable[[np.ndarray], np.ndarray]]] = {
    "covtype": {"class 2": lambda y: y == 2, "even": lambda y: y % 2 == 0},
    "mnist": {"even": lambda y: y % 2 == 0, "digit < 5": lambda y: y < 5},
    "news20": {"even": lambda y: y % 2 == 0, "first half": lambda y: y <= np.median(y)},
    "sector": {"even": lambda y: y % 2 == 0, "first half": lambda y: y <= np.median(y)},
}
"""Label rules tried for sets of several classes; the first is the one used in the tables."""


def first_rule(name: str) -> str:
    """Name of the label rule that the tables use for a set; "" where labels are two already."""
    return next(iter(RULES.get(name, {"": None})))


def data_folder(folder: str | Path | None = None) -> Path:
    """Return where the benchmark sets lie: given, or TELIC_DATA, or ../shared/data."""
    chosen = Path(folder or os.environ.get("TELIC_DATA", "../shared/data")) / "ml"
    if not chosen.is_dir():
        raise InputError(
            f"{chosen}: not found. Set TELIC_DATA to the folder that holds ml/*.npz "
            "(CSR arrays data, indices, indptr, shape and labels y, y_raw)."
        )
    return chosen


def load(name: str, folder: Path, rule: str | None = None) -> DataSet | None:
    """Load a set by name, under one of its label rules; None if its file is absent."""
    file = folder / f"{name}.npz"
    if not file.is_file():
        return None
    with np.load(file, allow_pickle=False) as stored:
        shape = tuple(stored["shape"])
        parts = stored["data"].astype(float), stored["indices"], stored["indptr"]
        X: Matrix = sparse.csr_matrix(parts, shape=shape)
        positive = stored["y"] > 0
        if name in RULES and rule is not None:
            positive = RULES[name][rule](stored["y_raw"])
    if X.nnz > 0.15 * shape[0] * shape[1] or shape[1] <= 200:
        X = X.toarray()
    with file.open("rb") as stream:
        digest = f"{hashlib.file_digest(stream, 'sha256').hexdigest()[:16]} {rule or ''}"
    return DataSet(name, X, positive, "minmax+unit" if name in SCALED else "unit", digest)


@dataclass(frozen=True)
class Method:
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


METHODS: dict[str, Method] = {
    "exact": Method(lambda beta, d: AUCClassifier(beta=beta)),
    "logistic": Method(_logistic, tuple(10.0**k for k in range(-3, 5))),
    "hinge": Method(
        lambda beta, d: PairwiseAUC(beta, tol=1e-6, max_iter=100), BETAS[:7], HINGE_ROWS
    ),
    "SPAM-L2": Method(lambda beta, d: SPAM(beta, max_iter=5, random_state=0)),
    "SPAM-NET": Method(
        lambda beta, d: SPAM(beta, beta1=beta / 10, max_iter=5, random_state=0), dense_step=True
    ),
    "VRSPAM-L2": Method(lambda beta, d: VRSPAM(beta, tol=1e-4, max_iter=10, random_state=0)),
    "VRSPAM-NET": Method(
        lambda beta, d: VRSPAM(beta, beta1=beta / 10, tol=1e-4, max_iter=10, random_state=0)
    ),
    "SPDAM": Method(lambda beta, d: SPDAM(beta, batch_size=0.01, max_iter=20, random_state=0)),
    "SOLAM": Method(
        lambda radius, d: SOLAM(radius, max_iter=5, random_state=0),
        tuple(10.0**k for k in range(-1, 4)),
    ),
    "regSOLAM": Method(lambda beta, d: RegSOLAM(beta, max_iter=5, random_state=0)),
    "OPAUC": Method(
        lambda beta, d: OPAUC(
            beta, rank=50 if d > SKETCH_ABOVE else None, max_iter=1, random_state=0
        ),
        dense_step=True,
    ),
    "OAM-seq": Method(
        lambda C, d: OAM("seq", C=C, max_iter=1, random_state=0),
        tuple(10.0**k for k in range(-7, 1)),
    ),
    "OAM-gra": Method(
        lambda beta, d: OAM("gra", beta=beta, max_iter=1, random_state=0),
    ),
    "Uni-Exp": Method(lambda beta, d: UniExp(beta, max_iter=1, random_state=0)),
}
SAME = {"B-LS-SVM": "exact", "B-SVM-OR": "hinge"}
"""Names of the documents for what is here already."""


class NotStored(LookupError):
    """A result is not in the file, and computing it was not allowed."""


log = logging.getLogger(__name__)

_LINE = '{"key": "'
"""How each line of the stored results begins."""


@dataclass
class Results:
    """Everything computed so far, kept in a file of one JSON object a line.

    A line whose fingerprint is not that of today's code and settings counts as not there.
    """

    file: Path
    compute: bool = True
    """Whether what is not in the file is computed; otherwise `NotStored` is raised."""
    found: dict[str, tuple[Any, str]] = field(default_factory=dict)
    """Value and fingerprint by key."""

    def __post_init__(self) -> None:
        if self.file.is_file():
            for line in self.file.read_text(encoding="utf-8").splitlines():
                try:
                    entry = json.loads(line)
                    self.found[entry["key"]] = entry["value"], entry.get("made", "")
                except (ValueError, KeyError, TypeError):
                    if not line.startswith(_LINE[: len(line)]):
                        raise InputError(
                            f"{self.file}: is not a file of finished runs, so nothing is added to "
                            "it. Choose another name."
                        ) from None
                    continue  # the line that an interruption cut

    def get(self, key: str, compute: Callable[[], Any], *, made: str) -> Any:
        """Return what is stored under the key, computing and storing it first if need be.

        Parameters
        ----------
        key : str
        compute : callable
        made : str
            `telic.data.fingerprint` of what computes it.
        """
        value, by = self.found.get(key, (None, None))
        if by == made:
            return value
        if not self.compute:
            raise NotStored(key)
        if by is not None:
            log.warning("%s: %s was made by other code or settings: computed again", self.file, key)
        value = compute()
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write("\n" if self._is_cut() else "")
            stream.write(json.dumps({"key": key, "value": value, "made": made}) + "\n")
        self.found[key] = value, made
        return value

    def _is_cut(self) -> bool:
        size = self.file.stat().st_size
        if size == 0:
            return False
        with self.file.open("rb") as stream:
            stream.seek(size - 1)
            return stream.read(1) != b"\n"


def one_run(data: DataSet, method: str, scaling: str, run: int, parameter: float) -> float:
    """Test AUC of one method on one split."""
    train, test = _split(data, run)
    way = METHODS[method]
    train = _at_most(train, data.positive, way.most_rows)
    measured = Scaling.fit(data.X[train], scaling)
    model = _fitted(way, parameter, measured.apply(data.X[train]), data.positive[train])
    return roc_auc(data.positive[test], model.decision_function(measured.apply(data.X[test])))


def search(data: DataSet, method: str, scaling: str) -> float:
    """Choose a method's parameter by 5-fold cross-validation on the first training part."""
    way = METHODS[method]
    most = way.search_rows(data.X.shape[1])
    rows = _at_most(_split(data, 0)[0], data.positive, most)
    X, positive = data.X[rows], data.positive[rows]
    X = Scaling.fit(X, scaling).apply(X)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, positive))

    def mean_auc(parameter: float) -> float:
        scores = []
        for train, test in folds:
            model = _fitted(way, parameter, X[train], positive[train])
            scores.append(roc_auc(positive[test], model.decision_function(X[test])))
        return float(np.mean(scores))

    with warnings.catch_warnings():
        # Grids reach where every weight is 0; such a parameter scores 0.5 and is not chosen.
        warnings.filterwarnings("ignore", message="all weights are 0")
        return max(way.grid, key=mean_auc)


def _fitted(way: Method, parameter: float, X: Matrix, positive: np.ndarray) -> Any:
    model = way.make(parameter, X.shape[1])
    if isinstance(model, LinearAUC):
        model.set_params(pos_label=True)
    with warnings.catch_warnings():
        # The tables fix the passes of each method, as the documents do.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, positive)


def made_by(data: DataSet, method: str, scaling: str) -> str:
    """Return the fingerprint of a method's results on a set: its code, settings and rows."""
    way = METHODS[method]
    model = way.make(way.grid[0], data.X.shape[1])
    ours = [type(model)] if isinstance(model, LinearAUC) else []
    settings = {
        "model": [type(model).__name__, model.get_params()],
        "grid": list(way.grid), "rows": [way.most_rows, way.search_rows(data.X.shape[1])],
        "scaling": scaling, "data": data.digest,
    }  # fmt: skip
    steps = one_run, search, _fitted, _split, _at_most, load
    return fingerprint(*ours, *steps, telic.auc.scaling, telic.evaluate.classification,
                       settings=settings)  # fmt: skip


def runs_of(
    data: DataSet, method: str, scaling: str, runs: int, results: Results, *, label: str
) -> list[float]:
    """Test AUC of every run, from the file where it is there."""
    stem = f"{data.name}|{label}|{scaling}|{method}"
    made = made_by(data, method, scaling)
    chosen = partial(search, data, method, scaling)
    parameter = results.get(f"{stem}|parameter", chosen, made=made)
    return [
        results.get(
            f"{stem}|{run}", partial(one_run, data, method, scaling, run, parameter), made=made
        )
        for run in range(runs)
    ]


def ceiling(
    name: str, folder: Path, runs: int, results: Results
) -> Iterator[tuple[str, str, str, float]]:
    """Best linear AUC under every label rule and scaling: (rule, scaling, loss, mean AUC)."""
    for rule in RULES.get(name, {"": None}):
        data = load(name, folder, rule or None)
        if data is None:
            return
        wide = data.X.shape[1] > 10_000
        scalings = ("raw", "unit", "standard") if wide else CONTROL_SCALINGS
        for scaling in scalings:
            for method in CEILINGS:
                # Unscaled columns of different size stall the iterative controls; the exact
                # optimum shows what raw columns allow.
                if scaling in ("raw",) and method != "exact":
                    continue
                try:
                    found = runs_of(data, method, scaling, runs, results, label=rule)
                except NotStored:
                    continue
                yield rule, scaling, method, float(np.mean(found))


def _split(data: DataSet, run: int) -> tuple[np.ndarray, np.ndarray]:
    seed = (zlib.crc32(data.name.encode()) + run) % 2**31
    rows = np.arange(data.positive.size)
    return train_test_split(rows, test_size=0.2, random_state=seed, stratify=data.positive)


def _at_most(rows: np.ndarray, positive: np.ndarray, most: int | None) -> np.ndarray:
    """At most so many of the rows, class shares kept."""
    if most is None or rows.size <= most:
        return rows
    return train_test_split(rows, train_size=most, random_state=0, stratify=positive[rows])[0]
