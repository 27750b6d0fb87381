"""A job's folder: where it lies, whose results it holds, and how a job goes on from it."""

import functools
import hashlib
import inspect
import json
import os
import shutil
import socket
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

import telic
from telic.data.object_storage import Place, fetched, place, refuse_remote, remove, upload
from telic.errors import InputError

JOB = "job.json"
"""In a job's folder: whose results it holds."""
TOLD_BY_REPR = str, bytes, int, float, complex, type(None), range, slice, np.generic, PurePath
"""What a repr tells all of."""


class AnotherJobError(InputError):
    """A folder holds the results of another job."""


PIECES = "a command's pieces"
"""The mark of a folder that a command made for its jobs."""


def lies_at(out: str | Path, given: str | Path | None) -> Place:
    """Return the folder that was asked for, or OUT.job."""
    if given is not None:
        return place(given)
    beside = place(out)
    return beside.with_name(beside.name + ".job")


@contextmanager
def working_folder(out: str | Path, given: str | Path | None) -> Iterator[Place]:
    """Give the folder of a command's pieces; OUT.job is removed once the block succeeded.

    So is a new folder of a block that fails before it has made a piece.

    Raises
    ------
    InputError
        If it holds what no such command wrote, or another command works in it.
    """
    folder = lies_at(out, given)
    new = not (folder / JOB).exists()
    open_folder(folder, PIECES, PIECES)  # by this mark it is telic's: to write to, and to remove
    with _alone_in(folder):
        try:
            yield folder
        except AnotherJobError as error:  # of a folder in this one, which alone is known outside
            raise InputError(f"{folder}: {error.args[0].partition(': ')[2]}") from None
        except BaseException:
            if new and _holds_marks_alone(folder):
                remove(folder)
            raise
        if given is None:
            remove(folder)


def _holds_marks_alone(folder: Place) -> bool:
    """Whether no piece was made: there are only notes of whose results would lie where."""
    if not isinstance(folder, Path):
        return [each.name for each in folder.iterdir()] == [JOB]
    return all(each.name == JOB for each in folder.rglob("*") if not each.is_dir())


