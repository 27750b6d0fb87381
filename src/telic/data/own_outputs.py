"""Where output may go: to a new path, or in place of what telic itself wrote there before."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from telic.data.object_storage import Place, Remote, place
from telic.data.output_kinds import kind_of
from telic.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RECORD = ".telic-written.json"
"""In each folder that telic wrote to: the names it wrote, with a hash of what it wrote."""
CHECKED = ".telic-checked.json"
"""In a model folder: the state of its files when they last matched their hashes."""


def check_output(
    path: str | Path,
    *,
    kind: str | None = None,
    reads: Iterable[str | Path | None] = (),
    overwrite: bool | None = False,
) -> None:
    """Raise InputError unless output may be written to `path`; to be called before long work.

    Parameters
    ----------
    path : path
        File or folder to write.
    kind : str, optional
        What is to be written, as `telic.data.output_kinds.kind_of` names it; nothing of another
        kind is replaced.
    reads : iterable of path
        What the same command reads; None is skipped. Output never replaces one of them, goes into
        one, or holds one, however it is spelled or linked.
    overwrite : bool or None
        Whether `path` may be there already: as telic wrote it, and unchanged since. None: never,
        and the command has no such option.

    Examples
    --------
    >>> import tempfile
    >>> from telic.data import atomic_path
    >>> page = Path(tempfile.mkdtemp()) / "page.html"
    >>> with atomic_path(page) as temporary:
    ...     _ = temporary.write_text("<p>")
    >>> check_output(page, overwrite=True)
    >>> check_output(page)
    Traceback (most recent call last):
    telic.errors.InputError: ...page.html: is a file that exists already. Choose another name, ...
    """
    found = place(path)
    if isinstance(found, Remote):
        refuse_read(found, reads)
        refuse_taken(found)
        return
    path = Path(path)
    refuse_unwritable(path)
    refuse_read(path, reads)
    if not os.path.lexists(path):
        return
    if not overwrite:
        kind = "folder" if path.is_dir() else "file"
        else_ = "remove it" if overwrite is None else "pass --overwrite if telic wrote it"
        raise InputError(
            f"{path}: is a {kind} that exists already. Choose another name, or {else_}."
        )
    refuse_foreign(path)
    refuse_other(path, kind)


def refuse_taken(found: Remote) -> None:
    """Raise InputError if something is at an address: nothing says there whose it is."""
    try:
        taken = found.exists() or any(found.iterdir())
    except OSError as error:
        raise InputError(f"{found}: cannot be reached ({str(error)[:200]}).") from None
    if taken:
        raise InputError(
            f"{found}: is there already, and telic overwrites nothing on object storage. Choose "
            "another name or remove it."
        )


def refuse_read(path: str | Path | Remote, reads: Iterable[str | Path | None]) -> None:
    """Raise InputError if writing to `path` would touch what the same command reads."""
    for read in reads:
        if read is not None and _overlap(place(path), place(read)):
            raise InputError(
                f"{path}: is read by this command, as {read} or a part of it, so it is not "
                "written to. Choose another name."
            )


def refuse_foreign(path: str | Path) -> None:
    """Raise InputError if telic did not write what is at `path`, or it was changed since."""
    path = Path(path)
    if not wrote(path):
        kind = "folder" if path.is_dir() else "file"
        raise InputError(
            f"{path}: telic did not write this {kind}, or it was changed since, so it is not "
            "overwritten. Choose another name or remove it."
        )


def refuse_other(path: str | Path, kind: str | None) -> None:
    """Raise InputError if what telic wrote at `path` is of another kind: a mistaken name."""
    found = kind_of(Path(path))
    if kind not in (None, found):
        raise InputError(
            f"{path}: holds output of another kind ({found}, expected {kind}), so it is not "
            "overwritten. Choose another name or remove it."
        )


def refuse_unwritable(path: str | Path) -> None:
    """Raise InputError unless the folder of `path` is there to write to; for before long work."""
    parent = Path(os.path.abspath(path)).parent
    if not parent.is_dir():
        raise InputError(f"{path}: its folder {parent} does not exist. Create it first.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{path}: its folder {parent} may not be written to. Choose another.")


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Let no other process of telic's that asks for it change a folder meanwhile.

    Without effect on a file system that has no locks, or where the folder may not be read. Whoever
    holds a folder does not ask again.
    """
    if fcntl is None or not os.access(folder, os.R_OK):
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        with suppress(OSError):  # a process that was forked meanwhile holds the handle, too
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def remember(path: Path) -> None:
    """Note that telic wrote what is now at `path`."""
    path = Path(os.path.abspath(path))
    digest = hash_of(path)
    with alone_in(path.parent):
        note(path, digest)


def note(path: Path, digest: str) -> None:
    """Note it for whoever holds the folder; `path` is absolute, `digest` of what is there."""
    record = path.parent / RECORD
    known = read_record(record) | {path.name: digest}
    temporary = path.parent / f"{RECORD}.{os.getpid()}"
    try:
        temporary.write_text(json.dumps(known, indent=1, ensure_ascii=False), encoding="utf-8")
        os.replace(temporary, record)
    finally:
        temporary.unlink(missing_ok=True)  # on a full disk


def wrote(path: str | Path) -> bool:
    """Say whether what is at `path` is what telic wrote in its folder; a link never is."""
    path = Path(os.path.abspath(path))
    if path.is_symlink() or not path.exists():
        return False
    known = read_record(path.parent / RECORD).values()  # by content: it may have been renamed
    return bool(known) and hash_of(path) in known


def read_record(record: Path) -> dict[str, Any]:
    """Return what telic noted in a file; nothing where it cannot be read."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def hash_of(path: Path) -> str:
    """Hash a file's content, or the names and contents of all that a folder holds."""
    if not path.is_dir():
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    parts = hashlib.sha256()
    for part in sorted(path.rglob("*")):
        if part.name in (RECORD, CHECKED):
            continue
        here = os.readlink(part) if part.is_symlink() else ""
        content = here or ("" if part.is_dir() else hash_of(part))
        parts.update(json.dumps([str(part.relative_to(path)), content]).encode())
    return parts.hexdigest()


def _overlap(out: Place, read: Place) -> bool:
    """Say whether writing `out` would touch what is read: the same, inside it, or around it."""
    if not (isinstance(out, Path) and isinstance(read, Path)):
        one, other = f"{out}/", f"{read}/"
        return one.startswith(other) or other.startswith(one)
    if not read.exists():
        return False
    there, here = read.resolve(), out.resolve()
    if there == here or there in here.parents or here in there.parents:
        return True
    # Hard links have no common name; a folder's files may be linked one by one.
    if out.is_file():
        parts = there.rglob("*") if there.is_dir() else [there]
        return any(part.is_file() and out.samefile(part) for part in parts)
    return False
