"""Who looks alike, seen n links far: each node's view as 64 bits, refined distance by distance."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numba import prange

from telic.hin import Links, Network
from telic.kernels import kernel
from telic.privacy.adversary import Adversary
from telic.privacy.merged_types import Flat, flatten
from telic.privacy.protected import attribute_codes
from telic.privacy.threads import threads_for

_NO_STRENGTH = np.empty(0, np.int32)


@kernel(inline="always")
def mix(x):
    """Scramble 64 bits (the finaliser of SplitMix64)."""
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def mix_all(values):
    """Scramble every value in place."""
    for v in range(len(values)):
        values[v] = mix(values[v])


@kernel(parallel=True)
def add_neighbour_hashes(indptr, indices, strength, salt, hashes, total):
    """Add, for each node, the hashes of its neighbours mixed with strength and link type."""
    for v in prange(len(total)):
        acc = np.uint64(0)
        for e in range(indptr[v], indptr[v + 1]):
            s = np.uint64(strength[e]) if len(strength) else np.uint64(0)
            acc += mix(hashes[indices[e]] + mix(salt + s))
        total[v] += acc


@kernel(parallel=True)
def merge_layers(indptr, targets, strength, salts, begin, end, indices, label):
    """Merge link types and directions: each row's distinct neighbours, and how they are linked.

    A neighbour's label sums one number per link to it, so it says which links there are.
    """
    for v in prange(len(end)):
        places = indptr[:, v].copy()
        out = begin[v]
        while True:
            lowest = np.int64(-1)
            for k in range(len(salts)):
                if places[k] < indptr[k, v + 1] and (lowest < 0 or targets[places[k]] < lowest):
                    lowest = np.int64(targets[places[k]])
            if lowest < 0:
                break
            acc = np.uint64(0)
            for k in range(len(salts)):
                if places[k] < indptr[k, v + 1] and targets[places[k]] == lowest:
                    acc += mix(salts[k] + np.uint64(strength[places[k]]))
                    places[k] += 1
            # A node that links to itself is seen to do so.
            indices[out], label[out] = lowest, mix(acc) if lowest == v else acc
            out += 1
        end[v] = out


@kernel(parallel=True)
def add_labelled_hashes(begin, end, indices, label, hashes, total):
    """Add, for each node, the hashes of its neighbours mixed with how they are linked."""
    for v in prange(len(total)):
        acc = np.uint64(0)
        for e in range(begin[v], end[v]):
            acc += mix(hashes[indices[e]] + label[e])
        total[v] += acc


class Layer(NamedTuple):
    """One link type in one direction."""

    links: Links
    salt: np.uint64

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return row pointers, targets and strengths (empty if there are none)."""
        strength = _NO_STRENGTH if self.links.strength is None else self.links.strength
        return self.links.indptr, self.links.indices, strength

    def add(self, hashes: np.ndarray, total: np.ndarray) -> None:
        """Add to each node what its neighbours along these links look like."""
        add_neighbour_hashes(*self.arrays(), self.salt, hashes, total)


def layers_of(number: int, links: Links, size: int, in_links: bool) -> list[Layer]:
    """Return the layers of the `number`-th link type: out-links and, if seen, in-links."""
    ways = [links, links.reverse(size)] if in_links else [links]
    return [Layer(way, layer_salt(2 * number + side)) for side, way in enumerate(ways)]


def layer_salt(number: int) -> np.uint64:
    """Give each layer 64 bits of its own, so that equal neighbours of two types differ.

    Salts are scrambled: strengths are added to them, and those of two layers must not meet. Nor
    may they meet the hash of a profile, which is scrambled from a small number, too: a neighbour of
    profile 0 along layer 1 would look like one of profile 1 along layer 0.
    """
    return np.uint64(mix(np.uint64(number) + np.uint64(1 << 63)))


def profile_hashes(size: int, codes: Iterable[np.ndarray]) -> np.ndarray:
    """Hash what each profile shows, given as one array of codes per attribute.

    Values count as different unless they are equal, whatever the attribute's rule: the table that
    is judged and the one it is compared with are of the same moment.
    """
    out = np.zeros(size, np.uint64)
    for code in codes:
        out += code.astype(np.uint64) + np.uint64(1)
        mix_all(out)
    mix_all(out)
    return out


def profiles(flat: Flat) -> np.ndarray:
    """Hash the profiles of all nodes."""
    return profile_hashes(flat.size, (attribute_codes(column.values) for column in flat.columns))


