"""The published tables run again: parsing, resuming, marking."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from telic.auc import SPAM, compare
from telic.auc.compare import METHODS, DataSet, split
from telic.cli import app
from telic.errors import InputError
from telic.report import Table
from telic.study.auc_papers import claims, paper001, side_by_side
from telic.study.auc_papers import runs as auc_runs
from telic.study.auc_papers.kept_results import NotStored, Results
from telic.study.auc_papers.paper001 import TABLES as TABLES_001
from telic.study.auc_papers.paper002 import TABLES as TABLES_002
from telic.study.auc_papers.runs import SAME, load, runs_of
from telic.study.auc_papers.side_by_side import (
    PublishedTable,
    Row,
    cells_table,
    parse,
    published_report,
    rerun,
)
from telic.study.claims import NotInRun, Tables, Verdict
from telic.study.steps import Steps


@pytest.fixture
def folder(tmp_path):
    """A small set under the name of a published one."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(300, 8)))
    y = np.where(X.toarray()[:, 0] + rng.normal(size=300) > 0.5, 1, -1)
    (tmp_path / "ml").mkdir()
    np.savez(
        tmp_path / "ml" / "diabetes.npz",
        data=X.data,
        indices=X.indices,
        indptr=X.indptr,
        shape=X.shape,
        y=y,
        y_raw=y,
    )
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """One scaling and two values a search: the machinery is tested, not the numbers."""
    monkeypatch.setattr(auc_runs, "CONTROL_SCALINGS", ("unit",))
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, replace(method, grid=method.grid[2:4]))


def test_the_published_tables_are_whole():
    counts = [len(table.cells) for table in TABLES_001 + TABLES_002]
    assert counts == [12 * 7 - 2, 11 * 7 - 2, 16 * 3, 8 * 3, 9 * 6]
    for table in TABLES_001 + TABLES_002:
        for cell in table.cells:
            assert SAME.get(cell.method, cell.method) in METHODS
            assert 0.5 <= cell.mean < 1
            assert 0 < cell.sd < 0.25


@pytest.mark.usefixtures("quick")
def test_a_table_again_is_resumed_from_its_file(folder, tmp_path):
    table = PublishedTable(
        "t", parse(("SPAM-L2", "B-LS-SVM"), "diabetes .80±.01 .999±.001\nnone .9±.1 -")
    )
    file = tmp_path / "results.jsonl"
    data = folder
    first = rerun(table, data=data, results=Results(file), runs=2)
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
    again = rerun(table, data=data, results=Results(file), runs=2)
    assert again == first
    assert len(file.read_text().splitlines()) == lines + 1
    page = published_report("001", [(table, first)], 2).html()
    assert "above every linear optimum" in page
    assert cells_table("t", first).rows[2][-1] == "set not at hand"


@pytest.mark.usefixtures("quick")
def test_the_ceiling_is_the_largest_linear_auc_of_all_that_were_tried(
    folder, tmp_path, monkeypatch
):
    tried = [("even", "unit", "exact", 2.0), ("", "unit", "logistic", 0.1)]
    monkeypatch.setattr(side_by_side, "ceiling", lambda *_: tried)
    table = PublishedTable("t", parse(("SPAM-L2",), "diabetes .80±.01"))
    (row,) = rerun(table, data=folder, results=Results(tmp_path / "results.jsonl"), runs=1)
    assert (row.ceiling, row.ceiling_rule) == (2.0, "exact, unit, even")


@pytest.mark.parametrize(("rules", "asked"), [({}, ""), ({"it": {"even": None}}, "even")])
def test_the_ceiling_asks_for_the_labels_of_each_rule(tmp_path, monkeypatch, rules, asked):
    loaded = []
    monkeypatch.setattr(auc_runs, "RULES", rules)
    monkeypatch.setattr(auc_runs, "load", lambda *given: loaded.append(given))
    assert list(auc_runs.ceiling("it", tmp_path, 1, Results(tmp_path / "results.jsonl"))) == []
    assert loaded == [("it", tmp_path, asked)]


