"""A ranker for tables: encoding, scaling and weights together, kept in one folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from telic.auc.estimators import AUCClassifier
from telic.auc.rows import Matrix
from telic.auc.scaling import Scaling
from telic.auc.tables import Encoder, choose_positive, read_labels, read_table
from telic.data import load_model, save_model
from telic.errors import InputError
from telic.evaluate.classification import roc_auc

KIND = "auc-ranker"
BETAS = tuple(10.0**k for k in range(-7, 2))


@dataclass(frozen=True)
class Labelled:
    """Rows as numbers, with labels; `encoder` is None for libsvm."""

    X: Matrix
    positive: np.ndarray
    encoder: Encoder | None
    positive_label: str
    names: list[str]


def read_labelled(
    path: str | Path,
    *,
    label: str | None,
    positive: str | None = None,
    drop: Sequence[str] = (),
    one_hot: Sequence[str] = (),
    encoder: Encoder | None = None,
    width: int | None = None,
) -> Labelled:
    """Read a file of labelled rows; give `encoder` (or `width`) to read as a model was fitted.

    `positive` is the label to be ranked first, by default the rarer one.
    """
    table = read_table(path)
    if isinstance(table, tuple):
        X, y = table
        chosen_rows, chosen = choose_positive(y, positive, f"{path}: the label")
        X = _of_width(X, width, path)
        columns = [str(j + 1) for j in range(X.shape[1])]
        return Labelled(X, chosen_rows, None, chosen, columns)
    if label is None:
        raise InputError(f"{path}: name the label's column with --label.")
    y, chosen = read_labels(table, label, positive, path)
    if encoder is None:
        leave_out = {label, *drop}
        encoder = Encoder.fit(table, leave_out=leave_out, one_hot=set(one_hot), path=path)
    return Labelled(encoder.apply(table, path), y, encoder, chosen, encoder.names)


@dataclass(frozen=True)
class Ranker:
    """Weights for encoded, scaled rows; above 0 a row is called positive."""

    encoder: Encoder | None
    scaling: Scaling
    coef: np.ndarray
    intercept: float
    label: str | None
    positive_label: str
    names: list[str]
    parameters: dict

    @classmethod
    def fit(cls, rows: Labelled, *, scaling: str, label: str | None, **parameters: Any) -> "Ranker":
        """Fit `AUCClassifier(**parameters)` to scaled rows."""
        measured = Scaling.fit(rows.X, scaling)
        model = AUCClassifier(**parameters, pos_label=True)
        model.fit(measured.apply(rows.X), rows.positive)
        used = dict(parameters) | {"solver": model.solver_}
        return cls(
            rows.encoder, measured, model.coef_[0], float(model.intercept_[0]), label,
            rows.positive_label, rows.names, used,
        )  # fmt: skip

    def score(self, X: Matrix) -> np.ndarray:
        """Score encoded rows."""
        return np.asarray(self.scaling.apply(X) @ self.coef).ravel() + self.intercept

    def read(self, path: str | Path) -> tuple[pa.Table | None, Matrix]:
        """Read rows to be ranked; labels are not needed."""
        table = read_table(path)
        if isinstance(table, tuple):
            if self.encoder is not None:
                raise InputError(f"{path}: the model was fitted to a table with named columns.")
            return None, _of_width(table[0], self.coef.size, path)
        if self.encoder is None:
            raise InputError(f"{path}: the model was fitted to a libsvm file, give one.")
        return table, self.encoder.apply(table, path)

    def save(self, folder: str | Path) -> None:
        """Write the model folder."""
        columns = None
        if self.encoder is not None:
            columns = [
                [name, None if categories is None else list(categories)]
                for name, categories in self.encoder.columns
            ]
        meta = {
            "columns": columns,
            "names": self.names,
            "scaling": self.scaling.name,
            "intercept": self.intercept,
            "label": self.label,
            "positive": self.positive_label,
            "parameters": self.parameters,
        }
        arrays = {
            "coef": self.coef,
            "offset": self.scaling.offset,
            "factor": self.scaling.factor,
        }
        save_model(folder, kind=KIND, meta=meta, arrays=arrays)

    @classmethod
    def load(cls, folder: str | Path) -> "Ranker":
        """Read a model folder."""
        meta, arrays = load_model(folder, kind=KIND)
        encoder = None
        if meta["columns"] is not None:
            encoder = Encoder(
                tuple(
                    (name, None if categories is None else tuple(categories))
                    for name, categories in meta["columns"]
                )
            )
        scaling = Scaling(meta["scaling"], arrays["offset"], arrays["factor"])
        return cls(
            encoder, scaling, arrays["coef"], meta["intercept"], meta["label"],
            meta["positive"], meta["names"], meta["parameters"],
        )  # fmt: skip


def search_beta(
    rows: Labelled,
    *,
    scaling: str,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
    **parameters: Any,
) -> float:
    """Choose beta from 1e-7 … 10 by 5-fold cross-validated AUC; `progress` is told each value."""
    X = Scaling.fit(rows.X, scaling).apply(rows.X)
    fewest = int(min(rows.positive.sum(), (~rows.positive).sum()))
    if fewest < 2:
        raise InputError("beta: cross-validation needs two rows of each class; set --beta.")
    folds = StratifiedKFold(min(5, fewest), shuffle=True, random_state=seed)
    splits = list(folds.split(np.zeros(rows.positive.size), rows.positive))

    def mean_auc(beta: float) -> float:
        progress(f"cross-validation, beta {beta:g}")
        scores = []
        for train, test in splits:
            model = AUCClassifier(**parameters, beta=beta, pos_label=True)
            model.fit(X[train], rows.positive[train])
            scores.append(roc_auc(rows.positive[test], model.decision_function(X[test])))
        return float(np.mean(scores))

    return max(BETAS, key=mean_auc)


def _of_width(X: sparse.csr_matrix, width: int | None, path: str | Path) -> sparse.csr_matrix:
    """Widen libsvm rows to a model's columns; more columns than that are an error."""
    if width is None or X.shape[1] == width:
        return X
    if X.shape[1] > width:
        raise InputError(f"{path}: {X.shape[1]} columns, the model was fitted with {width}.")
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
