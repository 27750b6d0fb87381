"""Fit every completion model on a replayed log, one relevance score and protocol at a time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from telic.choice import Choices, Elastic, FactoredChoices, fit_groups, fit_sdca
from telic.completion.learning import adaqac
from telic.completion.learning.adaqac import FeedbackDesign, Protocol
from telic.completion.learning.do_no_harm import Gate, run_checks
from telic.completion.learning.filtering_qac import Filtering, tune_filtering
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID, RankedKeystrokes, Replay
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks, standard_deviations
from telic.scale import Executor

if TYPE_CHECKING:
    from telic.completion.fit.phone_models import PhoneModels

MODELS = ("static", "filtering", "adaqac-batch", "adaqac-unp", "adaqac-online")
RECOUNTS = (Elastic(1e-3, 1e-3), Elastic(2e-4, 1e-4), Elastic(3e-5, 1e-5))
"""Penalties that `recounted` chooses from."""
LEAST = 0.02
"""Least weight of popularity in a tuned score."""
CHUNK = 20_000
"""Keystrokes whose features are held in memory at once."""


def fit_relevance(replay: Replay, name: str, protocol: Protocol, *, n: int = 10) -> Relevance:
    """Fix a relevance score's scales on the training part and its weight on validation MRR.

    The deviations are those of the candidates that MPC gives at the last keystrokes of training.
    Popularity keeps some weight, and of weights that do equally well the larger: else those who
    have no history yet would be given an order that means nothing.
    """
    plain = Relevance.named("mpc", scale=protocol.scale)
    training = replay.moments(plain, replay.last_keystrokes(TRAIN), n=n)
    seen = training.counts[training.candidates >= 0]
    popular, personal, recent = map(float, standard_deviations(seen))
    plain = Relevance.named(name, scale=protocol.scale)
    relevance = replace(plain, deviations=(popular, personal, recent))
    if not relevance.tuned:
        return relevance
    validation = replay.last_keystrokes(VALID)

    def accuracy(alpha: float) -> float:
        moments = replay.moments(relevance.mixed(alpha), validation, n=n)
        return mean_reciprocal_rank(reciprocal_ranks(moments.relevance, moments.position))

    coarse = max([*np.round(np.arange(1, 0.05, -0.1), 2), LEAST], key=accuracy)
    fine = np.round(np.clip(coarse + np.arange(0.08, -0.0801, -0.02), LEAST, 1), 2)
    return relevance.mixed(float(max(fine, key=accuracy)))


def recounted(replay: Replay, relevance: Relevance, *, n: int = 10) -> Relevance:
    """Add a weight for each query, learned at the last keystrokes of the training part.

    Counts and their scales are an assumption about how often each query is wanted among the
    candidates of its prefixes; this is what the log says of it. Whoever learns a query's weights
    from a context, such as a phone's apps, learns this too, whatever the context tells: an app that
    all phones have is a weight for each query. So it belongs to what such a model is compared with.

    The penalty is chosen by MRR at every keystroke of validation; so is to add nothing.

    Parameters
    ----------
    replay : Replay
    relevance : Relevance
    n : int
        Pre-indexed queries N.
    """
    moments = replay.moments(relevance, replay.last_keystrokes(TRAIN), n=n)
    moments = moments.where(moments.position >= 0)
    if not len(moments):
        return relevance
    there = moments.candidates >= 0
    queries, outcome = np.unique(moments.candidates[there], return_inverse=True)
    start = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    score = (moments.relevance - moments.relevance.max(axis=1, keepdims=True))[there]
    rows, ones = np.arange(len(outcome)), np.ones(len(moments))
    choices = FactoredChoices(
        len(queries),
        1,
        1,
        outcome,
        score,
        start,
        start[:-1] + moments.position,
        np.arange(len(ones) + 1),
        np.zeros(len(ones), int),
        ones,
        np.arange(len(rows) + 1),
        np.zeros(len(rows), int),
        score,
    )

    def fitted(penalty: Elastic) -> Relevance:
        weights = fit_sdca(choices, penalty, tol=1e-3).weights
        learned = np.zeros(len(replay.index))
        # Over the relevance's own weight, which may not all but vanish: as `AppAware` has it.
        learned[queries] = weights[:-1] / max(1 + weights[-1], 0.1)
        # The same for all changes no order; an index takes no weight below 0.
        unlearned = -float(learned.min())
        return replace(relevance, learned=learned + unlearned, unlearned=unlearned)

    def accuracy(relevance: Relevance) -> float:
        moments = replay.moments(relevance, replay.every_keystroke(VALID), n=n)
        return mean_reciprocal_rank(reciprocal_ranks(moments.relevance, moments.position))

    return max([relevance, *map(fitted, RECOUNTS)], key=accuracy)


@dataclass(frozen=True)
class Models:
    """All models of one relevance score under one protocol, fitted."""

    relevance: Relevance
    protocol: Protocol
    n: int
    design: FeedbackDesign
    filtering: Filtering
    everyone: np.ndarray
    """float64 (d,): un-personalised weights, for a user never seen."""
    without: np.ndarray
    """float64 (g, d): un-personalised weights learned without each user."""
    personal: np.ndarray
    """float64 (g, d)."""
    online: np.ndarray
    """float64 (n, d): weights before each composition of validation and testing, else NaN."""
    steps: np.ndarray
    """int (n,): online steps behind `online`."""
    latest: np.ndarray
    """float64 (g, d): online weights after each user's last composition."""
    updates: np.ndarray
    """int (g,): online steps behind `latest`."""
    l2: dict[str, float]
    step_size: float
    gates: dict[str, Gate]

    def scores(
        self, model: str, replay: Replay, moments: RankedKeystrokes, features: np.ndarray
    ) -> np.ndarray:
        """Return the score of every candidate under a model, the gate not yet applied."""
        user = replay.log.user[moments.composition]
        if model == "static":
            return moments.relevance
        if model == "filtering":
            return self.filtering.scores(features, moments.relevance)
        weights = {
            "adaqac-batch": self.personal,
            "adaqac-unp": self.without,
            "adaqac-online": self.online,
        }[model][moments.composition if model == "adaqac-online" else user]
        return self.design.scores(features, moments.relevance, weights)

    def reciprocal_ranks(
        self, replay: Replay, moments: RankedKeystrokes, *, gated: bool = True
    ) -> dict[str, np.ndarray]:
        """Return the reciprocal rank of every model at every moment."""
        found = {model: np.empty(len(moments)) for model in MODELS}
        for begin in range(0, len(moments), CHUNK):
            rows = slice(begin, begin + CHUNK)
            part = moments.where(rows)
            features = replay.features(part)
            for model in MODELS:
                scores = self.scores(model, replay, part, features)
                found[model][rows] = reciprocal_ranks(scores, part.position)
        if gated:
            for model, gate in self.gates.items():
                found[model] = served_by(gate, replay, moments, found[model], found["static"])
        return found


