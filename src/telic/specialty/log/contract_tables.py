"""The tables of an access log, held to their contract: what is wrong is named by row."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from telic.data.contracts import SIMULATED, TIMESTAMP
from telic.data.csv_separators import TORN, separator_of
from telic.data.tables import in_utc
from telic.errors import InputError
from telic.specialty.small_cells import shown

ON_BAD_ROW = ("raise", "skip")
_QUOTED = re.compile(r"(?<=columns, got )(\d+).*|: [^:]*['\"].*")
"""What a reader's message quotes from the file."""


def find_table(folder: Path, name: str) -> Path:
    """Return ``name.parquet`` or ``name.csv`` in `folder`; raise `InputError` if neither is there.

    Examples
    --------
    >>> from pathlib import Path
    >>> find_table(Path("no-such-log"), "accesses")
    Traceback (most recent call last):
    telic.errors.InputError: no-such-log: holds neither accesses.parquet nor accesses.csv...
    """
    for suffix in (".parquet", ".csv"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise InputError(
        f"{folder}: holds neither {name}.parquet nor {name}.csv. "
        "docs/reference/data-contracts.md lists the files of an access log."
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
    if on_bad_row not in ON_BAD_ROW:
        raise InputError(f"on_bad_row is {on_bad_row!r}, expected one of {', '.join(ON_BAD_ROW)}.")
    raw = _read_raw(path, schema.names)
    notes: list[str] = []
    columns, good = [], np.ones(raw.num_rows, dtype=bool)
    for field in schema:
        if field.name not in raw.column_names:
            if not field.nullable:
                present = [name for name in schema.names if name in raw.column_names]
                raise InputError(
                    f"{path}: column {field.name!r} is missing; it has "
                    f"{', '.join(present) or 'none'} of the expected {', '.join(schema.names)}. "
                    "Is the first line the header?"
                )
            columns.append(pa.nulls(raw.num_rows, field.type))
            continue
        column = raw[field.name].combine_chunks()
        try:
            if field.type == TIMESTAMP:
                converted, zoneless = in_utc(column)
                naive = pc.sum(zoneless).as_py() or 0
            else:
                converted, naive = _to_id(column), 0
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kind = "a time" if field.type == TIMESTAMP else "text or a number"
            raise InputError(
                f"{path}: column {field.name!r} holds a value that is not {kind}. "
                "Write the file again."
            ) from None
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


def _read_raw(path: Path, names: list[str]) -> pa.Table:
    try:
        if path.suffix == ".csv":
            header = []
            parse = pacsv.ParseOptions(delimiter=separator_of(path))
            if path.stat().st_size:
                # Left open, the reader's thread may outlive the process's main one.
                with pacsv.open_csv(path, parse_options=parse) as reader:
                    header = reader.schema.names
            as_text = pacsv.ConvertOptions(
                column_types={name: pa.string() for name in header},
                strings_can_be_null=True,
                null_values=[""],  # "NA" may be somebody's initials
                include_columns=[name for name in names if name in header],
            )
            return pacsv.read_csv(path, parse_options=parse, convert_options=as_text)
        present = [name for name in pq.read_schema(path).names if name in names]
        ids = [name for name in present if name != "at"]
        return pq.read_table(path, columns=present, read_dictionary=ids)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> InputError:
    """Say why a table cannot be read, without what stands in it: that may be ids."""
    reason = str(_with_row(path, error)).splitlines()[0]
    if torn := TORN.search(reason):
        return InputError(
            f"{path}: row {int(torn[1]) - 1}: has {torn[3]} values, expected {torn[2]}, one "
            "for each column. Write the file again."
        )
    if isinstance(error, pa.ArrowInvalid):
        reason = _QUOTED.sub("", reason)
    if isinstance(error, UnicodeDecodeError):
        reason = "it is not in UTF-8"
    return InputError(f"{path}: cannot be read ({reason}). Write the file again.")


def _with_row(path: Path, error: Exception) -> Exception:
    """The same error of a torn CSV line with its row, which only one thread alone can name."""
    if ".csv" in path.name and isinstance(error, pa.ArrowInvalid):
        try:
            pacsv.read_csv(
                path,
                read_options=pacsv.ReadOptions(use_threads=False),
                parse_options=pacsv.ParseOptions(delimiter=separator_of(path)),
            )
        except pa.ArrowInvalid as named:
            return named
    return error


def _to_id(column: pa.Array) -> pa.DictionaryArray:
    """Ids as dictionary-encoded strings; an empty string counts as null."""
    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    values = column.dictionary.cast(pa.string())
    values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
    indices = column.indices.cast(pa.int32())
    null = pc.is_in(indices, pc.indices_nonzero(values.is_null()).cast(pa.int32()))
    indices = pc.if_else(null, None, indices)
    return pa.DictionaryArray.from_arrays(indices, values)
