"""`telic completion signals`: what sessions, time and people are worth on one's own query log."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.completion.fit import Column, columns_of, signal_groups
from telic.cli.completion.options import (
    Json,
    MinUsers,
    Seed,
    SessionGap,
    Window,
    app,
    holds_compositions,
)
from telic.cli.console import Overwrite, print_json, show
from telic.cli.options import refuse_given
from telic.cli.progress import console, steps
from telic.errors import InputError


@app.command()
def signals(
    context: typer.Context,
    log: Annotated[
        list[Path],
        typer.Argument(
            help="Query logs with users and times: CSV, TSV, JSON lines, Parquet; or a "
            "composition log (data contracts 2 and 1 of the documentation)."
        ),
    ],
    report: Annotated[
        Path | None, typer.Option(help="Also write a report: HTML, or Markdown for .md.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Also write the search box, a model folder to serve.")
    ] = None,
    column: Column = None,
    groups: Annotated[
        str, typer.Option(help="Groups of signals to try: all, or some, separated by commas.")
    ] = "all",
    session_gap: SessionGap = 30.0,
    window: Window = 30.0,
    min_users: MinUsers = 3,
    tested: Annotated[
        int, typer.Option(help="Test at most this many submissions, drawn at random.", min=100)
    ] = 10_000,
    skip_bad_rows: Annotated[
        bool,
        typer.Option("--skip-bad-rows", help="Leave out and count rows that cannot be used."),
    ] = False,
    seed: Seed = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Measure what popularity, time, habits, sessions, pairs and match are worth on a query log.

    Only the log is needed; a composition log tells what feedback is worth, too, and what apps are
    that were opened before. telic learns from half of the users and tests on the other half, later
    in time. Controls, in which there is nothing to find, show what the measure itself makes up.
    """
    from telic.completion.box.completer import KIND
    from telic.completion.fit.from_files import searches_found, searches_of, with_words
    from telic.completion.fit.from_searches import completer_of_searches
    from telic.completion.fit.sources import read_sources
    from telic.completion.signals import controls, measured, models_of
    from telic.completion.signals.evaluation import ALL
    from telic.completion.signals.report import SignalFindings
    from telic.data import check_output

    chosen = signal_groups(groups, "--groups")
    if report is not None and report == model:
        raise InputError(f"--report and --model are both {report}. Name two places.")
    for out, kind in ((report, "page"), (model, KIND)):
        if out is not None:
            check_output(out, kind=kind, reads=log, overwrite=overwrite)
    if not holds_compositions(log):
        refuse_given(context, ["window"], "without a composition log")
    with steps("signals") as progress:
        progress("reading")
        read = read_sources(
            log, columns=columns_of(column), on_bad_row="skip" if skip_bad_rows else "raise"
        )
        searches = searches_of(
            read,
            log,
            session_gap=session_gap,
            min_users=min_users,
            seed=seed,
            minutes=window,
        )
        models = models_of(searches, chosen, progress=progress)
        progress("testing")
        found = measured(searches, models, most=tested)
        controlled = controls(searches, chosen, most=tested, progress=progress)
        findings = SignalFindings.of(searches, models, found, controlled)
        if model:
            progress("the completer")
            box = with_words(completer_of_searches(searches, models[ALL]))
            replace(box, found=searches_found(read, searches)).save(model)
    for one in read.logs:
        for reason, count in one.skipped.items():
            console.print(f"skipped {count} rows: {reason}", soft_wrap=True)
    if report:
        findings.page("What signals are worth on this query log").write(report)
        console.print(f"report: {report}", soft_wrap=True)
    if as_json:
        print_json(findings.as_json())
        return
    console.print(findings.sentence(), soft_wrap=True)
    for table in findings.tables()[:5]:
        show(table)
