"""The one interface of every engine: a function mapped over partitions, folded up, or in rounds."""

import functools
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import telic
from telic.errors import InputError, JobError
from telic.scale.arrays import Arrays, fold, load_arrays, save_arrays
from telic.scale.failures import Lost, LostWorker, failure, passing, said
from telic.scale.jobs import (
    JobReport,
    Results,
    TaskReport,
    identity,
    name_of,
    open_folder,
    placed,
    size_of,
)
from telic.scale.memory import granted
from telic.scale.rounds import Numbered, in_rounds

ATTEMPTS = 3
"""How often a partition is begun whose storage fails."""
Watch = Callable[[str, int, int], None]
"""Called with a job's name, its finished partitions and all of them."""


class Task(NamedTuple):
    """A partition to be worked on."""

    partition: Any
    name: str
    target: Path | None
    """Where its file goes, for functions that write one."""
    memory: int
    """Bytes that it may take (`telic.scale.memory.of_task`)."""


class Done(NamedTuple):
    """A finished task."""

    value: Any
    seconds: float


class Executor(ABC):
    """An engine. `Local`, `Dask` and `Ray` differ in `outcomes` and `begun` alone."""

    memory: int
    """Bytes that one task may take."""
    own_memory: int
    """Bytes that the process which asks may take for the results."""
    watch: Watch | None = None
    """Called as partitions end."""

    def __init__(self) -> None:
        self.reports: list[JobReport] = []
        """Of all jobs, in the order in which they began."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many tasks run at a time."""

    @abstractmethod
    def outcomes(
        self, job: str, function: Callable[..., Any], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Done | BaseException]]:
        """Call `attempt` for every task, `slots` at a time; yield numbers as they end."""

    @abstractmethod
    def begun(self, job: str) -> list[tuple[str, str]]:
        """Return the ledger of a job: (task's name, where), one for each attempt."""

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
        out: str | Path | None = None,
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
            Folder of the results, on storage that every worker reaches. A result gets its name when
            it is whole, so an attempt may be repeated, and the same job goes on where it ended.
        ending : str
            Of the files' names, such as ``".parquet"``.
        skip_bad : bool
            Finish the others where a partition fails, and say so in the report.

        Returns
        -------
        Results
            In the order of the partitions; with `out` the paths.

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
        folder = None if out is None else Path(out).absolute()
        if folder is not None:
            open_folder(folder, identity(function, partitions), name_of(function))
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
        out: str | Path | None = None,
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
            folder, kept = Path(out).absolute(), functools.partial(save_arrays, function)
            open_folder(folder, identity(kept, partitions), name_of(function))
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
        out: str | Path,
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
        folder = Path(out).absolute()
        about = functools.partial(step, settings, combine, *map(list, shared.items()))
        open_folder(folder, identity(about, shards), name_of(step))

        def run(work: Callable[..., Any], here: Path) -> dict[int, Path]:
            pairs = [Numbered(s, shard) for s, shard in enumerate(shards)]
            return dict(self._start(work, pairs, here, ".npz", False)[1])

        return in_rounds(run, step, combine, shared, folder, max_rounds)

    def _start(
        self,
        function: Callable[..., Any],
        partitions: Sequence[Any],
        folder: Path | None,
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
        """Yield (number, value) as partitions end, those of an earlier run first."""
        job = f"telic-{uuid.uuid4().hex[:12]}"
        finished, waiting, tried = 0, [], [0] * len(tasks)
        try:
            for i, task in enumerate(tasks):
                if task.target is not None and task.target.exists():
                    report.tasks[i].outcome = "kept"
                    finished += 1
                    yield i, task.target
                else:
                    waiting.append(i)
            suspects: list[int] = []
            while waiting or suspects:
                # A dead worker is blamed on each task that it had: suspects run one by one.
                alone = not waiting
                batch = [suspects.pop()] if alone else waiting
                waiting = []
                for j, outcome in self.outcomes(job, function, [tasks[i] for i in batch]):
                    i, own = batch[j], report.tasks[batch[j]]
                    if isinstance(outcome, Done) and _unseen(tasks[i].target):
                        outcome = JobError(
                            f"{tasks[i].target}: was written where it ran, but is not here. Is the "
                            "folder on storage that every worker and this machine share?"
                        )
                    if isinstance(outcome, Done):
                        value = outcome.value if tasks[i].target is None else tasks[i].target
                        own.outcome, own.seconds = "done", outcome.seconds
                        own.bytes = size_of(value)
                        finished += 1
                        if self.watch is not None:
                            self.watch(report.job, finished, len(tasks))
                        yield i, value
                        continue
                    tried[i] += 1
                    if isinstance(outcome, LostWorker) and not alone:
                        suspects.append(i)
                    elif passing(outcome) and tried[i] < ATTEMPTS:
                        waiting.append(i)
                    elif skip_bad and not isinstance(outcome, Lost):
                        own.outcome = f"skipped: {said(outcome)}"
                        yield i, None
                    else:
                        if isinstance(outcome, KeyboardInterrupt):
                            raise outcome
                        kept = tasks[i].target is not None
                        raise failure(tasks[i].name, outcome, finished, len(tasks), kept)
        finally:
            numbers = {task.name: i for i, task in enumerate(tasks)}
            for name, where in self.begun(job):
                report.tasks[numbers[name]].where.append(where)


def attempt(function: Callable[..., Any], task: Task, version: str) -> Done:
    """Work on one partition; this is what a worker calls.

    Raises
    ------
    JobError
        If the worker has another version of telic than the job.
    """
    if version != telic.__version__:
        raise JobError(
            f"the job is of telic {version}, this worker has {telic.__version__}. Give "
            "every worker the same version."
        )
    if task.target is not None and not task.target.parent.is_dir():
        raise JobError(
            f"there is no {task.target.parent} where it ran. Put the job's folder on storage that "
            "every worker and this machine share by the same name"
        )
    begun = time.perf_counter()
    value = None
    with granted(task.memory):
        if task.target is None:
            value = function(task.partition)
        else:
            with placed(task.target) as temporary:
                function(task.partition, temporary)
    return Done(value, time.perf_counter() - begun)


def _unseen(target: Path | None) -> bool:
    return target is not None and not target.exists()
