"""Figures 4.1 and 4.2: the gap against passes, gradients and seconds."""

from typing import Any

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

AXES = {
    "passes": "entire data passes (4.3.5)",
    "gradients": "component gradients / n",
    "seconds": "seconds",
}


def convergence_figure(curves: dict[str, Any]) -> Figure:
    """Draw the gap of each method against three measures of its work."""
    figure, panels = pyplot.subplots(1, 3, figsize=(12, 3.8), sharey=True)
    for panel, (axis, label) in zip(panels, AXES.items(), strict=True):
        for method, curve in curves.items():
            style = "-" if method.startswith("ASBCD") else "--"
            gap = np.maximum(curve["gap"], 1e-12)
            panel.semilogy(curve[axis], gap, style, label=method)
        panel.set_xlabel(label)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("relative objective gap")
    panels[2].legend(fontsize=8)
    return figure
