"""Phrases as they are given, checked, and their spellings and folded forms in UTF-8."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine.array_kernels import frozen
from telic.completion.engine.fold_kernels import fold_texts
from telic.completion.engine.folding import checked_form
from telic.data.contracts import MAX_TEXT

TEXT = pa.string(), pa.large_string()
"""Types of Arrow arrays that are taken as they are."""
FEW = 1000
"""Phrases that are folded one by one: compiling what folds many takes longer."""
JOINED = 1 << 16
"""Phrases that are encoded at once."""


def encoded_phrases(phrases: Iterable, begin: int = 0) -> tuple[pa.Array, pa.Array]:
    """Return spellings and folded forms, in UTF-8; InputError about the first that has none.

    Phrases are numbered from `begin`.
    """
    given = phrases.combine_chunks() if isinstance(phrases, pa.ChunkedArray) else phrases
    if isinstance(given, pa.Array) and given.type in TEXT and not given.null_count:
        spellings = given.cast(pa.large_string()).cast(pa.large_binary())
    else:
        spellings = _spellings(given, begin)
    folded, rest = spellings, np.ones(len(spellings), bool)
    if len(spellings) > FEW:
        text, offsets = bytes_and_offsets(spellings)
        forms, ends, rest = fold_texts(text, offsets, MAX_TEXT)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(forms)]
        folded = pa.Array.from_buffers(pa.large_binary(), len(spellings), buffers)
    others = np.flatnonzero(rest)
    slow = [
        checked_form(phrase.decode(), f"phrases[{begin + i}]").encode()
        for i, phrase in zip(others.tolist(), spellings.take(others).to_pylist(), strict=True)
    ]
    return spellings, pc.replace_with_mask(folded, rest, pa.array(slow, pa.large_binary()))


def _spellings(phrases: Iterable, begin: int) -> pa.Array:
    """Return UTF-8 of each phrase; InputError about the first that is no text."""
    listed = phrases.to_pylist() if isinstance(phrases, pa.Array) else list(phrases)
    try:
        parts = [_encoded(listed[i : i + JOINED]) for i in range(0, len(listed), JOINED)]
        return pa.concat_arrays([pa.array([], pa.large_binary()), *parts])
    except (TypeError, UnicodeEncodeError):
        for position, phrase in enumerate(listed):  # which one it is, is said
            checked_form(phrase, f"phrases[{begin + position}]")
        raise


def _encoded(phrases: list[str]) -> pa.Array:
    """Encode phrases: all at once takes a quarter of the time of each by itself."""
    text = np.frombuffer("\0".join(phrases).encode(), np.uint8)
    ends = np.append(np.flatnonzero(text == 0), len(text))
    if len(ends) > len(phrases):  # some have this character
        return pa.array(phrases, pa.large_string()).cast(pa.large_binary())
    offsets = np.append(0, ends - np.arange(len(ends)))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text[text != 0])]
    return pa.Array.from_buffers(pa.large_binary(), len(phrases), buffers)


def bytes_and_offsets(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of an array of large_binary, read-only, and the offsets of its values."""
    if not len(array):
        return frozen(np.empty(0, np.uint8)), np.zeros(1, np.int64)
    _, offsets, content = array.buffers()  # of a slice: those of the whole
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return frozen(np.frombuffer(content, np.uint8)[ends[0] : ends[-1]]), ends - ends[0]
