"""Saved models: a manifest and NumPy arrays in a folder, checked by hash."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic.data.atomic_writes import atomic_path
from telic.errors import ModelError

FORMAT = 1
"""Version of the folder's layout; a folder with a larger number is refused."""


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
        If `folder` is there and telic did not write it.
    """
    mapped = mapped or {}
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        np.savez(temporary / "arrays.npz", allow_pickle=False, **dict(arrays))
        for name, array in mapped.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        manifest = {
            "format": FORMAT,
            "kind": kind,
            "meta": dict(meta),
            "mapped": sorted(mapped),
            "sha256": {file.name: _sha256(file) for file in sorted(temporary.iterdir())},
        }
        manifest["checksum"] = _checksum(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        (temporary / "manifest.json").write_text(text, encoding="utf-8")


def load_model(folder: str | Path, *, kind: str) -> StoredModel:
    """Read a model folder back, after checking its kind, format and the hash of every file.

    Raises
    ------
    ModelError
        If the folder is missing, damaged, of another kind, or of a newer format.
    """
    folder = Path(folder)
    file = folder / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        found_format, found_kind = int(manifest["format"]), manifest["kind"]
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(f"{file}: not found. Is {folder} a telic model folder?") from None
    except (ValueError, KeyError, TypeError) as error:
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
    for name, expected in manifest["sha256"].items():
        part = folder / name
        if not part.is_file():
            raise ModelError(f"{part}: missing. Fit the model again or restore the file.")
        if _sha256(part) != expected:
            raise ModelError(
                f"{part}: its content does not match the hash in manifest.json. "
                "The file is damaged or was edited: fit the model again."
            )
    part = folder / "arrays.npz"
    try:
        with np.load(part, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        for name in manifest["mapped"]:
            part = folder / f"{name}.npy"
            arrays[name] = np.load(part, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise ModelError(f"{part}: holds no plain arrays ({error}). Fit the model again.") from None
    return StoredModel(manifest["meta"], arrays)


def _checksum(manifest: Mapping[str, Any]) -> str:
    """Hash what a manifest says, in its order: JSON keeps the order of keys."""
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
