import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.completion.fit.merged_phrases import distinct_rows
from telic.data.contracts import COMPOSITIONS, MAX_COUNT, MAX_TEXT
from telic.data.phrases import PhraseList, merged, read_list
from telic.data.pieces import open_pieces
from telic.data.queries import read_queries, read_query_log
from telic.data.recognised_columns import shape_of
from telic.data.tables import tidied
from telic.errors import InputError


def opened(folder, name, text, **named):
    file = folder / name
    file.write_text(text)
    pieces = open_pieces(file)
    return pieces, shape_of(pieces, named)


@pytest.mark.parametrize(
    ("columns", "kind", "roles"),
    [
        (["Title", "Views"], "list", {"phrase": "Title", "weight": "Views"}),
        (
            ["name", "lang", "SKU", "url"],
            "list",
            {"phrase": "name", "language": "lang", "id": "SKU", "url": "url"},
        ),
        (
            ["query", "at", "count", "title"],
            "queries",
            {"phrase": "query", "at": "at", "weight": "count"},
        ),
        (
            ["keyword", "timestamp", "session"],
            "queries",
            {"phrase": "keyword", "at": "timestamp", "user": "session"},
        ),
        (
            ["AnonID", "Query", "QueryTime", "ItemRank", "ClickURL"],
            "queries",
            {"phrase": "Query", "at": "QueryTime", "user": "AnonID"},
        ),
        (
            ["query_id", "session_id", "final_search_term", "search_time", "popularity"],
            "queries",
            {"phrase": "final_search_term", "at": "search_time", "user": "session_id"},
        ),
        (
            ["query_id", "user_query", "client_id", "timestamp", "application"],
            "queries",
            {"phrase": "user_query", "at": "timestamp", "user": "client_id"},
        ),
        (
            ["query", "at", "user_id", "shop", "views"],
            "queries",
            {
                "phrase": "query",
                "at": "at",
                "user": "user_id",
                "weight": "views",
                "tenant": "shop",
            },
        ),
        (
            ["query", "at", "user", "session_id"],
            "queries",
            {"phrase": "query", "at": "at", "user": "user"},
        ),
        (
            ["query_id", "user_query", "timestamp", "user_id"],
            "queries",
            {"phrase": "user_query", "at": "timestamp", "user": "user_id"},
        ),
        (["user", "composition", "query", "submitted_at", "keystrokes"], "compositions", {}),
    ],
)
def test_a_file_is_told_by_its_columns(tmp_path, columns, kind, roles):
    columns = [*columns, "colour"]
    shape = opened(tmp_path, "a.tsv", "\t".join(columns) + "\n")[1]
    assert (shape.kind, shape.roles) == (kind, roles)
    used = COMPOSITIONS.names if kind == "compositions" else roles.values()
    assert shape.unused == tuple(name for name in columns if name not in used)


def test_a_file_that_nobody_published_is_called_what_it_is(tmp_path):
    assert opened(tmp_path, "a.csv", "title\n")[1].name == "list of phrases"
    assert opened(tmp_path, "a.csv", "title,date\n")[1].name == "query log"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("wieght", "weight"), ("Popularity", "weight"), ("title", "phrase"), ("langauge", "language")],
)
def test_a_context_has_not_nearly_the_name_of_a_role(tmp_path, written, meant):
    with pytest.raises(InputError, match=f"--column {written}=views: .* --column {meant}=views"):
        opened(tmp_path, "a.csv", "phrase,views\nTea,3\n", **{written: "views"})


def test_a_context_may_be_called_as_its_column_is_or_as_a_shop(tmp_path):
    _, shape = opened(
        tmp_path,
        "a.csv",
        "phrase,height,cat,no\nTea,3,1,2\n",
        height="height",
        uid="cat",
        shop="no",
    )
    assert set(shape.contexts) == {"height", "uid", "shop"}


def test_a_column_can_be_named_and_one_of_ones_own_is_a_context(tmp_path):
    text = "title,name,brand,locale\nTea,tea-1,Acme,en\n"
    pieces, shape = opened(tmp_path, "a.csv", text, phrase="title", id="name", brand="brand")
    assert shape.contexts == ["language", "brand"]
    found = read_list(pieces, shape)
    assert found.ids.to_pylist() == ["tea-1"]
    assert {k: v.to_pylist() for k, v in found.contexts.items()} == {
        "language": ["en"],
        "brand": ["Acme"],
    }


@pytest.mark.parametrize(
    ("header", "named", "message"),
    [
        ("title,name", {}, "columns 'title', 'name' could each be the phrase. Say which with"),
        ("title,views,clicks", {}, "could each be the weight"),
        ("shoe,size", {}, "no column is named as phrases usually are"),
        ("tea", {}, "without a line of column names is read as .txt"),
        ("title", {"weight": "sold"}, "no column 'sold'"),
        ("query,at,user_id,session", {}, "columns 'user_id', 'session' could each be the user"),
    ],
)
def test_columns_that_do_not_tell_are_named(tmp_path, header, named, message):
    with pytest.raises(InputError, match=message):
        opened(tmp_path, "a.csv", f"{header}\n", **named)


