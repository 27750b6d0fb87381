"""Figures of an evaluation: users, dwell times, thresholds, prefix lengths."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from telic.completion.evaluation.adaqac_evaluation import PREFIXES
from telic.completion.learning.filtering_qac import DWELL_THRESHOLDS, POSITION_THRESHOLDS


def users_figure(found: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw box plots of the users' MRR, one group per relevance (Figure 2.5)."""
    figure, axes = pyplot.subplots(figsize=(9, 3.6))
    models = list(found[0]["mrr"])
    for place, one in enumerate(found):
        for i, mrr in enumerate(one["mrr"].values()):
            box = axes.boxplot(
                mrr,
                positions=[place + (i - 1) * 0.25],
                widths=0.2,
                patch_artist=True,
                flierprops={"markersize": 2},
                medianprops={"color": "black"},
            )
            box["boxes"][0].set_facecolor(f"C{i}")
    names = [
        one["relevance"] + (f"\nN = {one['candidates']}" if one["candidates"] != 10 else "")
        for one in found
    ]
    axes.set_xticks(range(len(found)), names)
    axes.set_ylabel("MRR of a user")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=f"C{i}") for i in range(len(models))]
    figure.legend(handles, models, loc="outside upper center", ncols=len(models), fontsize=8)
    return figure


def dwell_figure(histograms: Mapping[str, Any]) -> Figure:
    """Draw what `dwell_histograms` counts (Figures 2.2a and 2.2b)."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.2))
    edges = np.asarray(histograms["edges"])[:-1]
    for line in np.asarray(histograms["sample"]):
        left.plot(edges, 100 * line, lw=1)
    left.set(xlabel="dwell time, s", ylabel="% of a user's lists", xlim=(0, 3))
    right.bar(edges + 0.05, histograms["peaks"], width=0.09)
    right.set(xlabel="most frequent dwell time, s", ylabel="users", xlim=(0, 1.5))
    figure.tight_layout()
    return figure


def threshold_figure(shares: Sequence[Sequence[float]] | np.ndarray) -> Figure:
    """Draw what `not_submitted` measures (Figure 2.2c)."""
    figure, axes = pyplot.subplots(figsize=(7, 3.4))
    percent = 100 * np.asarray(shares).T
    image = axes.pcolormesh(DWELL_THRESHOLDS, POSITION_THRESHOLDS, percent, cmap="coolwarm")
    axes.set(xlabel="T_DT, s", ylabel="T_P", yticks=POSITION_THRESHOLDS)
    axes.invert_yaxis()
    figure.colorbar(image, label="% not submitted")
    return figure


def lengths_figure(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw MRR by length of the prefix, of the first relevance score and lists (Figure 3.4)."""
    figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    first = [row for row in rows if all(row[k] == rows[0][k] for k in ("relevance", "lists"))]
    for model in dict.fromkeys(row["model"] for row in first):
        own = {row["prefixes"]: row["mrr"] for row in first if row["model"] == model and row["n"]}
        lengths = [own.get(prefixes, np.nan) for prefixes in PREFIXES[2:]]
        axes.plot(PREFIXES[2:], lengths, marker="o", label=model)
    axes.set(xlabel="characters typed", ylabel="MRR")
    figure.legend(fontsize=8, loc="outside right upper")
    return figure
