"""Products with the rows of a matrix in compiled code, a share of the rows for each thread."""

from telic.kernels import kernel
from telic.optim.rows import (
    entries,
    entries_before,
    entries_within,
    entry,
    row_square,
    rows_add,
    rows_dot,
)

_VISIT = 8
"""Stored entries whose products cost as much as going to another row."""


@kernel
def _cut(A, n, turn, threads):
    """First row of the share `turn`, when rows are shared by their entries and visits."""
    goal = (entries_before(A, n) + _VISIT * n) * turn // threads
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if entries_before(A, middle) + _VISIT * middle < goal:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def products(A, w, b, out, turn, threads):
    """Inner products of the rows with w, plus b; a share costs as much as another."""
    begin, end = _cut(A, out.size, turn, threads), _cut(A, out.size, turn + 1, threads)
    rows_dot(A, None, begin, end, 1, w, out)
    if b != 0.0:
        for i in range(begin, end):  # to add to a slice takes as long to compile as all of this
            out[i] += b


@kernel
def combine(A, a, out, turn, threads):
    """Sum of the rows, weighted by a, of each run of rows into a line of out."""
    runs = out.shape[0]
    for run in range(turn, runs, threads):
        line = out[run]
        line[:] = 0.0
        rows_add(A, a.size * run // runs, a.size * (run + 1) // runs, a, line)


@kernel
def some_products(columns, working, a, out, turn, threads):
    """Inner products of some columns with a."""
    rows_dot(columns, working, turn, working.size, threads, a, out)


@kernel
def some_sums(columns, working, move, out, turn, threads):
    """Add the columns, weighted by move, to a share of out."""
    low, high = out.size * turn // threads, out.size * (turn + 1) // threads
    for r in range(working.size):
        if move[r] == 0.0:
            continue
        start, end = entries(columns, working[r])
        if threads > 1:
            start, end = entries_within(columns, working[r], low, high)
        for p in range(start, end):
            i, x = entry(columns, working[r], p)
            out[i] += move[r] * x


@kernel
def squares(A, out):
    """Squared norms of all rows."""
    for i in range(out.size):
        out[i] = row_square(A, i)
