"""The published tables run again: parsing, resuming, marking."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from telic.auc import SPAM
from telic.cli import app
from telic.errors import InputError
from telic.study import auc_tables, paper001, paper002
from telic.study.auc_tables import METHODS, SAME, NotStored, Results, data_folder, load, runs_of
from telic.study.published import Row, Table, parse, published_report, rerun, shown


@pytest.fixture
def folder(tmp_path):
    """A small set under the name of a published one."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(300, 8)))
    y = np.where(X.toarray()[:, 0] + rng.normal(size=300) > 0.5, 1, -1)
    (tmp_path / "ml").mkdir()
    np.savez(
        tmp_path / "ml" / "diabetes.npz", data=X.data, indices=X.indices, indptr=X.indptr,
        shape=X.shape, y=y, y_raw=y,
    )  # fmt: skip
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """One scaling and two values a search: the machinery is tested, not the numbers."""
    monkeypatch.setattr(auc_tables, "CONTROL_SCALINGS", ("unit",))
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, replace(method, grid=method.grid[2:4]))


def test_the_published_tables_are_whole():
    counts = [len(table.figures) for table in paper001.TABLES + paper002.TABLES]
    assert counts == [12 * 7 - 2, 11 * 7 - 2, 16 * 3, 8 * 3, 9 * 6]
    for table in paper001.TABLES + paper002.TABLES:
        for figure in table.figures:
            assert SAME.get(figure.method, figure.method) in METHODS
            assert 0.5 <= figure.mean < 1
            assert 0 < figure.sd < 0.25


@pytest.mark.usefixtures("quick")
def test_a_table_again_is_resumed_from_its_file(folder, tmp_path):
    table = Table("t", parse(("SPAM-L2", "B-LS-SVM"), "diabetes .80±.01 .999±.001\nnone .9±.1 -"))
    file = tmp_path / "results.jsonl"
    data = folder / "ml"
    first = rerun(table, folder=data, results=Results(file), runs=2)
    assert [row.data for row in first] == ["diabetes", "diabetes", "none"]
    assert first[0].ours == pytest.approx(first[0].exact, abs=0.05)
    assert first[1].ours == first[1].exact
    assert first[1].above
    assert not first[0].above
    assert first[2].ours is None
    assert first[2].above is None
    # An interruption cut the last line: everything else is used again.
    text = file.read_text()
    file.write_text(text[:-5])
    lines = len(file.read_text().splitlines())
    again = rerun(table, folder=data, results=Results(file), runs=2)
    assert again == first
    assert len(file.read_text().splitlines()) == lines + 1
    page = published_report("001", [(table, first)], 2).html()
    assert "above every linear optimum" in page
    assert shown(first[2])[-1] == "set not at hand"


@pytest.mark.usefixtures("quick")
def test_what_other_code_made_is_computed_again_and_said(folder, tmp_path, monkeypatch, caplog):
    file = tmp_path / "results.jsonl"
    data = load("diabetes", folder / "ml")

    def runs(method, data=data):
        stored = Results(file)
        before = len(stored.found) and len(file.read_text().splitlines())
        runs_of(data, method, "unit", 1, stored, label="")
        return len(file.read_text().splitlines()) - before

    assert runs("SPAM-L2") == runs("logistic") == 2  # the parameter and the run
    assert runs("SPAM-L2") == runs("logistic") == 0
    assert "computed again" not in caplog.text
    # Another setting of the method, other data, other code: each is seen, and no other method.
    five = METHODS["SPAM-L2"]
    more = replace(five, make=lambda beta, d: SPAM(beta, max_iter=6, random_state=0))
    monkeypatch.setitem(METHODS, "SPAM-L2", more)
    assert (runs("SPAM-L2"), runs("logistic")) == (2, 0)
    assert "diabetes||unit|SPAM-L2|0 was made by other code or settings" in caplog.text
    assert runs("SPAM-L2", data._replace(digest="another file")) == 2
    assert runs("SPAM-L2") == 2
    monkeypatch.setattr(auc_tables, "_at_most", lambda rows, positive, most: rows[::-1])
    assert (runs("SPAM-L2"), runs("logistic")) == (2, 2)
    # A file that may not be added to holds nothing of what other code made.
    monkeypatch.setattr(auc_tables, "_at_most", lambda rows, positive, most: rows)
    with pytest.raises(NotStored):
        runs_of(data, "SPAM-L2", "unit", 1, Results(file, compute=False), label="")


@pytest.mark.usefixtures("quick")
def test_a_line_without_a_fingerprint_is_computed_again(folder, tmp_path):
    file = tmp_path / "results.jsonl"
    data = load("diabetes", folder / "ml")
    true = runs_of(data, "exact", "unit", 1, Results(file), label="")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    old = [{"key": line["key"], "value": 0.123} for line in lines]
    file.write_text("".join(json.dumps(line) + "\n" for line in old))
    assert runs_of(data, "exact", "unit", 1, Results(file), label="") == true


@pytest.mark.usefixtures("quick")
def test_compare_paper_from_the_command_line(folder, tmp_path):
    report, file = tmp_path / "r.html", tmp_path / "results.jsonl"
    arguments = ["--paper", "002", "--set", "diabetes", "--runs", 1, "--data", folder, "--json"]
    arguments += ["--results", file, "--report", report]
    result = CliRunner().invoke(app, ["auc", "compare", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)
    assert [row["method"] for row in rows][:2] == ["VRSPAM-L2", "VRSPAM-NET"]
    assert all(0.5 < row["ours"] < 1 for row in rows)
    assert report.is_file()


def test_labels_follow_the_named_rule(tmp_path):
    X = sparse.csr_matrix(np.eye(4))
    np.savez(
        tmp_path / "covtype.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape,
        y=np.array([-1, 1, -1, -1]), y_raw=np.array([1, 2, 3, 4]),
    )  # fmt: skip
    assert load("covtype", tmp_path).positive.tolist() == [False, True, False, False]
    assert load("covtype", tmp_path, "even").positive.tolist() == [False, True, False, True]


def test_missing_data_is_named(tmp_path):
    with pytest.raises(InputError, match="TELIC_DATA"):
        data_folder(tmp_path)


def test_a_row_is_above_only_beyond_two_deviations():
    def row(mean):
        return Row("d", "m", mean, 0.01, 0.8, 0.01, 0.8, 0.01, 0.8, 0.81, "exact, unit")

    assert row(0.84).above
    assert not row(0.82).above


def test_one_run_shows_no_deviation():
    row = Row("d", "m", 0.8, 0.01, 0.81, 0.0, 0.8, 0.01, 0.8, 0.81, "exact, unit", runs=1)
    assert shown(row)[2:4] == ["0.8000±0.0100", "0.8100"]
