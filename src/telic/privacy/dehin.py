"""DeHIN: find the users of a published network in a network whose users are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.hin import Links, Network, Rule
from telic.privacy import kernels
from telic.privacy.target import own_links, target_type

BATCH = 2**26
"""How many pairs of target and candidate are looked at in one go (one byte each)."""
_NO_STRENGTH = np.empty(0, np.int32)
_ANY_STRENGTH = 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """How values of the published network may have changed since.

    Parameters
    ----------
    attributes : mapping of str to Rule
    strengths : mapping of str to Rule or None
        Per link type that is used; None: strengths are not compared.
    """

    attributes: Mapping[str, Rule]
    strengths: Mapping[str, Rule | None]

    @classmethod
    def of(
        cls,
        target: Network,
        *,
        override: Mapping[str, Any] | None = None,
        links: Sequence[str] | None = None,
        node_type: str | None = None,
    ) -> "Rules":
        """Take the rules of the published network's schema, with changes.

        Parameters
        ----------
        target : Network
        override : mapping, optional
            Attribute or link type → rule as in ``schema.json``.
        links : sequence of str, optional
            Link types to use; default all.
        node_type : str, optional

        Raises
        ------
        InputError
            If a name is neither an attribute nor a link type with strengths.
        """
        node_type = target_type(target, node_type)
        names = own_links(target.schema, node_type, links)
        attributes = dict(target.schema.nodes[node_type])
        strengths = {name: target.schema.link(name).strength for name in names}
        for name, given in (override or {}).items():
            rule = Rule.parse(given, f"rules: {name!r}")
            if name in target.nodes[node_type].column_names and name != "id":
                attributes[name] = rule
            elif name in own_links(target.schema, node_type):
                if target.schema.link(name).strength is None:
                    raise InputError(f"rules: link type {name!r} has no strength to compare.")
                if name in strengths:
                    strengths[name] = rule
            else:
                raise InputError(
                    f"rules: {name!r} is neither an attribute nor a link type of the target. "
                    f"Attributes are {list(attributes)}, link types {names}."
                )
        return cls({k: r for k, r in attributes.items() if r.kind != "ignore"}, strengths)


class _Sets(NamedTuple):
    """Candidates of each target: an interval first[t] ≤ v < last[t], or found[starts[t]:…]."""

    first: np.ndarray
    last: np.ndarray
    starts: np.ndarray
    found: np.ndarray

    def sizes(self) -> np.ndarray:
        listed = np.diff(self.starts)
        return np.where(self.first >= 0, self.last - self.first, listed)

    def of(self, t: int) -> np.ndarray:
        if self.first[t] >= 0:
            return np.arange(self.first[t], self.last[t])
        return self.found[self.starts[t] : self.starts[t + 1]]


class _Column:
    """One attribute of the auxiliary network as numbers, and how to read a target's values.

    Exact attributes become codes. A missing number is a value of its own that matches missing
    alone: whether it is missing is one more exact column (`missing`), its value is then 0.
    """

    def __init__(
        self, name: str, rule: Rule, column: pa.ChunkedArray, *, missing: bool = False
    ) -> None:
        self.name, self.rule, self.missing = name, rule, missing
        self.exact = missing or rule.kind == "exact"
        if self.exact:
            column = self._missing(column) if missing else column
            self.values = pc.unique(column)
            self.codes = pc.index_in(column, value_set=self.values).to_numpy().astype(np.float64)
            self.size = len(self.values)
        else:
            self.codes = self._numbers(column)
            self.gaps = bool(np.isnan(self.codes).any())
            self.codes = np.nan_to_num(self.codes)

    def _numbers(self, column: pa.ChunkedArray) -> np.ndarray:
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise InputError(
                f"attribute {self.name!r} is {column.type}: rule {self.rule.kind!r} compares "
                "numbers. Use 'exact' or 'ignore'."
            )
        return pc.cast(column, pa.float64(), safe=False).to_numpy()

    def _missing(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([pa.array(np.isnan(self._numbers(column)))])

    def bounds(self, column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """Give the closed interval of codes that match each of a target's values; NaN: none."""
        if not self.exact:
            numbers = self._numbers(column)
            if self.gaps:
                numbers = np.nan_to_num(numbers)
            low, high = self.rule.bounds(numbers)
            gap = np.isnan(numbers)
            return np.where(gap, np.nan, low), np.where(gap, np.nan, high)
        if self.missing:
            column = self._missing(column)
        if column.type != self.values.type:
            try:
                column = pc.cast(column, self.values.type)
            except pa.ArrowInvalid:
                raise InputError(
                    f"attribute {self.name!r} is {self.values.type} in the auxiliary network and "
                    f"{column.type} in the target. Write both alike."
                ) from None
        index = pc.index_in(column, value_set=self.values)
        codes = pc.fill_null(index, -1).to_numpy().astype(np.float64)
        return codes, codes


