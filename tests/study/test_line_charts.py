"""Lines of a study's table: a line for each group and column, on the axes that were asked for."""

import pytest
from matplotlib import pyplot

from telic.study.line_charts import lines_figure

ROWS = [{"x": 10.0**i, "gap": 10.0**-i, "auc": 0.5 + i / 10, "of": "ab"[i % 2]} for i in range(4)]


@pytest.mark.parametrize(
    ("log", "scales"),
    [("", ("linear", "linear")), ("x", ("symlog", "linear")), ("y", ("linear", "log"))],
)
def test_axes_are_logarithmic_where_asked_for(log, scales):
    figure = lines_figure(ROWS, "x", ["gap"], label="passes", log=log)
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == scales
    assert not figure.legends
    pyplot.close(figure)


def test_every_group_and_column_has_its_line_and_name():
    figure = lines_figure(ROWS, "x", ["gap", "auc"], label="passes", by="of")
    (axes,), (legend,) = figure.axes, figure.legends
    names = ["a: gap", "a: auc", "b: gap", "b: auc"]
    assert [text.get_text() for text in legend.get_texts()] == names
    assert axes.lines[1].get_ydata().tolist() == [0.5, 0.7]
    pyplot.close(figure)
