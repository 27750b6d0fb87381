"""A ranker for tables: what measures it, and what is kept."""

from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from telic.auc.compare import at_most, compare_rankers
from telic.auc.table_columns import Encoder, read_table
from telic.auc.table_ranker import Labelled, Ranker, fit_measured, read_labelled, search_beta
from telic.errors import InputError


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    positive = X[:, 0] + rng.normal(size=200) > 1
    return Labelled(X, positive, None, "yes", ["a", "b", "c"])


def test_a_ranker_is_measured_without_the_rows_held_out_and_kept_with_all(rows):
    options = {"solver": "exact", "penalty": "l2", "beta1": 0.0, "threshold": "prior"}
    ranker, positive, scores = fit_measured(rows, label=None, beta=0.1, test=0.3, **options)
    assert positive.size == scores.size == 60
    every = Ranker.fit(rows, scaling="standard", label=None, beta=0.1, random_state=0, **options)
    np.testing.assert_array_equal(ranker.coef, every.coef)
    of_all = ranker.score(rows.X)
    assert not np.isin(scores.round(9), of_all.round(9)).any()
    assert ranker.features()[0][0] == "a"
    chosen, *_ = fit_measured(rows, label=None, **options)
    assert chosen.parameters["beta"] != 0.1
    assert "beta1" not in chosen.settings()  # which plays no part with l2


def test_too_few_rows_of_a_class_are_refused(rows):
    few = Labelled(rows.X, np.arange(200) < 9, None, "yes", rows.names)
    with pytest.raises(
        InputError, match=r"9 rows are labelled yes and 191 are not; fewer than ten"
    ):
        fit_measured(few, label=None)
    with pytest.raises(InputError, match="fewer than ten rows"):
        compare_rankers("few", few)


def test_a_part_of_the_rows_keeps_the_shares_of_the_classes(rows):
    chosen, every = np.arange(40, 200), np.arange(200) % 5 == 0
    part = at_most(chosen, every, 50)
    assert (len(set(part)), every[part].sum()) == (50, 10)
    assert set(part) <= set(chosen)
    for most in (160, 500, None):
        assert at_most(chosen, every, most) is chosen


def test_a_ranker_refuses_other_tables_than_it_was_fitted_to(rows, tmp_path):
    named = tmp_path / "rows.csv"
    named.write_text("a,b,label\n1,x,0\n2,y,1\n3,x,1\n0,y,0\n")
    plain = tmp_path / "rows.libsvm"
    plain.write_text("1 1:1 2:1 3:1 4:1\n0 1:2\n")
    options = {"scaling": "raw", "label": None, "beta": 0.1}
    ranker = Ranker.fit(rows, **options)
    with pytest.raises(InputError, match="4 columns, the model was fitted with 3"):
        ranker.read(plain)
    with pytest.raises(InputError, match="was fitted to a libsvm file, give one"):
        ranker.read(named)
    encoder = Encoder.fit(csv.read_csv(named), leave_out={"label"}, one_hot=set(), path=named)
    kept = replace(ranker, encoder=encoder)
    with pytest.raises(InputError, match="was fitted to a table with named columns"):
        kept.read(plain)
    # Nor are rows of another kind measured: their columns are others than the model's.
    with pytest.raises(InputError, match="was fitted to a table with named columns"):
        read_labelled(plain, label="label", encoder=encoder, width=3)
    with pytest.raises(InputError, match="was fitted to a libsvm file, give one"):
        read_labelled(named, label=None, width=3)
    table, X = kept.read(named)
    assert (table.num_rows, X.shape) == (4, (4, 3))
    for text, message in (
        ("a,label\n1,0\n", "no column 'b', which the model was fitted with"),
        ("a,b,label\nsome,x,0\n", "row 1: 'a' is 'some', expected a number as in training"),
    ):
        named.write_text(text)
        with pytest.raises(InputError, match=message):
            kept.read(named)


@pytest.mark.parametrize("options", [{"drop": ["2"]}, {"one_hot": ["2"]}])
def test_columns_without_names_cannot_be_chosen(options, tmp_path):
    (tmp_path / "rows.libsvm").write_text("1 1:1 2:1\n0 1:2\n")
    with pytest.raises(InputError, match=r"columns of a libsvm file have no names for --drop"):
        read_labelled(tmp_path / "rows.libsvm", label=None, **options)


