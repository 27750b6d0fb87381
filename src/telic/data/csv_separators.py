"""How a CSV file is opened: compressed or not, and what separates its cells."""

import gzip
import re
from pathlib import Path
from typing import IO

import pyarrow as pa

TORN = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+)")
"""What Arrow says of a row with too few or too many cells; it counts the header as a row."""
_LONGEST_HEAD = 1 << 20
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')


def is_compressed(path: Path) -> bool:
    """Whether the name ends in ``.gz``, in letters of either case."""
    return path.suffix.lower() == ".gz"


def csv_stream(path: Path) -> pa.NativeFile:
    """Open a CSV file for Arrow, which by itself knows no ``.GZ`` in capitals."""
    return pa.input_stream(str(path), compression="gzip" if is_compressed(path) else None)


def fault_of(lines: IO[bytes], error: Exception, *, names: int = 1) -> str | None:
    r"""Say where a file of text is wrong, and how to mend it; None if that is not known.

    Parameters
    ----------
    lines : binary file
    error : Exception
        Of Arrow, which names rows if it reads with one thread.
    names : int
        How many lines of names come before the rows, 0 or 1.

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
    if torn := TORN.search(str(error)):
        return (
            f"row {int(torn[1]) - names}: has {torn[3]} cells, expected {torn[2]}, one for each "
            "column. Mend it: is a separator missing, or one inside of a cell without quotes?"
        )
    return None


def separator_of(path: Path) -> str:
    r"""Find the separator of a CSV file in its first line, quoted text aside.

    A comma, if the line has one; else a semicolon, else a tab, whichever the line has; a comma for
    a single column. Where it is a semicolon, numbers may have a comma as their decimal mark.

    Parameters
    ----------
    path : Path
        May be compressed (``.gz``).

    Returns
    -------
    str
        One character.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "titel.csv"
    >>> _ = file.write_text('"Titel, lang";Aufrufe\nTee;1,5\n')
    >>> separator_of(file)
    ';'
    """
    with gzip.open(path) if is_compressed(path) else path.open("rb") as stream:
        head = _QUOTED.sub(b"", stream.readline(_LONGEST_HEAD))
    return next((mark for mark in ",;\t" if mark.encode() in head), ",")