@contextmanager
def _alone_in(folder: Place) -> Iterator[None]:
    """Keep other commands on this machine's disk out of a folder; it is free if this one dies."""
    if fcntl is None or not isinstance(folder, Path):
        yield
        return
    busy = InputError(
        f"{folder}: another command works in it. Wait for its end, or name another folder (--work)."
    )
    mark, there = folder / JOB, True
    with ExitStack() as held:
        try:
            file = held.enter_context(mark.open(encoding="utf-8"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The other one may have ended meanwhile, and removed what this one has locked.
            there = os.path.samestat(os.fstat(file.fileno()), mark.stat())
        except (BlockingIOError, FileNotFoundError):
            there = False
        except OSError:  # a file system without locks
            pass
        if not there:
            raise busy
        yield


def mapped_folder(work: str | Place | None, what: str) -> Path:
    """Return the folder of a disk where an executor's workers map what they work on.

    Raises
    ------
    InputError
        If there is none, or it is an address on object storage.
    """
    if work is None:
        raise InputError(f"work: with an engine of telic.scale, name a folder for {what}.")
    refuse_remote(work, "work", f"{what} are mapped")
    return Path(str(work)).absolute()  # a worker has a working folder of its own


def name_of(function: Callable[..., Any]) -> str:
    """Name a function, or what a partial one was made of."""
    while isinstance(function, functools.partial):
        # What wraps another function is called after that.
        inner = function.args[0] if function.args else None
        function = inner if callable(inner) else function.func
    return f"{function.__module__}.{getattr(function, '__qualname__', repr(function))}"


def identity(function: Callable[..., Any], partitions: Sequence[Any]) -> str:
    """Return a hash of what a job is: its function with its settings, and its partitions."""
    digest = hashlib.sha256(telic.__version__.encode())
    _tell(digest.update, function)
    for partition in partitions:
        _tell(digest.update, partition)
    return digest.hexdigest()[:16]


def _tell(update: Callable[[bytes], None], value: Any, within: tuple[Any, ...] = ()) -> None:
    """Tell a hash all of a value; `within` are the functions that it is bound to."""
    tell = functools.partial(_tell, update, within=within)
    if isinstance(value, functools.partial):
        tell(value.func)
        for part in (*value.args, *sorted(value.keywords.items())):
            tell(part)
    elif isinstance(value, np.ma.MaskedArray):
        tell([np.ma.getdata(value), np.ma.getmaskarray(value)])
    elif isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        if value.dtype.hasobject:
            tell(value.tolist())
        else:
            update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, pa.Table | pa.RecordBatch | pa.ChunkedArray | pa.Array):
        named = isinstance(value, pa.Table | pa.RecordBatch)
        table = pa.table(value if named else {"": value})  # whose repr shows a few rows alone
        with pa.BufferOutputStream() as stream:
            with pa.ipc.new_stream(stream, table.schema) as writer:
                writer.write_table(table)
            update(stream.getvalue())
    elif isinstance(value, Mapping):
        tell(list(value.items()))
    elif isinstance(value, tuple | list):
        update(f"({len(value)}".encode())
        for part in value:
            tell(part)
    elif is_dataclass(value) and not isinstance(value, type):
        tell(type(value))  # two losses without parameters are alike in all else
        for part in fields(value):
            tell(getattr(value, part.name))
    elif hasattr(value, "indptr"):  # a sparse matrix; its columns may be another one's rows
        for part in (
            getattr(value, "format", ""),
            value.shape,
            value.indptr,
            value.indices,
            value.data,
        ):
            tell(part)
    elif callable(value) and hasattr(value, "__qualname__"):
        update(name_of(value).encode())
        owner = getattr(value, "__self__", None)
        if not inspect.ismodule(owner):  # as a builtin function has
            tell(owner)
        if all(value is not function for function in within):  # one may call itself
            for part in _bound(value):
                _tell(update, part, (*within, value))
    elif isinstance(value, TOLD_BY_REPR):
        update(f"{type(value).__name__}:{value!r};".encode())
    else:  # whose repr may show a part alone, as a data frame's does, or where it lies in memory
        import joblib  # a tenth of a second that few jobs need

        told = repr(value)
        with suppress(Exception):  # whatever its own methods raise
            told = joblib.hash(value)
        update(f"{type(value).__name__}:{told};".encode())


def _bound(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield the defaults of a function, and the variables around it that it reads.

    Of one without a name of its own, also what it does.
    """
    if getattr(function, "__name__", "") == "<lambda>":
        yield from _instructions(function.__code__)
    for name in ("__defaults__", "__kwdefaults__"):
        if defaults := getattr(function, name, None):
            yield defaults
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # one that has no value yet
            yield cell.cell_contents


def _instructions(code: Any) -> Iterator[Any]:
    """Yield what code does, in words that are the same in every process."""
    yield from (code.co_code, code.co_names)
    for value in code.co_consts:
        if inspect.iscode(value):
            yield from _instructions(value)
        else:  # a set has no order of its own
            yield sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)


def open_folder(folder: Place, job: str, function: str, pieces: int = 0) -> None:
    """Make a job's folder, or find that it holds this very job's results.

    `pieces` is how many it is cut into, for `begun_in`.

    Raises
    ------
    InputError
        If it holds another job's, or something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        held = folder / JOB
        if held.exists():
            said = json.loads(fetched(held).read_text(encoding="utf-8"))
            if said.get("job") != job:
                raise AnotherJobError(
                    f"{folder}: holds results of another job ({said.get('function')}, with other "
                    "data, settings or version of telic). Choose another folder, or remove it."
                )
        elif any(folder.iterdir()):
            raise InputError(f"{folder}: holds other files. Choose a new or an empty folder.")
        else:
            with placed(held) as temporary:
                said = {"job": job, "function": function, "pieces": pieces}
                temporary.write_text(json.dumps(said), encoding="utf-8")
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder}: cannot be used for a job ({error}).") from None


def begun_in(folder: Place) -> int:
    """Return into how many pieces the job was cut that a folder holds; 0 if it holds none."""
    with suppress(OSError, ValueError, LookupError, TypeError):  # `open_folder` says what is wrong
        said = json.loads(fetched(folder / JOB).read_text(encoding="utf-8"))
        return int(said["pieces"])
    return 0


@contextmanager
def placed(path: Place) -> Iterator[Path]:
    """Give a temporary name beside `path`; it becomes `path` if the block succeeds.

    Several attempts of one task may end at once: all write the same, so the first one stays. What
    goes to object storage is first written on this machine's disk.
    """
    if not isinstance(path, Path):
        with tempfile.TemporaryDirectory(prefix="telic-written-") as folder:
            yield Path(folder) / path.name
            upload(Path(folder) / path.name, path)
        return
    temporary = path.with_name(hidden(path.name))
    try:
        yield temporary
        if temporary.is_dir() and path.is_dir():
            return
        os.replace(temporary, path)
    finally:
        _discard(temporary)


def hidden(name: str) -> str:
    """Name what this process alone uses, and removes, so that `sweep` knows whose it was."""
    return f".{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:12]}.{name}"


def sweep(folder: Place) -> None:
    """Remove from a folder what processes of this machine left there that were killed.

    Of another machine's processes, or another container's, nobody here can tell.
    """
    if not isinstance(folder, Path):
        return
    for left in folder.glob(f".{_machine()}-*"):
        try:
            os.kill(int(left.name.split("-")[1]), 0)
        except ProcessLookupError:
            _discard(left)
        except PermissionError:  # another user's
            continue


@functools.cache
def _machine() -> str:
    """Name where processes have numbers of their own: this container, since the machine began."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:  # no Linux: nothing that another process left is known
        return uuid.uuid4().hex[:12]
    told = f"{boot}{processes}{socket.gethostname()}"
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _discard(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
