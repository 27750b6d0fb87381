"""The server that runs the service."""

import logging.config
import math
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn

from telic.completion import Completer
from telic.errors import InputError
from telic.serve.app import Service, create_app
from telic.serve.http.connections import Connections, reserve_files
from telic.serve.operation.logs import log_config
from telic.serve.operation.settings import Settings
from telic.serve.operation.traces import Traced
from telic.serve.process import garbage
from telic.serve.process.swap import Swapping
from telic.serve.requests.between_workers import WorkerPlace
from telic.serve.state.open_compositions import warm


def run(
    completer: Completer,
    settings: Settings,
    *,
    ready: Callable[[str], None] | None = None,
    reload: Callable[[], Completer] | None = None,
) -> None:
    """Serve from this process until interrupted, whatever `settings.workers` says.

    Parameters
    ----------
    completer : Completer
    settings : Settings
    ready : callable, optional
        Called with the address once the port is ours.
    reload : callable, optional
        Returns the completer to serve after a SIGHUP, which also reads the file of keys anew.

    Raises
    ------
    InputError
        If the address cannot be listened on or the database cannot be opened.
    """
    logging.config.dictConfig(log_config(settings))
    _prepare(completer, settings)

    with listen(settings) as listener:
        server = _swapping(create_app(completer, settings), settings, reload)
        if ready:
            ready(shown_address(settings, listener))
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def serve_on(
    completer: Completer,
    settings: Settings,
    listener: socket.socket,
    *,
    place: WorkerPlace,
    ready: Callable[[], None],
    reload: Callable[[], Completer],
) -> None:
    """Serve on a socket that others serve on too, until told to stop."""
    logging.config.dictConfig(log_config(settings))
    _prepare(completer, settings)
    app = create_app(completer, settings, place=place, ready=ready)
    _swapping(app, settings, reload, place).run(sockets=[listener])


@contextmanager
def serving(completer: Completer, settings: Settings) -> Iterator[str]:
    """Serve from a thread while the block runs, as in a notebook; give the address.

    Takes and raises what `run` does.
    """
    warm(completer)
    with listen(settings) as listener:
        app = create_app(completer, settings)
        server = _server(app, app.connections, settings)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield shown_address(settings, listener)  # who asks before it has begun waits for it
        finally:
            server.should_exit = True
            thread.join()


def _prepare(completer: Completer, settings: Settings) -> None:
    reserve_files(settings.max_connections)
    warm(completer)
    garbage.begin()


def _swapping(
    first: Service,
    settings: Settings,
    reload: Callable[[], Completer] | None,
    place: WorkerPlace | None = None,
) -> uvicorn.Server:
    def make(before: Service) -> Service:
        assert reload is not None
        completer = reload()
        warm(completer)
        return create_app(completer, settings, place=place, before=before)

    app: Any = Swapping(first, make if reload else None, grace=settings.stop_seconds)
    if settings.traces:
        app = Traced(app)
    return _server(app, first.connections, settings)


def _server(app: Any, connections: Connections, settings: Settings) -> uvicorn.Server:
    speaks: Any = connections.protocol  # uvicorn calls it, and takes more than its type says
    config = uvicorn.Config(
        app, http=speaks, timeout_keep_alive=math.ceil(settings.keep_seconds),
        backlog=settings.max_connections,
        # Addresses hold queries: nothing of a request is logged.
        access_log=False, log_config=None, server_header=False, ws="none",
        timeout_graceful_shutdown=math.ceil(settings.stop_seconds),
        forwarded_allow_ips=list(settings.proxies),
    )  # fmt: skip
    connections.server = uvicorn.Server(config)
    return connections.server


def shown_address(settings: Settings, listener: socket.socket) -> str:
    """Return the address to go to."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{listener.getsockname()[1]}"


def listen(settings: Settings) -> socket.socket:
    """Return a socket that listens where the settings say; raise InputError if it cannot."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family)
        # Accepted connections inherit it. Otherwise an answer's body, a packet of its own, waits
        # until the client acknowledges the head, which it delays: 40 ms at every keystroke.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {settings.host} port {settings.port} ({error}). "
            "Stop what uses it, or choose another with --port."
        ) from None
