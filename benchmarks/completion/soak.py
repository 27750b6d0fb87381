"""The service under faults and attacks: killed workers and servers, fuzzed requests, idle clients.

What should not happen ends the run; the page says what happened instead.
"""

import http.client
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import numpy as np
from sqlalchemy import create_engine, text

from benchmarks.completion import power_loss
from benchmarks.completion.keystrokes import made_up_completer
from benchmarks.form import grid, megabytes
from telic.serve.callers.tenant_keys import add_key

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "serve"))
import postgresql_server

FILE = "service-faults.md"
OPTIONS = {
    "kills": (20, "of a worker, and of the database server"),
    "outage": (60, "seconds for which the store fails"),
    "losses": (100, "of power, simulated"),
    "requests": (100_000, "fuzzed"),
    "idle": (2_000, "connections that never finish a request"),
    "phrases": (5_000, "that the service serves"),
}
HEAD = """# The service under faults

All this was measured on one machine, which also runs the clients. Eight writers submit without
pause, and send a submission again if its answer is not 200. Afterwards the store shows whether each
submission is there once.

"""
WRITERS = 8
MOST_MB = 50
"""What memory may grow by in a flood of requests that leave nothing behind."""


@contextmanager
def service(model, *options, under=()):
    """Serve in processes of their own, under another program; give the first, host and port."""
    command = ["-c", "from telic.cli import main; main()", "completion", "serve", str(model)]
    process = subprocess.Popen(
        [*under, sys.executable, *command, "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
    )
    said = []
    try:
        while "search box: http" not in (line := process.stderr.readline()):
            if not line:
                raise RuntimeError("".join(said))
            said.append(line)
        reader = threading.Thread(target=lambda: said.extend(process.stderr), daemon=True)
        reader.start()
        address = urlsplit(line.split()[2])
        yield process, (address.hostname, address.port), said
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.wait()


def workers_of(process):
    """Ids of the worker processes; multiprocessing's own tracker is none."""
    return [
        pid
        for pid in children_of(process.pid)
        if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()
    ]


def children_of(pid):
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # ended in the meantime
            found += map(int, (thread / "children").read_text().split())
    return found


def holds(pid, url):
    """Whether a process has an SQLite database open."""
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed in the meantime
            found.append(os.readlink(file))
    return any(file.endswith(url.rpartition("/")[2]) for file in found)


class Load:
    """Writers that submit one composition after another, each until it is acknowledged."""

    def __init__(self, where):
        self._where, self._done = where, threading.Event()
        self.acknowledged, self.again = Counter(), Counter()
        self.at = []
        """When each was acknowledged, its user and its composition."""
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more, *, seconds=120):
        """Wait until so many more are acknowledged."""
        goal, end = self.acknowledged.total() + more, time.monotonic() + seconds
        while self.acknowledged.total() < goal:
            if time.monotonic() > end:
                raise RuntimeError(f"nothing was acknowledged for {seconds} s")
            time.sleep(0.02)

    def _write(self, n):
        connection, number = connected(self._where), 0
        while not self._done.is_set():
            given = {"user": f"u{n}", "composition": f"c{number}", "query": "sage"}
            try:
                stored = answered(connection, "/submit", given)[0] == 200
            except (OSError, http.client.HTTPException):
                stored, connection = False, connected(self._where)
            if stored:
                self.at.append((time.time(), given["user"], given["composition"]))
                number += 1
                self.acknowledged[f"u{n}"] += 1
            else:
                self.again[f"u{n}"] += 1
                time.sleep(0.02)


