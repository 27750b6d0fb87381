"""The top of the list: who ranks rare rows best where only the first ones are looked at."""

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from telic.auc import ConjugateGradientAUC, PairwiseAUC
from telic.auc.feature_scaling import Scaling
from telic.data.data_sets import labelled_set
from telic.errors import InputError
from telic.evaluate.average_precision import average_precision, precision_at
from telic.evaluate.classification import partial_auc, roc_auc
from telic.evaluate.resampled_intervals import Measure, resampled
from telic.report import Report, Table
from telic.study.steps import Steps

CASES = {
    "mammography": ("mammography", None),
    "ijcnn1": ("ijcnn1", None),
    "a9a": ("a9a", None),
    "covtype, class 4": ("covtype", 4),
    "covtype, class 5": ("covtype", 5),
    "mnist, digit 8": ("mnist", 8),
    "news20, class 1": ("news20", 1),
    "clothing reviews, one star": ("clothing_reviews_tfidf", 1),
}
"""Data set, and which of its classes is positive (None: its own two labels)."""
STRENGTHS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Ridge weights of the mean loss, the same for all."""
RANGES: dict[str, dict[str, Any]] = {
    "highest 1 %": {"fpr": (0, 0.01)},
    "highest 5 %": {"fpr": (0, 0.05)},
    "highest 20 %": {"fpr": (0, 0.2)},
    "highest 5 %, lowest positives": {"fpr": (0, 0.05), "min_tpr": 0.2},
}
K = 100
BASELINE = "logistic regression"
"""What the others are compared with."""


def candidates(rows: int) -> dict[str, dict[str, Any]]:
    """Return each method's estimators by what is set, of which the validation rows choose one."""
    whole = partial(PairwiseAUC, loss="squared_hinge", tol=1e-5)
    makers: dict[str, Callable[[float], Any]] = {
        BASELINE: lambda beta: LogisticRegression(C=1 / (beta * rows), max_iter=1000),
        "ridge": lambda beta: RidgeClassifier(alpha=beta * rows),
        "square loss of all pairs": partial(ConjugateGradientAUC, tol=1e-6),
        "squared hinge of all pairs": whole,
    }
    found = {
        method: {f"{beta:g}": make(beta) for beta in STRENGTHS} for method, make in makers.items()
    }
    found["squared hinge, range chosen"] = {
        f"{beta:g}, {name}": whole(beta, **span)
        for name, span in RANGES.items()
        for beta in STRENGTHS
    }
    return found


def measured(
    *,
    case: str,
    data: str | Path | None,
    rows: int,
    resamples: int,
    seed: int,
    methods: Callable[[int], dict[str, dict[str, Any]]] = candidates,
) -> dict[str, Any]:
    """Fit on a third of the rows, choose by average precision on another, measure on the last.

    `methods` gets the number of rows of the first third; its first is what the others are compared
    with.
    """
    file, positive_class = CASES[case]
    X, y, classes = labelled_set(file, data)
    positive = y > 0 if positive_class is None else np.asarray(classes) == positive_class
    order = np.random.default_rng(seed).permutation(len(positive))[:rows]
    fit, choose, test = parts = [order[part::3] for part in range(3)]
    if min(positive[part].sum() for part in parts) == 0:
        raise InputError(f"{case}: a third of {rows:,} rows holds no positive. Raise --rows.")
    if X.shape[1] <= 1000:
        X = X.toarray()
    scaling = Scaling.fit(X[fit], "unit" if sparse.issparse(X) else "standard")
    to_fit, to_choose, to_test = (scaling.apply(X[part]) for part in (fit, choose, test))
    scores, lines = {}, []
    for method, models in methods(fit.size).items():
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            warnings.filterwarnings("ignore", "all weights are 0")
            for model in models.values():
                model.fit(to_fit, positive[fit])
        worth = {
            name: average_precision(positive[choose], model.decision_function(to_choose))
            for name, model in models.items()
        }
        chosen = max(worth, key=worth.__getitem__)
        truth, found = positive[test], models[chosen].decision_function(to_test)
        scores[method] = found
        line: dict[str, Any] = {"case": case, "method": method, "chosen": chosen}
        for name, measure in MEASURES.items():
            line[name] = measure(truth, found)
            if len(scores) > 1 and name in COMPARED:
                rival = next(iter(scores.values()))
                line[f"{name}, gain"] = resampled(
                    measure, truth, found, rival, resamples=resamples, seed=seed
                )
        lines.append(line)
    return {"test": int(test.size), "positives": int(positive[test].sum()), "lines": lines}


MEASURES: dict[str, Measure] = {
    "AUC": roc_auc,
    "AUC to 5 %": partial(partial_auc, fpr=(0, 0.05)),
    "average precision": average_precision,
    f"precision at {K}": partial(precision_at, k=K),
}
COMPARED = ("average precision", f"precision at {K}")