class Neighbourhood:
    """Spreads hashes along some layers, apart or with all links of a pair of nodes together."""

    def __init__(self, layers: Sequence[Layer], size: int, joint: bool) -> None:
        self.layers, self.joint = layers, joint and len(layers) > 0
        self.entries = sum(len(layer.links) for layer in layers)
        if self.joint:
            parts = [layer.links for layer in layers]
            offset = np.cumsum([0, *map(len, parts)])
            indptr = np.stack([p.indptr + o for p, o in zip(parts, offset, strict=False)])
            targets = np.concatenate([part.indices for part in parts])
            strength = np.zeros(self.entries, np.int32)
            for part, o in zip(parts, offset, strict=False):
                if part.strength is not None:
                    strength[o : o + len(part)] = part.strength
            salts = np.array([layer.salt for layer in layers])
            degree = np.sum([part.out_degree for part in parts], axis=0)
            self.begin = np.append(0, np.cumsum(degree))[:-1].astype(np.int64)
            self.end = np.empty(size, np.int64)
            # Rows leave room where links merge: zeros, so that every run writes the same files.
            self.indices = np.zeros(self.entries, np.int32)
            self.label = np.zeros(self.entries, np.uint64)
            args = indptr, targets, strength, salts
            with threads_for(self.entries):
                merge_layers(*args, self.begin, self.end, self.indices, self.label)

    def entries_of(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each entry's row, neighbour and label."""
        if self.joint:
            counts = self.end - self.begin
            rows = np.repeat(np.arange(len(counts)), counts)
            shift = np.repeat(self.begin - (np.cumsum(counts) - counts), counts)
            place = np.arange(len(rows)) + shift
            return rows, self.indices[place], self.label[place]
        empty = np.empty(0, np.int32)
        labels = [np.empty(0, np.uint64)]
        for links, salt in self.layers:
            strength = np.zeros(len(links), np.uint64)
            if links.strength is not None:
                strength = links.strength.astype(np.uint64)
            label = salt + strength
            mix_all(label)
            labels.append(label)
        sources = np.concatenate([empty, *(layer.links.sources for layer in self.layers)])
        targets = np.concatenate([empty, *(layer.links.indices for layer in self.layers)])
        return sources, targets, np.concatenate(labels)

    def step(self, start: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """Return the views one link farther, from the profiles and the views so far."""
        total = start.copy()
        self.add(hashes, total)
        mix_all(total)
        return total

    def add(self, hashes: np.ndarray, total: np.ndarray) -> None:
        """Add to each node what its neighbours look like."""
        with threads_for(self.entries):
            if self.joint:
                args = self.begin, self.end, self.indices, self.label
                add_labelled_hashes(*args, hashes, total)
                return
            for layer in self.layers:
                layer.add(hashes, total)


class Step(NamedTuple):
    """Who looks alike at one distance."""

    distance: int
    hashes: np.ndarray
    """Equal for nodes that look alike at this distance; not comparable with other steps'."""


def refine(
    start: np.ndarray,
    around: Neighbourhood,
    distance: int | None,
    first: np.ndarray | None = None,
) -> Iterator[Step]:
    """Give the views at distance 0, 1, …; None: up to the first that tells nobody more apart.

    `start` are the hashes of the profiles, `first` what `around` adds at distance 1, if known.
    """
    hashes = start
    every = count_kinds(hashes) if distance is None else -1
    yield Step(0, hashes)
    for step in range(1, WHOLE_STEPS + 1):
        if distance is not None and step > distance:
            return
        if step == 1 and first is not None:
            hashes = start + first
            mix_all(hashes)
        else:
            hashes = around.step(start, hashes)
        # Nodes of every type: the protected ones may rest while others still change.
        before, every = every, count_kinds(hashes) if distance is None else -1
        yield Step(step, hashes)
        if distance is None and every == before:
            return
    classes = _Classes(hashes, around)
    step = WHOLE_STEPS
    while distance is None or step < distance:
        step += 1
        changed = classes.split()
        yield Step(step, classes.number.astype(np.uint64))
        if distance is None and not changed:
            return


WHOLE_STEPS = 6
"""After so many steps only the nodes that may change are looked at: long paths take many steps."""


@kernel
def pass_on(changed, old, number, begin, end, rows, label, total, touched):
    """Tell all who have a changed node as neighbour its new number instead of the old one."""
    for c in range(len(changed)):
        b = changed[c]
        new, was = mix(number[b]), mix(old[c])
        for e in range(begin[b], end[b]):
            total[rows[e]] += mix(new + label[e]) - mix(was + label[e])
            touched[rows[e]] = True


class _Classes:
    """Nodes that look alike carry one number; a step splits classes by their neighbours' numbers.

    The largest part of a class keeps its number, so a node changes its own at most log₂ n times,
    and only the neighbours of nodes that did are looked at.
    """

    def __init__(self, hashes: np.ndarray, around: Neighbourhood) -> None:
        self.number = np.unique(hashes, return_inverse=True)[1].astype(np.int64)
        self.sizes = np.bincount(self.number, minlength=len(hashes))
        self.count = int(self.number.max(initial=-1)) + 1
        rows, columns, label = around.entries_of()
        order = np.argsort(columns, kind="stable")
        self.end = np.cumsum(np.bincount(columns, minlength=len(hashes)))
        self.begin = np.append(0, self.end)[:-1]
        self.rows, self.label = rows[order], label[order]
        self.total = np.zeros(len(hashes), np.uint64)
        # All numbers are new at first: everybody with a neighbour is told.
        self.changed, self.old = np.arange(len(hashes)), np.full(len(hashes), -1)

    def split(self) -> bool:
        """Take one step; say whether any class was split."""
        touched = np.zeros(len(self.number), bool)
        told = self.changed, self.old, self.number
        links = self.begin, self.end, self.rows, self.label
        pass_on(*told, *links, self.total, touched)
        nodes = np.flatnonzero(touched)
        if not len(nodes):
            return False
        nodes = nodes[np.lexsort((self.total[nodes], self.number[nodes]))]
        number, total = self.number[nodes], self.total[nodes]
        opens_class = np.append(True, number[1:] != number[:-1])
        opens_part = opens_class | np.append(True, total[1:] != total[:-1])
        starts = np.flatnonzero(opens_part)
        sizes = np.diff(np.append(starts, len(nodes)))
        first = np.flatnonzero(opens_class[starts])  # each class's first part
        whose = np.cumsum(opens_class[starts]) - 1  # each part's class
        classes = number[starts[first]]
        left = self.sizes[classes] - np.add.reduceat(sizes, first)  # who was not told
        best = np.maximum.reduceat(sizes, first)
        left_keeps = left >= best
        keeper = np.flatnonzero((sizes == best[whose]) & ~left_keeps[whose])
        keeper = keeper[np.append(True, whose[keeper][1:] != whose[keeper][:-1])[: len(keeper)]]
        moves = np.ones(len(starts), bool)
        moves[keeper] = False
        # Those who were not told are another part, which moves if it is not the largest.
        left_moves = ~left_keeps & (left > 0)
        self.sizes[classes] = np.maximum(left, best)
        fresh = np.full(len(starts), -1)
        fresh[moves] = self._open(sizes[moves])
        left_fresh = self._open(left[left_moves])
        part = np.cumsum(opens_part) - 1
        moved = fresh[part] >= 0
        changed, new = nodes[moved], fresh[part[moved]]
        if left_moves.any():
            other = np.full(len(self.number), -1)
            other[classes[left_moves]] = left_fresh
            rest = np.flatnonzero(~touched & (other[self.number] >= 0))
            changed, new = np.append(changed, rest), np.append(new, other[self.number[rest]])
        self.changed, self.old = changed, self.number[changed]
        self.number[changed] = new
        return len(changed) > 0

    def _open(self, sizes: np.ndarray) -> np.ndarray:
        """Number new classes, given their sizes."""
        new = self.count + np.arange(len(sizes))
        self.count += len(sizes)
        self.sizes[new] = sizes
        return new


def farthest(network: Network, adversary: Adversary) -> np.ndarray:
    """Return the hashes of all nodes' views, as far as the adversary looks."""
    flat = flatten(network, adversary)
    layers = [
        layer
        for number, (links, _) in enumerate(flat.links)
        for layer in layers_of(number, links, flat.size, adversary.in_links)
    ]
    around = Neighbourhood(layers, flat.size, adversary.joint)
    *_, last = refine(profiles(flat), around, adversary.distance)
    return last.hashes


def count_kinds(hashes: np.ndarray) -> int:
    """Count the distinct views."""
    ordered = np.sort(hashes)
    return int((ordered[1:] != ordered[:-1]).sum()) + (len(ordered) > 0)
