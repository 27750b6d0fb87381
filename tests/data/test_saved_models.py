import hashlib
import json
import os
import shutil
import time
from importlib.metadata import version

import numpy as np
import pytest

from telic.data import load_model, save_model, saved_models
from telic.data.own_outputs import CHECKED
from telic.data.saved_models import _checksum, written_by
from telic.errors import InputError, ModelError


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    save_model(
        folder,
        kind="toy",
        meta={"name": "naïve"},
        arrays={"w": np.arange(3.0)},
        mapped={"big": np.arange(10)},
    )
    return folder


def test_what_was_saved_comes_back(folder):
    meta, arrays = load_model(folder, kind="toy")
    assert meta == {"name": "naïve"}
    np.testing.assert_array_equal(arrays["w"], [0.0, 1.0, 2.0])
    assert isinstance(arrays["big"], np.memmap)


def test_a_folder_says_which_version_wrote_it(folder):
    assert written_by(folder) == f"telic {version('telic')}"
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["telic"], manifest["checksum"]
    file.write_text(json.dumps(manifest | {"checksum": saved_models._checksum(manifest)}))
    assert load_model(folder, kind="toy").meta == {"name": "naïve"}
    assert written_by(folder) == "an older telic"


@pytest.mark.parametrize("name", ["arrays.npz", "big.npy"])
def test_one_flipped_byte_is_found(folder, name):
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"{name}.*does not match the hash"):
        load_model(folder, kind="toy")


@pytest.fixture
def hashed(monkeypatch):
    """The names of the files that were hashed, of folders that were left alone for long enough."""
    names, hash_of = [], saved_models.hash_of
    monkeypatch.setattr(saved_models, "SETTLED", 0)
    monkeypatch.setattr(saved_models, "hash_of", lambda f: names.append(f.name) or hash_of(f))
    return names


def test_a_file_is_hashed_at_the_first_reading(folder, hashed):
    for verify, expected in ((False, 2), (False, 0), (True, 2), (False, 0)):
        hashed.clear()
        load_model(folder, kind="toy", verify=verify)
        assert len(hashed) == expected


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_changed_since_it_was_checked_is_hashed_again(folder, hashed, replaced):
    load_model(folder, kind="toy")
    part = folder / "big.npy"
    content, before = bytearray(part.read_bytes()), part.stat()
    content[-1] ^= 1
    if replaced:
        part.unlink()
    time.sleep(0.02)  # a tick of the file system's clock
    part.write_bytes(content)
    os.utime(part, ns=(before.st_atime_ns, before.st_mtime_ns))  # as if nothing had happened
    with pytest.raises(ModelError, match=r"big\.npy: its content does not match the hash"):
        load_model(folder, kind="toy")


def test_what_no_program_changed_is_found_when_it_is_asked_for(folder, hashed, monkeypatch):
    load_model(folder, kind="toy")
    monkeypatch.setattr(saved_models, "hash_of", lambda file: "what the disk made of it")
    load_model(folder, kind="toy")
    with pytest.raises(ModelError, match="does not match the hash"):
        load_model(folder, kind="toy", verify=True)


def test_a_copy_is_hashed_anew(folder, hashed, tmp_path):
    load_model(folder, kind="toy")
    shutil.copytree(folder, tmp_path / "copy")
    hashed.clear()
    load_model(tmp_path / "copy", kind="toy")
    assert len(hashed) == 2


def test_other_hashes_are_looked_at_anew(folder, hashed):
    load_model(folder, kind="toy")
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["checksum"]
    manifest["sha256"]["big.npy"] = "0" * 64
    manifest["checksum"] = saved_models._checksum(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="does not match the hash"):
        load_model(folder, kind="toy")


def test_a_file_that_was_just_written_is_not_noted_as_checked(folder, hashed, monkeypatch):
    monkeypatch.setattr(saved_models, "SETTLED", 10**15)
    for _ in range(2):
        load_model(folder, kind="toy")
    assert len(hashed) == 4


@pytest.mark.parametrize("note", ["", "[]", "{", "{}"])
def test_a_note_that_says_nothing_vouches_for_nothing(folder, hashed, note):
    (folder / CHECKED).write_text(note)
    load_model(folder, kind="toy")
    assert len(hashed) == 2


def test_a_folder_that_cannot_be_written_to_is_read(folder, hashed):
    (folder / CHECKED).mkdir()
    for _ in range(2):
        load_model(folder, kind="toy")
    assert len(hashed) == 4


