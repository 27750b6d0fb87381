"""Phrases as they are given, checked, and their spellings and folded forms in UTF-8."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.completion.engine import prefix_kernels as kernels
from telic.completion.engine.folding import checked_form
from telic.data.contracts import MAX_TEXT


def encoded_phrases(phrases: Iterable) -> tuple[pa.Array, pa.Array]:
    """Return spellings and folded forms, in UTF-8; InputError about the first that is neither."""
    if isinstance(phrases, pa.ChunkedArray):
        phrases = phrases.combine_chunks()
    if not isinstance(phrases, pa.Array):
        phrases = list(phrases)
    try:
        if isinstance(phrases, list) and not set(map(type, phrases)) <= {str}:
            raise TypeError
        spellings = pa.array(phrases, pa.large_string()).cast(pa.large_binary())
        if spellings.null_count:
            raise TypeError
    except (TypeError, pa.ArrowException, UnicodeEncodeError):
        spellings = pa.array(_spellings(phrases), pa.large_binary())
    text, offsets = bytes_and_offsets(spellings)
    lowered, rest = np.empty_like(text), np.empty(len(spellings), bool)
    kernels.lower_plain(text, offsets, MAX_TEXT, lowered, rest)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(lowered)]
    folded = pa.Array.from_buffers(pa.large_binary(), len(spellings), buffers)
    others = np.flatnonzero(rest)
    forms = [
        checked_form(phrase.decode(), f"phrases[{i}]").encode()
        for i, phrase in zip(others.tolist(), spellings.take(others).to_pylist(), strict=True)
    ]
    return spellings, pc.replace_with_mask(folded, rest, pa.array(forms, pa.large_binary()))


def _spellings(phrases: Iterable) -> list[bytes]:
    """Return UTF-8 of each phrase that can be indexed; InputError about the first that cannot."""
    if isinstance(phrases, pa.Array):
        phrases = phrases.to_pylist()
    for position, phrase in enumerate(phrases):
        checked_form(phrase, f"phrases[{position}]")
    return [phrase.encode() for phrase in phrases]


def bytes_and_offsets(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of an array of large_binary and the offsets of its values."""
    if not len(array):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, content = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(array) + 1]
    return np.frombuffer(content, np.uint8)[: ends[-1]], ends
