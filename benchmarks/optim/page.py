"""The speed page: the table against rivals, two threads, memory."""

from pathlib import Path

from benchmarks.optim.memory import memory_rows
from benchmarks.optim.run import HEAD, speed_rows
from benchmarks.optim.two_threads import thread_rows

TITLE = """# Speed of telic.optim

Written by `make bench ARGS="--output docs/optim-speed.md"`. Processor seconds of one thread,
compilation and conversion of matrices excluded, medians of {repeat} runs that take turns. The
relative gap is (P(w) − P*)/(P(0) − P*); each solver runs with the least effort that reaches it (its
tolerance in powers of ten, or its passes). rcv1 and E2006 are stand-ins of the same shape from a
topic model (simulated).

"""
THREADS = """
## Two threads

Wall seconds, both at the same result to the last bit. Gram descent forms its Hessian line by line,
proximal Newton its Gram matrix and gradients; folds of a cross-validation are independent. SVRG's
full gradients could be shared, its steps cannot, and they are most of the time. In SGD, SBCD, SAGA,
MRBCD, ASBCD and SDCA every step needs the one before: they run on one thread.

"""
MEMORY = """
## Memory beyond the data

Peak of Python's allocations (tracemalloc) from building the problem to the solution, beyond X, y
and one transposed copy, beside the limit of 3 vectors of length n and 6 of length d. The last
column leaves out the sample weights (1 of length n, held as data) and Gram descent's d².

What keeps the others above the limit, in vectors of length n: ASBCD and SAGA hold the table of
Remark 4.2.1 (1), probabilities and alias table in single precision (1.5), and the predictions, then
slopes, while the gap is looked at (1); SDCA its dual variables, the rows' squared norms, the dual
point handed to the gap, and the predictions there; the Newton methods predictions, slopes,
curvatures and the move's predictions at once. In vectors of length d ASBCD holds w, the sum and the
clock (3), the result (1), the gap's gradient and its excess (2 to 3). Proximal Newton adds the Gram
matrix of its working set, which never holds more numbers than the data.

"""


def speed_page(*, only: str, repeat: int, limit: float, done: Path | None) -> str:
    """Return the page in Markdown; with `only`, the speed table alone."""
    page = TITLE.format(repeat=repeat)
    page += _table(HEAD, speed_rows(only=only, repeat=repeat, limit=limit, done=done))
    if only:
        return page
    columns = ("work", "method", "one thread, s", "two, s", "ratio")
    page += THREADS + _table(columns, thread_rows(repeat))
    columns = ("data", "shape", "method", "peak, MiB", "limit, MiB", "peak/limit", "without")
    return page + MEMORY + _table(columns, memory_rows())


def _table(columns, rows) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
