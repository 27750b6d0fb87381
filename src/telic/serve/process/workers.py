"""Several worker processes behind one port: started together, and anew when one dies."""

import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from telic.completion import Completer
from telic.errors import InputError, TelicError
from telic.serve.app import arm_of
from telic.serve.callers.access import Access
from telic.serve.operation.logs import log_config
from telic.serve.operation.metrics import FOLDER, mark_process_dead
from telic.serve.operation.settings import Settings
from telic.serve.process.server import listen, serve_on, shown_address
from telic.serve.requests.between_workers import WorkerPlace
from telic.serve.state.store import Store

LONGEST_WAIT = 30
"""Seconds between two starts of a worker that cannot be started."""
_log = logging.getLogger("telic.serve")


def run_workers(
    model: str | Path,
    settings: Settings,
    *,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a model folder from several processes until interrupted.

    They share the port, the store and the memory-mapped index. A user's compositions live in one
    of them, to which the others hand the user's requests over.

    Parameters
    ----------
    model : path
    settings : Settings
        Their `workers` processes are started; limits hold for each.
    ready : callable, optional
        Called with the address once all of them answer.

    Raises
    ------
    InputError
        If the model, the address or the store cannot be used, or on a system without Unix sockets;
        later, if no worker is left and none can be started.
    """
    if not hasattr(socket, "AF_UNIX") or os.name == "nt":
        raise InputError("several workers need a POSIX system. Leave --workers out.")
    logging.config.dictConfig(log_config(settings))
    # What is wrong is said once, here, and not by each of them.
    Access(settings)
    arm_of(settings)
    Store(settings.database, Completer.load(model)).close()
    with (
        listen(settings) as listener,
        tempfile.TemporaryDirectory(prefix="telic-") as folder,
    ):
        os.environ[FOLDER] = folder
        workers = settings.workers
        places = [WorkerPlace(index, workers, folder) for index in range(workers)]
        crew = [_Worker(model, settings, listener, place) for place in places]
        stopping = threading.Event()
        before = signal.signal(signal.SIGTERM, lambda *_: stopping.set())
        terminal = os.isatty(0)  # which says by this signal that it was closed
        before_hangup = signal.signal(
            signal.SIGHUP, lambda *_: stopping.set() if terminal else _mark(crew)
        )
        try:
            with suppress(KeyboardInterrupt):
                for worker in crew:
                    worker.start()
                served = all(worker.comes_up() for worker in crew)
                if served and ready:
                    ready(shown_address(settings, listener))
                while not stopping.is_set():
                    alive = [worker for worker in crew if worker.process.is_alive()]
                    wait([worker.process.sentinel for worker in alive], timeout=0.2)
                    for worker in crew:
                        if not stopping.is_set():
                            worker.look()
                        worker.swap_if_due()
                    served = served or all(worker.is_up for worker in crew)
                    lost = [worker for worker in crew if worker.failed > 1]
                    if lost and (not served or lost == crew):
                        raise InputError(f"no worker can be started: {lost[0].reason}")
        finally:
            for worker in crew:
                worker.stop()
            del os.environ[FOLDER]
            signal.signal(signal.SIGTERM, before)
            signal.signal(signal.SIGHUP, before_hangup)


def _mark(crew: "list[_Worker]") -> None:
    for worker in crew:
        worker.swap_due = True


@dataclass
class _Worker:
    model: str | Path
    settings: Settings
    listener: socket.socket
    place: WorkerPlace
    process: BaseProcess = field(init=False)
    _up: Connection = field(init=False)
    swap_due: bool = False
    """Whether it is still to read its model and keys anew."""
    is_up: bool = False
    failed: int = 0
    """Starts in a row after which it never answered."""
    reason: str = ""
    """Why the last of them failed."""
    _due: float | None = None
    """When one that died is to be started."""

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._up, up = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_work, args=(self.model, self.settings, self.listener, self.place, up)
        )
        # A terminal's Ctrl-C comes to all processes. One that is still loading leaves it to us.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.process.start()
        finally:
            signal.signal(signal.SIGINT, before)
        up.close()
        self.is_up, self._due = False, None
        self.reason = "it dies as soon as it is started."

    def comes_up(self) -> bool:
        """Wait until it answers, or has died or said why it will."""
        with suppress(EOFError):
            said = self._up.recv()
            if said is True:
                self.is_up, self.failed = True, 0
            else:
                self.reason = said
        return self.is_up

    def swap_if_due(self) -> None:
        """Tell it by a signal, which would end one that is only just being started."""
        if self.swap_due and self._came_up():
            self.swap_due = False
            assert self.process.pid
            os.kill(self.process.pid, signal.SIGHUP)

    def _came_up(self) -> bool:
        return self.is_up or (self._up.poll() and self.comes_up())

    def look(self) -> None:
        """See whether it answers by now; if it died, start it anew, after failures ever later."""
        alive = self.process.is_alive()
        came_up = self._came_up()
        if alive:
            return
        if self._due is None:
            mark_process_dead(self.process.pid, self.place.folder)
            self.failed += not came_up
            seconds = min(2**self.failed - 1, LONGEST_WAIT)
            self._due = time.monotonic() + seconds
            if came_up:
                _log.error("worker %d died and is started anew", self.place.index)
            else:
                _log.error(
                    "worker %d cannot be started, and is tried again in %d s: %s",
                    *(self.place.index, seconds, self.reason),
                )
        if time.monotonic() >= self._due:
            self.start()

    def stop(self) -> None:
        if not hasattr(self, "process"):
            return
        self.process.terminate()
        self.process.join(self.settings.write_seconds + 5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(
    model: str | Path,
    settings: Settings,
    listener: socket.socket,
    place: WorkerPlace,
    up: Connection,
) -> None:
    """Serve, as a process of its own."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it can swap: it has just read the model
    parent = multiprocessing.parent_process()

    def end_with_parent() -> None:
        if parent is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()

    def ready() -> None:
        up.send(True)
        up.close()

    try:
        serve_on(
            Completer.load(model),
            settings,
            listener,
            place=place,
            ready=ready,
            reload=lambda: Completer.load(model),
        )
    except TelicError as error:
        up.send(str(error))
    except KeyboardInterrupt:
        pass
