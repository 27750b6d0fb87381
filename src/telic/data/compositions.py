"""The composition log (data contract 1) as flat arrays, every row checked."""

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.bad_rows import BadRows, summary
from telic.data.composition_rows import (
    Unfolded,
    column_of,
    in_order,
    micros_of,
    owners_of,
    starts_of,
)
from telic.data.contracts import COMPOSITIONS, GROUPS, OPTIONAL, SIMULATED
from telic.data.growing_arrays import Growing, GrowingFile, let_go, trim
from telic.data.tables import describe, none_if_empty, read_table, table_pieces
from telic.data.ubi import read_ubi
from telic.errors import InputError

AT_ONCE = 1 << 20
"""Lengths that are added up at a time."""
PIECE = 1 << 14
"""Compositions that are read at a time: with their lists and apps they take some hundred MiB."""
LONG = {
    *("at", "prefix", "listed", "shown"),
    *("installed_app", "daily_opens", "opened_app", "opened_at"),
}
"""Columns of keystrokes, lists and apps, many for each composition: these can lie in files."""


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
    ids: pa.StringArray
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
    """float32, as files have it: how often the installed app is opened a day, on average."""
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
    folder: Path | None = None
    """On whose disk the columns of keystrokes, lists and apps lie, if not in memory."""
    groups: dict[str, tuple[list[str | None], np.ndarray]] = field(default_factory=dict)
    """Tenants and networks, where the log says them: as of `telic.data.queries.QueryLog`."""

    def __len__(self) -> int:
        return len(self.query)

    def let_go(self) -> None:
        """Give back what memory holds of columns that lie in files."""
        let_go(self.at, self.prefix, self.list_start, self.shown)
        let_go(self.installed_app, self.daily_opens, self.opened_app, self.opened_at)


