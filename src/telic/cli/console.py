"""What commands print: JSON alone on stdout, or tables for people."""

import json
from typing import Any

import typer


def print_json(content: Any) -> None:
    """Print JSON on one line."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def print_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(str(value) for value in row))
    Console().print(table)
