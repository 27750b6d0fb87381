"""The composition log (data contract 1) as flat arrays, every row checked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.contracts import (
    COMPOSITIONS,
    INSTALLED_APP,
    MAX_TEXT,
    OPENED_APP,
    SIMULATED,
)
from telic.data.tables import describe, one_chunk, read_table, unmatchable
from telic.errors import InputError

MAX_LIST = 1000
"""Longest suggestion list accepted."""
MAX_DAILY_OPENS = 100_000.0
"""More openings of one app a day than that (one a second) are no counts of a person's."""


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
    """Every distinct query and suggestion, in the spelling of the log."""
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
    """int32: position in `apps`; the latest opening first."""
    opened_at: np.ndarray
    """int64: microseconds since 1970, UTC."""
    simulated: bool
    """Whether the file says that its people were simulated."""
    skipped: dict[str, int]
    """Rows left out by ``on_bad_row="skip"``: reason → count."""

    def __len__(self) -> int:
        return len(self.query)


def read_compositions(
    source: str | Path | pa.Table, *, on_bad_row: Literal["raise", "skip"] = "raise"
) -> CompositionLog:
    """Read a composition log and check every row against the contract.

    Parameters
    ----------
    source : path or pyarrow.Table
        A Parquet file with the schema `telic.data.contracts.COMPOSITIONS`, or such a table.
    on_bad_row : {"raise", "skip"}
        A row that breaks the contract raises, or is left out and counted in `skipped`.

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
    table = read_table(source, COMPOSITIONS, optional={"installed", "opened", "selected"})
    name = describe(source)
    if not len(table):
        raise InputError(f"{name}: holds no composition. Expected one row per composition.")
    bad = _Bad(name, len(table), on_bad_row)
    parts = _Parts(table)
    parts.check(bad)
    keep = np.flatnonzero(~bad.rows)
    if not len(keep):
        raise InputError(
            f"{name}: no row keeps the contract ({bad.summary()}). See docs/data-contracts.md."
        )
    if len(keep) < len(table):
        parts = _Parts(table := table.take(keep))
    return parts.log(
        table, source=name, simulated=_says_simulated(table), skipped=bad.reasons
    )  # fmt: skip


def _says_simulated(table: pa.Table) -> bool:
    return (table.schema.metadata or {}).get(SIMULATED, b"false").lower() == b"true"


def _column(table: pa.Table, name: str) -> pa.Array:
    return one_chunk(table[name])


class _Bad:
    """Collects broken rows: the first one raises, or all are counted by reason."""

    def __init__(self, source: str, n: int, on_bad_row: str) -> None:
        if on_bad_row not in ("raise", "skip"):
            raise InputError(f"on_bad_row is {on_bad_row!r}, expected 'raise' or 'skip'.")
        self.source, self.skip = source, on_bad_row == "skip"
        self.rows = np.zeros(n, bool)
        self.reasons: dict[str, int] = {}

    def add(
        self,
        rows: np.ndarray,
        column: str,
        reason: str,
        todo: str,
        value: Callable[[int], object] | None = None,
    ) -> None:
        """Mark rows (a mask); `reason` says what is wrong and what was expected.

        `value` gives what the row holds, where the reason does not say it already.
        """
        new = rows & ~self.rows
        if not new.any():
            return
        if not self.skip:
            row = int(np.argmax(new))
            found = f"{value(row)!r} " if value else ""
            raise InputError(
                f"{self.source}: row {row + 1}: column {column!r}: {found}{reason}. "
                f"{todo} Or skip such rows with on_bad_row='skip' (--skip-bad-rows)."
            )
        self.rows |= new
        self.reasons[f"{column}: {reason}"] = int(new.sum())

    def summary(self) -> str:
        return "; ".join(f"{reason}: {count} rows" for reason, count in self.reasons.items())


class _Parts:
    """The nested columns of a log, unfolded."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        keystrokes = _column(table, "keystrokes")
        lengths = pc.fill_null(pc.list_value_length(keystrokes), 0).to_numpy(zero_copy_only=False)
        self.keystroke_start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.owner = np.repeat(np.arange(len(lengths)), lengths)
        flat = keystrokes.flatten()
        self.at = pc.struct_field(flat, "at")
        self.prefix = pc.struct_field(flat, "prefix")
        lists = pc.struct_field(flat, "suggestions")
        self.list_lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(
            zero_copy_only=False
        )
        self.shown = lists.flatten()
        self.installed_start, installed = _nested(table, "installed", INSTALLED_APP)
        self.installed, self.daily_opens = installed.flatten()
        self.opened_start, opened = _nested(table, "opened", OPENED_APP)
        self.opened, self.opened_at = opened.flatten()

    def check(self, bad: _Bad) -> None:
        table, n = self.table, len(self.table)
        for name in ("user", "composition", "query", "submitted_at", "keystrokes"):
            nulls = table[name].is_null().to_numpy()
            bad.add(nulls, name, "is null, expected a value", "Fill it in.")
        empty_user = pc.equal(table["user"], "").fill_null(False).to_numpy()
        bad.add(empty_user, "user", "is empty, expected an id", "Fill it in.")
        ids = _column(table, "composition").dictionary_encode().indices
        codes = ids.fill_null(-1).to_numpy(zero_copy_only=False)
        _, first = np.unique(codes, return_index=True)
        repeated = np.ones(n, bool)
        repeated[first] = False
        bad.add(
            repeated & (codes >= 0), "composition", "repeats an id, expected it unique",
            "Give every composition its own.", lambda row: str(table["composition"][row]),
        )  # fmt: skip
        length = _lengths(table["query"])
        bad.add(
            unmatchable(_column(table, "query")), "query",
            "is empty or all white space and diacritics, expected text", "Fill it in.",
        )  # fmt: skip
        bad.add(length > MAX_TEXT, "query", f"is longer than {MAX_TEXT} characters", "Shorten it.")
        count = np.diff(self.keystroke_start)
        bad.add(count == 0, "keystrokes", "is empty, expected at least one keystroke", "Add it.")
        self._check_keystrokes(bad)
        self._check_apps(bad)
        if "selected" in table.column_names:
            selected = _column(table, "selected").fill_null(1).to_numpy(zero_copy_only=False)
            last = np.zeros(n, np.int64)
            has = count > 0
            last[has] = self.list_lengths[self.keystroke_start[1:][has] - 1]
            given = table["selected"].is_valid().to_numpy()
            bad.add(
                given & ((selected < 1) | (selected > last)), "selected",
                "is not a position in the last list (1 is the first)", "Use null if typed in full.",
                lambda row: int(selected[row]),
            )  # fmt: skip

    def _check_keystrokes(self, bad: _Bad) -> None:
        def rows(mask: np.ndarray) -> np.ndarray:
            return _rows(mask, self.owner, len(self.table))

        nulls = self.at.is_null().to_numpy(zero_copy_only=False)
        bad.add(rows(nulls), "keystrokes.at", "is null, expected a time", "Fill it in.")
        nulls = self.prefix.is_null().to_numpy(zero_copy_only=False)
        bad.add(rows(nulls), "keystrokes.prefix", "is null, expected text", "Fill it in.")
        length = _lengths(self.prefix)
        bad.add(
            rows(length > MAX_TEXT), "keystrokes.prefix",
            f"is longer than {MAX_TEXT} characters", "Shorten it.",
        )  # fmt: skip
        start, end = self.keystroke_start[:-1], self.keystroke_start[1:]
        first = np.zeros(len(self.owner), bool)
        first[start[end > start]] = True
        bad.add(
            rows(first & (length == 0)), "keystrokes.prefix",
            "is empty at the first keystroke, expected the first character",
            "Start the row at the first character (a backspace to '' later is fine).",
        )  # fmt: skip
        at = _micros(self.at)
        earlier = np.zeros(len(at), bool)
        earlier[1:] = at[1:] < at[:-1]
        bad.add(
            rows(earlier & ~first), "keystrokes.at",
            "is earlier than the keystroke before it, expected times in order",
            "Sort the keystrokes by time.",
        )  # fmt: skip
        late = np.zeros(len(self.table), bool)
        has = end > start
        late[has] = _micros(_column(self.table, "submitted_at"))[has] < at[end[has] - 1]
        bad.add(
            late,
            "submitted_at",
            "is earlier than the last keystroke",
            "Check the clock or zone.",
            lambda row: str(self.table["submitted_at"][row]),
        )
        bad.add(
            rows(self.list_lengths > MAX_LIST), "keystrokes.suggestions",
            f"holds more than {MAX_LIST} suggestions", "Keep those that were shown.",
        )  # fmt: skip
        keystroke = np.repeat(np.arange(len(self.list_lengths)), self.list_lengths)
        texts = self.shown.dictionary_encode()
        unusable = unmatchable(texts.dictionary) | (_lengths(texts.dictionary) > MAX_TEXT)
        code = texts.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        wrong = np.append(unusable, True)[code]  # null is the last
        bad.add(
            rows(np.isin(np.arange(len(self.owner)), keystroke[wrong])), "keystrokes.suggestions",
            f"holds a null, an empty text, one of white space and diacritics alone or one of over "
            f"{MAX_TEXT} characters", "Remove it.",
        )  # fmt: skip

    def _check_apps(self, bad: _Bad) -> None:
        for name, start, apps in (
            ("installed", self.installed_start, self.installed),
            ("opened", self.opened_start, self.opened),
        ):
            owner = _owners(start)
            bad.add(
                _rows(_lengths(apps) == 0, owner, len(self.table)), f"{name}.app",
                "is null or empty, expected the name of an app", "Remove the entry.",
            )  # fmt: skip
        owner = _owners(self.installed_start)
        opens = self.daily_opens.fill_null(np.nan).to_numpy(zero_copy_only=False)
        bad.add(
            _rows(~((opens >= 0) & (opens <= MAX_DAILY_OPENS)), owner, len(self.table)),
            "installed.daily_opens", f"is not a number from 0 to {MAX_DAILY_OPENS:.0f}",
            "Give the average number of openings a day.",
        )  # fmt: skip
        codes = self.installed.dictionary_encode().indices.fill_null(-1)
        pairs = np.stack([owner, codes.to_numpy(zero_copy_only=False)])
        _, first = np.unique(pairs, axis=1, return_index=True)
        again = np.ones(len(owner), bool)
        again[first] = False
        bad.add(
            _rows(again, owner, len(self.table)), "installed.app", "lists an app twice",
            "List every installed app once.",
        )  # fmt: skip
        owner = _owners(self.opened_start)
        nulls = self.opened_at.is_null().to_numpy(zero_copy_only=False)
        bad.add(_rows(nulls, owner, len(self.table)), "opened.at", "is null", "Fill it in.")
        begin = np.full(len(self.table), np.iinfo(np.int64).max)
        typed = np.diff(self.keystroke_start) > 0
        begin[typed] = _micros(self.at)[self.keystroke_start[:-1][typed]]
        bad.add(
            _rows(_micros(self.opened_at) > begin[owner], owner, len(self.table)), "opened.at",
            "is later than the first keystroke, expected openings before the query",
            "Leave such openings out.",
        )  # fmt: skip

    def log(
        self, table: pa.Table, *, source: str, simulated: bool, skipped: dict[str, int]
    ) -> CompositionLog:
        n = len(table)
        submitted_at = _micros(_column(table, "submitted_at"))
        order = np.argsort(submitted_at, kind="stable")
        users = _column(table, "user").dictionary_encode()
        names = users.dictionary.to_pylist()
        by_name = np.argsort(np.array(names, dtype=object), kind="stable")
        rank = np.empty(len(names), np.int32)
        rank[by_name] = np.arange(len(names))
        texts = pa.concat_arrays([_column(table, "query"), self.shown]).dictionary_encode()
        codes = texts.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        prefixes = self.prefix.dictionary_encode()
        # Keystrokes, then suggestions, follow their composition into the new order.
        keystrokes = _take_ranges(self.keystroke_start, order)
        list_start = np.concatenate([[0], np.cumsum(self.list_lengths)]).astype(np.int64)
        suggestions = _take_ranges(list_start, keystrokes)
        if "selected" in table.column_names:
            selected = _column(table, "selected").fill_null(0).to_numpy(zero_copy_only=False)
        else:
            selected = np.zeros(n, np.int16)
        ids = _column(table, "composition").to_pylist()
        apps = pa.concat_arrays([self.installed, self.opened]).dictionary_encode()
        app = apps.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        opened_at, owner = _micros(self.opened_at), _owners(self.opened_start)
        installed = _take_ranges(self.installed_start, order)
        latest_first = np.lexsort((-opened_at, owner))
        opened = latest_first[_take_ranges(self.opened_start, order)]
        return CompositionLog(
            users=[names[i] for i in by_name],
            user=rank[users.indices.to_numpy(zero_copy_only=False)][order],
            ids=[ids[i] for i in order],
            phrases=texts.dictionary.to_pylist(),
            query=codes[:n][order],
            submitted_at=submitted_at[order],
            selected=selected[order],
            keystroke_start=_starts(np.diff(self.keystroke_start)[order]),
            at=_micros(self.at)[keystrokes],
            prefixes=prefixes.dictionary.to_pylist(),
            prefix=prefixes.indices.to_numpy(zero_copy_only=False).astype(np.int32)[keystrokes],
            list_start=_starts(self.list_lengths[keystrokes]),
            shown=codes[n:][suggestions],
            source=source,
            apps=apps.dictionary.to_pylist(),
            installed_start=_starts(np.diff(self.installed_start)[order]),
            installed_app=app[: len(self.installed)][installed],
            daily_opens=self.daily_opens.to_numpy(zero_copy_only=False).astype(float)[installed],
            opened_start=_starts(np.diff(self.opened_start)[order]),
            opened_app=app[len(self.installed) :][opened],
            opened_at=opened_at[opened],
            simulated=simulated,
            skipped=skipped,
        )


def _lengths(text: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.utf8_length(text), 0).to_numpy()


def _micros(times: pa.Array) -> np.ndarray:
    return times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _nested(table: pa.Table, name: str, kind: pa.StructType) -> tuple[np.ndarray, pa.StructArray]:
    """Where each row's entries begin, and all entries; none where the column is absent or null."""
    if name not in table.column_names:
        return np.zeros(len(table) + 1, np.int64), pa.array([], kind)
    column = _column(table, name)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return _starts(lengths), column.flatten()


def _owners(start: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _rows(wrong: np.ndarray, owner: np.ndarray, n: int) -> np.ndarray:
    """Mark the rows that own a wrong entry."""
    found = np.zeros(n, bool)
    found[owner[wrong]] = True
    return found


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _take_ranges(start: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Positions of the elements of the ranges ``start[i]:start[i + 1]`` for i in `order`."""
    lengths = np.diff(start)[order]
    shift = np.repeat(start[order] - _starts(lengths)[:-1], lengths)
    return np.arange(lengths.sum()) + shift
