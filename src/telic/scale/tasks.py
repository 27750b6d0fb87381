"""One partition to be worked on, and what a worker does with it."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import telic
from telic.data.object_storage import Place, scratch
from telic.errors import JobError
from telic.scale.failures import portable
from telic.scale.job_folder import placed
from telic.scale.memory import granted


class Task(NamedTuple):
    """A partition to be worked on."""

    partition: Any
    name: str
    target: Place | None
    """Where its file goes, for functions that write one."""
    memory: int
    """Bytes that it may take (`telic.scale.memory.of_task`)."""


class Done(NamedTuple):
    """A finished task."""

    value: Any
    seconds: float


def attempt(function: Callable[..., Any], task: Task, version: str) -> Done:
    """Work on one partition.

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
    if isinstance(task.target, Path) and not task.target.parent.is_dir():
        raise JobError(
            f"there is no {task.target.parent} where it ran. Put the job's folder on storage that "
            "every worker and this machine share by the same name"
        )
    begun = time.perf_counter()
    value = None
    with granted(task.memory), scratch():
        if task.target is None:
            value = function(task.partition)
        else:
            with placed(task.target) as temporary:
                function(task.partition, temporary)
    return Done(value, time.perf_counter() - begun)


def attempt_elsewhere(function: Callable[..., Any], task: Task, version: str) -> Done | Exception:
    """Work on one partition in a worker of its own process, which lives on whatever happens.

    What goes wrong is returned. If it were raised, engines would hang on some tracebacks, lose some
    errors on their way, and end the worker on `SystemExit`.
    """
    try:
        return attempt(function, task, version)
    except BaseException as error:
        return portable(error)
