"""Views over ranges of nodes: links and the views before lie in mapped files, one copy for all."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from telic.data.numpy_files import load_npy
from telic.privacy.risk.views import (
    Neighbourhood,
    add_labelled_hashes,
    add_neighbour_hashes,
    mix_all,
)
from telic.privacy.threads import ONE_AT_A_TIME, threads_for
from telic.scale import Executor
from telic.scale.arrays import map_array, store_arrays
from telic.scale.partitions import Range

LINKS = ("indptr", "indices", "strength")
JOINT = ("begin", "end", "indices", "label")
"""Arrays of one link type in one direction, and of all joined."""


class NeighbourhoodInPieces(Neighbourhood):
    """Spreads hashes as `Neighbourhood` does, over ranges of nodes, from mapped files.

    With `skip_bad`, a node of a range that failed is taken to look like nobody else from then on.
    """

    def __init__(
        self,
        executor: Executor,
        folder: Path,
        layers: Sequence[Any],
        size: int,
        joint: bool,
        skip_bad: bool = False,
    ) -> None:
        super().__init__(layers, size, joint)
        self.executor, self.folder, self.size, self.steps = executor, folder, size, 0
        self.skip_bad, self.apart = skip_bad, np.zeros(size, bool)
        if self.joint:
            store_arrays(folder, {f"joint.{name}": getattr(self, name) for name in JOINT})
            for name in JOINT:
                setattr(self, name, map_array(folder, f"joint.{name}"))
        else:
            for number, layer in enumerate(self.layers):
                arrays = zip(LINKS, layer.arrays(), strict=True)
                store_arrays(folder, {f"{number}.{name}": array for name, array in arrays})

    def add(self, hashes: np.ndarray, total: np.ndarray) -> None:
        """Add to each node what its neighbours look like."""
        self.steps += 1
        name = f"hashes-{self.steps}"
        store_arrays(self.folder, {name: hashes})
        salts = () if self.joint else tuple(int(layer.salt) for layer in self.layers)
        work = partial(_add_range, self.folder, name, salts)
        # An entry takes a label and a target, a node its sum.
        rows = max(1, self.executor.piece * self.size // (16 * max(self.entries + self.size, 1)))
        parts = [Range(start, min(start + rows, self.size)) for start in range(0, self.size, rows)]
        out = self.folder / f"step-{self.steps}"
        found = self.executor.map(work, parts, out=out, ending=".npy", skip_bad=self.skip_bad)
        for part, path in zip(parts, found.values, strict=True):
            if path is None:
                self.apart[part.start : part.stop] = True
            else:
                total[part.start : part.stop] += load_npy(path)
        alone = np.flatnonzero(self.apart).astype(np.uint64)
        mix_all(alone)
        total[self.apart] = alone


def _add_range(folder: Path, name: str, salts: tuple[int, ...], part: Range, out: Path) -> None:
    hashes, total = map_array(folder, name), np.zeros(part.stop - part.start, np.uint64)
    rows = slice(part.start, part.stop)
    with ONE_AT_A_TIME, threads_for(len(total)):
        if not salts:
            begin, end, *entries = (map_array(folder, f"joint.{name}") for name in JOINT)
            add_labelled_hashes(begin[rows], end[rows], *entries, hashes, total)
        for number, salt in enumerate(salts):
            indptr, *ends = (map_array(folder, f"{number}.{name}") for name in LINKS)
            indptr = indptr[part.start : part.stop + 1]
            add_neighbour_hashes(indptr, *ends, np.uint64(salt), hashes, total)
    with out.open("wb") as stream:
        np.save(stream, total)
