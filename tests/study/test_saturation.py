"""The study of bounds on feedback: unknown typists lose less with bounds, and the page says so."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.held import hold, page
from tests.study.outline import left_out

from telic.completion.fit.models import fit_models
from telic.completion.learning.do_no_harm import Gate
from telic.errors import InputError
from telic.simulate import SETTINGS, Catalogue, simulate_typists
from telic.study import saturation
from telic.study.saturation import experiments
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


def test_strangers_type_on_what_others_taught(monkeypatch):
    rng = np.random.default_rng(0)
    names = sorted({"".join("abcd"[i] for i in row) for row in rng.integers(0, 4, (60, 8))})
    known = Catalogue(names, rng.pareto(1.2, len(names)) + 1)
    monkeypatch.setattr(experiments, "read_catalogue", lambda _: known)
    monkeypatch.setattr(experiments, "COMPOSITIONS", 8)
    kinds = {name: KINDS[name] for name in ("as those of the log", "slow")}
    monkeypatch.setattr(experiments, "KINDS", kinds)
    asked = []

    def typists(catalogue, **options):
        asked.append((options.get("setting"), options.copy()))
        asked[-1][1].pop("setting", None)
        return simulate_typists(catalogue, **options)

    def fit(replay, *given):  # so few data leave the gate shut
        models = fit_models(replay, *given)
        gate = Gate(True, np.array([True, True, False, True, True]), np.ones(10, bool))
        models.gates["adaqac-unp"] = gate
        return models

    monkeypatch.setattr(experiments, "fit_models", fit)
    monkeypatch.setattr(experiments, "simulate_typists", typists)
    given = {"setting": "calibrated", "users": 10, "seed": 3}
    found = {protocol: strangers(protocol=protocol, **given) for protocol in ("careful", "bounded")}
    _, (first, fitted), (same, own), (slow, others) = asked[:4]
    assert fitted == {"users": 10, "compositions": 80, "seed": 3}
    assert own == others == {"users": 5, "compositions": 8, "seed": 1003}
    assert same == first == SETTINGS["calibrated"]
    assert slow == replace(first, key_seconds=(1.4, 1.4))
    rows = [[protocol, row] for protocol, both in found.items() for row in both]
    for protocol, row in rows:
        bounds = [row[key] for key in ("by list", "by composition")]
        if protocol == "bounded":
            assert row["most"] <= min(bound for bound in bounds if bound is not None) + 1e-9
    hold(Path(__file__).parent / "pages" / "saturation-strangers.jsonl", rows)


class MadeUp(Steps):
    """Gives made-up gains in place of simulated ones, and notes what was asked for."""

    def __call__(self, name, make, /, **settings):
        size = settings["seed"] + len(settings["protocol"]) / 10
        self.asked = [*getattr(self, "asked", []), [name, settings]]
        return [
            {
                "kind": kind,
                "static": 0.3 - size / 100,
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


def test_where_nobody_loses_as_served_that_is_said():
    rows = [
        ["slow", protocol, 2, 0.3, [bare, 0, 0], [served, 0, 0], 1.0, 1.0, None]
        for protocol, bare, served in (
            ("careful", -0.02, -0.001),
            ("careful", 0.01, -0.003),
            ("bounded", -0.01, 0.0),
            ("bounded", 0.02, 0.01),
        )
    ]
    rows[1][0] = "fast"
    assert saturation._worst(rows) == (
        "The lowest gains of any typists: under careful −2.00 points everywhere (slow), −0.30 as "
        "served (fast); under bounded −1.00 points everywhere (slow), none below zero as served."
    )


def test_what_is_asked_for_must_be_possible():
    with pytest.raises(InputError, match="users is 9 and seeds 2, expected at least 10 and 1"):
        saturation.study(Steps(progress=pytest.fail), users=9)
    with pytest.raises(InputError, match="users is 10 and seeds 0"):
        saturation.study(Steps(progress=pytest.fail), users=10, seeds=0)
    with pytest.raises(KeyError):
        strangers(setting="unknown", protocol="careful", users=10, seed=0)