def once(url, load):
    """Check that what was acknowledged is stored once, and folded once; say how much it was."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(
            text('SELECT "user", COUNT(*), MAX(number) FROM submissions GROUP BY 1')
        )
        stored = {user: (count, last) for user, count, last in rows}
        folded = dict(
            map(tuple, connection.execute(text('SELECT "user", version FROM user_states')))
        )
    engine.dispose()
    for user, count in load.acknowledged.items():
        # The last of each may have been stored when the writers were told to stop.
        if stored[user][0] - count not in (0, 1) or stored[user][1] != stored[user][0]:
            raise RuntimeError(f"{user}: {count} acknowledged, {stored[user]} stored")
        if folded[user] != stored[user][0]:
            raise RuntimeError(f"{user}: {stored[user]} stored, {folded[user]} in the state")
    total, again = load.acknowledged.total(), load.again.total()
    return f"{total:,} acknowledged, all there, once; {again:,} had to be sent again"


def killed_workers(model, kills):
    url = f"sqlite:///{model}-workers.sqlite"
    with service(model, "--workers", "2", "--database", url) as (process, where, _):
        with Load(where) as load:
            for _ in range(kills):
                load.wait_for(40)
                # The one that has worked longest; not one that is only just being started.
                working = [pid for pid in workers_of(process) if holds(pid, url)]
                os.kill(working[0], signal.SIGKILL)
            load.wait_for(40)
        return once(url, load)


def killed_builds(model, kills):
    """Kill workers, builders or all while changes are built into the list; look for each change."""
    keys = model.with_name("keys.toml")
    headers = {"Authorization": f"Bearer {add_key(keys, 'desk', editor=True)}"}
    options = ["--workers", "2", "--keys", str(keys), "--compact-after", "20"]
    options += ["--database", f"sqlite:///{model}-builds.sqlite"]
    rng, number, again = random.Random(0), 0, 0
    there, killed = {}, Counter()

    def ask(where, path, given=None):
        try:
            status, content = asked(where, path, given, headers)
        except (OSError, http.client.HTTPException):
            return None
        return json.loads(content) if status == 200 else None

    def differs(where):
        """Name a change that does not show, of a second ago or before; None if all do."""
        for phrase, is_there in there.items():
            found = ask(where, f"/suggest?q={phrase}")
            if found is not None and (phrase in found[1]) != is_there:
                return phrase
        return None

    def changed(where):
        """Send a batch until it is acknowledged; now and then it deletes an earlier phrase."""
        nonlocal number, again
        number += 1
        phrase, gone = f"zq{number:05}", rng.choice([*there, None])
        changes = [{"phrase": phrase, "popularity": number}]
        changes += [{"phrase": gone, "delete": True}] if gone else []
        while ask(where, "/phrases", {"id": f"{number}", "changes": changes}) is None:
            again += 1
            time.sleep(0.05)
        there.update({phrase: True} | ({gone: False} if gone else {}))

    lists = model.with_name(f"{model.name}.compacted")
    seen, deadline = set(), time.monotonic() + 60 * kills
    while killed.total() < kills:
        with service(model, *options) as (process, where, said):
            while killed.total() < kills:
                if time.monotonic() > deadline:
                    raise RuntimeError("too few lists are built")
                for _ in range(rng.randrange(5, 40)):
                    changed(where)
                    seen |= {each.name for each in lists.glob("*-*-*")}
                which = rng.choice(["worker", "builder", "all"])
                builders, waited = [], 0
                while not builders and waited < 200:
                    changed(where)
                    time.sleep(0.1)
                    waited += 1
                    builders = [pid for each in workers_of(process) for pid in children_of(each)]
                time.sleep(rng.random() * 2)  # at any moment of the work
                victims = builders if which == "builder" else workers_of(process)
                if not victims:
                    continue
                killed[which] += 1
                if which == "all":
                    os.kill(process.pid, signal.SIGKILL)
                for pid in victims if which == "all" else rng.sample(victims, 1):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if which == "all":
                    break
                time.sleep(1.5)
                if wrong := differs(where):
                    raise RuntimeError(f"{wrong}: {there[wrong]} was acknowledged; {said}")
    with service(model, *options) as (_, where, _):
        if wrong := differs(where):
            raise RuntimeError(f"{wrong}: {there[wrong]} was acknowledged")
    what = ", ".join(f"{count} × {name}" for name, count in sorted(killed.items()))
    return (
        f"{what}; {number:,} batches acknowledged, all seen; {again:,} times sent again; "
        f"{len(seen)} lists built"
    )


def killed_servers(model, kills):
    with (
        postgresql_server.running(waits_for_disk=True) as server,
        service(model, "--database", server.url) as (_, where, _),
    ):
        with Load(where) as load:
            for _ in range(kills):
                load.wait_for(40)
                server.kill()
                server.start()
            load.wait_for(40)
        return once(server.url, load)


@contextmanager
def locked(process, database):
    """Hold SQLite's lock, as another program might."""
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    yield
    other.execute("ROLLBACK")
    other.close()


@contextmanager
def deleted(process, database):
    """Take the file away, and bring it back."""
    aside = database.with_suffix(".aside")
    database.rename(aside)
    yield
    aside.rename(database)


@contextmanager
def full(process, database):
    """Let the process write to no file, as on a full disk."""
    _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))


@contextmanager
def read_only(process, database):
    """Forbid every change of the database and its log."""
    files = [database, f"{database}-wal"]
    subprocess.run(["chattr", "+i", *files], check=True)
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *files], check=True)


FAULTS = {"locked": locked, "deleted": deleted, "on a full disk": full, "read-only": read_only}


