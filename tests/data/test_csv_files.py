"""Which files are taken for tables of text, whatever reads them."""

import csv
import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.csv import ParseOptions

from telic.auc.table_columns import read_table as read_features
from telic.data.csv_files import check_quotes, csv_table, quote_fault
from telic.data.pieces import open_pieces
from telic.data.tables import read_table, table_pieces
from telic.errors import InputError
from telic.hin.csv_tables import _read as read_nodes
from telic.hin.edge_lists import read_edge_list
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


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('1,x\n2,"y\n3,z\n', "line 3 opens a quote .* that nothing closes"),
        ('1,x\n2,"y\n3,z', "line 3 opens a quote .* that nothing closes"),
        ('1,x\n2,"y\n', "line 3 opens a quote .* that nothing closes"),
        ('1,x\r2,"y\r3,"z"\r4,w\r', "line 3 opens a quote .* that line 4 closes inside of a cell"),
        ('1,x\n2,"y\n3,"z"\n4,w\n', "line 3 opens a quote .* that line 4 closes inside of a cell"),
        ('1,x\n2,"y\n3,z\n4,"w\n', "line 3 opens a quote .* that line 5 closes inside of a cell"),
    ],
)
@pytest.mark.parametrize("read", [*READERS, read_edge_list], ids=lambda read: read.__name__)
def test_a_quote_without_a_partner_takes_no_rows_in_silence(read, text, fault, name, tmp_path):
    names = "source,target\n" if read is read_edge_list else "a,b\n"
    whole = (names + text).encode()
    (tmp_path / name).write_bytes(gzip.compress(whole) if name.endswith("z") else whole)
    with pytest.raises(InputError, match=rf"rows\.csv\S*: {fault}"):
        read(tmp_path / name)


@pytest.mark.parametrize("read", READERS)
def test_cells_of_several_lines_are_read_as_they_are(read, tmp_path):
    text = 'a,b\r\n1,"x\r\n""green"", or so"\r\n\r\n2,5" wide\r\n3,""\r\n4,"y"z\r\n'
    (tmp_path / "rows.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = read(tmp_path / "rows.csv")["b"].to_pylist()
    assert found[:2] == ['x\r\n"green", or so', '5" wide']
    assert found[3] == "yz"


@pytest.mark.parametrize("read", READERS)
def test_cells_of_several_lines_may_stand_at_the_end_of_what_arrow_reads_at_once(read, tmp_path):
    rows = [f'{i},"{"x" * 1000}\nfoo,bar"\n' for i in range(1100)]
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(rows))
    assert len(read(tmp_path / "rows.csv")["b"]) == len(rows)


@pytest.mark.parametrize(
    "text",
    [
        b'a,b\r"x,",2\r3,4\r',
        b'\xef\xbb\xbf"a\nb",c\n1,2\n',
        b'a,b\n1,"x\ny"',
        b'a,b\n1,"x\ny" \n\n\n',
        b'"a","b"\n"1","2"\n\n',
    ],
)
@pytest.mark.parametrize("rows", [None, 2])
def test_legal_quotes_are_not_refused(tmp_path, text, rows):
    (tmp_path / "rows.csv").write_bytes(text)
    check_quotes(tmp_path / "rows.csv", ",", rows)


@pytest.mark.parametrize(
    "text", [b'\xef\xbb\xbf"a,b\n1,2\n', b'a,b\n1,"' + b"x" * (1 << 21) + b"\n"]
)
@pytest.mark.parametrize("rows", [None, 2])
def test_quotes_at_the_beginning_and_in_a_long_last_line_are_found(tmp_path, text, rows):
    (tmp_path / "rows.csv").write_bytes(text)
    if rows and text.startswith(b"\xef"):
        rows = 1  # as a reader finds
    with pytest.raises(InputError, match=r"opens a quote .* that nothing closes"):
        check_quotes(tmp_path / "rows.csv", ",", rows)


def test_files_without_names_are_counted_without_them(tmp_path):
    (tmp_path / "rows.csv").write_text('1,"x\n2,y"\n3,"z\n4,w\n')
    with pytest.raises(InputError, match=r"line 3 opens a quote .* that nothing closes"):
        csv_table(tmp_path / "rows.csv", names=["a", "b"], parse_options=ParseOptions())


@given(st.lists(st.lists(st.text('",a\n;', max_size=4), min_size=2, max_size=2), max_size=5))
def test_what_a_writer_of_csv_wrote_has_no_fault(rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file = io.BytesIO(text.getvalue().encode())
    assert quote_fault(file, ",") is None


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
