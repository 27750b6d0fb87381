"""What an attacker knows: a network sorted by profile."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import prange

from telic.errors import InputError
from telic.hin import Links, Network, Rule
from telic.hin.links import is_text
from telic.kernels import kernel
from telic.privacy.adversary import Adversary
from telic.privacy.attacks.candidate_sets import CandidateSets
from telic.privacy.attacks.neighbour_filter import add_signatures
from telic.privacy.attacks.profile_filter import filter_profiles, profile_intervals
from telic.privacy.merged_types import Column, Flat, flatten
from telic.privacy.protected import one_zero
from telic.privacy.threads import threads_for

NO_STRENGTH = np.empty(0, np.int32)
ANY_STRENGTH = 2**31 - 1
MAX_JOINT = 6_000_000_000
"""Bytes that the strengths of links, merged over link types, may take."""


class TooManyPairs(InputError):
    """An attack would compare more pairs of nodes than it was allowed to."""


def _refuse_more(pairs: int, most: float) -> None:
    if pairs > most:
        raise TooManyPairs(f"{pairs:,} pairs of nodes match by profile, more than {most:,}.")


class _Column:
    """One attribute of the auxiliary network as numbers, and how to read a target's values.

    Exact attributes become codes. A missing number is a value of its own that matches missing
    alone: whether it is missing is one more exact column (`missing`), its value is then 0.
    """

    def __init__(self, column: Column, place: int, *, missing: bool = False) -> None:
        self.name, self.rule, values = column
        self.place, self.missing = place, missing
        self.exact = missing or self.rule.kind == "exact"
        if self.exact:
            values = self._missing(values) if missing else one_zero(values)
            self.values = pc.unique(values)
            self.codes = pc.index_in(values, value_set=self.values).to_numpy().astype(np.float64)
            self.size = len(self.values)
        else:
            self.codes = self._numbers(values)
            self.gaps = bool(np.isnan(self.codes).any())
            self.codes = _no_gaps(self.codes)

    def _numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        kind = column.type
        # A column of missing values alone may have no type.
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise InputError(
                f"attribute {self.name!r} is {kind}: rule {self.rule.kind!r} compares "
                "numbers. Use 'exact' or 'ignore'."
            )
        if pa.types.is_float32(kind):
            column = pc.cast(column, pa.string())  # 0.8 in 32 bits is another number in 64
        return pc.cast(column, pa.float64(), safe=False).to_numpy()

    def _missing(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(np.isnan(self._numbers(column)))])

    def bounds(self, column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """Give the closed interval of codes that match each of a target's values; NaN: none."""
        if not self.exact:
            numbers = self._numbers(column)
            if self.gaps:
                numbers = _no_gaps(numbers)
            low, high = self.rule.bounds(numbers)
            gap = np.isnan(numbers)
            return np.where(gap, np.nan, low), np.where(gap, np.nan, high)
        column = self._missing(column) if self.missing else one_zero(column)
        values = self.values
        if pa.types.is_null(values.type):
            values = values.cast(column.type)
        given = column
        if column.type != values.type:
            try:
                column = pc.cast(column, values.type)
            except pa.ArrowInvalid:
                raise InputError(
                    f"attribute {self.name!r} is {values.type} in the auxiliary network and "
                    f"{column.type} in the target. Write both alike."
                ) from None
        index = pc.index_in(column, value_set=values)
        reads_text = is_text(given.type) and pa.types.is_integer(values.type)
        is_number = pa.types.is_integer(given.type) or pa.types.is_floating(given.type)
        reads_number = is_number and pa.types.is_boolean(values.type)
        if reads_text or reads_number:
            # "01" is not 1, and 2 is not true: only what is read back as it was is the same value.
            back = pc.equal(pc.cast(column, given.type), given)
            index = pc.if_else(pc.fill_null(back, True), index, None)
        codes = pc.fill_null(index, -1).to_numpy().astype(np.float64)
        return codes, codes


