"""A search box of lists that are merged in pieces is the search box of the lists, to the byte."""

import json
import subprocess
import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telic.completion import Completer, fit_files
from telic.completion.fit import lists_in_pieces, static_box
from telic.errors import InputError
from telic.scale import Local

# Texts that come again and again and fold alike; weights whose sum depends on their order.
TEXTS = st.text("aAá ß9字", min_size=1, max_size=3).filter(str.strip)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "phrase": TEXTS,
            "weight": st.sampled_from([0.0, 0.1, 0.2, 0.7, 1e-17]),
            "id": st.sampled_from([None, "", "1", "2"]),
            "payload": st.sampled_from([None, "1", '{"url": "/tea"}']),
            "language": st.sampled_from([None, "", "de", "en", "as"]),
            "tenant": st.sampled_from([None, "shop"]),
        }
    ),
    min_size=1,
    max_size=40,
)


def assert_same_box(found, expected, folder):
    for name, completer in (("found", found), ("expected", expected)):
        completer.save(folder / name)
    contents = [
        {file.name: file.read_bytes() for file in sorted((folder / name).iterdir())}
        for name in ("found", "expected")
    ]
    assert contents[0] == contents[1]


@pytest.fixture
def small_pieces(monkeypatch):
    def few(rows):
        small = partial(lists_in_pieces.catalogue_in_pieces, rows=rows)
        monkeypatch.setattr(static_box, "catalogue_in_pieces", small)

    return few


@settings(max_examples=20, deadline=None)
@given(
    lists=st.lists(ROWS, min_size=1, max_size=3),
    left_out=st.lists(st.sampled_from(["weight", "id", "payload", "language", "tenant"])),
    duplicates=st.sampled_from(["add", "max"]),
    rows=st.integers(1, 30),
)
def test_pieces_give_the_search_box_of_the_whole(
    lists, left_out, duplicates, rows, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("lists")
    files = [folder / f"{number}.parquet" for number in range(len(lists))]
    for number, (file, list_) in enumerate(zip(files, lists, strict=True)):
        # The last list lacks some columns; what they all lack is in none.
        kept = set(list_[0]) - set(left_out if number == len(lists) - 1 else [])
        pq.write_table(
            pa.Table.from_pylist([{c: row[c] for c in sorted(kept)} for row in list_]), file
        )
    whole = fit_files(*files, duplicates=duplicates)
    with pytest.MonkeyPatch.context() as patch:
        small = partial(lists_in_pieces.catalogue_in_pieces, rows=rows)
        patch.setattr(static_box, "catalogue_in_pieces", small)
        engine = Local(threads=1, memory="1GiB")
        work = folder / "work"
        pieces = fit_files(*files, duplicates=duplicates, executor=engine, work=work)
    assert list(work.iterdir()) == []
    assert_same_box(pieces, whole, folder)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory):
    """Thousands of products of several shops, in CSV with rows that cannot be used."""
    rng = np.random.default_rng(5)
    words = ["Tea", "tea", "Teapot", "Tasse", "Käse", "kase", "京都", "Toaster"]
    lines = ["product,sold,shop,payload"]
    for _ in range(9000):
        name = " ".join(rng.choice(words, rng.integers(1, 4)))
        lines.append(f'{name},{rng.integers(0, 5)},{rng.choice(["a", "b", ""])},"{{""n"": 1}}"')
    lines += [" ,3,a,", "Saucer,many,b,"]
    file = tmp_path_factory.mktemp("catalogue") / "products.csv"
    file.write_text("\n".join(lines))
    return file


def test_a_csv_file_gives_the_same_box_and_says_the_same(catalogue, small_pieces, tmp_path):
    small_pieces(700)
    options = {
        "columns": {"phrase": "product", "weight": "sold", "shop": "shop"},
        "duplicates": "add",
        "on_bad_row": "skip",
    }
    whole = fit_files(catalogue, **options)
    pieces = fit_files(catalogue, executor=Local(memory="1GiB"), **options)
    assert "rows skipped" in pieces.found["files"][0]
    assert list(pieces.found.items()) == list(whole.found.items())
    assert_same_box(pieces, whole, tmp_path)
    again = Completer.load(tmp_path / "found")
    texts = [s.text for s in again.suggest("tea", where={"shop": "b"})]
    assert texts == [s.text for s in whole.suggest("tea", where={"shop": "b"})]
    assert len(texts) == 10


