"""What a job did, and the folder from which it goes on where it ended."""

import functools
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

import telic
from telic.errors import InputError

JOB = "job.json"
"""In a job's folder: whose results it holds."""


@dataclass
class TaskReport:
    """What became of one partition."""

    partition: str
    outcome: str = "waiting"
    """"done", "kept" (finished by an earlier run) or "skipped: " and why."""
    where: list[str] = field(default_factory=list)
    """Where it was begun, attempt by attempt."""
    seconds: float = 0.0
    """Of the attempt that ended it."""
    bytes: int = 0
    """Size of the result: of its file, or of its arrays."""

    @property
    def attempts(self) -> int:
        """How often it was begun."""
        return len(self.where)


@dataclass
class JobReport:
    """What a job did: partition by partition."""

    job: str
    tasks: list[TaskReport]

    @property
    def skipped(self) -> dict[str, str]:
        """Partition → why it is missing from the result."""
        bad = [task for task in self.tasks if task.outcome.startswith("skipped")]
        return {task.partition: task.outcome.partition(": ")[2] for task in bad}

    def facts(self) -> dict[str, Any]:
        """Return what there is to say, JSON-able."""
        places: dict[str, int] = {}
        for task in self.tasks:
            if task.outcome == "done":
                places[task.where[-1]] = places.get(task.where[-1], 0) + 1
        return {
            "job": self.job,
            "partitions": len(self.tasks),
            "kept from an earlier run": sum(task.outcome == "kept" for task in self.tasks),
            "done where": places,
            "attempts": sum(task.attempts for task in self.tasks),
            "begun again": {t.partition: t.where for t in self.tasks if t.attempts > 1},
            "skipped": self.skipped,
            "bytes of results": sum(task.bytes for task in self.tasks),
            "seconds of work": round(sum(task.seconds for task in self.tasks), 3),
        }


@dataclass
class Results:
    """Values by partition (None where one was skipped), and the report."""

    values: list[Any]
    report: JobReport


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


def _tell(update: Callable[[bytes], None], value: Any) -> None:
    if isinstance(value, functools.partial):
        _tell(update, value.func)
        for part in (*value.args, *sorted(value.keywords.items())):
            _tell(update, part)
    elif isinstance(value, np.ndarray):
        update(f"{value.dtype}{value.shape}".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        update(f"({len(value)}".encode())
        for part in value:
            _tell(update, part)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            _tell(update, getattr(value, part.name))
    elif hasattr(value, "indptr"):  # a sparse matrix
        for part in (value.shape, value.indptr, value.indices, value.data):
            _tell(update, part)
    elif callable(value) and hasattr(value, "__qualname__"):
        update(name_of(value).encode())
    else:
        update(f"{type(value).__name__}:{value!r};".encode())


def open_folder(folder: Path, job: str, function: str) -> None:
    """Make a job's folder, or find that it holds this very job's results.

    Raises
    ------
    InputError
        If it holds another job's, or something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = folder / JOB
        if held.exists():
            said = json.loads(held.read_text(encoding="utf-8"))
            if said.get("job") != job:
                raise InputError(
                    f"{folder}: holds results of another job ({said.get('function')}, with other "
                    "data, settings or version of telic). Choose another folder, or remove it."
                )
        elif any(folder.iterdir()):
            raise InputError(f"{folder}: holds other files. Choose a new or an empty folder.")
        else:
            with placed(held) as temporary:
                temporary.write_text(json.dumps({"job": job, "function": function}))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{folder}: cannot be used for a job ({error}).") from None


@contextmanager
def placed(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path`; it becomes `path` if the block succeeds.

    Several attempts of one task may end at once: all write the same, so the first one stays.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex[:12]}.{path.name}")
    try:
        yield temporary
        if temporary.is_dir() and path.is_dir():
            return
        os.replace(temporary, path)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            temporary.unlink(missing_ok=True)


def size_of(value: Any) -> int:
    """Return how many bytes a result takes: a file's or folder's, or those of arrays."""
    if isinstance(value, Path):
        files = value.rglob("*") if value.is_dir() else [value]
        return sum(file.stat().st_size for file in files if file.is_file())
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 8))
