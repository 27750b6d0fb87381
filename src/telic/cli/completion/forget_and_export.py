"""`telic completion forget | export-log`: what a service has learned and recorded of users."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from telic.cli.completion.options import Json, app
from telic.cli.console import Overwrite, print_facts, print_json
from telic.errors import InputError, ModelError


@app.command()
def forget(
    model: Annotated[Path, typer.Argument(help="Model folder; written anew without the user.")],
    user: Annotated[str, typer.Argument(help="The user's id; TENANT:ID of a tenant's.")],
    database: Annotated[
        str | None, typer.Option(help="SQLAlchemy URL; default: MODEL.sqlite beside the model.")
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option(help="Folder that the service recorded to, if it did.")
    ] = None,
) -> None:
    """Erase a user: from the model, from the database, and from what the service recorded.

    Stop the service before and start it afterwards, because it holds the old model. Counts and
    means over many users stay as they are.
    """
    from telic.completion import Completer

    completer = Completer.load(model)
    known = user in completer.users
    if known:
        completer.without(user).save(model)
        if user in Completer.load(model).users:
            raise ModelError(f"{model}: still knows the user. Is something else writing to it?")
    beside = model.with_name(model.name + ".sqlite")
    rows = 0
    if database or beside.exists():
        from telic.serve.state.store import Store, StoreError

        store = Store(database or f"sqlite:///{beside}", completer)
        try:
            rows, left = store.forget(user), store.forget(user)
        except StoreError as error:
            raise InputError(f"the database: {error}.") from None
        finally:
            store.close()
        if left:
            raise ModelError("the database was written to in the meantime. Stop the service first.")
    records = 0
    if recorded:
        from telic.serve.state.composition_recorder import erase

        records = erase(recorded, user)
    if not known and not rows and not records:
        raise InputError(
            f"neither {model} nor its database knows this user. Check the id; that of a tenant's "
            "user is TENANT:ID."
        )
    said = "erased from the model" if known else "not in the model"
    said += f"; {rows} rows erased from the database"
    if recorded:
        said += f"; {records} records erased from {recorded}"
    typer.echo(said)


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

    check_output(out, reads=[recorded], overwrite=overwrite)
    if out.suffix.lower() != ".parquet":
        raise InputError(f"{out}: a composition log is a .parquet file. Name one.")
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
        print_facts({"log": out, **facts}, to=Console(markup=False, highlight=False))
