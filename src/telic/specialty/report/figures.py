"""The pictures of the report: what may be shown in a table may be drawn, and nothing else."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from scipy import sparse

from telic.specialty.discovery.result import Discovery, Specialty
from telic.specialty.later_logs.kept_findings import places
from telic.specialty.log.access_log import AccessLog
from telic.specialty.small_cells import SMALL_CELL

DARK, LIGHT, GREY = "#2456c5", "#b9c9ee", "#c9ced6"
MOST_SPECIALTIES = 12
"""Specialties drawn at once."""
OF_EACH = 3
"""Diagnoses of each specialty on the map."""
RESAMPLES = 200
"""Resamples of a specialty's users behind an interval."""
LIFT_SHRINK = 50
"""As in `telic.specialty.discovery.result.lifts`."""


def label_of(one: Specialty) -> str:
    """Return a specialty's name for a picture: its code, or its diagnoses with a mark."""
    return one.listed_code or f"(no code) {one.name}"


def shortened(text: str, length: int = 44) -> str:
    """Cut a long name; what stands between two dollars is no formula.

    Examples
    --------
    >>> shortened("a very long diagnosis", 12)
    'a very long…'
    """
    text = text if len(text) <= length else text[: length - 1].rstrip() + "…"
    return text.replace("$", r"\$")


