"""A ranker for a table larger than memory: what `table_ranker` does, by passes over the file."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from telic.auc.estimators.by_name import FEW_COLUMNS
from telic.auc.feature_scaling import SCALINGS, Scaling
from telic.auc.file_design import BLOCK, FileDesign, Share
from telic.auc.objective import Solution
from telic.auc.partitioned import exact_in_pieces, partitions
from telic.auc.passes import cg_in_pieces, columns_of, spam_in_pieces
from telic.auc.table_columns import Encoder
from telic.auc.table_labels import label_text, positive_of, refuse_nested
from telic.auc.table_ranker import Labelled, Ranker, enough_of_each, search_beta
from telic.auc.thresholds import Rule, choose_threshold
from telic.data.object_storage import Place, place, readable
from telic.data.tables import is_number, refuse_repeated
from telic.errors import InputError, expect_one_of
from telic.scale import Executor, row_ranges
from telic.scale.partitions import Range

SAMPLED_ROWS, SAMPLED_NUMBERS = 100_000, 10_000_000
"""How much of the training rows beta is chosen on, at most."""
IN_PIECES: dict[str, Callable[..., Solution]] = {
    "exact": exact_in_pieces,
    "cg": cg_in_pieces,
    "spam": spam_in_pieces,
}


def design_of(
    path: str | Path, *, label: str | None, positive: str | None = None, drop: Sequence[str] = ()
) -> tuple[FileDesign, str]:
    """Look at a Parquet file of labelled rows: which columns count, and which label is positive.

    Returns
    -------
    FileDesign, str
        And the positive label as text; as `read_labelled`, by default the rarer one.

    Raises
    ------
    InputError
        If it is no Parquet file of numbers and two labels, with ten rows of each.
    """
    file = place(path)
    if not file.name.lower().endswith(".parquet"):
        raise InputError(
            f"{path}: is read whole, expected Parquet for a fit in pieces. Convert it, or leave "
            "out --memory and --cluster."
        )
    if label is None:
        raise InputError(f"{path}: name the label's column with --label.")
    rows = row_ranges(path, 1)
    schema = pa.parquet.read_schema(readable(file))
    for name in (label, *drop):
        if name not in schema.names:
            raise InputError(f"{path}: no column {name!r}.")
    columns = [name for name in schema.names if name not in (label, *drop)]
    refuse_repeated(path, schema.names, (label, *columns))
    refuse_nested(schema.field(label).type, f"{path}: column {label!r}")
    for name in columns:
        kind = schema.field(name).type
        if not is_number(kind):
            raise InputError(
                f"{path}: column {name!r} is of type {kind}; a fit in pieces takes numbers. Leave "
                f"it out with --drop {name}, or leave out --memory and --cluster."
            )
    counts: Counter[Any] = Counter()
    for part in rows:
        for batch in part.batches([label], BLOCK):
            counts.update(batch[label].to_pylist())
    if not counts:
        raise InputError(f"{path}: holds no rows, only the columns' names. Is the file whole?")
    if None in counts:
        raise InputError(f"{path}: column {label!r} has missing values. Fill or drop the rows.")
    chosen = positive_of(counts, positive, f"{path}: column {label!r}")
    design = FileDesign.open(path, label, pos_label=chosen, columns=columns)
    enough_of_each(counts[chosen], design.rows, label_text(chosen))
    return design, label_text(chosen)


def fit_measured_in_pieces(
    design: FileDesign,
    *,
    label: str,
    positive_label: str,
    beta: float | None,
    executor: Executor,
    work: Place,
    scaling: str = "standard",
    test: float = 0.2,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
    solver: str = "auto",
    penalty: str = "l2",
    beta1: float = 1e-4,
    threshold: Rule = "prior",
) -> tuple[Ranker, np.ndarray, np.ndarray]:
    """Fit a ranker to a part of the rows, score the others, and fit again to all rows.

    Memory holds a score and a label for each row.

    Parameters
    ----------
    design : FileDesign
    label, positive_label : str
        As `design_of` was told, and found.
    beta : float or None
        None: by 5-fold cross-validation on as many of the training rows as `SAMPLED_ROWS` and
        `SAMPLED_NUMBERS` allow, drawn at random, the same number of each label where there are so
        many.
    executor : telic.scale.Executor
    work : path
        Keeps the sums of finished passes, so that an interrupted job goes on.
    scaling, test, seed, progress
        As in `fit_measured`; rows are held out by their number.
    solver : {"auto", "exact", "cg", "spam"}
        "auto" is "exact" up to 2,000 columns, and "cg" beyond.
    penalty, beta1, threshold
        As in `AUCClassifier`.

    Returns
    -------
    ranker, positive, scores
        As from `fit_measured`, whose ranker of all rows it equals up to rounding but for "spam".

    Raises
    ------
    InputError
        If a parameter is not known or does not fit.
    """
    if not 0 < test < 1:
        raise InputError(f"test: {test}, expected a share between 0 and 1.")
    if solver not in ("auto", *IN_PIECES):
        names = ", ".join(IN_PIECES)
        raise InputError(f"solver: {solver!r}, expected auto, {names} for a fit in pieces.")
    expect_one_of(SCALINGS, scaling=scaling)
    expect_one_of(("l2", "elasticnet"), penalty=penalty)
    net = penalty == "elasticnet"
    if solver == "auto":
        solver = "exact" if net or design.width <= FEW_COLUMNS else "cg"
    if net and solver == "cg":
        raise InputError("penalty: solver 'cg' has no elastic net; use exact, spam.")

    def fit(part: FileDesign, name: str) -> tuple[FileDesign, np.ndarray]:
        """Scale a part of the rows, and find the weights on them."""
        here = work / name
        measured = _scaling(part, scaling, executor, here / "columns")
        scaled = replace(part, scaling=measured)
        given: dict[str, Any] = {"beta": beta, "executor": executor, "out": here / solver}
        if solver != "cg":
            given["beta1"] = beta1 if net else 0.0
        if solver == "spam":
            given["seed"] = seed
        return scaled, IN_PIECES[solver](scaled, **given).coef

    if beta is None:
        sample = _sample(design, positive_label, test, seed)
        net_options = {"penalty": penalty, "beta1": beta1}
        beta = search_beta(sample, scaling=scaling, seed=seed, progress=progress, **net_options)
    progress("training rows")
    trained, coef = fit(replace(design, share=Share(test, seed, False)), "training-rows")
    held = replace(trained, share=Share(test, seed, True))
    truth, scores = _scored(held, coef, executor)
    if min(truth.sum(), (~truth).sum()) < 2:
        raise InputError("The rows held out are too few to measure a model. Hold out more: --test.")
    known, own = _scored(trained, coef, executor)
    cut = choose_threshold(own, known, threshold)
    progress("all rows")
    final, coef = fit(design, "all-rows")
    every, own = _scored(final, coef, executor)
    assert final.scaling is not None
    ranker = Ranker(
        Encoder(tuple((name, None) for name in design.columns)),
        final.scaling,
        coef,
        -choose_threshold(own, every, threshold),
        label,
        positive_label,
        list(design.columns),
        {
            "solver": solver,
            "penalty": penalty,
            "beta1": beta1,
            "threshold": threshold,
            "random_state": seed,
            "beta": beta,
        },
        {"rows": int(every.size), "positive": int(every.sum())},
    )
    return ranker, truth, scores - cut


def _sample(design: FileDesign, positive_label: str, test: float, seed: int) -> Labelled:
    """Draw some of the rows that `test` does not hold out, as many of each label if possible.

    AUC is of pairs, one of each label: what is drawn of one does not depend on the other.
    """
    most = min(SAMPLED_ROWS, SAMPLED_NUMBERS // design.width)
    there = design.positives()
    others = design.rows - there
    wanted = min(there, max(most // 2, most - others))
    # Those held out have the lowest of the rows' scrambled numbers, these the highest.
    ours, theirs = (
        Share(max(test, 1 - some / max(count, 1)), seed, False)
        for some, count in ((wanted, there), (most - wanted, others))
    )
    parts, first = [], 0
    for X, positive in design.blocks(0, design.rows):
        rows = np.arange(first, first + len(X))
        drawn = np.where(positive, ours.takes(rows), theirs.takes(rows))
        parts.append((X[drawn], positive[drawn]))
        first += len(X)
    X, positive = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Labelled(X, positive, None, positive_label, list(design.columns))


def _scaling(part: FileDesign, name: str, executor: Executor, out: Place) -> Scaling:
    """Measure the columns as `Scaling.fit`."""
    offset, spread = np.zeros(part.width), np.ones(part.width)
    if name.startswith(("minmax", "standard")):
        low, high, mean, deviation = columns_of(part, executor, out)
        if name.startswith("minmax"):
            offset, spread = (low + high) / 2, (high - low) / 2
            spread = np.where(spread <= 1e-12 * np.abs(offset), 1.0, spread)
        else:
            offset, spread = mean, deviation
    return Scaling(name, offset, 1 / spread)


def _scored(
    design: FileDesign, coef: np.ndarray, executor: Executor
) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows are positive, and all rows' scores."""
    found = executor.map(partial(_score, design, coef), partitions(design, executor)).values
    return tuple(map(np.concatenate, zip(*found, strict=True)))  # type: ignore[return-value]


def _score(design: FileDesign, coef: np.ndarray, part: Range) -> tuple[np.ndarray, np.ndarray]:
    blocks = [(positive, X @ coef) for X, positive in design.blocks(*part)]
    return tuple(map(np.concatenate, zip(*blocks, strict=True)))  # type: ignore[return-value]
