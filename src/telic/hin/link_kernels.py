"""Compiled loops over links."""

import numpy as np

from telic.kernels import kernel


@kernel
def first_unordered(source, target):
    """First link that does not come after its predecessor in (source, target), or -1."""
    for e in range(1, len(source)):
        if source[e] < source[e - 1] or (source[e] == source[e - 1] and target[e] <= target[e - 1]):
            return e
    return -1


@kernel
def stable_order(keys, order, size):
    """Reorder the links in `order` stably by their key in 0 … size − 1."""
    place = np.zeros(size + 1, np.int64)
    for e in order:
        place[keys[e] + 1] += 1
    place = np.cumsum(place)
    out = np.empty_like(order)
    for e in order:
        out[place[keys[e]]] = e
        place[keys[e]] += 1
    return out


@kernel
def row_starts(source, size):
    """CSR row pointers of links sorted by source."""
    indptr = np.zeros(size + 1, np.int64)
    for s in source:
        indptr[s + 1] += 1
    return np.cumsum(indptr)


@kernel
def induced_rows(indptr, indices, strength, chosen, place, out_indptr, out_indices, out_strength):
    """Keep the links among `chosen` nodes, renumbered by `place` (−1: left out); fill if given."""
    has_strength = len(strength) > 0
    fill = len(out_indices) > 0
    p = 0
    for row in range(len(chosen)):
        for e in range(indptr[chosen[row]], indptr[chosen[row] + 1]):
            column = place[indices[e]]
            if column >= 0:
                if fill:
                    out_indices[p] = column
                    if has_strength:
                        out_strength[p] = strength[e]
                p += 1
        out_indptr[row + 1] = p
    return p


@kernel
def dense_growth(indptr, indices, start, size):
    """Grow a set from `start`: always add the node with the most links from the set."""
    n = len(indptr) - 1
    order, inside, taken = np.empty(size, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    order[0] = start
    taken[start] = True
    for count in range(1, size):
        node = order[count - 1]
        for e in range(indptr[node], indptr[node + 1]):
            inside[indices[e]] += 1
        best = -1
        for v in range(len(inside)):
            if not taken[v] and inside[v] > 0 and (best < 0 or inside[v] > inside[best]):
                best = v
        if best < 0:
            return order[:count]
        order[count] = best
        taken[best] = True
    return order
