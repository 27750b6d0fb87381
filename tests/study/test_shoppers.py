"""The page of the second family of simulated people."""

from pathlib import Path

import pytest
from tests.held import hold, page

from telic.errors import InputError
from telic.simulate.log_marginals import PUBLISHED
from telic.study import shoppers
from telic.study.shoppers import ALL, KNOWS, LOOKING, MODELS, SIGNALS, as_served, feedback, signals
from telic.study.steps import Steps

SIZE = {"users": 16, "compositions": 20}


def test_the_page_shows_means_and_extremes_of_what_the_steps_found():
    asked = []

    def steps(name, made, *, seed, **options):
        asked.append((made.__name__, seed, tuple(sorted(options.items()))))
        value = 0.01 * (1 + seed)
        if made.__name__ == "logged":
            return dict.fromkeys(PUBLISHED, value)
        if made.__name__ == "feedback":
            return {"static": 0.5, "gain": value, "dwell": value}
        return dict.fromkeys(MODELS if made.__name__ == "as_served" else SIGNALS, value)

    report = shoppers.study(steps, seeds=3, **SIZE)
    hold(Path(__file__).parent / "pages" / "shoppers.jsonl", page(report))
    assert len(set(asked)) == len(asked) == 3 * (4 + 2 * len(LOOKING) * len(KNOWS) + 2)
    reached, effects, served, worth = (table.records() for table in report.tables)
    assert [row["marginal"] for row in reached] == list(PUBLISHED)
    assert reached[0]["thorough"] == pytest.approx(0.02)
    assert len(effects) == len(served) == 6
    assert effects[0]["seeds"] == 3
    for row in served:
        assert row["adaqac-unp"] == pytest.approx([0.02, 0.01, 0.03])
    assert [row["shoppers"] for row in worth] == ["calibrated", "all alike"]
    assert worth[1][ALL] == pytest.approx([0.02, 0.01, 0.03])
    with pytest.raises(InputError, match="seeds is 1, expected at least 2"):
        shoppers.study(steps, seeds=1)


def test_what_the_completer_knows_and_the_setting_reach_the_measurement():
    all_known, log_alone = (
        feedback(setting="thorough", told=told, seed=0, **SIZE) for told in KNOWS
    )
    assert all_known["static"] > log_alone["static"] + 0.2
    looked = feedback(setting="inattentive", told="all", seed=0, **SIZE)
    assert looked["static"] != all_known["static"]
    assert as_served(setting="inattentive", told="all", seed=0, **SIZE) == dict.fromkeys(MODELS, 0)


@pytest.mark.slow
def test_signals_follow_what_people_have_in_common():
    found = {
        name: signals(setting=name, seed=0, users=20, compositions=30)
        for name in ("calibrated", "all alike")
    }
    assert set(found["calibrated"]) == set(SIGNALS)
    assert found["calibrated"]["+ personal"] > found["all alike"]["+ personal"]


@pytest.mark.slow
def test_a_small_run_gives_the_whole_page():
    report = shoppers.study(Steps(), seeds=2, **SIZE)
    assert [len(table.rows) for table in report.tables] == [len(PUBLISHED), 6, 6, 2]
