"""`telic auc` from files to ranked list and report."""

import csv
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyarrow.csv import WriteOptions, write_csv
from sklearn.datasets import dump_svmlight_file
from typer.testing import CliRunner

from telic.auc import compare
from telic.auc.estimators.by_name import SOLVERS
from telic.auc.table_labels import choose_positive
from telic.auc.table_ranker import Ranker
from telic.cli import app
from telic.errors import InputError

RNG = np.random.default_rng(0)
N = 400
AMOUNT, COUNTRY = RNG.exponential(50, N), RNG.choice(["NL", "DE", "XX"], N)
FRAUD = AMOUNT / 60 + 2 * (COUNTRY == "XX") + RNG.normal(size=N) > 3
TABLE = pa.table(
    {"id": range(N), "amount": AMOUNT, "country": COUNTRY, "fraud": np.where(FRAUD, "yes", "no")}
)


def run(*arguments):
    result = CliRunner().invoke(app, ["auc", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "payments.parquet"
    parquet.write_table(TABLE, path)
    return path


@pytest.fixture
def model(table, tmp_path):
    folder = tmp_path / "model"
    run("fit", table, "--label", "fraud", "--drop", "id", "--beta", 1e-3, "--model", folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "compare --runs 0",
        "compare --runs -3",
        "rank --top -1",
        "fit --seed -1",
        "fit --seed 4294967296",
    ],
)
def test_numbers_out_of_range_are_refused(table, model, words):
    command, *option = words.split()
    named = ["--model", model] if command != "compare" else ["--label", "fraud", "--drop", "id"]
    result = CliRunner().invoke(app, ["auc", command, *map(str, [table, *named, *option])])
    assert result.exit_code == 2
    assert f"Invalid value for '{option[0]}'" in " ".join(result.stderr.split())


def test_a_ridge_weight_below_0_is_refused_before_anything_is_computed(table, tmp_path):
    named = ["--label", "fraud", "--drop", "id", "--report", tmp_path / "page.html"]
    with pytest.raises(InputError, match=r"beta is -1\.0, expected a finite number > 0"):
        run("diagnose", table, *named, "--beta", -1)


def test_fit_measures_on_held_out_rows_and_reports(table, tmp_path):
    arguments = ["--label", "fraud", "--drop", "id", "--model", tmp_path / "m"]
    report = tmp_path / "report.html"
    found = json.loads(run("fit", table, *arguments, "--report", report, "--json"))
    assert found["rows"] == 80
    assert found["auc_low"] < found["auc"] < found["auc_high"]
    assert found["auc"] > 0.8
    page = report.read_text(encoding="utf-8")
    assert "country=XX" in page
    assert page.count("<svg") == 2


def test_inspect_says_what_a_ranker_is_for_fitted_on_and_measured_by(table, tmp_path):
    model = tmp_path / "m"
    fitted = run("fit", table, "--label", "fraud", "--drop", "id", "--model", model, "--json")
    card = json.loads(run("inspect", model, "--json"))
    assert "how likely they are yes" in card["for"]
    assert {name: card["fitted on"][name] for name in ("rows", "positive")} == {
        "rows": N,
        "positive": FRAUD.sum(),
    }
    measured, found = card["fitted on"]["measured on rows held out"], json.loads(fitted)
    assert measured == {name: found[name] for name in measured}
    assert measured["rows"] == 80
    assert "auc_low" in measured
    assert card["settings"]["beta"] == found["beta"]
    assert "every category of country" in card["holds"]
    assert card["written by"].startswith("telic ")
    shown = run("inspect", model)
    assert f"  rows: {N}\n" in shown
    for row in TABLE["amount"][:5]:
        assert str(row) not in shown


def test_rank_lists_the_likeliest_first(table, model, tmp_path):
    output = tmp_path / "ranked.csv"
    run("rank", table, "--model", model, "--column", "id", "--column", "fraud", "--output", output)
    with output.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == N
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert sum(row["called"] == "true" for row in rows) == FRAUD.sum()
    top = [row["fraud"] for row in rows[:20]]
    assert top.count("yes") > 12
    assert all(int(row["row"]) == int(row["id"]) + 1 for row in rows)
    assert len(run("rank", table, "--model", model, "--top", 5).splitlines()) == 6


def test_evaluate_reads_other_formats_alike(table, model, tmp_path):
    first = json.loads(run("evaluate", table, "--model", model, "--json"))
    plain = tmp_path / "payments.csv"
    with plain.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(TABLE.column_names)
        writer.writerows(zip(*TABLE.to_pydict().values(), strict=True))
    second = json.loads(run("evaluate", plain, "--model", model, "--json"))
    assert first == pytest.approx(second)
    total = ("true_positives", "false_positives", "true_negatives", "false_negatives")
    assert sum(first[name] for name in total) == N


def test_libsvm_rows_with_fewer_columns_than_the_model(tmp_path):
    X = np.column_stack([AMOUNT / 50, RNG.normal(size=(N, 3))])
    first, second = tmp_path / "a.libsvm", tmp_path / "b.libsvm"
    dump_svmlight_file(X, np.where(FRAUD, 1, -1), str(first), zero_based=False)
    dump_svmlight_file(X[:, :2], np.where(FRAUD, 1, -1), str(second), zero_based=False)
    run("fit", first, "--beta", 1e-3, "--scaling", "raw", "--model", tmp_path / "m")
    found = json.loads(run("evaluate", second, "--model", tmp_path / "m", "--json"))
    assert found["auc"] > 0.75
    parquet.write_table(TABLE, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="give one"):
        run("rank", tmp_path / "t.parquet", "--model", tmp_path / "m")


def test_diagnose_writes_four_figures(table, tmp_path):
    report = tmp_path / "d.html"
    options = ["--scaling", "standard", "--beta", 0.1, "--report", report]
    run("diagnose", table, "--label", "fraud", "--drop", "id", *options)
    assert report.read_text(encoding="utf-8").count("<svg") == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "fraudd"], "no column 'fraudd'"),
        (["--label", "country"], r"3 different labels \('..?', '..?', '..?'\), expected two"),
        (["--label", "fraud", "--positive", "maybe"], "not 'maybe'"),
        (["--label", "fraud", "--drop", "idd"], "no column 'idd'; there are id, "),
        (["--label", "fraud", "--scaling", "log"], "scaling is 'log'"),
        (["--label", "fraud", "--beta", "much"], "--beta: 'much'"),
        (["--label", "fraud", "--threshold", "cost=x"], "--threshold: 'x'"),
        (["--label", "fraud", "--threshold", "cost="], "--threshold: ''"),
        (["--label", "fraud", "--threshold", "youden=3"], r"threshold: \('youden', 3.0\)"),
        (["--label", "fraud", "--beta", "nan"], "beta is nan"),
        (["--label", "fraud", "--solver", "magic"], "solver is 'magic'"),
        (["--label", "fraud", "--test", "2"], "test: 2"),
        (["--label", "fraud", "--test", ".99"], "test: 0.99 of .* rows of a class"),
        ([], "--label"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(table, tmp_path, arguments, message):
    with pytest.raises(InputError, match=message):
        run("fit", table, "--model", tmp_path / "none", *arguments)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, None, 3.0], "row 2: 'x' is empty"),
        ([1.0, np.nan, 3.0], "row 2: 'x' is nan"),
        ([[1], [2], [3]], "of type list"),
    ],
)
def test_bad_cells_are_named(tmp_path, column, message):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": column * 20, "y": [0, 1, 1] * 20}), path)
    with pytest.raises(InputError, match=message):
        run("fit", path, "--label", "y", "--model", tmp_path / "m")


