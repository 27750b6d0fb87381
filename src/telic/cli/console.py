"""What commands print: JSON alone on stdout, tables for people, progress on stderr."""

import json
import sys
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


class progress:
    """A progress bar on stderr; calling what it yields advances it."""

    def __init__(self, label: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._bar = Progress(console=Console(file=sys.stderr), transient=True)
        self._label, self._total = label, total

    def __enter__(self) -> Any:
        self._bar.start()
        task = self._bar.add_task(self._label, total=self._total)
        return lambda: self._bar.advance(task)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
