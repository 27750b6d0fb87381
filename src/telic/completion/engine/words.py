"""Texts split into words: those that are typed, and those that phrases are found by."""

import re
import unicodedata
from bisect import bisect_left
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from telic.completion.engine.array_kernels import copy_into, frozen
from telic.completion.engine.fold_kernels import CODES, character, characters_in
from telic.kernels import kernel

SUFFIX = 12
"""Longest word, in characters, that is kept of a text without spaces, from each character on; a
longer word of another script that stands there is kept whole."""
KEPT, UNSPACED, MARK = 1, 2, 4
"""Bits of a character's kind: part of a word; of a script without spaces; a combining mark."""

SHORT = 1 << 16
"""Bytes of a text whose characters Python gathers."""

_ASCII_WORD = re.compile("[a-z0-9]+")
_NO_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han: scripts that are written without spaces."""


def words_of(folded: str) -> list[str]:
    """Split a folded text at everything that is no letter, mark or digit.

    Examples
    --------
    >>> from telic.completion import fold
    >>> words_of(fold("St. John's (Île-à-Vache)"))
    ['st', 'john', 's', 'ile', 'a', 'vache']
    """
    if folded.isascii():
        return _ASCII_WORD.findall(folded)
    kept = [c if unicodedata.category(c)[0] in "LNM" else " " for c in folded]
    return "".join(kept).split()


def pieces_of(word: str) -> list[str]:
    """Cut a typed word as phrases are kept: of a script without spaces in pieces of `SUFFIX`.

    Each piece begins where a word of `indexed_words` may begin. Any other word is one piece.

    Examples
    --------
    >>> pieces_of("internationally"), pieces_of("東京都千代田区霞が関一丁目")
    (['internationally'], ['東京都千代田', '区霞が関一丁目'])
    """
    if len(word) <= SUFFIX or not _NO_SPACES.search(word):
        return [word]
    kinds = [_kind(letter) for letter in word]
    begins = [
        i
        for i in range(1, len(word))
        if (kinds[i - 1] | kinds[i]) & UNSPACED and not kinds[i] & MARK
    ]
    count = -(-len(word) // SUFFIX)
    even = [i * len(word) / count for i in range(1, count)] if begins else []
    cuts = set()
    for at in even:
        before = max(bisect_left(begins, at) - 1, 0)
        cuts.add(min(begins[before : before + 2], key=lambda begin: abs(begin - at)))
    return [word[begin:end][:SUFFIX] for begin, end in pairwise([0, *sorted(cuts), len(word)])]


def indexed_words(text: np.ndarray, offsets: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    """Return the words that phrases are found by, of all phrases one after the other.

    They are those of `words_of`. Of a script without spaces they are the text from each of its
    characters on, so that any part of it is the beginning of one.

    Parameters
    ----------
    text, offsets : uint8 and int64 array
        The folded phrases: phrase i is ``text[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    words : large_binary array
        A word that a phrase has several times comes as often.
    begins : int64 array, shape (phrases + 1,)
        Those of phrase i are ``words[begins[i]:begins[i + 1]]``.

    Examples
    --------
    >>> phrases = "new york東京a".encode()
    >>> words, begins = indexed_words(np.frombuffer(phrases, np.uint8), np.array([0, 8, 15]))
    >>> [word.decode() for word in words.to_pylist()], begins.tolist()
    (['new', 'york', '東京a', '京a', 'a'], [0, 2, 5])
    """
    kinds = np.zeros(CODES, np.uint8)
    # To look for all characters that there are takes longer than a short text.
    short = len(text) < SHORT
    for code in map(ord, set(text.tobytes().decode())) if short else characters_in(text).tolist():
        kinds[code] = _kind(chr(code))
    text, begins = frozen(text), np.zeros(len(offsets), np.int64)
    nothing = np.empty(0, np.uint8), np.empty(0, np.int64)
    count, size = _split(text, offsets, kinds, begins, *nothing)
    content, ends = np.empty(size, np.uint8), np.zeros(count + 1, np.int64)
    _split(text, offsets, kinds, begins, content, ends)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers), begins


@cache
def _kind(letter: str) -> int:
    category = unicodedata.category(letter)[0]
    if category not in "LNM":
        return 0
    return KEPT | UNSPACED * bool(_NO_SPACES.match(letter)) | MARK * (category == "M")


@kernel
def _split(text, offsets, kinds, begins, content, ends):
    """Split phrases; return how many words and bytes they have, which without room is all."""
    count, size, write = 0, 0, len(ends) > 0
    for i in range(len(offsets) - 1):
        p, stop = offsets[i], offsets[i + 1]
        while p < stop:
            begin, all_kinds = p, 0
            while p < stop:
                code, after = character(text, p)
                if not kinds[code]:
                    break
                all_kinds |= kinds[code]
                p = after
            if p == begin:
                p = after
                continue
            before, at = UNSPACED, begin
            while at < p:
                code, after = character(text, at)
                kind = kinds[code]
                end = p
                if all_kinds & UNSPACED:
                    end = at
                    if (kind | before) & UNSPACED and not kind & MARK:
                        length, spaced = 0, True  # no word of another script is cut
                        while end < p:
                            code, following = character(text, end)
                            spaced = spaced and not kinds[code] & UNSPACED
                            if length >= SUFFIX and not spaced:
                                break
                            end, length = following, length + 1
                if end > at:
                    if write:
                        ends[count + 1] = copy_into(content, size, text[at:end])
                    count += 1
                    size += end - at
                before, at = kind, after if all_kinds & UNSPACED else p
        begins[i + 1] = count
    return count, size
