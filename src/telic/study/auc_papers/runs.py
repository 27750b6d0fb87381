"""The cells of the AUC tables of both papers, run again: data sets by label rule, and controls."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

import telic.auc.feature_scaling
import telic.evaluate.classification
from telic.auc import compare
from telic.auc.compare import METHODS, DataSet
from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC
from telic.data.data_sets import labelled_set, set_file
from telic.study.auc_papers.kept_results import NotStored, Results
from telic.study.code_fingerprint import fingerprint

CEILINGS = ("exact", "hinge", "logistic")
CONTROL_SCALINGS = ("raw", "unit", "minmax", "minmax+unit", "standard", "standard+unit")

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


def load(name: str, data: str | Path | None = None, rule: str | None = None) -> DataSet | None:
    """Load a set by name, under one of its label rules; None if its file is absent.

    Without a rule, its first one. Its scaling is the one that its published results fit best.
    """
    file = set_file(name, data)
    if not file.is_file():
        return None
    rows, y, classes = labelled_set(name, data)
    rule = first_rule(name) if rule is None else rule
    by_classes = RULES.get(name, {}).get(rule)
    positive = y > 0 if by_classes is None or classes is None else by_classes(classes)
    X: Matrix = rows
    if rows.nnz > 0.15 * rows.shape[0] * rows.shape[1] or rows.shape[1] <= 200:
        X = rows.toarray()
    with file.open("rb") as stream:
        digest = f"{hashlib.file_digest(stream, 'sha256').hexdigest()[:16]} {rule}"
    return DataSet(name, X, positive, "minmax+unit" if name in SCALED else "unit", digest)


SAME = {"B-LS-SVM": "exact", "B-SVM-OR": "hinge"}
"""Names of the documents for what is here already."""


def made_by(data: DataSet, method: str, scaling: str) -> str:
    """Return the fingerprint of a method's results on a set: its code, settings and rows."""
    way = METHODS[method]
    model = way.make(data.X.shape[1], **way.grid[0])
    ours = [type(model)] if isinstance(model, LinearAUC) else []
    settings = {
        "model": [type(model).__name__, model.get_params()],
        "grid": list(way.grid),
        "rows": [way.most_rows, way.search_rows(data.X.shape[1])],
        "scaling": scaling,
        "data": data.digest,
    }
    steps = (compare.one_run, compare.search, compare.scored, compare.split, compare.at_most, load)
    return fingerprint(
        *ours, *steps, telic.auc.feature_scaling, telic.evaluate.classification, settings=settings
    )


def runs_of(
    data: DataSet, method: str, scaling: str, runs: int, results: Results, *, label: str
) -> list[float]:
    """Test AUC of every run, from the file where it is there."""
    stem = f"{data.name}|{label}|{scaling}|{method}"
    made = made_by(data, method, scaling)
    chosen = partial(compare.search, data, method, scaling)
    parameters = results.get(f"{stem}|parameters", chosen, made=made)
    return [
        results.get(
            f"{stem}|{run}",
            partial(compare.one_run, data, method, scaling, run, parameters),
            made=made,
        )
        for run in range(runs)
    ]


def ceiling(
    name: str, data: str | Path | None, runs: int, results: Results
) -> Iterator[tuple[str, str, str, float]]:
    """Best linear AUC under every label rule and scaling: (rule, scaling, loss, mean AUC)."""
    for rule in RULES.get(name, {"": None}):
        rows = load(name, data, rule)
        if rows is None:
            return
        wide = rows.X.shape[1] > 10_000
        scalings = ("raw", "unit", "standard") if wide else CONTROL_SCALINGS
        for scaling in scalings:
            for method in CEILINGS:
                # Unscaled columns of different size stall the iterative controls; the exact
                # optimum shows what raw columns allow.
                if scaling == "raw" and method != "exact":
                    continue
                try:
                    found = runs_of(rows, method, scaling, runs, results, label=rule)
                except NotStored:
                    continue
                yield rule, scaling, method, float(np.mean(found))
