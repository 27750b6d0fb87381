import csv
import datetime as dt
import json
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.data.contracts import MAX_COUNT, MAX_TEXT
from telic.data.pieces import Pieces, open_pieces
from telic.data.queries import joined_group, read_queries, read_query_log
from telic.data.recognised_columns import shape_of
from telic.data.tables import in_utc
from telic.errors import InputError

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def test_csv_and_optional_columns(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text(
        "query,at,user,count\nface,2026-01-01T00:00:00Z,,3\nface,2026-01-02T00:00:00Z,u,1\n"
    )
    log = read_queries(path)
    assert [log.queries[q] for q in log.query] == ["face", "face"]
    assert [log.users[u] for u in log.user] == [None, "u"]
    assert log.count.tolist() == [3.0, 1.0]
    first = int(NOW.timestamp() * 1e6)
    assert log.at.tolist() == [first, first + 24 * 3600 * 10**6]


def test_a_log_whose_rows_name_groups_numbers_them_as_they_come(tmp_path):
    text = "query,at,user,tenant\nb,2026-01-02,u,x\na,2026-01-01,v,\nb,2026-01-01,u,y\n"
    log = read_query_log(*opened(tmp_path, "q.csv", text + "a,2026-01-03,,x\n"))
    assert (log.queries, log.query.tolist()) == (["b", "a"], [0, 1, 0, 1])
    assert (log.users, log.user.tolist()) == ([None, "u", "v"], [1, 2, 1, 0])
    assert log.count.tolist() == [1.0] * 4
    assert set(log.groups) == {"tenant"}
    values, place = log.groups["tenant"]
    assert (values, place.tolist()) == (["x", None, "y"], [0, 1, 2, 0])
    other = read_queries(pa.table({"query": ["c"], "at": [NOW]}))
    of, where = joined_group([other, log, log], "tenant")
    assert (of, where.tolist()) == (["x", "y"], [-1, 0, -1, 1, 0, 0, -1, 1, 0])


def test_what_is_left_out_is_one_submission_of_nobodys():
    columns = {"query": ["a", "b", "a"], "at": [NOW] * 3}
    log = read_queries(
        pa.table(columns | {"user": ["u", None, "v"], "count": [None, 0.0, MAX_COUNT]})
    )
    assert [log.users[u] for u in log.user] == ["u", None, "v"]
    assert log.count.tolist() == [1.0, 0.0, MAX_COUNT]


def test_text_in_csv_stays_as_it_is_written(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,at,user\n007,2026-01-01,0042\n1e3,2026-01-01,7\n")
    log = read_queries(path)
    assert log.queries == ["007", "1e3"]
    assert log.users == [None, "0042", "7"]
    path.write_text("query,at\nnan,2026-01-01\nnull,2026-01-01\nNA,2026-01-01\n")
    assert read_queries(path).queries == ["nan", "null", "NA"]


def test_a_count_that_is_no_number_is_named(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,at,count\ntea,2026-01-01,1\ntea,2026-01-01,nan\n")
    with pytest.raises(InputError, match="row 2: column 'count'"):
        read_queries(path)


def test_the_place_of_what_is_no_csv_is_named(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"tea,2026-01-01,{'u' * 60}"] * 600_000  # several of Arrow's blocks
    rows[500_000] = "tea,2026-01-01"
    path.write_text("\n".join(["query,at,user", *rows]))
    with pytest.raises(InputError, match=r"log\.csv: row 500001: has 2 cells, expected 3"):
        read_queries(path)
    path.write_bytes("query,at,user\ntea,2026-01-01,u\nthé,2026-01-01,u\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"log\.csv: line 3 is not valid UTF-8\. Convert"):
        read_queries(path)


def test_a_text_of_10_mb_is_named_by_its_row(tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("query,at\ntea,2026-01-01\n" + "x" * 10_000_000 + ",2026-01-01\n")
    with pytest.raises(InputError, match="row 2: column 'query': is longer"):
        read_queries(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": [1.0, -1.0]}, "row 2: column 'count'"),
        ({"count": [1.0, 1e300]}, "row 2: column 'count'"),
        ({"query": ["a", " "]}, "row 2: column 'query': is empty"),
        ({"query": ["a", "´"]}, "row 2: column 'query': is empty or all white space and diac"),
        ({"query": ["a", "x" * 1001]}, "row 2: column 'query': is longer than 1000"),
        ({"at": [NOW, None]}, "row 2: column 'at': is null"),
        # Seconds would be taken for microseconds, and all be in 1970.
        ({"at": [1767225600, 1767225601]}, "column 'at' is int64.* do not say their unit"),
    ],
)
def test_bad_rows_are_named(change, message):
    good = {"query": ["a", "b"], "at": [NOW, NOW], "count": [1.0, 2.0]}
    with pytest.raises(InputError, match=message):
        read_queries(pa.table(good | change))


def opened(folder, name, text):
    file = folder / name
    file.write_text(text)
    pieces = open_pieces(file)
    return pieces, shape_of(pieces)


def hour(n):
    return int(dt.datetime(2006, 3, 1, n, tzinfo=dt.UTC).timestamp() * 1e6)


def test_aol_counts_a_search_once_however_many_results_were_opened(tmp_path):
    lines = ["AnonID\tQuery\tQueryTime\tItemRank\tClickURL"]
    lines += [
        f"7\ttea\t2006-03-01 0{h}:00:00\t{rank}\thttp://a" for h, rank in ((1, 1), (1, 2), (2, 1))
    ]
    lines += ["8\ttea\t2006-03-01 02:00:00\t\t", '8\t"tea\t2006-03-01 03:00:00\t\t']
    log = read_query_log(*opened(tmp_path, "user-ct-01.txt", "\n".join(lines) + "\n"))
    assert [log.queries[q] for q in log.query] == ["tea", "tea", "tea", '"tea']
    assert [log.users[u] for u in log.user] == ["7", "7", "8", "8"]
    assert log.at.tolist() == [hour(1), hour(2), hour(2), hour(3)]


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(1, 2)), min_size=1, max_size=12))
@settings(max_examples=30)
def test_aol_counts_the_same_searches_however_the_file_is_cut(searches):
    rows = {
        "AnonID": [str(user) for user, _ in searches],
        "Query": ["tea"] * len(searches),
        "QueryTime": [f"2006-03-01 0{h}:00:00" for _, h in searches],
    }
    table = pa.table(rows)
    file = Path(__file__)  # which is there, and does not change
    shape = shape_of(Pieces(file, list(rows), lambda _: iter([table])))
    for size in range(1, len(searches) + 1):
        cut = [table[i : i + size] for i in range(0, len(searches), size)]
        log = read_query_log(Pieces(file, list(rows), lambda *_, cut=cut: iter(cut)), shape)
        found = list(zip((log.users[u] for u in log.user), log.at.tolist(), strict=True))
        assert found == [(str(user), hour(h)) for (user, h), _ in groupby(searches)]


def test_a_column_that_comes_twice_is_refused(tmp_path):
    rows = "tea,2026-01-01,ten\n"
    with pytest.raises(InputError, match=r"q.csv: column 'query' comes more than once. Keep one"):
        read_query_log(*opened(tmp_path, "q.csv", "query,at,query\n" + rows))
    with pytest.raises(
        InputError, match=r"columns 'Query', 'query' could each be the phrase\. Say"
    ):
        opened(tmp_path, "q.csv", "Query,at,query\n" + rows)
    named = {"phrase": "query"}
    pieces = open_pieces(tmp_path / "q.csv")
    assert read_query_log(pieces, shape_of(pieces, named)).queries == ["ten"]
    log = read_query_log(*opened(tmp_path, "q.csv", "query,at,,\ntea,2026-01-01,,\n"))
    assert log.queries == ["tea"]  # of columns that are not read it is no matter
    twice = pa.table(
        [pa.array(["tea"]), pa.array([NOW]), pa.array(["ten"])], ["query", "at", "query"]
    )
    pq.write_table(twice, tmp_path / "q.parquet")
    pieces = open_pieces(tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q.parquet: column 'query' comes more than once"):
        read_query_log(pieces, shape_of(pieces))


CARD_TEST = {
    "query_id": "23",
    "session_id": "783",
    "past_search_terms": [["robot toys", "2006-03-01 01:00:00"], ["magnus", "2006-03-01 02:00:00"]],
    "prefix": "rob",
    "prefix_typed_time": "2006-03-01T03:00:00.256Z",
    "final_search_term": "robots",
    "search_time": "2006-03-01 04:00:00",
}


def test_amazon_qac_brings_past_searches_and_times_without_a_zone(tmp_path):
    pieces, shape = opened(tmp_path, "test.jsonl", json.dumps(CARD_TEST))
    log = read_query_log(pieces, shape)
    assert [(log.queries[q], t) for q, t in zip(log.query, log.at, strict=True)] == [
        ("robot toys", hour(1)),
        ("magnus", hour(2)),
        ("robots", hour(4)),
    ]
    assert {log.users[u] for u in log.user} == {"783"}
    file = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist([CARD_TEST]), file)
    pieces = open_pieces(file)
    again = read_query_log(pieces, shape_of(pieces))
    np.testing.assert_array_equal(again.at, log.at)
    for past in (["robot toys"], ["robot toys", "noon"]):
        bad = CARD_TEST | {"past_search_terms": [past]}
        pieces, shape = opened(tmp_path, "bad.jsonl", json.dumps(bad))
        with pytest.raises(InputError, match="row 1: column 'past_search_terms'"):
            read_query_log(pieces, shape)


def test_a_past_search_counts_once_whatever_rows_say_it(tmp_path):
    final = {"final_search_term": "puzzles", "search_time": "2006-03-01 05:00:00"}
    past = [*CARD_TEST["past_search_terms"], ["robots", "2006-03-01 04:00:00"]]
    rows = [CARD_TEST, CARD_TEST | final | {"past_search_terms": past}]
    log = read_query_log(*opened(tmp_path, "test.jsonl", "\n".join(map(json.dumps, rows))))
    assert sorted(log.queries[q] for q in log.query) == [
        "magnus",
        "puzzles",
        "robot toys",
        "robots",
    ]
    other = CARD_TEST | {"session_id": "784"}
    both = [CARD_TEST, other]
    log = read_query_log(*opened(tmp_path, "both.jsonl", "\n".join(map(json.dumps, both))))
    assert np.bincount(log.query).tolist() == [2, 2, 2]


@pytest.mark.parametrize("term", ["\x07", " ", "", None])
def test_a_past_search_of_nothing_is_none(tmp_path, term):
    read = CARD_TEST | {"past_search_terms": [[term, "2006-03-01 01:00:00"]]}
    log = read_query_log(*opened(tmp_path, "test.jsonl", json.dumps(read)))
    assert log.queries == ["robots"]


@pytest.mark.parametrize("term", ["\ud800", "\u0301"])
def test_a_past_search_that_cannot_be_matched_is_named(tmp_path, term):
    read = CARD_TEST | {"past_search_terms": [[term, "2006-03-01 01:00:00"]]}
    file = tmp_path / "test.csv"
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, fieldnames=read)
        writer.writeheader()
        writer.writerow(read | {"past_search_terms": json.dumps(read["past_search_terms"])})
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="row 1: column 'past_search_terms': holds no pairs"):
        read_query_log(pieces, shape_of(pieces))


