"""The prefix index: the heaviest phrases that start with what has been typed."""

import builtins
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike

from telic.completion.engine import prefix_kernels as kernels
from telic.completion.engine.array_kernels import frozen, joined_texts
from telic.completion.engine.encoded_phrases import bytes_and_offsets, encoded_phrases
from telic.completion.engine.folding import encoded_prefix
from telic.completion.engine.front_coding import BLOCK as STRINGS
from telic.completion.engine.front_coding import (
    compact,
    gather,
    keys_of,
    pack,
    prefix_range,
    unpack,
)
from telic.completion.engine.packed_numbers import pack_numbers
from telic.completion.engine.shown_spelling import BLOCK, GIVEN, fill_kinds, spelled
from telic.data import load_model, save_model
from telic.errors import InputError, ModelError, expect_whole

_KIND = "prefix-index"


class Place(NamedTuple):
    """Where a phrase belongs in an index."""

    at: int
    """Its id; of a phrase that is not there, the id before which it would stand."""
    there: bool
    folded: bytes
    """Its folded form, in UTF-8."""
    alike: range
    """The ids whose phrases fold as it does."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrefixIndex:
    r"""Phrases with weights, sorted by their folded form, in arrays that can be memory-mapped.

    A phrase's id is its place, an int64 from 0, in the order of the folded phrases' UTF-8 bytes
    (`fold`); phrases that fold alike are ordered by their own spelling. So the phrases that start
    with a prefix have consecutive ids, found by two binary searches. The heaviest of them come
    from a precomputed list if the range is large, otherwise from range maxima: a sparse table
    over blocks of 64 weights finds the heaviest id of an interval, and a heap over the intervals
    between the ids already taken finds the next ones.

    Nothing is rounded: a folded form is kept as what differs from the one before, a spelling mostly
    as the rule by which letters are capitals, and a weight as its number among the distinct ones.

    Make one with `build` or `load`. All arrays are read-only.

    Attributes
    ----------
    front_coded, front_starts, front_keys : arrays of uint8, of int32 or int64, and of int64
        The folded phrases in order of id: see `telic.completion.engine.front_coding`.
    spelling_kinds : array of uint8, shape (n,)
        How each phrase is spelled: see `telic.completion.engine.shown_spelling`.
    given_before : array of int32 or int64
        How many phrases before each block of 64 no rule spells.
    given_spellings, given_offsets : array of uint8, packed numbers
        Their spellings' bytes and offsets: see `telic.completion.engine.packed_numbers`.
    weight_numbers : array of uint16 or uint32, shape (n,)
        Weight i is ``weight_values[weight_numbers[i]]``, at least 0; see `weights_of`.
    weight_values : array of float64
        The distinct weights, ascending, so that numbers compare as weights do.
    block_maxima : array of int32 or int64, shape (levels, blocks)
        Entry (j, b) is the first heaviest id in the blocks b to b + 2**j - 1.
    hot_ranges : array of int64, shape (h, 2)
        The large ranges of ids that prefixes have, sorted.
    hot_ids : array of int64, shape (h, hot_top)
        The heaviest ids of each of them.

    Examples
    --------
    >>> index = PrefixIndex.build(["New York", "Newark", "São Paulo", "Sapporo"], [8, 1, 12, 2])
    >>> index.phrases(index.top("new"))
    ['New York', 'Newark']
    >>> index.phrases(index.top("SAO"))
    ['São Paulo']
    >>> index.range("new "), index.find("Sapporo"), len(index)
    ((0, 1), 3, 4)
    """

    front_coded: np.ndarray
    front_starts: np.ndarray
    front_keys: np.ndarray
    spelling_kinds: np.ndarray
    given_before: np.ndarray
    given_spellings: np.ndarray
    given_offsets: np.ndarray
    weight_numbers: np.ndarray
    weight_values: np.ndarray
    block_maxima: np.ndarray
    hot_ranges: np.ndarray
    hot_ids: np.ndarray

    def __post_init__(self) -> None:
        # The kernels then compile once, and numba need not look at np.memmap's type at each call.
        for field in fields(self):
            object.__setattr__(self, field.name, frozen(getattr(self, field.name)))

    @classmethod
    def build(
        cls,
        phrases: Sequence[str] | pa.Array | pa.ChunkedArray,
        weights: Sequence[float] | np.ndarray,
        *,
        hot_top: int = 50,
        hot_range: int = 1024,
    ) -> Self:
        """Index phrases by their weights.

        Parameters
        ----------
        phrases : sequence of str, or Arrow array of strings
            At most `telic.data.contracts.MAX_TEXT` characters each. A phrase that comes again, in
            the same spelling, is one entry with the sum of the weights. No phrase at all makes an
            empty index.
        weights : array-like, shape (n,)
            Weight of each phrase, finite and at least 0.
        hot_top : int, default 50
            How many ids are precomputed for a large range, at least 1.
        hot_range : int, default 1024
            A range of at least this many ids (and at least `hot_top`) is large.

        Raises
        ------
        InputError
            If a phrase is not a str, is empty once folded, is too long or is not valid Unicode; if
            a weight, or the sum for a phrase, is negative or not finite; if the lengths differ.
        """
        return cls.build_ordered(phrases, weights, hot_top=hot_top, hot_range=hot_range)[0]

    @classmethod
    def build_ordered(
        cls,
        phrases: Sequence[str] | pa.Array | pa.ChunkedArray,
        weights: Sequence[float] | np.ndarray,
        *,
        apart: np.ndarray | None = None,
        hot_top: int = 50,
        hot_range: int = 1024,
    ) -> tuple[Self, np.ndarray]:
        """Index phrases as `build` does, and say which of those given each id is.

        Parameters
        ----------
        phrases, weights, hot_top, hot_range
            As of `build`.
        apart : int array, shape (n,), optional
            Phrases of one spelling are one entry only where this is equal too.

        Returns
        -------
        index : PrefixIndex
        given : int64 array, shape (len(index),)
            The first phrase, of those given, that each id stands for.
        """
        expect_whole(1, hot_top=hot_top)
        if isinstance(phrases, str):
            raise InputError(f"phrases is the str {phrases[:40]!r}, expected a sequence of str.")
        values = checked_weights(weights)
        if len(phrases) != len(values):
            raise InputError(f"{len(phrases)} phrases but {len(values)} weights: one for each.")
        apart = np.zeros(len(values), np.int64) if apart is None else np.asarray(apart, np.int64)
        folded, spellings, given = sorted_phrases(phrases, apart)
        values, apart = values[given], apart[given]

        first = firsts(spellings, apart)
        if len(first) < len(given):
            spellings, folded = spellings.take(pa.array(first)), folded.take(pa.array(first))
            values = added_up(values, first, spellings)
        text, offsets = bytes_and_offsets(folded)
        kinds, given_text, given_lengths = packed_spellings(text, offsets, spellings)
        weight_values, numbers = _distinct(values)
        index = cls.assembled(
            *pack(text, offsets),
            kinds,
            given_text,
            given_lengths,
            numbers.astype(number_kind(weight_values)),
            weight_values,
            hot_top=hot_top,
            hot_range=hot_range,
        )
        return index, given[first]

    @classmethod
    def assembled(
        cls,
        front_coded: np.ndarray,
        front_starts: np.ndarray,
        kinds: np.ndarray,
        given_spellings: np.ndarray,
        given_lengths: np.ndarray,
        weight_numbers: np.ndarray,
        weight_values: np.ndarray,
        *,
        hot_top: int,
        hot_range: int,
    ) -> Self:
        """Make an index of its larger arrays: what follows from them is found."""
        n = len(kinds)
        before: Any = []
        if n:
            before = np.add.reduceat(kinds == GIVEN, np.arange(0, n, BLOCK), dtype=int)
        index = cls(
            front_coded,
            front_starts,
            keys_of(front_coded, front_starts),
            kinds,
            compact(np.concatenate([[0], np.cumsum(before, dtype=int)])),
            given_spellings,
            pack_numbers(np.concatenate([[0], np.cumsum(given_lengths, dtype=np.int64)])),
            weight_numbers,
            weight_values,
            block_maxima(weight_numbers),
            hot_ranges=np.empty((0, 2), np.int64),
            hot_ids=np.empty((0, hot_top), np.int64),
        )
        hot_ranges = _large_ranges(index.strings, n, max(hot_range, hot_top))
        hot_ids = np.empty((len(hot_ranges), hot_top), np.int64)
        for row, (lo, hi) in enumerate(hot_ranges):
            hot_ids[row] = index.top_in_range(lo, hi, hot_top)
        return replace(index, hot_ranges=hot_ranges, hot_ids=hot_ids)

    def save(self, folder: str | Path) -> None:
        """Write the index to a model folder; see `telic.data.save_model`."""
        meta = {"phrases": len(self), "hot_top": self.hot_ids.shape[1]}
        save_model(folder, kind=_KIND, meta=meta, arrays={}, mapped=self.arrays())

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Memory-map an index that `save` wrote; see `telic.data.load_model`."""
        return cls.stored(load_model(folder, kind=_KIND).arrays, folder)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a model folder keeps."""
        return {f"index.{field.name}": getattr(self, field.name) for field in fields(self)}

    @classmethod
    def stored(cls, arrays: Mapping[str, np.ndarray], folder: str | Path) -> Self:
        """Read back what `arrays` gave; ModelError if an older version wrote the folder."""
        if "index.front_keys" not in arrays:
            raise ModelError(f"{folder}: its index is an older version's. Fit it again.")
        return cls(**{field.name: arrays[f"index.{field.name}"] for field in fields(cls)})

    def __len__(self) -> int:
        return len(self.weight_numbers)

    @property
    def strings(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The folded phrases, as the kernels take them."""
        return self.front_coded, self.front_starts, self.front_keys

    def weights_of(self, ids: np.ndarray | int | slice = slice(None)) -> np.ndarray:
        """Return the weights of some ids, by default of all: float64, at least 0."""
        return self.weight_values[self.weight_numbers[ids]]

    def range(self, prefix: str) -> tuple[int, int]:
        """Give the half-open range of ids whose folded phrase starts with the folded prefix.

        Where nothing does, both ends are equal. The empty prefix has all ids.
        """
        key = np.frombuffer(encoded_prefix(prefix), np.uint8)
        lo, hi = prefix_range(self.strings, len(self), key)
        return int(lo), int(hi)

    def ranges(self, prefixes: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """Give the ranges of many prefixes: two int64 arrays, the first ids and the ends."""
        text, offsets = joined_texts([encoded_prefix(prefix) for prefix in prefixes])
        lo, hi = np.empty((2, len(offsets) - 1), np.int64)
        kernels.prefix_ranges(self.strings, len(self), text, offsets, lo, hi)
        return lo, hi

    def top(self, prefix: str, k: int = 10) -> np.ndarray:
        """Give the ids of the k heaviest phrases that start with a prefix.

        Parameters
        ----------
        prefix : str
            As typed; it is folded. The empty prefix asks for the heaviest of all.
        k : int, default 10
            At least 1, and as large as you like.

        Returns
        -------
        array of int64
            By descending weight, equal weights by ascending id; fewer than `k` if fewer match.
        """
        return self.top_of(encoded_prefix(prefix), min(_checked_k(k), len(self)))[0]

    def top_of(self, folded: bytes, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Do as `top` for a prefix that is folded and encoded; give weights beside the ids."""
        ids, weights = np.empty(k, np.int64), np.empty(k)
        count = kernels.top_of_prefix(
            self.strings,
            np.frombuffer(folded, np.uint8),
            (self.weight_numbers, self.weight_values, self.block_maxima),
            (self.hot_ranges, self.hot_ids),
            ids,
            weights,
        )
        return ids[:count], weights[:count]

    def top_phrases(self, prefix: str, k: int = 10) -> list[str]:
        """Give the spellings of what `top` finds, in one step.

        Examples
        --------
        >>> PrefixIndex.build(["Tea", "tea pot", "toast"], [2.0, 3.0, 1.0]).top_phrases("te")
        ['tea pot', 'Tea']
        """
        k = min(_checked_k(k), len(self))
        return _decoded(*self.top_spelled(encoded_prefix(prefix), k))

    def top_spelled(self, folded: bytes, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Do as `top_of` and then as `spelled`, in one step."""
        return kernels.top_spelled(
            self.strings,
            np.frombuffer(folded, np.uint8),
            (self.weight_numbers, self.weight_values, self.block_maxima),
            (self.hot_ranges, self.hot_ids),
            self.spelling_kinds,
            (self.given_before, self.given_spellings, self.given_offsets),
            k,
        )

    def top_in_range(self, lo: int, hi: int, k: int = 10) -> np.ndarray:
        """Give the k heaviest ids of ``lo <= id < hi``, in the order of `top`.

        Any range within ``0 <= lo <= hi <= len(self)`` will do, not only that of a prefix.
        """
        lo, hi = int(lo), int(hi)
        if not 0 <= lo <= hi <= len(self):
            raise InputError(f"range [{lo}, {hi}) is not within the index's [0, {len(self)}).")
        k = min(_checked_k(k), hi - lo)
        if k <= self.hot_ids.shape[1]:
            row = kernels.find_range(self.hot_ranges, lo, hi)
            if row >= 0:
                return self.hot_ids[row, :k].copy()
        ids = np.empty(k, np.int64)
        kernels.fill_top(self.weight_numbers, self.block_maxima, lo, hi, ids)
        return ids

    def phrase(self, id: int) -> str:
        """Give the original spelling of a phrase; IndexError unless ``0 <= id < len(self)``."""
        if not 0 <= id < len(self):
            raise IndexError(f"no phrase has id {id}: ids go from 0 to {len(self) - 1}.")
        return self.phrases([id])[0]

    def phrases(self, ids: Iterable[int]) -> list[str]:
        """Give the original spellings of several phrases; IndexError as `phrase`."""
        wanted = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
        return _decoded(*self.spelled(wanted))

    def spellings(self, ids: np.ndarray) -> pa.Array:
        """Do as `phrases`, for very many: give an Arrow array of strings."""
        text, offsets = self.spelled(ids)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), len(ids), buffers)

    def spelled(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give the spellings of several phrases, in UTF-8, one after the other, and offsets."""
        given = self.given_before, self.given_spellings, self.given_offsets
        return spelled(self.strings, self.spelling_kinds, given, ids)

    def folded(self, id: int) -> bytes:
        """Give the folded form of a phrase, in UTF-8; IndexError as `phrase`."""
        return self.folded_texts([id])[0].tobytes()

    def folded_texts(self, ids: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Give the folded forms of several phrases, in UTF-8, one after the other, and offsets."""
        return gather(self.strings, len(self), np.asarray(ids, np.int64))

    def all_folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Give all folded forms as `folded_texts` does: for a large index, much memory."""
        return self.folded_between(0, len(self))

    def folded_between(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        """Give those of the ids from `begin`, a multiple of 16, to before `end`."""
        return unpack(self.front_coded[self.front_starts[begin // STRINGS] :], end - begin)

    def find(self, phrase: str) -> int:
        """Give the id of a phrase in exactly this spelling, or -1."""
        place = self.place(phrase)
        return place.at if place.there else -1

    def place(self, phrase: str) -> "Place":
        """Tell where a phrase, in exactly this spelling, stands or would stand among the ids."""
        key, spelling = encoded_prefix(phrase), phrase.encode(errors="surrogatepass")
        alike = self._alike(key)
        at = alike.start + bisect_left(alike, spelling, key=lambda id: self.phrase(id).encode())
        return Place(at, at < alike.stop and self.phrase(at) == phrase, key, alike)

    def alike(self, phrase: str) -> builtins.range:
        """Give the ids whose phrases fold as this one does."""
        return self._alike(encoded_prefix(phrase))

    def spelled_as(self, phrase: str) -> builtins.range:
        """Give the ids of exactly this spelling: several where phrases are kept apart."""
        alike, spelling = self.alike(phrase), phrase.encode(errors="surrogatepass")
        first, end = (
            alike.start + search(alike, spelling, key=lambda id: self.phrase(id).encode())
            for search in (bisect_left, bisect_right)
        )
        return builtins.range(first, end)

    def _alike(self, key: bytes) -> builtins.range:
        return builtins.range(
            *kernels.range_of(self.strings, len(self), np.frombuffer(key, np.uint8))
        )


def _decoded(spellings: np.ndarray, offsets: np.ndarray) -> list[str]:
    coded = spellings.tobytes()
    text = coded.decode()
    if len(text) == len(coded):  # all ASCII: no piece has to be decoded
        return [text[start:end] for start, end in pairwise(offsets.tolist())]
    return [coded[start:end].decode() for start, end in pairwise(offsets.tolist())]


def sorted_phrases(
    phrases: Sequence[str] | pa.Array | pa.ChunkedArray, apart: np.ndarray
) -> tuple[pa.Array, pa.Array, np.ndarray]:
    """Return folded forms and spellings in the order of ids, and which of those given each is."""
    spellings, folded = encoded_phrases(phrases)
    table = pa.table({"folded": folded, "spelling": spellings, "apart": apart})
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.schema.names])
    return folded.take(order), spellings.take(order), order.to_numpy().astype(np.int64)


def _checked_k(k: int) -> int:
    if k < 1:
        raise InputError(f"k is {k!r}, expected an integer >= 1.")
    return k


def _large_ranges(strings: tuple[np.ndarray, ...], n: int, smallest: int) -> np.ndarray:
    none = np.empty((0, 2), np.int64)
    if n < smallest:
        return none
    ranges = np.empty((kernels.large_ranges(strings, n, smallest, none), 2), np.int64)
    kernels.large_ranges(strings, n, smallest, ranges)
    return np.unique(ranges, axis=0)


def packed_spellings(
    text: np.ndarray, offsets: np.ndarray, spellings: pa.Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return kinds, and the bytes and the lengths of the spellings that no rule gives."""
    kinds = np.empty(len(spellings), np.uint8)
    fill_kinds(text, offsets, *bytes_and_offsets(spellings), kinds)
    given, ends = bytes_and_offsets(spellings.filter(pa.array(kinds == GIVEN)))
    return kinds, given, np.diff(ends)


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Do as `numpy.unique` with return_inverse=True, in little time where few values differ."""
    coded = pa.array(values).dictionary_encode()
    distinct = coded.dictionary.to_numpy()
    order = np.argsort(distinct)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return distinct[order], rank[coded.indices.to_numpy()]


def number_kind(weight_values: np.ndarray) -> type[np.unsignedinteger]:
    """Return the type in which the numbers of distinct weights are kept."""
    return np.uint16 if len(weight_values) <= 2**16 else np.uint32


def firsts(*columns: pa.Array | np.ndarray) -> np.ndarray:
    """Return the places of sorted rows that differ from the one before."""
    new = np.ones(len(columns[0]), bool)
    if len(new):
        new[1:] = False
    for column in columns:
        differs = pc.not_equal(pa.array(column)[1:], pa.array(column)[:-1])
        new[1:] |= differs.to_numpy(zero_copy_only=False)
    return np.flatnonzero(new)


def added_up(values: np.ndarray, first: np.ndarray, spellings: pa.Array) -> np.ndarray:
    """Add the weights of rows of one spelling, each in the order given; InputError if infinite."""
    group = np.zeros(len(values), np.int64)
    group[first[1:]] = 1
    total = np.zeros(len(first))
    with np.errstate(over="ignore"):
        np.add.at(total, np.cumsum(group), values)
    if not np.isfinite(total).all():
        phrase = spellings[int(np.argmin(np.isfinite(total)))].as_py().decode()
        raise InputError(f"the weights of phrase {phrase!r} sum to infinity: scale them down.")
    return total


def block_maxima(weights: np.ndarray) -> np.ndarray:
    """Give the table of range maxima that `PrefixIndex.block_maxima` describes."""
    n_blocks = -(-len(weights) // kernels.BLOCK)
    kind = np.int32 if len(weights) < 2**31 else np.int64
    maxima = np.zeros((max(1, n_blocks.bit_length()), n_blocks), kind)
    kernels.fill_block_maxima(frozen(weights), maxima)
    return maxima


def checked_weights(weights: Sequence[float] | np.ndarray, begin: int = 0) -> np.ndarray:
    """Return weights as float64; InputError about the first bad one, counted from `begin`."""
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"weights are not numbers: {error}.") from None
    if values.ndim != 1:
        raise InputError(f"weights have shape {values.shape}, expected one dimension.")
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        raise InputError(
            f"weights[{begin + bad[0]}] is {values[bad[0]]}, expected a finite number >= 0. "
            "Drop or mend the row."
        )
    return values + 0.0  # no -0.0
