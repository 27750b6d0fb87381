"""What commands print: JSON alone on stdout, or tables for people."""

import json
from typing import Annotated, Any

import typer

from telic.report.table import Table

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace output that is there already, if telic wrote it."),
]


def print_json(content: Any) -> None:
    """Print JSON on one line."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def show(table: Table) -> None:
    """Print a table for people."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid()
    for column, is_text in zip(table.columns, table.is_text(), strict=True):
        grid.add_column(column, justify="left" if is_text else "right")
    for row in table.cells():
        grid.add_row(*row)
    out = Console()
    out = out if out.is_terminal else Console(width=140)
    out.print(
        table.title, style="italic", markup=False, highlight=False
    )  # wider than narrow tables
    out.print(grid)
    if table.note:
        out.print(table.note, markup=False, highlight=False)
