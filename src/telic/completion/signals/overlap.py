"""What two queries have in common: words and runs of three characters, as sorted sets of hashes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from telic.completion.engine.array_kernels import copy_into, frozen, joined_texts, sort_once
from telic.completion.learning.feedback import word_byte
from telic.kernels import kernel


class Texts(NamedTuple):
    """Folded texts with their words and grams; those of text i are ``[start[i]:start[i + 1]]``."""

    text: np.ndarray
    text_start: np.ndarray
    word: np.ndarray
    word_start: np.ndarray
    gram: np.ndarray
    gram_start: np.ndarray


_BASIS, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a, 64 bits


@kernel
def word_set(text):
    """Hashes of the words of a folded text, ascending, each once."""
    found = np.empty(len(text) // 2 + 1, np.uint64)
    used, inside, code = 0, False, _BASIS
    for p in range(len(text) + 1):
        if p < len(text) and word_byte(text[p]):
            code = ((code if inside else _BASIS) ^ np.uint64(text[p])) * _PRIME
            inside = True
        elif inside:
            found[used] = code
            used += 1
            inside = False
    return sort_once(found[:used])


@kernel
def gram_set(text):
    """Runs of three bytes of a folded text, ascending, each once."""
    found = np.empty(max(len(text) - 2, 0), np.uint32)
    for p in range(len(found)):
        found[p] = (np.uint32(text[p]) << 16) | (np.uint32(text[p + 1]) << 8) | text[p + 2]
    return sort_once(found)


@kernel
def common(one, other):
    """How many elements two ascending sets share."""
    i = j = shared = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            shared += 1
            i += 1
            j += 1
        elif one[i] < other[j]:
            i += 1
        else:
            j += 1
    return shared


@kernel
def begins_with(text, start):
    """Whether a text begins with another one, or is it."""
    if len(text) < len(start):
        return False
    for p in range(len(start)):  # noqa: SIM110 (numba has no generators here)
        if text[p] != start[p]:
            return False
    return True


@kernel
def word_sets(blob, offsets):
    """The word sets of many texts, one after another, and where each begins."""
    n = len(offsets) - 1
    start, held = np.zeros(n + 1, np.int64), np.empty(len(blob) + 1, np.uint64)
    for i in range(n):
        start[i + 1] = copy_into(held, start[i], word_set(blob[offsets[i] : offsets[i + 1]]))
    return held[: start[n]].copy(), start


@kernel
def gram_sets(blob, offsets):
    """The gram sets of many texts, one after another, and where each begins."""
    n = len(offsets) - 1
    start, held = np.zeros(n + 1, np.int64), np.empty(len(blob) + 1, np.uint32)
    for i in range(n):
        start[i + 1] = copy_into(held, start[i], gram_set(blob[offsets[i] : offsets[i + 1]]))
    return held[: start[n]], start  # nearly all of it, so that it is not copied


@kernel
def taken(held, start, rows):
    """Some rows of a sparse array, one after another, and where each begins."""
    begins = np.zeros(len(rows) + 1, np.int64)
    for i in range(len(rows)):
        begins[i + 1] = begins[i] + start[rows[i] + 1] - start[rows[i]]
    out = np.empty(begins[-1], held.dtype)
    for i in range(len(rows)):
        copy_into(out, begins[i], held[start[rows[i]] : start[rows[i] + 1]])
    return out, begins


def texts_of(blob: np.ndarray, offsets: np.ndarray) -> Texts:
    """Return texts, joined in UTF-8 and with where each begins, with their sets."""
    blob, offsets = frozen(blob), offsets.astype(np.int64)
    sets = *word_sets(blob, offsets), *gram_sets(blob, offsets)
    return Texts(blob, *map(frozen, (offsets, *sets)))


_BYTES, _WORDS, _GRAMS = (frozen(np.zeros(0, kind)) for kind in (np.uint8, np.uint64, np.uint32))
_ENDS = frozen(np.zeros(1, np.int64))
NO_TEXTS = Texts(_BYTES, _ENDS, _WORDS, _ENDS, _GRAMS, _ENDS)
"""`texts_of_forms` of none, without its kernels: no module calls one while it is imported."""


def texts_of_forms(forms: Sequence[bytes]) -> Texts:
    """Return folded texts with their sets."""
    return texts_of(*joined_texts(forms))


def joined(one: Texts, other: Texts) -> Texts:
    """Return the texts of both, one after another."""
    columns = []
    for k in range(0, len(one), 2):
        columns.append(np.concatenate([one[k], other[k]]))
        columns.append(np.concatenate([one[k + 1], one[k + 1][-1] + other[k + 1][1:]]))
    return Texts(*map(frozen, columns))
