import datetime as dt
import json

import pyarrow as pa
import pytest

from telic.data.query_app_pairs import read_app_usage, read_istas, read_pairs
from telic.errors import InputError

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


def test_unimobile_pairs_are_read():
    table = pa.table(
        {
            "WorkerId": [7, 7, 3],
            "TaskId": [1, 1, 2],
            "q": ["a b", "a b", "c"],
            "app": ["maps", "mail", "mail"],
        }
    )
    pairs = read_pairs(table)
    assert len(pairs) == 3
    assert pairs.workers == ["7", "3"]
    assert [pairs.tasks[t] for t in pairs.task] == ["1", "1", "2"]
    assert [pairs.queries[q] for q in pairs.query] == ["a b", "a b", "c"]
    assert [pairs.apps[a] for a in pairs.app] == ["maps", "mail", "mail"]


def test_a_row_without_a_task_is_a_situation_of_its_own():
    pairs = read_pairs(pa.table({"user": ["a", "a"], "query": ["x", "x"], "app": ["m", "m"]}))
    assert (pairs.task.tolist(), len(pairs.tasks)) == ([0, 1], 2)
    assert (pairs.worker.tolist(), pairs.query.tolist(), pairs.app.tolist()) == ([0, 0],) * 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query": ["x"], "app": ["mail"]}, "neither 'WorkerId'"),
        ({"user": ["a"], "query": [" "], "app": ["mail"]}, "row 1: column 'query' is empty"),
        ({"user": ["a"], "query": ["x"], "app": [None]}, "row 1: column 'app' is empty"),
    ],
)
def test_bad_pairs_are_named(columns, message):
    with pytest.raises(InputError, match=message):
        read_pairs(pa.table(columns))


def test_lsapp_openings_are_read_in_order(tmp_path):
    file = tmp_path / "lsapp.tsv"
    file.write_text(
        "user_id\tsession_id\ttimestamp\tapp_name\tevent_type\n"
        "0\t1\t2018-01-16 06:01:05\tChrome\tOpened\n"
        "0\t1\t2018-01-16 06:01:09\tChrome\tClosed\n"
        "0\t1\t2018-01-16 06:00:00\tMaps\tOpened\n"
    )
    openings = read_app_usage(file)
    assert openings["app"].to_pylist() == ["Maps", "Chrome"]
    assert openings["user"].to_pylist() == ["0", "0"]
    assert openings["at"].to_pylist()[1] == dt.datetime(2018, 1, 16, 6, 1, 5, tzinfo=dt.UTC)


def test_an_lsapp_row_without_an_app_is_named(tmp_path):
    file = tmp_path / "lsapp.tsv"
    header, *rows = (
        "user_id\ttimestamp\tapp_name\tevent_type\n",
        "0\t2018-01-16 06:01:05\tChrome\tClosed\n",
        "0\t2018-01-16 06:01:09\t\tOpened\n",
    )
    for row in (2, 1):
        file.write_text("".join([header, *rows]))
        with pytest.raises(InputError, match=f"row {row}: 'app_name' is empty"):
            read_app_usage(file)
        rows.reverse()


def test_openings_come_from_a_table_too_and_a_broken_file_is_named(tmp_path):
    table = pa.table({"user_id": ["0"], "timestamp": [NOON], "app_name": ["Maps"]})
    assert read_app_usage(table)["app"].to_pylist() == ["Maps"]
    file = tmp_path / "lsapp.tsv"
    for text, wrong in (
        ("user_id\ttimestamp\n0\n1\t2\t3\n", "row 1: has 1 cells, expected 2"),
        ("", "is empty. Expected a line of column names"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=f"lsapp.tsv: {wrong}"):
            read_app_usage(file)


ISTAS = {
    "timestamp": {"0": "2018-04-17 20:28:43.438", "7": 1523206003674},
    "UserID": {"0": 225, "7": 219},
    "Query": {"0": "photo storage", "7": "rain today"},
    "App": {"0": "pinterest", "7": "weather"},
    "AppUsages": {"0": {"Duration": {"clock": 0, "maps": 1500, "mail": 60000}}, "7": None},
}


@pytest.mark.parametrize("by_rows", [False, True])
def test_istas_is_read_with_what_was_used_before(tmp_path, by_rows):
    held = [{k: v[i] for k, v in ISTAS.items()} for i in ("0", "7")] if by_rows else ISTAS
    file = tmp_path / "istas.json"
    file.write_text(json.dumps(held))
    table = read_istas(file)
    assert table["at"].to_pylist()[0] == dt.datetime(2018, 4, 17, 20, 28, 43, 438000, dt.UTC)
    assert table["at"].to_pylist()[1] == dt.datetime(2018, 4, 8, 16, 46, 43, 674000, dt.UTC)
    assert table["used"].to_pylist() == [
        [
            {"app": "mail", "seconds": 60.0},
            {"app": "maps", "seconds": 1.5},
            {"app": "clock", "seconds": 0.0},
        ],
        [],
    ]
    pairs = read_pairs(file)
    assert pairs.apps == ["pinterest", "weather"]
    assert pairs.workers == ["225", "219"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a readable JSON"),
        ("7", "expected the columns UserID, .* or a list of rows"),
        ('{"Query": {}}', "expected the columns UserID"),
        ('[{"UserID": 1}]', "row 1: expected UserID"),
        (json.dumps(ISTAS | {"AppUsages": {"0": {"Duration": {"maps": "long"}}}}), "row 1"),
        (json.dumps(ISTAS | {"AppUsages": {"0": {"Duration": {"maps": -1}}}}), "row 1.*>= 0"),
        (json.dumps(ISTAS | {"Query": {"0": 5, "7": "rain"}}), "row 1.*must be strings"),
        ("[" * 100_000, "not a readable JSON"),
        (json.dumps(ISTAS | {"timestamp": {"0": "yesterday"}}), "row 1"),
    ],
)
def test_a_broken_istas_file_is_named(tmp_path, text, message):
    file = tmp_path / "istas.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_istas(file)


def test_a_bad_row_of_a_converted_file_is_named_by_the_file(tmp_path):
    (tmp_path / "istas.json").write_text(json.dumps(ISTAS | {"Query": {"0": " ", "7": "rain"}}))
    with pytest.raises(InputError, match=r"istas\.json: row 1: column 'query' is empty"):
        read_pairs(tmp_path / "istas.json")
    lsapp = "user_id\ttimestamp\tapp_name\n0\tyesterday\tMaps\n"
    (tmp_path / "lsapp.tsv").write_text(lsapp)
    with pytest.raises(InputError, match=r"lsapp\.tsv: row 1: column 'timestamp'"):
        read_app_usage(tmp_path / "lsapp.tsv")
