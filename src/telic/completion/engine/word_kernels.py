"""The best phrases that have some words: compiled.

Every range is half-open. Costs are counted in quarters of an edit.
"""

import numpy as np

from telic.completion.engine.array_kernels import set_row, sift_down, sift_up
from telic.completion.engine.filters import has_values, passes
from telic.completion.engine.packed_numbers import read, read_some
from telic.completion.engine.prefix_kernels import heaviest
from telic.kernels import kernel

PHRASES = 1 << 14
"""Words of 64 bits that say which phrases have a word: enough for a million phrases."""
MARKS = 1 << 14
"""Neighbourhoods of words that are marked, so few that they stay in the cache."""

READ = 1024
"""Postings that are read at a time."""
MARKED_FOR_ONE = 16
"""Phrases that can be marked in the time that it takes to look at the words of one."""


@kernel
def _cost_of(ranges, word):
    """Cost of a word in disjoint, sorted ranges; -1 if it lies in none."""
    first, last = 0, len(ranges)
    while first < last:
        middle = (first + last) // 2
        if ranges[middle, 1] <= word:
            first = middle + 1
        else:
            last = middle
    if first < len(ranges) and ranges[first, 0] <= word:
        return ranges[first, 2]
    return -1


@kernel
def _marks(wanted_words, size):
    """Mark each token by a bit at its words, of which ``1 << shift`` neighbours share a mark."""
    ranges, token_start = wanted_words
    shift = 0
    while size >> shift > MARKS:
        shift += 1
    marks = np.zeros((size >> shift) + 1, np.uint8)
    for t in range(len(token_start) - 1):
        for r in range(token_start[t], token_start[t + 1]):
            for place in range(ranges[r, 0] >> shift, ((ranges[r, 1] - 1) >> shift) + 1):
                marks[place] |= 1 << t
    return marks, shift


@kernel
def _cost_of_phrase(phrase, lists, wanted_words, marked):
    """Sum over the tokens of what the phrase's cheapest word costs; -1 if one has none."""
    forward, forward_start = lists
    ranges, token_start = wanted_words
    marks, shift = marked
    tokens, total, seen = len(token_start) - 1, 0, 0
    first, last = read(forward_start, phrase), read(forward_start, phrase + 1)
    for f in range(first, last):
        seen |= marks[read(forward, f) >> shift]
    if seen != (1 << tokens) - 1:
        return -1
    for t in range(tokens):
        cheapest = -1
        for f in range(first, last):
            c = _cost_of(ranges[token_start[t] : token_start[t + 1]], read(forward, f))
            if c >= 0 and (cheapest < 0 or c < cheapest):
                cheapest = c
        if cheapest < 0:
            return -1
        total += cheapest
    return total


@kernel
def _insert(ids, scores, found, phrase, score):
    """Put a phrase among the best ones, best first, unless it is there or too light; count them."""
    k = len(ids)
    i = found if found < k else k - 1
    if found == k and (score < scores[i] or (score == scores[i] and phrase >= ids[i])):
        return found
    for j in range(found):
        if ids[j] == phrase:
            return found
    while i > 0 and (score > scores[i - 1] or (score == scores[i - 1] and phrase < ids[i - 1])):
        ids[i], scores[i] = ids[i - 1], scores[i - 1]
        i -= 1
    ids[i], scores[i] = phrase, score
    return min(found + 1, k)


@kernel
def _second(totals, least):
    """Place of the least number but the one at `least`, or that if there is no other."""
    second = least
    for t in range(len(totals)):
        if t != least and (second == least or totals[t] < totals[second]):
            second = t
    return second


@kernel
def _phrases_of(ranges, lists):
    """Bits that are set at the phrases of some words, modulo the number of bits."""
    postings, posting_start = lists
    bits = np.zeros(PHRASES if len(ranges) else 0, np.int64)
    phrases = np.empty(READ, np.int64)
    for r in range(len(ranges)):
        place, end = read(posting_start, ranges[r, 0]), read(posting_start, ranges[r, 1])
        while place < end:
            some = min(end - place, READ)
            read_some(postings, place, place + some, phrases)
            for i in range(some):
                bits[(phrases[i] >> 6) % PHRASES] |= 1 << (phrases[i] & 63)
            place += some
    return bits


@kernel
def _may_be_shown(phrase, skip, left_out, filtered):
    """Whether a phrase is not left out, passes the filter and has the boosted values."""
    codes, wanted, boosted = filtered
    if skip[0] <= phrase < skip[1] or (len(left_out) and left_out[phrase]):
        return False
    return passes(codes, wanted, phrase) and has_values(codes, boosted, phrase)


