"""How a query log is cut into pieces; `tests/scale` has what comes of them."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

from telic.completion import fold
from telic.completion.fit.counts_in_pieces import _forms
from telic.completion.fit.from_pieces import COUNTED, ROW, CountedLog, _plan, size_said


@pytest.mark.parametrize("rows", [1, 1000, 123_456])
@pytest.mark.parametrize("slots", [1, 7])
@pytest.mark.parametrize("piece", [ROW, 100 * ROW + 1, 10**6])
def test_sizes_are_chosen_by_the_memory_of_a_task_once(tmp_path, rows, slots, piece):
    """Rows that fit, and as few buckets as hold all that is counted, or one for each slot."""
    work = tmp_path / "work"
    plan = _plan(work, rows, SimpleNamespace(slots=slots, piece=piece))
    assert plan["rows"] * ROW <= piece < (plan["rows"] + 1) * ROW
    if plan["buckets"] < 4096:
        assert plan["buckets"] * piece >= rows * COUNTED
    if plan["buckets"] > slots:
        assert (plan["buckets"] - 1) * piece < rows * COUNTED
    assert slots <= plan["buckets"] <= 4096
    assert _plan(work, 5, SimpleNamespace(slots=1, piece=10**7)) == plan  # a job that goes on
    smaller = _plan(work, 5, SimpleNamespace(slots=1, piece=ROW - 1))
    assert smaller == {"rows": 1, "buckets": 3}
    assert _plan(work, 5, SimpleNamespace(slots=1, piece=piece)) == smaller


def test_a_piece_has_a_row_however_little_memory_there_is(tmp_path):
    assert _plan(tmp_path, 1, SimpleNamespace(slots=1, piece=1))["rows"] == 1


def test_users_queries_that_do_not_fit_are_said_with_what_they_would_take():
    """Half of the memory is theirs, as they are read and then held."""
    left_out = CountedLog.facts(SimpleNamespace(apart=True, _pairs=3_000_000))
    size = size_said(2 * 500 * 3_000_000)
    assert left_out == {
        "personal history": f"left out: 3000000 queries of users would take about {size}"
    }
    assert CountedLog.facts(SimpleNamespace(apart=False, _pairs=3_000_000)) == {}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
def test_each_text_of_a_slice_is_folded(kind):
    """Parquet that pandas or Polars wrote holds long strings, of which batches are slices."""
    texts = ["Hello", "TEN", "tea", "Téa", "東京", "Łódź", "Tea Pot", "two  blanks"]
    for first in range(len(texts)):
        part = pa.chunked_array([pa.array(texts, kind).slice(first).cast(pa.string())])
        folded = [fold(text) for text in texts[first:]]
        expected = [f if f != t else None for f, t in zip(folded, texts[first:], strict=True)]
        assert _forms(part).to_pylist() == expected
