"""How a phrase is spelled, beside its folded form: mostly some letters are capitals."""

import numpy as np

from telic.completion.engine.array_kernels import copy_into, longer
from telic.completion.engine.front_coding import read_string
from telic.completion.engine.packed_numbers import read
from telic.kernels import kernel

AS_FOLDED, FIRST, AFTER_SPACES, AFTER_NON_LETTERS, CAPITALS, GIVEN = range(6)
"""Which of the folded form's letters a to z are capitals: none, the first byte, those at the start
and after spaces, those at the start and after bytes that are no part of a letter, all; GIVEN: the
spelling differs otherwise and is kept as it is."""
BLOCK = 64
"""Phrases per block, of which it is kept how many before it are of the kind GIVEN."""


@kernel
def _is_capital(kind, text, start, p):
    if kind == AS_FOLDED or not 97 <= text[p] <= 122:
        return False
    if kind == CAPITALS or p == start:
        return True
    before = text[p - 1]
    if kind == AFTER_SPACES:
        return before == 32
    return kind == AFTER_NON_LETTERS and not (97 <= before <= 122 or before >= 128)


@kernel
def _has(kind, folded, start, end, spelled, at):
    for p in range(start, end):
        byte = folded[p] - 32 if _is_capital(kind, folded, start, p) else folded[p]
        if spelled[at + p - start] != byte:
            return False
    return True


@kernel
def fill_kinds(folded, offsets, spelled, spelled_offsets, kinds):
    """Fill in the kind of each phrase's spelling, from tables of folded forms and spellings."""
    for i in range(len(kinds)):
        start, end, at = offsets[i], offsets[i + 1], spelled_offsets[i]
        kinds[i] = GIVEN
        if spelled_offsets[i + 1] - at == end - start:
            for kind in range(GIVEN):
                if _has(kind, folded, start, end, spelled, at):
                    kinds[i] = kind
                    break


@kernel
def spelled(phrases, kinds, given, ids):
    """Return the spellings of some phrases as a table: bytes one after the other, and offsets.

    `phrases` are the front-coded folded forms; `given` says how many phrases before each block are
    of the kind GIVEN, and holds the bytes of their spellings, and the offsets as packed numbers.
    """
    given_before, given_bytes, given_offsets = given
    out, used = np.empty(32 * len(ids) + 32, np.uint8), 0
    offsets = np.zeros(len(ids) + 1, np.int64)
    for row in range(len(ids)):
        if not 0 <= ids[row] < len(kinds):
            raise IndexError("no phrase has such an id")
        kind = kinds[ids[row]]
        if kind == GIVEN:
            block = ids[row] // BLOCK
            place = np.int64(given_before[block])
            for i in range(block * BLOCK, ids[row]):
                place += kinds[i] == GIVEN
            start, end = read(given_offsets, place), read(given_offsets, place + 1)
            out = longer(out, used + end - start)
            used = copy_into(out, used, given_bytes[start:end])
        else:
            out, end = read_string(phrases, ids[row], out, used)
            for p in range(end - 1, used - 1, -1):  # backwards: what stands before is read
                if _is_capital(kind, out, used, p):
                    out[p] -= 32
            used = end
        offsets[row + 1] = used
    return out[:used], offsets
