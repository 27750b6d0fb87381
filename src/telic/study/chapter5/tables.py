"""What Figure 5.1 shows, in numbers."""

from typing import Any

import numpy as np

from telic.report.table import Table, finite
from telic.study.chapter5.experiments import (
    LEVELS,
    LINEARISED,
    MEASURES,
    PRINTED_PASSES,
    fall,
    last,
    reach,
    settle,
)

ORDER_AT = 1e-3
"""Relative gap at which the methods are put in order."""
PRINTED_AT = (5, 20, PRINTED_PASSES)
"""Passes after which the printed parameters are looked at."""


def reach_table(name: str, found: dict[str, Any]) -> Table:
    """Return the time that each method needs to reach each gap."""
    return Table(
        f"{name}: seconds (and passes) to a relative gap, median",
        {
            "method": "",
            "step": "g",
            **{f"{level:g}": "{:.3f} ({:.0f})" for level in LEVELS},
            "last": ".1e",
            "half / last": ".1f",
        },
        [
            [
                method,
                one["multiple"],
                *(_reached(one["runs"], level) for level in LEVELS),
                last(one["runs"]),
                fall(one["runs"]),
            ]
            for method, one in found.items()
        ],
        note="A dash: most runs do not get there. Half / last: the gap at half of the passes, "
        "divided by the last one.",
    )


def _reached(runs: list[np.ndarray], level: float) -> list[float] | None:
    passes, seconds = reach(runs, level)
    return [seconds, passes] if np.isfinite(seconds) else None


def measures_table(name: str, found: dict[str, Any]) -> Table:
    """Return how long each measure of convergence takes, for the methods that have a y."""
    return Table(
        f"{name}: passes after which each measure of 5.7.2 stays within {ORDER_AT:g}, median",
        {"method": ""} | dict.fromkeys(MEASURES, ".0f"),
        [
            [
                method,
                *(finite(settle(one["runs"], ORDER_AT, place)) for place in MEASURES.values()),
            ]
            for method, one in found.items()
            if method != "SDCA"
        ],
        note="All are relative. The gap is f(x) + g(Ax) − P*. The gap with y is the "
        "dissertation's, f(x) + g(y) − P*; it may be negative, and what counts is its size. Q is "
        "that of (5.5.1). A dash: it does not stay within. SDCA-ADMM has no y of its own.",
    )


def printed_table(name: str, found: dict[str, list[list[list[float]]]]) -> Table:
    """Return how far the printed settings get, beside others, in so many passes."""
    rows = []
    for setting, runs in found.items():
        for passes in PRINTED_AT:
            reached = [_values_at(np.asarray(run), passes) for run in runs]
            rows.append([setting, passes, *np.median(reached, axis=0).tolist()])
    return Table(
        f"{name}: SVR-ADMM with the printed parameters, median",
        {"setting": "", "passes": "d"} | dict.fromkeys(MEASURES, ".1e"),
        rows,
        note="As printed: single rows, η = 5e-3, ρ = 1e-4, and m⁽⁰⁾ = 1 or m = n. The "
        "dissertation fixes P as I in 5.7.5 and takes the linearised x-step in 5.7.1. Values are "
        "of the last complete stage by then; a run that ended at the gap of 1e-7 keeps its last.",
    )


def _values_at(run: np.ndarray, passes: float) -> list[float]:
    """Return the measures at a run's last look by then, or at its first."""
    row = run[max(int(np.searchsorted(run[:, 0], passes, side="right")) - 1, 0)]
    return [float(row[place]) for place in MEASURES.values()]


def sizes_table(found: dict[str, dict[str, Any]]) -> Table:
    """Return Table 5.1, with the edges of our graphs."""
    return Table(
        "Table 5.1: the sets",
        {"set": "", "rows": ",", "features": ",", "edges": ","},
        [[name, *(facts[key] for key in ("n", "d", "edges"))] for name, facts in found.items()],
    )


def bias_table(name: str, rows: list[list[float]]) -> Table:
    """Return what SDCA-ADMM's perturbation costs."""
    return Table(
        f"{name}: SDCA-ADMM solves a perturbed problem",
        {"λ₂": "g", "its own limit": ".1e", "reached": ".1e", "passes": ".0f"},
        rows,
        note="Its own limit: the relative gap of that problem's minimiser, O(λ₂). Reached: by one "
        "longer run.",
    )


def order(found: dict[str, Any]) -> str:
    """Say in which order the dissertation's methods reach the gap, by passes and by seconds."""
    names = {method.name for method in LINEARISED} - {"batch"}
    lines = []
    for at, unit in ((0, "passes"), (1, "seconds")):
        reached = {name: reach(one["runs"], ORDER_AT)[at] for name, one in found.items()}
        there = sorted(
            (name for name in names if np.isfinite(reached[name])), key=reached.__getitem__
        )
        never = sorted(name for name in names if not np.isfinite(reached[name]))
        line = f"By {unit} to {ORDER_AT:g}: {', '.join(there)}"
        lines.append(line + (f"; not at all: {', '.join(never)}." if never else "."))
    return " ".join(lines)
