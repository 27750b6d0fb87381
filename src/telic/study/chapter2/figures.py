"""The gain of feedback against attention."""

from collections.abc import Sequence

from matplotlib import pyplot
from matplotlib.figure import Figure

from telic.study.chapter2.tables import Attention, standard_error


def attention_figure(found: Sequence[Attention]) -> Figure:
    """Draw the gain of feedback against attention, with the part that dwell times explain."""
    figure, axes = pyplot.subplots(figsize=(6, 3.4))
    for key, label in (("gain", "feedback against static"), ("dwell", "log against dwell twin")):
        points = [standard_error(effects, key) for _, effects in found]
        axes.errorbar(
            [level for level, _ in found],
            [100 * mean for mean, _ in points],
            yerr=[200 * error for _, error in points],
            marker="o",
            capsize=3,
            label=label,
        )
    axes.axhline(0, color="black", lw=0.8)
    axes.set(xlabel="share of lists looked at (calibrated typists)", ylabel="points of MRR")
    axes.legend(fontsize=8)
    return figure
