"""Simulated phones: typists whose apps are installed, opened, and partly the reason they search.

Fixed on the published marginals (Table 3.3, Figure 3.2: 95 apps installed, 100 openings and 35
distinct apps a day, an app opened in the half hour before 84.9 % of the queries, then 4.0 distinct)
before any gain was looked at. How much apps cause is not published: it is `strength`, to be swept.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.data.contracts import COMPOSITIONS, TIMESTAMP
from telic.errors import InputError
from telic.simulate.catalogue import Catalogue
from telic.simulate.intents import Intents
from telic.simulate.query_app_affinity import Affinity, made_up_affinity
from telic.simulate.typists import simulate_typists

INSTALLED = 95.0
OPENINGS_A_DAY = 100.0
RATE_EXPONENT = 1.15
"""An app's openings fall as rank ** -1.15 on its device: 35 of 95 are then opened in a day."""
OPENINGS_LOG_MEAN, OPENINGS_LOG_SPREAD = 1.0, 1.0
"""Openings in the half hour before a query: Poisson around a log-normal rate."""
BACK_EXPONENT = 2.06
"""An opening lies ``60 * u ** 2.06`` minutes back: 1.4 times as many in an hour as in half."""
WITHIN = 30.0
"""Minutes within which an opened app may be the reason for a query."""
OPENED_SHARE = 0.5
"""Share of app-caused queries that an opened app causes, where there is one. Free."""


