"""A table of numbers that shows itself: as HTML, Markdown, JSON, CSV and cells for the console."""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Self

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of something to compute."""
NO_ROWS = "none"
"""What stands in place of rows where a table has none: an empty grid looks like a fault."""


@dataclass(frozen=True)
class Table:
    """Named columns, and rows that hold numbers as numbers.

    Parameters
    ----------
    title : str
        Says what the rows are; shown as the caption.
    columns : mapping of str to str
        From each column's name to the format of its values:

        - a format specification such as ``".1%"`` or ``"+.2f"``;
        - ``"p"`` for p-values;
        - a specification with ``"100 "`` before it, for shares shown in percent or points;
        - a template such as ``"{:.3f} ± {:.3f}"`` for values that are lists, each in one of these
          formats: ``"{:100 +.2f} (p {:p})"``; with ``"100 "`` before it, all are shares.

        Texts are shown as they are and None, which stands for "no value", as a dash, whatever the
        format; True and False as yes and no.
    rows : sequence of sequence
        One value for each column: texts, numbers, None, or lists of numbers.
    note : str, optional
        What a reader must know to read the numbers; shown below the title.

    Examples
    --------
    >>> table = Table("Two methods", {"method": "", "gap": ".0e"}, [["SAGA", 2e-9], ["SGD", None]])
    >>> print(table.markdown())
    *Two methods*
    <BLANKLINE>
    | method | gap |
    | --- | ---: |
    | SAGA | 2e-09 |
    | SGD | — |
    """

    title: str
    columns: Mapping[str, str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title!r}: {len(row)} values in a row, expected "
                    f"{len(self.columns)}: {', '.join(self.columns)}."
                )

    @classmethod
    def of(
        cls,
        title: str,
        records: Iterable[Mapping[str, Any]],
        columns: Mapping[str, tuple[str | tuple[str, ...], str]],
        note: str = "",
    ) -> Self:
        """Make a table of records.

        Parameters
        ----------
        records : iterable of mapping
            One for each row.
        columns : mapping of str to (str or tuple of str, str)
            From each column's name to the key of its values, or the keys of lists of them, and the
            format.

        Examples
        --------
        >>> Table.of("Gain", [{"gain": 2, "low": 1}], {"gain, least": (("gain", "low"), "")}).rows
        [[[2, 1]]]
        """
        keys = [key for key, _ in columns.values()]
        rows = [
            [record[key] if isinstance(key, str) else [record[k] for k in key] for key in keys]
            for record in records
        ]
        return cls(title, {name: form for name, (_, form) in columns.items()}, rows, note)

    def cells(self) -> list[list[str]]:
        """Return the rows as they are shown."""
        formats = list(self.columns.values())
        return [[shown(v, form) for v, form in zip(row, formats, strict=True)] for row in self.rows]

    def records(self) -> list[dict[str, Any]]:
        """Return a dict for each row, numbers in full, as JSON takes them."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON; `from_json` reads it back."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what `as_json` wrote."""
        return cls(**stored)

    def csv(self) -> str:
        """Return the rows with a header line, numbers in full; empty where there is no value.

        A text that a spreadsheet would compute, such as =1+2, gets an apostrophe before it.
        """
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([map(_uncomputed, row) for row in self.rows])
        return out.getvalue()

    def markdown(self) -> str:
        """Return title, note and a pipe table."""
        rule = ["---" if text else "---:" for text in self.is_text()]
        cells = self.cells() or [[NO_ROWS, *[""] * (len(self.columns) - 1)]]
        lines = [[*map(_piped, line)] for line in [list(self.columns), *cells]]
        grid = "\n".join("| " + " | ".join(line) + " |" for line in [lines[0], rule, *lines[1:]])
        return "\n\n".join(filter(None, [self.title and f"*{self.title}*", self.note, grid]))

    def html(self, *, folded: bool = False) -> str:
        """Return a table element; a `folded` one shows its title only until it is opened."""
        text = self.is_text()
        head = "".join(_cell(name, t, "th") for name, t in zip(self.columns, text, strict=True))
        body = "".join(
            "<tr>" + "".join(_cell(v, t) for v, t in zip(row, text, strict=True)) + "</tr>\n"
            for row in self.cells()
        )
        body = body or f'<tr><td class="text" colspan="{len(text)}">{NO_ROWS}</td></tr>'
        words = escape(self.title) + (
            f"<br><small>{escape(self.note)}</small>" if self.note else ""
        )
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


def _uncomputed(value: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula; a number or a dash is none."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    return value if re.fullmatch(r"[-+]?[\d.]*", value) else f"'{value}"


def finite(value: float) -> float | None:
    """Return a number, or None, which a table shows as a dash, where it is not finite."""
    return float(value) if math.isfinite(value) else None


def shown(value: Any, form: str = "") -> str:
    """Return a value as a table shows it, in one of the formats of `Table.columns`."""
    if value is None:
        return "—"
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or getattr(value, "dtype", None) == "bool":
        return "yes" if value else "no"
    if "{" in form:
        scale, form = ("100 ", form[4:]) if form.startswith("100 ") else ("", form)
        values = value if isinstance(value, list | tuple) else [value]
        return form.format(*(_Field(v, scale) for v in values))
    if isinstance(value, list | tuple):
        return ", ".join(shown(v, form) for v in value)
    if form == "p":
        return "< .001" if value < 0.001 else _with_minus(f"{value:.3f}")
    if form.startswith("100 "):
        value, form = 100 * value, form[4:]
    return _with_minus(format(value, form))


@dataclass(frozen=True)
class _Field:
    """A value of a template, to be shown in the format that stands there."""

    value: Any
    scale: str

    def __format__(self, form: str) -> str:
        return shown(self.value, self.scale + form)


def _with_minus(number: str) -> str:
    return "−" + number[1:] if number.startswith("-") else number


def _piped(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def _is_word(cell: str) -> bool:
    return cell not in ("", "—") and not re.match(r"[−+<>≤≥±\[-]*\s*[\d.]|nan|inf", cell)


def _cell(cell: str, text: bool, tag: str = "td") -> str:
    kind = " ".join(["text"] * text + ["long"] * (len(cell) > 20))
    style = f' class="{kind}"' if kind else ""
    return f"<{tag}{style}>{escape(cell)}</{tag}>"
