"""Query logs that are counted in pieces, and a search box from the counts."""

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from telic.completion.engine.folding import fold
from telic.completion.fit.counts_in_pieces import (
    Source,
    TimeSplit,
    bucket,
    count_users,
    facts_of,
    merge_forms,
    take_users,
    to_parquet,
)
from telic.completion.fit.lost_below_k_users import KS, Kept, said_by_k
from telic.completion.fit.merged_phrases import (
    FEWEST,
    Duplicates,
    Entries,
    FormCounts,
    Gathered,
    HeldOut,
    histories_of,
)
from telic.data.bad_rows import OnBadRow
from telic.data.object_storage import Place, fetched, place, readable, state_of
from telic.data.phrase_rows import refuse_empty
from telic.data.phrases import PhraseList
from telic.data.pieces import open_pieces
from telic.data.recognised_columns import Shape
from telic.errors import InputError
from telic.scale import Executor, row_ranges
from telic.scale.job_folder import placed
from telic.scale.memory import said as size_said
from telic.scale.partitions import WholeFile

ROW = 800
"""Bytes that a row takes at most while it is checked and dealt out."""
COUNTED = 400
"""Bytes that a row takes at most while it is counted."""
OWN = 500
"""Bytes that a query of a user takes in a completer."""


class Files(NamedTuple):
    """The files of a bucket of users."""

    number: int
    paths: list[Place]

    def __str__(self) -> str:
        return f"bucket {self.number} of users"


class Counts(NamedTuple):
    """What the pieces of some logs were counted to."""

    parts: list[Place]
    """By range of rows."""
    users: list[Place]
    """By bucket of users."""
    forms: list[Place]
    """By bucket of folded forms."""
    moments: TimeSplit
    held: pa.Table
    """The latest submissions, oldest first."""
    early: list[Place]
    """What the users of `held` submitted before."""
    logs: list[tuple[int, Counter[str]]]
    """Of each log: rows, and rows that were skipped by reason."""
    first: int
    """Time of the first submission."""
    before: int
    """Time of the last one before `held`."""


