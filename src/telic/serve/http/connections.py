"""Limits on connections, so that those who stall or flood take nothing from the others."""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from telic.errors import InputError
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

    def __len__(self) -> int:
        return len(self._waiting) + len(self._answering)

    def protocol(self, **options: Any) -> "Connection":
        """Return what uvicorn speaks HTTP with on a new connection."""
        return Connection(self, **options)

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
        self.head_bytes: int | None = 0
        """Bytes of a request's head so far; None once it is whole."""

    def connection_made(self, transport: Any) -> None:
        """Take part in the limits."""
        super().connection_made(transport)
        self.all.admit(self)

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

    def on_headers_complete(self) -> None:
        """Begin the answer."""
        self.head_bytes = None
        scope = self.scope
        super().on_headers_complete()
        extensions: dict[str, Any] = {WHOLE: self.cycle}
        scope["extensions"] = extensions

    def on_message_complete(self) -> None:
        """Count the time as ours from now on."""
        self.receiving, self.head_bytes = False, 0
        self.all.works(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Count the time as the client's from now on."""
        if not self.receiving and not self.pipeline:
            self.all.waits(self)
        super().on_response_complete()


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
