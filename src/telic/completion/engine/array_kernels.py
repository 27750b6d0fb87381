"""Arrays as kernels take them, and that are copied, grow and are looked through within kernels.

They are copied element by element: where a slice or a tuple is assigned to a slice, numba also
compiles the words of the error for lengths that differ, which makes a first use wait.
"""

from collections.abc import Sequence

import numpy as np

from telic.kernels import kernel


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a plain read-only view, so that kernels compile for one type, mapped or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def joined_texts(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of texts, one after the other, and where each begins and the last ends."""
    return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])


@kernel
def copy_into(out, at, source):
    """Write an array into another, from a place on; return the place after it."""
    for i in range(len(source)):
        out[at + i] = source[i]
    return at + len(source)


@kernel
def put_number(out, at, number):
    """Write a number, seven bits to a byte, the lowest first; return the place after it."""
    while number > 127:
        out[at] = number & 127 | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@kernel
def get_number(text, at):
    """Read what `put_number` wrote, and the place after it."""
    number, shift = np.int64(text[at] & 127), 7
    while text[at] > 127:
        at += 1
        number |= np.int64(text[at] & 127) << shift
        shift += 7
    return number, at + 1


@kernel
def set_row(table, row, values):
    """Write a tuple into a row."""
    for j in range(len(values)):
        table[row, j] = values[j]


@kernel
def longer(array, length):
    """Return an array of at least some length that begins with what this one holds."""
    if length <= len(array):
        return array
    out = np.zeros(2 * length, array.dtype)
    copy_into(out, 0, array)
    return out


@kernel
def longer_table(table, rows):
    """Return a table of at least so many rows that begins with what this one holds."""
    if rows <= len(table):
        return table
    out = np.zeros((2 * rows, table.shape[1]), table.dtype)
    copy_into(out.ravel(), 0, table.ravel())
    return out


@kernel
def sort_once(values):
    """Sort values in place, and return a view of them, each once.

    By Shell's method: NumPy's own sort takes numba long to compile.
    """
    gap = 1
    while gap < len(values) // 3:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, len(values)):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3
    used = 0
    for i in range(len(values)):
        if used == 0 or values[i] != values[used - 1]:
            values[used] = values[i]
            used += 1
    return values[:used]


@kernel
def place_in(sorted_ids, first, last, wanted):
    """First position in sorted_ids[first:last] that is not below `wanted`."""
    while first < last:
        middle = (first + last) // 2
        if sorted_ids[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def sift_up(heap, keys, i):
    """Move entry i of a heap, whose least key is on top, up to its place."""
    entry = heap[i]
    while i and keys[heap[(i - 1) // 2]] > keys[entry]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = entry


@kernel
def sift_down(heap, keys, size):
    """Move the top of a heap down to its place."""
    i, entry = 0, heap[0]
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[child]] >= keys[entry]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = entry
