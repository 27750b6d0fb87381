import numpy as np
import pytest

from telic.data.data_sets import data_folder, labelled_set
from telic.errors import InputError


def test_a_labelled_set_is_read_from_where_it_is_said_to_lie(tmp_path, monkeypatch):
    monkeypatch.setenv("TELIC_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    given = tmp_path / "given"
    with pytest.raises(InputError, match=r"given: no such folder. Expected one that holds ml"):
        data_folder(given)
    given.mkdir()
    assert data_folder(given) == given
    with pytest.raises(InputError, match=r"toy.npz not found. Set TELIC_DATA"):
        labelled_set("toy")
    (tmp_path / "ml").mkdir()
    parts = {"data": [1, 2], "indices": [0, 2], "indptr": [0, 1, 2], "shape": [2, 3]}
    np.savez(tmp_path / "ml" / "toy.npz", y=[-1, 1], **parts)
    found = labelled_set("toy")
    assert found.X.toarray().tolist() == [[1, 0, 0], [0, 0, 2]]
    assert (found.y.tolist(), found.classes) == ([-1, 1], None)
    np.savez(tmp_path / "ml" / "toy.npz", y=[-1, 1], y_raw=["a", "b"], **parts)
    assert labelled_set("toy", tmp_path).classes.tolist() == ["a", "b"]
