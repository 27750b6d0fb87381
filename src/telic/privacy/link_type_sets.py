"""The sets of link types that are judged: every one, or each alone and all where they are many."""

from collections.abc import Sequence
from itertools import combinations


def subsets(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return every non-empty subset, small ones first, in the order of `names`."""
    return [c for size in range(1, len(names) + 1) for c in combinations(names, size)]


MOST_TYPES = 5
"""Every subset of at most so many link types is judged."""


def sets_to_judge(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return every subset of link types; of more than `MOST_TYPES`, each alone, and all."""
    if len(names) <= MOST_TYPES:
        return subsets(names) or [()]
    return [*((name,) for name in names), tuple(names)]