def simulate_phones(
    catalogue: Catalogue,
    *,
    affinity: Affinity | None = None,
    strength: float = 0.5,
    independent: bool = False,
    users: int = 200,
    compositions: int = 150,
    seed: int = 0,
    **typists: Any,
) -> pa.Table:
    """Make a composition log by simulated typists with phones.

    A share `strength` of the intents is caused by an app: one opened in the 30 minutes before (the
    k-th most recent with odds 1/k) or an installed one (with odds ``log(1 + openings a day)``). The
    app makes its owner want a phrase of its `affinity`. All other intents are a typist's.

    Parameters
    ----------
    catalogue : Catalogue
    affinity : Affinity, optional
        By default `made_up_affinity` of the catalogue.
    strength : float in [0, 1]
        0: devices that cause nothing. Their apps still tell people apart, so a model may learn a
        person's habits from them.
    independent : bool
        The control in which every gain must vanish: what was installed and opened is that of
        another composition drawn at random. All marginals stay.
    users, compositions, seed : int
    **typists
        Further parameters of `simulate_typists`.

    Returns
    -------
    pyarrow.Table
        Keeps `telic.data.contracts.COMPOSITIONS`, openings of the last hour included.

    Examples
    --------
    >>> catalogue = Catalogue(["tea", "tea kettle", "coffee"], np.array([5.0, 1.0, 3.0]))
    >>> log = simulate_phones(catalogue, users=2, compositions=3)
    >>> len(log["installed"][0]) > 50
    True
    """
    if not 0 <= strength <= 1:
        raise InputError(f"strength is {strength}, expected 0 to 1.")
    table_of_apps = affinity or made_up_affinity(catalogue, seed=seed)
    # Apart from the typists' own randomness: equal seeds type alike at every strength.
    rng = np.random.default_rng([seed, 3])
    devices = _Devices(table_of_apps, users, rng)
    openings = [devices.openings(u, rng) for u in range(users) for _ in range(compositions)]

    def causes(intents: Intents) -> Intents:
        app = np.array(
            [
                devices.cause(i // compositions, openings[i], rng)
                for i in range(users * compositions)
            ]
        )
        phrase = table_of_apps.caused(app, rng)
        caused = ((rng.random(len(phrase)) < strength) & (phrase >= 0)).reshape(users, compositions)
        wanted = np.where(caused, phrase.reshape(users, compositions), intents.wanted)
        return intents._replace(wanted=wanted, edits=intents.edits & ~caused)

    log = simulate_typists(
        catalogue, users=users, compositions=compositions, seed=seed, causes=causes, **typists
    )
    owner = np.arange(users * compositions)
    if independent:
        owner = np.random.default_rng([seed, 4]).permutation(owner)
    installed = devices.column(owner // compositions)
    opened = _opened_column(log, [openings[i] for i in owner], table_of_apps.apps)
    described = {"strength": strength, "independent": independent, "seed": seed}
    meta = log.schema.metadata | {b"telic.phones": json.dumps(described).encode()}
    log = log.append_column(COMPOSITIONS.field("installed"), installed)
    log = log.append_column(COMPOSITIONS.field("opened"), opened)
    return log.replace_schema_metadata(meta)


def phone_marginals(log: pa.Table) -> dict[str, float]:
    """Measure on a log what is published of phones: counts installed, openings before queries."""
    installed = pc.list_value_length(log["installed"]).to_numpy()
    flat = pc.list_flatten(log["installed"])
    rate = pc.struct_field(flat, "daily_opens").to_numpy().astype(float)
    owner = np.repeat(np.arange(len(log)), installed)
    distinct_a_day = np.bincount(owner, 1 - np.exp(-rate), len(log))
    opened = log["opened"].to_pylist()
    begins = [strokes[0]["at"] for strokes in log["keystrokes"].to_pylist()]
    distinct = np.array(
        [
            len({o["app"] for o in own if (begin - o["at"]).total_seconds() <= 60 * WITHIN})
            for own, begin in zip(opened, begins, strict=True)
        ]
    )
    some = distinct > 0
    return {
        "installed": float(installed.mean()),
        "openings a day": float(np.bincount(owner, rate, len(log)).mean()),
        "distinct apps a day": float(distinct_a_day.mean()),
        "share with an app opened": float(some.mean()),
        "distinct opened, where any": float(distinct[some].mean()) if some.any() else 0.0,
        "most distinct opened": float(distinct.max(initial=0)),
    }


class _Devices:
    """Who has which app and opens it how often."""

    def __init__(self, affinity: Affinity, users: int, rng: np.random.Generator) -> None:
        self.apps = affinity.apps
        self.causing = np.diff(affinity.start) > 0
        self.owned: list[np.ndarray] = []
        self.rate: list[np.ndarray] = []
        log_odds = np.log(affinity.popularity)
        for _ in range(users):
            size = int(np.clip(rng.poisson(INSTALLED), 1, len(self.apps)))
            # The largest of log-odds plus Gumbel noise: a draw without replacement.
            owned = np.argsort(-(log_odds + rng.gumbel(size=len(log_odds))))[:size]
            rate = np.arange(1.0, size + 1) ** -RATE_EXPONENT
            self.owned.append(owned)
            self.rate.append(rng.permutation(rate * (OPENINGS_A_DAY / rate.sum())))

    def openings(self, user: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw apps and minutes back, the latest first, of the hour before one query."""
        rate = np.exp(OPENINGS_LOG_MEAN + OPENINGS_LOG_SPREAD * rng.standard_normal())
        n = rng.poisson(min(1.4 * rate, 150.0))
        back = np.sort(60 * rng.random(n) ** BACK_EXPONENT)
        share = np.cumsum(self.rate[user])
        which = np.searchsorted(share[:-1], rng.random(n) * share[-1], side="right")
        return self.owned[user][which], back

    def cause(
        self, user: int, opening: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
    ) -> int:
        """Draw the app that would cause a query now."""
        apps = opening[0][opening[1] <= WITHIN]
        apps = apps[self.causing[apps]]
        if len(apps) and rng.random() < OPENED_SHARE:
            _, first = np.unique(apps, return_index=True)
            recent = apps[np.sort(first)]
            odds = 1 / np.arange(1, len(recent) + 1)
        else:
            recent = self.owned[user]
            odds = np.log1p(self.rate[user]) * self.causing[recent]
        if not odds.any():
            return int(self.owned[user][0])
        return int(recent[np.searchsorted(np.cumsum(odds), rng.random() * odds.sum())])

    def column(self, users: np.ndarray) -> pa.Array:
        """Return the column `installed` for compositions of these users."""
        sizes = np.array([len(owned) for owned in self.owned])[users]
        entries = [
            {"app": self.apps[a], "daily_opens": r}
            for owned, rate in zip(self.owned, self.rate, strict=True)
            for a, r in zip(owned, rate, strict=True)
        ]
        kind = COMPOSITIONS.field("installed").type
        begins = np.concatenate([[0], np.cumsum([len(owned) for owned in self.owned])])
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        where = np.arange(ends[-1]) + np.repeat(begins[users] - ends[:-1], sizes)
        flat = pa.array(entries, kind.value_type).take(pa.array(where))
        return pa.ListArray.from_arrays(pa.array(ends), flat, type=kind)


def _opened_column(
    log: pa.Table, openings: list[tuple[np.ndarray, np.ndarray]], names: list[str]
) -> pa.Array:
    """Return the column `opened`, each composition's minutes back from its first keystroke."""
    strokes = log["keystrokes"].combine_chunks()
    first = pc.struct_field(pc.list_element(strokes, 0), "at").cast(pa.int64()).to_numpy()
    sizes = [len(apps) for apps, _ in openings]
    app = np.concatenate([apps for apps, _ in openings]).astype(np.int64)
    back = np.concatenate([back for _, back in openings])
    # A whole second at least lies between an opening and the first keystroke.
    at = np.repeat(first, sizes) - 1_000_000 - (back * 59e6).astype(np.int64)
    kind = COMPOSITIONS.field("opened").type
    flat = pa.StructArray.from_arrays(
        [pa.array(names).take(pa.array(app)), pa.array(at, TIMESTAMP)],
        fields=list(kind.value_type),
    )
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), flat, type=kind)
