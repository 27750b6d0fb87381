"""A Dask scheduler and workers as processes on loopback, ended by their pids."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import telic

SECONDS = 60


class Cluster:
    """Worker processes with one thread each; a nanny's restart is not theirs to hope for."""

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        preload: str | None = None,
        memory: str = "1GiB",
        settings: dict[str, str] | None = None,
    ) -> None:
        self.folder, self.port = folder, free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        # tests.scale.functions, and the telic that is tested, wherever another is installed.
        sources = [Path(__file__).parents[2], Path(telic.__file__).parents[1]]
        self.environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(map(str, sources)),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
            "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
            **(settings or {}),
        }
        self.processes: list[subprocess.Popen] = []
        self.scheduler = self._start(
            "scheduler",
            *("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port)),
            *("--no-dashboard", "--no-show"),
        )
        self.workers = [self.add_worker(preload, memory) for _ in range(workers)]

    def add_worker(self, preload: str | None = None, memory: str = "1GiB") -> subprocess.Popen:
        more = ["--preload", preload] if preload else []
        return self._start(
            f"worker-{len(self.processes)}",
            *("dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"),
            *("--host", "127.0.0.1", "--memory-limit", memory, "--death-timeout", "40"),
            *("--local-directory", str(self.folder / "spill"), *more),
        )

    def _start(self, name: str, module: str, *options: str) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *options],
                stdout=log, stderr=log, env=self.environment,
            )  # fmt: skip
        self.processes.append(process)
        return process

    def ready(self, workers: int | None = None):
        """Return a client once the workers are there."""
        from distributed import Client

        client = Client(self.address, timeout=SECONDS, set_as_default=False)
        client.wait_for_workers(workers or len(self.workers), timeout=SECONDS)
        return client

    def close(self) -> None:
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(condition, what: str) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"{what} did not come in {SECONDS} seconds"
        time.sleep(0.05)
