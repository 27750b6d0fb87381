"""Words near a typed one, and the best phrases that have them: compiled parts of the word index.

Word i is ``text[offsets[i]:offsets[i + 1]]``, in UTF-8; words are sorted. Every range is half-open.
Costs are counted in half edits.
"""

import heapq

import numpy as np

from telic.completion.engine.filters import passes
from telic.completion.engine.prefix_kernels import BLOCK
from telic.kernels import kernel

EDIT, UNFINISHED = 2, 1
"""Costs of one edit, and of an earlier word that is only begun."""


@kernel
def _against(text, start, end, other, a, b):
    """Order of text[start:end], cut to the length of other[a:b], against it: -1, 0 or 1."""
    length = min(end - start, b - a)
    for i in range(length):
        if text[start + i] != other[a + i]:
            return -1 if text[start + i] < other[a + i] else 1
    return 0 if length == b - a else -1


@kernel
def _narrow(text, offsets, pairs, lo, hi, depth, other, a, b):
    """Words of a range that go on with other[a:b] after their first `depth` bytes."""
    if depth == 0 and b - a > 1:  # of all words: those with its first two bytes are known
        pair = 256 * other[a] + other[a + 1]
        lo, hi, depth, a = pairs[pair], pairs[pair + 1], 2, a + 2
        if a == b:
            return lo, hi
    end = hi
    while lo < end:
        middle = (lo + end) // 2
        if _against(text, offsets[middle] + depth, offsets[middle + 1], other, a, b) < 0:
            lo = middle + 1
        else:
            end = middle
    if lo == hi or _against(text, offsets[lo] + depth, offsets[lo + 1], other, a, b) != 0:
        return lo, lo
    return lo, _last(text, offsets, lo, hi, depth, other, a, b)


@kernel
def _last(text, offsets, lo, hi, depth, other, a, b):
    """End of the words from lo on that go on with other[a:b], as the word lo does."""
    step = 1  # mostly few do: look near the beginning first
    while lo + step < hi:
        middle = lo + step
        if _against(text, offsets[middle] + depth, offsets[middle + 1], other, a, b) != 0:
            break
        step *= 2
    left, right = lo + step // 2 + 1, min(lo + step, hi)
    while left < right:
        middle = (left + right) // 2
        if _against(text, offsets[middle] + depth, offsets[middle + 1], other, a, b) == 0:
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
def near(text, offsets, pairs, token, ends, edits, whole):
    """Disjoint ranges of the words that a typed token may mean, with their costs.

    ``token[ends[j - 1]:ends[j]]`` is its character j. A word costs `EDIT` for each of the fewest
    insertions, deletions, substitutions and transpositions of neighbours, at most `edits`, that
    make the token of it (`whole`) or of a beginning of it. Where the token is ASCII, so are the
    letters of the word that no letter of the token stands for. A whole token that begins a word
    without an edit costs `UNFINISHED`.
    """
    m = len(ends)
    plain = ends[m - 1] == m and token.max() < 0x80
    found, used = np.empty((64, 3), np.int64), 0
    stack, top = np.empty((256, 5), np.int64), 1
    stack[0] = 0, len(offsets) - 1, 0, 0, edits
    if whole:
        lo, hi = _narrow(text, offsets, pairs, 0, len(offsets) - 1, 0, token, 0, len(token))
        if lo < hi:
            found[0] = lo, hi, UNFINISHED
            used = 1
    while top:
        top -= 1
        lo, hi, depth, j, left = stack[top]
        begin = ends[j - 1] if j else 0
        if left == 0 and j < m:  # the rest must be as typed
            lo, hi = _narrow(text, offsets, pairs, lo, hi, depth, token, begin, len(token))
            depth, j = depth + len(token) - begin, m
        while lo < hi:
            if used + 1 >= len(found):
                found = _grown(found, used)
            if j == m and not whole:
                found[used] = lo, hi, EDIT * (edits - left)
                used += 1
                break
            if j == m and offsets[lo + 1] - offsets[lo] == depth:
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
                    a, b = _narrow(text, offsets, pairs, lo, hi, depth, token, ends[j], ends[j + 1])
                    after = depth + ends[j + 1] - ends[j]
                    a, b = _narrow(text, offsets, pairs, a, b, after, token, begin, ends[j])
                    if a < b:
                        stack[top] = a, b, after + ends[j] - begin, j + 2, left - 1
                        top += 1
                child = lo
                while child < hi and offsets[child + 1] - offsets[child] == depth:
                    child += 1
                while child < hi:
                    start = offsets[child] + depth
                    if plain and text[start] >= 0x80:
                        break  # and all that follow
                    width = _width(text[start])
                    last = _last(text, offsets, child, hi, depth, text, start, start + width)
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
            lo, hi = _narrow(text, offsets, pairs, lo, hi, depth, token, begin, ends[j])
            depth, j = depth + ends[j] - begin, j + 1
    return _apart(found[:used], len(offsets))


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


