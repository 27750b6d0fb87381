"""Wall time on one thread and on two, for what can use them."""

import statistics
import time
import warnings
from dataclasses import replace

from sklearn.exceptions import ConvergenceWarning

from benchmarks.optim import datasets
from telic.optim import ElasticNetClassifierCV, make_problem, solve

SOLVED = (
    ("l1 logistic, rcv1 shape", "rcv1", "prox_newton", 1e-4, 0.0),
    ("elastic-net logistic, rcv1 shape", "rcv1", "prox_newton", 1e-5, 1e-5),
    ("elastic-net logistic, covtype", "covtype", "gram", 1e-4, 1e-4),
    ("elastic-net logistic, rcv1 shape", "rcv1", "svrg", 1e-5, 1e-5),
)


def thread_rows(repeat: int = 5):
    """Yield work, method, seconds on one thread and on two, and their ratio."""
    for name, key, method, l1, l2 in SOLVED:
        data = getattr(datasets, key)()
        if data is None:
            continue
        problem = make_problem(*data, l1=l1, l2=l2)
        problem.design.columns  # noqa: B018
        yield (
            name,
            method,
            *_timed(
                lambda threads, problem=problem, method=method: solve(
                    replace(problem, threads=threads), method=method, tol=1e-6
                ),
                repeat,
            ),
        )
    X, y = datasets.rcv1()
    yield (
        "5 folds × 5 Cs, elastic-net logistic, rcv1 shape",
        "ElasticNetClassifierCV",
        *_timed(
            lambda threads: ElasticNetClassifierCV(
                Cs=[0.01, 0.1, 1.0, 3.0, 10.0], l1_ratio=0.5, n_jobs=threads, tol=1e-4
            ).fit(X, y),
            max(1, repeat // 2),
        ),
    )


def _timed(run, repeat):
    times = {1: [], 2: []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run(2)
        for _ in range(repeat):
            for threads, each in times.items():
                began = time.perf_counter()
                run(threads)
                each.append(time.perf_counter() - began)
    one, two = (statistics.median(each) for each in times.values())
    return f"{one:.3f}", f"{two:.3f}", f"{one / two:.2f}"
