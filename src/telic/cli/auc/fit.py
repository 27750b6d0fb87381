"""`telic auc fit | inspect | rank | evaluate`: rank the rows of a table."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from telic.cli.auc.options import (
    Beta,
    Beta1,
    Drop,
    Json,
    Label,
    Model,
    OneHot,
    Penalty,
    Positive,
    ReportFile,
    ScalingName,
    Seed,
    Solver,
    Table,
    Threshold,
    app,
)
from telic.cli.console import Overwrite, print_card, print_json
from telic.cli.jobs import Cluster, Memory, Piece, Work, job_of, steps_or_job
from telic.cli.options import finite, refuse_ending
from telic.errors import InputError, expect_one_of

if TYPE_CHECKING:
    from telic.auc.thresholds import Rule


MOST_NAMED = 20
"""Columns that are named to people."""


@app.command()
def fit(
    table: Table,
    model: Model,
    label: Label = None,
    positive: Positive = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    scaling: ScalingName = "standard",
    solver: Solver = "auto",
    penalty: Penalty = "l2",
    beta: Beta = "cv",
    beta1: Beta1 = 1e-4,
    threshold: Threshold = "prior",
    test: Annotated[
        float,
        typer.Option(help="Share of the rows held out to measure the model.", callback=finite),
    ] = 0.2,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    seed: Seed = 0,
    memory: Memory = None,
    cluster: Cluster = None,
    work: Work = None,
    piece: Piece = None,
) -> None:
    """Fit a ranker, measure it on held-out rows, fit again on all rows and save it.

    With --memory or --cluster the table is a Parquet file of numbers, which is read in pieces; then
    --beta cv looks at 100,000 of the rows at most.
    """
    from telic.auc.estimators.by_name import SOLVERS
    from telic.auc.report import measures, page
    from telic.auc.table_in_pieces import design_of, fit_measured_in_pieces
    from telic.auc.table_ranker import KIND, fit_measured, read_labelled
    from telic.data import check_output

    if report is not None and model.resolve() in (report.resolve(), *report.resolve().parents):
        raise InputError(f"--report {report}: is in the model's folder. Choose another name.")
    for file, kind in ((model, KIND), (report, "page")):
        if file is not None:
            check_output(file, kind=kind, reads=[table], overwrite=overwrite)
    expect_one_of(("auto", *SOLVERS), solver=solver)
    given = None if beta == "cv" else _number("--beta", beta)
    rule = _rule(threshold)
    options: dict[str, Any] = {
        "scaling": scaling,
        "test": test,
        "seed": seed,
        "solver": solver,
        "penalty": penalty,
        "beta1": beta1,
        "threshold": rule,
    }
    with (
        job_of(memory, cluster, work, model, reads=[table], piece=piece) as job,
        # The grid of beta may grow.
        steps_or_job(job, "fit", None if given is None else 2) as tell,
    ):
        if job.executor is not None:
            if one_hot:
                raise InputError(
                    "--one-hot reads the table whole. Leave out --memory and --cluster."
                )
            design, chosen = design_of(table, label=label, positive=positive, drop=drop or ())
            assert label is not None
            assert job.work is not None
            final, truth, scores = fit_measured_in_pieces(
                design,
                label=label,
                positive_label=chosen,
                beta=given,
                executor=job.executor,
                work=job.work,
                progress=tell,
                **options,
            )
        else:
            rows = read_labelled(
                table, label=label, positive=positive, drop=drop or (), one_hot=one_hot or ()
            )
            final, truth, scores = fit_measured(
                rows, label=label, beta=given, progress=tell, **options
            )
        measured = measures(truth, scores)
        held_out = {
            name: measured[name] for name in ("rows", "positives", "auc", "auc_low", "auc_high")
        }
        told = final.fitted_on | {"measured on rows held out": held_out}
        replace(final, fitted_on=told).save(model)  # a full disk must not cost the job's folder
    if report is not None:
        made = final.settings() | {
            "rows fitted": final.fitted_on["rows"],
            "held out": truth.size,
        }
        lead = (
            f"{table.name}: measured on {truth.size:,} rows held out at random; the saved model "
            "was then fitted to all rows."
        )
        page(
            "A ranking by AUC",
            lead,
            truth,
            scores,
            label=final.positive_label,
            settings=made,
            features=final.features(),
            seed=seed,
        ).write(report)
    found = {"positive": final.positive_label} | measured
    columns = {} if final.encoder is None else final.encoder.told()
    _print(columns | found | {"beta": final.parameters["beta"], "model": str(model)}, as_json)


@app.command()
def inspect(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    as_json: Json = False,
) -> None:
    """Show a ranker's card: what it is for, what it was fitted on, what was measured."""
    from telic.auc.table_ranker import Ranker
    from telic.data.saved_models import written_by

    print_card(Ranker.load(model).card() | {"written by": written_by(model)}, as_json)


