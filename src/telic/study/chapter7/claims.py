"""What chapter 7 says, and how it is tried on a simulated microblog."""

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from telic.study.chapter7.networks import DENSEST
from telic.study.chapter7.published import (
    PUBLISHED_ATTACK,
    PUBLISHED_ATTACK_REDUCTION,
    PUBLISHED_COMPLETE,
    PUBLISHED_COMPLETE_REDUCTION,
    PUBLISHED_PLAIN,
    PUBLISHED_PLAIN_REDUCTION,
    PUBLISHED_PROFILES,
    PUBLISHED_RISK,
)
from telic.study.chapter7.tables import BY_DISTANCE, distances_of
from telic.study.claims import (
    Cases,
    Claim,
    Effect,
    Found,
    NotTestable,
    Printed,
    Tables,
    Value,
    by_row,
    cases,
)

RISK, PRECISION = "Risk, percent (simulated)", "Precision, percent (simulated)"
PLAIN, COMPLETE = (f"Precision in percent (simulated), Table {n}" for n in ("7.2", "7.4"))
REDUCTION, BY_TYPES, OF_COMPLETE = (
    f"Reduction rate, percent (simulated), Table {n}" for n in ("7.2", "7.3", "7.4")
)
RELEASES = "Precision by release at density"
ALL_FOUR = max(PUBLISHED_RISK, key=len)
SETS = len(PUBLISHED_RISK)
DENSITIES = len(PUBLISHED_PLAIN)
NEAR, FAR = "n = 1", "n = 3"
RECONFIGURED = "KDDA, re-configured"


def _by_count(tables: Tables, title: str, at: str) -> list[float]:
    """Return the mean over sets of one link type, of two, of three, and of all four."""
    values: dict[int, list[float]] = {}
    for row in tables.rows(title):
        values.setdefault(row["link types"].count("-"), []).append(row[at])
    return [float(np.mean(values[count])) for count in sorted(values)]


def _rises_with_types(tables: Tables, title: str) -> Found:
    return cases([more > less for less, more in pairwise(_by_count(tables, title, NEAR))])


def _jump(tables: Tables) -> Found:
    row = tables.row(RISK, link_types=ALL_FOUR)
    ends = [end - row["n = 0"] for end in row.get("95 % at n = 1") or ()]
    return Found(row[NEAR] - row["n = 0"], *ends)


def _levels_off(tables: Tables) -> Found:
    rows = tables.rows(RISK)
    return cases([row[FAR] - row[NEAR] < row[NEAR] - row["n = 0"] for row in rows])


def _of_all_four(tables: Tables) -> Found:
    return Found(tables.row(RISK, link_types=ALL_FOUR)[FAR])


def _four_over_one(tables: Tables) -> Found:
    means = _by_count(tables, PRECISION, FAR)
    return Found(means[-1] - means[0])


def _published_four_over_one() -> float:
    ones = [values[-1] for names, values in PUBLISHED_ATTACK.items() if "-" not in names]
    return (PUBLISHED_ATTACK[ALL_FOUR][-1] - float(np.mean(ones))) / 100


def _rules_out(tables: Tables) -> Found:
    least = min(values[0] for values in PUBLISHED_PLAIN_REDUCTION.values()) / 100
    rows = tables.rows(REDUCTION)
    return cases([row[at] >= least for row in rows for at in BY_DISTANCE])


def _densest(tables: Tables, title: str) -> dict[str, Any]:
    return tables.row(title, density=float(DENSEST))


def _loss_of_complete(tables: Tables) -> Found:
    """Compare the two releases; the interval is as wide as both together allow.

    One sample has no interval.
    """
    plain, complete = _densest(tables, PLAIN), _densest(tables, COMPLETE)
    own, other = plain["95 % at n = 3"], complete["95 % at n = 3"]
    ends = () if own[0] == own[1] else (other[0] - own[1], other[1] - own[0])
    return Found(complete[FAR] - plain[FAR], *ends)


def _complete_keeps(tables: Tables) -> Found:
    plain = {row["density"]: row[FAR] for row in tables.rows(PLAIN)}
    return cases([row[FAR] >= 0.9 * plain[row["density"]] for row in tables.rows(COMPLETE)])


def _precision(tables: Tables, release: str, at: str = FAR) -> float:
    return tables.row(RELEASES, **{"release, attack": release})[at]


def _obscurity(tables: Tables, release: str) -> Found:
    return Found(_precision(tables, RECONFIGURED) - _precision(tables, release))


def _varying_defends(tables: Tables) -> Found:
    profiles, *with_links = BY_DISTANCE
    return cases(
        [
            _precision(tables, release, at) <= _precision(tables, release, profiles)
            for release in ("VW-CGA", "VW-CGA, re-configured")
            for at in with_links
        ]
    )


def _one_type_defended(tables: Tables) -> Found:
    """Compare what a complete graph takes away where one type is used, and where all are."""
    title = "Precision by number of link types"
    lost = {}
    for count in ("1", "4"):
        plain, complete = (
            tables.row(title, **{"release, attack": release, "link types": count})[FAR]
            for release in ("KDDA", "CGA, re-configured")
        )
        lost[count] = plain - complete
    return cases([lost["1"] > lost["4"]])


def _varying_loses(tables: Tables) -> Found:
    column = "information about links that is gone, %"
    loss = {row["release"]: row[column] for row in tables.rows("What a release loses")}
    return cases([loss["VW-CGA"] > loss["CGA"]])


