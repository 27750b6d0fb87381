"""Why a partition was not finished, and how to say it."""

import errno
import sys
import traceback
from contextlib import suppress
from typing import Any

from telic.errors import InputError, JobError, TelicError

SMALLER = "smaller pieces (piece=, --piece) or more memory (memory=, --memory)"
"""What helps where memory does not suffice."""
FULL = (errno.ENOSPC, errno.EDQUOT)
FRAMES = 20
"""How many of the innermost calls an error tells of that comes from another process."""
PLAIN = str, int, float, type(None)
"""What an error may be made of that goes to another process as it is."""
LASTING = (*FULL, errno.ENOENT, errno.EACCES, errno.EROFS)


class LostWorker(JobError):
    """The process that worked on a partition died; other partitions may have killed it."""


class Lost(JobError):
    """The whole cluster is gone."""


def passing(error: BaseException) -> bool:
    """Whether another attempt may succeed: storage may fail for a moment, a full disk stays."""
    return isinstance(error, OSError) and error.errno not in LASTING


def said(error: BaseException) -> str:
    """Say in one line what went wrong, without a full stop."""
    if isinstance(error, OSError) and error.errno in FULL:
        return "the disk is full; make room, or put the job's folder elsewhere"
    if isinstance(error, MemoryError):
        return f"takes more memory than there is; give {SMALLER}"
    text = (str(error).splitlines() or [""])[0][:300].rstrip(".")
    kind = "" if isinstance(error, TelicError) else type(error).__name__
    return ": ".join(filter(None, (kind, text)))


def portable(error: BaseException) -> Exception:
    """Return an error that another process can read: its like of plain parts, else its words.

    Its frames stay here, and their text goes along as a note.
    """
    found: Exception = JobError(said(error))
    with suppress(Exception):  # whatever its own methods raise
        made_by: Any = error.__reduce__()
        kind, parts = made_by[:2]
        known = getattr(sys.modules[kind.__module__], kind.__qualname__, None) is kind
        if known and all(isinstance(part, PLAIN) for part in parts):
            again = kind(*parts)
            if isinstance(again, Exception) and said(again) == said(error):
                found = again
    found.add_note("".join(traceback.format_exception(error, limit=-FRAMES)))
    return found


def failure(name: str, error: BaseException, finished: int, total: int, kept: bool) -> JobError:
    """Make the error that ends a job."""
    begun = "" if isinstance(error, Lost) else f"partition {name}: "
    more = " and kept: the same job goes on from there" if kept and finished else ""
    # Once the input is mended it is another job.
    left = "" if isinstance(error, InputError) else f" {finished} of {total} are finished{more}."
    found = JobError(f"{begun}{said(error)}.{left}")
    found.__cause__ = error
    return found
