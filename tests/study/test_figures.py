"""Every figure of a study on made-up numbers, as outlined in `figures/`."""

from pathlib import Path

import numpy as np
import pytest
from tests.held import hold, outline

from telic.study import line_charts
from telic.study.chapter2.figures import attention_figure
from telic.study.chapter4.figures import convergence_figure as of_chapter4
from telic.study.chapter5.figures import convergence_figure as of_chapter5
from telic.study.chapter6.figures import class_sizes_figure
from telic.study.chapter7.figures import by_count_figure, release_figure

FALLING = np.geomspace(1, 1e-14, 6)
STEPS = np.arange(6.0)


def chapter2():
    effects = [{"gain": 0.01 * k, "dwell": 0.002 * k * k} for k in range(3)]
    return attention_figure([(0.0, effects), (0.5, effects[1:]), (1.0, effects[:2])])


def chapter4():
    curve = {"passes": STEPS, "gradients": 2 * STEPS, "seconds": STEPS / 10}
    return of_chapter4({"ASBCD-U": curve | {"gap": FALLING}, "SGD": curve | {"gap": FALLING**0.1}})


def chapter5():
    def run(speed):
        return np.stack([1 + STEPS, speed * (1 + STEPS), FALLING, FALLING, FALLING**0.5], axis=1)

    runs = {"runs": [run(0.1), run(0.3)[:4], run(0.2)]}
    return of_chapter5({"SVR-D": runs, "SVR-D, curvature": runs, "SDCA": runs})


def chapter6():
    return class_sizes_figure([40, 12, 3, 1])


def found(scale):
    """Four values by distance, of two groups."""
    return [[scale * (n + 1) / 10 for n in range(4)], [scale * (n + 2) / 10 for n in range(4)]]


def chapter7_by_count():
    return by_count_figure({"a": found(1), "b": found(0.5), "a-b": found(1.5)}, "risk, %")


def chapter7_releases():
    one = {"wrong": 0.0}
    scores = [[one | {"unique_right": n / 10, "precision": n / 10} for n in range(4)]] * 2
    return release_figure({"plain": {"0.003": scores, "0.01": scores}})


def lines():
    rows = [{"x": 10.0**i, "gap": 10.0**-i, "auc": i / 10, "of": "ab"[i % 2]} for i in range(4)]
    return line_charts.lines_figure(
        rows, "x", ["gap", "auc"], label="passes", ylabel="gap", by="of", log="xy"
    )


@pytest.mark.parametrize(
    "figure",
    [chapter2, chapter4, chapter5, chapter6, chapter7_by_count, chapter7_releases, lines],
)
def test_figures_are_what_they_were(figure):
    hold(Path(__file__).parent / "figures" / f"{figure.__name__}.jsonl", outline(figure()))
