"""Files and folders written whole or not at all."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from telic.data.object_storage import Remote, place, upload
from telic.data.own_outputs import (
    alone_in,
    hash_of,
    note,
    refuse_foreign,
    refuse_other,
    refuse_taken,
    refuse_unwritable,
)
from telic.errors import InputError, JobError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says that has no room for a file."""


@contextmanager
def telling_if_full(folder: Path) -> Iterator[None]:
    """Say where the disk is full, if writing there fails for want of room.

    Raises
    ------
    JobError
    """
    try:
        yield
    except OSError as error:
        # NumPy says how many numbers it wrote, and gives no number of an error.
        if error.errno is not None and error.errno not in FULL:
            raise
        raise JobError(
            f"the disk is full where {folder} is. Make room, or put the job's folder elsewhere."
        ) from None


@contextmanager
def atomic_path(path: str | Path, *, kind: str | None = None) -> Iterator[Path]:
    """Give a temporary name beside `path` to write to; rename it to `path` if the block succeeds.

    Works for files and folders. If the block raises or is interrupted, nothing is left and an
    existing `path` stays as it was. An existing folder is replaced only by a folder, and only if
    telic wrote it and it holds nothing else, nor another `kind` of output; commands ask
    `check_output` before. On object storage nothing is replaced.

    Raises
    ------
    InputError
        If nothing can be written there (see `refuse_unwritable`), if the folder there is not one
        that telic wrote or is of another kind, or if a file would replace a folder or a folder a
        file.
    OSError
        If the disk is full; it names `path`.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "note.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    >>> target.read_text()
    'whole or not at all'
    """
    remote = place(path)
    if isinstance(remote, Remote):
        refuse_taken(remote)
        with tempfile.TemporaryDirectory(prefix="telic-written-") as folder:
            yield Path(folder) / remote.name
            upload(Path(folder) / remote.name, remote)
        return
    refuse_unwritable(path)
    path = Path(os.path.abspath(path))  # "." has no name of its own
    with alone_in(path.parent):  # another process may be replacing it
        if path.is_dir():
            refuse_foreign(path)
            refuse_other(path, kind)
    try:
        holder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}).") from None
    temporary = holder / path.name
    try:
        yield temporary
        digest = hash_of(temporary)  # before others have to wait
        with alone_in(path.parent):
            _put(temporary, path, aside=holder / f"{path.name}.replaced")
            note(path, digest)
    except OSError as error:
        if error.errno not in FULL:
            raise
        # It comes without a name, or with the temporary one.
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def _put(temporary: Path, path: Path, *, aside: Path) -> None:
    """Rename a file or folder to `path`; a folder that is there is moved aside."""
    if path.is_dir() and not temporary.is_dir():
        raise InputError(f"{path}: is a folder, expected a file name. Choose another name.")
    if os.path.lexists(path) and not path.is_dir() and temporary.is_dir():
        raise InputError(f"{path}: is a file, expected a folder. Choose another name.")
    try:
        if path.is_dir():
            path.rename(aside)
        os.replace(temporary, path)
    except BaseException:
        if aside.exists() and not path.exists():
            aside.rename(path)  # interrupted between the two renames
        raise