def study(
    steps: Steps,
    *,
    data: Path | None = None,
    rows: int = 30_000,
    resamples: int = 1000,
    seed: int = 0,
) -> Report:
    """Compare linear rankers of rare rows by the top of their lists, on real sets.

    Parameters
    ----------
    steps : Steps
    data : Path, optional
        Folder of data sets; by default the environment's TELIC_DATA.
    rows : int
        Rows of each set at most, drawn at random.
    resamples : int
        For the intervals.
    seed : int
    """
    page = Report(
        "The top of the list",
        lead="All data are real. Where positives are rare and only the first rows are looked at, "
        "is a loss that counts the top of the list alone better than one that counts all rows? "
        "Each method is fitted on a third of the rows, its settings are chosen by average "
        "precision on another third, and the figures here are measured on the last third.",
    )
    for file, _ in CASES.values():
        labelled_set(file, data)  # what is missing is said before the work
    settings = {"data": None if data is None else str(data), "rows": rows, "seed": seed}
    found = {
        case: steps(case, measured, case=case, resamples=resamples, **settings) for case in CASES
    }
    lines = [line for one in found.values() for line in one["lines"]]
    page.table(verdict_table(lines))
    page.table(gains_table(lines))
    page.table(values_table(lines))
    page.table(
        Table(
            "What was measured on",
            {"set": "", "rows": ",", "positives": ",", "share": ".2%", f"best at {K}": ".2f"},
            [
                [
                    case,
                    one["test"],
                    one["positives"],
                    one["positives"] / one["test"],
                    min(one["positives"] / K, 1.0),
                ]
                for case, one in found.items()
            ],
        )
    )
    page.note(
        f"Every method has the ridge weights {', '.join(f'{one:g}' for one in STRENGTHS)} of its "
        "mean loss. The range chosen is the 1 %, 5 % or 20 % of negatives with the highest scores, "
        "or the 5 % without the fifth of positives with the highest scores. Columns are "
        "standardised; sparse rows have unit length. Intervals resample the rows measured on, "
        "within each class; fitting on another third would change more. No loss here is average "
        "precision itself, which is not convex; the page of measurements “Average precision beside "
        "LibAUC” has a loss of it."
    )
    return page


def verdict_table(lines: list[dict[str, Any]], rival: str = BASELINE) -> Table:
    """Count the sets on which each method is surely better or worse than the first."""
    rows = []
    for method in dict.fromkeys(line["method"] for line in lines if gains_of(line)):
        spans = [gains_of(line) for line in lines if line["method"] == method]
        rows.append(
            [
                method,
                len(spans),
                *(
                    sum(sure(own[name]) for own in spans)
                    for name in COMPARED
                    for sure in (lambda gain: gain[1] > 0, lambda gain: gain[2] < 0)
                ),
            ]
        )
    sides = [f"{name}, {side}" for name in COMPARED for side in ("better", "worse")]
    return Table(
        f"On how many sets a method is surely better, or worse, than {rival}",
        {"method": "", "sets": "d", **dict.fromkeys(sides, "d")},
        rows,
        note="At 95 %, each difference by itself.",
    )


def gains_of(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line's differences from the first method: none in its own line."""
    return {name: line[f"{name}, gain"] for name in COMPARED if f"{name}, gain" in line}


def gains_table(lines: list[dict[str, Any]], rival: str = BASELINE) -> Table:
    """Return the differences from the first method, with their intervals, losses first."""
    shown = [line for line in lines if gains_of(line)]
    shown.sort(key=lambda line: gains_of(line)[COMPARED[0]][0])
    return Table(
        f"Gain over {rival}, losses first",
        {"set": "", "method": "", **dict.fromkeys(COMPARED, "{:+.4f} ({:+.4f} … {:+.4f})")},
        [[line["case"], line["method"], *gains_of(line).values()] for line in shown],
        note="With 95 % intervals over resampled rows.",
    )


def values_table(lines: list[dict[str, Any]]) -> Table:
    """Return every measure of every method."""
    return Table(
        "All measures",
        {"set": "", "method": "", "chosen": "", **dict.fromkeys(MEASURES, ".4f")},
        [
            [line["case"], line["method"], _remarked(line["chosen"]), *map(line.get, MEASURES)]
            for line in lines
        ],
        note="The AUC to 5 % is the mean true-positive rate at false-positive rates up to 5 %. "
        "The column “chosen” gives the ridge weight and the range; * marks a weight at an end "
        "of the grid.",
    )


def _remarked(chosen: str) -> str:
    weight, *span = chosen.split(", ", 1)
    ends = f"{STRENGTHS[0]:g}", f"{STRENGTHS[-1]:g}"
    return ", ".join([weight + "*" * (weight in ends), *span])
