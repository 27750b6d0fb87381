"""The files that a search box is fitted on: what they are, and what they make possible."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from telic.completion.fit.merged_phrases import Duplicates, distinct_rows
from telic.completion.learning.relevance import WINDOW
from telic.completion.signals.compositions import joined_submissions
from telic.data.bad_rows import OnBadRow
from telic.data.compositions import CompositionLog, is_simulated, read_compositions
from telic.data.contracts import GROUPS, SIMULATED
from telic.data.object_storage import Place, fetched, is_remote, place
from telic.data.phrase_rows import refuse_empty, skipped_said
from telic.data.phrases import PhraseList, merged, read_list
from telic.data.pieces import Pieces, open_pieces
from telic.data.queries import QueryLog, joined_group, read_query_log
from telic.data.recognised_columns import Shape, shape_of
from telic.data.tables import refuse_twice
from telic.data.ubi import APPLICATION, read_ubi
from telic.errors import InputError

DAY = 24 * 3600 * 1_000_000
DATES = "dates of the logs"
MIN_USERS = "users who must submit a phrase before others are shown it"
"""What a model's facts call them."""


@dataclass(frozen=True)
class Sources:
    """Files, read: lists of phrases, query logs, a composition log.

    Make one with `read_sources`.
    """

    listed: PhraseList | None
    logs: list[QueryLog]
    compositions: CompositionLog | None
    files: list[str]
    """In a few words, what each file is; "" for what is `unread`."""
    roles: set[str] = field(default_factory=set)
    """What some column of the lists and query logs says: `telic.data.recognised_columns.USUAL`."""
    unread: list[tuple[str, Shape]] = field(default_factory=list)
    """Query logs that are to be counted in pieces."""
    unread_lists: list[tuple[str, Shape]] = field(default_factory=list)
    """Where there are no logs: lists that are to be merged in pieces."""

    def possible(self, apart: tuple[int, int, bool] | None = None) -> dict[str, str]:
        """Say what these files make possible, and of the rest what is missing.

        `apart`: of logs that were counted in pieces the first time, the last, and whether they
        name users.
        """
        log, times = self.compositions, self._span(apart)
        days = (times[1] - times[0]) / DAY if times else 0
        named = log is not None or any(len(one.users) > 1 for one in self.logs)
        named = named or bool(apart and apart[2])
        popularity = "yes"
        if not times and "weight" not in self.roles:
            popularity = (
                "only how often a phrase is repeated; for more bring a weight column or a query log"
            )
        no_user = "no: needs a query log with a user column"
        needed = 2 * WINDOW // DAY
        recency = f"no: needs a query log with times over more than {needed} days"
        if days >= 1:
            short = f"not yet: the log spans {int(days)} days, and weighing it takes over {needed}"
            recency = short if days <= needed else f"yes, over {int(days)} days"
        no_lists = "no: needs a log of keystrokes with the lists that were shown (contract 1)"
        return {
            "popularity": popularity,
            "recency": recency,
            "personal history": "yes" if named else no_user,
            "sessions": "yes, the query before" if named else no_user,
            "feedback": "yes" if log and len(log.shown) else no_lists,
        }

    def said(self, min_users: int, apart: tuple[int, int, bool] | None = None) -> dict[str, Any]:
        """Return what a box says of its files; `apart` is as for `possible`."""
        found: dict[str, Any] = {"files": self.files, "possible": self.possible(apart)}
        if dates := self.dates(apart):
            found |= {DATES: dates, MIN_USERS: min_users}
        return found

    def dates(self, apart: tuple[int, int, bool] | None = None) -> str | None:
        """Say when the logs begin and end; None without one. `apart` is as for `possible`."""
        if not (times := self._span(apart)):
            return None
        first, last = np.array(times, "datetime64[us]").astype("datetime64[D]")
        return f"{first} to {last}"

    def _span(self, apart: tuple[int, int, bool] | None) -> tuple[int, int] | None:
        times = [self.compositions.submitted_at] if self.compositions else []
        times += [one.at for one in self.logs]
        times += [np.array(apart[:2])] if apart else []
        return (min(t.min() for t in times), max(t.max() for t in times)) if times else None


