"""Arrays read from NumPy's files, in one thread at a time where Python needs that.

NumPy reads the headers of arrays by Python's own parser, which up to Python 3.11 fails now and
then where two threads use it at once (CPython's issue 106905).
"""

import os
import sys
from contextlib import nullcontext
from threading import Lock
from typing import Any

import numpy as np


def _new_lock() -> Any:
    return nullcontext() if sys.version_info >= (3, 12) else Lock()


_parser = _new_lock()


def _renew() -> None:
    """Forget who held the parser: in the child of a fork nobody does."""
    global _parser
    _parser = _new_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


def load_npy(path: Any, *, mmap_mode: Any = None) -> np.ndarray:
    """Read or map the one array of a file."""
    with _parser:
        found: np.ndarray = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
        return found


def load_npz(path: Any, under: str = "") -> dict[str, np.ndarray]:
    """Read the arrays of a file whose names begin with `under`, and call them by the rest."""
    with _parser, np.load(path, allow_pickle=False) as stored:
        names = [name for name in stored.files if name.startswith(under)]
        return {name.removeprefix(under): stored[name] for name in names}


def load_matrix(path: Any) -> Any:
    """Read a sparse matrix, as SciPy writes it."""
    from scipy import sparse  # what a search box reads has none

    with _parser:
        return sparse.load_npz(path)