@pytest.mark.parametrize(("columns", "wide"), [(10_000, False), (10_001, True)])
def test_the_ceiling_is_tried_under_every_scaling(columns, wide, monkeypatch):
    asked = []

    def runs_of(rows, method, scaling, runs, results, *, label):
        asked.append((label, scaling, method))
        if method == "hinge":
            raise NotStored
        return [0.5, 0.7]

    monkeypatch.setattr(auc_runs, "RULES", {"it": {"even": None, "odd": None}})
    monkeypatch.setattr(auc_runs, "runs_of", runs_of)
    monkeypatch.setattr(auc_runs, "load", lambda *_: SimpleNamespace(X=np.empty((0, columns))))
    found = list(auc_runs.ceiling("it", None, 2, None))
    narrow = set() if wide else {"minmax", "minmax+unit", "standard+unit"}
    scaled = {"unit", "standard"} | narrow
    every = {(s, m) for s in scaled for m in ("exact", "hinge", "logistic")} | {("raw", "exact")}
    assert {one[1:] for one in asked} == every  # raw columns stall what is not exact
    assert len(asked) == 2 * len(every)
    assert [one[0] for one in asked] == sorted(one[0] for one in asked)
    assert {one[:3] for one in found} == {one for one in asked if one[2] != "hinge"}
    assert [one[3] for one in found] == pytest.approx([0.6] * len(found))


@pytest.mark.parametrize(
    ("name", "rule", "positive"),
    [
        ("covtype", "class 2", [0, 1, 0, 0, 0, 0]),
        ("covtype", "even", [0, 1, 0, 1, 0, 1]),
        ("mnist", "even", [0, 1, 0, 1, 0, 1]),
        ("mnist", "digit < 5", [1, 1, 1, 1, 0, 0]),
        ("news20", "first half", [1, 1, 1, 0, 0, 0]),
        ("sector", "even", [0, 1, 0, 1, 0, 1]),
        ("sector", "first half", [1, 1, 1, 0, 0, 0]),
        ("news20", None, [0, 1, 0, 1, 0, 1]),
        ("a9a", "even", [1, 0, 1, 0, 0, 0]),
    ],
)
def test_labels_by_a_rule_are_of_the_sets_own_classes(name, rule, positive, tmp_path, monkeypatch):
    file = tmp_path / "any.npz"
    file.write_bytes(b"rows")
    rows = sparse.csr_array(np.eye(6))
    y = np.array([1, -1, 1, -1, -1, -1])
    monkeypatch.setattr(auc_runs, "set_file", lambda *_: file)
    monkeypatch.setattr(auc_runs, "labelled_set", lambda *_: (rows, y, np.arange(1, 7)))
    data = load(name, tmp_path, rule)
    assert data.positive.tolist() == [bool(one) for one in positive]
    assert data.scaling == ("minmax+unit" if name == "covtype" else "unit")


@pytest.mark.parametrize(
    ("columns", "filled", "dense"),
    [(200, 1, True), (201, 1, False), (400, 60, False), (400, 61, True)],
)
def test_rows_are_dense_where_that_costs_little(columns, filled, dense, tmp_path, monkeypatch):
    table = np.zeros((5, columns))
    table[:, :filled] = 1
    (tmp_path / "any.npz").touch()
    monkeypatch.setattr(auc_runs, "set_file", lambda *_: tmp_path / "any.npz")
    y = np.array([1, -1, 1, -1, -1])
    monkeypatch.setattr(auc_runs, "labelled_set", lambda *_: (sparse.csr_array(table), y, None))
    found = load("any", tmp_path).X
    assert isinstance(found, np.ndarray) == dense
    assert (np.asarray(found if dense else found.toarray()) == table).all()


@pytest.mark.usefixtures("quick")
def test_a_method_that_was_not_run_keeps_its_line_and_its_sets_ceiling(folder, tmp_path):
    file = tmp_path / "results.jsonl"
    alone = PublishedTable("t", parse(("SPAM-L2",), "diabetes .80±.01"))
    (made,) = rerun(alone, data=folder, results=Results(file), runs=1)
    both = PublishedTable("t", parse(("SPAM-L2", "OPAUC"), "diabetes .80±.01 .90±.01"))
    told = []
    kept = Results(file, compute=False)
    first, left = rerun(both, data=folder, results=kept, runs=1, progress=told.append)
    assert first == made
    assert told[0] == "diabetes: exact optimum and logistic regression"
    assert told[-2:] == ["diabetes: SPAM-L2", "diabetes: OPAUC"]
    assert "diabetes: best linear AUC (as given, unit, exact)" in told
    assert (left.method, left.ours) == ("OPAUC", None)
    assert (left.ceiling, left.ceiling_rule) == (made.ceiling, made.ceiling_rule)