def test_a_model_that_was_read_is_still_what_telic_wrote(folder, hashed):
    load_model(folder, kind="toy")
    assert (folder / CHECKED).exists()
    save_model(folder, kind="toy", meta={}, arrays={})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "newer than this telic reads"),
        ({"kind": "other"}, "expected 'toy'"),
        ({"mapped": None}, "damaged or edited"),
        ({"sha256": {}}, "damaged or edited"),
        ({"meta": {"name": "naive"}}, "damaged or edited"),
    ],
)
def test_a_wrong_manifest_is_named(folder, change, message):
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(ModelError, match=message):
        load_model(folder, kind="toy")


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": {}},
        {"sha256": None},
        {"mapped": None},
        {"mapped": ["../other"]},
        {"mapped": [], "sha256": {"arrays.npz": "0", "big.npy": "0"}},
        {"meta": None},
    ],
)
def test_a_manifest_that_somebody_made_names_the_files_of_the_folder_alone(folder, change):
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text()) | change
    if "../other" in (change.get("mapped") or ()):
        manifest["sha256"] = {"arrays.npz": manifest["sha256"]["arrays.npz"], "../other.npy": "0"}
    del manifest["checksum"]
    file.write_text(json.dumps(manifest | {"checksum": _checksum(manifest)}))
    with pytest.raises(ModelError, match="does not say which files the model has"):
        load_model(folder, kind="toy")


def test_any_flipped_bit_of_the_manifest_is_found_or_changes_nothing(folder):
    file, meta = folder / "manifest.json", load_model(folder, kind="toy").meta
    content = file.read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(flipped)
        try:
            assert load_model(folder, kind="toy").meta == meta
        except ModelError:
            continue


def test_a_file_is_no_model_folder(folder):
    with pytest.raises(ModelError, match="not found"):
        load_model(folder / "arrays.npz", kind="toy")


def test_a_missing_or_broken_folder_is_named(folder, tmp_path):
    with pytest.raises(ModelError, match="nothing: no such file or folder"):
        load_model(tmp_path / "nothing", kind="toy")
    with pytest.raises(ModelError, match=r"manifest\.json: not found\. Is"):
        load_model(tmp_path, kind="toy")
    (folder / "big.npy").unlink()
    with pytest.raises(ModelError, match=r"big\.npy: missing"):
        load_model(folder, kind="toy")
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ModelError, match="damaged"):
        load_model(folder, kind="toy")


def test_only_what_telic_wrote_is_overwritten(folder, tmp_path):
    save_model(folder, kind="toy", meta={}, arrays={})
    assert load_model(folder, kind="toy").arrays == {}
    precious = tmp_path / "precious"
    precious.mkdir()
    with pytest.raises(InputError, match="not overwritten"):
        save_model(precious, kind="toy", meta={}, arrays={})


class Bomb:
    """Says so when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


@pytest.mark.parametrize("name", ["arrays.npz", "big.npy"])
def test_a_folder_that_somebody_made_runs_no_code(folder, name):
    """The hashes are no signature: whoever writes a folder can write them too."""
    objects = np.array([Bomb()], dtype=object)
    if name == "big.npy":
        np.save(folder / name, objects, allow_pickle=True)
    else:
        np.savez(folder / name, w=objects, allow_pickle=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["checksum"]
    manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    manifest["checksum"] = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match=f"{name}: holds no plain arrays"):
        load_model(folder, kind="toy")


def test_a_mapped_array_cannot_change_its_file(folder):
    big = load_model(folder, kind="toy").arrays["big"]
    with pytest.raises(ValueError, match="read-only"):
        big[0] = 7


def test_a_failed_rename_brings_the_old_folder_back(folder, monkeypatch):
    def fail(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        save_model(folder, kind="toy", meta={"name": "new"}, arrays={})
    assert load_model(folder, kind="toy").meta == {"name": "naïve"}
    assert sorted(path.name for path in folder.parent.iterdir()) == [".telic-written.json", "model"]


@pytest.mark.parametrize("name", ["replaced", "."])
def test_a_folder_may_have_any_name(folder, name, monkeypatch):
    folder = folder.rename(folder.parent / "replaced")
    monkeypatch.chdir(folder if name == "." else folder.parent)
    save_model(name, kind="toy", meta={"name": "new"}, arrays={})
    assert load_model(folder, kind="toy").meta == {"name": "new"}
