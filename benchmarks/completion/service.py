"""The service over HTTP: processor time of a keystroke and latency on kept-alive connections.

Each application is served by a process of its own, just as `telic.serve.run` would, and asked by
this one over plain sockets. Processor time is the serving process's own, from /proc (Linux).
"""

import itertools
import json
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np

from benchmarks.completion.keystrokes import made_up_completer
from benchmarks.form import grid

TICKS = os.sysconf("SC_CLK_TCK")
BODY = 900
"""Bytes of the fixed routes' answers: about what a list of ten takes."""


def requests(targets, *, user=None, explain=False, new=False, tag=""):
    """Give every keystroke towards each target as the bytes of a request, in order.

    With `new` each target has a user of its own, whom the service has never seen.
    """
    for number, target in enumerate(targets):
        user = f"{tag}n{number}" if new else user
        for typed in range(1, min(len(target), 8) + 1):
            query = f"/suggest?q={quote(target[:typed], safe='')}"
            if user:
                query += f"&user={user}&composition={tag}c{number}&t={300 * typed}"
            if explain:
                query += "&explain=1"
            yield request(query)


def request(path):
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode()


def submissions(tag, users=500):
    """Give submissions without end, of many users."""
    for number in itertools.count():
        given = {
            "user": f"u{number % users}",
            "composition": f"{tag}-{number}",
            "query": f"q{number % 7}",
        }
        body = json.dumps(given).encode()
        yield (
            b"POST /submit HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )


class Connection:
    """One kept-alive connection with at most one request under way."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.sent_at = b"", 0.0

    def ask(self, asked):
        self.sent_at = time.perf_counter()
        self.socket.sendall(asked)

    def answered(self):
        """Read what is there; give the seconds the answer took once it is whole, else None."""
        self.buffer += self.socket.recv(1 << 20)
        head, separator, body = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return None
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return None
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(f"the service answered {head[:60]!r} {body[:200]!r}")
        self.buffer = b""
        return time.perf_counter() - self.sent_at


def drive(port, streams, *, seconds, rate=None):
    """Ask on one connection for each stream, at most `rate` a second in all; give all latencies.

    With a rate, a request is due at its time whatever became of those before it, and its latency
    counts from then.
    """
    selector, latencies, due = selectors.DefaultSelector(), [], {}
    began = time.perf_counter()
    for i, stream in enumerate(streams):
        connection = Connection(port)
        selector.register(connection.socket, selectors.EVENT_READ, (connection, stream))
        due[connection] = began + (i / rate if rate else 0.0)
    idle = [key.data for key in selector.get_map().values()]
    pause = len(streams) / rate if rate else 0.0
    while time.perf_counter() - began < seconds:
        now = time.perf_counter()
        for connection, stream in [pair for pair in idle if due[pair[0]] <= now]:
            idle.remove((connection, stream))
            connection.ask(next(stream))
            if rate:
                connection.sent_at = due[connection]
        wait = min([due[pair[0]] for pair in idle], default=now + 1.0) - time.perf_counter()
        for key, _ in selector.select(max(wait, 0.0)):
            connection, stream = key.data
            took = connection.answered()
            if took is not None:
                latencies.append(took)
                due[connection] += pause
                idle.append((connection, stream))
    for key in list(selector.get_map().values()):
        key.fileobj.close()
    return np.array(latencies)


def processor_seconds(pid):
    """Seconds of processor time of a process and of the children it started."""
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    own = (int(parts[11]) + int(parts[12])) / TICKS
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(processor_seconds(child) for child in children)


@contextmanager
def served(kind, model, database) -> Iterator[tuple[int, int]]:
    """Serve in a process of its own; give its process id and port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.completion.service", kind, str(model), str(database)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.pid, int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


def fixed(kind, settings):
    """Return an application that answers everything with the same body."""
    from telic.serve.connections import Connections

    body = b"x" * BODY
    if kind == "starlette":
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Route

        async def answer(request):
            return Response(body)

        app = Starlette(routes=[Route("/suggest", answer)])
        app.connections = Connections(settings)
        return app

    async def raw(scope, receive, send):
        if scope["type"] != "http":
            return
        headers = [(b"content-length", str(BODY).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    raw.connections = Connections(settings)
    return raw


def child(kind, model, database):
    """Serve what `kind` names until terminated; print the port."""
    from telic.completion import Completer
    from telic.serve import Settings, run, server

    settings = Settings(database, port=0)
    if kind != "service":
        app = fixed(kind, settings)
        with server.listen(settings) as listener:
            print(listener.getsockname()[1], flush=True)
            server._server(app, app.connections, settings, log_config=None).run(sockets=[listener])
        return
    run(
        Completer.load(model),
        settings,
        ready=lambda address: print(address.rpartition(":")[2], flush=True),
    )


def measured(kind, model, phrases, *, seconds, **asked):
    """Return microseconds of processor time of a request, and latencies in milliseconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(kind, model, f"sqlite:///{folder}/store.sqlite") as (pid, port),
    ):
        stream = requests(phrases * 100, **asked)
        drive(port, [stream], seconds=min(seconds, 2.0))
        before = processor_seconds(pid)
        latencies = drive(port, [stream], seconds=seconds)
        micro = 1e6 * (processor_seconds(pid) - before) / len(latencies)
        return micro, 1e3 * latencies


def rows(completer, phrases, *, seconds, postgresql=None):
    """Return the table's rows: work, target, measured."""
    typist = {"user": "ada"}
    runs = [
        ("raw ASGI, fixed body (the floor)", "–", "raw", {}),
        ("Starlette route, fixed body", "–", "starlette", {}),
        ("keystroke, static", "≤ 1.3× Starlette", "service", {}),
        ("keystroke, feedback and 95 past queries", "≤ 2× Starlette", "service", typist),
        ("the same, explained", "–", "service", typist | {"explain": True}),
        ("each query by somebody new", "–", "service", {"new": True, "user": "somebody"}),
    ]
    found, base, typed = [], None, None
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        completer.save(model)
        for work, target, kind, asked in runs:
            micro, ms = measured(kind, model, phrases[::7], seconds=seconds, **asked)
            base = micro if kind == "starlette" else base
            typed = micro if asked == typist else typed
            times = f", {micro / base:.2f}×" if base else ""
            found.append((work, target, f"{micro:.0f} µs of processor time{times}; {shown(ms)}"))
        found += under_load(model, phrases, seconds=seconds, rate=0.7e6 / typed)
        urls = {"SQLite": f"sqlite:///{folder}/durable.sqlite"}
        if postgresql:
            urls["PostgreSQL"] = postgresql
        for name, url in urls.items():
            found.append(durable(model, name, url, seconds=seconds))
    return found


def shown(ms):
    p50, p99 = np.percentile(ms, [50, 99])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def under_load(model, phrases, *, seconds, rate):
    """Return rows on four connections at once, on starting and on memory."""
    began = time.perf_counter()
    database = f"sqlite:///{model}-load.sqlite"
    with served("service", model, database) as (pid, port):
        first = Connection(port)
        started = time.perf_counter() - began
        first.ask(next(requests(phrases, user="ada", tag="first")))
        while (took := first.answered()) is None:
            pass
        streams = [requests(phrases[i::4] * 100, user="ada", tag=f"{i}") for i in range(4)]
        ms = 1e3 * drive(port, streams, seconds=seconds, rate=rate)
        status = Path(f"/proc/{pid}/smaps_rollup").read_text()
        private = sum(
            int(line.split()[1]) for line in status.splitlines() if line.startswith("Private")
        )
    return [
        (
            f"4 connections, {rate:.0f} keystrokes a second in all (70 % of one processor)",
            "p50 ≤ 2 ms, p99 ≤ 10 ms",
            shown(ms),
        ),
        (
            f"start to ready, {len(phrases):,} phrases, and the first answer",
            "≤ 3 s, ≤ 50 ms",
            f"{started:.1f} s, {1e3 * took:.1f} ms",
        ),
        ("memory of its own", "≤ 150 MB", f"{private / 1e3:.0f} MB"),
    ]


def durable(model, name, url, *, seconds):
    """Return the row on submissions that were on disk when they were acknowledged."""
    with served("service", model, url) as (_, port):
        tag = os.urandom(4).hex()
        streams = [submissions(f"{tag}-{i}") for i in range(64)]
        ms = 1e3 * drive(port, streams, seconds=seconds)
    target = "≥ 500 a second" if name == "SQLite" else "≥ 1,000 a second"
    return (
        f"submissions on disk, {name}, 64 connections",
        target,
        (f"{len(ms) / seconds:.0f} a second; {shown(ms)}"),
    )


FILE = "service-speed.md"
OPTIONS = {
    "seconds": (10.0, "of each run"),
    "phrases": (33_000, "that the service serves"),
    "postgresql": ("", "URL of a store to time beside SQLite"),
}
HEAD = """# Speed of the service

Written by `python -m benchmarks service --write`, on made-up data and one machine, which also runs
the client. A keystroke is one request on a kept-alive connection, answered before the next is sent,
unless a row says otherwise.

"""


def page(run):
    """Return the page in Markdown."""
    asked = run.options
    served_by = made_up_completer(asked.phrases)
    found = rows(*served_by, seconds=asked.seconds, postgresql=asked.postgresql)
    return HEAD + grid(["work", "target", "measured"], found)


if __name__ == "__main__":
    child(*sys.argv[1:])