@kernel
def best_phrases(
    weights, bounds, lists, words, wanted_words, unit, skip, left_out, budgets, exact, filtered, out
):
    """Fill ids and scores with the best phrases that have a word for every token; count them.

    A phrase scores its weight less `unit` for each quarter of an edit, each token by its cheapest
    word. Token t, of at most 8, may mean the words of
    ``ranges[token_start[t]:token_start[t + 1]]``. Ids from skip_lo to skip_hi are left out, those
    that `left_out` says, if it is not empty, and what does not pass the filter or lacks a boosted
    value.

    Candidates come from the token with the fewest, best first by a bound of their score: their
    weight less what this token costs, and the others at least. The search ends when the bound is
    below the last of the found. If it did not after `few` candidates, mostly because no phrase has
    all tokens, all of them are looked at as they lie: where they and those of the second token are
    at most `most_marked`, those that both have, otherwise each if they are at most `most`. If they
    are more, the search ends after `most` candidates, and may miss some, unless it is to be
    `exact`: then all are looked at after these.
    """
    numbers, values = weights
    heads, maxima = bounds
    postings, posting_start = lists
    ranges, token_start = wanted_words
    few, most, most_marked = budgets
    ids, scores = out
    k, found, least = len(ids), 0, np.int64(0)
    totals = np.zeros(len(token_start) - 1, np.int64)
    cheapest, driver = np.empty(len(totals), np.int64), 0
    for t in range(len(totals)):
        cheapest[t] = ranges[token_start[t], 2]
        for r in range(token_start[t], token_start[t + 1]):
            totals[t] += read(posting_start, ranges[r, 1]) - read(posting_start, ranges[r, 0])
            cheapest[t] = min(cheapest[t], ranges[r, 2])
        least += cheapest[t]
        if totals[t] < totals[driver]:
            driver = t
    second = _second(totals, driver)
    several = len(totals) > 1
    few_enough = several and totals[driver] + totals[second] <= most_marked
    scanned = few_enough or totals[driver] <= most
    own = ranges[token_start[driver] : token_start[driver + 1]]
    others = least - cheapest[driver]
    if k == 0:
        return 0
    marked = _marks(wanted_words, len(heads))
    # Words lo to hi, of which `word` has the heaviest phrase; or lo = hi, and of `word` alone the
    # phrases from `place` on.
    size, candidates = len(own), few if scanned else most
    waiting = np.empty((size + 2 * candidates, 6), np.int64)  # place, end, word, lo, hi, cost
    keys, heap = np.empty(len(waiting)), np.empty(len(waiting), np.int64)
    for i in range(size):
        lo, hi, cost = own[i, 0], own[i, 1], own[i, 2]
        word = heaviest(heads, maxima, lo, hi)
        set_row(waiting, i, (0, 0, word, lo, hi, cost))
        keys[i] = unit * (cost + others) - values[heads[word]]
        heap[i] = i
        sift_up(heap, keys, i)
    used = size
    for _ in range(candidates):
        if size == 0:
            return found
        top = heap[0]
        if found == k and -keys[top] < scores[k - 1]:
            return found
        place, end, word = waiting[top, 0], waiting[top, 1], waiting[top, 2]
        lo, hi, cost = waiting[top, 3], waiting[top, 4], waiting[top, 5]
        if lo < hi:
            place, end = read(posting_start, word), read(posting_start, word + 1)
        phrase = read(postings, place)
        if place + 1 < end:
            set_row(waiting, top, (place + 1, end, word, word, word, cost))
            keys[top] = unit * (cost + others) - values[numbers[read(postings, place + 1)]]
        else:
            size -= 1
            heap[0] = heap[size]
        sift_down(heap, keys, size)
        if lo < hi:
            for left, right in ((lo, word), (word + 1, hi)):
                if left < right:
                    near_by = heaviest(heads, maxima, left, right)
                    set_row(waiting, used, (0, 0, near_by, left, right, cost))
                    keys[used] = unit * (cost + others) - values[heads[near_by]]
                    heap[size] = used
                    sift_up(heap, keys, size)
                    size, used = size + 1, used + 1
        if _may_be_shown(phrase, skip, left_out, filtered):
            total = _cost_of_phrase(phrase, words, wanted_words, marked)
            if total >= 0:
                score = values[numbers[phrase]] - unit * total
                found = _insert(ids, scores, found, phrase, score)
    if not scanned and not exact:
        return found
    # Where few have the one token and many the other, marking these would take longer.
    marking = (few_enough or (exact and several)) and totals[second] <= MARKED_FOR_ONE * totals[
        driver
    ]
    theirs = ranges[token_start[second] : token_start[second + 1]] if marking else own[:0]
    also, phrases = _phrases_of(theirs, lists), np.empty(READ, np.int64)
    for r in range(len(own)):
        place, end = read(posting_start, own[r, 0]), read(posting_start, own[r, 1])
        while place < end:
            some = min(end - place, READ)
            read_some(postings, place, place + some, phrases)
            place += some
            for i in range(some):
                phrase = phrases[i]
                if marking and not also[(phrase >> 6) % PHRASES] >> (phrase & 63) & 1:
                    continue
                if not _may_be_shown(phrase, skip, left_out, filtered):
                    continue
                most_it_scores = values[numbers[phrase]] - unit * least
                if found == k and (most_it_scores, -phrase) <= (scores[k - 1], -ids[k - 1]):
                    continue
                total = _cost_of_phrase(phrase, words, wanted_words, marked)
                if total >= 0:
                    score = values[numbers[phrase]] - unit * total
                    found = _insert(ids, scores, found, phrase, score)
    return found
