"""Read a Parquet or CSV file and hold it to a schema: names, types, nulls."""

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from telic.data.contracts import TIMESTAMP
from telic.data.csv_files import csv_table, ending_of, quoted_cells, separator_of
from telic.data.text_marks import UNSEEN, UNTYPED, one_or_more
from telic.errors import InputError

_MARKS = one_or_more(UNTYPED + UNSEEN, r"\x{{{code:x}}}")
_SPACE = (  # as in `str.split`, and control characters, which nobody types either
    r"[\x00-\x20\x7f-\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_UNTIDY = f"^ | $|  |{_SPACE.replace('x20', 'x1f')}"
_DAY = (  # 29 February of any year too: Arrow knows which
    r"((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|[12][0-9]))"
)
_HOURS = r"[T ]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9](\.[0-9]+)?)?)?"
_OFFSET = r"(Z|z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)$"
_TIME = rf"^[0-9]{{4}}-{_DAY}($|{_HOURS}($|{_OFFSET}))"
_ZONE = rf"[T ][0-9:.]+{_OFFSET}"  # of a time, after its hours
_LONGEST_LINE = 2**24  # bytes; a longer text is refused by the file's name alone, not by its row


def read_table(
    source: str | Path | pa.Table,
    schema: pa.Schema,
    *,
    optional: Collection[str] = (),
    called: str = "",
    before: int = 0,
) -> pa.Table:
    """Read the columns of `schema` from a file and cast them to its types.

    Parameters
    ----------
    source : path or pyarrow.Table
        A ``.parquet`` file, or a ``.csv`` or ``.tsv`` file, which may be compressed (``.gz``), if
        every column of `schema` is flat; or a table that is in memory already.
    schema : pyarrow.Schema
        What is expected. Columns beyond it are ignored; struct fields may come in any order.
    optional : collection of str
        Columns that may be absent; they are then absent from the result.
    called : str, optional
        What messages call a table that is a piece of something.
    before : int
        How many rows come before such a piece.

    Returns
    -------
    pyarrow.Table
        The columns of `schema` that the file has, in the schema's order. Nulls in columns that the
        schema declares non-nullable are *not* checked here: the caller names the row.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, or its type does not fit.
    """
    table = source if isinstance(source, pa.Table) else _read(Path(source), schema)
    path = called or describe(source)
    missing = [f.name for f in schema if f.name not in table.column_names]
    required = [name for name in missing if name not in optional]
    if required:
        raise InputError(
            f"{path}: column {required[0]!r} is missing; found {table.column_names}. "
            f"Expected {[f.name for f in schema if f.name not in optional]}: see the "
            "documentation's page of data contracts."
        )
    fields = [field for field in schema if field.name not in missing]
    refuse_repeated(path, table.column_names, [field.name for field in fields])
    columns = []
    for field in fields:
        column = table[field.name]
        try:
            columns.append(_fit(one_chunk(column), field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError) as error:
            row = _first_unfit(one_chunk(column), field.type)
            where = path if row is None else f"{path}: row {before + row + 1}"
            raise InputError(
                f"{where}: column {field.name!r} is {column.type}, expected {field.type} "
                f"({_first_line(error)}). Convert the column."
            ) from None
    # Nullable: which rows break a promise of "no nulls" is for the caller to name.
    loose = [field.with_nullable(True) for field in fields]
    return pa.table(columns, schema=pa.schema(loose, metadata=table.schema.metadata))


def refuse_repeated(path: object, names: Sequence[str], wanted: Iterable[str]) -> None:
    """Raise InputError if a column that is wanted comes more than once among the names."""
    for name in wanted:
        if names.count(name) > 1:
            raise InputError(f"{path}: column {name!r} comes more than once. Keep one of them.")


def refuse_twice(paths: Iterable[str | Path]) -> None:
    """Raise InputError if a file or folder is given twice, however it is spelled or linked."""
    seen: dict[object, str | Path] = {}
    for path in paths:
        try:
            found = os.stat(path)
            key: object = (found.st_dev, found.st_ino)
        except OSError:  # an address, or not there
            key = str(path)
        if key in seen:
            raise InputError(
                f"{path}: is given twice, first as {seen[key]}, and would count twice. Name it "
                "once."
            )
        seen[key] = path


def describe(source: str | Path | pa.Table) -> str:
    """Name a source in messages."""
    return "the table" if isinstance(source, pa.Table) else str(source)


def no_such_file(path: Path) -> InputError:
    """Say that a file is not there, and of an address that files alone are read."""
    if address := re.match(r"([a-z][a-z0-9+.-]+:)/+(.*)", str(path)):
        said = "//".join(address.groups())  # a `Path` has lost a slash
        return InputError(f"{said}: is an address, and a file is read here. Copy it, or mount it.")
    return InputError(f"{path}: no such file. Check the path.")


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one contiguous array."""
    if column.num_chunks == 1:
        return column.chunk(0)  # Joining would copy it.
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def is_text(kind: pa.DataType) -> bool:
    """Say whether a column of this type holds text."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def times_of(text: pa.Array) -> pa.Array:
    """Return times that are written as ISO 8601; one without a zone is UTC.

    Raises
    ------
    pyarrow.ArrowInvalid
        If a text is no such time.
    """
    text = pc.replace_substring_regex(in_microseconds(text.cast(pa.string())), "z$", "Z")
    zoned = pc.match_substring_regex(text, _ZONE)
    with_zone = pc.if_else(zoned, text, None).cast(pa.timestamp("us", tz="UTC"))
    without = pc.if_else(zoned, None, text).cast(pa.timestamp("us"))
    return pc.coalesce(with_zone, pc.assume_timezone(without, "UTC"))


def in_utc(column: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return a column's times in UTC, null where there is none, and which of them name no zone.

    Timestamps, dates, and texts as `times_of` takes them; a time without a zone is UTC.

    Examples
    --------
    >>> times, naive = in_utc(pa.array(["2024-01-31 09:30:00+01", "2024-01-31", "soon"]))
    >>> times[0].as_py().hour, times.is_valid().to_pylist(), naive.to_pylist()
    (8, [True, True, False], [False, True, False])
    """
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    kind = column.type
    if is_text(kind):
        text = column.cast(pa.string())
        text = pc.if_else(pc.match_substring_regex(text, _TIME), text, None)
        times, zoned = _or_null(text, times_of), pc.match_substring_regex(text, _ZONE)
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        times = _or_null(column, lambda part: part.cast(TIMESTAMP, safe=not _has_nanoseconds(kind)))
        zoned = pa.scalar(pa.types.is_timestamp(kind) and kind.tz is not None)
    else:
        times, zoned = pa.nulls(len(column), TIMESTAMP), pa.scalar(True)
    return times, pc.and_(times.is_valid(), pc.invert(zoned)).fill_null(False)


def _or_null(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Convert at once; where one value (29 February of most years) does not convert, in halves."""
    try:
        return convert(column)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return pa.nulls(1, TIMESTAMP)
        half = len(column) // 2
        return pa.concat_arrays(
            [_or_null(part, convert) for part in (column[:half], column[half:])]
        )


def _has_nanoseconds(kind: pa.DataType) -> bool:
    """Whether a cast to microseconds cuts something; any other cast must be exact."""
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def in_microseconds(times: pa.Array) -> pa.Array:
    """Cut fractions of a second to the six decimals that are kept.

    Examples
    --------
    >>> in_microseconds(pa.array(["2024-01-01T00:00:00.1234567Z"]))[0].as_py()
    '2024-01-01T00:00:00.123456Z'
    """
    return pc.replace_substring_regex(times, r"(:[0-5]\d\.\d{6})\d+", r"\1")


def unmatchable(text: pa.Array) -> np.ndarray:
    """Tell which texts are only white space and diacritics, so that nothing is left to match."""
    if pc.all(pc.string_is_ascii(text)).as_py() is False:  # marks are not ASCII
        text = pc.replace_substring_regex(pc.utf8_normalize(text, "NFKD"), _MARKS, "")
    return pc.equal(pc.utf8_trim_whitespace(text), "").fill_null(False).to_numpy(False)


def none_if_empty(text: pa.Array) -> pa.Array:
    """Return texts with null for each empty one, which says no more: CSV cannot tell the two.

    Examples
    --------
    >>> none_if_empty(pa.array(["shop", "", None])).to_pylist()
    ['shop', None, None]
    """
    return pc.if_else(pc.equal(text, ""), pa.scalar(None, text.type), text)


def tidy(text: str) -> str:
    r"""Do as `tidied` for one text.

    Examples
    --------
    >>> tidy(" Iced\n tea\x07")
    'Iced tea'
    """
    return " ".join(_CONTROLS.sub(" ", text).split())


def tidied(text: pa.Array) -> pa.Array:
    """Return texts as people type them: one space between words, no line breaks or controls."""
    untidy = pc.match_substring_regex(text, _UNTIDY).fill_null(False)
    if not pc.any(untidy).as_py():
        return text
    spaced = pc.replace_substring_regex(text.filter(untidy), f"{_SPACE}+", " ")
    return pc.replace_with_mask(text, untidy, pc.utf8_trim(spaced, " "))


def is_number(kind: pa.DataType) -> bool:
    """Say whether a column of this type is taken as numbers; true counts as 1, false as 0."""
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def table_pieces(source: str | Path | pa.Table, schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """Yield what `read_table` reads as it stands, in pieces of so many rows.

    There is at least one, which has the columns. A file of text is one piece.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    if isinstance(source, pa.Table):
        for first in range(0, max(len(source), 1), rows):
            yield source.slice(first, rows)
        return
    path = Path(source)
    if not path.is_file() or ending_of(path) in (".csv", ".tsv"):
        yield _read(path, schema)
        return
    with _readable(path):
        file = pq.ParquetFile(path, memory_map=True)
        if not file.metadata.num_rows:
            yield file.read()
        for batch in file.iter_batches(rows):
            yield pa.Table.from_batches([batch], file.schema_arrow)


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    if not path.is_file():
        raise no_such_file(path)
    with _readable(path):
        if ending_of(path) in (".csv", ".tsv"):
            # Text stays as it is written: "007" is no number and "nan" is a query.
            texts = {field.name: field.type for field in schema if field.type == pa.string()}
            convert = pyarrow.csv.ConvertOptions(
                column_types=texts, null_values=[""], strings_can_be_null=True
            )
            parse = quoted_cells(separator_of(path))
            return csv_table(
                path, block_size=_LONGEST_LINE, parse_options=parse, convert_options=convert
            )
        return pq.ParquetFile(path, memory_map=True).read()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({_first_line(error)}). Write it again."
        ) from None


def _fit(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Cast, taking struct fields by name and a time without a zone as UTC."""
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind)
    if pa.types.is_list(kind):
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            raise pa.ArrowInvalid("not a list")
        values = _fit(array.flatten(), kind.value_type)
        lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
        ends = pc.cumulative_sum(lengths)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
        return pa.ListArray.from_arrays(
            offsets, values, type=kind, mask=array.is_null() if array.null_count else None
        )
    if pa.types.is_struct(kind):
        if not pa.types.is_struct(array.type):
            raise pa.ArrowInvalid("not a struct")
        children = []
        for field in kind:
            if array.type.get_field_index(field.name) < 0:
                raise KeyError(f"field {field.name} is missing")
            children.append(_fit(pc.struct_field(array, field.name), field.type))
        return pa.StructArray.from_arrays(
            children, fields=list(kind), mask=array.is_null() if array.null_count else None
        )
    if pa.types.is_string(kind) and not (is_text(array.type) or pa.types.is_integer(array.type)):
        raise pa.ArrowInvalid("not text")
    if pa.types.is_timestamp(kind):
        if is_text(array.type):
            return times_of(array).cast(kind)
        if pa.types.is_integer(array.type):
            raise pa.ArrowInvalid("not times but numbers, which do not say their unit")
        return array.cast(kind, safe=not _has_nanoseconds(array.type))
    return array.cast(kind)


def _first_unfit(array: pa.Array, kind: pa.DataType) -> int | None:
    """Return the first row that cannot be cast; None if it is the column's type that cannot."""

    def unfit(rows: int) -> bool:
        try:
            _fit(array.slice(0, rows), kind)
        except (pa.ArrowException, KeyError):
            return True
        return False

    return None if unfit(0) else bisect_left(range(1, len(array) + 1), True, key=unfit)


def _first_line(error: Exception) -> str:
    return (str(error).strip("'").splitlines() or ["unknown"])[0][:200]
