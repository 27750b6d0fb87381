"""A cluster of Dask's `distributed`, by its address or its client."""

import importlib
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import telic
from telic.errors import InputError, JobError
from telic.scale.executor import Executor
from telic.scale.failures import SMALLER, Lost, LostWorker, said
from telic.scale.memory import of_this_machine, parse_memory
from telic.scale.tasks import Done, Task, attempt_elsewhere

ALIKE = ("telic", "python", "numpy", "pyarrow", "duckdb")
"""What every worker must have in the version that this process has."""
UNSAID = 2**31
"""Bytes that a thread is taken to have where its worker has no limit."""
LOOK = 0.5
"""Seconds after which a waiting job looks whether scheduler and workers are still there."""


class Dask(Executor):
    """Run partitions on a cluster's workers, one at a time in each of their threads.

    Give workers one thread each: then a worker's death is blamed on one partition.

    Parameters
    ----------
    address : str, optional
        The scheduler's, such as ``"tcp://10.0.0.1:8786"``.
    client : distributed.Client, optional
        A connection of one's own, which stays open.
    memory : str or int, optional
        What one task may take; by default three fifths of the least that a worker's thread has.
    piece : str or int, optional
        What one partition is to take, where a whole task's memory is too much.
    patience : float
        Seconds to wait for the scheduler, and for a worker where there is none.

    Raises
    ------
    InputError
        If `distributed` is not installed, nothing answers at the address, no worker comes, or a
        worker has other versions than this process.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        client: Any = None,
        memory: str | int | None = None,
        piece: str | int | None = None,
        patience: float = 30.0,
    ) -> None:
        if (address is None) == (client is None):
            raise InputError("Dask needs an address or a client: one of the two.")
        super().__init__(piece)
        self.patience = patience
        self.own_memory = of_this_machine() // 2
        self._owned = client is None
        self._heard: dict[str, set[tuple[float, str, str]]] = {}
        self._client = connected(address, patience) if address is not None else client
        try:
            workers = check_alike(self._client, patience).values()
            each = [(w["memory_limit"] or UNSAID * w["nthreads"]) / w["nthreads"] for w in workers]
            self.memory = int(0.6 * min(each)) if memory is None else parse_memory(memory)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection, if it is not the caller's own."""
        if self._owned:
            # What a lost scheduler makes of a goodbye is said by the job's error already.
            level = logging.CRITICAL if self._client.status != "running" else logging.NOTSET
            logging.getLogger("distributed.client").setLevel(level)
            self._client.close(timeout=2)

    @property
    def slots(self) -> int:
        """How many tasks run at a time: the threads of all workers."""
        return sum(worker["nthreads"] for worker in self._workers().values())

    def _workers(self) -> dict[str, Any]:
        return dict(self._client.scheduler_info(n_workers=-1)["workers"])

    def outcomes(
        self, job: str, function: Callable[..., Any], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Done | BaseException]]:
        """Run tasks on the workers; no more are sent than run, so that blame is just."""
        from distributed import CancelledError, wait

        if job not in self._heard:
            # The scheduler's log keeps a thousand events of a job; what is heard is not lost.
            heard = self._heard[job] = set()
            self._client.subscribe_topic(job, lambda event: heard.add(_noted(event)))
        running: dict[Any, int] = {}
        waiting, left = iter(enumerate(tasks)), len(tasks)
        slots, seen = max(1, self.slots), time.monotonic()
        try:
            while left:
                while len(running) < slots and (following := next(waiting, None)):
                    number, task = following
                    key = f"{job}-{number}-{time.monotonic_ns()}"
                    try:
                        future = self._client.submit(
                            _begin, job, function, task, telic.__version__, key=key, pure=False
                        )
                    except TypeError as error:  # it cannot be pickled
                        left -= 1
                        yield number, _not_sent(error)
                    else:
                        running[future] = number
                if not left:
                    return
                try:
                    with self._client.as_current():
                        ended = wait(list(running), LOOK, "FIRST_COMPLETED").done
                except TimeoutError:
                    slots = self.slots
                    seen = time.monotonic() if slots else seen
                    ended = set()
                except CancelledError:
                    raise Lost(_gone(self._client)) from None
                if self._client.status != "running":
                    raise Lost(_gone(self._client))
                if time.monotonic() - seen > self.patience:
                    raise Lost(f"no worker has been there for {self.patience:g} seconds")
                for future in ended:
                    # While the caller works on one result, the worker that holds the next may die.
                    if future.done():
                        left -= 1
                        yield running.pop(future), _outcome(future, self.patience)
        except Lost as lost:
            yield next(iter(running.values()), 0), lost
        finally:
            if running and self._client.status == "running":
                self._client.cancel(list(running), force=True)

    def begun(self, job: str) -> list[tuple[str, str]]:
        """Return the ledger of a job, which the workers wrote to the scheduler's log of events."""
        noted = set(self._heard.get(job, ()))
        if self._client.status == "running":
            noted |= set(map(_noted, self._client.get_events(job)))
            if self._heard.pop(job, None) is not None:
                self._client.unsubscribe_topic(job)
        return [(task, where) for _, task, where in sorted(noted)]


