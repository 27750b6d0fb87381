"""Pages of studies from the results of one run's steps, which are kept in `steps/`.

The steps are inputs, shortened, and need not be those of the last run. What each step is asked for
and the tables are held to `pages/`; figures are in `test_figures.py`.
"""

import json
from functools import partial
from pathlib import Path

import pytest
from tests.held import drawn, hold, page

from telic.study import chapter4, chapter5, chapter6
from telic.study.steps import Steps

HERE = Path(__file__).parent


class Kept(Steps):
    """Gives what is kept, and notes what was asked for."""

    def __init__(self, file):
        super().__init__()
        lines = file.read_text(encoding="utf-8").splitlines()
        self.kept, self.asked = dict(map(json.loads, lines)), []

    def __call__(self, name, make, /, **settings):
        plain = (make.func, make.keywords) if isinstance(make, partial) else (make, {})
        given = {key: value for key, value in settings.items() if key not in ("data", "found")}
        self.asked.append([name, plain[0].__name__, plain[1] | given])
        return self.kept[name]


@pytest.mark.parametrize(
    ("name", "study", "options"),
    [
        ("chapter-4", chapter4.study, {"replications": 1, "passes": 5, "share": 0.01}),
        ("chapter-5", chapter5.study, {"replications": 2, "seconds": 0.03}),
        ("chapter-6", chapter6.study, {"scale": 0.02, "pipeline": "printed"}),
    ],
)
def test_pages_are_what_they_were(name, study, options, monkeypatch, tmp_path):
    monkeypatch.setattr(chapter5, "labelled_set", lambda *_: None)
    sets = {name: files for name, files in chapter5.SETS.items() if name != "20news"}
    monkeypatch.setattr(chapter5, "SETS", sets)
    steps = Kept(HERE / "steps" / f"{name}.jsonl")
    with drawn():
        report = study(steps, data=tmp_path, **options)
    found = [line for line in page(report) if str(tmp_path) not in str(line)]
    hold(HERE / "pages" / f"{name}.jsonl", [*steps.asked, *found])
