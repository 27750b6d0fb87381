"""What chapter 2 says, and how it is tried on simulated typists."""

from functools import partial
from typing import Any

from telic.completion.fit.models import MODELS
from telic.completion.learning.adaqac import CAREFUL, PAPER
from telic.completion.learning.relevance import NAMES
from telic.study.chapter2.published import (
    PUBLISHED,
    PUBLISHED_ACCURACY,
    PUBLISHED_BY_LENGTH,
    RANGES,
)
from telic.study.claims import Cases, Claim, Effect, Found, Printed, Tables, Value, by_row, cases

LAST = "SIMULATED people. Accuracy in percent at the last keystroke"
EVERY = "SIMULATED people. MRR at every keystroke"
LENGTHS = "By prefix length"
POINTS = "100 +.2f"
STATIC, FILTERING, BATCH, UNP, ONLINE = MODELS
MIDDLE = "7-9"
"""Characters of the prefix at which the published gains are largest."""


def _last(tables: Tables, model: str, protocol: str, relevance: str) -> dict[str, Any]:
    return tables.row(LAST, relevance=relevance, protocol=protocol, model=model)


def _gain(tables: Tables, model: str, protocol: str, relevance: str = "mpc") -> Found:
    row = _last(tables, model, protocol, relevance)
    return Found(row["change"], *row["95 % interval"])


def _gains(tables: Tables, model: str, protocol: str) -> Found:
    """Count the relevance scores with a significant gain at the last keystroke."""
    gains = [_gain(tables, model, protocol, relevance) for relevance in NAMES]
    return cases([gain.interval[0] > 0 for gain in gains])


def _no_gains(tables: Tables) -> Found:
    gains = [_gain(tables, FILTERING, PAPER.name, relevance) for relevance in NAMES]
    return cases([gain.interval[0] <= 0 for gain in gains])


def _gains_at_every_keystroke(tables: Tables, model: str) -> Found:
    changes = [
        tables.row(EVERY, relevance=name, protocol=CAREFUL.name, list="own")[model]
        for name in NAMES
    ]
    return cases([change > 0 and p < 0.05 for change, p in changes])


def _ordered(tables: Tables) -> Found:
    mrr = [
        [_last(tables, model, CAREFUL.name, name)["MRR"] for model in (BATCH, ONLINE, UNP)]
        for name in NAMES
    ]
    return cases([batch > online > unp for batch, online, unp in mrr])


def _middle(tables: Tables) -> Found:
    true = []
    for name in NAMES:
        row = tables.row(LENGTHS, relevance=name, protocol=CAREFUL.name, model=BATCH)
        gains = {at: row[at][1] for at in RANGES if at != "all" and row[at]}
        true.append(max(gains, key=gains.__getitem__) == MIDDLE)
    return cases(true)


def _longer_and_higher(tables: Tables) -> Found:
    """Compare the longest dwell with the shortest, and position 1 with all ten."""
    rows = [[*row.values()][1:] for row in tables.rows("Suggestions that are not submitted")]
    pairs = [*zip(rows[-1], rows[0], strict=True), *((row[0], row[-1]) for row in rows)]
    return cases([high > low for high, low in pairs if None not in (high, low)])


def _left_of_the_way(tables: Tables) -> Found:
    row = tables.row("adaQAC-Batch (TimeSense-S) after some", gradient_steps=40)
    return Found(row["left of the way to the optimum"])


def _range_near_the_optimum(tables: Tables) -> Found:
    rows = tables.rows("adaQAC-Batch (TimeSense-S) by the weight")
    near = [row["MRR, %"] for row in rows if 1e-3 <= row["λ"] <= 1e-1]
    return Found(max(near) - min(near))


def _medians(tables: Tables) -> Found:
    rows = tables.rows("Median over users", protocol=CAREFUL.name, list="own")
    return cases([min(row[BATCH], row[ONLINE]) > row[STATIC] for row in rows])


def _effect(model: str) -> Effect:
    published = PUBLISHED["mpc"]
    return Effect((published[MODELS.index(model)] - published[0]) / 100, POINTS)


