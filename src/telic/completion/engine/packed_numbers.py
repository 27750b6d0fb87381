"""Whole numbers in few bits, each of which can be read by itself.

`BLOCK` numbers make a block, which keeps its least number and, in as few bits as the largest needs,
what each is above it. So ascending offsets take the bits of the distances within a block.

Packed numbers are one int64 array: for each block ``least * 64 + bits`` and the place, counted in
bits of the array, at which its numbers begin; then the numbers.
"""

import numpy as np

from telic.kernels import kernel

BLOCK = 64


@kernel
def read(packed, i):
    """Number i."""
    header = packed[2 * (i >> 6)]
    width = header & 63
    bit = packed[2 * (i >> 6) + 1] + (i & 63) * width
    word, shift = bit >> 6, bit & 63
    value = packed[word] >> shift
    if shift + width > 64:
        value = value & ((1 << (64 - shift)) - 1) | packed[word + 1] << (64 - shift)
    return (header >> 6) + (value & ((1 << width) - 1))


@kernel
def read_some(packed, first, last, out):
    """Fill out with the numbers from first to before last: faster than `read`, one by one."""
    i = first
    while i < last:
        header = packed[2 * (i >> 6)]
        width, least = header & 63, header >> 6
        bit = packed[2 * (i >> 6) + 1] + (i & 63) * width
        end = min(last, (i | 63) + 1)
        for place in range(i - first, end - first):
            word, shift = bit >> 6, bit & 63
            value = packed[word] >> shift
            if shift + width > 64:
                value = value & ((1 << (64 - shift)) - 1) | packed[word + 1] << (64 - shift)
            out[place] = least + (value & ((1 << width) - 1))
            bit += width
        i = end


@kernel
def _fill(numbers, least, widths, packed):
    """Fill packed, whose bits are all zero, with blocks of the given minima and widths."""
    bit = 64 * 2 * len(widths)
    for block in range(len(widths)):
        first, width = block * BLOCK, widths[block]
        last = min(first + BLOCK, len(numbers))
        packed[2 * block], packed[2 * block + 1] = least[block] << 6 | width, bit
        for i in range(first, last):
            value, word, shift = numbers[i] - least[block], bit >> 6, bit & 63
            packed[word] |= value << shift
            if shift + width > 64:
                packed[word + 1] = value >> (64 - shift)
            bit += width


def pack_numbers(numbers: np.ndarray) -> np.ndarray:
    """Pack numbers from 0 to 2**57 - 1.

    Examples
    --------
    >>> packed = pack_numbers(np.arange(5000, 9000, 3))
    >>> int(read(packed, 1000)), packed.nbytes < 1334 * 1.5
    (8000, True)
    """
    numbers = np.asarray(numbers, np.int64)
    first = np.arange(0, len(numbers), BLOCK)
    if not len(first):
        return np.zeros(0, np.int64)
    least = np.minimum.reduceat(numbers, first)
    span = np.maximum.reduceat(numbers, first) - least
    widths = np.frexp(span.astype(float))[1].astype(np.int64)  # frexp: span < 2**exponent
    bits = int((widths * np.diff(np.append(first, len(numbers)))).sum())
    packed = np.zeros(2 * len(first) + bits // 64 + 1, np.int64)
    _fill(numbers, least, widths, packed)
    return packed