def _no_gaps(numbers: np.ndarray) -> np.ndarray:
    """Write 0 for NaN; infinite numbers stay, as they match themselves."""
    return np.nan_to_num(numbers, posinf=np.inf, neginf=-np.inf)


class Auxiliary:
    """A network whose users are known, sorted so that profiles are intervals.

    Users are renumbered by their exact attributes and then by one growing attribute, so the
    users that match a profile stand side by side. Prepare it once, attack many releases.

    Parameters
    ----------
    network : Network
    adversary : Adversary
        What is compared, and how: `Adversary.of` the release. `joint` is an extension of
        [Zhang2017]'s attack: a neighbour linked in several ways must be matched to *one* user in
        all; so are in-links, and nodes of other types.
    """

    def __init__(self, network: Network, adversary: Adversary) -> None:
        self.adversary = adversary
        flat = flatten(network, adversary, "auxiliary")
        self.size, self.total = flat.protected, flat.size
        columns = [_Column(column, place) for place, column in enumerate(flat.columns)]
        columns += [
            _Column(flat.columns[built.place], built.place, missing=True)
            for built in columns
            if not built.exact and built.gaps
        ]
        self._columns = sorted(columns, key=lambda column: not column.exact)
        self.values = self._pack([c.codes for c in self._columns], self.total)
        self._n_exact = len(self.values) - sum(not c.exact for c in self._columns)
        # lexsort's last key is the first to sort by.
        keys = self.values[: self._n_exact + 1][::-1]
        self.order = np.lexsort(keys) if len(keys) else np.arange(self.total)
        self.values = np.ascontiguousarray(self.values[:, self.order])
        self.rank = np.empty(self.total, np.int32)
        self.rank[self.order] = np.arange(self.total, dtype=np.int32)
        self._build_layers(compared_links(flat, adversary))
        self._sign()
        for column in self._columns:
            del column.codes

    def _pack(self, codes: list[np.ndarray], size: int) -> np.ndarray:
        """Fold exact codes into as few float64 columns as hold them exactly."""
        packed: list[np.ndarray] = []
        room = 0
        for column, values in zip(self._columns, codes, strict=True):
            if column.exact and packed and room * column.size < 2**53:
                known = (packed[-1] >= 0) & (values >= 0)
                packed[-1] = np.where(known, packed[-1] * column.size + values, -1.0)
                room *= column.size
            else:
                packed.append(values)
                room = column.size if column.exact else 2**53
        return np.stack(packed) if packed else np.empty((0, size))

    def _build_layers(self, parts: list[tuple[Links, Rule | None]]) -> None:
        total = sum(len(links) for links, _ in parts)
        self.indptr = np.zeros((len(parts), self.total + 1), np.int64)
        self.indices = np.empty(total, np.int32)
        self.strength = np.empty((total, 1), np.int32)
        begin = 0
        for layer, (links, _) in enumerate(parts):
            self.indptr[layer, 0] = begin
            self.indptr[layer, 1:] = begin + np.cumsum(links.out_degree[self.order])
            strength = (NO_STRENGTH if links.strength is None else links.strength).view()
            strength.flags.writeable = False  # as those of files are: the kernel compiles once
            args = self.order, self.rank, links.indptr, links.indices, strength
            with threads_for(len(links)):
                renumber(*args, self.indptr[layer], self.indices, self.strength)
            begin += len(links)
        if self.adversary.joint and parts:
            room = 8 * total * len(parts)
            if room > MAX_JOINT:
                raise InputError(
                    f"matching {total:,} links jointly over {len(parts)} link types and directions "
                    f"takes about {room / 1e9:.0f} GB. Look at them apart (--no-joint) or at "
                    "fewer; risk still counts what is seen jointly."
                )
            own = self.strength[:, 0]
            self.indptr, self.indices, self.strength, _ = merge_layers(
                self.indptr, self.indices, own, own
            )

    def _sign(self) -> None:
        """Give each user 64 bits that say which kinds of neighbours it may have.

        A kind is what the exact attributes say. Whoever lacks a bit of a target's neighbours has
        no such neighbour, which rules out nearly everyone without a look at their links.
        """
        exact = self.values[: self._n_exact]
        begins = (exact[:, 1:] != exact[:, :-1]).any(axis=0)
        self.kind = np.append(0, np.cumsum(begins))[: self.total].astype(np.int32)
        self.signature = np.zeros(self.total, np.uint64)
        for layer, indptr in enumerate(self.indptr):
            with threads_for(len(self.indices)):
                add_signatures(layer, indptr, self.indices, self.kind, self.signature)
        self.most_links = int(np.diff(self.indptr).max(initial=0))

    def intervals(
        self, target: Flat, wanted: np.ndarray, max_pairs: float = np.inf
    ) -> CandidateSets:
        """Return the candidates of the `wanted` targets by profile alone (distance 0)."""
        n = target.size
        bounds = [c.bounds(target.columns[c.place].values) for c in self._columns]
        low, high = (
            np.ascontiguousarray(self._pack([ends[side] for ends in bounds], n).T)
            for side in (0, 1)
        )
        # A value that the auxiliary network never shows, and null, match nobody.
        unknown = (low[:, : self._n_exact] < 0).any(axis=1) | np.isnan(low).any(axis=1)
        first, last = np.empty(n, np.int64), np.empty(n, np.int64)
        profile_intervals(self.values, self._n_exact, low, high, first, last)
        last[unknown | ~wanted] = first[unknown | ~wanted]
        starts, found = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
        if len(self.values) > self._n_exact + 1:
            args = self.values, self._n_exact, low, high, first, last, starts
            _refuse_more(filter_profiles(*args, found), max_pairs)
            found = np.empty(starts[-1], np.int32)
            filter_profiles(*args, found)
            first[:] = -1
        sets = CandidateSets(first, last, starts, found)
        _refuse_more(int(sets.sizes().sum()), max_pairs)
        return sets