def test_an_empty_label_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": [1, None, 1]}), path)
    with pytest.raises(InputError, match=r"t\.parquet: row 2: 'y' is empty or reads NA"):
        run("fit", path, "--label", "y", "--model", tmp_path / "m")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 2:nan", "row 3, column 2: nan"),
        ("nan 2:1", "row 3: the label is nan"),
        ("1 2:abc", "line 3: expected 'label column:value"),
        ("1 0:1 2:3", "line 3: column 0, expected columns that count from 1"),
        ("1 2:3 2:4", "line 3: column 2, .* the one before is 2"),
    ],
)
def test_bad_libsvm_lines_are_named(tmp_path, line, message):
    path = tmp_path / "t.svm"
    path.write_text("\n".join(["1 1:2 2:0.5", "-1 2:1", line] + ["-1 1:1", "1 2:1"] * 20))
    with pytest.raises(InputError, match=rf"t\.svm: {message}"):
        run("fit", path, "--model", tmp_path / "m")


def test_columns_that_were_learned_from_are_told(tmp_path):
    path, wide = tmp_path / "t.csv", {f"x{j}": np.arange(60) % (j + 2) for j in range(25)}
    towns = ["Rome", "Oslo", "Bonn"] * 20
    write_csv(pa.table({**wide, "town": towns, "y": [0, 1, 1] * 20}), path)
    told = run("fit", path, "--label", "y", "--model", tmp_path / "m", "--beta", 1e-3)
    assert re.search(r"^numbers +x0, x1, .*, x19 and 5 more$", told, re.M)
    assert re.search(r"^categories +town \(3\)$", told, re.M)
    made = ["--label", "y", "--model", tmp_path / "n", "--beta", 1e-3, "--json"]
    found = json.loads(run("fit", path, *made))
    assert found["numbers"] == list(wide)
    assert found["categories"] == {"town": 3}


