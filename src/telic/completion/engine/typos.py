"""Typos: how many are allowed in a word, what one costs, and the words that are near a typed one.

The words stand in a trie, and the search in it is compiled.

A trie is ``(letters, firsts, downs, ends)``. A node with many words has a header and an entry for
each letter by which they go on, ascending: of the header at h, ``letters[h]`` entries, the first at
``h + 1``; the root's header is at 0. Entry i's words begin at ``firsts[i]`` and end where those of
the next entry, or of the node, do. Where these are many, ``downs[i]`` is the place of their header.
Else it is below 0, and what follows the letter in each word stands in ``ends[~downs[i]:]``: how
many characters are as in the word before, how many bytes follow, both seven bits to a byte, the
lowest first, and these bytes, in UTF-8.

Every range is half-open. Costs are counted in quarters of an edit.
"""

import numpy as np

from telic.completion.engine.array_kernels import (
    copy_into,
    get_number,
    longer_table,
    place_in,
    put_number,
    set_row,
)
from telic.completion.engine.fold_kernels import character
from telic.kernels import kernel

ONE_EDIT, TWO_EDITS = 3, 8
"""Characters from which a typed word may have one edit, or two."""
QUARTER_EDIT = float(np.log(10)) / 2
"""What a quarter of an edit takes from a logarithm of popularity: a phrase with an edit must be a
hundred times as popular as one without."""
EDIT, SLIP, UNFINISHED = 4, 3, 2
"""Costs of one edit, of a letter whose key lies beside that of the right one, and of an earlier
word that is only begun. Three slips cost more than two edits, and two more than one: so what costs
no more than the edits allowed has no more of them."""
MANY = 32
"""Words of an entry that have a header of their own."""


def edits_allowed(word: str, most: int) -> int:
    """How many edits a typed word may have, of `most`: it depends on its length."""
    return min(most, (len(word) >= ONE_EDIT) + (len(word) >= TWO_EDITS))


@kernel
def _put_ends(text, offsets, lo, hi, depth, out, at):
    """Write words from a depth on, in bytes, each by what differs from the one before."""
    for word in range(lo, hi):
        begin, end, common = offsets[word] + depth, offsets[word + 1], 0
        if word > lo:
            before, last = offsets[word - 1] + depth, offsets[word]
            while begin < end and before < last:
                code, after = character(text, begin)
                other, before = character(text, before)
                if code != other:
                    break
                begin, common = after, common + 1
        at = put_number(out, put_number(out, at, common), end - begin)
        at = copy_into(out, at, text[begin:end])
    return at


@kernel
def make_trie(text, offsets):
    """Make a trie of sorted, distinct words: word i is ``text[offsets[i]:offsets[i + 1]]``."""
    entries, used = np.zeros((256, 3), np.int32), 0
    ends, at = np.empty(len(text) + 10 * len(offsets), np.uint8), 0
    nodes, last = np.zeros((256, 4), np.int32), 1  # first word, end, depth in bytes, entry
    set_row(nodes, 0, (0, len(offsets) - 1, 0, -1))
    node = 0
    while node < last:
        lo, hi = np.int64(nodes[node, 0]), np.int64(nodes[node, 1])
        depth, entry = nodes[node, 2], nodes[node, 3]
        node += 1
        header = used
        if entry >= 0:
            entries[entry, 2] = header
        used += 1
        while lo < hi and offsets[lo + 1] - offsets[lo] == depth:
            lo += 1
        while lo < hi:
            entries = longer_table(entries, used + 2)
            code, after = character(text, offsets[lo] + depth)
            below = after - offsets[lo]
            end = lo + 1
            while end < hi and character(text, offsets[end] + depth)[0] == code:
                end += 1
            set_row(entries, used, (code, lo, ~at))
            if end - lo < MANY:
                at = _put_ends(text, offsets, lo, end, below, ends, at)
            else:
                nodes = longer_table(nodes, last + 1)
                set_row(nodes, last, (lo, end, below, used))
                last += 1
            used += 1
            lo = end
        entries[header, 0] = used - header - 1
    letters, firsts, downs = entries[:used, 0], entries[:used, 1], entries[:used, 2]
    return letters.copy(), firsts.copy(), downs.copy(), ends[:at].copy()


