"""Published AUC tables beside our own runs, the exact optimum and logistic regression."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from telic.auc.compare import SEARCH_ROWS
from telic.data.data_sets import data_folder
from telic.errors import InputError
from telic.report import Report, Table
from telic.study.auc_papers.kept_results import NotStored, Results
from telic.study.auc_papers.runs import RULES, SAME, ceiling, first_rule, load, runs_of
from telic.study.steps import Steps


class Cell(NamedTuple):
    """One published cell: a mean and a standard deviation over runs."""

    data: str
    method: str
    mean: float
    sd: float


class PublishedTable(NamedTuple):
    """A published table."""

    title: str
    cells: tuple[Cell, ...]


class Row(NamedTuple):
    """One cell run again; AUCs are None where the set is not at hand."""

    data: str
    method: str
    published: float
    published_sd: float
    ours: float | None = None
    ours_sd: float | None = None
    exact: float | None = None
    exact_sd: float | None = None
    logistic: float | None = None
    ceiling: float | None = None
    """Best mean AUC of the exact optimum, pairwise hinge and logistic regression under every
    label rule and scaling tried."""
    ceiling_rule: str = ""
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


def parse(methods: Sequence[str], text: str) -> tuple[Cell, ...]:
    """Read a table typed as rows of `name mean±sd …`, "-" where nothing was published."""
    cells = []
    for line in text.strip().splitlines():
        name, *typed = line.split()
        for method, one in zip(methods, typed, strict=True):
            if one != "-":
                mean, sd = one.split("±")
                cells.append(Cell(name, method, float(mean), float(sd)))
    return tuple(cells)


def rerun(
    table: PublishedTable,
    *,
    results: Results,
    data: str | Path | None = None,
    runs: int = 20,
    only: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> list[Row]:
    """Run a published table again.

    Parameters
    ----------
    table : PublishedTable
    data : path, optional
        Folder of data sets.
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
        Sets whose file is absent keep their published cell alone.
    """
    rows = []
    for name in dict.fromkeys(cell.data for cell in table.cells):
        if only and name not in only:
            continue
        cells = [cell for cell in table.cells if cell.data == name]
        given = load(name, data)
        if given is None:
            rows += [Row(*cell) for cell in cells]
            continue
        progress(f"{name}: exact optimum and logistic regression")
        first = first_rule(name)
        exact = runs_of(given, "exact", given.scaling, runs, results, label=first)
        logistic = runs_of(given, "logistic", given.scaling, runs, results, label=first)
        best, rule = max(
            (float(np.mean(found)), _way(loss, given.scaling, first))
            for loss, found in (("exact", exact), ("logistic", logistic))
        )
        for label, scaling, loss, mean in ceiling(name, data, min(runs, 3), results):
            progress(f"{name}: best linear AUC ({label or 'as given'}, {scaling}, {loss})")
            if mean > best:
                best, rule = mean, _way(loss, scaling, label)
        for cell in cells:
            progress(f"{name}: {cell.method}")
            method = SAME.get(cell.method, cell.method)
            ours: list[float] = []
            try:
                for count in range(1, runs + 1):
                    ours = runs_of(given, method, given.scaling, count, results, label=first)
            except NotStored:
                if not ours:
                    rows.append(Row(*cell, ceiling=best, ceiling_rule=rule))
                    continue
            rows.append(
                Row(
                    *cell,
                    float(np.mean(ours)),
                    float(np.std(ours)),
                    float(np.mean(exact)),
                    float(np.std(exact)),
                    float(np.mean(logistic)),
                    best,
                    rule,
                    len(ours),
                )
            )
    return rows


def _way(loss: str, scaling: str, label: str) -> str:
    return ", ".join(filter(None, [loss, scaling, label]))


def cells_table(title: str, rows: Sequence[Row]) -> Table:
    """Return cells that were run again, the published figures beside ours."""
    pair = "{:.4f} ± {:.4f}"

    def note(row: Row) -> str | None:
        if row.ours is None:
            return "not run" if row.ceiling else "set not at hand"
        return "above" if row.above else None

    return Table(
        title,
        {
            "set": "",
            "method": "",
            "published": pair,
            "ours": ".4f",
            "sd": ".4f",
            "runs": "",
            "exact optimum": pair,
            "logistic": ".4f",
            "best linear": ".4f",
            "by": "",
            "": "",
        },
        [
            [
                row.data,
                row.method,
                [row.published, row.published_sd],
                row.ours,
                row.ours_sd if row.runs != 1 else None,
                row.runs or None,
                None if row.exact is None else [row.exact, row.exact_sd],
                row.logistic,
                row.ceiling,
                row.ceiling_rule or None,
                note(row),
            ]
            for row in rows
        ],
    )


def study_of(
    paper: str,
    tables: Sequence[PublishedTable],
    steps: Steps,
    *,
    runs: int = 20,
    only: Sequence[str] | None = None,
    data: Path | None = None,
    results: Path = Path("auc-results.jsonl"),
) -> Report:
    """Run the tables of a paper again.

    Parameters
    ----------
    paper : str
    tables : list of PublishedTable
    steps : Steps
        Told what is done; the runs are kept in `results`.
    runs, only, data
        As in `rerun`.
    results : path
        File that keeps finished runs.
    """
    known = {cell.data for table in tables for cell in table.cells}
    for name in only or ():
        if name not in known:
            raise InputError(f"set {name!r} is in no table. Those are {', '.join(sorted(known))}.")
    if not (data_folder(data) / "ml").is_dir():
        raise InputError(
            f"{data_folder(data) / 'ml'}: not found. Set TELIC_DATA to the folder that holds "
            "ml/*.npz (CSR arrays data, indices, indptr, shape and labels y, y_raw)."
        )
    again = partial(
        rerun, results=Results(results), data=data, runs=runs, only=only, progress=steps.progress
    )
    return published_report(paper, [(table, again(table)) for table in tables], runs)


def published_report(
    paper: str, found: Sequence[tuple[PublishedTable, list[Row]]], runs: int
) -> Report:
    """One page: every table, then the published figures no linear optimum reaches."""
    report = Report(
        f"AUC tables of paper {paper}, run again",
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
        report.table(cells_table(f"{table.title}: test AUC, mean ± sd", rows))
    add_summary(report, [row for _, rows in found for row in rows])
    return report


def add_summary(report: Report, rows: Sequence[Row]) -> None:
    """Add the published figures above every linear optimum, and the label rules tried."""
    above = [row for row in rows if row.above]
    report.section("Published figures above every linear optimum tried")
    if above:
        report.table(cells_table("Test AUC, mean ± sd", above))
    else:
        report.text("None among the sets at hand.")
    report.section("Label rules tried")
    report.table(
        Table(
            "Label rules of sets with several classes; the first is used in the tables",
            {"set": "", "rules": ""},
            [[name, ", ".join(rules)] for name, rules in RULES.items()],
        )
    )
