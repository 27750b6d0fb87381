"""What one worker process cannot answer, the owner does: here two of them in one process."""

import asyncio
import http.client
import json
import socket
import tempfile
import threading
import time
import zlib
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from unittest.mock import MagicMock

import pytest

from telic.serve.app import create_app
from telic.serve.http.connections import Connections
from telic.serve.http.errors import Problem
from telic.serve.process.server import _server, listen
from telic.serve.requests.between_workers import PeerError, Peers, WorkerPlace, _Ear, _Link
from telic.serve.requests.dispatch import Desk
from telic.serve.state.group_commit import Journal
from telic.serve.state.open_compositions import OpenCompositions
from telic.serve.state.store import Store, StoreError

PHRASE = "x" * 600_000  # longer than what a socket gives at a time


@pytest.fixture
def folder():
    """A folder whose sockets have short names, as sockets must."""
    with tempfile.TemporaryDirectory(prefix="telic-") as folder:
        yield folder


def owned_by(index):
    """A user whom a worker owns, of two."""
    return next(name for name in "abcdefgh" if zlib.crc32(name.encode()) % 2 == index)


async def hung_up():
    """Let the loop close what was told to."""
    for _ in range(3):
        await asyncio.sleep(0)


def test_a_user_is_owned_by_one_worker_and_all_know_which():
    places = [Peers(WorkerPlace(index, 3, "/nowhere"), None, None) for index in range(3)]
    for user in ("ada", "bob", "é", "\ud800"):
        owner = zlib.crc32(user.encode(errors="surrogatepass")) % 3
        found = [place.elsewhere(user) for place in places]
        assert found == [None if index == owner else owner for index in range(3)]
    assert Peers(WorkerPlace(), None, None).elsewhere("ada") is None


def test_answers_come_to_who_asked_in_whatever_order(folder):
    async def ask():
        go_on = asyncio.Event()

        async def answer(request):
            if request == ["first"]:
                await go_on.wait()
            return [*request, PHRASE]

        one, other = (Peers(WorkerPlace(index, 2, folder), answer, None) for index in range(2))
        with pytest.raises(PeerError):  # it does not listen yet
            await one.ask(1, [])
        await other.start()
        first = asyncio.create_task(one.ask(1, ["first"]))
        assert await one.ask(1, ["second"]) == ["second", PHRASE]
        assert not first.done()
        go_on.set()
        assert await first == ["first", PHRASE]
        (link,) = one._links.values()
        assert not link._waiting
        await hung_up()
        assert other._ears
        assert not any(ear._tasks for ear in other._ears)
        waits = asyncio.create_task(one.ask(1, ["first"]))
        go_on.clear()
        while not link._waiting:
            await asyncio.sleep(0)
        link.connection_lost(None)  # the other is killed
        with pytest.raises(PeerError):
            await waits
        again = Peers(WorkerPlace(1, 2, folder), answer, None)
        other.close()
        await again.start()  # where one that was killed left its socket
        link.transport.close()
        assert await one.ask(1, ["second"]) == ["second", PHRASE]  # on a new link
        await one.start()
        one.close()
        again.close()
        await hung_up()

    asyncio.run(ask())


def test_an_answer_that_nobody_waits_for_any_more_is_dropped():
    async def ask():
        link = _Link()
        link.transport = MagicMock()
        link.transport.is_closing.return_value = False
        late, timely = (asyncio.create_task(link.ask(["suggest"])) for _ in range(2))
        await asyncio.sleep(0)
        late.cancel()
        link.data_received(b'[0, "late"]\n[7, "nobody\'s"]\n[1, "ti')
        link.data_received(b'mely"]\n')
        assert await timely == "timely"
        assert not link._waiting
        link.data_received(b'[0, "later"]\n')

    asyncio.run(ask())


def test_nothing_is_sent_to_a_worker_that_has_hung_up():
    async def ask():
        link, go_on = _Link(), asyncio.Event()

        async def answer(request):
            await go_on.wait()

        ear = _Ear(answer, set())
        for end in (link, ear):
            end.connection_made(MagicMock())
            end.transport.is_closing.return_value = False
        ear.data_received(b'[0, ["suggest"]]\n')
        (reply,) = ear._tasks
        for end in (link, ear):
            end.transport.is_closing.return_value = True
        go_on.set()
        await reply
        with pytest.raises(PeerError):
            await asyncio.wait_for(link.ask(["suggest"]), 1)
        for end in (link, ear):
            assert not end.transport.write.called

    asyncio.run(ask())


