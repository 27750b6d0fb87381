"""What commands print: JSON alone on stdout, or tables for people."""

import json
from typing import Annotated, Any

import typer

Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Replace output that is there already, if telic wrote it."),
]


def print_json(content: Any) -> None:
    """Print JSON on one line."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def print_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table for people; a column whose first cell starts with a letter is text."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for i, column in enumerate(columns):
        is_text = bool(rows) and str(rows[0][i])[:1].isalpha()
        table.add_column(column, justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*map(str, row))
    out = Console()
    out = out if out.is_terminal else Console(width=140)
    out.print(title, style="italic", markup=False, highlight=False)  # wider than narrow tables
    out.print(table)