def _noted(event: tuple[float, dict[str, str]]) -> tuple[float, str, str]:
    """Return when a task was begun, its name and where."""
    at, said = event
    return at, said["task"], said["where"]


def _gone(client: Any) -> str:
    return f"the scheduler {client.scheduler.address} is gone"


def _begin(job: str, function: Callable[..., Any], task: Task, version: str) -> Done | Exception:
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(job, {"task": task.name, "where": f"{worker.address} (pid {os.getpid()})"})
    return attempt_elsewhere(function, task, version)


def _outcome(future: Any, patience: float) -> Done | Exception:
    from distributed import CancelledError, KilledWorker

    try:
        # Not by its status: a result that is lost on its way is made once more.
        return future.result(timeout=patience)
    except CancelledError:
        return Lost("the scheduler cancelled the job")
    except KilledWorker as error:
        return LostWorker(
            f"every worker that began it died, the last one {error.last_worker.address}, probably "
            f"for want of memory. Give {SMALLER}"
        )
    except TimeoutError:
        return Lost(f"no worker has been there for {patience:g} seconds")
    except Exception as error:  # what came of sending the task or its result
        wrapped = isinstance(error, RuntimeError) and error.__cause__ is not None
        return _not_sent(error) if wrapped or isinstance(error, TypeError) else error


def _not_sent(error: Exception) -> Exception:
    """Say what Dask's error comes from, whose own words name neither the reason nor what to do."""
    reason: BaseException = error
    while reason.__cause__ is not None:
        reason = reason.__cause__
    found = JobError(
        f"the task or its result cannot be sent ({said(reason)}). It must hold only what can be "
        "pickled, of modules that are installed with the scheduler and every worker"
    )
    found.__cause__ = error
    return found


def connected(address: str, patience: float) -> Any:
    """Connect to a scheduler.

    Raises
    ------
    InputError
        If it is no address, `distributed` is not installed, or nothing answers.
    """
    if not re.fullmatch(r"inproc://.+|(tcp|tls|wss?|ucx)://[^\s/]+:\d{1,5}", address):
        raise InputError(
            f"cluster is {address!r}, expected an address such as tcp://10.0.0.1:8786."
        )
    try:
        from distributed import Client, Security
    except ImportError:
        raise InputError(
            "a cluster needs Dask's distributed: pip install 'telic[scale]'."
        ) from None
    if address.startswith("tls:") and not Security().get_connection_args("client")["ssl_context"]:
        raise InputError(
            f"cluster is {address!r}, but Dask's configuration here names no certificates. Give "
            "them as distributed.comm.tls, as DASK_DISTRIBUTED__COMM__TLS__CA_FILE and so on."
        )
    try:
        return Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({(str(error).splitlines() or [''])[0]}). "
            "Start one with: dask scheduler"
        ) from None


def versions() -> dict[str, str]:
    """Return what this process has, by `ALIKE`, and where it runs."""
    found = {"python": ".".join(map(str, sys.version_info[:2]))}
    for name in ALIKE:
        if name != "python":
            try:
                found[name] = str(importlib.import_module(name).__version__)
            except ImportError:
                found[name] = "missing"
    return found | {"host": socket.gethostname()}


def check_alike(client: Any, patience: float = 0.0) -> dict[str, Any]:
    """Return what is known of each worker, once there is one.

    Raises
    ------
    InputError
        If none comes within `patience` seconds, or one has other versions than this process.
    """
    end = time.monotonic() + patience
    while not (workers := dict(client.scheduler_info(n_workers=-1)["workers"])):
        if time.monotonic() >= end:
            raise InputError(
                f"the cluster {client.scheduler.address} has no worker, and none came in "
                f"{patience:g} seconds. Start one with: dask worker {client.scheduler.address} "
                "--nthreads 1"
            )
        time.sleep(LOOK)
    ours = versions()
    try:
        theirs = client.run(versions)
    except Exception as error:  # whatever a worker without telic makes of the call
        said = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"a worker cannot run telic ({type(error).__name__}: {said}). Install the same telic, "
            "with its extra scale, on every worker."
        ) from None
    for address, found in theirs.items():
        for name in ALIKE:
            if found[name] != ours[name]:
                raise InputError(
                    f"worker {address} has {name} {found[name]}, this process has {ours[name]}. "
                    "Give every worker the same versions."
                )
    return workers
