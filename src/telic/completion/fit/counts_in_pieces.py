"""Tasks that count a query log in pieces: bucketed by user, then counted, then by folded form.

Users are disjoint between buckets, so that sums over buckets count people too.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.completion.engine.folding import fold
from telic.completion.learning.relevance import WINDOW
from telic.data.bad_rows import OnBadRow
from telic.data.object_storage import Place, fetched, place, readable
from telic.data.phrase_rows import checked_rows
from telic.data.pieces import (
    NESTED,
    Pieces,
    open_pieces,
    with_marks,
    without_marks,
)
from telic.data.recognised_columns import Shape, refuse_late
from telic.scale.duckdb_tasks import database, listed
from telic.scale.partitions import RowRange, WholeFile, check_unchanged

BATCH = 1 << 17
"""Rows that are checked at a time."""
SESSION = 30 * 60 * 1_000_000
"""Microseconds without a submission that end a user's session."""

LEFT_OUT = b"telic.left_out"
"""Key in the metadata of a log's copy: rows that are not in it, by reason, as JSON."""
ROWS = 1 << 40
"""More than a log has rows: a log's place times this, plus the row, numbers the rows of all."""
PLACES = 1 << 48
"""More than there are rows: a time times this, plus the row, orders submissions."""


class TimeSplit(NamedTuple):
    """When a log is looked at: at its end, and before the latest submissions."""

    end: int
    split: int


class Source(NamedTuple):
    """A range of rows of a log, and the log's place among several."""

    rows: RowRange
    name: str
    """The file that it is called after, where `rows` are of a copy."""
    log: int
    shape: Shape

    def __str__(self) -> str:
        return str(self.rows).replace(self.rows.path, self.name)


