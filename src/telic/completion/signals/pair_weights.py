"""Weights for pairs of queries, learned as AppAware learns those of queries and apps.

A pair that enough users submitted in a session, one query some time after the other, has a weight.
It is added to the preference of the later query wherever the earlier one is in the session. Other
pairs have none, so that what is held grows with the log and not with the square of its queries. The
weights minimise
[Zhang2017] (3.3.5), by stochastic dual coordinate ascent, beside a model that stays as it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from telic.choice import Elastic, FactoredChoices, fit_sdca
from telic.completion.engine.array_kernels import frozen, place_in
from telic.completion.signals.counts import CONTEXT
from telic.completion.signals.groups import GROUP_OF, PAIRS
from telic.completion.signals.log_split import LEARNED, Searches
from telic.completion.signals.pool import POOL
from telic.completion.signals.query_pairs import PairWeights, pair_number
from telic.completion.signals.sweep import (
    SHRINKAGE,
    RankedPrefixes,
    Shrinkage,
    one_prefix,
    walk,
)
from telic.completion.signals.weights import SignalWeights, some_of
from telic.errors import InputError, expect_above
from telic.kernels import kernel

PAIR_PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Weights of the penalty to choose from."""
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
    of_many : callable, optional
        Says of pairs, given their numbers in ascending order, which enough users submitted; the
        others have no weight. By default all have one.
    """

    def __init__(
        self,
        moments: Iterable[RankedPrefixes],
        model: SignalWeights,
        of_many: Callable[[np.ndarray], np.ndarray] = lambda pairs: np.ones(len(pairs), bool),
    ) -> None:
        self.model = model
        offset, size, chosen, row, pair = [], [], [], [], []
        rows = 0
        for piece in moments:
            scores, place, picked = _shortened(piece, model)
            there = scores > -np.inf
            number = (np.cumsum(there) - 1).reshape(there.shape)
            use = picked >= 0
            offset.append(scores[there])
            size.append(there[use].sum(axis=1))
            chosen.append(rows + number[use, picked[use]])
            own = there.reshape(-1)[place]
            row.append(rows + number.reshape(-1)[place[own]])
            pair.append(piece.pair[own])
            rows += len(offset[-1])
        start = np.concatenate([[0], np.cumsum(np.concatenate(size))]).astype(np.int64)
        pairs, feature = np.unique(np.concatenate(pair), return_inverse=True)
        known = of_many(pairs)
        kept = known[feature]
        self._pairs = pairs[known]
        feature = (np.cumsum(known) - 1)[feature[kept]]
        # A query that was submitted twice in the session counts twice.
        width = max(len(self._pairs), 1)
        entry, times = np.unique(np.concatenate(row)[kept] * width + feature, return_counts=True)
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
            shared_start=np.searchsorted(entry // width, np.arange(rows + 1)),
            shared_feature=entry % width,
            shared_value=times,
        )

    def __len__(self) -> int:
        """Return the number of prefixes that say something of pairs that have a weight."""
        told = np.diff(self._choices.shared_start[self._choices.start])
        return int(np.count_nonzero(told))

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
        weight, gap = np.zeros(len(self._pairs)), 0.0
        if len(weight):
            n = len(self._choices)  # the solver takes means over them
            each = penalty / n
            found = fit_sdca(self._choices, Elastic(SPARSITY * each, each))
            weight, gap = found.weights, found.gap * n
        kept = np.flatnonzero(weight)
        weights = self.model.weights.copy()
        weights[GROUP_OF.index(PAIRS)] = 1.0
        return replace(
            self.model,
            weights=weights,
            penalties=self.model.penalties | {PAIRS: penalty},
            pairs=PairWeights(frozen(self._pairs[kept]), frozen(weight[kept])),
            pair_choices=len(self),
            pair_gap=gap,
        )


def _shortened(
    piece: RankedPrefixes, model: SignalWeights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Put candidates that followed nothing, of which the weights say nothing, into one.

    Its weight in the logit is the sum of theirs, so that no loss changes by it.

    Returns
    -------
    float64 array of shape (T, POOL + 1)
        The scores, the last those of what was put into one; -inf where there is none.
    int64 array of shape (K,)
        Where in them what followed something stands.
    int64 array of shape (T,)
        The column of the query that was submitted; -1 if nothing is learned of the prefix.
    """
    scores, every = model.scores(piece), np.arange(len(piece))
    stays = np.zeros(scores.shape, bool)
    stays.reshape(-1)[piece.followed] = True
    picked = np.where(stays.any(axis=1), piece.position, -1)
    picked[scores[every, picked] == -np.inf] = -1
    stays[every[picked >= 0], picked[picked >= 0]] = True
    others = logsumexp(np.where(stays, -np.inf, scores), axis=1)
    scores = np.column_stack([np.where(stays, scores, -np.inf), others])
    scores[picked < 0] = -np.inf
    moment, column = np.divmod(piece.followed, POOL)
    return scores, moment * (POOL + 1) + column, picked


def pair_lessons_of(
    searches: Searches,
    model: SignalWeights,
    prefixes: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    shrinkage: Shrinkage = SHRINKAGE,
    most: int = MOST_PAIRED,
) -> PairLessons:
    """Gather what weights of pairs are learned from.

    A pair has no weight unless as many users submitted it as a query needs in order to be suggested
    to everybody, the last prefix that is learned from included: what few do next is theirs.

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

    Raises
    ------
    InputError
        If there is no prefix.
    """
    if prefixes is None:
        rng = np.random.default_rng([searches.seed, 7])
        events = some_of(np.flatnonzero(searches.part == LEARNED), most, rng)
        prefixes = one_prefix(searches, events, rng)
    if not len(prefixes[0]):
        raise InputError("there is no prefix to learn weights of pairs from.")
    moments = walk(searches, *prefixes, shrinkage=shrinkage)
    end = int(np.searchsorted(searches.at, searches.at[prefixes[0]].max(), "right"))
    return PairLessons(
        moments, model, lambda pairs: users_of(searches, pairs, end) >= searches.min_users
    )


def users_of(searches: Searches, pairs: np.ndarray, end: int) -> np.ndarray:
    """Return how many users submitted each pair in a session, in the log's first submissions.

    Where the log says from which networks they did, it is the number of these, if there are fewer.

    Parameters
    ----------
    searches : Searches
    pairs : int64 array
        Numbers of pairs, ascending: see `query_pairs`.
    end : int
        So many submissions are looked at.
    """
    log = searches.before, searches.query, searches.count
    found = np.full(len(pairs), np.iinfo(np.int32).max, np.int32)
    for who in (searches.user, searches.submissions.network):
        if who is not None:
            order = np.argsort(who[:end], kind="stable")
            counted = np.zeros((2, len(pairs)), np.int32)
            _count_users(*log, who, order, pairs, len(searches.index), *counted)
            found = np.minimum(found, counted[0])
    return found


@kernel
def _count_users(before, query, count, who, order, pairs, phrases, users, last):
    """Count in `users` who submitted each pair; `last` holds who did last, plus 1."""
    for e in order:
        b, steps = before[e], 0
        while b >= 0 and steps < CONTEXT and count[e] > 0.0:
            pair = pair_number(np.int64(query[b]), query[e], phrases)
            i = place_in(pairs, 0, len(pairs), pair)
            if i < len(pairs) and pairs[i] == pair and last[i] != who[e] + 1:
                last[i] = who[e] + 1
                users[i] += 1
            b, steps = before[b], steps + 1
