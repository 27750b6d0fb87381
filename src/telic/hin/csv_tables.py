"""Networks from several tables with keys, as databases and CSV exports hold them."""

import zlib
from collections.abc import Collection, Mapping
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
    tables, rules = {}, {}
    for kind, entry in nodes.items():
        if entry.get("file"):
            tables[kind], rules[kind] = _nodes(path, kind, entry)
    ends: dict[str, tuple[list[pa.ChunkedArray], pa.ChunkedArray | None]] = {}
    for name, file, keys, strength in links:
        table = _read(path.parent / file)
        found = [_key(_column(table, column, path.parent / file)) for column, _ in keys]
        weight = _column(table, strength, path.parent / file) if strength else None
        if weight is not None and _is_text(weight) and _all_whole(weight):
            weight = weight.cast(pa.int64())  # "02" is a number of pieces
        ends[name] = found, weight
        for kind in {kind for _, kind in keys} - set(nodes):
            raise InputError(
                f"{path}: link type {name!r} joins node type {kind!r}. Known are {sorted(nodes)}."
            )
    for kind in nodes:
        places = [(name, k) for name, _, keys, _ in links for k in (0, 1) if keys[k][1] == kind]
        seen = [ends[name][0][k] for name, k in places]
        if kind in tables:
            seen.append(tables[kind]["id"])
        if any(map(_is_text, seen)):  # then "01" is not 1
            read = {name: (path.parent / file, keys) for name, file, keys, _ in links}
            seen = [
                *(_as_text(ends[n][0][k], read[n][1][k][0], read[n][0]) for n, k in places),
                *(column.cast(pa.string()) for column in seen[len(places) :]),
            ]
            for (name, k), column in zip(places, seen, strict=False):
                ends[name][0][k] = column
            if kind in tables:
                tables[kind] = tables[kind].set_column(0, "id", seen[-1])
        if kind in tables:
            continue
        if not seen:
            raise InputError(f"{path}: node type {kind!r} has neither a file nor links.")
        tables[kind], rules[kind] = pa.table({"id": _all_keys(seen, kind, path)}), {}
        check_nodes(tables[kind], (), f"{path}: node type {kind!r}")
    types, columns = [], {}
    for name, file, keys, given in links:
        (source, target), strength = ends[name]
        counted = strength is not None or _repeats(source, target)
        if counted and strength is None:
            strength = pa.chunked_array([pa.repeat(pa.scalar(1), len(source))])
        (first, begin), (second, end) = keys
        rule = Rule("at_least") if counted else None
        itself = begin == end and bool(pc.any(pc.equal(source, target)).as_py())
        types.append(LinkType(name, begin, end, rule, itself))
        columns[name] = file, (first, second, given), (source, target, strength)
    network = Network(Schema({kind: rules[kind] for kind in nodes}, tuple(types)), tables, {})
    built = {}
    for link in types:
        file, names, values = columns[link.name]
        built[link.name] = links_from_ids(
            network,
            link,
            *values,
            duplicates="sum",
            where=str(path.parent / file),
            columns=names,
        )
    return Network(network.schema, tables, built)


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


_ODD = r"^\s*([-+]?0[\dxX]|-0$)"
"""Whole numbers as no number is written."""
_LONG = r"^\s*[-+]?[0.]*[1-9](\.?\d){17}"
"""Numbers of 18 digits or more, zeros before them left out: a float does not keep these apart."""


def read_csv(
    file: Path,
    types: Mapping[str, pa.DataType] | None = None,
    *,
    as_written: Collection[str] | None = None,
) -> pa.Table:
    """Read a CSV file; `types` are of columns whose cells must not be guessed at.

    Dates and times stay text. So do, of all columns or those `as_written`, the numbers of a column
    in which one is written as no number is, such as "01" and "0x1", or has more digits than a
    number keeps: card numbers of 19 digits would become one and the same.
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
        field.name: _ODD if pa.types.is_integer(field.type) else _LONG
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


def _all_keys(seen: list[pa.ChunkedArray], kind: str, path: Path) -> pa.ChunkedArray:
    """Return each key of a node type that has no file, once."""
    columns = [
        int64_ids(column, f"{path}: node type {kind!r}")
        if pa.types.is_integer(column.type)
        else column
        for column in seen
        if not pa.types.is_null(column.type)  # such rows are refused with their links
    ]
    types = sorted({str(column.type) for column in columns})
    if len(types) > 1:
        raise InputError(
            f"{path}: keys of {kind!r} are {' and '.join(types)} in different files. Write all as "
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
