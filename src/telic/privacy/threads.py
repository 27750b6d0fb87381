"""How many threads a compiled loop is worth."""

from collections.abc import Iterator
from contextlib import contextmanager

import numba

SMALL = 1_000_000


@contextmanager
def threads_for(work: int) -> Iterator[int]:
    """Give one thread to fewer than a million steps, else all: waking threads costs more."""
    before = numba.get_num_threads()
    numba.set_num_threads(before if work >= SMALL else 1)
    try:
        yield numba.get_num_threads()
    finally:
        numba.set_num_threads(before)