def test_without_weights_a_phrase_weighs_as_often_as_it_comes(small_pieces, tmp_path):
    small_pieces(2)
    (tmp_path / "a.txt").write_text("tea\ntee\nTee\ntee\ncup\n")
    whole = fit_files(tmp_path / "a.txt")
    pieces = fit_files(tmp_path / "a.txt", executor=Local(threads=1))
    assert_same_box(pieces, whole, tmp_path)


def test_of_rows_that_weigh_the_same_the_first_gives_the_id(small_pieces, tmp_path):
    small_pieces(1)
    (tmp_path / "a.csv").write_text("phrase,weight,id\nzoo,1,2\ntea,1,1\ntea,1,2\n")
    for engine in (None, Local(threads=1)):
        (found,) = fit_files(tmp_path / "a.csv", executor=engine).suggest("tea")
        assert found.id == "1"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("title,views\nCup,1\nTea,3\nTea,5\n", {}, r"a\.csv: row 3: phrase 'Tea' has weight 5"),
        ("title,views\nTea,3\n ,5\n", {}, r"a\.csv: row 2: column 'title': is empty"),
        ("title,views\nTea,3\n", {"model": "adaqac-online"}, "learns from feedback"),
        ("title,views\n", {}, "holds no row"),
    ],
)
def test_what_cannot_be_used_is_named_as_without(text, options, message, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    for engine in ({}, {"executor": Local(threads=1), "work": tmp_path / "work"}):
        with pytest.raises(InputError, match=message):
            fit_files(tmp_path / "a.csv", **engine, **options)
    if (tmp_path / "work").exists():
        assert list((tmp_path / "work").iterdir()) == []


def test_of_joined_lists_the_file_of_a_bad_row_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("title,views\nCup,1\nTea,3\n")
    (tmp_path / "b.csv").write_text("title,views\nTea,4\n")
    for engine in (None, Local(threads=1)):
        with pytest.raises(InputError, match=r"b\.csv: row 1: .* but 3 in .*a\.csv: row 2\. "):
            fit_files(tmp_path / "a.csv", tmp_path / "b.csv", executor=engine)


@pytest.mark.parametrize("executor", [None, Local(threads=1)], ids=["whole", "in pieces"])
def test_a_list_without_usable_rows_is_refused(tmp_path, executor):
    (tmp_path / "a.csv").write_text("title,brand\n ,x\n")
    with pytest.raises(InputError, match=r"a.csv: no row can be used \(1 rows skipped: title: is "):
        fit_files(tmp_path / "a.csv", on_bad_row="skip", executor=executor)


PAYLOADS = pa.schema([("phrase", pa.string()), ("weight", pa.float64()), ("payload", pa.string())])
MEASURED = """
import sys
from telic.completion import fit_files
from telic.scale import Local
fit_files(sys.argv[1], executor=Local(memory="800MB")).save(sys.argv[2])
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_list_larger_than_the_memory_keeps_to_it(tmp_path):
    def took(n):
        numbers, file = np.random.default_rng(0).permutation(n), tmp_path / f"{n}.parquet"
        texts = pa.array([f"product {i % 500:03} of shelf {i}" for i in numbers.tolist()])
        weights = pa.array(np.random.default_rng(1).random(n))
        with pq.ParquetWriter(file, PAYLOADS) as writer:
            for begin in range(0, n, 10_000):
                part = slice(begin, begin + 10_000)
                payloads = [
                    json.dumps({"url": f"/{i}", "text": f"{i} " * 240})
                    for i in numbers[part].tolist()
                ]
                columns = [texts[part], weights[part], pa.array(payloads)]
                writer.write_table(pa.table(columns, schema=PAYLOADS))
        script = [sys.executable, "-c", MEASURED, str(file), str(tmp_path / f"{n} in a box")]
        return 1024 * int(subprocess.check_output(script, text=True))

    took(1_000)  # compiles what is not compiled yet, which takes memory of its own
    assert took(100_000) < 800e6  # read whole, it takes more than a gigabyte
