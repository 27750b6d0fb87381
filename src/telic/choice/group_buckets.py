"""Work on groups by buckets of them on an engine; the choices lie in files that tasks map."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from telic.choice.choices import Choices
from telic.choice.factored_choices import FactoredChoices
from telic.scale.arrays import Arrays, load_arrays, map_array, save_arrays, store_arrays
from telic.scale.executor import Executor
from telic.scale.job_folder import identity, mapped_folder
from telic.scale.partitions import Range

OfGroups = Callable[[Choices, Mapping[str, np.ndarray]], Arrays]
"""Work on choices and what is given for each of their groups, whose results stand group by group.
No group's result may depend on another's."""


def by_bucket(
    function: OfGroups,
    choices: Choices,
    given: Mapping[str, np.ndarray],
    executor: Executor,
    work: str | Path | None,
) -> Arrays:
    """Call a function with buckets of groups on an engine, and join what it returns.

    Parameters
    ----------
    function : callable
        A function of a module, or a partial one, that a worker can import.
    choices : Choices
    given : mapping of str to array of shape (g, ...)
    executor : telic.scale.Executor
    work : path
        Folder that every worker reaches by this name; for one set of choices.

    Raises
    ------
    InputError
        If there is no folder, or it holds other choices.
    """
    folder = stored(choices, ("x", "offset", "start", "chosen", "group"), work)
    files = {}
    for name, rows in given.items():
        files[name] = f"{name}-{hashlib.sha256(rows.tobytes()).hexdigest()[:16]}"
        store_arrays(folder, {files[name]: rows})
    # A job that goes on keeps to its buckets, unless it is asked for smaller ones.
    held = [int(file.stem[8:]) for file in folder.glob("buckets-*.npy")]
    name = f"buckets-{min([executor.piece, *held])}"
    if not (folder / f"{name}.npy").exists():
        store_arrays(folder, {name: _cut(choices, executor)})
    bounds = map_array(folder, name).tolist()
    buckets = [Range(*pair) for pair in pairwise(bounds)]
    task = partial(_on_bucket, function, folder, tuple(files.items()))
    found = answers(task, buckets, executor, folder)
    return {name: np.concatenate([one[name] for one in found]) for name in found[0]}


def stored(
    choices: Choices | FactoredChoices, names: Sequence[str], work: str | Path | None
) -> Path:
    """Put the choices' arrays of these names into a folder, unless they are there; return it."""
    folder = mapped_folder(work, "the choices")
    store_arrays(folder, {name: getattr(choices, name) for name in names})
    return folder


def answers(
    function: Callable[[Any], Arrays], parts: Sequence[Any], executor: Executor, folder: Path
) -> list[Arrays]:
    """Call a function with each part on an engine; return the arrays, which it kept in files."""
    task = partial(save_arrays, function)
    out = folder / f"found-{identity(task, parts)}"
    return [load_arrays(path) for path in executor.map(task, parts, out=out, ending=".npz").values]


def _cut(choices: Choices, executor: Executor) -> np.ndarray:
    """Return where buckets begin: alike in bytes, two or more for each slot, a piece each."""
    groups, d = len(choices.group) - 1, choices.x.shape[1]
    rows = choices.start[choices.group]
    took = 8 * ((d + 1) * rows + 3 * d * d * np.arange(groups + 1))
    number = max(2 * executor.slots, -(-int(took[-1]) // executor.piece))
    cuts = np.searchsorted(took, np.linspace(0, took[-1], number + 1))
    return np.unique(np.concatenate([[0], cuts, [groups]]))


def _on_bucket(
    function: OfGroups, folder: Path, files: tuple[tuple[str, str], ...], bucket: Range
) -> Arrays:
    group = map_array(folder, "group")[bucket.start : bucket.stop + 1]
    first, last = int(group[0]), int(group[-1])
    start = map_array(folder, "start")[first : last + 1]
    rows = slice(start[0], start[-1])
    choices = Choices(
        map_array(folder, "x")[rows],
        map_array(folder, "offset")[rows],
        start - start[0],
        map_array(folder, "chosen")[first:last] - start[0],
        group - first,
    )
    given = {name: map_array(folder, file) for name, file in files}
    return function(
        choices, {name: rows[bucket.start : bucket.stop] for name, rows in given.items()}
    )
