"""A table of numbers that shows itself: as HTML, Markdown, JSON, CSV and cells for the console."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

Format = str | Callable[[Any], str]
"""How a column's values are written: a format specification such as ``.1%``, or a function."""


@dataclass(frozen=True)
class Table:
    """Named columns, and rows that hold numbers as numbers.

    Parameters
    ----------
    title : str
        Says what the rows are; shown as the caption.
    columns : mapping of str to str or callable
        From each column's name to how its values are written. Texts are shown as they are, and
        None, which stands for "no value", as a dash, whatever the format.
    rows : sequence of sequence
        One value for each column. What is written to JSON must be JSON's own: texts, numbers,
        None, and lists of these for a format that is a function.
    note : str, optional
        What a reader must know to read the numbers; shown below the title.

    Examples
    --------
    >>> table = Table("Two methods", {"method": "", "gap": ".0e"}, [["SAGA", 2e-9], ["SGD", None]])
    >>> print(table.markdown())
    *Two methods*
    <BLANKLINE>
    | method | gap |
    | --- | --- |
    | SAGA | 2e-09 |
    | SGD | — |
    """

    title: str
    columns: Mapping[str, Format]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title!r}: {len(row)} values in a row, expected "
                                 f"{len(self.columns)}: {', '.join(self.columns)}.")  # fmt: skip

    def cells(self) -> list[list[str]]:
        """Return the rows as they are shown."""
        return [
            [_shown(value, form) for value, form in zip(row, self.columns.values(), strict=True)]
            for row in self.rows
        ]

    def records(self) -> list[dict[str, Any]]:
        """Return a dict for each row, numbers in full, as JSON takes them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def csv(self) -> str:
        """Return the rows with a header line, numbers in full; empty where there is no value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def markdown(self) -> str:
        """Return title, note and a pipe table."""
        lines = [list(self.columns), ["---"] * len(self.columns), *self.cells()]
        grid = "\n".join("| " + " | ".join(map(_piped, line)) + " |" for line in lines)
        return "\n\n".join(filter(None, [self.title and f"*{self.title}*", self.note, grid]))

    def html(self, *, folded: bool = False) -> str:
        """Return a table element; a `folded` one shows its title only until it is opened."""
        cells = self.cells()
        text = self.is_text()
        head = "".join(_cell(name, t, "th") for name, t in zip(self.columns, text, strict=True))
        body = "".join(
            "<tr>" + "".join(_cell(v, t) for v, t in zip(row, text, strict=True)) + "</tr>\n"
            for row in cells
        )
        words = escape(self.title) + (f"<br>{escape(self.note)}" if self.note else "")
        caption = f"<caption><span>{words}</span></caption>" if words and not folded else ""
        table = (
            f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead>'
            f"<tbody>{body}</tbody></table></div>"
        )
        return f"<details><summary>{words}</summary>{table}</details>" if folded else table

    def is_text(self) -> list[bool]:
        """Tell for each column whether it holds words; columns of numbers are aligned right."""
        columns = zip(*self.cells(), strict=True) if self.rows else [()] * len(self.columns)
        return [any(map(_is_word, column)) for column in columns]


def _shown(value: Any, form: Format) -> str:
    if value is None:
        return "—"
    if isinstance(value, str):
        return value
    return form(value) if callable(form) else format(value, form)


def _piped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _is_word(cell: str) -> bool:
    return cell not in ("", "—") and not re.match(r"[−+<>≤≥-]?\s*[\d.]|nan|inf", cell)


def _cell(shown: str, text: bool, tag: str = "td") -> str:
    kind = " ".join(["text"] * text + ["long"] * (len(shown) > 20))
    return f'<{tag} class="{kind}">{escape(shown)}</{tag}>' if kind else (
        f"<{tag}>{escape(shown)}</{tag}>"
    )  # fmt: skip
