"""Lists of phrases that are larger than memory: sorted on disk, merged and indexed in one pass."""

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from telic.completion.engine.encoded_phrases import encoded_phrases
from telic.completion.engine.filters import Contexts
from telic.completion.engine.index_in_pieces import ROWS, GrowingArrays, index_of_sorted
from telic.completion.engine.payloads import Records
from telic.completion.engine.prefix_index import PrefixIndex, sorted_phrases
from telic.completion.fit.merged_phrases import Duplicates, Entries, Gathered
from telic.completion.fit.sources import source_said
from telic.data.bad_rows import OnBadRow
from telic.data.phrases import PhraseList, list_rows
from telic.data.pieces import open_pieces
from telic.data.recognised_columns import Shape
from telic.data.tables import one_chunk
from telic.scale.duckdb_tasks import sorted_on_disk
from telic.scale.job_folder import hidden


@dataclass(frozen=True)
class ListedPhrases:
    """What a search box has of lists."""

    index: PrefixIndex
    """Memory-mapped, as are the records."""
    records: Records | None
    contexts: Contexts | None
    spellings: int
    """As of `Entries`."""
    unshown: np.ndarray
    """As of `Entries`."""
    files: list[str]
    """In a few words, what each file is."""


def catalogue_in_pieces(
    lists: Sequence[tuple[str, Shape]],
    work: Path,
    *,
    weights_of: Callable[[Entries], np.ndarray],
    duplicates: Duplicates = "raise",
    on_bad_row: OnBadRow = "raise",
    rows: int = ROWS,
) -> ListedPhrases:
    """Merge and index lists as `Gathered` and `PrefixIndex.build_ordered` do, to the byte.

    DuckDB sorts the rows by their folded forms, within the task's memory (`telic.scale.memory`).
    What is an entry depends on rows of one form alone, so some thousand rows, and all of one form,
    are merged at a time. Of each entry some ten bytes stay in memory.

    Parameters
    ----------
    lists : sequence of (path, Shape)
    work : path
        Folder on a disk with room for the lists three times.
    weights_of : callable
        Returns the entries' weights in the index, each by itself.
    duplicates, on_bad_row
        As of `fit_files`.
    rows : int
        Sorted rows that are held at a time.

    Raises
    ------
    InputError
        As `fit_files`; of phrases that are listed with different weights one is named.
    JobError
        If memory or disk do not suffice.
    """
    given = _Rows(lists, on_bad_row)
    contexts: list[np.ndarray] = []
    unshown = [np.empty(0, np.int64)]
    spellings = bytes_used = 0
    with tempfile.TemporaryDirectory(prefix=hidden("lists-"), dir=work) as folder:
        files = GrowingArrays(Path(folder))

        def parts() -> Iterator[tuple[pa.Array, pa.Array, np.ndarray]]:
            nonlocal spellings, bytes_used
            batches = sorted_on_disk(given, "folded, file, row", files.folder, rows)
            for table in _whole_forms(batches):
                entries = Gathered(given.listed(table), [], duplicates=duplicates).entries()
                spellings += entries.spellings
                unshown.append(entries.unshown)
                folded, texts, order = sorted_phrases(entries.phrases, np.arange(len(entries)))
                in_order = order.tolist()
                records = Records.of(
                    [entries.ids[i] for i in in_order], [entries.payloads[i] for i in in_order]
                )
                files.append({"records": records.text, "ends": records.ends + bytes_used})
                bytes_used += len(records.text)
                if given.values:
                    columns = {n: [v[i] for i in in_order] for n, v in entries.contexts.items()}
                    contexts.append(Contexts.of(columns, given.values).codes)
                yield folded, texts, weights_of(entries)[order]

        index = index_of_sorted(parts(), files)
        pa.default_memory_pool().release_unused()  # what sorting took
        records = Records(files.mapped("records", np.uint8), files.mapped("ends", np.int64))
    return ListedPhrases(
        index,
        records if bytes_used else None,
        given.contexts(contexts) if given.values else None,
        spellings,
        np.concatenate(unshown),
        given.said,
    )


class _Rows:
    """The checked rows of lists with their folded forms and places, in tables of the same columns.

    What is said of the files and which values the contexts have is known once all were read.
    """

    def __init__(self, lists: Sequence[tuple[str, Shape]], on_bad_row: OnBadRow) -> None:
        self._lists, self._on_bad_row = lists, on_bad_row
        self._weighted = any("weight" in shape.roles for _, shape in lists)
        self.values: dict[str, set[str | None]] = {
            name: set() for _, shape in lists for name in shape.contexts
        }
        self.said: list[str] = []

    def __iter__(self) -> Iterator[pa.Table]:
        for file, (name, shape) in enumerate(self._lists):
            skipped: dict[str, int] = {}
            read = 0
            for row, part in list_rows(open_pieces(name), shape, self._on_bad_row, skipped):
                n = len(part)
                read += n
                texts = {"id", "payload", *self.values}
                columns = {role: _column(part, role, pa.nulls(n, pa.string())) for role in texts}
                for context, values in self.values.items():
                    values.update(columns[context].unique().to_pylist())
                phrases = one_chunk(part["phrase"])
                yield pa.table(
                    {
                        "folded": encoded_phrases(phrases)[1],
                        "file": np.full(n, file, np.int32),
                        "row": row,
                        "phrase": phrases,
                        "weight": _column(part, "weight", pa.array(np.ones(n))),
                        "id": columns["id"],
                        "payload": columns["payload"],
                        **{f"context {i}": columns[c] for i, c in enumerate(self.values)},
                    }
                )
            self.said.append(source_said(name, shape, read, skipped))

    def listed(self, table: pa.Table) -> PhraseList:
        """Return some of the rows as a list."""
        columns = {name: one_chunk(table[name]) for name in table.column_names}
        return PhraseList(
            "",
            columns["phrase"],
            columns["weight"].to_numpy() if self._weighted else None,
            columns["id"],
            columns["payload"],
            {name: columns[f"context {i}"] for i, name in enumerate(self.values)},
            columns["row"].to_numpy(),
            files=tuple(name for name, _ in self._lists),
            file=columns["file"].to_numpy(),
        )

    def contexts(self, codes: list[np.ndarray]) -> Contexts:
        """Return the contexts of all phrases, given the codes of each part of them."""
        nothing = Contexts.of(dict.fromkeys(self.values, ()), self.values)
        return Contexts(
            nothing.names, nothing.values, np.concatenate([nothing.codes, *codes], axis=1)
        )


def _column(part: pa.Table, role: str, otherwise: pa.Array) -> pa.Array:
    return one_chunk(part[role]) if role in part.column_names else otherwise


def _whole_forms(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join sorted rows to tables that have all rows of each folded form in them."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        folded = batch["folded"]
        begin = folded.index(folded[-1]).as_py()
        if begin or (held and held[-1]["folded"][-1] != folded[-1]):
            yield pa.Table.from_batches([*held, batch[:begin]])
            held = []
        held.append(batch[begin:])
    if held:
        yield pa.Table.from_batches(held)
