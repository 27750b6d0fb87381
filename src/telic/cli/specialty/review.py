"""`telic specialty review`: the queue of alarms that people work through."""

from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from telic.cli.console import print_json, show
from telic.cli.specialty.options import CodeTable, Found, Json, Log, Seed, SkipBad, known, read

if TYPE_CHECKING:
    from telic.specialty.alarms.review_queue import ReviewQueue

app = typer.Typer(
    help="The queue of alarms that people work through: open, explained, confirmed, closed.",
    no_args_is_help=True,
)

Store = Annotated[
    str,
    typer.Option(
        help="sqlite:///FILE.sqlite (`add` makes it) or postgresql+psycopg://USER@HOST/DB."
    ),
]


def open_queue(store: str, *, new: bool = False) -> "ReviewQueue":
    """Open a store, or say what it takes; only a `new` one may be a file that is not there yet."""
    from telic.errors import InputError

    try:
        from telic.data.databases import refuse_absent
        from telic.specialty.alarms.review_queue import ReviewQueue
    except ImportError:
        raise InputError(
            "the review queue needs SQLAlchemy: pip install 'telic[serve]' "
            "(for PostgreSQL 'telic[postgresql]')."
        ) from None
    if not new:
        refuse_absent(store, "`telic specialty review add` makes the store.")
    return ReviewQueue(store)


@app.command()
def add(
    log: Log,
    store: Store,
    found: Found = None,
    limit: Annotated[
        int,
        typer.Option(
            min=0, metavar="<int>", help="Open alarms to add, at most; decided ones do not count."
        ),
    ] = 1000,
    seed: Seed = 0,
    skip_bad_rows: SkipBad = False,
    code_table: CodeTable = None,
) -> None:
    """Add a log's open alarms to the store, least covered first; update those not yet decided."""
    from telic.specialty.alarms.colleagues import care_of
    from telic.specialty.alarms.explained_alarms import judge

    with closing(open_queue(store, new=True)) as queue:
        records = read(log, skip_bad_rows, code_table)
        records, discovery, before, _ = known(records, found, "residuals", seed, 1)
        care = care_of(records, discovery, before=before, seed=seed)
        alerts = judge(records, discovery, before=before, care=care)
        name = log.resolve().name  # of ".", too
        added = queue.add(records, discovery, alerts, name=name, limit=limit)
        counts = queue.counts()
    typer.echo(
        f"{added.new:,} alarms are new, {added.changed:,} changed, {added.kept:,} stay as they "
        f"are; now "
        + ", ".join(f"{n:,} {state}" for state, n in counts.items())
        + (f"; {added.left:,} more of this log are open beyond --limit" if added.left else "")
    )


@app.command("list")
def list_(
    store: Store,
    state: Annotated[str | None, typer.Option(help="open, explained, confirmed, closed.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Alarms to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List alarms, least covered first; with --json each with its history."""
    from telic.report import Table

    with closing(open_queue(store)) as queue:
        alarms, counts = queue.alarms(state=state, limit=limit), queue.counts()
    if as_json:
        print_json({"counts": counts, "alarms": alarms})
        return
    names = ("alarm", "state", "user", "declared", "practised", "diagnoses", "log", "row")
    rows = [
        ["; ".join(one[name]) if name == "diagnoses" else one[name] for name in names]
        for one in alarms
    ]
    show(Table("Alarms", dict.fromkeys(names, ""), rows))
    typer.echo(", ".join(f"{n:,} {name}" for name, n in counts.items()))


@app.command("set")
def set_(
    alarm: Annotated[
        str, typer.Argument(help="The alarm's id, as `list` shows it, or its beginning.")
    ],
    state: Annotated[str, typer.Argument(help="open, explained, confirmed or closed.")],
    store: Store,
    by: Annotated[str, typer.Option(help="Who decides.")],
    note: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Decide about an alarm; later runs leave it as decided."""
    with closing(open_queue(store)) as queue:
        moved = queue.move(alarm, state, by=by, note=note)
    typer.echo(f"{moved}: {state}")