def fit_models(
    replay: Replay,
    relevance: Relevance,
    protocol: Protocol,
    *,
    n: int = 10,
    executor: Executor | None = None,
    work: Path | None = None,
) -> Models:
    """Fit Filtering QAC and adaQAC-Batch, -UnP and -Online.

    Weights are learned at the last keystrokes of the training part, as in [Zhang2017] (2.4.1);
    thresholds, penalties and step sizes are chosen by MRR at the last keystrokes of validation; the
    gates are fitted at every keystroke of validation. With an `executor` of `telic.scale` the
    weights of users are learned there, bucket by bucket, to the same bits; `work` is then a folder
    that every worker reaches.
    """
    log = replay.log
    last = replay.moments(relevance, replay.last_keystrokes(TRAIN, VALID, TEST), n=n)
    features = replay.features(last)
    part = replay.part[last.composition]
    train, valid = part == TRAIN, part == VALID
    design = FeedbackDesign.of(protocol, features[train], last.where(train))

    def choices(rows: np.ndarray) -> tuple[Choices, np.ndarray]:
        return adaqac.training_choices(
            replay,
            last.where(rows),
            features[rows],
            design,
            relevance=relevance,
            keep_unlisted=protocol.keep_unlisted,
        )

    def accuracy(weights: np.ndarray) -> float:
        """MRR on validation with a row of weights for each of its compositions."""
        held = last.where(valid)
        scores = design.scores(features[valid], held.relevance, weights)
        return mean_reciprocal_rank(reciprocal_ranks(scores, held.position))

    training, _ = choices(train)
    held_user = log.user[last.composition[valid]]
    if not len(training):
        # Nothing was ever suggested that somebody wanted: there is nothing to learn from.
        d = design.columns(features[:0], last.relevance[:0]).shape[-1]
        return _untaught(replay, relevance, protocol, n=n, design=design, d=d)
    on_training: dict[str, Any] = {"executor": executor, "work": work and work / "training"}
    pooled = {
        l2: adaqac.unpersonalised(training, l2=l2, variant=protocol.pooling, **on_training)
        for l2 in protocol.l2
    }
    best_pooled = max(protocol.l2, key=lambda l2: accuracy(pooled[l2][1][held_user]))
    everyone, without = pooled[best_pooled]
    center = without if protocol.pull_to == "unpersonalised" else None
    own = {l2: fit_groups(training, l2=l2, center=center, **on_training) for l2 in protocol.l2}
    best_own = max(protocol.l2, key=lambda l2: accuracy(own[l2][held_user]))

    walk = np.flatnonzero(part != TRAIN)
    walk = walk[np.lexsort((last.composition[walk], log.user[last.composition[walk]]))]
    walked, row = choices(walk)
    composition = last.composition[walk]
    walkers = log.user[composition]
    done = _done_before(replay, composition)

    def path(step: float) -> tuple[np.ndarray, np.ndarray]:
        """Online weights before each composition of the log, and each user's last."""
        before, latest = adaqac.online(
            walked,
            row,
            walkers,
            without,
            done=done,
            l2=protocol.online_l2(best_pooled),
            step_size=step,
            schedule=protocol.schedule,
            executor=executor,
            work=work and work / "walk",
        )
        online = np.full((len(log), without.shape[1]), np.nan)
        online[composition] = before
        return online, latest

    paths = {step: path(step) for step in protocol.step_sizes}
    held = last.composition[valid]
    step_size = max(protocol.step_sizes, key=lambda step: accuracy(paths[step][0][held]))
    online, latest = paths[step_size]
    learned = np.zeros(len(walk) + 1, int)
    learned[row + 1] = 1
    steps = np.zeros(len(log), int)
    steps[composition] = np.cumsum(learned)[done] - walked.group[walkers]

    filtering, _ = tune_filtering(features[valid], last.where(valid))
    models = Models(
        relevance,
        protocol,
        n,
        design,
        filtering,
        everyone,
        without,
        own[best_own],
        online,
        steps,
        latest,
        np.diff(walked.group),
        {"adaqac-unp": best_pooled, "adaqac-batch": best_own},
        step_size,
        {},
    )
    if protocol.do_no_harm:
        models = replace(models, gates=gates_of(replay, models, "static"))
    return models