def test_payloads_are_json_and_an_address_is_one(tmp_path):
    rows = [
        {"title": "a", "payload": {"url": "/own", "n": 1}, "url": "/a"},
        {"title": "b", "url": "/b"},
        {"title": "c"},
    ]
    pieces, shape = opened(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    payloads = read_list(pieces, shape).payloads.to_pylist()
    assert [p and json.loads(p) for p in payloads] == [{"url": "/own", "n": 1}, {"url": "/b"}, None]
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": ["a"], "payload": [{"n": [1, 2]}]}), file)
    pieces = open_pieces(file)
    assert json.loads(read_list(pieces, shape_of(pieces)).payloads[0].as_py()) == {"n": [1, 2]}
    # What pandas writes for a missing number is none in JSON.
    pq.write_table(pa.table({"title": ["a"], "payload": [{"n": [float("nan"), 2.5]}]}), file)
    pieces = open_pieces(file)
    assert read_list(pieces, shape_of(pieces)).payloads[0].as_py() == '{"n": [null, 2.5]}'


def test_a_weight_that_no_float_is_equal_to_is_named(tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": ["a", "b"], "views": [7, 2**53 + 1]}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="row 2: column 'views': 9007199254740993 is not a number"):
        read_list(pieces, shape_of(pieces))
    assert read_list(pieces, shape_of(pieces), on_bad_row="skip").weights.tolist() == [7]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"title": "a"}, {"title": {"en": "b"}}], "row 2: column 'title': is a list or an object"),
        ([{"title": "a", "category": ["b"]}], "row 1: column 'category': is a list or an object"),
        ([{"title": "a", "payload": float("nan")}], "row 1: column 'payload': is no JSON"),
        ([{"title": "a", "payload": {"n": [float("-inf")]}}], "column 'payload': is no JSON"),
        ([{"title": "a", "payload": '{"n": -1e999}'}], "column 'payload': is no JSON"),
        ([{"title": "a", "payload": [1], "url": "/a"}], "column 'payload': is no JSON object, so"),
    ],
)
def test_what_has_no_place_in_a_list_is_named(tmp_path, rows, message):
    pieces, shape = opened(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match=message):
        read_list(pieces, shape)
    if len(rows) == 2:
        assert read_list(pieces, shape, on_bad_row="skip").phrases.to_pylist() == ["a"]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("payload", {"since": date(2026, 1, 31)}, "is struct<since: date32.day.>, which has no"),
        ("payload", Decimal("1.5"), "has no form in JSON. Convert dates, decimals and the like"),
        ("payload", b"{}", "is binary, which has no form in JSON"),
        ("weight", date(2026, 1, 31), r"is date32\[day\], expected a number. Convert it"),
        ("weight", [1.5], "expected a number"),
    ],
)
def test_a_column_of_parquet_that_cannot_be_what_its_name_says_is_named(
    tmp_path, column, value, message
):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": ["a", "b"], column: [None, value]}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=f"row [12]: column '{column}': .*{message}"):
        read_list(pieces, shape_of(pieces))
    if column == "weight":  # of which no row has one
        with pytest.raises(InputError, match=f"no row can be used .*{message.partition('.')[0]}"):
            read_list(pieces, shape_of(pieces), on_bad_row="skip")
    else:
        found = read_list(pieces, shape_of(pieces), on_bad_row="skip")
        assert found.phrases.to_pylist() == ["a"]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_an_empty_text_says_nothing_however_it_is_written(tmp_path, ending):
    row = {"title": "Tea", "views": "3", "category": "", "id": "", "url": "", "tenant": ""}
    file = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist([row]), file)
    else:
        file.write_text(
            json.dumps(row) if ending == "jsonl" else ",".join(row) + "\n" + ",".join(row.values())
        )
    pieces = open_pieces(file)
    found = read_list(pieces, shape_of(pieces))
    columns = [found.ids, found.payloads, *found.contexts.values()]
    assert [column.to_pylist() for column in columns] == [[None]] * 4


def test_an_empty_tenant_or_network_is_none(tmp_path):
    row = {"query": "tea", "at": "2026-01-01", "user": "ada", "tenant": "", "network": ""}
    pieces, shape = opened(tmp_path, "a.jsonl", json.dumps(row))
    table = pa.table({name: [value] for name, value in row.items()})
    for log in (read_query_log(pieces, shape), read_queries(table)):
        assert {name: values for name, (values, _) in log.groups.items()} == {
            "tenant": [None],
            "network": [None],
        }


