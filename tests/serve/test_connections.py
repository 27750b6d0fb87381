"""Clients that stall, flood or hang up: they are cut and counted, and the others are answered."""

import asyncio
import gc
import http.client
import json
import logging
import socket
import struct
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import MagicMock
from urllib.parse import urlsplit

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from telic.errors import InputError
from telic.serve import serving
from telic.serve.http.connections import (
    LOG_SECONDS,
    SMALL,
    Connection,
    Connections,
    _Begun,
    _finish,
    reserve_files,
)
from telic.serve.operation.metrics import Metrics
from telic.serve.process.server import _server
from telic.serve.process.workers import _Worker
from telic.serve.requests.between_workers import WorkerPlace

HEAD = b"POST /submit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@pytest.fixture
def limited(completer, settings, monkeypatch):
    """Serve with changed settings; give a way to ask, one to connect, and what counts the cut."""
    made = []
    init = Connections.__init__

    def remember(self, *given):
        made.append(self)
        init(self, *given)

    monkeypatch.setattr(Connections, "__init__", remember)

    @contextmanager
    def served(**changes):
        with (
            ExitStack() as stack,
            serving(completer, replace(settings, port=0, **changes)) as address,
        ):
            at = urlsplit(address)

            def connect(sent=b""):
                connection = socket.create_connection((at.hostname, at.port), timeout=30)
                stack.enter_context(connection)
                connection.sendall(sent)
                return connection

            def ask(path="/suggest?q=s"):
                asked = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
                asked.request("GET", path)
                answer = asked.getresponse()
                asked.close()
                return answer.status

            yield ask, connect, made[-1]

    return served


