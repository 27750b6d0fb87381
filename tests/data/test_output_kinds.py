import pyarrow as pa
import pytest
from pyarrow import parquet

from telic.data import atomic_path, check_output, save_model
from telic.data.output_kinds import kind_of
from telic.errors import InputError
from telic.hin import Schema, network_from_arrays, write_network
from telic.report import Report
from telic.report.table import Table


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.csv", "rank,row\n1,2\n", "CSV"),
        ("a.csv", "", "CSV"),
        ("steps.json", "[]", "JSON"),
        ("events", '{"resourceType": "AuditEvent"}\n', "JSON"),
        ("net.graphml", "<?xml version='1.0'?><graphml/>", "GraphML"),
        ("broken.parquet", "PAR1", "Parquet"),
    ],
)
def test_files_are_told_by_their_beginning(tmp_path, name, content, kind):
    (tmp_path / name).write_text(content)
    assert kind_of(tmp_path / name) == kind


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["user", "query", "keystrokes"], "composition log"),
        (["query", "at", "count"], "query log"),
        (["target", "distance", "candidates"], "candidates"),
        (["target", "auxiliary"], "key"),
        (["a"], "Parquet"),
    ],
)
def test_parquet_files_are_told_by_a_column(tmp_path, columns, kind):
    parquet.write_table(pa.table({name: [1] for name in columns}), tmp_path / "file")
    assert kind_of(tmp_path / "file") == kind


def test_pages_and_folders_are_told_as_telic_writes_them(tmp_path):
    report = Report("Found", "A lead.")
    report.table(Table("", {"a": ""}, [["1"]]))
    report.write(tmp_path / "page.html")
    report.write(tmp_path / "page.md")
    network = network_from_arrays(Schema({"user": {}}, ()), {"user": {"id": [1, 2]}}, {})
    write_network(network, tmp_path / "net")
    with atomic_path(tmp_path / "world") as temporary:
        temporary.mkdir()
        write_network(network, temporary / "target")
    save_model(tmp_path / "model", kind="toy", meta={}, arrays={})
    for name, files in (("figures", ["1.svg", "2.svg"]), ("else", ["a.txt"]), ("empty", [])):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    found = {path.name: kind_of(path) for path in tmp_path.iterdir() if path.name[0] != "."}
    assert found == {
        "page.html": "page",
        "page.md": "page",
        "net": "network",
        "world": "simulated networks",
        "model": "toy",
        "figures": "figures",
        "else": "folder",
        "empty": "folder",
    }


def test_a_model_takes_the_place_of_no_other_kind_from_python_either(tmp_path):
    save_model(tmp_path / "box", kind="completer", meta={}, arrays={})
    save_model(tmp_path / "box", kind="completer", meta={"again": True}, arrays={})
    check_output(tmp_path / "box", kind="completer", overwrite=True)
    with pytest.raises(InputError, match=r"box: .*\(completer, expected auc-ranker\).* remove it"):
        save_model(tmp_path / "box", kind="auc-ranker", meta={}, arrays={})
    assert kind_of(tmp_path / "box") == "completer"