@kernel
def _too_dear(edits):
    """Least cost that no word may have which has at most so many edits."""
    return max(EDIT * edits, UNFINISHED) + 1


@kernel
def _step(rows, path, i, token, edits, keys):
    """Fill row i from those before it, when ``path[i - 1]`` is a word's character i; its least.

    ``rows[i, j - i + edits]`` is the least cost of edits between the word's first i characters and
    the token's first j, or more than that of `edits`.
    """
    dear = _too_dear(edits)
    m, code, least = len(token), path[i - 1], dear
    before, row = rows[i - 1], rows[i]
    for t in range(2 * edits + 1):
        j = i + t - edits
        cost = dear
        if 0 <= j <= m:
            if t < 2 * edits:
                cost = min(cost, before[t + 1] + EDIT)
            if j > 0:
                if t > 0:
                    cost = min(cost, row[t - 1] + EDIT)
                cost = min(cost, before[t] + _price(token[j - 1], code, keys))
                if i > 1 and j > 1 and token[j - 1] == path[i - 2] and token[j - 2] == code:
                    cost = min(cost, rows[i - 2, t] + EDIT)
        row[t] = cost
        least = min(least, cost)
    return least


@kernel
def _price(typed, meant, keys):
    """Cost of one character in place of another."""
    if typed == meant:
        return 0
    # Without keys numba compiles nothing of what follows the first condition.
    if keys is not None and typed < len(keys) and meant < len(keys) and keys[typed, meant]:
        return SLIP
    return EDIT


@kernel
def _of_prefix(rows, i, m, edits, whole, best):
    """Cost of a word that begins with the i characters of a path, if it is less than `best`."""
    t = m - i + edits
    if 0 <= t <= 2 * edits:
        if not whole:
            return min(best, rows[i, t])
        if i == m and rows[i, t] == 0:
            return min(best, UNFINISHED)
    return best


@kernel
def _of_word(rows, i, m, edits, whole, best):
    """Cost of the word that ends with a path, if it is less than `best`."""
    t = m - i + edits
    return min(best, rows[i, t]) if whole and 0 <= t <= 2 * edits else best


@kernel
def _next_letter(token, i, edits, last):
    """Least of the token's letters that character i + 1 may stand for, above `last`; or none."""
    least = np.int64(1 << 30)
    for j in range(max(i - edits - 1, 0), min(i + edits + 1, len(token))):
        if last < token[j] < least:
            least = np.int64(token[j])
    return least