def test_categories_that_the_model_was_not_fitted_with_are_told_without_their_names():
    known = pa.table({"land": ["NL", "DE"], "x": [1, 2], "shop": ["a", "b"]})
    encoder = Encoder.fit(known, leave_out=set(), one_hot=set(), path="old.csv")
    assert encoder.apply(known, "old.csv").sum() == 7.0
    new = pa.table({"land": ["NL", "Ann", "Bo"], "x": [0, 0, 0], "shop": ["a", "a", "c"]})
    told = (
        r"new.csv: of 3 rows some .*: 'land' in 2 \(the first is row 2\), 'shop' in 1 "
        r"\(the first is row 3\)\. "
    )
    with pytest.warns(UserWarning, match=told) as warned:
        assert encoder.apply(new, "new.csv").tolist()[1:] == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]
    assert len(warned) == 1
    assert "Ann" not in str(warned[0].message)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": [f"n{i}" for i in range(1001)]}, "'name' has 1001 categories, at most 1000"),
        ({"label": list(range(3))}, "no column is left to learn from"),
        ({"day": [date(2026, 1, 1)]}, "column 'day' holds dates.*--drop day"),
    ],
)
def test_columns_that_cannot_be_encoded_are_named(columns, message):
    with pytest.raises(InputError, match=f"rows.csv: .*{message}"):
        Encoder.fit(
            pa.table(columns), leave_out={"label"} & set(columns), one_hot=set(), path="rows.csv"
        )


def test_the_ridge_weight_is_looked_for_where_the_columns_need_it():
    """Columns 10⁴ times as large need 10⁸ times the weight for the same ranking."""
    rng = np.random.default_rng(4)
    positive = rng.random(120) < 0.2
    X = rng.normal(size=(120, 60)) + 0.3 * positive[:, None]
    at_one = search_beta(Labelled(X, positive, None, "yes", []), scaling="raw")
    for scale in (1e4, 1e-4):
        found = search_beta(Labelled(scale * X, positive, None, "yes", []), scaling="raw")
        assert found == pytest.approx(scale**2 * at_one)
    assert 0.01 <= at_one <= 10.0


def test_cross_validation_needs_two_rows_of_each_class(rows):
    few = Labelled(rows.X, np.arange(200) < 1, None, "yes", rows.names)
    with pytest.raises(InputError, match="two rows of each class; set --beta"):
        search_beta(few, scaling="raw")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 ٣:2", "line 2: expected 'label column:value …' in numbers: '1 ٣:2'"),
        ("1 1:٣", "line 2: expected 'label column:value …' in numbers: '1 1:٣'"),
        ("1 2147483648:1", "line 2: column 2147483648, expected at most 2147483647"),
        (f"1 {10**20}:1", f"line 2: column {10**20}, expected at most 2147483647"),
        ("1 2:1 2:1", "line 2: column 2, expected columns that count from 1 and grow"),
    ],
)
def test_a_line_of_libsvm_that_no_reader_takes_is_named(line, message, tmp_path):
    path = tmp_path / "rows.libsvm"
    path.write_text(f"0 1:1  # {line}\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"rows.libsvm: {message}"):
        read_table(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (".", None, "is a folder, expected a file"),
        ("none.csv", None, "none.csv: not found"),
        ("rows.doc", "a,b", "rows.doc: ending '.doc' is not known"),
        ("rows.parquet", "a,b", "rows.parquet: cannot be read"),
        ("rows.csv", "a,b\n1\n", "rows.csv: row 1: has 1 cells, expected 2"),
        ("rows.svm", "1 1:2\nnan 1:3\n", "row 2: the label is nan. Drop the row"),
        ("rows.txt", "1 1:2\n0 1:3 4:inf\n", "row 2, column 4: inf, expected a finite number"),
        ("rows.svm", "1 2:1 1:1\n", "column 1, expected columns that .*; the one before is 2"),
        ("rows.svm", "1 0:1\n", "column 0, expected columns that .*; the one before is none"),
    ],
)
def test_files_that_are_no_table_are_named(name, text, message, tmp_path):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_table(tmp_path / name)


