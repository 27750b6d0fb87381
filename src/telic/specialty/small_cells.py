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

    Where one is small, the two smallest of the others are withheld with it, and those that equal
    the larger of the two: then nobody who knows the total and this rule can tell a small count.
    Where there are not two, or the total would still pin what is small, all counts are withheld.

    Examples
    --------
    >>> cells([90, 36, 16, 3]), cells([36, 16]), cells([29, 10, 10])
    ([90, 'withheld', 'withheld', '<11'], [36, 16], ['withheld', 'withheld', 'withheld'])
    """
    small = [count for count in counts if 0 < count < SMALL_CELL]
    if not small or sum(counts) < SMALL_CELL:  # the total itself is a small cell
        return [cell(count) for count in counts]
    large = sorted(count for count in counts if count >= SMALL_CELL)
    if len(large) > 1:
        withheld = [count for count in large if count <= large[1]]
        beyond = min(large[len(withheld) :], default=sum(counts))
        if not _pinned(len(small), len(withheld), sum(small) + sum(withheld), beyond):
            return [
                "withheld" if SMALL_CELL <= count <= large[1] else cell(count) for count in counts
            ]
    return ["withheld" if count else 0 for count in counts]


def _pinned(small: int, withheld: int, total: int, beyond: int) -> bool:
    """Whether one sum only is possible of so many small counts, given their total with others.

    The others are a and, `withheld` - 1 times, b, where 11 <= a <= b < `beyond`.
    """
    most = (SMALL_CELL - 1) * small
    sums: set[int] = set()
    for b in range(max(SMALL_CELL, -((most - total) // withheld)), beyond):
        highest = total - (withheld - 1) * b - SMALL_CELL
        if highest < small:
            break
        sums |= {max(small, total - withheld * b), min(most, highest)}
        if len(sums) > 1:
            return False
    return True
