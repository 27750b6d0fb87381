"""DuckDB within a task: counts, joins and sorts that spill to disk."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from telic.errors import InputError, JobError
from telic.scale.failures import SMALLER
from telic.scale.job_folder import hidden
from telic.scale.memory import of_task, said

SHARE = 0.6
"""Of a task's memory that DuckDB manages; its readers and writers take more than it counts."""
SORTING = 0.5
"""Of it where rows are sorted that this process has read just before."""
PART = 16
"""Rows that are held at a time take at most such a part of a task's memory."""


@contextmanager
def database(folder: Path, share: float = SHARE) -> Iterator[Any]:
    """Open an empty database that keeps to the task's memory and spills into `folder`.

    It has one thread, for tasks run side by side, and neither loads extensions nor asks a network.

    Parameters
    ----------
    folder : path
        A folder of its own is made there, and removed.
    share : float
        Of the task's memory.

    Raises
    ------
    InputError
        If DuckDB is not installed.
    JobError
        If memory or disk do not suffice.
    """
    try:
        import duckdb
    except ImportError:
        raise InputError("this needs DuckDB: pip install 'telic[scale]'.") from None
    spill = Path(tempfile.mkdtemp(prefix=hidden("spill-"), dir=folder))
    memory = int(share * of_task())
    settings: dict[str, Any] = {
        "memory_limit": f"{memory >> 10}KiB",
        "threads": 1,
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "TimeZone": "UTC",
        "enable_progress_bar": False,  # it would be written to stdout, among a command's JSON
    }
    try:
        with duckdb.connect(":memory:") as connection:
            for name, value in settings.items():
                connection.execute(f"SET {name} = {_quoted(value)}")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise JobError(
            f"DuckDB needs more than the {said(memory)} of this task ({_line(error)}). Give "
            f"{SMALLER}"
        ) from None
    except duckdb.IOException as error:
        if "space" not in str(error).lower():
            raise
        raise JobError(
            f"the disk is full where {folder} is ({_line(error)}). Make room, or put the job's "
            "folder elsewhere"
        ) from None
    except RuntimeError as error:
        if str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None  # which DuckDB takes for an error of its own
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def sorted_on_disk(
    tables: Iterable[pa.Table], by: str, folder: Path, rows: int
) -> Iterator[pa.RecordBatch]:
    """Give the rows of all tables sorted, so many at a time.

    Parameters
    ----------
    tables : iterable of Table
        All with the same columns.
    by : str
        What SQL's ORDER BY takes.
    folder : path
        Where the tables are kept while they are sorted.
    rows : int
        Fewer are given where they would take more than a small part of the task's memory.
    """
    paths: list[Path] = []
    for table in tables:
        if len(table):
            rows = min(rows, max(len(table) * of_task() // (PART * table.nbytes), 1))
            paths.append(folder / f"given-{len(paths)}.parquet")
            pq.write_table(table, paths[-1], row_group_size=rows)
    if not paths:
        return
    out = folder / "sorted.parquet"
    pa.default_memory_pool().release_unused()
    with database(folder, SORTING) as db:
        db.execute(
            f"""COPY (SELECT * FROM read_parquet({listed(paths)}) ORDER BY {by})
            TO {listed([out])[1:-1]} (FORMAT parquet, ROW_GROUP_SIZE {max(rows, 2048)})"""
        )
    for path in paths:
        path.unlink()
    yield from pq.ParquetFile(out).iter_batches(rows)
    out.unlink()


def listed(paths: list[Path]) -> str:
    """Write paths as a list of SQL, for ``read_parquet``."""
    return "[" + ", ".join(map(_quoted, paths)) + "]"


def _quoted(value: Any) -> str:
    """Write a value as a text of SQL; the name of a folder may hold quotes and backslashes."""
    return "'" + str(value).replace("'", "''") + "'"


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]