@kernel
def _heaviest_word(heads, maxima, lo, hi):
    """First word of a range whose heaviest phrase is heaviest."""
    best = lo
    first, last = lo // BLOCK + 1, (hi - 1) // BLOCK
    if first >= last:
        for word in range(lo, hi):
            if heads[word] > heads[best]:
                best = word
        return best
    for word in range(lo, first * BLOCK):
        if heads[word] > heads[best]:
            best = word
    level = 0
    while (2 << level) <= last - first:
        level += 1
    for block in (first, last - (1 << level)):
        word = maxima[level, block]
        if heads[word] > heads[best] or (heads[word] == heads[best] and word < best):
            best = word
    for word in range(last * BLOCK, hi):
        if heads[word] > heads[best]:
            best = word
    return best


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
def best_phrases(weights, bounds, lists, words, wanted_words, unit, skip, budget, filtered, out):
    """Fill ids and scores with the best phrases that have a word for every token; count them.

    A phrase scores its weight less `unit` for each half edit, each token by its cheapest word.
    Token t may mean the words of ``ranges[token_start[t]:token_start[t + 1]]``. Ids from skip_lo to
    skip_hi are left out, and what does not pass the filter. Candidates come from the token with the
    fewest, best first by what that token alone costs, a bound of their score: the search ends when
    the bound is below the last of the found, or after `budget` candidates.
    """
    numbers, values = weights
    heads, maxima = bounds
    postings, posting_start = lists
    forward, forward_start = words
    ranges, token_start = wanted_words
    skip_lo, skip_hi = skip
    codes, wanted = filtered
    ids, scores = out
    tokens, k, found = len(token_start) - 1, len(ids), 0
    driver, fewest = 0, np.int64(2**62)
    for t in range(tokens):
        total = np.int64(0)
        for r in range(token_start[t], token_start[t + 1]):
            total += posting_start[ranges[r, 1]] - posting_start[ranges[r, 0]]
        if total < fewest:
            driver, fewest = t, total
    if fewest == 0 or k == 0:
        return 0
    # (minus the bound, phrase, its word, words lo to hi yet to be opened, place in its postings,
    # cost); lo = hi where the words about it are opened already.
    heap = [(0.0, np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0))]
    heap.pop()
    for r in range(token_start[driver], token_start[driver + 1]):
        lo, hi, cost = ranges[r]
        word = _heaviest_word(heads, maxima, lo, hi)
        phrase = np.int64(postings[posting_start[word]])
        heap.append((unit * cost - values[heads[word]], phrase, word, lo, hi, np.int64(0), cost))
    heapq.heapify(heap)
    while heap and budget > 0:
        bound, phrase, word, lo, hi, place, cost = heapq.heappop(heap)
        if found == k and -bound < scores[k - 1]:
            break
        budget -= 1
        following = posting_start[word] + place + 1
        if following < posting_start[word + 1]:
            other = np.int64(postings[following])
            minus = unit * cost - values[numbers[other]]
            heapq.heappush(heap, (minus, other, word, word, word, place + 1, cost))
        if lo < hi:
            for left, right in ((lo, word), (word + 1, hi)):
                if left < right:
                    near_by = _heaviest_word(heads, maxima, left, right)
                    other = np.int64(postings[posting_start[near_by]])
                    minus = unit * cost - values[heads[near_by]]
                    heapq.heappush(heap, (minus, other, near_by, left, right, np.int64(0), cost))
        if skip_lo <= phrase < skip_hi or not passes(codes, wanted, phrase):
            continue
        known = False
        for i in range(found):
            known = known or ids[i] == phrase
        if known:
            continue
        total = np.int64(cost)
        for t in range(tokens):
            if t == driver:
                continue
            cheapest = -1
            for f in range(forward_start[phrase], forward_start[phrase + 1]):
                c = _cost_of(ranges[token_start[t] : token_start[t + 1]], forward[f])
                if c >= 0 and (cheapest < 0 or c < cheapest):
                    cheapest = c
            if cheapest < 0:
                total = np.int64(-1)
                break
            total += cheapest
        if total < 0:
            continue
        score = values[numbers[phrase]] - unit * total
        i = found if found < k else k - 1
        if found == k and (score < scores[i] or (score == scores[i] and phrase > ids[i])):
            continue
        while i > 0 and (score > scores[i - 1] or (score == scores[i - 1] and phrase < ids[i - 1])):
            ids[i], scores[i] = ids[i - 1], scores[i - 1]
            i -= 1
        ids[i], scores[i] = phrase, score
        found = min(found + 1, k)
    return found
