"""DuckDB within a task: counts, joins and sorts that spill to disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from telic.errors import InputError, JobError
from telic.scale.memory import of_task, said

SHARE = 0.6
"""Of a task's memory that DuckDB manages; its readers and writers take more than it counts."""


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
    spill = Path(tempfile.mkdtemp(prefix=".spill-", dir=folder))
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
    }
    try:
        with duckdb.connect(":memory:") as connection:
            for name, value in settings.items():
                connection.execute(f"SET {name} = {value!r}")
            yield connection
    except duckdb.OutOfMemoryException as error:
        raise JobError(
            f"DuckDB needs more than the {said(memory)} of this task ({_line(error)}). Give more "
            "memory, or smaller partitions"
        ) from None
    except duckdb.IOException as error:
        if "space" not in str(error).lower():
            raise
        raise JobError(
            f"the disk is full where {folder} is ({_line(error)}). Make room, or put the job's "
            "folder elsewhere"
        ) from None
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def listed(paths: list[Path]) -> str:
    """Write paths as a list of SQL, for ``read_parquet``."""
    return "[" + ", ".join("'" + str(path).replace("'", "''") + "'" for path in paths) + "]"


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0][:200]
