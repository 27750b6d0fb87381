"""The exceptions of telic.

::

    TelicError
    ├── InputError    what the user gave cannot be used: a file, a row, a value, a parameter
    │   ├── AnotherJobError  a folder of pieces holds the results of another job
    │   ├── DivergedError    the steps of a fit grew without bound on these rows
    │   └── TooManyPairs     an attack would compare more pairs than it was allowed to
    ├── ModelError    a saved model is damaged, or newer than this version of telic
    ├── JobError      a partition of a job could not be worked on
    │   ├── LostWorker       the process that worked on it died
    │   └── Lost             the whole cluster is gone
    └── ServiceError  the service of a search box did not do what its client asked

The command line prints the message of a `TelicError` on one line and exits with code 2.
"""

import math
import warnings
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any


class TelicError(Exception):
    """Base of every error that telic raises on purpose; its message is one line."""

    def __str__(self) -> str:
        # Other libraries, whose words some messages quote, break theirs into lines.
        text = super().__str__()
        return " ".join(text.split()).replace(" )", ")") if "\n" in text else text


class InputError(TelicError, ValueError):
    """What was given breaks its contract; the message says what, where, and what to do."""


class DivergedError(InputError):
    """The steps of a fit grew without bound; scaled columns or another parameter may mend it."""


class ModelError(TelicError):
    """A saved model cannot be read: damaged, incomplete, of another kind, or of a newer format."""


class JobError(TelicError):
    """A job over partitions cannot end: a partition fails wherever it runs, or nothing runs it."""


def expect_one_of(known: Collection[str], /, **given: Any) -> None:
    """Raise InputError unless each of the parameters given is one of the names known."""
    for parameter, value in given.items():
        if not isinstance(value, str) or value not in known:
            raise InputError(f"{parameter} is {value!r}, expected one of {', '.join(known)}.")


def expect_at_least(low: float, /, **given: Any) -> None:
    """Raise InputError unless each of the parameters given is a finite number, `low` or more."""
    for parameter, value in given.items():
        known = isinstance(value, Real)
        if not (known and low <= value < math.inf):
            raise InputError(f"{parameter} is {value!r}, expected a finite number >= {low:g}.")


def expect_whole(low: int, /, **given: Any) -> None:
    """Raise InputError unless each of the parameters given is a whole number, `low` or more."""
    for parameter, value in given.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not (whole and value >= low):
            raise InputError(f"{parameter} is {value!r}, expected a whole number >= {low}.")


def expect_above(low: float, /, **given: Any) -> None:
    """Raise InputError unless each of the parameters given is a finite number above `low`."""
    for parameter, value in given.items():
        known = isinstance(value, Real)
        if not (known and low < value < math.inf):
            raise InputError(f"{parameter} is {value!r}, expected a finite number > {low:g}.")


def warn_unconverged(message: str, *, stacklevel: int) -> None:
    """Warn of a fit that missed its tolerance, as scikit-learn does.

    scikit-learn is imported here, once there is something to say: it takes a second.

    Parameters
    ----------
    message : str
    stacklevel : int
        As of `warnings.warn`: 1 is the function that calls this one.
    """
    from sklearn.exceptions import ConvergenceWarning

    warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)
