import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from telic.data import atomic_path, refuse_unwritable
from telic.errors import InputError


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")

    def write_half():
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert target.read_text() == "old"


def write_folder(target, name):
    with atomic_path(target) as temporary:
        temporary.mkdir()
        (temporary / name).touch()


def test_a_folder_takes_the_place_of_one_that_was_written_before(tmp_path, monkeypatch):
    for name in ("first", "second"):
        write_folder(tmp_path / "model", name)
        assert [file.name for file in (tmp_path / "model").iterdir()] == [name]
    before = sorted(tmp_path.iterdir())

    def interrupted(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "model", "third")
    assert [file.name for file in (tmp_path / "model").iterdir()] == ["second"]
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "new", "first")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("names", [["one", "two", "three", "four"], ["same"] * 4])
def test_those_who_write_into_a_folder_at_once_do_not_lose_each_others_record(tmp_path, names):
    """A folder that is not in the record cannot be replaced again."""

    def write(name):
        for i in range(15):
            write_folder(tmp_path / name, str(i))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, names))
    for name in names:
        assert [file.name for file in (tmp_path / name).iterdir()] == ["14"]
        write_folder(tmp_path / name, "14")
    assert {path.name for path in tmp_path.iterdir()} == {*names, ".telic-written.json"}


def test_a_file_never_replaces_a_folder(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").touch()
    with (
        pytest.raises(InputError, match="telic did not write this folder"),
        atomic_path(tmp_path / "precious") as file,
    ):
        file.write_text("new")
    assert [path.name for path in tmp_path.rglob("*")] == ["precious", "thesis.tex"]


def test_a_folder_that_takes_no_files_is_named():
    if not Path("/proc/self").is_dir():
        pytest.skip("needs Linux's /proc, where not even root can write a file")
    with pytest.raises(InputError, match="/proc/model"), atomic_path("/proc/model"):
        pass


def test_a_folder_that_may_not_be_written_to_is_named_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)  # root may write anywhere
    with pytest.raises(InputError, match="may not be written to"):
        refuse_unwritable(tmp_path / "file")


def test_a_missing_parent_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"), atomic_path(tmp_path / "no" / "file"):
        pass


@pytest.mark.parametrize("named", [True, False])
def test_a_full_disk_is_told_with_the_name_that_was_asked_for(tmp_path, named):
    with pytest.raises(OSError, match="No space") as told, atomic_path(tmp_path / "out") as file:
        raise OSError(errno.ENOSPC, "in other words", *([str(file)] if named else []))
    assert told.value.filename == str(tmp_path / "out")
    assert not list(tmp_path.iterdir())
