import errno
import os

import pytest

from telic.data import atomic_path, check_output, save_model
from telic.data.own_outputs import remember
from telic.errors import InputError


@pytest.fixture
def page(tmp_path):
    with atomic_path(tmp_path / "page.html") as temporary:
        temporary.write_text("<p>")
    return tmp_path / "page.html"


@pytest.fixture
def model(tmp_path):
    save_model(tmp_path / "model", kind="toy", meta={}, arrays={})
    return tmp_path / "model"


def test_a_new_path_may_be_written(tmp_path):
    check_output(tmp_path / "new", reads=[tmp_path / "other", None])


def test_what_telic_wrote_is_replaced_if_asked_for(page, model):
    for path in (page, model):
        with pytest.raises(InputError, match=r"exists already.*pass --overwrite"):
            check_output(path)
        check_output(path, overwrite=True)


def test_a_folder_that_is_not_there_is_named_before_any_work(tmp_path):
    with pytest.raises(InputError, match=r"its folder .*no does not exist"):
        check_output(tmp_path / "no" / "new")


def test_a_file_may_be_replaced_beside_a_folder_that_is_read(page, model):
    check_output(page, reads=[model], overwrite=True)


@pytest.mark.parametrize("link", [False, True])
def test_a_folder_of_which_one_file_was_changed_is_not(model, link):
    part = next(iter(model.glob("manifest*")))
    content = part.read_text()
    part.write_text(content.replace("toy", "coy"))
    if link:  # to the same content
        part.write_text(content)
        part.symlink_to(part.rename(model.with_name("elsewhere")))
    with pytest.raises(InputError, match="telic did not write this folder"):
        check_output(model, overwrite=True)


def test_what_was_changed_since_is_not(page, model):
    page.write_text("<p>my notes")
    (model / "README").write_text("keep me")
    for path in (page, model):
        with pytest.raises(InputError, match=r"telic did not write this .* is not overwritten"):
            check_output(path, overwrite=True)
    with pytest.raises(InputError, match="telic did not write this folder"):
        save_model(model, kind="toy", meta={}, arrays={})
    assert (model / "README").read_text() == "keep me"


def test_what_somebody_else_wrote_is_not(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years")
    (tmp_path / "notes.txt").write_text("years")
    for name in ("thesis", "notes.txt"):
        with pytest.raises(InputError, match="telic did not write"):
            check_output(tmp_path / name, overwrite=True)
    with pytest.raises(InputError, match="telic did not write"), atomic_path(tmp_path / "thesis"):
        pass


def test_a_link_is_never_replaced(page, tmp_path):
    for name, there in (("link", page), ("dangling", tmp_path / "nowhere")):
        (tmp_path / name).symlink_to(there)
        with pytest.raises(InputError, match="exists already"):
            check_output(tmp_path / name)
        with pytest.raises(InputError, match="telic did not write"):
            check_output(tmp_path / name, overwrite=True)


def test_a_renamed_folder_is_still_telics(model):
    check_output(model.rename(model.with_name("renamed")), overwrite=True)


def test_a_file_never_takes_a_folders_place_nor_a_folder_a_files(page, model):
    with pytest.raises(InputError, match="is a folder"), atomic_path(model) as temporary:
        temporary.write_text("x")
    with pytest.raises(InputError, match="is a file"), atomic_path(page) as temporary:
        temporary.mkdir()
    assert page.read_text() == "<p>"
    assert (model / "manifest.json").is_file()


def spellings(read, folder):
    """Ways to name an input, or a place in it or around it."""
    (folder / "symlink").symlink_to(read)
    (folder / "sub").mkdir()
    yield read
    yield folder / "sub" / ".." / read.name
    yield os.path.relpath(read)
    yield folder / "symlink"
    yield read.parent
    if read.is_dir():
        yield read / "new"
        yield folder / "symlink" / "new"
        part = next(iter(read.iterdir()))
        os.link(part, folder / "hard")
        yield folder / "hard"
    else:
        os.link(read, folder / "hard")
        yield folder / "hard"


@pytest.mark.parametrize("kind", ["page", "model"])
def test_what_is_read_is_not_written_however_it_is_named(kind, request, tmp_path):
    read = request.getfixturevalue(kind)
    for out in spellings(read, tmp_path):
        with pytest.raises(InputError, match="is read by this command"):
            check_output(out, reads=[read], overwrite=True)
    # Nor if the input is named by a link.
    with pytest.raises(InputError, match="is read by this command"):
        check_output(read, reads=[tmp_path / "symlink"], overwrite=True)


def test_a_damaged_record_says_nothing(page, tmp_path):
    (tmp_path / ".telic-written.json").write_text("[")
    with pytest.raises(InputError, match="telic did not write"):
        check_output(page, overwrite=True)


def test_a_record_for_which_there_is_no_room_leaves_nothing_half_written(page, monkeypatch):
    def full(one, other):
        raise OSError(errno.ENOSPC, "full")

    before = sorted(page.parent.iterdir())
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="full"):
        remember(page)
    assert sorted(page.parent.iterdir()) == before