@pytest.mark.usefixtures("quick")
def test_what_other_code_made_is_computed_again_and_said(folder, tmp_path, monkeypatch, caplog):
    file = tmp_path / "results.jsonl"
    data = load("diabetes", folder)

    def runs(method, data=data):
        stored = Results(file)
        before = len(stored.found) and len(file.read_text().splitlines())
        runs_of(data, method, "unit", 1, stored, label="")
        return len(file.read_text().splitlines()) - before

    assert runs("SPAM-L2") == runs("logistic") == 2  # the parameters and the run
    assert runs("SPAM-L2") == runs("logistic") == 0
    assert "computed again" not in caplog.text
    # Another setting of the method, other data, other code: each is seen, and no other method.
    five = METHODS["SPAM-L2"]
    more = replace(five, make=lambda d, beta: SPAM(beta, max_iter=6, random_state=0))
    monkeypatch.setitem(METHODS, "SPAM-L2", more)
    assert (runs("SPAM-L2"), runs("logistic")) == (2, 0)
    assert "diabetes||unit|SPAM-L2|0 was made by other code or settings" in caplog.text
    assert runs("SPAM-L2", data._replace(digest="another file")) == 2
    assert runs("SPAM-L2") == 2
    monkeypatch.setattr(compare, "at_most", lambda rows, positive, most: rows[::-1])
    assert (runs("SPAM-L2"), runs("logistic")) == (2, 2)
    # A file that may not be added to holds nothing of what other code made.
    monkeypatch.setattr(compare, "at_most", lambda rows, positive, most: rows)
    with pytest.raises(NotStored):
        runs_of(data, "SPAM-L2", "unit", 1, Results(file, compute=False), label="")


@pytest.mark.usefixtures("quick")
def test_a_line_without_a_fingerprint_is_computed_again(folder, tmp_path):
    file = tmp_path / "results.jsonl"
    data = load("diabetes", folder)
    true = runs_of(data, "exact", "unit", 1, Results(file), label="")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    old = [{"key": line["key"], "value": 0.123} for line in lines]
    file.write_text("".join(json.dumps(line) + "\n" for line in old))
    assert runs_of(data, "exact", "unit", 1, Results(file), label="") == true


