"""Another model in place of the one that serves; a stop that cuts nobody off; the log."""

import asyncio
import gc
import json
import logging
import logging.config
import signal
import socket
import sys
import threading
import time
import weakref
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from telic.completion import PrefixIndex
from telic.errors import InputError
from telic.serve import create_app, run, serving
from telic.serve.app import Service
from telic.serve.callers.tenant_keys import add_key
from telic.serve.operation.logs import JsonLines, PlainLines, log_config
from telic.serve.process import garbage, server
from telic.serve.process.swap import Swapping

ADA = {"user": "ada", "composition": "c"}


@pytest.fixture
def sorbet(make_completer):
    return make_completer(index=PrefixIndex.build(["sorbet"], [1]))


@pytest.fixture
def only_young_objects(monkeypatch):
    """Look for what was replaced among young objects: among all that tests load it takes long."""
    monkeypatch.setattr(garbage, "remove_replaced", partial(gc.collect, 1))


only_young = pytest.mark.usefixtures("only_young_objects")


@only_young
def test_the_next_service_answers_and_the_old_one_ends_in_order(completer, sorbet, settings):
    first = create_app(completer, settings)
    app = Swapping(first, lambda before: create_app(sorbet, settings))
    with TestClient(app, "http://127.0.0.1:8000") as client:
        assert client.get("/suggest", params=ADA | {"q": "so"}).json()[1] == ["soup"]
        client.portal.call(app.swap)
        assert not first.journal._writer.is_alive()
        # The composition begins again, with the next model.
        assert client.get("/suggest", params=ADA | {"q": "so"}).json()[1] == ["sorbet"]
        assert client.post("/submit", json=ADA | {"query": "sorbet"}).status_code == 200
        assert client.get("/healthz").status_code == 200
    assert not app.current.journal._writer.is_alive()


@only_young
def test_what_is_under_way_in_the_old_one_is_answered(completer, sorbet, settings):
    first = create_app(completer, settings)
    app = Swapping(first, lambda before: create_app(sorbet, settings))
    record, begun, go_on = first.journal._store.record, threading.Event(), threading.Event()

    def slow(submissions):
        begun.set()
        assert go_on.wait(30)
        return record(submissions)

    first.journal._store.record = slow
    answers = []
    with TestClient(app, "http://127.0.0.1:8000") as client:
        asks = threading.Thread(
            target=lambda: answers.append(client.post("/submit", json=ADA | {"query": "soup"}))
        )
        asks.start()
        assert begun.wait(30)
        swap = client.portal.start_task_soon(app.swap)
        while app.current is first:
            time.sleep(0.01)
        assert client.get("/suggest?q=so").json()[1] == ["sorbet"]
        go_on.set()
        swap.result(30)
        asks.join(30)
        assert answers[0].status_code == 200
        answer = client.get("/suggest", params={"user": "ada", "composition": "d", "q": "so"})
        assert "soup" in answer.json()[1]  # what it was taught is there


def test_replaced_services_are_not_kept(completer, make_completer, settings):
    services = []

    def make(before):
        services.append(weakref.ref(before))
        return create_app(make_completer(), settings, before=before)

    app = Swapping(create_app(completer, settings), make)
    gc.disable()
    try:
        with TestClient(app, "http://127.0.0.1:8000") as client:
            for _ in range(2):
                client.get("/suggest", params=ADA | {"q": "so"})
                client.portal.call(app.swap)
    finally:
        gc.enable()
    assert [service() for service in services] == [None] * 2


def test_a_replaced_service_is_found_among_what_was_set_apart():
    class Held:
        pass

    one = Held()
    one.itself, gone = one, weakref.ref(one)
    gc.freeze()
    try:
        del one
        gc.collect()
        assert gone() is not None
        garbage.remove_replaced()
        assert gone() is None
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()
    garbage.remove_replaced()
    assert not gc.get_freeze_count()
    gc.freeze()  # nor do later tests look through all that is loaded


def test_a_model_that_cannot_be_read_leaves_the_old_one(completer, settings, caplog):
    def broken(before):
        raise InputError("model: is damaged.")

    app = Swapping(create_app(completer, settings), broken)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        client.portal.call(app.swap)
        assert client.get("/suggest?q=so").json()[1] == ["soup"]
    assert "not swapped: model: is damaged" in caplog.text


def test_the_next_service_is_warm_and_counts_on(completer, make_completer, settings, monkeypatch):
    warmed, other = [], make_completer()
    monkeypatch.setattr(server, "warm", warmed.append)
    first = create_app(completer, settings)
    following = server._swapping(first, settings, lambda: other).config.app._make(first)
    assert warmed == [other]
    assert following.metrics is first.metrics
    assert following.connections is first.connections
    assert server._swapping(first, settings, None).config.app._make is None


def test_a_service_in_a_thread_has_ended_with_its_block(completer, settings):
    def servers():
        return [each for each in threading.enumerate() if each.name.endswith("(run)")]

    before = len(servers())
    with serving(completer, replace(settings, port=0)) as address:
        at = urlsplit(address)
        assert len(servers()) == before + 1
    assert len(servers()) == before
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((at.hostname, at.port), timeout=30)


def test_a_service_whose_block_ends_at_once_is_stopped_in_order(completer, settings, monkeypatch):
    warmed, stopped, stop = [], [], Service.stop

    async def noted(self):
        await stop(self)
        stopped.append(self)

    monkeypatch.setattr(Service, "stop", noted)
    monkeypatch.setattr(server, "warm", warmed.append)
    with serving(completer, replace(settings, port=0)):
        pass
    assert (len(stopped), warmed) == (1, [completer])


