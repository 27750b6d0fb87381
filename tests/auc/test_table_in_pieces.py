"""What a table in pieces is refused for, and which labels it takes; tests/scale fits it."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.auc.file_design import FileDesign
from telic.auc.partitioned import exact_in_pieces, moments_of
from telic.auc.passes import cg_in_pieces, spam_in_pieces
from telic.auc.table_in_pieces import design_of
from telic.errors import InputError


@pytest.mark.parametrize(
    ("names", "columns", "options", "message"),
    [
        ("xxy", [[1.0], [2.0], [1]], {}, "column 'x' comes more than once"),
        ("xyy", [[1.0], [0], [1]], {}, "column 'y' comes more than once"),
        ("xy", [[1.0], [[1]]], {}, "column 'y' is of type list<.*>, expected labels"),
        ("xy", [[1.0, 2.0], [0, 1]], {"drop": ["x"]}, "no column of numbers is left to learn from"),
        ("y", [[0, 1]], {}, "no column of numbers is left to learn from"),
        ("xy", [np.empty(0), []], {}, "holds no rows, only the columns' names"),
    ],
)
def test_tables_that_cannot_be_fitted_in_pieces_are_refused(
    names, columns, options, message, tmp_path
):
    table = pa.table([pa.array(column) for column in columns], names=list(names))
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=message):
        design_of(tmp_path / "rows.parquet", label="y", **options)


def test_labels_may_be_times_in_any_zone(tmp_path):
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 7, 1, tzinfo=UTC)
    labels = pa.array([early, late, late] * 10, pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"x": [3.0, 1.0, 2.0] * 10, "y": labels}), tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").rename(tmp_path / "ROWS.PARQUET")  # as a fit in memory takes it
    design, chosen = design_of(tmp_path / "ROWS.PARQUET", label="y")
    assert chosen == "2026-01-01 01:00:00+01:00"
    (_, positive), = design.blocks(0, 3)  # fmt: skip
    assert positive.tolist() == [True, False, False]


def test_booleans_are_numbers_and_a_missing_one_is_named(tmp_path):
    flags = pa.array([True, False, True] * 10)
    table = pa.table({"x": [3.0, 1.0, 2.0] * 10, "flag": flags, "y": [1, 0, 0] * 10})
    pq.write_table(table, tmp_path / "rows.parquet")
    design, _ = design_of(tmp_path / "rows.parquet", label="y")
    assert design == FileDesign.open(tmp_path / "rows.parquet", "y")
    (X, _), = design.blocks(0, 3)  # fmt: skip
    assert X.tolist() == [[3, 1], [1, 0], [2, 1]]

    without = table.set_column(1, "flag", pa.array([True, None, False] * 10))
    pq.write_table(without, tmp_path / "rows.parquet")
    design = FileDesign.open(tmp_path / "rows.parquet", "y")
    with pytest.raises(InputError, match="row 2, column 'flag': missing or no number"):
        list(design.blocks(0, 3))


def test_a_class_of_nine_rows_is_too_small_to_measure_a_model(tmp_path):
    table = pa.table({"x": range(40), "y": [1] * 9 + [0] * 31})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="9 rows are labelled 1 and 31 are not; fewer than ten"):
        design_of(tmp_path / "rows.parquet", label="y")


def test_rows_of_a_table_are_counted_from_1(tmp_path):
    table = pa.table({"x": [1.0, np.nan, 3.0], "y": [0, 1, 1]})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.parquet: row 2, column 'x': missing"):
        moments_of(FileDesign.open(tmp_path / "rows.parquet", "y"))


@pytest.mark.parametrize("labels", [[0.0, 1.0, np.nan], [0, 1, None], ["0", "1", None]])
def test_a_row_without_a_label_is_not_negative(labels, tmp_path):
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": labels}), tmp_path / "rows.parquet")
    design = FileDesign.open(tmp_path / "rows.parquet", "y")
    with pytest.raises(InputError, match="labels of 'y' are missing"):
        moments_of(design)


@pytest.mark.parametrize("kind", [complex, "datetime64[D]", "U9", [("a", float)]])
def test_an_array_of_other_than_real_numbers_is_refused(kind, tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((3, 2), kind))
    np.save(tmp_path / "y.npy", np.array([0, 1, 1]))
    with pytest.raises(InputError, match="expected real numbers"):
        FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")


@pytest.mark.parametrize(
    ("fit", "options", "message"),
    [
        (exact_in_pieces, {"max_passes": 0}, "max_passes is 0, expected a whole number >= 1"),
        (exact_in_pieces, {"tol": -1}, "tol is -1, expected a finite number >= 0"),
        (cg_in_pieces, {"max_passes": 0}, "max_passes is 0, expected a whole number >= 1"),
        (cg_in_pieces, {"tol": np.nan}, "tol is nan, expected a finite number >= 0"),
        (spam_in_pieces, {"max_passes": 0}, "max_passes is 0, expected a whole number >= 1"),
        (spam_in_pieces, {"max_passes": 1.5}, "max_passes is 1.5, expected a whole number >= 1"),
        (spam_in_pieces, {"step_size": -1}, "step_size is -1, expected a finite number > 0"),
    ],
)
def test_settings_of_a_fit_in_pieces_are_checked_as_those_in_memory(
    fit, options, message, tmp_path
):
    pq.write_table(pa.table({"x": [1.0, 2.0], "y": [0, 1]}), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=message):
        fit(FileDesign.open(tmp_path / "rows.parquet", "y"), **options)
