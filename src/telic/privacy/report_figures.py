"""The pictures of the privacy report."""

from typing import Any

import numpy as np

from telic.privacy.risk import Risk


def risk_at(rows: list[Risk], distance: int) -> float:
    """Return the risk at a distance, or at the last one before it that is given."""
    return max((row for row in rows if row.distance <= distance), key=lambda r: r.distance).risk


def growth_figure(every: list[Risk]) -> Any:
    """Draw the mean risk by the number of link types and the distance."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6))
    distances = sorted({risk.distance for risk in every})
    by_links: dict[tuple[str, ...], list[Risk]] = {}
    for risk in every:
        by_links.setdefault(risk.links, []).append(risk)
    for count in sorted({len(names) for names in by_links if names}):
        means = [
            np.mean(
                [
                    risk_at(subset, n)
                    for subset in by_links.values()
                    if len(subset[0].links) == count
                ]
            )
            for n in distances
        ]
        axes.plot(
            distances,
            np.multiply(means, 100),
            marker="o",
            label=f"{count} kind{'s' * (count > 1)} of links",
        )
    axes.set_xticks(distances)
    axes.set_xlabel("how many links far an attacker looks")
    axes.set_ylabel("risk, %")
    axes.set_ylim(0, 105)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
