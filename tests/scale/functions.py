"""Functions of partitions, where workers that are processes of their own can import them."""

import concurrent.futures
import errno
import os
import signal
import threading
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np

from telic.optim import ElasticNetRegressor
from telic.optim.estimators import linear


def double(value):
    return 2 * value


def write_double(value, path):
    path.write_text(str(2 * value))


def fail_on_three(value, path):
    if value == 3:
        path.write_text("half")
        raise ValueError("three is no number")
    write_double(value, path)


def no_arrays(value):
    raise ValueError("nothing is made of it")


def out_of_memory(value):
    raise MemoryError


def disk_is_full(value, path):
    path.write_text("half")
    raise OSError(errno.ENOSPC, "No space left on device")


def storage_fails_once(value):
    marker, number = value
    if not marker.exists():
        marker.write_text("tried")
        raise OSError(errno.EIO, "a moment's failure")
    return number


def kill_on_three(value):
    if value == 3:
        time.sleep(0.1)  # the note that it has begun goes out
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * value


def kill_once(value):
    marker, number = value
    if number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def wait_for_go(value, path):
    """Say who works on it, and end once it is allowed."""
    folder, number = value
    (folder / f"begun-{number}-{os.getpid()}").touch()
    end = time.monotonic() + 60
    while not (folder / "go").exists() and time.monotonic() < end:
        time.sleep(0.02)
    path.write_text(str(number))


def interrupt(value, path):
    raise KeyboardInterrupt


def sums(block):
    return {"sum": np.sum(block), "count": np.float64(len(block))}


def add(one, other):
    return {name: one[name] + other[name] for name in one}


def newton_step(shard, state, shared, number):
    """Let a shard count its rounds and tell its part of the mean."""
    rounds = np.array(0) if state is None else state["rounds"]
    if (Path(shard) / "fail").exists() and number == 3:
        raise ValueError("told to fail")
    found = {"pull": np.array(len(Path(shard).name) - shared["x"])}
    return {"rounds": rounds + 1}, found | {"rounds": rounds + 1}


def newton_combine(shared, messages):
    assert len({int(message["rounds"]) for message in messages}) == 1
    x = shared["x"] + 0.5 * np.mean([message["pull"] for message in messages])
    return {"x": x, "rounds": messages[0]["rounds"]}, bool(int(messages[0]["rounds"]) == 6)


def threads_of_a_fit(n_jobs):
    """Say how many threads an estimator hands to its solver."""
    estimator, given = ElasticNetRegressor(n_jobs=n_jobs), {}
    with patch.object(linear, "minimize", lambda *data, **options: given.update(options)):
        estimator._solve(np.eye(2), np.ones(2), 0.1, 0.5, None, None)
    return given["threads"]


class TakesTwo(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, what, where):
        super().__init__(f"{what} at {where}")


class AddsWords(Exception):
    """An error that is another one when it is made again from its arguments."""

    def __init__(self, what, where="nowhere"):
        super().__init__(f"{what} at {where}")


def raise_what_travels_badly(how):
    if how == "recursion":
        return raise_what_travels_badly(how)
    raise {
        "lock": ValueError("a lock", threading.Lock()),
        "two": TakesTwo("no data", "the end"),
        "more": AddsWords("no data", "the end"),
        "cancelled": concurrent.futures.CancelledError(),
        "late": TimeoutError("the storage is slow"),
        "exit": SystemExit(3),
        "interrupt": KeyboardInterrupt(),
    }[how]
