"""Chapter 3's tables beside those of `telic.completion.evaluation.report`."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from telic.completion.evaluation.report import INTERVAL, PERCENT, POINTS, Rows
from telic.evaluate import paired_t_test
from telic.report import Table
from telic.study.chapter3.published import PUBLISHED, PUBLISHED_DISTINCT, PUBLISHED_SHARE

MEASURES = ("mrr", "sr@1", "sr@2", "sr@3")
GAIN = "100 {:+.2f} ({:+.2f} … {:+.2f})"
REAL_PAIRS = "MRR in percent, each row of the data"
"""How the title of the table of real pairs begins: claims find the table by it."""


def published_table(rows: Rows) -> Table:
    """Return MRR of Standard and AppAware at every keystroke, beside Table 3.5."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if (row["prefixes"], row["lists"]) == ("all", "own"):
            found.setdefault(row["relevance"], {})[row["model"]] = row["mrr"]
    pairs = {
        name: [(mrr["standard"], mrr["appaware"]), tuple(v / 100 for v in PUBLISHED[name])]
        for name, mrr in found.items()
    }
    names = ("Standard", "AppAware", "relative change")
    formats = dict(zip(names, (PERCENT, PERCENT, POINTS), strict=True))
    return Table(
        "MRR at every keystroke in percent, simulated, beside Table 3.5, which has other people "
        "and queries: to be compared in kind alone",
        {"relevance": ""} | formats | {f"published, {n}": form for n, form in formats.items()},
        [
            [name, *(v for base, own in both for v in (base, own, own / base - 1))]
            for name, both in pairs.items()
        ],
    )


def controls_table(found: Sequence[tuple[str, str, Sequence[Mapping[str, float]]]]) -> Table:
    """Return the gains over Standard: setting, relevance, and `control`'s gains by log."""
    rows: list[list[Any]] = []
    for setting, relevance, logs in found:
        for model in logs[0]:
            gains = np.array([log[model] for log in logs])
            test = paired_t_test(gains, np.zeros(len(gains)), np.arange(len(gains)))
            rows.append([setting, relevance, model, [test.difference, test.low, test.high]])
    logs = found[0][2]
    return Table(
        f"Points of MRR with 95 % intervals over {len(logs)} logs; every keystroke, no gate "
        "(simulated)",
        {"setting": "", "relevance": "", "model": "", "gain over Standard": GAIN},
        rows,
    )


def abundance_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return how many queries have an app opened before, in numbers of Figure 3.2."""
    published = {30: [PUBLISHED_SHARE, PUBLISHED_DISTINCT]}
    return Table(
        "Apps opened before a query (simulated)",
        {
            "minutes before the query": "",
            "queries with an app opened, %": "100 .1f",
            "distinct apps where any": ".2f",
            "most": "",
            "published, queries, %": "100 .1f",
            "published, distinct": ".1f",
        },
        [
            [
                row["minutes"],
                row["share"],
                row["distinct"],
                row["most"],
                *published.get(row["minutes"], [None, None]),
            ]
            for row in found
        ],
    )


def top_queries_table(found: Mapping[str, Any]) -> Table:
    """Return the top queries of a prefix with an app and without it, with their shares."""
    word = "opened within 30 minutes" if found["opened"] else "installed"
    pairs = zip_longest(found["with"], found["without"])
    return Table(
        f"Top queries beginning with “{found['prefix']}”, in percent (as Tables 3.1 and 3.2)",
        {
            f"by people with {found['app']} {word}": "",
            "of theirs": "100 .0f",
            "by the others": "",
            "of the others'": "100 .0f",
        },
        [[*(own or (None, None)), *(other or (None, None))] for own, other in pairs],
    )


def pairs_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return the query–app pairs with the largest weights."""
    return Table(
        "The strongest query–app pairs, for readers to judge",
        {"query": "", "app": "", "weight": "+.2f"},
        [[row["query"], row["app"], row["weight"]] for row in found],
    )


def sweep_table(parameter: str, label: str, found: Rows) -> Table:
    """Return what a figure of Figures 3.6 and 3.7 shows, in numbers."""
    return Table(
        f"AppAware (MPC) against {label}, every keystroke, in percent (simulated)",
        {label: "g", **{measure.upper(): PERCENT for measure in MEASURES}},
        [[row[key] for key in (parameter, *MEASURES)] for row in found],
    )


def convergence_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """Return the gaps of Figure 3.3 after some passes."""
    gaps: dict[str, dict[int, float]] = {}
    for row in found:
        gaps.setdefault(row["method"], {})[round(row["pass"])] = row["gap"]
    passes = (1, 5, 15)
    return Table(
        "Gap of the objective after some passes",
        {"method": "", **{f"{p} passes" if p > 1 else "1 pass": ".1e" for p in passes}},
        [[method, *(own.get(p) for p in passes)] for method, own in gaps.items()],
    )


def together_table(found: Rows) -> Table:
    """Return implicit feedback, apps, and both in one fit."""
    against = {"feedback": "feedback", "appaware": "AppAware"}
    columns = {"prefixes": ("prefixes", ""), "model": ("model", ""), "MRR": ("mrr", PERCENT)}
    for key, name in against.items():
        columns |= {
            f"over {name}": (f"over {key}", POINTS),
            f"p over {name}": (f"p over {key}", "p"),
        }
    return Table.of(
        "One fit with both kinds of signals, MPC, no gate: MRR in percent, changes in points",
        found,
        columns,
    )


def real_pairs_table(found: Rows) -> Table:
    """Return what apps are worth on real query–app pairs, people held out."""
    return Table.of(
        f"{REAL_PAIRS} counting once; 0 where the query is not among the ten candidates. Change in "
        "points, each person counting once",
        [{**row, "apps": "another's" if row["shuffled"] else "own"} for row in found],
        {
            "ranked": ("unit", ""),
            "held out": ("held_out", ""),
            "apps": ("apps", ""),
            "characters": ("prefix_length", ""),
            "coverage": ("coverage", PERCENT),
            "popularity": ("standard", PERCENT),
            "AppAware": ("appaware", PERCENT),
            "change": ("difference", POINTS),
            "95 % interval": (("low", "high"), INTERVAL),
            "p": ("p_value", "p"),
        },
        note="Popularity has learned a weight for each text where a training fold shows that it "
        "helps.",
    )
