"""Sorted strings, each kept as what differs from the one before it.

`BLOCK` strings make a block. The first one of a block is whole; each other begins with as many
bytes of the one before as its entry says. An entry is a byte whose upper half is the length that
is shared and whose lower half the length of the rest, then the rest. Where a half is 15, the length
is 15 and what follows: seven bits a byte, lowest first, until a byte below 128.

Block b begins at ``packed[starts[b]]``; the last of `starts` is the length of `packed`. ``keys[b]``
is a number made of the first seven bytes of the block's first string: keys sort as these strings
do, and those of strings that begin with the same seven bytes are equal. Most of a search reads keys
alone. The three are passed together as `strings`.
"""

import numpy as np

from telic.completion.engine.array_kernels import (
    copy_into,
    frozen,
    get_number,
    longer,
    place_in,
    put_number,
)
from telic.kernels import kernel

BLOCK = 16
_HALF = 15
_KEYED = 7
"""Bytes of a string that are in its key."""


@kernel
def _length(packed, at, half):
    """A length whose half of the first byte is given, and where reading goes on."""
    if half < _HALF:
        return np.int64(half), at
    more, at = get_number(packed, at)
    return _HALF + more, at


@kernel
def read_entry(packed, at):
    """Lengths shared with the string before and of the rest, and where the rest begins."""
    byte = np.int64(packed[at])
    shared, after = _length(packed, at + 1, byte >> 4)
    rest, after = _length(packed, after, byte & 15)
    return shared, rest, after


@kernel
def _write_length(length, packed, at):
    """Write what of a length does not fit into half a byte; where writing goes on."""
    return at if length < _HALF else put_number(packed, at, length - _HALF)


@kernel
def _room(length):
    """Bytes that a length takes beyond its half of the first byte."""
    room = 0
    if length >= _HALF:
        length -= _HALF
        room = 1
        while length >= 128:
            length >>= 7
            room += 1
    return room


@kernel
def common_prefix(text, offsets, i, j):
    """Length of the longest common prefix of the strings i and j of a table."""
    length = min(offsets[i + 1] - offsets[i], offsets[j + 1] - offsets[j])
    for p in range(length):
        if text[offsets[i] + p] != text[offsets[j] + p]:
            return p
    return length


