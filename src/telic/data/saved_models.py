"""Saved models: a manifest and NumPy arrays in a folder, checked by hash."""

import hashlib
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic import __version__
from telic.data.atomic_writes import atomic_path
from telic.data.numpy_files import load_npy, load_npz
from telic.data.object_storage import Remote, fetched, place, state_of
from telic.data.own_outputs import (
    CHECKED,
    RECORD,
    hash_of,
    read_record,
    refuse_unwritable,
    remember,
    wrote,
)
from telic.errors import InputError, ModelError

FORMAT = 1
"""Version of the folder's layout; a folder with a larger number is refused."""


SETTLED = 2_000_000_000
"""Nanoseconds for which a file must have been left alone before it is noted that it was checked: a
later change within one tick of the file system's clock would not show."""


class StoredModel(NamedTuple):
    """What a model folder holds."""

    meta: dict[str, Any]
    """Whatever the model's kind wrote: parameters, names, dates."""
    arrays: dict[str, np.ndarray]


def save_model(
    folder: str | Path,
    *,
    kind: str,
    meta: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    mapped: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Write a model folder, whole or not at all.

    Parameters
    ----------
    folder : path
        Created, or replaced if telic wrote it (see `atomic_path`).
    kind : str
        What the model is, such as ``"prefix-index"``; `load_model` asks for it again.
    meta : mapping
        JSON-able description: parameters, names.
    arrays : mapping of str to array
        Small arrays, kept together in ``arrays.npz``.
    mapped : mapping of str to array, optional
        Large arrays, each a ``.npy`` file of its own that is memory-mapped when loaded.

    Raises
    ------
    InputError
        If `folder` is there and telic did not write it, or holds another kind of output.
    """
    mapped = mapped or {}
    with atomic_path(folder, kind=kind) as temporary:
        temporary.mkdir()
        np.savez(temporary / "arrays.npz", allow_pickle=False, **dict(arrays))
        for name, array in mapped.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        manifest = {
            "format": FORMAT,
            "kind": kind,
            "telic": __version__,
            "meta": dict(meta),
            "mapped": sorted(mapped),
            "sha256": {file.name: hash_of(file) for file in sorted(temporary.iterdir())},
        }
        manifest["checksum"] = _checksum(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (temporary / "manifest.json").write_text(text, encoding="utf-8")


def load_model(folder: str | Path, *, kind: str, verify: bool = False) -> StoredModel:
    """Read a model folder back, after checking its kind, format and the hash of every file.

    A file is hashed when this machine reads it first and whenever it was changed since: the folder
    keeps, where it may be written to, the size, times and number of each file as of its last
    check. No program can write to a file and leave the time of its last change (ctime) as it was.

    Parameters
    ----------
    folder : path
    kind : str
        As `save_model` was told.
    verify : bool
        Hash every file, changed or not: a disk may lose bits that no program wrote.

    Raises
    ------
    ModelError
        If the folder is missing, damaged, of another kind, or of a newer format.
    """
    folder = on_disk(folder)
    file = folder / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        found_format, found_kind = int(manifest["format"]), manifest["kind"]
    except (FileNotFoundError, NotADirectoryError):
        if not folder.exists():
            raise ModelError(f"{folder}: no such file or folder. Check the path.") from None
        raise ModelError(f"{file}: not found. Is {folder} a telic model folder?") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{file}: damaged ({error}). Fit the model again.") from None
    if found_format > FORMAT:
        raise ModelError(
            f"{file}: format {found_format} is newer than this telic reads ({FORMAT}). "
            "Upgrade telic or fit the model again."
        )
    if found_kind != kind:
        raise ModelError(f"{file}: holds a model of kind {found_kind!r}, expected {kind!r}.")
    if manifest.pop("checksum", None) != _checksum(manifest):
        raise ModelError(
            f"{file}: damaged or edited, it does not match its own checksum. Fit the model again."
        )
    hashed, mapped = manifest.get("sha256"), manifest.get("mapped")
    # Each file that is read below has a hash, and stands in the folder itself.
    if (
        not isinstance(hashed, dict)
        or not isinstance(mapped, list)
        or not isinstance(manifest.get("meta"), dict)
        or set(hashed) != {"arrays.npz", *(f"{name}.npy" for name in mapped)}
        or any(Path(name).name != name for name in hashed)
    ):
        raise ModelError(f"{file}: does not say which files the model has. Fit the model again.")
    _check(folder, hashed, verify=verify)
    part = folder / "arrays.npz"
    try:
        arrays = load_npz(part)
        for name in mapped:
            part = folder / f"{name}.npy"
            arrays[name] = load_npy(part, mmap_mode="r")
    except ValueError as error:
        raise ModelError(f"{part}: holds no plain arrays ({error}). Fit the model again.") from None
    return StoredModel(manifest["meta"], arrays)


def adopt(folder: Path) -> None:
    """Count a model folder that `load_model` has accepted as telic's, though it was copied.

    Raises
    ------
    InputError
        If it holds more than the model, which would be lost with the folder when it is replaced.
    """
    if wrote(folder):
        return
    refuse_unwritable(folder)
    parts = {*hashes(folder), "manifest.json", CHECKED, RECORD}
    if others := sorted(part.name for part in folder.iterdir() if part.name not in parts):
        raise InputError(
            f"{folder}: holds {others[0]!r}, which is no part of the model, and would be lost as "
            "the folder is written anew. Move it elsewhere."
        )
    remember(folder)


def on_disk(folder: str | Path) -> Path:
    """Return a model folder on this machine's disk, where its arrays can be mapped."""
    found = place(folder)
    if isinstance(found, Remote):
        try:
            return _copy(found, state_of(found / "manifest.json"))
        except OSError as error:
            raise ModelError(f"{found}: cannot be fetched ({str(error)[:200]}).") from None
    return found


@cache
def _copy(folder: Remote, state: tuple[int, int]) -> Path:
    """Fetch a model folder once, as of its manifest's state."""
    return fetched(folder)


def _check(folder: Path, hashes: Mapping[str, str], *, verify: bool) -> None:
    """Raise ModelError unless each file has its hash, or had it and is unchanged since."""
    known = {} if verify else read_record(folder / CHECKED)
    found, changed = {}, 0
    for name, expected in hashes.items():
        part = folder / name
        if not part.is_file():
            raise ModelError(f"{part}: missing. Fit the model again or restore the file.")
        state = _state(part)  # as of before it is hashed
        found[name], changed = [expected, *state], max(changed, state[-1])
        if known.get(name) != found[name] and hash_of(part) != expected:
            raise ModelError(
                f"{part}: its content does not match the hash in manifest.json. "
                "The file is damaged or was edited: fit the model again."
            )
    if known != found and time.time_ns() - changed > SETTLED:
        # What cannot be written, or is only half written, says nothing: files are hashed again.
        with suppress(OSError):
            (folder / CHECKED).write_text(json.dumps(found), encoding="utf-8")


def _state(file: Path) -> tuple[int, ...]:
    """What is another once a file is changed or replaced; last the time of its last change."""
    found = file.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def written_by(folder: str | Path) -> str:
    """Return which version of telic wrote a model folder that `load_model` has accepted."""
    manifest = json.loads((on_disk(folder) / "manifest.json").read_text(encoding="utf-8"))
    return f"telic {manifest['telic']}" if "telic" in manifest else "an older telic"


def hashes(folder: str | Path) -> dict[str, str]:
    """Return the hash of each file of a model folder, as its manifest says; of no folder, none."""
    try:
        manifest = json.loads((Path(folder) / "manifest.json").read_text(encoding="utf-8"))
        return dict(manifest["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Hash what a manifest says, in its order: JSON keeps the order of keys."""
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
