"""The composition log (data contract 1) as flat arrays, every row checked."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.composition_rows import (
    BadRows,
    Unfolded,
    column_of,
    micros_of,
    owners_of,
    starts_of,
    take_ranges,
)
from telic.data.contracts import COMPOSITIONS, GROUPS, OPTIONAL, SIMULATED
from telic.data.tables import describe, none_if_empty, read_table
from telic.data.ubi import read_ubi
from telic.errors import InputError


@dataclass(frozen=True)
class CompositionLog:
    """Query compositions in order of submission, nested columns unfolded into flat arrays.

    Composition ``c`` owns the keystrokes ``keystroke_start[c]:keystroke_start[c + 1]``; keystroke
    ``k`` owns the suggestions ``list_start[k]:list_start[k + 1]``, best first. Texts are kept once:
    `query` and `shown` hold positions in `phrases`, `prefix` holds positions in `prefixes`.
    """

    users: list[str]
    """Distinct user ids, sorted."""
    user: np.ndarray
    """int32 (n,): position in `users`."""
    ids: list[str]
    phrases: list[str]
    """Every distinct query and suggestion, in the spelling of the log, white space tidied."""
    query: np.ndarray
    """int32 (n,): the submitted query."""
    submitted_at: np.ndarray
    """int64 (n,): microseconds since 1970, UTC; ascending."""
    selected: np.ndarray
    """int16 (n,): 1-based position of the selected suggestion; 0 where typed in full."""
    keystroke_start: np.ndarray
    """int64 (n + 1,)."""
    at: np.ndarray
    """int64 (K,): microseconds since 1970, UTC."""
    prefixes: list[str]
    prefix: np.ndarray
    """int32 (K,)."""
    list_start: np.ndarray
    """int64 (K + 1,)."""
    shown: np.ndarray
    """int32 (S,)."""
    source: str
    """What messages call the log: its file."""
    apps: list[str]
    """Distinct apps, installed or opened."""
    installed_start: np.ndarray
    """int64 (n + 1,): composition ``c`` owns ``installed_start[c]:installed_start[c + 1]``."""
    installed_app: np.ndarray
    """int32: position in `apps`."""
    daily_opens: np.ndarray
    """float64: how often the installed app is opened a day, on average."""
    opened_start: np.ndarray
    """int64 (n + 1,): as `installed_start`, for openings before the first keystroke."""
    opened_app: np.ndarray
    """int32: position in `apps`; the latest opening first, those of one moment by name."""
    opened_at: np.ndarray
    """int64: microseconds since 1970, UTC."""
    simulated: bool
    """Whether the file says that its people were simulated."""
    skipped: dict[str, int]
    """Rows left out by ``on_bad_row="skip"``: reason → count."""
    groups: dict[str, tuple[list[str | None], np.ndarray]] = field(default_factory=dict)
    """Tenants and networks, where the log says them: as of `telic.data.queries.QueryLog`."""

    def __len__(self) -> int:
        return len(self.query)


def read_compositions(
    source: str | Path | pa.Table,
    *,
    on_bad_row: Literal["raise", "skip"] = "raise",
    called: str = "",
) -> CompositionLog:
    """Read a composition log and check every row against the contract.

    Parameters
    ----------
    source : path or pyarrow.Table
        A Parquet file with the schema `telic.data.contracts.COMPOSITIONS`, such a table, or the
        folder that a service recorded to.
    on_bad_row : {"raise", "skip"}
        A row that breaks the contract raises, or is left out and counted in `skipped`. So is, in
        any case, what a folder's records do not tell whole.
    called : str, optional
        What messages call a table that was made of files.

    Raises
    ------
    InputError
        Naming file, row (the first is 1), column, what was expected and what to do.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> import pyarrow as pa
    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> table = pa.table({
    ...     "user": ["u"], "composition": ["c"], "query": ["facetime"],
    ...     "submitted_at": [start + timedelta(seconds=2)], "selected": [2],
    ...     "keystrokes": [[{"at": start, "prefix": "f", "suggestions": ["facebook", "facetime"]}]],
    ... })
    >>> log = read_compositions(table)
    >>> [log.phrases[q] for q in log.shown]
    ['facebook', 'facetime']
    """
    name = called or describe(source)
    left_out: dict[str, int] = {}
    if not isinstance(source, pa.Table) and Path(source).is_dir():
        source, left_out = read_ubi(source)
    table = read_table(source, COMPOSITIONS, optional=set(OPTIONAL), called=called)
    if not len(table):
        raise InputError(f"{name}: holds no composition. Expected one row per composition.")
    bad = BadRows(name, len(table), on_bad_row)
    parts = Unfolded(table)
    parts.check(table, bad)
    keep = np.flatnonzero(~bad.rows)
    if not len(keep):
        raise InputError(
            f"{name}: no row keeps the contract ({bad.summary()}). "
            "See docs/reference/data-contracts.md."
        )
    if len(keep) < len(table):
        parts = Unfolded(table := table.take(keep))
    # The lists' texts, most of the table, are numbers by now.
    table = table.drop_columns("keystrokes")
    return _log(parts, table, source=name, skipped=left_out | bad.reasons)


def _log(
    parts: Unfolded, table: pa.Table, *, source: str, skipped: dict[str, int]
) -> CompositionLog:
    n = len(table)
    submitted_at = micros_of(column_of(table, "submitted_at"))
    order = np.argsort(submitted_at, kind="stable")
    users = column_of(table, "user").dictionary_encode()
    names = users.dictionary.to_pylist()
    by_name = np.argsort(np.array(names, dtype=object), kind="stable")
    rank = np.empty(len(names), np.int32)
    rank[by_name] = np.arange(len(names))
    # Keystrokes, then suggestions, follow their composition into the new order.
    keystrokes = take_ranges(parts.keystroke_start, order)
    suggestions = take_ranges(starts_of(parts.list_lengths), keystrokes)
    if "selected" in table.column_names:
        selected = column_of(table, "selected").fill_null(0).to_numpy(zero_copy_only=False)
    else:
        selected = np.zeros(n, np.int16)
    ids = column_of(table, "composition").to_pylist()
    apps = pa.concat_arrays([parts.installed, parts.opened]).dictionary_encode()
    app = apps.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    opened_at, owner = micros_of(parts.opened_at), owners_of(parts.opened_start)
    installed = take_ranges(parts.installed_start, order)
    # Of one moment by name, as a service has them: which is listed first says nothing.
    by_app = pc.rank(parts.opened, tiebreaker="dense").to_numpy().astype(np.int64)
    latest_first = np.lexsort((by_app, -opened_at, owner))
    opened = latest_first[take_ranges(parts.opened_start, order)]
    return CompositionLog(
        users=[names[i] for i in by_name],
        user=rank[users.indices.to_numpy(zero_copy_only=False)][order],
        ids=[ids[i] for i in order],
        phrases=parts.texts.to_pylist(),
        query=parts.query[order],
        submitted_at=submitted_at[order],
        selected=selected[order],
        keystroke_start=starts_of(np.diff(parts.keystroke_start)[order]),
        at=micros_of(parts.at)[keystrokes],
        prefixes=parts.prefixes.to_pylist(),
        prefix=parts.prefix[keystrokes],
        list_start=starts_of(parts.list_lengths[keystrokes]),
        shown=parts.shown[suggestions],
        source=source,
        apps=apps.dictionary.to_pylist(),
        installed_start=starts_of(np.diff(parts.installed_start)[order]),
        installed_app=app[: len(parts.installed)][installed],
        daily_opens=parts.daily_opens.to_numpy(zero_copy_only=False).astype(float)[installed],
        opened_start=starts_of(np.diff(parts.opened_start)[order]),
        opened_app=app[len(parts.installed) :][opened],
        opened_at=opened_at[opened],
        simulated=is_simulated(table),
        skipped=skipped,
        groups=groups_of(table, order),
    )


def is_simulated(table: pa.Table) -> bool:
    """Say whether a log's table says that its people were simulated."""
    return (table.schema.metadata or {}).get(SIMULATED, b"false").lower() == b"true"


def groups_of(
    table: pa.Table, order: np.ndarray | slice = slice(None)
) -> dict[str, tuple[list[str | None], np.ndarray]]:
    """Return the distinct values of each column of groups and the position of each row's."""
    found = {}
    for name in GROUPS:
        if name in table.column_names:
            column = none_if_empty(column_of(table, name))
            coded = column.dictionary_encode(null_encoding="encode")
            place = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
            found[name] = (coded.dictionary.to_pylist(), place[order])
    return found
