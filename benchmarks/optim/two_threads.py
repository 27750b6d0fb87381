"""One thread and two: wall time, and the bounds that the longest path and the machine set."""

import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import numpy as np
from numba import njit
from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from telic.optim import ElasticNetClassifierCV, make_problem, solve, threads
from telic.optim.estimators import elastic_net_cv

SOLVED = (
    ("l1 logistic, rcv1 shape", "rcv1", "prox_newton", 1e-4, 0.0),
    ("elastic-net logistic, rcv1 shape", "rcv1", "prox_newton", 1e-5, 1e-5),
    ("elastic-net logistic, covtype", "covtype", "gram", 1e-4, 1e-4),
    ("elastic-net logistic, rcv1 shape", "rcv1", "svrg", 1e-5, 1e-5),
)
HEAD = (
    *("work", "method", "one thread, s", "two, s", "ratio", "shared", "perfect cores"),
    *("two processes", "bound here", "1.6 met"),
)


class _Turns:
    """In place of a pool: runs the second turn at once, alone, and notes what it would save."""

    def __init__(self) -> None:
        self.shared = self.saved = 0.0
        self.handed = 0

    def submit(self, kernel: Callable[..., None], *arguments: object) -> "_Turns":
        self.handed += 1
        began = time.thread_time()
        kernel(*arguments)
        self.first_began = time.thread_time()
        self.second = self.first_began - began
        return self

    def result(self) -> None:
        """Called when the first turn is done too: only the shorter of both is saved."""
        first = time.thread_time() - self.first_began
        self.shared += first + self.second
        self.saved += min(first, self.second)


class _Folds(_Turns):
    """In place of joblib's Parallel: each fold goes to the thread that is free first."""

    def __call__(self, tasks):
        results, ends = [], [0.0, 0.0]
        for function, arguments, options in tasks:
            began = time.thread_time()
            results.append(function(*arguments, **options))
            ends[ends.index(min(ends))] += time.thread_time() - began
        self.shared, self.saved = sum(ends), min(ends)
        return results


def thread_rows(repeat: int = 5):
    """Yield the lines of the table under `HEAD`, first what the machine itself can give."""
    yield "two loops that share nothing", "control", *_machine(repeat)
    for name, key, method, l1, l2 in SOLVED:
        data = getattr(datasets, key)()
        if data is None:
            continue
        problem = make_problem(*data, l1=l1, l2=l2)
        problem.design.columns  # noqa: B018

        def run(count, problem=problem, method=method):
            solve(replace(problem, threads=count), method=method, tol=1e-6)

        yield name, method, *_compared(run, threads, "_pool", repeat)
    X, y = datasets.rcv1()
    for folds in (5, 10):

        def search(count, folds=folds):
            ElasticNetClassifierCV(
                Cs=[0.01, 0.1, 1.0, 3.0, 10.0], l1_ratio=0.5, cv=folds, n_jobs=count, tol=1e-4
            ).fit(X, y)

        name = f"{folds} folds × 5 Cs, elastic-net logistic, rcv1 shape"
        rows = _compared(search, elastic_net_cv, "Parallel", max(1, repeat // 2))
        yield name, "ElasticNetClassifierCV", *rows


@njit(nogil=True)
def _loop(steps):
    total = 0.0
    for i in range(steps):
        total += np.sin(i * 1e-3)
    return total


@njit(nogil=True)
def _turn(turn, threads):
    """Keep both turns busy for some 100 µs."""
    _loop(10_000)


def _hand_over():
    """Seconds that a turn handed to the other thread is done later than one's own."""
    late = []
    for _ in range(200):
        began = time.perf_counter()
        _turn(0, 2)
        between = time.perf_counter()
        threads.share(_turn, 2)
        late.append((time.perf_counter() - between) - (between - began))
    return max(0.0, statistics.median(late))


def _wall(run):
    """Seconds by the clock on one thread, and then on two."""
    seconds = []
    for count in (1, 2):
        began = time.perf_counter()
        run(count)
        seconds.append(time.perf_counter() - began)
    return seconds


def _machine(repeat):
    """Seconds of two loops, one after the other and at once."""
    _loop(1)

    def run(count):
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(_loop, [30_000_000] * 2))

    one, two = map(statistics.median, zip(*(_wall(run) for _ in range(repeat)), strict=True))
    met = "yes" if one / two >= 1.6 else "no"
    ratio = f"{one / two:.2f}"
    return f"{one:.3f}", f"{two:.3f}", ratio, "100%", "2.00", ratio, ratio, met


def _compared(run, module, pool, repeat):
    wall, path = [], []
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        warnings.filterwarnings("ignore", message=".*delayed. should be used with")
        run(2)
        for _ in range(repeat):
            wall.append(_wall(run))
            turns = _Folds() if pool == "Parallel" else _Turns()
            with mock.patch.object(module, pool, lambda *_, turns=turns, **__: turns):
                began = time.thread_time()
                run(2)
                all_of_it = time.thread_time() - began
            longest = all_of_it - turns.saved
            path.append((all_of_it, turns.shared / all_of_it, longest, turns.handed))
    one, two = map(statistics.median, zip(*wall, strict=True))
    alone, shared, longest, handed = (statistics.median(each) for each in zip(*path, strict=True))
    slower = statistics.median(_beside(run, 2, repeat)) / statistics.median(_beside(run, 1, repeat))
    # Work done in both turns at once takes as much longer as two processes slow each other down.
    at_once = longest - (1.0 - shared) * alone
    bound = alone / (longest + (slower - 1.0) * at_once + handed * _hand_over())
    met = "yes" if one / two >= 1.6 else "no" if bound >= 1.6 else "bound below"
    figures = one / two, alone / longest, 2.0 / slower, bound
    ratio, perfect, processes, bound = (f"{figure:.2f}" for figure in figures)
    return f"{one:.3f}", f"{two:.3f}", ratio, f"{shared:.0%}", perfect, processes, bound, met


def _beside(run, count, repeat):
    """Seconds of one-thread runs in each of `count` processes, begun together."""
    fork = multiprocessing.get_context("fork")
    barrier, seconds = fork.Barrier(count), fork.SimpleQueue()

    def work():
        with warnings.catch_warnings(action="ignore"):
            for _ in range(repeat):
                barrier.wait()
                began = time.perf_counter()
                run(1)
                seconds.put(time.perf_counter() - began)

    workers = [fork.Process(target=work) for _ in range(count)]
    for worker in workers:
        worker.start()
    times = [seconds.get() for _ in range(count * repeat)]
    for worker in workers:
        worker.join()
    return times
