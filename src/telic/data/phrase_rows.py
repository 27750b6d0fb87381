"""The rows of lists of phrases and of query logs, each column checked by its role."""

import json
import math
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.bad_rows import BadRows, OnBadRow
from telic.data.composition_rows import check_tenants, lengths_of
from telic.data.contracts import MAX_COUNT, MAX_TEXT
from telic.data.csv_files import PARTED, UNPARTED, parted_by_points, points_are_decimal
from telic.data.json_files import for_json
from telic.data.pieces import NESTED, Pieces
from telic.data.recognised_columns import Shape, refuse_late
from telic.data.tables import (
    in_utc,
    is_text,
    none_if_empty,
    one_chunk,
    tidied,
    tidy,
    times_of,
    unmatchable,
)
from telic.errors import InputError


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
        pointed: set[str] | None = set() if pieces.decimal_comma else None
        for piece in pieces.read(wanted, skipped if on_bad_row == "skip" else None):
            refuse_late(pieces, shape)
            bad = BadRows(str(pieces.path), len(piece), on_bad_row, before=before)
            part = _checked(piece, shape.roles, bad, pointed)
            if bad.rows.any():
                part = part.filter(pa.array(~bad.rows))
                for reason, count in bad.reasons.items():
                    skipped[reason] = skipped.get(reason, 0) + count
            yield before + 1 + np.flatnonzero(~bad.rows), part
            before += len(piece)


def refuse_empty(path: object, rows: int, skipped: Mapping[str, int], of: str) -> None:
    """Raise InputError if a list or a log has no row that can be used."""
    if not rows and skipped:
        raise InputError(f"{path}: no row can be used ({skipped_said(skipped)}). Correct them.")
    if not rows:
        raise InputError(f"{path}: holds no row. Expected one {of} in each.")


def skipped_said(skipped: Mapping[str, int]) -> str:
    """Say how many rows were left out, and why."""
    return "; ".join(f"{count} rows skipped: {reason}" for reason, count in skipped.items())


def _checked(
    piece: pa.Table, roles: Mapping[str, str], bad: BadRows, pointed: set[str] | None
) -> pa.Table:
    """Check each column by its role.

    `pointed`: where numbers may have decimal commas, the columns of which points were seen to be
    decimal marks; they join it.
    """
    columns: dict[str, pa.Array] = {}
    for role, name in roles.items():
        column = one_chunk(piece[name])
        if isinstance(column, pa.DictionaryArray):
            column = column.dictionary_decode()
        if role == "at":
            columns[role] = _times(column, name, bad)
        elif role == "weight":
            columns[role] = _numbers(column, name, bad, pointed)
        elif role == "past":
            columns[role] = _past(column, name, bad)
        elif role == "payload":
            columns[role] = _payloads(column, name, bad)
        else:
            text = _texts(column, name, bad)
            # A user without a name is one all the same: nobody's query would be open to everybody.
            columns[role] = text if role in ("phrase", "user") else none_if_empty(text)
            if role == "tenant" and "at" in roles:  # a log; a list of phrases names no users
                check_tenants(text, name, bad)
            nested = (piece.schema.field(name).metadata or {}).get(NESTED, b"[]")
            odd = np.isin(np.arange(len(piece)), json.loads(nested))
            bad.add(odd, name, "is a list or an object, expected text", "Take one of its texts.")
    text, name = tidied(columns["phrase"]), roles["phrase"]
    columns["phrase"] = text
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
        payload = columns.get("payload", pa.nulls(len(piece), pa.string()))
        columns["payload"] = _with_url(payload, columns.pop("url"), roles, bad)
    return pa.table(columns)


