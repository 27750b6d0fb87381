"""What a job did, partition by partition: where, how often, how long, and what was skipped."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from telic.data.object_storage import Remote


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


def size_of(value: Any) -> int:
    """Return how many bytes a result takes: a file's or folder's, or those of arrays."""
    if isinstance(value, Remote):
        return value.size()
    if isinstance(value, Path):
        files = value.rglob("*") if value.is_dir() else [value]
        return sum(file.stat().st_size for file in files if file.is_file())
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(size_of, value))
    return int(getattr(value, "nbytes", 8))