def count_logs(
    logs: Sequence[tuple[str, Shape]],
    executor: Executor,
    work: Place,
    *,
    listed: PhraseList | None = None,
    min_users: int = 3,
    latest: int = 1000,
    on_bad_row: OnBadRow = "raise",
    skip_bad: bool = False,
) -> Counts:
    """Count popularity, its last 28 days, people, sessions and each user's own submissions.

    Parameters
    ----------
    logs : sequence of (path, Shape)
    executor : Executor
    work : path
        Folder of the pieces, which every worker reaches; the same job goes on there.
    listed : PhraseList, optional
        Forms that are wanted however few submitted them.
    min_users, on_bad_row
        As in `fit_files`.
    latest : int
        Most submissions to hold out.
    skip_bad : bool
        Leave out partitions that cannot be worked on, and say so in the reports.

    Raises
    ------
    InputError
        If a row cannot be used or a log has a form that is read whole.
    JobError
        See `telic.scale.Executor.map`.
    """
    sources = _sources(logs, on_bad_row, executor, work)
    plan = _plan(work, sum(source.rows.rows for source in sources), executor)
    work = work / f"{plan['rows']}-rows-{plan['buckets']}-buckets"  # with no part of another plan
    cut = [
        source._replace(rows=part)
        for source in sources
        for part in row_ranges(source.rows.path, plan["rows"])
    ]
    task = partial(bucket, plan["buckets"], latest, on_bad_row)
    dealt = executor.map(task, cut, out=work / "by-user", skip_bad=skip_bad)
    parts = [part for part in dealt.values if part is not None]
    by_log: list[tuple[int, Counter[str]]] = [(0, Counter()) for _ in logs]
    facts = []
    for source, part in zip(cut, dealt.values, strict=True):
        if part is not None:
            said = facts_of(part)
            rows, skipped = by_log[source.log]
            skipped.update(said["skipped"])
            by_log[source.log] = rows + said["rows"], skipped
            if said["rows"]:
                facts.append(said)
    failed = {source.log for source, part in zip(cut, dealt.values, strict=True) if part is None}
    for log, (name, _) in enumerate(logs):
        if log not in failed:  # what failed may have rows
            refuse_empty(name, *by_log[log], "submission")
    if not facts:
        raise InputError(f"{', '.join(name for name, _ in logs)}: no row can be used.")
    total = sum(said["rows"] for said in facts)
    held = _held([part / "latest.parquet" for part in parts], min(latest, total // 4))
    end = max(said["last"] for said in facts) + 1
    moments = TimeSplit(end, held["us"][0].as_py() if len(held) >= FEWEST else end)
    by_bucket: dict[int, list[Place]] = {}
    for part in parts:
        for file in sorted(part.glob("bucket=*/*.parquet")):
            by_bucket.setdefault(int(file.parent.name[7:]), []).append(file)
    files = [Files(b, by_bucket[b]) for b in sorted(by_bucket)]
    catalogues = [log for log, (_, shape) in enumerate(logs) if "user" not in shape.roles]
    task = partial(count_users, moments, catalogues, plan["buckets"])
    counted = executor.map(task, files, out=work / "counted", skip_bad=skip_bad)
    users = [part for part in counted.values if part is not None]
    people = sorted(set(held["person"].to_pylist()) - {None})
    task = partial(take_users, people, moments.split)
    early = executor.map(task, files, out=work / "early", ending=".parquet", skip_bad=skip_bad)
    phrases = listed.phrases.to_pylist() if listed is not None else []
    forms = pa.array(sorted({fold(phrase) for phrase in phrases}), pa.string())
    # Named after what it holds, so that a job with another list is another job.
    digest = hashlib.sha256("\n".join(forms.to_pylist()).encode()).hexdigest()[:16]
    vouched = work / f"listed-{digest}.parquet"
    with placed(vouched) as temporary:
        pq.write_table(pa.table({"form": forms}), temporary)
    task = partial(merge_forms, min_users, users, vouched)
    texts = (file for part in users for file in part.glob("texts/bucket=*/*.parquet"))
    used = sorted({int(file.parent.name[7:]) for file in texts})
    merged = executor.map(task, used, out=work / "by-form", skip_bad=skip_bad)
    return Counts(
        parts,
        users,
        [part for part in merged.values if part is not None],
        moments,
        held,
        [path for path in early.values if path is not None],
        by_log,
        min(said["first"] for said in facts),
        max(facts_of(part)["before"] or 0 for part in users),
    )


def _sources(
    logs: Sequence[tuple[str, Shape]], on_bad_row: OnBadRow, executor: Executor, work: Place
) -> list[Source]:
    """Find the rows of each log; what is no Parquet is copied to it first."""
    found = []
    for number, (name, shape) in enumerate(logs):
        if "past" in shape.roles or shape.name.startswith("AOL"):
            raise InputError(
                f"{name}: {shape.name} is not counted in pieces: its rows depend on one another. "
                "Convert it to a query log (contract 2), or read it whole, without --memory."
            )
        path = str(place(name))  # a worker has a working folder of its own
        if not name.endswith(".parquet"):
            skipped: dict[str, int] = {}
            pieces = open_pieces(name).read(
                list(shape.roles.values())[:1], skipped if on_bad_row == "skip" else None
            )
            refuse_empty(name, len(next(filter(len, pieces), ())), skipped, "submission")
            task = partial(to_parquet, shape, on_bad_row)
            log = WholeFile(path, state_of(place(name)))  # a log that changed is another job
            copied = executor.map(task, [log], out=work / f"copied-{number}", ending=".parquet")
            path = str(copied.values[0])
        found += [Source(rows, name, number, shape) for rows in row_ranges(path, 1 << 62)]
    return found


def _plan(work: Place, rows: int, executor: Executor) -> dict[str, int]:
    """Choose sizes by what a piece may take.

    A job that goes on keeps to them, unless it is asked for smaller pieces.
    """
    work.mkdir(parents=True, exist_ok=True)
    piece = min([executor.piece, *(int(file.stem[5:]) for file in work.glob("plan-*.json"))])
    file = work / f"plan-{piece}.json"
    if not file.exists():
        buckets = max(executor.slots, -(-rows * COUNTED // piece))
        plan = {"rows": max(piece // ROW, 1), "buckets": min(buckets, 4096)}
        with placed(file) as temporary:
            temporary.write_text(json.dumps(plan), encoding="utf-8")
    found: dict[str, int] = json.loads(fetched(file).read_text(encoding="utf-8"))
    return found


def _joined(files: list[Place]) -> pa.Table:
    """Read Parquet files as one table; which columns happen to hold nulls differs among them."""
    tables = (pq.ParquetFile(fetched(file)).read() for file in files)
    return pa.concat_tables(
        [pa.table(dict(zip(t.column_names, t.columns, strict=True))) for t in tables]
    )


def _held(files: list[Place], most: int) -> pa.Table:
    """Take the latest submissions out of those of each part, oldest first."""
    table = _joined(files)
    order = pc.sort_indices(table, [("us", "ascending"), ("number", "ascending")])
    return table.take(order[max(len(order) - most, 0) :])


class CountedLog(Gathered):
    """Lists, and query logs that were counted in pieces; as `Gathered`, which holds logs whole.

    Parameters
    ----------
    listed, duplicates
        As of `Gathered`.
    counts : Counts
    memory : int
        Bytes that this process may take: users' own submissions are left out where they take more
        than half of it.
    """

    def __init__(
        self,
        listed: PhraseList | None,
        counts: Counts,
        *,
        memory: int,
        duplicates: Duplicates = "raise",
    ) -> None:
        super().__init__(listed, [], duplicates=duplicates)
        self._counts = counts
        self._listed = len(self.forms)
        self._facts = [facts_of(part) for part in counts.forms]
        table = _joined([part / "forms.parquet" for part in counts.forms])
        self._table = table.sort_by([("first_row", "ascending")])
        texts = self._table["form"].to_pylist()
        self._place = np.array([self.forms.setdefault(f, len(self.forms)) for f in texts], np.int64)
        histories = [part / "histories.parquet" for part in counts.users]
        self._pairs = sum(pq.read_metadata(readable(file)).num_rows for file in histories)
        self.apart = 2 * OWN * self._pairs > memory
        """Whether users' own submissions are left out."""
        self._early: dict[str, dict] | None = None

    @property
    def named(self) -> bool:
        """Whether any submission names a user."""
        return self._pairs > 0

    def facts(self) -> dict[str, str]:
        """Say what was left out."""
        if not self.apart:
            return {}
        size = size_said(2 * OWN * self._pairs)
        return {
            "personal history": f"left out: {self._pairs} queries of users would take about {size}"
        }

    def counts(self, *, until: int | None = None) -> FormCounts:
        """Count submissions as of the end, or as of the moment that `held_out` names."""
        early = "" if until is None else "early_"
        size = len(self.forms)

        def column(name: str, kind: Any) -> np.ndarray:
            found = np.zeros(size, kind)
            found[self._place] = self._table[name].to_numpy()
            return found

        texts = [""] * size
        for number, text in zip(self._place, self._table[f"{early}text"].to_pylist(), strict=True):
            texts[number] = text
        shy, unnamed = (
            sum(facts[early + name] for facts in self._facts) for name in ("shy", "unnamed")
        )
        return FormCounts(
            column("early" if early else "popular", float),
            column(f"{early}recent", float),
            column(f"{early}opened", bool),
            texts,
            column("spellings", np.int64),
            shy,
            unnamed,
        )

    def held_out(self, most: int) -> HeldOut | None:
        """Return the latest submissions, `most` of them or a quarter; None if few."""
        counts = self._counts
        held = counts.held
        if len(held) < FEWEST or counts.before < counts.first:
            return None
        held = held.slice(max(len(held) - most, 0))
        return HeldOut(
            counts.moments.split,
            [
                (person, text, None)
                for person, text in zip(
                    held["person"].to_pylist(), held["text"].to_pylist(), strict=True
                )
            ],
            bool(pc.any(self._table["early_opened"]).as_py()),
            any(facts_of(part)["named"] for part in counts.users),
            counts.before - counts.first,
        )

    def histories(self, entries: Entries, *, until: int | None = None) -> dict[str, dict]:
        """Return what users submitted; before the held-out submissions, that of their users."""
        if until is not None:
            if self._early is None:
                self._early = self._own(self._counts.early, entries)
            return self._early
        if self.apart:
            return {}
        return self._own([part / "histories.parquet" for part in self._counts.users], entries)

    def _own(self, files: list[Place], entries: Entries) -> dict[str, dict]:
        table = _joined(files)
        own: dict[str, dict] = {}
        if "first_row" in table.column_names:  # users come in the order in which the log names them
            begins = table.group_by("person").aggregate([("first_row", "min")])
            own = {user: {} for user in begins.sort_by("first_row_min")["person"].to_pylist()}
        table = table.sort_by([("us", "ascending"), ("number", "ascending")])
        columns = (table[name].to_pylist() for name in ("person", "form", "text", "weight"))
        return histories_of(zip(*columns, strict=True), own, entries)

    def kept_back(self) -> dict[str, str]:
        """Say what is suggested if k users must have submitted it."""
        found = [row for facts in self._facts for row in facts["kept"]]
        everything = sum(named for _, _, named in found)
        unseen = self._listed - int((self._place < self._listed).sum())
        kept = {k: [row for row in found if row[0] >= k] for k in KS}
        return said_by_k(
            {
                k: Kept(
                    unseen + sum(row[1] for row in rows), sum(row[2] for row in rows), everything
                )
                for k, rows in kept.items()
            }
        )


@contextmanager
def work_folder(work: str | Place | None) -> Iterator[Place]:
    """Give the job's folder: the one given, which stays, or one for this once."""
    if work is not None:
        yield place(work)
        return
    with tempfile.TemporaryDirectory(prefix="telic-job-") as folder:
        yield Path(folder)
