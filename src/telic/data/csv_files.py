"""How a CSV file is read: compressed or not, what separates its cells, and what is wrong where."""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from telic.errors import InputError

TORN = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
"""What Arrow says of a row with too few or too many cells; it counts the header as a row."""
_LONGEST_LINE = 1 << 20
_MARK_OF_UTF8 = codecs.BOM_UTF8.decode("latin-1")
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


_THOUSANDS = r"^\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*$"
_DECIMAL = r"^\s*[+-]?(\d*\.\d+|\d+\.)([eE][+-]?\d+)?\s*$"
PARTED = "may be two numbers, as a point parts thousands where a comma marks decimals"
"""What is wrong with a cell that `parted_by_points` marks."""
UNPARTED = "Leave the point out, write a decimal comma, or separate cells by commas."
"""What to do about it."""


def parted_by_points(cells: pa.ChunkedArray | pa.Array) -> np.ndarray:
    """Mark cells of a file with semicolons such as 1.200, which may be 1200 or 1.2.

    None is marked where another cell shows that a point is a decimal mark. Where all are such
    numbers they are marked, too: other files, or later rows, may have smaller ones.

    Examples
    --------
    >>> parted_by_points(pa.array(["1.200", "3", "1,5"])).tolist()
    [True, False, False]
    >>> parted_by_points(pa.array(["1.200", "0.5"])).any()
    np.False_
    """
    if points_are_decimal(cells):
        return np.zeros(len(cells), bool)
    return np.asarray(pc.match_substring_regex(cells, _THOUSANDS).fill_null(False))


def points_are_decimal(cells: pa.ChunkedArray | pa.Array) -> bool:
    """Whether a cell such as 0.5 shows that points of a column are decimal marks."""
    decimal = pc.match_substring_regex(cells, _DECIMAL)
    parted = pc.match_substring_regex(cells, _THOUSANDS)
    return bool(pc.any(pc.and_not(decimal, parted)).as_py())


def is_compressed(path: Path) -> bool:
    """Whether the name ends in ``.gz``, in letters of either case."""
    return path.suffix.lower() == ".gz"


def ending_of(path: Path) -> str:
    """Return what a file's name says that it holds: its ending in lower case, ``.gz`` aside.

    Examples
    --------
    >>> ending_of(Path("Rows.CSV.gz")), ending_of(Path("rows.parquet")), ending_of(Path("rows"))
    ('.csv', '.parquet', '')
    """
    return (path.with_suffix("") if is_compressed(path) else path).suffix.lower()


def opened(path: Path) -> IO[bytes]:
    """Open a file that may be compressed, for the bytes that it holds."""
    return gzip.open(path) if is_compressed(path) else path.open("rb")  # type: ignore[return-value]


def csv_stream(path: Path) -> pa.NativeFile:
    """Open a CSV file for Arrow, which by itself knows no ``.GZ`` in capitals."""
    return pa.input_stream(str(path), compression="gzip" if is_compressed(path) else None)


def quoted_cells(delimiter: str) -> pyarrow.csv.ParseOptions:
    """Return how Arrow reads cells of which some are quoted, perhaps over several lines."""
    return pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)


def quote_fault(file: IO[bytes], delimiter: str, *, first: int = 1) -> str | None:
    r"""Say where a quote opens that takes the lines after it for one cell; None if none does.

    A quote opens at the beginning of a cell, and must close at the end of one; inside, a doubled
    one is a character. Cells of several lines that keep to that are none of these. Lines are
    counted from `first`.

    Examples
    --------
    >>> import io
    >>> quote_fault(io.BytesIO(b'tea,"3\nmilk,2\n'), ",")
    'line 1 opens a quote (") that nothing closes. Close it, or leave it out.'
    >>> quote_fault(io.BytesIO(b'tea,"green\nor ""black"" tea"\n'), ",")
    """
    lines = io.TextIOWrapper(file, encoding="latin-1")  # ends lines at \r, too
    try:
        return _quote_fault(lines, delimiter.encode().decode("latin-1"), first)
    finally:
        lines.detach()