def test_days_are_their_first_moment(tmp_path):
    file = tmp_path / "queries.parquet"
    pq.write_table(pa.table({"query": ["tea"], "at": [dt.date(2026, 1, 1)]}), file)
    pieces = open_pieces(file)
    log = read_query_log(pieces, shape_of(pieces))
    assert log.at.tolist() == [int(NOW.timestamp() * 1e6)]


def test_a_time_beyond_what_microseconds_reach_is_none(tmp_path):
    file = tmp_path / "log.parquet"
    at = pa.array([0, 2**60], pa.timestamp("ms", tz="UTC"))
    pq.write_table(pa.table({"query": ["tea", "tea"], "at": at}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"row 2: column 'at': .* is no time"):
        read_query_log(pieces, shape_of(pieces))
    with pytest.raises(InputError, match=r"column 'at' is timestamp.* Convert the column"):
        read_queries(file)


def test_contract_2_reads_the_same_as_in_one_piece(tmp_path):
    text = (
        "query,at,user,count,tenant,network\n"
        "face,2026-01-01T00:00:00+01:00,,3,,192\nface,2026-01-02,u,,shop,\n"
    )
    pieces, shape = opened(tmp_path, "q.csv", text)
    in_pieces, whole = read_query_log(pieces, shape), read_queries(tmp_path / "q.csv")
    for log in (in_pieces, whole):
        assert [log.queries[q] for q in log.query] == ["face", "face"]
        assert [log.users[u] for u in log.user] == [None, "u"]
        assert log.count.tolist() == [3.0, 1.0]
        groups = {name: [of[i] for i in place] for name, (of, place) in log.groups.items()}
        assert groups == {"tenant": [None, "shop"], "network": ["192", None]}
    assert in_pieces.at.tolist() == whole.at.tolist()
    assert (in_pieces.at[0] + 3_600_000_000) % (24 * 3_600_000_000) == 0


def test_groups_of_a_log_that_has_none_are_refused(tmp_path):
    file = tmp_path / "aol.tsv"
    file.write_text("AnonID\tQuery\tQueryTime\tlocale\n1\ttea\t2006-03-01 10:00:00\ten\n")
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"aol.tsv: AOL.* has no tenant"):
        read_query_log(pieces, shape_of(pieces, {"tenant": "locale"}))


def test_a_query_as_long_as_may_be_is_taken():
    log = read_queries(pa.table({"query": ["x" * MAX_TEXT], "at": [NOW]}))
    assert log.queries == ["x" * MAX_TEXT]


@pytest.mark.parametrize(
    "given",
    [
        "2023-02-29",
        "2024-31-12",
        "2024-04-31 10:00",
        "2024-01-31 24:00",
        "2024-01-31 10:60:00",
        "soon",
        "2024-01-31 10:00+25",
        "2024-01-31 10:00Zx",
        "2024-01-31Z",
        "2024-01-31 ",
    ],
)
def test_what_is_no_time_is_null_beside_those_that_are(given):
    times, _ = in_utc(pa.array(["2024-02-29 23:59:59.5+23:59", given, "2024-12-31"]))
    assert times.is_valid().to_pylist() == [True, False, True]
