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
    from telic.study.chapter2_full import chapter2_study

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


@app.command("chapter-4")
def chapter_4(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-4.html"),
    data: Annotated[
        Path | None, typer.Option(help="Folder with ml/covtype.npz; default: TELIC_DATA.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Runs of each method.", min=1)] = 10,
    passes: Annotated[float, typer.Option(help="Component gradients / n of each run.")] = 40,
    share: Annotated[float, typer.Option(help="Part of the rows; 1 takes hours.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Convergence of ASBCD and its rivals: figures 4.1 and 4.2."""
    from telic.study.chapter4 import chapter4_study

    with steps("chapter 4") as progress:
        report, numbers = chapter4_study(
            replications=replications,
            passes=passes,
            share=share,
            data=data,
            seed=seed,
            progress=progress,
        )
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps(numbers))
        return
    rows = [
        [name, f"{each['predicted_factor']:.2f}", f"{each['measured_factor']:.2f}"]
        for name, each in numbers.items()
    ]
    print_table(["data", "predicted", "measured"], rows, "gradients: uniform / optimal sampling")


@app.command("chapter-5")
def chapter_5(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-5.html"),
    replications: Annotated[int, typer.Option(min=1)] = 30,
    seconds: Annotated[float, typer.Option(help="Of one run.", min=0.01)] = 3.0,
    as_json: Json = False,
) -> None:
    """Stochastic ADMM on real data (TELIC_DATA): figure 5.1."""
    from telic.study.chapter5 import chapter5_study

    with steps("chapter 5") as progress:
        report, numbers = chapter5_study(
            replications=replications, seconds=seconds, progress=progress
        )
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps(numbers))
