"""Shards of the consensus form in files, worked on by the engines of `telic.scale`.

No worker keeps anything: what a shard finds in a round is a file by (round, shard), so that a round
is done again wherever a worker died, and a job that was interrupted takes up what was found.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from telic.data.numpy_files import load_matrix, load_npy
from telic.data.object_storage import state_of
from telic.errors import InputError
from telic.optim.admm.problem import AdmmProblem
from telic.optim.admm.separable_penalty import Separable
from telic.scale import Executor
from telic.scale.arrays import load_arrays, write
from telic.scale.job_folder import identity, placed
from telic.scale.partitions import check_unchanged


class ShardFile(NamedTuple):
    """Rows and labels of a shard, and how its part of the problem is made of them."""

    X: str
    """``.npy``, which is mapped, or a sparse matrix as ``.npz``."""
    y: str
    states: tuple[tuple[int, int], tuple[int, int]]
    """Size and time of change of the rows' file and of the labels'."""
    make: Callable[[Any, Any], AdmmProblem]

    def read(self) -> tuple[Any, np.ndarray]:
        """Map the rows, or read them where they are sparse; read the labels."""
        for path, state in zip((self.X, self.y), self.states, strict=True):
            check_unchanged(path, state)
        if self.X.endswith(".npz"):
            return load_matrix(self.X), load_npy(self.y)
        rows = np.asarray(load_npy(self.X, mmap_mode="c"))
        return rows, load_npy(self.y)


class _Task(NamedTuple):
    number: int
    shard: ShardFile
    A: sparse.csr_matrix
    g: Separable
    more: tuple[Any, ...]

    def __str__(self) -> str:
        return f"shard {self.number}, {self.shard.X}"


def shard_files(
    shards: Sequence[tuple[Any, Any]],
    folder: Path,
    make: Callable[[Any, Any], AdmmProblem],
) -> list[ShardFile]:
    """Name the files of shards; those that are arrays are written to `folder` first."""
    files = []
    for number, (X, y) in enumerate(shards):
        if not isinstance(X, str | Path):
            here = folder / f"shard-{number}"
            here.mkdir(parents=True, exist_ok=True)
            X, y = _write(here / "X", X), _write(here / "y", y)
        try:
            states = state_of(Path(X)), state_of(Path(y))
        except OSError as error:
            raise InputError(
                f"shard {number}: {error.filename}: {error.strerror}. Check the path."
            ) from None
        # A worker has a working folder of its own.
        rows, labels = (str(Path(path).absolute()) for path in (X, y))
        files.append(ShardFile(rows, labels, states, make))
    return files


def _write(path: Path, array: Any) -> Path:
    """Write an array to a file that is named after its numbers, unless it is there."""
    is_sparse = sparse.issparse(array)
    array = sparse.csr_matrix(array) if is_sparse else np.ascontiguousarray(array, np.float64)
    kind = "npz" if is_sparse else "npy"
    path = path.with_name(f"{path.name}-{identity(_write, [array])}.{kind}")
    if not path.exists():
        with placed(path) as temporary, temporary.open("wb") as stream:
            if is_sparse:
                sparse.save_npz(stream, array)
            else:
                np.save(stream, array, allow_pickle=False)
    return path


class ShardWorkers:
    """What `consensus_admm` asks its shards, done by an engine.

    Parameters
    ----------
    engine : telic.scale.Executor
    files : sequence of ShardFile
    folder : path
        Of what is found, by round and shard.
    """

    def __init__(self, engine: Executor, files: Sequence[ShardFile], folder: Path) -> None:
        self.engine, self.files, self.folder, self.rounds = engine, files, folder, 0

    def map(
        self, function: Callable[..., Any], parts: Sequence[AdmmProblem], *more: Any
    ) -> Iterator[Any]:
        """Call a function with every shard's part of the problem, as an executor does."""
        work = partial(_on_shard, function)
        return iter(self.engine.map(work, self._tasks(parts, more)).values)

    def step(
        self, function: Callable[..., Any], parts: Sequence[AdmmProblem], *more: Any
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Do a round, as `map`; each shard's answer, a tuple of arrays, is a file."""
        self.rounds += 1
        work, here = partial(_step_to_file, function), self.folder / f"round-{self.rounds:05d}"
        found = self.engine.map(work, self._tasks(parts, more), out=here, ending=".npz")
        for path in found.values:
            yield tuple(load_arrays(path).values())

    def _tasks(self, parts: Sequence[AdmmProblem], more: tuple[Any, ...]) -> list[_Task]:
        given = zip(*more, strict=True) if more else [()] * len(parts)
        shards = zip(self.files, parts, given, strict=True)
        return [
            _Task(s, f, part.A, part.g, tuple(args)) for s, (f, part, args) in enumerate(shards)
        ]


def _on_shard(function: Callable[..., Any], task: _Task) -> Any:
    return function(replace(_problem(task.shard), A=task.A, g=task.g), *task.more)


def _step_to_file(function: Callable[..., Any], task: _Task, out: Path) -> None:
    write(out, {str(n): array for n, array in enumerate(_on_shard(function, task))})


@lru_cache(maxsize=64)
def _problem(shard: ShardFile) -> AdmmProblem:
    """Make a shard's part of the problem, once in a process: the rows stay mapped."""
    return shard.make(*shard.read())
