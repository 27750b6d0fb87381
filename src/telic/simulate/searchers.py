"""Simulated searchers: query logs in which habits, sessions and time cause queries, or do not."""

from dataclasses import astuple, dataclass

import numpy as np

from telic.data.queries import QueryLog
from telic.errors import InputError, expect_at_least, expect_whole

HOUR = 3600 * 1_000_000
BEGIN = 1_767_225_600_000_000  # Thursday, 1 January 2026
ROUNDING = 1e-9
SYLLABLES = [c + v for c in "bcdfghjklmnprstvw" for v in ("a", "e", "i", "o", "u", "ai", "or")]


@dataclass(frozen=True)
class Causes:
    """Probabilities that a query has each cause; all 0 leaves popularity alone.

    Those of `refine` to `repeat` sum to 1 at most, and so do those of `season` and `trend`.

    Parameters
    ----------
    habit : float
        A session begins with a query that the user has used for ever.
    refine : float
        A query of a session adds a word to the one before.
    sibling : float
        It has the same noun and another second word.
    associated : float
        It is of a noun that goes with the one before, the same for everybody.
    repeat : float
        It was submitted before in the session.
    season : float
        It is drawn among the nouns of this hour of the day.
    trend : float
        It is drawn among the nouns that are in fashion for a few days.
    """

    habit: float = 0.25
    refine: float = 0.2
    sibling: float = 0.15
    associated: float = 0.15
    repeat: float = 0.1
    season: float = 0.15
    trend: float = 0.1

    def __post_init__(self) -> None:
        next_one = self.refine + self.sibling + self.associated + self.repeat
        for part in (*astuple(self), next_one, self.season + self.trend):
            if not 0 <= part <= 1 + ROUNDING:
                raise InputError(f"{self}: expected probabilities, whose sums are at most 1.")


def searchers(
    causes: Causes = Causes(),
    *,
    at_end: Causes | None = None,
    moves: float = 0.0,
    users: int = 400,
    sessions: int = 40,
    nouns: int = 300,
    days: int = 90,
    seed: int = 0,
) -> QueryLog:
    """Simulate a query log.

    A phrase is a noun with none, one or two of eight other words, all made of random syllables.
    Nouns, and phrases of a noun, are drawn by Zipf's law. Each user has three habitual queries.
    Sessions begin at any time, with more in the evening, and hold 2.5 queries on average.

    Parameters
    ----------
    causes : Causes
        Of the first day.
    at_end : Causes, optional
        Of the last day: from the first one on, each changes evenly. By default nothing changes.
    moves : float >= 0
        How much the popularity of nouns moves, evenly from the first day to the last: the standard
        deviation of the change of its logarithm.
    users, sessions : int
        Of each user, so many sessions.
    nouns, days : int
    seed : int

    Raises
    ------
    InputError
        If a number is below 1, or `moves` is none from 0.

    Examples
    --------
    >>> log = searchers(users=3, sessions=2, nouns=5)
    >>> len(log.users), len(log.query) >= 6
    (3, True)
    """
    expect_whole(1, users=users, sessions=sessions, nouns=nouns, days=days)
    expect_at_least(0, moves=moves)
    rng = np.random.default_rng(seed)
    words = _words(nouns + 8 * nouns, rng)
    popular = 1 / np.arange(1, nouns + 1)
    season = rng.integers(24, size=nouns)
    goes_with = rng.permutation(nouns)
    ends = astuple(causes), astuple(at_end or causes)
    fashion = rng.choice(nouns, size=(days // 3 + 1, 3))  # three nouns, three days

    change = moves * np.random.default_rng([seed, 1]).standard_normal(nouns)

    def by_then(at: int) -> float:
        return min((at - BEGIN) / (24 * HOUR * days), 1.0)

    def causes_of(at: int) -> Causes:
        if at_end is None:
            return causes
        part = by_then(at)
        return Causes(*((1 - part) * a + part * b for a, b in zip(*ends, strict=True)))

    def noun(at: int) -> int:
        draw, now = rng.random(), causes_of(at)
        if draw < now.trend:
            return int(rng.choice(fashion[(at - BEGIN) // (72 * HOUR)]))
        weight = popular * np.exp(by_then(at) * change) if moves else popular
        if draw < now.trend + now.season:
            weight = weight * (season == at // HOUR % 24)
        return int(rng.choice(nouns, p=weight / weight.sum())) if weight.any() else 0

    def phrase(n: int, length: int | None = None) -> tuple[int, ...]:
        length = int(rng.choice(3, p=[0.3, 0.5, 0.2])) if length is None else length
        others = rng.choice(8, size=length, replace=False, p=_zipf(8))
        return (n, *(nouns + 8 * n + others).tolist())

    rows: list[tuple[int, int, tuple[int, ...]]] = []
    for user in range(users):
        habits = [phrase(int(rng.choice(nouns, p=_zipf(nouns)))) for _ in range(3)]
        for _ in range(sessions):
            hour = rng.choice(24, p=_zipf(24)[np.arange(24)[::-1]])
            at = BEGIN + int((24 * rng.integers(days) + hour + rng.random()) * HOUR)
            said: list[tuple[int, ...]] = []
            for turn in range(rng.geometric(0.4)):
                now = causes_of(at)
                if turn:
                    own = said[-1]
                    shares = now.refine, now.sibling, now.associated, now.repeat
                    draw = rng.choice(5, p=[*shares, max(1 - sum(shares), 0.0)])
                    if draw == 0 and len(own) < 3:
                        said.append((*own, int(nouns + 8 * own[0] + rng.choice(8, p=_zipf(8)))))
                    elif draw == 1:
                        said.append(phrase(own[0], 1))
                    elif draw == 2:
                        said.append(phrase(int(goes_with[own[0]])))
                    elif draw == 3:
                        said.append(said[rng.integers(len(said))])
                    else:
                        said.append(phrase(noun(at)))
                elif rng.random() < now.habit:
                    said.append(habits[rng.integers(3)])
                else:
                    said.append(phrase(noun(at)))
                rows.append((at, user, said[-1]))
                at += int(rng.integers(10, 180)) * 1_000_000
    numbers: dict[tuple[int, ...], int] = {}
    query = np.array([numbers.setdefault(said, len(numbers)) for _, _, said in rows], np.int32)
    texts = [" ".join(words[i] for i in said) for said in numbers]
    at_of, user_of = np.array([(at, user) for at, user, _ in rows]).T
    names: list[str | None] = [f"searcher {user}" for user in range(users)]
    return QueryLog(texts, query, at_of, names, user_of.astype(np.int32), np.ones(len(rows)))


def _zipf(n: int) -> np.ndarray:
    weight = 1 / np.arange(1, n + 1)
    return weight / weight.sum()


def _words(n: int, rng: np.random.Generator) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < n:
        found["".join(rng.choice(SYLLABLES, rng.integers(2, 4)))] = None
    return list(found)
