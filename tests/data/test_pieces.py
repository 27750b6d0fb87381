import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.data import pieces as module
from telic.data.csv_files import separator_of
from telic.data.phrases import read_list
from telic.data.pieces import open_pieces, text_lines
from telic.data.queries import read_query_log
from telic.data.recognised_columns import shape_of
from telic.errors import InputError

ROWS = [{"title": "007", "views": "3"}, {"title": 'say "nan", twice', "views": None}]


def written(folder, ending, rows=ROWS):
    file = folder / f"titles{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif ending == ".jsonl":
        file.write_text("\n\n".join(map(json.dumps, rows)))
    else:
        between = "," if ending == ".csv" else "\t"
        lines = ["title" + between + "views"]
        for row in rows:
            title = row["title"]
            if ending == ".csv":
                title = '"' + title.replace('"', '""') + '"'
            lines.append(f"{title}{between}{row['views'] or ''}")
        file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".txt", ".jsonl", ".parquet"])
def test_every_format_holds_the_same(tmp_path, ending):
    pieces = open_pieces(written(tmp_path, ending))
    assert pieces.columns == ["title", "views"]
    assert pa.concat_tables(pieces.read(["views", "title"])).to_pylist() == [
        {"views": row["views"], "title": row["title"]} for row in ROWS
    ]


def test_text_without_tabs_is_a_phrase_a_line(tmp_path):
    file = tmp_path / "titles.txt"
    file.write_text('\ufefftea\n\n "quoted", it is\r\n')
    pieces = open_pieces(file)
    assert pieces.columns == []
    assert pa.concat_tables(pieces.read(["line"]))["line"].to_pylist() == [
        "tea",
        ' "quoted", it is',
    ]


def test_compressed_text_is_read(tmp_path):
    file = tmp_path / "titles.csv.gz"
    file.write_bytes(gzip.compress(b"title\ntea\n"))
    (table,) = open_pieces(file).read(["title"])
    assert table["title"].to_pylist() == ["tea"]


@pytest.mark.parametrize("name", ["A.TXT.GZ", "A.CSV.GZ", "A.JSONL.GZ"])
def test_endings_may_be_in_capitals(tmp_path, name):
    text = '{"title": "tea"}\n' if "JSON" in name else "title\nTea\n"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    pieces = open_pieces(tmp_path / name)
    (table,) = pieces.read(pieces.names)
    assert table[pieces.names[0]].to_pylist()[-1].lower() == "tea"


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_that_is_there_twice_is_refused(tmp_path, ending):
    file = tmp_path / f"a{ending}"
    if ending == ".csv":
        file.write_text("title,title\nTea,Coffee\n")
    else:
        pq.write_table(pa.Table.from_arrays([pa.array(["Tea"])] * 2, ["title"] * 2), file)
    with pytest.raises(InputError, match="column 'title' comes more than once"):
        list(open_pieces(file).read(["title"]))


@pytest.mark.parametrize("ending", [".jsonl", ".txt", ".parquet", ".csv"])
def test_a_large_file_comes_in_pieces(tmp_path, ending, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 10)
    monkeypatch.setattr(module, "_BLOCK", 100)
    texts = [f"phrase {i}" for i in range(95)]
    file = tmp_path / f"many{ending}"
    if ending == ".txt":
        file.write_text("\n".join(texts))
    elif ending == ".csv":
        file.write_text("\n".join(["title", *texts]))
    elif ending == ".jsonl":
        file.write_text("\n".join(json.dumps({"title": text}) for text in texts))
    else:
        pq.write_table(pa.table({"title": texts}), file)
    pieces = open_pieces(file)
    read = list(pieces.read(pieces.columns or ["line"]))
    assert len(read) >= 10
    assert pa.concat_tables(read).column(0).to_pylist() == texts


