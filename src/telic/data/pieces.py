"""Read a table of any size in pieces: CSV, TSV, JSON lines, Parquet, or plain text."""

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from telic.data.csv_files import (
    check_quotes,
    csv_stream,
    ending_of,
    fault_of,
    is_compressed,
    separator_of,
    with_row,
)
from telic.data.object_storage import Place, Remote, fetched, place, readable, state_of
from telic.data.tables import no_such_file, refuse_repeated
from telic.errors import InputError

PIECE = 65_536
"""Most rows of a piece, where the format lets us choose."""
NESTED = b"rows that are lists or objects"
"""Key of a field's metadata, where text may have been either: their places as JSON."""
_BLOCK = 1 << 24  # bytes; a row of CSV that is twice as long is refused
_TABS = (".tsv", ".tab")
_JSON = (".jsonl", ".ndjson", ".json")
_WITHOUT_NAMES = {r"\d+\t[^\t]+\tD\d+\thttps?://[^\t]+": ["qid", "query", "did", "url"]}
"""Published tables whose first line is a row: the form of such a row → the names of its columns.
The one here is ORCAS, the click log of the TREC deep learning track."""


@dataclass(frozen=True)
class Pieces:
    """A file's columns, and a way through its rows."""

    path: Place
    columns: list[str]
    """Names; empty for plain text, whose lines are read as one column ``line``."""
    read: Callable[..., Iterator[pa.Table]]
    """Given names of columns, yields them in pieces, in the file's order. Given a dictionary, too,
    rows of CSV with too few or too many cells are left out and counted there, and later rows are
    numbered without them; without a dictionary the first of them is an error."""
    decimal_comma: bool = False
    """Whether numbers may be written as 1,5: where semicolons separate cells."""
    late: dict[str, int] = field(default_factory=dict)
    """Of JSON lines, as far as they were read: names that are no columns, since only later rows
    have them, and the first row with each."""

    @property
    def names(self) -> list[str]:
        """By which `read` takes the columns."""
        return self.columns or ["line"]

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise InputError if the file is another one at the end of the block."""
        before = _state(self.path)
        yield
        if _state(self.path) != before:
            raise InputError(
                f"{self.path}: changed while it was read. Read it again when it rests."
            )


def open_pieces(source: str | Place) -> Pieces:
    r"""Open a file by its ending.

    Parameters
    ----------
    source : path
        ``.csv``, ``.tsv``, ``.parquet``, JSON lines (``.jsonl``, ``.ndjson``, ``.json``), or
        ``.txt``: tab-separated if its first line has tabs, else one phrase a line. CSV, TSV and
        text may be compressed (``.gz``). Of an address on object storage, Parquet is read where it
        lies; other files are copied to this machine's disk.

    Raises
    ------
    InputError
        If it is not there, of no such kind, or not readable as what its ending says; then with the
        row.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "titles.csv"
    >>> _ = file.write_text("title,views\nTea,3\n")
    >>> open_pieces(file).columns
    ['title', 'views']
    """
    found = place(source)
    if isinstance(found, Remote):
        return _remote(found)
    path = Path(str(source))
    if not path.is_file():
        raise no_such_file(path)
    ending = ending_of(path)
    try:
        if ending == ".csv":
            return _delimited(path, separator_of(path), quotes=True)
        if ending in _TABS:
            return _delimited(path, "\t")
        if ending == ".parquet":
            return _parquet(path)
        if ending in _JSON:
            return _json_lines(path)
        if ending in (".txt", ""):
            with _binary(path) as stream:
                has_tabs = b"\t" in stream.readline(_BLOCK).split(b"\r")[0]
            return _delimited(path, "\t") if has_tabs else _lines(path)
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    raise InputError(
        f"{path}: its ending {ending!r} says nothing, expected .csv, .tsv, .txt, .jsonl or "
        ".parquet. Rename or convert it."
    )


def _remote(found: Remote) -> Pieces:
    try:
        if found.state() is None:
            raise InputError(f"{found}: no such file. Check the address.")
        if ending_of(Path(found.name)) == ".parquet":
            return _parquet(found)
        return replace(open_pieces(fetched(found)), path=found)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(found, error) from None


def _delimited(path: Path, delimiter: str, *, quotes: bool = False) -> Pieces:
    """Without `quotes`, a quote is a character like any other."""
    quoted = delimiter if quotes else None

    def parse(ragged: dict[str, int] | None) -> pyarrow.csv.ParseOptions:
        options = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=quotes)
        if not quotes:
            options.quote_char = False
        if ragged is not None:
            options.invalid_row_handler = partial(_left_out, ragged)
        return options

    def fault(error: Exception) -> InputError:
        named = with_row(path, error, parse(None))
        found = _unreadable(path, named, quoted, names=int(not read.column_names))
        if " cells, expected " in str(found):
            found = InputError(f"{found} Or skip such rows: on_bad_row='skip' (--skip-bad-rows).")
        return found

    read = pyarrow.csv.ReadOptions(block_size=_BLOCK)
    with _binary(path) as stream:
        if not stream.read(1):
            raise InputError(f"{path}: is empty. Expected a line of column names, then rows.")
    try:
        with pyarrow.csv.open_csv(
            csv_stream(path), read_options=read, parse_options=parse({})
        ) as reader:
            names = reader.schema.names
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise fault(error) from None
    first = delimiter.join(names)
    for form, published in _WITHOUT_NAMES.items():
        if re.fullmatch(form, first):
            names = read.column_names = published

    def pieces(wanted: Sequence[str], skipped: dict[str, int] | None = None) -> Iterator[pa.Table]:
        refuse_repeated(path, names, wanted)
        ragged: dict[str, int] = {}
        options = parse(None if skipped is None else ragged)
        # Text stays as it is written: "007" is no number and "nan" is a phrase.
        convert = pyarrow.csv.ConvertOptions(
            include_columns=list(wanted),
            column_types=dict.fromkeys(wanted, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        )
        rows = 1  # the line of names
        try:
            with pyarrow.csv.open_csv(
                csv_stream(path), read_options=read, parse_options=options, convert_options=convert
            ) as reader:
                for batch in reader:
                    rows += len(batch)
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise fault(error) from None
        if quoted:
            check_quotes(path, quoted, rows + sum(ragged.values()))
        if skipped is not None:
            skipped |= {why: skipped.get(why, 0) + count for why, count in ragged.items()}

    return Pieces(path, names, pieces, delimiter == ";")


def _left_out(ragged: dict[str, int], row: pyarrow.csv.InvalidRow) -> str:
    """Count a row with too few or too many cells, and have Arrow go on without it."""
    why = f"has {row.actual_columns} cells, expected {row.expected_columns}"
    ragged[why] = ragged.get(why, 0) + 1
    return "skip"


def _parquet(path: Place) -> Pieces:
    file = pq.ParquetFile(readable(path), memory_map=True)
    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    widest = max((g.total_byte_size / g.num_rows for g in groups if g.num_rows), default=1.0)
    rows = min(PIECE, max(int(_BLOCK / widest), 1))

    def pieces(wanted: Sequence[str], _: object = None) -> Iterator[pa.Table]:
        refuse_repeated(path, file.schema_arrow.names, wanted)
        try:
            for batch in file.iter_batches(rows, columns=list(wanted)):
                yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from None

    return Pieces(path, file.schema_arrow.names, pieces)


def _json_lines(path: Path) -> Pieces:
    """Read JSON a line at a time, by Python: payloads differ from row to row, schemas must not."""
    names: dict[str, None] = {}
    late: dict[str, int] = {}
    for number, row in enumerate(_objects(path)):
        names |= dict.fromkeys(row)
        if number == 1000:  # the names of later rows alone are no columns
            break

    def pieces(wanted: Sequence[str], _: object = None) -> Iterator[pa.Table]:
        held: list[dict[str, Any]] = []
        for number, row in enumerate(_objects(path), 1):
            held.append(row)
            if not row.keys() <= names.keys():
                for name in row.keys() - names.keys():
                    late.setdefault(name, number)
            if len(held) == PIECE:
                yield _texts(held, wanted)
                held = []
        if held:
            yield _texts(held, wanted)

    return Pieces(path, list(names), pieces, late=late)


def _texts(rows: list[dict[str, Any]], wanted: Sequence[str]) -> pa.Table:
    """Columns of text, anything else as JSON; a note says which rows hold lists or objects."""
    fields, columns = [], []
    for name in wanted:
        values = [row.get(name) for row in rows]
        nested = [i for i, value in enumerate(values) if isinstance(value, list | dict)]
        fields.append(pa.field(name, pa.string(), metadata={NESTED: json.dumps(nested)}))
        columns.append(pa.array(map(_text, values), pa.string()))
    return pa.table(columns, schema=pa.schema(fields))


def with_marks(piece: pa.Table) -> pa.Table:
    """Return a piece that says row by row what `NESTED` says: for a file that is cut otherwise."""
    marks = np.zeros(len(piece), np.int64)
    for i, one in enumerate(piece.schema):
        marks[json.loads((one.metadata or {}).get(NESTED, b"[]"))] |= 1 << i
    plain = [pa.field(one.name, one.type) for one in piece.schema]
    return pa.table(piece.columns, schema=pa.schema(plain)).append_column(
        NESTED.decode(), pa.array(marks)
    )


def without_marks(piece: pa.Table) -> pa.Table:
    """Return what `with_marks` was given, of any rows of it; another table as it is."""
    if NESTED.decode() not in piece.column_names:
        return piece
    marks = piece[NESTED.decode()].to_numpy()
    piece = piece.drop_columns(NESTED.decode())
    fields = [
        one.with_metadata({NESTED: json.dumps(np.flatnonzero(marks >> i & 1).tolist())})
        for i, one in enumerate(piece.schema)
    ]
    return pa.table(piece.columns, schema=pa.schema(fields))


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in text_lines(path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if "\\u" in line:  # half a character, escaped, is no text
                json.dumps(row, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: row {number}: no JSON ({error}). Expected one object a line."
            ) from None
        if not isinstance(row, dict):
            raise InputError(f"{path}: row {number}: expected a JSON object, one a line.")
        yield row


def _lines(path: Path) -> Pieces:
    def pieces(wanted: Sequence[str], _: object = None) -> Iterator[pa.Table]:
        held: list[str] = []
        for _, line in text_lines(path, returns=True):
            if line.strip():
                held.append(line)
            if len(held) == PIECE:
                yield pa.table({"line": held})
                held = []
        if held:
            yield pa.table({"line": pa.array(held, pa.string())})

    return Pieces(path, [], pieces)


def text_lines(path: Path, *, returns: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file of UTF-8, numbered from 1; it may be compressed (``.gz``).

    With `returns`, a carriage return alone ends a line, too, as in CSV.
    """
    number = 1
    with _binary(path) as stream:
        for block in stream:
            try:
                text = block.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"{path}: line {number} is not valid UTF-8. Convert the file to UTF-8."
                ) from None
            text = text.rstrip("\r\n")
            for line in text.split("\r") if returns else [text]:
                yield number, line
                number += 1


@contextmanager
def _binary(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as stream:
        try:
            yield gzip.GzipFile(fileobj=stream) if is_compressed(path) else stream  # type: ignore[misc]
        except (EOFError, zlib.error) as error:
            raise InputError(
                f"{path}: is cut short or damaged ({error}). Copy or compress it again."
            ) from None


def _state(path: Place) -> tuple[int, int]:
    try:
        return state_of(path)
    except OSError:
        return -1, -1


def _unreadable(
    path: Place, error: Exception, delimiter: str | None = None, *, names: int = 1
) -> InputError:
    """Say what is wrong with a file; of text that is no UTF-8, in which line."""
    if isinstance(path, Path) and path.suffix.lower() != ".parquet":
        try:
            with _binary(path) as stream:
                if fault := fault_of(stream, error, names=names, delimiter=delimiter):
                    return InputError(f"{path}: {fault}")
        except OSError:
            pass
    said = (str(error).splitlines() or ["unknown"])[0][:200]
    if said.startswith("straddling object"):
        said = f"a row is longer than {2 * _BLOCK >> 20} MiB"
    return InputError(f"{path}: cannot be read ({said}). Write it again.")
