"""Kernels whose work falls apart into shares, run in Python's threads; and BLAS's own threads."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

from threadpoolctl import ThreadpoolController

SMALLEST = 200_000
"""Stored entries below which a second thread costs more than it saves."""
SMALL_MATRIX = 512
"""Lines of a matrix up to which BLAS works alone."""


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


@contextmanager
def small_products(size: int) -> Iterator[None]:
    """Keep BLAS to one thread while matrices of at most `SMALL_MATRIX` lines are multiplied.

    Its threads wait for each other by spinning. That costs small products more than it saves, and
    many times their time where the cores are shared with others, as in a container. The number
    belongs to the process: of fits that run in threads of their own one sets and resets it.
    """
    if size > SMALL_MATRIX or not _setting.acquire(blocking=False):
        yield
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _setting.release()


_setting = RLock()


@cache
def _controller() -> ThreadpoolController:
    """Return what knows the BLAS libraries that are loaded: finding them takes milliseconds."""
    return ThreadpoolController()
