import runpy
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import pyplot

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, capsys):
    mpl.use("Agg")
    runpy.run_path(str(path))
    pyplot.close("all")
