"""Phrases as an answer lists them: in JSON, and in the address of a search for each."""

import numpy as np

from telic.completion.engine.array_kernels import copy_into, frozen
from telic.kernels import kernel

_SAFE = np.zeros(256, bool)
_SAFE[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")] = True
_HEX = np.frombuffer(b"0123456789ABCDEF", np.uint8)
_ESCAPE = np.frombuffer(b"\\u00", np.uint8)
_NEXT = np.frombuffer(b'", "', np.uint8)
_END = np.frombuffer(b'"], ["', np.uint8)


def lists_in_json(table: tuple[np.ndarray, np.ndarray], address: bytes) -> bytes:
    r"""Return the texts, as many empty texts, and an address for each, as three lists in JSON.

    Parameters
    ----------
    table : tuple of arrays
        The texts in UTF-8, one after the other, and where each begins and the last ends.
    address : bytes
        What the addresses begin with, as JSON has it.

    Examples
    --------
    >>> text = np.frombuffer(b'tea"cup', np.uint8)
    >>> print(lists_in_json((text, np.array([0, 3, 7])), b"/search?q=").decode())
    ["tea", "\"cup"], ["", ""], ["/search?q=tea", "/search?q=%22cup"]
    """
    text, offsets = table
    if len(offsets) == 1:
        return b"[], [], []"
    return _lists_in_json(frozen(text), offsets, np.frombuffer(address, np.uint8)).tobytes()


@kernel
def _lists_in_json(text, offsets, address):
    """Write what `lists_in_json` returns."""
    n = len(offsets) - 1
    # A byte takes six in JSON and three in an address, at most; before a text of each list comes
    # what stands between texts, and around each list what stands between lists.
    out = np.empty(9 * len(text) + n * (len(address) + 3 * len(_NEXT)) + 3 * len(_END), np.uint8)
    at = copy_into(out, 0, _END[-2:])
    for i in range(n):
        at = copy_into(out, at, _NEXT) if i else at
        for p in range(offsets[i], offsets[i + 1]):
            byte = text[p]
            if byte < 32:
                at = copy_into(out, at, _ESCAPE)
                out[at], out[at + 1] = _HEX[byte >> 4], _HEX[byte & 15]
                at += 2
                continue
            if byte in (34, 92):  # a quote, or a backslash
                out[at] = 92
                at += 1
            out[at] = byte
            at += 1
    at = copy_into(out, at, _END)
    for _ in range(1, n):
        at = copy_into(out, at, _NEXT)
    at = copy_into(out, at, _END)
    for i in range(n):
        at = copy_into(out, at, _NEXT) if i else at
        at = copy_into(out, at, address)
        for p in range(offsets[i], offsets[i + 1]):
            byte = text[p]
            if _SAFE[byte]:
                out[at] = byte
                at += 1
            else:
                out[at], out[at + 1], out[at + 2] = 37, _HEX[byte >> 4], _HEX[byte & 15]
                at += 3
    return out[: copy_into(out, at, _END[:2])]
