"""Texts folded by a table of their characters: compiled.

Text i is ``text[offsets[i]:offsets[i + 1]]``, in UTF-8.
"""

import unicodedata

import numpy as np

from telic.completion.engine.array_kernels import copy_into, longer
from telic.completion.engine.folding import form_of_character
from telic.kernels import kernel

CODES = 0x110000
"""Characters of Unicode."""
GAP, UNKNOWN = -1, -2
"""Lengths of the forms of white space, and of characters that the table does not fold."""


@kernel
def character(text, p):
    """Code of the character at p, and where the next one is."""
    first = np.int64(text[p])
    if first < 0x80:
        return first, p + 1
    if first < 0xE0:
        return (first & 31) << 6 | text[p + 1] & 63, p + 2
    if first < 0xF0:
        return (first & 15) << 12 | (text[p + 1] & 63) << 6 | text[p + 2] & 63, p + 3
    code = (first & 7) << 18 | (text[p + 1] & 63) << 12 | (text[p + 2] & 63) << 6
    return code | text[p + 3] & 63, p + 4


@kernel
def _mark_seen(text, seen):
    """Mark the characters of a text."""
    p = 0
    while p < len(text):
        code, p = character(text, p)
        seen[code] = True


def characters_in(text: np.ndarray) -> np.ndarray:
    """Return the codes of the characters that a text has, ascending."""
    seen = np.zeros(CODES, bool)
    _mark_seen(text, seen)
    return np.flatnonzero(seen)


@kernel
def _fold(text, offsets, longest, forms, starts, lengths, classes, rest):
    """Fold texts; mark in `rest`, and leave empty, what needs more than the table or is no text."""
    out, ends, used = np.empty(len(text) + 16, np.uint8), np.zeros(len(offsets), np.int64), 0
    for i in range(len(rest)):
        p, begin, characters, length, before = offsets[i], used, 0, GAP, 0
        while p < offsets[i + 1]:
            code, p = character(text, p)
            characters += 1
            length = lengths[code]
            if before > classes[code, 0] > 0:  # the marks would have to change places
                length = UNKNOWN
            if length == UNKNOWN:
                break
            if length:
                before = classes[code, 1]
            if used + max(length, 0) + 2 > len(out):
                out = longer(out, used + length + 2)
            if length == GAP:
                if used > begin and out[used - 1] != 32:
                    out[used] = 32
                    used += 1
            else:
                used = copy_into(out, used, forms[starts[code] : starts[code] + length])
        if length != GAP and used > begin and out[used - 1] == 32:
            used -= 1  # a mark follows the last white space
        rest[i] = length == UNKNOWN or used == begin or characters > longest
        if rest[i]:
            used = begin
        ends[i + 1] = used
    return out[:used], ends


def fold_texts(
    text: np.ndarray, offsets: np.ndarray, longest: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fold many texts, as `telic.completion.engine.folding.fold` folds one.

    Parameters
    ----------
    text, offsets : uint8 and int64 array
    longest : int
        Most characters of a text.

    Returns
    -------
    text, offsets : uint8 and int64 array
        The folded forms.
    rest : bool array
        Texts that are left empty: no table of characters folds them, nothing is left of them, or
        they are too long.
    """
    starts, lengths = np.empty(CODES, np.int32), np.empty(CODES, np.int16)
    classes = np.zeros((CODES, 2), np.uint8)  # of marks at the beginning and the end of a form
    forms = bytearray()
    for code in characters_in(text).tolist():
        form = form_of_character(code)
        starts[code], lengths[code] = len(forms), UNKNOWN
        if form is not None:
            lengths[code] = GAP if form == " " else len(form.encode())
            if form:
                classes[code] = unicodedata.combining(form[0]), unicodedata.combining(form[-1])
            forms += form.encode()
    rest = np.empty(len(offsets) - 1, bool)
    table = np.frombuffer(forms, np.uint8)
    return *_fold(text, offsets, longest, table, starts, lengths, classes, rest), rest
