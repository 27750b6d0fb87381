"""Which partitions are begun again, which run alone, and when a job ends with an error."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from telic.data.object_storage import names_in
from telic.errors import JobError
from telic.scale.failures import Lost, LostWorker, failure, passing, said
from telic.scale.job_report import JobReport, size_of
from telic.scale.tasks import Done, Task

ATTEMPTS = 3
"""How often a partition is begun whose storage fails."""
Watch = Callable[[str, int, int], None]
"""Called with a job's name, its finished partitions and all of them."""
Outcomes = Callable[[Sequence[Task]], Iterator[tuple[int, Done | BaseException]]]
"""Works on tasks, and yields their numbers as they end: `Executor.outcomes` of one job."""


def arrivals(
    outcomes: Outcomes,
    tasks: Sequence[Task],
    report: JobReport,
    *,
    skip_bad: bool,
    watch: Watch | None,
) -> Iterator[tuple[int, Any]]:
    """Yield (number, value) as partitions end, those of an earlier run first.

    Raises
    ------
    JobError
        Naming the partition that failed for good, or if the cluster is lost.
    """
    finished, waiting, tried = 0, [], [0] * len(tasks)
    folders = {task.target.parent for task in tasks if task.target is not None}
    held = {folder / name for folder in folders for name in names_in(folder)}
    for i, task in enumerate(tasks):
        if task.target in held:
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
        for j, outcome in outcomes([tasks[i] for i in batch]):
            i, own = batch[j], report.tasks[batch[j]]
            target = tasks[i].target
            if isinstance(outcome, Done) and target is not None and not target.exists():
                outcome = JobError(
                    f"{target}: was written where it ran, but is not here. Is the "
                    "folder on storage that every worker and this machine share?"
                )
            if isinstance(outcome, Done):
                value = outcome.value if target is None else target
                own.outcome, own.seconds = "done", outcome.seconds
                own.bytes = size_of(value)
                finished += 1
                if watch is not None:
                    watch(report.job, finished, len(tasks))
                yield i, value
                continue
            tried[i] += 1
            if isinstance(outcome, LostWorker) and not alone:
                suspects.append(i)
            elif passing(outcome) and tried[i] < ATTEMPTS:
                waiting.append(i)
            elif skip_bad and not isinstance(outcome, Lost | KeyboardInterrupt):
                own.outcome = f"skipped: {said(outcome)}"
                yield i, None
            else:
                if isinstance(outcome, KeyboardInterrupt):
                    raise outcome
                raise failure(tasks[i].name, outcome, finished, len(tasks), target is not None)
