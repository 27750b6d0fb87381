"""Processes that are killed under load: whatever was acknowledged is there, once."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from telic.completion import PrefixIndex
from telic.serve import Settings
from telic.serve.state.store import Store

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="finds child processes in Linux's /proc"
)


@contextmanager
def service(model, *options):
    """Serve in a process of its own; give it and its address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from telic.cli import main; main()"),
            *("completion", "serve", str(model), "--port", "0", *options),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stderr.readline()
        assert "search box: http" in line, line
        yield process, urlsplit(line.split()[2])
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    finally:
        process.kill()
        process.communicate()


def workers_of(process):
    """Ids of the worker processes; multiprocessing's own tracker is none."""
    ids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [
        int(pid)
        for pid in ids
        if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text()
    ]


def ask(address, path, given=None):
    """Give an answer's status and content; 0 where there is none."""
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    headers = {"content-type": "application/json"}
    try:
        if given is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(given), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        connection.close()


class Load:
    """Users who submit, and send again what was not acknowledged, until told to stop."""

    def __init__(self):
        self.address, self.acknowledged = None, Counter()
        self._stop = threading.Event()

    def user(self, name):
        n = 0
        while not self._stop.is_set():
            given = {"user": name, "composition": f"{name}-{n}", "query": "samosa"}
            if ask(self.address, "/submit", given)[0] == 200:
                self.acknowledged[name] += 1
                n += 1

    @contextmanager
    def running(self, address):
        self.address = address
        with ThreadPoolExecutor(4) as pool:
            users = [pool.submit(self.user, f"u{i}") for i in range(4)]
            try:
                yield
            finally:
                self._stop.set()
        for user in users:
            user.result()

    def reach(self, more):
        """Wait until so many more were acknowledged."""
        wanted = self.acknowledged.total() + more
        deadline = time.monotonic() + 60
        while self.acknowledged.total() < wanted:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.fixture(scope="module")
def two_workers(completer, tmp_path_factory):
    """Give a service of two worker processes, its address and its model folder."""
    model = tmp_path_factory.mktemp("workers") / "model"
    completer.save(model)
    with service(model, "--workers", "2") as (process, address):
        yield process, address, model


def test_a_composition_is_one_whichever_process_its_keystrokes_reach(completer, two_workers):
    """Each request on a connection of its own, of two workers; beside the library."""
    _, address, _ = two_workers
    for user in ("ada", "bob", "cy", "dee"):
        state = completer.user(user)
        for c in range(2):
            composition = completer.compose(state)
            for at, prefix in enumerate(["s", "sa", "sal", "sa"]):
                path = f"/suggest?q={prefix}&user={user}&composition={c}&t={1000 * at}"
                expected = [s.text for s in composition.suggest(prefix, at=float(at))]
                for _ in range(3):  # the same again is no keystroke
                    status, answer = ask(address, path)
                    assert status == 200, answer
                    assert answer[1] == expected
            learned = composition.submit("salad")
            given = {"user": user, "composition": f"{c}", "query": "salad"}
            for _ in range(3):
                answer = {"learned": learned, "updates": state.updates}
                assert ask(address, "/submit", given) == (200, answer)
    status, error = ask(address, "/suggest?q=s&user=ada&composition=c&t=soon")
    assert (status, error["error"]["code"]) == (422, "bad_time")


def test_workers_count_together(two_workers):
    _, address, _ = two_workers
    given = {"user": "gus", "query": "soup"}
    for n in range(6):
        assert ask(address, "/submit", given | {"composition": f"{n}"})[0] == 200
    for _ in range(4):  # whichever process is asked
        with urllib.request.urlopen(f"{address.geturl()}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        counts = [float(x.split()[-1]) for x in lines if x.startswith("telic_submissions_total")]
        assert sum(counts) == 8 + 6


def test_killed_workers_lose_nothing_that_was_acknowledged(completer, two_workers):
    process, address, model = two_workers
    load = Load()
    with load.running(address):
        for victim in (0, 1):
            load.reach(20)
            before = workers_of(process)
            os.kill(before[victim], signal.SIGKILL)
            load.reach(20)
            while len(workers_of(process)) < 2 or set(workers_of(process)) == set(before):
                time.sleep(0.05)
    assert ask(address, "/healthz")[0] == 200
    store = Store(Settings.beside(model).database, completer)
    for name, count in load.acknowledged.items():
        stored = store.read(name)
        assert stored.state.history == {"samosa": float(count)}
        assert stored.version == count
    store.close()


def test_a_hangup_swaps_the_model_of_every_worker(make_completer, two_workers):
    process, address, model = two_workers
    given = {"user": "eve", "composition": "1", "query": "samosa"}
    assert ask(address, "/submit", given)[0] == 200
    index = PrefixIndex.build(["sorbet", "samosa"], [2, 1])
    make_completer(index=index).save(model)
    process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 60
    swapped = 0
    while swapped < 20:  # whichever process a connection reaches
        status, answer = ask(address, "/suggest?q=so")
        assert status == 200
        swapped = swapped + 1 if answer[1] == ["sorbet"] else 0
        assert time.monotonic() < deadline
    for user in ("ada", "bob", "eve", "fay"):
        path = f"/suggest?q=s&user={user}&composition=2&explain=1"
        assert "sorbet" in ask(address, path)[1][1]
        given = {"user": user, "composition": "2", "query": "sorbet"}
        assert ask(address, "/submit", given)[0] == 200
    assert len(workers_of(process)) == 2


def test_a_killed_service_comes_back_with_all_that_was_acknowledged(completer, tmp_path):
    completer.save(tmp_path / "model")
    acknowledged = 0
    for _ in range(2):
        with service(tmp_path / "model") as (process, address):
            done = threading.Event()

            def submit(address=address, done=done, first=acknowledged):
                for n in range(first, 10_000):
                    given = {"user": "u", "composition": f"c{n}", "query": "sage"}
                    if ask(address, "/submit", given)[0] != 200:
                        return n
                    if n == first + 30:
                        done.set()

            with ThreadPoolExecutor(1) as pool:
                submitting = pool.submit(submit)
                assert done.wait(60)
                process.kill()
                acknowledged = submitting.result()
    store = Store(Settings.beside(tmp_path / "model").database, completer)
    # The last may have been stored when its acknowledgement was cut off; it was then sent again.
    assert store.read("u").version - acknowledged in (0, 1)
    store.close()


@pytest.mark.slow
def test_a_service_whose_workers_never_come_up_again_ends(completer, tmp_path):
    completer.save(tmp_path / "model")
    with service(tmp_path / "model", "--workers", "2") as (process, _):
        shutil.rmtree(tmp_path / "model")
        for worker in workers_of(process):
            os.kill(worker, signal.SIGKILL)
        assert process.wait(60) == 2
        said = process.stderr.read()
        assert "worker 0 cannot be started, and is tried again in 1 s: " in said
        assert f"no worker can be started: {tmp_path / 'model'}" in said
