"""Pairs of queries, an earlier one of a session and a candidate, with a learned weight for each."""

from typing import NamedTuple

import numpy as np

from telic.completion.engine.array_kernels import frozen, place_in
from telic.kernels import kernel


class PairWeights(NamedTuple):
    """The weights that are not 0; see `telic.completion.signals.pair_weights`."""

    pair: np.ndarray
    """int64: numbers of pairs, ascending: see `pair_number`."""
    weight: np.ndarray
    """float64: of each."""

    def renumbered(self, ids: np.ndarray, phrases: int) -> "PairWeights":
        """Return the weights of some of the phrases alone, numbered anew by their place in `ids`.

        Parameters
        ----------
        ids : int array
            The phrases.
        phrases : int
            How many there were.
        """
        number = np.full(phrases, -1, np.int64)
        number[ids] = np.arange(len(ids))
        earlier, later = (number[q] for q in np.divmod(self.pair, max(phrases, 1)))
        keep = (earlier >= 0) & (later >= 0)
        pair = pair_number(earlier, later, len(ids))[keep]
        order = np.argsort(pair)
        return PairWeights(frozen(pair[order]), frozen(self.weight[keep][order]))


NO_PAIRS = PairWeights(frozen(np.zeros(0, np.int64)), frozen(np.zeros(0)))


@kernel
def pair_number(earlier, later, phrases):
    """The number of a pair of phrases."""
    return earlier * phrases + later


def weights_of(pairs: PairWeights, wanted: np.ndarray) -> np.ndarray:
    """Return the weights of some pairs; 0 of those that have none."""
    if not len(pairs.pair):
        return np.zeros(len(wanted))
    place = np.minimum(np.searchsorted(pairs.pair, wanted), len(pairs.pair) - 1)
    return np.where(pairs.pair[place] == wanted, pairs.weight[place], 0.0)


@kernel
def pair_weight(pairs, pair):
    """The weight of a pair."""
    i = place_in(pairs.pair, 0, len(pairs.pair), pair)
    return pairs.weight[i] if i < len(pairs.pair) and pairs.pair[i] == pair else 0.0
