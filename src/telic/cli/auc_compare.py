"""`telic auc compare | diagnose`: methods beside each other, and how they get there."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.auc import (
    Drop,
    Json,
    Label,
    OneHot,
    Positive,
    ReportFile,
    ScalingName,
    Seed,
    Table,
    app,
)
from telic.cli.console import Overwrite, print_table
from telic.cli.progress import steps
from telic.data import check_output
from telic.errors import InputError


@app.command()
def compare(
    table: Annotated[Path | None, typer.Argument(help="A table of your own.")] = None,
    paper: Annotated[str | None, typer.Option(help="001 or 002: its tables again.")] = None,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    scaling: ScalingName = "standard",
    runs: Annotated[int | None, typer.Option(help="Random 80/20 splits. Papers: 20.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Only this set. Repeatable.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with ml/*.npz. Default: TELIC_DATA.")
    ] = None,
    results: Annotated[
        Path, typer.Option(help="File that keeps finished runs; run again to go on.")
    ] = Path("auc-results.jsonl"),
    report: ReportFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare methods on a table of your own, or run a paper's tables again."""
    if (table is None) == (paper is None):
        raise InputError("compare: give either a table of your own or --paper 001|002.")
    if report is not None:
        check_output(report, reads=[table, results], overwrite=overwrite)
    if paper is not None:
        _compare_paper(paper, sets, data, results, runs or 20, report, as_json)
    else:
        assert table is not None
        _compare_table(
            table, label, positive, drop or [], one_hot or [], scaling, runs or 5, report, as_json
        )


@app.command()
def diagnose(
    table: Table,
    report: Annotated[Path, typer.Option("--report", help="Write the HTML report here.")],
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    scaling: ScalingName = "unit",
    beta: Annotated[float, typer.Option(help="Ridge weight > 0.")] = 1e-3,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Show how the stochastic methods converge: gap, AUC, step noise, batch sizes."""
    from telic.auc.diagnostics import batch_sizes, convergence
    from telic.auc.ranker import read_labelled
    from telic.auc.scaling import Scaling
    from telic.report import Report

    check_output(report, reads=[table], overwrite=overwrite)
    rows = read_labelled(
        table, label=label, positive=positive, drop=drop or (), one_hot=one_hot or ()
    )
    X = Scaling.fit(rows.X, scaling).apply(rows.X)
    with steps("diagnose", 2) as tell:
        tell("convergence of each method")
        found, figures = convergence(X, rows.positive, beta=beta, seed=seed)
        tell("batch sizes of SPDAM")
        batches = batch_sizes(X, rows.positive, beta=beta, seed=seed)
    page = Report(
        "How the methods converge",
        f"{table.name}: {rows.positive.size:,} rows, {X.shape[1]:,} columns, scaling {scaling}, "
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
        page.figure(figure, caption)
    page.table(
        ["method", "passes", "seconds", "relative gap", "AUC"],
        [
            [name, f"{p.passes:.0f}", f"{p.seconds:.3f}", f"{p.gap:.1e}", f"{p.auc:.4f}"]
            for name, p in ((name, points[-1]) for name, points in found.items())
        ],
        caption="Where each method stopped (gap 1e-8, or 60 passes or stages)",
    )
    page.table(
        ["batch, share of rows", "passes", "seconds"],
        [
            [f"{share:g}", "over 300" if passes is None else f"{passes:.0f}",
             "" if seconds is None else f"{seconds:.3f}"]
            for share, passes, seconds in batches
        ],
        caption="SPDAM to a relative gap of 1e-6, by batch size",
    )  # fmt: skip
    page.write(report)


def _compare_paper(
    paper: str,
    sets: list[str] | None,
    data: Path | None,
    results: Path,
    runs: int,
    report: Path | None,
    as_json: bool,
) -> None:
    import importlib

    from telic.study.auc_tables import Results, data_folder
    from telic.study.published import COLUMNS, published_report, rerun, shown

    if paper not in ("001", "002"):
        raise InputError(f"--paper: {paper!r}, expected 001 or 002.")
    folder = data_folder(data)
    tables = importlib.import_module(f"telic.study.paper{paper}").TABLES
    stored = Results(results)
    found = []
    try:
        with steps(f"document {paper}") as tell:
            for entry in tables:
                rows = rerun(
                    entry, folder=folder, results=stored, runs=runs, only=sets, progress=tell
                )
                found.append((entry, rows))
    except KeyboardInterrupt:
        typer.echo(f"telic: interrupted; {results} keeps the finished runs, run again.", err=True)
        raise typer.Exit(130) from None
    if report is not None:
        published_report(paper, found, runs).write(report)
    if as_json:
        cells = [
            row._asdict() | {"table": entry.title, "above": row.above}
            for entry, rows in found
            for row in rows
        ]
        typer.echo(json.dumps(cells))
        return
    for entry, rows in found:
        print_table(entry.title, COLUMNS, [shown(row) for row in rows])


def _compare_table(
    table: Path,
    label: str | None,
    positive: str | None,
    drop: list[str],
    one_hot: list[str],
    scaling: str,
    runs: int,
    report: Path | None,
    as_json: bool,
) -> None:
    import numpy as np

    from telic.auc.ranker import read_labelled
    from telic.report import Report
    from telic.study.auc_tables import METHODS, DataSet, one_run, search

    rows = read_labelled(table, label=label, positive=positive, drop=drop, one_hot=one_hot)
    data = DataSet(table.name, rows.X, rows.positive, scaling)
    found: list[dict[str, Any]] = []
    with steps("methods", len(METHODS)) as tell:
        for name in METHODS:
            tell(name)
            parameter = search(data, name, scaling)
            aucs = [one_run(data, name, scaling, run, parameter) for run in range(runs)]
            found.append(
                {"method": name, "auc": float(np.mean(aucs)), "sd": float(np.std(aucs)),
                 "parameter": parameter, "positive": rows.positive_label}
            )  # fmt: skip
    found.sort(key=lambda row: -row["auc"])
    columns = ["method", "AUC", "sd", "parameter"]
    cells = [
        [r["method"], f"{r['auc']:.4f}", f"{r['sd']:.4f}", f"{r['parameter']:g}"] for r in found
    ]
    if report is not None:
        written = Report(
            "Methods compared",
            f"{table.name}: {runs} random 80/20 splits, scaling {scaling}, positive label "
            f"{rows.positive_label}; each method's parameter by 5-fold cross-validation on the "
            "first split.",
        )
        written.table(columns, cells)
        written.write(report)
    if as_json:
        typer.echo(json.dumps(found))
    else:
        named = f"{table.name}, positive {rows.positive_label}, {runs} splits, {scaling}"
        print_table(named, columns, cells)
