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
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
from sqlalchemy import create_engine, text

from benchmarks.completion.keystrokes import made_up_completer
from benchmarks.form import grid, mapped

BODY = 900
"""Bytes of the fixed routes' answers: about what a list of ten takes."""


def requests(targets, *, user=None, explain=False, new=False, post=False, tag=""):
    """Give every keystroke towards each target as the bytes of a request, in order.

    With `new` each target has a user of its own, whom the service has never seen; with `post` they
    are as the search box of a page sends them.
    """
    for number, target in enumerate(targets):
        user = f"{tag}n{number}" if new else user
        for typed in range(1, min(len(target), 8) + 1):
            given = {"q": target[:typed]}
            if user:
                given |= {"user": user, "composition": f"{tag}c{number}", "t": 300 * typed}
            if explain:
                given["explain"] = 1
            yield posted("/suggest", given) if post else request(f"/suggest?{urlencode(given)}")


def request(path):
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n".encode()


def submissions(tag, users=500):
    """Give submissions without end, of many users."""
    for number in itertools.count():
        given = {"user": f"u{number % users}", "composition": f"{tag}-{number}"}
        yield posted("/submit", given | {"query": f"q{number % 7}"})


def posted(path, given):
    body = json.dumps(given).encode()
    return (
        b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)
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
    # At least one answer: some machines hold new connections back for a second or two at times.
    while time.perf_counter() - began < seconds or not latencies:
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
    """Seconds of processor time of a process's threads and of the children it started."""
    tasks = Path(f"/proc/{pid}/task")
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())
    children = (tasks / str(pid) / "children").read_text().split()
    return own / 1e9 + sum(processor_seconds(child) for child in children)


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


@contextmanager
def all_served(kinds, model) -> Iterator[dict[str, tuple[int, int]]]:
    """Serve each kind beside the others, on a database of its own."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield {
            kind: stack.enter_context(served(kind, model, f"sqlite:///{folder}/{kind}.sqlite"))
            for kind in kinds
        }


def fixed(kind, settings):
    """Return an application that answers everything with the same body."""
    from telic.serve.http.connections import Connections

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
    from telic.serve import Settings, run, run_workers
    from telic.serve.process import server

    settings = Settings(database, port=0, workers=1 + (kind == "two workers"))

    def ready(address):
        print(address.rpartition(":")[2], flush=True)

    if settings.workers > 1:
        return run_workers(model, settings, ready=ready)
    if kind != "service":
        app = fixed(kind, settings)
        with server.listen(settings) as listener:
            print(listener.getsockname()[1], flush=True)
            server._server(app, app.connections, settings).run(sockets=[listener])
        return
    run(Completer.load(model), settings, ready=ready)


ASKED_BEFORE, FEW = "keystroke, static, asked before", 100
"""Work, and of how many phrases it types the same ones again and again."""
KEYSTROKES = {
    "raw ASGI, fixed body (the floor)": (None, "raw", {}),
    "Starlette route, fixed body": (None, "starlette", {}),
    "keystroke, static": (1.3, "service", {}),
    ASKED_BEFORE: (1.3, "service", {}),
    "keystroke, feedback and 95 past queries": (2.0, "service", {"user": "ada"}),
    "keystroke with feedback, posted as by a page": (2.0, "service", {"user": "ada", "post": True}),
    "keystroke with feedback, explained": (None, "service", {"user": "ada", "explain": True}),
    "each query by somebody new": (None, "service", {"new": True, "user": "somebody"}),
}
"""What is asked: the most that it may cost, as a multiple of the Starlette route; whom; how."""
ROUNDS = 9


def keystrokes(model, phrases, *, seconds):
    """Return rows on the processor time of a keystroke, and that of feedback in microseconds.

    All are served at once and asked in turn, `ROUNDS` times, so whatever else the machine does
    meets all alike; times and ratios are medians over the rounds.
    """
    micro = {work: [] for work in KEYSTROKES}
    latencies = {work: [] for work in KEYSTROKES}
    with all_served(("raw", "starlette", "service"), model) as up:
        streams = {
            work: requests(
                itertools.cycle(phrases[: FEW if work == ASKED_BEFORE else None]),
                tag=str(i),
                **asked,
            )
            for i, (work, (_, _, asked)) in enumerate(KEYSTROKES.items())
        }
        for counts in range(ROUNDS + 1):  # the first is for caches
            for work, (_, kind, _) in KEYSTROKES.items():
                spent, took = one_round(up[kind], [streams[work]], seconds)
                if counts:
                    micro[work].append(1e6 * spent)
                    latencies[work].extend(1e3 * took)
    found, base = [], np.array(micro["Starlette route, fixed body"])
    for work, (most, _, _) in KEYSTROKES.items():
        times = np.median(np.array(micro[work]) / base)
        said = f"{np.median(micro[work]):.0f} µs of processor time, {times:.3g}×"
        target = f"≤ {most}× Starlette" if most else "–"
        found.append(
            row(work, target, f"{said}; {shown(latencies[work])}", met=not most or times <= most)
        )
    return found, np.median(micro["keystroke, feedback and 95 past queries"])


def one_round(served, streams, seconds):
    """Processor seconds of a request, and the latencies, of one of the `ROUNDS`."""
    pid, port = served
    before = processor_seconds(pid)
    took = drive(port, streams, seconds=seconds / ROUNDS)
    return (processor_seconds(pid) - before) / len(took), took


def row(work, target, said, *, met=True):
    return work, target, said if met else f"**missed:** {said}"


def rows(completer, phrases, *, seconds, postgresql=None):
    """Return the table's rows, those that miss their target first: work, target, measured."""
    load, cores = os.getloadavg()[0], os.cpu_count()
    busy = row("load before it began, by other work", "–", f"{load:.1f} on {cores} processors")
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        completer.save(model)
        found, typed = keystrokes(model, phrases[::7], seconds=seconds)
        found += under_load(model, phrases, seconds=12 * seconds, rate=0.7e6 / typed)
        found += two_workers(model, phrases[::7], seconds=seconds)
        urls = {"SQLite with synchronous=FULL": (f"sqlite:///{folder}/durable.sqlite", 500)}
        if postgresql:
            with create_engine(postgresql).connect() as connection:
                waits = connection.execute(text("SHOW fsync")).scalar()
            urls[f"PostgreSQL with fsync {waits}"] = postgresql, 1_000
        for name, (url, least) in urls.items():
            found.append(durable(model, name, url, least, seconds=seconds))
    found += [
        busy,
        memory(completer, "the same phrase typed and deleted", phrases[:1]),
        memory(completer, "each keystroke a prefix of another phrase", phrases),
    ]
    return sorted(found, key=lambda each: not each[2].startswith("**missed"))


