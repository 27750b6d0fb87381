"""The pictures of the privacy report."""

from typing import Any

import numpy as np

from telic.privacy.advice.advise import Advice
from telic.privacy.risk.limits import NAMES
from telic.privacy.risk.risks import Risk


def risk_at(rows: list[Risk], distance: int) -> float:
    """Return the risk at a distance, or at the last one before it that is given."""
    return max((row for row in rows if row.distance <= distance), key=lambda r: r.distance).risk


def risk_map(every: list[Risk]) -> Any:
    """Draw the mean risk of each set of link types (rows) at each distance (columns)."""
    from matplotlib import pyplot

    by_links: dict[tuple[str, ...], list[Risk]] = {}
    for risk in every:
        by_links.setdefault(risk.links, []).append(risk)
    distances = sorted({risk.distance for risk in every})
    values = np.array([[100 * risk_at(rows, n) for n in distances] for rows in by_links.values()])
    tall, wide = values.shape
    figure, axes = pyplot.subplots(figsize=(min(2.6 + 0.9 * wide, 9), 1.2 + 0.32 * tall))
    axes.imshow(values, cmap="YlOrRd", vmin=0, vmax=100, aspect="auto")
    for row, column in np.ndindex(values.shape):
        here = float(values[row, column])
        ink = "white" if here > 60 else "black"
        axes.text(column, row, _percent(here), ha="center", va="center", color=ink, fontsize=9)
    axes.set_xticks(range(wide), [str(n) for n in distances])
    axes.set_yticks(range(tall), [", ".join(names) or "no links" for names in by_links])
    axes.set_xlabel("links followed (0: the profile alone)")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def frontier_figure(found: Advice) -> Any:
    """Draw risk against what is given up, with today, the advised release and the limit."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.8, 4.0))
    lost = [100 * point.loss for point in found.frontier]
    for name, style, label in (("risk", "o-", "mean risk"), ("highest", "x--", "highest risk")):
        values = [100 * getattr(point.found, name) for point in found.frontier]
        axes.plot(lost, values, style, label=label, color="C0" if name == "risk" else "C7")
    for name, colour in (("risk", "C3"), ("highest", "C7")):
        if name in found.limits.given():
            limit = 100 * found.limits.given()[name]
            axes.axhline(limit, color=colour, linestyle=":", linewidth=1.5)
            axes.annotate(
                f"limit on the {NAMES[name]}: {_percent(limit)}",
                (1, limit),
                ha="left",
                va="bottom",
                fontsize=9,
                color=colour,
            )
    before, after = found.before[-1].risk, found.after[-1].risk
    axes.plot([0], [100 * before], "s", markersize=10, color="C3", label="as it is")
    axes.plot([100 * found.loss], [100 * after], "*", markersize=17, color="C2", label="advised")
    axes.set_xlabel("published information given up, %")
    axes.set_ylabel("risk, %")
    axes.set(xlim=(-3, 103), ylim=(-3, 106))
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"
