"""What the commands of `telic completion` share: options, and how logs are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.options import finite
from telic.cli.progress import console
from telic.errors import InputError, expect_one_of

if TYPE_CHECKING:
    from telic.completion import Protocol, Replay
    from telic.data.compositions import CompositionLog

app = typer.Typer(
    help="Query completion that adapts to what the user skipped.", no_args_is_help=True
)

Log = Annotated[
    Path, typer.Argument(help="Composition log, Parquet (data contract 1 of the documentation).")
]
Queries = Annotated[
    Path | None,
    typer.Option(help="Query log or catalogue from before the log, Parquet or CSV (contract 2)."),
]
MinCompositions = Annotated[
    int,
    typer.Option(help="Leave out users with fewer compositions (the dissertation: 100).", min=4),
]
MinUsers = Annotated[
    int,
    typer.Option(
        help="Suggest a query only if this many users submitted it, and look at an app only if as "
        "many had it.",
        min=1,
    ),
]
SessionGap = Annotated[
    float,
    typer.Option(
        help="Signals: minutes without a search that end a session.", min=0.1, callback=finite
    ),
]
SkipBadRows = Annotated[
    bool,
    typer.Option("--skip-bad-rows", help="Leave out and count rows that break the contract."),
]
Window = Annotated[
    float, typer.Option(help="Minutes for which an opened app counts.", min=0, callback=finite)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal results.", min=0)]
CatalogueFile = Annotated[
    Path | None,
    typer.Option(help="Query log to take phrases and weights from; default: the world's places."),
]


def check_log(out: Path) -> None:
    """Raise InputError unless a log may have this name: readers go by it."""
    if out.suffix.lower() != ".parquet":
        raise InputError(f"{out}: a log is written as a .parquet file. Name one.")


def composition_log(log: Path, *, skip: bool) -> "CompositionLog":
    """Read a composition log, or what a service recorded, and say what was left out."""
    from telic.data.compositions import read_compositions

    read = read_compositions(log, on_bad_row="skip" if skip else "raise")
    for reason, count in read.skipped.items():
        console.print(f"{log}: skipped {count} rows: {reason}", soft_wrap=True)
    return read


def holds_compositions(files: Sequence[Path]) -> bool:
    """Whether one of some files is a composition log, or the folder that a service recorded to."""
    from telic.data.pieces import open_pieces

    return any(file.is_dir() or "keystrokes" in open_pieces(file).columns for file in files)


def replay_of(
    log: Path, queries: Path | None, *, skip: bool, min_compositions: int, min_users: int
) -> "Replay":
    """Read a log and make it ready."""
    from telic.completion import Replay
    from telic.data.queries import read_queries

    earlier = read_queries(queries) if queries else None
    read = composition_log(log, skip=skip)
    return Replay(read, queries=earlier, min_compositions=min_compositions, min_users=min_users)


def protocols_of(name: str) -> "tuple[Protocol, ...]":
    """Return the protocols that a name stands for."""
    from telic.completion import CAREFUL, PAPER, PROTOCOLS

    if name == "both":
        return CAREFUL, PAPER
    if name not in PROTOCOLS:
        raise InputError(f"--protocol is {name!r}, expected {', '.join(PROTOCOLS)} or both.")
    return (PROTOCOLS[name],)


def relevances_of(names: list[str] | None) -> tuple[str, ...]:
    """Return the relevance scores asked for; all five by default."""
    from telic.completion.learning.relevance import NAMES

    for name in names or ():
        expect_one_of(NAMES, **{"--relevance": name})
    return tuple(dict.fromkeys(names or NAMES))