def shown(ms):
    p50, p99 = np.percentile(ms, [50, 99])
    return f"p50 {p50:.2f} ms, p99 {p99:.2f} ms"


def under_load(model, phrases, *, seconds, rate):
    """Return rows on four connections at once, on starting and on memory."""
    streams = [requests(phrases[i::4] * 100, user="ada", tag=f"{i}") for i in range(4)]
    with served("starlette", model, f"sqlite:///{model}-fixed.sqlite") as (_, port):
        fixed_ms = 1e3 * drive(port, streams, seconds=seconds / 4, rate=rate)
    began = time.perf_counter()
    database = f"sqlite:///{model}-load.sqlite"
    with served("service", model, database) as (pid, port):
        first = Connection(port)
        started = time.perf_counter() - began
        first.ask(next(requests(phrases, user="ada", tag="first")))
        while (took := first.answered()) is None:
            pass
        alone = private(pid)
        ms = 1e3 * drive(port, streams, seconds=seconds, rate=rate)
        beside = private(pid)
        metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    left = metrics.partition("\ntelic_open_compositions ")[2].partition("\n")[0]
    p50, p99 = np.percentile(ms, [50, 99])
    return [
        row(
            f"4 connections, {rate:.0f} keystrokes a second in all (70 % of one processor)",
            "p50 ≤ 2 ms, p99 ≤ 10 ms",
            shown(ms),
            met=p50 <= 2 and p99 <= 10,
        ),
        row("as many requests for a Starlette route, fixed body", "–", shown(fixed_ms)),
        row(
            f"start to ready, {len(phrases):,} phrases, and the first answer",
            "≤ 3 s, ≤ 50 ms",
            f"{started:.1f} s, {1e3 * took:.1f} ms",
            met=started <= 3 and took <= 0.05,
        ),
        row("memory of its own, started", "≤ 150 MB", f"{alone:.0f} MB", met=alone <= 150),
        row(f"the same beside {float(left):,.0f} open compositions", "–", f"{beside:.0f} MB"),
    ]


