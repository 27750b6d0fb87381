"""Figures 7.7 to 7.9."""

from collections.abc import Mapping

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from telic.study.chapter7.experiments import DISTANCES
from telic.study.chapter7.tables import Samples, means


def by_count_figure(found: Mapping[str, list[list[float]]], label: str) -> Figure:
    """Draw the mean of a measure by the number of link types (Figures 7.7 and 7.8)."""
    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    counts = [len(names.split("-")) for names in found]
    values = np.array([np.mean(samples, axis=0) for samples in found.values()])
    numbers = range(1, max(counts) + 1)
    for n in DISTANCES[1:]:
        points = [100 * values[np.equal(counts, count), n].mean() for count in numbers]
        axes.plot(numbers, points, marker="o", label=f"distance {n}")
    axes.set(xticks=numbers, xlabel="number of link types", ylabel=label)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def release_figure(found: Mapping[str, Mapping[str, Samples]]) -> Figure:
    """Draw precision at the farthest distance by density and release (Figure 7.9)."""
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for name, table in found.items():
        values = [100 * means(samples)[-1] for samples in table.values()]
        axes.plot([float(density) for density in table], values, marker="o", label=name)
    axes.set(xlabel="density", ylabel="precision, %")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