def _untaught(
    replay: Replay,
    relevance: Relevance,
    protocol: Protocol,
    *,
    n: int,
    design: FeedbackDesign,
    d: int,
) -> Models:
    """Return models whose d weights are all 0 and whose gates are closed."""
    users = len(replay.log.users)
    nothing = np.zeros((users, d))
    closed = Gate(False, np.zeros(5, bool), np.zeros(users, bool))
    return Models(
        relevance,
        protocol,
        n,
        design,
        Filtering(3.0, 1),
        np.zeros(d),
        nothing,
        nothing,
        np.zeros((len(replay.log), d)),
        np.zeros(len(replay.log), int),
        nothing,
        np.zeros(users, int),
        {},
        protocol.step_sizes[0],
        dict.fromkeys(MODELS[1:], closed),
    )


def _done_before(replay: Replay, composition: np.ndarray) -> np.ndarray:
    """Return up to which place of compositions that stand by user each user's have taught.

    A composition teaches once it is submitted, and meets what had been learned when it began.
    """
    log, user = replay.log, replay.log.user[composition]
    done = np.empty(len(composition), np.int64)
    for one in np.split(np.arange(len(composition)), np.flatnonzero(np.diff(user)) + 1):
        ends, begins = log.submitted_at[composition[one]], replay.start_at[composition[one]]
        done[one] = one[:1] + np.searchsorted(ends, begins)
    return done


def served_by(
    gate: Gate, replay: Replay, moments: RankedKeystrokes, found: np.ndarray, static: np.ndarray
) -> np.ndarray:
    """Return the ranks found where gate and running checks let a model re-rank, else the static."""
    user = replay.log.user[moments.composition]
    is_open = gate.open(user, replay.prefix_length[moments.keystroke])
    gain = np.where(is_open, found - static, 0.0)
    return np.where(is_open & run_checks(gain, moments.composition, user)[0], found, static)


def gates_of(replay: Replay, models: "Models | PhoneModels", static: str) -> dict[str, Gate]:
    """Fit the gate of each model but the static order, at every keystroke of validation."""
    moments = replay.moments(models.relevance, replay.every_keystroke(VALID), n=models.n)
    found = models.reciprocal_ranks(replay, moments, gated=False)
    user = replay.log.user[moments.composition]
    length = replay.prefix_length[moments.keystroke]
    return {
        model: Gate.fitted(ranks - found[static], user, length, len(replay.log.users))
        for model, ranks in found.items()
        if model != static
    }
