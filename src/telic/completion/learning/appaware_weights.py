"""The weights of AppAware, [Zhang2017]: the conditional logit of (3.3.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from telic.choice import (
    Elastic,
    FactoredChoices,
    Fit,
    fit_accelerated,
    fit_printed,
    fit_saga,
    fit_sdca,
)
from telic.choice.factored_files import fits_of
from telic.completion.learning.adaqac import FeedbackDesign, Protocol
from telic.completion.learning.app_features import (
    MOST_RECENT,
    OpenedShares,
    Signals,
    entries_of,
)
from telic.completion.learning.appaware import AppAware, AppTable
from telic.completion.learning.feedback import FEATURES
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TRAIN, RankedKeystrokes, Replay
from telic.errors import expect_one_of
from telic.evaluate import standard_deviations
from telic.scale import Executor

PRINTED = Elastic(1e-4, 1e-4)
SOLVERS: dict[str, Callable[..., Fit]] = {
    "auto": fit_sdca,
    "sdca": fit_sdca,
    "saga": partial(fit_saga, batch_size=100),
    "accelerated": fit_accelerated,
    "printed": fit_printed,
}
"""Of [Zhang2017]'s objective. SDCA was first to every gap at every size, and accelerated needs over
ten times its passes where compositions are few (docs/measured/completion-speed.md)."""


def fit_penalties(
    replay: Replay,
    relevance: Relevance,
    signals: Signals,
    protocol: Protocol,
    penalties: Sequence[Elastic],
    *,
    design: FeedbackDesign | None = None,
    n: int = 10,
    solver: str = "auto",
    max_passes: int = 20_000,
    tol: float = 1e-3,
    executor: Executor | None = None,
    work: Path | None = None,
) -> list[AppAware]:
    """Learn the weights at the last keystrokes of the training part, with each of some penalties.

    Parameters
    ----------
    replay : Replay
    relevance : Relevance
        s(q, c), with its scales.
    signals : Signals
        Of the replayed log: all of them, or those of a variant.
    protocol : Protocol
        Whether the relevance has a learned weight and whether compositions whose query is no
        candidate are kept, as printed (the union in (3.3.2)).
    penalties : sequence of Elastic
        lambda_1 and lambda_2.
    design : FeedbackDesign, optional
        Scales of implicit feedback; given, its 16 weights are learned together with the apps'.
    n : int
        Pre-indexed queries N.
    solver : {"auto", "sdca", "saga", "accelerated", "printed"}
        "saga" and "printed" draw batches of 100 as [Zhang2017] does, which stops after 15 passes.
    max_passes : int
        Most passes over the compositions.
    tol : float
        The duality gap asked for, relative to what the fit gains; a `ConvergenceWarning` says where
        it is missed. With 0, and by "printed", all passes are taken. `AppAware.fit` has the gap.
    executor : telic.scale.Executor, optional
        Fits the penalties side by side, to the same bits.
    work : path, optional
        Needed with an executor: a folder for these signals, which every worker reaches.

    Raises
    ------
    InputError
        If the solver is not one of these.
    """
    expect_one_of(SOLVERS, solver=solver)
    moments = replay.moments(relevance, replay.last_keystrokes(TRAIN), n=n)
    if protocol.keep_unlisted:
        moments = replay.with_submitted(moments, relevance)
    moments = moments.where(moments.position >= 0)
    shares = OpenedShares.counted(signals, replay.query, np.flatnonzero(replay.part == TRAIN))
    feedback = design.scaled(replay.features(moments)[..., : len(FEATURES)]) if design else None
    problem = _Problem.of(replay, moments, signals, shares, protocol, feedback)
    extra = {} if solver == "printed" else {"tol": tol}
    solve = partial(SOLVERS[solver], max_passes=max_passes, **extra)
    if not len(problem.choices) or not problem.choices.size:
        nothing = Fit(np.zeros(problem.choices.size), "none", 0.0, [(0.0, 0.0)], gap=0.0)
        fits = [nothing for _ in penalties]
    elif executor is None:
        fits = [solve(problem.choices, penalty) for penalty in penalties]
    else:
        fits = fits_of(problem.choices, solve, penalties, executor, work)
    return [
        problem.model(fit, penalty, shares, len(replay.index))
        for fit, penalty in zip(fits, penalties, strict=True)
    ]


@dataclass(frozen=True)
class _Problem:
    """The conditional logit of (3.3.5) and what its weights mean."""

    choices: FactoredChoices
    queries: np.ndarray
    """Phrases behind the outcomes."""
    scales: tuple[float, float]
    """Standard deviations of log(1 + x) and of y over the training candidates."""
    learn_relevance: bool

    @classmethod
    def of(
        cls,
        replay: Replay,
        moments: RankedKeystrokes,
        signals: Signals,
        shares: OpenedShares,
        protocol: Protocol,
        feedback: np.ndarray | None,
    ) -> "_Problem":
        there = moments.candidates >= 0
        # Only differences count; a large constant in the learned weight's column would slow a fit.
        relevance = moments.relevance - moments.relevance.max(axis=1, keepdims=True)
        candidate = moments.candidates[there]
        queries, outcome = np.unique(candidate, return_inverse=True)
        counts = there.sum(axis=1)
        start = np.concatenate([[0], np.cumsum(counts)])
        column = np.cumsum(there, axis=1) - 1
        chosen = start[:-1] + column[np.arange(len(moments)), moments.position]
        where, owner = entries_of(signals.installed_start, moments.composition)
        value = signals.installed_value[where]
        row_composition = np.repeat(moments.composition, counts)
        recent, row = entries_of(signals.recent_start, row_composition)
        order = recent - signals.recent_start[row_composition][row]
        query = candidate[row]
        y = shares.of(
            query, signals.recent_app[recent], query == replay.query[row_composition][row]
        )
        scales = (
            float(standard_deviations(value[:, None])[0]),
            float(standard_deviations(y[:, None])[0]),
        )
        parts = [(row, order, y / scales[1])]
        width = MOST_RECENT
        if protocol.learn_relevance:
            rows = np.arange(len(candidate))
            parts.append((rows, np.full(len(rows), width), relevance[there]))
        width += 1
        if feedback is not None:
            values = feedback[there]
            rows, features = np.nonzero(values)
            parts.append((rows, features + width, values[rows, features]))
        width += len(FEATURES)
        row, feature, shared = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        used = shared != 0
        row, feature, shared = row[used], feature[used], shared[used]
        by_row = np.lexsort((feature, row))
        choices = FactoredChoices(
            len(queries),
            signals.apps,
            width,
            outcome,
            relevance[there],
            start,
            chosen,
            np.searchsorted(owner, np.arange(len(moments) + 1)),
            signals.installed_app[where],
            value / scales[0],
            np.searchsorted(row[by_row], np.arange(len(candidate) + 1)),
            feature[by_row],
            shared[by_row],
        )
        return cls(choices, queries, scales, protocol.learn_relevance)

    def model(self, fit: Fit, penalty: Elastic, shares: OpenedShares, queries: int) -> AppAware:
        first, apps = self.choices.first, max(self.choices.entries, 1)
        pair = np.flatnonzero(fit.weights[:first])
        shared = fit.weights[first:]
        return AppAware(
            AppTable.of(
                self.queries[pair // apps], pair % apps, fit.weights[pair] / self.scales[0], queries
            ),
            AppTable.of(
                shares.pair // max(shares.apps, 1),
                shares.pair % max(shares.apps, 1),
                shares.values,
                queries,
            ),
            shared[:MOST_RECENT] / self.scales[1],
            shared[MOST_RECENT + 1 :].copy(),
            # Below a tenth the relevance would hardly count; data with a sense never ask for it.
            max(1 + float(shared[MOST_RECENT]), 0.1),
            penalty,
            replace(fit, weights=fit.weights[:0]),
        )
