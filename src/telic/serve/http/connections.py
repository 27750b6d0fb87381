"""Limits on connections, so that those who stall or flood take nothing from the others."""

import asyncio
import logging
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from typing import Any

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from telic.errors import InputError
from telic.serve.http.errors import problem
from telic.serve.operation.metrics import Metrics
from telic.serve.operation.settings import Settings

SWEEP_SECONDS = 1.0
"""How often connections are looked at, as a part of the shortest limit."""
LOG_SECONDS = 10.0
"""At most one line in so long a time says what was cut."""
OTHER_FILES = 100
"""Open files besides connections: the model's, the store's, modules'."""
WHOLE = "telic.whole"
"""The extension of ASGI by which `written_whole` finds where to write."""
CONNECTION = "telic.connection"
"""The extension of ASGI by which `belongs` finds the connection."""
MOVES_AFTER = 3
"""Keystrokes in a row that one other process answered, after which it gets the connection.

A proxy's connections, on which everybody's requests come, seldom get there.
"""
KEYSTROKES = "/suggest"
"""The address whose requests are answered without a task, which would cost a tenth of all."""
SMALL = 1 << 14
"""Bytes of a body that is read whole before that."""
_log = logging.getLogger("telic.serve")


def reserve_files(connections: int) -> None:
    """Let the process open as many files as its connections take, and some.

    Raises
    ------
    InputError
        If the system does not allow so many.
    """
    try:
        import resource
    except ImportError:  # not a POSIX system, which counts otherwise
        return
    wanted = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise InputError(
            f"{connections} connections need {wanted} open files, the system allows {hard}. Take "
            "fewer, or raise its limit (ulimit -Hn, LimitNOFILE in systemd)."
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Connections:
    """All connections of a process: how many, how long they take, and which were cut.

    Parameters
    ----------
    settings : Settings
    metrics : Metrics, optional

    Attributes
    ----------
    cut : Counter
        Connections that were ended here, by the reason.
    """

    def __init__(self, settings: Settings, metrics: Metrics | None = None) -> None:
        self.settings = settings
        self._metrics = metrics or Metrics()
        self.cut: Counter[str] = Counter()
        # In order of when they began to do nothing, or to send a request.
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        self._answering: OrderedDict[Connection, None] = OrderedDict()
        self._logged: Counter[str] = Counter()
        self._log_after = 0.0
        self._sweeping = False
        self._adopting: set[asyncio.Task[Any]] = set()
        self.server: uvicorn.Server | None = None
        """What connections of other processes are served by."""
        self.hand_over: Callable[[int, int], bool] = lambda owner, descriptor: False
        """Gives a connection's descriptor to another process; returns whether that was done."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._answering)

    def protocol(self, **options: Any) -> "Connection":
        """Return what uvicorn speaks HTTP with on a new connection."""
        return Connection(self, **options)

    def adopt(self, taken: socket.socket) -> None:
        """Serve a connection that another process has handed over."""
        if self.server is None or self.server.should_exit:
            return taken.close()
        taken.setblocking(False)
        connection = self.protocol(
            config=self.server.config,
            server_state=self.server.server_state,
            app_state=self.server.lifespan.state,
        )
        connection.adopted = True
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(lambda: connection, taken))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    def admit(self, connection: "Connection") -> None:
        """Count a new connection; the one that has been waiting longest makes room."""
        if len(self) >= self.settings.max_connections:
            if not self._waiting:
                return self.end(connection, "too many")
            self.end(next(iter(self._waiting)), "too many")
        self.waits(connection)
        if not self._sweeping:
            self._sweeping = True
            self._sweep()

    def waits(self, connection: "Connection") -> None:
        """Note that a connection does nothing, or has begun to send, from now on."""
        self._answering.pop(connection, None)
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)
        connection.since = connection.loop.time()

    def works(self, connection: "Connection") -> None:
        """Note that a connection's request is whole: the answer is for us to give."""
        if self._waiting.pop(connection, self) is None:
            self._answering[connection] = None
            connection.since = connection.loop.time()

    def leave(self, connection: "Connection") -> None:
        """Forget a connection."""
        self._waiting.pop(connection, None)
        self._answering.pop(connection, None)

    def end(self, connection: "Connection", why: str) -> None:
        """Cut a connection and count that."""
        self.cut[why] += 1
        self._metrics.cut(why)
        self.leave(connection)
        connection.transport.abort()

    def _sweep(self) -> None:
        loop, limits = asyncio.get_running_loop(), self.settings
        now = loop.time()
        for connection in list(self._waiting):
            if connection.receiving and now - connection.since > limits.request_seconds:
                self.end(connection, "slow request")
        for connection in list(self._answering):
            if now - connection.since > limits.answer_seconds:
                self.end(connection, "answer not taken")
        new = self.cut - self._logged
        if new and now >= self._log_after:
            said = ", ".join(f"{count} {why}" for why, count in sorted(new.items()))
            _log.warning("connections cut: %s", said)
            self._logged, self._log_after = Counter(self.cut), now + LOG_SECONDS
        self._sweeping = len(self) > 0 or bool(self.cut - self._logged)
        if self._sweeping:
            loop.call_later(min(SWEEP_SECONDS, limits.request_seconds / 4), self._sweep)


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, which tells `Connections` what it is doing."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self.all = connections
        self.since = 0.0
        """When it began what it does."""
        self.receiving = True
        """Whether a request is due: it was begun, or none has come yet on this connection."""
        self.begun = False
        """Whether a part of a request has come, be it behind others that are whole."""
        self.head_bytes: int | None = 0
        """Bytes of a request's head so far; None once it is whole."""
        self.adopted = False
        """Whether another process has handed it over, between two requests."""
        self._keystroke: tuple[Any, Any] | None = None
        """uvicorn's cycle of a keystroke whose request is not yet whole, and the application."""
        self._owner: int | None = None
        self._owned = 0
        """Keystrokes in a row that belonged to that owner."""

    def connection_made(self, transport: Any) -> None:
        """Take part in the limits."""
        super().connection_made(transport)
        self.all.admit(self)
        if self.adopted and not transport.is_closing():
            self.receiving = False
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def connection_lost(self, error: Exception | None) -> None:
        """Leave, and hold nothing: uvicorn lets the timer of one that was reset run to its end."""
        self.all.leave(self)
        super().connection_lost(error)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()

    def data_received(self, data: bytes) -> None:
        """Read on; a head that is too large is no request."""
        if not self.receiving:
            self.receiving = True
            self.all.waits(self)
        if self.head_bytes is not None:
            self.head_bytes += len(data)
        super().data_received(data)
        if self.head_bytes is not None and self.head_bytes > self.all.settings.max_head:
            self.all.end(self, "head too large")
        if self._keystroke is not None and not self._keystroke[0].more_body:
            (cycle, app), self._keystroke = self._keystroke, None
            if not self.transport.is_closing():
                self._answer_now(cycle.run_asgi(app))

    def on_message_begin(self) -> None:
        """Take the rest of the request here."""
        self.begun = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Begin the answer."""
        self.head_bytes = None
        scope = self.scope
        super().on_headers_complete()
        extensions: dict[str, Any] = {WHOLE: self.cycle, CONNECTION: self}
        scope["extensions"] = extensions

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Begin to answer; a keystroke once its request is whole, and nothing more is read."""
        keystroke = cycle.scope["path"] == KEYSTROKES
        if keystroke and cycle.more_body and not cycle.waiting_for_100_continue:
            self._keystroke = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    def _answer_now(self, answering: Coroutine[Any, Any, None]) -> None:
        """Answer without a task, or leave it to one if there is something to wait for."""
        try:
            awaited = answering.send(None)
        except StopIteration:
            return
        task = self.loop.create_task(_finish(_Begun(answering, awaited)))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        """Read on; of a body that is not small uvicorn stops to read unless somebody waits."""
        super().on_body(body)
        if self._keystroke is not None and len(self.cycle.body) > SMALL:
            begun, self._keystroke = self._keystroke, None
            super()._start_asgi_task(*begun)

    def on_message_complete(self) -> None:
        """Count the time as ours from now on."""
        self.receiving, self.begun, self.head_bytes = False, False, 0
        self.all.works(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the time as the client's from now on."""
        if not self.receiving and not self.pipeline:
            self.all.waits(self)
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer in the shape of all errors; uvicorn's own is plain text."""
        hint = "Send HTTP/1.1. In an address, percent-encode what is not ASCII."
        answer = problem(400, "bad_request", msg, hint)
        answer.headers["connection"] = "close"
        headers = [*self.server_state.default_headers, *answer.raw_headers]
        lines = [b"HTTP/1.1 400 Bad Request", *(b"%s: %s" % header for header in headers)]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self.transport.close()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing of a request for another protocol: it is answered in this one, as it may be.

        uvicorn would write two lines for each, which advise to install WebSockets.
        """

    def belongs(self, owner: int | None) -> None:
        """Note whose the keystroke was that is answered now; go to that process if all are its."""
        self._owned = self._owned + 1 if owner == self._owner else 1
        self._owner = owner
        if (
            owner is not None
            and self._owned >= MOVES_AFTER
            and not (self.begun or self.transport.is_closing())
            and self.cycle.response_complete
            and not self.transport.get_write_buffer_size()
            and self.all.hand_over(owner, self.transport.get_extra_info("socket").fileno())
        ):
            self.transport.abort()  # our copy alone: the client sees nothing of it


class _Begun:
    """A coroutine that has begun without a task, and waits for something."""

    def __init__(self, coroutine: Coroutine[Any, Any, None], awaited: Any) -> None:
        self._coroutine, self._awaited = coroutine, awaited

    def __await__(self) -> Generator[Any, Any, None]:
        """Do what a task would have done from the beginning."""
        while True:
            go_on: partial[Any] = partial(self._coroutine.send, None)
            try:
                yield self._awaited
            except BaseException as error:  # what was awaited failed, or the task was cancelled
                go_on = partial(self._coroutine.throw, error)
            try:
                self._awaited = go_on()
            except StopIteration:
                return


async def _finish(begun: _Begun) -> None:
    await begun


def belongs(scope: Scope, owner: int | None) -> None:
    """Note which other process owns the keystroke that is answered now; None if it is our own."""
    connection = scope.get("extensions", {}).get(CONNECTION)
    if connection is not None:
        connection.belongs(owner)


def written_whole(
    scope: Scope, head: bytes, more: Iterable[tuple[bytes, bytes]], body: bytes
) -> bool:
    """Write an answer of status 200 in one piece, unless something hinders it.

    uvicorn looks at each header and writes head and body one after the other, which costs more than
    to find out what people want.
    """
    cycle = scope.get("extensions", {}).get(WHOLE)
    if (
        cycle is None
        or scope["method"] == "HEAD"  # whose answer has no body: uvicorn leaves it out
        or cycle.disconnected
        or cycle.flow.write_paused
        or not cycle.keep_alive
        or cycle.response_started
    ):
        return False
    headers = [b"%s: %s\r\n" % header for header in (*cycle.default_headers, *more)]
    length = b"content-length: %d\r\n" % len(body)
    cycle.response_started = cycle.response_complete = True
    cycle.message_event.set()
    cycle.transport.write(b"".join([b"HTTP/1.1 200 OK\r\n", length, head, *headers, b"\r\n", body]))
    cycle.on_response()
    return True
