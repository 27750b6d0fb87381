"""The top of the list: who ranks rare rows best where only the first ones are looked at."""

import warnings
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
from telic.evaluate.classification import partial_auc, roc_auc
from telic.evaluate.top_of_list import Measure, average_precision, precision_at, resampled
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
STRENGTHS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
"""Ridge weights of the mean loss, the same for all."""
RANGES = ({"fpr": (0, 0.01)}, {"fpr": (0, 0.05)}, {"fpr": (0, 0.2)},
          {"fpr": (0, 0.05), "min_tpr": 0.2})  # fmt: skip
K = 100


def candidates(rows: int) -> dict[str, list[Any]]:
    """Return each method's estimators, of which the validation rows choose one."""
    whole = partial(PairwiseAUC, loss="squared_hinge", tol=1e-5)
    return {
        "logistic regression": [
            LogisticRegression(C=1 / (beta * rows), max_iter=1000) for beta in STRENGTHS
        ],
        "ridge": [RidgeClassifier(alpha=beta * rows) for beta in STRENGTHS],
        "square loss of all pairs": [ConjugateGradientAUC(beta, tol=1e-6) for beta in STRENGTHS],
        "squared hinge of all pairs": [whole(beta) for beta in STRENGTHS],
        "squared hinge, range chosen": [
            whole(beta, **span) for span in RANGES for beta in STRENGTHS
        ],
    }


def measured(
    *, case: str, data: str | Path | None, rows: int, resamples: int, seed: int
) -> dict[str, Any]:
    """Fit on a third of the rows, choose by average precision on another, measure on the last."""
    file, positive_class = CASES[case]
    X, y, classes = labelled_set(file, data)
    positive = y > 0 if positive_class is None else np.asarray(classes) == positive_class
    order = np.random.default_rng(seed).permutation(len(positive))[:rows]
    fit, choose, test = (order[part::3] for part in range(3))
    if X.shape[1] <= 1000:
        X = X.toarray()
    scaling = Scaling.fit(X[fit], "unit" if sparse.issparse(X) else "standard")
    Z = {
        name: scaling.apply(X[part]) for name, part in zip("fct", (fit, choose, test), strict=True)
    }
    scores, lines = {}, []
    for method, models in candidates(fit.size).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "all weights are 0")
            fitted = [model.fit(Z["f"], positive[fit]) for model in models]
        best = max(
            fitted, key=lambda m: average_precision(positive[choose], m.decision_function(Z["c"]))
        )
        scores[method] = best.decision_function(Z["t"])
        truth, found = positive[test], scores[method]
        line: dict[str, Any] = {"case": case, "method": method}
        for name, measure in MEASURES.items():
            line[name] = measure(truth, found)
            rival = scores["logistic regression"]
            if method != "logistic regression" and name in COMPARED:
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
        lead="Real data. Where positives are rare and only the first rows are looked at, is a loss "
        "of the list's top better than one of all rows? Each method is fitted on a third of the "
        "rows, its settings are chosen by average precision on another, and what stands here is "
        "measured on the last.",
    )
    for file, _ in CASES.values():
        labelled_set(file, data)  # what is missing is said before the work
    settings = {"data": None if data is None else str(data), "rows": rows, "seed": seed}
    found = {
        case: steps(case, measured, case=case, resamples=resamples, **settings) for case in CASES
    }
    lines = [line for one in found.values() for line in one["lines"]]
    page.text(verdict(lines))
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
        "mean loss. The range chosen is one of the 1 %, 5 % and 20 % of negatives of highest "
        "score, or 5 % with the fifth of positives of highest score left out. Columns are "
        "standardised; sparse rows have unit length. Intervals resample the rows measured on, "
        "within each class; another third to fit on would change more. No loss here is average "
        "precision itself, which is not convex; deep-learning losses of it are not run."
    )
    return page


def verdict(lines: list[dict[str, Any]]) -> str:
    """Say how often each method is surely better or worse than logistic regression."""
    words = []
    for method in dict.fromkeys(line["method"] for line in lines):
        gains = [
            line for line in lines if line["method"] == method and f"{COMPARED[0]}, gain" in line
        ]
        counts = []
        for name in COMPARED if gains else ():
            spans = [line[f"{name}, gain"] for line in gains]
            better, worse = (
                sum(low > 0 for _, low, _ in spans),
                sum(high < 0 for _, _, high in spans),
            )
            counts.append(f"{name} on {better} of {len(spans)} sets and worse on {worse}")
        if counts:
            words.append(
                f"{method[0].upper()}{method[1:]} is surely better in {'; in '.join(counts)}."
            )
    return "Against logistic regression, at 95 %: " + " ".join(words)


def gains_table(lines: list[dict[str, Any]]) -> Table:
    """Return the differences from logistic regression, with their intervals, losses first."""
    shown = [line for line in lines if f"{COMPARED[0]}, gain" in line]
    shown.sort(key=lambda line: line[f"{COMPARED[0]}, gain"][0])
    return Table(
        "Gain over logistic regression, losses first",
        {"set": "", "method": "", **dict.fromkeys(COMPARED, "{:+.4f} ({:+.4f} … {:+.4f})")},
        [
            [line["case"], line["method"], *(line[f"{name}, gain"] for name in COMPARED)]
            for line in shown
        ],
        note="With 95 % intervals over resampled rows.",
    )


def values_table(lines: list[dict[str, Any]]) -> Table:
    """Return every measure of every method."""
    return Table(
        "All measures",
        {"set": "", "method": "", **dict.fromkeys(MEASURES, ".4f")},
        [[line["case"], line["method"], *(line[name] for name in MEASURES)] for line in lines],
        note="The AUC to 5 % is the mean true-positive rate at false-positive rates up to 5 %.",
    )
