"""Columns of numbers, and the level of an interval, checked."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from telic.errors import InputError


def checked_numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Return values as floats; a missing time is NaN, too.

    Raises
    ------
    InputError
        If they are no numbers, or some are masked: NumPy would go on with what is under the mask.
    """
    refuse_masked(name, values)
    try:
        numbers = np.asarray(values, dtype=float)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{name}: cannot be read as numbers ({error}).") from None
    times = np.asarray(values)
    # As a number NaT would be the earliest time there is.
    return np.where(np.isnat(times), np.nan, numbers) if times.dtype.kind in "mM" else numbers


def checked_level(level: float) -> float:
    """Return the level of a confidence interval; InputError if it is not between 0 and 1."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise InputError(f"level: {level!r}, expected a number between 0 and 1.")
    return level


def refuse_masked(name: str, values: ArrayLike) -> None:
    """Raise InputError if some of the values are masked."""
    if np.ma.is_masked(values):
        raise InputError(
            f"{name} is a masked array with {np.ma.count_masked(values)} values masked, which "
            "would be used all the same. Drop them or fill them in (.filled)."
        )
