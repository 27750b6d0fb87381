"""AmazonQAC: sessions of real searches with the prefixes that were typed."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from telic.data.contracts import COMPOSITIONS, OPTIONAL, TIMESTAMP
from telic.data.pieces import open_pieces
from telic.data.tables import describe, is_text, read_table, refuse_repeated
from telic.errors import InputError


def read_amazon_qac(source: str | Path | pa.Table) -> pa.Table:
    """Read AmazonQAC as a composition log (contract 1) without lists: it holds none.

    Keystroke times between the first and the submission are not published; they are spaced evenly,
    so nothing may be learned from dwell. Sessions stand for users. Of the test split's rows the one
    published prefix is the one keystroke; its ``past_search_terms`` are no compositions (see
    `telic.data.queries.read_query_log` for them).

    Parameters
    ----------
    source : path or pyarrow.Table
        Parquet or JSON lines with ``session_id``, ``query_id``, ``final_search_term``,
        ``search_time``, and ``prefixes`` with ``first_prefix_typed_time`` or ``prefix`` with
        ``prefix_typed_time``. Times may be text; without a zone they are UTC. Read in pieces.

    Raises
    ------
    InputError
        If a column is missing, or a row has no prefix or times in a wrong order.
    """
    named = ["session_id", "query_id", "final_search_term", "search_time"]
    called = describe(source)
    if isinstance(source, pa.Table):
        held, read = source.column_names, lambda _: iter([source])
    else:
        opened = open_pieces(source)
        held, read = opened.columns, opened.read
    test = "prefix" in held and "prefixes" not in held
    first = "prefix_typed_time" if test else "first_prefix_typed_time"
    named += ["prefix" if test else "prefixes", first]
    refuse_repeated(called, held, named)
    if all(name in held for name in named):
        pieces = read(named)
    else:
        pieces = iter([pa.table(dict.fromkeys(held, pa.nulls(0)))])
    schema = pa.schema(
        [
            ("session_id", pa.string()),
            ("query_id", pa.string()),
            ("prefix", pa.string()) if test else ("prefixes", pa.list_(pa.string())),
            (first, TIMESTAMP),
            ("final_search_term", pa.string()),
            ("search_time", TIMESTAMP),
        ]
    )
    out, number = [], 0
    columns = [f for f in COMPOSITIONS if f.name not in OPTIONAL]
    for piece in pieces:
        if not test and "prefixes" in piece.column_names and is_text(piece["prefixes"].type):
            lists = [
                texts_in_json(text, f"{called}: row {row}")
                for row, text in enumerate(piece["prefixes"].to_pylist(), number + 1)
            ]
            at = piece.column_names.index("prefixes")
            piece = piece.set_column(at, "prefixes", pa.array(lists, pa.list_(pa.string())))
        rows = []
        for row in read_table(piece, schema, called=called, before=number).to_pylist():
            number += 1
            rows.append(_amazon_composition(row, first, f"{called}: row {number}"))
        out.append(pa.Table.from_pylist(rows, schema=pa.schema(columns)))
    return pa.concat_tables(out)


def texts_in_json(text: str | None, where: str) -> list[str | None] | None:
    """Read a list of texts that is written as JSON."""
    if text is None:
        return None
    try:
        read = json.loads(text)
        if not isinstance(read, list):  # of a text Arrow would make a list of its letters
            raise TypeError
        pa.array(read, pa.string())
    except (ValueError, TypeError, RecursionError):
        raise InputError(
            f"{where}: column 'prefixes': {text[:60]!r} is no list of texts in JSON, expected such "
            'as ["t", "te"]. Correct it.'
        ) from None
    return read


def _amazon_composition(row: dict[str, Any], first: str, where: str) -> dict[str, Any]:
    begin, end = row[first], row["search_time"]
    typed = row["prefixes"] if "prefixes" in row else [row["prefix"]]
    typed = [prefix for prefix in typed or () if prefix]
    # Searches are published to the second, prefixes to the millisecond.
    if begin is not None and end is not None and end < begin < end + dt.timedelta(seconds=1):
        end = begin
    if begin is None or end is None or end < begin or not typed:
        raise InputError(
            f"{where}: expected prefixes, and a search time that is not before the first prefix. "
            "Drop the row."
        )
    strokes = [
        {"at": begin + (end - begin) * i / len(typed), "prefix": prefix, "suggestions": []}
        for i, prefix in enumerate(typed)
    ]
    return {
        "user": row["session_id"],
        "composition": row["query_id"],
        "query": row["final_search_term"],
        "submitted_at": end,
        "keystrokes": strokes,
    }
