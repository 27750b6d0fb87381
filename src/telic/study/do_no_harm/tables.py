"""What users lose who change after fitting, and how often the gate opens."""

from collections.abc import Mapping, Sequence

import numpy as np

from telic.report import Table
from telic.study.do_no_harm.experiments import RULE, Case, Ranges, judge, rows

GAIN = "100 {:+.2f} ({:+.2f} … {:+.2f})"


def verdicts_table(cases: Sequence[Case]) -> Table:
    """Return what is kept and lost without and with the running check."""
    verdicts = {"no check": judge(cases, None), "running check": judge(cases, RULE)}
    return Table(
        "Gains that are kept where a model gains, in percent; points lost, as the mean of the "
        "cases that lose and in the worst case (simulated)",
        {"": "", "kept": "100 .1f", "lost": "100 .2f", "worst case": "100 .2f"},
        [[name, *verdict] for name, verdict in verdicts.items()],
    )


def changes_table(cases: Sequence[Case]) -> Table:
    """Return what users gain after each change, without and with the running check."""
    return Table.of(
        "Points after the change, with 95 % intervals over users (simulated)",
        [row for row in rows(cases) if row["gain"] or row["worst"]],
        {
            "before": ("before", ""),
            "after": ("after", ""),
            "model": ("model", ""),
            "without the check": (("gain", "gain_low", "gain_high"), GAIN),
            "with it": (("checked", "checked_low", "checked_high"), GAIN),
            "held, %": ("held", "100 .0f"),
            "worst stretch without": ("worst", ".2f"),
            "worst stretch with it": ("worst_checked", ".2f"),
        },
        note="“Held” is the share of submissions whose gain or loss the check kept away. “Worst "
        "stretch” is the largest sum that any user lost over any stretch of submissions, in "
        "reciprocal rank. Where the fitted gate is closed for everybody there is no row.",
    )


def openings_table(found: Mapping[str, Ranges]) -> Table:
    """Return how often the gate opens, with one test for each range and with Holm's procedure."""
    return Table(
        "Fits in which any range of prefix length opens, and mean number of ranges (simulated)",
        {
            "gains of": "",
            "any, each range alone": ".3f",
            "any, Holm": ".3f",
            "ranges, each alone": ".2f",
            "ranges, Holm": ".2f",
        },
        [
            [
                setting,
                *(np.array(counts) > 0).mean(axis=0).tolist(),
                *np.mean(counts, axis=0).tolist(),
            ]
            for setting, counts in found.items()
        ],
    )
