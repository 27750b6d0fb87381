"""Work on groups by buckets of them on an engine; the choices lie in files that tasks map."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic.choice.choices import Choices, pieces_of
from telic.choice.factored_choices import FactoredChoices
from telic.data.growing_arrays import GrowingFile, trim
from telic.scale.arrays import Arrays, load_arrays, map_array, save_arrays, store_arrays
from telic.scale.executor import Executor
from telic.scale.job_folder import identity, mapped_folder

_ARRAYS = tuple(part.name for part in fields(Choices))
OfGroups = Callable[[Choices, Mapping[str, np.ndarray]], Arrays]
"""Work on choices and what is given for each of their groups, whose results stand group by group.
No group's result may depend on another's."""


class Bucket(NamedTuple):
    """The groups `start` up to, not including, `stop` of a piece."""

    piece: int
    start: int
    stop: int
    before: int
    """Groups of the pieces before."""

    def __str__(self) -> str:
        return f"groups {self.before + self.start} to {self.before + self.stop - 1}"


class StoredChoices(Sequence[Choices]):
    """Pieces of choices in files, which are mapped anew each time: memory holds one at a time.

    Parameters
    ----------
    folder : path
        Of these choices alone; on a disk that every worker reaches.

    Raises
    ------
    InputError
        If there is none, or `append` meets other choices there.
    """

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = mapped_folder(folder, "the choices")
        self._pieces = 0

    def append(self, choices: Choices) -> None:
        """Keep another piece, whose groups come after those before."""
        arrays = dict(zip(_ARRAYS, choices.arrays, strict=True))
        store_arrays(_folder_of(self.folder, self._pieces), arrays)
        self._pieces += 1

    def __len__(self) -> int:
        return self._pieces

    def __getitem__(self, number: int) -> Choices:  # type: ignore[override]  # slices nobody needs
        if not 0 <= number < self._pieces:
            raise IndexError(number)
        folder = _folder_of(self.folder, number)
        return Choices.checked(*(map_array(folder, name) for name in _ARRAYS))


def _folder_of(folder: Path, piece: int) -> Path:
    return folder / f"piece-{piece:05d}"


def by_bucket(
    function: OfGroups,
    choices: Choices | Sequence[Choices],
    given: Mapping[str, np.ndarray],
    executor: Executor,
    work: str | Path | None,
) -> Arrays:
    """Call a function with buckets of groups on an engine, and join what it returns.

    Parameters
    ----------
    function : callable
        A function of a module, or a partial one, that a worker can import.
    choices : Choices or sequence of Choices
    given : mapping of str to array of shape (g, ...)
    executor : telic.scale.Executor
    work : path
        Folder that every worker reaches by this name; for one set of choices.

    Raises
    ------
    InputError
        If there is no folder, or it holds other choices.
    """
    if isinstance(choices, StoredChoices):
        pieces = choices
    else:
        pieces = StoredChoices(work)
        for piece in pieces_of(choices):
            pieces.append(piece)
    files = {}
    for name, rows in given.items():
        files[name] = f"{name}-{hashlib.sha256(rows.tobytes()).hexdigest()[:16]}"
        store_arrays(pieces.folder, {files[name]: rows})
    buckets, before = list[Bucket](), 0
    for number, piece in enumerate(pieces):
        bounds = _bounds(_folder_of(pieces.folder, number), piece, len(pieces), executor)
        buckets += [Bucket(number, *ends, before) for ends in pairwise(bounds.tolist())]
        before += len(piece.group) - 1
    task = partial(_on_bucket, function, pieces.folder, tuple(files.items()))
    found = _joined(answers(task, buckets, executor, pieces.folder), pieces.folder)
    trim()
    return found


def _joined(files: Sequence[Path], folder: Path) -> Arrays:
    """Join the arrays of files, one of which is in memory at a time, in a file of the same disk."""
    joined: dict[str, GrowingFile] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for file in files:
        for name, array in load_arrays(file).items():
            if name not in joined:
                joined[name] = GrowingFile(folder, array.dtype)
                shapes[name] = -1, *array.shape[1:]
            joined[name].add(array)
    return {name: grown.values().reshape(shapes[name]) for name, grown in joined.items()}


def _bounds(folder: Path, choices: Choices, pieces: int, executor: Executor) -> np.ndarray:
    """Return where buckets of a piece begin.

    A job that goes on keeps to its buckets, unless it is asked for smaller ones.
    """
    held = [int(file.stem[8:]) for file in folder.glob("buckets-*.npy")]
    name = f"buckets-{min([executor.piece, *held])}"
    if not (folder / f"{name}.npy").exists():
        store_arrays(folder, {name: _cut(choices, executor, pieces)})
    return map_array(folder, name)


def _cut(choices: Choices, executor: Executor, pieces: int = 1) -> np.ndarray:
    """Return where buckets of one of the pieces begin.

    They are alike in bytes, of all pieces two or more for each slot, and a piece of memory each.
    """
    groups, d = len(choices.group) - 1, choices.x.shape[1]
    rows = choices.start[choices.group]
    took = 8 * ((d + 1) * rows + 3 * d * d * np.arange(groups + 1))
    number = max(-(-2 * executor.slots // pieces), -(-int(took[-1]) // executor.piece))
    cuts = np.searchsorted(took, np.linspace(0, took[-1], number + 1))
    return np.unique(np.concatenate([[0], cuts, [groups]]))


def stored(choices: FactoredChoices, names: Sequence[str], work: str | Path | None) -> Path:
    """Put the choices' arrays of these names into a folder, unless they are there; return it."""
    folder = mapped_folder(work, "the choices")
    store_arrays(folder, {name: getattr(choices, name) for name in names})
    return folder


def answers(
    function: Callable[[Any], Arrays], parts: Sequence[Any], executor: Executor, folder: Path
) -> Sequence[Path]:
    """Call a function with each part on an engine; return the files of arrays (`load_arrays`)."""
    task = partial(save_arrays, function)
    out = folder / f"found-{identity(task, parts)}"
    paths: list[Path] = executor.map(task, parts, out=out, ending=".npz").values
    return paths


def _on_bucket(
    function: OfGroups, work: Path, files: tuple[tuple[str, str], ...], bucket: Bucket
) -> Arrays:
    folder = _folder_of(work, bucket.piece)
    group = map_array(folder, "group")[bucket.start : bucket.stop + 1]
    first, last = int(group[0]), int(group[-1])
    start = map_array(folder, "start")[first : last + 1]
    rows = slice(start[0], start[-1])
    choices = Choices.checked(
        map_array(folder, "x")[rows],
        map_array(folder, "offset")[rows],
        start - start[0],
        map_array(folder, "chosen")[first:last] - start[0],
        group - first,
    )
    own = slice(bucket.before + bucket.start, bucket.before + bucket.stop)
    return function(choices, {name: map_array(work, file)[own] for name, file in files})
