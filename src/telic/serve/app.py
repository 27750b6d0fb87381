"""The service as an ASGI application."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Message, Receive, Scope, Send

from telic.completion import Completer
from telic.completion.fit.tenants import DEFAULT
from telic.data.ubi import Arm
from telic.errors import InputError
from telic.serve.callers.access import Access
from telic.serve.callers.hosts_and_origins import Guard, Hosts, checked_name
from telic.serve.callers.user_ids import tenant_of
from telic.serve.http.connections import KEYSTROKES, Connections
from telic.serve.http.errors import on_crash, on_http_error, on_no_store
from telic.serve.http.padding import padding
from telic.serve.operation.metrics import Metrics
from telic.serve.operation.settings import Settings
from telic.serve.requests.between_workers import WorkerPlace
from telic.serve.requests.dispatch import Desk
from telic.serve.requests.keystroke import KeystrokeRoute
from telic.serve.requests.routes import ADDRESSES, Addresses
from telic.serve.state.background_compaction import KeptLists
from telic.serve.state.composition_recorder import Recorder
from telic.serve.state.forgotten_users import ForgottenUsers
from telic.serve.state.group_commit import Journal
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.phrase_changes import Changes
from telic.serve.state.row_bounds import Bounds
from telic.serve.state.row_trimming import RowTrimming
from telic.serve.state.store import Store, StoreError

_log = logging.getLogger("telic.serve")


def create_app(
    completer: Completer,
    settings: Settings,
    *,
    place: WorkerPlace | None = None,
    ready: Callable[[], None] | None = None,
    before: "Service | None" = None,
) -> "Service":
    """Return the service for a fitted completer.

    Parameters
    ----------
    completer : Completer
    settings : Settings
    place : WorkerPlace, optional
        Which of several worker processes this is.
    ready : callable, optional
        Called once it can answer.
    before : Service, optional
        The one that it follows, whose counts and connections it goes on with.

    Raises
    ------
    InputError
        If the database cannot be opened, or there are no keys where others could ask.

    Notes
    -----
    Without keys whoever names a user id gets that user's suggestions, which show what the user
    searched for; so without keys it is for this machine alone.
    """
    access = Access(settings)
    contexts = completer.contexts
    if len(access.tenants) > 1 and not (contexts and "tenant" in contexts.names):
        _log.warning(
            "the model tells no tenants apart: what it suggests, it suggests to all %d of them",
            len(access.tenants),
        )
    keyless = {tenant_of(user) for user in completer.users if access.tenants} - {*access.tenants}
    if keyless:
        _log.warning(
            "the model knows users of tenants that have no key (%s): nobody is shown their "
            "histories; users of a log without tenants are those of tenant %r",
            ", ".join(sorted(keyless)[:3]) + (", …" if len(keyless) > 3 else ""),
            DEFAULT,
        )
    store = Store(
        settings.database,
        completer,
        max_history=settings.max_history,
        bounds=Bounds.of(settings),
    )
    return Service(completer, store, access, settings, place or WorkerPlace(), ready, before)


class Service(Starlette):
    """The service: keystrokes are answered at once, all else goes through Starlette."""

    def __init__(
        self,
        completer: Completer,
        store: Store,
        access: Access,
        settings: Settings,
        place: WorkerPlace,
        ready: Callable[[], None] | None,
        before: "Service | None",
    ) -> None:
        self._ready, self._pads = ready, settings.pad_replies
        self.metrics: Metrics = before.metrics if before else Metrics(ADDRESSES)
        self.metrics.serves(completer)
        self._under_way = 0
        self.connections: Connections = (
            before.connections if before else Connections(settings, self.metrics)
        )
        self.journal = Journal(store, settings, self.metrics)
        self.bounds = RowTrimming(self.journal.trim, settings, self.metrics)
        lists = KeptLists(completer, store, settings)
        self.changes = Changes(completer, store, self.journal, lists, self.bounds)
        fitted, completer = completer, self.changes.completer
        arm = arm_of(settings)
        self.recorder: Recorder | None = None
        if settings.record:
            self.recorder = Recorder(
                settings.record,
                days=settings.record_days,
                megabytes=settings.record_megabytes,
                arm=arm,
                networks=settings.record_networks,
            )
        compositions = OpenCompositions(
            completer, self.journal, settings, self.metrics, self.recorder
        )
        self.changes.swap = compositions.serve
        self.forgotten = ForgottenUsers(
            fitted, compositions, store, self.journal, self.recorder, settings
        )
        names = {"127.0.0.1", "localhost", "::1", settings.host, *map(checked_name, settings.names)}
        hosts = Hosts(names)
        self.access = access
        self.desk = Desk(compositions, settings, place, self.connections, self.forgotten)
        self.keystroke = KeystrokeRoute(self.desk, hosts, access, settings)
        super().__init__(
            routes=Addresses(
                compositions,
                self.journal,
                self.desk,
                self.keystroke,
                access,
                settings,
                self.metrics,
                self.changes,
                self.bounds,
            ).routes(),
            middleware=[Middleware(Guard, hosts=hosts, access=access)],
            exception_handlers={
                HTTPException: on_http_error, StoreError: on_no_store, Exception: on_crash
            },
            lifespan=self._lifespan,
        )  # fmt: skip
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            return await super().__call__(scope, receive, send)
        status, began, path = 500, time.perf_counter(), scope["path"]
        self._under_way += 1
        try:
            if path == KEYSTROKES and scope["method"] in ("GET", "POST"):
                status = await self.keystroke.answer(scope, receive, send)
                return

            async def counted(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            whole: Send = counted
            if self._pads and scope["method"] == "POST" and path == f"{scope['root_path']}/submit":
                whole = padding(counted, self._pads)
            await super().__call__(scope, receive, whole)
        finally:
            self._under_way -= 1
            self.metrics.request(path, status, time.perf_counter() - began)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        await self.start()
        yield
        await self.stop()

    async def start(self) -> None:
        """Begin to write, and to listen to other workers."""
        self.journal.start()
        self.changes.start()
        self.forgotten.start()
        self.bounds.start()
        if self.recorder:
            self.recorder.start()
        await self.desk.peers.start()
        self.connections.hand_over = self.desk.peers.hand_over
        if self._ready:
            self._ready()

    async def stop(self) -> None:
        """Write what waits, and close the store."""
        self.desk.peers.close()
        await self.bounds.close()
        await self.forgotten.close()
        await self.changes.close()
        await self.journal.close()
        if self.recorder:
            self.recorder.close()

    async def drained(self, seconds: float) -> None:
        """Wait until nothing is under way, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._under_way:
                    await asyncio.sleep(0.01)


def arm_of(settings: Settings) -> Arm | None:
    """Return the arm that all compositions belong to; InputError if a trial cannot be like that."""
    if settings.control and (not settings.record or settings.arm or settings.control >= 1):
        raise InputError(
            f"control is {settings.control}: it takes record, no arm, and a share below 1."
        )
    mixed = settings.interleave
    if mixed and (not settings.record or settings.arm or settings.control or mixed > 1):
        raise InputError(
            f"interleave is {mixed}: it takes record, no arm, no control, and a share up to 1."
        )
    if settings.arm and not settings.record:
        raise InputError(f"arm is {settings.arm!r}: it takes record, which a trial is judged by.")
    if settings.propensity != 1 and not settings.arm:
        raise InputError(f"propensity is {settings.propensity}: it takes arm.")
    if not settings.arm:
        return None
    if not 0 < settings.propensity <= 1:
        raise InputError(f"propensity is {settings.propensity}, expected over 0 and at most 1.")
    return Arm(settings.arm, settings.propensity)