def read_sources(
    paths: Sequence[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    on_bad_row: OnBadRow = "raise",
    in_pieces: bool = False,
    folder: Path | None = None,
) -> Sources:
    """Read files of any kind that `telic.data.recognised_columns.shape_of` tells apart.

    Parameters
    ----------
    paths : sequence of path
        At least one.
    columns : mapping of str to str, optional
        Role → column, for the lists and query logs among them.
    on_bad_row : {"raise", "skip"}
    in_pieces : bool
        Leave query logs unread, to be counted in pieces, or lists if there are no logs. Where a
        composition log is among the files, all are read.
    folder : path, optional
        Where a composition log keeps what is long: see `telic.data.compositions.read_compositions`.

    Raises
    ------
    InputError
        If a file cannot be read or told, is given twice, or a row cannot be used.
    """
    if not paths:
        raise InputError("no file was given. Name a list of phrases, a query log or both.")
    refuse_twice(paths)
    lists: list[PhraseList] = []
    logs: list[QueryLog] = []
    compositions: list[Path] = []
    files: list[str] = []
    unread: list[tuple[str, Shape]] = []
    unread_lists: list[tuple[str, Shape]] = []
    roles: set[str] = set()
    opened = []
    for given in paths:
        path = place(given) if is_remote(given) else Path(given)
        if isinstance(path, Path) and path.is_dir():
            compositions.append(path)
            files.append(f"{path}: what a service recorded")
            continue
        pieces = open_pieces(path)
        _refuse_keystrokes(pieces)
        opened.append((path, pieces, shape_of(pieces, _there(columns, pieces))))
    if columns:
        _check_named(columns, [pieces for _, pieces, s in opened if s.kind != "compositions"])
    if compositions or any(shape.kind == "compositions" for _, _, shape in opened):
        in_pieces = False
    only_lists = all(shape.kind == "list" for _, _, shape in opened)
    for path, pieces, shape in opened:
        if shape.kind == "compositions":
            compositions.append(fetched(path))
            files.append(f"{path}: {shape.name}{_unused(shape)}")
            continue
        roles |= set(shape.roles)
        if shape.kind == "list" and in_pieces and only_lists:
            unread_lists.append((str(path), shape))
        elif shape.kind == "list":
            lists.append(read_list(pieces, shape, on_bad_row=on_bad_row))
            files.append(source_said(path, shape, len(lists[-1]), lists[-1].skipped))
        elif in_pieces and not set(GROUPS).isdisjoint(shape.roles):
            raise InputError(
                f"{path}: tenants and networks are told apart in a log that is read whole. Leave "
                "out --memory and --cluster, or the columns."
            )
        elif in_pieces:
            unread.append((str(path), shape))
            files.append("")
        else:
            queries = read_query_log(pieces, shape, on_bad_row=on_bad_row)
            refuse_empty(path, len(queries.query), queries.skipped, "submission")
            logs.append(queries)
            files.append(source_said(path, shape, len(queries.query), queries.skipped))
    log = _composition_log(compositions, on_bad_row, folder)
    if log and log.skipped:
        files.append(f"{', '.join(map(str, compositions))}: {skipped_said(log.skipped)}")
    listed = merged(lists) if lists else None
    return Sources(listed, logs, log, files, roles, unread, unread_lists)


def _there(columns: Mapping[str, str] | None, pieces: Pieces) -> dict[str, str]:
    """Return the roles that a file has the columns of: a list and a log have few in common."""
    if "keystrokes" in pieces.columns:
        return {}
    return {role: name for role, name in (columns or {}).items() if name in pieces.names}


def _refuse_keystrokes(pieces: Pieces) -> None:
    """Raise InputError for records of a service: each prefix would count as a search."""
    if "application" not in pieces.columns:
        return
    first = next(iter(pieces.read(["application"], {})), None)
    if first is not None and APPLICATION in first["application"].to_pylist():
        raise InputError(
            f"{pieces.path}: holds a service's records, a row for each keystroke. Give the folder "
            "that it lies in, or what `telic completion export-log` makes of it."
        )


def _check_named(columns: Mapping[str, str], read: Sequence[Pieces]) -> None:
    if not read:
        raise InputError(
            "--column names columns of lists and query logs; those of a composition log have the "
            "names of contract 1."
        )
    for role, column in columns.items():
        if not any(column in pieces.names for pieces in read):
            there = "; ".join(f"{pieces.path}: {pieces.names}" for pieces in read)
            raise InputError(
                f"no file has a column {column!r} for --column {role}={column}. Found {there}."
            )


def _composition_log(
    paths: list[Path], on_bad_row: OnBadRow, folder: Path | None
) -> CompositionLog | None:
    if not paths:
        return None
    if len(paths) == 1:
        return read_compositions(paths[0], on_bad_row=on_bad_row, folder=folder)
    names = ", ".join(map(str, paths))
    try:
        left_out: Counter[str] = Counter()
        tables = []
        for path in paths:
            table, lost = read_ubi(path) if path.is_dir() else (pq.read_table(path), {})
            tables.append(table)
            left_out.update(lost)
        joined = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        said = str(error).splitlines()[0][:200]
        raise InputError(f"{names}: cannot be joined to one log ({said}). Fit on one.") from None
    if any(map(is_simulated, tables)):  # of the tables' metadata, only the first's are kept
        joined = joined.replace_schema_metadata({SIMULATED: b"true"})
    try:
        called = f"{names}, joined"
        log = read_compositions(joined, on_bad_row=on_bad_row, called=called, folder=folder)
    except InputError:
        for path in paths:  # a row that is wrong by itself is named in its own file
            read_compositions(path, on_bad_row=on_bad_row)
        raise
    log.skipped.update(left_out)
    return log


def source_said(path: str | Place, shape: Shape, rows: int, skipped: Mapping[str, int]) -> str:
    """Say in a few words what a file is."""
    roles = ", ".join(f"{role} from {column!r}" for role, column in shape.roles.items())
    what = "phrases" if shape.kind == "list" else "submissions"
    text = f"{path}: {shape.name}, {rows} {what}; {roles}{_unused(shape)}"
    return f"{text}; {skipped_said(skipped)}" if skipped else text


def _unused(shape: Shape) -> str:
    return f"; not used: {', '.join(map(repr, shape.unused))}" if shape.unused else ""


def submissions_of(log: CompositionLog) -> QueryLog:
    """Return the submissions of a composition log as a query log."""
    used, query = np.unique(log.query, return_inverse=True)
    queries = [log.phrases[q] for q in used]
    return replace(joined_submissions(log), queries=queries, query=query.astype(np.int32))


def as_catalogue(listed: PhraseList, duplicates: Duplicates) -> QueryLog:
    """Return a list as submissions that name nobody, from before every log.

    Takes and raises what `Gathered` does of a phrase that the list gives twice.
    """
    rows, weights, _ = distinct_rows(listed, duplicates)
    coded = listed.phrases.take(pa.array(rows)).dictionary_encode()
    n = len(rows)
    return QueryLog(
        coded.dictionary.to_pylist(),
        coded.indices.to_numpy().astype(np.int32),
        np.zeros(n, np.int64),
        [None],
        np.zeros(n, np.int32),
        # What counts 0 would not be suggested, but a phrase of a list is, whatever it weighs.
        np.maximum(weights, np.finfo(float).tiny),
    )


def joined_logs(logs: Sequence[QueryLog]) -> QueryLog:
    """Join query logs.

    Raises
    ------
    InputError
        If they are of tenants, whose queries would be mixed.
    """
    if joined_group(logs, "tenant")[0]:
        raise InputError(
            "a query log names tenants, whose queries would be mixed. Leave the column 'tenant' "
            "out, and give each tenant's own rows."
        )
    queries: dict[str, int] = {}
    users: dict[str | None, int] = {}
    parts = []
    for log in logs:
        query = np.array([queries.setdefault(q, len(queries)) for q in log.queries], np.int32)
        user = np.array([users.setdefault(u, len(users)) for u in log.users], np.int32)
        parts.append((query[log.query], log.at, user[log.user], log.count, log.vouched))
    query, at, user, count, listed = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    named, network = joined_group(logs, "network")
    groups = {"network": ([*named, None], network.astype(np.int32))} if named else {}
    return QueryLog(
        list(queries), query, at, list(users), user, count, groups=groups, of_catalogue=listed
    )
