"""The rows of a composition log, nested columns unfolded, each held to the contract."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.bad_rows import BadRows
from telic.data.contracts import INSTALLED_APP, KEYSTROKE, MAX_TEXT, OPENED_APP
from telic.data.growing_arrays import Growing, GrowingFile
from telic.data.tables import one_chunk, tidied, unmatchable

MAX_LIST = 1000
"""Longest suggestion list accepted."""
MAX_APPS = 2000
"""Most installed apps, and most openings, that one phone may name."""
MAX_DAILY_OPENS = 100_000.0
"""More openings of one app a day than that (one a second) are no counts of a person's."""


def column_of(table: pa.Table, name: str) -> pa.Array:
    """Return a column in one piece."""
    return one_chunk(table[name])


class Unfolded:
    """The nested columns of a log, unfolded; texts are numbers of dictionaries, −1 for a null.

    It holds nothing of the nested columns' texts, so that a table can be let go.
    """

    def __init__(self, table: pa.Table) -> None:
        self.keystroke_start, flat = _nested(table, "keystrokes", KEYSTROKE)
        self.owner = owners_of(self.keystroke_start)
        self.at = pc.struct_field(flat, "at")
        (self.prefix,), self.prefixes = encoded(pc.struct_field(flat, "prefix"))
        lists = pc.struct_field(flat, "suggestions")
        self.list_lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(
            zero_copy_only=False
        )
        (self.query, self.shown), texts = encoded(column_of(table, "query"), lists.flatten())
        if (tidy := tidied(texts)) is not texts:
            ((number,), texts) = encoded(tidy)  # some are alike now
            self.query, self.shown = (np.append(number, -1)[of] for of in (self.query, self.shown))
        self.texts = texts
        self.installed_start, installed = _nested(table, "installed", INSTALLED_APP)
        self.installed, self.daily_opens = installed.flatten()
        self.opened_start, opened = _nested(table, "opened", OPENED_APP)
        self.opened, self.opened_at = opened.flatten()

    def check(self, table: pa.Table, bad: BadRows, ids: set[str]) -> None:
        """Mark every row of the table, which these are of, that breaks the contract.

        `ids` are those of the rows before; those of these join them.
        """
        n = len(table)
        for name in ("user", "composition", "query", "submitted_at", "keystrokes"):
            nulls = table[name].is_null().to_numpy()
            bad.add(nulls, name, "is null, expected a value", "Fill it in.")
        empty_user = pc.equal(table["user"], "").fill_null(False).to_numpy()
        bad.add(empty_user, "user", "is empty, expected an id", "Fill it in.")
        repeated = np.zeros(n, bool)
        for row, id in enumerate(column_of(table, "composition").to_pylist()):
            repeated[row] = id in ids
            if id is not None:
                ids.add(id)
        bad.add(
            repeated,
            "composition",
            "repeats an id, expected it unique",
            "Give every composition its own.",
            lambda row: str(table["composition"][row]),
        )
        length = lengths_of(table["query"])
        bad.add(
            unmatchable(column_of(table, "query")),
            "query",
            "is empty or all white space and diacritics, expected text",
            "Fill it in.",
        )
        bad.add(length > MAX_TEXT, "query", f"is longer than {MAX_TEXT} characters", "Shorten it.")
        count = np.diff(self.keystroke_start)
        bad.add(count == 0, "keystrokes", "is empty, expected at least one keystroke", "Add it.")
        self._check_keystrokes(table, bad)
        self._check_apps(n, bad)
        if "tenant" in table.column_names:
            check_tenants(column_of(table, "tenant"), "tenant", bad)
        if "selected" in table.column_names:
            selected = column_of(table, "selected").fill_null(1).to_numpy(zero_copy_only=False)
            last = np.zeros(n, np.int64)
            has = count > 0
            last[has] = self.list_lengths[self.keystroke_start[1:][has] - 1]
            given = table["selected"].is_valid().to_numpy()
            bad.add(
                given & ((selected < 1) | (selected > last)),
                "selected",
                "is not a position in the last list (1 is the first)",
                "Use null if typed in full.",
                lambda row: int(selected[row]),
            )

    def _check_keystrokes(self, table: pa.Table, bad: BadRows) -> None:
        def rows(mask: np.ndarray) -> np.ndarray:
            return _rows(mask, self.owner, len(table))

        nulls = self.at.is_null().to_numpy(zero_copy_only=False)
        bad.add(rows(nulls), "keystrokes.at", "is null, expected a time", "Fill it in.")
        nulls = self.prefix < 0
        bad.add(rows(nulls), "keystrokes.prefix", "is null, expected text", "Fill it in.")
        length = np.append(lengths_of(self.prefixes), 0)[self.prefix]
        bad.add(
            rows(length > MAX_TEXT),
            "keystrokes.prefix",
            f"is longer than {MAX_TEXT} characters",
            "Shorten it.",
        )
        start, end = self.keystroke_start[:-1], self.keystroke_start[1:]
        first = np.zeros(len(self.owner), bool)
        first[start[end > start]] = True
        bad.add(
            rows(first & (length == 0)),
            "keystrokes.prefix",
            "is empty at the first keystroke, expected the first character",
            "Start the row at the first character (a backspace to '' later is fine).",
        )
        at = micros_of(self.at)
        earlier = np.zeros(len(at), bool)
        earlier[1:] = at[1:] < at[:-1]
        bad.add(
            rows(earlier & ~first),
            "keystrokes.at",
            "is earlier than the keystroke before it, expected times in order",
            "Sort the keystrokes by time.",
        )
        late = np.zeros(len(table), bool)
        has = end > start
        late[has] = micros_of(column_of(table, "submitted_at"))[has] < at[end[has] - 1]
        bad.add(
            late,
            "submitted_at",
            "is earlier than the last keystroke",
            "Check the clock or zone.",
            lambda row: str(table["submitted_at"][row]),
        )
        bad.add(
            rows(self.list_lengths > MAX_LIST),
            "keystrokes.suggestions",
            f"holds more than {MAX_LIST} suggestions",
            "Keep those that were shown.",
        )
        unusable = unmatchable(self.texts) | (lengths_of(self.texts) > MAX_TEXT)
        wrong = np.flatnonzero(np.append(unusable, True)[self.shown])  # null is the last
        unfit = np.zeros(len(self.owner), bool)
        unfit[np.searchsorted(np.cumsum(self.list_lengths), wrong, side="right")] = True
        bad.add(
            rows(unfit),
            "keystrokes.suggestions",
            f"holds a null, an empty text, one of white space and diacritics alone or one of over "
            f"{MAX_TEXT} characters",
            "Remove it.",
        )

    def _check_apps(self, n: int, bad: BadRows) -> None:
        for name, start, apps in (
            ("installed", self.installed_start, self.installed),
            ("opened", self.opened_start, self.opened),
        ):
            owner = owners_of(start)
            bad.add(
                _rows(lengths_of(apps) == 0, owner, n),
                f"{name}.app",
                "is null or empty, expected the name of an app",
                "Remove the entry.",
            )
            bad.add(
                np.diff(start) > MAX_APPS,
                name,
                f"has more than {MAX_APPS} entries",
                "Keep those used most, or last.",
            )
        owner = owners_of(self.installed_start)
        opens = self.daily_opens.fill_null(np.nan).to_numpy(zero_copy_only=False)
        bad.add(
            _rows(~((opens >= 0) & (opens <= MAX_DAILY_OPENS)), owner, n),
            "installed.daily_opens",
            f"is not a number from 0 to {MAX_DAILY_OPENS:.0f}",
            "Give the average number of openings a day.",
        )
        coded = self.installed.dictionary_encode()
        codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        pairs = owner * (len(coded.dictionary) + 1) + codes
        _, first = np.unique(pairs, return_index=True)
        again = np.ones(len(owner), bool)
        again[first] = False
        bad.add(
            _rows(again, owner, n),
            "installed.app",
            "lists an app twice",
            "List every installed app once.",
        )
        owner = owners_of(self.opened_start)
        nulls = self.opened_at.is_null().to_numpy(zero_copy_only=False)
        bad.add(_rows(nulls, owner, n), "opened.at", "is null", "Fill it in.")
        begin = np.full(n, np.iinfo(np.int64).max)
        typed = np.diff(self.keystroke_start) > 0
        begin[typed] = micros_of(self.at)[self.keystroke_start[:-1][typed]]
        bad.add(
            _rows(micros_of(self.opened_at) > begin[owner], owner, n),
            "opened.at",
            "is later than the first keystroke, expected openings before the query",
            "Leave such openings out.",
        )


