"""`telic completion serve | key`: a search box run as a service."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from telic.cli.completion.fit import (
    Column,
    Deny,
    Duplicates,
    Keyboard,
    SynonymsFile,
    columns_of,
    editors_changes,
)
from telic.cli.completion.options import MinUsers, app
from telic.cli.console import print_facts
from telic.cli.options import refuse_given
from telic.cli.progress import console
from telic.errors import InputError

if TYPE_CHECKING:
    from telic.serve import Settings


@app.command(context_settings={"ignore_unknown_options": True})
def serve(
    context: typer.Context,
    model: Annotated[
        list[str],
        typer.Argument(
            help="Model folder; or files to fit one on first, as fit takes them. Every setting of "
            "--show-settings is an option too, such as --max-query 100."
        ),
    ],
    settings: Annotated[Path | None, typer.Option(help="TOML file of settings.")] = None,
    show_settings: Annotated[
        bool, typer.Option("--show-settings", help="Print the settings in force, and stop.")
    ] = False,
    column: Column = None,
    duplicates: Duplicates = "raise",
    deny: Deny = None,
    synonyms: SynonymsFile = None,
    keyboard: Keyboard = None,
    min_users: MinUsers = 3,
) -> None:
    """Serve a model as a search box on a page of its own, until Ctrl-C."""
    from telic.completion import Completer
    from telic.serve import run, run_workers
    from telic.serve.operation.settings_sources import (
        read_settings,
        settings_table,
        split_options,
    )

    names, options = split_options(model)
    sources = [Path(name) for name in names]
    if not sources:
        raise InputError("serve takes a model folder, or files to fit one on.")
    given = read_settings(sources[0], options, os.environ, settings)
    if show_settings:
        _print_table(settings_table(given))
        return

    def ready(address: str) -> None:
        console.print(f"search box: {address} (Ctrl-C stops)", soft_wrap=True)
        console.print(_who_may(given.settings), soft_wrap=True)

    fitted = len(sources) == 1 and not sources[0].is_file()
    if fitted:
        of_fit = ("column", "duplicates", "deny", "synonyms", "keyboard", "min_users")
        refuse_given(context, of_fit, "where a model folder is served (fit takes it)")
    if given.settings.workers > 1:
        if not fitted:
            raise InputError(
                "several workers need a model folder. Fit one with: telic completion fit"
            )
        run_workers(sources[0], given.settings, ready=ready)
        return

    def load() -> Completer:
        if fitted:
            return Completer.load(sources[0])
        from telic.completion import fit_files  # what fits loads more than what serves

        edited = editors_changes(deny, synonyms, keyboard)
        completer = fit_files(
            *sources, columns=columns_of(column), duplicates=duplicates, min_users=min_users
        )
        return edited(completer)

    completer = load()
    if not fitted:
        print_facts(completer.found, to=console)
    run(completer, given.settings, ready=ready, reload=load)


def _who_may(settings: "Settings") -> str:
    if settings.keys:
        return f"who may ask: holders of the keys in {settings.keys}"
    return "who may ask: everybody who reaches this address, as any user; there are no keys"


def _print_table(rows: list[tuple[str, str, str]]) -> None:
    table = Table("setting", "value", "from", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row))
    Console(emoji=False).print(table)


@app.command()
def key(
    tenant: Annotated[str, typer.Argument(help="Lower-case letters, digits and hyphens.")],
    keys: Annotated[Path, typer.Option(help="File of keys; made if there is none.")],
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Site that may ask, such as https://shop.example; may be repeated."),
    ] = None,
    visitors: Annotated[
        bool,
        typer.Option(
            "--visitors", help="Pages of these sites may give any visitor a user id and its token."
        ),
    ] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="The key shows the figures of all tenants.")
    ] = False,
    editor: Annotated[
        bool, typer.Option("--editor", help="The key may change suggestions, for all tenants.")
    ] = False,
) -> None:
    """Make an API key for a tenant, and print it: it is kept nowhere else."""
    from telic.serve.callers.tenant_keys import add_key

    may = {"visitors": visitors, "admin": admin, "editor": editor}
    typer.echo(add_key(keys, tenant, origins=origin or (), **may))
