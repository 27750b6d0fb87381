from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.held import drawn, hold, page

from telic.report import Report
from telic.simulate.hospital_families import simulate_family
from telic.specialty.alarms.before_and_after import effect
from telic.specialty.alarms.explained_alarms import judge
from telic.specialty.discovery.discover import discover
from telic.specialty.pseudonyms import Pseudonyms
from telic.specialty.report import page as page_module
from telic.specialty.report.figures import (
    declared_figure,
    label_of,
    lift_intervals,
    lifts_figure,
    map_figure,
    months_figure,
)
from telic.specialty.report.page import _hidden_months, specialty_report
from telic.specialty.small_cells import SMALL_CELL


@pytest.fixture(scope="module")
def log():
    return simulate_family("problem lists", 4).log


@pytest.fixture(scope="module")
def found(log):
    return discover(log, restarts=1)


def test_the_map_shows_lifts_and_leaves_small_cells_empty(log, found):
    figure, left_out = map_figure(log, found)
    assert left_out == max(0, len(found.specialties) - 12)
    axes = figure.axes[0]
    drawn = axes.images[0].get_array()
    names = [tick.get_text() for tick in axes.get_xticklabels()]
    for row, one in enumerate(found.specialties[:12]):
        assert axes.get_yticklabels()[row].get_text().startswith(label_of(one)[:20])
        patients = log.diagnosed_patients(one.users)
        lift = dict(one.diagnoses)
        for column, name in enumerate(names):
            small = patients[np.searchsorted(log.codes, name)] < SMALL_CELL
            assert bool(np.ma.getmaskarray(drawn)[row, column]) == small
            if name in lift and not small:
                assert drawn[row, column] == pytest.approx(np.log2(lift[name]))


def test_intervals_hold_the_lift_and_narrow_with_more_users(log, found):
    one = found.specialties[0]
    codes = [code for code, _ in one.diagnoses]
    low, high = lift_intervals(log, one.users, codes)
    lift = np.array([lift for _, lift in one.diagnoses])
    assert ((low <= lift * 1.05) & (lift * 0.95 <= high)).all()
    assert (low < high).all()
    few, many = (lift_intervals(log, users, codes) for users in (one.users[:4], one.users))
    assert np.mean(few[1] - few[0]) > np.mean(many[1] - many[0])


def test_a_later_log_is_drawn_by_its_own_codes_and_members(log, found):
    one = found.specialties[0]
    codes = [code for code, _ in one.diagnoses]
    column = np.searchsorted(log.codes, codes)
    # The later log lacks the first diagnosis, so every other code has another place in it.
    kept = np.delete(np.arange(len(log.codes)), column[0])
    later = replace(log, codes=log.codes[kept], diagnosis=log.diagnosis[:, kept])
    bars = lifts_figure(later, one).axes[0]
    assert [tick.get_text() for tick in bars.get_yticklabels()] == codes[:0:-1]
    drawn = [bar.get_width() for bar in bars.patches][::-1]
    np.testing.assert_allclose(drawn, [lift for _, lift in one.diagnoses[1:]], rtol=0.1)
    images = [map_figure(one, found)[0].axes[0].images[0].get_array() for one in (log, later)]
    first = np.ma.getmaskarray(images[1])[:, 0]
    assert first.all()
    assert not np.ma.getmaskarray(images[0])[0, 0]
    assert lifts_figure(log, replace(one, users=one.users[:0])) is None


def test_names_are_no_formulas_and_two_of_one_beginning_are_two_lines(log, found):
    one = found.specialties[0]
    labels = {code: f"{'Costs of $5^$ and more, ' * 3}{code}" for code in log.codes.tolist()}
    figure = lifts_figure(replace(log, labels=labels), one)
    assert len({bar.get_y() for bar in figure.axes[0].patches}) == len(one.diagnoses)
    report = Report("Specialties")
    report.figure(figure, "Lifts")
    assert "<svg" in report.html()
    rows = [["a" * 60 + end, 40, 20, 12, 8] for end in "bc"]
    assert len({bar.get_y() for bar in declared_figure(rows).axes[0].patches}) == 2


def test_numbers_that_are_not_shown_are_not_drawn():
    figure = declared_figure([["a", 40, 20, "withheld", "<11"], ["b", 30, None, 11, 19]])
    axes = figure.axes[0]
    widths = sorted(bar.get_width() for bars in axes.containers for bar in bars)
    assert widths == [0, 0, 0, 11, 19, 20]
    assert [text.get_text() for text in axes.texts] == ["small numbers not shown"]


def test_groups_whose_numbers_are_all_withheld_are_counted_and_not_drawn():
    some, none = ["a", 40, 20, "withheld", "<11"], ["b", 12, "<11", "withheld", "withheld"]
    for rows, caption in (
        ([some], "What the users of each group declare."),
        ([some, none], "Left out, because their numbers are small: 1 group."),
        ([none], None),
        ([], None),
    ):
        report = Report("Specialties")
        page_module._declared(report, rows)
        html = report.html()
        assert ("<figure" in html) == (caption is not None)
        assert caption is None or caption in html


@pytest.mark.parametrize(
    ("patients", "hidden"),
    [
        ([20, 30, 40], []),
        ([20, 5, 40], [1, 0]),
        ([5, 30, 40, 20, 4], [0, 4, 3]),  # 9 patients have no alarms but those of two months
        ([5, 30, 40, 20, 8], [0, 4]),
        ([5], [0]),
        ([3, 4], [0, 1]),
    ],
)
def test_what_months_are_left_out_is_not_had_by_subtraction(patients, hidden):
    month = np.repeat(np.arange(len(patients)), patients)
    n = len(month)
    # Each alarm is of another patient.
    log = SimpleNamespace(month=lambda: month + 600, n_patients=lambda mask: int(np.sum(mask)))
    everything, nothing = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    for masks in ((everything, nothing), (nothing, everything)):
        assert [one - 600 for one in _hidden_months(log, *masks)] == hidden


def test_months_stand_before_and_after():
    axes = months_figure(["2024-01", "2024-02"], [10, 8], [4, 0]).axes[0]
    assert [[bar.get_height() for bar in bars] for bars in axes.containers] == [[10, 8], [4, 0]]


def test_two_pages_stand_first(log, found):
    log = replace(log, notes=["accesses: 12 rows skipped: no such day", "providers: none"])
    alerts = judge(log, found)
    with drawn() as outlines:
        report = specialty_report(
            log,
            found,
            alerts,
            effect(log, found, alerts),
            recognitions={},
            pseudonyms=Pseudonyms(b"key"),
        )
    hold(Path(__file__).parent / "page.jsonl", page(report, outlines))
    text_of = report.html()
    places = [
        text_of.index(text)
        for text in (
            ">In short<",
            "Who sees what",
            ">What changes<",
            "Alarms per month",
            "<nav",
            ">What was found<",
            "95 % intervals",
        )
    ]
    assert places == sorted(places)
    assert not any(str(user) in text_of for user in log.users)
