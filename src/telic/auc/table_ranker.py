"""A ranker for tables: encoding, scaling and weights together, kept in one folder."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.model_selection import StratifiedKFold, train_test_split

from telic.auc.drawn_rows import Matrix
from telic.auc.estimators.by_name import WITHOUT_BETA, AUCClassifier
from telic.auc.feature_scaling import Scaling
from telic.auc.table_columns import Encoder, read_table, refuse_thousands
from telic.auc.table_labels import choose_positive, read_labels
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
    r"""Read a file of labelled rows; give `encoder` (or `width`) to read as a model was fitted.

    `positive` is the label to be ranked first, by default the rarer one.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "payments.csv"
    >>> _ = path.write_text("amount,country,fraud\n12,NL,no\n95,XX,yes\n20,NL,no\n")
    >>> rows = read_labelled(path, label="fraud")
    >>> rows.positive_label, rows.positive.tolist(), rows.names
    ('yes', [False, True, False], ['amount', 'country=NL', 'country=XX'])
    """
    table = read_table(path, texts=one_hot if encoder is None else encoder.texts)
    if encoder is not None or width is not None:
        _refuse_another_kind(path, table, encoder)
    if isinstance(table, tuple):
        if drop or one_hot:
            raise InputError(
                f"{path}: columns of a libsvm file have no names for --drop and --one-hot. Leave "
                "these out, or give a table."
            )
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
    X = encoder.apply(table, path)
    refuse_thousands(path, encoder.numbers)
    return Labelled(X, y, encoder, chosen, encoder.names)


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
    fitted_on: dict[str, Any] = field(default_factory=dict)
    """Counts of rows, and what was measured on those held out, if it was."""

    @classmethod
    def fit(cls, rows: Labelled, *, scaling: str, label: str | None, **parameters: Any) -> "Ranker":
        """Fit `AUCClassifier(**parameters)` to scaled rows."""
        measured = Scaling.fit(rows.X, scaling)
        model = AUCClassifier(**parameters, pos_label=True)
        model.fit(measured.apply(rows.X), rows.positive)
        used = dict(parameters) | {"solver": model.solver_}
        return cls(
            rows.encoder,
            measured,
            model.coef_[0],
            float(model.intercept_[0]),
            label,
            rows.positive_label,
            rows.names,
            used,
            {"rows": int(rows.positive.size), "positive": int(rows.positive.sum())},
        )

    def score(self, X: Matrix) -> np.ndarray:
        """Score encoded rows."""
        return np.asarray(self.scaling.apply(X) @ self.coef).ravel() + self.intercept

    def read(self, path: str | Path) -> tuple[pa.Table | None, Matrix]:
        """Read rows to be ranked; labels are not needed."""
        table = read_table(path, texts=self.encoder.texts if self.encoder else ())
        _refuse_another_kind(path, table, self.encoder)
        if isinstance(table, tuple):
            return None, _of_width(table[0], self.coef.size, path)
        assert self.encoder is not None
        X = self.encoder.apply(table, path)
        refuse_thousands(path, self.encoder.numbers)
        return table, X

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
            "fitted on": self.fitted_on,
        }
        arrays = {
            "coef": self.coef,
            "offset": self.scaling.offset,
            "factor": self.scaling.factor,
        }
        save_model(folder, kind=KIND, meta=meta, arrays=arrays)

    def settings(self) -> dict[str, Any]:
        """Return how the ranker was made, without what plays no part."""
        used = dict(self.parameters)
        if used["penalty"] == "l2":
            del used["beta1"]
        return {
            "label": self.label or "(libsvm)",
            "positive": self.positive_label,
            "scaling": self.scaling.name,
            **used,
        }

    def card(self) -> dict[str, Any]:
        """Return what whoever uses the ranker must know, without anybody's data."""
        texts = self.encoder.texts if self.encoder else []
        held = f"; every category of {', '.join(texts)}" if texts else ""
        return {
            "for": f"ranking rows by how likely they are {self.positive_label}; scores are no "
            "probabilities",
            "fitted on": self.fitted_on or "an older version did not say",
            "settings": self.settings(),
            "holds": f"weights of {self.coef.size:,} columns, and no rows{held}",
            "limits": "for rows like those it was fitted on; telic auc evaluate measures it on "
            "others",
            "largest weights": dict(self.features()),
        }

    def features(self, most: int = 20) -> list[tuple[str, float]]:
        """Return names and weights of the columns that count, the largest weights first."""
        order = sorted(range(self.coef.size), key=lambda j: -abs(self.coef[j]))[:most]
        return [(self.names[j], float(self.coef[j])) for j in order if self.coef[j] != 0]

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
            encoder,
            scaling,
            arrays["coef"],
            meta["intercept"],
            meta["label"],
            meta["positive"],
            meta["names"],
            meta["parameters"],
            meta.get("fitted on", {}),
        )


def enough_of_each(positive: int, rows: int, label: str) -> None:
    """Raise InputError if a class has fewer than ten rows, on which no AUC says anything."""
    others = rows - positive
    if min(positive, others) < 10:
        raise InputError(
            f"{positive} rows are labelled {label} and {others} are not; fewer than ten rows of a "
            "class are too few to measure a model. Add rows of it."
        )


