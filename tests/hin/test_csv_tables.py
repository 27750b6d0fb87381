"""Several tables with keys become one network."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.errors import InputError
from telic.hin import Rule, read_network, read_tables
from telic.hin.csv_tables import read_csv

TABLES = {
    "users.csv": "id,age,mail\n7,30,a@x\n8,40,b@x\n9,40,c@x\n",
    "orders.csv": "customer,sku,pieces,shop\n7,p1,2,north\n7,p1,3,south\n8,p2,1,north\n",
    "products.csv": "sku,colour\np1,red\np2,blue\n",
}
SHOP = {
    "nodes": {
        "user": {"file": "users.csv", "key": "id", "attributes": {"age": {"tolerance": 1}}},
        "product": {"file": "products.csv", "key": "sku"},
        "shop": {},
    },
    "links": [
        {
            "name": "bought",
            "file": "orders.csv",
            "source": ["customer", "user"],
            "target": ["sku", "product"],
            "strength": "pieces",
        },
        {
            "name": "visited",
            "file": "orders.csv",
            "source": ["customer", "user"],
            "target": ["shop", "shop"],
        },
        {
            "name": "ordered",
            "file": "orders.csv",
            "source": ["customer", "user"],
            "target": ["sku", "product"],
        },
    ],
}


@pytest.fixture
def folder(tmp_path):
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)

    def describe(changes=None):
        content = json.loads(json.dumps(SHOP))
        for (part, place, key), value in (changes or {}).items():
            if place == "supplier":  # a type that the description has not named yet
                content[part][place] = {}
            content[part][place][key] = value
        (tmp_path / "tables.json").write_text(json.dumps(content))
        return tmp_path / "tables.json"

    return describe


def listed(network, name):
    link, links = network.schema.link(name), network.links[name]
    source = network.ids(link.source).take(links.sources).to_pylist()
    target = network.ids(link.target).take(links.indices).to_pylist()
    strength = [None] * len(links) if links.strength is None else links.strength.tolist()
    return sorted(zip(source, target, strength, strict=True))


def test_tables_may_separate_cells_by_semicolons(folder, tmp_path):
    expected = listed(read_tables(folder()), "visited")
    for name in TABLES:
        (tmp_path / name).write_text(TABLES[name].replace(",", ";"))
    assert listed(read_tables(folder()), "visited") == expected


def test_tables_are_joined_by_their_keys(folder):
    network = read_tables(folder())
    network.validate()
    assert network.nodes["user"].column_names == ["id", "age"]
    assert network.schema.nodes["user"]["age"] == Rule("tolerance", 1.0)
    assert network.nodes["product"].to_pylist()[0] == {"id": "p1", "colour": "red"}
    assert network.ids("shop").to_pylist() == ["north", "south"]
    assert listed(network, "bought") == [(7, "p1", 5), (8, "p2", 1)]
    assert listed(network, "visited") == [
        (7, "north", None),
        (7, "south", None),
        (8, "north", None),
    ]
    assert listed(network, "ordered") == [(7, "p1", 2), (8, "p2", 1)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("nodes", "user", "file"): "people.csv"}, "people.csv: not found"),
        ({("nodes", "user", "key"): "number"}, "no column 'number'. Columns are"),
        ({("nodes", "user", "attributes"): {"age": "about"}}, "'about' is no matching rule"),
        ({("nodes", "user", "attributes"): {"shoe": "exact"}}, "no column 'shoe'"),
        ({("links", 0, "source"): ["customer", "person"]}, "joins node type 'person'"),
        ({("links", 0, "source"): "customer"}, "does not describe tables"),
        (
            {("links", 0, "target"): ["pieces", "user"]},
            r"csv: column 'pieces': row \d: id 2 is not",
        ),
        ({("links", 0, "strength"): "shop"}, "csv: column 'shop': row 1 is .*, expected positive"),
        ({("nodes", "supplier", "key"): "id"}, "'supplier' has neither a file nor links"),
        ({("nodes", "user", "atributes"): {}}, "'atributes' says nothing of a node type. Known"),
        ({("links", 0, "strenght"): "pieces"}, "'strenght' says nothing of a link type. Known"),
        ({("nodes", "user", "file"): "people.parquet"}, "people.parquet: not found"),
        ({("nodes", "user", "file"): "."}, "cannot be read"),
        ({("nodes", "user", "file"): 3}, "3: not found"),
    ],
)
def test_what_does_not_fit_is_named(folder, changes, message):
    with pytest.raises(InputError, match=message):
        read_tables(folder(changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"nodes": {}}', "lacks 'links', expected "),
        ('{"nodes": {"user": 3}, "links": []}', "does not describe tables .*, expected "),
        ('{"nodes": 3, "links": []}', "does not describe tables .*, expected "),
        ("[]", "holds another kind of JSON, expected "),
    ],
)
def test_what_describes_no_tables_is_told_what_was_expected(tmp_path, text, message):
    (tmp_path / "tables.json").write_text(text)
    with pytest.raises(InputError, match=rf"tables.json: {message}\{{.nodes"):
        read_tables(tmp_path / "tables.json")


def test_keys_with_leading_zeros_are_text_in_every_table(folder, tmp_path):
    (tmp_path / "users.csv").write_text("id,age,zip\n7,30,01234\n07,40,1234\n9,40,\n")
    (tmp_path / "orders.csv").write_text(
        "customer,sku,pieces,shop\n7,p1,02,01\n9,p2,1,1\n7,p1,3,001\n"
    )
    changes = {("nodes", "user", "attributes"): {"age": "exact", "zip": "exact"}}
    network = read_tables(folder(changes))
    users = network.nodes["user"]
    assert users["id"].to_pylist() == ["7", "07", "9"]
    assert users["zip"].to_pylist() == ["01234", "1234", None]
    assert users["age"].to_pylist() == [30, 40, 40]
    assert sorted(network.nodes["shop"]["id"].to_pylist()) == ["001", "01", "1"]
    bought = network.links["bought"]
    assert bought.strength.tolist() == [5, 1]


def test_ids_with_leading_zeros_are_text_in_a_folder_and_strengths_are_numbers(tmp_path):
    schema = {
        "nodes": {"user": {"attributes": {}}},
        "links": [{"name": "f", "source": "user", "target": "user", "strength": "at_least"}],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    (tmp_path / "nodes_user.csv").write_text("id\n7\n07\n")
    (tmp_path / "links_f.csv").write_text("source,target,strength\n7,07,02\n")
    network = read_network(tmp_path)
    assert network.ids("user").to_pylist() == ["7", "07"]
    assert network.links["f"].strength.tolist() == [2]
    assert network.links["f"].indices.tolist() == [1]


def test_links_have_ids_as_they_are_written(tmp_path):
    schema = {
        "nodes": {"user": {"attributes": {}}},
        "links": [{"name": "f", "source": "user", "target": "user", "strength": "at_least"}],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    (tmp_path / "nodes_user.csv").write_text("id\n1\n7\n")
    (tmp_path / "links_f.csv").write_text("source,target,strength\n1,007,02\n")
    with pytest.raises(InputError, match="column 'target': ids are string"):
        read_network(tmp_path)
    (tmp_path / "links_f.csv").write_text("source,target,strength\n1,7,02\n")
    assert read_network(tmp_path).links["f"].strength.tolist() == [2]


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["12345678901234567890", "12345678901234567891"], str),
        (["9007199254740993", "9007199254740992", "0.5"], str),
        (["01.10", "1.10"], str),
        (["007", "1.5"], str),
        (["1.234567890123456789e+02", "-0.12345678901234567890", "0.1"], float),
        (["37.0000000000000000000", "12345678901234.5"], float),
        (["1e300", "-2.5E-7", ""], float),
        (["1234567890123456789", "7"], int),
    ],
)
def test_numbers_that_a_float_does_not_keep_apart_are_texts(tmp_path, cells, kept):
    """Card numbers that differ in their last digit would be one and the same value."""
    (tmp_path / "a.csv").write_text(
        "\n".join(["id,card", *(f"{i},{c}" for i, c in enumerate(cells))])
    )
    found = read_csv(tmp_path / "a.csv").column("card").to_pylist()
    if kept is str:
        assert found == cells
    else:
        assert found == [kept(cell) if cell else None for cell in cells]


@pytest.mark.parametrize("shop", ["north", "01"])
def test_a_row_without_a_key_is_refused_whatever_the_others_are(folder, tmp_path, shop):
    (tmp_path / "orders.csv").write_text(f"customer,sku,pieces,shop\n7,p1,2,{shop}\n8,p2,1,\n")
    with pytest.raises(InputError, match=r"orders\.csv: .*row 2"):
        read_tables(folder())


def test_keys_that_are_text_in_one_table_alone_are_named(folder, tmp_path):
    (tmp_path / "orders.csv").write_text("customer,sku,pieces,shop\n07,p1,2,north\n8,p2,1,north\n")
    with pytest.raises(InputError, match=r"orders\.csv: column 'customer': row 1: id '07' is"):
        read_tables(folder())


def visits(folder, kind="csv", **files):
    """Two tables of visits to places that have no table of their own."""
    (folder / "users.csv").write_text("id\n1\n2\n")
    for name, content in files.items():
        if isinstance(content, str):
            (folder / f"{name}.csv").write_text(f"who,place\n{content}")
        else:
            pq.write_table(content, folder / f"{name}.parquet")
    links = [
        {"name": name, "file": file, "source": ["who", "user"], "target": ["place", "place"]}
        for name, file in (("june", f"june.{kind}"), ("july", "july.csv"))
    ]
    nodes = {"user": {"file": "users.csv"}, "place": {}}
    (folder / "visits.json").write_text(json.dumps({"nodes": nodes, "links": links}))
    network = read_tables(folder / "visits.json")
    network.validate()
    return listed(network, "june"), listed(network, "july")


def test_a_table_without_a_row_has_keys_of_any_kind(tmp_path):
    assert visits(tmp_path, june="", july="1,7\n") == ([], [(1, 7, None)])
    assert visits(tmp_path, june="", july="1,x\n") == ([], [(1, "x", None)])
    assert visits(tmp_path, june="", july="") == ([], [])


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.uint64()])
def test_keys_of_any_width_are_numbers_alike(tmp_path, kind):
    june = pa.table({"who": pa.array([1, 2], kind), "place": pa.array([7, 8], kind)})
    found = visits(tmp_path, "parquet", june=june, july="1,7\n")
    assert found == ([(1, 7, None), (2, 8, None)], [(1, 7, None)])


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_keys_that_are_text_of_another_kind_are_text(tmp_path, kind):
    june = pa.table({"who": [1, 2], "place": pa.array(["7", "north"]).cast(kind)})
    found = visits(tmp_path, "parquet", june=june, july="1,7\n")
    assert found == ([(1, "7", None), (2, "north", None)], [(1, "7", None)])


def test_keys_are_text_as_the_file_writes_them(tmp_path):
    found = visits(tmp_path, june="1,1.10\n1,1.1\n2,1.1\n", july="1,north\n")
    assert found[0] == [(1, "1.1", None), (1, "1.10", None), (2, "1.1", None)]
    found = visits(tmp_path, june="1,TRUE\n1,true\n", july="1,north\n")
    assert found[0] == [(1, "TRUE", None), (1, "true", None)]


@pytest.mark.parametrize(
    ("june", "message"),
    [
        ("1,7.0\n", "node type 'place': its keys are double and int64 in different files"),
        ("1,true\n", "node type 'place': its keys are bool and int64"),
        ("1,\n", "column 'place': row 1 is None"),
    ],
)
def test_keys_that_are_neither_numbers_nor_text_are_named(tmp_path, june, message):
    with pytest.raises(InputError, match=message):
        visits(tmp_path, june=june, july="1,7\n")


def test_keys_that_read_as_dates_or_hexadecimal_stay_as_they_are_written(tmp_path):
    june, july = visits(tmp_path, june="1,2020-01-01\n1,2020-01-02\n", july="1,2020-01-02\n")
    assert june == [(1, "2020-01-01", None), (1, "2020-01-02", None)]
    assert july == [(1, "2020-01-02", None)]
    june, _ = visits(tmp_path, june="1,0x1\n1,1\n1,-0\n1,0\n", july="1,7\n")
    assert sorted(place for _, place, _ in june) == ["-0", "0", "0x1", "1"]
    june, _ = visits(tmp_path, june="1,-0\n1,1\n1,0\n", july="1,7\n")
    assert sorted(place for _, place, _ in june) == ["-0", "0", "1"]


def test_attributes_may_be_dates(tmp_path):
    (tmp_path / "users.csv").write_text("id,born\n1,1980-01-01\n2,1980-01-02\n3,\n")
    user = {"file": "users.csv", "key": "id", "attributes": {"born": "exact"}}
    (tmp_path / "one.json").write_text(json.dumps({"nodes": {"user": user}, "links": []}))
    network = read_tables(tmp_path / "one.json")
    assert network.nodes["user"].column("born").to_pylist() == ["1980-01-01", "1980-01-02", ""]


def test_a_column_called_id_does_not_take_the_place_of_the_key(tmp_path):
    (tmp_path / "users.csv").write_text("id,login\n2,10\n1,20\n")
    content = {"nodes": {"user": {"file": "users.csv", "key": "login"}}, "links": []}
    (tmp_path / "one.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="column 'id' can be no attribute"):
        read_tables(tmp_path / "one.json")
    content["nodes"]["user"]["attributes"] = {}
    (tmp_path / "one.json").write_text(json.dumps(content))
    assert read_tables(tmp_path / "one.json").ids("user").to_pylist() == [10, 20]


@pytest.mark.parametrize(("line", "itself"), [("2,1\n", False), ("2,2\n", True)])
def test_links_lead_to_themselves_where_one_of_a_table_does(tmp_path, line, itself):
    (tmp_path / "follows.csv").write_text("who,whom\n1,2\n" + line)
    follow = {"file": "follows.csv", "source": ["who", "user"], "target": ["whom", "user"]}
    content = {"nodes": {"user": {}}, "links": [{"name": "follow", **follow}]}
    (tmp_path / "one.json").write_text(json.dumps(content))
    assert read_tables(tmp_path / "one.json").schema.link("follow").self_links is itself


def test_two_columns_of_one_name_are_refused(folder, tmp_path):
    (tmp_path / "users.csv").write_text("id,age,age\n7,30,1\n8,40,2\n9,40,3\n")
    with pytest.raises(InputError, match=r"users.csv: two columns are named 'age'"):
        read_tables(folder())


def test_attributes_that_are_no_object_are_refused(folder):
    with pytest.raises(InputError, match=r"'attributes' of 'user' is \['age'\], expected"):
        read_tables(folder({("nodes", "user", "attributes"): ["age"]}))


def test_a_torn_download_is_refused(folder, tmp_path):
    path = folder({("nodes", "user", "file"): "users.csv.gz"})
    (tmp_path / "users.csv.gz").write_bytes(gzip.compress(TABLES["users.csv"].encode())[:20])
    with pytest.raises(InputError, match=r"users.csv.gz: cannot be read"):
        read_tables(path)
