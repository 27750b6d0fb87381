"""`telic completion tell | forget | export-log`: what a service has learned and kept of users."""

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from telic.cli.completion.options import Json, app, check_log
from telic.cli.console import Overwrite, print_facts, print_json
from telic.errors import InputError, ModelError

Database = Annotated[
    str | None, typer.Option(help="SQLAlchemy URL; default: MODEL.sqlite beside the model.")
]
Recorded = Annotated[
    Path | None, typer.Option(help="Folder that the service recorded to, if it did.")
]


@app.command()
def tell(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    user: Annotated[str, typer.Argument(help="The user's id, TENANT:ID of a tenant's.")],
    database: Database = None,
    recorded: Recorded = None,
) -> None:
    """Print as JSON all that is kept of a user: what the person may ask you for, and forget erases.

    It looks into the model, the database, and what the service recorded. The service may run.
    """
    from telic.completion import Completer

    completer, beside = Completer.load(model.resolve()), _beside(model)
    database = _database_of(beside, database)
    state = completer.users.get(user)
    kept: dict[str, Any] = {"model": None if state is None else state.as_json()}
    if database:
        from telic.data.databases import refuse_absent
        from telic.serve.state.store import Store, StoreError

        refuse_absent(database)
        store = Store(database, completer)
        try:
            kept |= store.kept_of(user)
        except StoreError as error:
            raise InputError(f"the database: {error}.") from None
        finally:
            store.close()
    if recorded:
        from telic.serve.state.composition_recorder import kept_of

        _refuse_unrecorded(recorded)
        kept["records"] = kept_of(recorded, user)
    if not any(kept.values()):
        raise InputError(_nowhere(model, beside, database, recorded))
    print_json({"user": user, **kept})


def _database_of(beside: Path, database: str | None) -> str | None:
    """Return the database that is named, or the one beside the model if there is one."""
    return database or (f"sqlite:///{beside}" if beside.exists() else None)


def _beside(model: Path) -> Path:
    """Return where a service puts the database of a model."""
    from telic.serve.operation.settings import database_beside

    return Path(database_beside(model).removeprefix("sqlite:///"))


def _refuse_unrecorded(folder: Path) -> None:
    from telic.serve.state.composition_recorder import recorded

    if not recorded(folder):
        raise InputError(
            f"--recorded {folder}: holds no records of a service. Check the name, or leave it out "
            "if the service recorded nothing."
        )


def _nowhere(model: Path, beside: Path, database: str | None, recorded: Path | None) -> str:
    """Say where a user was looked for who is in none of these places."""
    where = f"neither {model} nor its database knows this user"
    if not database:
        where = f"{model} does not know this user, and no database is at {beside}"
    if not recorded:
        where += ", and no records were searched (--recorded FOLDER)"
    return f"{where}. Check the id; that of a tenant's user is TENANT:ID."


@app.command()
def forget(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] USER",
            help="Model folder, written anew without the user (not with --service); the user's id, "
            "TENANT:ID of a tenant's.",
        ),
    ],
    database: Database = None,
    recorded: Recorded = None,
    service: Annotated[
        str | None,
        typer.Option(help="Address of a service that runs: it erases the user everywhere."),
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option(help="With --service: file with an admin's key, if it has keys.")
    ] = None,
) -> None:
    """Erase a user: from the model, from the database, and from what the service recorded.

    While the service runs, name it by --service: its processes hold the user in memory, too.
    Counts and means over many users stay as they are.
    """
    if service:
        if len(names) != 1 or database or recorded:
            raise InputError("--service knows its model, database and records: name only the user.")
        from telic.serve.client import Client

        try:
            key = key_file.read_text(encoding="utf-8").strip() if key_file else ""
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{key_file}: cannot be read ({error}).") from None
        with closing(Client(service, key=key, timeout=600.0)) as client:
            erased = client.forget(names[0])
        known, rows, records = erased["model"], erased["rows"], erased["records"]
        nowhere = (
            f"{service} knows no such user. Check the id; that of a tenant's user is TENANT:ID."
        )
    else:
        if len(names) != 2 or key_file:
            raise InputError("name the model folder and the user; --key-file goes with --service.")
        model = Path(names[0])
        beside = _beside(model)  # "." is the old folder once a new one stands in its place
        database = _database_of(beside, database)
        known, rows, records = _erase(model, names[1], database, recorded)
        nowhere = _nowhere(model, beside, database, recorded)
    if not known and not rows and not records:
        raise InputError(nowhere)
    said = "erased from the model" if known else "not in the model"
    if database or service:
        said += f"; {rows} rows erased from the database"
    else:
        said += f"; no database is at {beside}"
    if recorded or service:
        said += f"; {records} records erased" + (f" from {recorded}" if recorded else "")
    else:
        said += "; no records were searched (--recorded FOLDER)"
    typer.echo(said)


def _erase(
    model: Path, user: str, database: str | None, recorded: Path | None
) -> tuple[bool, int, int]:
    """Erase a user; return whether the model knew him, and how many rows and records there were."""
    from telic.completion import Completer
    from telic.completion.box.completer import erase_user

    if database:
        from telic.data.databases import refuse_absent
        from telic.serve.state.store import Store, StoreError

        refuse_absent(database)
    if recorded:
        from telic.serve.state.composition_recorder import erase

        _refuse_unrecorded(recorded)
        recorded = recorded.resolve()
    whole = model.resolve()  # "." is the old folder once a new one stands in its place
    known = erase_user(whole, user)
    completer = Completer.load(whole)
    if user in completer.users:
        raise ModelError(f"{model}: still knows the user. Is something else writing to it?")
    rows = 0
    if database:
        store = Store(database, completer)
        try:
            rows, left = store.forget(user)[0], store.forget(user)[0]
        except StoreError as error:
            raise InputError(f"the database: {error}.") from None
        finally:
            store.close()
        if left:
            raise ModelError("the database was written to in the meantime. Name the --service.")
    return known, rows, erase(recorded, user) if recorded else 0


@app.command()
def export_log(
    recorded: Annotated[Path, typer.Argument(help="Folder that the service recorded to.")],
    out: Annotated[Path, typer.Argument(help="Composition log to write: a .parquet file.")],
    tenant: Annotated[
        str | None, typer.Option(help="Only this tenant's compositions: a log of its own.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Make a composition log (contract 1) of what the service recorded, for fit and evaluate."""
    import pyarrow.parquet as pq

    from telic.data import atomic_path, check_output
    from telic.data.ubi import of_tenant, read_ubi

    check_output(out, kind="composition log", reads=[recorded], overwrite=overwrite)
    check_log(out)
    table, left_out = read_ubi(recorded)
    if tenant is not None:
        table = of_tenant(table, tenant, recorded)
    with atomic_path(out) as temporary:
        pq.write_table(table, temporary)
    facts = {
        "compositions": len(table),
        "users": len(table["user"].unique()),
        "left out": left_out or "nothing",
    }
    if as_json:
        print_json({"log": str(out), **facts})
    else:
        print_facts({"log": out, **facts})