def compared_links(flat: Flat, adversary: Adversary) -> list[tuple[Links, Rule | None]]:
    """Return the links to compare, with their strength's rule; reversed ones after."""
    parts = list(flat.links)
    if adversary.in_links:
        parts += [(links.reverse(flat.size), rule) for links, rule in parts]
    return parts


def merge_layers(
    indptr: np.ndarray, indices: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Merge layers into one whose links carry a strength per layer (0 … any: not linked)."""
    layers, n = indptr.shape[0], indptr.shape[1] - 1
    rows = np.concatenate(
        [np.repeat(np.arange(n, dtype=np.int64), np.diff(part)) for part in indptr]
    )
    layer = np.repeat(np.arange(layers), indptr[:, -1] - indptr[:, 0])
    pairs, place = np.unique((rows << 32) | indices, return_inverse=True)
    merged_low = np.zeros((len(pairs), layers), np.int32)
    merged_high = np.full((len(pairs), layers), ANY_STRENGTH, np.int32)
    merged_low[place, layer], merged_high[place, layer] = low, high
    counts = np.bincount(pairs >> 32, minlength=n)
    merged_ptr = np.append(0, np.cumsum(counts)).astype(np.int64)[None, :]
    return merged_ptr, (pairs & 0x7FFFFFFF).astype(np.int32), merged_low, merged_high


@kernel(parallel=True)
def renumber(order, rank, indptr, indices, strength, out_indptr, out_indices, out_strength):
    """Renumber rows and targets of one link type; keep each row sorted."""
    for r in prange(len(order)):
        begin, out = indptr[order[r]], out_indptr[r]
        size = indptr[order[r] + 1] - begin
        packed = np.empty(size, np.int64)
        for e in range(size):
            s = strength[begin + e] if len(strength) else 1
            packed[e] = (np.int64(rank[indices[begin + e]]) << 32) | np.int64(s)
        packed.sort()
        for e in range(size):
            out_indices[out + e] = packed[e] >> 32
            out_strength[out + e, 0] = packed[e] & 0x7FFFFFFF
