"""adaQAC (2.3): preference = relevance + feedback, its weights learned per user, pooled or online.

All variants are `telic.choice`'s conditional logit over the candidates at the last keystroke.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from telic.choice import Choices, fit_groups, fit_pooled, learn_online, leave_one_group_out
from telic.choice.choices import group_starts
from telic.choice.online import Schedule, online_step, step_after
from telic.completion.learning.relevance import Relevance, Scale
from telic.completion.learning.replayed_log import RankedKeystrokes, Replay
from telic.completion.learning.saturation import D, Saturation, bounded
from telic.evaluate import standard_deviations
from telic.evaluate.column_spread import deviations_of_blocks
from telic.scale import Executor

Unpersonalised = Literal["pooled", "average"]
Ranked = tuple[RankedKeystrokes, np.ndarray]
"""Keystrokes with their candidates, and the feedback on these: (T, N, 26)."""


@dataclass(frozen=True)
class Protocol:
    """The decisions that [Zhang2017] prints, or leaves open, and that change the result.

    `PAPER` is [Zhang2017] as printed, `CAREFUL` what we recommend, and `BOUNDED` the same for users
    whose ways of typing the log does not know; any mixture can be tried.
    """

    name: str
    scale: Scale
    """Counts enter the relevance as they are ("count") or as logarithms ("log")."""
    learn_relevance: bool
    """The weight of the relevance is fixed at 1, or learned (pulled towards 1 by the penalty)."""
    keep_unlisted: bool
    """Training keeps compositions whose query is no candidate, adding it (the union in (2.3.2));
    it then enters with next to no feedback, which testing never rewards."""
    pooling: Unpersonalised
    """How adaQAC-UnP joins users: see `unpersonalised`."""
    pull_to: Literal["zero", "unpersonalised"]
    """Where the penalty pulls the weights of adaQAC-Batch: to zero, as printed, or to what
    everybody else's compositions say, so that a user with little data is no worse off."""
    l2: tuple[float, ...]
    """Weights of the penalty (lambda) to choose from by validation MRR."""
    schedule: Schedule
    """Step sizes of adaQAC-Online."""
    step_sizes: tuple[float, ...]
    """First step sizes of adaQAC-Online to choose from by validation MRR."""
    saturation: Saturation | None
    """How feedback is bounded; None as printed, where it grows with every list."""
    do_no_harm: bool
    """Keep the static order wherever validation shows no gain, and for a user while recent
    submissions show harm."""

    def online_l2(self, l2: float) -> float:
        """Return lambda of adaQAC-Online, given that of adaQAC-UnP.

        [Zhang2017] prints the penalty and the discounted steps together. "Steady" steps keep
        learning and would be pulled to zero for ever: they go without.
        """
        return l2 if self.schedule == "annealed" else 0.0


PAPER = Protocol(
    "paper",
    scale="count",
    learn_relevance=False,
    keep_unlisted=True,
    pooling="average",
    pull_to="zero",
    l2=(0.01,),
    schedule="annealed",
    step_sizes=(0.01, 0.03, 0.1, 0.3),
    saturation=None,
    do_no_harm=False,
)
CAREFUL = Protocol(
    "careful",
    scale="log",
    learn_relevance=True,
    keep_unlisted=False,
    pooling="pooled",
    pull_to="unpersonalised",
    l2=(0.01, 0.1, 1.0, 10.0, 100.0),
    schedule="steady",
    step_sizes=(0.003, 0.01, 0.03, 0.1),
    saturation=None,
    do_no_harm=True,
)
BOUNDED = replace(CAREFUL, name="bounded", saturation=Saturation(quantile=0.9, bound=0.5))
"""`CAREFUL` with bounds, chosen on simulated typists of other seeds than those of its results."""
PROTOCOLS = {protocol.name: protocol for protocol in (CAREFUL, PAPER, BOUNDED)}


