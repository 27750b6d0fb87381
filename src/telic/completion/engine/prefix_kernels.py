"""Search in sorted strings and range maxima: the compiled part of the prefix index.

String i of a table is ``text[offsets[i]:offsets[i + 1]]``. Every range of ids is half-open.
"""

import numpy as np

from telic.completion.engine.array_kernels import copy_into, longer, set_row, sift_down, sift_up
from telic.completion.engine.front_coding import BLOCK as STRINGS
from telic.completion.engine.front_coding import length_of, prefix_range, read_entry
from telic.completion.engine.shown_spelling import spelled
from telic.kernels import kernel

BLOCK = 64
"""Weights per block of the range-maximum table."""


@kernel
def prefix_ranges(strings, n, prefixes, prefix_offsets, lo, hi):
    """Fill lo and hi with the range of each prefix in a table of prefixes."""
    for q in range(len(lo)):
        prefix = prefixes[prefix_offsets[q] : prefix_offsets[q + 1]]
        lo[q], hi[q] = prefix_range(strings, n, prefix)


@kernel
def range_of(strings, n, text):
    """Range of the strings, n in all, that equal a text; empty, where it would stand, if none."""
    lo, end = prefix_range(strings, n, text)
    # Of those that start with the text, the text itself comes first: ever longer steps, and back.
    hi, step = lo, 1
    while step:
        at = hi + step - 1
        if at < end and length_of(strings, at) == len(text):
            hi, step = hi + step, 2 * step
        else:
            end, step = min(end, at), step // 2
    return lo, hi


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
def heaviest(weights, maxima, lo, hi):
    """First heaviest of a range that is not empty."""
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
    best = heaviest(weights, maxima, lo, hi)
    waiting, used = np.empty((2 * len(out), 3), np.int64), 1  # heaviest id, lo, hi
    keys, heap, size = np.empty(len(waiting), np.int64), np.empty(len(waiting), np.int64), 1
    set_row(waiting, 0, (best, lo, hi))
    heap[0] = 0
    for rank in range(len(out)):
        top = heap[0]
        best, lo, hi = waiting[top, 0], waiting[top, 1], waiting[top, 2]
        out[rank] = best
        size -= 1
        heap[0] = heap[size]
        sift_down(heap, keys, size)
        if rank + 1 == len(out):
            return
        for left, right in ((lo, best), (best + 1, hi)):
            if left < right:
                near_by = heaviest(weights, maxima, left, right)
                set_row(waiting, used, (near_by, left, right))
                # Heaviest first, then lowest id: weights are numbered, from 0 to less than n.
                keys[used] = near_by - np.int64(weights[near_by]) * len(weights)
                heap[size] = used
                sift_up(heap, keys, size)
                size, used = size + 1, used + 1


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
def top_of_prefix(strings, prefix, weights, hot, ids, found):
    """Fill ids, and found with their weights, with the heaviest that start with a prefix; count."""
    numbers, values, maxima = weights
    hot_ranges, hot_ids = hot
    lo, hi = prefix_range(strings, len(numbers), prefix)
    k = min(len(ids), hi - lo)
    row = find_range(hot_ranges, lo, hi) if k <= hot_ids.shape[1] else -1
    if row >= 0:
        copy_into(ids, 0, hot_ids[row, :k])
    else:
        fill_top(numbers, maxima, lo, hi, ids[:k])
    for i in range(k):
        found[i] = values[numbers[ids[i]]]
    return k


@kernel
def top_spelled(strings, prefix, weights, hot, kinds, given, k):
    """Spellings of the k heaviest strings that start with a prefix, as `spelled` returns them."""
    ids, found = np.empty(k, np.int64), np.empty(k)
    count = top_of_prefix(strings, prefix, weights, hot, ids, found)
    return spelled(strings, kinds, given, ids[:count])


@kernel
def large_ranges(strings, n, smallest, out):
    """Fill out with every range of at least `smallest` of n ids that some prefix has; count them.

    These are the intervals of the longest-common-prefix array, found with a stack in one pass.
    What does not fit into out is only counted. The range of all ids may come twice.
    """
    packed, _, _ = strings
    text, length = np.zeros(64, np.uint8), 0
    at, rest = np.int64(0), np.int64(0)
    depth, start = np.zeros(64, np.int64), np.zeros(64, np.int64)
    top, count = 0, 0
    for i in range(n + 1):
        common = np.int64(-1)
        if i < n:
            common, rest, at = read_entry(packed, at + rest)
            if i % STRINGS == 0:  # the first of a block, which is whole
                while common < min(length, rest) and text[common] == packed[at + common]:
                    common += 1
            length = rest if i % STRINGS == 0 else common + rest
            text = longer(text, length)
            copy_into(text, length - rest, packed[at : at + rest])
        if i == 0:
            continue
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
            depth, start = longer(depth, top + 1), longer(start, top + 1)
            depth[top] = common
            start[top] = lo
    return count
