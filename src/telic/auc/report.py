"""What a ranking is worth: numbers, curves with intervals, the confusion matrix, one page."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from telic.auc.diagnostics import batch_sizes, convergence
from telic.auc.feature_scaling import Scaling
from telic.auc.table_ranker import Labelled
from telic.errors import expect_above
from telic.evaluate.average_precision import average_precision, precision_at
from telic.evaluate.classification import auc_interval, lift_area, partial_auc
from telic.evaluate.resampled_intervals import Measure, resampled
from telic.report import Report, Table

RESAMPLES = 200
TOP = 100
"""Most rows of the list's top whose precision is measured; of short lists a tenth of the rows."""
GRID = np.linspace(0, 1, 101)


def _top(rows: int) -> int:
    return max(1, min(TOP, rows // 10))


def measures(positive: np.ndarray, scores: np.ndarray, *, seed: int = 0) -> dict[str, Any]:
    """AUC and the measures of the list's top with 95 % intervals, and the confusion matrix at 0."""
    called = scores > 0
    hit = int((called & positive).sum())
    false = int((called & ~positive).sum())
    interval = auc_interval(positive, scores)
    k = _top(positive.size)
    tops: dict[str, Measure] = {
        "average_precision": average_precision,
        f"precision_at_{k}": partial(precision_at, k=k),
    }
    return {
        "rows": int(positive.size),
        "positives": int(positive.sum()),
        "auc": interval.auc,
        "auc_low": interval.low,
        "auc_high": interval.high,
        "auc_fpr_10": partial_auc(positive, scores, fpr=(0.0, 0.1)),
        "lift_area": lift_area(positive, scores),
        **{
            f"{name}{end}": value
            for name, measure in tops.items()
            for end, value in zip(
                ("", "_low", "_high"),
                resampled(
                    measure, positive, scores, resamples=_resamples(positive.size), seed=seed
                ),
                strict=True,
            )
        },
        "true_positives": hit,
        "false_positives": false,
        "false_negatives": int(positive.sum()) - hit,
        "true_negatives": int((~positive).sum()) - false,
        "precision": hit / called.sum() if called.any() else None,
        "recall": hit / positive.sum(),
    }


def curves(positive: np.ndarray, scores: np.ndarray, *, seed: int = 0) -> tuple[Figure, Figure]:
    """ROC and precision–recall curves with pointwise 95 % bootstrap bands."""
    order = np.argsort(-scores)
    truth, ranked = positive[order], scores[order]
    last = np.r_[np.flatnonzero(np.diff(ranked)), ranked.size - 1]  # one point a tie
    rng = np.random.default_rng(seed)
    roc, precision = [], []
    for resample in range(_resamples(positive.size) + 1):
        # The first is the sample itself. Within-class resampling keeps both classes present.
        weight = np.ones(truth.size)
        if resample:
            for side in (truth, ~truth):
                n = int(side.sum())
                weight[side] = rng.multinomial(n, np.full(n, 1 / n))
        hits = np.r_[0.0, np.cumsum(weight * truth)[last]]
        false = np.r_[0.0, np.cumsum(weight * ~truth)[last]]
        rate, recall = false / false[-1], hits / hits[-1]
        roc.append(np.interp(GRID, rate, recall))
        exact = hits[1:] / np.maximum(hits[1:] + false[1:], 1e-300)
        precision.append(np.interp(GRID, recall[1:], exact))
    base = truth.mean()
    return (
        _band(np.array(roc), "False-positive rate", "True-positive rate", (GRID, GRID)),
        _band(np.array(precision), "Recall", "Precision", (GRID, np.full(GRID.size, base))),
    )


def _resamples(rows: int) -> int:
    return RESAMPLES if rows <= 100_000 else RESAMPLES // 4


def _band(lines: np.ndarray, x_label: str, y_label: str, chance: tuple) -> Figure:
    figure, axes = pyplot.subplots(figsize=(5.2, 4.2))
    low, high = np.percentile(lines[1:], [2.5, 97.5], axis=0)
    axes.fill_between(GRID, low, high, alpha=0.25, label="95 % of resamples")
    axes.plot(GRID, lines[0], label="this ranking")
    axes.plot(*chance, ":", color="0.4", label="chance")
    axes.set(xlabel=x_label, ylabel=y_label, xlim=(0, 1), ylim=(0, 1.02))
    axes.legend(loc="lower right" if x_label.startswith("F") else "upper right")
    return figure


def page(
    title: str,
    lead: str,
    positive: np.ndarray,
    scores: np.ndarray,
    *,
    label: str,
    settings: dict[str, Any],
    features: list[tuple[str, float]],
    seed: int = 0,
) -> Report:
    """Write the page for one evaluated ranking.

    Parameters
    ----------
    title, lead : str
    positive, scores : arrays of shape (n,)
        Of rows the model did not see, or say so in `lead`; 0 is the threshold.
    label : str
        The positive label.
    settings : dict
        How the model was made: shown as a table.
    features : list of (str, float)
        Names and weights, the most important first.
    """
    found = measures(positive, scores, seed=seed)
    k = _top(positive.size)
    report = Report(title, lead)
    report.section("Ranking")
    report.table(
        Table(
            "How well rows are ranked",
            {"measure": "", "value": ".4f", "95 % interval": "{:.4f} – {:.4f}"},
            [
                *(
                    [name, found[key], [found[f"{key}_low"], found[f"{key}_high"]]]
                    for name, key in (
                        ("AUC", "auc"),
                        ("average precision", "average_precision"),
                        (f"precision among the first {k}", f"precision_at_{k}"),
                    )
                ),
                ["mean recall at false-positive rates up to 10 %", found["auc_fpr_10"], None],
                ["area under the lift chart", found["lift_area"], None],
            ],
            note=f"{found['rows']:,} rows, {found['positives']:,} positives ({label}). The AUC's "
            "interval is the wider of DeLong's and Newcombe's; the others resample the rows of "
            "each class, and are no narrower than Wilson's.",
        )
    )
    roc, recall = curves(positive, scores, seed=seed)
    report.figure(roc, f"ROC curve, AUC {found['auc']:.4f}. The band resamples rows by class.")
    report.figure(recall, f"Precision and recall. Chance is {positive.mean():.4f}.")
    report.section("At the chosen threshold")
    precision = "none called" if found["precision"] is None else f"{found['precision']:.4f}"
    report.table(
        Table(
            f"Confusion matrix: precision {precision}, recall {found['recall']:.4f}",
            {"": "", f"truly {label}": ",", "truly other": ","},
            [
                [f"called {label}", found["true_positives"], found["false_positives"]],
                ["called other", found["false_negatives"], found["true_negatives"]],
            ],
        )
    )
    report.section("What moves a row up or down")
    report.text(
        "Weights on the scaled columns, the largest first. They rank rows; they are no causes, "
        "and columns that go together share their weight."
    )
    weights = [[name, weight] for name, weight in features]
    report.table(Table("Weights", {"column": "", "weight": "+.4f"}, weights))
    report.section("How it was made")
    made = [[key, str(value)] for key, value in settings.items()]
    report.table(Table("Settings", {"setting": "", "value": ""}, made))
    return report


def comparison_table(found: list[dict[str, Any]], title: str) -> Table:
    """Return what `telic.auc.compare_rankers` found."""
    several = found[0]["over_logistic_low"] is not None
    spread, interval = (" ± {:.4f}", " ({:+.4f} to {:+.4f})") if several else ("", "")
    columns = {
        "method": "",
        "AUC": "{:.4f}" + spread,
        "average precision": "{:.4f}" + spread,
        "AUC − logistic's": "{:+.4f}" + interval,
        "parameters": "",
    }

    def cells(row: dict[str, Any], *keys: str) -> list[float]:
        return [row[key] for key in keys[: 3 if several else 1]]

    rows = [
        [
            row["method"],
            cells(row, "auc", "sd"),
            cells(row, "average_precision", "average_precision_sd"),
            None
            if row["method"] == "logistic"
            else cells(row, "over_logistic", "over_logistic_low", "over_logistic_high"),
            ", ".join(f"{name} {value:g}" for name, value in row["parameters"].items()),
        ]
        for row in found
    ]
    note = "± is the standard deviation over the splits; brackets hold 95 % intervals."
    return Table(title, columns, rows, note if several else "")


def diagnosis_page(
    name: str,
    rows: Labelled,
    *,
    scaling: str = "unit",
    beta: float = 1e-3,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Report:
    """Show how the stochastic methods converge on a table: gap, AUC, step noise, batch sizes.

    Parameters
    ----------
    name : str
        Of the table.
    rows : Labelled
    scaling : str
    beta : float
        Ridge weight > 0.
    seed : int
    progress : callable
        Told what is done next.

    Returns
    -------
    telic.report.Report

    Raises
    ------
    InputError
        If beta is not above 0.

    Examples
    --------
    Five methods, each for up to 60 passes or stages::

        rows = read_labelled("payments.csv", label="fraud", drop=["id"])
        diagnosis_page("payments", rows, beta=1e-3).write("diagnosis.html")
    """
    expect_above(0, beta=beta)
    X = Scaling.fit(rows.X, scaling).apply(rows.X)
    progress("convergence of each method")
    found, figures = convergence(X, rows.positive, beta=beta, seed=seed)
    progress("batch sizes of SPDAM")
    batches = batch_sizes(X, rows.positive, beta=beta, seed=seed)
    report = Report(
        "How the methods converge",
        f"{name}: {rows.positive.size:,} rows, {X.shape[1]:,} columns, scaling {scaling}, "
        f"beta {beta:g}, positive label {rows.positive_label}. All minimise the same objective; "
        "its optimum is known.",
    )
    captions = (
        "Relative gap by passes over the data.",
        "Relative gap by seconds, one thread, without compilation.",
        "AUC on the training rows by passes.",
        "Variance of one step: SPAM's stays, VRSPAM's goes to 0 with the gap.",
    )
    for figure, caption in zip(figures, captions, strict=True):
        report.figure(figure, caption)
    columns = {
        "method": "",
        "passes": ".0f",
        "seconds": ".3f",
        "relative gap": ".1e",
        "AUC": ".4f",
    }
    report.table(
        Table(
            "Where each method stopped (gap 1e-8, or 60 passes or stages)",
            columns,
            [
                [method, last.passes, last.seconds, last.gap, last.auc]
                for method, (*_, last) in found.items()
            ],
        )
    )
    report.table(
        Table(
            "SPDAM to a relative gap of 1e-6, by batch size",
            {"batch, share of rows": "g", "passes": ".0f", "seconds": ".3f"},
            [
                [share, "over 300" if passes is None else passes, seconds]
                for share, passes, seconds in batches
            ],
        )
    )
    return report
