"""The page of a year of change, and the worlds it is about."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.held import hold, page

from telic.errors import InputError
from telic.simulate import SETTINGS, Catalogue
from telic.simulate.changing_people import Stage, simulate_stages
from telic.simulate.searchers import BEGIN, Causes, searchers
from telic.study import drift
from telic.study.drift import DAY, FEEDBACK, LOOKS, NIGHTS, STAGES, WORLDS
from telic.study.steps import Steps

HOW = (drift.ONCE, drift.KEPT, drift.MONTHLY, drift.NIGHTLY)


def test_the_page_shows_shares_of_the_box_fitted_each_night():
    asked = []

    def steps(name, made, *, seed, **options):
        asked.append((made.__name__, seed, tuple(sorted(options.items()))))
        if made.__name__ == "year_of_searches":
            worth = {drift.ONCE: 0.5, drift.KEPT: 0.9 + 0.02 * seed, drift.MONTHLY: 0.8}
            return {how: [0.4 * worth.get(how, 1.0)] * len(NIGHTS) for how in HOW}
        gains = {"static": 0.0, drift.ONLINE: 0.01 * seed}
        return {how: [0.3 + gains.get(how, 0.005)] * STAGES for how in ("static", *FEEDBACK)}

    report = drift.study(steps, seeds=3)
    hold(Path(__file__).parent / "pages" / "drift.jsonl", page(report))
    assert len(set(asked)) == len(asked) == 3 * (len(WORLDS) + len(LOOKS))
    years, nights, feedback = (table.records() for table in report.tables)
    assert [row["world"] for row in years] == list(WORLDS)
    assert years[0][drift.KEPT] == pytest.approx([0.92, 0.9, 0.94])
    assert years[0][drift.MONTHLY] == pytest.approx([0.8, 0.8, 0.8])
    assert years[0]["MRR, fitted each night"] == pytest.approx(0.4)
    assert [row["days"] for row in nights] == [night - 89 for night in NIGHTS]
    assert nights[3][drift.ONCE] == pytest.approx(0.2)
    assert feedback[1][drift.ONLINE] == pytest.approx([0.01, 0.0, 0.02])
    # The worst log of each: weights kept .9, nothing kept .5; of a gain of .005 online has .01.
    for share in ("90.0%", "50.0%", "200% where people “look at fewer lists”"):
        assert share in report.markdown()
    with pytest.raises(InputError, match="seeds is 1, expected at least 2"):
        drift.study(steps, seeds=1)

    def without_gains(name, made, **settings):
        found = steps(name, made, **settings)
        if settings.get("look") == "look at more lists":
            found = dict.fromkeys(found, found["static"])
        return found

    said = drift.study(without_gains, seeds=2).markdown()
    assert "nothing, as those add nothing, where people “look at more lists”, 100% where" in said


@pytest.mark.slow
def test_counts_of_last_night_and_what_users_submitted_since_matter(monkeypatch):
    served, untold = drift._served, []

    def both(box, log, tested, since, night):
        untold.append(served(box, log, tested, night, night))
        return served(box, log, tested, since, night)

    monkeypatch.setattr(drift, "_served", both)
    found = drift.year_of_searches(world="both", users=60, sessions=40, seed=0, nights=(90, 300))
    assert len({found[how][0] for how in HOW}) == 1  # on the first night all boxes are one
    once, kept, monthly, nightly = (found[how][1] for how in HOW)
    assert once == monthly < 0.8 * nightly  # the night before the second is the first
    assert kept > 0.9 * nightly
    first, second = untold[:4], untold[4:]
    assert first == [found[how][0] for how in HOW]
    assert second[0] != once  # it is told of what users submitted since it was fitted
    assert second[3] == nightly


def test_feedback_is_fitted_on_what_came_before_alone(monkeypatch):
    monkeypatch.setattr(drift, "STAGES", 4)
    found = drift.year_of_feedback(look="look at fewer lists", users=8, seed=0)
    assert set(found) == {"static", *FEEDBACK}
    assert all(len(each) == 4 for each in found.values())
    assert found[drift.REFIT_UNP][0] == found[drift.KEPT_UNP][0] != found["static"][0]
    assert found[drift.REFIT_UNP] != found[drift.KEPT_UNP]


@pytest.mark.slow
def test_popularity_moves_and_habits_fade_evenly_over_the_days():
    def first_words(log):
        year = (log.at - BEGIN) / (365 * DAY)
        noun = np.unique([query.split()[0] for query in log.queries], return_inverse=True)[1]
        each = [
            noun[log.query[part]]
            for part in (year < 0.25, (year > 0.4) & (year < 0.6), year > 0.75)
        ]
        return [np.bincount(part, minlength=noun.max() + 1) / len(part) for part in each]

    alone = Causes(*([0.0] * 7))
    still = first_words(searchers(alone, users=60, sessions=60, nouns=20, days=365, seed=1))
    moved = first_words(
        searchers(alone, users=60, sessions=60, nouns=20, days=365, seed=1, moves=1.5)
    )
    chance, *distance = (
        np.abs(log[0] - log[part]).sum() for log, part in ((still, 2), (moved, 1), (moved, 2))
    )
    assert 1.5 * chance < distance[0] < distance[1]

    habits = searchers(
        replace(alone, habit=1.0), at_end=alone, users=60, sessions=60, days=365, seed=1
    )
    day = (habits.at - BEGIN) // DAY
    shares = []
    for part in (day < 30, (day > 165) & (day < 200), day >= 335):
        common = [
            np.bincount(habits.query[part & (habits.user == user)]).max(initial=0)
            for user in range(60)
        ]
        shares.append(sum(common) / part.sum())
    assert shares[0] > shares[1] > shares[2]


def test_stages_follow_one_another_and_are_named():
    catalogue = Catalogue(["tea", "tea kettle", "coffee"], np.array([5.0, 1.0, 3.0]))
    unseen = SETTINGS["inattentive"]
    stages = [Stage("", "readers", 2), Stage("b", unseen, 3), Stage("c", "readers", 1)]
    log = simulate_stages(catalogue, stages, users=2, seed=3).to_pylist()
    names = [row["composition"].partition("-")[2].partition("-")[2] for row in log]
    assert names == [""] * 4 + ["b"] * 6 + ["c"] * 2
    for earlier, later in ((log[:4], log[4:10]), (log[4:10], log[10:])):
        begins = min(row["keystrokes"][0]["at"] for row in later)
        assert max(row["submitted_at"] for row in earlier) < begins
    with pytest.raises(InputError, match=r"stages are named \['', ''\], expected"):
        simulate_stages(catalogue, stages[:1] * 2)


@pytest.mark.slow
def test_a_small_run_gives_the_whole_page(monkeypatch):
    monkeypatch.setattr(
        drift, "WORLDS", {name: WORLDS[name] for name in ("nothing changes", "both")}
    )
    report = drift.study(Steps(), users=90, sessions=90, typists=8, seeds=2)
    assert [len(table.rows) for table in report.tables] == [2, len(NIGHTS), len(LOOKS)]


def test_a_day_without_searches_is_told():
    with pytest.raises(InputError, match=r"nobody of the .* searches on day"):
        drift.year_of_searches(world="nothing changes", users=9, sessions=9, seed=0)
