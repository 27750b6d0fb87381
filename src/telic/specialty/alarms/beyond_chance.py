"""What counts as a reason: a figure more frequent among accesses than among random records.

A threshold is where the share of accesses above it, less a multiple of the share of records drawn
at random above it, is largest. Reasons are asked in turn: both shares leave out what has one.
"""

import numpy as np

from telic.specialty.log.access_log import AccessLog

KINDS = ("none", "colleagues", "declared", "practised")
"""Reasons, in the order in which they are asked."""
RANDOM_RECORDS = 20_000
"""Random records that are looked at, at most."""
LIKELIER = 1.0
"""How many times as frequent among accesses a figure must be as among random records. With 1, as
many more accesses as possible are explained than random records."""
SPECIALTY_LIKELIER = 3.0
"""The same for specialties, whose patients many see who have no reason."""


def random_records(log: AccessLog, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw users by their number of accesses, and for each an encounter that somebody opened.

    Pairs of which the user did so are left out.
    """
    rng = np.random.default_rng(seed)
    user = rng.choice(log.access_user, RANDOM_RECORDS)
    encounter = rng.choice(np.unique(log.access_encounter), RANDOM_RECORDS)
    opened = log.user_encounter()
    strange = np.asarray(opened[user, encounter]).ravel() == 0
    return user[strange], encounter[strange]


def limit(accesses: np.ndarray, by_chance: np.ndarray, *, likelier: float) -> float:
    """Return the threshold: what a figure must exceed to be a reason.

    It is infinite if no figure of accesses is likelier enough than those of random records, or
    nothing was given.

    Examples
    --------
    >>> limit(np.array([0.0, 1.0, 2.0, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]), likelier=1.0)
    1.0
    """
    if not len(accesses) or not len(by_chance):
        return np.inf
    tried = np.unique(np.concatenate([accesses, by_chance]))
    above = [
        1 - np.searchsorted(np.sort(x), tried, side="right") / len(x) for x in (accesses, by_chance)
    ]
    gain = above[0] - likelier * above[1]
    best = int(gain.argmax())
    return float(tried[best]) if gain[best] > 0 else np.inf


class FirstReasons:
    """The first reason of each access, of reasons that are asked in turn.

    Attributes
    ----------
    made, chance : tuple of ndarray
        User and encounter of each access, in the order of ``log.access_row``, and of each random
        record.
    kind : ndarray of int
        Place in `KINDS` of each access's reason.
    """

    def __init__(self, log: AccessLog, seed: int = 0) -> None:
        self.made = log.access_user, log.access_encounter
        self.chance = random_records(log, seed)
        self.kind = np.zeros(len(self.made[0]), dtype=np.int8)
        self._explained = np.zeros(len(self.chance[0]), dtype=bool)  # of the random records

    def ask(self, kind: str, figures: np.ndarray, by_chance: np.ndarray, likelier: float) -> None:
        """Give a reason to accesses that have none and whose figure is above the threshold."""
        rest, at_random = self.kind == 0, ~self._explained
        least = limit(figures[rest], by_chance[at_random], likelier=likelier)
        self._explained[at_random & (by_chance > least)] = True
        self.kind[rest & (figures > least)] = KINDS.index(kind)
