"""Numbers of people, items and the like, which every simulator checks alike."""

from telic.errors import InputError


def at_least_one(**counts: int) -> None:
    """Refuse a number below 1 by its name."""
    for name, number in counts.items():
        if number < 1:
            raise InputError(f"{name} is {number}, expected at least 1.")
