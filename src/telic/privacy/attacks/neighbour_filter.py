"""The attack at distance n: whose neighbours can be matched to a target's, given those of n − 1."""

from typing import NamedTuple

import numpy as np
from numba import prange

from telic.kernels import kernel
from telic.privacy.attacks.candidate_sets import candidate, is_candidate, lower_bound, span

NEVER = 2**62
"""More than any number of neighbours."""


class Wanted(NamedTuple):
    """The neighbours that targets have, by link type: who they are, and how strongly linked."""

    ptr: np.ndarray
    friends: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Known(NamedTuple):
    """The neighbours that users of the auxiliary network have, and what rules users out fast."""

    indptr: np.ndarray
    indices: np.ndarray
    strength: np.ndarray
    kind: np.ndarray
    signature: np.ndarray


class Matching(NamedTuple):
    """Who is matched to whom while a target's neighbours are, by their places among them."""

    owner: np.ndarray
    """The target's neighbour to whom each known one is given; −1: free."""
    mate: np.ndarray
    """The known neighbour of each of the target's; negative: none."""
    came: np.ndarray
    """Of a search: from whom each known neighbour was reached."""
    seen: np.ndarray
    stamp: np.ndarray
    """The number of this search, and of the last one that reached each."""
    queue: np.ndarray
    far: np.ndarray
    near: np.ndarray
    """Changed strengths on the way to each known neighbour, and to each of the target's."""
    waits: np.ndarray
    """Which of the target's neighbours are in the queue."""


@kernel(inline="always")
def signature_bit(layer, kind):
    """One of 64 bits for a neighbour of some kind of profile by some link type."""
    scrambled = np.uint64(kind * 64 + layer) * np.uint64(0x9E3779B97F4A7C15)
    return np.uint64(1) << (scrambled >> np.uint64(58))


@kernel(parallel=True)
def add_signatures(layer, indptr, indices, kind, signature):
    """Add to each user's signature the kinds of the neighbours by one link type."""
    for v in prange(len(signature)):
        bits = signature[v]
        for e in range(indptr[v], indptr[v + 1]):
            bits |= signature_bit(layer, kind[indices[e]])
        signature[v] = bits


@kernel
def strength_fits(wanted, known, e, link):
    """Do the strengths of link e lie between the bounds of the target's link?"""
    for w in range(known.strength.shape[1]):
        if not wanted.low[link, w] <= known.strength[e, w] <= wanted.high[link, w]:
            return False
    return True


@kernel
def seat(sets, wanted, known, link, begin, end, owner):
    """Find a free neighbour for a target's neighbour: its place, −1 all taken, −2 none fits."""
    friend, indices = wanted.friends[link], known.indices
    smallest, largest, count = span(sets, friend)
    if count == 0:
        return -2
    answer = -2
    first, _, starts, found = sets
    if first[friend] < 0 and 8 * count < end - begin:
        for c in range(starts[friend], starts[friend + 1]):
            e = lower_bound(indices, begin, end, found[c])
            if e < end and indices[e] == found[c] and strength_fits(wanted, known, e, link):
                if owner[e - begin] < 0:
                    return e - begin
                answer = -1
        return answer
    e = lower_bound(indices, begin, end, smallest)
    while e < end and indices[e] <= largest:
        if strength_fits(wanted, known, e, link) and is_candidate(sets, friend, indices[e]):
            if owner[e - begin] < 0:
                return e - begin
            answer = -1
        e += 1
    return answer


@kernel
def augment(sets, wanted, known, begin, end, link0, root, matching):
    """Seat `root` by moving others along a shortest alternating path; False if there is none."""
    owner, mate, came = matching.owner, matching.mate, matching.came
    seen, stamp, queue = matching.seen, matching.stamp, matching.queue
    indices = known.indices
    stamp[0] += 1
    queue[0] = root
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        friend = wanted.friends[link0 + i]
        smallest, largest, _ = span(sets, friend)
        e = lower_bound(indices, begin, end, smallest)
        while e < end and indices[e] <= largest:
            p = e - begin
            if (
                seen[p] != stamp[0]
                and strength_fits(wanted, known, e, link0 + i)
                and is_candidate(sets, friend, indices[e])
            ):
                seen[p] = stamp[0]
                came[p] = i
                if owner[p] < 0:
                    while True:
                        i = came[p]
                        owner[p] = i
                        mate[i], p = p, mate[i]
                        if i == root:
                            return True
                queue[tail] = owner[p]
                tail += 1
            e += 1
    return False


@kernel
def linked(wanted, known, e, link):
    """Is link e of every type that the target's link is of, whatever the strengths?"""
    for w in range(known.strength.shape[1]):
        if wanted.low[link, w] > 0 and known.strength[e, w] == 0:
            return False
    return True