ALL = Cases(len(NAMES), len(NAMES))
_WHO = "people of a search engine; ours are simulated, and look at lists as the data card says"
CLAIMS = (
    Claim(
        "Figure 2.2",
        "what is shown longer, or higher in the list, is less often what is submitted in the end",
        Cases(8, 8),
        _longer_and_higher,
        note="five dwell times, three positions",
    ),
    Claim(
        "Table 2.3",
        "adaQAC-Batch raises the MRR of MPC, points; as printed",
        _effect(BATCH),
        partial(_gain, model=BATCH, protocol=PAPER.name),
        note=f"{_WHO}; the printed protocol trains on a candidate that testing never has",
    ),
    Claim(
        "Table 2.3",
        "adaQAC-Batch raises the MRR of MPC, points; careful protocol",
        _effect(BATCH),
        partial(_gain, model=BATCH, protocol=CAREFUL.name),
        note=_WHO,
    ),
    Claim(
        "Table 2.3",
        "adaQAC-Batch raises the MRR of every relevance score significantly",
        ALL,
        partial(_gains, model=BATCH, protocol=CAREFUL.name),
        note=_WHO,
    ),
    Claim("Table 2.3", "Filtering QAC raises no MRR significantly", ALL, _no_gains),
    Claim(
        "Table 2.4",
        "adaQAC-UnP raises the MRR of every relevance score significantly",
        ALL,
        partial(_gains, model=UNP, protocol=CAREFUL.name),
        note=_WHO,
    ),
    Claim(
        "Table 2.4",
        "adaQAC-Online raises the MRR of MPC, points",
        _effect(ONLINE),
        partial(_gain, model=ONLINE, protocol=CAREFUL.name),
        note=_WHO,
    ),
    Claim(
        "Table 2.4",
        "adaQAC-Batch is above adaQAC-Online, and this above adaQAC-UnP, for every score",
        ALL,
        _ordered,
    ),
    Claim(
        "Table 2.5",
        "adaQAC-Batch raises the MRR of every score at every keystroke significantly",
        ALL,
        partial(_gains_at_every_keystroke, model=BATCH),
    ),
    Claim(
        "Table 2.5",
        "adaQAC-Online raises the MRR of every score at every keystroke significantly",
        ALL,
        partial(_gains_at_every_keystroke, model=ONLINE),
    ),
    Claim("Table 2.5", "the gain of adaQAC-Batch is largest at 7–9 characters", ALL, _middle),
    Claim(
        "Figure 2.4",
        "40 gradient steps reach the optimum: share of the way that is left",
        Value(0.0, 0.01, ".1%"),
        _left_of_the_way,
        note="telic takes Newton's method, which reaches the optimum",
    ),
    Claim(
        "Figure 2.4",
        "the MRR hardly changes with λ from 0.001 to 0.1: range, points",
        Value(0.0, 0.005, "100 .2f"),
        _range_near_the_optimum,
    ),
    Claim(
        "Figure 2.5",
        "the median user's MRR is higher with adaQAC-Batch and -Online, for every score",
        ALL,
        _medians,
    ),
)


def _accuracy(measure: str) -> Printed:
    def ours(tables: Tables, relevance: str, model: str) -> float | None:
        return _last(tables, model, CAREFUL.name, relevance)[measure]

    return Printed(
        ("Table 2.3", "Table 2.4"),
        f"Tables 2.3 and 2.4: {measure} in percent (ours simulated, careful protocol)",
        "relevance",
        "100 .2f",
        by_row(PUBLISHED_ACCURACY[measure], MODELS),
        ours,
    )


def _by_length(model: str) -> Printed:
    def ours(tables: Tables, relevance: str, length: str) -> float | None:
        row = tables.row(LENGTHS, relevance=relevance, protocol=CAREFUL.name, model=model)
        return row[length] and row[length][0]

    cells = by_row(PUBLISHED_BY_LENGTH[model], RANGES)
    title = f"Table 2.5: MRR of {model} by characters typed, in percent (ours simulated, careful)"
    return Printed(("Table 2.5",), title, "relevance", "100 .2f", cells, ours)


PRINTED = (*map(_accuracy, PUBLISHED_ACCURACY), *map(_by_length, PUBLISHED_BY_LENGTH))