def test_text_in_a_column_of_numbers_is_named_unless_categories_are_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    cells = [str(number % 15) for number in range(60)]
    cells[7] = "n/k"
    write_csv(pa.table({"x": cells, "y": [0, 1, 1] * 20}), path)
    with pytest.raises(InputError, match="row 8: 'x' is 'n/k', expected a number"):
        run("fit", path, "--label", "y", "--model", tmp_path / "m")
    assert run("fit", path, "--label", "y", "--model", tmp_path / "m", "--one-hot", "x")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "t.xls").write_text("a")
    (tmp_path / "t.parquet").write_text("not parquet")
    (tmp_path / "t.csv").write_text("x,y\n")
    for name, message in (
        ("none.csv", "not found"),
        ("t.xls", "ending"),
        ("t.parquet", "read"),
        ("t.csv", "t.csv: holds no rows"),
    ):
        with pytest.raises(InputError, match=message):
            run("fit", tmp_path / name, "--label", "y", "--model", tmp_path / "m")


def frauds(path, common="ok", rare="fraud"):
    """A table in which the rarer label is the smaller one, as texts sort."""
    labels = np.where(FRAUD, rare, common)
    parquet.write_table(pa.table({"amount": AMOUNT, "country": COUNTRY, "label": labels}), path)
    return path


def test_the_rarer_label_is_positive_and_every_output_names_it(tmp_path):
    table, model = frauds(tmp_path / "t.parquet"), tmp_path / "m"
    options = ["--label", "label", "--beta", 1e-3, "--model", model, "--overwrite"]
    report = tmp_path / "r.html"
    found = json.loads(run("fit", table, *options, "--report", report, "--json"))
    assert found["positive"] == "fraud"
    assert found["positives"] == pytest.approx(0.2 * FRAUD.sum(), abs=1)
    assert "positive           fraud" in run("fit", table, *options)
    assert "positives (fraud)" in report.read_text(encoding="utf-8")
    assert "called fraud" in report.read_text(encoding="utf-8")
    assert json.loads((model / "manifest.json").read_text())["meta"]["positive"] == "fraud"
    ranked = list(
        csv.DictReader(run("rank", table, "--model", model, "--column", "label").splitlines())
    )
    assert {row["positive"] for row in ranked} == {"fraud"}
    assert [row["label"] for row in ranked[:20]].count("fraud") > 12
    evaluated = json.loads(run("evaluate", table, "--model", model, "--json"))
    assert (evaluated["positive"], evaluated["positives"]) == ("fraud", FRAUD.sum())
    # The other way round when asked for, and said again.
    other = json.loads(run("fit", table, *options, "--positive", "ok", "--json"))
    assert other["positive"] == "ok"
    assert other["auc"] == pytest.approx(found["auc"], abs=0.02)
    diagnosis = tmp_path / "d.html"
    run(
        "diagnose",
        table,
        "--label",
        "label",
        "--scaling",
        "standard",
        "--beta",
        0.1,
        "--report",
        diagnosis,
    )
    assert "positive label fraud" in diagnosis.read_text(encoding="utf-8")