@kernel
def augment_by_change(sets, wanted, known, begin, end, link0, size, matching, budget):
    """Seat one more neighbour with the fewest more strengths that do not fit; say how many.

    A shortest path by label correction: a strength that does not fit costs 1, and giving one up
    that was counted yields 1. −1 if there is no such path within the budget.
    """
    owner, mate, came = matching.owner, matching.mate, matching.came
    queue, far, near, waits = matching.queue, matching.far, matching.near, matching.waits
    indices = known.indices
    far[: end - begin] = NEVER
    head, tail = 0, 0
    for i in range(size):
        near[i] = 0 if mate[i] < 0 else NEVER
        waits[i] = mate[i] < 0
        if waits[i]:
            queue[tail] = i
            tail += 1
    count = tail
    best = -1
    while count:
        i = queue[head]
        head = (head + 1) % len(queue)
        count -= 1
        waits[i] = False
        link = link0 + i
        smallest, largest, fitting = span(sets, wanted.friends[link])
        if fitting == 0:
            continue
        e = lower_bound(indices, begin, end, smallest)
        while e < end and indices[e] <= largest:
            p = e - begin
            if (
                mate[i] != p
                and linked(wanted, known, e, link)
                and is_candidate(sets, wanted.friends[link], indices[e])
            ):
                cost = near[i] + (0 if strength_fits(wanted, known, e, link) else 1)
                if cost < far[p]:
                    far[p] = cost
                    came[p] = i
                    j = owner[p]
                    if j < 0:
                        if best < 0 or cost < far[best]:
                            best = p
                    else:
                        near[j] = cost - (0 if strength_fits(wanted, known, e, link0 + j) else 1)
                        if not waits[j]:
                            waits[j] = True
                            queue[tail % len(queue)] = j
                            tail = (tail + 1) % len(queue)
                            count += 1
            e += 1
    if best < 0 or far[best] > budget:
        return -1
    cost = far[best]
    p = best
    while p >= 0:
        i = came[p]
        owner[p] = i
        mate[i], p = p, mate[i]
    return cost


@kernel
def neighbours_match(sets, wanted, known, layer, t, v, need, changes, matching):
    """Can `need` of t's neighbours be matched to distinct ones of v, with few strengths changed?"""
    owner, mate = matching.owner, matching.mate
    begin, end = known.indptr[layer, v], known.indptr[layer, v + 1]
    link0, link1 = wanted.ptr[layer, t], wanted.ptr[layer, t + 1]
    size = link1 - link0
    # Each neighbour beyond those whose strengths fit costs at least one changed strength.
    most = size - need + changes
    waiting = 0
    lost = 0
    for i in range(size):
        p = seat(sets, wanted, known, link0 + i, begin, end, owner)
        mate[i] = p
        if p >= 0:
            owner[p] = i
        elif p == -1:
            waiting += 1
        else:
            lost += 1
            if lost > most:
                break
    if lost <= most and waiting:
        for i in range(size):
            if mate[i] == -1 and not augment(sets, wanted, known, begin, end, link0, i, matching):
                mate[i] = -2
                lost += 1
                if lost > most:
                    break
    good = lost <= size - need
    if not good and lost <= most:
        good = True
        left = changes
        for _ in range(lost - (size - need)):
            cost = augment_by_change(sets, wanted, known, begin, end, link0, size, matching, left)
            if cost < 0:
                good = False
                break
            left -= cost
    for i in range(size):
        if mate[i] >= 0:
            owner[mate[i]] = -1
        mate[i] = -2
    return good


@kernel
def allowed(share, links):
    """How many of so many links may be in error: ⌊share · links⌋, whatever rounding does to it."""
    return int(share * links + 1e-9)


@kernel
def must_match(wanted, known, errors, layer, t, v):
    """How many neighbours of t must be matched to neighbours of v; more than there are: never."""
    added, _, missing = errors
    published = wanted.ptr[layer, t + 1] - wanted.ptr[layer, t]
    there = known.indptr[layer, v + 1] - known.indptr[layer, v]
    need = max(published - allowed(added, published), there - allowed(missing, there))
    return need if need <= min(published, there) else NEVER


@kernel
def wanted_signature(sets, wanted, kind, layers, t):
    """The bits that whoever has neighbours like those of target t must show."""
    bits = np.uint64(0)
    for layer in layers:
        for link in range(wanted.ptr[layer, t], wanted.ptr[layer, t + 1]):
            friend = wanted.friends[link]
            if span(sets, friend)[2]:
                bits |= signature_bit(layer, kind[candidate(sets, friend, 0)])
    return bits


@kernel(parallel=True)
def refine(sets, work, offsets, keep, kept, layers, errors, threads, wanted, known, limits):
    """For each target in `work`, mark and count the candidates whose neighbourhood matches.

    `errors` are the shares of `LinkErrors`; `limits` are the most neighbours that a user and a
    target have, and one more.
    """
    most_links, most_friends = limits
    for thread in prange(threads):
        matching = Matching(
            np.full(most_links, -1, np.int32),
            np.full(most_friends, -2, np.int32),
            np.empty(most_links, np.int32),
            np.zeros(most_links, np.int64),
            np.zeros(1, np.int64),
            np.empty(most_friends + 1, np.int32),
            np.empty(most_links, np.int64),
            np.empty(most_friends, np.int64),
            np.zeros(most_friends, np.bool_),
        )
        for w in range(thread, len(work), threads):
            t = work[w]
            bits = np.uint64(0)
            if errors[0] == 0:
                bits = wanted_signature(sets, wanted, known.kind, layers, t)
            for c in range(offsets[w + 1] - offsets[w]):
                v = candidate(sets, t, c)
                if known.signature[v] & bits != bits:
                    continue
                good = True
                for layer in layers:
                    if must_match(wanted, known, errors, layer, t, v) == NEVER:
                        good = False
                        break
                if good:
                    for layer in layers:
                        need = must_match(wanted, known, errors, layer, t, v)
                        changes = allowed(
                            errors[1], wanted.ptr[layer, t + 1] - wanted.ptr[layer, t]
                        )
                        if need and not neighbours_match(
                            sets, wanted, known, layer, t, v, need, changes, matching
                        ):
                            good = False
                            break
                if good:
                    keep[offsets[w] + c] = True
                    kept[w] += 1
