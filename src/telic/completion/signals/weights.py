"""The weights of the signals: a conditional logit with a penalty for each group."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from telic.choice import Choices, fit_pooled, gap_bound
from telic.completion.learning.adaqac import BOUNDED
from telic.completion.learning.feedback import FEATURES as FED_BACK
from telic.completion.learning.saturation import Saturation
from telic.completion.signals.groups import FEATURES, FEEDBACK, GROUP_OF, PAIRS, WIDTH
from telic.completion.signals.log_split import CHOSEN, LEARNED, Searches
from telic.completion.signals.query_pairs import NO_PAIRS, PairWeights, weights_of
from telic.completion.signals.sweep import (
    SHRINKAGE,
    RankedPrefixes,
    Shrinkage,
    every_prefix,
    one_prefix,
    walk,
)
from telic.errors import InputError, warn_unconverged
from telic.evaluate import reciprocal_ranks, standard_deviations

PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""Weights of a group's penalty to choose from."""
USUAL = 10.0
"""The penalty before anything is chosen."""
SHOWN = 10
"""Suggestions in a list; a query that is ranked later counts 0."""
TOLERANCE = 1e-4
"""Of the objective: a larger gap raises a ConvergenceWarning."""
MOST_LEARNED, MOST_CHOSEN = 100_000, 3_000
"""Submissions that weights, and penalties, are learned from at most, drawn at random. A few dozen
weights are as good as known from so many."""


@dataclass(frozen=True)
class SignalWeights:
    """What a fit found; all zero is the static order, by popularity alone.

    The preference of a candidate is ``log(1 + submissions) + features @ weights``, and the weights
    of its pairs with the earlier queries of the session.
    """

    weights: np.ndarray
    """float64 (len(FEATURES),), in the units of the features; 0 in groups that are off, and 1 for
    what weights of pairs add."""
    penalties: dict[str, float]
    """Of each group that is on: lambda of ``lambda / 2 * |w / spread|^2``."""
    deviations: np.ndarray
    """float64 (len(FEATURES),): their spread over the candidates that were learned from."""
    choices: int = 0
    """Compositions that were learned from: those whose query was among the candidates."""
    objective: float = np.nan
    """Penalised loss at the weights, in all."""
    static: float = np.nan
    """The same at zero weights: never less."""
    gap: float = np.nan
    """The objective is at most so far above its optimum."""
    gates: dict[str, str] = field(default_factory=dict)
    """Of each group: why it is on or off."""
    caps: np.ndarray = field(default_factory=lambda: np.full(len(FED_BACK), np.inf))
    """float64 (16,): the most that each feature of feedback counts for."""
    bound: float = np.inf
    """The most that all feedback on a candidate adds or takes: see `Saturation`."""
    pairs: PairWeights = NO_PAIRS
    """Of pairs of queries, numbered as the log's; of a box, as its catalogue's."""
    pair_choices: int = 0
    """Prefixes with such a pair that these were learned from."""
    pair_gap: float = np.nan
    """Their own objective, which leaves the other weights as they are, is at most so far above its
    optimum."""

    @property
    def personal(self) -> bool:
        """Whether the user's own queries are candidates that others must not see."""
        return "personal" in self.penalties

    def scores(self, moments: RankedPrefixes) -> np.ndarray:
        """Return the preference of every candidate, ``-inf`` where it is none."""
        score = static_score(moments) + moments.features[..., :WIDTH] @ self.weights[:WIDTH]
        if FEEDBACK in self.penalties:
            fed_back = np.minimum(moments.features[..., WIDTH:], self.caps) @ self.weights[WIDTH:]
            score += np.clip(fed_back, -self.bound, self.bound)
        if PAIRS in self.penalties:
            np.add.at(score.reshape(-1), moments.followed, weights_of(self.pairs, moments.pair))
        there = moments.candidates >= 0 if self.personal else moments.known
        return np.where(there, score, -np.inf)

    def of_group(self, group: str, digits: int) -> str:
        """Return the weights of a group in words, those that are not 0, with so many digits."""
        if group == PAIRS:
            return f"of pairs: {len(self.pairs.pair):,}"
        named = zip(FEATURES, self.weights, GROUP_OF, strict=True)
        return ", ".join(
            f"{name} {weight:+.{digits}f}" for name, weight, of in named if of == group and weight
        )

    def ranks(self, moments: RankedPrefixes) -> np.ndarray:
        """Return the reciprocal rank of the query at each moment; 0 beyond the list shown."""
        return shown_ranks(self.scores(moments), moments.position)


STATIC = SignalWeights(np.zeros(len(FEATURES)), {}, np.ones(len(FEATURES)))
"""The static order: most popular completion."""


