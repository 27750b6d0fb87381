"""A ranker for tables: what measures it, and what is kept."""

from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from telic.auc.compare import at_most
from telic.auc.table_columns import Encoder, read_table
from telic.auc.table_ranker import Labelled, Ranker, fit_measured, search_beta
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
    with pytest.raises(InputError, match="fewer than ten rows"):
        fit_measured(few, label=None)


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
    table, X = kept.read(named)
    assert (table.num_rows, X.shape) == (4, (4, 3))
    for text, message in (
        ("a,label\n1,0\n", "no column 'b', which the model was fitted with"),
        ("a,b,label\nsome,x,0\n", "column 'a' is of type string, expected numbers"),
    ):
        named.write_text(text)
        with pytest.raises(InputError, match=message):
            kept.read(named)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": [f"n{i}" for i in range(1001)]}, "'name' has 1001 categories, at most 1000"),
        ({"label": list(range(3))}, "no column is left to learn from"),
        ({"day": [date(2026, 1, 1)]}, "column 'day' is of type date32.*, expected numbers or text"),
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
    found = search_beta(Labelled(1e4 * X, positive, None, "yes", []), scaling="raw")
    assert found == pytest.approx(1e8 * at_one)
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
