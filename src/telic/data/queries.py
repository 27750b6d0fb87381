"""The query log (data contract 2): submissions that count towards popularity."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.compositions import CompositionLog
from telic.data.contracts import MAX_TEXT, QUERIES
from telic.data.tables import describe, one_chunk, read_table, unmatchable
from telic.errors import InputError

MAX_COUNT = 1e12
"""Most submissions that a row may stand for: sums of such counts stay exact enough to subtract."""


@dataclass(frozen=True)
class QueryLog:
    """Submissions of queries: who, what, when, how often."""

    queries: list[str]
    """Distinct queries."""
    query: np.ndarray
    """int32 (m,): position in `queries`."""
    at: np.ndarray
    """int64 (m,): microseconds since 1970, UTC."""
    users: list[str | None]
    """Distinct users; None where nobody is named."""
    user: np.ndarray
    """int32 (m,): position in `users`."""
    count: np.ndarray
    """float64 (m,): submissions that the row stands for."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows left out because they could not be used: reason → count."""
    groups: dict[str, tuple[list[str | None], np.ndarray]] = field(default_factory=dict)
    """Where the log says them, ``"tenant"`` and ``"network"`` of the user: the distinct ones, and
    int32 (m,), the position of each submission's."""


def read_queries(source: str | Path | pa.Table) -> QueryLog:
    """Read a query log or catalogue from Parquet or CSV.

    Parameters
    ----------
    source : path or pyarrow.Table
        Columns `query`, `at`, and optionally `user` (null allowed) and `count` (default 1).

    Raises
    ------
    InputError
        Naming file, row (the first is 1) and column.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> import pyarrow as pa
    >>> read_queries(pa.table({"query": ["face"], "at": [datetime(2026, 1, 1, tzinfo=UTC)]})).count
    array([1.])
    """
    table = read_table(source, QUERIES, optional={"user", "count"})
    n = len(table)
    for name in ("query", "at"):
        _refuse(source, table[name].is_null().to_numpy(), name, "is null, expected a value")
    texts = one_chunk(table["query"]).dictionary_encode()
    queries = texts.dictionary.to_pylist()
    query = texts.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    blank, length = unmatchable(texts.dictionary), pc.utf8_length(texts.dictionary).to_numpy()
    _refuse(
        source, blank[query], "query", "is empty or all white space and diacritics, expected text"
    )
    _refuse(source, length[query] > MAX_TEXT, "query", f"is longer than {MAX_TEXT} characters")
    count = np.ones(n)
    if "count" in table.column_names:
        count = one_chunk(table["count"]).fill_null(1.0).to_numpy(zero_copy_only=False)
        wrong = ~((count >= 0) & (count <= MAX_COUNT))
        _refuse(source, wrong, "count", f"is not a number from 0 to {MAX_COUNT:g}")
    users: list[str | None] = [None]
    user = np.zeros(n, np.int32)
    if "user" in table.column_names:
        names = one_chunk(table["user"]).dictionary_encode()
        users += names.dictionary.to_pylist()
        user = (names.indices.fill_null(-1).to_numpy(zero_copy_only=False) + 1).astype(np.int32)
    at = one_chunk(table["at"]).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return QueryLog(queries, query, at, users, user, count)


def joined_group(
    logs: Sequence[QueryLog | CompositionLog], name: str
) -> tuple[list[str], np.ndarray]:
    """Return the distinct tenants or networks of logs, and each submission's; -1 where unknown."""
    numbers: dict[str | None, int] = {None: -1}
    parts = [np.empty(0, np.int64)]
    for log in logs:
        values, place = log.groups.get(name, ([None], np.zeros(len(log.query), np.int32)))
        parts.append(np.array([numbers.setdefault(v, len(numbers) - 1) for v in values])[place])
    return [value for value in numbers if value is not None], np.concatenate(parts)


def _refuse(source: str | Path | pa.Table, rows: np.ndarray, column: str, reason: str) -> None:
    if rows.any():
        row = int(np.argmax(rows)) + 1
        raise InputError(
            f"{describe(source)}: row {row}: column {column!r}: {reason}. Correct the row."
        )
