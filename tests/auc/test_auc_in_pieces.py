"""The exact AUC of rows in files, against its definition; tests/scale runs it on every executor."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from telic.auc.file_design import FileDesign
from telic.auc.partitioned import _wins, auc_in_pieces
from telic.auc.passes import spam_in_pieces
from telic.errors import JobError
from telic.evaluate.classification import roc_auc
from telic.scale import Local


@pytest.mark.parametrize("levels", [2, 9, 400, 10**9])
def test_the_auc_of_files_is_that_of_rows_in_memory(tmp_path, levels):
    rng = np.random.default_rng(levels)
    X = rng.integers(0, levels, (300_000, 1)).astype(float) / 7
    y = (rng.random(len(X)) < 0.1 + 0.3 * (X[:, 0] > levels / 15)).astype(int)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    for memory in ("64MiB", "1GiB"):
        found = auc_in_pieces(
            design, np.array([-2.0]), out=tmp_path / memory, executor=Local(memory=memory)
        )
        assert found == roc_auc(y, -2.0 * X[:, 0])
    assert len(list((tmp_path / "64MiB" / "scores").glob("*/sample.npy"))) > 1


def held(folder, positive, negative):
    """Write distinct scores of a piece and how many rows have each."""
    folder.mkdir()
    for name, pairs in (("positive", positive), ("negative", negative)):
        np.save(folder / f"{name}.npy", np.array([value for value, _ in pairs], float))
        np.save(folder / f"{name}-counts.npy", np.array([count for _, count in pairs], np.int64))
    return folder


def test_wins_are_counted_beyond_63_bits_and_from_minus_infinity_on(tmp_path):
    many = 2**40
    one = held(tmp_path / "one", [(1.0, many)], [(0.0, many), (-np.inf, 1)][::-1])
    two = held(tmp_path / "two", [(-np.inf, 2)], [(0.0, many), (1.0, many)])
    # All of `one`'s positives win against 2 · many + 1 and tie with many; two more tie with one.
    twice = many * (2 * (2 * many + 1) + many) + 2
    assert _wins([one, two], (-np.inf, np.inf)) == (many + 2, 3 * many + 1, twice)
    assert _wins([one, two], (0.0, np.inf)) == (many, many, many * many)


def test_a_score_that_is_no_number_is_named(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[1.0, 1.0], [2.0, 1.0]]))
    np.save(tmp_path / "y.npy", np.array([0, 1]))
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    with pytest.raises(JobError, match="a score is no number"):
        auc_in_pieces(design, np.array([np.nan, 1.0]), out=tmp_path / "out")


@pytest.mark.filterwarnings("ignore:overflow")
def test_scores_of_minus_infinity_are_counted_once(tmp_path):
    # So many that ranges of scores are cut there. (The tasks' threads warn of the overflow.)
    rng = np.random.default_rng(0)
    X = np.repeat([-100.0, 0.0, 1.0, 100.0], 6000)[:, None]
    y = rng.integers(0, 2, len(X))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    design = FileDesign.open(tmp_path / "X.npy", tmp_path / "y.npy")
    executor = Local(piece="1MiB", threads=1)
    found = auc_in_pieces(design, np.array([5e307]), out=tmp_path / "out", executor=executor)
    assert found == roc_auc(y, np.clip(X[:, 0], -2, 2))


def test_an_empty_row_group_at_the_end_is_no_group_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("telic.auc.file_design.NUMBERS", 1)
    table = pa.table({"x": np.arange(9000.0) / 9000, "y": np.arange(9000) % 7 // 6})
    with pq.ParquetWriter(tmp_path / "rows.parquet", table.schema) as file:
        file.write_table(table)
        file.write_table(table.slice(0, 0))
    assert pq.read_metadata(tmp_path / "rows.parquet").num_row_groups == 2
    design = FileDesign.open(tmp_path / "rows.parquet", "y")
    assert [(part.start, part.stop) for part in design.groups()] == [(0, 9000)]
    assert spam_in_pieces(design, seed=0, max_passes=2).coef.shape == (1,)
