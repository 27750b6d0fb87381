"""Lists of phrases, and query logs in the forms that people have, read in pieces."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from telic.data.bad_rows import BadRows, OnBadRow
from telic.data.composition_rows import lengths_of
from telic.data.contracts import GROUPS, MAX_TEXT, TIMESTAMP
from telic.data.file_kinds import Shape
from telic.data.pieces import Pieces
from telic.data.queries import MAX_COUNT, QueryLog
from telic.data.tables import is_text, one_chunk, times_of, unmatchable
from telic.errors import InputError


@dataclass(frozen=True)
class PhraseList:
    """Phrases to suggest, row by row as the file has them."""

    source: str
    phrases: pa.Array
    """string (n,)."""
    weights: np.ndarray | None
    """float64 (n,), finite and at least 0; None where the file says nothing."""
    ids: pa.Array | None
    """string (n,): one's own id of each, null where there is none."""
    payloads: pa.Array | None
    """string (n,): JSON, null where there is none."""
    contexts: dict[str, pa.Array]
    """Context → string (n,): what each phrase is limited to; null fits everywhere."""
    rows: np.ndarray
    """int64 (n,): row of the file that each is, the first being 1."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Rows left out by ``on_bad_row="skip"``: reason → count."""
    files: tuple[tuple[int, str], ...] = ()
    """Of joined lists: where each begins here, and its file."""

    def __len__(self) -> int:
        return len(self.phrases)

    def where(self, row: int) -> str:
        """Say which file and row of it one of these rows is."""
        begun = [file for start, file in self.files if start <= row]
        return f"{begun[-1] if begun else self.source}: row {self.rows[row]}"


def read_list(pieces: Pieces, shape: Shape, *, on_bad_row: OnBadRow = "raise") -> PhraseList:
    """Read a list of phrases.

    Parameters
    ----------
    pieces : Pieces
    shape : Shape
        See `telic.data.file_kinds.shape_of`.
    on_bad_row : {"raise", "skip"}
        A row that cannot be used raises, or is left out and counted.

    Raises
    ------
    InputError
        Naming file, row (the first is 1) and column.
    """
    skipped: dict[str, int] = {}
    parts, numbers = [], [np.empty(0, np.int64)]
    for row, part in checked_rows(pieces, shape, on_bad_row, skipped):
        numbers.append(row)
        parts.append(part)
    if not parts:
        raise InputError(f"{pieces.path}: holds no row. Expected one phrase in each.")
    whole = pa.concat_tables(parts)
    columns = {name: one_chunk(whole[name]) for name in whole.column_names}
    weights = columns.get("weight")
    return PhraseList(
        str(pieces.path),
        columns["phrase"],
        None if weights is None else weights.to_numpy(zero_copy_only=False),
        columns.get("id"),
        columns.get("payload"),
        {name: columns[name] for name in shape.contexts},
        np.concatenate(numbers),
        skipped,
    )


def read_query_log(pieces: Pieces, shape: Shape, *, on_bad_row: OnBadRow = "raise") -> QueryLog:
    """Read a query log in any form that has a phrase and a time in each row.

    Of AmazonQAC's test split the past search terms count too. AOL's log repeats a row for each
    result that was opened: rows that repeat user, query and time of the row before count once.
    Takes and raises what `read_list` does.
    """
    skipped: dict[str, int] = {}
    numbers: dict[str, int] = {}
    users: dict[str | None, int] = {None: 0}
    found: dict[str, list[np.ndarray]] = {"query": [], "at": [], "user": [], "count": []}
    groups: dict[str, dict[str | None, int]] = {role: {} for role in GROUPS if role in shape.roles}
    placed: dict[str, list[np.ndarray]] = {role: [] for role in groups}
    if groups and ("past" in shape.roles or shape.name.startswith("AOL")):
        raise InputError(f"{pieces.path}: {shape.name} has no {' or '.join(groups)}.")
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
            new = np.ones(n, bool)
            new[1:] = (query[1:] != query[:-1]) | (at[1:] != at[:-1]) | (user[1:] != user[:-1])
            query, at, user, count = query[new], at[new], user[new], count[new]
        for name, values in zip(found, (query, at, user, count), strict=True):
            found[name].append(values)
    query, at, user, count = (
        np.concatenate([np.empty(0), *found[name]]).astype(kind)
        for name, kind in zip(found, ("int32", "int64", "int32", "float64"), strict=True)
    )
    of = {
        role: (list(values), np.concatenate([np.empty(0), *placed[role]]).astype(np.int32))
        for role, values in groups.items()
    }
    return QueryLog(list(numbers), query, at, list(users), user, count, skipped, of)


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


def checked_rows(
    pieces: Pieces,
    shape: Shape,
    on_bad_row: OnBadRow,
    skipped: dict[str, int],
    *,
    before: int = 0,
) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """Yield checked pieces, columns named by their roles, with the rows' numbers in the file.

    `skipped` is added to; `before` are the rows of the file that the pieces leave out.
    """
    with pieces.unchanged():
        wanted = list(dict.fromkeys(shape.roles.values()))
        for piece in pieces.read(wanted):
            bad = BadRows(str(pieces.path), len(piece), on_bad_row, before=before)
            part = _checked(piece, shape.roles, bad)
            if bad.rows.any():
                part = part.filter(pa.array(~bad.rows))
                for reason, count in bad.reasons.items():
                    skipped[reason] = skipped.get(reason, 0) + count
            yield before + 1 + np.flatnonzero(~bad.rows), part
            before += len(piece)