def test_pieces_of_long_rows_are_shorter(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 10)
    file = tmp_path / "long.parquet"
    pq.write_table(pa.table({"title": [f"{i:0500}" for i in range(95)]}), file)
    for block, rows in ((1100, 2), (11_000, 10), (100, 1)):
        monkeypatch.setattr(module, "_BLOCK", block)
        lengths = [len(piece) for piece in open_pieces(file).read(["title"])]
        assert set(lengths[:-1]) == {rows}
        assert sum(lengths) == 95


def test_a_bad_row_of_a_later_piece_is_named_by_its_number_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 2)
    file = tmp_path / "many.jsonl"
    titles = ["tea", "cup", "pot", "", "jug"]
    file.write_text("\n".join(json.dumps({"title": title}) for title in titles))
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="row 4: column 'title'"):
        read_list(pieces, shape_of(pieces))
    assert read_list(pieces, shape_of(pieces), on_bad_row="skip").rows.tolist() == [1, 2, 3, 5]


def test_what_is_no_text_in_json_lines_is_json(tmp_path):
    file = tmp_path / "a.ndjson"
    file.write_text('{"title": "tea", "more": {"a": [1]}}\n{"title": "cup", "views": 3}\n')
    pieces = open_pieces(file)
    assert pieces.columns == ["title", "more", "views"]
    (table,) = pieces.read(["title", "more", "views"])
    assert table["more"].to_pylist() == ['{"a": [1]}', None]
    assert table["views"].to_pylist() == [None, "3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"title,views\ntea,1\nc\xff,2\n", "line 3 is not valid UTF-8"),
        ("a.csv", b"title,gr\xf6\xdfe\ntea,1\n", "line 1 is not valid UTF-8"),
        ("a.csv", b"title,views\ntea,1,5\n", "row 1: has 3 cells, expected 2"),
        ("a.csv", b'title\n"' + b"tea\n" * (10 << 20), r"line 2 opens a quote .* nothing closes"),
        ("a.csv", b'title\n"' + b"tea\n" * (10 << 20) + b'"', r"a row is longer than 32 MiB"),
        ("a.txt", b"tea\nc\xff\n", "line 2 is not valid UTF-8"),
        ("a.jsonl", b'{"title": "tea"}\n{"title"\n', "row 2: no JSON"),
        ("a.jsonl", b'{"title": "tea"}\n["cup"]\n', "row 2: expected a JSON object"),
        ("a.jsonl", b'{"title": "\\ud800"}\n', "row 1: no JSON"),
        ("a.jsonl", b'{"title": "\xff"}\n', "line 1 is not valid UTF-8"),
        ("a.jsonl", b"[" * 100_000, "row 1: no JSON"),
        ("a.parquet", b"tea", "cannot be read"),
        ("a.xlsx", b"tea", "its ending '.xlsx' says nothing"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        for _ in (opened := open_pieces(tmp_path / name)).read(opened.columns or ["line"]):
            pass
    with pytest.raises(InputError, match="no such file"):
        open_pieces(tmp_path / "nowhere.csv")


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    file = written(tmp_path, ".csv")
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="changed while it was read"), pieces.unchanged():
        file.write_text(file.read_text() + "one more,1\n")
    with pieces.unchanged():
        list(pieces.read(["title"]))


def test_a_parquet_file_that_breaks_off_inside_is_named(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": [f"phrase {i}" for i in range(5000)]}), file)
    content = bytearray(file.read_bytes())
    content[4:2000] = bytes(1996)  # the rows; the end, which says what they are, is whole
    file.write_bytes(content)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"a.parquet: cannot be read .*Write it again"):
        list(pieces.read(["title"]))


def test_names_that_only_late_rows_have_are_no_columns(tmp_path):
    file = tmp_path / "a.jsonl"
    rows = [{"title": f"phrase {i}"} for i in range(1001)]
    rows[1000]["views"] = 3
    file.write_text("\n".join(map(json.dumps, [*rows, {"title": "last", "more": 1}])))
    assert open_pieces(file).columns == ["title", "views"]


def test_a_file_that_is_gone_has_changed(tmp_path):
    file = written(tmp_path, ".csv")
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="changed while it was read"), pieces.unchanged():
        file.unlink()


