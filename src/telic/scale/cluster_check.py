"""Whether the workers of a cluster can do a job: versions, memory, clocks, shared storage."""

import time
import uuid
from pathlib import Path
from typing import NamedTuple

from telic.data.object_storage import Place, place
from telic.errors import InputError
from telic.scale.dask_cluster import ALIKE, connected, versions

CLOCKS = 5.0
"""Seconds by which a worker's clock may differ: times of files tell whether data changed."""
LEAST = 2**29
"""Bytes that a worker's thread should have."""


class Worker(NamedTuple):
    """What was found of a worker."""

    address: str
    host: str
    threads: int
    memory: int
    """Bytes; 0 where no limit was set."""
    clock: float
    """Seconds that it is ahead of this process, the way there and back shared."""
    versions: dict[str, str]
    wrong: list[str]
    """Why it will not do."""


def check_cluster(
    address: str, folder: str | Path | None = None, *, patience: float = 10.0
) -> list[Worker]:
    """Look at every worker of a cluster.

    Parameters
    ----------
    address : str
        The scheduler's.
    folder : path, optional
        Where jobs are to keep their pieces: every worker must see what this process writes there,
        and this process what the workers write.
    patience : float
        Seconds to wait for the scheduler.

    Raises
    ------
    InputError
        If nothing answers, or there is no worker.
    """
    client = connected(address, patience)
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise InputError(f"the cluster {address} has no worker. Start one with: dask worker")
        ours = versions()
        stored = _storage(client, place(folder)) if folder is not None else {}
        found = []
        for where, facts in sorted(workers.items()):
            begun = time.time()
            answer = client.run(_look, workers=[where], on_error="return")[where]
            middle = (begun + time.time()) / 2
            threads, memory = int(facts["nthreads"]), int(facts["memory_limit"] or 0)
            if isinstance(answer, BaseException):
                wrong = [f"cannot run telic ({type(answer).__name__}: {answer})"]
                found.append(Worker(where, facts["host"], threads, memory, 0.0, {}, wrong))
                continue
            theirs, clock = answer[0], answer[1] - middle
            wrong = [
                f"has {name} {theirs[name]}, this process {ours[name]}"
                for name in ALIKE
                if theirs[name] != ours[name]
            ]
            if abs(clock) > CLOCKS:
                wrong.append(f"its clock is off by {clock:+.0f} s")
            if 0 < memory < LEAST * threads:
                wrong.append(f"has {memory >> 20} MiB for {threads} threads")
            wrong += stored.get(where, [])
            found.append(Worker(where, theirs["host"], threads, memory, clock, theirs, wrong))
        return found
    finally:
        client.close(timeout=2)


def _look() -> tuple[dict[str, str], float]:
    return versions(), time.time()


def _storage(client: object, folder: Place) -> dict[str, list[str]]:
    """Find which workers do not share a folder with this process."""
    name = f".telic-check-{uuid.uuid4().hex[:12]}"
    try:
        (folder / name).mkdir()
    except OSError as error:
        raise InputError(f"{folder}: cannot be written here ({error.strerror}).") from None
    try:
        answers = client.run(_touch, str(folder / name), on_error="return")  # type: ignore[attr-defined]
        wrong: dict[str, list[str]] = {}
        for where, told in answers.items():
            if isinstance(told, BaseException):
                wrong[where] = [f"cannot write to {folder} ({type(told).__name__}: {told})"]
            elif not (folder / name / told).exists():
                wrong[where] = [f"its {folder} is not this process's: a folder of its own"]
        return wrong
    finally:
        for file in (folder / name).iterdir():
            file.unlink()
        (folder / name).rmdir()


def _touch(folder: str) -> str:
    name = uuid.uuid4().hex
    (place(folder) / name).write_bytes(b"")
    return name