_FITTED = "links per active member were fitted to this rise, and profiles to n = 0"
_MAJORITY = "CGA at the majority strength, re-configured"
CLAIMS = (
    Claim(
        "Table 7.1",
        "risk rises from distance 0 to 1, all link types, points",
        Effect((PUBLISHED_RISK[ALL_FOUR][0] - PUBLISHED_PROFILES["risk"]) / 100, "100 +.1f"),
        _jump,
    ),
    Claim(
        "Table 7.1",
        "risk rises less from distance 1 to 3 than from 0 to 1, for every set of link types",
        Cases(SETS, SETS),
        _levels_off,
    ),
    Claim(
        "Table 7.1",
        "risk at distance 3, all link types, percent",
        Value(PUBLISHED_RISK[ALL_FOUR][-1] / 100, 0.01, "100 .1f"),
        _of_all_four,
    ),
    Claim(
        "Figure 7.7",
        "mean risk rises with every further link type, distance 1",
        Cases(3, 3),
        partial(_rises_with_types, title=RISK),
    ),
    Claim(
        "Table 7.2",
        "precision rises with density, from 12.6 to 95.7 %",
        NotTestable("12.6 % to 95.7 %", f"the simulator: {_FITTED}"),
    ),
    Claim(
        "Table 7.2",
        "candidates ruled out are at least the published least, at every density and distance",
        Cases(4 * DENSITIES, 4 * DENSITIES),
        _rules_out,
    ),
    Claim(
        "Table 7.3",
        "precision of all four link types over the mean of one, distance 3, points",
        Effect(_published_four_over_one(), "100 +.1f"),
        _four_over_one,
        note="the simulator's link types fall silent one by one: chapter 7's page says why two "
        "types reach the ceiling",
    ),
    Claim(
        "Figure 7.8",
        "mean precision rises with every further link type, distance 1",
        Cases(3, 3),
        partial(_rises_with_types, title=PRECISION),
    ),
    Claim(
        "Table 7.4",
        "a complete graph lowers precision at density 0.01, distance 3, points",
        Effect((PUBLISHED_COMPLETE["0.01"][-1] - PUBLISHED_PLAIN["0.01"][-1]) / 100, "100 +.1f"),
        _loss_of_complete,
    ),
    Claim(
        "Table 7.4",
        "the attack on complete graphs keeps nine tenths of its precision, at every density",
        Cases(DENSITIES, DENSITIES),
        _complete_keeps,
    ),
    Claim(
        "Table 7.4",
        "the re-configured attack has one precision on both releases (7.6.4); any fake strength, "
        "points",
        Value(0.0, 0.0005, "100 +.1f"),
        partial(_obscurity, release="CGA, re-configured"),
    ),
    Claim(
        "Table 7.4",
        "the re-configured attack has one precision on both releases (7.6.4); fakes at the "
        "majority strength, points",
        Value(0.0, 0.0005, "100 +.1f"),
        partial(_obscurity, release=_MAJORITY),
    ),
    Claim(
        "Figure 7.9",
        "with fake links of varying strength, links tell nothing: precision is at most that of "
        "profiles",
        Cases(6, 6),
        _varying_defends,
    ),
    Claim(
        "Figure 7.9",
        "a complete graph takes more from an attack by one link type than from one by all",
        Cases(1, 1),
        _one_type_defended,
    ),
    Claim(
        "Figure 7.9",
        "varying strengths lose more information than equal ones (7.6.3)",
        Cases(1, 1),
        _varying_loses,
    ),
)


def _of_links(tables: Tables, names: str, at: str, title: str) -> float | None:
    return tables.row(title, link_types=names)[at]


def _of_density(tables: Tables, density: str, at: str, title: str) -> float | None:
    rows = [row for row in tables.rows(title) if float(row["density"]) == float(density)]
    return rows[0][at]


def _printed(
    name: str, title: str, published: Mapping[str, tuple[float, ...]], form: str, first: str
) -> Printed:
    cells = by_row(published, distances_of(published))
    ours = partial(_of_links if first == "link types" else _of_density, title=title)
    what = title.split(",")[0].split(" in ")[0]
    words = f"{name}: {what.lower()} in percent (ours simulated)"
    return Printed((name,), words, first, form, cells, ours)


def _and_profiles(
    published: Mapping[str, tuple[float, ...]], measure: str
) -> dict[str, tuple[float, ...]]:
    """Put what profiles alone tell before each row: it is printed once, below the table."""
    return {names: (PUBLISHED_PROFILES[measure], *row) for names, row in published.items()}


_LINKS, _DENSITY, _PERCENT, _RATE = "link types", "density", "100 .1f", "100 .3f"
PRINTED = (
    _printed("Table 7.1", RISK, _and_profiles(PUBLISHED_RISK, "risk"), _PERCENT, _LINKS),
    _printed("Table 7.2", PLAIN, PUBLISHED_PLAIN, _PERCENT, _DENSITY),
    _printed("Table 7.2", REDUCTION, PUBLISHED_PLAIN_REDUCTION, _RATE, _DENSITY),
    _printed(
        "Table 7.3", PRECISION, _and_profiles(PUBLISHED_ATTACK, "precision"), _PERCENT, _LINKS
    ),
    _printed(
        "Table 7.3",
        BY_TYPES,
        _and_profiles(PUBLISHED_ATTACK_REDUCTION, "reduction rate"),
        _RATE,
        _LINKS,
    ),
    _printed("Table 7.4", COMPLETE, PUBLISHED_COMPLETE, _PERCENT, _DENSITY),
    _printed("Table 7.4", OF_COMPLETE, PUBLISHED_COMPLETE_REDUCTION, _RATE, _DENSITY),
)
