"""Fit every completion model on a replayed log, one relevance score and protocol at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from telic.choice import Elastic, FactoredChoices, fit_groups, fit_sdca
from telic.choice.choices import group_starts
from telic.completion.fit.log_parts import CHUNK, RUN, OnlineWalk, Parts
from telic.completion.learning import adaqac
from telic.completion.learning.adaqac import FeedbackDesign, Protocol
from telic.completion.learning.do_no_harm import Gate, run_checks
from telic.completion.learning.feedback import WIDTH
from telic.completion.learning.filtering_qac import Filtering, tune_filtering
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import (
    TEST,
    TRAIN,
    VALID,
    RankedKeystrokes,
    Replay,
)
from telic.data.growing_arrays import let_go, trim
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks
from telic.evaluate.column_spread import deviations_of_blocks
from telic.evaluate.reciprocal_rank import ranks_of, reciprocal_of
from telic.scale import Executor

if TYPE_CHECKING:
    from telic.completion.fit.phone_models import PhoneModels

MODELS = ("static", "filtering", "adaqac-batch", "adaqac-unp", "adaqac-online")
RECOUNTS = (Elastic(1e-3, 1e-3), Elastic(2e-4, 1e-4), Elastic(3e-5, 1e-5))
"""Penalties that `recounted` chooses from."""
LEAST = 0.02
"""Least weight of popularity in a tuned score."""


def fit_relevance(replay: Replay, name: str, protocol: Protocol, *, n: int = 10) -> Relevance:
    """Fix a relevance score's scales on the training part and its weight on validation MRR.

    The deviations are those of the candidates that MPC gives at the last keystrokes of training.
    Popularity keeps some weight, and of weights that do equally well the larger: else those who
    have no history yet would be given an order that means nothing.
    """
    plain = Relevance.named("mpc", scale=protocol.scale)
    runs = (run.keystrokes for run in replay.runs(replay.last_keystrokes(TRAIN), RUN))
    training = (replay.moments(plain, run, n=n) for run in runs)
    seen = (moments.counts[moments.candidates >= 0] for moments in training)
    popular, personal, recent = map(float, deviations_of_blocks(seen, 3))
    plain = Relevance.named(name, scale=protocol.scale)
    relevance = replace(plain, deviations=(popular, personal, recent))
    if not relevance.tuned:
        return relevance
    validation = replay.runs(replay.last_keystrokes(VALID), RUN)

    def accuracy(alpha: float) -> float:
        found = []
        for run in validation:
            moments = replay.moments(relevance.mixed(alpha), run.keystrokes, n=n)
            found.append(reciprocal_ranks(moments.relevance, moments.position))
        return mean_reciprocal_rank(np.concatenate(found))

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
    """float64 (choices + g, d): of each user the weights before validation and testing, and after
    each step there: see `telic.choice.learn_online`."""
    walked: np.ndarray
    """int64 (n,): the row of `online` that held before each composition; -1 for training's."""
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
        if model == "adaqac-online":
            weights = self.before(moments.composition)
        else:
            weights = {"adaqac-batch": self.personal, "adaqac-unp": self.without}[model][user]
        return self.design.scores(features, moments.relevance, weights)

    def before(self, compositions: np.ndarray) -> np.ndarray:
        """Return the online weights before some compositions; NaN before those of training."""
        rows = self.walked[compositions]
        found = np.where(rows[:, None] >= 0, self.online[rows], np.nan)
        let_go(self.online)
        return found

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
    models = _ungated(replay, relevance, protocol, n=n, executor=executor, work=work)
    if protocol.do_no_harm and not models.gates:  # those of who could learn nothing are closed
        models = replace(models, gates=gates_of(replay, models, "static"))
    return models