class Auxiliary:
    """A network whose users are known, sorted so that profiles are intervals.

    Users are renumbered by their exact attributes and then by one growing attribute, so the
    users that match a profile stand side by side. Prepare it once, attack many releases.

    Parameters
    ----------
    network : Network
    rules : Rules
        What is compared, and how; see `Rules.of`.
    node_type : str, optional
    in_links : bool
        Extension: also compare who links *to* the target.
    joint : bool
        Extension: a neighbour linked by several types must be matched to *one* user in all.
    """

    def __init__(
        self,
        network: Network,
        rules: Rules,
        *,
        node_type: str | None = None,
        in_links: bool = False,
        joint: bool = False,
    ) -> None:
        self.node_type = target_type(network, node_type)
        self.rules, self.in_links, self.joint = rules, in_links, joint
        self.size = network.size(self.node_type)
        own_links(network.schema, self.node_type, list(rules.strengths))
        table = network.nodes[self.node_type]
        for name in rules.attributes:
            if name not in table.column_names:
                raise InputError(
                    f"attribute {name!r} of the target is missing in the auxiliary network. "
                    "Give it the rule 'ignore'."
                )
        self._columns = [_Column(n, r, table.column(n)) for n, r in rules.attributes.items()]
        self._columns += [
            _Column(c.name, c.rule, table.column(c.name), missing=True)
            for c in self._columns
            if not c.exact and c.gaps
        ]
        self._columns.sort(key=lambda column: not column.exact)
        codes = [c.codes for c in self._columns]
        self.values, self._n_exact = self._pack(codes)
        # lexsort's last key is the first to sort by.
        keys = self.values[: self._n_exact + 1][::-1]
        self.order = np.lexsort(keys) if len(keys) else np.arange(self.size)
        self.values = np.ascontiguousarray(self.values[:, self.order])
        rank = np.empty(self.size, np.int32)
        rank[self.order] = np.arange(self.size, dtype=np.int32)
        self.rank = rank
        parts = _layers(network, self.node_type, rules, in_links)
        self._build_layers(parts, rank)
        for column in self._columns:
            del column.codes

    def _pack(self, codes: list[np.ndarray]) -> tuple[np.ndarray, int]:
        """Fold exact codes into as few float64 columns as hold them exactly."""
        packed: list[np.ndarray] = []
        room = 0
        for column, values in zip(self._columns, codes, strict=True):
            if column.exact and packed and room * column.size < 2**53:
                known = (packed[-1] >= 0) & (values >= 0)
                packed[-1] = np.where(known, packed[-1] * column.size + values, -1.0)
                room *= column.size
            else:
                packed.append(values)
                room = column.size if column.exact else 2**53
        n_exact = len(packed) - sum(not column.exact for column in self._columns)
        stacked = (
            np.stack(packed) if packed else np.empty((0, len(codes[0]) if codes else self.size))
        )
        return stacked, n_exact

    def _build_layers(self, parts: list[tuple[Links, Rule | None]], rank: np.ndarray) -> None:
        total = sum(len(links) for links, _ in parts)
        self.indptr = np.zeros((len(parts), self.size + 1), np.int64)
        self.indices = np.empty(total, np.int32)
        self.strength = np.empty((total, 1), np.int32)
        begin = 0
        for layer, (links, _) in enumerate(parts):
            self.indptr[layer, 0] = begin
            self.indptr[layer, 1:] = begin + np.cumsum(links.out_degree[self.order])
            strength = _NO_STRENGTH if links.strength is None else links.strength
            args = self.order, rank, links.indptr, links.indices, strength
            kernels.renumber(*args, self.indptr[layer], self.indices, self.strength)
            begin += len(links)
        if self.joint:
            merged = _merge(self.indptr, self.indices, self.strength[:, 0], self.strength[:, 0])
            self.indptr, self.indices, self.strength, _ = merged

    def intervals(self, target: Network) -> _Sets:
        """Return the candidates by profile alone (distance 0)."""
        table = target.nodes[self.node_type]
        lows, highs = [], []
        for column in self._columns:
            if column.name not in table.column_names:
                raise InputError(f"attribute {column.name!r} is missing in the target network.")
            low, high = column.bounds(table.column(column.name))
            lows.append(low)
            highs.append(high)
        n = table.num_rows
        low = self._pack(lows)[0].T if lows else np.empty((n, 0))
        high = self._pack(highs)[0].T if highs else np.empty((n, 0))
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        # A value that the auxiliary network never shows, and null, match nobody.
        unknown = (low[:, : self._n_exact] < 0).any(axis=1) | np.isnan(low).any(axis=1)
        first, last = np.empty(n, np.int64), np.empty(n, np.int64)
        kernels.profile_intervals(self.values, self._n_exact, low, high, first, last)
        last[unknown] = first[unknown]
        starts, found = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
        if len(self.values) > self._n_exact + 1:
            args = self.values, self._n_exact, low, high, first, last, starts
            found = np.empty(kernels.filter_profiles(*args, found), np.int32)
            kernels.filter_profiles(*args, found)
            first[:] = -1
        return _Sets(first, last, starts, found)


