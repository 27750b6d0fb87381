"""How far feedback may move suggestions, for simulated typists who look at lists or do not."""

from collections.abc import Sequence
from typing import Any

from telic.completion import BOUNDED, CAREFUL
from telic.errors import InputError
from telic.report import Report, Table
from telic.study.saturation.experiments import COMPOSITIONS, strangers
from telic.study.steps import SPREAD, Steps

FIRST_SEED = 2
"""The bounds were chosen on the seeds 0 and 1."""
SETTINGS = ("calibrated", "readers")


def study(steps: Steps, *, users: int = 100, seeds: int = 2) -> Report:
    """Fit on simulated typists and let other kinds use the completer, with bounds and without.

    Parameters
    ----------
    steps : Steps
    users : int
        To fit on; half as many of each kind use the completer.
    seeds : int
        Logs of each setting.
    """
    if users < 10 or seeds < 1:
        raise InputError(f"users is {users} and seeds {seeds}, expected at least 10 and 1.")
    report = Report(
        "Bounds on feedback: how far lists may move a suggestion",
        lead=f"Simulated: each completer is fitted on {users} typists with 80 compositions each "
        f"over the world’s places. Then {users // 2} others, who type and look in other ways, "
        f"use it for {COMPOSITIONS} compositions each (telic.study.saturation.experiments). "
        "“careful” is the default protocol; “bounded” limits how much each feature, and all "
        "feedback on a suggestion, counts for. The columns “everywhere” and “as served” give "
        "the gain in MRR over the static order, over all keystrokes, in points, with 95 % "
        "intervals over users. “everywhere” leaves out gate and running check; “as served” "
        "counts the gain only where both allow it. “most” is the largest change of any "
        "suggestion’s preference. The last two columns are the limits that the fitted weights "
        "set on the change by one list and by a whole composition.",
    )
    for setting in SETTINGS:
        rows = []
        for seed in range(FIRST_SEED, FIRST_SEED + seeds):
            for protocol in (CAREFUL.name, BOUNDED.name):
                found = steps(
                    f"{setting}, {protocol}, log {seed}",
                    strangers,
                    setting=setting,
                    protocol=protocol,
                    users=users,
                    seed=seed,
                )
                rows += [{"protocol": protocol, "seed": seed, **row} for row in found]
        kinds = [row["kind"] for row in rows]
        table = Table.of(
            "What feedback is worth to typists whom the log does not know",
            sorted(rows, key=lambda row: (row["seed"], kinds.index(row["kind"]))),
            {
                "typists": ("kind", ""),
                "protocol": ("protocol", ""),
                "log": ("seed", ""),
                "MRR static": ("static", "100 .2f"),
                "everywhere": ("bare", SPREAD),
                "as served": ("served", SPREAD),
                "most": ("most", ".1f"),
                "by one list at most": ("by list", ".1f"),
                "by a composition at most": ("by composition", ".1f"),
            },
        )
        report.section(f"Fitted on typists of the setting {setting}")
        report.text(_worst(table.rows))
        report.table(table)
    return report


def _worst(rows: Sequence[Sequence[Any]]) -> str:
    """Say what the typists who lose most gain, under each protocol."""
    said = []
    for protocol in (CAREFUL.name, BOUNDED.name):
        own = [row for row in rows if row[1] == protocol]
        bare, served = (min(own, key=lambda row: row[place][0]) for place in (4, 5))
        text = f"under {protocol} {100 * bare[4][0]:+.2f} points everywhere ({bare[0]})"
        if served[5][0] < 0:
            text += f", {100 * served[5][0]:+.2f} as served ({served[0]})"
        else:
            text += ", none below zero as served"
        said.append(text.replace("-", "−"))
    return f"The lowest gains of any typists: {'; '.join(said)}."
