"""Arrays that grow at their end, in memory or in files."""

import ctypes
import mmap
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from telic.data.atomic_writes import telling_if_full


class Growing:
    """An array that grows in place: a list of parts would be held beside what is made of them."""

    def __init__(self, kind: Any, room: int = 1024) -> None:
        self._room, self._used = np.empty(room, kind), 0

    def add(self, values: np.ndarray) -> None:
        """Add values at the end."""
        end = self._used + len(values)
        if end > len(self._room):
            self._room.resize(max(end, 3 * len(self._room) // 2), refcheck=False)
        self._room[self._used : end] = values
        self._used = end

    def values(self) -> np.ndarray:
        """Return all of them; none may be added after this."""
        self._room.resize(self._used, refcheck=False)
        return self._room


class GrowingFile:
    """An array that grows in a temporary file, for what does not fit into memory.

    The file has no name, and goes with the last array that was mapped from it.
    """

    def __init__(self, folder: Path, kind: Any) -> None:
        self._folder, self._kind = folder, np.dtype(kind)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._size = 0

    def add(self, values: np.ndarray) -> None:
        """Add values at the end."""
        with telling_if_full(self._folder):
            np.asarray(values, self._kind).tofile(self._file)
        self._size += len(values)

    def values(self, mode: Any = "c") -> np.ndarray:
        """Return all of them, mapped; none may be added after this.

        Kernels see arrays of the usual kind with the mode "c": what is written to them stays in
        memory. With "r" nothing can be.
        """
        if not self._size:  # which cannot be mapped
            return np.empty(0, self._kind)
        return np.asarray(np.memmap(self._file, self._kind, mode))


def let_go(*arrays: np.ndarray) -> None:
    """Give back what memory holds of mapped files; what is read again is read from the disk.

    The system does so by itself where memory is short. Nobody may have written to the arrays.
    """
    for array in arrays:
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            base.madvise(mmap.MADV_DONTNEED)


def trim() -> None:
    """Give back what allocators keep of freed memory, some hundred MiB after large work."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL("libc.so.6").malloc_trim(0)