def test_compare_names_the_positive_label(tmp_path, monkeypatch):
    few = {name: compare.METHODS[name] for name in ("exact", "logistic")}
    monkeypatch.setattr(compare, "METHODS", few)
    table = frauds(tmp_path / "t.parquet")
    asked = ["compare", table, "--label", "label", "--runs", 1]
    found = json.loads(run(*asked, "--json"))
    assert {row["positive"] for row in found} == {"fraud"}
    assert "positive fraud" in run(*asked)


@pytest.mark.parametrize("written", ["1", "1.0", "01"])
def test_a_number_is_found_however_it_is_written(tmp_path, written):
    file, model = tmp_path / "t.libsvm", tmp_path / "m"
    dump_svmlight_file(AMOUNT[:, None], np.where(FRAUD, 1, -1), str(file), zero_based=False)
    options = ["--beta", 1e-3, "--model", model, "--overwrite", "--json"]
    assert json.loads(run("fit", file, "--positive", written, *options))["positive"] == "1"
    assert json.loads(run("fit", file, *options))["positive"] == "1"
    with pytest.raises(InputError, match="not '2'"):
        run("fit", file, "--positive", "2", *options)


def test_equally_frequent_labels_take_the_larger():
    labels = np.array(["a", "b"] * 3, dtype=object)
    positive, name = choose_positive(labels, None, "here")
    assert name == "b"
    assert positive.tolist() == [False, True] * 3
    positive, name = choose_positive(np.array([True, False, True], dtype=object), "true", "here")
    assert (name, positive.tolist()) == ("True", [True, False, True])


