"""Worker processes: how they are started, started anew, told to swap and stopped, by stand-ins."""

import json
import logging
import multiprocessing
import os
import signal
import socket
from dataclasses import replace
from itertools import pairwise
from multiprocessing.connection import Connection
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from telic.completion import Completer
from telic.errors import InputError, ModelError
from telic.serve import run, run_workers
from telic.serve.operation.metrics import FOLDER
from telic.serve.process import garbage, server, workers
from telic.serve.requests.between_workers import WorkerPlace


@pytest.fixture
def signals():
    """What is done on a hangup and on a stop is as before in the end; the log is made so."""
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)]
    log = logging.getLogger("telic.serve")
    handlers, level = log.handlers[:], log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level)
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_worker_that_is_being_started_leaves_ctrl_c_to_its_parent(monkeypatch):
    before, seen, context = signal.getsignal(signal.SIGINT), [], MagicMock()
    context.Pipe.return_value = MagicMock(), MagicMock()
    context.Process().start.side_effect = lambda: seen.append(signal.getsignal(signal.SIGINT))
    monkeypatch.setattr(multiprocessing, "get_context", lambda kind: context)
    workers._Worker("model", None, None, None).start()
    assert (seen, signal.getsignal(signal.SIGINT)) == ([signal.SIG_IGN], before)


class Crew:
    """Two stand-ins for workers, and what happens to them at each look."""

    def __init__(self, monkeypatch, *happens):
        self.told, self.members, self.happens = [], [], list(happens)
        monkeypatch.setattr(workers, "_Worker", self.worker)
        monkeypatch.setattr(workers, "wait", self.look)

    def worker(self, model, settings, listener, place):
        one = MagicMock(place=place, swap_due=False, is_up=True, failed=0)
        one.process.is_alive.return_value = True
        one.look.side_effect = lambda: (
            one.process.is_alive() or self.told.append(("start_anew", place.index))
        )
        for name in ("start", "comes_up", "stop"):
            getattr(one, name).side_effect = lambda name=name: (
                self.told.append((name, place.index)) or name == "comes_up"
            )
        one.swap_if_due.side_effect = lambda: (
            one.swap_due and self.told.append(("swap", place.index))
        )
        self.members.append(one)
        return one

    def look(self, sentinels, timeout):
        alive = [one for one in self.members if one.process.is_alive()]
        assert sentinels == [one.process.sentinel for one in alive]
        assert timeout == 0.2
        for one in self.members:
            one.swap_due = False
        self.happens.pop(0)(self)


def dies(crew):
    crew.members[1].process.is_alive.return_value = False


def hangup(crew):
    crew.members[1].process.is_alive.return_value = True
    os.kill(os.getpid(), signal.SIGHUP)


def stop(crew):
    crew.members[0].process.is_alive.return_value = False  # which is no reason to start it anew
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.usefixtures("signals")
def test_workers_are_started_anew_swapped_and_stopped(completer, settings, tmp_path, monkeypatch):
    completer.save(tmp_path / "model")
    monkeypatch.setattr("os.isatty", lambda descriptor: False)
    crew = Crew(monkeypatch, dies, hangup, stop)
    ready = []

    def came_up(address):
        assert os.environ[FOLDER] == crew.members[0].place.folder
        ready.append((address, len(crew.told)))

    two = replace(settings, port=0, workers=2)
    run_workers(tmp_path / "model", two, ready=came_up)
    assert [one.place.workers for one in crew.members] == [2, 2]
    each = [(name, index) for name in ("start", "comes_up") for index in (0, 1)]
    stopped = [("stop", 0), ("stop", 1)]
    assert crew.told == [*each, ("start_anew", 1), ("swap", 0), ("swap", 1), *stopped]
    ((address, after),) = ready
    assert address.startswith("http://127.0.0.1:")
    assert after == len(each)
    assert FOLDER not in os.environ


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("changes", "said"),
    [({"control": 0.5}, "control is 0.5"), ({"host": "0.0.0.0"}, "without keys")],
    ids=["trial", "keys"],
)
def test_settings_that_no_worker_could_serve_with_are_refused_at_once(
    completer, settings, tmp_path, monkeypatch, changes, said
):
    completer.save(tmp_path / "model")
    crew = Crew(monkeypatch, stop)
    with pytest.raises(InputError, match=said):
        run_workers(tmp_path / "model", replace(settings, port=0, workers=2, **changes))
    assert not crew.told


@pytest.mark.usefixtures("signals")
def test_what_is_said_of_workers_is_json_too(completer, settings, tmp_path, monkeypatch, capsys):
    completer.save(tmp_path / "model")

    def say(crew):
        workers._log.error("worker 1 died and is started anew")

    Crew(monkeypatch, say, stop)
    run_workers(tmp_path / "model", replace(settings, port=0, workers=2, log_json=True))
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "worker 1 died and is started anew"


