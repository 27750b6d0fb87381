"""The level of confidence intervals, checked."""

from telic.errors import InputError


def checked_level(level: float) -> float:
    """Return the level.

    Raises
    ------
    InputError
        If it is no number between 0 and 1.
    """
    if not 0 < level < 1:
        raise InputError(f"level: {level!r}, expected a number between 0 and 1.")
    return level
