"""Weights for pairs of queries, learned as AppAware learns those of queries and apps.

A pair that followed one another in a session before has a weight, which is added to the preference
of the later query wherever the earlier one is in the session. Pairs that were never seen have none,
so that what is held grows with the log and not with the square of its queries. The weights minimise
[Zhang2017] (3.3.5), by stochastic dual coordinate ascent, beside a model that stays as it is.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_sdca
from telic.completion.engine.array_kernels import frozen
from telic.completion.signals.groups import GROUP_OF, PAIRS
from telic.completion.signals.log_split import LEARNED, Searches
from telic.completion.signals.pool import POOL
from telic.completion.signals.query_pairs import PairWeights
from telic.completion.signals.sweep import (
    SHRINKAGE,
    RankedPrefixes,
    Shrinkage,
    one_prefix,
    walk,
)
from telic.completion.signals.weights import SignalWeights, some_of
from telic.errors import expect_above

MOST_PAIRED = 1_000_000
"""Submissions to learn from at most: pairs are many, unlike the features of signals."""
SPARSITY = 0.1
"""The penalty's lambda_1 over its lambda_2. A pair whose lessons miss it by less than lambda_1 in
all has the weight 0."""


class PairLessons:
    """Prefixes made ready for fits of pairs' weights with any penalty.

    Parameters
    ----------
    moments : iterable of RankedPrefixes
        Of submissions to learn from, one prefix of each.
    model : SignalWeights
        What the weights are added to.
    """

    def __init__(self, moments: Iterable[RankedPrefixes], model: SignalWeights) -> None:
        self.model = model
        offset, size, chosen, row, pair = [], [], [], [], []
        rows = 0
        for piece in moments:
            scores = model.scores(piece)
            there = scores > -np.inf
            told = np.zeros(len(piece), bool)
            told[piece.followed // POOL] = True  # what followed is known, so it may be suggested
            every = np.arange(len(piece))
            # Of candidates none of which followed anything nothing is learned.
            use = told & (piece.position >= 0) & there[every, piece.position]
            kept = there & use[:, None]
            place = (np.cumsum(kept) - 1).reshape(kept.shape)
            offset.append(scores[kept])
            size.append(kept[use].sum(axis=1))
            chosen.append(rows + place[every, piece.position][use])
            own = kept.reshape(-1)[piece.followed]
            row.append(rows + place.reshape(-1)[piece.followed[own]])
            pair.append(piece.pair[own])
            rows += len(offset[-1])
        start = np.concatenate([[0], np.cumsum(np.concatenate(size))]).astype(np.int64)
        self._pairs, feature = np.unique(np.concatenate(pair), return_inverse=True)
        # A query that was submitted twice in the session counts twice.
        entry, times = np.unique(
            np.concatenate(row) * max(len(self._pairs), 1) + feature, return_counts=True
        )
        row_of, feature = np.divmod(entry, max(len(self._pairs), 1))
        # All weights are of pairs, so an outcome has no meaning of its own: the place in the list.
        outcome = np.arange(rows) - np.repeat(start[:-1], np.diff(start))
        self._choices = FactoredChoices(
            outcomes=int(np.diff(start).max(initial=1)),
            entries=0,
            shared=len(self._pairs),
            outcome=outcome,
            offset=np.concatenate(offset),
            start=start,
            chosen=np.concatenate(chosen),
            context_start=np.zeros(len(start), np.int64),
            context_entry=np.zeros(0, np.int32),
            context_value=np.zeros(0),
            shared_start=np.searchsorted(row_of, np.arange(rows + 1)),
            shared_feature=feature,
            shared_value=times,
        )

    def __len__(self) -> int:
        """Return the number of prefixes that say something of pairs."""
        return len(self._choices)

    def fit(self, penalty: float) -> SignalWeights:
        """Return the model with weights of pairs.

        Parameters
        ----------
        penalty : float > 0
            lambda of ``lambda / 2 * |w|^2 + SPARSITY * lambda * |w|_1``, beside the sum of the
            losses.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the duality gap is above 1e-5 of what the weights gain.
        """
        expect_above(0, penalty=penalty)
        weight = np.zeros(len(self._pairs))
        if len(self):
            each = penalty / len(self)
            weight = fit_sdca(self._choices, Elastic(SPARSITY * each, each)).weights
        kept = np.flatnonzero(weight)
        weights = self.model.weights.copy()
        weights[GROUP_OF.index(PAIRS)] = 1.0
        return replace(
            self.model,
            weights=weights,
            penalties=self.model.penalties | {PAIRS: penalty},
            pairs=PairWeights(frozen(self._pairs[kept]), frozen(weight[kept])),
        )


def pair_lessons_of(
    searches: Searches,
    model: SignalWeights,
    prefixes: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    most: int = MOST_PAIRED,
) -> PairLessons:
    """Gather what weights of pairs are learned from.

    Parameters
    ----------
    searches : Searches
    model : SignalWeights
        What they are added to.
    prefixes : tuple of int arrays, optional
        As `walk` takes them; by default one of each submission to learn from, `most` of them at
        most.
    shrinkage : Shrinkage
    most : int
    """
    if prefixes is None:
        rng = np.random.default_rng([searches.seed, 7])
        events = some_of(np.flatnonzero(searches.part == LEARNED), most, rng)
        prefixes = one_prefix(searches, events, rng)
    return PairLessons(walk(searches, *prefixes, shrinkage=shrinkage), model)