def test_a_model_says_its_columns_and_keeps_its_folder_to_itself(table, model, tmp_path):
    with pytest.raises(InputError, match=r"list\.parquet: is written as CSV\. Name"):
        run("rank", table, "--model", model, "--output", tmp_path / "list.parquet")
    with pytest.raises(InputError, match="no column 'shop' to carry along; there are "):
        run("rank", table, "--model", model, "--column", "shop")
    for report in (model, model / "page.html"):
        with pytest.raises(InputError, match="is in the model's folder"):
            run("fit", table, "--model", model, "--report", report, "--overwrite")
    assert not (model / "page.html").exists()
    run("evaluate", table, "--model", model, "--report", tmp_path / "page.html")
    assert "every row of the file" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_comparison_is_written_as_a_page(table, tmp_path, monkeypatch):
    few = dict.fromkeys(("logistic", "the same"), compare.METHODS["logistic"])
    monkeypatch.setattr("telic.auc.compare.METHODS", few | {"exact": compare.METHODS["exact"]})
    options = "--label", "fraud", "--drop", "id", "--runs", 2
    run("compare", table, *options, "--report", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    rows = json.loads(run("compare", table, *options, "--json"))
    found = {row["method"]: row for row in rows}
    one = found["exact"]
    assert f"{one['average_precision']:.4f} ± {one['average_precision_sd']:.4f}</td>" in page
    assert "2 random 80/20 splits" in page
    assert one["over_logistic"] == pytest.approx(one["auc"] - found["logistic"]["auc"])
    assert one["over_logistic_low"] < one["over_logistic"] < one["over_logistic_high"]
    assert f"({one['over_logistic_low']:+.4f} to".replace("-", "−") in page
    same = found["the same"]
    assert same["over_logistic_low"] == same["over_logistic"] == same["over_logistic_high"] == 0
    assert "positive label yes" in page


def test_a_column_keeps_the_kind_that_the_model_was_fitted_on(tmp_path):
    """Codes that look like numbers are other categories, if a file's types are guessed anew."""
    codes = RNG.choice(["007", "true", "1,5", "A"], N)
    rows = [
        f"{code};{x:.3f};{'yes' if x > 30 else 'no'}" for code, x in zip(codes, AMOUNT, strict=True)
    ]
    table, model = tmp_path / "t.csv", tmp_path / "m"
    table.write_text("\n".join(["code;x;y", *rows]))
    run("fit", table, "--label", "y", "--beta", 1e-3, "--model", model)
    scores = ranks_and_scores(table, model)
    for code in ("007", "true", "1,5"):
        places = np.flatnonzero(codes == code)
        part = tmp_path / "part.csv"
        part.write_text("\n".join(["code;x;y", *(rows[place] for place in places)]))
        found = ranks_and_scores(part, model)  # and no warning of categories that are not known
        assert [found[row] for row in range(1, places.size + 1)] == [scores[p + 1] for p in places]
        assert json.loads(run("evaluate", part, "--model", model, "--json"))["rows"] == places.size
    one_hot = ["--one-hot", "code", "--label", "y", "--beta", 1e-3, "--model", tmp_path / "n"]
    run("fit", part, *one_hot)
    assert "code=1,5" in Ranker.load(tmp_path / "n").names


def ranks_and_scores(table, model):
    listed = csv.DictReader(run("rank", table, "--model", model).splitlines())
    return {int(row["row"]): row["score"] for row in listed}


def test_a_list_has_no_two_columns_of_a_name(table, model, tmp_path):
    with pytest.raises(InputError, match="--column score: the list has a column 'score' of its"):
        run("rank", table, "--model", model, "--column", "score")
    twice = tmp_path / "twice.csv"
    for name, command in (
        ("country", ["rank", "--model", model]),
        ("id", ["rank", "--model", model, "--column", "id"]),
        ("id", ["fit", "--label", "fraud", "--model", tmp_path / "m"]),
        ("fraud", ["fit", "--label", "fraud", "--model", tmp_path / "m"]),
    ):
        write_csv(TABLE.append_column(name, TABLE[name]), twice)
        with pytest.raises(InputError, match=f"column '{name}' comes more than once"):
            run(command[0], twice, *command[1:])


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_what_is_carried_along_stays_as_it_is_written(model, tmp_path, ending):
    cells = {
        "account": ["000047", "NA", " 7 ", ""],
        "card": [f"1234567890123456{n}" for n in range(7046, 7050)],
        "hex": ["0x002F", "1e5", "+49170000047", "1.470"],
        "at": ["2024-01-01T00:00:00+02:00", "TRUE", "1,5", "01/02/03"],
    }
    table, path = TABLE, tmp_path / f"ids{ending}"
    for name, values in cells.items():
        table = table.append_column(name, [(values * N)[:N]])
    delimiter = "\t" if ending == ".tsv" else ","
    with pa.output_stream(path) as stream:  # compresses by the ending
        write_csv(table, stream, WriteOptions(delimiter=delimiter))
    carried = [each for name in (*cells, "amount") for each in ("--column", name)]
    ranked = list(csv.DictReader(run("rank", path, "--model", model, *carried).splitlines()))
    assert len(ranked) == N
    for line in ranked:
        for name, values in cells.items():
            assert line[name] == values[(int(line["row"]) - 1) % 4]
        assert float(line["amount"]) == AMOUNT[int(line["row"]) - 1]  # a feature, too


def test_bytes_are_carried_along_if_they_are_text(model, tmp_path):
    path = tmp_path / "tagged.parquet"
    for kind in (pa.binary(), pa.large_binary(), pa.binary(3)):
        tags = pa.array([b"abc"] * (N - 1) + [b"ab\xff"], kind)
        table = TABLE.append_column("text", [pa.array([b"abc"] * N, kind)])
        parquet.write_table(table.append_column("hash", [tags]), path)
        first = run("rank", path, "--model", model, "--column", "text", "--top", 1).splitlines()[1]
        assert first.endswith('"abc"')
        with pytest.raises(InputError, match=r"column 'hash' is of type .*binary.*Leave it out"):
            run("rank", path, "--model", model, "--column", "hash")


def test_a_column_of_lists_is_not_carried_along(model, tmp_path):
    path = tmp_path / "tagged.parquet"
    parquet.write_table(TABLE.append_column("tags", [[["new"]] * N]), path)
    with pytest.raises(InputError, match=r"column 'tags' is of type list.*Leave it out"):
        run("rank", path, "--model", model, "--column", "tags")


def test_the_row_of_a_bad_csv_file_is_named(tmp_path):
    path, rows = tmp_path / "t.csv", ["a,1"] * 300_000
    rows[250_000] = "a,1,2"
    path.write_text("\n".join(["x,y", *rows]))
    with pytest.raises(InputError, match="row 250001: has 3 cells, expected 2"):
        run("fit", path, "--label", "y", "--model", tmp_path / "m")
    for text, line in (("x,y\nb,1\né,2\n", 3), ("é,y\nb,1\nc,2\n", 1)):
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(InputError, match=f"line {line} is not valid UTF-8"):
            run("fit", path, "--label", "y", "--model", tmp_path / "m")


def test_a_null_among_texts_is_a_value_as_an_empty_cell_is(tmp_path):
    rng = np.random.default_rng(0)
    group = [str(each) for each in rng.choice(["a", "b", ""], 200)]
    columns = {"x": rng.normal(size=200), "y": rng.integers(0, 2, 200)}
    write_csv(pa.table(columns | {"g": group}), tmp_path / "rows.csv")
    null = pa.table(columns | {"g": [each or None for each in group]})
    parquet.write_table(null, tmp_path / "rows.parquet")
    fitted, measured = [], set()
    for file in ("rows.csv", "rows.parquet"):
        model = tmp_path / f"of-{file}"
        given = (tmp_path / file, "--label", "y", "--model", model, "--beta", "1", "--json")
        fitted.append(json.loads(run("fit", *given))["auc"])
        assert Ranker.load(model).encoder.names == ["x", "g=", "g=a", "g=b"]
        for other in ("rows.csv", "rows.parquet"):
            found = run("evaluate", tmp_path / other, "--model", model, "--json")
            measured.add(str(json.loads(found)["auc"]))
    assert fitted[0] == fitted[1]
    assert len(measured) == 1


def test_files_with_too_few_rows_are_named(tmp_path):
    rows = pa.table({"x": RNG.normal(size=60), "y": np.arange(60) % 2})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    parquet.write_table(rows.take([0, 1, 2, 4]), tmp_path / "few.parquet")
    model = tmp_path / "model"
    run("fit", tmp_path / "rows.parquet", "--label", "y", "--model", model, "--beta", "1")
    with pytest.raises(InputError, match=r"few\.parquet: 1 of 4 rows are '1', and measures take"):
        run("evaluate", tmp_path / "few.parquet", "--model", model)
    (tmp_path / "none.libsvm").write_text("")
    with pytest.raises(InputError, match=r"none\.libsvm: holds no rows"):
        run("fit", tmp_path / "none.libsvm", "--model", tmp_path / "other")


def test_an_unknown_solver_is_named_before_the_table_is_read_and_help_names_all(tmp_path):
    with pytest.raises(InputError, match="solver is 'magic'"):
        run("fit", tmp_path / "none.csv", "--model", tmp_path / "m", "--solver", "magic")
    said = " ".join(CliRunner().invoke(app, ["auc", "fit", "--help"]).stdout.split())
    assert [name for name in SOLVERS if not re.search(rf"\b{name}\b", said)] == []
