"""Which files are taken for tables of text, whatever reads them."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.auc.table_columns import read_table as read_features
from telic.data.pieces import open_pieces
from telic.data.tables import read_table, table_pieces
from telic.errors import InputError
from telic.hin.csv_tables import _read as read_nodes
from telic.specialty.log.contract_tables import find_table, read_columns

ROWS = "a,b\n1,x\n2,y\n"
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string())])
READERS = [
    read_features,
    lambda path: read_table(path, SCHEMA),
    lambda path: pa.concat_tables(table_pieces(path, SCHEMA, 1)),
    lambda path: pa.concat_tables(open_pieces(path).read(["a", "b"])),
    lambda path: read_columns(path, ["a", "b"]),
    read_nodes,
]


@pytest.mark.parametrize("name", ["Rows.csv", "Rows.CSV", "Rows.csv.gz", "Rows.CSV.GZ"])
@pytest.mark.parametrize("read", READERS)
def test_every_reader_takes_csv_by_the_same_endings(read, name, tmp_path):
    text = ROWS.encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.lower().endswith("z") else text)
    assert read(tmp_path / name)["b"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize("read", READERS)
def test_every_reader_takes_parquet_in_capitals(read, tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "ROWS.PARQUET")
    assert read(tmp_path / "ROWS.PARQUET")["b"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize("read", READERS[:4])
def test_tabs_may_separate_cells_that_hold_commas(read, tmp_path):
    (tmp_path / "rows.tsv.gz").write_bytes(gzip.compress(b"a\tb\n1\tx, y\n"))
    assert read(tmp_path / "rows.tsv.gz")["b"].to_pylist() == ["x, y"]


@pytest.mark.parametrize("read", READERS)
def test_a_compressed_file_that_is_cut_short_is_refused(read, tmp_path):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(ROWS.encode())[:-12])
    with pytest.raises(InputError, match=r"rows\.csv\.gz: .*(Truncated|cut short)"):
        read(tmp_path / "rows.csv.gz")


def test_a_compressed_libsvm_file_is_read_and_its_bad_line_named(tmp_path):
    (tmp_path / "rows.libsvm.gz").write_bytes(gzip.compress(b"1 1:2 3:4\n-1 2:5\n"))
    X, y = read_features(tmp_path / "rows.libsvm.gz")
    assert (X.toarray().tolist(), y.tolist()) == ([[2, 0, 4], [0, 5, 0]], [1, -1])
    (tmp_path / "rows.libsvm.gz").write_bytes(gzip.compress(b"1 1:2\n-1 2:five\n"))
    with pytest.raises(InputError, match="line 2: expected 'label column:value"):
        read_features(tmp_path / "rows.libsvm.gz")


def test_an_access_log_may_be_compressed(tmp_path):
    (tmp_path / "accesses.csv.gz").write_bytes(gzip.compress(ROWS.encode()))
    assert find_table(tmp_path, "accesses").name == "accesses.csv.gz"
