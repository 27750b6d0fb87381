"""Query logs, of data contract 2 or as AOL, AmazonQAC and others have them: what was searched."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.bad_rows import OnBadRow
from telic.data.compositions import CompositionLog, group_columns
from telic.data.contracts import GROUPS, MAX_COUNT, MAX_TEXT, QUERIES
from telic.data.phrase_rows import checked_rows
from telic.data.pieces import Pieces
from telic.data.recognised_columns import Shape
from telic.data.tables import (
    describe,
    one_chunk,
    read_table,
    tidied,
    times_of,
    unmatchable,
)
from telic.errors import InputError


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
    of_catalogue: np.ndarray | None = None
    """bool (m,): see `vouched`. None: all are, if nobody is named."""

    @property
    def vouched(self) -> np.ndarray:
        """Mark the submissions that count for as many users as it takes to suggest their query.

        Bool (m,). They are all those of a log without users, such as a catalogue. Of a file with a
        column of users, a row without one is of a person, too, who is perhaps one of these; also
        where no row that can be used has one.
        """
        if self.of_catalogue is not None:
            return self.of_catalogue
        return np.full(len(self.query), all(name is None for name in self.users))


def read_queries(source: str | Path | pa.Table) -> QueryLog:
    """Read a query log or catalogue of data contract 2 from Parquet or CSV.

    Parameters
    ----------
    source : path or pyarrow.Table
        Columns `query`, `at`, and optionally `user`, `tenant`, `network` (null allowed) and
        `count` (default 1).

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
    table = read_table(source, QUERIES, optional={"user", "count", *GROUPS})
    n = len(table)
    for name in ("query", "at"):
        _refuse(source, table[name].is_null().to_numpy(), name, "is null, expected a value")
    texts = tidied(one_chunk(table["query"])).dictionary_encode()
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
    listed = np.full(n, "user" not in table.column_names)
    return QueryLog(
        queries, query, at, users, user, count, groups=group_columns(table), of_catalogue=listed
    )


def read_query_log(pieces: Pieces, shape: Shape, *, on_bad_row: OnBadRow = "raise") -> QueryLog:
    """Read a query log in any form that has a phrase and a time in each row.

    Of AmazonQAC's test split the past search terms count too, each once. AOL's log repeats a row
    for each result that was opened: rows that repeat user, query and time of the row before count
    once.
    Takes and raises what `telic.data.phrases.read_list` does.
    """
    skipped: dict[str, int] = {}
    numbers: dict[str, int] = {}
    users: dict[str | None, int] = {None: 0}
    parts: list[tuple[np.ndarray, ...]] = [(np.empty(0),) * 4]
    groups: dict[str, dict[str | None, int]] = {role: {} for role in GROUPS if role in shape.roles}
    placed: dict[str, list[np.ndarray]] = {role: [] for role in groups}
    if groups and ("past" in shape.roles or shape.name.startswith("AOL")):
        raise InputError(f"{pieces.path}: {shape.name} has no {' or '.join(groups)}.")
    last = np.full((1, 3), -1)  # of the piece before: a search may go on in the next piece
    for _, part in checked_rows(pieces, shape, on_bad_row, skipped):
        for role, values in groups.items():
            placed[role].append(_numbered(part[role], values))
        n = len(part)
        query = _numbered(part["phrase"], numbers)
        at = one_chunk(part["at"]).cast(pa.int64()).to_numpy(zero_copy_only=False)
        user = _numbered(part["user"], users) if "user" in part.column_names else np.zeros(n, int)
        count = part["weight"].to_numpy() if "weight" in part.column_names else np.ones(n)
        if "past" in part.column_names:
            query, at, user, count = _with_past(part["past"], numbers, query, at, user)
        if shape.name.startswith("AOL"):
            rows = np.vstack([last, np.column_stack([query, at, user])])
            new = (rows[1:] != rows[:-1]).any(axis=1)
            last = rows[-1:]
            query, at, user, count = query[new], at[new], user[new], count[new]
        parts.append((query, at, user, count))
    kinds = "int32", "int64", "int32", "float64"
    query, at, user, count = (
        np.concatenate(columns).astype(kind) for kind, *columns in zip(kinds, *parts, strict=True)
    )
    of = {
        role: (list(values), np.concatenate([np.empty(0), *placed[role]]).astype(np.int32))
        for role, values in groups.items()
    }
    if "past" in shape.roles:  # of a session that has several rows they say it again
        _, first = np.unique(np.column_stack([user, query, at]), axis=0, return_index=True)
        first.sort()
        query, at, user, count = query[first], at[first], user[first], count[first]
    listed = np.full(len(query), "user" not in shape.roles)
    return QueryLog(list(numbers), query, at, list(users), user, count, skipped, of, listed)


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


def only_tenant(logs: Sequence[QueryLog | CompositionLog]) -> str | None:
    """Return the one tenant of logs, None if they name none.

    Raises
    ------
    InputError
        If there are several, or some rows are nobody's: a model would mix their queries.
    """
    tenants, place = joined_group(logs, "tenant")
    if len(tenants) > 1 or (tenants and place.min() < 0):
        raise InputError(
            "a log names tenants, whose queries a model of a composition log would mix. "
            "Fit each tenant's own compositions (telic completion export-log --tenant "
            "NAME), or leave the column 'tenant' out."
        )
    return tenants[0] if tenants else None


def _with_past(
    past: pa.ChunkedArray, numbers: dict, query: np.ndarray, at: np.ndarray, user: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Add the earlier submissions that AmazonQAC's test split gives in each row: (term, time)."""
    before = [(u, *pair) for u, pairs in zip(user, past.to_pylist(), strict=True) for pair in pairs]
    times = times_of(pa.array([time for _, _, time in before], pa.string())).cast(pa.int64())
    earlier = [numbers.setdefault(term, len(numbers)) for _, term, _ in before]
    query = np.concatenate([earlier, query]).astype(np.int64)
    at = np.concatenate([times.to_numpy(zero_copy_only=False), at]).astype(np.int64)
    user = np.concatenate([[u for u, _, _ in before], user]).astype(np.int64)
    return query, at, user, np.ones(len(query))


def _numbered(column: pa.ChunkedArray, numbers: dict) -> np.ndarray:
    """Number texts in order of their first appearance, over all pieces."""
    coded = one_chunk(column).dictionary_encode(null_encoding="encode")
    texts = coded.dictionary.to_pylist()
    known = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    return known[coded.indices.to_numpy(zero_copy_only=False)]


def _refuse(source: str | Path | pa.Table, rows: np.ndarray, column: str, reason: str) -> None:
    if rows.any():
        row = int(np.argmax(rows)) + 1
        raise InputError(
            f"{describe(source)}: row {row}: column {column!r}: {reason}. Correct the row."
        )
