"""A cluster of Ray."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import telic
from telic.errors import InputError
from telic.scale.executor import Executor
from telic.scale.failures import SMALLER, Lost, LostWorker
from telic.scale.memory import of_this_machine, parse_memory
from telic.scale.tasks import Done, Task, attempt_elsewhere


class Ray(Executor):
    """Run partitions as tasks of Ray, each with a processor of its own (`pip install ray`).

    Parameters
    ----------
    address : str, optional
        The cluster's, as `ray.init` takes it; None starts Ray on this machine, on loopback.
    memory : str or int, optional
        What one task may take; by default three fifths of what its nodes' memory gives each
        processor.
    piece : str or int, optional
        What one partition is to take, where a whole task's memory is too much.

    Raises
    ------
    InputError
        If Ray is not installed, or no cluster answers.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        memory: str | int | None = None,
        piece: str | int | None = None,
    ) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # tell nobody
        try:
            import ray
        except ImportError:
            raise InputError("Ray is not installed: pip install ray.") from None
        super().__init__(piece)
        self._ray, self._owned = ray, not ray.is_initialized()
        local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        if self._owned:
            try:
                ray.init(address or "local", log_to_driver=False, **({} if address else local))
            except (ConnectionError, RuntimeError, ValueError) as error:
                why = (str(error).splitlines() or [""])[0]
                raise InputError(f"no cluster of Ray answers at {address!r} ({why}).") from None
        self.own_memory = of_this_machine() // 2
        each = ray.cluster_resources().get("memory", self.own_memory) / self.slots
        self.memory = int(0.6 * each) if memory is None else parse_memory(memory)

    def close(self) -> None:
        """Leave the cluster, or end the one that was started here."""
        if self._owned:
            self._ray.shutdown()

    @property
    def slots(self) -> int:
        """How many tasks run at a time: the processors of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def outcomes(
        self, job: str, function: Callable[..., Any], tasks: Sequence[Task]
    ) -> Iterator[tuple[int, Done | BaseException]]:
        """Run tasks on the cluster."""
        # Which attempts were made, and how often, is for `Executor` to know: Ray makes one.
        begin = self._ray.remote(num_cpus=1, max_retries=0)(attempt_elsewhere)
        ledger = self._ledgers.setdefault(job, [])
        running: dict[Any, int] = {}
        waiting = iter(enumerate(tasks))
        try:
            while True:
                while len(running) < self.slots and (following := next(waiting, None)):
                    number, task = following
                    ledger.append((task.name, "a worker of Ray"))
                    running[begin.remote(function, task, telic.__version__)] = number
                if not running:
                    return
                (ended,), _ = self._ray.wait(list(running), num_returns=1)
                yield running.pop(ended), self._outcome(ended)
        finally:
            for task in running:
                self._ray.cancel(task, force=True)

    def _outcome(self, ended: Any) -> Done | BaseException:
        errors = self._ray.exceptions
        try:
            return self._ray.get(ended)
        except errors.RayTaskError as error:
            return error.cause if isinstance(error.cause, BaseException) else error
        except (errors.WorkerCrashedError, errors.OutOfMemoryError):
            return LostWorker(
                f"every worker that began it died, probably for want of memory. Give {SMALLER}"
            )
        except errors.RayError as error:
            return Lost(f"the cluster of Ray is gone ({type(error).__name__})")