def _quote_fault(lines: Iterable[str], mark: str, first: int) -> str | None:
    begun = 0  # the line in which a quote has opened
    for number, line in enumerate(lines, first):
        start = len(_MARK_OF_UTF8) if number == 1 and line.startswith(_MARK_OF_UTF8) else 0
        at = line.find('"')
        while at >= 0:
            if not begun:
                begun = number if at == start or line.endswith(mark, 0, at) else 0
            elif line.startswith('"', at + 1):
                at += 1  # a doubled one
            else:
                rest = line[at + 1 :].lstrip(" ") if begun < number else ""
                if rest and not rest.startswith((mark, "\n")):
                    return _unpaired(begun, f"line {number} closes inside of a cell")
                begun = 0
            at = line.find('"', at + 1)
    return _unpaired(begun, "nothing closes") if begun else None


def _unpaired(line: int, how: str) -> str:
    return f'line {line} opens a quote (") that {how}. Close it, or leave it out.'


def check_quotes(path: Path, delimiter: str, rows: int | None = None) -> None:
    """Raise InputError if a quote without a partner took lines of a CSV file for one cell.

    `rows` is how many a reader found, names included: in a file of as many lines only the last can
    hold such a quote. Without it every line is looked at. See `quote_fault`.
    """
    with opened(path) as file:
        if rows is not None and (last := _last_of(file, rows)) is not None:
            fault = quote_fault(io.BytesIO(last), delimiter, first=rows)
        else:
            file.seek(0)
            fault = quote_fault(file, delimiter)
    if fault:
        raise InputError(f"{path}: {fault}")


def _last_of(file: IO[bytes], count: int) -> bytes | None:
    """Return the last line of a file of just so many lines; those at its end may be empty."""
    ends, tail = 0, b""
    while block := file.read(1 << 22):
        ends += block.count(b"\n")
        tail = (tail + block)[-_LONGEST_LINE:]
    text = tail.rstrip(b"\r\n")
    ends -= tail.count(b"\n", len(text))
    _, found, last = text.rpartition(b"\n")
    return last if found and ends + 1 == count else None


def fault_of(
    lines: IO[bytes], error: Exception, *, names: int = 1, delimiter: str | None = None
) -> str | None:
    r"""Say where a file of text is wrong, and how to mend it; None if that is not known.

    Parameters
    ----------
    lines : binary file
    error : Exception
        Of Arrow, which names rows if it reads with one thread.
    names : int
        How many lines of names come before the rows, 0 or 1.
    delimiter : str, optional
        Of cells that may be quoted.

    Examples
    --------
    >>> import io
    >>> fault_of(io.BytesIO("tea\ncafé\n".encode("latin-1")), ValueError())
    'line 2 is not valid UTF-8. Convert the file to UTF-8.'
    """
    for number, line in enumerate(lines, 1):
        try:
            line.decode()
        except UnicodeDecodeError:
            return f"line {number} is not valid UTF-8. Convert the file to UTF-8."
    if delimiter is not None:
        lines.seek(0)
        if fault := quote_fault(lines, delimiter):
            return fault
    if torn := TORN.search(str(error)):
        return (
            f"row {int(torn[1]) - names}: has {torn[3]} cells, expected {torn[2]}, one for each "
            "column. Mend it: is a separator missing, or one inside of a cell without quotes?"
        )
    return None


def with_row(path: Path, error: Exception, parse_options: pyarrow.csv.ParseOptions) -> Exception:
    """Return Arrow's error of a row with too few or too many cells with its row.

    One thread alone can name it, and only if it reads the file whole, of which it keeps a column.
    """
    if isinstance(error, pa.ArrowInvalid) and not TORN.search(str(error)):
        try:
            pyarrow.csv.read_csv(
                csv_stream(path),
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=False, autogenerate_column_names=True
                ),
                parse_options=parse_options,
                convert_options=pyarrow.csv.ConvertOptions(
                    include_columns=["f0"], column_types={"f0": pa.binary()}
                ),
            )
        except pa.ArrowInvalid as named:
            return named
    return error