@pytest.mark.usefixtures("signals")
def test_a_terminal_that_is_closed_stops_the_workers(completer, settings, tmp_path, monkeypatch):
    completer.save(tmp_path / "model")
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    crew = Crew(monkeypatch, hangup)
    run_workers(tmp_path / "model", replace(settings, port=0, workers=2))
    assert crew.told[-2:] == [("stop", 0), ("stop", 1)]
    assert not any(name == "swap" for name, _ in crew.told)


@pytest.mark.usefixtures("signals")
def test_it_is_ready_only_if_all_came_up(completer, settings, tmp_path, monkeypatch):
    completer.save(tmp_path / "model")
    crew = Crew(monkeypatch, stop)
    made = crew.worker

    def second_fails(*given):
        one = made(*given)
        if one.place.index:
            one.comes_up.side_effect = lambda: False
        return one

    monkeypatch.setattr(workers, "_Worker", second_fails)
    ready = []
    run_workers(tmp_path / "model", replace(settings, port=0, workers=2), ready=ready.append)
    assert not ready
    with pytest.raises(ModelError, match="nowhere"):
        run_workers(tmp_path / "nowhere", settings)
    monkeypatch.setattr(Completer, "load", lambda model: completer)
    with pytest.raises(InputError, match="cannot be opened"):
        run_workers("model", replace(settings, database=f"sqlite:///{tmp_path}/no/such.sqlite"))
    monkeypatch.setattr(os, "name", "nt")
    with pytest.raises(InputError, match="several workers need a POSIX system"):
        run_workers("model", settings)


def test_a_worker_comes_up_when_it_says_so_and_not_when_it_dies(settings, monkeypatch):
    ends = []

    class Process:
        def __init__(self, target, args):
            *given, self.up = args
            assert (target, given) == (workers._work, ["model", settings, None, place])

        def start(self):
            ends.append((self.up, Connection(os.dup(self.up.fileno()))))  # a child has its own

    spawning = SimpleNamespace(Pipe=multiprocessing.Pipe, Process=Process)
    monkeypatch.setattr(multiprocessing, "get_context", lambda way: {"spawn": spawning}[way])
    place = WorkerPlace(1, 2, "folder")
    worker = workers._Worker("model", settings, None, place)
    for comes in (True, False):
        worker.start()
        ours, its = ends[-1]
        assert ours.closed  # or its death would not be seen
        assert not worker._came_up()
        if comes:
            its.send(True)
            assert worker._came_up()
        its.close()
        assert worker._came_up() == comes
        worker._up.close()


def test_a_worker_that_cannot_be_started_is_tried_ever_later_and_says_why(
    settings, monkeypatch, caplog
):
    worker = workers._Worker("model", settings, None, WorkerPlace(1, 2, "folder"))
    started, dead, now, ends = [], [], [0.0], []

    def start():
        started.append(now[0])
        worker._up, end = multiprocessing.Pipe(duplex=False)
        worker.is_up, worker._due, worker.reason = False, None, "it dies at once."
        ends.append(end)

    def dies(*said):
        for each in said:
            ends[-1].send(each)
        ends[-1].close()
        due = len(started) + 1
        while len(started) < due:
            worker.look()
            now[0] += 1

    worker.process = SimpleNamespace(pid=7, is_alive=lambda: False)
    monkeypatch.setattr(worker, "start", start)
    monkeypatch.setattr(workers, "mark_process_dead", lambda *which: dead.append(which))
    monkeypatch.setattr(workers.time, "monotonic", lambda: now[0])
    start()
    dies(True)
    for _ in range(3):
        dies("database: refused.")
    dies()
    for _ in range(2):
        dies("database: refused.")
    dies(True)
    assert worker.failed == 0
    worker._up.close()
    waits = [0, 1, 3, 7, 15, 30, 30, 0]
    assert [b - a - 1 for a, b in pairwise(started[1:])] == waits[1:]
    assert dead == [(7, "folder")] * 8
    said = [record.getMessage() for record in caplog.records]
    again = "worker 1 cannot be started, and is tried again in"
    assert said == [
        "worker 1 died and is started anew",
        *(f"{again} {seconds} s: database: refused." for seconds in (1, 3, 7)),
        f"{again} 15 s: it dies at once.",
        *[f"{again} 30 s: database: refused."] * 2,
        "worker 1 died and is started anew",
    ]


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize(
    ("came_up", "failed", "ends"),
    [(True, (0, 9), False), (True, (2, 1), False), (True, (2, 2), True), (False, (0, 2), True)],
)
def test_a_service_ends_once_no_worker_is_left(
    completer, settings, tmp_path, monkeypatch, came_up, failed, ends
):
    completer.save(tmp_path / "model")

    def fail(crew):
        for one, times in zip(crew.members, failed, strict=True):
            one.failed, one.is_up, one.reason = times, not times, "the disk is gone."

    crew = Crew(monkeypatch, fail, stop)
    made = crew.worker

    def worker(*given):
        one = made(*given)
        one.is_up = came_up
        one.comes_up.side_effect = lambda: came_up
        return one

    monkeypatch.setattr(workers, "_Worker", worker)
    two = replace(settings, port=0, workers=2)
    if ends:
        with pytest.raises(InputError, match=r"no worker can be started: the disk is gone\."):
            run_workers(tmp_path / "model", two)
    else:
        run_workers(tmp_path / "model", two)
    assert crew.told[-2:] == [("stop", 0), ("stop", 1)]


