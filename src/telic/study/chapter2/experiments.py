"""What chapter 2 measures on simulated typists beside `telic.completion.evaluate` and the controls.

Each of `EXPERIMENTS` returns what JSON takes; `run` makes it a step of a study.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from telic.choice import Choices, descend, fit_groups
from telic.completion.evaluation.adaqac_evaluation import evaluate, evaluate_models
from telic.completion.evaluation.json_facts import findings, log_facts
from telic.completion.fit.models import fit_models, fit_relevance
from telic.completion.learning.adaqac import CAREFUL, PROTOCOLS, FeedbackDesign, training_choices
from telic.completion.learning.replayed_log import TEST, TRAIN, VALID, Lists, Replay
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks, success_rate
from telic.simulate import (
    Catalogue,
    dwell_effect,
    dwell_twin,
    read_catalogue,
    simulate_typists,
    simulated_replay,
)
from telic.simulate.dwell_controls import against_twin, tried
from telic.simulate.replays import TOLD, Told

phrases = lru_cache(maxsize=1)(read_catalogue)


@lru_cache(maxsize=1)
def main_log(catalogue: Path | None, min_users: int, users: int, compositions: int) -> Replay:
    """Return the log that all but the controls are measured on, made ready."""
    known = phrases(catalogue, min_users=min_users)
    log = simulate_typists(known, seed=0, users=users, compositions=compositions)
    return simulated_replay(known, log)


def run(
    *,
    experiment: str,
    catalogue: Path | None,
    min_users: int,
    users: int,
    compositions: int,
    **options: Any,
) -> Any:
    """Run one of `EXPERIMENTS` on the log, or one of `CONTROLS` on logs of its own."""
    if experiment in EXPERIMENTS:
        replay = main_log(catalogue, min_users, users, compositions)
        return EXPERIMENTS[experiment](replay, **options)
    known = phrases(catalogue, min_users=min_users)
    return CONTROLS[experiment](known, users=users, compositions=compositions, **options)


def accuracy(replay: Replay, *, relevance: str, protocol: str, lists: Lists) -> dict[str, Any]:
    """Fit and test every model for one relevance score; see `findings`."""
    return findings(
        evaluate(replay, relevances=[relevance], protocols=[PROTOCOLS[protocol]], lists=[lists])
    )


@dataclass(frozen=True)
class _Batch:
    """Data of adaQAC-Batch (TimeSense-S, careful protocol) to sweep a parameter over."""

    training: Choices
    design: FeedbackDesign
    features: np.ndarray
    relevance: np.ndarray
    position: np.ndarray
    user: np.ndarray

    @classmethod
    def of(cls, replay: Replay) -> "_Batch":
        relevance = fit_relevance(replay, "timesense-s", CAREFUL)
        train = replay.moments(relevance, replay.last_keystrokes(TRAIN))
        features = replay.features(train)
        design = FeedbackDesign.of(CAREFUL, [(train, features)])
        training, _ = training_choices(
            replay,
            train,
            features,
            design,
            relevance=relevance,
            keep_unlisted=CAREFUL.keep_unlisted,
        )
        valid = replay.moments(relevance, replay.last_keystrokes(VALID))
        return cls(
            training,
            design,
            replay.features(valid),
            valid.relevance,
            valid.position,
            replay.log.user[valid.composition],
        )

    def measures(self, weights: np.ndarray) -> dict[str, float]:
        """Accuracy on validation of one row of weights per user."""
        scores = self.design.scores(self.features, self.relevance, weights[self.user])
        found = reciprocal_ranks(scores, self.position)
        return {"mrr": mean_reciprocal_rank(found)} | {
            f"sr@{k}": success_rate(found, k) for k in (1, 2, 3)
        }


def convergence(
    replay: Replay, *, iterations: int = 40, l2: float = 0.01
) -> list[dict[str, float]]:
    """Follow gradient descent of adaQAC-Batch on validation (Figure 2.4, left).

    Returns
    -------
    list of dict
        ``iteration``, ``mrr``, ``sr@1``–``sr@3`` and ``gap``, the mean over users of the relative
        distance of the objective from the optimum that Newton's method finds.
    """
    batch = _Batch.of(replay)
    choices = batch.training
    paths, gaps = [], []
    best = fit_groups(choices, l2=l2)
    for u, (first, last) in enumerate(zip(choices.group[:-1], choices.group[1:], strict=True)):
        if last == first:
            paths.append(np.zeros((iterations + 1, len(best[u]))))
            continue
        rows = slice(choices.start[first], choices.start[last])
        own = Choices(
            choices.x[rows],
            choices.offset[rows],
            choices.start[first : last + 1] - rows.start,
            choices.chosen[first:last] - rows.start,
        )
        paths.append(descend(own, l2=l2, max_passes=iterations))
        lowest = own.loss(best[u], l2=l2)
        losses = np.array([own.loss(w, l2=l2) for w in paths[-1]])
        gaps.append((losses - lowest) / max(losses[0] - lowest, 1e-12))
    mean_gap = np.mean(gaps, axis=0)
    return [
        {"iteration": t, "gap": float(mean_gap[t]), **batch.measures(np.array(paths)[:, t])}
        for t in range(iterations + 1)
    ]


def regulariser(replay: Replay) -> list[dict[str, float]]:
    """Sweep lambda of adaQAC-Batch on validation (Figure 2.4, right); the penalty pulls to zero."""
    batch, weights = _Batch.of(replay), (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
    return [{"l2": l2, **batch.measures(fit_groups(batch.training, l2=l2))} for l2 in weights]


def more_candidates(replay: Replay, *, n: int, relevance: str = "personal-s") -> dict[str, float]:
    """Measure the gain and the cost of re-ranking n candidates.

    Returns
    -------
    dict
        ``candidates``, ``static`` and ``mrr`` (adaQAC-Online, all test keystrokes), and
        ``microseconds`` per keystroke to compute features, scores and ranks.
    """
    models = fit_models(replay, fit_relevance(replay, relevance, CAREFUL, n=n), CAREFUL, n=n)
    moments = replay.moments(models.relevance, replay.last_keystrokes(TEST), n=n)
    began = time.perf_counter()
    scores = models.scores("adaqac-online", replay, moments, replay.features(moments))
    reciprocal_ranks(scores, moments.position)
    cost = (time.perf_counter() - began) / len(moments)
    result = evaluate_models(replay, models)
    return {
        "candidates": n,
        "static": mean_reciprocal_rank(result.ranks["static"]),
        "mrr": mean_reciprocal_rank(result.ranks["adaqac-online"]),
        "microseconds": 1e6 * cost,
    }


def knowledge(
    catalogue: Catalogue,
    *,
    setting: str,
    seed: int,
    told: Sequence[Told] = TOLD,
    users: int = 200,
    compositions: int = 150,
) -> dict[Told, dict[str, float]]:
    """Measure what reaches a completer of what the system that made the lists knew.

    Returns
    -------
    dict of str to dict
        For what it is told: ``static``, ``gain`` and ``dwell`` (see `telic.simulate.dwell_effect`);
        ``reranked`` and ``reranked gain``, the same where the shown list is re-ranked; ``shown``,
        the share of the suggestions shown that the completer would suggest itself.
    """
    log = simulate_typists(
        catalogue, setting=setting, seed=seed, users=users, compositions=compositions
    )
    twin = dwell_twin(log, seed=seed)
    found = {}
    for what in told:
        replay = simulated_replay(catalogue, log, told=what)
        own = tried(replay)
        shown = tried(replay.over("shown"))
        found[what] = against_twin(own, tried(simulated_replay(catalogue, twin, told=what))) | {
            "reranked": shown["static"],
            "reranked gain": shown["adaqac-unp"] - shown["static"],
            "shown": own["shown"],
        }
    return found


EXPERIMENTS: dict[str, Callable[..., Any]] = {
    "facts": log_facts,
    "accuracy": accuracy,
    "convergence": convergence,
    "regulariser": regulariser,
    "candidates": more_candidates,
}
"""Measured on a log."""
CONTROLS: dict[str, Callable[..., Any]] = {"dwell": dwell_effect, "knowledge": knowledge}
"""Measured on logs simulated with a catalogue."""
