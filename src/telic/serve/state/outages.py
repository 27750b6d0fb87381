"""Outages of the store: said once, remembered, and their end looked for in the background."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from telic.serve.operation.metrics import Metrics
from telic.serve.state.store import DamagedStateError, StoreError

EVERY = 1.0
"""Seconds between two tries of a store that failed, and for which a check's result holds."""
_log = logging.getLogger("telic.serve")


class Outages:
    """Whether the store can be read, and written, as far as is known.

    Parameters
    ----------
    probes : mapping of str to callable
        "read" and "write": each tries that, as requests do.
    metrics : Metrics
    """

    def __init__(
        self, probes: Mapping[str, Callable[[], Awaitable[Any]]], metrics: Metrics
    ) -> None:
        self._probes, self._metrics = probes, metrics
        self._problems: dict[str, str] = {}  # "read" or "write" → why that fails
        self._recovery: asyncio.Task[None] | None = None

    @property
    def problem(self) -> str | None:
        """What is wrong with the store, as far as is known."""
        return next(iter(self._problems.values()), None)

    def refuse(self, what: str) -> None:
        """Raise StoreError if that failed lately: nobody waits for what is known to be gone."""
        if what in self._problems:
            raise StoreError(self._problems[what])

    @contextmanager
    def noticing(self, what: str, *, ends: bool = True) -> Iterator[None]:
        """Keep in mind whether reading, or writing, works; raise StoreError where it does not.

        `ends`: whether success is the end of an outage.
        """
        try:
            yield
        except DamagedStateError:
            raise
        except (StoreError, TimeoutError) as error:
            reason = str(error) or "it does not answer in time"
            if what not in self._problems:
                _log.error("the store fails (%s): %s", what, reason)
            self._problems[what] = reason
            self._metrics.store(False)
            if self._recovery is None or self._recovery.done():
                self._recovery = asyncio.get_running_loop().create_task(self._recover())
            raise StoreError(reason) from None
        if ends and self._problems.pop(what, ""):
            _log.warning("the store works again (%s)", what)
            self._metrics.store(not self._problems)

    async def _recover(self) -> None:
        """Try what fails, in the background, until it works: no request waits for that."""
        while self._problems:
            await asyncio.sleep(EVERY)
            for what in list(self._problems):
                with suppress(StoreError), self.noticing(what):
                    await self._probes[what]()

    def close(self) -> None:
        """Look no longer for the end of an outage."""
        if self._recovery is not None:
            self._recovery.cancel()
