"""What one worker process cannot answer, the owner does: here two of them in one event loop."""

import asyncio
import tempfile
import zlib
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from telic.serve.http.errors import Problem
from telic.serve.requests.between_workers import PeerError, Peers, Place
from telic.serve.requests.dispatch import Desk
from telic.serve.state.journal import Journal
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
    places = [Peers(Place(index, 3, "/nowhere"), None) for index in range(3)]
    for user in ("ada", "bob", "é", "\ud800"):
        owner = zlib.crc32(user.encode(errors="surrogatepass")) % 3
        found = [place.elsewhere(user) for place in places]
        assert found == [None if index == owner else owner for index in range(3)]
    assert Peers(Place(), None).elsewhere("ada") is None


def test_answers_come_to_who_asked_in_whatever_order(folder):
    async def ask():
        go_on = asyncio.Event()

        async def answer(request):
            if request == ["first"]:
                await go_on.wait()
            return [*request, PHRASE]

        one, other = (Peers(Place(index, 2, folder), answer) for index in range(2))
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
        waits = asyncio.create_task(one.ask(1, ["first"]))
        go_on.clear()
        while not link._waiting:
            await asyncio.sleep(0)
        link.connection_lost(None)  # the other is killed
        with pytest.raises(PeerError):
            await waits
        again = Peers(Place(1, 2, folder), answer)
        other.close()
        await again.start()  # where one that was killed left its socket
        link.transport.close()
        assert await one.ask(1, ["second"]) == ["second", PHRASE]  # on a new link
        await one.start()
        one.close()
        again.close()
        await hung_up()

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
        desk = Desk(compositions, settings, Place(index, 2, folder))
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
