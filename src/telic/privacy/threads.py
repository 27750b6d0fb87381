"""How many threads a compiled loop is worth."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numba

SMALL = 1_000_000

ONE_AT_A_TIME = Lock()
"""Held around a parallel loop by tasks in threads: numba's default layer takes one at a time."""


@contextmanager
def threads_for(work: int) -> Iterator[int]:
    """Give one thread to fewer than a million steps, else all: waking threads costs more."""
    before = numba.get_num_threads()
    numba.set_num_threads(before if work >= SMALL else 1)
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)
