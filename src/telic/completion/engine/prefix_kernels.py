"""Search in sorted strings and range maxima: the compiled part of the prefix index.

String i of a table is ``text[offsets[i]:offsets[i + 1]]``. Every range of ids is half-open.
"""

import heapq

import numpy as np

from telic.kernels import kernel

BLOCK = 64
"""Weights per block of the range-maximum table."""


@kernel
def _compare(text, offsets, i, prefix):
    """Order of string i, cut to the prefix's length, against the prefix: -1, 0 or 1."""
    start = offsets[i]
    length = min(len(prefix), offsets[i + 1] - start)
    for p in range(length):
        if text[start + p] != prefix[p]:
            return -1 if text[start + p] < prefix[p] else 1
    return 0 if length == len(prefix) else -1


@kernel
def _first(text, offsets, prefix, lo, least):
    """First id from lo on whose order against the prefix is at least `least`."""
    hi = len(offsets) - 1
    while lo < hi:
        middle = (lo + hi) // 2
        if _compare(text, offsets, middle, prefix) < least:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def prefix_range(text, offsets, prefix):
    """Ids of the strings that start with the prefix."""
    lo = _first(text, offsets, prefix, 0, 0)
    return lo, _first(text, offsets, prefix, lo, 1)


@kernel
def _ordered(text, start, end, other):
    """Order of text[start:end] against another string: -1, 0 or 1."""
    for p in range(min(end - start, len(other))):
        if text[start + p] != other[p]:
            return -1 if text[start + p] < other[p] else 1
    return (end - start > len(other)) - (end - start < len(other))


@kernel
def place(folded, folded_offsets, spelling, spelling_offsets, key, spelled):
    """First id that does not precede a phrase, and whether it is that phrase.

    Ids are ordered by folded form, then by spelling, which is empty where it is the folded form.
    """
    lo, hi = 0, len(folded_offsets) - 1
    while lo < hi:
        middle = (lo + hi) // 2
        order = _order_of_phrase(
            folded, folded_offsets, spelling, spelling_offsets, middle, key, spelled
        )
        if order == 0:
            return middle, True
        if order < 0:
            lo = middle + 1
        else:
            hi = middle
    return lo, False


@kernel
def _order_of_phrase(folded, folded_offsets, spelling, spelling_offsets, i, key, spelled):
    """Order of phrase i against another: -1, 0 or 1."""
    order = _ordered(folded, folded_offsets[i], folded_offsets[i + 1], key)
    if order != 0:
        return order
    if spelling_offsets[i] == spelling_offsets[i + 1]:
        return _ordered(folded, folded_offsets[i], folded_offsets[i + 1], spelled)
    return _ordered(spelling, spelling_offsets[i], spelling_offsets[i + 1], spelled)


@kernel
def prefix_ranges(text, offsets, prefixes, prefix_offsets, lo, hi):
    """Fill lo and hi with the range of each prefix in a table of prefixes."""
    for q in range(len(lo)):
        prefix = prefixes[prefix_offsets[q] : prefix_offsets[q + 1]]
        lo[q], hi[q] = prefix_range(text, offsets, prefix)


@kernel
def fill_block_maxima(weights, maxima):
    """Fill maxima[j, b] with the first heaviest id in blocks b to b + 2**j - 1."""
    n_levels, n_blocks = maxima.shape
    for b in range(n_blocks):
        maxima[0, b] = _scan(weights, b * BLOCK, min((b + 1) * BLOCK, len(weights)), b * BLOCK)
    for j in range(1, n_levels):
        half = 1 << (j - 1)
        for b in range(n_blocks - 2 * half + 1):
            left, right = maxima[j - 1, b], maxima[j - 1, b + half]
            maxima[j, b] = right if weights[right] > weights[left] else left


@kernel
def _scan(weights, lo, hi, best):
    """First heaviest id among best, which lies left of hi, and the range."""
    for i in range(lo, hi):
        if weights[i] > weights[best]:
            best = i
    return best