@asynccontextmanager
async def two_desks(completer, settings, folder):
    """Two workers' desks over one store."""
    store = Store(settings.database, completer)
    made = []
    for index in range(2):
        journal = Journal(store, settings)
        journal.start()
        compositions = OpenCompositions(completer, journal, settings)
        desk = Desk(compositions, settings, WorkerPlace(index, 2, folder), Connections(settings))
        await desk.peers.start()
        made.append((desk, compositions, journal))
    try:
        yield [desk for desk, _, _ in made], [compositions for _, compositions, _ in made]
    finally:
        for desk, _, journal in made:
            desk.peers.close()
            await journal.close()
        await hung_up()


def test_the_owner_answers_and_where_it_is_gone_another_does(
    completer, settings, folder, monkeypatch
):
    mine, yours = owned_by(0), owned_by(1)

    async def ask():
        async with two_desks(completer, settings, folder) as ((desk, _), (here, there)):
            for user, box in ((mine, here), (yours, there)):
                given = {"q": "so", "user": user, "composition": "c"}
                body = await desk.suggest(given, "http://box/")
                assert body.decode().startswith('["so", ["soup"]')
                assert len(box) == 1
                outcome = await desk.submit("soup", user, "c")
                assert (outcome.updates, len(box)) == (1, 0)
                with pytest.raises(Problem, match="'t' must be") as problem:
                    await desk.suggest(given | {"t": "soon"}, "http://box/")
                assert (problem.value.status_code, problem.value.code) == (422, "bad_time")

            async def fails(*_):
                raise StoreError("the disk is full")

            for box in (here, there):
                monkeypatch.setattr(box, "submit", fails)
            for user in (mine, yours):
                with pytest.raises(StoreError, match="the disk is full"):
                    await desk.submit("soup", user, "d")

            async def gone(*_):
                raise PeerError

            monkeypatch.setattr(desk.peers, "ask", gone)
            given = {"q": "so", "user": yours, "composition": "e"}
            assert b'"soup"' in await desk.suggest(given, "http://box/")
            assert here.find(yours, "e") is not None
            monkeypatch.undo()
            monkeypatch.setattr(desk.peers, "ask", gone)
            assert (await desk.submit("soup", yours, "e")).updates == 2
            # A list that nobody's composition is of needs no owner.
            assert b'"soup"' in await desk.suggest({"q": "so", "user": yours}, "http://box/")

    asyncio.run(ask())


def test_changes_that_are_not_read_in_time_are_said_to_be(completer, settings, monkeypatch):
    store = Store(settings.database, completer)

    async def ask():
        held = asyncio.Event()
        loop = asyncio.get_running_loop()
        wait = asyncio.run_coroutine_threadsafe
        monkeypatch.setattr(store, "changes", lambda after: wait(held.wait(), loop).result(30))
        journal = Journal(store, replace(settings, write_seconds=0.01))
        journal.start()
        with pytest.raises(StoreError, match="it does not answer in time"):
            await journal.changes(0)
        held.set()
        await journal.close()

    asyncio.run(ask())


def until(condition):
    """Wait for what another thread does."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


@contextmanager
def worker(completer, settings, place):
    """Serve as one of several workers, from a thread; give its port, connections and server."""
    settings = replace(settings, port=0)
    with listen(settings) as listener:
        app = create_app(completer, settings, place=place)
        server = _server(app, app.connections, settings)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            until(lambda: server.started)
            yield listener.getsockname()[1], app.connections, server
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def two_workers(completer, settings, folder):
    """Two workers; give what `worker` gives of each."""
    with (
        worker(completer, settings, WorkerPlace(0, 2, folder)) as first,
        worker(completer, settings, WorkerPlace(1, 2, folder)) as second,
    ):
        yield first, second


def keystroke(user, number, typed="so"):
    return f"/suggest?q={typed}&user={user}&composition=c&t={300 * number}"


def typing(port, users):
    """Type a keystroke of each user on one connection; give the connection and the lists."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    return connection, [asked(connection, keystroke(user, at)) for at, user in enumerate(users)]


