import datetime as dt

import pyarrow as pa
import pytest

from telic.data.queries import read_queries
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": [1.0, -1.0]}, "row 2: column 'count'"),
        ({"query": ["a", " "]}, "row 2: column 'query': is empty"),
        ({"at": [NOW, None]}, "row 2: column 'at': is null"),
    ],
)
def test_bad_rows_are_named(change, message):
    good = {"query": ["a", "b"], "at": [NOW, NOW], "count": [1.0, 2.0]}
    with pytest.raises(InputError, match=message):
        read_queries(pa.table(good | change))
