"""Another model, or other keys, in place of those that serve, while requests come in."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.types import Receive, Scope, Send

from telic.errors import TelicError
from telic.serve.app import Service
from telic.serve.process import garbage

_log = logging.getLogger("telic.serve")


class Swapping:
    """Passes requests on to a service, and to the next one once that is ready.

    What is open in the old one is answered and written there; users' compositions begin again in
    the new one, whose features may mean something else.

    Parameters
    ----------
    first : Service
        Not yet started.
    make : callable, optional
        Returns the next service, given the one before: reads and warms what is to serve, in a
        thread. Without it there is no next one.
    grace : float
        Seconds that requests to the old one may take.
    """

    def __init__(
        self,
        first: Service,
        make: Callable[[Service], Service] | None = None,
        *,
        grace: float = 5.0,
    ) -> None:
        self.current = first
        self._make, self._grace = make, grace
        self._lifespan = Starlette(lifespan=self._live)
        self._swap: asyncio.Task[None] | None = None
        self._due = False
        self._ending: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            return await self._lifespan(scope, receive, send)
        await self.current(scope, receive, send)

    @asynccontextmanager
    async def _live(self, app: Starlette) -> AsyncIterator[None]:
        # Only the main thread hears signals, and not on every system.
        with suppress(AttributeError, NotImplementedError, OSError, RuntimeError, ValueError):
            if self._make and not os.isatty(0):  # a terminal that is closed says so by this signal
                loop = asyncio.get_running_loop()
                loop.add_signal_handler(signal.SIGHUP, self.swap_soon)
        await self.current.start()
        yield
        for task in ({self._swap} if self._swap else set()) | self._ending:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self.current.stop()

    def swap_soon(self) -> None:
        """Begin to make the next service; after one that is being made, which may be outdated."""
        self._due = True
        if self._swap is None or self._swap.done():
            self._swap = asyncio.get_running_loop().create_task(self._swap_while_due())

    async def _swap_while_due(self) -> None:
        while self._due:
            self._due = False
            await self._next()

    async def swap(self) -> None:
        """Let the next service answer from now on, and end this one; keep it if there is none."""
        if ending := await self._next():
            await ending

    async def _next(self) -> asyncio.Task[None] | None:
        """Let the next service answer; return the task that ends the one before."""
        assert self._make is not None
        try:
            following = await asyncio.to_thread(self._make, self.current)
        except (TelicError, OSError) as error:
            _log.error("the model is not swapped: %s", error)
            return None
        before = self.current
        await following.start()
        self.current = following
        _log.info("the model was swapped")
        ending = asyncio.get_running_loop().create_task(self._end(before))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        return ending

    async def _end(self, before: Service) -> None:
        try:
            await before.drained(self._grace)
        finally:
            await before.stop()
            del before
            garbage.remove_replaced()
