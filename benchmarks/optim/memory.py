"""Peak memory of each method beyond the data, beside 3 vectors of length n and 6 of length d."""

import tracemalloc
import warnings
from unittest import mock

from sklearn.exceptions import ConvergenceWarning

from benchmarks import datasets
from telic.optim import make_problem, solve
from telic.optim.design import as_design
from telic.optim.methods.prox_newton_gram import WorkingGram

HEAD = ("data", "shape", "method", "peak, MiB", "limit, MiB", "peak/limit", "without")
METHODS = ("asbcd", "saga", "svrg", "mrbcd", "sgd", "sbcd", "sdca", "prox_newton", "gram")


def memory_rows():
    """Yield the lines of the table under `HEAD`."""
    for name in ("rcv1", "covtype"):
        data = getattr(datasets, name)()
        if data is None:
            continue
        design = as_design(data[0])
        design.rows, design.columns  # noqa: B018  (the data and their transposed copy)
        n, d = design.n, design.d
        for method in METHODS:
            if method == "gram" and d > 4096:
                continue
            sizes = [d] if method == "gram" else [0]
            with warnings.catch_warnings(), _working_sets(sizes):
                warnings.simplefilter("ignore", ConvergenceWarning)
                _solve(design, data[1], method)  # compiles
                tracemalloc.start()
                _solve(design, data[1], method)
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            limit = 8 * (3 * n + 6 * d)
            # A working set's matrix is summed in a copy of itself.
            matrices = 8 * max(sizes) ** 2 * (1 if method == "gram" else 2)
            yield (
                name,
                f"{n:,} × {d:,}",
                method,
                f"{peak / 2**20:.2f}",
                f"{limit / 2**20:.2f}",
                f"{peak / limit:.2f}",
                f"{(peak - matrices) / limit:.2f}",
            )


def _working_sets(sizes):
    """Note how many features each Gram matrix of a working set holds."""
    extend = WorkingGram.extend

    def noted(gram, new):
        extend(gram, new)
        sizes.append(gram.features.size)

    return mock.patch.object(WorkingGram, "extend", noted)


def _solve(design, y, method):
    problem = make_problem(design, y, l1=1e-4, l2=1e-4)
    solve(problem, method=method, tol=1e-4, max_passes=6)