def _ungated(
    replay: Replay,
    relevance: Relevance,
    protocol: Protocol,
    *,
    n: int,
    executor: Executor | None,
    work: Path | None,
) -> Models:
    """Fit the models of `fit_models` without their gates."""
    log = replay.log
    taught, held, walk_parts = (
        Parts(replay, relevance, replay.last_keystrokes(*parts), n)
        for parts in ((TRAIN,), (VALID,), (VALID, TEST))
    )
    design = FeedbackDesign.of(protocol, taught)

    def accuracy(*weights: Callable[[np.ndarray], np.ndarray]) -> list[float]:
        """MRR on validation with each of some functions that give its compositions' weights."""
        found: list[list[np.ndarray]] = [[] for _ in weights]
        for moments, features in held:
            x = design.columns(features, moments.relevance)
            for ranks, of in zip(found, weights, strict=True):
                scores = design.scores_of(x, moments.relevance, of(moments.composition))
                ranks.append(reciprocal_ranks(scores, moments.position))
        return [mean_reciprocal_rank(np.concatenate(ranks)) for ranks in found]

    def best(settings: Sequence[float], tables: Sequence[np.ndarray]) -> float:
        """Return the setting whose weights of users do best on validation."""
        scores = accuracy(*(lambda c, rows=rows: rows[log.user[c]] for rows in tables))
        return settings[int(np.argmax(scores))]

    on: dict[str, Any] = {"executor": executor, "work": work and work / "training"}
    training, _, _ = taught.choices(design, protocol, **on)
    if not len(group_starts(training)) or not group_starts(training)[-1]:
        # Nothing was ever suggested that somebody wanted: there is nothing to learn from.
        d = design.columns(np.empty((0, n, WIDTH)), np.empty((0, n))).shape[-1]
        return _untaught(replay, relevance, protocol, n=n, design=design, d=d)
    pooled = {
        l2: adaqac.unpersonalised(training, l2=l2, variant=protocol.pooling, **on)
        for l2 in protocol.l2
    }
    best_pooled = best(protocol.l2, [without for _, without in pooled.values()])
    everyone, without = pooled[best_pooled]
    center = without if protocol.pull_to == "unpersonalised" else None
    own = {l2: fit_groups(training, l2=l2, center=center, **on) for l2 in protocol.l2}
    best_own = best(protocol.l2, list(own.values()))

    online_l2 = protocol.online_l2(best_pooled)
    on = {"executor": executor, "work": work and work / "walk"}
    walk = OnlineWalk.of(walk_parts, design, protocol, without, l2=online_l2, on=on)

    def ends_up(step: float) -> float:
        weights, before, _ = walk.with_step(step)

        def held_before(compositions: np.ndarray) -> np.ndarray:
            found = weights[np.maximum(walk.rows(before)[compositions], 0)]
            let_go(weights)
            return found

        return accuracy(held_before)[0]

    step_size = max(protocol.step_sizes, key=ends_up)
    online, before, latest = walk.with_step(step_size)

    return Models(
        relevance,
        protocol,
        n,
        design,
        tune_filtering(held)[0],
        everyone,
        without,
        own[best_own],
        online,
        walk.rows(before),
        walk.steps_before(),
        latest,
        np.diff(group_starts(walk.choices)),
        {"adaqac-unp": best_pooled, "adaqac-batch": best_own},
        step_size,
        {},
    )


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
        np.zeros((1, d)),
        np.zeros(len(replay.log), int),
        np.zeros(len(replay.log), int),
        nothing,
        np.zeros(users, int),
        {},
        protocol.step_sizes[0],
        dict.fromkeys(MODELS[1:], closed),
    )


def served_by(
    gate: Gate, replay: Replay, moments: RankedKeystrokes, found: np.ndarray, static: np.ndarray
) -> np.ndarray:
    """Return the ranks found where gate and running checks let a model re-rank, else the static."""
    user = replay.log.user[moments.composition]
    is_open = gate.open(user, replay.prefix_length(moments.keystroke))
    gain = np.where(is_open, found - static, 0.0)
    times = {"begun": replay.start_at, "submitted": replay.log.submitted_at}
    allowed, _ = run_checks(gain, moments.composition, user, **times)
    return np.where(is_open & allowed, found, static)


def gates_of(replay: Replay, models: "Models | PhoneModels", static: str) -> dict[str, Gate]:
    """Fit the gate of each model but the static order, at every keystroke of validation."""
    found: dict[str, list[np.ndarray]] = {}
    users, lengths = [], []
    trim()  # of a long log, what was fitted before has left much behind
    # Ranks are held in a byte or two: of a long log, these are many keystrokes.
    for run in replay.runs(replay.every_keystroke(VALID), RUN):
        moments = replay.moments(models.relevance, run.keystrokes, n=models.n)
        for model, ranks in models.reciprocal_ranks(replay, moments, gated=False).items():
            found.setdefault(model, []).append(ranks_of(ranks))
        users.append(replay.log.user[moments.composition])
        lengths.append(replay.prefix_length(moments.keystroke).astype(np.int32))
    user, length = map(np.concatenate, (users, lengths))

    def gate(model: str) -> Gate:
        pairs = zip(found[model], found[static], strict=True)
        gain = np.concatenate([reciprocal_of(own) - reciprocal_of(base) for own, base in pairs])
        return Gate.fitted(gain, user, length, len(replay.log.users))

    return {model: gate(model) for model in found if model != static}
