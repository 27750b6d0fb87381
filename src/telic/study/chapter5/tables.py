"""What Figure 5.1 shows, in numbers."""

from typing import Any

import numpy as np

from telic.report import Table
from telic.study.chapter5.experiments import LEVELS, LINEARISED, fall, last, reach

ORDER_AT = 1e-3
"""Relative gap at which the methods are put in order."""


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