@kernel
def _pack(text, offsets, packed, starts):
    """Pack a table of sorted strings; with no room to write, only say how much that takes."""
    n, at = len(offsets) - 1, 0
    write = len(packed) > 0
    for i in range(n):
        if i % BLOCK == 0:
            starts[i // BLOCK] = at
        shared = common_prefix(text, offsets, i - 1, i) if i % BLOCK else 0
        rest = offsets[i + 1] - offsets[i] - shared
        if not write:
            at += 1 + _room(shared) + _room(rest) + rest
            continue
        packed[at] = min(shared, _HALF) << 4 | min(rest, _HALF)
        at = _write_length(shared, packed, at + 1)
        at = _write_length(rest, packed, at)
        at = copy_into(packed, at, text[offsets[i] + shared : offsets[i + 1]])
    starts[-1] = at
    return at


def pack(text: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `packed` and `starts` of a table of sorted strings.

    Parameters
    ----------
    text : uint8 array
    offsets : int array, shape (n + 1,)
        String i is ``text[offsets[i]:offsets[i + 1]]``.
    """
    n = len(offsets) - 1
    starts = np.zeros(-(-n // BLOCK) + 1, np.int64)
    packed = np.empty(_pack(text, offsets, np.empty(0, np.uint8), starts), np.uint8)
    if n:
        _pack(text, offsets, packed, starts)
    return packed, compact(starts)


def compact(offsets: np.ndarray) -> np.ndarray:
    """Give ascending offsets in 32 bits, if the last fits."""
    return offsets.astype(np.int32) if offsets[-1] < 2**31 else offsets


@kernel
def _key(text, begin, end, fill):
    """Seven bytes of a string, filled up behind its end, and how many it has: 8 for more."""
    key = np.int64(0)
    for p in range(begin, begin + _KEYED):
        key = key << 8 | (np.int64(text[p]) if p < end else fill)
    return key << 4 | min(end - begin, _KEYED + 1)


@kernel
def _fill_keys(packed, starts, keys):
    for block in range(len(keys)):
        _, rest, at = read_entry(packed, starts[block])
        keys[block] = _key(packed, at, at + rest, 0)


def keys_of(packed: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the key of each block."""
    keys = np.empty(len(starts) - 1, np.int64)
    _fill_keys(frozen(packed), frozen(starts), keys)
    return keys


@kernel
def _order_of_first(packed, at, prefix):
    """Order of the whole string at `at`, cut to the prefix's length: -1, 0, 1; bytes in common."""
    _, rest, at = read_entry(packed, at)
    for p in range(min(rest, len(prefix))):
        if packed[at + p] != prefix[p]:
            return (-1 if packed[at + p] < prefix[p] else 1), p
    return (0, len(prefix)) if rest >= len(prefix) else (-1, rest)


@kernel
def _first(strings, n, prefix, block, least):
    """First id from a block on whose order against the prefix is at least `least` (0 or 1)."""
    packed, starts, keys = strings
    # The first block whose first string has that order.
    key = _key(prefix, 0, len(prefix), 255 * least)
    if len(prefix) <= _KEYED:  # keys tell all: padded by 255s, it is the largest with this prefix
        lo = place_in(keys, block, len(keys), (key | 15) + 1 if least else key)
        hi = lo
    else:
        lo = place_in(keys, block, len(keys), key)
        hi = place_in(keys, lo, len(keys), key + 1)
    while lo < hi:
        middle = (lo + hi) // 2
        if _order_of_first(packed, starts[middle], prefix)[0] < least:
            lo = middle + 1
        else:
            hi = middle
    if lo == block:
        return lo * BLOCK
    # It may still come earlier: within the block before, after that one's first string.
    order, common = _order_of_first(packed, starts[lo - 1], prefix)
    _, rest, at = read_entry(packed, starts[lo - 1])
    for i in range((lo - 1) * BLOCK + 1, min(lo * BLOCK, n)):
        shared, rest, at = read_entry(packed, at + rest)
        if shared < common:
            return i  # the string before has these bytes in common with the prefix; this has more
        if shared > common or order == 0:
            continue  # it stands to the prefix as the string before
        for p in range(rest):
            if common == len(prefix) or packed[at + p] != prefix[common]:
                break
            common += 1
        if common == len(prefix):
            order = 0
        elif common < shared + rest and packed[at + common - shared] > prefix[common]:
            order = 1
        if order >= least:
            return i
    return min(lo * BLOCK, n)


@kernel
def prefix_range(strings, n, prefix):
    """Ids of the strings, n in all, that start with the prefix: a half-open range."""
    lo = _first(strings, n, prefix, 0, 0)
    return lo, _first(strings, n, prefix, lo // BLOCK, 1)


@kernel
def length_of(strings, i):
    """Bytes of string i."""
    packed, starts, _ = strings
    at, shared, rest = np.int64(starts[i // BLOCK]), np.int64(0), np.int64(0)
    for _ in range(i % BLOCK + 1):
        shared, rest, at = read_entry(packed, at + rest)
    return shared + rest


@kernel
def read_string(strings, i, out, used):
    """Write string i to out, from `used` on; return out, larger where it had to be, and the end."""
    packed, starts, _ = strings
    at, rest, length = starts[i // BLOCK], 0, 0
    for _ in range(i % BLOCK + 1):  # the strings of the block are written over each other
        shared, rest, at = read_entry(packed, at + rest)
        length = shared + rest
        if used + length > len(out):
            out = longer(out, used + length)
        for p in range(rest):
            out[used + shared + p] = packed[at + p]
    return out, used + length


@kernel
def gather(strings, n, ids):
    """Return some of the n strings as a table: bytes one after the other, and their offsets."""
    out, used = np.empty(32 * len(ids) + 32, np.uint8), 0
    offsets = np.zeros(len(ids) + 1, np.int64)
    for row in range(len(ids)):
        if not 0 <= ids[row] < n:
            raise IndexError("no phrase has such an id")
        out, used = read_string(strings, ids[row], out, used)
        offsets[row + 1] = used
    return out[:used], offsets


@kernel
def _fill_offsets(packed, offsets):
    """Fill the offsets that the strings have in a table of all of them."""
    at, rest = 0, 0
    offsets[0] = 0
    for i in range(len(offsets) - 1):
        shared, rest, at = read_entry(packed, at + rest)
        offsets[i + 1] = offsets[i] + shared + rest


@kernel
def _fill_text(packed, offsets, text):
    """Fill the text of a table of all strings."""
    at, rest = 0, 0
    for i in range(len(offsets) - 1):
        shared, rest, at = read_entry(packed, at + rest)
        for p in range(shared):
            text[offsets[i] + p] = text[offsets[i - 1] + p]
        for p in range(rest):
            text[offsets[i] + shared + p] = packed[at + p]


def unpack(packed: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the text and the offsets that `pack` was given."""
    offsets = np.empty(n + 1, np.int64)
    _fill_offsets(packed, offsets)
    text = np.empty(offsets[-1], np.uint8)
    _fill_text(packed, offsets, text)
    return text, offsets