def private(pid):
    """Megabytes of memory that a process shares with no other, and with no file."""
    return mapped(pid, "Private")[0] / 1e6


def two_workers(model, phrases, *, seconds):
    """Return rows on two workers beside one: four people, each on a connection of their own.

    What a worker answers is counted by the processor time that a keystroke takes in all of them
    together, as if each had a processor of its own. The machine need not have as many.
    """
    micro = {"service": [], "two workers": []}
    with all_served(micro, model) as up:
        for counts in range(ROUNDS + 1):  # the first is for caches
            for kind, process in up.items():
                people = [
                    requests(phrases[i::4] * 100, user=f"ada{i}", tag=f"{counts}") for i in range(4)
                ]
                spent, _ = one_round(process, people, seconds)
                if counts:
                    micro[kind].append(spent)
        pid, _ = up["two workers"]
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        each = max(private(child) for child in children)
    times = 2 * np.median(np.array(micro["service"]) / micro["two workers"])
    return [
        row(
            "two workers beside one, feedback, four people: keystrokes a second",
            "≥ 1.7× one",
            f"{times:.2f}×",
            met=times >= 1.7,
        ),
        row("memory of one of the two beside its open compositions", "–", f"{each:.0f} MB"),
    ]


def durable(model, name, url, least, *, seconds):
    """Return the row on submissions that were on disk when they were acknowledged."""
    with served("service", model, url) as (_, port):
        tag = os.urandom(4).hex()
        streams = [submissions(f"{tag}-{i}") for i in range(64)]
        ms = 1e3 * drive(port, streams, seconds=seconds)
    rate = len(ms) / seconds
    return row(
        f"submissions on disk, {name}, 64 connections",
        f"≥ {least:,} a second",
        f"{rate:.0f} a second; {shown(ms)}",
        met=rate >= least,
    )


def memory(completer, how, phrases, *, keystrokes=1_000):
    """Return the row on what an open composition holds after so many keystrokes."""
    prefixes = [phrase[:typed] for phrase in phrases for typed in (*range(1, 9), *range(7, 0, -1))]
    user = completer.user("ada")
    kept = []
    for _ in range(2):  # the first fills caches
        tracemalloc.start()
        for number in range(3):
            composition = completer.compose(user)
            for at in range(keystrokes):
                prefix = prefixes[(number * keystrokes + at) % len(prefixes)]
                shown = composition.listed(prefix, at=float(at))
            kept.append((composition, shown))
        kilobytes = tracemalloc.get_traced_memory()[0] / 3 / 1e3
        tracemalloc.stop()
    return row(
        f"an open composition after {keystrokes:,} keystrokes, {how}",
        "≤ 20 kB",
        f"{kilobytes:.0f} kB",
        met=kilobytes <= 20,
    )


FILE = "service-speed.md"
OPTIONS = {
    "seconds": (10.0, "of each run"),
    "phrases": (1_070_000, "that the service serves"),
    "postgresql": ("", "URL of a store to time beside SQLite"),
}
HEAD = """# Speed of the service

All this was measured on made-up data and one machine, which also runs the client. A keystroke is
one request on a kept-alive connection, answered before the next is sent, unless a row says
otherwise. Each phrase is typed letter by letter, and popular ones no more often than others, so
that beyond a few letters hardly any keystroke comes twice; “asked before” types the same hundred
phrases again and again. Rows that miss their target come first. All variants are served at once and
asked in turn; times and ratios are medians over nine rounds. What two workers answer is counted by
processor time, as if each had a processor of its own, because this machine has only two. The load
of four connections lasts two minutes. Where feedback misses its target, no step is to blame: it is
many small ones in Python, and they take longer here than in a loop.

"""


def page(run):
    """Return the page in Markdown."""
    asked = run.options
    served_by = made_up_completer(asked.phrases)
    found = rows(*served_by, seconds=asked.seconds, postgresql=asked.postgresql)
    return HEAD + grid(["work", "target", "measured"], found)


if __name__ == "__main__":
    child(*sys.argv[1:])