def encoded(*columns: pa.Array) -> tuple[list[np.ndarray], pa.Array]:
    """Return numbers of the texts of each column, −1 for a null, and the texts they stand for."""
    parts = pa.chunked_array(columns).dictionary_encode().chunks  # none of an empty column
    codes = [part.indices.fill_null(-1).to_numpy(zero_copy_only=False) for part in parts]
    ends = np.cumsum([len(column) for column in columns])
    joined = np.concatenate([np.empty(0, np.int32), *codes])
    texts = parts[0].dictionary if parts else pa.array([], columns[0].type)
    return np.split(joined, ends[:-1]), texts


def lengths_of(text: pa.Array) -> np.ndarray:
    """Return the length of each text in characters, 0 for a null."""
    return pc.fill_null(pc.utf8_length(text), 0).to_numpy()


def micros_of(times: pa.Array) -> np.ndarray:
    """Return times as microseconds since 1970, 0 for a null."""
    return times.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)


def _nested(table: pa.Table, name: str, kind: pa.StructType) -> tuple[np.ndarray, pa.StructArray]:
    """Where each row's entries begin, and all entries; none where the column is absent or null."""
    if name not in table.column_names:
        return starts_of(np.zeros(len(table))), pa.array([], kind)
    column = column_of(table, name)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return starts_of(lengths), column.flatten()


