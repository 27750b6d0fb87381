"""Networks from several tables with keys, as databases and CSV exports hold them."""

import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from telic.data.csv_files import csv_stream, csv_table, ending_of, quoted_cells, separator_of
from telic.data.json_files import read_json
from telic.errors import InputError
from telic.hin.links import int64_ids
from telic.hin.network import Network, check_nodes, links_from_ids
from telic.hin.schema import LinkType, Rule, Schema

KEYS = {
    "a node type": ("file", "key", "attributes"),
    "a link type": ("name", "file", "source", "target", "strength"),
}
"""What may be said of each in a description."""
SHAPE = (
    '{"nodes": {type: {"file": name, "key": column, "attributes": {column: rule}}}, '
    '"links": [{"name", "file", "source": [column, type], "target": [column, type], '
    '"strength": column}]}'
)


def read_tables(path: str | Path) -> Network:
    """Build a network of tables (CSV or Parquet), as a JSON file describes them.

    A table of nodes has a key; its other columns become attributes, those that ``attributes`` names
    with their rules or, without it, all of them, compared exactly. A node type without a file has
    the ids that links name. A table of links has two columns with keys of other tables, and may
    have one of whole numbers >= 1, the strength. Without it the strength is how often a link
    occurs, if any occurs twice; with it, repeated links' strengths are added up. Rows that lack
    either key are refused.

    Parameters
    ----------
    path : path
        A JSON file of the shape ``{"nodes": {"user": {"file": "users.csv", "key": "id"},
        "product": {}}, "links": [{"name": "bought", "file": "purchases.csv", "source": ["user_id",
        "user"], "target": ["product_id", "product"]}]}``. Files are looked for beside it.

    Raises
    ------
    InputError
        Naming the file, column, row and value that do not fit.
    """
    path = Path(path)
    nodes, links = _described(path)
    tables: dict[str, pa.Table] = {}
    rules: dict[str, dict[str, Rule]] = {kind: {} for kind in nodes}
    for kind, entry in nodes.items():
        if entry.get("file"):
            tables[kind], rules[kind] = _nodes(path, kind, entry)
    read = [_link_table(path, *one) for one in links]
    ends = [end for table in read for end in (table.source, table.target)]
    for table in read:
        for kind in {table.source.kind, table.target.kind} - set(nodes):
            raise InputError(
                f"{path}: link type {table.name!r} joins node type {kind!r}. Known are "
                f"{sorted(nodes)}."
            )
    for kind in nodes:
        own = [end for end in ends if end.kind == kind]
        tables[kind] = _with_keys_alike(tables.get(kind), own, f"{path}: node type {kind!r}")
    schema = Schema(rules, tuple(table.link_type() for table in read))
    network = Network(schema, tables, {})
    built = {
        table.name: links_from_ids(
            network,
            schema.link(table.name),
            table.source.keys,
            table.target.keys,
            table.strengths,
            duplicates="sum",
            where=str(table.file),
            columns=(table.source.column, table.target.column, table.strength_column),
        )
        for table in read
    }
    return Network(schema, tables, built)


@dataclass
class _End:
    """One end of the links of a table."""

    kind: str
    file: Path
    column: str
    keys: pa.ChunkedArray
    """Of nodes of that kind."""


@dataclass
class _LinkTable:
    """A table of links, as it was read."""

    name: str
    file: Path
    source: _End
    target: _End
    strength_column: str
    strength: pa.ChunkedArray | None

    @cached_property
    def strengths(self) -> pa.ChunkedArray | None:
        """What is added up where links are repeated, 1 of each without a column.

        It is looked at once, when `_with_keys_alike` has made the keys what they are to be.
        """
        source, target = self.source.keys, self.target.keys
        if self.strength is None and _repeats(source, target):
            return pa.chunked_array([pa.repeat(pa.scalar(1), len(source))])
        return self.strength

    def link_type(self) -> LinkType:
        """Return the type of the links, as `telic.hin.Schema` knows it."""
        begin, end = self.source, self.target
        rule = None if self.strengths is None else Rule("at_least")
        itself = begin.kind == end.kind and bool(pc.any(pc.equal(begin.keys, end.keys)).as_py())
        return LinkType(self.name, begin.kind, end.kind, rule, itself)