@pytest.mark.usefixtures("quick")
def test_a_paper_from_the_command_line(folder, tmp_path):
    report, file = tmp_path / "r.html", tmp_path / "results.jsonl"
    arguments = ["--set", "diabetes", "--runs", 1, "--data", folder, "--json"]
    arguments += ["--results", file, "--out", report]
    result = CliRunner().invoke(app, ["study", "paper-002", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    rows = Table.from_json(json.loads(result.stdout)["tables"][0]).records()
    assert [row["method"] for row in rows][:2] == ["VRSPAM-L2", "VRSPAM-NET"]
    assert all(0.5 < row["ours"] < 1 for row in rows)
    assert report.is_file()


def test_an_interrupted_paper_keeps_what_is_done_and_says_so(tmp_path, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "rerun", stop)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ml").mkdir()
    asked = ["study", "paper-002", "--data", str(tmp_path), "--results", "r.jsonl"]
    ended = CliRunner().invoke(app, asked)
    assert ended.exit_code == 130
    assert "r.jsonl keeps the finished runs" in ended.stderr


@pytest.fixture
def several_classes(tmp_path):
    """A small set of several classes under the name of a published one."""
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.normal(size=(200, 4)))
    classes = 1 + (np.argsort(X.toarray()[:, 0]) % 4)
    (tmp_path / "ml").mkdir()
    np.savez(
        tmp_path / "ml" / "sector.npz",
        data=X.data,
        indices=X.indices,
        indptr=X.indptr,
        shape=X.shape,
        y=np.where(classes % 2, -1, 1),
        y_raw=classes,
    )
    return tmp_path


@pytest.mark.usefixtures("quick")
def test_a_set_of_several_classes_is_computed_once(several_classes, caplog):
    """Its first rule stands under one name in the tables and among the ceilings."""
    file = several_classes / "results.jsonl"
    table = PublishedTable("t", parse(("B-LS-SVM",), "sector .80±.01"))
    first = rerun(table, data=several_classes, results=Results(file), runs=2)
    made = file.read_text()
    assert len({json.loads(line)["key"] for line in made.splitlines()}) == len(made.splitlines())
    assert rerun(table, data=several_classes, results=Results(file), runs=2) == first
    assert file.read_text() == made
    assert "computed again" not in caplog.text


def test_labels_follow_the_named_rule(tmp_path):
    X = sparse.csr_matrix(np.eye(4))
    (tmp_path / "ml").mkdir()
    np.savez(
        tmp_path / "ml" / "covtype.npz",
        data=X.data,
        indices=X.indices,
        indptr=X.indptr,
        shape=X.shape,
        y=np.array([-1, 1, -1, -1]),
        y_raw=np.array([1, 2, 3, 4]),
    )
    assert load("covtype", tmp_path).positive.tolist() == [False, True, False, False]
    assert load("covtype", tmp_path, "even").positive.tolist() == [False, True, False, True]


def test_missing_data_is_named(tmp_path):
    with pytest.raises(InputError, match="TELIC_DATA"):
        paper001.study(Steps(), data=tmp_path)
    for name in ("", "diabtes"):
        with pytest.raises(InputError, match=f"set '{name}' is in no table. Those are "):
            paper001.study(Steps(), data=tmp_path, only=["diabetes", name])


def test_a_row_is_above_only_beyond_two_deviations():
    def row(mean):
        return Row("d", "m", mean, 0.01, 0.8, 0.01, 0.8, 0.01, 0.8, 0.81, "exact, unit")

    assert row(0.84).above
    assert not row(0.82).above


def test_one_run_shows_no_deviation():
    row = Row("d", "m", 0.8, 0.01, 0.81, 0.0, 0.8, 0.01, 0.8, 0.81, "exact, unit", runs=1)
    assert cells_table("t", [row]).cells()[0][2:6] == ["0.8000 ± 0.0100", "0.8100", "—", "1"]


def test_every_run_has_a_split_of_its_own_and_the_same_again():
    rng = np.random.default_rng(0)
    data = DataSet("a", rng.random((200, 2)), rng.random(200) < 0.3, "unit")
    tested = [split(data, run)[1] for run in range(6)]
    assert len({tuple(sorted(rows)) for rows in tested}) == 6
    for run, rows in enumerate(tested):
        train, test = split(data, run)
        assert (test == rows).all()
        assert np.union1d(train, test).size == 200
        assert test.size == 40
        assert abs(data.positive[test].mean() - data.positive.mean()) < 0.02


def claimed():
    """A published table and this run's rows: a set of which nothing was run, one that is beaten."""
    text = "diabetes .80±.02 .70±.02\nusps .90±.01 .95±.01\na9a .85±.03 .80±.03"
    published = PublishedTable("t", parse(("SPAM-L2", "OPAUC"), text))
    columns = {"set": "", "method": "", "ours": ".4f", "best linear": ".4f"}
    rows = [
        ["diabetes", "SPAM-L2", 0.83, 0.765],  # near, and published within reach
        ["diabetes", "OPAUC", 0.745, 0.765],
        ["usps", "SPAM-L2", 0.885, 0.92],
        ["usps", "OPAUC", None, 0.92],  # published beyond reach
        ["a9a", "SPAM-L2", None, None],
    ]
    return published, Tables([Table("t: test AUC", columns, rows)])


def test_claims_on_auc_are_counted_over_what_was_run():
    table, run = claimed()

    def counted(claim):
        found = claim.ours(run)
        return (claim.rule.published, claim.rule.of), (found.value, found.of)

    assert counted(claims.above("s", table, "SPAM-L2", "OPAUC")) == ((2, 3), (1, 1))
    assert counted(claims.above("s", table, "OPAUC", "SPAM-L2")) == ((1, 3), (0, 1))
    assert counted(claims.near("s", table)) == ((6, 6), (2, 3))
    assert counted(claims.reachable("s", table)) == ((6, 6), (3, 4))
    with pytest.raises(NotInRun, match="no such case"):
        claims.near("s", table._replace(cells=table.cells[-1:])).ours(run)


def test_one_published_auc_is_held_to_two_of_its_deviations():
    table, run = claimed()
    claim = claims.auc("s", table, "diabetes", "OPAUC")
    assert (claim.rule.published, claim.rule.near) == (0.7, pytest.approx(0.04))
    assert claim.ours(run).value == 0.745
    assert claim.rule.verdict(claim.ours(run)) == Verdict.NOT
    near = claims.auc("s", table, "usps", "SPAM-L2")
    assert near.rule.verdict(near.ours(run)) == Verdict.HOLDS
    with pytest.raises(NotInRun, match="this run has no SPAM-L2 on a9a"):
        claims.auc("s", table, "a9a", "SPAM-L2").ours(run)


def test_published_cells_stand_beside_those_that_were_run():
    table, run = claimed()
    shown = claims.printed("s", table).table(run)
    assert shown.title.startswith("s: test AUC, means over splits")
    assert shown.rows == [
        ["diabetes", [0.8, 0.83], [0.7, 0.745]],
        ["usps", [0.9, 0.885], [0.95, None]],
        ["a9a", [0.85, None], [0.8, None]],
    ]
