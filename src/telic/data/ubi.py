"""Keystrokes and submissions in the form of User Behavior Insights (UBI), and back from it.

Version 1.3.0 of https://www.ubisearch.dev: one query record for each keystroke, one event for each
submission, a JSON object a line. What UBI leaves open is used like this. A keystroke's
`query_attributes` name its composition and its number in it; the objects that are returned are the
phrases of the list, best first. A submission's event carries the `query_id` of the composition's
last keystroke and the query as its `message`; it is a `select` at an ordinal position of that list
where the query was taken from it, a `submit` where it was typed in full. The published schema of
events asks that a name be either one of its list, such as `click`, or any text, and not both: taken
at its word, it refuses what it lists.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from telic.data.contracts import COMPOSITIONS, GROUPS, KEYSTROKE, OPTIONAL, TIMESTAMP
from telic.data.tables import times_of
from telic.errors import InputError

VERSION = "1.3.0"
APPLICATION = "type-ahead"
MAX_ID = 100
"""Longest id, in characters."""
QUERIES_GLOB, EVENTS_GLOB = "queries-*.jsonl", "events-*.jsonl"
"""The names of the files of a folder."""

_QUERY = pa.schema(
    [
        ("query_id", pa.string()),
        ("client_id", pa.string()),
        ("user_query", pa.string()),
        ("timestamp", pa.string()),
        ("query_response_hit_ids", pa.list_(pa.string())),
        (
            "query_attributes",
            pa.struct(
                [
                    ("composition", pa.string()),
                    ("keystroke", pa.int64()),
                    ("arm", pa.string()),
                    ("propensity", pa.float64()),
                    ("teams", pa.string()),
                    *((name, pa.string()) for name in GROUPS),
                ]
            ),
        ),
    ]
)
_EVENT = pa.schema(
    [
        ("query_id", pa.string()),
        ("message", pa.string()),
        ("timestamp", pa.string()),
        (
            "event_attributes",
            pa.struct([("position", pa.struct([("ordinal", pa.int64())]))]),
        ),
    ]
)


class Teams(NamedTuple):
    """Which of two rankings put each suggestion into a list that was drawn from both."""

    of_each: str
    """A digit for each: 0 of the first ranking, 1 of the second."""
    propensity: float
    """Probability with which these teams were drawn."""


class Arm(NamedTuple):
    """An arm of a trial, and with what probability a user is in it."""

    name: str
    propensity: float


def keystroke_record(
    *,
    composition: str,
    number: int,
    user: str,
    prefix: str,
    at: datetime,
    shown: list[str],
    arm: Arm | None = None,
    tenant: str | None = None,
    network: str | None = None,
    teams: Teams | None = None,
) -> dict[str, Any]:
    """Return the query record of one keystroke, the first being number 1."""
    more = {"arm": arm.name, "propensity": arm.propensity} if arm else {}
    more |= {"teams": teams.of_each, "propensity": teams.propensity} if teams else {}
    more |= {name: of for name, of in (("tenant", tenant), ("network", network)) if of}
    return {
        "application": APPLICATION,
        "query_id": f"{composition}.{number}",
        "client_id": user,
        "user_query": prefix,
        "timestamp": _written(at),
        "object_id_field": "phrase",
        "query_response_hit_ids": shown,
        "query_attributes": {"composition": composition, "keystroke": number} | more,
    }


def submission_record(
    *, composition: str, number: int, user: str, query: str, at: datetime, selected: int | None
) -> dict[str, Any]:
    """Return the event of a submission after keystroke `number`.

    `selected` is the query's place in that keystroke's list, 1 being the first, or None where it
    was typed in full.
    """
    record: dict[str, Any] = {
        "application": APPLICATION,
        "action_name": "select" if selected else "submit",
        "query_id": f"{composition}.{number}",
        "client_id": user,
        "timestamp": _written(at),
        "message_type": "QUERY",
        "message": query,
    }
    if selected:
        record["event_attributes"] = {
            "object": {"object_id": query, "object_id_field": "phrase"},
            "position": {"ordinal": selected},
        }
    return record


def read_ubi(folder: str | Path) -> tuple[pa.Table, dict[str, int]]:
    r"""Read what a service recorded as a composition log (data contract 1).

    Parameters
    ----------
    folder : path
        Of ``queries-*.jsonl`` and ``events-*.jsonl``.

    Returns
    -------
    compositions : pyarrow.Table
        In the order of their submission, with the schema `telic.data.contracts.COMPOSITIONS` less
        the columns of apps, which UBI has no place for; ``tenant`` and ``network`` where they were
        recorded, ``arm`` and ``propensity`` where arms of a trial were, and ``teams`` where the
        last list was drawn from two rankings.
    left_out : dict of str to int
        Why what is recorded is not in it → how often.

    Raises
    ------
    InputError
        If there is no such folder, it holds no submission, or a file is none of UBI's.

    Examples
    --------
    >>> import json, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> at = datetime(2026, 1, 1, tzinfo=UTC)
    >>> typed = keystroke_record(
    ...     composition="c", number=1, user="ada", prefix="te", at=at, shown=["tea", "ten"]
    ... )
    >>> sent = submission_record(
    ...     composition="c", number=1, user="ada", query="ten", at=at, selected=2
    ... )
    >>> _ = (folder / "queries-1.jsonl").write_text(json.dumps(typed) + "\n")
    >>> _ = (folder / "events-1.jsonl").write_text(json.dumps(sent) + "\n")
    >>> table, left_out = read_ubi(folder)
    >>> table.select(["user", "query", "selected"]).to_pylist(), left_out
    ([{'user': 'ada', 'query': 'ten', 'selected': 2}], {})
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. Name the one that the service records to.")
    left_out: Counter[str] = Counter()
    queries = _read_all(folder, QUERIES_GLOB, _QUERY, left_out)
    events = _read_all(folder, EVENTS_GLOB, _EVENT, left_out)
    if not len(events) and (folder / "manifest.json").exists():
        raise InputError(
            f"{folder}: is a saved model, and holds no searches. Name the files that it was fitted "
            "on; a model that is served is named alone."
        )
    if not len(events):
        raise InputError(
            f"{folder}: holds no submission in {EVENTS_GLOB}. Name a folder that a service records "
            "to, once somebody has searched."
        )
    named = pc.struct_field(queries["query_attributes"], "composition")
    number = pc.struct_field(queries["query_attributes"], "keystroke")
    usable = pc.and_(pc.is_valid(named), pc.greater(number, 0)).fill_null(False)
    left_out["queries that name no composition"] += (
        len(queries) - pc.sum(usable, min_count=0).as_py()
    )
    queries = (
        queries.append_column("composition", named)
        .append_column("number", number)
        .filter(usable)
        .sort_by([("composition", "ascending"), ("number", "ascending")])
        .combine_chunks()
    )
    try:
        found = _joined(queries, events, left_out)
    except pa.ArrowException as error:
        raise InputError(f"{folder}: holds a time or text that is none ({error}).") from None
    return found, {why: n for why, n in left_out.items() if n}


