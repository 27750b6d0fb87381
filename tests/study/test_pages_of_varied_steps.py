"""Pages of studies whose steps are too many to be kept: each is a variation on one of its kind.

One result of each kind is kept in `steps/`, shortened. A step gets its numbers scaled by a factor
of its own, so that a page shows which step stands where. What each step is asked for and the page
are held to `pages/`.
"""

import json
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest
from tests.held import drawn, hold, page

from telic.errors import InputError
from telic.study import chapter3, chapter6, signals
from telic.study.signals.real_logs import BING, UNIMOBILE
from telic.study.steps import Steps

HERE = Path(__file__).parent


def scaled(value, factor):
    """Scale what has a fraction; counts stay."""
    if isinstance(value, dict):
        return {key: scaled(each, factor) for key, each in value.items()}
    if isinstance(value, list):
        return [scaled(each, factor) for each in value]
    return value * factor if isinstance(value, float) else value


class Varied(Steps):
    """Gives variations on what is kept, and notes what was asked for."""

    def __init__(self, file):
        super().__init__()
        lines = (HERE / "steps" / file).read_text(encoding="utf-8").splitlines()
        self.kept, self.asked = dict(map(json.loads, lines)), []

    def __call__(self, name, make, /, **settings):
        bound = make.keywords if isinstance(make, partial) else {}
        make = make.func if isinstance(make, partial) else make
        given = bound | {key: value for key, value in settings.items() if key != "file"}
        self.asked.append([name, make.__name__, {key: given[key] for key in sorted(given)}])
        kind = given.get("experiment", make.__name__)
        factor = 0.5 + crc32(name.encode()) % 997 / 997
        return self.varied(scaled(self.kept[kind], factor), kind, given)

    def varied(self, found, kind, given):
        """Give the variation what depends on the settings."""
        return found


class Chapter3(Varied):
    def varied(self, found, kind, given):
        if kind == "accuracy":
            own = {key: given[key] for key in ("relevance", "lists")}
            found["rows"] = [row | own for row in found["rows"]]
        if kind == "sweep":
            found |= {given["parameter"]: given["value"]}
        if kind == "control" and "told" not in given:
            del found["re-ranked lists"]
        if kind == "top queries":
            found = {"app": None} if given["opened"] else found | {"opened": False}
        if kind == "held_out_study":
            own = {key: given[key] for key in ("unit", "held_out", "shuffled")}
            found = [row | own for row in found]
        return found


@pytest.mark.parametrize("real_pairs", [True, False])
def test_the_page_of_chapter_3_is_what_it_was(real_pairs, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("user,query,app\nann,rain,weather\n")
    steps = Chapter3("chapter-3.jsonl")
    size = {"users": 8, "compositions": 12, "seeds": 2}
    given = {"pairs": pairs, "real_pairs": real_pairs, **size}
    with drawn() as outlines:
        report = chapter3.study(steps, **given)
    if not real_pairs:
        assert "people held out" not in report.markdown()
        return
    hold(HERE / "pages" / "chapter-3-page.jsonl", [*steps.asked, *page(report, outlines)])


def test_what_chapter_3_cannot_do_is_refused_before_any_step():
    with pytest.raises(InputError, match="seeds is 1, expected at least 2: intervals are over"):
        chapter3.study(Steps(progress=pytest.fail), seeds=1)


class Signals(Varied):
    def __call__(self, name, make, /, **settings):
        self.kept[make.__name__] = self.kept["found"]
        return super().__call__(name, make, **settings)

    def varied(self, found, kind, given):
        if kind != "phones":
            return found
        drop = ("+ time", "+ match")
        found["results"] = [
            row | {"model": row["model"].replace("session", "apps")}
            for row in found["results"]
            if row["model"] not in drop
        ]
        found["controls"] = [
            row | {"group": "apps"} for row in found["controls"] if row["group"] == "session"
        ]
        return found


def test_the_page_of_signals_is_what_it_was(tmp_path):
    (tmp_path / "qac").mkdir()
    for name in (BING, UNIMOBILE):
        (tmp_path / "qac" / f"{name}.parquet").touch()
    steps = Signals("signals.jsonl")
    report = signals.study(
        steps, users=30, sessions=12, compositions=20, seeds=2, data=tmp_path, seed=5
    )
    hold(HERE / "pages" / "signals.jsonl", [*steps.asked, *page(report)])


class Chapter6(Varied):
    """Keeps the steps of the tables in another file: see `test_pages.py`."""

    def __init__(self):
        super().__init__("chapter-6-parts.jsonl")
        lines = (HERE / "steps" / "chapter-6.jsonl").read_text(encoding="utf-8").splitlines()
        self.tables = dict(map(json.loads, lines))
        del self.tables["DBLP"]

    def __call__(self, name, make, /, **settings):
        return (
            self.tables[name] if name in self.tables else super().__call__(name, make, **settings)
        )

    def varied(self, found, kind, given):
        if kind == "recovery":
            found = {"seed": given["seed"]} | found
        if kind == "knob":
            found |= {"scale": given["scale"], "tilt": given["tilt"]}
        return found


def chapter_6(tmp_path, **options):
    steps = Chapter6()
    with drawn():
        return steps, page(chapter6.study(steps, scale=0.5, threads=3, data=tmp_path, **options))


def test_the_parts_of_chapter_6_that_run_alone_are_what_they_were(tmp_path):
    asked, found = [], []
    for part in chapter6.CHECKS:
        steps, lines = chapter_6(tmp_path, part=part)
        asked += steps.asked
        found += [part, *lines]
    hold(HERE / "pages" / "chapter-6-parts.jsonl", [*asked, *found])
    checks = chapter_6(tmp_path, part="checks")[1]
    assert all(line in (*checks, *chapter6.CHECKS) for line in found)
    assert not any(line[0] == "#" and line in checks for line in chapter_6(tmp_path)[1])


def test_dblp_stands_in_chapter_6_where_it_is_at_hand(tmp_path):
    without = chapter_6(tmp_path)[1]
    (tmp_path / "hin").mkdir()
    (tmp_path / "hin" / "dblp4area_author_label.parquet").touch()
    steps, found = chapter_6(tmp_path)
    given = {"folder": tmp_path / "hin", "seed": 0, "threads": 3}
    assert steps.asked == [["DBLP", "held_out", given]]
    more = [line for line in found if line not in without]
    assert [line[:2] for line in more[1:]] == [["databases", 1200], ["data mining", 800]]