def store_fault(model, fault, seconds):
    """Type and submit while the store fails."""
    database = model.parent / f"{fault.__name__}.sqlite"
    url = f"sqlite:///{database}"
    with service(model, "--database", url) as (process, where, _):
        typist = Typist(where)
        with Load(where) as load:
            load.wait_for(40)
            before = typist.type(300)
            with fault(process, database):
                began, health, during = time.time(), Counter(), []
                while time.time() < began + seconds:
                    during.extend(typist.type(50))
                    health[asked(where, "/healthz")[0]] += 1
                    time.sleep(0.2)
                ended = time.time()
            load.wait_for(40)
        said = once(url, load)
    # What was under way when the fault came is given half a second to be answered.
    wrong = sum(began + 0.5 < at < ended for at, _, _ in load.at)
    if wrong or not health[503]:
        raise RuntimeError(f"{wrong} acknowledged without a store, health {health}")
    if np.median(during) > 2 * np.median(before):
        raise RuntimeError(f"keystrokes took {np.median(during)} ms, before {np.median(before)} ms")
    times = percentiles({"before": before, "meanwhile": during})
    return f"/healthz 503, nothing acknowledged; {said}; a keystroke's p50 / p99 in ms: {times}"


def power_losses(model, losses):
    """Lose the power whenever something has just been acknowledged."""
    database = model.parent / "power.sqlite"
    recorded = model.parent / "calls"
    traced = [*power_loss.TRACE, "-o", recorded]
    options = ("--database", f"sqlite:///{database}")
    with service(model, *options, under=traced) as (_, where, _), Load(where) as load:
        load.wait_for(4 * losses)
    calls = power_loss.calls(recorded)
    rng = random.Random(0)
    acknowledged = sorted(load.at)
    for loss in range(losses):
        n = rng.randrange(len(acknowledged))
        files = power_loss.on_disk(calls, acknowledged[n][0], loss % 3 / 2, rng)
        there = power_loss.survivors(files, database)
        lost = {(user, composition) for _, user, composition in acknowledged[: n + 1]} - there
        if lost:
            raise RuntimeError(f"{len(lost)} of {n + 1} acknowledged are lost")
    return (
        f"{losses} losses at moments at which one of {len(acknowledged):,} had just been "
        f"acknowledged: all that was acknowledged until then is there, the database whole"
    )


def fuzzed(rng):
    """Return a whole request with something wrong, most of the time."""
    noise = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 12))).replace(b"\n", b"n")
    value = quote(noise) if rng.random() < 0.85 else noise.replace(b" ", b"+").decode("latin-1")
    name = rng.choice(["q", "user", "composition", "t", "explain", "consent", "days", "x"])
    known = ["/suggest", "/submit", "/figures", "/search", "/visitor", "/phrases", "/static/a"]
    path = rng.choice(known)
    method = rng.choices(
        ["GET", "POST", "PUT", "HEAD", "OPTIONS", "X" * rng.randrange(1, 9)], [8, 8, 1, 1, 1, 1]
    )[0]
    fields = {"user": "u", "composition": "c", "query": "q", "q": "s", "id": "i", "changes": []}
    fields[rng.choice(list(fields))] = rng.choice(
        [None, 1, -1e308, [], {}, [[[]]], "", "\ud800", "x" * 3000, noise.decode("latin-1"), True]
    )
    body = json.dumps(fields).encode() if rng.random() < 0.7 else noise
    kind = rng.choice(
        [*["application/json"] * 6, "text/plain", noise.decode("latin-1").replace("\r", "")]
    )
    head = f"{method} {path}?{name}={value} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
    if rng.random() < 0.2:
        head += f"{rng.choice(['Origin', 'Authorization', 'X-Forwarded-For'])}: {value}\r\n"
    return head.encode("latin-1") + b"Content-Length: %d\r\n\r\n" % len(body) + body


