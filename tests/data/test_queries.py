import datetime as dt

import pyarrow as pa
import pytest

from telic.data.queries import MAX_COUNT, read_queries
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
    ],
)
def test_bad_rows_are_named(change, message):
    good = {"query": ["a", "b"], "at": [NOW, NOW], "count": [1.0, 2.0]}
    with pytest.raises(InputError, match=message):
        read_queries(pa.table(good | change))
