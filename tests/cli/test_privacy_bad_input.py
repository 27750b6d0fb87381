"""Bad networks at the command line: one clear line, exit code 2, nothing half-written."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic import cli

SCHEMA = {
    "nodes": {"user": {"attributes": {"yob": "exact"}}},
    "links": [
        {"name": "follow", "source": "user", "target": "user", "strength": None},
        {"name": "mention", "source": "user", "target": "user", "strength": "at_least"},
    ],
}
GOOD = {
    "nodes_user": "id,yob\n1,80\n2,80\n3,70\n",
    "links_follow": "source,target\n1,2\n1,3\n",
    "links_mention": "source,target,strength\n1,2,300\n2,3,70000\n",
}


def network(folder, **files):
    folder.mkdir()
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    for stem, text in {**GOOD, **files}.items():
        (folder / f"{stem}.csv").write_text(text)
    return folder


@pytest.fixture
def telic(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["telic", "privacy", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        shown = capsys.readouterr()
        return end.value.code or 0, shown.out, shown.err

    return run


BAD = {
    "a row with too few cells": (
        {"links_follow": "source,target\n1,2\n1\n"},
        "links_follow.csv: row 2: has 1 cells, expected 2",
    ),
    "a missing column": (
        {"links_mention": "source,target\n1,2\n"},
        "links_mention.csv: column 'strength' is missing. Columns are ['source', 'target']",
    ),
    "a strength in words": (
        {"links_mention": "source,target,strength\n1,2,3\n2,3,often\n"},
        "links_mention.csv: column 'strength': row 2 is 'often', expected positive integers",
    ),
    "a dangling id": (
        {"links_follow": "source,target\n1,2\n1,9\n"},
        "links_follow.csv: column 'target': row 2: id 9 is not in the node table",
    ),
    "a dangling id of a thousand million": (
        {"links_follow": "source,target\n1000000000,2\n"},
        "links_follow.csv: column 'source': row 1: id 1000000000 is not in the node table",
    ),
    "a duplicate link": (
        {"links_follow": "source,target\n1,2\n2,1\n1,2\n"},
        "links_follow.csv: row 3 repeats an earlier link",
    ),
    "a self-loop": (
        {"links_follow": "source,target\n1,2\n2,2\n"},
        "links_follow.csv: row 2: node 2 links to itself",
    ),
    "a negative strength": (
        {"links_mention": "source,target,strength\n1,2,3\n2,3,-4\n"},
        "links_mention.csv: column 'strength': row 2: strength is -4, expected a positive integer",
    ),
    "a strength of zero": (
        {"links_mention": "source,target,strength\n1,2,0\n"},
        "links_mention.csv: column 'strength': row 1: strength is 0, expected a positive integer",
    ),
    "a strength beyond 32 bits": (
        {"links_mention": "source,target,strength\n1,2,4294967297\n"},
        "links_mention.csv: column 'strength': row 1: strength is 4294967297",
    ),
    "mixed id types": (
        {"links_follow": "source,target\nann,2\n"},
        "links_follow.csv: column 'source': row 1 is 'ann', but the node table's ids are int64",
    ),
    "an id that occurs twice": (
        {"nodes_user": "id,yob\n1,80\n1,80\n2,70\n3,70\n"},
        "nodes_user.csv: column 'id': row 2: id 1 occurs twice, first in row 1",
    ),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["risk", "attack it", "attack with it", "anonymise", "report"])
def test_every_command_names_what_is_wrong_where(telic, tmp_path, case, command):
    files, message = BAD[case]
    bad, good = network(tmp_path / "bad", **files), network(tmp_path / "good")
    out = tmp_path / "out"
    words = {
        "risk": ["risk", bad],
        "attack it": ["attack", good, bad, "--candidates", out],
        "attack with it": ["attack", bad, good, "--candidates", out],
        "anonymise": ["anonymise", bad, out],
        "report": ["report", bad, out],
    }[command]
    code, printed, error = telic(*words)
    assert code == 2
    assert printed == ""
    lines = error.splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert not out.exists()


def attacked(telic, tmp_path, known, published):
    out = tmp_path / "candidates.parquet"
    code, printed, error = telic(
        "attack",
        known,
        published,
        "--candidates",
        out,
        "--max-distance",
        2,
        "--overwrite",
        "--json",
    )
    assert code == 0, error
    rows = pq.read_table(out).to_pylist()
    return json.loads(printed), {
        (row["target"], row["distance"]): row["candidates"] for row in rows
    }


def test_an_empty_link_type_tells_nothing(telic, tmp_path):
    known = network(tmp_path / "known")
    empty = network(tmp_path / "empty", links_follow="source,target\n")
    _, sets = attacked(telic, tmp_path, known, empty)
    assert sets == {
        (1, 0): [1, 2],
        (2, 0): [1, 2],
        (3, 0): [3],
        (1, 1): [1],
        (2, 1): [2],
        (3, 1): [3],
        (1, 2): [1],
        (2, 2): [2],
        (3, 2): [3],
    }
    _, sets = attacked(telic, tmp_path, empty, known)
    # Both are linked by "follow" in the release, and nobody is in what is known.
    assert sets[1, 1] == sets[2, 1] == []


def test_strengths_above_one_and_two_bytes_are_compared_in_full(telic, tmp_path):
    # In 8 bits 300 would look like 44, in 16 bits 70000 like 4464.
    known = network(tmp_path / "known", links_mention="source,target,strength\n1,2,44\n2,3,4464\n")
    published = network(tmp_path / "published")
    _, sets = attacked(telic, tmp_path, known, published)
    assert sets[1, 1] == sets[2, 1] == []
    _, sets = attacked(telic, tmp_path, published, known)
    assert sets[1, 1] == [1]
    assert sets[2, 1] == [2]


def test_a_thousand_million_is_an_id_like_any_other(telic, tmp_path):
    files = {
        stem: text.replace("\n3,", "\n1000000000,").replace(",3", ",1000000000")
        for stem, text in GOOD.items()
    }
    files["links_mention"] = "source,target,strength\n1,2,300\n2,1000000000,70000\n"
    large = network(tmp_path / "large", **files)
    found, sets = attacked(telic, tmp_path, large, large)
    assert sets[10**9, 0] == [10**9]
    assert found["rows"][1]["precision"] == 1


def test_a_target_that_is_not_in_the_auxiliary_set_is_never_right(telic, tmp_path):
    known = network(tmp_path / "known")
    other = network(
        tmp_path / "other",
        nodes_user="id,yob\n1,80\n2,80\n4,70\n",
        links_follow="source,target\n1,2\n1,4\n",
        links_mention="source,target,strength\n1,2,300\n2,4,70000\n",
    )
    found, sets = attacked(telic, tmp_path, known, other)
    assert sets[4, 1] == [3]
    assert found["truth"].startswith("not given (1 target ids")
    code, printed, _ = telic("attack", known, other, "--truth", "ids", "--json")
    assert code == 0
    row = json.loads(printed)["rows"][1]
    assert row["precision"] == pytest.approx(2 / 3)
    assert row["unique_wrong"] == pytest.approx(1 / 3)


LIBRARY = {
    "schema": {
        "nodes": {"author": {"attributes": {"area": "exact"}}, "paper": {}},
        "links": [{"name": "write", "source": "author", "target": "paper"}],
    },
    "nodes_author": "id,area\n1,db\n2,ml\n3,ml\n",
    "nodes_paper": "id\n10\n11\n",
    "links_write": "source,target\n1,10\n2,10\n2,11\n3,11\n",
}


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "schema.json").write_text(json.dumps(LIBRARY["schema"]))
    for stem in ("nodes_author", "nodes_paper", "links_write"):
        (folder / f"{stem}.csv").write_text(LIBRARY[stem])
    return folder


def test_a_meta_path_that_returns_to_its_types_is_counted(telic, tmp_path, library):
    authors = tmp_path / "authors"
    code, _, _ = telic(
        "convert",
        library,
        authors,
        "--project",
        "author",
        "--path",
        "with=write ~write",
        "--path",
        "further=write ~write write ~write",
    )
    assert code == 0
    # Papers written by both, diagonal: papers written; the longer path is that matrix squared.
    once = np.array([[1, 1, 0], [1, 2, 1], [0, 1, 1]])
    for name, expected in (("with", once), ("further", once @ once)):
        rows = pq.read_table(authors / f"links_{name}.parquet").to_pylist()
        found = np.zeros((3, 3), int)
        for row in rows:
            found[row["source"] - 1, row["target"] - 1] = row["strength"]
        assert (found == expected).all()
    code, printed, _ = telic("attack", authors, authors, "--json")
    assert code == 0
    assert json.loads(printed)["rows"][1]["unique_wrong"] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--path", "with=write write"], "'write' starts at 'author', but the path stands"),
        (["--path", "with=write"], "leads from 'author' to 'paper'"),
        (["--path", "with=cite"], "no link type is called 'cite'"),
        (["--path", "write ~write"], "expected NAME="),
        (["--path", "with="], "meta-path: empty"),
        ([], "--project and --path go together"),
    ],
)
def test_a_meta_path_that_cannot_be_walked_is_named(telic, tmp_path, library, words, message):
    code, _, error = telic("convert", library, tmp_path / "out", "--project", "author", *words)
    assert code == 2
    assert message in error
    assert not (tmp_path / "out").exists()


def test_files_of_other_tools_become_a_folder_and_back(telic, tmp_path, library):
    (tmp_path / "layers.txt").write_text("# layers\nlike 1 1000000000 300\nlike 2 1 70000\n")
    folder, graph, back = (tmp_path / name for name in ("net", "net.graphml", "back"))
    columns = ["--columns", "link,source,target,strength"]
    assert telic("convert", tmp_path / "layers.txt", folder, *columns)[0] == 0
    assert pq.read_table(folder / "links_like.parquet").to_pydict() == {
        "source": [1, 2],
        "target": [10**9, 1],
        "strength": [300, 70000],
    }
    assert telic("convert", library, graph)[0] == 0
    assert telic("convert", graph, back)[0] == 0
    assert pq.read_table(back / "links_write.parquet").num_rows == 4


@pytest.mark.parametrize("weight", ['"much"', "-1"])
def test_weights_must_be_numbers_that_count(telic, tmp_path, weight):
    (tmp_path / "weights.json").write_text(f'{{"yob": {weight}}}')
    code, _, error = telic(
        "advise",
        network(tmp_path / "net"),
        "--max-risk",
        0.5,
        "--weights",
        tmp_path / "weights.json",
    )
    assert code == 2
    assert "weights: 'yob' is" in error


def test_networks_whose_ids_are_of_other_types_are_compared_without_them(telic, tmp_path):
    known = network(tmp_path / "known")
    texts = network(
        tmp_path / "texts",
        nodes_user="id,yob\na,80\nb,80\nc,70\n",
        links_follow="source,target\na,b\na,c\n",
        links_mention="source,target,strength\na,b,300\nb,c,70000\n",
    )
    found, sets = attacked(telic, tmp_path, known, texts)
    assert found["truth"].startswith("not given")
    assert sets["a", 1] == [1]


def test_nobody_to_look_for_is_said(telic, tmp_path):
    nobody = network(
        tmp_path / "nobody",
        nodes_user="id,yob\n",
        links_follow="source,target\n",
        links_mention="source,target,strength\n",
    )
    good = network(tmp_path / "good")
    for words in (["risk", nobody], ["attack", good, nobody], ["report", nobody, tmp_path / "x"]):
        code, printed, error = telic(*words)
        assert (code, printed) == (2, "")
        assert "is empty: nobody" in error or "is empty: there is nobody" in error
        assert len(error.splitlines()) == 1


def test_a_schema_that_is_nested_too_deeply_is_said(telic, tmp_path):
    deep = network(tmp_path / "deep")
    (deep / "schema.json").write_text("[" * 100_000)
    code, _, error = telic("risk", deep)
    assert code == 2
    assert error.startswith(f"telic: {deep / 'schema.json'}: is not JSON (maximum recursion depth")


def test_rows_of_the_kdd_cup_are_counted_from_1(telic, tmp_path):
    (tmp_path / "user_sns.txt").write_text("100\t101\n")
    (tmp_path / "user_action.txt").write_text("100\t101\t2\t0\t1\n")
    for text, said in (
        ("100\t1980\t1\t12\t3\n101\t-\n", "row 2: has 2 cells, expected 5"),
        ("100\té\t1\t12\t3\n101\té\t1\t12\t3\n", "line 1 is not valid UTF-8"),
    ):
        (tmp_path / "user_profile.txt").write_bytes(text.encode("latin-1"))
        code, _, error = telic("convert", tmp_path, tmp_path.with_name("out"))
        assert (code, error.startswith(f"telic: {tmp_path / 'user_profile.txt'}: {said}")) == (
            2,
            True,
        )


def test_text_in_another_encoding_is_said_with_its_line(telic, tmp_path):
    net = network(tmp_path / "net")
    (net / "nodes_user.csv").write_bytes("id,yob\n1,80\n2,é\n".encode("latin-1"))
    (tmp_path / "list.csv").write_bytes("source,target\na,b\né,b\n".encode("latin-1"))
    for words, file in (
        (("risk", net), net / "nodes_user.csv"),
        (("convert", tmp_path / "list.csv", tmp_path / "out"), tmp_path / "list.csv"),
    ):
        code, _, error = telic(*words)
        assert code == 2
        assert error.startswith(f"telic: {file}: line 3 is not valid UTF-8. Convert")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("simulate out --density nan", "nan, expected a finite number"),
        ("simulate out --seed -1", "'--seed'"),
        ("simulate out --links -1", "'--links'"),
        ("attack good good --added nan", "nan, expected a finite number"),
        ("advise good --max-risk nan", "nan, expected a finite number"),
        ("risk good --max-distance 1000000", "distance is 1000000, expected 0 to 100"),
        ("attack good good --candidates c.csv", "c.csv: is written as Parquet. Name a .parquet"),
        ("anonymise good out --key k.csv", "k.csv: is written as Parquet. Name a .parquet"),
        ("anonymise good out --keep-ids --key k", "--key changes nothing beside --keep-ids"),
        ("anonymise good out --keep-ids --public user", "--public changes nothing beside"),
        ("convert good out --duplicates sum", "--duplicates changes nothing for good"),
        ("convert good out --undirected", "--undirected changes nothing for good"),
        ("convert tables.json out --columns a,b", "--columns changes nothing for tables.json"),
    ],
)
def test_options_out_of_range_or_without_effect_are_refused(
    telic, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    network(tmp_path / "good")
    (tmp_path / "tables.json").write_text('{"nodes": {}, "links": []}')
    code, printed, error = telic(*words.split())
    assert (code, printed) == (2, "")
    assert message in " ".join(error.replace("│", " ").split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "tables.json"]


def test_tables_that_a_description_names_are_not_written_to(telic, tmp_path):
    people = tmp_path / "people.csv"
    assert telic("convert", network(tmp_path / "good"), people)[0] == 0
    before = people.read_bytes()
    (tmp_path / "tables.json").write_text(
        json.dumps(
            {
                "nodes": {"user": {}},
                "links": [
                    {
                        "name": "follow",
                        "file": "people.csv",
                        "source": ["source", "user"],
                        "target": ["target", "user"],
                    }
                ],
            }
        )
    )
    code, _, error = telic("convert", tmp_path / "tables.json", people, "--overwrite")
    assert code == 2
    assert "is read by this command" in error
    assert people.read_bytes() == before


def test_a_key_is_its_owners_alone(telic, tmp_path):
    key = tmp_path / "key.parquet"
    for more in ((), ("--overwrite",)):
        words = "anonymise", tmp_path / "good", tmp_path / "out", "--key", key, *more
        if not more:
            network(tmp_path / "good")
        assert telic(*words)[0] == 0
        assert key.stat().st_mode & 0o777 == 0o600


def test_an_edge_list_says_who_is_not_in_it(telic, tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "schema.json").write_text(
        '{"nodes": {"user": {}}, "links": [{"name": "f", "source": "user", "target": "user"}]}'
    )
    pq.write_table(pa.table({"id": ["a", "b", "c"]}), tmp_path / "net" / "nodes_user.parquet")
    links = pa.table({"source": ["a"], "target": ["b"]})
    pq.write_table(links, tmp_path / "net" / "links_f.parquet")
    code, _, error = telic("convert", tmp_path / "net", tmp_path / "out.csv")
    assert (code, "names no node without links: 1 are not in" in error) == (0, True)