def _checked(piece: pa.Table, roles: Mapping[str, str], bad: BadRows) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for role, name in roles.items():
        column = one_chunk(piece[name])
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        if role == "at":
            columns[role] = _times(column, name, bad)
        elif role == "weight":
            columns[role] = _numbers(column, name, bad)
        elif role == "past":
            columns[role] = _past(column, name, bad)
        elif role == "payload":
            columns[role] = _payloads(column, name, bad)
        else:
            columns[role] = _texts(column, name, bad)
    text, name = columns["phrase"], roles["phrase"]
    nulls = text.is_null().to_numpy(zero_copy_only=False)
    bad.add(
        nulls | unmatchable(text),
        name,
        "is empty or all white space and marks, expected text",
        "Fill it in.",
    )
    bad.add(
        lengths_of(text) > MAX_TEXT, name, f"is longer than {MAX_TEXT} characters", "Shorten it."
    )
    if "url" in columns:  # an address is a payload
        columns["payload"] = _with_url(columns.get("payload"), columns.pop("url"))
    return pa.table(columns)


def _texts(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    if is_text(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    bad.add(np.ones(len(column), bool), name, f"is {column.type}, expected text", "Convert it.")
    return pa.nulls(len(column), pa.string())


def _times(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(TIMESTAMP, safe=False)
    elif is_text(column.type):
        try:
            column = times_of(column)
        except pa.ArrowInvalid:
            column = pa.concat_arrays([_time(one) for one in column]).cast(TIMESTAMP)
    else:
        column = pa.nulls(len(column), TIMESTAMP)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    bad.add(nulls, name, "is no time, expected such as 2026-01-31T12:00:00Z", "Correct it.")
    return column


def _time(text: pa.Scalar) -> pa.Array:
    try:
        return times_of(pa.array([text.as_py()], pa.string()))
    except pa.ArrowInvalid:
        return pa.nulls(1, TIMESTAMP)


def _numbers(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    """Weights; an empty one counts 1, as in contract 2."""
    try:
        values = column.cast(pa.float64())
    except pa.ArrowInvalid:
        values = pa.array([_number(one.as_py()) for one in column], pa.float64())
    values = values.fill_null(1.0)
    given = values.to_numpy(zero_copy_only=False)
    bad.add(
        ~((given >= 0) & (given <= MAX_COUNT)),
        name,
        f"is not a number from 0 to {MAX_COUNT:g}",
        "Correct it.",
        lambda row: column[row].as_py(),
    )
    return values


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return float("nan")


def _payloads(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    """JSON as text: what is text must be JSON already, anything else becomes it."""
    if not is_text(column.type):
        return pa.array(
            [None if v is None else json.dumps(v) for v in column.to_pylist()], pa.string()
        )
    wrong = np.zeros(len(column), bool)
    for row, text in enumerate(column.to_pylist()):
        try:
            if text is not None:
                json.loads(text)
        except (ValueError, RecursionError):
            wrong[row] = True
    bad.add(wrong, name, 'is no JSON, expected such as {"url": "/tea"}', "Correct it.")
    return column.cast(pa.string())


def _past(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    """Pairs of a term and a time, as lists or as JSON."""
    pairs, wrong = [], np.zeros(len(column), bool)
    for row, given in enumerate(column.to_pylist()):
        try:
            read = json.loads(given) if isinstance(given, str) else given or []
            good = [[str(term), str(time)] for term, time in read if term]
            times_of(pa.array([time for _, time in good], pa.string()))
        except (ValueError, TypeError, RecursionError):
            wrong[row], good = True, []
        pairs.append(good)
    bad.add(wrong, name, "holds no pairs of a term and a time", "Correct it.")
    return pa.array(pairs, pa.list_(pa.list_(pa.string())))


def _with_url(payload: pa.Array | None, url: pa.Array) -> pa.Array:
    held = pa.nulls(len(url), pa.string()) if payload is None else payload
    out = []
    for text, address in zip(held.to_pylist(), url.to_pylist(), strict=True):
        known = {} if text is None else json.loads(text)
        if address is not None and isinstance(known, dict):
            text = json.dumps({"url": address} | known)
        out.append(text)
    return pa.array(out, pa.string())


def merged(lists: list[PhraseList]) -> PhraseList:
    """Join lists; what one of them has and another has not is null there."""
    if len(lists) == 1:
        return lists[0]
    names = list(dict.fromkeys(name for one in lists for name in one.contexts))

    def joined(columns: list[pa.Array | None]) -> pa.Array | None:
        if all(column is None for column in columns):
            return None
        return pa.concat_arrays(
            [
                pa.nulls(len(one), pa.string()) if column is None else column
                for one, column in zip(lists, columns, strict=True)
            ]
        )

    starts = np.cumsum([0, *(len(one) for one in lists[:-1])])
    weights = [np.ones(len(one)) if one.weights is None else one.weights for one in lists]
    return replace(
        lists[0],
        source=", ".join(one.source for one in lists),
        phrases=pa.concat_arrays([one.phrases for one in lists]),
        weights=None if all(one.weights is None for one in lists) else np.concatenate(weights),
        ids=joined([one.ids for one in lists]),
        payloads=joined([one.payloads for one in lists]),
        contexts={name: joined([one.contexts.get(name) for one in lists]) for name in names},
        rows=np.concatenate([one.rows for one in lists]),
        files=tuple(zip(starts.tolist(), (one.source for one in lists), strict=True)),
    )
