"""Files on object storage, such as ``s3://bucket/folder/file``: named, written whole, fetched.

Arrow knows s3, gs, abfs and hdfs; addresses of other kinds are fsspec's, where it is installed.
Credentials, region and endpoint come from where these look for them (``AWS_…`` and so on).
"""

import atexit
import fnmatch
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from telic.errors import InputError

# A `Path` of an address has lost a slash; one letter before the colon is a drive of Windows.
_ADDRESS = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+):/{1,2}(?P<rest>[^/].*)")
WHOLE = ".whole"
"""Ends the name of the empty file that is written last beside a folder."""


@dataclass(frozen=True, order=True)
class Remote:
    """A file or folder on object storage, with those ways of a `Path` that jobs take."""

    address: str

    def __str__(self) -> str:
        return self.address

    def __truediv__(self, name: str) -> "Remote":
        return Remote(f"{self.address}/{name}")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rpartition("/")[2]

    @property
    def stem(self) -> str:
        """The name without its ending."""
        return Path(self.name).stem

    @property
    def parent(self) -> "Remote":
        """The folder that it lies in."""
        return Remote(self.address.rpartition("/")[0])

    def with_name(self, name: str) -> "Remote":
        """Return another name in the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> "Remote":
        """Return the same name with another ending."""
        return self.with_name(self.stem + suffix)

    def state(self) -> tuple[int, int] | None:
        """Return a file's size and time of change in nanoseconds; None if there is no such file."""
        system, path = _system(self.address)
        found = system.get_file_info(path)
        if not found.is_file:
            return None
        return found.size, found.mtime_ns or 0

    def size(self) -> int:
        """Return the bytes of a file, or of all files of a folder."""
        state = self.state()
        return state[0] if state else sum(one.size or 0 for one in _below(self.address, True)[1])

    def exists(self) -> bool:
        """Whether a file is there, or a folder that was written whole."""
        return self.state() is not None or Remote(self.address + WHOLE).state() is not None

    def glob(self, pattern: str) -> Iterator["Remote"]:
        """Give the files below, in order, whose names from here on match."""
        path, files = _below(self.address, "/" in pattern)
        parts = pattern.split("/")
        inside_of = (file.path.removeprefix(path).lstrip("/") for file in files if file.is_file)
        for inside in sorted(inside_of):
            names = inside.split("/")
            if len(names) == len(parts) and all(map(fnmatch.fnmatchcase, names, parts)):
                yield self / inside

    def iterdir(self) -> Iterator["Remote"]:
        """Give what lies in a folder, other folders too."""
        path, found = _below(self.address, recursive=False)
        return iter(sorted(self / one.path.removeprefix(path).lstrip("/") for one in found))

    def mkdir(self, **_: bool) -> None:
        """Do nothing: folders are parts of names."""

    def rmdir(self) -> None:
        """Remove a folder with all that it holds; Arrow leaves a mark of one that became empty."""
        system, path = _system(self.address)
        with suppress(FileNotFoundError):
            system.delete_dir(path)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        if not (missing_ok and self.state() is None):
            system, path = _system(self.address)
            system.delete_file(path)

    def write_bytes(self, content: bytes) -> None:
        """Write a file, whole or not at all."""
        system, path = _system(self.address)
        with system.open_output_stream(path) as stream:
            stream.write(content)

    def open(self) -> Any:
        """Open a file for reading anywhere in it."""
        system, path = _system(self.address)
        return system.open_input_file(path)


Place = Path | Remote
"""Where a file or folder is."""


def place(path: str | Path | Remote) -> Place:
    """Return the absolute path that is meant, or the address on object storage.

    Examples
    --------
    >>> place("s3://bucket/log.parquet") == place(Path("s3://bucket/log.parquet"))
    True
    >>> place("/log.parquet")
    PosixPath('/log.parquet')
    """
    if isinstance(path, Remote):
        return path
    found = _ADDRESS.fullmatch(str(path))
    if found is None:
        return Path(path).absolute()
    return Remote(f"{found['scheme']}://{found['rest'].rstrip('/')}")


def is_remote(path: object) -> bool:
    """Whether a path is an address on object storage."""
    return isinstance(path, str | Path | Remote) and isinstance(place(path), Remote)


def refuse_remote(path: str | Path | Remote, option: str, why: str) -> None:
    """Raise InputError if what must lie in a folder of a disk is given an address."""
    if is_remote(path):
        raise InputError(
            f"{option} is {place(path)}, but {why}. Name a folder of a disk; on a cluster, of one "
            "that every worker and this machine share."
        )


