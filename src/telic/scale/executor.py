"""The one interface of every engine: a function mapped over partitions, folded up, or in rounds."""

import functools
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self

from telic.data.object_storage import Place, place
from telic.errors import InputError, JobError
from telic.scale.arrays import Arrays, fold, load_arrays, save_arrays
from telic.scale.job_folder import identity, name_of, open_folder
from telic.scale.job_report import JobReport, Results, TaskReport
from telic.scale.memory import SMALLEST_PIECE, parse_memory
from telic.scale.retries import Watch, arrivals
from telic.scale.shard_rounds import Numbered, in_rounds
from telic.scale.tasks import Done, Task


class Executor(ABC):
    """An engine. `Local`, `Dask` and `Ray` differ in `outcomes`, and in where the ledgers are."""

    memory: int
    """Bytes that one task may take."""
    own_memory: int
    """Bytes that the process which asks may take for the results."""
    watch: Watch | None = None
    """Called as partitions end."""

    def __init__(self, piece: str | int | None = None) -> None:
        self._piece = None if piece is None else parse_memory(piece, SMALLEST_PIECE, "piece")
        self.reports: list[JobReport] = []
        """Of all jobs, in the order in which they began."""
        self._ledgers: dict[str, list[tuple[str, str]]] = {}

    @property
    def piece(self) -> int:
        """Bytes that one partition is to take: the `piece` asked for, and at most `memory`."""
        return self.memory if self._piece is None else min(self._piece, self.memory)

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many tasks run at a time."""

    @abstractmethod
    def outcomes(
        self, job: str, function: Callable[..., Any], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Done | BaseException]]:
        """Attempt every task, `slots` at a time; yield numbers as they end."""

    def begun(self, job: str) -> list[tuple[str, str]]:
        """Return the ledger of a job: (task's name, where), one for each attempt."""
        return self._ledgers.pop(job, [])

    def close(self) -> None:  # noqa: B027
        """Let go of what the engine holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def map(
        self,
        function: Callable[..., Any],
        partitions: Iterable[Any],
        *,
        out: str | Place | None = None,
        ending: str = "",
        skip_bad: bool = False,
    ) -> Results:
        """Call a function with every partition.

        Parameters
        ----------
        function : callable
            Pure: of a partition; with `out`, of a partition and the path that it is to write, a
            file or a folder. Partitions that are large travel as paths.
        partitions : iterable
        out : path, optional
            Folder of the results, on storage that every worker reaches: a disk that they share, or
            an address such as ``s3://bucket/job``. A result gets its name when it is whole, so an
            attempt may be repeated, and the same job goes on where it ended. It is the same by the
            function's name, what is bound to it (by `functools.partial`, as a default or as a
            variable around it), and the partitions. What of these cannot be pickled, such as a
            lock, makes each call another job. Take another folder after a change of the function's
            code, or of a file that partitions name without its state (`telic.scale.row_ranges` has
            it).
        ending : str
            Of the files' names, such as ``".parquet"``.
        skip_bad : bool
            Finish the others where a partition fails, and say so in the report.

        Returns
        -------
        Results
            In the order of the partitions; with `out` the paths. `fetched` gives those on object
            storage as files of this machine.

        Raises
        ------
        JobError
            Naming the partition that failed, or if the cluster is lost.
        InputError
            If `out` holds another job's results.

        Examples
        --------
        >>> from telic.scale import Local
        >>> Local(threads=2).map(sum, [[1, 2], [3]]).values
        [3, 3]
        """
        partitions = list(partitions)
        folder = None if out is None else place(out)
        if folder is not None:
            open_folder(folder, identity(function, partitions), name_of(function), len(partitions))
        report, arrivals = self._start(function, partitions, folder, ending, skip_bad)
        values: list[Any] = [None] * len(partitions)
        for i, value in arrivals:
            values[i] = value
        return Results(values, report)

    def tree_reduce(
        self,
        function: Callable[[Any], Arrays],
        combine: Callable[[Arrays, Arrays], Arrays],
        partitions: Iterable[Any],
        *,
        out: str | Place | None = None,
        skip_bad: bool = False,
    ) -> tuple[Arrays, JobReport]:
        """Call a function with every partition and add the values up, neighbour to neighbour.

        The tree is that of the partitions' numbers, so the workers and the order in which they end
        change no bit of the result. A function that folds its own blocks by `fold` in groups of a
        power of two makes it independent of the partitions too.

        Parameters
        ----------
        function : callable
            Of a partition; returns a mapping of names to arrays.
        combine : callable
            Of the values of two neighbours, the left one first.
        partitions, skip_bad
            As in `map`.
        out : path, optional
            Keeps the value of each partition, so that the same job goes on where it ended.

        Examples
        --------
        >>> import numpy as np
        >>> from telic.scale import Local
        >>> def add(one, other):
        ...     return {"sum": one["sum"] + other["sum"]}
        >>> found, report = Local().tree_reduce(lambda part: {"sum": np.sum(part)}, add, [[1], [2]])
        >>> int(found["sum"]), report.facts()["partitions"]
        (3, 2)
        """
        partitions = list(partitions)
        if not partitions:
            raise InputError("there is no partition to add up. Give at least one.")
        if out is None:
            report, arrivals = self._start(function, partitions, None, "", skip_bad)
        else:
            folder, kept = place(out), functools.partial(save_arrays, function)
            open_folder(folder, identity(kept, partitions), name_of(function), len(partitions))
            report, paths = self._start(kept, partitions, folder, ".npz", skip_bad)
            arrivals = ((i, path and load_arrays(path)) for i, path in paths)
        total = fold(arrivals, combine, len(partitions))
        if total is None:
            raise JobError("every partition was skipped: nothing is left to add up.")
        return total, report

    def rounds(
        self,
        step: Callable[..., tuple[Arrays, Arrays]],
        combine: Callable[[Arrays, list[Arrays]], tuple[Arrays, bool]],
        shards: Sequence[Any],
        shared: Arrays,
        *,
        out: str | Place,
        max_rounds: int,
        settings: Any = None,
    ) -> tuple[Arrays, int]:
        """Let shards work in rounds, between which they hear of each other.

        No worker holds a state: that of shard s after round r is a file of `out`, so a round may be
        repeated anywhere, and the same job goes on after the last round that was whole.

        Parameters
        ----------
        step : callable
            Of a shard, its state (None in round 1), what is shared, and the number of the round;
            returns the shard's next state and its message.
        combine : callable
            Of what is shared and the messages in the order of the shards; returns what is shared in
            the next round, and whether that was the last.
        shards : sequence
        shared : mapping of str to array
        out : path
        max_rounds : int
        settings : optional
            Whatever else the result depends on.

        Returns
        -------
        shared : mapping of str to array
        rounds : int
        """
        folder = place(out)
        about = functools.partial(step, settings, combine, *map(list, shared.items()))
        open_folder(folder, identity(about, shards), name_of(step))

        def run(work: Callable[..., Any], here: Place) -> dict[int, Place]:
            pairs = [Numbered(s, shard) for s, shard in enumerate(shards)]
            return dict(self._start(work, pairs, here, ".npz", False)[1])

        return in_rounds(run, step, combine, shared, folder, max_rounds)

    def _start(
        self,
        function: Callable[..., Any],
        partitions: Sequence[Any],
        folder: Place | None,
        ending: str,
        skip_bad: bool,
    ) -> tuple[JobReport, Iterator[tuple[int, Any]]]:
        tasks = [
            Task(p, f"{i} ({p})"[:200], folder and folder / f"part-{i:05d}{ending}", self.memory)
            for i, p in enumerate(partitions)
        ]
        report = JobReport(name_of(function), [TaskReport(task.name) for task in tasks])
        self.reports.append(report)
        return report, self._arrivals(function, tasks, report, skip_bad)

    def _arrivals(
        self,
        function: Callable[..., Any],
        tasks: list[Task],
        report: JobReport,
        skip_bad: bool,
    ) -> Iterator[tuple[int, Any]]:
        """Yield (number, value) as partitions end, and note in the end where each was begun."""
        job = f"telic-{uuid.uuid4().hex[:12]}"
        outcomes = functools.partial(self.outcomes, job, function)
        try:
            yield from arrivals(outcomes, tasks, report, skip_bad=skip_bad, watch=self.watch)
        finally:
            numbers = {task.name: i for i, task in enumerate(tasks)}
            for name, where in self.begun(job):
                report.tasks[numbers[name]].where.append(where)
