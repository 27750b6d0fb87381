"""Keeps the store within its bounds, in the background, and says so when one is reached."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from telic.serve.operation.metrics import Metrics
from telic.serve.operation.settings import Settings
from telic.serve.state.row_bounds import Bounds
from telic.serve.state.store import StoreError

EVERY = 600.0
"""Seconds between two looks."""
_log = logging.getLogger("telic.serve")


class RowTrimming:
    """Keeps a store within its bounds, and says when it reaches them.

    Parameters
    ----------
    trim : callable
        Removes what is over the bounds; returns, by table, how many rows that were.
    settings : Settings
    metrics : Metrics
    """

    def __init__(
        self, trim: Callable[[], Awaitable[dict[str, int]]], settings: Settings, metrics: Metrics
    ) -> None:
        self._trim, self._metrics = trim, metrics
        self._most = Bounds.of(settings)._asdict()
        self.reached: list[str] = []
        """The tables that had as many rows as they may have."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look, now and again and again."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Look no more."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> None:
        """Remove what is over the bounds."""
        for table, rows in (await self._trim()).items():
            self._metrics.removed(table, rows)
            if rows:
                self.reach(table)

    def reach(self, table: str) -> None:
        """Say, once, that the bound of a table is reached."""
        if table in self.reached:
            return
        self.reached.append(table)
        self._metrics.bound_reached(table)
        what = "more are refused" if table == "changes" else "the oldest are removed"
        _log.warning("the store has %d rows of %s: %s", self._most[table], table, what)

    async def _follow(self) -> None:
        while True:
            with suppress(StoreError):
                await self.look()
            await asyncio.sleep(EVERY)
