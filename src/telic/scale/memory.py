"""Amounts of memory: as people write them, and what this machine has."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from telic.errors import InputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
LEAST = 64 * 2**20
"""Bytes below which no task can do anything."""
SMALLEST_PIECE = 2**20
"""Bytes below which no partition is cut."""
CONTAINER = Path("/sys/fs/cgroup/memory.max")
"""Where Linux says what a container may take: a number of bytes, or max."""


def parse_memory(text: str | int, least: int = LEAST, called: str = "memory") -> int:
    """Return a number of bytes.

    Parameters
    ----------
    text : str or int
        Such as ``"2GiB"``, ``"500 MB"`` or a number of bytes.
    least : int
        Fewest bytes that will do; by default 64 MiB.
    called : str
        What messages call the amount.

    Raises
    ------
    InputError
        If it is no amount of memory, or too little.

    Examples
    --------
    >>> parse_memory("2GiB"), parse_memory("500 MB")
    (2147483648, 500000000)
    """
    found = re.fullmatch(r"\s*(\d{1,18}(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", str(text), re.IGNORECASE)
    unit = found and _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise InputError(f"{called} is {text!r}, expected an amount such as 2GiB or 500MB.")
    size = int(float(found[1]) * unit)
    if size < least:
        raise InputError(f"{called} is {text!r}, expected at least {least >> 20}MiB.")
    return size


def said(size: float) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> said(3 * 2**30), said(1500)
    ('3.0 GiB', '1.5 KiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024
    return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"


def of_this_machine() -> int:
    """Return the bytes of memory that this machine has, or that this container may take."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no container, or one without a bound
        return min(there, int(CONTAINER.read_text()))
    return there


_TASK: ContextVar[int] = ContextVar("memory of the task", default=2**30)


def of_task() -> int:
    """Return the bytes that the task which this thread works on may take."""
    return _TASK.get()


@contextmanager
def granted(size: int) -> Iterator[None]:
    """Let the task within take so many bytes."""
    token = _TASK.set(size)
    try:
        yield
    finally:
        _TASK.reset(token)