@dataclass(frozen=True)
class OnlineRule:
    """How adaQAC-Online moves a user's weights after each composition (2.7.2).

    ``w <- w - eta_t * (S1 / S2 - x(q*) + l2 * w)``, with the sums over the candidates at the last
    keystroke and t the number of steps that the user has taken before.

    Examples
    --------
    >>> rule = OnlineRule(1.0)
    >>> weights = np.zeros(1)
    >>> rule.learn(np.array([[0.0], [1.0]]), np.zeros(2), 1, weights, updates=0)
    >>> weights
    array([0.5])
    """

    step_size: float
    """eta of the first step."""
    schedule: Schedule = "steady"
    """See `telic.choice.learn_online`; [Zhang2017] prints "annealed"."""
    l2: float = 0.0
    """lambda, added whole at every step."""
    keep_unlisted: bool = False
    """A submitted query that is no candidate joins the candidates (the union in (2.3.2)); else
    such a composition teaches nothing."""

    def learn(
        self, x: np.ndarray, relevance: np.ndarray, chosen: int, weights: np.ndarray, updates: int
    ) -> None:
        """Move `weights` in place by one step.

        Parameters
        ----------
        x : float array of shape (n, d)
            Columns of the candidates.
        relevance : float array of shape (n,)
        chosen : int
            Row of the submitted query.
        weights : float64 array of shape (d,)
        updates : int
            Steps that were taken before.
        """
        step = step_after(self.step_size, updates, self.schedule == "annealed")
        center, p = np.zeros_like(weights), np.empty(len(x))
        online_step(x, relevance, 0, len(x), chosen, weights, center, step, self.l2, p)


