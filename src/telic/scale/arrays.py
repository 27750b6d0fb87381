"""Values that can be kept in a file, and how neighbours' values are added up."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from telic.data.atomic_writes import telling_if_full
from telic.data.numpy_files import load_npy, load_npz
from telic.data.object_storage import Place, fetched
from telic.errors import InputError
from telic.scale.job_folder import placed, sweep

Arrays = dict[str, np.ndarray]
"""Names and arrays."""


def fold(arrivals: Iterable[tuple[int, Any]], combine: Callable[[Any, Any], Any], size: int) -> Any:
    """Add values up by the tree of their numbers, whatever the order in which they come.

    Node i of a level is made of nodes 2i and 2i + 1 of the level below; None counts nothing.

    Examples
    --------
    >>> fold([(2, "c"), (0, "a"), (1, "b")], lambda one, other: f"({one}{other})", 3)
    '((ab)c)'
    """
    held: dict[tuple[int, int], Any] = {}
    total = None
    for index, value in arrivals:
        width, level = size, 0
        while width > 1:
            sibling = index ^ 1
            if sibling < width:
                if (level, sibling) not in held:
                    held[level, index] = value
                    break
                other = held.pop((level, sibling))
                left, right = (other, value) if sibling < index else (value, other)
                value = (
                    combine(left, right)
                    if left is not None and right is not None
                    else (right if left is None else left)
                )
            index, width, level = index // 2, (width + 1) // 2, level + 1
        else:
            total = value
    return total


def save_arrays(function: Callable[[Any], Mapping[str, Any]], partition: Any, path: Path) -> None:
    """Write what a function returns of a partition."""
    write(path, function(partition))


def load_arrays(path: Place, under: str = "") -> Arrays:
    """Read the arrays of a file whose names begin with `under`, and call them by the rest."""
    return load_npz(fetched(path), under)


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays to a file of just this name."""
    with path.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def store_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays, each as a file that can be mapped.

    Raises
    ------
    InputError
        If another job's array is there.
    JobError
        If the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    for name, array in arrays.items():
        file = folder / f"{name}.npy"
        if file.exists():
            held = map_array(folder, name)
            if held.dtype != array.dtype or not np.array_equal(held, array):
                raise InputError(
                    f"{folder}: holds another job's arrays. Choose another folder, or remove it."
                )
        else:
            with (
                telling_if_full(folder),
                placed(file) as temporary,
                temporary.open("wb") as stream,
            ):
                np.save(stream, array, allow_pickle=False)


def map_array(folder: Path, name: str) -> np.ndarray:
    """Map an array of `store_arrays` into memory, where all processes of a machine share it."""
    # Copy-on-write, so that kernels see arrays of the usual kind; nobody writes.
    return np.asarray(load_npy(folder / f"{name}.npy", mmap_mode="c"))
