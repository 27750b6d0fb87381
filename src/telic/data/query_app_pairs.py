"""Published logs of queries and apps: ISTAS, LSApp, UniMobile."""

import datetime as dt
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from telic.data.contracts import TIMESTAMP
from telic.data.csv_files import csv_table, ending_of, quoted_cells
from telic.data.tables import describe, one_chunk, read_table
from telic.errors import InputError


@dataclass(frozen=True)
class QueryAppPairs:
    """Queries that people typed and the app that each was meant for."""

    workers: list[str]
    worker: np.ndarray
    """int64 (n,): position in `workers`."""
    tasks: list[str]
    task: np.ndarray
    """int64 (n,): position in `tasks`: the situation in which the query was typed."""
    queries: list[str]
    query: np.ndarray
    """int64 (n,): position in `queries`."""
    apps: list[str]
    app: np.ndarray
    """int64 (n,): position in `apps`."""

    def __len__(self) -> int:
        return len(self.query)


def read_pairs(source: str | Path | pa.Table) -> QueryAppPairs:
    """Read UniMobile's or ISTAS' query–app pairs.

    Parameters
    ----------
    source : path or pyarrow.Table
        Parquet or CSV with UniMobile's columns ``WorkerId``, ``TaskId``, ``q``, ``app``, or with
        ``user``, ``query``, ``app`` (the target app); or ISTAS' JSON file, see `read_istas`. A row
        without a task is its own situation.

    Raises
    ------
    InputError
        If a column is missing or a query or app is empty.

    Examples
    --------
    >>> pairs = read_pairs(pa.table({"user": ["a"], "query": ["rain"], "app": ["weather"]}))
    >>> pairs.apps
    ['weather']
    """
    named = [("WorkerId", "user"), ("TaskId", "task"), ("q", "query"), ("app", "app")]
    text = pa.schema([(name, pa.string()) for pair in named for name in dict.fromkeys(pair)])
    called = describe(source)  # what is read of a file is a table, and has no name
    if not isinstance(source, pa.Table) and Path(source).suffix.lower() == ".json":
        source = read_istas(source)
    table = read_table(source, text, optional=set(text.names) - {"app"}, called=called)
    columns = []
    for first, second in named:
        name = first if first in table.column_names else second
        if name in table.column_names:
            column = one_chunk(table[name])
        elif second == "task":
            column = pa.array(np.arange(len(table)).astype(str), pa.string())
        else:
            raise InputError(
                f"{called}: has neither {first!r} (UniMobile) nor {second!r} (ISTAS) "
                f"among its columns {table.column_names}."
            )
        bad = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True)
        row = pc.index(bad, True).as_py()
        if row >= 0:
            raise InputError(f"{called}: row {row + 1}: column {name!r} is empty. Drop the row.")
        codes = column.dictionary_encode()
        columns += [codes.dictionary.to_pylist(), codes.indices.to_numpy().astype(np.int64)]
    return QueryAppPairs(*columns)


def read_istas(source: str | Path) -> pa.Table:
    """Read ISTAS' JSON file: queries, the apps they were meant for, and what was used before.

    Parameters
    ----------
    source : path
        As published: ``timestamp``, ``UserID``, ``Query``, ``App`` and ``AppUsages``, an object
        whose ``Duration`` maps apps to milliseconds of use in the 24 hours before; by columns, as
        pandas writes it, or a list of such rows.

    Returns
    -------
    pyarrow.Table
        ``user``, ``at``, ``query``, ``app``, and ``used``: a list of ``app`` and ``seconds``, the
        longest used first. `read_pairs` takes it.

    Raises
    ------
    InputError
        If the file is no such JSON; names the row.
    """
    try:
        held = json.loads(Path(source).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{source}: not a readable JSON file ({error}).") from None
    names = ("UserID", "timestamp", "Query", "App", "AppUsages")
    if isinstance(held, dict):
        columns: list[dict[str, Any]] = [
            column for name in names if isinstance(column := held.get(name), dict)
        ]
        if len(columns) < len(names):
            raise InputError(f"{source}: expected the columns {', '.join(names)}.")
        held = [
            {name: column.get(key) for name, column in zip(names, columns, strict=True)}
            for key in held["Query"]
        ]
    if not isinstance(held, list):
        raise InputError(f"{source}: expected the columns {', '.join(names)} or a list of rows.")
    rows = []
    for number, row in enumerate(held, 1):
        try:
            used = (row["AppUsages"] or {}).get("Duration") or {}
            longest = sorted(used.items(), key=lambda item: -float(item[1]))
            if not all(0 <= float(ms) < math.inf for _, ms in longest):
                raise ValueError("a duration must be a number >= 0")
            if not isinstance(row["Query"], str) or not isinstance(row["App"], str):
                raise TypeError("the query and the app must be strings")
            rows.append(
                {
                    "user": str(row["UserID"]),
                    "at": _moment(row["timestamp"]),
                    "query": row["Query"],
                    "app": row["App"],
                    "used": [{"app": app, "seconds": float(ms) / 1000} for app, ms in longest],
                }
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(
                f"{source}: row {number}: expected {', '.join(names)} ({error!r}). Correct the row."
            ) from None
    used_type = pa.list_(pa.struct([("app", pa.string()), ("seconds", pa.float64())]))
    schema = pa.schema(
        [
            ("user", pa.string()),
            ("at", TIMESTAMP),
            ("query", pa.string()),
            ("app", pa.string()),
            ("used", used_type),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def read_app_usage(source: str | Path | pa.Table) -> pa.Table:
    """Read LSApp's app usage as openings: ``user``, ``app``, ``at``, in time order.

    Parameters
    ----------
    source : path or pyarrow.Table
        Parquet, CSV or LSApp's tab-separated file with the columns ``user_id``, ``session_id``,
        ``timestamp``, ``app_name``, ``event_type``. Only the events "Opened" are openings.
    """
    kinds = [
        ("user_id", pa.string()),
        ("timestamp", TIMESTAMP),
        ("app_name", pa.string()),
        ("event_type", pa.string()),
    ]
    table = read_table(
        _tab_separated(source), pa.schema(kinds), optional={"event_type"}, called=describe(source)
    )
    for name in ("user_id", "timestamp", "app_name"):
        column = table[name]
        bad = column.is_null()
        if pa.types.is_string(column.type):
            bad = pc.or_(bad, pc.fill_null(pc.equal(pc.utf8_trim_whitespace(column), ""), True))
        row = pc.index(bad, True).as_py()
        if row >= 0:
            raise InputError(f"{describe(source)}: row {row + 1}: {name!r} is empty. Drop the row.")
    if "event_type" in table.column_names:
        kind = pc.utf8_lower(table["event_type"])
        table = table.filter(pc.fill_null(pc.equal(kind, "opened"), False))
    found = table.select(["user_id", "app_name", "timestamp"])
    return found.rename_columns(["user", "app", "at"]).sort_by([("at", "ascending")])


def _moment(at: str | int) -> dt.datetime:
    """Read a time as pandas writes it: text without a zone, or milliseconds since 1970; UTC."""
    if isinstance(at, int):
        return dt.datetime.fromtimestamp(at / 1000, dt.UTC)
    read = dt.datetime.fromisoformat(at)
    return read if read.tzinfo else read.replace(tzinfo=dt.UTC)


def _tab_separated(source: str | Path | pa.Table) -> str | Path | pa.Table:
    if isinstance(source, pa.Table) or ending_of(Path(source)) not in (".tsv", ".txt"):
        return source
    return csv_table(Path(source), parse_options=quoted_cells("\t"))
