"""Links of one type: compressed rows, and the checks that lists of links must pass."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from telic.errors import InputError, expect_one_of
from telic.hin.link_kernels import first_unordered, row_starts, stable_order
from telic.hin.schema import MAX_STRENGTH, LinkType


@dataclass(frozen=True, slots=True)
class Links:
    """Links of one type in compressed rows; each row's targets are sorted and distinct.

    Parameters
    ----------
    indptr : int64 array, shape (n_sources + 1,)
    indices : int32 array, shape (n_links,)
        Target positions.
    strength : int32 array, shape (n_links,), or None
    """

    indptr: np.ndarray
    indices: np.ndarray
    strength: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def out_degree(self) -> np.ndarray:
        """Number of links per source node."""
        return np.diff(self.indptr)

    @property
    def sources(self) -> np.ndarray:
        """Source position of every link, int32."""
        return np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), self.out_degree)

    def matrix(self, n_targets: int) -> csr_array:
        """Return the links as a SciPy matrix of strengths (ones where there are none)."""
        data = np.ones(len(self), np.int64) if self.strength is None else self.strength
        shape = (len(self.indptr) - 1, n_targets)
        return csr_array((data.astype(np.int64), self.indices, self.indptr), shape=shape)

    def reverse(self, n_targets: int) -> "Links":
        """Return the in-links: the same links with source and target exchanged."""
        return build_links(
            self.indices, self.sources, self.strength, n_targets, len(self.indptr) - 1
        )


def build_links(
    source: np.ndarray,
    target: np.ndarray,
    strength: np.ndarray | None,
    n_sources: int,
    n_targets: int,
    *,
    duplicates: str = "raise",
    where: str = "links",
    hint: str = "",
) -> Links:
    """Sort links into compressed rows.

    Parameters
    ----------
    source, target : int32 arrays of positions
    strength : int32 array or None
    n_sources, n_targets : int
    duplicates : {"raise", "sum"}
        What to do with a link that occurs twice. ``sum`` adds the strengths.
    where : str
        Names the file or type in the error.
    hint : str
        What else can be done about a link that occurs twice.
    """
    expect_one_of(("raise", "sum"), duplicates=duplicates)
    if first_unordered(source, target) < 0:
        return Links(row_starts(source, n_sources), target, strength)
    order = np.arange(len(source), dtype=np.int64)
    order = stable_order(target, order, n_targets)
    order = stable_order(source, order, n_sources)
    source, target = source[order], target[order]
    strength = None if strength is None else strength[order]
    again = np.flatnonzero((np.diff(source) == 0) & (np.diff(target) == 0)) + 1
    if len(again):
        if duplicates == "raise":
            raise InputError(
                f"{where}: row {order[again].min() + 1} repeats an earlier link. "
                f"Add the strengths up into one row per (source, target){hint}."
            )
        keep = np.ones(len(source), bool)
        keep[again] = False
        if strength is not None:
            total = np.add.reduceat(strength.astype(np.int64), np.flatnonzero(keep))
            if total.max() > MAX_STRENGTH:
                raise InputError(f"{where}: strengths add up to {total.max()} > {MAX_STRENGTH}.")
            strength = total.astype(np.int32)
        source, target = source[keep], target[keep]
    return Links(row_starts(source, n_sources), target, strength)


class Positions:
    """Where each id of a node type stands; dense integers by table, everything else by hash."""

    def __init__(self, ids: pa.Array) -> None:
        self._ids = int64_ids(ids, "node table") if pa.types.is_integer(ids.type) else ids
        self._table = None
        if pa.types.is_integer(ids.type) and len(ids):
            values = self._ids.to_numpy(zero_copy_only=False)
            self._first, span = int(values.min()), int(values.max()) - int(values.min()) + 1
            if span <= 4 * len(values) + 1000:
                self._table = np.full(span, -1, np.int32)
                self._table[values - self._first] = np.arange(len(values), dtype=np.int32)

    def find(self, values: pa.Array | pa.ChunkedArray, where: str) -> np.ndarray:
        """Return the positions of `values`, int32; an unknown one raises InputError."""
        if pa.types.is_dictionary(values.type):
            values = pc.cast(values, values.type.value_type)
        same_kind = _id_kind(values.type) == _id_kind(self._ids.type)
        if not same_kind and len(values) and len(self._ids):
            odd = first_odd(values) if pa.types.is_integer(self._ids.type) else ""
            found = odd or f"ids are {values.type}"
            raise InputError(
                f"{where}: {found}, but the node table's ids are {self._ids.type}. Write both as "
                "integers or both as strings."
            )
        if values.null_count:
            row = pc.index(pc.is_null(values), True).as_py() + 1
            raise InputError(f"{where}: row {row} has no id.")
        if not len(values):
            return np.empty(0, np.int32)
        if self._table is not None:
            values = int64_ids(values, where)  # in a narrow type differences would wrap around
            offset = values.to_numpy() - self._first
            bad = (offset < 0) | (offset >= len(self._table))
            offset[bad] = 0
            found = self._table[offset]
            found[bad] = -1
        else:
            if pa.types.is_integer(values.type):
                values = int64_ids(values, where)
            index = pc.index_in(values, value_set=self._ids.cast(values.type))
            found = pc.fill_null(index, -1).to_numpy()
        missing = found < 0
        if missing.any():
            row = int(missing.argmax())
            raise InputError(
                f"{where}: row {row + 1}: id {values[row].as_py()!r} is not in the node table. "
                "Add the node or drop the link."
            )
        return found.astype(np.int32, copy=False)


def first_odd(values: pa.Array | pa.ChunkedArray) -> str:
    """Say which row is the first that holds no whole number, with its value; "" if all do."""
    for row, value in enumerate(values.to_pylist(), 1):
        try:
            if float(value).is_integer():
                continue
        except (TypeError, ValueError):
            pass
        return f"row {row} is {value!r}"
    return ""


def _id_kind(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    return "text" if is_text(kind) else str(kind)


def is_text(kind: pa.DataType) -> bool:
    """Say whether ids or values of this type are texts."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def int64_ids(ids: pa.Array | pa.ChunkedArray, where: str) -> pa.Array | pa.ChunkedArray:
    """Return whole numbers of any width as int64, so that ids of two files can be compared."""
    try:
        return pc.cast(ids, pa.int64())
    except pa.ArrowInvalid as error:
        raise InputError(f"{where}: an id needs more than 63 bits ({error}).") from None