@pytest.mark.parametrize(("due", "up"), [(True, True), (True, False), (False, True)])
def test_a_worker_is_told_to_swap_once_it_is_up(settings, monkeypatch, due, up):
    worker = workers._Worker("model", settings, None, WorkerPlace())
    worker.process, worker.swap_due = SimpleNamespace(pid=7), due
    monkeypatch.setattr(worker, "_came_up", lambda: up)
    killed = []
    monkeypatch.setattr(os, "kill", lambda *which: killed.append(which))
    worker.swap_if_due()
    assert killed == ([(7, signal.SIGHUP)] if due and up else [])
    assert worker.swap_due == (due and not up)


@pytest.mark.parametrize("child", [True, False])
def test_a_worker_says_when_it_answers_and_ends_with_its_parent(settings, monkeypatch, child):
    loaded, killed, threads = [], [], []
    parent = MagicMock() if child else None
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: parent)
    monkeypatch.setattr(Completer, "load", lambda model: loaded.append(model) or len(loaded))
    monkeypatch.setattr(os, "kill", lambda *which: killed.append(which))
    monkeypatch.setattr(
        workers.threading, "Thread", lambda target, daemon: threads.append(target) or MagicMock()
    )
    place = WorkerPlace(1, 2, "folder")
    here, up = multiprocessing.Pipe(duplex=False)

    def serve_on(completer, given, listener, *, place, ready, reload):
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert (completer, given, listener, place) == (1, settings, None, place)
        ready()
        assert here.recv() is True
        with pytest.raises(EOFError):
            here.recv()
        assert reload() == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(workers, "serve_on", serve_on)
    before = signal.getsignal(signal.SIGHUP)
    try:
        workers._work("model", settings, None, place, up)
    finally:
        signal.signal(signal.SIGHUP, before)
        here.close()
    (end_with_parent,) = threads
    end_with_parent()
    assert killed == ([(os.getpid(), signal.SIGTERM)] if child else [])
    assert not child or parent.join.called


def test_a_worker_that_cannot_serve_says_why(settings, monkeypatch):
    def refuse(model):
        raise ModelError(f"{model}: is damaged.")

    monkeypatch.setattr(multiprocessing, "parent_process", lambda: None)
    monkeypatch.setattr(Completer, "load", refuse)
    monkeypatch.setattr(workers.threading, "Thread", MagicMock())
    here, up = multiprocessing.Pipe(duplex=False)
    before = signal.getsignal(signal.SIGHUP)
    try:
        workers._work("model", settings, None, WorkerPlace(), up)
        assert here.recv() == "model: is damaged."
    finally:
        signal.signal(signal.SIGHUP, before)
        here.close()
        up.close()


def test_one_process_serves_once_it_is_warm_and_listens(completer, settings, monkeypatch):
    told = []
    for name in ("reserve_files", "warm"):
        monkeypatch.setattr(server, name, lambda given, name=name: told.append((name, given)))
    for name in ("collect", "freeze", "set_threshold"):
        monkeypatch.setattr(garbage.gc, name, lambda *given, name=name: told.append((name, *given)))

    class Served:
        def run(self, sockets):
            told.append(("run", sockets[0].getsockname()[1]))
            raise KeyboardInterrupt

    monkeypatch.setattr(server, "_swapping", lambda *given: Served())
    one = replace(settings, port=0)
    run(completer, one, ready=lambda address: told.append(("ready", address)))
    *before, (_, address), (_, port) = told
    assert before == [
        ("reserve_files", one.max_connections), ("warm", completer), ("collect",), ("freeze",),
        ("set_threshold", *garbage.THRESHOLDS),
    ]  # fmt: skip
    assert address == f"http://127.0.0.1:{port}"
    told.clear()
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(KeyboardInterrupt):
        server.serve_on(
            completer, one, listener, place=WorkerPlace(), ready=None, reload=lambda: completer
        )
    assert [name for name, *_ in told] == [*(name for name, *_ in before), "run"]
