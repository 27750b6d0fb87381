"""`telic auc compare | diagnose`: methods beside each other, and how they get there."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.auc.options import (
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
from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import finite
from telic.cli.progress import steps
from telic.data import check_output


@app.command()
def compare(
    table: Table,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    scaling: ScalingName = "standard",
    runs: Annotated[int, typer.Option(help="Random 80/20 splits.", min=1)] = 5,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Compare methods on a table of your own."""
    from telic.auc.compare import METHODS, compare_rankers
    from telic.auc.report import comparison_table
    from telic.auc.table_ranker import read_labelled
    from telic.report import Report

    if report is not None:
        check_output(report, kind="page", reads=[table], overwrite=overwrite)
    rows = read_labelled(
        table, label=label, positive=positive, drop=drop or (), one_hot=one_hot or ()
    )
    with steps("methods", len(METHODS)) as tell:
        found = compare_rankers(table.name, rows, scaling=scaling, runs=runs, progress=tell)
    splits = f"{runs} random 80/20 split{'s' * (runs > 1)}"
    named = f"{table.name}, positive {rows.positive_label}, {splits}, {scaling}"
    shown = comparison_table(found, named)
    if report is not None:
        page = Report(
            "Methods compared",
            f"{table.name}: {splits}, scaling {scaling}, positive label "
            f"{rows.positive_label}; each method's parameters by 5-fold cross-validation on the "
            "first split.",
        )
        page.table(shown)
        page.write(report)
    if as_json:
        print_json(found)
    else:
        show(shown)


@app.command()
def diagnose(
    table: Table,
    report: Annotated[Path, typer.Option("--report", help="Write the HTML report here.")],
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    scaling: ScalingName = "unit",
    beta: Annotated[float, typer.Option(help="Ridge weight > 0.", callback=finite)] = 1e-3,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """Show how the stochastic methods converge: gap, AUC, step noise, batch sizes."""
    from telic.auc.report import diagnosis_page
    from telic.auc.table_ranker import read_labelled

    check_output(report, kind="page", reads=[table], overwrite=overwrite)
    rows = read_labelled(
        table, label=label, positive=positive, drop=drop or (), one_hot=one_hot or ()
    )
    with steps("diagnose", 2) as tell:
        page = diagnosis_page(
            table.name, rows, scaling=scaling, beta=beta, seed=seed, progress=tell
        )
    page.write(report)
