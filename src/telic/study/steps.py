"""The steps of a study: each is shown as progress, made once and kept."""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from telic.data import atomic_path
from telic.data.own_outputs import RECORD
from telic.errors import InputError
from telic.report import Table
from telic.study.code_fingerprint import fingerprint

_OWN = re.compile(r".*-[0-9a-f]{16}\.json|.*-\d+-\d+\.parquet|auc-results\.jsonl")
"""Files that studies keep."""
_TABLE = {field.name for field in fields(Table)}
SPREAD = "100 {:+.2f} ({:+.2f} to {:+.2f})"
"""Format of a change in points and the ends of its range."""


class Steps:
    """Make the steps of a study, or read those that are finished.

    A finished step is kept under its name and a fingerprint of its settings and of the code that
    made it: the same study goes on where it was stopped, and nothing is taken over from other code
    or other settings.

    Parameters
    ----------
    folder : path, optional
        Keeps finished steps; made if it is not there. By default nothing is kept.
    progress : callable, optional
        Called with the name of each step when it begins.

    Attributes
    ----------
    made, taken : int
        Steps that were made, and those that were taken from the folder.

    Examples
    --------
    >>> Steps()("nothing but its settings", dict, seed=0)
    {'seed': 0}
    """

    def __init__(
        self, folder: str | Path | None = None, progress: Callable[[str], None] = lambda step: None
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.progress = progress
        self.made = self.taken = 0
        if self.folder is not None:
            if self.folder.exists() and not self.folder.is_dir():
                raise InputError(f"{self.folder}: is a file, expected a folder. Choose another.")
            self.folder.mkdir(parents=True, exist_ok=True)
            names = [each.name for each in self.folder.iterdir() if each.name != RECORD]
            if names and not any(map(_OWN.fullmatch, names)):
                raise InputError(
                    f"{self.folder}: holds other files, and no finished step of a study. Choose a "
                    "new or an empty folder."
                )

    def __call__(self, name: str, make: Callable[..., Any], /, **settings: Any) -> Any:
        """Return what ``make(**settings)`` returns, kept if it was made before.

        Parameters
        ----------
        name : str
            What the step is about, for people.
        make : function
            Depends on its arguments and on telic's code alone. Returns tables, or what JSON takes;
            arrays become lists. What does not change the result, such as a number of threads, is
            bound by `functools.partial`, which does not count as a setting.
        **settings
            What JSON takes; None and paths too: a file, or a folder of files, counts by what it
            holds, wherever it lies.
        """
        self.progress(name)
        if self.folder is None:
            self.made += 1
            return _read(_written(make(**settings)))
        module = inspect.getmodule(make.func if isinstance(make, partial) else make)
        counted = {
            name: _held(value) if isinstance(value, Path) and value.exists() else value
            for name, value in settings.items()
        }
        made_by = fingerprint(module, settings=counted, package="telic")
        words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
        file = self.folder / f"{'-'.join(words)}-{made_by}.json"
        if file.exists():
            self.taken += 1
        else:
            self.made += 1
            content = _written(make(**settings))
            with atomic_path(file) as temporary:
                temporary.write_text(content, encoding="utf-8")
        try:
            return _read(file.read_text(encoding="utf-8"))
        except ValueError:
            raise InputError(
                f"{file}: is cut or not JSON, expected a finished step. Delete it, and it is made "
                "again."
            ) from None


def each_log(
    do: Callable[..., Any],
    name: str,
    make: Callable[..., Any],
    logs: int,
    /,
    first: int = 0,
    **settings: Any,
) -> list[Any]:
    """Make the same step of several simulated logs, one for each seed from the first on.

    `do` is a `Steps`, or one with some settings bound.
    """
    return [
        do(f"{name}, log {n + 1} of {logs}", make, seed=first + n, **settings) for n in range(logs)
    ]


def spread(values: Sequence[float]) -> list[float]:
    """Return mean, least and most."""
    return [float(np.mean(values)), min(values), max(values)]


def _held(path: Path) -> Any:
    """Hash of a file; of each file of a folder, by its name there."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return [(file.relative_to(path).as_posix(), _held(file)) for file in files]
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _written(content: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, Table):
            return value.as_json()
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        raise TypeError(f"A step returns {type(value).__name__}, which JSON does not take.")

    return json.dumps(content, ensure_ascii=False, default=plain)


def _read(text: str) -> Any:
    return json.loads(
        text, object_hook=lambda found: Table(**found) if found.keys() == _TABLE else found
    )