def check_tenants(tenants: pa.Array, name: str, bad: BadRows) -> None:
    """Mark tenants with a colon, which comes between the tenant and the user in a user's id."""
    bad.add(
        pc.match_substring(tenants, ":").fill_null(False).to_numpy(zero_copy_only=False),
        name,
        "has a colon, which comes between the tenant and the user in a user's id",
        "Call the tenant otherwise, as its key does.",
        lambda row: str(tenants[row]),
    )


def owners_of(start: np.ndarray) -> np.ndarray:
    """Return the number of the range that each element lies in."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def _rows(wrong: np.ndarray, owner: np.ndarray, n: int) -> np.ndarray:
    """Mark the rows that own a wrong entry."""
    found = np.zeros(n, bool)
    found[owner[wrong]] = True
    return found


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Return where each range starts and the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def take_ranges(start: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Positions of the elements of the ranges ``start[i]:start[i + 1]`` for i in `order`."""
    lengths = np.diff(start)[order]
    begin, lengths = start[order][lengths > 0], lengths[lengths > 0]
    # Steps of one, but from the end of a range to where the next begins, summed in place.
    positions = np.ones(lengths.sum(), np.int64)
    positions[:1] = begin[:1]
    positions[np.cumsum(lengths)[:-1]] = begin[1:] - (begin + lengths)[:-1] + 1
    return np.cumsum(positions, out=positions)


RANGES = 1 << 14
"""Ranges that are put in order at a time: the place of an element takes more than itself."""


def in_order(
    values: np.ndarray, start: np.ndarray, order: np.ndarray, into: Growing | GrowingFile
) -> np.ndarray:
    """Return the ranges ``start[i]:start[i + 1]`` of values, which they fill, by order."""
    for first in range(0, len(order), RANGES):
        into.add(values[take_ranges(start, order[first : first + RANGES])])
    return into.values()