@pytest.mark.parametrize(("rows", "sizes"), [(0, []), (1, [1]), (6, [3, 3]), (7, [3, 3, 1])])
@pytest.mark.parametrize("ending", [".jsonl", ".txt", ".parquet"])
def test_pieces_are_of_so_many_rows_and_the_rest(ending, rows, sizes, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 3)
    texts = [f"tea {number}" for number in range(rows)]
    file = tmp_path / f"titles{ending}"
    if ending == ".parquet":
        pq.write_table(pa.table({"title": pa.array(texts, pa.string())}), file)
    elif ending == ".jsonl":
        file.write_text("".join(f'{{"title": "{text}"}}\n' for text in texts))
    else:
        file.write_text("".join(f"{text}\n\n" for text in texts))
    name = "line" if ending == ".txt" else "title"
    found = list(open_pieces(file).read([name]))
    assert [len(one) for one in found if len(one)] == sizes
    assert [text for one in found for text in one[name].to_pylist()] == texts


def test_a_spreadsheets_semicolons_and_decimal_commas_are_read(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_bytes('\ufefftitle;views\r\n"a, b; c";1200,5\r\n"d\r\ne";2\r\n'.encode())
    pieces = open_pieces(file)
    assert pieces.columns == ["title", "views"]
    phrases = read_list(pieces, shape_of(pieces))
    assert phrases.weights.tolist() == [1200.5, 2.0]
    file.write_text("title;views\nTee;1.200,5\n")
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"row 1: column 'views': '1.200,5' is not a number"):
        read_list(pieces, shape_of(pieces))


def test_a_point_that_may_part_thousands_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "titles.csv"
    file.write_text("title;views\nTee;3\nKanne;1.200\nTopf;2,5\n")
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"row 2: column 'views': '1\.200' may be two numbers"):
        read_list(pieces, shape_of(pieces))
    for other, weights in (("0.5", [1.2, 0.5]), ("12.34", [1.2, 12.34])):
        file.write_text(f"title;views\nKanne;1.200\nTopf;{other}\n")
        pieces = open_pieces(file)
        assert read_list(pieces, shape_of(pieces)).weights.tolist() == weights
    file.write_text("title;views\nTopf;0.5\n" + "Kanne;1.200\nTee;3\n" * 20)
    monkeypatch.setattr(
        module, "_BLOCK", 64
    )  # the row that shows it is in the first of many pieces
    pieces = open_pieces(file)
    assert len(list(pieces.read(["title"]))) > 2
    assert read_list(pieces, shape_of(pieces)).weights.max() == 3.0
    monkeypatch.undo()
    file.write_text("title,views\nKanne,1.200\n")  # by commas: a decimal point
    pieces = open_pieces(file)
    assert read_list(pieces, shape_of(pieces)).weights.tolist() == [1.2]


def test_a_comma_in_cells_that_commas_separate_is_no_decimal_mark(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_text('title,views\nTea;pot,"1,200"\n')
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="row 1: column 'views': '1,200' is not a number"):
        read_list(pieces, shape_of(pieces))


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize(
    ("head", "mark"),
    [
        ("a,b;c\td", ","),
        ('"a,b";c', ";"),
        ("a\tb", "\t"),
        ("a", ","),
        ("", ","),
        ("a;b\rc,d;e", ";"),  # old Macs end lines so
    ],
)
def test_the_first_line_says_what_separates_cells(head, mark, ending, tmp_path):
    file = tmp_path / f"rows{ending}"
    text = f"{head}\n1,2;3\n".encode() if head else b""
    file.write_bytes(gzip.compress(text) if ending == ".csv.gz" else text)
    assert separator_of(file) == mark