def test_who_is_sending_when_the_service_stops_is_answered(completer, settings):
    body = json.dumps(ADA | {"query": "soup"}).encode()
    head = (
        b"POST /submit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    with serving(completer, replace(settings, port=0)) as address:
        at = urlsplit(address)
        connection = socket.create_connection((at.hostname, at.port), timeout=30)
        connection.sendall(head + body[:5])
        time.sleep(0.2)
        threading.Timer(0.3, connection.sendall, [body[5:]]).start()
    with connection:
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")


def test_the_log_quotes_no_error():
    try:
        {}["secret query"]
    except KeyError:
        record = logging.getLogger("telic.serve").makeRecord(
            "telic.serve", logging.ERROR, __file__, 1, "a keystroke went %s", ("wrong",),
            sys.exc_info(),
        )  # fmt: skip
    said = json.loads(JsonLines().format(record))
    assert (said["level"], said["message"], said["error"]) == (
        "error",
        "a keystroke went wrong",
        "KeyError",
    )
    assert "test_swap.py" in said["at"][0]
    assert "secret" not in json.dumps(said)
    first, second = PlainLines("%(message)s").format(record).splitlines()[:2]
    assert (first, second) == ("a keystroke went wrong", "KeyError")
    assert "test_swap.py" in PlainLines().format(record)
    assert "secret" not in PlainLines().format(record)
    record.exc_info, record.exc_text = (None, None, None), None
    assert PlainLines("%(message)s").format(record).strip() == "a keystroke went wrong"


@pytest.mark.usefixtures("loggers")
def test_the_log_is_json_from_its_first_line(completer, settings, tmp_path, monkeypatch, capsys):
    keys = str(tmp_path / "keys.toml")
    for tenant in ("shop", "forum"):
        add_key(keys, tenant)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    run(completer, replace(settings, port=0, keys=keys, log_json=True))
    said = [json.loads(line)["message"] for line in capsys.readouterr().err.splitlines()]
    assert "tells no tenants apart" in said[0]


@pytest.fixture
def loggers():
    """The log as the service has it, and then as it was."""
    named = [
        logging.getLogger(each) for each in ("telic.serve", "uvicorn", "asyncio", "sqlalchemy")
    ]
    before = [(each.handlers[:], each.filters[:], each.level, each.propagate) for each in named]
    yield named
    for each, (handlers, filters, level, propagate) in zip(named, before, strict=True):
        each.handlers[:], each.filters[:] = handlers, filters
        each.level, each.propagate = level, propagate


@pytest.mark.parametrize("as_json", [True, False])
def test_the_logs_settings_are_ones(settings, as_json, capsys, loggers):
    logging.config.dictConfig(log_config(replace(settings, log_json=as_json)))
    for logger in loggers:
        logger.warning("said")
    lines = capsys.readouterr().err.splitlines()
    said = [json.loads(line)["message"] if as_json else line.split()[-1] for line in lines]
    assert said == ["said"] * len(loggers)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.usefixtures("loggers")
def test_the_log_quotes_no_error_that_nobody_awaited(settings, as_json, capsys):
    async def fail(query):
        raise ValueError(query)

    async def forget():
        task = asyncio.create_task(fail("secret query"))
        await asyncio.sleep(0)
        del task
        gc.collect()
        asyncio.get_running_loop().call_soon(lambda query: {}[query], "secret (query)")
        await asyncio.sleep(0.01)

    logging.config.dictConfig(log_config(replace(settings, log_json=as_json)))
    asyncio.run(forget())
    said = capsys.readouterr().err
    assert "Task exception was never retrieved" in said
    assert "Exception in callback" in said
    assert "ValueError" in said
    assert "secret" not in said


@pytest.mark.parametrize("terminal", [False, True])
def test_a_hangup_swaps_the_model_but_for_a_terminal_that_was_closed(
    completer, settings, monkeypatch, terminal
):
    heard = []

    class Loop(asyncio.SelectorEventLoop):
        def add_signal_handler(self, number, callback):
            heard.append(number)

    monkeypatch.setattr("os.isatty", lambda descriptor: terminal)

    async def live():
        async with Swapping(create_app(completer, settings), lambda before: None)._live(None):
            pass

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(live())
    assert heard == ([] if terminal else [signal.SIGHUP])


def test_a_hangup_during_a_swap_is_followed_by_one_more_and_a_stop_ends_it(completer, settings):
    made, go_on = [], threading.Semaphore(0)

    def make(before):
        made.append(1)
        assert go_on.acquire(timeout=30)
        raise InputError("too late")

    app = Swapping(create_app(completer, settings), make)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        client.portal.call(app.swap_soon)
        while not made:
            time.sleep(0.01)
        for _ in range(2):  # what is being made may not have read what this is about
            client.portal.call(app.swap_soon)
        go_on.release(2)
        while not app._swap.done():
            time.sleep(0.01)
        assert len(made) == 2
        client.portal.call(app.swap_soon)
        while len(made) < 3:
            time.sleep(0.01)
        threading.Timer(0.1, go_on.release).start()
    assert len(made) == 3
    assert app._swap.cancelled()


@only_young
def test_a_swap_waits_for_no_service_that_ends(completer, make_completer, settings):
    def make(before):
        return create_app(make_completer(), settings, before=before)

    app = Swapping(first := create_app(completer, settings), make, grace=30)
    with TestClient(app, "http://127.0.0.1:8000") as client:
        first._under_way += 1  # a client that sends slowly
        for swaps in (1, 2):
            before = app.current
            client.portal.call(app.swap_soon)
            deadline = time.monotonic() + 30
            while app.current is before or not app._swap.done():
                assert time.monotonic() < deadline
                time.sleep(0.01)
            assert first.journal._writer.is_alive(), swaps
        assert client.get("/suggest?q=so").status_code == 200
    assert not first.journal._writer.is_alive()
    assert not app._ending
