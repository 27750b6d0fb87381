"""Chapter 7's tables, the published figures beside ours."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from telic.privacy.attacks.score import bootstrap_interval
from telic.report import Table
from telic.study.chapter7.experiments import DISTANCES
from telic.study.chapter7.published import PUBLISHED_RISK

Samples = list[list[dict[str, float]]]
"""Scores of an attack by sample, then by distance."""
BY_DISTANCE = [f"n = {n}" for n in DISTANCES]
PERCENT, INTERVAL = "100 .1f", "100 [{:.1f}, {:.1f}]"
REDUCTION = "100 .3f"
LOSSES = {
    "false_links": "published links that are false",
    "lost_links": "real links not published",
    "strength": "real links with another strength",
    "links": "information about links that is gone",
    "existence": "information about who is linked that is gone",
}


def means(samples: Samples, measure: str = "unique_right") -> list[float]:
    """Return the mean of a measure over samples, by distance."""
    return [float(np.mean([row[n][measure] for row in samples])) for n in DISTANCES]


def precision(found: dict[str, dict[str, Any]]) -> dict[str, list[list[float]]]:
    """Return the precision in what `attack_by_links` found, by sample and distance."""
    return {
        names: [[score["unique_right"] for score in row] for row in each["scores"]]
        for names, each in found.items()
    }


def distances_of(published: Mapping[str, tuple[float, ...]]) -> list[str]:
    """Return at which distances published numbers are: the farthest ones."""
    return BY_DISTANCE[-len(next(iter(published.values()))) :]


def by_links_table(
    title: str, found: dict[str, list[list[float]]], published: Mapping[str, tuple[float, ...]]
) -> Table:
    """Return a measure by link types and distance, means over samples."""
    several = len(next(iter(found.values()))) > 1
    columns = {"link types": "", **dict.fromkeys(BY_DISTANCE, PERCENT)}
    columns |= {"95 % at n = 1": INTERVAL} if several else {}
    columns |= {f"published, {name}": PERCENT for name in BY_DISTANCE[1:]} if published else {}
    rows: list[list[Any]] = []
    for names, samples in found.items():
        values = np.array(samples)
        rows.append([names, *values.mean(axis=0).tolist()])
        if several:
            rows[-1].append(bootstrap_interval(values[:, 1]))
        if published:
            rows[-1] += [v / 100 for v in published.get(names, ())] or [None] * 3
    return Table(title, columns, rows)


def by_density_table(
    title: str, found: dict[str, Samples], published: Mapping[str, tuple[float, ...]]
) -> Table:
    """Return precision by density and distance."""
    rows: list[list[Any]] = []
    for density, samples in found.items():
        far = np.array([row[-1]["unique_right"] for row in samples])
        shown = [v / 100 for v in published[density]]
        rows.append([float(density), *means(samples), bootstrap_interval(far), *shown])
    columns = {
        "density": "",
        **dict.fromkeys(BY_DISTANCE, PERCENT),
        "95 % at n = 3": INTERVAL,
        **{f"published, {n}": PERCENT for n in BY_DISTANCE},
    }
    return Table(title, columns, rows, "Intervals over samples.")


def reduction_table(
    name: str, first: str, found: Mapping[str, Samples], published: Mapping[str, tuple[float, ...]]
) -> Table:
    """Return the reduction rate by distance beside the published one; the rows are of `first`."""
    return Table(
        f"Reduction rate, percent (simulated), {name}",
        {
            first: "",
            **dict.fromkeys(BY_DISTANCE, REDUCTION),
            **{f"published, {n}": REDUCTION for n in distances_of(published)},
        },
        [
            [name, *means(samples, "reduction_rate"), *(v / 100 for v in published[name])]
            for name, samples in found.items()
        ],
        "The share of the known users who are ruled out, mean over targets.",
    )


def complete_by_links_table(found: Mapping[str, Mapping[str, list[float]]]) -> Table:
    """Return precision by release and number of link types used."""
    return Table(
        "Precision by number of link types at density 0.01, in percent (simulated)",
        {"release, attack": "", "link types": "", **dict.fromkeys(BY_DISTANCE[1:], PERCENT)},
        [
            [release, count, *values[1:]]
            for release, table in found.items()
            for count, values in table.items()
        ],
        "Mean over all sets of so many link types.",
    )


def releases_table(
    found: dict[str, dict[str, list[list[dict[str, float]]]]], density: str
) -> Table:
    """Return precision by release at one density."""
    return Table(
        f"Precision by release at density {density}, in percent (simulated)",
        {"release, attack": "", **dict.fromkeys(BY_DISTANCE, PERCENT), "empty at n = 3": PERCENT},
        [
            [name, *means(table[density]), means(table[density], "empty")[-1]]
            for name, table in found.items()
        ],
    )


def losses_table(found: dict[str, dict[str, float]]) -> Table:
    """Return what each release loses."""
    return Table(
        "What a release loses at density 0.01, means over link types (simulated)",
        {"release": "", **{f"{words}, %": PERCENT for words in LOSSES.values()}},
        [[name, *(row[key] for key in LOSSES)] for name, row in found.items()],
    )


def ceiling_table(found: list[dict[str, Any]]) -> Table:
    """Return who has an out-link and who of those is found."""
    return Table.of(
        "The ceiling by link types, density 0.01 (simulated)",
        [row | {"least": (PUBLISHED_RISK[row["links"]][-1] - 1.1) / 100} for row in found],
        {
            "link types": ("links", ""),
            "have an out-link, %": ("linked", PERCENT),
            "found at n = 3, %": ("found", PERCENT),
            "found of those, %": ("found_of_linked", PERCENT),
            "published: have an out-link, at least, %": ("least", PERCENT),
        },
    )


def few_links_table(found: list[dict[str, Any]]) -> Table:
    """Return how often targets with few links of a type are found."""
    return Table(
        "One link type at a time, all four together (simulated)",
        {
            "out-links of that type": "",
            "share of targets, %": PERCENT,
            "found at n = 1, %": PERCENT,
        },
        [[row["out_links"], row["share"], row["found"]] for row in found],
    )


def real_table(found: dict[str, dict[str, Any]], targets: int, users: int) -> Table:
    """Return the attack's precision on a real network."""
    columns = {
        "link types": "",
        **dict.fromkeys(BY_DISTANCE, PERCENT),
        "95 % at n = 3": INTERVAL,
        "wrong": PERCENT,
        "empty": PERCENT,
    }
    rows = [
        [
            names,
            *(score["unique_right"] for score in by_distance),
            each["interval"],
            *(by_distance[-1][key] for key in ("unique_wrong", "empty")),
        ]
        for names, each in found.items()
        for (by_distance,) in [each["scores"]]
    ]
    return Table(
        f"Precision of DeHIN, percent: {targets:,} targets among {users:,} users", columns, rows
    )
