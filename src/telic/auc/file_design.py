"""Labelled rows in a file, read a block at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from telic.auc.feature_scaling import Scaling
from telic.data.numpy_files import load_npy
from telic.data.object_storage import place, readable, refuse_remote, state_of
from telic.data.tables import is_number, refuse_repeated
from telic.errors import InputError
from telic.optim.design import LARGEST
from telic.scale.partitions import Range, check_unchanged, ranges, row_ranges

BLOCK = 1 << 13
"""Rows that are summed at once; sums of blocks go up one tree, whatever the partitions."""

NUMBERS = 1 << 22
"""Numbers in a group of rows."""


class Share(NamedTuple):
    """Rows that are held out by their number, or all others."""

    size: float
    """Of those held out, in (0, 1)."""
    seed: int
    held_out: bool

    def takes(self, rows: np.ndarray) -> np.ndarray:
        """Say which rows belong to it, given their numbers."""
        mixed = rows.astype(np.uint64) + np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64)
        for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):  # SplitMix64
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(factor)
        held = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)
        return (held < self.size * 2**53) == self.held_out


@dataclass(frozen=True)
class FileDesign:
    """Labelled rows in a file: an array beside its labels, or a Parquet file.

    Make one with `FileDesign.open`.
    """

    path: str
    label: str
    """The labels' file, or their column."""
    pos_label: Any
    columns: tuple[str, ...]
    """Features of a Parquet file; none of an array."""
    rows: int
    width: int
    states: tuple[tuple[int, int], ...]
    """Size and time of change of the file, and of the labels' file where it is another."""
    scaling: Scaling | None = None
    """How rows are scaled as they are read."""
    share: Share | None = None
    """Which rows are left out."""

    @classmethod
    def open(
        cls,
        path: str | Path,
        label: str | Path,
        *,
        pos_label: Any = 1,
        columns: Sequence[str] | None = None,
    ) -> Self:
        """Look at a file of rows.

        Parameters
        ----------
        path : path
            An array of shape (n, d) in ``.npy``, or a ``.parquet`` table.
        label : str or path
            For an array, a ``.npy`` file of shape (n,); for a table, one of its columns.
        pos_label : label
            Rows with it are positive, all others negative.
        columns : sequence of str, optional
            Features; default every numeric column but the label.

        Raises
        ------
        InputError
            If the files do not fit together.
        """
        file, label = place(path), str(label)  # a worker has a working folder of its own
        array = file.name.endswith(".npy")
        if array:
            label = str(place(label))
            for given in (file, label):
                refuse_remote(given, "the rows' file", "an array is mapped; Parquet is not")
        try:
            states = tuple(map(state_of, (file, place(label)) if array else (file,)))
            if array:
                X, y = mapped(str(file)), mapped(label)
                if X.ndim != 2 or not X.size or y.shape != X.shape[:1]:
                    raise InputError(f"{file}, {label}: shapes {X.shape} and {y.shape} do not fit.")
                if X.dtype.kind not in "biuf":  # NumPy would make numbers of times, too
                    raise InputError(f"{file}: holds {X.dtype}, expected real numbers.")
                rows, width = X.shape
                return cls(str(file), label, pos_label, (), rows, width, states)
            schema = pq.read_schema(readable(file))
            metadata = pq.read_metadata(readable(file))
        except (OSError, ValueError, pa.ArrowException) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{file}: cannot be read ({error}). Check the path.") from None
        if not metadata.num_rows:
            raise InputError(f"{file}: holds no row.")
        numeric = [field.name for field in schema if is_number(field.type)]
        wanted = [name for name in numeric if name != label] if columns is None else columns
        chosen = tuple(wanted)
        if not chosen:
            raise InputError(f"{file}: no column of numbers is left to learn from.")
        refuse_repeated(file, schema.names, (label, *chosen))
        for name in (label, *chosen):
            if name not in schema.names or (name != label and name not in numeric):
                raise InputError(f"{file}: no numeric column {name!r}; found {schema.names}.")
        return cls(str(file), label, pos_label, chosen, metadata.num_rows, len(chosen), states)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield `BLOCK` rows at a time, and which are positive; start is a multiple of `BLOCK`."""
        for path, state in zip((self.path, self.label), self.states, strict=False):
            check_unchanged(path, state)
        for first, X, y in self._read(start, stop):
            bad = ~(np.abs(X) <= LARGEST)  # NaN too
            if bad.any():
                row, column = np.argwhere(bad)[0]
                name = self.columns[column] if self.columns else int(column)
                number = first + row + bool(self.columns)  # an array's count from 0
                wrong, wanted = X[row, column], f"a number of at most {LARGEST:g} in size"
                found = "missing or no number" if np.isnan(wrong) else f"{wrong}, expected {wanted}"
                raise InputError(
                    f"{self.path}: row {number}, column {name!r}: {found}. Fill, scale or drop it."
                )
            if y.dtype.kind == "f" and np.isnan(y).any():
                raise self._unlabelled()
            positive = np.asarray(y == self.pos_label, bool)
            if self.share is not None:
                taken = self.share.takes(np.arange(first, first + len(X)))
                X, positive = X[taken], positive[taken]
            yield X if self.scaling is None else self.scaling.apply(X), positive

    def positives(self) -> int:
        """Count the positive rows; of a table the labels alone are read."""
        if not self.columns:
            return int(np.asarray(mapped(self.label) == self.pos_label, bool).sum())
        with pq.ParquetFile(readable(place(self.path))) as file:
            batches = file.iter_batches(BLOCK, columns=[self.label])
            return sum(batch[self.label].to_pylist().count(self.pos_label) for batch in batches)

    def groups(self) -> list[Range]:
        """Cut the rows as they are read at a time, some millions of numbers each.

        A Parquet file is cut between its row groups, so that each of them is read once.
        """
        rows = max(BLOCK, NUMBERS // self.width)
        if not self.columns:
            return ranges(self.rows, rows)
        parts = row_ranges(self.path, rows)  # the last may be an empty row group
        return [Range(part.first, part.first + part.rows) for part in parts if part.rows]

    def rows_of(self, part: Range) -> tuple[np.ndarray, np.ndarray]:
        """Read some rows, and which are positive."""
        X, positive = zip(*self.blocks(*part), strict=True)
        return np.concatenate(X), np.concatenate(positive)

    def _read(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        if not self.columns:
            X, y = mapped(self.path), mapped(self.label)
            for first, last in ((a, min(a + BLOCK, stop)) for a in range(start, stop, BLOCK)):
                yield first, np.array(X[first:last], np.float64, order="C"), np.array(y[first:last])
            return
        with pq.ParquetFile(readable(place(self.path))) as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            groups = np.flatnonzero((ends > start) & (ends - sizes < stop)).tolist()
            position = int(ends[groups[0]] - sizes[groups[0]]) if groups else start
            first = start
            parts: list[pa.Table] = []
            names = [*self.columns, self.label]
            for batch in file.iter_batches(BLOCK, row_groups=groups, columns=names):
                table = pa.Table.from_batches([batch])
                low, high = max(start - position, 0), min(stop - position, len(table))
                position += len(table)
                if high <= low:
                    continue
                parts.append(table.slice(low, high - low))
                while sum(map(len, parts)) >= BLOCK:
                    held = pa.concat_tables(parts)
                    yield first, *self._arrays(held.slice(0, BLOCK))
                    first, parts = first + BLOCK, [held.slice(BLOCK)]
            if sum(map(len, parts)):
                yield first, *self._arrays(pa.concat_tables(parts))

    def _arrays(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        X = np.empty((len(table), self.width))
        for j, name in enumerate(self.columns):
            X[:, j] = table[name].to_numpy()  # a null becomes NaN
        labels = table[self.label]
        if labels.null_count:
            raise self._unlabelled()
        if pa.types.is_temporal(labels.type):  # NumPy's have no time zone
            return X, np.array(labels.to_pylist(), object)
        return X, labels.to_numpy()

    def _unlabelled(self) -> InputError:
        return InputError(
            f"{self.path}: labels of {self.label!r} are missing, and a row without one is neither "
            "positive nor negative. Fill or drop the rows."
        )


def mapped(path: str | Path) -> np.ndarray:
    """Map an array's file into memory."""
    return load_npy(path, mmap_mode="r")