def _texts(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    kind = column.type
    if is_text(kind) or pa.types.is_null(kind) or pa.types.is_integer(kind):
        return column.cast(pa.string())
    bad.add(np.ones(len(column), bool), name, f"is {kind}, expected text", "Convert it.")
    return pa.nulls(len(column), pa.string())


def _times(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    times, _ = in_utc(column)

    def given(row: int) -> object:
        """What the row holds; a timestamp beyond what Python's can be is said in words."""
        one = column[row]
        return (one.cast(pa.string()) if pa.types.is_timestamp(column.type) else one).as_py()

    nulls, why = times.is_null(), "is no time, expected such as 2026-01-31T12:00:00Z"
    bad.add(nulls.to_numpy(zero_copy_only=False), name, why, "Correct it.", given)
    return times


def _numbers(column: pa.Array, name: str, bad: BadRows, pointed: set[str] | None) -> pa.Array:
    """Weights; an empty one counts 1, as in contract 2."""
    written = column
    if pointed is not None and is_text(column.type):
        if points_are_decimal(column):
            pointed.add(name)
        if name not in pointed:
            odd = parted_by_points(column)
            bad.add(odd, name, PARTED, UNPARTED, lambda row: str(column[row]))
        written = pc.replace_substring(column, ",", ".", max_replacements=1)
    try:
        values = written.cast(pa.float64())
    except pa.ArrowNotImplementedError:  # such as dates and lists
        wrong = np.ones(len(column), bool)
        bad.add(wrong, name, f"is {column.type}, expected a number", "Convert it.")
        return pa.nulls(len(column), pa.float64())
    except pa.ArrowInvalid:
        values = pa.array([_number(one.as_py()) for one in written], pa.float64())
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


def _number(value: object) -> float | None:
    """Read what Arrow did not take: text, or an integer that no float is equal to."""
    try:
        # Python alone takes 1_000 for a number.
        return None if value is None else float(str(value).replace("_", "?"))
    except ValueError:
        return float("nan")


def _payloads(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    """JSON as text: what is text must be JSON already, anything else becomes it."""
    wrong = np.zeros(len(column), bool)
    if not is_text(column.type):
        texts: list[str | None] = []
        for row, value in enumerate(column):
            try:
                given = value.as_py()
                texts.append(None if given is None else json.dumps(for_json(given)))
            except (TypeError, ValueError, OverflowError):
                wrong[row] = True
                texts.append(None)
        why = f"is {column.type}, which has no form in JSON"
        bad.add(wrong, name, why, "Convert dates, decimals and the like to text or numbers.")
        return pa.array(texts, pa.string())
    for row, text in enumerate(column.to_pylist()):
        try:
            if text is not None:
                json.loads(text, parse_constant=_no_number, parse_float=_finite_number)
        except (ValueError, RecursionError):
            wrong[row] = True
    bad.add(wrong, name, 'is no JSON, expected such as {"url": "/tea"}', "Correct it.")
    return column.cast(pa.string())


def _no_number(constant: str) -> None:
    """Refuse what Python takes for JSON, and browsers do not: NaN, Infinity and -Infinity."""
    raise ValueError(constant)


def _finite_number(text: str) -> float:
    """Refuse 1e999 too, which would be written as Infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _past(column: pa.Array, name: str, bad: BadRows) -> pa.Array:
    """Pairs of a term and a time, as lists or as JSON."""
    pairs, wrong = [], np.zeros(len(column), bool)
    for row, given in enumerate(column.to_pylist()):
        try:
            read = json.loads(given) if isinstance(given, str) else given or []
            tidied = [(tidy(str(term)), str(time)) for term, time in read if term is not None]
            good = [[term, time] for term, time in tidied if term]
            times_of(pa.array([time for _, time in good], pa.string()))
            odd = [term for term, _ in good if not term.isascii()]
            wrong[row] = bool(odd) and unmatchable(pa.array(odd, pa.string())).any()
            wrong[row] |= any(len(term) > MAX_TEXT for term, _ in good)
        except (ValueError, TypeError, RecursionError):
            wrong[row], good = True, []
        pairs.append(good)
    why = f"holds no pairs of a term, of at most {MAX_TEXT} characters, and a time"
    bad.add(wrong, name, why, "Correct it.")
    return pa.array(pairs, pa.list_(pa.list_(pa.string())))


def _with_url(payload: pa.Array, url: pa.Array, roles: Mapping[str, str], bad: BadRows) -> pa.Array:
    out, wrong = [], np.zeros(len(url), bool)
    pairs = zip(payload.to_pylist(), url.to_pylist(), strict=True)
    for row, (text, address) in enumerate(pairs):
        if address is not None and not bad.rows[row]:
            known = {} if text is None else json.loads(text)
            if isinstance(known, dict):
                text = json.dumps({"url": address} | known)
            else:
                wrong[row] = True
        out.append(text)
    bad.add(
        wrong,
        roles.get("payload", ""),
        f"is no JSON object, so that {roles['url']!r} has no place in it",
        'Write such as {"price": 3}.',
    )
    return pa.array(out, pa.string())
