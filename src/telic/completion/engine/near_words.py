"""Words near a typed one: compiled.

`words` are ``(text, blocks, places, pairs)``. Word i is in UTF-8
``text[start(words, i):start(words, i + 1)]``; words are sorted, and ``pairs[256 * x + y]`` is the
first that does not precede the bytes x, y. Every range is half-open. Costs are counted in half
edits.
"""

import numpy as np

from telic.completion.engine.front_coding import compact
from telic.kernels import kernel

EDIT, UNFINISHED = 2, 1
"""Costs of one edit, and of an earlier word that is only begun."""


SHIFT = 4
"""``1 << SHIFT`` words make a block: it is kept where each block begins, and where in it a word."""


def placed(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `blocks` and `places` of words by their offsets in the text."""
    blocks = offsets[:: 1 << SHIFT]
    places = offsets - blocks[np.arange(len(offsets)) >> SHIFT]
    return compact(blocks), places.astype(np.uint16 if places.max() < 2**16 else np.uint32)


@kernel
def start(words, i):
    """Where word i begins in the text."""
    return np.int64(words[1][i >> SHIFT]) + words[2][i]


@kernel
def _against(words, i, depth, other, a, b):
    """Order of word i from `depth` on, cut to the length of other[a:b], against it: -1, 0 or 1."""
    text, begin = words[0], start(words, i) + depth
    length = min(start(words, i + 1) - begin, b - a)
    for p in range(length):
        if text[begin + p] != other[a + p]:
            return -1 if text[begin + p] < other[a + p] else 1
    return 0 if length == b - a else -1


@kernel
def _narrow(words, lo, hi, depth, other, a, b):
    """Words of a range, all that begin with the same `depth` bytes, that go on with other[a:b]."""
    while depth < 2 and a < b and lo < hi:
        lo, hi = _of_byte(words, lo, depth, other[a])
        depth, a = depth + 1, a + 1
    if a == b:
        return lo, hi
    end = hi
    while lo < end:
        middle = (lo + end) // 2
        if _against(words, middle, depth, other, a, b) < 0:
            lo = middle + 1
        else:
            end = middle
    if lo == hi or _against(words, lo, depth, other, a, b) != 0:
        return lo, lo
    return lo, _last(words, lo, hi, depth, other, a, b)


@kernel
def _of_byte(words, word, depth, byte):
    """Words that share the first byte of a word (`depth` 1), or none, and go on with a byte."""
    text, _, _, pairs = words
    if depth == 0:
        return np.int64(pairs[256 * byte]), np.int64(pairs[256 * byte + 256])
    pair = 256 * text[start(words, word)] + byte
    return np.int64(pairs[pair]), np.int64(pairs[pair + 1])


@kernel
def _last(words, lo, hi, depth, other, a, b):
    """End of the words from lo on that go on with other[a:b], as the word lo does."""
    if depth < 2 and b - a == 1:
        return _of_byte(words, lo, depth, other[a])[1]
    step = 1  # mostly few do: look near the beginning first
    while lo + step < hi and _against(words, lo + step, depth, other, a, b) == 0:
        step *= 2
    left, right = lo + step // 2 + 1, min(lo + step, hi)
    while left < right:
        middle = (left + right) // 2
        if _against(words, middle, depth, other, a, b) == 0:
            left = middle + 1
        else:
            right = middle
    return left


@kernel
def fill_pairs(text, offsets, pairs):
    """Fill pairs[256 * x + y] with the first word that does not precede the bytes x, y."""
    word, n = 0, len(offsets) - 1
    for pair in range(len(pairs)):
        while word < n:
            start = offsets[word]
            second = text[start + 1] if offsets[word + 1] - start > 1 else 0
            if 256 * text[start] + second >= pair:
                break
            word += 1
        pairs[pair] = word


@kernel
def _width(byte):
    """Bytes of the UTF-8 character that begins with this one."""
    if byte < 0x80:
        return 1
    if byte < 0xE0:
        return 2
    return 3 if byte < 0xF0 else 4


@kernel
def _grown(table, used):
    larger = np.empty((2 * len(table), table.shape[1]), table.dtype)
    larger[:used] = table[:used]
    return larger


@kernel
def _length(words, i):
    """Bytes of word i."""
    return start(words, i + 1) - start(words, i)


@kernel
def near(words, size, token, ends, edits, whole):
    """Disjoint ranges of the words, of `size`, that a typed token may mean, with their costs.

    ``token[ends[j - 1]:ends[j]]`` is its character j. A word costs `EDIT` for each of the fewest
    insertions, deletions, substitutions and transpositions of neighbours, at most `edits`, that
    make the token of it (`whole`) or of a beginning of it. Where the token is ASCII, so are the
    letters of the word that no letter of the token stands for. A whole token that begins a word
    without an edit costs `UNFINISHED`.
    """
    text = words[0]
    m = len(ends)
    plain = ends[m - 1] == m and token.max() < 0x80
    found, used = np.empty((64, 3), np.int64), 0
    stack, top = np.empty((256, 5), np.int64), 1
    stack[0] = 0, size, 0, 0, edits
    if whole:
        lo, hi = _narrow(words, 0, size, 0, token, 0, len(token))
        if lo < hi:
            found[0] = lo, hi, UNFINISHED
            used = 1
    while top:
        top -= 1
        lo, hi, depth, j, left = stack[top]
        begin = ends[j - 1] if j else 0
        if left == 0 and j < m:  # the rest must be as typed
            lo, hi = _narrow(words, lo, hi, depth, token, begin, len(token))
            depth, j = depth + len(token) - begin, m
        while lo < hi:
            if used + 1 >= len(found):
                found = _grown(found, used)
            if j == m and not whole:
                found[used] = lo, hi, EDIT * (edits - left)
                used += 1
                break
            if j == m and _length(words, lo) == depth:
                found[used] = lo, lo + 1, EDIT * (edits - left)
                used += 1
            begin = ends[j - 1] if j else 0
            if left:
                if top + 2 > len(stack):
                    stack = _grown(stack, top)
                if j < m:  # a character too many was typed
                    stack[top] = lo, hi, depth, j + 1, left - 1
                    top += 1
                if j + 1 < m:  # two changed places
                    a, b = _narrow(words, lo, hi, depth, token, ends[j], ends[j + 1])
                    after = depth + ends[j + 1] - ends[j]
                    a, b = _narrow(words, a, b, after, token, begin, ends[j])
                    if a < b:
                        stack[top] = a, b, after + ends[j] - begin, j + 2, left - 1
                        top += 1
                child = lo
                while child < hi and _length(words, child) == depth:
                    child += 1
                while child < hi:
                    at = start(words, child) + depth
                    if plain and text[at] >= 0x80:
                        break  # and all that follow
                    width = _width(text[at])
                    last = _last(words, child, hi, depth, text, at, at + width)
                    if top + 2 > len(stack):
                        stack = _grown(stack, top)
                    stack[top] = child, last, depth + width, j, left - 1  # one was left out
                    top += 1
                    if j < m:  # one stands for another
                        stack[top] = child, last, depth + width, j + 1, left - 1
                        top += 1
                    child = last
            if j == m:
                break
            lo, hi = _narrow(words, lo, hi, depth, token, begin, ends[j])
            depth, j = depth + ends[j] - begin, j + 1
    return _apart(found[:used], size)


@kernel
def _apart(found, size):
    """Make ranges that are nested or disjoint into disjoint ones, each with its least cost."""
    order = np.argsort(found[:, 0] * (size + 1) + (size - found[:, 1]))
    out, used = np.empty((2 * len(found) + 1, 3), np.int64), 0
    open_hi, open_cost = np.empty(len(found) + 1, np.int64), np.empty(len(found) + 1, np.int64)
    depth, at = 0, 0
    for row in range(len(order) + 1):
        lo = found[order[row], 0] if row < len(order) else size + 1
        while depth and open_hi[depth - 1] <= lo:
            used = _add(out, used, at, open_hi[depth - 1], open_cost[depth - 1])
            at = max(at, open_hi[depth - 1])
            depth -= 1
        if row == len(order):
            break
        if depth:
            used = _add(out, used, at, lo, open_cost[depth - 1])
        at = lo
        cost = found[order[row], 2]
        open_hi[depth] = found[order[row], 1]
        open_cost[depth] = min(cost, open_cost[depth - 1]) if depth else cost
        depth += 1
    return out[:used]


@kernel
def _add(out, used, lo, hi, cost):
    """Write a range unless it is empty; join it to the last where it continues that."""
    if lo >= hi:
        return used
    if used and out[used - 1, 1] == lo and out[used - 1, 2] == cost:
        out[used - 1, 1] = hi
        return used
    out[used] = lo, hi, cost
    return used + 1
