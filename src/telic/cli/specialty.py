"""`telic specialty`: simulate, discover, recognise, explain and report."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from telic.specialty.access import AccessLog

app = typer.Typer(
    help="Specialties that exist in practice but have no code, and the alarms they explain.",
    no_args_is_help=True,
)

Log = Annotated[Path, typer.Argument(help="Folder of an access log (docs/data-contracts.md, 3).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
Seed = Annotated[int, typer.Option(help="Fixes all chance.")]
Threads = Annotated[int, typer.Option(min=1, help="Does not change the result.")]
SkipBad = Annotated[bool, typer.Option(help="Skip and count rows that break the contract.")]
CodeTable = Annotated[
    Path | None, typer.Option(help="CSV or Parquet with columns code, category, label.")
]
Method = Annotated[str, typer.Option(help="lda or pathselclus.")]


@app.command()
def simulate(
    folder: Annotated[Path, typer.Argument(help="Folder to write; must not exist.")],
    scale: Annotated[float, typer.Option(help="Share of patients and accesses, (0, 1].")] = 0.05,
    seed: Seed = 0,
) -> None:
    """Write a simulated hospital's access log, with its truth."""
    from telic.simulate.hospital import simulate_hospital

    simulate_hospital(folder, scale=scale, seed=seed)
    typer.echo(f"{folder}: a simulated access log", err=True)


@app.command()
def discover(
    log: Log,
    method: Method = "lda",
    topics: Annotated[int | None, typer.Option(help="LDA's K; else by perplexity.")] = None,
    document: Annotated[str, typer.Option(help="LDA's documents: patient or user.")] = "patient",
    view: Annotated[str | None, typer.Option(help="PathSelClus: fine or general.")] = None,
    free: Annotated[int, typer.Option(help="PathSelClus: clusters without seeds.")] = 3,
    full_paths: Annotated[bool, typer.Option(help="PathSelClus: U-P-U, U-P-D-P-U.")] = False,
    restarts: Annotated[int, typer.Option(help="Runs; the best is used.")] = 3,
    seed: Seed = 0,
    threads: Threads = 1,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
    as_json: Json = False,
) -> None:
    """Find specialties: users, diagnoses by lift, the code that names them or none."""
    from telic.specialty.discover import discover as find

    records = _read(log, skip_bad_rows, code_table)
    with _progress() as on_step:
        found = find(
            records,
            method=method,
            n_topics=topics,
            document=document,
            view=view,
            free=free,
            full_paths=full_paths,
            restarts=restarts,
            seed=seed,
            threads=threads,
            on_step=on_step,
        )
    if as_json:
        typer.echo(json.dumps(found.as_json(records), ensure_ascii=False, indent=1))
        return
    for one in found.specialties:
        code = one.listed_code or f"no code (nearest: {one.nearest_code or 'none'})"
        typer.echo(
            f"{len(one.users):5d} users  stability {one.stability:.2f}  {code}  |  {one.name}"
        )


def _read(folder: Path, skip_bad_rows: bool, code_table: Path | None) -> "AccessLog":
    from telic.specialty.access import read_log

    log = read_log(folder, on_bad_row="skip" if skip_bad_rows else "raise", code_table=code_table)
    for note in log.notes:
        typer.echo(f"note: {note}", err=True)
    return log


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """A spinner on stderr that names the last step done."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading")
        yield lambda step: progress.update(task, description=f"{step}: done")
