"""The tables of an access log, held to their contract: what is wrong is named by row."""

import re
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from telic.data.contracts import SIMULATED, TIMESTAMP
from telic.data.csv_files import (
    check_quotes,
    csv_stream,
    ending_of,
    fault_of,
    opened,
    quoted_cells,
    separator_of,
    with_row,
)
from telic.data.tables import in_utc, one_chunk, refuse_repeated
from telic.errors import InputError, expect_one_of
from telic.specialty.small_cells import shown

_QUOTED = re.compile(r"(?<=columns, got )(\d+).*|: [^:]*['\"].*")
"""What a reader's message quotes from the file."""
IDS = ("user", "patient", "encounter")
"""Columns of ids; the others of text hold codes."""
_DECIMALS = r"^(-?(?:0|[1-9]\d*))\.0+$"
_LARGE = r"^-?\d(?:\.(?P<digits>\d+))?[eE]\+(?P<power>\d{1,3})$"
"""A whole number, also as a float is written."""
_SPREADSHEET = 11
"""Power of ten from which spreadsheets write a number in six digits, whatever it is."""


def find_table(folder: Path, name: str) -> Path:
    """Return ``name.parquet``, ``name.csv`` or ``name.csv.gz`` in `folder`, the first there is.

    Raises
    ------
    InputError
        If there is none.

    Examples
    --------
    >>> from pathlib import Path
    >>> find_table(Path("no-such-log"), "accesses")
    Traceback (most recent call last):
    telic.errors.InputError: no-such-log: holds neither accesses.parquet nor accesses.csv...
    """
    for suffix in (".parquet", ".csv", ".csv.gz"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise InputError(
        f"{folder}: holds neither {name}.parquet nor {name}.csv. "
        "The documentation's page of data contracts lists the files of an access log."
    )


def read_table(path: Path, schema: pa.Schema, *, on_bad_row: str) -> tuple[pa.Table, list[str]]:
    """Read the columns of `schema` and give each its type.

    Parameters
    ----------
    path : Path
        A ``.parquet`` or ``.csv`` file. Other columns than the schema's are ignored.
    schema : pyarrow.Schema
        Ids come back dictionary-encoded. A nullable column may be absent.
    on_bad_row : {"raise", "skip"}
        What to do with a row that has a null, or a value that is not of its column's type.

    Returns
    -------
    table : pyarrow.Table
        With one more column, ``row``: the 1-based row of the file, whatever was skipped before it.
    notes : list of str
        What was skipped or assumed, with counts.

    Raises
    ------
    InputError
        A missing column, an unreadable file, or (with "raise") a bad row.
    """
    expect_one_of(("raise", "skip"), on_bad_row=on_bad_row)
    present = names_in(path)
    refuse_repeated(path, present, schema.names)
    expected = [name for name in schema.names if name in present]
    for field in schema:
        if field.name not in present and not field.nullable:
            raise InputError(
                f"{path}: column {field.name!r} is missing; it has "
                f"{', '.join(expected) or 'none'} of the expected {', '.join(schema.names)}. "
                "Is the first line the header?"
            )
    raw = read_columns(path, expected)
    notes: list[str] = []
    columns, good = [], np.ones(raw.num_rows, dtype=bool)
    for field in schema:
        if field.name not in expected:
            columns.append(pa.nulls(raw.num_rows, field.type))
            continue
        column, naive = raw[field.name], 0
        if field.type == TIMESTAMP:
            converted, zoneless = in_utc(one_chunk(column))
            naive = pc.sum(zoneless).as_py() or 0
        else:
            converted = texts_of(column, path, field.name, ids=field.name in IDS)
        if naive:
            notes.append(f"{path.name}: {shown(naive)} times without a time zone were read as UTC")
        if not field.nullable:
            bad = converted.is_null().to_numpy(zero_copy_only=False)
            if on_bad_row == "raise" and bad.any():
                # What a cell holds is not said: in a shifted row it may be a patient's id.
                found = (
                    "is not a time, expected one such as 2024-01-31T09:30:00Z"
                    if field.type == TIMESTAMP
                    else "is empty, expected a value"
                )
                raise InputError(
                    f"{path}: row {int(bad.argmax()) + 1}: {field.name!r} {found}. Correct the row "
                    "or skip bad rows (on_bad_row='skip', --skip-bad-rows)."
                )
            good &= ~bad
        columns.append(converted)
    columns.append(pa.array(np.arange(1, raw.num_rows + 1)))
    table = pa.table(columns, names=[*schema.names, "row"])
    if not good.all():
        notes.append(
            f"{path.name}: {shown(int((~good).sum()))} rows skipped: a value is empty or not "
            f"of its type (the first is row {int((~good).argmax()) + 1})"
        )
        table = table.filter(pa.array(good))
    return table, notes


def is_simulated(folder: Path) -> bool:
    """Whether the log's accesses are marked as simulated."""
    path = find_table(folder, "accesses")
    if path.suffix != ".parquet":
        return False
    return (pq.read_schema(path).metadata or {}).get(SIMULATED) == b"true"


def names_in(path: Path) -> list[str]:
    """Return the names of a table's columns, as its file has them."""
    try:
        if not _is_csv(path):
            return list(pq.read_schema(path).names)
        if not path.stat().st_size:
            raise InputError(f"{path}: is empty. Expected a line of column names, then rows.")
        # Left open, the reader's thread may outlive the process's main one.
        with pacsv.open_csv(csv_stream(path), parse_options=_cells(path)) as reader:
            return list(reader.schema.names)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def read_columns(path: Path, names: Sequence[str], *, nulls: Sequence[str] = ("",)) -> pa.Table:
    """Read some columns of a table: of CSV as text, of Parquet as they are or as dictionaries.

    `nulls` are the cells of CSV that hold nothing; "NA" is none of them, as it may be somebody's
    initials.
    """
    try:
        if not _is_csv(path):
            return pq.read_table(path, columns=names, read_dictionary=names)
        as_text = pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            null_values=nulls,
            include_columns=names,
        )
        cells = _cells(path)
        table = pacsv.read_csv(csv_stream(path), parse_options=cells, convert_options=as_text)
        check_quotes(path, cells.delimiter, len(table) + 1)
        return table
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def _is_csv(path: Path) -> bool:
    return ending_of(path) == ".csv"


