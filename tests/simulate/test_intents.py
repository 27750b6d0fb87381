"""What is wanted, when, and by which app's doing."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from telic.simulate import SETTINGS, Catalogue
from telic.simulate.intents import DAY, _trends, draw_intents
from telic.simulate.phones import _Devices
from telic.simulate.query_app_affinity import Affinity

PLAIN = replace(
    SETTINGS["calibrated"], habit_share=0.0, trend_share=0.0, unlisted_share=0.0, edit_share=0.0
)


def draw(catalogue, users=300, compositions=40, siblings=lambda wanted: [], **changes):
    return draw_intents(
        catalogue,
        siblings=siblings,
        users=users,
        compositions=compositions,
        min_gap=7.0,
        parameters=replace(PLAIN, **changes),
        rng=np.random.default_rng(4),
    )


def test_phrases_are_wanted_by_their_weight_to_the_exponent():
    weights = np.array([1.0, 4.0, 16.0, 64.0])
    catalogue = Catalogue(["a", "b", "c", "d"], weights)
    wanted = draw(catalogue, popularity_exponent=0.5).wanted.ravel()
    share = np.bincount(wanted, minlength=4) / len(wanted)
    expected = np.sqrt(weights) / np.sqrt(weights).sum()
    np.testing.assert_allclose(share, expected, atol=5 * 0.5 / len(wanted) ** 0.5)


def test_a_habit_is_an_earlier_query_of_the_same_user_each_equally_likely():
    catalogue = Catalogue([f"q{i}" for i in range(2000)], np.ones(2000))
    assert (np.ptp(draw(catalogue, habit_share=1.0).wanted, axis=1) == 0).all()
    wanted = draw(catalogue, users=4000, compositions=4, habit_share=0.5).wanted
    repeats = (wanted[:, 1:] == wanted[:, :1]).mean(axis=0)
    # A Pólya urn: the j-th query repeats the first's with probability ½ · (its expected count) / j.
    expected, count = [], 1.0
    for j in (1, 2, 3):
        expected.append(0.5 * count / j)
        count += expected[-1]
    np.testing.assert_allclose(repeats, expected, atol=0.035)


def test_a_trend_draws_everybody_however_small_its_heat():
    parameters = replace(PLAIN, trends=1, trend_days=(1e4, 1e4 + 1), days=1.0)
    start, nothing = np.zeros(5), np.full(5, -1)
    drawn = [
        _trends(start, nothing, lambda n: np.arange(7, 7 + n), parameters, rng)
        for rng in map(np.random.default_rng, range(20))
    ]
    assert set(np.concatenate(drawn)) == {7}


def test_trends_are_on_for_their_days_only():
    catalogue = Catalogue([f"q{i}" for i in range(5000)], np.ones(5000))
    found = draw(catalogue, trend_share=1.0, trends=4, trend_days=(9.0, 9.001), days=60.0)
    wanted, start = found.wanted.ravel(), found.start.ravel()
    number = np.bincount(wanted)
    trends = np.flatnonzero(number > 60)
    assert 1 <= len(trends) <= 4
    for phrase in trends:
        when = np.sort(start[wanted == phrase])
        # Where no trend is on, any phrase may be wanted, so a few lie elsewhere.
        inside = np.searchsorted(when, when + 9.01 * DAY) - np.arange(len(when))
        assert inside.max() > 0.95 * len(when)
    assert number[trends].sum() > 0.1 * len(wanted)


def test_an_edit_follows_at_once_with_a_sibling_of_the_last_query():
    catalogue = Catalogue(["a one", "a two", "b one", "b two"], np.ones(4))
    found = draw(catalogue, siblings=lambda q: [2 * (q // 2), 2 * (q // 2) + 1], edit_share=0.3)
    assert not found.edits[:, 0].any()
    assert found.edits[:, 1:].mean() == pytest.approx(0.3, abs=0.03)
    gap = np.diff(found.start, axis=1)
    assert (gap >= 7.0 - 1e-6).all()
    after = found.edits[:, 1:]
    np.testing.assert_allclose(gap[after], 7.0, atol=1e-3)
    assert np.median(gap[~after]) > 3600
    assert (found.wanted[:, 1:] // 2 == found.wanted[:, :-1] // 2)[after].all()
    assert (found.wanted[:, 1:] != found.wanted[:, :-1])[after].all()


def test_a_recently_opened_app_causes_as_documented():
    # Apps 0 to 3 cause a phrase each, app 4 none.
    affinity = Affinity(
        list("abcde"), np.ones(5), np.array([0, 1, 2, 3, 4, 4]), np.arange(4), np.ones(4)
    )
    rng = np.random.default_rng(5)
    devices = _Devices(affinity, 1, rng)
    assert sorted(devices.owned[0]) == [0, 1, 2, 3, 4]
    # App 1 was opened 3 minutes ago, 4 after it, 2 and again 1 before; app 0 more than 30 ago.
    opening = np.array([4, 1, 2, 1, 0]), np.array([1.0, 3.0, 20.0, 25.0, 31.0])
    draws = 20_000
    seen = np.bincount([devices.cause(0, opening, rng) for _ in range(draws)], minlength=5) / draws
    usual = np.zeros(5)
    usual[devices.owned[0]] = np.log1p(devices.rate[0]) * (devices.owned[0] != 4)
    expected = 0.5 * np.array([0, 2 / 3, 1 / 3, 0, 0]) + 0.5 * usual / usual.sum()
    np.testing.assert_allclose(seen, expected, atol=0.02)


def test_an_app_causes_its_phrases_by_their_odds_or_none():
    odds = np.array([1.0, 3.0, 5.0, 2.0, 2.0])
    table = Affinity(list("abcd"), np.ones(4), np.array([0, 2, 2, 5, 5]), np.arange(7, 12), odds)
    rng = np.random.default_rng(6)
    assert set(table.caused(np.repeat([1, 3], 50), rng)) == {-1}
    for app, own in ((0, [0, 1]), (2, [2, 3, 4])):
        seen = np.bincount(table.caused(np.full(9000, app), rng), minlength=12)[7:]
        expected = np.zeros(5)
        expected[own] = 9000 * odds[own] / odds[own].sum()
        assert (np.abs(seen - expected) <= 5 * np.sqrt(expected)).all()


def test_a_catalogue_becomes_last_years_query_log():
    catalogue = Catalogue(["tea", "coffee"], np.array([3.0, 1.0]))
    log = pa.table(
        {"submitted_at": [datetime(2026, 1 + i // 10, 9, tzinfo=UTC) for i in range(20)]}
    )
    queries = catalogue.as_queries(log, per_composition=6.0)
    assert queries["query"].to_pylist() == ["tea", "coffee"]
    assert queries["count"].to_pylist() == [90.0, 30.0]
    assert {str(at)[:10] for at in queries["at"].to_pylist()} == {"2025-01-01"}
