import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telic.report import Table

TABLE = Table(
    "Gains",
    {"model": "", "MRR": ".2%", "gain": "100 {:+.2f} [{:+.2f}, {:+.2f}]"},
    [["a|b", 0.2, [0.5, -0.1, 0.9]], ["<i>", None, None]],
    note="Simulated & small.",
)


def test_numbers_stay_numbers_until_they_are_shown():
    assert TABLE.cells() == [["a|b", "20.00%", "+50.00 [−10.00, +90.00]"], ["<i>", "—", "—"]]
    assert json.loads(json.dumps(TABLE.records()))[0] == {
        "model": "a|b",
        "MRR": 0.2,
        "gain": [0.5, -0.1, 0.9],
    }


def test_each_value_of_a_template_has_a_format_of_its_own():
    rows = [[[0.0123, 0.0004]], [[-0.5, 0.25]], [[0.1, None]], [["more", 1]]]
    table = Table("", {"change": "{:100 +.2f} (p {:p})"}, rows)
    assert [cell for (cell,) in table.cells()] == [
        "+1.23 (p < .001)",
        "−50.00 (p 0.250)",
        "+10.00 (p —)",
        "more (p 1.000)",
    ]
    assert Table("", {"a": "100 .1f"}, [[[0.5, -0.25]]]).cells() == [["50.0, −25.0"]]


def test_markdown_keeps_a_pipe_inside_its_cell():
    assert TABLE.markdown() == (
        "*Gains*\n\nSimulated & small.\n\n| model | MRR | gain |\n| --- | ---: | ---: |\n"
        "| a\\|b | 20.00% | +50.00 [−10.00, +90.00] |\n| <i> | — | — |"
    )


def test_markdown_keeps_a_backslash_before_a_pipe():
    """Else it would take the pipe's own away, and the cell would end there."""
    assert Table("", {"a": ""}, [["x\\|y"]]).markdown().endswith("| x\\\\\\|y |")


def test_a_small_p_value_is_said_to_be_below_a_thousandth():
    shown = [Table("", {"p": "p"}, [[p]]).cells()[0][0] for p in (0.0009999, 0.001, 0.0099, 0.5)]
    assert shown == ["< .001", "0.001", "0.010", "0.500"]


def test_truth_is_shown_in_words():
    table = Table("", {"a": ""}, [[True], [np.False_], [[True, 2]], [None]])
    assert [cell for (cell,) in table.cells()] == ["yes", "no", "yes, 2", "—"]
    assert table.is_text() == [True]


def test_words_stand_left_and_numbers_right():
    assert TABLE.is_text() == [True, False, False]
    assert Table("", {"a": "", "b": ".1f"}, [["< 3", None], ["−2", 1.0]]).is_text() == [False] * 2
    assert Table("", {"a": ""}, []).is_text() == [False]


@given(st.text(), st.sampled_from(["title", "note", "column", "cell"]), st.booleans())
def test_html_escapes_whatever_is_given(words, place, folded):
    given = dict.fromkeys(["title", "note", "column", "cell"], "plain") | {place: f"<b>{words}"}
    table = Table(given["title"], {given["column"]: ""}, [[given["cell"]]], note=given["note"])
    assert "<b>" not in table.html(folded=folded)


@given(st.lists(st.tuples(st.text(st.characters(exclude_characters="\r\0")), st.floats(-9, 9))))
def test_csv_gives_the_numbers_back_in_full(rows):
    shown = list(csv.reader(io.StringIO(Table("", {"name": "", "x": ".1f"}, rows).csv())))
    assert shown[0] == ["name", "x"]
    for (name, x), (text, number) in zip(rows, shown[1:], strict=True):
        computed = name[:1] in ("=", "+", "-", "@", "\t") and not set(name) <= set("+-.0123456789")
        assert float(number) == x
        assert text in (name, "'" + name)
        assert (text == name) != (bool(name) and computed) or set(name) <= set("+-.0123456789")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=1+2", "'=1+2"), ("-1+2", "'-1+2"), ("+A1", "'+A1"), ("@A1", "'@A1"), ("\t=1", "'\t=1"),
        ("-5", "-5"), ("+4.5", "+4.5"), ("-", "-"), ("a=1", "a=1"),
    ],
)  # fmt: skip
def test_what_a_spreadsheet_would_compute_is_a_text_in_csv(cell, shown):
    (_, (found,)) = csv.reader(io.StringIO(Table("", {"a": ""}, [[cell]]).csv()))
    assert found == shown


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="2 values in a row, expected 1: a"):
        Table("t", {"a": ""}, [[1, 2]])


def test_a_table_without_rows_says_so():
    empty = Table("", {"a": "", "b": ".1f"}, [])
    assert '<td class="text" colspan="2">none</td>' in empty.html()
    assert empty.markdown().splitlines()[-1] == "| none |  |"
    assert empty.csv() == "a,b\n"


def test_a_folded_table_shows_its_title_in_the_summary_alone():
    open_, folded = TABLE.html(), TABLE.html(folded=True)
    assert "<caption><span>Gains<br><small>Simulated &amp; small.</small></span></caption>" in open_
    assert "<summary>Gains<br><small>Simulated &amp; small.</small></summary>" in folded
    assert "<caption" not in folded
    assert "<details" not in open_


def test_a_table_of_records_has_their_values_by_key():
    records = [
        {"name": "a", "gain": 0.5, "low": 0.1, "high": 0.9},
        {"name": "b", "gain": 0.0, "low": -1, "high": 1},
    ]
    columns = {"who": ("name", ""), "gain": (("gain", "low", "high"), "{:.1f} ({:.1f}, {:.1f})")}
    assert Table.of("Gains", records, columns, "Simulated.") == Table(
        "Gains",
        {"who": "", "gain": "{:.1f} ({:.1f}, {:.1f})"},
        [["a", [0.5, 0.1, 0.9]], ["b", [0.0, -1, 1]]],
        "Simulated.",
    )
