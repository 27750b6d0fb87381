"""Worker processes that know each other: what one of them cannot answer, the owner does.

An open composition lives in one process, the one that its user's id leads to. A connection may end
in any process, so requests are handed over: a line of JSON on a Unix socket, and a line back. Where
all that comes on a connection belongs to one other process, the connection itself is handed over.
"""

import asyncio
import json
import socket
import zlib
from array import array
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

Handler = Callable[[list[Any]], Awaitable[Any]]
CONNECTION = b"connection"
"""What comes with a connection's descriptor, which must come with something."""


class PeerError(Exception):
    """The process that owns a user does not answer; any other may do so in its place."""


@dataclass(frozen=True)
class WorkerPlace:
    """Which of several worker processes this one is."""

    index: int = 0
    workers: int = 1
    folder: str = ""
    """Where the processes' sockets are, which nobody else may enter."""

    def address(self, index: int) -> str:
        """Return the socket of a process."""
        return str(Path(self.folder) / f"{index}.sock")

    def mailbox(self, index: int) -> str:
        """Return the socket that takes whole connections for a process."""
        return str(Path(self.folder) / f"{index}.connections.sock")


class Peers:
    """The other processes, as one of them sees them.

    Parameters
    ----------
    place : WorkerPlace
    answer : callable
        Awaits the answer, of JSON's types, to what another process hands over.
    adopt : callable
        Serves a connection that another process hands over.
    """

    def __init__(
        self, place: WorkerPlace, answer: Handler, adopt: Callable[[socket.socket], None]
    ) -> None:
        self._place = place
        self._answer, self._adopt = answer, adopt
        self._links: dict[int, _Link] = {}
        self._ears: set[_Ear] = set()

    async def start(self) -> None:
        """Listen to the others."""
        if self._place.workers > 1:
            address = self._place.address(self._place.index)
            loop = asyncio.get_running_loop()  # it removes the socket of a process that was killed
            self._server = await loop.create_unix_server(
                lambda: _Ear(self._answer, self._ears), address
            )
            self._mailbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._mailbox.setblocking(False)
            with suppress(FileNotFoundError):  # of a process before, or of the model before
                Path(self._place.mailbox(self._place.index)).unlink()
            self._mailbox.bind(self._place.mailbox(self._place.index))
            loop.add_reader(self._mailbox, self._take_connections)

    def close(self) -> None:
        """Stop listening, and hang up."""
        if self._place.workers > 1:
            self._server.close()
            self._take_connections()
            asyncio.get_running_loop().remove_reader(self._mailbox)
            self._mailbox.close()
        for end in (*self._links.values(), *self._ears):
            end.transport.close()

    def elsewhere(self, user: str) -> int | None:
        """Return the process that owns a user, or None if it is this one."""
        if self._place.workers == 1:
            return None
        owner = zlib.crc32(user.encode(errors="surrogatepass")) % self._place.workers
        return None if owner == self._place.index else owner

    async def ask(self, owner: int, request: list[Any]) -> Any:
        """Return another process's answer.

        Raises
        ------
        PeerError
            If it has none to give: it is just being started anew.
        """
        link = self._links.get(owner)
        if link is None or link.transport.is_closing():
            try:
                _, link = await asyncio.get_running_loop().create_unix_connection(
                    _Link, self._place.address(owner)
                )
            except OSError:
                raise PeerError from None
            self._links[owner] = link
        return await link.ask(request)

    def hand_over(self, owner: int, connection: int) -> bool:
        """Send another process a copy of a descriptor; return whether that was done."""
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [connection]))
        try:  # `socket.send_fds` forgets the address
            self._mailbox.sendmsg([CONNECTION], [rights], 0, self._place.mailbox(owner))
        except OSError:  # it is being started anew, or has more to take than there is room for
            return False
        return True

    def _take_connections(self) -> None:
        with suppress(BlockingIOError):
            while True:
                _, descriptors, _, _ = socket.recv_fds(self._mailbox, len(CONNECTION), 1)
                for descriptor in descriptors:
                    self._adopt(socket.socket(fileno=descriptor))


class _Lines(asyncio.Protocol):
    """Reads whole lines, whatever pieces they come in."""

    _rest = b""

    def connection_made(self, transport: Any) -> None:
        self.transport = transport  # uvloop's, which is none of asyncio's classes

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.line(json.loads(line))

    def line(self, message: Any) -> None:
        raise NotImplementedError

    def send(self, message: Any) -> None:
        self.transport.write(json.dumps(message).encode() + b"\n")


class _Link(_Lines):
    """The asking end."""

    def __init__(self) -> None:
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def ask(self, request: list[Any]) -> Any:
        if self.transport.is_closing():
            raise PeerError
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send([number, request])
        try:
            return await answer
        finally:
            self._waiting.pop(number, None)

    def line(self, message: Any) -> None:
        number, answer = message
        if number in self._waiting and not self._waiting[number].done():
            self._waiting[number].set_result(answer)

    def connection_lost(self, error: Exception | None) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(PeerError())


class _Ear(_Lines):
    """The answering end."""

    def __init__(self, answer: Handler, ears: "set[_Ear]") -> None:
        self._answer, self._ears = answer, ears
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._ears.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._ears.discard(self)

    def line(self, message: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._reply(*message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reply(self, number: int, request: list[Any]) -> None:
        answer = await self._answer(request)
        if not self.transport.is_closing():  # who asked may be gone
            self.send([number, answer])