@app.command()
def rank(
    table: Table,
    model: Model,
    output: Annotated[Path | None, typer.Option(help="CSV file; default: standard output.")] = None,
    top: Annotated[int | None, typer.Option(help="Keep only this many rows.", min=1)] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Column of the table to copy to the list. Repeatable.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """List rows, most likely positive first: score, positive label and whether called positive."""
    import sys

    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    from telic.auc.table_ranker import Ranker
    from telic.data import atomic_path, check_output
    from telic.data.tables import refuse_repeated

    if output is not None:
        check_output(output, kind="CSV", reads=[table, model], overwrite=overwrite)
        refuse_ending("--output", output, "CSV", ".csv", ".txt")
    made = ("rank", "row", "score", "positive", "called")
    for name in column or ():
        if name in made:
            raise InputError(
                f"--column {name}: the list has a column {name!r} of its own. Rename the table's."
            )
    ranker = Ranker.load(model)
    source, X = ranker.read(table)
    scores = ranker.score(X)
    order = np.argsort(-scores, kind="stable")[:top]
    found = (
        np.arange(1, order.size + 1),
        order + 1,
        scores[order],
        [ranker.positive_label] * order.size,
        scores[order] > 0,
    )
    columns: dict[str, Any] = dict(zip(made, found, strict=True))
    for name in column or ():
        if source is None or name not in source.column_names:
            present = f"; there are {', '.join(source.column_names[:MOST_NAMED])}" if source else ""
            raise InputError(f"{table}: no column {name!r} to carry along{present}.")
        refuse_repeated(table, source.column_names, [name])
    carried = _carried(table, source, column) if column else {}
    columns |= {name: cells.take(pa.array(order)) for name, cells in carried.items()}
    ranked = pa.table(columns)
    if output is None:
        csv.write_csv(ranked, sys.stdout.buffer)
    else:
        with atomic_path(output) as temporary:
            csv.write_csv(ranked, str(temporary))
        typer.echo(f"{output}: {order.size:,} rows", err=True)


def _carried(table: Path, source: Any, names: list[str]) -> dict[str, Any]:
    """Return the columns to copy: of a text file every cell as it is written, such as "0047"."""
    import pyarrow as pa

    from telic.data.csv_files import ending_of, written_cells

    if ending_of(table) != ".parquet":
        source = written_cells(table, names)
    found = {}
    for name in names:
        found[name] = cells = source[name]
        try:
            if pa.types.is_nested(cells.type):
                raise pa.ArrowInvalid
            if "binary" in str(cells.type):  # some write texts so
                found[name] = cells.cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            raise InputError(
                f"{table}: column {name!r} is of type {cells.type}, which a list in CSV "
                "does not hold. Leave it out."
            ) from None
    return found


@app.command()
def evaluate(
    table: Table,
    model: Model,
    report: ReportFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
    seed: Seed = 0,
) -> None:
    """Measure a saved ranker on labelled rows it has not seen."""
    from telic.auc.report import measures, page
    from telic.auc.table_ranker import Ranker, read_labelled
    from telic.data import check_output

    if report is not None:
        check_output(report, kind="page", reads=[table, model], overwrite=overwrite)
    ranker = Ranker.load(model)
    rows = read_labelled(
        table,
        label=ranker.label,
        positive=ranker.positive_label,
        encoder=ranker.encoder,
        width=ranker.coef.size,
    )
    positives = int(rows.positive.sum())
    if min(positives, rows.positive.size - positives) < 2:
        raise InputError(
            f"{table}: {positives} of {rows.positive.size} rows are {ranker.positive_label!r}, and "
            "measures take at least two rows of each label. Measure on more rows."
        )
    scores = ranker.score(rows.X)
    if report is not None:
        page(
            "A ranking by AUC",
            f"{table.name}: every row of the file.",
            rows.positive,
            scores,
            label=ranker.positive_label,
            settings=ranker.settings(),
            features=ranker.features(),
            seed=seed,
        ).write(report)
    _print({"positive": ranker.positive_label} | measures(rows.positive, scores), as_json)


def _rule(text: str) -> "Rule":
    from telic.auc.thresholds import check_rule

    name, equals, number = text.partition("=")
    rule: Rule = (name, _number("--threshold", number)) if equals else name
    check_rule(rule)
    return rule


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option}: {text!r}, expected a number.") from None


def _names(columns: "list[str] | dict[str, int]") -> str:
    """Name columns, those of categories with how many each has."""
    counts = columns if isinstance(columns, dict) else {}
    names = [f"{name} ({counts[name]:,})" if counts else name for name in columns]
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more or "none"


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    for key, value in found.items():
        if key.endswith(("_low", "_high")):
            continue
        shown = f"{value:.4f}" if isinstance(value, float) and key != "beta" else value
        if key in ("numbers", "categories"):
            shown = _names(value)
        shown = "—" if value is None else shown
        if f"{key}_low" in found:
            shown += f"  [{found[f'{key}_low']:.4f}, {found[f'{key}_high']:.4f}]"
        typer.echo(f"{key.replace('_', ' '):18} {shown}")
