"""AppAware and its variants on a replayed log: penalties chosen, gates fitted."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from telic.choice import Elastic
from telic.completion.fit.models import gates_of, recounted, served_by
from telic.completion.learning.adaqac import FeedbackDesign, Protocol
from telic.completion.learning.app_features import MINUTES, Signals
from telic.completion.learning.appaware import AppAware
from telic.completion.learning.appaware_weights import PRINTED, fit_penalties
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.relevance import Relevance
from telic.completion.learning.replayed_log import TRAIN, VALID, RankedKeystrokes, Replay
from telic.evaluate import mean_reciprocal_rank, reciprocal_ranks
from telic.scale import Executor

VARIANTS = {"appaware-i": "i", "appaware-o": "o", "appaware-c": "c", "appaware": "a"}
"""Installed only, opened only, case by case, both."""
SEEN = VARIANTS | {"feedback": "s"}
"""What each may see; no app for "feedback", which is fitted together with implicit feedback."""
PENALTIES = (Elastic(3e-5, 1e-4), PRINTED, Elastic(3e-4, 1e-4))
"""Of the careful protocol, to choose from by validation MRR."""


def _apps_of_many(replay: Replay, signals: Signals) -> np.ndarray:
    """Say of each app whether enough users had it installed or open: bool (apps,)."""
    starts, numbers = (signals.installed_start, signals.recent_start), np.arange(len(replay.log))
    composition = np.concatenate([np.repeat(numbers, np.diff(start)) for start in starts])
    app = np.concatenate([signals.installed_app, signals.recent_app])
    return replay.apps_of_many(composition, app)


@dataclass(frozen=True)
class PhoneModels:
    """AppAware and its variants for one relevance score, fitted."""

    relevance: Relevance
    """What Standard ranks by."""
    protocol: Protocol
    n: int
    signals: dict[str, Signals]
    models: dict[str, AppAware]
    gates: dict[str, Gate]
    design: FeedbackDesign | None
    minutes: float = MINUTES
    """The window for recently opened apps."""

    def reciprocal_ranks(
        self, replay: Replay, moments: RankedKeystrokes, *, gated: bool = True
    ) -> dict[str, np.ndarray]:
        """Return the reciprocal rank of every model, "standard" first, at every moment."""
        found = {"standard": reciprocal_ranks(moments.relevance, moments.position)}
        feedback = replay.features(moments) if self.design else None
        for name, model in self.models.items():
            scores = model.scores(moments, self.signals[name], feedback, self.design)
            found[name] = reciprocal_ranks(scores, moments.position)
            if gated and name in self.gates:
                ranks, gate = found[name], self.gates[name]
                found[name] = served_by(gate, replay, moments, ranks, found["standard"])
        return found


def fit_phone_models(
    replay: Replay,
    relevance: Relevance,
    protocol: Protocol,
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    minutes: float = MINUTES,
    penalty: Elastic | None = None,
    together: bool = False,
    n: int = 10,
    executor: Executor | None = None,
    work: Path | None = None,
) -> PhoneModels:
    """Fit AppAware's variants; the penalty is given, printed, or chosen by validation MRR.

    Parameters
    ----------
    replay : Replay
    relevance : Relevance
    protocol : Protocol
        "paper": printed penalties, batches and passes, no gate. "careful": penalty and gate from
        validation, and a Standard that has learned a weight for each query too
        (`telic.completion.fit.models.recounted`): any app that most phones have is as good as
        such a weight, and would show a gain that apps have no part in.
    variants : sequence of str
        Some of `SEEN`.
    minutes : float
        The window for recently opened apps. Of apps that fewer users of the training part had than
        `Replay` asks for a query nothing is learned.
    penalty : Elastic, optional
    together : bool
        Learn adaQAC's implicit feedback in the same fit, un-personalised.
    n : int
        Pre-indexed queries.
    executor : telic.scale.Executor, optional
        Fits penalties and variants side by side. A fit is of all users, so that it is one task,
        and its weights are the same to the bit.
    work : path, optional
        With an executor: a folder that every worker reaches.
    """
    if protocol.learn_relevance:
        relevance = recounted(replay, relevance, n=n)
    everything = Signals.of(replay.log, minutes=minutes)
    everything = everything.among(_apps_of_many(replay, everything))
    design = None
    if together:
        training = replay.moments(relevance, replay.last_keystrokes(TRAIN), n=n)
        design = FeedbackDesign.of(protocol, [(training, replay.features(training))])
    validation = replay.moments(relevance, replay.last_keystrokes(VALID), n=n)
    feedback = replay.features(validation) if together else None

    # [Zhang2017]'s batches and passes, wherever those end, or the solver that gets there.
    printed: dict[str, Any] = {"solver": "saga", "max_passes": 15, "tol": 0.0}
    if protocol.name != "paper":
        printed = {}

    def fits(name: str, signals: Signals, penalties: Sequence[Elastic]) -> list[AppAware]:
        return fit_penalties(
            replay,
            relevance,
            signals,
            protocol,
            penalties,
            design=design,
            n=n,
            executor=executor,
            work=work and work / name,
            **printed,
        )

    def accuracy(model: AppAware) -> float:
        scores = model.scores(validation, everything, feedback, design)
        return mean_reciprocal_rank(reciprocal_ranks(scores, validation.position))

    models: dict[str, AppAware] = {}
    if penalty is None and protocol.do_no_harm:
        models["appaware"] = max(fits("everything", everything, PENALTIES), key=accuracy)
        penalty = models["appaware"].penalty
    seen = {name: everything.variant(SEEN[name]) for name in variants}
    for name, signals in seen.items():
        if name not in models:
            (models[name],) = fits(name, signals, [penalty or PRINTED])
    models = {name: models[name] for name in variants}
    fitted = PhoneModels(relevance, protocol, n, seen, models, {}, design, minutes)
    if protocol.do_no_harm:
        fitted.gates.update(gates_of(replay, fitted, "standard"))
    return fitted