def bucket(buckets: int, latest: int, on_bad_row: OnBadRow, source: Source, out: Path) -> None:
    """Check a range of rows and deal it out by user; those that name nobody by form.

    Writes ``bucket=B/….parquet`` with the columns person, text, form (null where it is the text),
    us (the time), weight and number (of the row); ``latest.parquet``, the `latest` rows; and
    ``facts.json``.
    """
    columns = list(dict.fromkeys(source.shape.roles.values()))
    rows = source.rows
    noted = pq.read_metadata(readable(place(rows.path))).metadata or {}
    skipped: dict[str, int] = json.loads(noted.get(LEFT_OUT, b"{}")) if rows.first == 0 else {}

    def read(names: Sequence[str], _: object = None) -> Iterator[pa.Table]:
        return map(without_marks, rows.batches([*names, NESTED.decode()], BATCH))

    pieces = Pieces(Path(source.name), columns, read)
    parts = []
    for numbers, part in checked_rows(pieces, source.shape, on_bad_row, skipped, before=rows.first):
        parts.append(_plain(part, numbers + source.log * ROWS))
    table = pa.concat_tables(parts) if parts else _plain(_no_rows(), np.empty(0, np.int64))
    out.mkdir()
    us = table["us"]
    facts = {"rows": len(table), "skipped": skipped}
    if len(table):
        facts |= {"first": pc.min(us).as_py(), "last": pc.max(us).as_py()}
    (out / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    with database(out.parent) as db:
        db.register("rows", table)
        db.execute(f"COPY ({_latest('rows', latest)}) TO '{_q(out / 'latest.parquet')}'")
        if len(table):
            db.execute(
                f"COPY (SELECT *, hash(coalesce(person, form, text)) % {buckets} AS bucket "
                f"FROM rows) TO '{_q(out)}' "
                "(FORMAT parquet, PARTITION_BY bucket, OVERWRITE_OR_IGNORE)"
            )


def to_parquet(shape: Shape, on_bad_row: OnBadRow, source: WholeFile, out: Path) -> None:
    """Copy the columns of a log that play a role, as Parquet; what has to be left out is noted."""
    check_unchanged(source.path, source.state)
    columns = list(dict.fromkeys(shape.roles.values()))
    writer, pieces = None, open_pieces(source.path)
    skipped: dict[str, int] = {}
    for piece in pieces.read(columns, skipped if on_bad_row == "skip" else None):
        refuse_late(pieces, shape)
        piece = with_marks(piece)
        writer = writer or pq.ParquetWriter(out, piece.schema)
        writer.write_table(piece)
    assert writer is not None  # a log without rows is refused before
    writer.add_key_value_metadata({LEFT_OUT: json.dumps(skipped)})
    writer.close()


def _plain(part: pa.Table, numbers: np.ndarray) -> pa.Table:
    n = len(part)
    text = part["phrase"].cast(pa.string())
    names = part.column_names
    return pa.table(
        {
            "person": part["user"].cast(pa.string())
            if "user" in names
            else pa.nulls(n, pa.string()),
            "text": text,
            "form": _forms(text),
            "us": part["at"].cast(pa.int64()),
            "weight": part["weight"] if "weight" in names else pa.array(np.ones(n)),
            "number": numbers,
        }
    )


def _no_rows() -> pa.Table:
    empty = pa.array([], pa.string())
    return pa.table({"phrase": empty, "at": pa.array([], pa.int64())})


def _forms(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Fold each text; null where that changes nothing."""
    # Printing ASCII with single blanks needs lower case alone, which Arrow does at once.
    plain = pc.match_substring_regex(text, r"^[!-~]+( [!-~]+)* ?$")
    lower = pc.utf8_lower(text)  # `ascii_lower` takes other bytes for a slice that was cast
    form = pc.if_else(pc.and_(plain, pc.not_equal(lower, text)), lower, None)
    other = text.filter(pc.invert(plain)).combine_chunks().dictionary_encode()
    if len(other):
        known = pa.array([fold(one) for one in other.dictionary.to_pylist()], pa.string())
        folded = known.take(other.indices)
        form = pc.replace_with_mask(
            form.combine_chunks(), pc.invert(plain).combine_chunks(), folded
        )
        form = pc.if_else(pc.equal(form, text.combine_chunks()), None, form)
    return form


def _latest(rows: str, most: int) -> str:
    return f"SELECT * FROM {rows} ORDER BY us DESC, number DESC LIMIT {most}"


def count_users(
    moments: TimeSplit,
    catalogues: list[int],
    forms: int,
    found: tuple[int, list[Place]],
    out: Path,
) -> None:
    """Count the submissions of some users, all of them in these files.

    `catalogues` are the logs without users, which vouch for what they hold.

    Writes ``histories.parquet`` (person, form, weight, text and time of the last) and by bucket of
    form ``texts/`` (how often each spelling came) and ``people/`` (who submitted a form).
    """
    out.mkdir()
    files = [fetched(file) for file in found[1]]
    end, split = moments
    recent = {"end": end - WINDOW, "split": split - WINDOW}
    vouched = f"list_contains({catalogues}, number // {ROWS})"
    counts = f"({vouched} AND weight > 0)"
    with database(out.parent) as db:
        db.execute(
            f"""CREATE TEMP TABLE pairs AS
            SELECT person, coalesce(form, text) AS form, text, sum(weight) AS weight,
                coalesce(sum(weight) FILTER (us >= {recent["end"]}), 0) AS recent,
                coalesce(sum(weight) FILTER (us < {split}), 0) AS early,
                coalesce(sum(weight) FILTER (us < {split} AND us >= {recent["split"]}), 0)
                    AS early_recent,
                bool_or({counts}) AS vouched,
                coalesce(bool_or({counts}) FILTER (us < {split}), false) AS early_vouched,
                coalesce(sum(weight) FILTER (NOT {vouched}), 0) AS of_users,
                min(us) AS first_at, min(number) AS first_row,
                max(us::HUGEINT * {PLACES} + number) AS last, max(us) AS last_at
            FROM read_parquet({listed(files)}) GROUP BY ALL"""
        )
        db.execute(
            f"""COPY (SELECT person, form, sum(weight) AS weight, arg_max(text, last) AS text,
                max(last_at) AS us, min(first_row) AS first_row,
                (max(last) - max(last_at)::HUGEINT * {PLACES})::BIGINT AS number
            FROM pairs WHERE person IS NOT NULL GROUP BY ALL)
            TO '{_q(out / "histories.parquet")}'"""
        )
        _by_form(
            db,
            """SELECT form, text, sum(weight) AS popular, sum(recent) AS recent,
                sum(early) AS early, sum(early_recent) AS early_recent,
                sum(of_users) AS of_users, min(first_row) AS first_row,
            FROM pairs GROUP BY ALL""",
            forms,
            out / "texts",
        )
        _by_form(
            db,
            f"""SELECT form, count(person) FILTER (weight > 0) AS people,
                count(person) FILTER (early_weight > 0) AS early_people,
                bool_or(weight > 0) AS counted, bool_or(early_weight > 0) AS early_counted,
                bool_or(vouched) AS vouched, bool_or(early_vouched) AS early_vouched,
                bool_or(person IS NULL) AS unnamed,
                bool_or(person IS NULL AND first_at < {split}) AS early_unnamed,
                bool_or(first_at < {split}) AS early
            FROM (SELECT person, form, min(first_at) AS first_at, bool_or(vouched) AS vouched,
                bool_or(early_vouched) AS early_vouched, sum(weight) AS weight,
                sum(early) AS early_weight FROM pairs GROUP BY person, form)
            GROUP BY form""",
            forms,
            out / "people",
        )
        _by_form(db, _sessions(files), forms, out / "sessions")
        rule = (
            f"SELECT max(us), count(person) FROM read_parquet({listed(files)}) WHERE us < {split}"
        )
        before, named = db.execute(rule).fetchone()
    facts = {"before": before, "named": named}
    (out / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


def _sessions(files: list[Path]) -> str:
    """How many sessions each form came in: submissions of a user with no longer pause between."""
    return f"""WITH rows AS (
            SELECT person, coalesce(form, text) AS form, us,
                us - lag(us) OVER (PARTITION BY person ORDER BY us) > {SESSION} AS pause
            FROM read_parquet({listed(files)}) WHERE person IS NOT NULL),
        numbered AS (
            SELECT person, form, sum(coalesce(pause, false)::INT) OVER (
                PARTITION BY person ORDER BY us RANGE UNBOUNDED PRECEDING) AS session FROM rows)
        SELECT form, count(*) AS sessions FROM (SELECT DISTINCT * FROM numbered) GROUP BY form"""


def _by_form(db: Any, query: str, forms: int, out: Path) -> None:
    db.execute(
        f"COPY (SELECT *, hash(form) % {forms} AS bucket FROM ({query})) "
        f"TO '{_q(out)}' (FORMAT parquet, PARTITION_BY bucket)"
    )


def merge_forms(
    min_users: int, counted: list[Place], vouched: Place, number: int, out: Path
) -> None:
    """Add the counts of one bucket of forms up over all users.

    Writes ``forms.parquet``, a row for each form that may be suggested or that `vouched` (a Parquet
    file with the column form) lists, and ``facts.json``.
    """
    out.mkdir()

    def files_of(kind: str) -> list[Place]:
        return [f for part in counted for f in part.glob(f"{kind}/bucket={number}/*.parquet")]

    def read(kind: str) -> str:
        return f"read_parquet({listed([fetched(file) for file in sorted(files_of(kind))])})"

    with database(out.parent) as db:
        db.execute(
            f"CREATE TEMP VIEW listed AS SELECT form FROM read_parquet('{_q(fetched(vouched))}')"
        )
        db.execute(
            f"""CREATE TEMP TABLE spelled AS
            SELECT form, text, sum(popular) AS popular, sum(recent) AS recent, sum(early) AS early,
                sum(early_recent) AS early_recent, coalesce(sum(of_users), 0) AS of_users,
                min(first_row) AS first_row
            FROM {read("texts")} GROUP BY form, text"""
        )
        db.execute(
            f"""CREATE TEMP TABLE people AS
            -- The rows without a user are of one person at least.
            SELECT form, greatest(sum(people), bool_or(counted)::INT)::BIGINT AS people,
                greatest(sum(early_people), bool_or(early_counted)::INT)::BIGINT AS early_people,
                bool_or(unnamed) AS unnamed, bool_or(early_unnamed) AS early_unnamed,
                bool_or(vouched) AS vouched, bool_or(early_vouched) AS early_vouched,
                bool_or(early) AS early
            FROM {read("people")} GROUP BY form"""
        )
        sessions = "SELECT NULL::VARCHAR AS form, 0::BIGINT AS sessions WHERE false"
        if files_of("sessions"):  # of submissions that name a user
            sessions = (
                f"SELECT form, sum(sessions)::BIGINT AS sessions FROM {read('sessions')} "
                "GROUP BY form"
            )
        db.execute(
            f"""CREATE TEMP TABLE forms AS
            SELECT form, sum(popular) AS popular, sum(recent) AS recent, sum(s.early) AS early,
                sum(early_recent) AS early_recent, sum(of_users) AS of_users, count(*) AS spellings,
                arg_max(text, (popular, -s.first_row)) AS text,
                arg_max(text, (s.early, -s.first_row)) AS early_text,
                min(s.first_row) AS first_row, any_value(people) AS people,
                any_value(vouched) OR any_value(people) >= {min_users} AS opened,
                any_value(early_vouched) OR any_value(early_people) >= {min_users} AS early_opened,
                any_value(p.early) AS early_seen, any_value(vouched) AS vouched,
                any_value(unnamed) AS unnamed, any_value(early_unnamed) AS early_unnamed,
                coalesce(any_value(sessions), 0) AS sessions
            FROM spelled s JOIN people p USING (form) LEFT JOIN ({sessions}) USING (form)
            GROUP BY form"""
        )
        db.execute(
            f"""COPY (SELECT * FROM forms WHERE opened OR form IN (SELECT form FROM listed))
            TO '{_q(out / "forms.parquet")}'"""
        )
        shy = "NOT opened AND form NOT IN (SELECT form FROM listed)"
        early_shy = "early_seen AND NOT early_opened AND form NOT IN (SELECT form FROM listed)"
        facts = {
            "shy": shy,
            "unnamed": f"unnamed AND {shy}",
            "early_shy": early_shy,
            "early_unnamed": f"early_unnamed AND {early_shy}",
        }
        found = {
            name: db.execute(f"SELECT count(*) FROM forms WHERE {rule}").fetchone()[0]
            for name, rule in facts.items()
        }
        kept = "vouched OR form IN (SELECT form FROM listed)"
        found["kept"] = db.execute(
            f"""SELECT least(if({kept}, 1000000, people), 1000000) AS k, count(*), sum(of_users)
            FROM forms GROUP BY k ORDER BY k"""
        ).fetchall()
    (out / "facts.json").write_text(json.dumps(found), encoding="utf-8")


def take_users(users: list[str], until: int, found: tuple[int, list[Place]], out: Path) -> None:
    """Take what some users submitted before a moment out of their buckets."""
    files = [fetched(file) for file in found[1]]
    with database(out.parent) as db:
        db.register("chosen", pa.table({"person": pa.array(users, pa.string())}))
        db.execute(
            f"""COPY (SELECT person, coalesce(form, text) AS form, text, us, weight, number
            FROM read_parquet({listed(files)}) SEMI JOIN chosen USING (person)
            WHERE us < {until} ORDER BY us, number) TO '{_q(out)}' (FORMAT parquet)"""
        )


def facts_of(part: Place) -> dict[str, Any]:
    """Read what a task said about its part."""
    found: dict[str, Any] = json.loads(fetched(part / "facts.json").read_text(encoding="utf-8"))
    return found


def _q(path: Path) -> str:
    return str(path).replace("'", "''")
