"""Figure 5.1: the gap and Q against passes and seconds."""

from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from telic.study.chapter5.experiments import LINEARISED


def convergence_figure(found: dict[str, Any]) -> Figure:
    """Draw the gap and Q of each method against passes and seconds, medians over its runs."""
    figure, panels = pyplot.subplots(2, 2, figsize=(9.5, 7.2), sharey="row")
    colors = {method.name: f"C{number}" for number, method in enumerate(LINEARISED)}
    for name, one in found.items():
        plain = name.removesuffix(", curvature")
        style: dict[str, Any] = {
            "color": colors[plain],
            "ls": "-" if plain == name else "--",
            "lw": 1.3,
            "label": name,
        }
        for row, measure in ((0, 2), (1, 4)):
            # The dissertation: Q does not apply to SDCA-ADMM, which has no y of its own.
            if measure == 4 and plain == "SDCA":
                continue
            for axis in (0, 1):
                panels[row, axis].plot(*_median(one["runs"], axis, measure), **style)
    for row, name in ((0, "relative gap"), (1, "relative Q (5.5.1)")):
        panels[row, 0].set(ylabel=name)
        for column, unit in ((0, "passes"), (1, "seconds")):
            panels[row, column].set(xlabel=unit, xscale="log", yscale="log", ylim=(5e-8, 3))
            panels[row, column].grid(alpha=0.25)
    panels[0, 1].legend(fontsize=7, ncols=2)
    figure.tight_layout()
    return figure


def _median(runs: list[Any], axis: int, measure: int) -> tuple[np.ndarray, np.ndarray]:
    """Median of the runs' last values at common places, as far as half of the runs go.

    A run that ends early has met the lowest gap drawn and counts as that from there on.
    """
    runs = [np.asarray(run) for run in runs]
    start = np.median([run[1, axis] for run in runs])
    places = np.geomspace(start, max(run[-1, axis] for run in runs), 120)
    values = np.array(
        [
            run[np.maximum(np.searchsorted(run[:, axis], places, side="right") - 1, 0), measure]
            for run in runs
        ]
    )
    shown = places <= np.median([run[-1, axis] for run in runs])
    return places[shown], np.maximum(np.median(values, axis=0), 1e-9)[shown]
