"""`telic study`: regenerate the papers' tables and figures."""

import json
from pathlib import Path
from typing import Annotated

import typer

from telic.cli.completion import CatalogueFile, Json, MinUsers
from telic.cli.console import Overwrite, print_table
from telic.cli.progress import console, steps

app = typer.Typer(help="Regenerate the papers' tables and figures.", no_args_is_help=True)


@app.command("chapter-2")
def chapter_2(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-2.html"),
    catalogue: CatalogueFile = None,
    min_users: MinUsers = 3,
    seeds: Annotated[int, typer.Option(help="Simulated logs per control.", min=2)] = 10,
    users: Annotated[int, typer.Option(min=4)] = 200,
    compositions: Annotated[int, typer.Option(help="Per user.", min=8)] = 150,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Adaptive completion on simulated typists: tables 2.3–2.5, figures 2.2–2.5, controls."""
    from telic.cli.completion import catalogue_of
    from telic.data import check_output
    from telic.study.chapter2_full import chapter2_study

    check_output(out, reads=[catalogue], overwrite=overwrite)
    phrases = catalogue_of(catalogue, min_users)
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

    print_table("SIMULATED people: does dwell time help?", *controls_table(numbers["controls"]))


@app.command("chapter-3")
def chapter_3(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-3.html"),
    catalogue: CatalogueFile = None,
    pairs: Annotated[
        Path | None, typer.Option(help="Real query-app pairs (UniMobile, ISTAS): people held out.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Simulated logs per control.", min=2)] = 4,
    users: Annotated[int, typer.Option(min=4)] = 150,
    compositions: Annotated[int, typer.Option(help="Per user.", min=8)] = 120,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """The phone's apps: tables 3.1, 3.2, 3.5, figures 3.2-3.7, controls, real pairs."""
    from telic.cli.completion import catalogue_of
    from telic.data import check_output
    from telic.data.pairs import read_pairs
    from telic.study.chapter3_report import chapter3_study, variants_table

    check_output(out, reads=[catalogue, pairs], overwrite=overwrite)
    real = read_pairs(pairs) if pairs else None
    phrases = catalogue_of(catalogue)
    with steps("chapter 3") as progress:
        report, numbers = chapter3_study(
            phrases, pairs=real, users=users, compositions=compositions, seeds=seeds,
            progress=progress,
        )  # fmt: skip
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps(numbers))
        return
    print_table("SIMULATED phones: every keystroke, %", *variants_table(numbers["rows"]))


@app.command("chapter-4")
def chapter_4(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-4.html"),
    data: Annotated[
        Path | None, typer.Option(help="Folder with ml/covtype.npz; default: TELIC_DATA.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Runs of each method.", min=1)] = 10,
    passes: Annotated[float, typer.Option(help="Component gradients / n of each run.")] = 40,
    share: Annotated[float, typer.Option(help="Part of the rows; 1 takes hours.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Convergence of ASBCD and its rivals: figures 4.1 and 4.2."""
    from telic.data import check_output
    from telic.study.chapter4 import chapter4_study

    check_output(out, overwrite=overwrite)
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
    print_table("gradients: uniform / optimal sampling", ["data", "predicted", "measured"], rows)


@app.command("chapter-5")
def chapter_5(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-5.html"),
    data: Annotated[
        Path | None, typer.Option(help="Folder with ml/*.npz; default: TELIC_DATA.")
    ] = None,
    replications: Annotated[int, typer.Option(help="Runs of each method.", min=1)] = 30,
    seconds: Annotated[float, typer.Option(help="Longest time of one run.", min=0.01)] = 1.5,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal draws.", min=0)] = 0,
    work: Annotated[
        Path | None, typer.Option(help="Folder for finished runs: go on after an interruption.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Stochastic ADMM on graph-guided fused logistic regression, real data: figure 5.1."""
    from telic.data import check_output
    from telic.study.chapter5_report import chapter5_study, reach_table

    check_output(out, overwrite=overwrite)
    with steps("chapter 5", total=3 * 12) as progress:
        report, results = chapter5_study(
            data=data, replications=replications, seconds=seconds, seed=seed, work=work,
            progress=progress,
        )  # fmt: skip
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps([result.numbers() for result in results], allow_nan=False))
        return
    for result in results:
        print_table(f"{result.name}: seconds (passes) to a relative gap", *reach_table(result))


@app.command("chapter-6")
def chapter_6(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-6.html"),
    scale: Annotated[float, typer.Option(help="Size of the simulated hospital, (0, 1].")] = 1.0,
    data: Annotated[Path | None, typer.Option(help="Folder with hin/dblp4area_*.")] = None,
    work: Annotated[
        Path | None, typer.Option(help="Keeps finished steps: go on after an interruption.")
    ] = None,
    pipeline: Annotated[
        str, typer.Option(help="Of tables 6.7–6.9: chosen in each training half, or printed.")
    ] = "chosen",
    seed: Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Does not change the result.")] = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """De facto specialties, simulated: tables 6.1–6.9, figure 6.1; with --data also DBLP."""
    from telic.data import check_output
    from telic.study.chapter6 import chapter6

    check_output(out, overwrite=overwrite)
    with steps("chapter 6") as progress:
        report, tables = chapter6(
            scale=scale,
            seed=seed,
            threads=threads,
            data=data,
            work=work,
            pipeline=pipeline,
            on_step=progress,
        )
    report.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps([table._asdict() for table in tables], ensure_ascii=False))


@app.command("chapter-7")
def chapter_7(
    out: Annotated[Path, typer.Option(help="Report to write.")] = Path("telic-chapter-7.html"),
    users: Annotated[
        int,
        typer.Option(
            min=2,
            help="Of the simulated network; results-chapter-7 has 2320895, in about five minutes.",
        ),
    ] = 200_000,
    samples: Annotated[int, typer.Option(min=1, help="Groups per density.")] = 3,
    seed: Annotated[int, typer.Option(help="Same seed, same tables.")] = 0,
    only: Annotated[
        str | None, typer.Option(help="simulated, sanremo, copenhagen or timme; default all.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Privacy risk and DeHIN, simulated and real networks: tables 7.1–7.4, figures 7.7–7.9."""
    from telic.data import check_output
    from telic.study.chapter7 import report

    check_output(out, overwrite=overwrite)
    with steps("chapter 7") as progress:
        page, numbers = report(
            users=users, samples=samples, seed=seed, only=only, progress=progress
        )
    page.write(out)
    console.print(f"report: {out}")
    if as_json:
        typer.echo(json.dumps(numbers))
