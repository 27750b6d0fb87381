"""Chapter 2's tables beside those of `telic.completion.evaluation.report`, and what they say."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from telic.completion.evaluation.report import LISTS, PERCENT, POINTS, Rows
from telic.completion.fit.models import MODELS
from telic.completion.learning.filtering_qac import DWELL_THRESHOLDS
from telic.report.table import Table, finite
from telic.simulate.dwell_controls import over_seeds
from telic.study.chapter2.published import PUBLISHED

Effects = Sequence[Mapping[str, float]]
"""What `telic.simulate.dwell_effect` found, by seed."""
Attention = tuple[float, Effects]
"""A share of lists looked at, and the effects there."""


def published_table(rows: Rows) -> Table:
    """Return MRR at the last keystroke on own lists, beside Tables 2.3 and 2.4."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if (row["prefixes"], row["lists"]) == ("last", "own"):
            found.setdefault((row["relevance"], row["protocol"]), []).append(row["mrr"])
    return Table(
        "MRR at the last keystroke in percent, simulated, beside Tables 2.3 and 2.4, which are on "
        "a search engine's private log: to be compared in kind alone",
        {
            "relevance": "",
            "protocol": "",
            **dict.fromkeys(MODELS, PERCENT),
            **{f"published, {model}": PERCENT for model in MODELS},
        },
        [[*key, *mrr, *(v / 100 for v in PUBLISHED[key[0]])] for key, mrr in found.items()],
    )


def users_table(users: Sequence[Mapping[str, Any]]) -> Table:
    """Return the medians of Figure 2.5."""
    models = list(users[0]["mrr"])
    return Table(
        "Median over users of MRR at the last keystroke in percent (as Figure 2.5)",
        {"relevance": "", "protocol": "", "list": "", **dict.fromkeys(models, PERCENT)},
        [
            [
                one["relevance"],
                one["protocol"],
                LISTS[one["lists"]],
                *(float(np.median(one["mrr"][model])) for model in models),
            ]
            for one in users
        ],
    )


def not_submitted_table(shares: Sequence[Sequence[float]]) -> Table:
    """Return some thresholds of Figure 2.2c; `shares` are by dwell time and position."""
    rows = []
    for dwell in (0.1, 0.5, 0.9, 2.0, 3.0):
        own = shares[int(np.argmin(np.abs(np.asarray(DWELL_THRESHOLDS) - dwell)))]
        rows.append([dwell, *(finite(own[at - 1]) for at in (1, 3, 10))])
    columns = {f"position ≤ {at}": PERCENT for at in (1, 3, 10)}
    return Table(
        "Suggestions that are not submitted in the end, in percent (as Figure 2.2c)",
        {"seconds shown, at least": "g", **columns},
        rows,
    )


def convergence_table(rows: Sequence[Mapping[str, float]]) -> Table:
    """Return some steps of Figure 2.4, left."""
    return Table.of(
        "adaQAC-Batch (TimeSense-S) after some gradient steps (as Figure 2.4, left)",
        [row for row in rows if row["iteration"] in (0, 5, 10, 20, 40)],
        {
            "gradient steps": ("iteration", ""),
            "left of the way to the optimum": ("gap", ".1%"),
            "MRR, %": ("mrr", PERCENT),
        },
    )


def regulariser_table(rows: Sequence[Mapping[str, float]]) -> Table:
    """Return Figure 2.4, right."""
    return Table(
        "adaQAC-Batch (TimeSense-S) by the weight of the penalty (as Figure 2.4, right)",
        {"λ": "g", "MRR, %": PERCENT},
        [[row["l2"], row["mrr"]] for row in rows],
    )


def candidates_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the gain and the cost of re-ranking more than ten candidates."""
    return Table(
        "Personal-S, every keystroke of the test part (simulated); MRR in percent",
        {"candidates": "", "static": PERCENT, "adaqac-online": PERCENT, "µs per keystroke": ".1f"},
        [[row[key] for key in ("candidates", "static", "mrr", "microseconds")] for row in rows],
    )


def knowledge_table(found: Mapping[str, Mapping[str, Effects]]) -> Table:
    """Return what reaches a completer of what the lists know: typists, what it is told, effects."""
    return Table.of(
        "MRR in percent, changes in points (simulated)",
        [
            {"setting": setting, "told": told, **over_seeds(effects)}
            for setting, by_told in found.items()
            for told, effects in by_told.items()
        ],
        {
            "typists": ("setting", ""),
            "completer is told": ("told", ""),
            "shown, own": ("shown", "100 .1f"),
            "static": ("static", PERCENT),
            "feedback − static": ("gain", POINTS),
            "log − dwell twin": (("dwell", "low", "high"), "100 {:+.2f} ({:+.2f} … {:+.2f})"),
            "re-ranked static": ("reranked", PERCENT),
            "re-ranked feedback − static": ("reranked gain", POINTS),
        },
    )


def attention_table(found: Sequence[Attention]) -> Table:
    """Return the gain of feedback as calibrated typists look at more lists."""
    shown = "100 {:+.2f} ± {:.2f}"
    return Table(
        "Points of MRR, mean ± standard error over seeds (simulated)",
        {"share of lists looked at": "g", "feedback − static": shown, "log − dwell twin": shown},
        [
            [level, *(standard_error(effects, key) for key in ("gain", "dwell"))]
            for level, effects in found
        ],
    )


def standard_error(effects: Effects, key: str) -> list[float]:
    """Return the mean of a number over seeds, and its standard error."""
    values = np.array([one[key] for one in effects])
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


KNOWLEDGE = (
    "The lists are those of a box that ranks by what people really want. A completer is told the "
    "same catalogue (all), an older one, with other popularity and three tenths of the phrases "
    "missing (older), or nothing but the log. MPC, last keystroke, %, adaQAC-UnP without the "
    "gate. “Shown, own”: the share of the suggestions shown that the completer would have "
    "suggested itself. Where it knows less, what people chose from the lists is often no "
    "candidate of its own; re-ranking the shown list borrows the box's knowledge. Feedback "
    "borrows some too: the positions of a list tell what the box knew, so feedback gains even "
    "with inattentive typists, who look at no list. Dwell times add nothing there, and gains of "
    "this kind disappear once the completer shows its own lists."
)