def _layers(
    network: Network, node_type: str, rules: Rules, in_links: bool
) -> list[tuple[Links, Rule | None]]:
    parts = [(network.links[name], rule) for name, rule in rules.strengths.items()]
    if in_links:
        n = network.size(node_type)
        parts += [(links.reverse(n), rule) for links, rule in parts]
    return parts


def _merge(
    indptr: np.ndarray, indices: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Merge layers into one whose links carry a strength per layer (0 … any: not linked)."""
    layers, n = indptr.shape[0], indptr.shape[1] - 1
    rows = np.concatenate(
        [np.repeat(np.arange(n, dtype=np.int64), np.diff(part)) for part in indptr]
    )
    layer = np.repeat(np.arange(layers), indptr[:, -1] - indptr[:, 0])
    pairs, place = np.unique((rows << 32) | indices, return_inverse=True)
    merged_low = np.zeros((len(pairs), layers), np.int32)
    merged_high = np.full((len(pairs), layers), _ANY_STRENGTH, np.int32)
    merged_low[place, layer], merged_high[place, layer] = low, high
    counts = np.bincount(pairs >> 32, minlength=n)
    merged_ptr = np.append(0, np.cumsum(counts)).astype(np.int64)[None, :]
    return merged_ptr, (pairs & 0x7FFFFFFF).astype(np.int32), merged_low, merged_high


@dataclass(frozen=True)
class Attack:
    """Candidate sets of every target at every distance.

    Parameters
    ----------
    sizes : int64 array, shape (max_distance + 1, n_targets)
        |C(v')| by distance.
    """

    sizes: np.ndarray
    _sets: list[_Sets] = field(repr=False)
    _order: np.ndarray = field(repr=False)
    _rank: np.ndarray = field(repr=False)

    def candidates(self, target: int, distance: int) -> np.ndarray:
        """Return the auxiliary positions that match a target, ascending."""
        return np.sort(self._order[self._sets[distance].of(target)])

    def contains(self, truth: np.ndarray, distance: int) -> np.ndarray:
        """Say for each target whether its auxiliary position in `truth` (−1: none) is left."""
        sets = self._sets[distance]
        inside = np.zeros(len(truth), bool)
        for t in np.flatnonzero(truth >= 0):
            inside[t] = kernels.is_candidate(tuple(sets), t, self._rank[truth[t]])
        return inside


def attack(
    auxiliary: Auxiliary,
    target: Network,
    *,
    max_distance: int,
    links: Sequence[str] | None = None,
    eliminate: bool = False,
    noise: float = 0.0,
) -> Attack:
    """Run DeHIN (Algorithms 3 and 4) on every user of a published network.

    The pairs that match at distance n are among those that match at n − 1 and depend on them
    only, so candidate sets are refined level by level instead of by recursion. Algorithm 4 is
    read with the bipartite graph emptied per link type and the recursion on the neighbours.

    Parameters
    ----------
    auxiliary : Auxiliary
    target : Network
        The published network; neighbours are its out-links.
    max_distance : int
        n ≥ 0.
    links : sequence of str, optional
        Use only these of the auxiliary's link types.
    eliminate : bool
        Extension: a user matched uniquely is no candidate of anybody else.
    noise : float in [0, 1)
        Extension: this share of a target's neighbours, per link type, may remain unmatched.

    Returns
    -------
    Attack

    Raises
    ------
    InputError
        If an attribute or link type is not there, or a parameter is out of range.

    Examples
    --------
    >>> from telic.hin import network_from_arrays, Schema
    >>> schema = Schema.parse({"nodes": {"user": {"attributes": {"yob": "exact"}}},
    ...                        "links": [{"name": "follow", "source": "user", "target": "user"}]})
    >>> network = network_from_arrays(schema, {"user": {"id": [1, 2, 3], "yob": [80, 80, 70]}},
    ...                               {"follow": ([1], [3])})
    >>> attack(Auxiliary(network, Rules.of(network)), network, max_distance=1).sizes.tolist()
    [[2, 2, 1], [1, 2, 1]]
    """
    if max_distance < 0:
        raise InputError(f"max_distance is {max_distance}, expected 0 or more.")
    if not 0 <= noise < 1:
        raise InputError(f"noise is {noise}, expected at least 0 and less than 1.")
    sets = auxiliary.intervals(target)
    if eliminate:
        sets = _eliminate(sets)
    layers, friend_ptr, friends, low, high = _target_links(auxiliary, target, links)
    levels = [sets]
    work = np.zeros(len(sets.first), bool)
    for layer in layers:
        work |= np.diff(friend_ptr[layer]) > 0
    targets = np.flatnonzero(work)
    degrees = np.diff(auxiliary.indptr[layers]) if len(layers) else np.zeros((1, 1), int)
    limits = int(degrees.max(initial=0)) + 1, int(np.diff(friend_ptr).max(initial=0)) + 1
    for _ in range(max_distance):
        sizes = sets.sizes()
        rarest = _rarest_first(friend_ptr, friends, sizes)
        links_now = friend_ptr, friends[rarest], low[rarest], high[rarest]
        before, sets = sets, _refine(auxiliary, sets, targets, layers, noise, links_now, limits)
        if eliminate:
            sets = _eliminate(sets)
        levels.append(sets)
        if (sets.sizes() == before.sizes()).all():
            levels += [sets] * (max_distance + 1 - len(levels))
            break
    every = np.stack([level.sizes() for level in levels])
    return Attack(every, levels, auxiliary.order, auxiliary.rank)


def _target_links(
    auxiliary: Auxiliary, target: Network, links: Sequence[str] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    names = list(auxiliary.rules.strengths)
    own_links(target.schema, auxiliary.node_type, names)
    chosen = names if links is None else list(links)
    for name in chosen:
        if name not in names:
            raise InputError(f"link type {name!r} was not prepared. Prepared are {names}.")
    rules = Rules(auxiliary.rules.attributes, {n: auxiliary.rules.strengths[n] for n in names})
    if auxiliary.joint and len(chosen) < len(names):
        raise InputError("joint matching uses all prepared link types: prepare only those wanted.")
    parts = _layers(target, auxiliary.node_type, rules, auxiliary.in_links)
    n = target.size(auxiliary.node_type)
    indptr = np.zeros((len(parts), n + 1), np.int64)
    pieces, lows, highs = [], [], []
    begin = 0
    for layer, (part, rule) in enumerate(parts):
        indptr[layer] = begin + part.indptr
        begin += len(part)
        pieces.append(part.indices)
        if part.strength is None or rule is None:
            low, high = np.zeros(len(part)), np.full(len(part), np.inf)
        else:
            bounds = rule.bounds(part.strength.astype(np.float64))
            low, high = (np.broadcast_to(side, len(part)) for side in bounds)
        lows.append(np.ceil(np.clip(low, 0, _ANY_STRENGTH)).astype(np.int32))
        highs.append(np.floor(np.clip(high, -1, _ANY_STRENGTH)).astype(np.int32))
    empty = np.empty(0, np.int32)
    indices = np.concatenate([empty, *pieces])
    low, high = np.concatenate([empty, *lows]), np.concatenate([empty, *highs])
    wanted = [names.index(name) for name in chosen]
    if auxiliary.in_links:
        wanted += [len(names) + place for place in wanted]
    if auxiliary.joint:
        return np.arange(min(len(parts), 1)), *_merge(indptr, indices, low, high)
    return np.array(wanted, np.int64), indptr, indices, low[:, None], high[:, None]


def _rarest_first(friend_ptr: np.ndarray, friends: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Order each target's neighbours by how many candidates they have."""
    if not len(friends):
        return np.empty(0, np.int64)
    n = friend_ptr.shape[1] - 1
    row = np.concatenate(
        [layer * n + np.repeat(np.arange(n), np.diff(ptr)) for layer, ptr in enumerate(friend_ptr)]
    )
    return np.lexsort((sizes[friends], row))


def _refine(
    auxiliary: Auxiliary,
    sets: _Sets,
    targets: np.ndarray,
    layers: np.ndarray,
    noise: float,
    links: tuple[np.ndarray, ...],
    limits: tuple[int, int],
) -> _Sets:
    sizes = sets.sizes()
    survivors: dict[int, np.ndarray] = {}
    work = targets[np.argsort(-sizes[targets], kind="stable")]
    ends = np.cumsum(sizes[work])
    begin = 0
    while begin < len(work):
        limit = (ends[begin - 1] if begin else 0) + BATCH
        stop = max(int(np.searchsorted(ends, limit, side="right")), begin + 1)
        batch = work[begin:stop]
        offsets = np.append(0, np.cumsum(sizes[batch]))
        keep = np.zeros(offsets[-1], bool)
        kernels.refine(  # type: ignore[call-arg]
            tuple(sets), batch, offsets, keep, layers, noise, numba.get_num_threads(), *links,
            auxiliary.indptr, auxiliary.indices, auxiliary.strength, *limits,
        )  # fmt: skip
        for place, t in enumerate(batch):
            kept = np.flatnonzero(keep[offsets[place] : offsets[place + 1]])
            if sets.first[t] >= 0:
                survivors[t] = (kept + sets.first[t]).astype(np.int32)
            else:
                survivors[t] = sets.found[sets.starts[t] + kept]
        begin = stop
    first = sets.first.copy()
    first[targets] = -1
    lists = [
        survivors.get(t, _NO_STRENGTH if first[t] >= 0 else sets.of(t)) for t in range(len(first))
    ]
    return _listed(first, sets.last, lists)


def _listed(first: np.ndarray, last: np.ndarray, lists: list[np.ndarray]) -> _Sets:
    starts = np.append(0, np.cumsum([len(part) for part in lists])).astype(np.int64)
    return _Sets(first, last, starts, np.concatenate([_NO_STRENGTH, *lists]).astype(np.int32))


def _eliminate(sets: _Sets) -> _Sets:
    """Strike users matched uniquely by one target from all others' candidates, until none is."""
    if sets.sizes().sum() > BATCH:
        raise InputError("eliminate: too many candidates to list. Compare more attributes first.")
    lists = [np.asarray(sets.of(t), np.int32) for t in range(len(sets.first))]
    while True:
        single = np.array([part[0] for part in lists if len(part) == 1], np.int32)
        users, claims = np.unique(single, return_counts=True)
        settled = users[claims == 1]
        shorter = [part if len(part) == 1 else part[~np.isin(part, settled)] for part in lists]
        if all(len(a) == len(b) for a, b in zip(shorter, lists, strict=True)):
            return _listed(np.full_like(sets.first, -1), sets.last, lists)
        lists = shorter
