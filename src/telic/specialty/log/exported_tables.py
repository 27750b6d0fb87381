"""The tables of another system's export: found by name, and read by what their columns hold."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.tables import in_utc, is_text, one_chunk, refuse_repeated
from telic.errors import InputError
from telic.specialty.log.contract_tables import IDS, names_in, read_columns, texts_of
from telic.specialty.small_cells import shown

NULLS = ("", "NULL", r"\N")
"""Cells of CSV that hold nothing, as databases write them."""
_ENDINGS = (".parquet", ".csv", ".csv.gz")
_NUMBER = r"^[-+]?\d+(\.\d*)?([eE][-+]?\d+)?$"
_CENTURY = 100 * 366 * 24 * 60


class ExportedTable:
    """A table of an export; what is read of it adds to the notes."""

    def __init__(self, file: Path, notes: list[str]) -> None:
        self.file, self.notes = file, notes
        self._written = names_in(file)
        self.names = [name.lower() for name in self._written]

    def read(self, **columns: str | Sequence[str]) -> pa.Table:
        """Read columns, each by what it is to be.

        Parameters
        ----------
        columns
            What it is to be → its name in lower case. Of several names, the next stands in where a
            row has nothing under those before it. ``at`` becomes a time, ``minutes`` a number, and
            all else text.

        Raises
        ------
        InputError
            If a column is missing or there twice, or holds what it cannot.
        """
        names = {new: [old] if isinstance(old, str) else old for new, old in columns.items()}
        for one in names.values():
            if not set(one) & set(self.names):
                raise InputError(
                    f"{self.file}: column {one[0]!r} is missing. Is the first line the header?"
                )
        wanted = [name for one in names.values() for name in one if name in self.names]
        refuse_repeated(self.file, self.names, wanted)
        written = [self._written[self.names.index(name)] for name in wanted]
        raw = read_columns(self.file, written, nulls=NULLS).select(written).rename_columns(wanted)
        if not raw.num_rows:
            self.notes.append(f"{self.file.name}: holds no rows")
        return pa.table({new: self._filled(raw, new, one) for new, one in names.items()})

    def _filled(self, raw: pa.Table, new: str, names: Sequence[str]) -> pa.Array:
        """Values of a column, and of those that stand in for it."""
        values: pa.Array | None = None
        zoneless = 0
        for name in names:
            if name not in self.names:
                continue
            found, naive = self._values(raw[name], new, name)
            if values is None:
                values = pa.nulls(len(found), found.type)
            used = pc.and_(values.is_null(), found.is_valid())
            if name != names[0] and (count := pc.sum(used).as_py()):
                self.notes.append(
                    f"{self.file.name}: {shown(count)} rows have no {names[0]!r} and count by "
                    f"{name!r}"
                )
            zoneless += pc.sum(pc.and_(naive, used)).as_py() or 0
            values = pc.coalesce(values, found)
        if zoneless:
            self.notes.append(
                f"{self.file.name}: {shown(zoneless)} times without a time zone were read as UTC"
            )
        return values

    def _values(self, column: pa.ChunkedArray, new: str, name: str) -> tuple[pa.Array, pa.Array]:
        """Values of one column, and which of them are times without a zone."""
        if new not in ("at", "minutes"):
            ids = new in (*IDS, "hospital", "site")
            texts = texts_of(column, self.file, name, ids=ids).dictionary_decode()
            return texts, pa.array(np.zeros(len(texts), bool))
        given = one_chunk(column)
        if isinstance(given, pa.DictionaryArray):
            given = given.dictionary_decode()
        if is_text(given.type):
            text = pc.utf8_trim_whitespace(given.cast(pa.string()))
            given = pc.if_else(pc.equal(text, ""), None, text)
        values, naive = in_utc(given) if new == "at" else _minutes(given)
        wrong = pc.index(pc.and_(given.is_valid(), values.is_null()), True).as_py()
        if wrong >= 0:
            expected = (
                "is not a time, expected one such as 2024-01-31T09:30:00Z"
                if new == "at"
                else "is not a number of minutes within a century"
            )
            raise InputError(f"{self.file}: row {wrong + 1}: {name!r} {expected}. Correct the row.")
        return values, naive


def file_of(source: Path, stem: str) -> Path | None:
    """Return the file of a table, whatever the case of its letters; None if there is none."""
    files = {f.name.lower(): f for f in sorted(source.iterdir())} if source.is_dir() else {}
    return next((files[stem + ending] for ending in _ENDINGS if stem + ending in files), None)


def open_table(source: Path, *stems: str, notes: list[str]) -> ExportedTable:
    """Return the table of the first of these names that is there.

    Raises
    ------
    InputError
        If there is none, or its columns cannot be read.
    """
    for stem in stems:
        if file := file_of(source, stem):
            return ExportedTable(file, notes)
    raise InputError(
        f"{source}: holds no {' or '.join(stems)} ({', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}). "
        "Is this the export's folder?"
    )


def look_up(
    ids: pa.ChunkedArray,
    table: pa.Table,
    key: str,
    *,
    lost: str = "",
    notes: list[str] | None = None,
) -> pa.Table:
    """Return the first row of a table that each id names, nulls where none does.

    If some have none, `notes` get `lost`, with how many they are in place of its braces.

    Examples
    --------
    >>> sites = pa.table({"site": ["3"], "name": ["Breast Centre"]})
    >>> look_up(pa.chunked_array([["3", "4"]]), sites, "site")["name"].to_pylist()
    ['Breast Centre', None]
    """
    place = pc.index_in(ids, value_set=one_chunk(table[key]), skip_nulls=True)
    count = pc.sum(pc.and_(ids.is_valid(), place.is_null())).as_py()
    if count and notes is not None:
        none = count == len(ids) - ids.null_count
        doubt = ", as all others: are ids written alike in both tables?" if none else ""
        notes.append(lost.format(shown(count)) + doubt)
    return table.take(place)


def distinct(table: pa.Table) -> pa.Table:
    """Return each row once, in the order in which they come."""
    return table.group_by(table.column_names, use_threads=False).aggregate([])


def _minutes(given: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Numbers, null where there is none or one too large; none of them is a time."""
    if is_text(given.type):
        given = pc.if_else(pc.match_substring_regex(given, _NUMBER), given, None)
    kind = given.type
    numeric = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    values = given.cast(pa.float64()) if numeric else pa.nulls(len(given), pa.float64())
    within = pc.less_equal(pc.abs(values), _CENTURY)
    return pc.if_else(within, values, None), pa.array(np.zeros(len(given), bool))
