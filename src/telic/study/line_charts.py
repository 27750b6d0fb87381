"""Line charts: measures against a parameter."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure


def lines_figure(
    rows: Sequence[Mapping[str, Any]],
    x: str,
    ys: Sequence[str],
    *,
    label: str,
    ylabel: str = "",
    by: str | None = None,
    log: str = "",
) -> Figure:
    """Draw some columns against another one.

    Parameters
    ----------
    rows : sequence of dict
    x, ys : str, sequence of str
        The columns.
    label, ylabel : str
        Of the axes.
    by : str, optional
        A line for each value of this column.
    log : str
        "x", "y" or "xy": axes that are logarithmic; x is linear below 1e-6.
    """
    figure, axes = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    groups = [None if by is None else row[by] for row in rows]
    for group in dict.fromkeys(groups):
        own = [row for row, one in zip(rows, groups, strict=True) if one == group]
        for y in ys:
            name = y.upper() if group is None else group if len(ys) == 1 else f"{group}: {y}"
            axes.plot([row[x] for row in own], [row[y] for row in own], marker=".", label=name)
    if "x" in log:
        axes.set_xscale("symlog", linthresh=1e-6)
    if "y" in log:
        axes.set_yscale("log")
    axes.set(xlabel=label, ylabel=ylabel)
    if len(ys) > 1 or by:
        figure.legend(fontsize=8, loc="outside right upper")
    return figure