def test_tables_of_every_ending_hold_the_same(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", "y"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    (tmp_path / "rows.TSV").write_text("a\tb\n1\tx\n2\ty\n")
    for name in ("rows.parquet", "rows.csv", "rows.TSV"):
        assert read_table(tmp_path / name).to_pydict() == table.to_pydict()
    (tmp_path / "rows.libsvm").write_text("1 1:2 3:4\n0 2:5\n")
    X, y = read_table(tmp_path / "rows.libsvm")
    assert (X.toarray().tolist(), y.tolist()) == ([[2, 0, 4], [0, 5, 0]], [1, 0])


def test_a_spreadsheets_semicolons_and_decimal_commas_are_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a;b;c;d\n1,5;x;7;1,2,3\n-2,25;y;8;4\n;;9;5\n")
    assert read_table(file).to_pydict() == {
        "a": [1.5, -2.25, None],
        "b": ["x", "y", ""],
        "c": [7, 8, 9],
        "d": ["1,2,3", "4", "5"],
    }
    file.write_text("a;b\n" + "".join(f"{i},5;1\n" for i in range(20)) + "oops;1\n")
    with pytest.raises(InputError, match="row 21: 'a' is 'oops', expected a number"):
        Encoder.fit(read_table(file), leave_out={"b"}, one_hot=set(), path=file)


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1.200", "900"], None),
        (["1,5", "1.200"], None),
        (["-3", "-1.200"], None),
        (["1.200", "0.5"], [1.2, 0.5]),
        (["1.200", "1.5e3"], [1.2, 1500.0]),
        (["1.200", "25.885"], None),
        (["0.125", "3"], [0.125, 3.0]),
        (["1.2000", "3"], [1.2, 3.0]),
        (["1200", "1,2"], [1200.0, 1.2]),
    ],
)
def test_a_point_that_may_part_thousands_is_refused(tmp_path, cells, read):
    file = tmp_path / "rows.csv"
    file.write_text("a;b\n" + "".join(f"{cell};{row}\n" for row, cell in enumerate(cells)))
    if read is not None:
        assert read_labelled(file, label="b").X.ravel().tolist() == read
        return
    row = next(n for n, cell in enumerate(cells, start=1) if "." in cell)
    with pytest.raises(InputError, match=rf"row {row}: 'a' is '-?1\.200': may be two numbers"):
        read_labelled(file, label="b")