@kernel
def _heaviest(weights, maxima, lo, hi):
    """First heaviest id in a range that is not empty."""
    first, last = (lo + BLOCK - 1) // BLOCK, hi // BLOCK
    if first >= last:
        return _scan(weights, lo, hi, lo)
    level = 0
    while (2 << level) <= last - first:
        level += 1
    best = _scan(weights, lo, first * BLOCK, lo)
    # The two spans overlap, and cover the whole blocks first to last - 1.
    for i in (maxima[level, first], maxima[level, last - (1 << level)]):
        if weights[i] > weights[best]:
            best = i
    return _scan(weights, last * BLOCK, hi, best)


@kernel
def fill_top(weights, maxima, lo, hi, out):
    """Fill out, no longer than the range, with its heaviest ids: heaviest first, then lowest id."""
    if len(out) == 0:
        return
    # Each interval on the heap waits with its heaviest id; taking that id splits the interval.
    best = _heaviest(weights, maxima, lo, hi)
    heap = [(-weights[best], best, lo, hi)]
    for rank in range(len(out)):
        _, best, lo, hi = heapq.heappop(heap)
        out[rank] = best
        for left, right in ((lo, best), (best + 1, hi)):
            if left < right:
                candidate = _heaviest(weights, maxima, left, right)
                heapq.heappush(heap, (-weights[candidate], candidate, left, right))


@kernel
def find_range(ranges, lo, hi):
    """Row of [lo, hi) in sorted ranges, or -1."""
    first, last = 0, len(ranges)
    while first < last:
        middle = (first + last) // 2
        if ranges[middle, 0] < lo or (ranges[middle, 0] == lo and ranges[middle, 1] < hi):
            first = middle + 1
        else:
            last = middle
    if first < len(ranges) and ranges[first, 0] == lo and ranges[first, 1] == hi:
        return first
    return -1


@kernel
def top_of_prefix(text, offsets, prefix, weights, maxima, hot_ranges, hot_ids, ids, found):
    """Fill ids, and found with their weights, with the heaviest that start with a prefix; count."""
    lo, hi = prefix_range(text, offsets, prefix)
    k = min(len(ids), hi - lo)
    row = find_range(hot_ranges, lo, hi) if k <= hot_ids.shape[1] else -1
    if row >= 0:
        ids[:k] = hot_ids[row, :k]
    else:
        fill_top(weights, maxima, lo, hi, ids[:k])
    for i in range(k):
        found[i] = weights[ids[i]]
    return k


@kernel
def large_ranges(text, offsets, smallest, out):
    """Fill out with every range of at least `smallest` ids that some prefix has; count them.

    These are the intervals of the longest-common-prefix array, found with a stack in one pass.
    What does not fit into out is only counted. The range of all ids may come twice.
    """
    n = len(offsets) - 1
    longest = 0
    for i in range(n):
        longest = max(longest, offsets[i + 1] - offsets[i])
    depth = np.zeros(longest + 2, np.int64)
    start = np.zeros(longest + 2, np.int64)
    top = 0
    count = 0
    for i in range(1, n + 1):
        common = _common_prefix(text, offsets, i - 1, i) if i < n else -1
        lo = i - 1
        while top >= 0 and depth[top] > common:
            lo = start[top]
            if i - lo >= smallest:
                if count < len(out):
                    out[count, 0] = lo
                    out[count, 1] = i
                count += 1
            top -= 1
        if top < 0 or depth[top] < common:
            top += 1
            depth[top] = common
            start[top] = lo
    return count


@kernel
def _common_prefix(text, offsets, i, j):
    """Length of the longest common prefix of strings i and j."""
    length = min(offsets[i + 1] - offsets[i], offsets[j + 1] - offsets[j])
    for p in range(length):
        if text[offsets[i] + p] != text[offsets[j] + p]:
            return p
    return length
