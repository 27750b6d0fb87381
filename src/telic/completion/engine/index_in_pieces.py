"""A prefix index of more phrases than fit into memory: sorted on disk, written in one pass."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from telic.completion.engine.encoded_phrases import bytes_and_offsets, encoded_phrases
from telic.completion.engine.front_coding import compact, pack
from telic.completion.engine.prefix_index import (
    PrefixIndex,
    added_up,
    checked_weights,
    firsts,
    number_kind,
    packed_spellings,
)
from telic.completion.engine.shown_spelling import BLOCK
from telic.data.growing_arrays import GrowingFile
from telic.errors import InputError, expect_whole
from telic.scale.duckdb_tasks import sorted_on_disk
from telic.scale.job_folder import hidden

ROWS = 1 << 16
"""Sorted phrases that are held at a time."""


def index_in_pieces(
    batches: Iterable[tuple[Sequence[str] | pa.Array, Sequence[float] | np.ndarray]],
    work: str | Path,
    *,
    hot_top: int = 50,
    hot_range: int = 1024,
    rows: int = ROWS,
) -> PrefixIndex:
    """Build the index that `PrefixIndex.build` gives of all batches together, to the byte.

    DuckDB sorts the phrases within the task's memory (`telic.scale.memory`) and spills to disk. Of
    the phrases themselves no more than a batch is in memory; of each phrase it holds a few
    bytes: the index without its texts.

    Parameters
    ----------
    batches : iterable of (phrases, weights)
        As `PrefixIndex.build` takes them.
    work : path
        Folder on a disk with room for the phrases three times. What is written there is removed,
        but for the index's larger arrays, which go when the index does.
    hot_top, hot_range
        As of `PrefixIndex.build`.
    rows : int
        Sorted phrases that are held at a time.

    Returns
    -------
    PrefixIndex
        With arrays that are memory-mapped; `PrefixIndex.save` copies them.

    Raises
    ------
    InputError
        As `PrefixIndex.build`, or if DuckDB is not installed.
    JobError
        If memory or disk do not suffice.

    Examples
    --------
    >>> batches = [(["Tea", "Teapot"], [3, 1]), (["Tea", "Coffee"], [1, 2])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index = index_in_pieces(batches, folder)
    >>> index.phrases(index.top("")), index.weights_of().tolist()
    (['Tea', 'Coffee', 'Teapot'], [2.0, 4.0, 1.0])
    """
    expect_whole(1, hot_top=hot_top)
    with tempfile.TemporaryDirectory(prefix=hidden("index-"), dir=work) as folder:
        files = GrowingArrays(Path(folder))
        batches = sorted_on_disk(_rows(batches), "folded, spelling, place", files.folder, rows)
        return index_of_sorted(_distinct(batches), files, hot_top=hot_top, hot_range=hot_range)


class GrowingArrays:
    """Arrays that grow in temporary files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, GrowingFile] = {}

    def append(self, parts: Mapping[str, np.ndarray]) -> None:
        """Let each array go on with what is given."""
        for name, array in parts.items():
            if name not in self._files:
                self._files[name] = GrowingFile(self.folder, array.dtype)
            self._files[name].add(array)

    def mapped(self, name: str, kind: Any) -> np.ndarray:
        """Return an array, memory-mapped, which stays when the folder goes."""
        return self._files[name].values("r") if name in self._files else np.empty(0, kind)


def index_of_sorted(
    parts: Iterable[tuple[pa.Array, pa.Array, np.ndarray]],
    files: GrowingArrays,
    *,
    hot_top: int = 50,
    hot_range: int = 1024,
) -> PrefixIndex:
    """Build an index of phrases that come in the order of their ids.

    Parameters
    ----------
    parts : iterable of (folded forms, spellings, weights)
        Arrays of large_binary and float64, each part as long as it may be.
    files : GrowingArrays
    hot_top, hot_range
        As of `PrefixIndex.build`.
    """
    starts, values, end = [np.zeros(1, np.int64)], np.empty(0), 0
    for folded, spellings, weights in _in_blocks(parts):
        text, offsets = bytes_and_offsets(folded)
        packed, own_starts = pack(text, offsets)
        starts.append(own_starts[1:] + np.int64(end))
        end += len(packed)
        kinds, given, lengths = packed_spellings(text, offsets, spellings)
        grown = {"packed": packed, "kinds": kinds, "given": given, "lengths": lengths}
        files.append(grown | {"weights": weights})
        values = np.union1d(values, weights)
    weights = files.mapped("weights", np.float64)
    for begin in range(0, len(weights), ROWS):
        numbers = np.searchsorted(values, weights[begin : begin + ROWS])
        files.append({"numbers": numbers.astype(number_kind(values))})
    return PrefixIndex.assembled(
        files.mapped("packed", np.uint8),
        compact(np.concatenate(starts)),
        files.mapped("kinds", np.uint8),
        files.mapped("given", np.uint8),
        files.mapped("lengths", np.int64),
        files.mapped("numbers", number_kind(values)),
        values,
        hot_top=hot_top,
        hot_range=hot_range,
    )


def _in_blocks(
    parts: Iterable[tuple[pa.Array, pa.Array, np.ndarray]],
) -> Iterator[tuple[pa.Array, pa.Array, np.ndarray]]:
    """Give the same phrases in whole blocks, but for the last of them."""
    folded, spellings, weights = _nothing()
    for part in parts:
        folded = pa.concat_arrays([folded, part[0]])
        spellings = pa.concat_arrays([spellings, part[1]])
        weights = np.concatenate([weights, part[2]])
        whole = len(weights) // BLOCK * BLOCK
        if whole:
            yield folded[:whole], spellings[:whole], weights[:whole]
            folded, spellings, weights = folded[whole:], spellings[whole:], weights[whole:]
    if len(weights):
        yield folded, spellings, weights


def _rows(batches: Iterable) -> Iterator[pa.Table]:
    """Give all rows with their folded forms and their places."""
    begin = 0
    for phrases, weights in batches:
        values = checked_weights(weights, begin)
        if len(phrases) != len(values):
            raise InputError(f"{len(phrases)} phrases but {len(values)} weights: one for each.")
        spellings, folded = encoded_phrases(phrases, begin)
        places = np.arange(begin, begin + len(values))
        columns = {"folded": folded, "spelling": spellings, "weight": values, "place": places}
        yield pa.table(columns)
        begin += len(values)


def _distinct(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[pa.Array, pa.Array, np.ndarray]]:
    """Join sorted rows of one spelling."""
    folded, spellings, weights = _nothing()
    for batch in batches:
        folded = pa.concat_arrays([folded, batch["folded"].cast(pa.large_binary())])
        spellings = pa.concat_arrays([spellings, batch["spelling"].cast(pa.large_binary())])
        weights = np.concatenate([weights, batch["weight"].to_numpy()])
        first = firsts(spellings)
        folded, distinct = folded.take(pa.array(first)), spellings.take(pa.array(first))
        weights, spellings = added_up(weights, first, distinct), distinct
        # Of the last spelling there may be more.
        yield folded[:-1], spellings[:-1], weights[:-1]
        folded, spellings, weights = folded[-1:], spellings[-1:], weights[-1:]
    yield folded, spellings, weights


def _nothing() -> tuple[pa.Array, pa.Array, np.ndarray]:
    empty = pa.array([], pa.large_binary())
    return empty, empty, np.empty(0)