def _link_table(
    path: Path, name: str, file: str, keys: list[tuple[str, str]], strength: str | None
) -> _LinkTable:
    where = path.parent / file
    table = _read(where)
    source, target = (
        _End(kind, where, column, _key(_column(table, column, where))) for column, kind in keys
    )
    weight = _column(table, strength, where) if strength else None
    if weight is not None and _is_text(weight) and _all_whole(weight):
        weight = weight.cast(pa.int64())  # "02" is a number of pieces
    return _LinkTable(name, where, source, target, strength or "", weight)


def _with_keys_alike(table: pa.Table | None, ends: list[_End], where: str) -> pa.Table:
    """Return the table of a node type, made of what links name where it has none.

    If any of its keys is a text, all are, as their files write them: then "01" is not 1.
    """
    keys = [end.keys for end in ends] + ([] if table is None else [table["id"]])
    if any(map(_is_text, keys)):
        for end in ends:
            end.keys = _as_text(end.keys, end.column, end.file)
        if table is not None:
            table = table.set_column(0, "id", table["id"].cast(pa.string()))
    if table is not None:
        return table
    if not ends:
        raise InputError(f"{where} has neither a file nor links.")
    table = pa.table({"id": _all_keys([end.keys for end in ends], where)})
    check_nodes(table, (), where)
    return table


def named_files(path: Path) -> list[Path]:
    """Return the tables that a description names, which `read_tables` reads."""
    nodes, links = _described(path)
    named = [entry.get("file") for entry in nodes.values()]
    return [path.parent / str(file) for file in (*named, *(file for _, file, *_ in links)) if file]


def _described(path: Path) -> tuple[dict[str, dict[str, Any]], list[tuple[Any, ...]]]:
    """Return what is said of each node type, and of links: name, file, keys, strength."""
    content = read_json(path, dict, SHAPE)
    try:
        nodes, described = {k: dict(v) for k, v in content["nodes"].items()}, content["links"]
        links = [
            (
                str(one["name"]),
                str(one["file"]),
                [(str(column), str(kind)) for column, kind in (one["source"], one["target"])],
                one.get("strength"),
            )
            for one in described
        ]
    except KeyError as error:
        raise InputError(f"{path}: lacks {error}, expected {SHAPE}.") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: does not describe tables ({error}), expected {SHAPE}.") from None
    for what, entries in (("a node type", nodes.values()), ("a link type", described)):
        for key in {key: None for entry in entries for key in entry if key not in KEYS[what]}:
            raise InputError(f"{path}: {key!r} says nothing of {what}. Known are {KEYS[what]}.")
    return nodes, links


def _nodes(path: Path, kind: str, entry: Mapping[str, Any]) -> tuple[pa.Table, dict[str, Rule]]:
    file = path.parent / str(entry["file"])
    table = _read(file)
    key = entry.get("key", "id")
    ids = _key(_column(table, key, file))
    given = entry.get("attributes")
    if given is None:
        given = {name: "exact" for name in table.column_names if name != key}
    if not isinstance(given, Mapping):
        raise InputError(f"{path}: 'attributes' of {kind!r} is {given!r}, expected {SHAPE}.")
    rules = {
        name: Rule.parse(rule, f"{path}: attribute {name!r} of {kind!r}")
        for name, rule in given.items()
    }
    if "id" in rules:
        raise InputError(
            f"{file}: column 'id' can be no attribute: the keys ({key!r}) get this name. Rename "
            "it, or say in the description which attributes there are, without it."
        )
    columns = {"id": ids, **{name: _column(table, name, file) for name in rules}}
    nodes = pa.table(columns)
    check_nodes(nodes, rules, str(file), column=key)
    return nodes, rules