@dataclass(frozen=True)
class FeedbackDesign:
    """Turns raw feedback and relevance into the model's columns."""

    deviations: np.ndarray
    """float64 (16,): standard deviation of each feature over the training candidates."""
    learn_relevance: bool
    caps: np.ndarray = field(default_factory=lambda: np.full(D, np.inf))
    """float64 (16,): the most that each feature counts for, before it is scaled."""
    bound: float = np.inf
    """The most that all feedback on a candidate adds or takes."""

    @classmethod
    def of(cls, protocol: Protocol, ranked: Iterable[Ranked]) -> "FeedbackDesign":
        """Measure the standard deviations; a feature that never varies keeps the scale 1.

        Parameters
        ----------
        protocol : Protocol
            With a saturation, which is by quantiles, all that was fed back is held in memory.
        ranked : iterable of (RankedKeystrokes, features)
            The training part, which is walked through once.
        """
        blocks = (features[..., :D][one.candidates >= 0] for one, features in ranked)
        if protocol.saturation is None:
            return cls(deviations_of_blocks(blocks, D), protocol.learn_relevance)
        rows = np.concatenate([*blocks])
        caps = protocol.saturation.caps(rows)
        spread = standard_deviations(np.minimum(rows, caps))
        return cls(spread, protocol.learn_relevance, caps, protocol.saturation.bound)

    def scaled(self, features: np.ndarray) -> np.ndarray:
        """Return the features on their scales, (..., 16), none beyond its cap."""
        return np.minimum(features[..., :D], self.caps) / self.deviations

    def columns(self, features: np.ndarray, relevance: np.ndarray) -> np.ndarray:
        """Return the columns x of ``p = r + x @ weights``: (..., 16), or 17 with r at the end.

        Only scale matters: centring adds the same to every candidate and would turn the zeros of
        suggestions that were never shown into numbers.
        """
        x = self.scaled(features)
        if not self.learn_relevance:
            return x
        finite = np.where(np.isfinite(relevance), relevance, 0.0)
        return np.concatenate([x, finite[..., None]], axis=-1)

    def scores(
        self, features: np.ndarray, relevance: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Return the preference (2.3.1) of every candidate.

        `weights` has one row for each row of `features`, or is one vector for all.
        """
        return self.scores_of(self.columns(features, relevance), relevance, weights)

    def scores_of(self, x: np.ndarray, relevance: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return `scores`, given what `columns` returns."""
        weights = np.broadcast_to(weights, (len(x), x.shape[-1]))
        if self.bound == np.inf:
            return relevance + np.einsum("tnd,td->tn", x, weights)
        # Not the parts' sum: suggestions at the bound are equal, whatever rounding makes of them.
        fed_back = np.einsum("tnd,td->tn", x[..., :D], weights[:, :D])
        beside = np.einsum("tnd,td->tn", x[..., D:], weights[:, D:])
        return relevance + np.clip(fed_back, -self.bound, self.bound) + beside

    def parts(self, columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what each of the `columns` adds to a candidate's score, feedback bounded."""
        return bounded(columns * weights, self.bound)


def training_choices(
    replay: Replay,
    moments: RankedKeystrokes,
    features: np.ndarray,
    design: FeedbackDesign,
    *,
    relevance: Relevance,
    keep_unlisted: bool,
    users: tuple[int, int] | None = None,
) -> tuple[Choices, np.ndarray]:
    """Make a conditional-logit data set of moments, with users as groups.

    Parameters
    ----------
    replay : Replay
    moments : RankedKeystrokes
        In order of user and time.
    features : array of shape (T, N, 26)
        Feedback on the candidates of `moments`.
    design : FeedbackDesign
    relevance : Relevance
        For the relevance of queries that are no candidates.
    keep_unlisted : bool
        See `Protocol`.
    users : pair of int, optional
        The first user that the moments may be of, and the one after the last; by default all.

    Returns
    -------
    choices : Choices
        Its groups are these users of the log, in order.
    row : int array
        The row of `moments` behind each choice.
    """
    row = np.flatnonzero((moments.position >= 0) | keep_unlisted)
    if keep_unlisted:
        n = moments.candidates.shape[1]
        moments = replay.with_submitted(moments, relevance)
        own = replay.features(replace(moments, candidates=moments.candidates[:, n:]))
        features = np.concatenate([features, own], axis=1)
    x = design.columns(features, moments.relevance)
    there, score, position = moments.candidates >= 0, moments.relevance, moments.position
    there, x, score, position = there[row], x[row], score[row], position[row]
    start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    number = np.cumsum(there, axis=1) - 1
    chosen = start[:-1] + number[np.arange(len(row)), position]
    first, last = users or (0, len(replay.log.users))
    group = np.searchsorted(replay.log.user[moments.composition[row]], np.arange(first, last + 1))
    return Choices(x[there], score[there], start, chosen, group), row


def unpersonalised(
    choices: Choices | Sequence[Choices],
    *,
    l2: float,
    variant: Unpersonalised = "pooled",
    executor: Executor | None = None,
    work: Path | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Fit adaQAC-UnP: one weight vector for everybody, and for each user without that user.

    Parameters
    ----------
    choices : Choices or sequence of Choices
        Grouped by user; the users of pieces follow one another.
    l2 : float
    variant : {"pooled", "average"}
        [Zhang2017]'s "gradient descent with averaging" is undefined: fit all compositions together,
        or average the users' own weights.
    executor, work
        Where users are worked on, bucket by bucket, as in `telic.choice.fit_groups`.

    Returns
    -------
    everyone : array of shape (d,)
    without : array of shape (g, d)
        Row u is learned from everybody but u (2.4.4).
    """
    if variant == "pooled":
        everyone = fit_pooled(choices, l2=l2)
        return everyone, leave_one_group_out(choices, everyone, l2=l2, executor=executor, work=work)
    own = fit_groups(choices, l2=l2, executor=executor, work=work)
    trained = np.diff(group_starts(choices)) > 0
    m = max(int(trained.sum()), 1)
    total = own[trained].sum(axis=0)
    others = np.maximum(m - trained, 1)[:, None]
    return total / m, (total - own * trained[:, None]) / others


def online(
    choices: Choices | Sequence[Choices],
    row: np.ndarray,
    users: np.ndarray,
    initial: np.ndarray,
    *,
    done: np.ndarray | None = None,
    l2: float,
    step_size: float,
    schedule: Schedule,
    executor: Executor | None = None,
    work: Path | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Walk adaQAC-Online through compositions and return the weights before each and at the end.

    The walk begins where a user is new: with the first composition that is handed over. Each is
    scored before it is learned from; none is learned from twice.

    Parameters
    ----------
    choices, row
        From `training_choices` over the compositions of the walk.
    users : int array of shape (T,)
        User of each composition of the walk, ascending; compositions in order of submission.
    done : int array of shape (T,), optional
        How many compositions of the walk, those of users before included, a composition has before
        it when it begins: where a user's compositions overlap, those not yet submitted teach
        nothing. By default its place.
    initial : array of shape (g, d)
        Weights of each user before the walk: `unpersonalised` without that user.
    executor, work
        As in `unpersonalised`.

    Returns
    -------
    path : float64 array of shape (choices + g, d)
        Weights after each step.
    before : int array of shape (T,)
        The row of `path` that holds before each composition of the walk.
    latest : float64 array of shape (g, d)
        Weights of each user after the walk.
    """
    path = learn_online(
        choices,
        initial,
        step_size=step_size,
        l2=l2,
        schedule=schedule,
        executor=executor,
        work=work,
    )
    learned = np.zeros(len(users) + 1, np.int64)
    learned[row + 1] = 1
    learned_before = np.cumsum(learned)[np.arange(len(users)) if done is None else done]
    # `path` has one row more for every user that came before.
    latest = path[group_starts(choices)[1:] + np.arange(len(initial))]
    return path, learned_before + users, latest