def csv_table(
    path: Path,
    *,
    parse_options: pyarrow.csv.ParseOptions,
    names: Sequence[str] | None = None,
    block_size: int | None = None,
    **options: Any,
) -> pa.Table:
    """Read a CSV file whole; several threads do, and where they cannot, one that names the row.

    Parameters
    ----------
    path : path
    names : sequence of str, optional
        Of the columns, if the file has no line of names.
    block_size : int, optional
        Bytes of the longest row.
    parse_options : pyarrow.csv.ParseOptions
        `quoted_cells`, or options without quotes.
    **options
        More of Arrow's `read_csv`, such as ``convert_options``.

    Raises
    ------
    InputError
        If it cannot be read, is no text in UTF-8, or has a quote without a partner; see `fault_of`.
    """
    delimiter = parse_options.delimiter if parse_options.quote_char else None

    def read(use_threads: bool) -> pa.Table:
        reading = pyarrow.csv.ReadOptions(
            use_threads=use_threads, column_names=names, block_size=block_size
        )
        return pyarrow.csv.read_csv(
            csv_stream(path), read_options=reading, parse_options=parse_options, **options
        )

    try:
        try:
            table = read(use_threads=True)
        except pa.ArrowException:
            table = read(use_threads=False)
        table.column_names  # noqa: B018  Arrow reads no letter of the names before
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error, names=int(names is None), delimiter=delimiter) from None
    if delimiter is not None:
        check_quotes(path, delimiter, len(table) + (names is None))
    if any(pa.types.is_binary(field.type) for field in table.schema):  # what Arrow makes of it
        raise unreadable(path, UnicodeError("it is no text in UTF-8"))
    return table


def unreadable(
    path: Path, error: Exception, *, names: int = 1, delimiter: str | None = None
) -> InputError:
    """Say what is wrong with a file of text, and where: see `fault_of`."""
    if path.is_file() and not path.stat().st_size:
        return InputError(f"{path}: is empty. Expected a line of column names, then rows.")
    try:
        with opened(path) as lines:
            fault = fault_of(lines, error, names=names, delimiter=delimiter)
    except (OSError, EOFError, zlib.error):
        fault = None
    why = (str(error).splitlines() or ["unknown"])[0]
    return InputError(f"{path}: {fault or f'cannot be read ({why}).'}")


def separator_of(path: Path, *, comment: str | None = None) -> str:
    r"""Find the separator of a CSV file in its first line, quoted text aside.

    A tab if the file's name ends in ``.tsv``. Else a comma, if the line has one, or a semicolon, or
    a tab, whichever the line has; a comma for a single column. Where it is a semicolon, numbers may
    have a comma as their decimal mark; of what a point means then, see `parted_by_points`.

    Parameters
    ----------
    path : Path
        May be compressed (``.gz``).
    comment : str, optional
        Lines that begin with it do not count.

    Returns
    -------
    str
        One character.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    InputError
        If it cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "titel.csv"
    >>> _ = file.write_text('"Titel, lang";Aufrufe\nTee;1,5\n')
    >>> separator_of(file)
    ';'
    """
    try:
        with opened(path) as stream:
            line = stream.readline(_LONGEST_LINE)
            while comment and line.removeprefix(codecs.BOM_UTF8).startswith(comment.encode()):
                line = stream.readline(_LONGEST_LINE)
            head = _QUOTED.sub(b"", line).partition(b"\r")[0]
    except FileNotFoundError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise unreadable(path, error) from None
    if ending_of(path) == ".tsv":
        return "\t"
    return next((mark for mark in ",;\t" if mark.encode() in head), ",")


def written_cells(path: Path, names: Sequence[str]) -> pa.Table:
    """Return some columns of a CSV or TSV file, each cell a text as it is written: "007", "NA"."""
    options = pyarrow.csv.ConvertOptions(
        include_columns=names, column_types=dict.fromkeys(names, pa.string())
    )
    return csv_table(path, parse_options=quoted_cells(separator_of(path)), convert_options=options)
