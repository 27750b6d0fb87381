"""Algorithms 3 and 4 (their two misprints set right), compiled: the rival of the level method.

As printed, every target is compared with every user, attribute by attribute, and every neighbour
with every neighbour before the matching decides. With `hasty` the recursion stops as soon as a link
type cannot be matched any more, which the printed algorithm does not do.
"""

import numpy as np
from numba import njit  # no cache=True: a cached self-recursive function crashes when loaded


@njit(nogil=True)
def seat(i, fits, owner, seen):
    """Kuhn: seat i, moving others if need be."""
    for b in range(fits.shape[1]):
        if fits[i, b] and not seen[b]:
            seen[b] = True
            if owner[b] < 0 or seat(owner[b], fits, owner, seen):
                owner[b] = i
                return True
    return False


@njit(nogil=True)
def profile_match(t, v, profiles):
    """Does every attribute of v lie within what target t allows?"""
    values, least, most = profiles
    for a in range(values.shape[1]):  # noqa: SIM110 (numba knows no all())
        if not least[t, a] <= values[v, a] <= most[t, a]:
            return False
    return True


@njit(nogil=True)
def link_match(n, hasty, t, v, profiles, wanted, known):
    """Can the neighbours of t be matched to those of v, n links deep, in every link type?

    `wanted` holds where the targets' links begin, their ends, and the least and most strength that
    matches; `known` the same of the users, with one strength.
    """
    friend_ptr, friends, low, high = wanted
    indptr, indices, strength = known
    for layer in range(len(friend_ptr)):
        many = friend_ptr[layer, t + 1] - friend_ptr[layer, t]
        offered = indptr[layer, v + 1] - indptr[layer, v]
        if many == 0:
            continue
        if hasty and many > offered:
            return False
        fits = np.zeros((many, offered), np.bool_)
        for i in range(many):
            link = friend_ptr[layer, t] + i
            friend = friends[link]
            some = False
            for b in range(offered):
                e = indptr[layer, v] + b
                other = indices[e]
                if (
                    low[link, 0] <= strength[e, 0] <= high[link, 0]
                    and profile_match(friend, other, profiles)
                    and (n == 1 or link_match(n - 1, hasty, friend, other, profiles, wanted, known))
                ):
                    fits[i, b] = True
                    some = True
            if hasty and not some:
                return False
        owner = np.full(offered, -1, np.int64)
        for i in range(many):
            if not seat(i, fits, owner, np.zeros(offered, np.bool_)):
                return False
    return True


@njit(nogil=True)
def candidates(n, hasty, t, keep, profiles, wanted, known):
    """Mark the users that match target t at distance n."""
    for v in range(len(keep)):
        keep[v] = profile_match(t, v, profiles) and link_match(
            n, hasty, t, v, profiles, wanted, known
        )
