"""`telic study`: regenerate the papers' tables and figures."""

import json
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.completion import CatalogueFile, Json, print_table
from telic.cli.progress import console, steps

app = typer.Typer(help="Regenerate the papers' tables and figures.", no_args_is_help=True)


@app.command("chapter-2")
def chapter_2(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-2.html"),
    catalogue: CatalogueFile = None,
    seeds: Annotated[int, typer.Option(help="Simulated logs per control.", min=2)] = 10,
    users: Annotated[int, typer.Option(min=4)] = 200,
    compositions: Annotated[int, typer.Option(help="Per user.", min=8)] = 150,
    as_json: Json = False,
) -> None:
    """Adaptive completion on simulated typists: tables 2.3–2.5, figures 2.2–2.5, controls."""
    from telic.cli.completion import catalogue_of
    from telic.data import refuse_unwritable
    from telic.study.chapter2_full import chapter2_study

    refuse_unwritable(out)
    phrases = catalogue_of(catalogue)
    with steps("chapter 2") as progress:
        report, numbers = chapter2_study(
            phrases, seeds=seeds, users=users, compositions=compositions, progress=progress
        )
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps(numbers))
        return
    from telic.study.chapter2_report import controls_table

    print_table(*controls_table(numbers["controls"]), "SIMULATED people: does dwell time help?")