def of_tenant(table: pa.Table, tenant: str, folder: str | Path) -> pa.Table:
    """Return one tenant's compositions of those that `read_ubi` found: a log of its own.

    Raises
    ------
    InputError
        If it has none, naming the folder and the tenants that have.
    """
    there = "tenant" in table.column_names
    found = table.filter(pc.equal(table["tenant"], tenant).fill_null(False)) if there else table
    if not there or not len(found):
        named = ", ".join(sorted(set(table["tenant"].to_pylist()) - {None})) if there else "nobody"
        raise InputError(f"{folder}: holds no composition of tenant {tenant!r}, but of {named}.")
    return found


def _joined(queries: pa.Table, events: pa.Table, left_out: Counter[str]) -> pa.Table:
    """Return a composition for each event whose keystrokes are all there."""
    code = pc.rank(queries["composition"], tiebreaker="dense").to_numpy()
    place = np.column_stack([code.astype(np.int64), queries["number"].to_numpy()])
    new = np.append(True, (place[1:] != place[:-1]).any(axis=1))[: len(place)]
    left_out["queries that are repeated"] += int((~new).sum())
    queries, (code, number) = queries.filter(pa.array(new)).combine_chunks(), place[new].T
    said = pc.not_equal(pc.utf8_trim_whitespace(pc.fill_null(events["message"], "")), "")
    told = pc.and_(said, pc.is_valid(events["timestamp"]))
    left_out["submissions without a query or a time"] += len(events) - pc.sum(told).as_py()
    events = events.filter(told).combine_chunks()
    starts = np.searchsorted(code, code)  # where each keystroke's composition begins
    last = pc.index_in(events["query_id"], value_set=queries["query_id"].combine_chunks())
    row = last.fill_null(-1).to_numpy()
    untold = np.any(
        [queries[name].is_null() for name in ("client_id", "user_query", "timestamp")], 0
    )
    lists = queries["query_response_hit_ids"].combine_chunks()
    untold[pc.list_parent_indices(lists).filter(pc.list_flatten(lists).is_null())] = True
    blank = pc.equal(pc.fill_null(queries["user_query"], ""), "").to_numpy()
    order = np.lexsort((row, times_of(events["timestamp"].combine_chunks()).cast(pa.int64())))
    seen: set[int] = set()
    kept, firsts, lasts = [], [], []
    for e in order:
        if row[e] < 0:
            left_out["submissions without keystrokes"] += 1
            continue
        start, end = starts[row[e]], row[e] + 1
        first = start
        while first < end and blank[first]:
            first += 1  # a composition begins at its first character
        if first == end:
            left_out["submissions of which nothing was typed"] += 1
        elif number[start] != 1 or number[row[e]] != end - start:
            left_out["submissions with a keystroke missing"] += 1
        elif untold[first:end].any():
            left_out["submissions with a keystroke without a user, a text or a time"] += 1
        elif start in seen:
            left_out["submissions that are repeated"] += 1
        else:
            seen.add(start)
            kept.append(e)
            firsts.append(first)
            lasts.append(end)
    first, end = np.array(firsts, np.int64), np.array(lasts, np.int64)
    each = np.concatenate([np.arange(a, b) for a, b in zip(first, end, strict=True)] or [first])
    strokes, sent = queries.take(each).combine_chunks(), events.take(pa.array(kept, pa.int64()))
    keystrokes = pa.StructArray.from_arrays(
        [
            times_of(strokes["timestamp"].combine_chunks()).cast(TIMESTAMP),
            strokes["user_query"].combine_chunks(),
            strokes["query_response_hit_ids"].combine_chunks(),
        ],
        fields=list(KEYSTROKE),
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(end - first)]), pa.int32())
    position = pc.struct_field(pc.struct_field(sent["event_attributes"], "position"), "ordinal")
    of = queries.take(first)
    found = pa.table(
        {
            "user": of["client_id"],
            "composition": of["composition"],
            "query": sent["message"],
            "submitted_at": times_of(sent["timestamp"].combine_chunks()).cast(TIMESTAMP),
            "selected": position.cast(pa.int16()),
            "keystrokes": pa.ListArray.from_arrays(offsets, keystrokes),
        },
        schema=pa.schema([f for f in COMPOSITIONS if f.name not in OPTIONAL[1:]]),
    )
    said = of["query_attributes"].combine_chunks()
    # Each list of an interleaved composition is drawn; it tells of the last one.
    of_last = queries.take(end - 1)["query_attributes"].combine_chunks()
    teams = of_last.field("teams")
    propensity = pc.if_else(teams.is_valid(), of_last.field("propensity"), said.field("propensity"))
    columns = {name: said.field(name) for name in (*GROUPS, "arm")}
    for name, column in (columns | {"propensity": propensity, "teams": teams}).items():
        if column.null_count < len(column):
            found = found.append_column(name, column)
    return found


def _read_all(folder: Path, names: str, schema: pa.Schema, left_out: Counter[str]) -> pa.Table:
    tables = [_read(file, schema, left_out) for file in sorted(folder.glob(names))]
    return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()


def _read(file: Path, schema: pa.Schema, left_out: Counter[str]) -> pa.Table:
    content = file.read_bytes()
    whole = content.rfind(b"\n") + 1
    left_out["half-written lines at a file's end"] += whole < len(content)
    if not whole:
        return schema.empty_table()
    options = pyarrow.json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="ignore", newlines_in_values=False
    )
    try:
        return pyarrow.json.read_json(
            pa.BufferReader(pa.py_buffer(content).slice(0, whole)),
            read_options=pyarrow.json.ReadOptions(block_size=whole),
            parse_options=options,
        ).select(schema.names)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            f"{file}: is not UBI {VERSION} in JSON lines ({reason}). Move it out of the folder."
        ) from None


def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