def _read(file: Path) -> pa.Table:
    try:
        if ending_of(file) == ".parquet":
            return pq.ParquetFile(file).read()
        return read_csv(file)
    except FileNotFoundError:
        raise InputError(f"{file}: not found, but the description names it.") from None
    except (pa.ArrowInvalid, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{file}: cannot be read ({error}).") from None


_NO_WHOLE_NUMBER = r"^\s*([-+]?0[\dxX]|-0$)"
_NO_FLOAT = r"^\s*[-+]?(0\d|[1-9]\d{15,}\s*$)"
"""Cells of columns that Arrow takes for numbers, which are meant as texts: see `read_csv`."""


def read_csv(
    file: Path,
    types: Mapping[str, pa.DataType] | None = None,
    *,
    as_written: Collection[str] | None = None,
) -> pa.Table:
    """Read a CSV file; `types` are of columns whose cells must not be guessed at.

    Dates and times stay text. So do, of all columns or those `as_written`, the numbers of a column
    in which one is written as no number is, such as "01" and "0x1", or is a whole number of more
    digits than a float keeps: card numbers of 20 digits would become one and the same.
    """
    parse = quoted_cells(separator_of(file))
    table = csv_table(
        file,
        parse_options=parse,
        convert_options=pyarrow.csv.ConvertOptions(column_types=types),
    )
    if len(set(table.column_names)) < len(table.column_names):
        twice = next(x for x in table.column_names if table.column_names.count(x) > 1)
        raise InputError(f"{file}: two columns are named {twice!r}. Rename or drop one.")
    numbers = {
        field.name: _NO_WHOLE_NUMBER if pa.types.is_integer(field.type) else _NO_FLOAT
        for field in table.schema
        if (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
        and (as_written is None or field.name in as_written)
    }
    times = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    again = [*numbers, *times]
    if not again:
        return table
    text = pyarrow.csv.read_csv(
        csv_stream(file),
        parse_options=parse,
        convert_options=pyarrow.csv.ConvertOptions(
            include_columns=again,
            column_types=dict.fromkeys(again, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
    odd = [
        name
        for name, pattern in numbers.items()
        if pc.any(pc.match_substring_regex(text[name], pattern)).as_py()
    ]
    for name in odd + times:
        cells = pc.fill_null(text[name], "") if name in times else text[name]
        table = table.set_column(table.column_names.index(name), name, cells)
    return table


def _column(table: pa.Table, name: str, file: Path) -> pa.ChunkedArray:
    if name not in table.column_names:
        raise InputError(f"{file}: no column {name!r}. Columns are {table.column_names}.")
    return table.column(name)


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return keys; an empty text is none, and without a row keys may be of any kind."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not len(column):
        return pa.chunked_array([], pa.int64())
    return pc.if_else(pc.equal(column, ""), None, column) if _is_text(column) else column


def _as_text(column: pa.ChunkedArray, name: str, file: Path) -> pa.ChunkedArray:
    """Return keys as the file writes them: 1.50 is not 1.5, if other keys are texts."""
    kind = column.type
    whole = pa.types.is_integer(kind) or pa.types.is_null(kind) or _is_text(column)
    if not whole and ending_of(file) != ".parquet":
        column = _key(read_csv(file, {name: pa.string()}).column(name))
    return column.cast(pa.string())


def _all_keys(seen: list[pa.ChunkedArray], where: str) -> pa.ChunkedArray:
    """Return each key of a node type that has no file, once."""
    columns = [
        int64_ids(column, where) if pa.types.is_integer(column.type) else column
        for column in seen
        if not pa.types.is_null(column.type)  # such rows are refused with their links
    ]
    types = sorted({str(column.type) for column in columns})
    if len(types) > 1:
        raise InputError(
            f"{where}: its keys are {' and '.join(types)} in different files. Write all as "
            "integers or all as strings."
        )
    chunks = [chunk for column in columns for chunk in column.chunks]
    return pa.chunked_array(chunks, columns[0].type if columns else pa.int64()).unique().drop_null()


def _is_text(column: pa.ChunkedArray) -> bool:
    return pa.types.is_string(column.type) or pa.types.is_large_string(column.type)


def _all_whole(column: pa.ChunkedArray) -> bool:
    return pc.all(pc.match_substring_regex(column, r"^\d{1,18}$")).as_py() is True


def _repeats(source: pa.ChunkedArray, target: pa.ChunkedArray) -> bool:
    pairs = pa.table({"source": source, "target": target})
    return pairs.group_by(["source", "target"]).aggregate([]).num_rows < len(source)