def fuzz(model, requests):
    found = Counter()
    with service(model, "--database", f"sqlite:///{model}-fuzz.sqlite") as (process, where, said):
        before = megabytes("VmRSS", process.pid)

        def ask(seed):
            rng = random.Random(seed)
            for _ in range(requests // 4):
                # Each on a connection of its own, which ends at once: nothing of an answer is
                # taken for the next one's, and the system does not run out of ports.
                with socket.create_connection(where, 30) as connection:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    try:
                        connection.sendall(fuzzed(rng))
                        answer = connection.recv(1 << 16)
                    except OSError:
                        answer = b""
                found[answer[9:12].decode("latin-1") or "cut"] += 1

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
        bad = [status for status in found if status.startswith("5")]
        if bad or process.poll() is not None or any("Traceback" in line for line in said):
            raise RuntimeError(f"{found}, {said[-5:]}")
        grown = megabytes("VmRSS", process.pid) - before
        if grown > MOST_MB:
            raise RuntimeError(f"memory grew by {grown:.0f} MB")
    answers = ", ".join(f"{count:,} × {status}" for status, count in found.most_common())
    return f"no 5xx: {answers}; memory grew by {grown:.0f} MB"


def idle(model, connections):
    """Ask beside clients that never finish a request, a third of which send a byte a second."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, connections + 200), hard), hard))
    with service(model, "--database", f"sqlite:///{model}-idle.sqlite") as (_, where, _):
        alone = latencies(where, 300)
        stalled = []
        for n in range(connections):
            stalled.append(socket.create_connection(where, 30))
            if n % 3:
                stalled[-1].sendall(b"GET /suggest?q=")
        done = threading.Event()

        def drip():
            while not done.wait(1.0):
                for each in stalled[::3]:
                    with suppress(OSError):
                        each.send(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        beside = latencies(where, 300)
        time.sleep(12)  # beyond what a request may take
        after = latencies(where, 300)
        metrics = ask_once(where, "/metrics")
        cut = sum(
            float(line.split()[-1])
            for line in metrics.splitlines()
            if line.startswith("telic_connections_cut_total")
        )
        done.set()
        dripping.join()
        for each in stalled:
            each.close()
    if cut < connections - 1_000:
        raise RuntimeError(f"only {cut:.0f} of {connections} were cut")
    times = {"alone": alone, "beside them": beside, "once they were cut": after}
    return f"{cut:,.0f} cut; p50 / p99 of a keystroke in ms: {percentiles(times)}"


def connected(where):
    return http.client.HTTPConnection(*where, timeout=30)


def answered(connection, path, given=None, headers=None):
    """Get a path, or post to it what is given; return status and text of the answer."""
    if given is None:
        connection.request("GET", path, headers=headers or {})
    else:
        kind = {"Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(given), kind | (headers or {}))
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def asked(where, *what):
    """Return status and text of an answer on a connection of its own."""
    with closing(connected(where)) as connection:
        return answered(connection, *what)


def ask_once(where, path):
    status, content = asked(where, path)
    if status != 200:
        raise RuntimeError(f"{path}: {status}")
    return content


class Typist:
    """One user with a connection, whose keystrokes learn from what was skipped."""

    def __init__(self, where):
        self._connection, self._typed = connected(where), 0

    def type(self, keystrokes):
        """Return the milliseconds that each of so many keystrokes took."""
        found = []
        for _ in range(keystrokes):
            self._typed += 1
            prefix = "sag"[: self._typed % 3 + 1]
            path = f"/suggest?q={prefix}&user=typist&composition=t{self._typed // 9}"
            began = time.perf_counter()
            status, _ = answered(self._connection, path)
            found.append(1e3 * (time.perf_counter() - began))
            if status != 200:
                raise RuntimeError(f"a keystroke was answered {status}")
        return found


def percentiles(times):
    """Median and 99th percentile of each list of times."""
    found = {name: np.percentile(ms, [50, 99]) for name, ms in times.items()}
    return ", ".join(f"{name} {p50:.1f} / {p99:.1f}" for name, (p50, p99) in found.items())


def latencies(where, count):
    found = []
    for _ in range(count):
        began = time.perf_counter()
        ask_once(where, "/suggest?q=s")
        found.append(1e3 * (time.perf_counter() - began))
    return np.array(found)


def page(run):
    """Return the page in Markdown."""
    asked = run.options
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        made_up_completer(asked.phrases)[0].save(model)
        parts = {
            f"kill −9 of one of two workers, {asked.kills} times": (
                partial(killed_workers, model, asked.kills),
                "all that was acknowledged is there, once",
            ),
            f"kill −9 of a worker, of the process that builds a changed list, or of all, "
            f"{asked.kills} times": (
                partial(killed_builds, model, asked.kills),
                "every change that was acknowledged shows",
            ),
            f"kill −9 of the PostgreSQL server and all its processes, {asked.kills} times": (
                partial(killed_servers, model, asked.kills),
                "all that was acknowledged is there, once",
            ),
            **{
                f"store {said} for {asked.outage} s (SQLite)": (
                    partial(store_fault, model, fault, asked.outage),
                    "keystrokes within 2×, nothing acknowledged, all there once it is back",
                )
                for said, fault in FAULTS.items()
            },
            f"power lost {asked.losses} times (simulated from system calls; SQLite)": (
                partial(power_losses, model, asked.losses),
                "all that was acknowledged is there",
            ),
            f"{asked.requests:,} fuzzed requests": (
                partial(fuzz, model, asked.requests),
                f"no 5xx, no traceback, under {MOST_MB} MB more",
            ),
            f"{asked.idle:,} connections that never finish a request": (
                partial(idle, model, asked.idle),
                "cut, others are answered",
            ),
        }
        rows = [
            (name, expected, run.kept(name, measure))
            for name, (measure, expected) in parts.items()
            if run.asks_for(name)
        ]
    return HEAD + grid(["fault", "expected", "seen"], rows)