def check_strength(values: pa.Array | pa.ChunkedArray, where: str) -> np.ndarray:
    """Return strengths as int32 after checking that all are positive integers, or 1.0, 2.0, …"""
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py() + 1
        raise InputError(f"{where}: row {row}: no strength. Give it one, or drop the link.")
    whole = pa.types.is_integer(values.type)
    if pa.types.is_floating(values.type):  # as graph libraries hold weights
        values = pc.cast(values, pa.float64())
        whole = pc.all(pc.equal(pc.floor(values), values), min_count=0).as_py()
    if not whole and len(values):
        found = first_odd(values) or f"values are {values.type}"
        raise InputError(f"{where}: {found}, expected positive integers.")
    strength = values.to_numpy(zero_copy_only=False)  # an empty list has no type of numbers
    if len(strength) and (strength.min() < 1 or strength.max() > MAX_STRENGTH):
        row = int(((strength < 1) | (strength > MAX_STRENGTH)).argmax())
        raise InputError(
            f"{where}: row {row + 1}: strength is {strength[row]}, expected a positive integer up "
            f"to {MAX_STRENGTH}. Drop the link or correct its strength."
        )
    return strength.astype(np.int32, copy=False)


def check_self_links(
    link: LinkType, source: np.ndarray, target: np.ndarray, ids: pa.Array, where: str
) -> None:
    """Raise InputError if a node links to itself where the link type bars it."""
    if link.self_links or link.source != link.target:
        return
    loops = source == target
    if loops.any():
        row = int(loops.argmax())
        raise InputError(
            f"{where}: row {row + 1}: node {ids[source[row]].as_py()!r} links to itself. Drop the "
            'link, or set "self_links": true for this link type in the schema.'
        )
