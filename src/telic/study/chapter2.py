"""Chapter 2: does implicit negative feedback improve completion, and where does that come from?

Each function returns the numbers of one table or figure; `telic.study.chapter2_report` draws them.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from telic.choice import Choices, descend, fit_groups
from telic.completion.adaqac import CAREFUL, Design, Protocol, training_choices
from telic.completion.evaluation import evaluate_models
from telic.completion.filtering import DWELL_THRESHOLDS, POSITION_THRESHOLDS
from telic.completion.models import fit_models, fit_relevance
from telic.completion.replay import TEST, TRAIN, VALID, Replay
from telic.data.compositions import CompositionLog
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks, success_rate

Progress = Callable[[str], None]


def dwell_histograms(log: CompositionLog, *, users: int = 10, seed: int = 0) -> dict:
    """Count dwell times in bins of 0.1 s (Figure 2.2a) and each user's most frequent bin (2.2b).

    Returns
    -------
    dict
        ``edges`` (32,), ``sample`` (users, 31): shares for users drawn at random, ``peaks`` (31,):
        how many users have their peak in each bin.
    """
    start, end = log.keystroke_start[:-1], log.keystroke_start[1:]
    until = np.append(log.at[1:], 0)
    until[end - 1] = log.submitted_at
    dwell = (until - log.at) / 1e6
    user = np.repeat(log.user, end - start)
    edges = np.round(np.arange(0, 3.2, 0.1), 1)
    bins = np.minimum((dwell / 0.1 + 1e-9).astype(int), len(edges))
    counts = np.zeros((len(log.users), len(edges) + 1))
    np.add.at(counts, (user, bins), 1)
    counts = counts[:, :-1][:, : len(edges) - 1]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chosen = np.random.default_rng(seed).permutation(len(log.users))[:users]
    peaks = np.bincount(counts.argmax(axis=1), minlength=len(edges) - 1)
    return {"edges": edges, "sample": shares[np.sort(chosen)], "peaks": peaks}


def threshold_study(replay: Replay) -> np.ndarray:
    """Measure Figure 2.2(c): how often is what was shown high and long not submitted?

    Over all lists but the last of each composition.

    Returns
    -------
    float64 array of shape (30, 10)
        For T_DT in `DWELL_THRESHOLDS` and T_P in `POSITION_THRESHOLDS`: share of the suggestions
        shown for at least T_DT at a position of at most T_P that were not submitted in the end.
    """
    log = replay.log
    lengths = np.diff(log.list_start)
    keystroke = np.repeat(np.arange(len(lengths)), lengths)
    position = np.arange(len(keystroke)) - np.repeat(log.list_start[:-1], lengths) + 1
    composition = np.repeat(np.arange(len(log)), np.diff(log.keystroke_start))
    final = np.zeros(len(lengths), bool)
    final[log.keystroke_start[1:] - 1] = True
    dwell = np.append(np.diff(log.at), 0) / 1e6
    kept = ~final[keystroke] & (position <= POSITION_THRESHOLDS[-1])
    step = np.minimum((dwell[keystroke[kept]] * 10 + 1e-6).astype(int), len(DWELL_THRESHOLDS))
    missed = replay.shown[kept] != replay.query[composition[keystroke[kept]]]
    shape = (len(DWELL_THRESHOLDS) + 1, len(POSITION_THRESHOLDS))
    total, wrong = np.zeros(shape), np.zeros(shape)
    np.add.at(total, (step, position[kept] - 1), 1)
    np.add.at(wrong, (step, position[kept] - 1), missed)

    def beyond(counts: np.ndarray) -> np.ndarray:
        """Sum over dwells of at least T_DT and positions of at most T_P."""
        return counts[::-1].cumsum(axis=0)[::-1].cumsum(axis=1)[1:]

    total, wrong = beyond(total), beyond(wrong)
    return np.divide(wrong, total, out=np.full(total.shape, np.nan), where=total > 0)


@dataclass(frozen=True)
class _Batch:
    """Training and validation data of adaQAC-Batch, to sweep a parameter over."""

    training: Choices
    design: Design
    features: np.ndarray
    relevance: np.ndarray
    position: np.ndarray
    user: np.ndarray

    @classmethod
    def of(cls, replay: Replay, name: str, protocol: Protocol) -> "_Batch":
        relevance = fit_relevance(replay, name, protocol)
        train = replay.moments(relevance, replay.last_keystrokes(TRAIN))
        features = replay.features(train)
        design = Design.of(protocol, features, train)
        training, _ = training_choices(
            replay, train, features, design,
            relevance=relevance, keep_unlisted=protocol.keep_unlisted,
        )  # fmt: skip
        valid = replay.moments(relevance, replay.last_keystrokes(VALID))
        return cls(
            training, design, replay.features(valid), valid.relevance, valid.position,
            replay.log.user[valid.composition],
        )  # fmt: skip

    def measures(self, weights: np.ndarray) -> dict[str, float]:
        """Accuracy on validation of one row of weights per user."""
        scores = self.design.scores(self.features, self.relevance, weights[self.user])
        found = reciprocal_ranks(scores, self.position)
        return {"mrr": mean_reciprocal_rank(found)} | {
            f"sr@{k}": success_rate(found, k) for k in (1, 2, 3)
        }


def convergence(
    replay: Replay,
    *,
    relevance: str = "timesense-s",
    protocol: Protocol = CAREFUL,
    iterations: int = 40,
    l2: float = 0.01,
) -> list[dict[str, float]]:
    """Follow gradient descent of adaQAC-Batch on validation (Figure 2.4, left).

    Returns
    -------
    list of dict
        ``iteration``, ``mrr``, ``sr@1``–``sr@3`` and ``gap``, the mean over users of the relative
        distance of the objective from the optimum that Newton's method finds.
    """
    batch = _Batch.of(replay, relevance, protocol)
    choices = batch.training
    paths, gaps = [], []
    best = fit_groups(choices, l2=l2)
    for u, (first, last) in enumerate(zip(choices.group[:-1], choices.group[1:], strict=True)):
        rows = slice(choices.start[first], choices.start[last])
        own = Choices(
            choices.x[rows], choices.offset[rows], choices.start[first : last + 1] - rows.start,
            choices.chosen[first:last] - rows.start,
        ) if last > first else None  # fmt: skip
        if own is None:
            paths.append(np.zeros((iterations + 1, len(best[u]))))
            continue
        paths.append(descend(own, l2=l2, iterations=iterations))
        lowest = own.loss(best[u], l2=l2)
        losses = np.array([own.loss(w, l2=l2) for w in paths[-1]])
        gaps.append((losses - lowest) / max(losses[0] - lowest, 1e-12))
    mean_gap = np.mean(gaps, axis=0)
    return [
        {"iteration": t, "gap": float(mean_gap[t]), **batch.measures(np.array(paths)[:, t])}
        for t in range(iterations + 1)
    ]


def regulariser(
    replay: Replay,
    *,
    relevance: str = "timesense-s",
    protocol: Protocol = CAREFUL,
    weights: Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0),
) -> list[dict[str, float]]:
    """Sweep lambda of adaQAC-Batch on validation (Figure 2.4, right); the penalty pulls to zero."""
    batch = _Batch.of(replay, relevance, protocol)
    return [{"l2": l2, **batch.measures(fit_groups(batch.training, l2=l2))} for l2 in weights]


def candidate_study(
    replay: Replay,
    *,
    relevance: str = "personal-s",
    sizes: Sequence[int] = (10, 20, 50),
    progress: Progress | None = None,
) -> list[dict[str, float]]:
    """Measure the gain and the cost of re-ranking more than ten candidates.

    Returns
    -------
    list of dict
        ``candidates``, ``static`` and ``mrr`` (adaQAC-Online, all test keystrokes), and
        ``microseconds`` per keystroke to compute features, scores and ranks.
    """
    rows = []
    for n in sizes:
        if progress:
            progress(f"{n} candidates")
        models = fit_models(replay, fit_relevance(replay, relevance, CAREFUL, n=n), CAREFUL, n=n)
        moments = replay.moments(models.relevance, replay.last_keystrokes(TEST), n=n)
        began = time.perf_counter()
        scores = models.scores("adaqac-online", replay, moments, replay.features(moments))
        reciprocal_ranks(scores, moments.position)
        cost = (time.perf_counter() - began) / len(moments)
        result = evaluate_models(replay, models)
        rows.append(
            {
                "candidates": n,
                "static": mean_reciprocal_rank(result.ranks["static"]),
                "mrr": mean_reciprocal_rank(result.ranks["adaqac-online"]),
                "microseconds": 1e6 * cost,
            }
        )
    return rows
