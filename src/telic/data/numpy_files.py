"""Arrays read from NumPy's files, in one thread at a time.

NumPy reads the headers of arrays by Python's own parser, which up to Python 3.11 fails now and
then where two threads use it at once (CPython's issue 106905).
"""

from threading import Lock
from typing import Any

import numpy as np

PARSER = Lock()
"""Held while Python's parser is at work."""


def load_npy(path: Any, *, mmap_mode: Any = None) -> np.ndarray:
    """Read or map the one array of a file."""
    with PARSER:
        found: np.ndarray = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
        return found


def load_npz(path: Any, under: str = "") -> dict[str, np.ndarray]:
    """Read the arrays of a file whose names begin with `under`, and call them by the rest."""
    with PARSER, np.load(path, allow_pickle=False) as stored:
        names = [name for name in stored.files if name.startswith(under)]
        return {name.removeprefix(under): stored[name] for name in names}
