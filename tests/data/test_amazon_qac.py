import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.data.amazon_qac import read_amazon_qac
from telic.data.compositions import read_compositions
from telic.errors import InputError

NOON = dt.datetime(2024, 5, 6, 12, tzinfo=dt.UTC)


def amazon(**change):
    return {
        "session_id": "s",
        "query_id": 1,
        "prefixes": ["t", "te"],
        "final_search_term": "tea",
        "first_prefix_typed_time": NOON,
        "search_time": NOON + dt.timedelta(seconds=4),
    } | change


def test_amazon_qac_becomes_a_composition_log():
    log = read_compositions(read_amazon_qac(pa.Table.from_pylist([amazon()])))
    assert [log.prefixes[p] for p in log.prefix] == ["t", "te"]
    assert (log.at[1] - log.at[0]) == 2_000_000
    assert log.phrases[log.query[0]] == "tea"


@pytest.mark.parametrize(
    "change",
    [
        {"search_time": NOON - dt.timedelta(seconds=1)},
        {"search_time": None},
        {"first_prefix_typed_time": None},
        {"prefixes": None},
        {"prefixes": [""]},
    ],
)
def test_amazon_rows_without_prefixes_or_times_in_order_are_named(change):
    table = pa.Table.from_pylist([amazon(), amazon(**change)])
    with pytest.raises(InputError, match="row 2: expected prefixes"):
        read_amazon_qac(table)


CARD = {
    "query_id": "12",
    "session_id": "354",
    "prefixes": ["s", "si", "sin", "sink"],
    "first_prefix_typed_time": "2023-09-04T20:46:14.293Z",
    "final_search_term": "sink rack for bottom of sink",
    "search_time": "2023-09-04T20:46:27",
    "popularity": 125,
}


NO_LISTS = ["['s', 'si']", '"si"', "si", {"s": "si"}, 5, [["s"]], [1], "null", '["\\ud800"]']


@pytest.mark.parametrize("given", NO_LISTS)
def test_prefixes_that_are_no_list_of_texts_are_named(given, tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in (CARD, CARD | {"prefixes": given})))
    with pytest.raises(InputError, match=r"train.jsonl: row 2: column 'prefixes': .* no list"):
        read_amazon_qac(file)


def test_a_bad_time_is_named_with_file_and_row_of_any_piece(tmp_path, monkeypatch):
    monkeypatch.setattr("telic.data.pieces.PIECE", 2)
    file = tmp_path / "train.jsonl"
    rows = [CARD, CARD, CARD, CARD | {"search_time": "noon"}, CARD]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"train.jsonl: row 4: column 'search_time' is string"):
        read_amazon_qac(file)
    table = pa.Table.from_pylist([amazon()])
    with pytest.raises(InputError, match="the table: column 'prefixes' comes more than once"):
        read_amazon_qac(table.append_column("prefixes", table["prefixes"]))


def test_amazon_times_may_be_text_without_a_zone(tmp_path):
    file = tmp_path / "train.jsonl"
    file.write_text(json.dumps(CARD) + "\n" + json.dumps(CARD | {"query_id": "13"}) + "\n")
    from_json = read_amazon_qac(file)
    pq.write_table(pa.Table.from_pylist([CARD]), tmp_path / "train.parquet")
    assert read_amazon_qac(tmp_path / "train.parquet").equals(from_json.slice(0, 1))
    log = read_compositions(from_json)
    assert log.submitted_at[0] - log.at[0] == 12_707_000
    assert log.ids.to_pylist() == ["12", "13"]


def test_amazon_test_rows_are_compositions_of_one_keystroke():
    row = {
        "query_id": "23",
        "session_id": "783",
        "past_search_terms": [["a", "2023-10-07 13:03:54"]],
        "prefix": "transf",
        "prefix_typed_time": "2023-10-11T16:42:34.256Z",
        "final_search_term": "transformers legacy",
        "search_time": "2023-10-11 16:42:34",
    }
    log = read_compositions(read_amazon_qac(pa.Table.from_pylist([row])))
    assert [log.prefixes[p] for p in log.prefix] == ["transf"]
    assert log.submitted_at[0] == log.at[0]  # searches are published to the second only


def test_a_missing_amazon_column_is_named():
    with pytest.raises(InputError, match="column 'prefixes' is missing"):
        read_amazon_qac(pa.table({"session_id": ["s"], "query_id": ["1"]}))


@pytest.mark.parametrize(("earlier", "taken"), [(0.999999, True), (1.0, False)])
def test_a_search_within_the_second_of_its_first_prefix_came_after_it(earlier, taken):
    """Searches are published to the second, prefixes to the millisecond."""
    end = NOON - dt.timedelta(seconds=earlier)
    table = pa.Table.from_pylist([amazon(first_prefix_typed_time=NOON, search_time=end)])
    if not taken:
        with pytest.raises(InputError, match="row 1: expected prefixes"):
            read_amazon_qac(table)
        return
    (row,) = read_amazon_qac(table).to_pylist()
    assert row["submitted_at"] == NOON
    assert {stroke["at"] for stroke in row["keystrokes"]} == {NOON}
