"""What simulated people want and when: popularity, habits, trends and edits of the last query."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from telic.simulate.catalogue import Catalogue
from telic.simulate.typist_parameters import TypistParameters

DAY = 86_400.0
REFINEMENTS = (" weather", " map", " hotels", " flights", " news", " jobs")


class Intents(NamedTuple):
    """Wanted queries, in time order within each user; arrays of shape (users, compositions)."""

    start: np.ndarray
    """Seconds from the beginning of the log to the first keystroke."""
    wanted: np.ndarray
    """The wanted query: its number in the catalogue, or ``phrase + n_phrases * (1 + r)`` for a
    phrase followed by ``REFINEMENTS[r]``, which no list holds."""
    edits: np.ndarray
    """True where the text of the user's previous query is edited instead of typed anew."""


def draw_intents(
    catalogue: Catalogue,
    *,
    siblings: Callable[[int], np.ndarray],
    users: int,
    compositions: int,
    min_gap: float,
    parameters: TypistParameters,
    rng: np.random.Generator,
) -> Intents:
    """Draw when each user searches and what for.

    Each composition is one of: an earlier query of the same user again (all earlier compositions
    equally likely, so that habits reinforce themselves as in a Dirichlet process); a phrase whose
    trend is on at that time; a sibling of the previous query, reached by editing it; else a phrase
    drawn in proportion to ``weights ** parameters.popularity_exponent``. A share of the last two
    are made more specific than any suggestion: "entity name + attribute" of [Zhang2017] (2.4.7).

    Parameters
    ----------
    catalogue : Catalogue
        What people may want.
    siblings : callable
        Maps a phrase's number to those of popular phrases that begin with the same word.
    users, compositions : int
        How many, and how many for each.
    min_gap : float
        Least seconds between two first keystrokes of one user.
    parameters : TypistParameters
        The shares of each kind of intent, the trends and the length of the log.
    rng : numpy.random.Generator
        Source of randomness.
    """
    p, shape = parameters, (users, compositions)
    demand = np.cumsum(catalogue.weights**p.popularity_exponent)

    def popular(size: int | tuple[int, int]) -> np.ndarray:
        return np.searchsorted(demand[:-1], rng.random(size) * demand[-1], side="right")

    edits = rng.random(shape) < p.edit_share
    edits[:, 0] = False
    # An edit follows the query it edits at once; the other gaps are those of a Poisson process.
    gaps = np.where(edits, 0.0, rng.exponential(size=shape))
    start = np.cumsum(gaps * (p.days * DAY / gaps.sum(1, keepdims=True)) + min_gap, axis=1)

    wanted = popular(shape)
    trending = rng.random(shape) < p.trend_share
    wanted[trending] = _trends(start[trending], wanted[trending], popular, p, rng)
    refined = rng.random(shape) < p.unlisted_share
    wanted[refined] = _refine(wanted[refined], catalogue.phrases, rng)
    repeats = rng.random(shape) < p.habit_share
    which = rng.random(shape)
    for j in range(1, compositions):
        again = np.flatnonzero(repeats[:, j])
        wanted[again, j] = wanted[again, (which[again, j] * j).astype(int)]
        for u in np.flatnonzero(edits[:, j]):
            previous = wanted[u, j - 1]
            others = [q for q in siblings(previous) if q != previous]
            if others:
                wanted[u, j] = others[int(which[u, j] * len(others))]
            edits[u, j] = wanted[u, j] != previous
    return Intents(start, wanted, edits)


def query_text(wanted: int, phrases: list[str]) -> str:
    """Spell a wanted query (see `Intents`); `phrases` as shown or folded."""
    refinement, phrase = divmod(wanted, len(phrases))
    return phrases[phrase] + (REFINEMENTS[refinement - 1] if refinement else "")


def _refine(wanted: np.ndarray, phrases: list[str], rng: np.random.Generator) -> np.ndarray:
    number = {phrase: i for i, phrase in enumerate(phrases)}
    refined = wanted + len(phrases) * (1 + rng.integers(len(REFINEMENTS), size=len(wanted)))
    # A query log may hold the refined query; then it is that phrase, and lists can show it.
    return np.array([number.get(query_text(q, phrases), q) for q in refined.tolist()], dtype=int)


def _trends(
    start: np.ndarray,
    otherwise: np.ndarray,
    popular: Callable[[int], np.ndarray],
    p: TypistParameters,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw a phrase from the trends that are on at each time; `otherwise` where none is."""
    phrases = popular(p.trends)
    shortest, longest = np.log(p.trend_days)
    length = np.exp(rng.uniform(shortest, longest, p.trends)) * DAY
    begin = rng.uniform(-length, p.days * DAY)
    heat = rng.exponential(size=p.trends)
    on = (start[:, None] >= begin) & (start[:, None] < begin + length)
    total = np.cumsum(np.where(on, heat, 0.0), axis=1)
    draw = rng.random(len(start)) * total[:, -1]
    chosen = (total[:, :-1] <= draw[:, None]).sum(1)
    return np.where(total[:, -1] > 0, phrases[chosen], otherwise)
