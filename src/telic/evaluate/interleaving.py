"""Two rankings in one list, and which of them people choose from.

Team-draft interleaving: Radlinski, Kurup and Joachims (CIKM 2008).
"""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np


class Interleaved(NamedTuple):
    """A list drawn from two, and whose pick each item is."""

    items: list[Hashable]
    teams: list[int]
    """0 for the first ranking, 1 for the second."""
    propensity: float
    """Probability with which these teams made these picks."""


def team_draft(
    a: Sequence[Hashable], b: Sequence[Hashable], *, length: int, seed: int | np.random.Generator
) -> Interleaved:
    """Draw one list from two rankings, each of which picks its best that is left in turn.

    The ranking that has picked less often picks next; a fair coin tells between equals.

    Parameters
    ----------
    a, b : sequence
        Items, best first, none twice in one of them.
    length : int
        Items to draw at most; there are fewer if the rankings have fewer.
    seed : int or numpy.random.Generator

    Examples
    --------
    >>> drawn = team_draft("xy", "yx", length=2, seed=0)
    >>> drawn.items, drawn.teams, drawn.propensity
    (['y', 'x'], [1, 0], 0.5)
    """
    items: list[Hashable] = []
    teams: list[int] = []
    propensity, rng = 1.0, np.random.default_rng(seed)
    while len(items) < length:
        left = [[item for item in ranking if item not in items][:1] for ranking in (a, b)]
        counts = [teams.count(0), teams.count(1)]
        if not any(left):
            break
        if not all(left):
            team = 0 if left[0] else 1
        elif counts[0] != counts[1]:
            team = int(counts[1] < counts[0])
        else:
            team = int(rng.integers(2))
            propensity /= 2
        items += left[team]
        teams.append(team)
    return Interleaved(items, teams, propensity)


def preference(drawn: Interleaved, chosen: Hashable | None) -> int:
    """Return 1 if what was chosen is a pick of the second ranking, −1 of the first, 0 of none.

    Where both rankings are equally good its mean is zero; `telic.evaluate.paired_t_test` of it
    against zeros, by user, tests that.
    """
    if chosen is None or chosen not in drawn.items:
        return 0
    return 2 * drawn.teams[drawn.items.index(chosen)] - 1
