"""The candidates of a keystroke: popular, popular lately, the user's own, and of the session."""

from telic.completion.engine.array_kernels import place_in
from telic.completion.engine.prefix_kernels import BLOCK
from telic.completion.signals.counts import WEEK
from telic.completion.signals.features import in_catalogue, text_of
from telic.completion.signals.overlap import begins_with
from telic.kernels import kernel

POPULAR, RECENT, OWN, FOLLOWING = 20, 5, 5, 5
"""How many of each; a candidate may be several. The most popular are ranked as a completer without
signals would rank them: by submissions, then in the order of the catalogue."""
POOL = POPULAR + RECENT + OWN + FOLLOWING + 5


@kernel
def _better(count, q, other_count, other):
    return count > other_count or (count == other_count and q < other)


@kernel
def _put(ids, counts, found, limit, q, count):
    """Insert a phrase into a list of the `limit` largest counts; return its new length."""
    if found == limit and not _better(count, q, counts[found - 1], ids[found - 1]):
        return found
    j = found if found < limit else found - 1
    while j > 0 and _better(count, q, counts[j - 1], ids[j - 1]):
        ids[j], counts[j] = ids[j - 1], counts[j - 1]
        j -= 1
    ids[j], counts[j] = q, count
    return min(found + 1, limit)


@kernel
def _top(counts_of, known, best, low, high, limit, ids, counts):
    """Fill ids with the known phrases of low:high of the largest counts, all above 0."""
    found, q = 0, low
    while q < high:
        if q % BLOCK == 0 and q + BLOCK <= high:
            top = best[q // BLOCK]
            if top <= 0.0 or (found == limit and top <= counts[found - 1]):
                q += BLOCK  # equal counts later in the catalogue come after
                continue
        if known[q] and counts_of[q] > 0.0:
            found = _put(ids, counts, found, limit, q, counts_of[q])
        q += 1
    return found


@kernel
def _add(out, used, q):
    for j in range(used):
        if out[j] == q:
            return used
    if used < len(out):
        out[used] = q
        used += 1
    return used


@kernel
def gather(state, beyond, low, high, prefix, own, session_ids, ids, counts, out):
    """Fill out with candidates: of the catalogue low:high begin with the prefix; return how many.

    The most popular come first, best first. `ids` and `counts` are room for `POPULAR` numbers.
    """
    n, used = len(state.known), 0
    found = _top(state.popular, state.known, state.best_popular, low, high, POPULAR, ids, counts)
    for i in range(len(beyond.popular)):
        if beyond.popular[i] > 0.0 and begins_with(text_of(state, beyond, n + i), prefix):
            found = _put(ids, counts, found, POPULAR, n + i, beyond.popular[i])
    for j in range(found):
        used = _add(out, used, ids[j])
    recent = state.recent[:, WEEK]
    found = _top(recent, state.known, state.best_recent, low, high, RECENT, ids, counts)
    for j in range(found):
        used = _add(out, used, ids[j])
    found = 0
    for i in range(place_in(own.query, 0, len(own.query), low), len(own.query)):
        q = own.query[i]
        fits = q < high if q < n else begins_with(text_of(state, beyond, q), prefix)
        if fits and own.times[i] > 0.0:
            found = _put(ids, counts, found, OWN, q, own.last[i])
    for j in range(found):
        used = _add(out, used, ids[j])
    for p in session_ids:
        if low <= p < high and in_catalogue(state, p):
            used = _add(out, used, p)
    found = 0
    for p in session_ids:
        if not in_catalogue(state, p):
            continue
        last = state.pair_start[p + 1]
        for i in range(place_in(state.pair_next, state.pair_start[p], last, low), last):
            q = state.pair_next[i]
            if q >= high:
                break
            twice = False
            for j in range(found):
                twice |= ids[j] == q
            if not twice and state.known[q] and state.pair_count[i] > 0.0:
                found = _put(ids, counts, found, FOLLOWING, q, state.pair_count[i])
    for j in range(found):
        used = _add(out, used, ids[j])
    return used