def _cells(path: Path) -> pacsv.ParseOptions:
    return quoted_cells(separator_of(path))


def unreadable(path: Path, error: Exception) -> InputError:
    """Say why a table cannot be read, without what stands in it: that may be ids."""
    reason = str(error).splitlines()[0]
    with suppress(OSError, EOFError, zlib.error):
        if _is_csv(path):
            with opened(path) as lines:
                named = with_row(path, error, _cells(path))
                fault = fault_of(lines, named, delimiter=separator_of(path))
            if fault:
                return InputError(f"{path}: {fault}")
    if isinstance(error, pa.ArrowInvalid):
        reason = _QUOTED.sub("", reason)
    if isinstance(error, UnicodeDecodeError):
        reason = "it is not in UTF-8"
    return InputError(f"{path}: cannot be read ({reason}). Write the file again.")


def texts_of(column: pa.ChunkedArray, path: Path, name: str, *, ids: bool) -> pa.DictionaryArray:
    """Return ids or codes as dictionary-encoded text; what is empty or blank counts as null.

    Whole numbers that were written as floats lose their decimals, as pandas writes a column of
    integers with empty cells: "100.0" would be another id than "100". Of text that is done for
    `ids` alone: "250.0" is a diagnosis other than "250". What a spreadsheet wrote as "1.23457E+11"
    is refused: so it writes a million ids.
    """
    encoded = one_chunk(column)
    try:
        if not pa.types.is_dictionary(encoded.type):
            encoded = encoded.dictionary_encode()
        values = encoded.dictionary
        if not pa.types.is_floating(values.type):
            # Fields of a fixed width are filled up with NUL, which ends a text of NumPy.
            values = pc.utf8_rtrim(values.cast(pa.string()), "\0")
            values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"{path}: column {name!r} holds a value that is not text or a number. "
            "Write the file again."
        ) from None
    indices, text = encoded.indices.cast(pa.int32()), None
    if not pa.types.is_floating(values.type):
        if not ids:
            text, values = values, pa.nulls(len(values), pa.float64())
        else:
            text = pc.replace_substring_regex(values, _DECIMALS, r"\1")
            large = pc.match_substring_regex(values, _LARGE)
            values = pc.if_else(_cut(values), "inf", pc.if_else(large, values, None))
            values = values.cast(pa.float64())
    number = values.to_numpy(zero_copy_only=False)
    exact = 2.0 ** (np.finfo(number.dtype).nmant + 1)
    whole = (np.abs(number) < exact) & (number == np.floor(number))
    lost = ~whole & ~np.isnan(number)
    if lost.any():
        row = pc.index(indices, pa.scalar(int(lost.argmax()), pa.int32())).as_py() + 1
        raise InputError(
            f"{path}: row {row}: {name!r} is a float with decimals, or with too few digits to keep "
            "whole numbers apart, expected text or integers. Write the column again as text."
        )
    values = pa.array(number.astype(float), from_pandas=True).cast(pa.int64()).cast(pa.string())
    if text is not None:
        values = pc.coalesce(values, text)
    null = pc.is_in(indices, pc.indices_nonzero(values.is_null()).cast(pa.int32()))
    return pa.DictionaryArray.from_arrays(pc.if_else(null, None, indices), values)


def _cut(text: pa.Array) -> pa.Array:
    """Whether a number lacks its last digits."""
    parts = pc.extract_regex(text, _LARGE)
    power = pc.struct_field(parts, "power").cast(pa.int64())
    digits = pc.utf8_length(pc.struct_field(parts, "digits"))
    return pc.and_(pc.greater_equal(power, _SPREADSHEET), pc.less(digits, power)).fill_null(False)