def read_compositions(
    source: str | Path | pa.Table,
    *,
    on_bad_row: Literal["raise", "skip"] = "raise",
    called: str = "",
    folder: Path | None = None,
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
    folder : path, optional
        Keep the columns of keystrokes, lists and apps in temporary files on the disk of this
        folder, for a log that does not fit into memory.

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
    gathered, ids, before = _Gathered(folder), set[str](), 0
    for piece in table_pieces(source, COMPOSITIONS, PIECE):
        table = read_table(piece, COMPOSITIONS, optional=set(OPTIONAL), called=name, before=before)
        bad = BadRows(name, len(table), on_bad_row, before=before)
        parts = Unfolded(table)
        parts.check(table, bad, ids)
        keep = np.flatnonzero(~bad.rows)
        if len(keep) < len(table):
            parts = Unfolded(table := table.take(keep))
        gathered.add(parts, table, bad.reasons)
        before += len(piece)
    if not before:
        raise InputError(f"{name}: holds no composition. Expected one row per composition.")
    if not any(map(len, gathered.ids)):
        raise InputError(
            f"{name}: no row keeps the contract ({summary(gathered.bad)}). "
            "The documentation's page of data contracts says how."
        )
    del ids
    log = gathered.log(name, left_out)
    if folder is not None:
        trim()
    return log


class _Gathered:
    """The rows of the pieces so far, as they come; texts are numbers of all pieces' texts."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self.ids: list[pa.Array] = []
        self.bad: dict[str, int] = {}
        self._simulated = False
        self._texts: dict[str, dict[str | None, int]] = defaultdict(dict)
        self._columns: dict[str, Growing | GrowingFile] = {}

    def add(self, parts: Unfolded, table: pa.Table, bad: dict[str, int]) -> None:
        """Add the rows of a piece, and how many were left out for which reason."""
        for reason, count in bad.items():
            self.bad[reason] = self.bad.get(reason, 0) + count
        self._simulated |= is_simulated(table)
        self.ids.append(column_of(table, "composition"))
        selected = np.zeros(len(table), np.int16)
        if "selected" in table.column_names:
            selected = column_of(table, "selected").fill_null(0).to_numpy(zero_copy_only=False)
        texts = self._numbers("text", parts.texts.to_pylist())
        opened_at, owner = micros_of(parts.opened_at), owners_of(parts.opened_start)
        # Of one moment by name, as a service has them: which is listed first says nothing.
        by_app = pc.rank(parts.opened, tiebreaker="dense").to_numpy().astype(np.int64)
        latest = np.lexsort((by_app, -opened_at, owner))
        columns = {
            "user": self._coded("user", column_of(table, "user")),
            "query": texts[parts.query],
            "submitted_at": micros_of(column_of(table, "submitted_at")),
            "selected": selected,
            "typed": np.diff(parts.keystroke_start),
            "at": micros_of(parts.at),
            "prefix": self._numbers("prefix", parts.prefixes.to_pylist())[parts.prefix],
            "listed": parts.list_lengths,
            "shown": texts[parts.shown],
            "installed": np.diff(parts.installed_start),
            "installed_app": self._coded("app", parts.installed),
            "daily_opens": parts.daily_opens.to_numpy(zero_copy_only=False),
            "opened": np.diff(parts.opened_start),
            "opened_app": self._coded("app", parts.opened)[latest],
            "opened_at": opened_at[latest],
        }
        for role in GROUPS:
            if role in table.column_names:
                columns[role] = self._coded(role, none_if_empty(column_of(table, role)))
        for column, values in columns.items():
            if column not in self._columns:
                self._columns[column] = self._growing(column, values.dtype)
            self._columns[column].add(values)

    def _growing(self, name: str, kind: Any) -> Growing | GrowingFile:
        if self._folder is None or name not in LONG:
            return Growing(kind)
        return GrowingFile(self._folder, kind)

    def _coded(self, kind: str, column: pa.Array) -> np.ndarray:
        coded = column.dictionary_encode(null_encoding="encode")
        numbers = self._numbers(kind, coded.dictionary.to_pylist())
        return numbers[coded.indices.to_numpy(zero_copy_only=False)]

    def _numbers(self, kind: str, texts: list[str | None]) -> np.ndarray:
        """Number texts in order of their first appearance, over all pieces."""
        known = self._texts[kind]
        return np.array([known.setdefault(text, len(known)) for text in texts], np.int32)

    def log(self, source: str, left_out: dict[str, int]) -> CompositionLog:
        """Return the log: compositions in order of submission; nothing may be added after this."""
        trim()  # what reading took
        # Taken away from here, a column is let go once it is in order.
        columns = {name: self._columns.pop(name).values() for name in [*self._columns]}
        order = np.argsort(columns["submitted_at"], kind="stable")
        ids = pa.chunked_array(self.ids).combine_chunks()
        if (np.diff(order) != 1).any():
            self._sort(columns, order)
            ids = ids.take(pa.array(order))
        names = list(self._texts["user"])
        by_name = np.argsort(np.array(names, dtype=object), kind="stable")
        rank = np.empty(len(names), np.int32)
        rank[by_name] = np.arange(len(names))
        return CompositionLog(
            users=[str(names[i]) for i in by_name],
            user=rank[columns["user"]],
            ids=ids,
            phrases=[str(text) for text in self._texts["text"]],
            query=columns["query"],
            submitted_at=columns["submitted_at"],
            selected=columns["selected"],
            keystroke_start=starts_of(columns["typed"]),
            at=columns["at"],
            prefixes=[str(text) for text in self._texts["prefix"]],
            prefix=columns["prefix"],
            list_start=self._starts(columns["listed"]),
            shown=columns["shown"],
            source=source,
            apps=[str(app) for app in self._texts["app"]],
            installed_start=starts_of(columns["installed"]),
            installed_app=columns["installed_app"],
            daily_opens=columns["daily_opens"],
            opened_start=starts_of(columns["opened"]),
            opened_app=columns["opened_app"],
            opened_at=columns["opened_at"],
            simulated=self._simulated,
            skipped=left_out | self.bad,
            folder=self._folder,
            groups={
                role: (list(self._texts[role]), columns[role]) for role in GROUPS if role in columns
            },
        )

    def _sort(self, columns: dict[str, np.ndarray], order: np.ndarray) -> None:
        """Put compositions in order, with their keystrokes, lists and apps."""
        starts = {name: starts_of(columns[name]) for name in ("typed", "installed", "opened")}
        lists = self._starts(columns["listed"])[starts["typed"]]
        owned = {
            **dict.fromkeys(("at", "prefix", "listed"), starts["typed"]),
            "shown": lists,
            **dict.fromkeys(("installed_app", "daily_opens"), starts["installed"]),
            **dict.fromkeys(("opened_app", "opened_at"), starts["opened"]),
        }
        for name, values in columns.items():
            start = owned.get(name)
            if start is None:
                columns[name] = values[order]
            else:
                columns[name] = in_order(values, start, order, self._growing(name, values.dtype))
                let_go(values)

    def _starts(self, lengths: np.ndarray) -> np.ndarray:
        """Return `starts_of`, in a file where the lengths are."""
        if self._folder is None:
            return starts_of(lengths)
        starts = GrowingFile(self._folder, np.int64)
        starts.add(np.zeros(1))
        end = 0
        for first in range(0, len(lengths), AT_ONCE):
            ends = np.cumsum(lengths[first : first + AT_ONCE]) + end
            starts.add(ends)
            end = ends[-1]
        return starts.values()


def is_simulated(table: pa.Table) -> bool:
    """Say whether a log's table says that its people were simulated."""
    return (table.schema.metadata or {}).get(SIMULATED, b"false").lower() == b"true"


def group_columns(table: pa.Table) -> dict[str, tuple[list[str | None], np.ndarray]]:
    """Return the distinct values of each column of groups and the position of each row's."""
    found = {}
    for name in GROUPS:
        if name in table.column_names:
            column = none_if_empty(column_of(table, name))
            coded = column.dictionary_encode(null_encoding="encode")
            place = coded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
            found[name] = (coded.dictionary.to_pylist(), place)
    return found