def asked(connection, address):
    connection.request("GET", address)
    answer = connection.getresponse()
    assert answer.status == 200
    return json.loads(answer.read())[1]


def test_a_connection_goes_to_the_worker_that_owns_all_that_comes_on_it(
    completer, settings, folder
):
    with two_workers(completer, settings, folder) as ((port, here, server), (_, there, _)):
        connection, lists = typing(port, [owned_by(1)] * 3)
        with closing(connection):
            until(lambda: (len(here), len(there)) == (0, 1))
            server.should_exit = True  # it takes no part from now on
            lists += [asked(connection, keystroke(owned_by(1), number)) for number in range(3, 9)]
        until(lambda: not len(there))
    alone = replace(settings, database=f"sqlite:///{folder}/alone.sqlite")
    with worker(completer, alone, WorkerPlace()) as (port, _, _):
        connection, expected = typing(port, [owned_by(1)] * 9)
        connection.close()
    assert lists == expected


@pytest.mark.parametrize("pattern", [[0], [1, 1, 0], [None]])
def test_a_connection_stays_where_others_ask_on_it_too(completer, settings, folder, pattern):
    users = [owned_by(owner) if owner is not None else "" for owner in pattern] * 4
    with two_workers(completer, settings, folder) as ((port, here, _), (_, there, _)):
        connection, lists = typing(port, users)
        with closing(connection):
            assert len(lists) == len(users)
            assert (len(here), len(there)) == (1, 0)


def test_a_request_that_has_begun_is_answered_where_it_began(completer, settings, folder):
    head = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    asks = [head % keystroke(owned_by(1), number).encode() for number in range(8)]
    read = b""

    def answered(number):
        nonlocal read
        while read.count(b"HTTP/1.1 200 OK") < number:
            read += connection.recv(1 << 16)

    with (
        two_workers(completer, settings, folder) as ((port, here, _), (_, there, _)),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        connection.sendall(b"".join(asks[:5]) + asks[5][:20])
        answered(5)
        assert (len(here), len(there)) == (1, 0)
        connection.sendall(asks[5][20:])
        until(lambda: (len(here), len(there)) == (0, 1))
        connection.sendall(asks[6] + asks[7])
        answered(8)


def test_all_that_came_at_once_is_answered_before_a_connection_moves(completer, settings, folder):
    with (
        two_workers(completer, settings, folder) as ((port, _, _), (_, there, _)),
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
    ):
        head = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        asks = [head.format(keystroke(owned_by(1), number)) for number in range(9)]
        connection.sendall("".join(asks).encode())
        read = b""
        while read.count(b"HTTP/1.1 200 OK") < len(asks):
            read += connection.recv(1 << 16)
        until(lambda: len(there) == 1)


def test_a_connection_that_moved_may_pause_and_is_closed_when_it_pauses_too_long(
    completer, settings, folder
):
    settings = replace(settings, request_seconds=0.2, keep_seconds=1.0)
    with two_workers(completer, settings, folder) as ((port, _, _), (_, there, _)):
        (asks, _), (silent, _) = (typing(port, [owned_by(1)] * 3) for _ in range(2))
        with closing(asks), closing(silent):
            until(lambda: len(there) == 2)
            time.sleep(0.6)  # longer than a request may take
            assert asked(asks, keystroke(owned_by(1), 3))
            until(lambda: len(there) == 1)
            assert silent.sock.recv(1) == b""
            assert not there.cut


def test_a_connection_whose_owner_is_gone_stays(completer, settings, folder):
    with worker(completer, settings, WorkerPlace(0, 2, folder)) as (port, here, _):
        connection, lists = typing(port, [owned_by(1)] * 5)
        with closing(connection):
            assert (len(lists), len(here)) == (5, 1)


def test_a_connection_that_comes_as_a_worker_ends_is_closed(completer, settings, folder):
    with worker(completer, settings, WorkerPlace()) as (_, connections, server):
        server.should_exit = True
        ours, theirs = socket.socketpair()
        connections.adopt(ours)
        with theirs:
            assert theirs.recv(1) == b""
