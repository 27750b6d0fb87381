"""DeHIN over ranges of targets: networks and candidates lie in mapped files, one copy for all."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from telic.data.numpy_files import load_npy
from telic.privacy.attacks.candidate_sets import CandidateSets, list_kept
from telic.privacy.attacks.neighbour_filter import Known, Wanted, refine
from telic.privacy.threads import ONE_AT_A_TIME, threads_for
from telic.scale import Executor
from telic.scale.arrays import map_array, store_arrays
from telic.scale.job_folder import placed
from telic.scale.partitions import Range

PAIR = 16
"""Bytes that a pair of target and candidate takes at most."""
BATCH = 2**26
"""How many pairs of target and candidate are looked at in one go (one byte each)."""


def _mapped_tuple(kind: Any, folder: Path, before: str) -> Any:
    return kind(*(map_array(folder, f"{before}.{name}") for name in kind._fields))


def _named(values: NamedTuple, before: str) -> dict[str, np.ndarray]:
    return {f"{before}.{name}": array for name, array in values._asdict().items()}


class DistanceLevel(NamedTuple):
    """What is the same for all targets at one distance."""

    known: Known
    wanted: Wanted
    layers: np.ndarray
    errors: tuple[float, float, float]
    limits: tuple[int, int]


class StoredLevel(NamedTuple):
    """The same, its arrays in files."""

    folder: Path
    network: Path
    """Where the auxiliary network's arrays are."""
    layers: tuple[int, ...]
    errors: tuple[float, float, float]
    limits: tuple[int, int]


def refine_in_pieces(
    executor: Executor,
    folder: Path,
    sets: CandidateSets,
    work: np.ndarray,
    level: DistanceLevel,
    *,
    skip_bad: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Find which candidates of the targets `work` are left, as `refine_in_batches` does.

    With `skip_bad`, targets of a range that failed keep all of theirs. What is found is mapped.
    """
    network = folder.parent / "network"
    store_arrays(network, _named(level.known, "known"))
    store_arrays(folder, _named(sets, "sets") | _named(level.wanted, "wanted") | {"work": work})
    stored = StoredLevel(folder, network, tuple(level.layers.tolist()), level.errors, level.limits)
    sizes = sets.sizes()[work]
    parts = _by_pairs(sizes, executor.piece // PAIR)
    task, out = partial(_refine_targets, stored), folder / "pieces"
    paths = executor.map(task, parts, out=out, skip_bad=skip_bad).values
    kept = [
        sizes[part.start : part.stop] if path is None else load_npy(path / "kept.npy")
        for part, path in zip(parts, paths, strict=True)
    ]
    total = int(sum(part.sum() for part in kept))
    with placed(folder / "found.npy") as temporary:
        joined = np.lib.format.open_memmap(temporary, "w+", np.int32, (total,))
        begin = 0
        for part, path in zip(parts, paths, strict=True):
            left = (
                _every(sets, work[part.start : part.stop])
                if path is None
                else load_npy(path / "found.npy", mmap_mode="r")
            )
            joined[begin : begin + len(left)] = left
            begin += len(left)
        joined.flush()
    return np.concatenate([np.empty(0, np.int64), *kept]), map_array(folder, "found")


def _every(sets: CandidateSets, batch: np.ndarray) -> np.ndarray:
    """List all candidates of some targets, target by target."""
    return np.concatenate([np.empty(0, np.int32), *(sets.of(target) for target in batch)])


def _by_pairs(sizes: np.ndarray, most: int) -> list[Range]:
    """Cut targets into ranges of about `most` pairs."""
    ends, parts, begin = np.cumsum(sizes), [], 0
    while begin < len(sizes):
        done = int(ends[begin - 1]) if begin else 0
        stop = max(int(np.searchsorted(ends, done + most, "right")), begin + 1)
        parts.append(Range(begin, stop))
        begin = stop
    return parts


def _refine_targets(stored: StoredLevel, part: Range, out: Path) -> None:
    sets = _mapped_tuple(CandidateSets, stored.folder, "sets")
    known = _mapped_tuple(Known, stored.network, "known")
    wanted = _mapped_tuple(Wanted, stored.folder, "wanted")
    batch = np.array(map_array(stored.folder, "work")[part.start : part.stop])
    layers = np.array(stored.layers, np.int64)
    with ONE_AT_A_TIME:
        level = DistanceLevel(known, wanted, layers, stored.errors, stored.limits)
        kept, found = _refine_some(sets, batch, level)
    out.mkdir()
    np.save(out / "kept.npy", kept)
    np.save(out / "found.npy", found)


def refine_in_batches(
    sets: CandidateSets, work: np.ndarray, level: DistanceLevel
) -> tuple[np.ndarray, np.ndarray]:
    """Find which candidates of the targets `work` are left.

    Returns
    -------
    kept : int64 array, shape (len(work),)
        Candidates left of each.
    found : int32 array
        Them, target by target.
    """
    parts = [
        _refine_some(sets, work[part.start : part.stop], level)
        for part in _by_pairs(sets.sizes()[work], BATCH)
    ]
    kept = np.concatenate([np.empty(0, np.int64), *(some for some, _ in parts)])
    return kept, np.concatenate([np.empty(0, np.int32), *(found for _, found in parts)])


def _refine_some(
    sets: CandidateSets, batch: np.ndarray, level: DistanceLevel
) -> tuple[np.ndarray, np.ndarray]:
    known, wanted, layers, errors, limits = level
    offsets = np.append(0, np.cumsum(sets.sizes()[batch])).astype(np.int64)
    keep, kept = np.zeros(offsets[-1], bool), np.zeros(len(batch), np.int64)
    args = tuple(sets), batch, offsets, keep
    with threads_for(len(keep)) as threads:
        refine(*args, kept, layers, errors, threads, wanted, known, limits)
    found = np.empty(kept.sum(), np.int32)
    list_kept(*args, found)
    return kept, found