def test_points_of_columns_that_nothing_is_learned_from_may_be_what_they_like(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a;b;y\n1,5;1.200;0\n2;7;1.000\n3;8;0\n")
    rows = read_labelled(file, label="y", drop=["b"])
    ranker = Ranker.fit(rows, scaling="raw", label="y", solver="exact", penalty="l2", beta=0.1)
    assert ranker.read(file)[1].tolist() == [[1.5], [2.0], [3.0]]
    assert read_labelled(file, label="y", encoder=rows.encoder).names == ["a"]
    file.write_text("a;y\n1.500;0\n2;1\n")
    with pytest.raises(InputError, match=r"row 1: 'a' is '1\.500': may be two numbers"):
        ranker.read(file)


def test_padded_cells_and_repeated_columns_of_a_spreadsheet_are_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a;x;x;b\n  1,5;1;2,5;0\n 2.5 ;2;3,5;1\n3;1;x;1\n")
    table = read_table(file)
    assert table["a"].to_pylist() == [1.5, 2.5, 3]
    encoder = Encoder.fit(table, leave_out={"x", "b"}, one_hot=set(), path=file)
    assert encoder.names == ["a"]
    with pytest.raises(InputError, match="column 'x' comes more than once"):
        Encoder.fit(table, leave_out={"b"}, one_hot=set(), path=file)
    file.write_text("a;b\n" + "".join(f"{i},5;1\n" for i in range(20)) + "1_000;1\n")
    with pytest.raises(InputError, match="row 21: 'a' is '1_000', expected a number"):
        Encoder.fit(read_table(file), leave_out={"b"}, one_hot=set(), path=file)


def test_categories_of_a_data_frame_are_texts_or_numbers_as_others(tmp_path):
    table = pa.table({"land": ["NL", "DE", "NL"], "size": [1, 2, 1], "y": [0, 1, 0]})
    kept = pa.table(
        {name: table[name].combine_chunks().dictionary_encode() for name in table.column_names}
    )
    seen = table.set_column(0, "land", table["land"].cast(pa.string_view()))
    read = {}
    for name, held in (("plain", table), ("kept", kept), ("seen", seen)):
        parquet.write_table(held, tmp_path / f"{name}.parquet")
        read[name] = read_labelled(tmp_path / f"{name}.parquet", label="y")
        assert read[name].names == ["land=DE", "land=NL", "size"]
        np.testing.assert_array_equal(read[name].X, read["plain"].X)


def test_labels_that_are_bytes_are_named_as_text(tmp_path):
    table = pa.table({"a": [1.0, 2.0, 3.0], "y": [b"n", b"y", b"n"]})
    parquet.write_table(table, tmp_path / "rows.parquet")
    for positive in (None, "y"):
        rows = read_labelled(tmp_path / "rows.parquet", label="y", positive=positive)
        assert rows.positive_label == "y"
        assert rows.positive.tolist() == [False, True, False]


def test_whole_numbers_beyond_those_of_floats_are_rounded():
    table = pa.table({"a": [2**60 + 1, -5], "b": pa.array([2**64 - 1, 1], pa.uint64())})
    encoder = Encoder.fit(table, leave_out=set(), one_hot=set(), path="rows.parquet")
    assert encoder.apply(table, "rows.parquet").tolist() == [[2.0**60, 2.0**64], [-5, 1]]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1.0, 1.0, np.nan], "column 'y' holds NaN, expected two labels"),
        ([[1], [2], [1]], "column 'y' is of type list.*, expected labels"),
    ],
)
def test_labels_that_are_none_are_refused(labels, message, tmp_path):
    parquet.write_table(pa.table({"x": [1, 2, 3], "y": labels}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=message):
        read_labelled(tmp_path / "rows.parquet", label="y")


def test_columns_become_numbers_and_categories():
    table = pa.table({"n": [1, 2], "flag": [True, False], "c": ["x", "y"], "label": [0, 1]})
    encoder = Encoder.fit(table, leave_out={"label"}, one_hot={"n"}, path="rows.csv")
    assert encoder.names == ["n=1", "n=2", "flag", "c=x", "c=y"]
    other = pa.table({"n": [2, 7], "flag": [True, True], "c": ["z", "x"]})
    with pytest.warns(UserWarning, match="'n' in 1 .*, 'c' in 1 "):
        assert encoder.apply(other, "rows.csv").tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0]]
    wide = pa.table({"c": [str(i) for i in range(501)]})
    columns = Encoder.fit(wide, leave_out=set(), one_hot={"c"}, path="rows.csv")
    assert columns.apply(wide, "rows.csv").nnz == 501  # too many to be kept dense
    few = Encoder.fit(wide[:500], leave_out=set(), one_hot={"c"}, path="rows.csv")
    with pytest.warns(UserWarning, match="the first is row 501"):
        assert few.apply(wide, "rows.csv").sum() == 500


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1.0, None, None]}, "row 2: 'a' is empty or reads NA .2 such cells.*--drop a"),
        ({"a": [1.0, np.inf, 2.0]}, "row 2: 'a' is inf, expected a finite number"),
        ({"a": [str(i) for i in range(19)] + ["?"]}, "row 20: 'a' is '.', expected a number as"),
        ({"b": [1.0]}, "no column 'a'"),
    ],
)
def test_cells_that_are_no_numbers_are_named(columns, message):
    table = pa.table(columns)

    def encoded():
        Encoder.fit(table, leave_out=set(), one_hot=set(), path="rows.csv")
        Encoder((("a", None),)).apply(table, "rows.csv")

    with pytest.raises(InputError, match=message):
        encoded()
    with pytest.raises(InputError, match="no column 'gone'"):
        Encoder.fit(table, leave_out={"gone"}, one_hot=set(), path="rows.csv")


@pytest.mark.parametrize(
    "cells", [["5%", "12.5 %"], ["1,234", "567"], ["$3", "-$4.50"], ["1,5", "2,25"], ["7", "8 €"]]
)
def test_numbers_with_a_mark_are_no_categories_in_silence(cells):
    table = pa.table({"a": cells})
    with pytest.raises(
        InputError, match=r"row \d: 'a' is .*expected a number as 1234\.5.*--one-hot a"
    ):
        Encoder.fit(table, leave_out=set(), one_hot=set(), path="rows.csv")
    assert len(Encoder.fit(table, leave_out=set(), one_hot={"a"}, path="rows.csv").names) == 2


