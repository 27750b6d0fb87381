"""What an attacker knows and how it is compared: rules, and a network sorted by profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from telic.errors import InputError
from telic.hin import Links, Network, Rule
from telic.privacy import kernels
from telic.privacy.target import own_links, target_type
from telic.privacy.threads import threads_for

NO_STRENGTH = np.empty(0, np.int32)
ANY_STRENGTH = 2**31 - 1


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


class CandidateSets(NamedTuple):
    """Candidates of each target: an interval first[t] ≤ v < last[t], or found[starts[t]:…]."""

    first: np.ndarray
    last: np.ndarray
    starts: np.ndarray
    found: np.ndarray

    def sizes(self) -> np.ndarray:
        """Return how many candidates each target has."""
        listed = np.diff(self.starts)
        return np.where(self.first >= 0, self.last - self.first, listed)

    def of(self, t: int) -> np.ndarray:
        """Return the candidates of one target, ascending."""
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
        parts = layers_of(network, self.node_type, rules, in_links)
        self._buildlayers_of(parts, rank)
        self._sign()
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

    def _buildlayers_of(self, parts: list[tuple[Links, Rule | None]], rank: np.ndarray) -> None:
        total = sum(len(links) for links, _ in parts)
        self.indptr = np.zeros((len(parts), self.size + 1), np.int64)
        self.indices = np.empty(total, np.int32)
        self.strength = np.empty((total, 1), np.int32)
        begin = 0
        for layer, (links, _) in enumerate(parts):
            self.indptr[layer, 0] = begin
            self.indptr[layer, 1:] = begin + np.cumsum(links.out_degree[self.order])
            strength = NO_STRENGTH if links.strength is None else links.strength
            args = self.order, rank, links.indptr, links.indices, strength
            with threads_for(len(links)):
                kernels.renumber(*args, self.indptr[layer], self.indices, self.strength)
            begin += len(links)
        if self.joint:
            merged = merge_layers(
                self.indptr, self.indices, self.strength[:, 0], self.strength[:, 0]
            )
            self.indptr, self.indices, self.strength, _ = merged

    def _sign(self) -> None:
        """Give each user 64 bits that say which kinds of neighbours it may have.

        A kind is what the exact attributes say. Whoever lacks a bit of a target's neighbours has
        no such neighbour, which rules out nearly everyone without a look at their links.
        """
        exact = self.values[: self._n_exact]
        begins = (exact[:, 1:] != exact[:, :-1]).any(axis=0)
        self.kind = np.append(0, np.cumsum(begins))[: self.size].astype(np.int32)
        self.signature = np.zeros(self.size, np.uint64)
        for layer, indptr in enumerate(self.indptr):
            with threads_for(len(self.indices)):
                kernels.add_signatures(layer, indptr, self.indices, self.kind, self.signature)
        self.most_links = int(np.diff(self.indptr).max(initial=0))

    def intervals(self, target: Network) -> CandidateSets:
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
        return CandidateSets(first, last, starts, found)


def layers_of(
    network: Network, node_type: str, rules: Rules, in_links: bool
) -> list[tuple[Links, Rule | None]]:
    """Return the links to compare, with their strength's rule; reversed ones after."""
    parts = [(network.links[name], rule) for name, rule in rules.strengths.items()]
    if in_links:
        n = network.size(node_type)
        parts += [(links.reverse(n), rule) for links, rule in parts]
    return parts


def merge_layers(
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
    merged_high = np.full((len(pairs), layers), ANY_STRENGTH, np.int32)
    merged_low[place, layer], merged_high[place, layer] = low, high
    counts = np.bincount(pairs >> 32, minlength=n)
    merged_ptr = np.append(0, np.cumsum(counts)).astype(np.int64)[None, :]
    return merged_ptr, (pairs & 0x7FFFFFFF).astype(np.int32), merged_low, merged_high
