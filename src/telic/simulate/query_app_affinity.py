"""Which app goes with which query: a table of pairs, real where a user has one, or made up."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from telic.data.query_app_pairs import read_pairs
from telic.errors import expect_whole
from telic.simulate.catalogue import Catalogue

PHRASES_PER_APP = 12


@dataclass(frozen=True)
class Affinity:
    """Apps, how widespread each is, and the phrases of a catalogue that each makes people want.

    App ``a`` causes ``phrase[start[a]:start[a + 1]]`` with odds `odds`.
    """

    apps: list[str]
    popularity: np.ndarray
    """float64 (apps,): odds of being installed."""
    start: np.ndarray
    """int64 (apps + 1,)."""
    phrase: np.ndarray
    """int64: number in the catalogue."""
    odds: np.ndarray
    """float64, positive."""

    def caused(self, apps: np.ndarray, seed: int | np.random.Generator) -> np.ndarray:
        """Draw a phrase for each app; -1 for an app that causes none."""
        rng = np.random.default_rng(seed)
        cumulative = np.concatenate([[0.0], np.cumsum(self.odds)])
        low, high = cumulative[self.start[apps]], cumulative[self.start[apps + 1]]
        at = np.searchsorted(cumulative, low + rng.random(len(apps)) * (high - low), "right") - 1
        at = np.minimum(at, self.start[apps + 1] - 1)
        return np.where(high > low, self.phrase[np.maximum(at, 0)], -1)


def made_up_affinity(catalogue: Catalogue, *, apps: int = 300, seed: int = 0) -> Affinity:
    """Make an affinity table: each app goes with phrases drawn by the root of their popularity.

    Twelve phrases an app, the k-th with odds 1/k; an app's odds of being installed fall as
    ``rank ** -0.8``. Both are free parameters, not measured ones.
    """
    expect_whole(1, apps=apps)
    rng = np.random.default_rng(seed)
    size = min(PHRASES_PER_APP, len(catalogue.phrases))
    draw = np.sqrt(catalogue.weights)
    draw = draw / draw.sum()
    phrase = [rng.choice(len(draw), size, replace=False, p=draw) for _ in range(apps)]
    names = [f"app {i:0{len(str(apps - 1))}d}" for i in range(apps)]
    return Affinity(
        names,
        np.arange(1, apps + 1) ** -0.8,
        np.arange(apps + 1) * size,
        np.concatenate(phrase),
        np.tile(1 / np.arange(1, size + 1), apps),
    )


def affinity_of_pairs(source: str | Path | pa.Table) -> tuple[Catalogue, Affinity]:
    """Take queries and apps from real pairs, as `telic.data.query_app_pairs` reads them.

    Every distinct query is a phrase, as popular as it is frequent; every app goes with the queries
    that it was chosen for and is as widespread as it was chosen.
    """
    pairs = read_pairs(source)
    counts = np.bincount(pairs.query).astype(float)
    key, times = np.unique(np.stack([pairs.app, pairs.query]), axis=1, return_counts=True)
    return Catalogue(pairs.queries, counts), Affinity(
        pairs.apps,
        np.bincount(pairs.app).astype(float),
        np.searchsorted(key[0], np.arange(len(pairs.apps) + 1)),
        key[1],
        times.astype(float),
    )


def example_phones() -> tuple[Catalogue, Affinity]:
    """Return a small catalogue and table of apps to look at: football, music, homes, recipes, …

    Beside the named apps there are two hundred that cause nothing, as on real phones.
    """
    phrases: dict[str, float] = dict(_EVERYBODY)
    pairs: list[tuple[int, str]] = []
    for a, (_, caused) in enumerate(_EXAMPLE.items()):
        for phrase in caused:
            phrases.setdefault(phrase, 6.0)
            pairs.append((a, phrase))
    number = {phrase: i for i, phrase in enumerate(phrases)}
    names = [*_EXAMPLE, *(f"tool {i}" for i in range(200))]
    start = np.searchsorted([a for a, _ in pairs], np.arange(len(names) + 1))
    return Catalogue(list(phrases), np.array(list(phrases.values()))), Affinity(
        names,
        np.ones(len(names)),
        start,
        np.array([number[phrase] for _, phrase in pairs]),
        np.ones(len(pairs)),
    )


_EVERYBODY = {
    "real estate": 60.0,
    "realtor.com": 50.0,
    "real simple": 20.0,
    "chicago tribune": 45.0,
    "chicago weather": 40.0,
    "chicago craigslist": 25.0,
    "sugar cookie recipe": 30.0,
    "sugar glider": 25.0,
    "sugar bowl": 20.0,
    "facebook": 90.0,
    "weather": 80.0,
    "maps": 60.0,
    "news today": 50.0,
    "restaurants near me": 40.0,
    "train times": 35.0,
    "translate": 45.0,
    "barbecue": 18.0,
    "barber near me": 25.0,
    "madrid flights": 15.0,
    "champagne": 12.0,
}
_EXAMPLE = {
    "Football Live": ("real madrid", "barcelona score", "champions league", "chelsea news"),
    "Basketball": ("chicago bulls", "real plus minus", "basketball scores"),
    "Music": ("sugar lyrics", "sugar maroon 5", "charts this week"),
    "Homes": ("real estate", "realtor.com", "mortgage rates"),
    "Recipes": ("sugar cookie recipe", "barbecue sauce", "chocolate cake"),
    "Flights": ("madrid flights", "chicago flights", "baggage rules"),
}