@kernel
def near(trie, size, token, edits, whole, keys):
    """Disjoint ranges of the words, of `size`, that a typed token may mean, with their costs.

    `token` are codes of characters. A word costs `EDIT` for each of the cheapest insertions,
    deletions, substitutions and transpositions of neighbours, at most `edits`, that make the token
    of it (`whole`) or of a beginning of it. A substitution costs `SLIP` where `keys`, unless it is
    None, says that the two keys lie beside each other (`telic.completion.engine.keyboards`); then
    `edits` is at most 2. Where the token is ASCII, so are the letters of the word that no letter of
    the token stands for. A whole token that begins a word without an edit costs `UNFINISHED`.
    """
    letters, firsts, downs, ends = trie
    m, dear = len(token), _too_dear(edits)
    cheapest = EDIT if keys is None else SLIP
    plain = True
    for letter in token:
        plain &= letter < 0x80
    found, used = np.empty((64, 3), np.int32), 0
    deepest = m + edits + 2
    rows = np.empty((deepest, 2 * edits + 1), np.int64)
    path, best = np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    # Of the node at each depth: its next entry, the end of its entries, the end of its words, and
    # whether only letters of the token lead on.
    at, stop, end = np.empty(deepest, np.int64), np.empty(deepest, np.int64), np.empty_like(best)
    strict, last_letter = np.empty(deepest, np.bool_), np.empty(deepest, np.int64)
    for t in range(2 * edits + 1):
        rows[0, t] = EDIT * (t - edits) if t >= edits else dear
    best[0] = _of_prefix(rows, 0, m, edits, whole, dear)
    if best[0] < dear:
        set_row(found, 0, (0, size, best[0]))
        used = 1
    i = 0
    at[0], stop[0], end[0], last_letter[0] = 1, 1 + letters[0], size, -1
    strict[0] = cheapest >= best[0]
    while i >= 0:
        if strict[i]:
            letter = _next_letter(token, i, edits, last_letter[i])
            last_letter[i] = letter
            at[i] = place_in(letters, at[i], stop[i], letter)
            if at[i] < stop[i] and letters[at[i]] != letter:
                continue
        entry = at[i]
        if entry == stop[i] or (plain and letters[entry] >= 0x80):
            i -= 1
            continue
        at[i] += 1
        lo, hi = np.int64(firsts[entry]), end[i]
        if at[i] < stop[i]:
            hi = np.int64(firsts[at[i]])
        path[i] = letters[entry]
        below = i + 1
        least = _step(rows, path, below, token, edits, keys)
        if least >= best[i]:
            continue
        best[below] = _of_prefix(rows, below, m, edits, whole, best[i])
        if used + MANY + 2 > len(found):
            found = longer_table(found, used + MANY + 2)
        if best[below] < best[i]:
            set_row(found, used, (lo, hi, best[below]))
            used += 1
        if least >= best[below]:
            continue
        down = np.int64(downs[entry])
        if down >= 0:
            cost = _of_word(rows, below, m, edits, whole, best[below])
            if firsts[down + 1] > lo and cost < best[below]:
                set_row(found, used, (lo, lo + 1, cost))
                used += 1
            i = below
            at[i], stop[i], end[i], last_letter[i] = down + 1, down + 1 + letters[down], hi, -1
            strict[i] = least + cheapest >= best[i]
            continue
        place, alive = ~down, below  # rows up to `alive` are of the word before, and of use
        for word in range(lo, hi):
            common, place = get_number(ends, place)
            length, place = get_number(ends, place)
            after, ended = place + length, below + common <= alive
            if ended:
                alive = below + common
            while ended and place < after:
                path[alive], place = character(ends, place)
                least = _step(rows, path, alive + 1, token, edits, keys)
                ended = least < best[alive] and not (plain and path[alive] >= 0x80)
                if ended:
                    best[alive + 1] = _of_prefix(rows, alive + 1, m, edits, whole, best[alive])
                    alive += 1
            cost = best[alive]
            if ended:
                cost = _of_word(rows, alive, m, edits, whole, cost)
            if cost < best[below]:
                set_row(found, used, (word, word + 1, cost))
                used += 1
            place = after
    return _apart(found[:used], size)


@kernel
def _apart(found, size):
    """Make ranges in order, nested or disjoint, into disjoint ones, each with its least cost."""
    out, used = np.empty((2 * len(found) + 1, 3), np.int64), 0
    open_hi, open_cost = np.empty(len(found) + 1, np.int64), np.empty(len(found) + 1, np.int64)
    depth, at = 0, np.int64(0)
    for row in range(len(found) + 1):
        lo = found[row, 0] if row < len(found) else size + 1
        while depth and open_hi[depth - 1] <= lo:
            used = _add(out, used, at, open_hi[depth - 1], open_cost[depth - 1])
            at = max(at, open_hi[depth - 1])
            depth -= 1
        if row == len(found):
            break
        if depth:
            used = _add(out, used, at, lo, open_cost[depth - 1])
        at = lo
        cost = found[row, 2]
        open_hi[depth] = found[row, 1]
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
    set_row(out, used, (lo, hi, cost))
    return used + 1
