"""The store as the event loop sees it: nothing here waits.

Submissions are written by one thread, all that wait in one transaction (group commit), so that one
wait for the disk serves them all.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from telic.serve.operation.metrics import Metrics
from telic.serve.operation.settings import Settings
from telic.serve.state.outages import EVERY, Outages
from telic.serve.state.store import (
    DamagedStateError,
    Outcome,
    Store,
    Stored,
    StoreError,
    Submission,
)

_T = TypeVar("_T")
BATCH = 256
"""Submissions in one transaction."""
MAX_CHANGES = 64
"""Batches of changes under way; one more is not begun."""
MAX_READS = 64
"""Reads under way; one more is not begun."""


class _Waiting(NamedTuple):
    submission: Submission | None
    """None of who waits until all before are written."""
    future: "asyncio.Future[Any]"
    check: bool = False
    """Whether to see that the store takes a write."""


class Journal:
    """Reads and writes for one event loop.

    Parameters
    ----------
    store : Store
    settings : Settings
    metrics : Metrics, optional
    """

    def __init__(self, store: Store, settings: Settings, metrics: Metrics | None = None) -> None:
        self._store = store
        self._settings = settings
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write_all, name="telic-journal", daemon=True)
        self._readers = ThreadPoolExecutor(2, "telic-store")
        self._figures = ThreadPoolExecutor(1, "telic-figures")  # long: keystrokes' reads go before
        self._editor = ThreadPoolExecutor(1, "telic-changes")
        self._reads = self._changing = 0
        self._checked: tuple[float, asyncio.Task[None]] | None = None
        self._outages = Outages(
            {"read": self._probe_reading, "write": self._probe},
            metrics or Metrics(),
        )

    @property
    def problem(self) -> str | None:
        """What is wrong with the store, as far as is known."""
        return self._outages.problem

    def start(self) -> None:
        """Begin to write; call it in the event loop."""
        self._loop = asyncio.get_running_loop()
        self._writer.start()

    async def close(self) -> None:
        """Write what waits, then close the store."""
        if self._checked:
            self._checked[1].cancel()
        self._queue.put(None)
        while self._writer.is_alive():
            await self._loop.run_in_executor(None, self._writer.join, EVERY)
            self._store.cut()
        self._outages.close()
        for pool in (self._readers, self._figures, self._editor):
            pool.shutdown(wait=False, cancel_futures=True)
        self._store.close()

    async def write(self, submission: Submission) -> Outcome:
        """Return what became of a submission once it is on disk.

        Raises
        ------
        StoreError
            If it is not, or that is not known in time: the same may be sent again.
        """
        if self._queue.qsize() >= self._settings.max_waiting:
            raise StoreError("too many submissions wait for it")
        with self._outages.noticing("write"):
            outcome: Outcome = await self._queued(submission)
            return outcome

    async def settled(self) -> None:
        """Wait until what waits to be written by now is, or is refused."""
        with self._outages.noticing("write", ends=False):
            await self._queued(None)

    async def _queued(self, submission: Submission | None, *, check: bool = False) -> Any:
        future = self._loop.create_future()
        self._queue.put(_Waiting(submission, future, check))
        async with asyncio.timeout(self._settings.write_seconds):
            return await future

    async def read(self, user: str, version: int) -> Stored | None:
        """Return what is stored of a user if that is not of this version.

        Raises
        ------
        StoreError
            If it does not answer in time, or did not lately.
        """
        self._outages.refuse("read")
        if self._reads >= MAX_READS:
            raise StoreError("too many reads wait for it")
        with self._outages.noticing("read"):
            return await self._answer(self._store.read, user, version)

    async def change(self, id: str, changes: list[list[Any]]) -> int:
        """Return the number of a batch of changes once it is on disk; raise as `write` does."""
        if self._changing >= MAX_CHANGES:
            raise StoreError("too many changes wait for it")

        def ended(_: object) -> None:
            self._changing -= 1

        with self._outages.noticing("write", ends=False):  # by another thread than submissions
            future = self._loop.run_in_executor(self._editor, self._store.change, id, changes)
            self._changing += 1
            future.add_done_callback(ended)
            async with asyncio.timeout(self._settings.write_seconds):
                return await asyncio.shield(future)

    async def changes(self, after: int) -> list[tuple[int, list[list[Any]]]]:
        """Return the batches of changes after a number; raise StoreError if it does not in time."""
        return await self.run(self._store.changes, after)

    async def run(self, work: Callable[..., _T], *given: Any) -> _T:
        """Return what one of the store's methods does; raise StoreError if it does not in time."""
        try:
            async with asyncio.timeout(self._settings.write_seconds):
                return await self._loop.run_in_executor(self._editor, work, *given)
        except TimeoutError:
            self._store.cut()
            raise StoreError("it does not answer in time") from None

    async def figures(self, tenant: str | None, days: int) -> dict[str, Any]:
        """Return what the store says of the last days; raise StoreError if it does not in time."""
        with self._outages.noticing("read"):
            async with asyncio.timeout(self._settings.write_seconds):
                figures = self._store.figures
                return await self._loop.run_in_executor(self._figures, figures, tenant, days)

    async def trim(self) -> dict[str, int]:
        """Remove what is over the store's bounds, however long it takes: see `Store.trim`."""
        return await self._loop.run_in_executor(self._figures, self._store.trim)

    async def check(self) -> None:
        """Raise StoreError unless the store took a write within the last second."""
        now = self._loop.time()
        task = self._checked[1] if self._checked and now - self._checked[0] < EVERY else None
        if task is None:
            task = self._loop.create_task(self._probe())
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._checked = now, task
        await asyncio.shield(task)

    async def _probe(self) -> None:
        """Write as submissions are: what waits at a dead connection must not look well."""
        self._store.cut()
        with self._outages.noticing("write"):
            await self._queued(None, check=True)

    async def _probe_reading(self) -> None:
        self._store.cut()
        await self._answer(self._store.read, "")

    async def _answer(self, read: Callable[..., Stored | None], *asked: Any) -> Stored | None:
        def ended(_: object) -> None:
            self._reads -= 1

        future = self._loop.run_in_executor(self._readers, read, *asked)
        self._reads += 1
        future.add_done_callback(ended)
        async with asyncio.timeout(self._settings.read_seconds):
            return await asyncio.shield(future)

    def _write_all(self) -> None:
        """Write until told to stop, in a thread of its own."""
        while (first := self._queue.get()) is not None:
            batch = [first]
            with suppress(Empty):
                while len(batch) < BATCH and (more := self._queue.get_nowait()) is not None:
                    batch.append(more)
                if len(batch) < BATCH:
                    self._queue.put(None)
            self._write(batch)

    def _write(self, batch: list[_Waiting]) -> None:
        submissions = [waiting.submission for waiting in batch if waiting.submission]
        try:
            written = iter(self._store.record(submissions) if submissions else ())
            if not submissions and any(waiting.check for waiting in batch):
                self._store.check()
            outcomes = [next(written) if waiting.submission else None for waiting in batch]
        except Exception as error:
            every = isinstance(error, StoreError) and not isinstance(error, DamagedStateError)
            if len(batch) > 1 and not every:
                for waiting in batch:  # one of them cannot be written: not the others' fault
                    self._write([waiting])
                return
            self._loop.call_soon_threadsafe(_refuse, batch, error)
        else:
            self._loop.call_soon_threadsafe(_answer, batch, outcomes)


def _answer(batch: list[_Waiting], outcomes: Sequence[Outcome | None]) -> None:
    for waiting, outcome in zip(batch, outcomes, strict=True):
        if not waiting.future.done():
            waiting.future.set_result(outcome)


def _refuse(batch: list[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.future.done():
            waiting.future.set_exception(error)