def shown_ranks(scores: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return the reciprocal rank of the column `position` of each row; 0 beyond the list shown."""
    found = reciprocal_ranks(scores, position)
    return np.where(found > 1 / (SHOWN + 0.5), found, 0.0)


def static_score(moments: RankedPrefixes) -> np.ndarray:
    """Return log(1 + submissions) of every candidate; 0 of one that others must not see."""
    return moments.features[..., 0]


class Lessons:
    """Prefixes made ready for fits with any groups and penalties.

    Parameters
    ----------
    moments : sequence of RankedPrefixes
        Of submissions to learn from, one prefix of each.
    saturation : Saturation, optional
        How feedback is bounded, by default as in the bounded protocol; None as printed.
    groups : sequence of str, optional
        Those that the log tells of: see `Searches.groups`. By default all that have a column.
        Weights of pairs are learned from other lessons: see `PairLessons`.

    Raises
    ------
    InputError
        If in none of them the query is among the candidates.
    """

    def __init__(
        self,
        moments: Iterable[RankedPrefixes],
        saturation: Saturation | None = BOUNDED.saturation,
        groups: Sequence[str] | None = None,
    ) -> None:
        rows, offsets, known, sizes, chosen = [], [], [], [], []
        for piece in moments:
            hit = piece.position >= 0
            there = (piece.candidates >= 0)[hit]
            rows.append(piece.features[hit][there])
            offsets.append(static_score(piece)[hit][there])
            known.append(piece.known[hit][there])
            sizes.append(there.sum(axis=1))
            chosen.append(piece.position[hit])
        if not sum(map(len, sizes)):
            raise InputError(
                "no query of the part to learn from was among the candidates: too few are "
                "submitted by several users. Lower the number of users that a query needs, or "
                "bring a longer log."
            )
        self._x = np.concatenate(rows)
        del rows  # as much again
        told = dict.fromkeys(GROUP_OF[: self._x.shape[1]]) if groups is None else groups
        self._groups = tuple(group for group in told if group != PAIRS)
        self._saturation, fed_back = saturation, self._x[:, WIDTH:]
        self._caps = np.full(len(FED_BACK), np.inf)
        if saturation is not None and fed_back.shape[1]:
            self._caps = saturation.caps(fed_back)
            np.minimum(fed_back, self._caps, out=fed_back)
        self.deviations = standard_deviations(self._x)
        self._x /= self.deviations
        self._offset, self._known = np.concatenate(offsets), np.concatenate(known)
        self._start = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
        self._chosen = self._start[:-1] + np.concatenate(chosen)

    def fit(self, penalties: dict[str, float]) -> SignalWeights:
        """Fit the groups that have a penalty to the end, and certify it.

        Minimises the loss of [Zhang2017] (2.3.6), a sum over the compositions, plus the penalties.
        A fit that is not better than zero weights gives zero weights.

        Raises
        ------
        InputError
            If a group is unknown or a penalty is no number above 0.

        Warns
        -----
        sklearn.exceptions.ConvergenceWarning
            If the gap is above `TOLERANCE` of the objective.
        """
        for group, penalty in penalties.items():
            if group not in self._groups or not 0 < penalty < np.inf:
                raise InputError(
                    f"penalty of {group!r} is {penalty}, expected numbers > 0 for some of "
                    f"{', '.join(self._groups)}."
                )
        columns = np.flatnonzero([group in penalties for group in GROUP_OF])
        if not len(columns):
            return STATIC
        # One penalty for all, on columns that are scaled by what each group's own asks for.
        scale = np.sqrt([penalties[GROUP_OF[column]] for column in columns])
        choices = self._choices(columns, scale, "personal" in penalties)
        static = choices.loss(np.zeros(len(columns)))
        found = fit_pooled(choices, l2=1.0)
        objective = choices.loss(found, l2=1.0)
        if not objective <= static:
            found, objective = np.zeros(len(columns)), static
        gap = gap_bound(choices, found, l2=1.0)
        if gap > TOLERANCE * (1 + objective):
            warn_unconverged(
                f"the fit of the signals is up to {gap:.2g} above its optimum, of {objective:.3g}.",
                stacklevel=2,
            )
        weights, deviations = np.zeros(len(FEATURES)), np.ones(len(FEATURES))
        weights[columns] = found / scale / self.deviations[columns]
        deviations[: len(self.deviations)] = self.deviations
        return SignalWeights(
            weights,
            dict(penalties),
            deviations,
            len(choices),
            objective,
            static,
            gap,
            caps=self._caps,
            bound=np.inf if self._saturation is None else self._saturation.bound,
        )

    def _choices(self, columns: np.ndarray, scale: np.ndarray, personal: bool) -> Choices:
        if personal:
            x, offset = np.take(self._x, columns, axis=1), self._offset
            start, chosen = self._start, self._chosen
        else:
            use = self._known[self._chosen]
            keep = self._known & np.repeat(use, np.diff(self._start))
            x, offset = self._x[np.ix_(keep, columns)], self._offset[keep]
            sizes = np.add.reduceat(keep, self._start[:-1])[use]
            start = np.concatenate([[0], np.cumsum(sizes)])
            chosen = (np.cumsum(keep) - 1)[self._chosen[use]]
        x /= scale
        return Choices(x, offset, start, chosen)


def lessons_of(
    searches: Searches, *, shrinkage: Shrinkage = SHRINKAGE, most: int = MOST_LEARNED
) -> Lessons:
    """Gather what weights are learned from: one prefix each of at most so many submissions."""
    rng = np.random.default_rng([searches.seed, 3])
    events = some_of(np.flatnonzero(searches.part == LEARNED), most, rng)
    moments = walk(searches, *one_prefix(searches, events, rng), shrinkage=shrinkage)
    return Lessons(moments, groups=searches.groups)


def choosing_moments(
    searches: Searches, *, shrinkage: Shrinkage = SHRINKAGE, most: int = MOST_CHOSEN
) -> list[RankedPrefixes]:
    """Gather the prefixes by which penalties are chosen: all of at most so many submissions."""
    rng = np.random.default_rng([searches.seed, 4])
    events = some_of(np.flatnonzero(searches.part == CHOSEN), most, rng)
    return list(walk(searches, *every_prefix(searches, events), shrinkage=shrinkage))


def some_of(events: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return submissions, at most so many of them, drawn at random."""
    return events if len(events) <= most else np.sort(rng.choice(events, most, replace=False))
