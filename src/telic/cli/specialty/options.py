"""What commands on an access log share: options, and how the log and findings are read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.progress import steps

if TYPE_CHECKING:
    from telic.specialty.discovery.result import Discovery
    from telic.specialty.later_logs.carry import Carried
    from telic.specialty.later_logs.kept_findings import Findings
    from telic.specialty.log.access_log import AccessLog

app = typer.Typer(
    help="Specialties that exist in practice but have no code, and the alarms they explain.",
    no_args_is_help=True,
)

Log = Annotated[
    Path, typer.Argument(help="Folder of an access log (data contract 3 of the documentation).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
Seed = Annotated[int, typer.Option(min=0, metavar="<int>", help="Random seed.")]
Threads = Annotated[int, typer.Option(min=1, help="Does not change the result.")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Skip and count rows that break the contract.")
]
CodeTable = Annotated[
    Path | None, typer.Option(help="CSV or Parquet with columns code, category, label.")
]
Found = Annotated[
    Path | None,
    typer.Option(
        help="What `discover --json` wrote for this log, or the folder of `discover --out`, which "
        "also serves later logs. Default: discover anew."
    ),
]


ShowIds = Annotated[
    bool, typer.Option("--show-ids", help="Show the log's user ids instead of pseudonyms.")
]
Pipeline = Annotated[
    str,
    typer.Option(
        help="How recognition scales weights and sets the classifier: chosen (in each training "
        "half, by cross-validation within it), printed (nearest to the dissertation), or one by "
        "name."
    ),
]
Method = Annotated[str, typer.Option(help="residuals, lda or pathselclus.")]


def read(folder: Path, skip_bad_rows: bool, code_table: Path | None) -> "AccessLog":
    """Read a log and say what was dropped."""
    from telic.specialty.log.log_files import read_log

    log = read_log(folder, on_bad_row="skip" if skip_bad_rows else "raise", code_table=code_table)
    tell(log.notes)
    return log


def known(
    log: "AccessLog", found: Path | None, method: str, seed: int, threads: int
) -> "tuple[AccessLog, Discovery, Findings | None, Carried | None]":
    """Return the log, what was found, and findings of an earlier log carried to this one."""
    from telic.specialty.discovery.discover import discover as find
    from telic.specialty.discovery.result import read_discovery
    from telic.specialty.later_logs.carry import carry
    from telic.specialty.later_logs.kept_findings import read_findings

    if found is not None and found.is_dir():
        before = read_findings(found)
        carried = carry(before, log, seed=seed)
        tell(carried.notes)
        return carried.log, carried.discovery, before, carried
    if found is not None:
        return log, read_discovery(found, log), None, None
    with steps("discover") as begin:
        discovery = find(
            log,
            method=method,
            seed=seed,
            threads=threads,
            progress=lambda step: begin(f"{step}: done"),
        )
    return log, discovery, None, None


def tell(notes: list[str]) -> None:
    """Say what was dropped or assumed."""
    for note in notes:
        typer.echo(f"note: {note}", err=True)
