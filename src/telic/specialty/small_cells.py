"""Counts of people, written so that a small one is neither shown nor had by subtraction."""

from collections.abc import Sequence

SMALL_CELL = 11
"""Counts below this are not shown."""


def shown(count: int) -> str:
    """Write a count of people, or "<11" for a small cell.

    Examples
    --------
    >>> shown(1234), shown(3)
    ('1,234', '<11')
    """
    return f"{count:,}" if count >= SMALL_CELL or count == 0 else f"<{SMALL_CELL}"


def cell(count: int) -> int | str:
    """Return a count of people as a table holds it: a number, or "<11" for a small cell.

    Examples
    --------
    >>> cell(1234), cell(3)
    (1234, '<11')
    """
    return shown(count) if 0 < count < SMALL_CELL else count


def cells(counts: Sequence[int]) -> list[int | str]:
    """Return counts that add up to a known total as a table holds them.

    What the total leaves for the small cells must not pin them: one alone is had by subtraction,
    and several are if all of them are 1 or all of them 10. Then the next smallest count is
    withheld with them, and if there is none left, the small cells are too.

    Examples
    --------
    >>> cells([36, 16, 3]), cells([36, 16]), cells([29, 10, 10])
    ([36, 'withheld', '<11'], [36, 16], ['withheld', '<11', '<11'])
    """
    held = [cell(count) for count in counts]
    small = [count for count in counts if 0 < count < SMALL_CELL]
    if not small or sum(counts) < SMALL_CELL:  # the total itself is a small cell
        return held
    large = sorted((i for i, n in enumerate(counts) if n >= SMALL_CELL), key=lambda i: counts[i])
    withheld: list[int] = []
    while _pinned(small, [counts[i] for i in withheld]):
        if len(withheld) == len(large):
            return ["withheld" if count else 0 for count in counts]
        withheld.append(large[len(withheld)])
        held[withheld[-1]] = "withheld"
    return held


def _pinned(small: Sequence[int], withheld: Sequence[int]) -> bool:
    """Whether one value only is possible for cells of 1 to 10 and withheld ones of 11 or more."""
    total = sum(small) + sum(withheld)
    least = len(small) + SMALL_CELL * len(withheld)
    if withheld:
        return total == least
    return len(small) == 1 or total in (least, (SMALL_CELL - 1) * len(small))
