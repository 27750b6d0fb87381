"""Filters: suggestions that are limited to a tenant, a language, a category or the like."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, Self

import numpy as np

from telic.completion.engine.array_kernels import frozen
from telic.completion.engine.prefix_index import PrefixIndex
from telic.errors import InputError
from telic.kernels import kernel

TENANT = "tenant"
"""The context that keeps the phrases, and the users, of several sites apart."""
NO_VALUE, UNKNOWN, ANY = -1, -2, -3
"""Codes: of a phrase that is limited to no value; of a value that no phrase has; of no filter."""
MOST_SETS = 256
"""Combinations of boosted values, each of which a keystroke looks up."""
MANY = 1_000
"""Phrases that a look-up reads before it looks at those of a text that comes again all at once."""
PART = 1 << 16
"""Phrases of one text that are looked at at a time."""


@dataclass(frozen=True)
class Contexts:
    """What each phrase of a catalogue is limited to, by one or several contexts.

    Attributes
    ----------
    names : list of str
        Such as ``["tenant", "language"]``.
    values : list of list of str
        The values of each.
    codes : int32 array, shape (contexts, phrases)
        Place in `values`; -1 where a phrase has none, and fits every value.

    Examples
    --------
    >>> contexts = Contexts.of({"language": ["de", "en", None, "de"]})
    >>> contexts.allowed(contexts.wanted({"language": "de"}), np.arange(4)).tolist()
    [True, False, True, True]
    """

    names: list[str]
    values: list[list[str]]
    codes: np.ndarray

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[str | None]],
        among: Mapping[str, set[str | None]] | None = None,
    ) -> Self:
        """Number the values of each context, of part of the phrases `among` those of all."""
        values, codes = [], []
        for name, column in columns.items():
            there = set(column) if among is None else among[name]
            known = {value: i for i, value in enumerate(sorted({v for v in there if v}))}
            values.append(list(known))
            codes.append([known[v] if v else NO_VALUE for v in column])
        table = np.array(codes, np.int32).reshape(len(columns), -1)
        return cls(list(columns), values, frozen(table))

    def wanted(self, where: Mapping[str, str] | None) -> np.ndarray:
        """Return the codes that a filter asks for, int32 of shape (contexts,).

        Raises
        ------
        InputError
            If the filter names a context that there is not, or a value is no text.
        """
        if not isinstance(where or {}, Mapping):
            raise InputError(f"filter is {where!r}, expected values by context.")
        for name, value in (where or {}).items():
            if name not in self.names:
                raise InputError(
                    f"filter {name!r}: the phrases have no such context, only "
                    f"{', '.join(self.names)}."
                )
            if not isinstance(value, str):  # no phrase would have it, whatever it is
                raise InputError(f"filter {name!r} is {value!r}, expected a value as text.")
        codes = [ANY] * len(self.names)
        for i, name in enumerate(self.names):
            if where and name in where:
                known = self.values[i]
                codes[i] = known.index(where[name]) if where[name] in known else UNKNOWN
        return np.array(codes, np.int32)

    def allowed(self, wanted: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Tell which phrases pass a filter."""
        codes = self.codes[:, ids]
        fits = (codes == wanted[:, None]) | (codes == NO_VALUE) | (wanted[:, None] == ANY)
        return fits.all(axis=0)

    def boosts(self, ids: np.ndarray, boost: Mapping[str, Mapping[str, float]]) -> np.ndarray:
        """Return the logarithm of the product of the factors that phrases are boosted by.

        Parameters
        ----------
        ids : int array
        boost : mapping
            Context → value → factor, above 0: ``{"language": {"de": 3.0}}``.
        """
        if not isinstance(boost, Mapping):
            raise InputError(f"boost is {boost!r}, expected factors by context and value.")
        self.wanted(dict.fromkeys(boost, ""))
        total = np.zeros(len(ids))
        for i, name in enumerate(self.names):
            factors = boost.get(name, {})
            if not isinstance(factors, Mapping):
                raise InputError(f"boost of {name!r} is {factors!r}, expected factors by value.")
            for value, factor in factors.items():
                if not isinstance(value, str):
                    raise InputError(f"boost of {name!r} has the value {value!r}, expected text.")
                if not isinstance(factor, Real) or not 0 < factor < np.inf:
                    raise InputError(f"boost of {value!r} is {factor!r}, expected a number > 0.")
                if value in self.values[i]:
                    has = self.codes[i, ids] == self.values[i].index(value)
                    total += np.where(has, np.log(factor), 0.0)
        return total

    def meta(self) -> dict[str, Any]:
        """Return what a model folder keeps as JSON."""
        return {"names": self.names, "values": self.values}

    @classmethod
    def stored(
        cls, meta: Mapping[str, Any] | None, arrays: Mapping[str, np.ndarray]
    ) -> Self | None:
        """Read back what `meta` and the codes gave; None if they were never there."""
        if not meta:
            return None
        return cls(meta["names"], meta["values"], np.asarray(arrays["contexts.codes"]))


