import os
from functools import partial

import numpy as np
import pytest

from telic.errors import InputError
from telic.report import Table
from telic.study.steps import Steps

MADE = []


def make(*, size, seed=0):
    MADE.append((size, seed))
    return {"draws": np.arange(size) + seed, "table": Table("t", {"a": ".1f"}, [[0.5], [None]])}


@pytest.fixture(autouse=True)
def nothing_made():
    MADE.clear()


def test_a_finished_step_is_read_and_not_made_again(tmp_path):
    begun = []
    for _ in range(2):
        steps = Steps(tmp_path / "work", begun.append)
        assert steps("One: two", make, size=2)["draws"] == [0, 1]
    assert MADE == [(2, 0)]
    assert begun == ["One: two"] * 2
    assert [p.name[:8] for p in (tmp_path / "work").iterdir() if p.suffix == ".json"][:1]
    assert steps("One: two", make, size=2, seed=1)["draws"] == [1, 2]  # other settings
    assert MADE == [(2, 0), (2, 1)]


def test_what_is_kept_is_what_a_study_without_a_folder_works_with(tmp_path):
    kept, fresh = Steps(tmp_path)("s", make, size=2), Steps()("s", make, size=2)
    assert kept == fresh == Steps(tmp_path)("s", make, size=2)
    assert kept["table"] == Table("t", {"a": ".1f"}, [[0.5], [None]])


def count_lines(*, file):
    return len(file.read_text().splitlines())


def test_a_file_that_was_changed_is_read_again(tmp_path):
    file, steps = tmp_path / "catalogue.csv", Steps(tmp_path / "work")
    file.write_text("a")
    assert steps("lines", count_lines, file=file) == 1
    changed = file.stat().st_mtime_ns
    file.write_text("a\nb")
    os.utime(file, ns=(changed, changed))
    assert steps("lines", count_lines, file=file) == 2


def test_what_a_file_or_a_folder_holds_counts_wherever_it_lies(tmp_path):
    steps = Steps(tmp_path / "work")
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "catalogue.csv").write_text("a\nb")
        os.utime(tmp_path / place / "catalogue.csv", ns=(len(place), len(place)))
        assert steps("lines", count_lines, file=tmp_path / place / "catalogue.csv") == 2
        assert steps("files", count_files, folder=tmp_path / place) == 3
    assert (steps.made, steps.taken) == (2, 2)
    (tmp_path / "there" / "catalogue.csv").rename(tmp_path / "there" / "other.csv")
    assert steps("files", count_files, folder=tmp_path / "there") == 3
    assert steps.made == 3


def count_files(*, folder):
    return sum(len(file.read_text()) for file in folder.iterdir())


def test_a_folder_with_a_file_that_was_changed_is_read_again(tmp_path):
    folder, steps = tmp_path / "data", Steps(tmp_path / "work")
    folder.mkdir()
    for size, name in ((1, "a"), (3, "a"), (6, "b")):
        (folder / name).write_text("x" * min(size, 3))
        os.utime(folder / name, ns=(size, size))
        for _ in range(2):
            assert steps("size", count_files, folder=folder) == size
    assert (steps.made, steps.taken) == (3, 3)


def test_a_step_that_fails_leaves_nothing(tmp_path):
    def broken():
        return [object()]

    with pytest.raises(TypeError, match="object"):
        Steps(tmp_path)("s", broken)
    assert not [p for p in tmp_path.iterdir() if p.suffix == ".json" and p.name[0] != "."]


def test_a_file_is_no_folder_for_steps(tmp_path):
    (tmp_path / "work").write_text("")
    with pytest.raises(InputError, match="is a file"):
        Steps(tmp_path / "work")


def test_a_folder_of_something_else_is_not_written_to(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(InputError, match="holds other files, and no finished step of a study"):
        Steps(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    work = tmp_path / "work"
    Steps(work)("a step", make, size=2)
    assert Steps(work)("a step", make, size=2)["draws"] == [0, 1]


def test_what_is_bound_beforehand_does_not_tell_steps_apart(tmp_path):
    steps = Steps(tmp_path)
    assert steps("n", partial(make, seed=1), size=2)["draws"] == [1, 2]
    assert steps("n", partial(make, seed=2), size=2)["draws"] == [1, 2]


@pytest.mark.parametrize("left", ['{"a": [1, 2', "", "\n"])
def test_a_step_whose_file_was_cut_is_named(left, tmp_path):
    Steps(tmp_path)("one", make, size=2)
    (file,) = tmp_path.glob("one-*.json")
    file.write_text(left)
    with pytest.raises(InputError, match=rf"{file.name}.*Delete it"):
        Steps(tmp_path)("one", make, size=2)
