"""The cells of the AUC tables of both papers, run again and kept; two controls beside them.

Every result is a line of a file as soon as it is known, with a fingerprint of the code, the
settings and the data that made it, so that a run can be resumed and what other code made is
computed again. `telic.study.steps.Steps` is too coarse for that: a table has hundreds of cells of
minutes each, whose methods change one at a time, and more runs are added to what is there.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import telic.auc.feature_scaling
import telic.evaluate.classification
from telic.auc import compare
from telic.auc.compare import METHODS, DataSet
from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.base import LinearAUC
from telic.data.data_sets import labelled_set, set_file
from telic.data.fingerprint import fingerprint
from telic.errors import InputError

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

    Its scaling is the one that its published results fit best.
    """
    file = set_file(name, data)
    if not file.is_file():
        return None
    rows, y, classes = labelled_set(name, data)
    positive = y > 0
    if name in RULES and rule is not None and classes is not None:
        positive = RULES[name][rule](classes)
    X: Matrix = rows
    if rows.nnz > 0.15 * rows.shape[0] * rows.shape[1] or rows.shape[1] <= 200:
        X = rows.toarray()
    with file.open("rb") as stream:
        digest = f"{hashlib.file_digest(stream, 'sha256').hexdigest()[:16]} {rule or ''}"
    return DataSet(name, X, positive, "minmax+unit" if name in SCALED else "unit", digest)


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


def made_by(data: DataSet, method: str, scaling: str) -> str:
    """Return the fingerprint of a method's results on a set: its code, settings and rows."""
    way = METHODS[method]
    model = way.make(way.grid[0], data.X.shape[1])
    ours = [type(model)] if isinstance(model, LinearAUC) else []
    settings = {
        "model": [type(model).__name__, model.get_params()],
        "grid": list(way.grid),
        "rows": [way.most_rows, way.search_rows(data.X.shape[1])],
        "scaling": scaling,
        "data": data.digest,
    }
    steps = (
        compare.one_run,
        compare.search,
        compare.fitted,
        compare.split,
        compare.at_most,
        load,
    )
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
    parameter = results.get(f"{stem}|parameter", chosen, made=made)
    return [
        results.get(
            f"{stem}|{run}",
            partial(compare.one_run, data, method, scaling, run, parameter),
            made=made,
        )
        for run in range(runs)
    ]


def ceiling(
    name: str, data: str | Path | None, runs: int, results: Results
) -> Iterator[tuple[str, str, str, float]]:
    """Best linear AUC under every label rule and scaling: (rule, scaling, loss, mean AUC)."""
    for rule in RULES.get(name, {"": None}):
        rows = load(name, data, rule or None)
        if rows is None:
            return
        wide = rows.X.shape[1] > 10_000
        scalings = ("raw", "unit", "standard") if wide else CONTROL_SCALINGS
        for scaling in scalings:
            for method in CEILINGS:
                # Unscaled columns of different size stall the iterative controls; the exact
                # optimum shows what raw columns allow.
                if scaling in ("raw",) and method != "exact":
                    continue
                try:
                    found = runs_of(rows, method, scaling, runs, results, label=rule)
                except NotStored:
                    continue
                yield rule, scaling, method, float(np.mean(found))