def ended(connection):
    """Whether the other side ends a connection, which may come as a reset."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


def eventually(condition, seconds=30):
    """Whether a condition comes to hold."""
    end = time.monotonic() + seconds
    while not (holds := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return holds


def failures(caplog):
    """What was logged of exceptions, but for what earlier tests of clusters leave behind."""
    return [
        f"{record.name} in {record.threadName}: {caplog.handler.format(record)}"
        for record in caplog.records
        if record.exc_info and not record.name.startswith(("distributed", "tornado"))
    ]


def test_two_hundred_that_stall_take_nothing_from_who_asks(limited):
    with limited(max_connections=20) as (ask, connect, connections):
        stalled = [connect(b"GET /sug" * (i % 2)) for i in range(200)]
        assert ask() == 200
        assert connections.cut["too many"] >= 180
        assert len(connections) <= 20
        assert all(ended(connection) for connection in stalled[:150])


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /suggest HTTP/1.1\r\nX-a: b\r\n", HEAD + b'Content-Length: 99\r\n\r\n{"user":'],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_does_not_come_to_its_end_is_cut(limited, sent, caplog):
    with limited(request_seconds=0.2) as (ask, connect, connections):
        assert ended(connect(sent))
        assert connections.cut == {"slow request": 1}
        assert ask() == 200
    assert not failures(caplog)


@pytest.fixture
def tasks(monkeypatch):
    """The addresses whose answers uvicorn makes a task for."""
    made, start = [], HttpToolsProtocol._start_asgi_task

    def note(self, cycle, app):
        made.append(cycle.scope["path"])
        start(self, cycle, app)

    monkeypatch.setattr(HttpToolsProtocol, "_start_asgi_task", note)
    return made


KEYSTROKE = b"GET /suggest?q=%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
POSTED = b"POST /suggest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
TYPED = b'{"q": "so", "user": "ada", "composition": "c"}'
LONG = TYPED + b" " * SMALL


def answers(connection, count):
    """Read so many answers; give the status of each, and its JSON."""
    stream, found = connection.makefile("rb"), []
    for _ in range(count):
        status = int(stream.readline().split()[1])
        head = dict(line.rstrip().lower().split(b": ") for line in iter(stream.readline, b"\r\n"))
        found.append((status, json.loads(stream.read(int(head.get(b"content-length", 0))) or "0")))
    return found


@pytest.mark.parametrize(
    ("packets", "by_tasks"),
    [
        ([KEYSTROKE % b"so"], []),
        ([KEYSTROKE[:9], KEYSTROKE[9:] % b"so"], []),
        ([POSTED + b"Content-Length: %d\r\n\r\n" % len(TYPED) + TYPED], []),
        ([POSTED + b"Content-Length: %d\r\n\r\n" % len(TYPED), TYPED[:9], TYPED[9:]], []),
        (
            [POSTED + b"Transfer-Encoding: chunked\r\n\r\n2e\r\n" + TYPED, b"\r\n0\r\n\r\n"],
            [],
        ),
        (
            [POSTED + b"Content-Length: %d\r\n\r\n" % len(LONG), LONG[:-5], LONG[-5:]],
            ["/suggest"],
        ),
    ],
    ids=["whole", "in pieces", "posted", "posted in pieces", "chunked", "long"],
)
def test_a_keystroke_is_answered_without_a_task_once_it_is_there(limited, tasks, packets, by_tasks):
    with limited() as (_, connect, connections):
        connection = connect()
        for packet in packets:
            connection.sendall(packet)
            time.sleep(0.02)
        ((status, (query, *_)),) = answers(connection, 1)
        assert (status, query, tasks) == (200, "so", by_tasks)
        connection.sendall(KEYSTROKE % b"s")  # it is kept
        assert answers(connection, 1)[0][1][0] == "s"
        assert not connections.cut


def test_keystrokes_of_one_packet_are_answered_in_order(limited):
    typed = [b"s", b"so", b"sou", b"soup"] * 300  # one within the other would be too deep
    other = b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with limited() as (_, connect, _):
        found = answers(connect(b"".join(KEYSTROKE % q for q in typed) + other), len(typed) + 1)
        assert [body[0] for _, body in found[:-1]] == [q.decode() for q in typed]
        assert found[-1] == (200, {"status": "ok"})


def test_who_waits_to_send_a_keystroke_is_told_to(limited):
    with limited() as (_, connect, _):
        head = POSTED + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(TYPED)
        connection = connect(head)
        assert answers(connection, 1)[0][0] == 100
        connection.sendall(TYPED)
        assert answers(connection, 1)[0][1][0] == "so"


def test_a_keystroke_that_is_too_long_is_refused_before_its_end(limited):
    with limited() as (_, connect, _):
        connection = connect(POSTED + b"Content-Length: 10000000\r\n\r\n" + b" " * 100_000)
        assert answers(connection, 1)[0][0] == 413


def test_what_has_begun_without_a_task_goes_on_in_one():
    done = []

    async def waits(future):
        try:
            done.append(await future)
            done.append(await asyncio.sleep(0, "more"))
        except ValueError as error:
            done.append(str(error))
        finally:
            done.append("end")

    async def ended(how):
        future = asyncio.get_running_loop().create_future()
        begun = waits(future)
        task = asyncio.create_task(_finish(_Begun(begun, begun.send(None))))
        await asyncio.sleep(0)
        how(future, task)
        return await asyncio.wait_for(asyncio.shield(task), 10)

    asyncio.run(ended(lambda future, _: future.set_result("found")))
    asyncio.run(ended(lambda future, _: future.set_exception(ValueError("failed"))))
    assert done == ["found", "more", "end", "failed", "end"]

    def cancelled_later(future, task):
        future.set_result("found")
        asyncio.get_running_loop().call_soon(task.cancel)

    for cancelled in (lambda _, task: task.cancel(), cancelled_later):
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(ended(cancelled))
    assert done[5:] == ["end", "found", "end"]


def test_a_keystroke_before_what_is_no_http_counts_as_none(limited, monkeypatch):
    answered = []
    monkeypatch.setattr(Connection, "_answer_now", lambda *given: answered.append(given))
    with limited() as (_, connect, _):
        connection = connect(KEYSTROKE % b"s" + b"\x01\r\n\r\n")
        assert answers(connection, 1)[0][0] == 400
        assert ended(connection)
    assert not answered


def test_a_head_that_comes_a_byte_at_a_time_is_cut(limited):
    with limited(request_seconds=0.3) as (_, connect, connections):
        connection = connect(b"GET /suggest HTTP/1.1\r\n")
        drips = (connection.sendall(b"x") or time.sleep(0.05) for _ in range(600))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            list(drips)
        assert connections.cut == {"slow request": 1}


def test_a_head_without_end_is_cut(limited):
    with limited(max_head=10_000) as (ask, connect, connections):
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            connect(b"GET / HTTP/1.1\r\n" + b"X-a: " + b"b" * 1_000_000 + b"\r\n").sendall(
                b"c" * 10**7
            )
        assert connections.cut["head too large"] == 1
        assert ask() == 200


def test_who_hangs_up_in_the_middle_leaves_nothing_behind(limited, caplog):
    with limited() as (ask, connect, connections):
        for sent in (b"GET /sugg", HEAD + b"Content-Length: 99\r\n\r\n{", b""):
            connect(sent).close()
        assert ask() == 200
        assert eventually(lambda: not len(connections))
        assert not connections.cut
    assert not failures(caplog)


@pytest.mark.slow
def test_of_connections_that_were_reset_nothing_stays_in_memory(limited):
    """A reset is no orderly end: uvicorn's timers would hold each for as long as it may be kept."""

    def kept():
        gc.collect()
        return [each for each in gc.get_objects() if type(each) is Connection]

    with limited(keep_seconds=3600.0) as (ask, connect, _):
        before = len(kept())
        for _ in range(50):
            connection = connect(b"GET /suggest?q=s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        assert ask() == 200
        assert eventually(lambda: len(kept()) <= before + 1)  # the one that asked last may be there


def test_what_was_cut_is_said_in_one_line(limited, caplog):
    with (
        caplog.at_level(logging.WARNING, "telic.serve"),
        limited(request_seconds=0.2) as (_, connect, _),
    ):
        stalled = [connect(b"GET /secret") for _ in range(10)]
        assert all(ended(connection) for connection in stalled)
        assert eventually(lambda: caplog.records)
    lines = [record.getMessage() for record in caplog.records if "cut" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].endswith("slow request")
    assert "secret" not in caplog.text


def test_a_kept_connection_is_kept_while_it_is_used(limited):
    with limited(request_seconds=0.2) as (_, connect, connections):
        connection = connect()
        body = json.dumps({"user": "u", "composition": "c", "query": "soup"}).encode()
        post = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        for _ in range(4):
            connection.sendall(post)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
            time.sleep(0.3)
        assert not connections.cut


def test_who_has_an_answer_may_be_silent_until_the_connection_is_no_longer_kept(limited):
    with limited(request_seconds=1, answer_seconds=1, keep_seconds=3) as (_, connect, connections):
        connection = connect()
        connection.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
        assert connection.recv(1 << 16)
        time.sleep(1.5)
        assert len(connections) == 1
        assert ended(connection)  # uvicorn's own clock
        assert eventually(lambda: not len(connections))
        assert not connections.cut


def test_more_connections_than_files_may_be_open_are_refused():
    resource = pytest.importorskip("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        pytest.skip("any number of files may be open here")
    reserve_files(10)
    with pytest.raises(InputError, match=f"the system allows {hard}"):
        reserve_files(hard)


def test_an_answer_to_head_has_no_body_so_that_the_next_one_is_found(limited):
    with limited() as (_, connect, _):
        connection = connect()
        for method, begins in (("HEAD", b""), ("GET", b'["s", [')):
            connection.sendall(
                f"{method} /suggest?q=s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
            )
            head, _, body = connection.recv(1 << 16).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert body.startswith(begins)
            assert bool(body) == bool(begins)


def answered(connection):
    """The answer that comes on a connection: status, headers and JSON."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.headers, json.loads(answer.read())


@pytest.mark.parametrize(
    "sent", ["GET /suggest?q=São HTTP/1.1\r\n\r\n".encode(), b"\x16\x03\x01\x02\x00\r\n\r\n"]
)
def test_what_is_no_http_is_answered_in_the_shape_of_all_errors(limited, sent):
    with limited() as (_, connect, _):
        connection = connect(sent)
        status, headers, answer = answered(connection)
        assert (status, headers["connection"]) == (400, "close")
        assert headers["content-type"] == "application/json"
        assert answer["error"].keys() == {"code", "message", "hint"}
        assert answer["error"]["code"] == "bad_request"
        assert ended(connection)


def test_a_request_for_another_protocol_is_answered_in_this_one(limited, caplog):
    upgrade = b"Host: 127.0.0.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    with limited() as (_, connect, _):
        connection = connect()
        for _ in range(2):
            connection.sendall(b"GET /suggest?q=sag HTTP/1.1\r\n" + upgrade + b"\r\n")
            status, _, answer = answered(connection)
            assert (status, answer[1]) == (200, ["sage"])
        length = b'Content-Type: application/json\r\nContent-Length: 11\r\n\r\n{"q":"sag"}'
        connection.sendall(b"POST /suggest HTTP/1.1\r\n" + upgrade + length)
        status, _, answer = answered(connection)
        assert (status, answer["error"]["code"]) == (422, "not_json")
        assert "(Upgrade) is not read" in answer["error"]["message"]
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


def test_an_answer_written_in_one_piece_is_that_of_the_ordinary_way(limited):
    """What cannot be written at once, as the last answer of a connection, goes through uvicorn."""
    asked = b"GET /suggest?q=s HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: https://shop.example\r\n"
    with limited(origins=("https://shop.example",)) as (_, connect, _):
        first = connect(asked + b"\r\n").recv(1 << 16)
        several = connect(2 * (asked + b"\r\n") + asked + b"Connection: close\r\n\r\n")
        received = b""
        while more := several.recv(1 << 16):
            received += more
    whole, again, ordinary = received.split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.startswith(b"HTTP/1.1 200 OK\r\n")  # head and body came together
    assert first.endswith(ordinary.partition(b"\r\n\r\n")[2])

    def parts(answer):
        head, _, body = answer.partition(b"\r\n\r\n")
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
        assert int(fields[b"content-length"]) == len(body)
        assert fields.pop(b"date")
        return fields, body

    fields, body = parts(ordinary)
    assert fields.pop(b"connection") == b"close"
    assert fields[b"access-control-allow-origin"] == b"https://shop.example"
    assert parts(whole) == parts(again) == (fields, body)


class Held:
    """A connection without a socket."""

    def __init__(self, loop):
        self.loop, self.transport, self.receiving, self.since = loop, MagicMock(), True, 0.0

    @property
    def open(self):
        return not self.transport.abort.called


def test_who_works_is_not_cut_for_who_comes(settings):
    async def come():
        metrics = Metrics()
        connections = Connections(replace(settings, max_connections=2), metrics)
        first, second, third, fourth = (Held(asyncio.get_running_loop()) for _ in range(4))
        connections.admit(first)
        connections.works(first)
        for one in (second, third):
            connections.admit(one)
        assert (first.open, second.open, third.open, len(connections)) == (True, False, True, 2)
        connections.works(third)
        connections.admit(fourth)
        assert (first.open, third.open, fourth.open, len(connections)) == (True, True, False, 2)
        assert connections.cut == {"too many": 2}
        assert b'telic_connections_cut_total{reason="too many"} 2.0' in metrics.exposition()

    asyncio.run(come())


def test_an_answer_that_nobody_takes_is_cut_after_its_time(settings, caplog):
    async def wait():
        connections = Connections(replace(settings, answer_seconds=5.0, request_seconds=5.0))
        loop = asyncio.get_running_loop()
        idle, late, soon = (Held(loop) for _ in range(3))
        idle.receiving = False
        for one in (idle, late, soon):
            connections.admit(one)
        for one in (late, soon):
            connections.works(one)
        idle.since = late.since = loop.time() - 6
        soon.since = loop.time() - 3
        connections._sweep()
        assert (idle.open, late.open, soon.open) == (True, False, True)
        assert connections.cut == {"answer not taken": 1}
        soon.since -= 3
        connections._sweep()
        assert not soon.open
        assert len(caplog.records) == 1  # the next line would come too soon
        connections._log_after = 0.0
        connections._sweep()

    with caplog.at_level(logging.WARNING, "telic.serve"):
        asyncio.run(wait())
    said = ["connections cut: 1 answer not taken"] * 2
    assert [record.getMessage() for record in caplog.records if "cut" in record.msg] == said


class Clock:
    """An event loop that keeps what it is to call, and when."""

    def __init__(self):
        self.now, self.calls = 1000.0, []

    def time(self):
        return self.now

    def call_later(self, seconds, call):
        self.calls.append((seconds, call))

    def go_on(self, seconds):
        """Let time pass; return after how long the one call that waits is due again."""
        ((_, call),) = self.calls
        self.calls.clear()
        self.now += seconds
        call()
        return [round(after, 9) for after, _ in self.calls]


@pytest.mark.parametrize(("request_seconds", "every"), [(4.0, 1.0), (0.4, 0.1)])
def test_connections_are_looked_at_while_there_is_one_or_something_to_say(
    settings, monkeypatch, caplog, request_seconds, every
):
    loop = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    connections = Connections(replace(settings, request_seconds=request_seconds))
    one, two, three, four = (Held(loop) for _ in range(4))
    for each in (one, two):
        connections.admit(each)
    assert loop.go_on(request_seconds - 0.1) == [every]
    assert (one.open, two.open) == (True, True)
    assert loop.go_on(0.2) == []  # both are cut, and that is said
    assert (one.open, two.open) == (False, False)
    connections.admit(three)
    assert loop.go_on(request_seconds + 0.1) == [every]
    assert (three.open, len(connections)) == (False, 0)
    assert loop.go_on(1.0) == [every]  # until it may be said
    assert loop.go_on(LOG_SECONDS) == []
    said = [record.getMessage() for record in caplog.records]
    assert said == ["connections cut: 2 slow request", "connections cut: 1 slow request"]
    connections.admit(four)
    assert loop.go_on(0.0) == [every]


def test_the_process_may_open_as_many_files_as_connections_need(monkeypatch):
    resource = pytest.importorskip("resource")
    changed = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, limits: changed.append(limits))
    for soft in (109, 110, 111, resource.RLIM_INFINITY):
        for hard in (110, resource.RLIM_INFINITY):
            changed.clear()
            monkeypatch.setattr(resource, "getrlimit", lambda kind, now=(soft, hard): now)
            reserve_files(10)
            assert changed == ([(110, hard)] if soft == 109 else [])
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (110, 110))
    with pytest.raises(InputError, match="11 connections need 111 open files, the system allows"):
        reserve_files(11)
    monkeypatch.setitem(sys.modules, "resource", None)  # as where there is no POSIX
    reserve_files(11)


def test_the_server_keeps_to_the_settings(settings):
    limits = replace(
        settings, keep_seconds=2.5, stop_seconds=7.5, max_connections=9, proxies=("192.0.2.1",)
    )
    config = _server(None, Connections(limits), limits).config
    assert (config.timeout_keep_alive, config.timeout_graceful_shutdown) == (3, 8)
    assert (config.backlog, config.forwarded_allow_ips) == (9, ["192.0.2.1"])
    assert (config.access_log, config.server_header) == (False, False)


@pytest.mark.parametrize("obeys", [True, False])
def test_a_worker_that_does_not_end_when_told_to_is_killed(settings, obeys):
    worker = _Worker("model", settings, None, WorkerPlace())
    worker.stop()  # never started
    worker.process = MagicMock()
    worker.process.is_alive.return_value = not obeys
    worker.stop()
    worker.process.terminate.assert_called_once_with()
    worker.process.join.assert_any_call(settings.write_seconds + 5)
    assert worker.process.kill.called == (not obeys)


@pytest.mark.parametrize("receiving", [True, False])
@pytest.mark.parametrize("pipeline", [[], ["another request"]])
def test_a_connection_waits_once_all_that_came_on_it_is_answered(monkeypatch, receiving, pipeline):
    answered = []
    monkeypatch.setattr(
        HttpToolsProtocol, "on_response_complete", lambda self: answered.append(self)
    )
    connection = Connection.__new__(Connection)
    connection.all, connection.receiving, connection.pipeline = MagicMock(), receiving, pipeline
    connection.on_response_complete()
    assert connection.all.waits.called == (not receiving and not pipeline)
    assert answered == [connection]
