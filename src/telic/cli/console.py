"""What commands print: JSON alone on stdout, or tables for people."""

import json
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from telic.report.table import NO_ROWS, Table

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace output that is there already, if telic wrote it."),
]


def print_json(content: Any) -> None:
    """Print JSON on one line."""
    from telic.data.json_files import for_json

    typer.echo(json.dumps(for_json(content), ensure_ascii=False))


def show(table: Table) -> None:
    """Print a table for people."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid()
    for column, is_text in zip(table.columns, table.is_text(), strict=True):
        # Broken over lines, not cut: what is left of two names may look alike.
        side: Literal["left", "right"] = "left" if is_text else "right"
        grid.add_column(Text(column), justify=side, overflow="fold")
    for row in table.cells():
        grid.add_row(*map(Text, row))  # a plain string may hold markup: "[benign]" would be a style
    if not table.rows:
        grid.add_row(NO_ROWS)
    out = Console(emoji=False)
    out = out if out.is_terminal else Console(width=140, emoji=False)
    out.print(
        table.title, style="italic", markup=False, highlight=False
    )  # wider than narrow tables
    out.print(grid)
    if table.note:
        out.print(table.note, markup=False, highlight=False)


def plain_console() -> Console:
    """Return what prints names and texts as they are: no markup, no emoji."""
    return Console(markup=False, emoji=False, highlight=False)


def print_facts(facts: dict[str, Any], *, to: Console | None = None, indent: str = "  ") -> None:
    """Print facts for people, those that have parts with each part on a line of its own."""
    to = to or plain_console()

    def line(text: str) -> None:
        to.print(indent + text, soft_wrap=True, markup=False, highlight=False)

    for name, value in facts.items():
        if isinstance(value, dict):
            line(f"{name}:")
            print_facts(value, to=to, indent=indent + "  ")
        elif isinstance(value, list) and not all(isinstance(one, float) for one in value):
            line(f"{name}:")
            for one in value:
                parts = one.items() if isinstance(one, dict) else ()
                line("  " + (", ".join(f"{part} {said}" for part, said in parts) or str(one)))
        elif isinstance(value, list):
            line(f"{name}: {', '.join(map(str, value))}")
        else:
            line(f"{name}: {value}")


def print_card(card: dict[str, Any], as_json: bool) -> None:
    """Print a model's card, as JSON or for people."""
    if as_json:
        print_json(card)
    else:
        print_facts(card, indent="")
