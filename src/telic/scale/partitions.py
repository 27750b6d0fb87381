"""Ways to cut work into partitions."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from telic.data.object_storage import place, readable, state_of
from telic.errors import InputError, expect_whole


class Range(NamedTuple):
    """Numbers from `start` up to, not including, `stop`."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.start} to {self.stop - 1}"


def ranges(size: int, step: int) -> list[Range]:
    """Cut the numbers 0 … size − 1 into ranges of `step`.

    Raises
    ------
    InputError
        If `step` is below 1.

    Examples
    --------
    >>> [str(part) for part in ranges(5, 2)]
    ['0 to 1', '2 to 3', '4 to 4']
    """
    expect_whole(1, step=step)  # no range at all would be a job that does nothing
    return [Range(start, min(start + step, size)) for start in range(0, size, step)]


@dataclass(frozen=True)
class RowRange:
    """Some row groups of a Parquet file, as the file was when it was cut."""

    path: str
    groups: tuple[int, ...]
    first: int
    """Number of the first row in the file, from 0."""
    rows: int
    state: tuple[int, int]
    """The file's size and time of change."""

    def __str__(self) -> str:
        return f"{self.path}, rows {self.first + 1} to {self.first + self.rows}"

    def batches(self, columns: list[str], size: int) -> Iterator[pa.Table]:
        """Yield the rows in batches, in the file's order.

        Raises
        ------
        InputError
            If the file was changed meanwhile, or cannot be read.
        """
        check_unchanged(self.path, self.state)
        file = place(self.path)
        try:
            with pq.ParquetFile(readable(file), memory_map=True) as rows:
                for batch in rows.iter_batches(size, row_groups=self.groups, columns=columns):
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self}: cannot be read ({error}). Write it again.") from None


@dataclass(frozen=True)
class WholeFile:
    """A file that one task reads, as it was when the job began."""

    path: str
    state: tuple[int, int]
    """Its size and time of change."""

    def __str__(self) -> str:
        return self.path


def check_unchanged(path: str, state: tuple[int, int]) -> None:
    """Raise InputError if a file is no longer in the state that a job found it in."""
    if state_of(place(path)) != state:
        raise InputError(f"{path}: changed since the job began. Let it rest.")


def row_ranges(path: str | Path, rows: int) -> list[RowRange]:
    """Cut a Parquet file between its row groups, into ranges of about `rows` rows.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    file = place(path)  # a worker has a working folder of its own
    try:
        held, metadata = state_of(file), pq.read_metadata(readable(file))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: cannot be read ({error}). Check the path.") from None
    found: list[RowRange] = []
    groups: list[int] = []
    first = count = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        count += metadata.row_group(group).num_rows
        if count >= rows or group == metadata.num_row_groups - 1:
            found.append(RowRange(str(file), tuple(groups), first, count, held))
            groups, first, count = [], first + count, 0
    return found