@pytest.mark.parametrize(
    ("late", "read"), [({"views": 3}, False), ({"at": "2026-01-01"}, False), ({"x": 3}, True)]
)
def test_a_name_that_late_rows_alone_have_is_not_passed_over_in_silence(tmp_path, late, read):
    rows = [{"title": f"phrase {i}", "brand": "b"} for i in range(1100)]
    rows[1050] |= late
    text = "\n".join(map(json.dumps, rows))
    pieces, shape = opened(tmp_path, "a.jsonl", text, brand="brand")
    if read:
        assert len(read_list(pieces, shape)) == 1100
    else:
        with pytest.raises(InputError, match=rf"a\.jsonl: row 1051: has '{next(iter(late))}'"):
            read_list(pieces, shape)


@pytest.mark.parametrize("term", ["a" * (MAX_TEXT + 1), "\u0301"])
def test_an_earlier_term_that_cannot_be_suggested_is_named_with_its_row(tmp_path, term):
    row = {"session_id": "s", "final_search_term": "tea", "search_time": "2026-01-02"}
    rows = [row | {"past_search_terms": [[past, "2026-01-01"]]} for past in ("cup", term)]
    pieces, shape = opened(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match="row 2: column 'past_search_terms': holds no pairs"):
        read_query_log(pieces, shape)
    assert read_query_log(pieces, shape, on_bad_row="skip").queries == ["tea", "cup"]


@pytest.mark.parametrize("name", ["t", "q", "installed"])
def test_a_context_has_no_name_that_requests_use(tmp_path, name):
    with pytest.raises(InputError, match=f"--column {name}=kind: '{name}' is what a request says"):
        opened(tmp_path, "a.csv", "title,kind\n", **{name: "kind"})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (" ,1", "row 2: column 'title': is empty"),
        (",1", "row 2: column 'title': is empty"),
        ("´,1", "row 2: column 'title': is empty or all white space"),
        ("x" * 1001 + ",1", "row 2: column 'title': is longer than 1000"),
        ("x,1000000000001", "row 2: column 'views': '1000000000001' is not a number from 0 to 1e"),
        ("x,-1", "row 2: column 'views': '-1' is not a number from 0"),
        ("x,1_000", "row 2: column 'views': '1_000' is not a number from 0"),
        ("x,nan", "row 2: column 'views': 'nan' is not a number"),
        ("x,many", "row 2: column 'views': 'many' is not a number"),
        ("x,inf", "row 2: column 'views': 'inf' is not a number"),
    ],
)
def test_a_bad_row_is_named_or_skipped_and_counted(tmp_path, row, message):
    pieces, shape = opened(tmp_path, "a.csv", f"title,views\nTea,3\n{row}\nCup,\n")
    with pytest.raises(InputError, match=message):
        read_list(pieces, shape)
    found = read_list(pieces, shape, on_bad_row="skip")
    assert found.phrases.to_pylist() == ["Tea", "Cup"]
    assert found.weights.tolist() == [3.0, 1.0]
    assert found.rows.tolist() == [1, 3]
    assert list(found.skipped.values()) == [1]


def test_white_space_is_as_people_type_it_in_all_that_is_read(tmp_path):
    every = [chr(code) for code in range(0x3001) if chr(code).isspace()]
    texts = [f" Iced{space}{other}tea\n" for space in every for other in every[:3]]
    rows = [{"title": text} for text in texts] + [{"title": "Caffè latte"}]
    lines = "\n".join(map(json.dumps, rows))
    tidy = {"Iced tea", "Caffè latte"}
    assert {*read_list(*opened(tmp_path, "a.jsonl", lines)).phrases.to_pylist()} == tidy
    log = pa.table({"query": texts, "at": [datetime(2026, 1, 1, tzinfo=UTC)] * len(texts)})
    assert read_queries(log).queries == ["Iced tea"]


@pytest.mark.parametrize("code", [*range(0x21), *range(0x7F, 0xA1), 0x2028])
def test_what_nobody_types_is_a_space(code):
    texts = pa.array([f"te{chr(code)}{chr(code)}a", "tea", None])
    assert tidied(texts).to_pylist() == ["te a", "tea", None]


