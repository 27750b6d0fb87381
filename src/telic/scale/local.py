"""Threads of one machine: exact results on data that is larger than memory."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import telic
from telic.errors import InputError
from telic.scale.executor import Executor
from telic.scale.memory import LEAST, of_this_machine, parse_memory
from telic.scale.tasks import Done, Task, attempt

OWN = 300 * 2**20
"""Bytes that Python and the libraries take before any data."""


class Local(Executor):
    """Run partitions on threads of this process; the kernels, Arrow and DuckDB release the GIL.

    Parameters
    ----------
    threads : int, optional
        Default one for each processor.
    memory : str or int, optional
        What the process may take, such as ``"2GiB"``; default half of the machine's. Tasks plan
        with it (batches, DuckDB's memory); Python and its libraries have `OWN` of it.
    piece : str or int, optional
        What one partition is to take, where a whole task's memory is too much.

    Examples
    --------
    >>> Local(threads=2, memory="1GiB").memory >> 20
    362
    """

    def __init__(
        self,
        threads: int | None = None,
        memory: str | int | None = None,
        piece: str | int | None = None,
    ) -> None:
        super().__init__(piece)
        threads = len(os.sched_getaffinity(0)) if threads is None else threads
        if threads not in range(1, 1025):
            raise InputError(f"threads is {threads!r}, expected 1 to 1024.")
        whole = of_this_machine() // 2 if memory is None else parse_memory(memory)
        self._slots = int(threads)
        self.own_memory = max(whole - OWN, LEAST)
        self.memory = self.own_memory // threads

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self._slots

    def outcomes(
        self, job: str, function: Callable[..., Any], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Done | BaseException]]:
        """Run tasks on the threads."""
        ledger = self._ledgers.setdefault(job, [])

        def begin(task: Task) -> Done:
            number = threading.current_thread().name.rpartition("_")[2]
            ledger.append((task.name, f"thread {number}"))
            return attempt(function, task, telic.__version__)

        pool = ThreadPoolExecutor(self.slots, "telic-scale")
        running: dict[Future[Done], int] = {}
        waiting = iter(enumerate(tasks))
        try:
            while True:
                while len(running) < self.slots and (following := next(waiting, None)):
                    running[pool.submit(begin, following[1])] = following[0]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    error = future.exception()
                    yield running.pop(future), future.result() if error is None else error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