class Filter:
    """A catalogue seen through a filter and boosts; equal texts are seen once.

    Parameters
    ----------
    index : PrefixIndex
    contexts : Contexts
        Of its phrases.
    where : mapping of str to str, optional
        Context → the value asked for.
    boost : mapping, optional
        See `Contexts.boosts`.
    unit : float
        Weight of the logarithm of popularity in the index's weights.
    """

    def __init__(
        self,
        index: PrefixIndex,
        contexts: Contexts,
        where: Mapping[str, str] | None = None,
        boost: Mapping[str, Mapping[str, float]] | None = None,
        *,
        unit: float = 1.0,
    ) -> None:
        self._index, self.contexts = index, contexts
        self.wanted = contexts.wanted(where)
        self._boost, self._unit = boost or {}, unit
        contexts.boosts(np.empty(0, np.int64), self._boost)  # says what is wrong with them
        # Any set of boosted values, and what the boosts add to a phrase with them. If the heaviest
        # with each are looked at, a phrase that has just these and is not among them is no better.
        choices = [[None, *self._boost.get(name, {})] for name in contexts.names]
        sets = math.prod(map(len, choices))
        if sets > MOST_SETS:
            raise InputError(
                f"boost has {sets} combinations of values, over {MOST_SETS}, and a keystroke looks "
                "each of them up. Boost fewer values."
            )
        self.sets: list[tuple[np.ndarray, float]] = []
        for values in product(*choices):
            chosen = {n: v for n, v in zip(contexts.names, values, strict=True) if v}
            added = sum(np.log(self._boost[name][value]) for name, value in chosen.items())
            self.sets.append((contexts.wanted(chosen), unit * float(added)))

    def of_tenant(self) -> "Filter | None":
        """Return what is left of it if only the tenant counts; None if it asks for no tenant."""
        wanted = np.full_like(self.wanted, ANY)
        for i, name in enumerate(self.contexts.names):
            if name == TENANT:
                wanted[i] = self.wanted[i]
        if (wanted == ANY).all():
            return None
        left = copy(self)
        left.wanted = wanted
        return left

    def top(self, prefix: str, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best ids that begin with a prefix, and their boosted weights, best first."""
        spans, settled = [self._index.range(prefix)], np.empty(0, np.int64)
        many = 2 * k
        while True:
            asked = [self._heaviest(spans, many, boosted) for boosted, _ in self.sets]
            ids = np.unique(np.concatenate([*asked, settled]))
            weights = self.boosted(ids)
            order = np.lexsort((ids, -weights))
            ids, weights = ids[order], weights[order]
            texts = self._index.phrases(ids)
            new = sorted({text: i for i, text in reversed(list(enumerate(texts)))}.values())
            unseen = [
                self._index.weights_of(found[-1]) + added
                for found, (_, added) in zip(asked, self.sets, strict=True)
                if len(found) == many
            ]
            if not unseen or (len(new) >= k and weights[new[k - 1]] >= max(unseen)):
                return ids[new[:k]], weights[new[:k]]
            # The same text is in many contexts, or a boost below 1 holds phrases back.
            repeated = [text for text, times in Counter(texts).items() if times > 1]
            if many < MANY or not repeated:
                many *= 4
                continue
            for text in repeated:
                alike = self._index.spelled_as(text)
                best = self._best_of(alike) if self._boost else ids[[texts.index(text)]]
                spans, settled = _without(spans, alike), np.append(settled, best)

    def _best_of(self, alike: range) -> np.ndarray:
        """Return the id of the best phrase of one text that passes the filter, of several alike."""
        best, weight = np.empty(0, np.int64), -np.inf
        for first in range(alike.start, alike.stop, PART):
            ids = np.arange(first, min(first + PART, alike.stop))
            ids = ids[self.contexts.allowed(self.wanted, ids)]
            weights = self.boosted(ids)
            if len(ids) and weights.max() > weight:
                best, weight = ids[[weights.argmax()]], weights.max()
        return best

    def boosted(self, ids: np.ndarray) -> np.ndarray:
        """Return the weights of phrases with what the boosts add."""
        weights = self._index.weights_of(ids)
        return weights + self.added(ids) if self._boost else weights

    def added(self, ids: np.ndarray) -> np.ndarray:
        """Return what the boosts add to the weights of phrases."""
        return self._unit * self.contexts.boosts(ids, self._boost)

    def find(self, phrase: str) -> int:
        """Return the id by which `top` shows a phrase, in exactly this spelling; -1 if never."""
        return int(next(iter(self._best_of(self._index.spelled_as(phrase))), -1))

    def first_of(self, ids: range) -> int:
        """Return the first of some ids that passes the filter, or -1."""
        for first in range(ids.start, ids.stop, PART):
            part = np.arange(first, min(first + PART, ids.stop))
            passing = self.contexts.allowed(self.wanted, part)
            if passing.any():
                return int(part[passing.argmax()])
        return -1

    def _heaviest(
        self, spans: Sequence[tuple[int, int]], k: int, boosted: np.ndarray
    ) -> np.ndarray:
        """Return the k heaviest ids of some ranges that pass the filter and have boosted values."""
        parts = [self._heaviest_of(lo, hi, k, boosted) for lo, hi in spans]
        if len(parts) == 1:
            return parts[0]
        ids = np.concatenate([np.empty(0, np.int64), *parts])
        return ids[np.lexsort((ids, -self._index.weights_of(ids)))[:k]]

    def _heaviest_of(self, lo: int, hi: int, k: int, boosted: np.ndarray) -> np.ndarray:
        """Return the k heaviest ids of a range that pass the filter and have boosted values."""
        index, codes, first = self._index, self.contexts.codes, np.empty(0, np.int64)
        if hi > lo:
            first = index.top_in_range(lo, hi, min(8 * k, hi - lo))
        has = ((codes[:, first] == boosted[:, None]) | (boosted[:, None] == ANY)).all(axis=0)
        found = first[has & self.contexts.allowed(self.wanted, first)]
        if len(found) >= k or len(first) == hi - lo:
            return found[:k]
        out = np.empty(k, np.int64)
        used = fill_top_where(index.weight_numbers, codes, self.wanted, boosted, lo, hi, out)
        return out[:used]


def _without(spans: list[tuple[int, int]], ids: range) -> list[tuple[int, int]]:
    """Return what is left of some ranges without that of some ids."""
    cut = [((lo, min(hi, ids.start)), (max(lo, ids.stop), hi)) for lo, hi in spans]
    return [part for parts in cut for part in parts if part[0] < part[1]]


@kernel
def passes(codes, wanted, phrase):
    """Whether a phrase passes a filter."""
    for i in range(len(wanted)):
        if wanted[i] != ANY and codes[i, phrase] != wanted[i] and codes[i, phrase] != NO_VALUE:
            return False
    return True


@kernel
def has_values(codes, boosted, phrase):
    """Whether a phrase has all boosted values of a set."""
    for i in range(len(boosted)):
        if boosted[i] != ANY and codes[i, phrase] != boosted[i]:
            return False
    return True


@kernel
def fill_top_where(weights, codes, wanted, boosted, lo, hi, out):
    """Fill out with the heaviest ids of a range that pass a filter and have values; count them."""
    k, found = len(out), 0
    if k == 0:
        return 0
    for id in range(lo, hi):
        if found == k and weights[id] <= weights[out[k - 1]]:
            continue
        if not passes(codes, wanted, id) or not has_values(codes, boosted, id):
            continue
        i = found if found < k else k - 1
        while i > 0 and weights[id] > weights[out[i - 1]]:
            out[i] = out[i - 1]
            i -= 1
        out[i] = id
        found = min(found + 1, k)
    return found