def test_a_row_with_too_few_cells_is_counted_without_the_header(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_text("title,views\nTea,1\nTeapot\n")
    with pytest.raises(InputError, match=r"row 2: has 1 cells, expected 2, one for each column"):
        list(open_pieces(file).read(["title"]))


@pytest.mark.parametrize("name", ["titles.csv.gz", "titles.jsonl.gz", "titles.txt.gz"])
@pytest.mark.parametrize("harm", [lambda text: text[:-9], lambda text: text[:40] + b"x" * 40])
def test_a_compressed_file_that_is_cut_or_damaged_is_named(tmp_path, name, harm):
    rows = np.random.default_rng(0).integers(10**9, size=9000)
    lines = "".join(f'{{"title": "tea {row}"}}\n' for row in rows)
    file = tmp_path / name
    file.write_bytes(harm(gzip.compress(lines.encode())))
    with pytest.raises(InputError, match=f"{name}: (is cut short or damaged|cannot be read)"):
        [len(piece) for pieces in [open_pieces(file)] for piece in pieces.read(pieces.names)]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.csv.gz"])
def test_rows_with_too_few_or_too_many_cells_are_left_out_where_bad_rows_are(tmp_path, name):
    mark = "\t" if "tsv" in name else ","
    rows = [("u" * 60, "tea", "2026-01-01")] * 300_000  # more than a block
    rows[2] = ("u", "t", "ea", "2026-01-01")
    rows[3] = ("  ",)
    rows[299_999] = ("u", "tea")
    text = "".join(mark.join(row) + "\n" for row in [("user", "query", "at"), *rows]).encode()
    file = tmp_path / name
    file.write_bytes(gzip.compress(text, 1) if name.endswith("gz") else text)
    with pytest.raises(InputError, match=r"row 3: has 4 cells, expected 3.*skip-bad-rows"):
        read_query_log(pieces := open_pieces(file), shape_of(pieces))
    log = read_query_log(pieces, shape_of(pieces), on_bad_row="skip")
    assert (log.queries, len(log.query)) == (["tea"], 299_997)
    assert log.skipped == {f"has {n} cells, expected 3": 1 for n in (4, 1, 2)}


def test_a_quote_without_a_partner_is_said_among_rows_that_are_left_out(tmp_path):
    file = tmp_path / "titles.csv"
    file.write_text('title,views\ntea,1\nten\n"teak,3\nteal,4\n' + "tee,5\n" * 9)
    with pytest.raises(InputError, match="line 4"):
        [*open_pieces(file).read(["title"], {})]


def test_a_log_without_names_numbers_its_rows_from_the_first(tmp_path):
    file = tmp_path / "orcas.tsv"
    file.write_text("".join(f"{i}\ttea\tD{i}\thttps://a.example\n" for i in range(5)) + "5\ttea\n")
    with pytest.raises(InputError, match="row 6: has 2 cells, expected 4"):
        [*open_pieces(file).read(["query"])]


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_of_text_end_as_those_of_csv_do(tmp_path, end):
    file = tmp_path / "list.txt"
    file.write_bytes(f"\ufefftea{end}{end}tee\tteo{end}te{end}".encode())
    lines = [*text_lines(file, returns=True)]
    assert lines[:3] == [(1, "tea"), (2, ""), (3, "tee\tteo")]
    assert open_pieces(file).columns == []  # of the first line it is that a tab makes columns
    file.write_bytes(f"tea{end}{end}tee{end}té".encode())
    (piece,) = open_pieces(file).read(["line"])
    assert piece["line"].to_pylist() == ["tea", "tee", "té"]
    file.write_bytes(f"tea{end}té".encode("latin-1"))
    with pytest.raises(InputError, match=f"line {1 if end == chr(13) else 2} is not valid UTF-8"):
        [*text_lines(file, returns=True)]
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b'{"title":\r"tea"}\n')  # white space within an object
    assert [*text_lines(rows)] == [(1, '{"title":\r"tea"}')]
    assert open_pieces(rows).columns == ["title"]