def map_figure(log: AccessLog, discovery: Discovery) -> tuple[Figure, int]:
    """Draw specialties by diagnoses: how many times as often as everybody they access each.

    Cells of fewer than `SMALL_CELL` patients stay empty. With the figure comes the number of
    specialties that there was no room for.
    """
    drawn = discovery.specialties[:MOST_SPECIALTIES]
    wanted = list(dict.fromkeys(code for one in drawn for code, _ in one.diagnoses[:OF_EACH]))
    counts, base = _counts(log)
    lift = np.full((len(drawn), len(wanted)), np.nan)
    for row, one in enumerate(drawn):
        own = counts[one.users].sum(axis=0)
        column, shown = _columns(log, one.users, wanted)
        lift[row, shown] = _shrunk(own, base, column[shown])
    figure = Figure(figsize=(9.4, 2.2 + 0.34 * len(drawn)))
    axes = figure.subplots()
    ramp = LinearSegmentedColormap.from_list("lift", ["#ffffff", LIGHT, DARK, "#10275e"])
    colours = ramp.with_extremes(bad="#e4e7eb")
    image = axes.imshow(np.log2(lift).clip(0), cmap=colours, aspect="auto", vmin=0, vmax=4)
    names = [shortened(log.label(code), 34) for code in wanted]
    axes.set_xticks(range(len(wanted)), names, rotation=48, ha="right", fontsize=7)
    axes.set_yticks(range(len(drawn)), [shortened(label_of(one), 40) for one in drawn], fontsize=8)
    axes.set_xticks(np.arange(len(wanted) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(drawn) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    scale = figure.colorbar(image, ax=axes, ticks=range(5), shrink=0.9, pad=0.02)
    scale.ax.set_yticklabels(["as others", "2 times", "4 times", "8 times", "16 times"], fontsize=7)
    scale.outline.set_visible(False)
    return figure, len(discovery.specialties) - len(drawn)


def lifts_figure(log: AccessLog, one: Specialty) -> Figure | None:
    """Draw a specialty's lifts in this log as bars, with intervals over resampled users.

    Diagnoses of fewer than `SMALL_CELL` patients are left out, as a later log may have them. None
    is returned if no other is left.
    """
    codes = [code for code, _ in one.diagnoses][::-1]
    column, shown = _columns(log, one.users, codes)
    if not shown.any():
        return None
    column, codes = column[shown], [*compress(codes, shown)]
    names = [shortened(log.label(code)) for code in codes]
    low, high = lift_intervals(log, one.users, codes)
    counts, base = _counts(log)
    value = _shrunk(counts[one.users].sum(axis=0), base, column)
    figure = Figure(figsize=(7.6, 0.9 + 0.26 * len(codes)))
    axes = figure.subplots()
    # A resample's middle may lie beside the measured lift, which the interval then holds too.
    reach = [(value - low).clip(0), (high - value).clip(0)]
    place = np.arange(len(names))  # bars of one name would stand in one place
    axes.barh(place, value, color=LIGHT, xerr=reach, ecolor=DARK, capsize=2)
    axes.set_yticks(place, names)
    axes.axvline(1, color="#5a6472", linewidth=0.8)
    axes.set_xlabel("times as often as everybody", fontsize=8)
    axes.tick_params(labelsize=8)
    _plain(axes)
    return figure


def lift_intervals(
    log: AccessLog, users: np.ndarray, codes: Sequence[str], *, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return 95 % intervals of lifts: users are drawn anew, with replacement.

    Diagnoses of one user's accesses are no independent draws, so users are the unit.
    """
    counts, base = _counts(log)
    column = np.searchsorted(log.codes, codes)
    own = counts[users].toarray()
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(users), np.full(len(users), 1 / len(users)), size=RESAMPLES)
    drawn = np.array([_shrunk(one @ own, base, column) for one in times])
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    return low, high


def months_figure(months: Sequence[str], before: Sequence[int], after: Sequence[int]) -> Figure:
    """Draw alarms per month: all that there were, and those that stay open."""
    figure = Figure(figsize=(9.4, 2.7))
    axes = figure.subplots()
    place = np.arange(len(months))
    axes.bar(place, before, width=0.8, color=LIGHT, label="before: all alarms")
    axes.bar(place, after, width=0.5, color=DARK, label="now: those that stay open")
    axes.set_xticks(place, months, rotation=60, fontsize=8)
    axes.set_ylabel("alarms")
    axes.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), fontsize=8)
    _plain(axes)
    return figure


def declared_figure(rows: Sequence[Sequence[Any]]) -> Figure:
    """Draw what the users of each specialty declare, as far as numbers are shown.

    Rows are as in the table (name, users, it, another, none): numbers, None, or texts where a
    number is not shown.
    """
    rows = list(rows)[:MOST_SPECIALTIES][::-1]
    names = [shortened(str(row[0]), 40) for row in rows]
    figure = Figure(figsize=(9.4, 1.0 + 0.3 * len(rows)))
    axes = figure.subplots()
    left, lines = np.zeros(len(rows)), np.arange(len(rows))
    parts = ((2, "declare it", DARK), (3, "declare another code", LIGHT), (4, "declare none", GREY))
    for place, label, colour in parts:
        number = np.array([row[place] if isinstance(row[place], int) else 0 for row in rows])
        axes.barh(lines, number, left=left, color=colour, label=label)
        left += number
    axes.set_yticks(lines, names)
    for i, row in enumerate(rows):
        if any(isinstance(row[place], str) for place, _, _ in parts):
            axes.annotate(
                "small numbers not shown",
                (left[i], i),
                (4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color="#5a6472",
            )
    axes.set_xlabel("users", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), fontsize=8)
    _plain(axes)
    return figure


def _counts(log: AccessLog) -> tuple[sparse.csr_array, np.ndarray]:
    """Users' accesses by diagnosis, and the hospital's mix."""
    counts = log.user_diagnosis()
    return counts, counts.sum(axis=0) / counts.sum()


def _columns(
    log: AccessLog, users: np.ndarray, codes: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Places of codes in the log, and whether they may be shown: it may be later than the codes."""
    column, known = places(np.array(codes, dtype=str), log.codes)
    return column, known & (log.diagnosed_patients(users)[column] >= SMALL_CELL)


def _shrunk(own: np.ndarray, base: np.ndarray, column: np.ndarray) -> np.ndarray:
    return (own[column] + LIFT_SHRINK * base[column]) / ((own.sum() + LIFT_SHRINK) * base[column])


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
