"""The service as an ASGI application, and the server that runs it."""

import math
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Receive, Scope, Send

from telic.completion import Completer
from telic.errors import InputError
from telic.serve.connections import Connections, reserve_files
from telic.serve.guard import Guard, Hosts, on_crash, on_http_error, on_no_store
from telic.serve.journal import Journal
from telic.serve.keystroke import Keystroke
from telic.serve.routes import Addresses
from telic.serve.sessions import SHOWN, Sessions
from telic.serve.settings import Settings
from telic.serve.store import Store, StoreError


def create_app(completer: Completer, settings: Settings) -> "Service":
    """Return the service for a fitted completer.

    Parameters
    ----------
    completer : Completer
    settings : Settings

    Raises
    ------
    InputError
        If the database cannot be opened.

    Notes
    -----
    Whoever names a user id gets that user's suggestions, which show what the user searched for:
    ids are secrets, and anything but this machine belongs behind a proxy that checks them.
    """
    store = Store(settings.database, completer, max_history=settings.max_history)
    return Service(completer, store, settings)


class Service(Starlette):
    """The service: keystrokes are answered at once, all else goes through Starlette."""

    def __init__(self, completer: Completer, store: Store, settings: Settings) -> None:
        self.connections = Connections(settings)
        self.journal = Journal(store, settings)
        sessions = Sessions(completer, self.journal, settings)
        names = {"127.0.0.1", "localhost", "::1", settings.host, *settings.names}
        hosts = Hosts(names)
        self.keystroke = Keystroke(sessions, hosts, settings)
        super().__init__(
            routes=Addresses(sessions, self.journal, self.keystroke, settings).routes(),
            middleware=[Middleware(Guard, hosts=hosts)],
            exception_handlers={
                HTTPException: on_http_error, StoreError: on_no_store, Exception: on_crash
            },
            lifespan=self._lifespan,
        )  # fmt: skip
        self.router.redirect_slashes = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and scope["path"] == "/suggest" and scope["method"] == "GET":
            return await self.keystroke(scope, receive, send)
        await super().__call__(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.journal.start()
        yield
        await self.journal.close()


def warm(completer: Completer) -> None:
    """Compile or load every kernel of a keystroke and of a lesson, on a user of no name."""
    user = completer.user()
    for _ in range(2):
        composition = completer.compose(user)
        for at, prefix in enumerate(("", "a", "an", "and", "an")):
            found = composition.suggest(prefix, at=float(at), show=SHOWN)
        composition.submit(found[0].text if found else "and")


def run(
    completer: Completer, settings: Settings, *, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    completer : Completer
    settings : Settings
    ready : callable, optional
        Called with the address once the port is ours.

    Raises
    ------
    InputError
        If the address cannot be listened on or the database cannot be opened.
    """
    with _server(completer, settings) as (server, listener, address):
        if ready:
            ready(address)
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


@contextmanager
def serving(completer: Completer, settings: Settings) -> Iterator[str]:
    """Serve from a thread while the block runs, as in a notebook; give the address.

    Takes and raises what `run` does.
    """
    with _server(completer, settings) as (server, listener, address):
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield address
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _server(
    completer: Completer, settings: Settings
) -> Iterator[tuple[uvicorn.Server, socket.socket, str]]:
    """Give a server that is ready to run, the socket it is to run on, and its address."""
    reserve_files(settings.max_connections)
    warm(completer)
    with _listen(settings) as listener:
        app = create_app(completer, settings)
        speaks: Any = (
            app.connections.protocol
        )  # uvicorn calls it, and takes more than its type says
        config = uvicorn.Config(
            app, http=speaks, timeout_keep_alive=math.ceil(settings.keep_seconds),
            backlog=settings.max_connections,
            # Addresses hold queries: nothing of a request is logged.
            access_log=False, log_level="warning", server_header=False, ws="none",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        yield uvicorn.Server(config), listener, f"http://{host}:{listener.getsockname()[1]}"


def _listen(settings: Settings) -> socket.socket:
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