def names_in(folder: Place) -> set[str]:
    """Return the names of what lies whole in a folder: one question for a thousand of them."""
    if isinstance(folder, Path):
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    found = _below(folder.address, recursive=False)[1]
    files = {Path(one.path).name for one in found if one.is_file}
    return files | {name.removesuffix(WHOLE) for name in files}


def state_of(path: Place) -> tuple[int, int]:
    """Return the size of a file and the time of its change; OSError if there is none."""
    if isinstance(path, Path):
        found = path.stat()
        return found.st_size, found.st_mtime_ns
    state = path.state()
    if state is None:
        raise FileNotFoundError(2, "no such file", str(path))
    return state


def readable(path: Place) -> Any:
    """Return what Arrow reads a file by, where it lies."""
    return path if isinstance(path, Path) else path.open()


def upload(local: Path, target: Remote) -> None:
    """Write a file, or a folder file by file and then the mark that it is whole."""
    files = [local]
    if local.is_dir():
        files = sorted(file for file in local.rglob("*") if file.is_file())
    for file in files:
        inside = file.relative_to(local).as_posix()
        system, path = _system(target.address if file == local else f"{target}/{inside}")
        with file.open("rb") as given, system.open_output_stream(path) as stream:
            shutil.copyfileobj(given, stream, 1 << 22)
    if local.is_dir():
        Remote(target.address + WHOLE).write_bytes(b"")


def remove(folder: Place) -> None:
    """Remove a folder with all that it holds."""
    if isinstance(folder, Path):
        shutil.rmtree(folder, ignore_errors=True)
        return
    folder.rmdir()
    Remote(folder.address + WHOLE).unlink(missing_ok=True)


_SCRATCH: ContextVar[Path | None] = ContextVar("folder of what is fetched", default=None)


def fetched(path: str | Path | Remote) -> Path:
    """Return a path on this machine's disk with the same content: itself, or a copy.

    A copy lasts as long as the task that fetched it, or as this process.
    """
    found = place(path)
    if isinstance(found, Path):
        return Path(path)  # type: ignore[arg-type]
    copy = Path(tempfile.mkdtemp(dir=_SCRATCH.get() or _of_process())) / found.name
    with suppress(FileNotFoundError, IsADirectoryError):
        return _copied(found, copy)
    path, inside = _below(found.address, recursive=True)
    names = [one.path.removeprefix(path).lstrip("/") for one in inside if one.is_file]
    if not names:
        raise FileNotFoundError(2, "no such file", str(found))
    for name in names:
        _copied(found / name, copy / name)
    return copy


def _copied(source: Remote, target: Path) -> Path:
    """Copy a file to this machine's disk."""
    system, path = _system(source.address)
    with system.open_input_stream(path) as stream:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as taken:
            shutil.copyfileobj(stream, taken, 1 << 22)
    return target


@contextmanager
def scratch() -> Iterator[None]:
    """Remove what the block fetches at its end."""
    with tempfile.TemporaryDirectory(prefix="telic-fetched-") as folder:
        token = _SCRATCH.set(Path(folder))
        try:
            yield
        finally:
            _SCRATCH.reset(token)


@cache
def _of_process() -> str:
    folder = tempfile.mkdtemp(prefix="telic-fetched-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _below(address: str, recursive: bool) -> tuple[str, list[Any]]:
    """Return the path of a folder, and what the storage says of what lies in it."""
    from pyarrow.fs import FileSelector

    system, path = _system(address)
    chosen = FileSelector(path, recursive=recursive, allow_not_found=True)
    return path, system.get_file_info(chosen)


def _system(address: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there."""
    scheme, _, rest = address.partition("://")
    system, root = _bucket(f"{scheme}://{rest.partition('/')[0]}")
    inside = rest.partition("/")[2]
    return system, f"{root}/{inside}" if inside else root


@cache
def _bucket(address: str) -> tuple[Any, str]:
    from pyarrow import ArrowInvalid, fs

    if address.startswith("s3:"):
        with suppress(ArrowInvalid):  # an Arrow of before 20 does not know the option
            # A small file is written by one request then, not by three.
            more = "&" if "?" in address else "?"  # after options such as a region
            return fs.FileSystem.from_uri(f"{address}{more}allow_delayed_open=true")
    try:
        return fs.FileSystem.from_uri(address)
    except ArrowInvalid as error:  # a scheme that Arrow does not know, or a name that it refuses
        try:
            import fsspec  # type: ignore[import-untyped]

            system, root = fsspec.core.url_to_fs(address)
        except (ImportError, ValueError):
            said = (str(error).splitlines() or [""])[0]
            raise InputError(f"{address}: cannot be reached ({said}).") from None
        return fs.PyFileSystem(fs.FSSpecHandler(system)), root.rstrip("/")