def fit_measured(
    rows: Labelled,
    *,
    label: str | None,
    beta: float | None = None,
    scaling: str = "standard",
    test: float = 0.2,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
    **parameters: Any,
) -> tuple[Ranker, np.ndarray, np.ndarray]:
    """Fit a ranker to a part of the rows, score the others, and fit again to all rows.

    Parameters
    ----------
    rows : Labelled
    label : str or None
        Column of the label.
    beta : float, optional
        Ridge weight; by default `search_beta` chooses it on the training rows.
    scaling : str
    test : float
        Share of the rows held out to measure the model, in (0, 1).
    seed : int
        Of the split, the search and the solver.
    progress : callable
        Told what is done next.
    **parameters
        Of `AUCClassifier`.

    Returns
    -------
    ranker : Ranker
        Fitted to all rows.
    positive, scores : arrays of shape (n_held_out,)
        Of the rows held out, by the ranker that was fitted without them.

    Raises
    ------
    InputError
        If a class has fewer than ten rows, or `test` is no share or leaves too few on one side.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> rows = Labelled(X, X[:, 0] + rng.normal(size=200) > 1, None, "paid", ["height", "width"])
    >>> ranker, positive, scores = fit_measured(rows, label=None, beta=1e-3)
    >>> positive.size, ranker.features()[0][0], roc_auc(positive, scores) > 0.7
    (40, 'height', True)
    """
    if not 0 < test < 1:
        raise InputError(f"test: {test}, expected a share between 0 and 1.")
    enough_of_each(int(rows.positive.sum()), rows.positive.size, rows.positive_label)
    fewest = min(rows.positive.sum(), (~rows.positive).sum())
    if min(test, 1 - test) * fewest < 1.5:
        raise InputError(
            f"test: {test} of {fewest} rows of a class, expected a share that leaves two or more "
            "both to fit and to measure. Take one nearer to 0.5, or add rows."
        )
    train, held = train_test_split(
        np.arange(rows.positive.size), test_size=test, random_state=seed, stratify=rows.positive
    )
    part = replace(rows, X=rows.X[train], positive=rows.positive[train])
    parameters = {**parameters, "random_state": seed}
    if beta is None:
        beta = search_beta(part, scaling=scaling, seed=seed, progress=progress, **parameters)
    parameters["beta"] = beta
    progress("training rows")
    trial = Ranker.fit(part, scaling=scaling, label=label, **parameters)
    scores = trial.score(rows.X[held])
    progress("all rows")
    ranker = Ranker.fit(rows, scaling=scaling, label=label, **parameters)
    return ranker, rows.positive[held], scores


def search_beta(
    rows: Labelled,
    *,
    scaling: str,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
    **parameters: Any,
) -> float:
    """Choose beta by 5-fold cross-validated AUC; `progress` is told each value.

    The values are 1e-7 … 10 and, as long as none beats the largest, ten times as much, at most 1e9:
    columns of large numbers need a large ridge weight. As long as the smallest beats all others, a
    tenth of it is tried, at least 1e-12. Of values as good, the smallest wins; of a solver that has
    no beta it is 0. Folds run where `joblib.parallel_config` says.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> rows = Labelled(X, X[:, 0] > 1, None, "tall", ["height", "width"])
    >>> search_beta(rows, scaling="standard")
    1e-07
    """
    if parameters.get("solver") in WITHOUT_BETA:
        return 0.0
    X = Scaling.fit(rows.X, scaling).apply(rows.X)
    fewest = int(min(rows.positive.sum(), (~rows.positive).sum()))
    if fewest < 2:
        raise InputError("beta: cross-validation needs two rows of each class; set --beta.")
    folds = StratifiedKFold(min(5, fewest), shuffle=True, random_state=seed)
    splits = list(folds.split(np.zeros(rows.positive.size), rows.positive))

    def told(betas: Iterable[float]) -> Iterator[float]:
        for beta in betas:
            progress(f"cross-validation, beta {beta:g}")
            yield beta

    def mean_aucs(betas: Sequence[float]) -> dict[float, float]:
        tasks = (
            delayed(_auc_of_fold)(X, rows.positive, train, test, {**parameters, "beta": beta})
            for beta in told(betas)
            for train, test in splits
        )
        scores = np.reshape(Parallel()(tasks), (len(betas), len(splits)))
        return {beta: float(np.mean(row)) for beta, row in zip(betas, scores, strict=True)}

    found = mean_aucs(BETAS)
    while found[largest := max(found)] == max(found.values()) and largest < 1e9:
        found |= mean_aucs([10.0 * largest])
    while found[smallest := min(found)] > sorted(found.values())[-2] and smallest > 1e-12:
        found = mean_aucs([smallest / 10.0]) | found
    return max(found, key=lambda beta: found[beta])


def _auc_of_fold(
    X: Matrix, positive: np.ndarray, train: np.ndarray, test: np.ndarray, options: dict[str, Any]
) -> float:
    model = AUCClassifier(**options, pos_label=True).fit(X[train], positive[train])
    return float(roc_auc(positive[test], model.decision_function(X[test])))


def _refuse_another_kind(path: str | Path, table: object, encoder: Encoder | None) -> None:
    """Raise InputError unless a file is of the kind that a model was fitted to."""
    if isinstance(table, tuple) and encoder is not None:
        raise InputError(f"{path}: the model was fitted to a table with named columns, give one.")
    if encoder is None and not isinstance(table, tuple):
        raise InputError(f"{path}: the model was fitted to a libsvm file, give one.")


def _of_width(X: sparse.csr_matrix, width: int | None, path: str | Path) -> sparse.csr_matrix:
    """Widen libsvm rows to a model's columns; more columns than that are an error."""
    if width is None or X.shape[1] == width:
        return X
    if X.shape[1] > width:
        raise InputError(f"{path}: {X.shape[1]} columns, the model was fitted with {width}.")
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
