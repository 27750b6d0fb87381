"""`telic specialty report`: the compliance officer's page."""

from pathlib import Path
from typing import Annotated

import typer

from telic.cli.console import Overwrite
from telic.cli.options import refuse_given
from telic.cli.specialty.options import (
    CodeTable,
    Found,
    Log,
    Method,
    Pipeline,
    Seed,
    ShowIds,
    SkipBad,
    Threads,
    app,
    known,
    read,
    tell,
)


@app.command()
def report(
    context: typer.Context,
    log: Log,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("specialties.html"),
    found: Found = None,
    method: Method = "residuals",
    pipeline: Pipeline = "chosen",
    show_ids: ShowIds = False,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the compliance officer's report: specialties, mismatches, the queue of alarms."""
    from telic.data import check_output
    from telic.specialty.alarms.before_and_after import known_snooping
    from telic.specialty.pseudonyms import Pseudonyms
    from telic.specialty.recognition.classifiers import pipeline_names
    from telic.specialty.report.page import full_report

    check_output(out, kind="page", reads=[log, found, code_table], overwrite=overwrite)
    pipeline_names("SVM", pipeline)
    if found is not None:
        refuse_given(context, ["method"], "beside --found")
    records = read(log, skip_bad_rows, code_table)
    records, discovery, before, _ = known(records, found, method, seed, threads)
    page, notes = full_report(
        records,
        discovery,
        before=before,
        snooping=known_snooping(log),
        pipeline=pipeline,
        pseudonyms=None if show_ids else Pseudonyms(),
        seed=seed,
        threads=threads,
    )
    tell(notes)
    page.write(out)
    typer.echo(f"{out}: written", err=True)
