"""Published AUC tables beside our own runs, the exact optimum and logistic regression."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from telic.report import Report
from telic.study.auc_tables import (
    RULES,
    SAME,
    SEARCH_ROWS,
    NotStored,
    Results,
    ceiling,
    first_rule,
    load,
    runs_of,
)

Progress = Callable[[str], None]


class Figure(NamedTuple):
    """One published cell: a mean and a standard deviation over runs."""

    data: str
    method: str
    mean: float
    sd: float


class Table(NamedTuple):
    """A published table."""

    title: str
    figures: tuple[Figure, ...]


class Row(NamedTuple):
    """One cell run again; AUCs are None where the set is not at hand."""

    data: str
    method: str
    published: float
    published_sd: float
    ours: float | None
    ours_sd: float | None
    exact: float | None
    exact_sd: float | None
    logistic: float | None
    ceiling: float | None
    """Best mean AUC of the exact optimum, pairwise hinge and logistic regression under every
    label rule and scaling tried."""
    ceiling_rule: str
    runs: int = 0
    """Runs behind `ours`: fewer than asked for where a file of results holds no more."""

    @property
    def above(self) -> bool | None:
        """Whether the published mean exceeds the ceiling by more than two of its own
        standard deviations; None where there is no ceiling.
        """
        if self.ceiling is None:
            return None
        return self.published > self.ceiling + 2 * self.published_sd


def _unrun(figure: Figure) -> Row:
    return Row(*figure, None, None, None, None, None, None, "")


def parse(methods: Sequence[str], text: str) -> tuple[Figure, ...]:
    """Read a table typed as rows of `name mean±sd …`, "-" where nothing was published."""
    figures = []
    for line in text.strip().splitlines():
        name, *cells = line.split()
        for method, cell in zip(methods, cells, strict=True):
            if cell != "-":
                mean, sd = cell.split("±")
                figures.append(Figure(name, method, float(mean), float(sd)))
    return tuple(figures)


def rerun(
    table: Table,
    *,
    folder: Path,
    results: Results,
    runs: int = 20,
    only: Sequence[str] | None = None,
    progress: Progress = lambda text: None,
) -> list[Row]:
    """Run a published table again.

    Parameters
    ----------
    table : Table
    folder : path
        Of the ``.npz`` sets.
    results : Results
        The file that holds what is computed already.
    runs : int, default 20
        Splits for each cell; the ceiling takes at most three.
    only : list of str, optional
        Names of sets; the others are left out.
    progress : callable, optional
        Told what is being computed.

    Returns
    -------
    list of Row
        Sets whose file is absent keep their published figure alone.
    """
    rows = []
    for name in dict.fromkeys(figure.data for figure in table.figures):
        if only and name not in only:
            continue
        figures = [figure for figure in table.figures if figure.data == name]
        data = load(name, folder)
        if data is None:
            rows += [_unrun(figure) for figure in figures]
            continue
        progress(f"{name}: exact optimum and logistic regression")
        first = first_rule(name)
        exact = runs_of(data, "exact", data.scaling, runs, results, label=first)
        logistic = runs_of(data, "logistic", data.scaling, runs, results, label=first)
        best, rule = max(
            (float(np.mean(found)), f"{loss}, {data.scaling}" + (f", {first}" if first else ""))
            for loss, found in (("exact", exact), ("logistic", logistic))
        )
        for label, scaling, loss, mean in ceiling(name, folder, min(runs, 3), results):
            progress(f"{name}: best linear AUC ({label or 'as given'}, {scaling}, {loss})")
            if mean > best:
                best, rule = mean, f"{loss}, {scaling}" + (f", {label}" if label else "")
        for figure in figures:
            progress(f"{name}: {figure.method}")
            method = SAME.get(figure.method, figure.method)
            ours: list[float] = []
            try:
                for count in range(1, runs + 1):
                    ours = runs_of(data, method, data.scaling, count, results, label=first)
            except NotStored:
                if not ours:
                    rows.append(_unrun(figure)._replace(ceiling=best, ceiling_rule=rule))
                    continue
            rows.append(
                Row(
                    *figure, float(np.mean(ours)), float(np.std(ours)), float(np.mean(exact)),
                    float(np.std(exact)), float(np.mean(logistic)), best, rule, len(ours),
                )
            )  # fmt: skip
    return rows


COLUMNS = ["set", "method", "published", "ours", "exact optimum", "logistic", "best linear", ""]


def shown(row: Row) -> list[str]:
    """A row as text, for `COLUMNS`."""

    def pair(mean: float | None, sd: float | None) -> str:
        if mean is None:
            return "–"
        return f"{mean:.4f}" if sd is None else f"{mean:.4f}±{sd:.4f}"

    notes = [] if row.ours is not None else ["not run" if row.ceiling else "set not at hand"]
    if row.above:
        notes.append("above")
    return [
        row.data,
        row.method,
        pair(row.published, row.published_sd),
        pair(row.ours, row.ours_sd if row.runs != 1 else None),
        pair(row.exact, row.exact_sd),
        "–" if row.logistic is None else f"{row.logistic:.4f}",
        "–" if row.ceiling is None else f"{row.ceiling:.4f} ({row.ceiling_rule})",
        ", ".join(notes),
    ]


def published_report(paper: str, found: Sequence[tuple[Table, list[Row]]], runs: int) -> Report:
    """One page: every table, then the published figures no linear optimum reaches."""
    report = Report(
        f"AUC tables of document {paper}, run again",
        f"Test AUC, mean and standard deviation over {runs} stratified 80/20 splits. Parameters "
        f"by 5-fold cross-validation on the first split (at most {SEARCH_ROWS:,} rows).",
    )
    report.note(
        "“Best linear” is the highest mean AUC that the exact optimum of the pairwise square "
        "loss, the pairwise hinge or logistic regression reached under any label rule and any "
        "scaling tried (raw, unit rows, [−1, 1], standardised, the last two with unit rows too; "
        "several-class sets also under the label rules listed below). A published mean is marked "
        "when it exceeds that by more than two of its own standard deviations."
    )
    for table, rows in found:
        report.section(table.title)
        report.table(COLUMNS, [shown(row) for row in rows])
    above = [row for _, rows in found for row in rows if row.above]
    report.section("Published figures above every linear optimum tried")
    if above:
        report.table(COLUMNS, [shown(row) for row in above])
    else:
        report.text("None among the sets at hand.")
    report.section("Label rules tried")
    report.table(
        ["set", "rules (the first is used in the tables)"],
        [[name, ", ".join(rules)] for name, rules in RULES.items()],
    )
    return report