@pytest.mark.parametrize(
    "cells",
    [
        ["5%", "few"],
        ["10.0.0.1", "10.0.0.2"],
        ["1.2.30", "1.3.31"],
        ["1-2", "3-4"],
        ["12-34-56", "20-41-32"],
        ["01-02-03 Oak Street", "02-02-03 Elm Street"],
    ],
)
def test_texts_that_are_no_numbers_stay_categories(cells):
    table = pa.table({"a": cells})
    assert len(Encoder.fit(table, leave_out=set(), one_hot=set(), path="rows.csv").names) == 2


@pytest.mark.parametrize(
    "cells",
    [
        ["31/12/2025", "1/3/2025"],
        ["3.4.2025 10:00", "30.4.2025 9:00"],
        ["2025/01/02", "2025/02/01"],
    ],
)
def test_texts_of_dates_are_no_categories_in_silence(cells):
    table = pa.table({"a": cells})
    with pytest.raises(InputError, match=r"column 'a' holds dates.*--drop a.*--one-hot a"):
        Encoder.fit(table, leave_out=set(), one_hot=set(), path="rows.csv")
    assert len(Encoder.fit(table, leave_out=set(), one_hot={"a"}, path="rows.csv").names) == 2
    days = pa.table({"a": np.array(["2025-01-02", "2025-02-01"], "datetime64[D]")})
    with pytest.raises(InputError, match=r"column 'a' holds dates"):
        Encoder.fit(days, leave_out=set(), one_hot=set(), path="rows.csv")
    some = pa.table({"a": [*cells, "later"]})
    assert len(Encoder.fit(some, leave_out=set(), one_hot=set(), path="rows.csv").names) == 3


def test_texts_that_differ_in_every_row_are_no_categories_in_silence():
    def names(ids, one_hot=()):
        table = pa.table({"a": ids})
        return Encoder.fit(table, leave_out=set(), one_hot=set(one_hot), path="rows.csv").names

    ids = [f"C{i}" for i in range(20)]
    with pytest.raises(
        InputError, match=r"column 'a' has another value in nearly each row.*--drop a"
    ):
        names(ids)
    with pytest.raises(InputError, match=r"column 'a' has another value in nearly each row"):
        names([*ids, "C0"])
    assert len(names(ids, "a")) == len(names([*ids, *ids[:5]])) == 20
    assert len(names(ids[:19])) == 19  # of so few rows nobody can tell


@pytest.mark.parametrize("mark", ["?", "-", " . "])
def test_a_mark_for_a_missing_number_makes_no_categories(mark):
    grades = pa.table({"a": ["1", mark, "2", mark]})
    with pytest.raises(InputError, match=r"row 2: 'a' is .*, expected a number as in the other"):
        Encoder.fit(grades, leave_out=set(), one_hot=set(), path="rows.csv")
    marks = pa.table({"a": [mark, "?", mark]})  # there is no number beside them
    assert Encoder.fit(marks, leave_out=set(), one_hot=set(), path="rows.csv").names


def test_columns_that_repeat_are_named_where_they_count(tmp_path):
    rows = [pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array([5.0, 6.0])]
    parquet.write_table(pa.Table.from_arrays(rows, ["a", "b", "a"]), tmp_path / "twice.parquet")
    table = read_table(tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="column 'a' comes more than once"):
        Encoder.fit(table, leave_out={"b"}, one_hot=set(), path="twice.parquet")
    found = Encoder.fit(table, leave_out={"a"}, one_hot=set(), path="twice.parquet")
    assert found.apply(table, "twice.parquet").tolist() == [[3.0], [4.0]]


def test_text_among_many_texts_is_a_category():
    """One in five that is no number is no mistake; nor is what --one-hot names."""
    texts = pa.table({"a": ["1", "2", "3", "4", "b"]})
    found = Encoder.fit(texts, leave_out=set(), one_hot=set(), path="rows.csv")
    assert found.names == ["a=1", "a=2", "a=3", "a=4", "a=b"]
    odd = pa.table({"a": [str(i) for i in range(19)] + ["?"]})
    assert len(Encoder.fit(odd, leave_out=set(), one_hot={"a"}, path="rows.csv").names) == 20


def test_nothing_is_searched_for_a_solver_without_beta():
    X = np.random.default_rng(0).normal(size=(60, 2))
    rows, told = Labelled(X, X[:, 0] > 1, None, "tall", ["height", "width"]), []
    for solver, times in (("solam", 0), ("spam", 9)):
        beta = search_beta(rows, scaling="standard", solver=solver, progress=told.append)
        assert (beta == 0) == (times == 0)
        assert len(told) >= times
    assert len(told) >= 9
