"""The study of bounds on feedback: unknown typists lose less with bounds, and the page says so."""

from pathlib import Path

import pytest
from tests.held import hold, page
from tests.study.outline import left_out

from telic.errors import InputError
from telic.study import saturation
from telic.study.saturation.experiments import KINDS, strangers
from telic.study.steps import Steps


@pytest.mark.slow
def test_bounds_hold_what_they_promise_and_bare_feedback_has_none(monkeypatch):
    monkeypatch.setattr(saturation, "SETTINGS", ("calibrated",))
    report = saturation.study(Steps(), users=30, seeds=1)
    (table,) = report.tables
    rows = {(row["typists"], row["protocol"]): row for row in table.records()}
    assert {kind for kind, _ in rows} == set(KINDS)
    for kind in KINDS:
        bare, bound = rows[kind, "careful"], rows[kind, "bounded"]
        assert bound["most"] <= 0.5 + 1e-9 < bare["most"]
        assert bound["by a composition at most"] <= 0.5
        assert bare["by a composition at most"] is None
        assert bound["everywhere"][0] > bare["everywhere"][0]
    assert not left_out("saturation", report.markdown())


class MadeUp(Steps):
    """Gives made-up gains in place of simulated ones, and notes what was asked for."""

    def __call__(self, name, make, /, **settings):
        size = settings["seed"] + len(settings["protocol"]) / 10
        self.asked = [*getattr(self, "asked", []), [name, settings]]
        return [
            {
                "kind": kind,
                "static": 0.3 + size / 100,
                "bare": [sign * size / 100, -0.1, 0.1],
                "served": [sign * sign * size / 200 - 0.01, -0.1, 0.1],
                "most": size,
                "by list": size / 2,
                "by composition": None,
            }
            for sign, kind in enumerate(KINDS, start=-1)
        ]


def test_the_page_is_what_it_was():
    steps = MadeUp()
    report = saturation.study(steps, users=10, seeds=2)
    file = Path(__file__).parent / "pages" / "saturation.jsonl"
    hold(file, [*page(report), *steps.asked])


def test_what_is_asked_for_must_be_possible():
    with pytest.raises(InputError, match="users is 2"):
        saturation.study(Steps(), users=2)
    with pytest.raises(KeyError):
        strangers(setting="unknown", protocol="careful", users=10, seed=0)
