"""Kernels whose work falls apart into shares, run in Python's threads."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

SMALLEST = 200_000
"""Stored entries below which a second thread costs more than it saves."""


def share(kernel: Callable[..., None], threads: int, *arguments: Any) -> None:
    """Run kernel(*arguments, turn, threads) for every turn from 0 to threads − 1 at once.

    A kernel writes what no other turn writes, and sums what must be summed in blocks that do not
    depend on `threads`: so the result does not either. Kernels release the GIL. Numba's own
    parallel loops are not used: their layer may not be entered from several threads, as folds of
    a cross-validation do.
    """
    if threads == 1:
        kernel(*arguments, 0, 1)
        return
    pool = _pool(os.getpid(), threads)
    others = [pool.submit(kernel, *arguments, turn, threads) for turn in range(1, threads)]
    kernel(*arguments, 0, threads)
    for other in others:
        other.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the pool of this process: a fork does not inherit its parent's threads."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix=f"telic-{process}")