def test_other_bad_columns_are_named(tmp_path):
    pieces, shape = opened(tmp_path, "a.csv", 'title,payload\nTea,"{"\n')
    with pytest.raises(InputError, match="row 1: column 'payload': is no JSON"):
        read_list(pieces, shape)
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"title": [1.5]}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="column 'title': is double, expected text"):
        read_list(pieces, shape_of(pieces))
    pq.write_table(pa.table({"query": ["tea"], "at": [7]}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match="row 1: column 'at': 7 is no time"):
        read_query_log(pieces, shape_of(pieces))
    pieces, shape = opened(tmp_path, "b.csv", "title\n")
    with pytest.raises(InputError, match="holds no row"):
        read_list(pieces, shape)
    pieces, shape = opened(tmp_path, "c.csv", "query,at\ntea,2026-01-01\ncup,noon\n")
    with pytest.raises(InputError, match="row 2: column 'at': 'noon' is no time"):
        read_query_log(pieces, shape)


def test_joined_lists_say_where_a_row_came_from(tmp_path):
    one = read_list(*opened(tmp_path, "one.csv", "title,views\nTea,3\nCup,4\n"))
    two = read_list(*opened(tmp_path, "two.txt", "Pot\nTea\n"))
    both = merged([one, two])
    assert both.phrases.to_pylist() == ["Tea", "Cup", "Pot", "Tea"]
    assert both.weights.tolist() == [3, 4, 1, 1]
    assert both.where(3).endswith("two.txt: row 2")
    assert both.where(1).endswith("one.csv: row 2")


def test_joined_lists_have_left_out_what_each_has():
    def left_out(counts):
        none = pa.array([], pa.string())
        return PhraseList("", none, None, None, None, {}, np.empty(0, int), counts)

    one, two = left_out({"is empty": 2}), left_out({"is empty": 1, "is long": 4})
    assert merged([one, two]).skipped == {"is empty": 3, "is long": 4}
    assert merged([one]) is one


def test_what_one_list_has_and_another_has_not_is_nothing_there(tmp_path):
    one = read_list(*opened(tmp_path, "one.csv", "title,sku\nTea,t1\n", id="sku"))
    two = read_list(*opened(tmp_path, "two.csv", "title,locale\nPot,en\n"))
    both = merged([one, two])
    assert both.ids.to_pylist() == ["t1", None]
    assert both.contexts["language"].to_pylist() == [None, "en"]
    assert both.payloads is None
    assert both.weights is None


def test_numbers_and_repeated_words_of_a_parquet_file_are_texts(tmp_path):
    file = tmp_path / "a.parquet"
    words = pa.array(["en", "de", "en"]).dictionary_encode()
    pq.write_table(pa.table({"title": [7, 8, 9], "locale": words}), file)
    pieces = open_pieces(file)
    found = read_list(pieces, shape_of(pieces))
    assert found.phrases.to_pylist() == ["7", "8", "9"]
    assert found.contexts["language"].to_pylist() == ["en", "de", "en"]


def test_what_is_as_long_and_as_heavy_as_may_be_is_taken(tmp_path):
    text = "x" * MAX_TEXT
    pieces, shape = opened(tmp_path, "a.csv", f"title,views\n{text},{MAX_COUNT:.0f}\nTea,0\n")
    found = read_list(pieces, shape)
    assert found.phrases.to_pylist() == [text, "Tea"]
    assert found.weights.tolist() == [MAX_COUNT, 0.0]


ORCAS = (
    "10103699\tamazon fire\tD1059658\thttps://example.org/fire\n"
    "10103699\tamazon fire\tD2711\thttp://example.org/stick\n"
    '7\t"quoted\tD1\thttps://example.org/\n'
)


@pytest.mark.parametrize("name", ["orcas.tsv", "orcas.txt"])
def test_orcas_is_a_list_whose_first_line_is_a_row(tmp_path, name):
    pieces, shape = opened(tmp_path, name, ORCAS)
    assert (shape.name, shape.kind, shape.roles) == ("ORCAS click log", "list", {"phrase": "query"})
    assert shape.unused == ("qid", "did", "url")
    read = read_list(pieces, shape)
    assert read.phrases.to_pylist() == ["amazon fire", "amazon fire", '"quoted']
    assert list(read.rows) == [1, 2, 3]
    phrases, weights, _ = distinct_rows(read, "raise")
    assert (list(phrases), list(weights)) == ([0, 2], [2, 1])


@pytest.mark.parametrize(
    "first",
    ["7\ttea\tX1\thttps://example.org/", "7\ttea\tD1\tno address", "seven\ttea\tD1\thttps://a"],
)
def test_what_is_like_orcas_but_is_not_has_a_line_of_names(tmp_path, first):
    with pytest.raises(InputError, match="no column is named as phrases usually are"):
        opened(tmp_path, "orcas.tsv", f"{first}\n{first}\n")


def test_a_list_of_which_no_row_can_be_used_is_refused(tmp_path):
    file = tmp_path / "titles.parquet"
    pq.write_table(pa.table({"title": ["tea", "ten"], "id": [1.5, None]}), file)
    pieces = open_pieces(file)
    with pytest.raises(InputError, match=r"titles.parquet: no row can be used \(2 rows skipped"):
        read_list(pieces, shape_of(pieces), on_bad_row="skip")
